//! What speaks to a target.

mod bell;
mod dial;
pub mod http;
pub mod parallel;
mod take;
mod websocket;
pub mod ws;
