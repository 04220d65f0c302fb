//! The end of an exchange without an answer, and whether the exchange may be tried again.

use std::borrow::Cow;

use weir_meter::Step;
use weir_wire::h2::{ErrorCode, H2Fault};

use super::super::error::Error;

/// Whether a lost exchange may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// No: the server may have acted on the request.
    Never,
    /// Only if nothing of the request was sent: the connection was over already.
    IfUnsent,
    /// Yes: the server reports that it did nothing (RFC 9113 §8.7).
    Always,
}

/// An exchange without answer.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    pub error: Error,
    pub again: Again,
}

impl Lost {
    /// The exchange must not be tried again.
    pub fn for_good(error: Error) -> Lost {
        Lost { error, again: Again::Never }
    }

    /// The connection failed or was closed.
    pub fn cut(error: Error) -> Lost {
        Lost { error, again: Again::IfUnsent }
    }

    /// The server reset the stream.
    pub fn reset(code: u32) -> Lost {
        let is_refused = code == ErrorCode::RefusedStream as u32;
        let again = if is_refused { Again::Always } else { Again::Never };
        Lost { error: coded("RST_STREAM_", ErrorCode::name(code)), again }
    }

    /// The server closes the connection, and has not begun with the stream.
    pub fn unbegun(code: u32) -> Lost {
        Lost { error: coded("GOAWAY_", ErrorCode::name(code)), again: Again::Always }
    }

    /// The server broke a rule.
    pub fn fault(fault: H2Fault) -> Lost {
        Lost::for_good(coded("ERR_HTTP2_", ErrorCode::name(fault.code as u32)))
    }

    /// The same for an exchange of which something, or nothing, was sent.
    pub fn after(self, is_sent: bool) -> Lost {
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
