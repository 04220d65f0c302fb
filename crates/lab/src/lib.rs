//! Measurements: experiments, and the stacks that they run on.
//!
//! Neither the edge nor the dummy origin is in this crate: the lab talks to them only over sockets.
#![forbid(unsafe_code)]

pub mod ab;
pub mod analysis;
pub mod ask;
pub mod block;
pub mod capacity;
pub mod change;
pub mod command;
pub mod duet;
pub mod elsewhere;
pub mod experiment;
pub mod factorial;
pub mod html;
pub mod import;
pub mod metric;
pub mod next;
pub mod outlook;
pub mod report;
pub mod said;
pub mod schedule;
pub mod search;
pub mod series;
pub mod stack;
pub mod stats;
pub mod store;
pub mod survey;
pub mod texts;
pub mod tune;
pub mod verdict;
pub mod wan;
pub mod watch;
pub mod waterline;
pub mod why;
