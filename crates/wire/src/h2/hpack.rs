//! HPACK (RFC 7541): compresses field sections to blocks and back.
//!
//! A decoded block is a [`Block`]: one buffer and ranges of it, like the heads of HTTP/1.1, so that later code need
//! not know the version of a message.

mod decode;
mod encode;
mod huffman;
mod integer;
mod table;

pub use decode::{Block, BrokenBlock, HpackDecoder};
pub use encode::Encoder;
pub use table::{ENTRY_OVERHEAD, TABLE_BYTES_DEFAULT};
