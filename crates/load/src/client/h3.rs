//! HTTP/3 (RFC 9114) over QUIC: the connections of a worker share one UDP socket, which sends by batches.
//!
//! Bounds: [`weir_quic::client`] names those of QUIC; a blocked field section waits with the [`driver`]'s one read; a request
//! waits with its head alone, since its body stays where the caller has it.

mod begun;
mod carrier;
mod driver;
mod figures;
mod lost;
mod open;
mod ports;

pub use figures::record;
pub(super) use open::open;
pub use ports::leave;
