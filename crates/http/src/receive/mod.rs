//! Receives a request: its head (`head`), its body (`body/`), and both from HTTP/2 (`h2/`).
//!
//! In `h2/` a task drives each connection. A stream is a `net::Carried`, which is read and written like a socket. Each
//! stream from a client has its own task; exchanges open the streams to an origin (`ask`, `reply`) on a connection of
//! `proxy`.

pub mod body;
pub mod h2;
pub mod head;
