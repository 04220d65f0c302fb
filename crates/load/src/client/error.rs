//! Why an exchange failed: where it stood, and what Node calls it (artillery.md §3.3).

use std::borrow::Cow;
use std::io;

use weir_meter::Step;
use weir_wire::Violation;

use super::answer::Timings;

/// A failed exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where it stood.
    pub step: Step,
    /// `ECONNREFUSED`, `ETIMEDOUT`, `HPE_INVALID_CONSTANT` and so on: the name after `errors.`.
    pub name: Cow<'static, str>,
    /// The peer closed in order where an answer was still to come.
    pub is_end: bool,
    /// The answer's status, and when its head came, if only its body failed.
    pub answered: Option<Box<(u16, Timings)>>,
}

/// Names of Linux error numbers that a connection meets and that have no kind of their own in the standard library.
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
    /// One with this name.
    pub fn named(step: Step, name: &'static str) -> Error {
        Error { step, name: Cow::Borrowed(name), is_end: false, answered: None }
    }

    /// What a system call said.
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

    /// The time given to the whole exchange ran out.
    pub fn timed_out(step: Step) -> Error {
        Error::named(step, "ETIMEDOUT")
    }

    /// The peer closed before the answer was complete: Node's "socket hang up".
    pub fn closed(step: Step) -> Error {
        Error { is_end: true, ..Error::named(step, "ECONNRESET") }
    }

    /// The answer is not HTTP/1.1: llhttp's names.
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

/// What llhttp says of a head that is no status line: `HTTP/1.1 abc` is a bad status, `HTTP/x` a bad version.
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
