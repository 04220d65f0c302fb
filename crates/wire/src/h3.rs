//! HTTP/3 (RFC 9114): frames, compressed fields, streams. No socket, no clock, no QUIC.

pub mod fault;
pub mod frame;
pub mod qpack;
pub mod varint;

pub use fault::{H3Code, H3Fault};
