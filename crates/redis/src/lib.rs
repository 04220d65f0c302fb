//! A client of a Redis server, or of a server that speaks its protocol (Valkey).
//!
//! ```text
//!  tasks of workers ─ RedisServer::ask, tell ─► queue ─► one thread ─► Link, kept, for all commands to this server
//!  a worker of its own ─ RedisServer::link ──────────────────────────► Link, for reads that wait and for SUBSCRIBE
//! ```
//!
//! [`RedisServer::ask`] and [`RedisServer::tell`] send commands over one connection that the process keeps for each
//! server. A command that waits (`XREAD BLOCK`, `SUBSCRIBE`) would hold up all others, so it needs a [`Link`] of its
//! own. Invariants: no worker waits for a socket to Redis; a command is sent at most once; replies have bounds in size,
//! number and depth; no bytes of a server can cause a panic.
//!
//! - `server`: a server and its requests; `place`: its address, its login, and whom to trust
//! - `queue`: the requests of all tasks to a server, and the thread that sends them
//! - `link`: one connection, with or without TLS; `commands`, `value`: the bytes of both directions
#![forbid(unsafe_code)]

mod commands;
mod link;
mod place;
mod queue;
mod server;
mod value;

pub use commands::Commands;
pub use link::{Backoff, Link, Message, NoReply};
pub use queue::QUEUE_MAX;
pub use server::RedisServer;
pub use value::{BYTES_MAX, DEPTH_MAX, ITEMS_MAX, Value, pairs};
