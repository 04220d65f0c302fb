//! The client's end of a WebSocket, for the engines that use one.
//!
//! The owner of a [`Socket`] sends. One separate task reads ([`Socket::read`]), answers pings and the close, and
//! sends the bytes that did not fit. While no bytes arrive, the task holds no buffer.

mod deflate;
mod open;
mod socket;

pub(crate) use open::{WebSocketOptions, basic, open};
pub(crate) use socket::{IncomingMessage, ReadingEnd, ReadyState, Socket};
