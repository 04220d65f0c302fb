//! QUIC (RFC 9000) for clients of the edge, and for weir as a client: connections over UDP sockets, and streams that are read
//! and written like a socket. The library quinn-proto keeps the protocol's state; it does no I/O.
//!
//! ```text
//!  datagrams ─ Port ─► QuicConnection ─ next ─► events ─► the task that serves the connection
//!  datagrams ◄─ Port ◄─ listed ◄─ write, finish, close ◄─ that task, and the tasks of its streams
//! ```
//!
//! - `port`, `client`: one UDP socket of one worker, of a server and of a client
//! - `hub`, `listed`, `timers`: what both have: the connections of an endpoint; those that have something to send; the moments
//!   at which connections want to be looked at
//! - `connection`: one connection, and its streams by their numbers
//! - `proved`, `path_frames`: the address that a peer has proved, and the frames that prove it
//! - `settings`, `keys`, `id`, `tokens`: the settings of a port; its keys, from `quic_host_key`; connection ids that name a
//!   process and a worker; the tokens that clients have used
//! - `tls/`: TLS of connections, with settings for each server name
#![forbid(unsafe_code)]

pub mod client;
pub mod connection;
mod hub;
pub mod id;
pub mod keys;
mod listed;
mod path_frames;
pub mod port;
mod proved;
pub mod settings;
mod timers;
pub mod tls;
mod tokens;
