//! HTTP/3 (RFC 9114) for clients: one connection of QUIC, its request streams, and the bytes between QUIC and the frames.
//!
//! A request stream is a [`weir_net::Carried`], which is read and written like a socket. The task that drives the
//! connection reads heads; each request then has a task of its own, which reads its stream itself. QUIC bounds what a
//! client may send ahead, so a stream keeps no more than one read.
//!
//! - `session`: the connection; `stream`: a request stream; `hq`: HTTP/0.9 in the place of frames

pub mod hq;
pub mod session;
pub mod stream;
