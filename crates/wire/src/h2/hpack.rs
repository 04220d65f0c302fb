//! HPACK (RFC 7541): compresses field sections to blocks and back.

mod decode;
mod encode;
mod table;

pub use decode::{BrokenBlock, HpackDecoder};
pub use encode::Encoder;
pub use table::TABLE_BYTES_DEFAULT;
