//! Secrets by their form, anywhere in a text. One walk over the bytes; each look back or ahead has a bound.

use super::noticed::Noticed;
use super::numbers;
use super::sheet::{Findings, ValueForm, whole};
use super::table::{SecretKind, begins_service_key, service_keys};
use super::view::View;

/// Longest local part of an e-mail address, and longest name of a host.
const LOCAL_BYTES_MAX: usize = 64;
const HOST_BYTES_MAX: usize = 253;
/// Longest user and password of a URL.
const USER_INFO_BYTES_MAX: usize = 1024;
/// Shortest token behind `Bearer` in the middle of a text.
const BEARER_BYTES_MIN: usize = 8;

/// Gives each secret of `view` to `findings`.
pub(super) fn content(view: View<'_>, findings: &mut dyn Findings) {
    let bytes = view.bytes;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if IS_OF_WORD[usize::from(*byte)] && at > 0 && IS_OF_WORD[usize::from(bytes[at - 1])] {
            // Nothing begins within a word.
            at = run(bytes, at, usize::MAX, |byte| IS_OF_WORD[usize::from(byte)]);
            continue;
        }
        if !TRIGGERS[usize::from(*byte)] {
            at += 1;
            continue;
        }
        let found = match byte {
            // The password of a URL may end before an `@`.
            b'@' if at > 0 && findings.is_found(view.place(at - 1)) => None,
            b'@' => email(bytes, at),
            b':' => user_info(view, at, findings),
            b'-' => private_key(bytes, at),
            b'0'..=b'9' | b'+' => numbers::number(bytes, at),
            _ => word(view, at, findings),
        };
        match found {
            Some(Noticed::Secret(range, kind)) => {
                at = range.end.max(at + 1);
                findings.found(view, range, kind, ValueForm::Plain);
            }
            Some(Noticed::Nothing(end)) => at = end.max(at + 1),
            None => at += 1,
        }
    }
}

/// Gives user and password of each URL in `view` to `findings`.
pub(super) fn users(view: View<'_>, findings: &mut dyn Findings) {
    for at in memchr::memmem::find_iter(view.bytes, b"://") {
        user_info(view, at, findings);
    }
}

/// The bytes at which a secret may be noticed.
const TRIGGERS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8, b'@' | b':' | b'-' | b'+' | b'0'..=b'9' | b'A'..=b'Z' | b'b' | b'e')
            || begins_service_key(byte as u8);
        byte += 1;
    }
    table
};

/// Letters and digits. A table and no branches: nobody can foresee which of them comes next in a random text.
const IS_OF_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

/// The end of the bytes from `at` for which `is` is true, at most `max` of them.
fn run(bytes: &[u8], at: usize, max: usize, is: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take(max).take_while(|byte| is(**byte)).count()
}

/// An e-mail address around the `@` at `at`.
fn email(bytes: &[u8], at: usize) -> Option<Noticed> {
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(&byte);
    let before = &bytes[..at];
    let begin = at - before.iter().rev().take(LOCAL_BYTES_MAX).take_while(|byte| is_local(**byte)).count();
    // Korean and other letters in front, of an address in a text, are not its own.
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let mut end = run(bytes, at + 1, HOST_BYTES_MAX, is_host);
    while end > at + 1 && !bytes[end - 1].is_ascii_alphanumeric() {
        end -= 1;
    }
    let host = &bytes[at + 1..end];
    let dot = memchr::memrchr(b'.', host)?;
    let top = &host[dot + 1..];
    let is_top = top.len() >= 2 && (top.iter().all(u8::is_ascii_alphabetic) || top.starts_with(b"xn--"));
    (begin < at && dot > 0 && is_top).then_some(Noticed::Secret(begin..end, SecretKind::Email))
}

/// User and password behind the `://` at `at`.
fn user_info(view: View<'_>, at: usize, findings: &mut dyn Findings) -> Option<Noticed> {
    let bytes = view.bytes;
    if !bytes[at..].starts_with(b"://") || at == 0 || !bytes[at - 1].is_ascii_alphanumeric() {
        return None;
    }
    let begin = at + 3;
    let is_authority = |byte: u8| byte.is_ascii_graphic() && !b"/?#\"'<>\\".contains(&byte) || !byte.is_ascii();
    let end = run(bytes, begin, USER_INFO_BYTES_MAX, is_authority);
    let sign = begin + memchr::memrchr(b'@', &bytes[begin..end])?;
    let both = view.part(begin..sign);
    let (user, password) = both.split_once(b':').unwrap_or((both, both.part(0..0)));
    for one in [user, password] {
        whole(one, SecretKind::UserInfo, findings);
    }
    Some(Noticed::Nothing(sign + 1))
}

/// The private key behind the `-----BEGIN` at `at`.
fn private_key(bytes: &[u8], at: usize) -> Option<Noticed> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let rest = bytes[at..].strip_prefix(BEGIN)?;
    let label = run(rest, 0, 40, |byte| byte.is_ascii_uppercase() || byte == b' ' || byte.is_ascii_digit());
    let begin = at + BEGIN.len() + label + 5;
    if !rest[..label].ends_with(b"PRIVATE KEY") || rest.get(label..label + 5) != Some(b"-----") {
        return None;
    }
    let end = memchr::memmem::find(&bytes[begin..], b"-----END").map_or(bytes.len(), |end| begin + end);
    Some(Noticed::Secret(begin..end, SecretKind::PrivateKey))
}

/// A secret that begins with the letter at `at`.
fn word(view: View<'_>, at: usize, findings: &mut dyn Findings) -> Option<Noticed> {
    let bytes = view.bytes;
    match &bytes[at..] {
        [b'e', b'y', b'J', ..] => jwt(bytes, at),
        [b'B' | b'b', b'e' | b'E' | b'a' | b'A', ..] => scheme(view, at, findings),
        _ => None,
    }
    .or_else(|| service_key(bytes, at))
    .or_else(|| numbers::iban(bytes, at))
}

/// A JSON Web Token: three or five parts in base64, the first of them an object.
fn jwt(bytes: &[u8], at: usize) -> Option<Noticed> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || byte == b'=';
    let mut end = run(bytes, at, usize::MAX, is_part);
    let mut parts = 1;
    while parts < 5 && bytes.get(end) == Some(&b'.') {
        let next = run(bytes, end + 1, usize::MAX, is_part);
        // Only the second part of an encrypted token and the last part of an unsigned one are empty.
        if next == end + 1 && parts > 2 {
            break;
        }
        end = next;
        parts += 1;
    }
    // A single part may be a token of a framework: an object in base64, which says who the client is.
    if parts >= 2 || end - at >= 24 {
        return Some(Noticed::Secret(at..end, SecretKind::Jwt));
    }
    Some(Noticed::Nothing(end))
}

/// `Bearer TOKEN` or `Basic BASE64` within a text.
fn scheme(view: View<'_>, at: usize, findings: &mut dyn Findings) -> Option<Noticed> {
    let bytes = view.bytes;
    let name = bytes.get(at..at + 6).filter(|name| name.eq_ignore_ascii_case(b"bearer"));
    let (length, is_basic) = match (name, bytes.get(at..at + 5)) {
        (Some(_), _) => (6, false),
        (None, Some(name)) if name.eq_ignore_ascii_case(b"basic") => (5, true),
        _ => return None,
    };
    let begin = run(bytes, at + length, 4, |byte| byte == b' ');
    if begin == at + length {
        return None;
    }
    let end = run(bytes, begin, usize::MAX, |byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte));
    let token = &bytes[begin..end];
    // `Bearer realm="x"` is a challenge.
    if bytes.get(end) == Some(&b'"') || token.len() < BEARER_BYTES_MIN {
        return None;
    }
    // A word of prose is no token.
    let is_random = token.len() >= 20 || token.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    match is_basic {
        true if is_random && token.len().is_multiple_of(4) => {
            findings.found(view, begin..end, SecretKind::Credentials, ValueForm::Basic);
            Some(Noticed::Nothing(end))
        }
        false if is_random => Some(Noticed::Secret(begin..end, SecretKind::Credentials)),
        _ => None,
    }
}

/// A key of a service whose prefix is at `at`.
fn service_key(bytes: &[u8], at: usize) -> Option<Noticed> {
    let rest = &bytes[at..];
    for (prefix, kind, least) in service_keys(*rest.first()?) {
        if let Some(tail) = rest.strip_prefix(prefix.as_bytes()) {
            let length = tail.iter().take_while(|byte| kind.has(**byte)).count();
            if length >= *least {
                return Some(Noticed::Secret(at..at + prefix.len() + length, SecretKind::ServiceKey));
            }
        }
    }
    None
}
