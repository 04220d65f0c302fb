//! Upstream groups: the choice of a peer for an exchange, and the handling of failures.
//!
//! ```text
//!  Group ─ Policy (balance) ─► Picked ─► the attempt ─► Outcome ─► retry: the next peer, or the end
//!    └ peers: weight, failures, health checks, exchanges under way      └ budget
//! ```
//!
//! Invariant: pure. No socket and no clock: time is an argument, so a test or a simulation can set its own.
//!
//! - `group`, `peer`, `selection`: the list of peers, with the failures that all workers share, and the part that each
//!   worker has of it
//! - `balance/`: a file for each method
//! - `retry`, `budget`, `pool_policy`: the next try; the share of retries; which connections are kept
//! - `health`: the results of health checks
//! - `simulation/`: groups in virtual time, and traces of nginx
#![forbid(unsafe_code)]

pub mod balance;
pub mod budget;
pub mod group;
pub mod health;
pub mod peer;
pub mod pool_policy;
pub mod retry;
pub mod selection;
#[cfg(test)]
mod simulation;
