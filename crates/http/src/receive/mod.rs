//! Receives a request: its head (`head`), its body (`body/`), and both from HTTP/2 and HTTP/3 (`h2/`, `h3/`, `request`, `halves`).
//!
//! In `h2/` a task drives each connection. A stream is a `net::Carried`, which is read and written like a socket. Each
//! stream from a client has its own task; exchanges open the streams to an origin (`ask`, `reply`) on a connection of
//! `proxy`. In `h3/` a request's task reads its stream itself.

pub mod body;
pub mod h2;
pub mod h3;
mod halves;
pub mod head;
pub mod request;
