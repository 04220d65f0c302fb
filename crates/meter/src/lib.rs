//! `meter`: the words and numbers every other crate reports with.
//!
//! [`Step`] and [`Side`] are the shared timeline vocabulary: where an exchange
//! stands, in nginx's own "while ..." words, so an error line written by any
//! crate reads the same. [`host`] reads what the machine allows us: CPUs and
//! file descriptors. [`live`] is what an edge knows of itself at one instant.
//!
//! Not here: sockets, clocks, threads. Invariant: nothing but [`host`] touches
//! the outside world, and that only by reading files under a root it is given.
#![forbid(unsafe_code)]

pub mod host;
pub mod live;
mod step;

pub use step::{Side, Step};
