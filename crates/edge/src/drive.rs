//! Drives connections: accepts them, reads their requests, lets the phases answer, and decides what follows.
//!
//! ```text
//!  accept ─► serve ─► seat ─► requests ─► open ─► phases ─► answer ─► respond
//!              │        ▲                              └─► tunnel (another protocol)
//!              └► streams (HTTP/2: one task per stream)  └─► subrequest (for another exchange)
//!  quic ─► http3 (one task per stream) ─► seat
//! ```
//!
//! Nothing below imports this folder: it stands on the engine and on the families.

pub mod accept;
mod after;
mod answer;
mod aside;
mod carried;
mod chores;
mod http3;
mod linger;
mod open;
mod proxied;
pub mod quic;
mod requests;
mod seat;
mod secure;
mod serve;
mod streams;
pub mod subrequest;
mod tunnel;
