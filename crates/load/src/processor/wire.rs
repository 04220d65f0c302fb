//! The messages between weir and a processor in Node: a length of four bytes, then JSON.
//!
//! JSON lacks `undefined`, NaN and the infinities, so they are objects with the only member [`SPECIAL`]. A large
//! value that many virtual users hold is sent once; later it is an object with the only member `\0r`.

use std::sync::Arc;

use memchr::memmem;

use crate::value::{Map, Value, parse_json, write_json_text, write_number};

/// Largest frame, in bytes.
pub const FRAME_MAX: usize = 64 << 20;
/// The member for `undefined`, NaN and the infinities.
pub const SPECIAL: &str = "\0w";

/// Begins a frame; [`end_frame`] writes the length into it.
pub fn begin_frame() -> Vec<u8> {
    vec![0; 4]
}

/// Ends a frame; false if it is too long.
pub fn end_frame(frame: &mut [u8]) -> bool {
    let length = frame.len().saturating_sub(4);
    let Ok(bytes) = u32::try_from(length).map(u32::to_be_bytes) else { return false };
    let Some(head) = frame.get_mut(..4) else { return false };
    head.copy_from_slice(&bytes);
    length <= FRAME_MAX
}

/// The length of the frame that begins here, without the four length bytes; `None` if fewer than four bytes are
/// there.
pub fn frame_length(bytes: &[u8]) -> Option<usize> {
    let head: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    Some(u32::from_be_bytes(head) as usize)
}

/// Writes a value.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => special("undefined", out),
        Value::Number(number) if number.is_nan() => special("NaN", out),
        Value::Number(number) if number.is_infinite() => {
            special(if *number > 0.0 { "Infinity" } else { "-Infinity" }, out)
        }
        Value::Number(number) => write_number(*number, out),
        Value::Text(text) => write_json_text(text, out),
        Value::List(list) => {
            out.push(b'[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Map(map) => {
            out.push(b'{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_json_text(key, out);
                out.push(b':');
                write(item, out);
            }
            out.push(b'}');
        }
        Value::Null | Value::Bool(_) => {
            value.write_json(out);
        }
    }
}

fn special(word: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"\\u0000w\":\"{word}\"}}").as_bytes());
}

/// Writes a reference.
pub fn write_reference(index: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"\\u0000r\":{index}}}").as_bytes());
}

/// Reads the value in a frame.
pub fn read(frame: &[u8]) -> Option<Value> {
    let mut value = parse_json(frame).ok()?;
    if memmem::find(frame, b"\\u0000w").is_some() {
        revive(&mut value);
    }
    Some(value)
}

fn revive(value: &mut Value) {
    match value {
        Value::List(list) => Arc::make_mut(list).iter_mut().for_each(revive),
        Value::Map(map) => match map.get(SPECIAL).map(named) {
            Some(special) => *value = special,
            None => Arc::make_mut(map).values_mut().for_each(revive),
        },
        _ => {}
    }
}

fn named(word: &Value) -> Value {
    match word.as_str() {
        Some("NaN") => Value::Number(f64::NAN),
        Some("Infinity") => Value::Number(f64::INFINITY),
        Some("-Infinity") => Value::Number(f64::NEG_INFINITY),
        _ => Value::Undefined,
    }
}

/// A member of a message.
pub fn member<'m>(message: &'m Value, name: &str) -> Option<&'m Value> {
    match message {
        Value::Map(map) => map.get(name),
        _ => None,
    }
}

/// The members of a message's member.
pub fn members<'m>(message: &'m Value, name: &str) -> Option<&'m Map> {
    match member(message, name)? {
        Value::Map(map) => Some(map),
        _ => None,
    }
}

/// The items of a message's member.
pub fn items<'m>(message: &'m Value, name: &str) -> &'m [Value] {
    match member(message, name) {
        Some(Value::List(list)) => list,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_has_not_travels_too() {
        let mut map = Map::default();
        for (name, value) in [
            ("undefined", Value::Undefined),
            ("null", Value::Null),
            ("infinity", Value::Number(f64::INFINITY)),
            ("list", Value::from(vec![Value::Undefined, Value::from("\0w"), Value::from(0.1)])),
        ] {
            map.insert(name.into(), value);
        }
        let mut frame = begin_frame();
        write(&Value::from(map.clone()), &mut frame);
        assert!(end_frame(&mut frame));
        assert_eq!(frame_length(&frame), Some(frame.len() - 4));
        assert_eq!(read(frame.get(4..).unwrap_or_default()), Some(Value::from(map)));
    }
}
