//! One run from many machines: a controller, agents, and the channels of a Redis server between them.
//!
//! ```text
//!   controller (weir load --agents)              agent (weir agent), one run at a time
//!   call ──────────────── weir.v1.agents ───► offer
//!   hire: share i of n ── weir.v1.agent.ID ─► clock, want piece k … of the job, ready
//!   state each second ─── weir.v1.agents ───► start at T0, stop, over
//!   merge ◄────────────── weir.v1.run.ID ──── beat and tick each second, the last one with the self-check
//! ```
//!
//! Every message may be lost or arrive twice: states are repeated until the other end has seen them, and [`stream`]
//! numbers the messages with counts. Arrival k belongs to agent k mod n, so the agents need not ask each other during
//! the run. docs/guide/load/agents.md is for users. Not here: printing.

mod channels;
mod clock;
mod conduct;
mod health;
mod job;
mod letter;
mod limits;
mod member;
mod serve;
mod stream;
mod work;

pub use channels::server_of;
pub use conduct::{AGENTS_MAX, Conductor, Merged, WantedRun};
pub use job::{JobParts, chosen_env, pack};
pub use limits::LOST;
pub use member::Mate;
pub use serve::{Agent, serve};

#[cfg(test)]
mod tests;
