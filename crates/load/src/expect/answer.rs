//! An answer as the checks see it.

use std::cell::OnceCell;

use crate::capture::{CapturedMessage, NotJson};
use crate::value::Value;

/// Content types whose bodies are parsed as JSON.
pub(super) const JSON_TYPES: [&str; 3] = ["application/json", "application/problem+json", "application/ld+json"];

/// An answer to check.
pub struct CheckedAnswer<'a> {
    pub(super) status: u16,
    pub(super) message: &'a CapturedMessage<'a>,
    content_type: OnceCell<Value>,
}

impl<'a> CheckedAnswer<'a> {
    /// An answer. Its body is parsed when a check needs it and its content type is JSON.
    pub fn new(status: u16, message: &'a CapturedMessage<'a>) -> CheckedAnswer<'a> {
        CheckedAnswer { status, message, content_type: OnceCell::new() }
    }

    /// The content type of the body, read only when a check needs it.
    pub(super) fn content_type(&self) -> &Value {
        self.content_type.get_or_init(|| self.message.header("content-type"))
    }

    /// True if the content type is JSON.
    pub(super) fn is_json(&self) -> bool {
        self.content_type().as_str().is_some_and(|text| JSON_TYPES.iter().any(|json| text.contains(json)))
    }

    /// The body, if its content type is JSON; an error if the body is not JSON.
    pub(super) fn json(&self) -> Option<Result<&'a Value, NotJson>> {
        self.is_json().then(|| self.message.json())
    }

    /// The body as an object or list; `None` for anything else.
    pub(super) fn object(&self) -> Option<&'a Value> {
        match self.json() {
            Some(Ok(value)) if value.is_object() => Some(value),
            _ => None,
        }
    }

    /// True if the plugin gets `null` as the body.
    pub(super) fn is_null(&self) -> bool {
        matches!(self.json(), Some(Ok(Value::Null) | Err(_)))
    }
}
