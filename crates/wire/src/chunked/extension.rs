//! Chunk extensions as RFC 9112 §7.1.1 writes them:
//! `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`.

use crate::field::{is_space, is_token_byte};

/// Where in an extension a reader is, behind its first `;`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind `;`: a name must follow.
    #[default]
    Start,
    Name,
    /// Spaces behind a name: `=` or `;` must follow.
    NameSpace,
    /// Behind `=`: a value must follow.
    Equals,
    Value,
    Quoted,
    /// Behind a backslash within quotes.
    Escaped,
    QuotedEnd,
    /// Spaces behind a value: `;` must follow.
    ValueSpace,
}

impl Place {
    /// Whether the chunk line may end here.
    pub(super) fn may_end(self) -> bool {
        matches!(self, Place::Name | Place::Value | Place::QuotedEnd)
    }

    /// The place behind one more byte; `None` when the byte cannot stand here.
    pub(super) fn after(self, byte: u8) -> Option<Place> {
        let is_text = byte == b'\t' || byte >= b' ' && byte != 0x7f;
        Some(match (self, byte) {
            (Place::Start, _) if is_space(byte) => Place::Start,
            (Place::Start | Place::Name, _) if is_token_byte(byte) => Place::Name,
            (Place::Name | Place::NameSpace, b'=') => Place::Equals,
            (Place::Name | Place::NameSpace, _) if is_space(byte) => Place::NameSpace,
            (Place::Equals, _) if is_space(byte) => Place::Equals,
            (Place::Equals, b'"') => Place::Quoted,
            (Place::Equals | Place::Value, _) if is_token_byte(byte) => Place::Value,
            (Place::Quoted, b'"') => Place::QuotedEnd,
            (Place::Quoted, b'\\') => Place::Escaped,
            (Place::Quoted | Place::Escaped, _) if is_text => Place::Quoted,
            (Place::Value | Place::QuotedEnd | Place::ValueSpace, _) if is_space(byte) => Place::ValueSpace,
            (Place::Name | Place::NameSpace | Place::Value | Place::QuotedEnd | Place::ValueSpace, b';') => {
                Place::Start
            }
            _ => return None,
        })
    }
}
