//! Many exchanges over one connection: HTTP/2 (RFC 9113), on the sans-I/O machine of `weir_wire::h2`.
//!
//! ```text
//!  Call ─ Line::exchange ─► Session: a Slot each ─ frames ─► driver ─► socket
//! ```
//!
//! A [`Line`] is a connection: opened when an exchange needs it, and opened again after it is gone. Its driver is a
//! task of its own. The driver reads frames into the slots of the waiting exchanges, and sends the frames of all
//! exchanges at once. The answer is an ordinary [`super::Answer`]: captures and cookies do not depend on the
//! protocol.

mod driver;
mod line;
mod lost;
mod session;
mod slot;

pub use line::{Line, STREAMS_MAX};
