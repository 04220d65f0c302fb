//! Texts: names with values in them, tags, other texts within.

use std::ops::Range;

use super::content::{content, users};
use super::json::json;
use super::sheet::{Findings, whole};
use super::table::{SecretKind, is_secret_name};
use super::view::View;

/// Deepest nesting of texts in texts: a URL in a parameter, JSON in a string of JSON.
const DEPTH_MAX: u32 = 3;
/// Longest name of a value in a text.
const NAME_BYTES_MAX: usize = 64;
/// Longest tag of HTML or XML.
const TAG_BYTES_MAX: usize = 4096;

/// The secrets of a text of unknown form, `depth` texts deep.
pub(super) fn nested(view: View<'_>, depth: u32, findings: &mut dyn Findings) {
    if depth < DEPTH_MAX {
        if let Some(decoded) = view.percent(false) {
            // A value ends at a sign of this text, not at one of its own.
            pairs(view, findings);
            users(view, findings);
            return nested(decoded.view(), depth + 1, findings);
        }
        if let [b'{' | b'[', _, ..] = view.bytes {
            return json(view, &|text, findings| nested(text, depth + 1, findings), findings);
        }
    }
    pairs(view, findings);
    content(view, findings);
}

/// The secrets of a body in JSON.
pub(super) fn json_body(view: View<'_>, findings: &mut dyn Findings) {
    json(view, &|text, findings| nested(text, 0, findings), findings);
}

/// The secrets of a document: HTML, XML, scripts, logs.
pub(super) fn document(view: View<'_>, findings: &mut dyn Findings) {
    for at in memchr::memchr_iter(b'<', view.bytes) {
        tag(view.part(at + 1..view.bytes.len()), findings);
    }
    pairs(view, findings);
    content(view, findings);
}

/// `name=value`, `name: value`, `"name": "value"` with the name of a secret.
fn pairs(view: View<'_>, findings: &mut dyn Findings) {
    let mut done = 0;
    for sign in memchr::memchr2_iter(b'=', b':', view.bytes) {
        if sign < done {
            continue;
        }
        let (before, after) = (&view.bytes[..sign], &view.bytes[sign + 1..]);
        // `a == b`, `a => b`, `http://`
        if matches!(after.first(), Some(b'=' | b'>' | b'/')) || before.last() == Some(&b'=') {
            continue;
        }
        if !is_secret_name(name_before(before)) {
            continue;
        }
        // A value has no further pair.
        let value = value_behind(view.bytes, sign + 1);
        done = value.end;
        whole(view.part(value), SecretKind::Named, findings);
    }
}

/// The name at the end of a text, without quotes and white space.
fn name_before(before: &[u8]) -> &[u8] {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.[]$".contains(byte) || !byte.is_ascii();
    let spaces = before.iter().rev().take(4).take_while(|byte| matches!(byte, b' ' | b'"' | b'\'' | b'\\')).count();
    let end = before.len() - spaces;
    let length = before[..end].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_name(byte)).count();
    &before[end - length..end]
}

/// The value from `at`: in quotes, or up to a sign.
fn value_behind(bytes: &[u8], at: usize) -> Range<usize> {
    let rest = &bytes[at..];
    let begin = at + rest.iter().take(4).take_while(|byte| matches!(byte, b' ' | b'\\')).count();
    let value = &bytes[begin..];
    if let [quote @ (b'"' | b'\''), inner @ ..] = value {
        let end = memchr::memchr(*quote, inner).unwrap_or(inner.len());
        let escaped = usize::from(end > 0 && inner.get(end - 1) == Some(&b'\\'));
        return begin + 1..begin + 1 + end - escaped;
    }
    let is_end = |byte: &u8| b"&;,<>\"'#(){}[]|".contains(byte) || byte.is_ascii_whitespace();
    begin..begin + value.iter().position(is_end).unwrap_or(value.len())
}

/// The tag behind a `<`: `<input name="token" value="V">`, `<meta name=csrf-token content=V>`, `<password>V</password>`.
fn tag(rest: View<'_>, findings: &mut dyn Findings) {
    let head = &rest.bytes[..rest.bytes.len().min(TAG_BYTES_MAX)];
    let name = head.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte)).count();
    if name == 0 {
        return;
    }
    // The next `<` ends a tag too, so that no byte is looked at twice.
    let Some(end) = head.iter().position(|byte| matches!(byte, b'>' | b'<')) else { return };
    let is_named = attributes(rest.part(name..end)).any(|(name, value)| {
        [&b"name"[..], b"id", b"property", b"autocomplete"].contains(&name.bytes) && is_secret_name(value.bytes)
            || name.bytes == b"type" && value.bytes == b"password"
    });
    if is_named {
        for (name, value) in attributes(rest.part(name..end)) {
            if [&b"value"[..], b"content"].contains(&name.bytes) {
                whole(value, SecretKind::Named, findings);
            }
        }
    }
    if is_secret_name(&head[..name]) && head.get(end) == Some(&b'>') && head.get(end.wrapping_sub(1)) != Some(&b'/') {
        let text = rest.part(end + 1..rest.bytes.len());
        let length = memchr::memchr(b'<', text.bytes).unwrap_or(text.bytes.len());
        whole(text.part(0..length).trim(), SecretKind::Named, findings);
    }
}

/// The attributes of a tag, with their values.
fn attributes(mut rest: View<'_>) -> impl Iterator<Item = (View<'_>, View<'_>)> {
    std::iter::from_fn(move || {
        let (name, value) = rest.split_once(b'=')?;
        let name = name.trim();
        let begin =
            name.bytes.iter().rposition(|byte| byte.is_ascii_whitespace() || *byte == b'"').map_or(0, |at| at + 1);
        let value =
            value.part(value.bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()..value.bytes.len());
        let (content, length) = match value.bytes {
            [quote @ (b'"' | b'\''), inner @ ..] => {
                let end = inner.iter().position(|byte| byte == quote).unwrap_or(inner.len());
                (value.part(1..1 + end), (end + 2).min(value.bytes.len()))
            }
            bytes => {
                let end =
                    bytes.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'/').unwrap_or(bytes.len());
                (value.part(0..end), end)
            }
        };
        rest = value.part(length..value.bytes.len());
        Some((name.part(begin..name.bytes.len()), content))
    })
}
