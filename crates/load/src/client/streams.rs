//! Many exchanges over one connection: HTTP/2 (RFC 9113) and HTTP/3 (RFC 9114), on the sans-I/O machines of `weir_wire`.
//!
//! ```text
//!  Call ─ Line::exchange ─► Session: a Slot each ─ Carrier ─► frames ─► driver ─► socket, or QUIC
//! ```
//!
//! A [`Line`] is a connection: opened when an exchange needs it, and opened again after it is gone. Its driver is a
//! task of its own. The driver reads frames into the slots of the waiting exchanges. The answer is an ordinary
//! [`super::Answer`]: captures and cookies do not depend on the protocol.

mod line;
mod lost;
mod session;
mod slot;

pub use line::{Line, Protocol, STREAMS_MAX};
pub(super) use lost::{Lost, coded};
pub(super) use session::{Carrier, SECTION_MAX, Session};
pub(super) use slot::{HeadKind, StreamSlot};
