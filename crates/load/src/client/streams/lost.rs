//! The end of an exchange without an answer, and whether the exchange may be tried again.

use std::borrow::Cow;

use weir_meter::Step;

use super::super::error::Error;

/// Whether a lost exchange may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// No: the server may have acted on the request.
    Never,
    /// Only if nothing of the request was sent: the connection was over already.
    IfUnsent,
    /// Yes: the server reports that it did nothing (RFC 9113 §8.7, RFC 9114 §4.1.1).
    Always,
}

/// An exchange without answer.
#[derive(Clone, Debug)]
pub struct Lost {
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

    /// The server reports that it did nothing.
    pub fn refused(error: Error) -> Lost {
        Lost { error, again: Again::Always }
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

/// The error of a code that the protocol names.
pub fn coded(kind: &str, code: &str) -> Error {
    Error { name: Cow::Owned(format!("{kind}{code}")), ..Error::named(Step::AwaitHead, "") }
}
