//! Purges by people and programs, on this edge and on all other edges.
//!
//! ```text
//!  POST ─ api ─► Order ─► zones of this edge, at once
//!                  └────► Bus ─ append ─► Redis stream ─ tail ─► zones of every other edge
//!                                           ◄─ "applied up to ID" ─┘
//! ```
//!
//! An edge serves whether or not the stream can be reached. An edge that cannot know which orders it missed
//! soft-purges everything. Invariants: no worker ever waits for a socket to Redis; an order is in force on this edge
//! before it is answered.

pub mod api;
pub mod bus;
pub mod edges;
pub mod entry;
mod keys;
mod memory;
pub mod order;
pub mod zones;

pub use bus::{Bus, Settings};
pub use order::PurgeOrder;
pub use zones::ZoneList;
