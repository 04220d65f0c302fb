//! Chunk extensions by the grammar of RFC 9112 §7.1.1: `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ]
//! )`.

use crate::field::{is_space, is_token_byte};

/// The reader's place in an extension, after its first `;`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// After `;`: a name must follow.
    #[default]
    Start,
    Name,
    /// Spaces after a name: `=` or `;` must follow.
    NameSpace,
    /// After `=`: a value must follow.
    Equals,
    Value,
    Quoted,
    /// After a backslash inside quotes.
    Escaped,
    QuotedEnd,
    /// Spaces after a value: `;` must follow.
    ValueSpace,
}

impl Place {
    /// Whether the chunk line may end here.
    pub(super) fn may_end(self) -> bool {
        matches!(self, Place::Name | Place::Value | Place::QuotedEnd)
    }

    /// The place after one more byte; `None` if the byte is not allowed here.
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
