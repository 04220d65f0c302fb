//! What limits, and how one knows.
//!
//! ```text
//!   block as asked ─► gate ─► policy? ─► half of it ─► signals ─► rules ─► knee ─► squeeze each suspect ─► give more of it ─► one of seven words
//! ```
//!
//! Nothing is named from a correlation alone: a rule needs a count or a full resource, and PROVED needs the counter-experiment, both
//! ways. The remedy is tried, too, where it is a line of the configuration.

mod assign;
pub mod attempt;
pub mod gather;
pub mod good;
mod korean;
pub mod policies;
pub mod prove;
mod proving;
mod quiet;
pub mod remedy;
pub mod rule;
pub mod rules;
pub mod run;
pub mod say;
mod sent;
mod served;
pub mod signals;
mod told;
mod unread;
pub mod widen;

pub use run::{Why, run};
