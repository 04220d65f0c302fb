//! A recording of requests and answers: what it has, without the secrets of clients.
//!
//! Not here: sockets, clocks, files. The caller opens the file and brings the times.
//!
//! Invariants: every list has a bound with a name. A value that is a secret is replaced before it is written, and the
//! recording says which bytes are replaced.
//!
//! - `model`: a recording's parts; `json`: the same as JSON
//! - `read`, `write`: whole files (`docs/reference/recording.md`); `fault`: what is wrong with a file, and the remedy
//! - `frame`: lengths, checksum and compression of a block
//! - `block/`: the parts of a block: `encode`, `put` and `write` write them, `decode` reads them, `form` has kinds and limits, `table` finds what a block has; `cbor`
//! - `secrets/`: finds and replaces secrets
//! - `check`: looks for secrets that are left, `pointer` names their places; `texts`
#![forbid(unsafe_code)]

pub mod block;
mod cbor;
pub mod check;
mod fault;
pub mod frame;
mod json;
pub mod model;
mod pointer;
pub mod read;
pub mod secrets;
mod texts;
pub mod write;

pub use block::{BlockRefusal, BlockWriter, LiveAnswer, LiveBody, LiveExchange, LiveFields, LiveMessage, LiveTry};
pub use check::check;
pub use fault::{FaultKind, RecordingFault as Fault};
pub use frame::seal;
pub use json::to_json;
pub use secrets::Secrets;

/// Whether a file with these first bytes is a recording: eight bytes are enough.
pub fn is_recording(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(&frame::MAGIC)
}
