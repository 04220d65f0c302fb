//! The micro-cache: what may be kept and served again, and where it is kept.
//!
//! ```text
//!  exchange ─ find ─► Zone: shards ─ memory tier ─ disk tier (a thread of its own)
//!     │                 ▲
//!     └ join ─► flight ─┘ one fetch per key across all workers; the others read along
//! ```

pub mod store;
