//! The source of captured values: an answer, or a message of a socket.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::html;
use crate::npm::QueriedBody;
use crate::value::{self, Value};

/// Finds a header by its name in lower case: a text, a list of texts (`set-cookie`), or `undefined`.
pub type Headers<'m> = &'m dyn Fn(&str) -> Value;

/// A message. The parsed form is kept and shared by all captures.
pub struct CapturedMessage<'m> {
    body: Body<'m>,
    headers: Headers<'m>,
    json: OnceCell<Result<Value, NotJson>>,
    text: OnceCell<Cow<'m, str>>,
    html: OnceCell<html::HtmlDocument>,
}

/// A body that is not JSON. It holds no error text: nobody reads it, and many messages are not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson;

enum Body<'m> {
    Bytes(&'m [u8]),
    Value(Value),
}

impl<'m> CapturedMessage<'m> {
    /// A message made of an answer.
    pub fn new(body: &'m [u8], headers: Headers<'m>) -> CapturedMessage<'m> {
        CapturedMessage::of(Body::Bytes(body), headers)
    }

    /// A message that is a value already: arguments of a Socket.IO event. It has no headers.
    pub fn of_value(value: Value) -> CapturedMessage<'m> {
        CapturedMessage::of(Body::Value(value), &|_| Value::Undefined)
    }

    fn of(body: Body<'m>, headers: Headers<'m>) -> CapturedMessage<'m> {
        CapturedMessage { body, headers, json: OnceCell::new(), text: OnceCell::new(), html: OnceCell::new() }
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Value {
        (self.headers)(name)
    }

    /// The body as text; a value as JSON.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| match &self.body {
            Body::Bytes(bytes) => String::from_utf8_lossy(bytes),
            Body::Value(value) => {
                Cow::Owned(value.as_str().map_or_else(|| value.to_json().unwrap_or_default(), str::to_owned))
            }
        })
    }

    /// The body as JSON, parsed at most once.
    pub fn json(&self) -> Result<&Value, NotJson> {
        let parsed = self.json.get_or_init(|| match &self.body {
            Body::Bytes(bytes) => value::parse_json(bytes).map_err(|_| NotJson),
            Body::Value(Value::Text(text)) => value::parse_json(text.as_bytes()).map_err(|_| NotJson),
            Body::Value(value) => Ok(value.clone()),
        });
        parsed.as_ref().map_err(|error| *error)
    }

    /// The body, if no caller has needed all of it as JSON yet.
    pub(super) fn unparsed(&self) -> Option<&[u8]> {
        match (&self.body, self.json.get()) {
            (Body::Bytes(bytes), None) => Some(bytes),
            _ => None,
        }
    }

    /// False if the body is plainly no JSON: a page, a text, nothing.
    pub(super) fn may_be_json(&self) -> bool {
        match self.document() {
            QueriedBody::Value(_) => true,
            QueriedBody::Text(_) if matches!(self.json.get(), Some(Ok(_))) => true,
            QueriedBody::Text(text) => {
                matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')) || self.json().is_ok()
            }
        }
    }

    /// The body for jsonpath-plus.
    pub(super) fn document(&self) -> QueriedBody<'_> {
        match &self.body {
            Body::Bytes(bytes) if !bytes.is_ascii() => {
                QueriedBody::Text(self.text().trim_start_matches('\u{feff}').as_bytes())
            }
            Body::Bytes(bytes) => QueriedBody::Text(bytes),
            Body::Value(Value::Text(text)) => QueriedBody::Text(text.as_bytes()),
            Body::Value(value) => QueriedBody::Value(value),
        }
    }

    pub(super) fn html(&self) -> &html::HtmlDocument {
        self.html.get_or_init(|| html::HtmlDocument::parse(self.text()))
    }
}
