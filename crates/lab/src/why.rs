//! `weir lab why` finds the resource that limits a configuration, and shows the evidence.
//!
//! ```text
//!   block as asked ─► gate ─► policy? ─► half of the load ─► signals ─► rules
//!     ─► knee ─► squeeze each suspect ─► give more of each ─► one of seven words
//! ```
//!
//! A correlation alone names no bottleneck. A rule needs a count or a full resource. PROVED needs the
//! counter-experiment in both directions: less of the resource, and more of it. If the remedy is a line of the
//! configuration, the lab tries the remedy too.

pub mod arm;
pub mod asked;
mod assign;
mod attempt;
mod blocks;
pub mod course;
pub mod episodes;
pub mod gather;
pub mod good;
pub mod known;
#[cfg(test)]
mod language;
pub mod policies;
mod processes;
pub mod prove;
mod proving;
mod quiet;
pub mod remedy;
pub mod rule;
pub mod rules;
pub mod run;
pub mod running;
pub mod say;
mod sent;
mod served;
pub mod signals;
mod sound;
mod told;
pub mod tried;
mod unread;
mod verify;
pub mod widen;
mod written;

pub use asked::Why;
pub use run::run;
