//! What limits, and how one knows.
//!
//! ```text
//!   block as asked ─► gate ─► half of it ─► signals ─► rules ─► knee ─► squeeze each suspect ─► give more of it ─► one of six words
//! ```
//!
//! Nothing is named from a correlation alone: a rule needs a count or a full resource, and PROVED needs the counter-experiment, both
//! ways. The remedy is tried, too, where it is a line of the configuration.

mod assign;
pub mod attempt;
pub mod gather;
mod korean;
pub mod prove;
mod proving;
pub mod remedy;
pub mod rule;
pub mod rules;
pub mod run;
pub mod say;
mod served;
pub mod signals;
mod told;
pub mod widen;

pub use run::{Why, run};
