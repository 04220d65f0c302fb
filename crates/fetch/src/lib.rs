//! One HTTP/1 exchange with a server that weir itself asks: an OCSP responder, an authority, a receiver of alerts, a
//! collector of traces, a page of figures.
//!
//! [`exchange`] works on a connection that the caller made, and may keep. [`ask`] also connects, [`Call`] also speaks TLS.
//! The caller knows the addresses. Not here: redirects, cookies, codings. Invariant: an answer is bounded, and everything
//! ends with the deadline.
//!
//! - `exchange`: one exchange, the bytes of a request; `call`: one with a server by its URL; `answer`: the bytes of an
//!   answer
#![forbid(unsafe_code)]

mod answer;
mod call;
mod exchange;

pub use answer::FetchedAnswer;
pub use call::{Call, DISTRUST, literal};
pub use exchange::{NoAnswer, ask, ask_and_block, compose, exchange};
