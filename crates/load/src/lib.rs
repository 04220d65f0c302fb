//! `load`: sends requests and says honestly what came back.
//!
//! So far [`quick`]: a closed loop of HTTP/1.1 requests to one URL. Load goes only to
//! the URL it is given, and ends: it is bounded in connections, count and time.
#![forbid(unsafe_code)]

mod client;
pub mod quick;
mod report;
mod url;

pub use report::{Failure, Latency, Report};
pub use url::Url;
