//! `swap`: answers each request by A, by A again and by B. What differs between A and A is noise; the rest is a difference.
//!
//! ```text
//!   files of A and B ─► side ─► doors ───────────────┐
//!   recording, access log, file of A ─► traffic ─► ask ─► compare ─► differences
//! ```
//!
//! Invariants: requests go to A and B alone. Their number and their rate have bounds. Nothing of the user changes: the
//! servers that swap starts listen on loopback ports that the kernel chooses, and write only below their own temporary
//! directory.
//!
//! - `request`: a request, an answer, and all that an arm showed for one request
//! - `side/`, `doors`: A or B: a server that swap starts, or an address; the addresses of a configuration
//! - `traffic/`: the requests: the end of an access log (`tail`) as URLs (`urls`); each location first (`plan`)
//! - `ask`, `compare`: A, B and A for each request; the differences that are no noise
//! - `cause/`: the smallest request that shows a difference, and the lines of the file that make it
//! - `taps/`: what origins see: the requests of the servers that swap has started
//! - `logs`: the lines of access logs, by the variables of their formats
#![forbid(unsafe_code)]

pub mod ask;
pub mod cause;
pub mod compare;
pub mod doors;
pub mod logs;
pub mod request;
pub mod side;
pub mod taps;
pub mod traffic;
