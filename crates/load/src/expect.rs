//! The checks of a request's `expect` (artillery.md §5.2): the expected values, the actual values, and the printed
//! lines.

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

/// Content types whose bodies are parsed as JSON.
const JSON_TYPES: [&str; 3] = ["application/json", "application/problem+json", "application/ld+json"];

/// An answer to check.
pub struct Answer<'a> {
    status: u16,
    message: &'a Message<'a>,
    content_type: OnceCell<Value>,
}

impl<'a> Answer<'a> {
    /// An answer. Its body is parsed when a check needs it and its content type is JSON.
    pub fn new(status: u16, message: &'a Message<'a>) -> Answer<'a> {
        Answer { status, message, content_type: OnceCell::new() }
    }

    /// The content type of the body, read only when a check needs it.
    fn content_type(&self) -> &Value {
        self.content_type.get_or_init(|| self.message.header("content-type"))
    }

    /// True if the content type is JSON.
    fn is_json(&self) -> bool {
        self.content_type().as_str().is_some_and(|text| JSON_TYPES.iter().any(|json| text.contains(json)))
    }

    /// The body, if its content type is JSON; an error if the body is not JSON.
    fn json(&self) -> Option<Result<&'a Value, NotJson>> {
        self.is_json().then(|| self.message.json())
    }

    /// The body as an object or list; `None` for anything else.
    fn object(&self) -> Option<&'a Value> {
        match self.json() {
            Some(Ok(value)) if value.is_object() => Some(value),
            _ => None,
        }
    }

    /// True if the plugin gets `null` as the body.
    fn is_null(&self) -> bool {
        matches!(self.json(), Some(Ok(Value::Null) | Err(_)))
    }
}

#[cfg(test)]
mod tests;
