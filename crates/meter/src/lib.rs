//! `meter`: the words and numbers that every other crate uses for reporting.
//!
//! [`Step`] and [`Side`] are the shared words for the progress of an exchange, in nginx's own "while ..." wording. So
//! error lines from all crates read the same. [`host`] reads the machine's limits: CPUs and file descriptors.
//! [`live`] is an edge's own data at one instant.
//!
//! Not here: sockets, clocks, threads. Invariant: only [`host`] touches the outside world, and it only reads files
//! under a root that it is given.
#![forbid(unsafe_code)]

pub mod host;
pub mod live;
mod message;
mod step;

pub use message::Message;
pub use step::{Side, Step};
