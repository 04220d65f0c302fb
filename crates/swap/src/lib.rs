//! `swap`: answers each request by A, by A again and by B. A difference between A and A is noise. weir reports the other differences.
//!
//! ```text
//!   files of A and B ─► side ─► doors ───────────────┐
//!   recording, access log, file of A ─► traffic ─► judge: ask, compare, noise ─► verdict ─► report
//!                                       taps, logs ──┘                └─► cause ─┘
//! ```
//!
//! Invariants: requests go to A and B alone. Their number and their rate have bounds. Nothing of the user changes: the
//! servers that swap starts listen on loopback ports that the kernel chooses, and write only below their own temporary
//! directory.
//!
//! - `request`: a request, an answer, and all that an arm showed for one request
//! - `side/`, `doors`: A or B: a server that swap starts, or an address; the addresses of a configuration
//! - `traffic/`: the requests: of access logs, or of A's file; the location and the route of each
//! - `ask`, `values/`: the arms, one after another; the cookies and tokens that each arm has given
//! - `compare/`, `difference`, `noise`: the parts of three answers; the words for their differences; the parts in which A
//!   differs from itself, by route
//! - `judge`, `exercised`, `verdict`: the differences that last; the statements that requests ran through; the bounds
//! - `cause/`: the smallest request that shows a difference, and the lines of the file that make it
//! - `taps/`, `logs`, `watch`: what origins see of the servers that swap has started; the lines of their access logs
//! - `run`, `state`, `report/`: the whole; the user's commands for the application's state; text, JSON and page
#![forbid(unsafe_code)]

pub mod ask;
pub mod cause;
pub mod compare;
pub mod difference;
pub mod doors;
pub mod exercised;
pub mod judge;
pub mod logs;
pub mod noise;
pub mod report;
pub mod request;
pub mod run;
pub mod side;
pub mod state;
pub mod taps;
pub mod traffic;
pub mod values;
pub mod verdict;
pub mod watch;
