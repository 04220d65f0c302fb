//! What limits, and how one knows.
//!
//! ```text
//!   block as asked ─► gate ─► half of it ─► signals ─► rules ─► knee ─► squeeze each suspect ─► one of six words
//! ```
//!
//! Nothing is named from a correlation alone: a rule needs a count or a full resource, and PROVED needs the counter-experiment.

pub mod gather;
mod korean;
pub mod prove;
pub mod rule;
pub mod rules;
pub mod run;
pub mod say;
mod served;
pub mod signals;
mod told;

pub use run::{Why, run};
