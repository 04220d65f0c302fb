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
mod session;
mod slot;

pub use line::{Line, STREAMS_MAX};

use std::borrow::Cow;

use weir_meter::Step;
use weir_wire::h2::{Code, Fault};

use super::error::Error;

/// The server did not choose `h2` in ALPN (RFC 7301).
pub const NOT_AGREED: &str = "ERR_ALPN_NEGOTIATION_FAILED";
/// The server answered HTTP/2's preface with another protocol.
pub const NOT_SPOKEN: &str = "ERR_HTTP2_NOT_SPOKEN";

/// Whether a lost exchange may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// No: the server may have acted on the request.
    Never,
    /// Only if nothing of the request was sent: the connection was over already.
    IfUnsent,
    /// Yes: the server reports that it did nothing (RFC 9113 §8.7).
    Always,
}

/// An exchange without answer.
#[derive(Clone, Debug)]
struct Lost {
    error: Error,
    again: Again,
}

impl Lost {
    fn for_good(error: Error) -> Lost {
        Lost { error, again: Again::Never }
    }

    /// The connection failed or was closed.
    fn cut(error: Error) -> Lost {
        Lost { error, again: Again::IfUnsent }
    }

    /// The server reset the stream.
    fn reset(code: u32) -> Lost {
        let is_refused = code == Code::RefusedStream as u32;
        let again = if is_refused { Again::Always } else { Again::Never };
        Lost { error: coded("RST_STREAM_", Code::name(code)), again }
    }

    /// The server closes the connection, and has not begun with the stream.
    fn unbegun(code: u32) -> Lost {
        Lost { error: coded("GOAWAY_", Code::name(code)), again: Again::Always }
    }

    /// The server broke a rule.
    fn fault(fault: Fault) -> Lost {
        Lost::for_good(coded("ERR_HTTP2_", Code::name(fault.code as u32)))
    }

    /// The same for an exchange of which something, or nothing, was sent.
    fn after(self, is_sent: bool) -> Lost {
        let again = match self.again {
            Again::IfUnsent if is_sent => Again::Never,
            Again::Always if !is_sent => Again::IfUnsent,
            again => again,
        };
        Lost { again, ..self }
    }
}

fn coded(kind: &str, code: &str) -> Error {
    Error { name: Cow::Owned(format!("{kind}{code}")), ..Error::named(Step::AwaitHead, "") }
}
