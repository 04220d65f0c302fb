//! Bodies: as bytes, as JSON by its pointers, as HTML by its texts and attributes.

use serde_json::Value;

use super::html;
use super::parts::{AnswerPart, OWN_PAGE, PADDING, Parts, as_of};
use crate::difference::Port;
use crate::request::WholeAnswer;

/// Most values of a JSON body that are told apart.
const VALUES_MAX: usize = 20_000;
/// Deepest nesting of a JSON body that is looked into.
const DEPTH_MAX: usize = 64;

/// The body with the port that clients know, and without the name of a server of another kind.
pub(super) fn normal(answer: &WholeAnswer, port: &Port, is_same_program: bool) -> Vec<u8> {
    let body = as_of(&answer.body, port);
    if is_same_program { body } else { without_name(body) }
}

/// A page of the server itself without the server's name and version, and without nginx's comments for Chrome. SSI may put
/// several such pages into one.
fn without_name(page: Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(page.len());
    let mut rest = page.as_slice();
    while let Some((before, after)) =
        memchr::memmem::find(rest, OWN_PAGE).and_then(|at| rest.split_at_checked(at + OWN_PAGE.len()))
    {
        without_padding(before, &mut out);
        let end = after.iter().position(|byte| *byte == b'<').unwrap_or(after.len());
        rest = after.get(end..).unwrap_or_default();
    }
    match out.is_empty() {
        true => page,
        false => {
            without_padding(rest, &mut out);
            out
        }
    }
}

/// Adds a text without nginx's comments for Chrome.
fn without_padding(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr::memmem::find(text, PADDING) {
        out.extend_from_slice(text.get(..at).unwrap_or_default());
        text = text.get(at + PADDING.len()..).unwrap_or_default();
    }
    out.extend_from_slice(text);
}

/// The body as one part.
pub(super) fn whole(bytes: &[u8]) -> AnswerPart {
    AnswerPart::of("body", bytes, b"\n")
}

/// The parts of a body. `None`: it has none that are told apart.
pub(super) fn parts(answer: &WholeAnswer, body: &[u8]) -> Option<Parts> {
    let kind = answer.field("content-type").unwrap_or_default().to_ascii_lowercase();
    let is = |word: &[u8]| memchr::memmem::find(&kind, word).is_some();
    if is(b"html") {
        return html::parts(body);
    }
    if !is(b"json") && !body.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let value: Value = serde_json::from_slice(body).ok()?;
    let mut parts = Parts::new();
    walk(&value, "body $", 0, &mut parts).then_some(parts)
}

/// True for the parts of an HTML page.
pub(super) fn is_page(parts: &Parts) -> bool {
    parts.keys().any(|place| place.starts_with("body <"))
}

/// Adds the values below a place. False: there are too many.
fn walk(value: &Value, place: &str, depth: usize, parts: &mut Parts) -> bool {
    if parts.len() >= VALUES_MAX || depth > DEPTH_MAX {
        return false;
    }
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().all(|(name, value)| walk(value, &format!("{place}{}", step(name)), depth + 1, parts))
        }
        Value::Array(elements) if !elements.is_empty() => {
            let mut numbered = elements.iter().enumerate();
            numbered.all(|(number, value)| walk(value, &format!("{place}[{number}]"), depth + 1, parts))
        }
        leaf => {
            let part = AnswerPart { name: place.to_owned(), pieces: vec![leaf.to_string().into_bytes()] };
            parts.insert(place.to_owned(), part);
            true
        }
    }
}

/// A step of a JSONPath to the member of that name.
fn step(name: &str) -> String {
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { format!(".{name}") } else { format!("[{}]", Value::from(name)) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn json_has_a_part_for_each_value() {
        let answer = WholeAnswer {
            fields: vec![(b"Content-Type".to_vec(), b"application/json".to_vec())],
            ..WholeAnswer::default()
        };
        let found = parts(&answer, br#"{"a":{"b":[1,"x"]},"c d":{},"e":null}"#).unwrap();
        let places: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(places, ["body $.a.b[0]", "body $.a.b[1]", "body $.e", "body $[\"c d\"]"]);
        assert_eq!(parts(&answer, b"{"), None);
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(parts(&answer, deep.as_bytes()), None);
    }

    #[test]
    fn a_page_of_the_server_has_no_name() {
        for (page, plain) in [
            ("x<hr><center>nginx/1.22.1</center>", "x<hr><center></center>"),
            ("x<hr><center>nginx/1.22.1</center>PP", "x<hr><center></center>"),
            ("<hr><center>a</center>Pb<hr><center>cP", "<hr><center></center>b<hr><center>"),
            ("<center>aP", "<center>aP"),
        ] {
            let padding = String::from_utf8_lossy(PADDING);
            let [page, plain] = [page, plain].map(|text| text.replace('P', &padding).into_bytes());
            assert_eq!(without_name(page), plain);
        }
    }
}
