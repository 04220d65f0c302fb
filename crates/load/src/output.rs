//! Output of a run: Artillery's console and JSON, and weir's additions to both.
//!
//! Everything here is a function from an [`RunResults`](crate::record::RunResults) and [`RunFacts`] to text.

pub mod compare;
pub mod console;
pub mod ensure;
pub mod expose;
pub mod facts;
pub mod honest;
pub mod html;
pub mod json;
mod kept;
mod label;
pub mod legacy;
pub mod live;

pub mod number;
mod own;
pub mod v1;

pub use facts::{PhaseFact, RunFacts, SelfCheck};
