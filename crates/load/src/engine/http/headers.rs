//! The headers of an answer, in Node's form.

use std::borrow::Cow;

use crate::client::Answer;
use crate::value::{Map, Value};

/// A header: found by its name in lower case, repeated ones joined, cookies as a list.
pub(super) fn header(answer: &Answer, name: &str) -> Value {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Value::Undefined;
    }
    let mut values =
        answer.fields().filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| text(value));
    if name == "set-cookie" {
        let all: Vec<Value> = values.map(|value| Value::from(&*value)).collect();
        return if all.is_empty() { Value::Undefined } else { Value::from(all) };
    }
    let Some(mut first) = values.next() else {
        return Value::Undefined;
    };
    let is_single = matches!(
        name,
        "age"
            | "authorization"
            | "content-length"
            | "content-type"
            | "etag"
            | "expires"
            | "from"
            | "host"
            | "if-modified-since"
            | "if-unmodified-since"
            | "last-modified"
            | "location"
            | "max-forwards"
            | "proxy-authorization"
            | "referer"
            | "retry-after"
            | "server"
            | "user-agent"
    );
    if !is_single {
        for value in values {
            first = Cow::Owned(format!("{first}, {value}"));
        }
    }
    Value::from(&*first)
}

/// The text of a header value: Node reads it as Latin-1.
fn text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        _ => Cow::Owned(value.iter().map(|&byte| char::from(byte)).collect()),
    }
}

/// All headers, names in lower case.
pub(super) fn headers(answer: &Answer) -> Map {
    let mut map = Map::default();
    for (name, _) in answer.fields() {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        if !map.contains_key(&*name) {
            let value = header(answer, &name);
            map.insert(name.into(), value);
        }
    }
    map
}
