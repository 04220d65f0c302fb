//! `JSON.parse` and `JSON.stringify`, and extraction of a value from JSON text without keeping the rest in memory.
//!
//! Unlike in JavaScript, nesting beyond 128, a number beyond 1.8e308 and half a surrogate pair (`"\ud800"`) are
//! errors.

use std::fmt;
use std::sync::Arc;

use serde_core::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::model::{Map, Value, into_string};
use super::number::write_number;
use super::path::PathStep;

/// Number of bytes that are checked together.
const PIECE_BYTES: usize = 16;

/// `JSON.parse`; the error is serde_json's. Bytes that are not UTF-8 become U+FFFD, as in Node.
pub fn parse_json(text: &[u8]) -> Result<Value, serde_json::Error> {
    extract(text, &[]).map(Option::unwrap_or_default)
}

/// `JSON.parse` that keeps only the value at the steps; `None` if there is none.
///
/// Checks the whole text. Of members with the same name, the last one counts.
pub fn extract(text: &[u8], keys: &[PathStep]) -> Result<Option<Value>, serde_json::Error> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    match extract_utf8(text, keys) {
        Err(error) if std::str::from_utf8(text).is_err() => {
            extract_utf8(String::from_utf8_lossy(text).as_bytes(), keys).map_err(|_| error)
        }
        other => other,
    }
}

fn extract_utf8(text: &[u8], keys: &[PathStep]) -> Result<Option<Value>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let found = At(keys).deserialize(&mut reader)?;
    reader.end()?;
    Ok(found)
}

impl Value {
    /// Appends `JSON.stringify(value)`; appends nothing and returns false if that is `undefined`.
    pub fn write_json(&self, out: &mut Vec<u8>) -> bool {
        write(self, out)
    }

    /// `JSON.stringify(value)`.
    pub fn to_json(&self) -> Option<String> {
        let mut out = Vec::new();
        self.write_json(&mut out).then(|| into_string(out))
    }

    /// `JSON.stringify(value, null, 2)`.
    pub fn to_json_pretty(&self) -> Option<String> {
        let mut out = Vec::new();
        write_pretty(self, 0, &mut out).then(|| into_string(out))
    }
}

fn write(value: &Value, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Undefined => return false,
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(bool) => out.extend_from_slice(if *bool { b"true" } else { b"false" }),
        Value::Number(number) if number.is_finite() => write_number(*number, out),
        Value::Number(_) => out.extend_from_slice(b"null"),
        Value::Text(text) => write_text(text, out),
        Value::List(list) => {
            out.push(b'[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                if !write(item, out) {
                    out.extend_from_slice(b"null");
                }
            }
            out.push(b']');
        }
        Value::Map(map) => {
            out.push(b'{');
            let mut is_first = true;
            for (key, value) in map.iter().filter(|(_, value)| **value != Value::Undefined) {
                if !std::mem::take(&mut is_first) {
                    out.push(b',');
                }
                write_text(key, out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
    true
}

/// As [`write`], indented by two spaces for every level.
fn write_pretty(value: &Value, depth: usize, out: &mut Vec<u8>) -> bool {
    let line = |depth: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    let (open, close) = match value {
        Value::List(list) if !list.is_empty() => (b'[', b']'),
        Value::Map(map) if map.values().any(|value| *value != Value::Undefined) => (b'{', b'}'),
        other => return write(other, out),
    };
    out.push(open);
    let mut is_first = true;
    let mut separate = |out: &mut Vec<u8>| {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        line(depth + 1, out);
    };
    match value {
        Value::List(list) => {
            for item in list.iter() {
                separate(out);
                if !write_pretty(item, depth + 1, out) {
                    out.extend_from_slice(b"null");
                }
            }
        }
        Value::Map(map) => {
            for (key, value) in map.iter().filter(|(_, value)| **value != Value::Undefined) {
                separate(out);
                write_text(key, out);
                out.extend_from_slice(b": ");
                write_pretty(value, depth + 1, out);
            }
        }
        _ => {}
    }
    line(depth, out);
    out.push(close);
    true
}

/// A text in quotes, with JSON escapes.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    // Nearly always this is enough.
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = escape_at(rest) {
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, b""));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = tail.split_first() else { break };
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// The position of the first byte that JSON must escape. Pieces without such a byte are skipped as a whole.
fn escape_at(bytes: &[u8]) -> Option<usize> {
    // The loop has no early exit within a piece, so that the compiler uses vector instructions.
    let is_escaped = |byte: &u8| (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    let has_none = |piece: &&[u8]| !piece.iter().fold(false, |any, byte| any | is_escaped(byte));
    let plain = bytes.chunks_exact(PIECE_BYTES).take_while(has_none).count() * PIECE_BYTES;
    Some(plain + bytes.get(plain..)?.iter().position(is_escaped)?)
}

/// Reads the value at the steps; skips the rest.
#[derive(Clone, Copy)]
struct At<'k>(&'k [PathStep]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Option<Value>, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<Value>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Value>, E> {
        Ok(self.0.is_empty().then_some(Value::Null))
    }

    fn visit_bool<E: Error>(self, bool: bool) -> Result<Option<Value>, E> {
        Ok(self.0.is_empty().then_some(Value::Bool(bool)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<Value>, E> {
        self.visit_f64(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<Value>, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<Value>, E> {
        Ok(self.0.is_empty().then_some(Value::Number(number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<Value>, E> {
        Ok(self.0.is_empty().then(|| Value::from(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<Value>, A::Error> {
        let Some((first, rest)) = self.0.split_first() else {
            let mut list = Vec::new();
            while let Some(item) = items.next_element_seed(At(&[]))? {
                list.push(item.unwrap_or_default());
            }
            return Ok(Some(Value::from(list)));
        };
        let mut found = None;
        let mut index = 0;
        loop {
            if first.index == Some(index) {
                let Some(item) = items.next_element_seed(At(rest))? else { break };
                found = item;
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            index += 1;
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Option<Value>, A::Error> {
        let Some((first, rest)) = self.0.split_first() else {
            let mut map = Map::default();
            while let Some(key) = members.next_key_seed(Name)? {
                map.insert(key, members.next_value_seed(At(&[]))?.unwrap_or_default());
            }
            return Ok(Some(Value::from(map)));
        };
        let mut found = None;
        while let Some(is_it) = members.next_key_seed(Is(&first.name))? {
            if is_it {
                found = members.next_value_seed(At(rest))?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Reads a member's name.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Arc<str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Arc<str>, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Arc<str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Arc<str>, E> {
        Ok(name.into())
    }
}

/// Tests if a member has this name.
struct Is<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Path;
    use super::*;

    #[test]
    fn there_and_back() {
        for (text, again) in [
            (r#"{"b":1,"a":[true,false,null,-0,1e21,0.1]}"#, r#"{"b":1,"a":[true,false,null,0,1e+21,0.1]}"#),
            (r#""a\"\\\/\b\f\n\r\t\u0001\u00e9""#, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001é\""),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
            (" [ ] ", "[]"),
            ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ("7.038531e-26", "7.038531e-26"),
        ] {
            assert_eq!(parse_json(text.as_bytes()).unwrap().to_json().unwrap(), again, "{text}");
        }
        for text in ["", "{", "{}x", "undefined", "'a'", "[1,]", "01", "nul", "\"\u{1}\"", &"[".repeat(200)] {
            assert!(parse_json(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_wants_escaping_is_found_wherever_it_is() {
        for len in 0..=3 * PIECE_BYTES {
            let plain = "x".repeat(len);
            assert_eq!(escape_at(plain.as_bytes()), None, "{len}");
            for (at, odd) in (0..len).zip(['"', '\\', '\u{0}', '\u{1f}'].into_iter().cycle()) {
                let mut text = plain.clone();
                text.replace_range(at..=at, &odd.to_string());
                assert_eq!(escape_at(text.as_bytes()), Some(at), "{text:?}");
                let json = Value::from(&*text).to_json().unwrap();
                assert_eq!(parse_json(json.as_bytes()).unwrap().as_str(), Some(&*text));
            }
        }
    }

    #[test]
    fn undefined_is_left_out() {
        let mut map = Map::default();
        map.insert("a".into(), Value::Undefined);
        map.insert("b".into(), Value::from(vec![Value::Undefined, Value::Number(f64::NAN)]));
        assert_eq!(Value::from(map).to_json().unwrap(), r#"{"b":[null,null]}"#);
        assert_eq!(Value::Undefined.to_json(), None);
    }

    #[test]
    fn pretty_is_javascripts() {
        let value = parse_json(br#"{"a":[1,{"b":[]}],"c":{}}"#).unwrap();
        let expected = "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}";
        assert_eq!(value.to_json_pretty().unwrap(), expected);
    }

    #[test]
    fn taking_one_is_the_same_as_taking_all() {
        let body =
            br#"{"t":"x","a":{"b":[0,{"c":"\u00e9"}],"b2":1},"n":null,"t":"last","s":"\u0061","d":{"x":1},"d":2}"#;
        let all = parse_json(body).unwrap();
        for path in ["t", "a.b[1].c", "a.b", "a", "n", "nosuch", "a.b[7]", "a.b.c", "s", "t.x", "d.x", "d"] {
            let path = Path::parse(path);
            let taken = extract(body, &path.keys).unwrap();
            let found = super::super::get(&all, &path.keys);
            assert_eq!(taken.unwrap_or_default(), found, "{path:?}");
        }
    }

    #[test]
    fn all_of_it_must_be_json() {
        let keys = Path::parse("a").keys;
        for body in ["{\"a\":1", "{\"a\":1}}", "{\"a\":1,\"b\":tru}", "{\"a\":1,\"b\":[1,}"] {
            assert!(extract(body.as_bytes(), &keys).is_err(), "{body}");
        }
        assert_eq!(extract(b"{\"a\":\"\xff\"}", &keys).unwrap(), Some(Value::from("\u{fffd}")));
    }
}
