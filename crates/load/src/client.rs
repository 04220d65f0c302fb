//! One HTTP/1.1 exchange after another with an origin, timed; over HTTP/2 and HTTP/3 ([`streams`]) several at once.
//!
//! ```text
//!  Origin ─ resolve ─ open ─► Link ─ send ─ Incoming: head, body ─► Answer (bytes stay in the leased buffer)
//! ```
//!
//! A waiting connection holds no buffer: the bytes of an answer go into a lease that the [`Answer`] gives back. Every
//! failure names its step and has Node's name for the error ([`Error`]).

mod answer;
mod coding;
mod error;
mod h2;
pub mod h3;
mod incoming;
pub mod line;
mod open;
mod origin;
pub(crate) mod peers;
mod proxy;
mod resolve;
mod session;
pub mod streams;
mod timings;

pub use answer::{Answer, BodyPlace};
pub use coding::{Decoded, decode};
pub use error::{Error, NOT_AGREED, NOT_SPOKEN};
pub use origin::{Origin, Origins};
pub use proxy::Proxies;
pub use resolve::Resolver;
pub(crate) use session::idle_max;
pub use session::{IDLE_MAX, KeptConnection, ReadyRequest, exchange};
pub use streams::{Protocol, Tuning};
pub use timings::Timings;
