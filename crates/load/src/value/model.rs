//! The value itself, and the conversions of JavaScript.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use super::number::{text_to_number, write_number};

/// The hash for names. Its key is random for each process, because a peer's JSON may contain names that are made to
/// collide; the size of a body limits their number. For names of a few letters it costs a tenth of SipHash.
pub type Keyed = foldhash::fast::RandomState;

/// An object's members, in the order they were added.
pub type Map = IndexMap<Arc<str>, Value, Keyed>;

/// A JavaScript value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `undefined`: a variable that was never set.
    #[default]
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number; JavaScript has no other.
    Number(f64),
    /// A string.
    Text(Arc<str>),
    /// An array.
    List(Arc<Vec<Value>>),
    /// An object.
    Map(Arc<Map>),
}

/// `undefined`, as a value to borrow.
pub static UNDEFINED: Value = Value::Undefined;

impl Value {
    /// True if an `if` would accept it.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Undefined | Value::Null => false,
            Value::Bool(bool) => *bool,
            Value::Number(number) => *number != 0.0 && !number.is_nan(),
            Value::Text(text) => !text.is_empty(),
            Value::List(_) | Value::Map(_) => true,
        }
    }

    /// True if `typeof` returns `object`, except for `null`.
    pub fn is_object(&self) -> bool {
        matches!(self, Value::List(_) | Value::Map(_))
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// `Number(value)`.
    pub fn to_number(&self) -> f64 {
        match self {
            Value::Undefined | Value::Map(_) => f64::NAN,
            Value::Null => 0.0,
            Value::Bool(bool) => f64::from(*bool),
            Value::Number(number) => *number,
            Value::Text(text) => text_to_number(text),
            Value::List(_) => text_to_number(&self.to_text()),
        }
    }

    /// `String(value)`; borrowed if it is a text.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Value::Text(text) => Cow::Borrowed(text),
            Value::Undefined => Cow::Borrowed("undefined"),
            Value::Null => Cow::Borrowed("null"),
            Value::Map(_) => Cow::Borrowed("[object Object]"),
            other => {
                let mut out = Vec::new();
                other.write_text(&mut out);
                Cow::Owned(into_string(out))
            }
        }
    }

    /// Appends `String(value)`; texts and numbers need no additional allocation.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Text(text) => out.extend_from_slice(text.as_bytes()),
            Value::Number(number) => write_number(*number, out),
            Value::Undefined => out.extend_from_slice(b"undefined"),
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(bool) => out.extend_from_slice(if *bool { b"true" } else { b"false" }),
            Value::Map(_) => out.extend_from_slice(b"[object Object]"),
            Value::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    if !matches!(item, Value::Undefined | Value::Null) {
                        item.write_text(out);
                    }
                }
            }
        }
    }

    /// `===`: lists and maps equal only themselves.
    pub fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::List(one), Value::List(two)) => Arc::ptr_eq(one, two),
            (Value::Map(one), Value::Map(two)) => Arc::ptr_eq(one, two),
            (one, two) => one == two,
        }
    }

    /// lodash's `isEqual`: deep equality, in any order of members; NaN equals itself.
    pub fn is_deeply(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Number(one), Value::Number(two)) => one == two || (one.is_nan() && two.is_nan()),
            (Value::List(one), Value::List(two)) => {
                one.len() == two.len() && one.iter().zip(two.iter()).all(|(one, two)| one.is_deeply(two))
            }
            (Value::Map(one), Value::Map(two)) => {
                let same = |(key, value): (&Arc<str>, &Value)| two.get(key).is_some_and(|two| value.is_deeply(two));
                one.len() == two.len() && one.iter().all(same)
            }
            (one, two) => one == two,
        }
    }
}

/// Text written by weir is UTF-8; other bytes would be a bug, and are shown as U+FFFD.
pub(crate) fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl fmt::Display for Value {
    /// `String(value)`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_text())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Value {
        Value::Bool(bool)
    }
}

impl From<Vec<Value>> for Value {
    fn from(list: Vec<Value>) -> Value {
        Value::List(Arc::new(list))
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::Map(Arc::new(map))
    }
}
