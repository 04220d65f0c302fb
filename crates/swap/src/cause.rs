//! The smallest request that shows a difference, and the lines of the file that make it.

pub mod alike;
pub mod bisect;
pub mod edits;
mod place;
pub mod request;
pub mod smallest;
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
