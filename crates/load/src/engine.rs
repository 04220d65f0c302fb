//! What speaks to a target.

pub mod http;
pub mod parallel;
