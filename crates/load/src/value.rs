//! What a variable of a script holds: a JavaScript value, since scripts, captures and processors mean those.
//!
//! Cheap to clone and free to cross threads: texts, lists and maps are shared. Not here: templates.

use std::sync::Arc;

use indexmap::IndexMap;

/// An object's members, in the order they were added.
pub type Map = IndexMap<Arc<str>, Value>;

/// A JavaScript value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `undefined`: a variable nobody set.
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

impl From<&str> for Value {
    fn from(text: &str) -> Value {
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
