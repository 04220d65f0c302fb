//! A canary: a second configuration beside the one in force, for a share of the clients, until its judge has decided.
//!
//! ```text
//!  worker ─► note ─► queue ─► thread "canary": windows of clients ─► judge ─┬─► harm: the share is 0 at once
//!                                                                          └─► proof: the keeper promotes
//! ```
//!
//! The process has one canary at a time. `control` puts the second configuration beside the first, `Worker::split` gives it to
//! clients. Invariant: a worker never waits for the judge. A block of notes that finds the queue full is dropped and counted.
//!
//! - `terms`: what the keeper and the server tell each other
//! - `upstreams`: a canary of the origins, in which two upstreams exchange their names
//! - `beside`: whether a configuration may be beside another one
//! - `worker`: the notes of a worker
//! - `clients`: the windows of clients, which become outcomes
//! - `look`: the look at the traffic before it begins
//! - `refusal`: whether that traffic can answer the question
//! - `run`: the state and the orders, and below it the thread with the judge
//! - `say`: the state as a sentence
//! - `notify`: news for the receiver that the order names
//! - `api`: the state for the API, and its orders

pub mod api;
pub mod beside;
mod clients;
mod look;
mod notify;
mod refusal;
pub mod run;
pub mod say;
pub mod terms;
pub mod upstreams;
pub mod worker;
