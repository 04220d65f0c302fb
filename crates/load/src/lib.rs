//! `load`: sends requests and reports the results, with the limits of the measurement.
//!
//! [`run`] runs an Artillery script, [`quick`] one URL, without a script.
//!
//! Invariants: weir sends load only to the targets that the user named. Anything in a script that can be parsed or looked
//! up by name when the plan is made is not parsed or looked up again for a request. A waiting virtual user holds no read
//! buffer. Every latency is kept twice: from the send and from the intended start. An arrival that does not begin is counted.
//! `output` reads no clock and no socket. `script` and `arrive` run nothing.
//!
//! A script goes down this list:
//!
//! - `script/`: files, environments, flags and `config`'s templates become a `Plan`; an error has file, line and
//!   column; `keys/` is the table of all keys
//! - `plan`: the immutable script that all workers share; it holds `template/`, `expression`, `capture/`, `expect/` and
//!   similar parts in compiled form
//! - `arrive`: turns phases into arrivals by arithmetic: every worker walks the same schedule and serves its share
//! - `run`, `worker`: the threads from the first arrival to the last virtual user; the state that the virtual users of
//!   one thread share
//! - `vuser`, `walk`: one virtual user: its variables (`vars`, `value/`); its walk through its flow, with its own stack
//!   for loops and the branches of `parallel`
//! - `engine/`: the protocol of a step: `http`, `ws`, `socketio`; `client/`: one HTTP exchange on a `net` socket; each
//!   failure knows its step and Node's name for it
//! - `processor/`, `npm/`, `jsonpath/`: the functions in JavaScript that steps and hooks name (`wires` lets them listen
//!   on open connections); Artillery's own libraries
//! - `record/`: counters, Artillery's sketches and HDR histograms, one recorder for each worker; `Merger` merges
//!   windows exactly
//! - `publish/`: sends periods to Prometheus, OpenTelemetry and StatsD, from its own thread
//! - `output/`, `texts/`, `selfcheck`: console, JSON, page, `ensure`, compare; whether the generator was the limit
//!
//! Beside it: `quick/` (`weir load URL`), `traffic/` (`weir load from`: lines of access logs (`read`) to routes,
//! sessions, phases, weights (`fit`), and a script (`write`)), `agent/` (one run from many machines), `fake/` (invented
//! names for templates), `once` (one request, for verbs that ask an edge).
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
