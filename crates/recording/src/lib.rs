//! A recording of requests and answers: what it has, without the secrets of clients.
//!
//! Not here: sockets, clocks, files. The caller opens the file and brings the times.
//!
//! Invariants: every list has a bound with a name. A value that is a secret is replaced before it is written, and the
//! recording says which bytes are replaced.
//!
//! - `model`: a recording's parts
#![forbid(unsafe_code)]

pub mod model;
