//! QUIC (RFC 9000) for clients of the edge: connections over UDP sockets, and streams that are read and written like a
//! socket. The library quinn-proto keeps the protocol's state; it does no I/O.
//!
//! - `tls/`: TLS of connections, with settings for each server name
//! - `keys`: the keys of an endpoint, from `quic_host_key`; `id`: connection ids that name a process and a worker
#![forbid(unsafe_code)]

pub mod id;
pub mod keys;
pub mod tls;
