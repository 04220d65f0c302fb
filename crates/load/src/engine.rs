//! The engines: code that speaks to a target.

pub(crate) mod bell;
mod dial;
pub mod http;
pub mod socketio;
mod take;
mod websocket;
pub mod ws;
