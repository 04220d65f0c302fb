//! Field sections of HTTP/2 and HTTP/3: the parts that both versions have in common.
//!
//! ```text
//!  HPACK / QPACK ─► Block ─ message ─► RequestHead / ResponseHead
//!  RequestHead of HTTP/1.1 ─ composed ─► SectionEncoder ─► HPACK / QPACK
//! ```
//!
//! A decoded section is a [`Block`]: one buffer and ranges of it, like the heads of HTTP/1.1, so that later code need
//! not know the version of a message.

mod block;
pub mod composed;
mod count;
mod encoder;
pub(crate) mod huffman;
pub(crate) mod integer;
pub mod message;
pub(crate) mod table;
pub(crate) mod text;
mod urgency;

pub use block::Block;
pub use count::BodyCount;
pub use encoder::SectionEncoder;
pub(crate) use encoder::is_secret;
pub use table::ENTRY_OVERHEAD;
pub use urgency::Urgency;
