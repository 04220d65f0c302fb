//! HPACK (RFC 7541): field sections to compressed blocks and back.
//!
//! A decoded block is a [`Block`]: one buffer and ranges of it, as the heads of HTTP/1.1 are, so that what comes after
//! need not know which version a message came in.

mod decode;
mod encode;
mod huffman;
mod integer;
mod table;

pub use decode::{Block, Broken, Decoder};
pub use encode::Encoder;
pub use table::ENTRY_OVERHEAD;

/// What a peer's table holds unless SETTINGS say otherwise (RFC 9113 §6.5.2).
pub const TABLE_BYTES_DEFAULT: usize = 4096;
