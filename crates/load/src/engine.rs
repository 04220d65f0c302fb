//! What speaks to a target.

pub mod http;
