//! The upstream group's deciding part: who may serve an exchange, who is
//! chosen, what a failure costs the peer, and whether the exchange is retried.
//!
//! Pure code: no socket, no clock, no random source of its own. Seconds,
//! milliseconds and random numbers come in as arguments, so every decision can
//! be replayed in a test. Connections, pools and the exchange itself live
//! elsewhere and only ask here.

pub mod balance;
pub mod budget;
pub mod group;
pub mod peer;
pub mod pool_policy;
pub mod retry;
pub mod selection;

#[cfg(test)]
mod simulation;
