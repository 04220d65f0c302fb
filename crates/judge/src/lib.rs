//! Decides whether a new configuration harms clients, while clients are given to it by a coin.
//!
//! ```text
//!   a client's window closes ─► ClientOutcome ─► CanaryJudge ─┬─► bets: evidence of harm ──────► Judgement
//!                                                      └─► intervals: how large harm may be ─┘
//! ```
//! The unit is the client, never the request. Under "the new configuration harms nobody", the outcome of each client is
//! fixed, and only the coin is random. So the evidence holds for any law of latencies, any clustering, any drift, and at
//! every moment at which somebody looks (Ville 1939; Waudby-Smith and Ramdas 2024).
//!
//! Not here: clients, clocks, configurations. The caller throws the coins, and tells outcomes in the order in which the
//! windows close.
//!
//! Invariants: memory does not grow with clients. No outcome makes a number infinite or NaN.
//!
//! - `outcome`: what one client met
//! - `bet`: evidence of harm: failures, and slow requests
//! - `interval`: an interval for the harm that is valid at every moment
//! - `judge`: all of it together, and the judgement
//! - `latencies`: the latencies of the old configuration
//! - `forecast`: how many clients a question needs
//! - `horizon`: bounds for a canary whose looks are planned
#![forbid(unsafe_code)]

pub mod bet;
pub mod forecast;
pub mod horizon;
pub mod interval;
pub mod judge;
pub mod latencies;
pub mod outcome;

#[cfg(test)]
mod simulation;
