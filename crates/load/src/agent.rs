//! One run from many machines: a controller, agents, and NATS between them.
//!
//! ```text
//!   controller (weir load --agents)              agent (weir agent), one run at a time
//!   call ──────────────── weir.v1.call ────────► offer
//!   hire: share i of n ── weir.v1.agent.ID ────► clock, want piece k … of the job, ready
//!   state each second ─── weir.v1.run.ID.down ─► start at T0, stop, over
//!   merge ◄────────────── weir.v1.run.ID.up ──── beat and tick each second, the last one with the self-check
//! ```
//!
//! Every message may be lost or arrive twice: states are repeated until the other end has seen them, and [`stream`]
//! numbers the messages with counts. Arrival k belongs to agent k mod n, so the agents need not ask each other during
//! the run. docs/guide/load/agents.md is for users. Not here: printing; TLS.

mod clock;
mod conduct;
mod health;
mod job;
mod letter;
mod nats;
mod serve;
mod stream;
mod work;

use std::time::Duration;

pub use conduct::{Conductor, Mate, Merged, Wanted};
pub use job::{Parts, chosen_env, pack};
pub use nats::Server;
pub use serve::{Agent, serve};

/// Most agents of one run.
pub const AGENTS_MAX: u64 = 1000;
/// A silent peer counts as lost after this time: an agent for its controller, a controller for its agents.
pub const LOST: Duration = Duration::from_secs(5);
/// Interval at which the controller and each agent send a message.
const BEAT: Duration = Duration::from_secs(1);
/// Interval between two looks at the clock while no message arrives.
const LOOK: Duration = Duration::from_millis(50);
/// Most messages that wait for their reader; the server keeps the others.
const HEARD_MAX: usize = 1024;
/// Most lines of `log` steps in one tick; the others are counted as lost.
const LINES_MAX: usize = 1000;

#[cfg(test)]
mod tests;
