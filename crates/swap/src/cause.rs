//! The smallest request that shows a difference, and the lines of the file that make it.
//!
//! ```text
//!   a difference ─ request ─► smallest request ─ bisect ─► lines
//!                     └───── smallest, stage ──────┘
//! ```
//!
//! Invariant: trials and time have bounds, and a difference that was not searched says so.
//!
//! - `find`: all of it, for each difference of a report
//! - `stage`: trials: starts servers, asks them, and looks at everything they show
//! - `smallest`: delta debugging, pure
//! - `request`: leaves out what the difference does not need: earlier requests, parameters, fields
//! - `edits`, `alike`: the changes between two configurations, and mixtures of both; `bisect` tries them
//! - `statements`: one configuration without some statements, for two programs that differ
//! - `place`: the line of a statement

pub mod alike;
pub mod bisect;
pub mod edits;
pub mod find;
mod place;
pub mod request;
pub mod smallest;
mod stage;
pub mod statements;

/// The configuration that a cause is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CauseSide {
    /// A's.
    #[default]
    A,
    /// B's.
    B,
}

/// A line that makes a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CausingLine {
    /// The configuration that has it.
    pub side: CauseSide,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The statement, without the content of a block.
    pub text: String,
}
