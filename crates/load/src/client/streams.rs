//! Many exchanges over one connection: HTTP/2 (RFC 9113) and HTTP/3 (RFC 9114), on the sans-I/O machines of `weir_wire`.
//!
//! ```text
//!  Call ─ Line::exchange ─► StreamSession: a Slot each ─ Carrier ─► frames ─► driver ─► socket, or QUIC
//! ```
//!
//! A [`super::line::Line`] is a connection: opened when an exchange needs it, and opened again after it is gone. Its driver is
//! a task of its own. The driver reads frames into the slots of the waiting exchanges. The answer is an ordinary
//! [`super::Answer`]: captures and cookies do not depend on the protocol.

mod lost;
mod session;
mod slot;
mod wanted;

pub(super) use lost::{Again, Lost, coded};
pub(super) use session::{Carrier, SECTION_MAX, StreamSession};
pub(super) use slot::{HeadKind, StreamSlot};
pub(super) use wanted::Wanted;
pub use wanted::{Protocol, Tuning};
