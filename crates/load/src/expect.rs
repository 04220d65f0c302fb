//! The checks of a request's `expect` (artillery.md §5.2): the expected values, the actual values, and the printed
//! lines.

mod answer;
mod checks;
mod lines;

pub use answer::CheckedAnswer;
pub use checks::{CheckResult, check, is_known};
pub use lines::{Exchange, json_line, pretty};

#[cfg(test)]
mod tests;
