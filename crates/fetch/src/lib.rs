//! One HTTP/1 exchange with a server that weir itself asks: an OCSP responder, an authority, a receiver of alerts, a
//! collector of traces.
//!
//! [`exchange`] works on a connection that the caller made, and may keep. [`Call`] also connects. The caller knows the
//! addresses, and writes the bytes of the request. Not here: redirects, cookies, codings. Invariant: an answer is
//! bounded, and everything ends with the deadline.
//!
//! - `exchange`: one exchange on a connection of the caller; `call`: one with a connection of its own; `answer`: the
//!   bytes of an answer
#![forbid(unsafe_code)]

mod answer;
mod call;
mod exchange;

pub use answer::Answer;
pub use call::{Call, DISTRUST, literal};
pub use exchange::{Failed, exchange, receive, send};
