//! HTTP/3 (RFC 9114): frames, compressed fields, streams. No socket, no clock, no QUIC.
//!
//! QUIC delivers the bytes of each stream in order. [`connection::H3Connection`] reads the peer's unidirectional streams,
//! [`stream::RequestStream`] reads one request or one answer, and [`write`](mod@write) has the frames that weir sends.

pub mod connection;
mod control;
pub mod fault;
pub mod frame;
pub mod qpack;
pub mod settings;
pub mod stream;
#[cfg(test)]
mod tests;
mod uni;
pub mod varint;
pub mod write;

pub use fault::{H3Code, H3Fault};
