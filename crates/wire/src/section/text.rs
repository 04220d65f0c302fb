//! Strings: a length with a prefix, then the text, as it is or in Huffman's code (RFC 7541 §5.2, RFC 9204 §4.1.2).

use super::huffman;
use super::integer::{self, NotInteger};

/// There is no string at the beginning of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotText {
    /// Its length is none.
    Length(NotInteger),
    /// More bytes are needed.
    Cut,
    /// It is not a Huffman code.
    Code,
}

/// A string that is not decoded yet.
#[derive(Clone, Copy, Debug)]
pub struct Text<'b> {
    bytes: &'b [u8],
    is_huffman: bool,
}

impl<'b> Text<'b> {
    /// Finds the string at the beginning of the bytes; its length has `prefix` bits in the first byte, and the bit before
    /// them says whether it is a Huffman code. Returns the bytes after it too. The length has at most 32 bits.
    pub fn find(bytes: &'b [u8], prefix: u32) -> Result<(Text<'b>, &'b [u8]), NotText> {
        let is_huffman = bytes.first().is_some_and(|first| first >> prefix & 1 != 0);
        let (length, rest) = integer::decode(bytes, prefix, integer::HPACK_BITS).map_err(NotText::Length)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (bytes, rest) = rest.split_at_checked(length).ok_or(NotText::Cut)?;
        Ok((Text { bytes, is_huffman }, rest))
    }

    /// Appends the text to `out`; a Huffman code of n bytes becomes at most `8 / 5 n` bytes.
    pub fn write(self, out: &mut Vec<u8>) -> Result<(), NotText> {
        if self.is_huffman {
            return huffman::decode(self.bytes, out).map_err(|_| NotText::Code);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

/// Appends a string, in Huffman's code if that is shorter. Its length has `prefix` bits in the first byte, and `flags`
/// stand before them and before the bit that says whether it is a Huffman code.
pub fn encode(text: &[u8], prefix: u32, flags: u8, out: &mut Vec<u8>) {
    let coded = huffman::length(text);
    if coded < text.len() {
        integer::encode(coded as u64, prefix, flags | 1 << prefix, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len() as u64, prefix, flags, out);
        out.extend_from_slice(text);
    }
}
