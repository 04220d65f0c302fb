//! What limits, and how one knows.
//!
//! ```text
//!   block as asked ─► gate ─► policy? ─► half of it ─► signals ─► rules ─► knee ─► squeeze each suspect ─► one of seven words
//! ```
//!
//! Nothing is named from a correlation alone: a rule needs a count or a full resource, and PROVED needs the counter-experiment.

pub mod gather;
pub mod good;
mod korean;
pub mod policies;
pub mod prove;
mod quiet;
pub mod rule;
pub mod rules;
pub mod run;
pub mod say;
mod sent;
mod served;
pub mod signals;
mod told;
mod unread;

pub use run::{Why, run};
