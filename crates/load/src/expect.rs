//! The checks of a request's `expect` (artillery.md §5.2): what is right, what was got, and the lines that say so.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt::Write;

use crate::capture::{Message, NotJson};
use crate::regexp;
use crate::value::{Map, Path, Value};
use crate::vars::Vars;

mod checks;
mod lines;

pub use checks::{Outcome, check, is_known};
pub use lines::{Exchange, json_line, pretty};

/// Types of content that are parsed as JSON.
const JSON_TYPES: [&str; 3] = ["application/json", "application/problem+json", "application/ld+json"];

/// What is checked.
pub struct Answer<'a> {
    status: u16,
    message: &'a Message<'a>,
    content_type: OnceCell<Value>,
}

impl<'a> Answer<'a> {
    /// An answer; its body is parsed when a check needs it, if its type says JSON.
    pub fn new(status: u16, message: &'a Message<'a>) -> Answer<'a> {
        Answer { status, message, content_type: OnceCell::new() }
    }

    /// What the body says it is: most checks do not ask.
    fn content_type(&self) -> &Value {
        self.content_type.get_or_init(|| self.message.header("content-type"))
    }

    /// Whether the body claims to be JSON.
    fn is_json(&self) -> bool {
        self.content_type().as_str().is_some_and(|text| JSON_TYPES.iter().any(|json| text.contains(json)))
    }

    /// The body, if its type says JSON; an error if it is none after all.
    fn json(&self) -> Option<Result<&'a Value, NotJson>> {
        self.is_json().then(|| self.message.json())
    }

    /// The body as an object or list; `None` if it is none.
    fn object(&self) -> Option<&'a Value> {
        match self.json() {
            Some(Ok(value)) if value.is_object() => Some(value),
            _ => None,
        }
    }

    /// Whether the plugin sees `null` for a body.
    fn is_null(&self) -> bool {
        matches!(self.json(), Some(Ok(Value::Null) | Err(_)))
    }
}

#[cfg(test)]
mod tests;
