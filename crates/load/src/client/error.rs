//! Why an exchange failed: the step, and Node's name for the error (artillery.md §3.3).

use std::borrow::Cow;
use std::io;

use weir_meter::Step;
use weir_wire::Violation;

use super::timings::Timings;

/// A failed exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The step at which it failed.
    pub step: Step,
    /// `ECONNREFUSED`, `ETIMEDOUT`, `HPE_INVALID_CONSTANT` and so on: the name after `errors.`.
    pub name: Cow<'static, str>,
    /// The peer closed the connection properly before its answer.
    pub is_end: bool,
    /// If only the body failed: the answer's status, and the times up to its head.
    pub answered: Option<Box<(u16, Timings)>>,
}

/// The server did not choose `h2` in ALPN (RFC 7301).
pub const NOT_AGREED: &str = "ERR_ALPN_NEGOTIATION_FAILED";
/// The server answered HTTP/2's preface with another protocol.
pub const NOT_SPOKEN: &str = "ERR_HTTP2_NOT_SPOKEN";

/// Names of Linux error numbers that a connection can have and that the standard library has no kind for.
const NUMBERS: &[(i32, &str)] = &[
    (12, "ENOMEM"),
    (13, "EACCES"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (71, "EPROTO"),
    (97, "EAFNOSUPPORT"),
    (98, "EADDRINUSE"),
    (99, "EADDRNOTAVAIL"),
    (100, "ENETDOWN"),
    (101, "ENETUNREACH"),
    (103, "ECONNABORTED"),
    (104, "ECONNRESET"),
    (105, "ENOBUFS"),
    (107, "ENOTCONN"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (112, "EHOSTDOWN"),
    (113, "EHOSTUNREACH"),
    (32, "EPIPE"),
    (1, "EPERM"),
    (2, "ENOENT"),
];

impl Error {
    /// An error with this name.
    pub fn named(step: Step, name: &'static str) -> Error {
        Error { step, name: Cow::Borrowed(name), is_end: false, answered: None }
    }

    /// An error of a system call.
    pub fn io(step: Step, error: &io::Error) -> Error {
        if let Some(failed) = weir_net::tls::failure(error) {
            return Error::named(step, failed.code);
        }
        let known = error.raw_os_error().and_then(|raw| NUMBERS.iter().find(|(number, _)| *number == raw));
        match (known, error.kind()) {
            (Some((_, name)), _) => Error::named(step, name),
            (None, io::ErrorKind::TimedOut) => Error::timed_out(step),
            (None, _) => Error { step, name: Cow::Owned(error.to_string()), is_end: false, answered: None },
        }
    }

    /// The timeout of the whole exchange expired.
    pub fn timed_out(step: Step) -> Error {
        Error::named(step, "ETIMEDOUT")
    }

    /// The peer closed before the answer was complete: Node's "socket hang up".
    pub fn closed(step: Step) -> Error {
        Error { is_end: true, ..Error::named(step, "ECONNRESET") }
    }

    /// The answer is not HTTP/1.1: llhttp's name for the violation.
    pub fn violation(step: Step, violation: Violation) -> Error {
        Error::named(
            step,
            match violation {
                Violation::NoStatusLine => "HPE_INVALID_CONSTANT",
                Violation::UpstreamInvalidField => "HPE_INVALID_HEADER_TOKEN",
                Violation::UpstreamHeadTooLarge => "HPE_HEADER_OVERFLOW",
                Violation::UpstreamContentLength => "HPE_INVALID_CONTENT_LENGTH",
                Violation::UpstreamDuplicateField => "HPE_UNEXPECTED_CONTENT_LENGTH",
                Violation::UpstreamLengthAndEncoding | Violation::UpstreamUnknownEncoding => {
                    "HPE_INVALID_TRANSFER_ENCODING"
                }
                Violation::ChunkSize | Violation::ChunkSizeTooLarge => "HPE_INVALID_CHUNK_SIZE",
                Violation::TrailerField | Violation::TrailerTooLarge => "HPE_INVALID_HEADER_TOKEN",
                _ => "HPE_STRICT",
            },
        )
    }
}

/// llhttp's error for a wrong status line: `HTTP/1.1 abc` is a bad status, `HTTP/x` a bad version.
pub(super) fn status_line(head: &[u8]) -> &'static str {
    match head.strip_prefix(b"HTTP/") {
        None => "HPE_INVALID_CONSTANT",
        Some([b'0'..=b'9', b'.', b'0'..=b'9', ..]) => "HPE_INVALID_STATUS",
        Some(_) => "HPE_INVALID_VERSION",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_nodes_names() {
        for (number, name) in [(111, "ECONNREFUSED"), (104, "ECONNRESET"), (24, "EMFILE"), (99, "EADDRNOTAVAIL")] {
            assert_eq!(Error::io(Step::Connect, &io::Error::from_raw_os_error(number)).name, name);
        }
        assert_eq!(Error::io(Step::Connect, &io::Error::from(weir_net::TimedOut)).name, "ETIMEDOUT");
        for (head, name) in [
            (&b"rubbish"[..], "HPE_INVALID_CONSTANT"),
            (b"HTTP/1.1 abc OK", "HPE_INVALID_STATUS"),
            (b"HTTP/x.1 200", "HPE_INVALID_VERSION"),
        ] {
            assert_eq!(status_line(head), name);
        }
    }
}
