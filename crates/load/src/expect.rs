//! The checks of a request's `expect` (artillery.md §5.2): what is right, what was got, and the lines that say so.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;

use crate::capture::Message;
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
    /// Whether the body claims to be JSON.
    is_json: bool,
    content_type: Value,
}

impl<'a> Answer<'a> {
    /// An answer; its body is parsed when a check needs it, if its type says JSON.
    pub fn new(status: u16, message: &'a Message<'a>) -> Answer<'a> {
        let content_type = message.header("content-type");
        let is_json = content_type.as_str().is_some_and(|text| JSON_TYPES.iter().any(|json| text.contains(json)));
        Answer { status, message, is_json, content_type }
    }

    /// The body, if its type says JSON; an error if it is none after all.
    fn json(&self) -> Option<Result<&'a Value, String>> {
        self.is_json.then(|| self.message.json())
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
