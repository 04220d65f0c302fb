//! What speaks to a target.

mod bell;
mod dial;
pub mod http;
pub mod parallel;
pub mod socketio;
mod take;
mod websocket;
pub mod ws;
