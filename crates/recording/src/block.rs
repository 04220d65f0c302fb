//! Blocks: one CBOR item with a sequence of parts and a table of strings of its own.

pub(crate) mod decode;
pub(crate) mod encode;
mod form;
pub(crate) mod put;
mod table;
mod write;

pub use encode::BlockRefusal;
pub use form::{BLOCK_BYTES, LIVE_BYTES_MAX, PART_BYTES_MAX};
pub use write::{BlockWriter, LiveAnswer, LiveBody, LiveExchange, LiveFields, LiveMessage, LiveTry};
