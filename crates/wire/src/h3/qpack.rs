//! QPACK (RFC 9204): compresses field sections to blocks and back.
//!
//! ```text
//!  encoder stream ─ instructions ─► table ─┐
//!  HEADERS ─ decode ───────────────────────┴─► Block, or "blocked"
//!                                              acknowledgements ─► decoder stream
//! ```

mod acks;
mod decode;
mod encode;
mod fixed;
mod inserts;
mod prefix;
#[cfg(test)]
mod tests;

pub use acks::PeerAcks;
pub use decode::{QpackDecoder, QpackRead};
pub use encode::QpackEncoder;
