//! `meter`: the words and numbers that every other crate uses for reporting.
//!
//! [`Step`] and [`Side`] are the shared words for the progress of an exchange, in nginx's own "while ..." wording. So
//! error lines from all crates read the same. [`live`] is an edge's own data at one instant.
//!
//! Not here: files, sockets, clocks, threads.
//!
//! - `step`: how far an exchange has come, in nginx's "while ..." words; `message`: lines of the error log, by what
//!   they report
//! - `live/`: histograms and cells that one thread writes and any thread reads, and `Snapshot`: everything that an edge
//!   knows about itself
#![forbid(unsafe_code)]

pub mod live;
mod message;
mod step;

pub use message::Message;
pub use step::{Side, Step};
