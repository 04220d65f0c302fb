//! The parsed head: ranges of the buffer it was read from.
//!
//! It is not a map: fields keep their order, case and repetitions, as a proxy must. A head owns no bytes. If an
//! object is reused, its `Vec`s keep their capacity, so a parse allocates nothing.

use crate::connection::tokens::{ConnectionTokens, may_be_named};
use crate::known::{Known, KnownSet};
use crate::span::{Field, Span};

/// Protocol version of a message; minor versions above 1 are [`Version::Http11`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// A request line without a version: `GET /x`.
    Http09,
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1 and later minor versions (RFC 9110 §2.5).
    #[default]
    Http11,
    /// HTTP/2 (RFC 9113): framed by streams, not by fields.
    Http2,
    /// HTTP/3 (RFC 9114): as HTTP/2, over QUIC.
    Http3,
}

impl Version {
    /// Whether frames carry the message, each on a stream of its own: HTTP/2 and later.
    #[inline]
    pub fn is_framed(self) -> bool {
        self >= Version::Http2
    }
}

/// A request's line and fields.
///
/// All spans are ranges of the buffer given to [`crate::Parser::request`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// The method, as sent: `[A-Z_-]+`.
    pub method: Span,
    /// The request target, as sent.
    pub target: Span,
    /// Origin-form part of the target: the part after the authority; for `/x?y`, the whole target. Empty for
    /// `http://host` and CONNECT; may begin with `?`.
    pub path: Span,
    /// `http` in `http://host/`, if the target is in absolute form.
    pub scheme: Option<Span>,
    /// `host[:port]` in an absolute-form or authority-form target.
    pub authority: Option<Span>,
    /// The `HTTP/1.x` as sent; empty for HTTP/0.9.
    pub protocol: Span,
    /// Protocol version.
    pub version: Version,
    /// The field lines, in order.
    pub fields: Vec<Field>,
    /// Whole lines that [`InvalidFields::Drop`] left out, for the log; the first [`crate::parse::IGNORED_KEPT`] of
    /// them.
    pub ignored: Vec<Span>,
    /// The whole request line without its end.
    pub line: Span,
    /// Bytes of the head, including leading empty lines and the final empty line.
    pub len: usize,
    pub(crate) seen: KnownSet,
}

impl RequestHead {
    /// An empty head.
    pub fn new() -> RequestHead {
        RequestHead::default()
    }

    /// Adds a field, whose texts lie in the head's buffer.
    pub fn push(&mut self, field: Field) {
        if let Some(known) = field.known {
            self.seen.insert(known);
        }
        self.fields.push(field);
    }

    /// Clears everything, but keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        let RequestHead {
            method,
            target,
            path,
            scheme,
            authority,
            protocol,
            version,
            fields,
            ignored,
            line,
            len,
            seen,
        } = self;
        for span in [method, target, path, protocol, line] {
            *span = Span::default();
        }
        (*scheme, *authority, *version, *len, *seen) = Default::default();
        fields.clear();
        ignored.clear();
    }

    /// The first field of this name.
    #[inline]
    pub fn field(&self, name: Known) -> Option<&Field> {
        find(&self.fields, self.seen, name)
    }

    /// The value of the first field of this name.
    #[inline]
    pub fn value<'a>(&self, buf: &'a [u8], name: Known) -> Option<&'a [u8]> {
        self.field(name).map(|field| field.value.of(buf))
    }

    /// The options of the Connection fields.
    #[inline]
    pub fn tokens(&self, buf: &[u8]) -> ConnectionTokens {
        if self.seen.contains(Known::Connection) {
            ConnectionTokens::of(buf, &self.fields)
        } else {
            ConnectionTokens::default()
        }
    }

    /// Removes the fields that Connection limits to this connection (RFC 9110 §7.6.1), so that every reader of the
    /// head sees only the fields that are passed on. Needed only if [`ConnectionTokens::names`] is set.
    pub fn leave_out_named(&mut self, buf: &[u8]) {
        let is_named =
            |field: &Field| may_be_named(buf, field) && ConnectionTokens::lists(buf, &self.fields, field.name.of(buf));
        if !self.fields.iter().any(is_named) {
            return;
        }
        let stays: Vec<Field> = self.fields.iter().filter(|field| !is_named(field)).copied().collect();
        self.replace_fields(stays);
    }

    /// Removes the fields that `is_one` finds.
    pub fn remove_fields(&mut self, is_one: impl Fn(&Field) -> bool) {
        let stays = self.fields.iter().filter(|field| !is_one(field)).copied().collect();
        self.replace_fields(stays);
    }

    fn replace_fields(&mut self, fields: Vec<Field>) {
        self.fields.clear();
        self.seen = KnownSet::default();
        fields.into_iter().for_each(|field| self.push(field));
    }

    /// The known names in this head.
    #[inline]
    pub fn known(&self) -> KnownSet {
        self.seen
    }
}

/// A response's status line and fields.
///
/// All spans are ranges of the buffer given to [`crate::Parser::response`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// Protocol version.
    pub version: Version,
    /// The three digits.
    pub status: u16,
    /// The text after the status code and one space; may be empty.
    pub reason: Span,
    /// The status line after `HTTP/1.x `: `200 OK`.
    pub status_line: Span,
    /// The field lines, in order.
    pub fields: Vec<Field>,
    /// Bytes of the head, with the final empty line.
    pub len: usize,
    pub(crate) seen: KnownSet,
}

impl ResponseHead {
    /// An empty head.
    pub fn new() -> ResponseHead {
        ResponseHead::default()
    }

    /// Forgets the last head; the allocations stay.
    #[inline]
    pub fn clear(&mut self) {
        let ResponseHead { version, status, reason, status_line, fields, len, seen } = self;
        (*version, *status, *reason, *status_line, *len, *seen) = Default::default();
        fields.clear();
    }

    /// Becomes a copy of another head; the allocations stay.
    pub fn copy_from(&mut self, other: &ResponseHead) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        fields.extend_from_slice(&other.fields);
        let ResponseHead { version, status, reason, status_line, fields: _, len, seen } = other;
        *self = ResponseHead {
            version: *version,
            status: *status,
            reason: *reason,
            status_line: *status_line,
            fields,
            len: *len,
            seen: *seen,
        };
    }

    /// The first field of this name.
    #[inline]
    pub fn field(&self, name: Known) -> Option<&Field> {
        find(&self.fields, self.seen, name)
    }

    /// The value of the first field of this name.
    #[inline]
    pub fn value<'a>(&self, buf: &'a [u8], name: Known) -> Option<&'a [u8]> {
        self.field(name).map(|field| field.value.of(buf))
    }

    /// The options of the Connection fields.
    #[inline]
    pub fn tokens(&self, buf: &[u8]) -> ConnectionTokens {
        if self.seen.contains(Known::Connection) {
            ConnectionTokens::of(buf, &self.fields)
        } else {
            ConnectionTokens::default()
        }
    }

    /// The known names in this head.
    #[inline]
    pub fn known(&self) -> KnownSet {
        self.seen
    }

    /// Whether this is an interim response (RFC 9110 §15.2): another head
    /// follows it. 101 is final for HTTP: the tunnel follows it.
    #[inline]
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

#[inline]
fn find(fields: &[Field], seen: KnownSet, name: Known) -> Option<&Field> {
    if !seen.contains(name) {
        return None;
    }
    fields.iter().find(|field| field.known == Some(name))
}

/// The treatment of a field name that is not `[0-9A-Za-z-]+` (nginx: `ignore_invalid_headers`). The parser always refuses
/// spaces and control bytes in a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidFields {
    /// Leave it out and note it in [`RequestHead::ignored`] (`on`).
    #[default]
    Drop,
    /// Keep it (`off`).
    Keep,
    /// Refuse the request; nginx has no such setting.
    Refuse,
}

/// How strictly a request's fields are read: nginx's server settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadPolicy {
    /// `ignore_invalid_headers`.
    pub invalid_fields: InvalidFields,
    /// `underscores_in_headers`: whether `_` is a valid byte of a name.
    pub underscores: bool,
    /// `max_headers`: fields beyond this many are refused.
    pub fields_max: usize,
}

/// nginx's default of `max_headers`.
pub const FIELDS_MAX_DEFAULT: usize = 1000;

impl Default for HeadPolicy {
    fn default() -> HeadPolicy {
        HeadPolicy { invalid_fields: InvalidFields::Drop, underscores: false, fields_max: FIELDS_MAX_DEFAULT }
    }
}
