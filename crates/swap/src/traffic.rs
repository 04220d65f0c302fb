//! The requests for A and B.

pub mod plan;
pub(crate) mod tail;
pub mod urls;
