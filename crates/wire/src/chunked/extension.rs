//! Chunk extensions by the grammar of RFC 9112 §7.1.1: `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ]
//! )`.

use crate::field::{is_space, is_token_byte};

/// The reader's place in an extension, after its first `;`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ExtensionPlace {
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

impl ExtensionPlace {
    /// Whether the chunk line may end here.
    pub(super) fn may_end(self) -> bool {
        matches!(self, ExtensionPlace::Name | ExtensionPlace::Value | ExtensionPlace::QuotedEnd)
    }

    /// The place after one more byte; `None` if the byte is not allowed here.
    pub(super) fn after(self, byte: u8) -> Option<ExtensionPlace> {
        let is_text = byte == b'\t' || byte >= b' ' && byte != 0x7f;
        Some(match (self, byte) {
            (ExtensionPlace::Start, _) if is_space(byte) => ExtensionPlace::Start,
            (ExtensionPlace::Start | ExtensionPlace::Name, _) if is_token_byte(byte) => ExtensionPlace::Name,
            (ExtensionPlace::Name | ExtensionPlace::NameSpace, b'=') => ExtensionPlace::Equals,
            (ExtensionPlace::Name | ExtensionPlace::NameSpace, _) if is_space(byte) => ExtensionPlace::NameSpace,
            (ExtensionPlace::Equals, _) if is_space(byte) => ExtensionPlace::Equals,
            (ExtensionPlace::Equals, b'"') => ExtensionPlace::Quoted,
            (ExtensionPlace::Equals | ExtensionPlace::Value, _) if is_token_byte(byte) => ExtensionPlace::Value,
            (ExtensionPlace::Quoted, b'"') => ExtensionPlace::QuotedEnd,
            (ExtensionPlace::Quoted, b'\\') => ExtensionPlace::Escaped,
            (ExtensionPlace::Quoted | ExtensionPlace::Escaped, _) if is_text => ExtensionPlace::Quoted,
            (ExtensionPlace::Value | ExtensionPlace::QuotedEnd | ExtensionPlace::ValueSpace, _) if is_space(byte) => {
                ExtensionPlace::ValueSpace
            }
            (
                ExtensionPlace::Name
                | ExtensionPlace::NameSpace
                | ExtensionPlace::Value
                | ExtensionPlace::QuotedEnd
                | ExtensionPlace::ValueSpace,
                b';',
            ) => ExtensionPlace::Start,
            _ => return None,
        })
    }
}
