//! `load`: sends requests and reports the results, with the limits of the measurement.
//!
//! [`quick`] sends HTTP/1.1 requests to one URL in a closed loop. It sends load only to the URL it is given, and it
//! ends: connections, number of requests and time are limited.
#![forbid(unsafe_code)]

pub mod agent;
pub mod arrive;
pub mod capture;
pub mod check;
pub mod client;
pub mod cookie;
mod csv;
pub mod debug;
pub mod duration;
pub mod engine;
pub mod event;
pub mod expect;
pub mod expression;
pub mod failed;
pub mod fake;
mod html;
mod jsonpath;
mod npm;
pub mod once;
pub mod output;
pub mod plan;
pub mod processor;
pub mod publish;
pub mod quick;
pub mod random;
pub mod record;
mod regexp;
mod report;
pub mod run;
pub mod script;
pub mod selfcheck;
pub mod template;
pub mod texts;
pub mod tls;
pub mod traffic;
pub mod url;
pub mod value;
pub mod vars;
pub mod vuser;
pub mod walk;
pub mod worker;
mod xpath;

pub use report::{Report, RequestFailure};
pub use url::{Scheme, Url};
