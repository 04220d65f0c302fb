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
mod h3;
mod incoming;
mod open;
mod origin;
pub(crate) mod peers;
mod proxy;
mod resolve;
mod session;
pub mod streams;
mod timings;

use crate::record::Recorder;

pub use answer::{Answer, BodyPlace};
pub use coding::{Decoded, decode};
pub use error::{Error, NOT_AGREED, NOT_SPOKEN};
pub use streams::{Line, Protocol, STREAMS_MAX};
pub use origin::{Origin, Origins};
pub use proxy::Proxies;
pub use resolve::Resolver;
pub(crate) use session::idle_max;
pub use session::{IDLE_MAX, KeptConnection, ReadyRequest, exchange};
pub use timings::Timings;

/// Ends this worker's connections of HTTP/3, and waits until their servers are told: at the end of a run.
pub async fn leave() {
    h3::leave().await;
}

/// Records what this worker's connections of HTTP/3 have done since the last call.
pub fn record_http3(recorder: &Recorder) {
    h3::record(recorder);
}
