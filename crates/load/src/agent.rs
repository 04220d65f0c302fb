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
//! Every message may be lost or come twice: states are repeated until they are seen, [`stream`] numbers what is
//! counted. Arrival k is agent k mod n's, so nobody is asked during the run. docs/guide/load/agents.md is for users.
//! Not here: printing; TLS.

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

/// Agents of one run.
pub const AGENTS_MAX: u64 = 1000;
/// Who is silent for so long is lost: an agent for its controller, a controller for its agents.
pub const LOST: Duration = Duration::from_secs(5);
/// How often everybody is heard of.
const BEAT: Duration = Duration::from_secs(1);
/// How often there is a look at the time while nothing comes.
const LOOK: Duration = Duration::from_millis(50);
/// Messages that wait for their reader; beyond, the server keeps them.
const HEARD_MAX: usize = 1024;
/// Lines of `log` steps in one tick; more are counted as lost.
const LINES_MAX: usize = 1000;

#[cfg(test)]
mod tests;
