//! Names a failed try: in nginx's words for the log, and in the terms of `proxy_next_upstream`.

use std::fmt;
use std::io;
use std::ops::ControlFlow;

use weir_http::exchange::Exchange;
use weir_http::exchange::phase::Outcome;
use weir_http::hold::conn::Gone;
use weir_http::receive::body::BodyFailed;
use weir_http::receive::h2::reply::Lost;
use weir_meter::live::cells::Why;
use weir_net::log::{self, Level};
use weir_peers::retry;
use weir_wire::Violation;

use super::answer::Answer;
use super::failure::{Failure, HeadFault};
use crate::family::proxy_ssl::fault::Fault;
use crate::family::proxy_ssl::handshake::BrokenTransfer;

/// The counter for a failed try.
pub fn why(failure: &Failure) -> Why {
    match failure {
        Failure::Connect(error) | Failure::Send(error) | Failure::Receive(error) => why_of(error),
        Failure::Tls(_) => Why::Tls,
        Failure::Closed => Why::Closed,
        Failure::TimedOut => Why::TimedOut,
        Failure::Head(_) | Failure::Lost(Lost::Malformed(_) | Lost::TooBig) => Why::BadHead,
        Failure::Lost(Lost::Unprocessed(_) | Lost::Rejected(_) | Lost::Closed) => Why::Closed,
        Failure::Unsendable(_) | Failure::Body(_) | Failure::Client(_) | Failure::TableFull => Why::Other,
    }
}

fn why_of(error: &io::Error) -> Why {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Why::Refused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
            Why::Unreachable
        }
        io::ErrorKind::TimedOut => Why::TimedOut,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => Why::Reset,
        io::ErrorKind::AddrNotAvailable => Why::NoPort,
        _ if weir_net::is_out_of_files(error) => Why::NoFile,
        _ => Why::Other,
    }
}

impl fmt::Display for Failure {
    /// nginx's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect(error) => write!(f, "connect() failed {}", log::Os(error)),
            Failure::Tls(fault) => fault.fmt(f),
            Failure::Send(error) => BrokenTransfer("writev()", "SSL_write()", error).fmt(f),
            Failure::Receive(error) => BrokenTransfer("recv()", "SSL_read()", error).fmt(f),
            Failure::Closed => f.write_str("upstream prematurely closed connection"),
            Failure::TimedOut => f.write_str("upstream timed out (110: Connection timed out)"),
            Failure::Head(HeadFault::TooBig) => f.write_str("upstream sent too big header"),
            Failure::Head(HeadFault::Violation(violation)) => f.write_str(violation.upstream_message()),
            Failure::Head(HeadFault::Switched) => f.write_str("upstream switched protocols unasked"),
            Failure::Head(HeadFault::Told) => f.write_str("upstream sent invalid header"),
            Failure::Lost(lost) => lost.fmt(f),
            Failure::Unsendable(unsent) => unsent.fmt(f),
            Failure::TableFull => f.write_str("worker_connections are not enough"),
            Failure::Body(_) => f.write_str("the request's body could not be read"),
            Failure::Client(_) => {
                f.write_str("client prematurely closed connection, so upstream connection is closed too")
            }
        }
    }
}

/// Logs a connection that could not be made. nginx names the address if `connect()` itself fails: always with a Unix socket,
/// and with TCP if no local port is left. Otherwise the kernel reports the failure later.
fn unconnected(exchange: &mut Exchange<'_>, error: &io::Error) {
    let peer = exchange.tries.last().map(|last| last.peer.clone());
    match peer.filter(|peer| peer.starts_with("unix:") || error.kind() == io::ErrorKind::AddrNotAvailable) {
        Some(peer) => exchange.log(level(error), format_args!("connect() to {peer} failed {}", log::Os(error))),
        None => exchange.log(Level::Error, format_args!("connect() failed {}", log::Os(error))),
    }
}

/// nginx's level for a `connect()` that failed: a peer or a network that does not answer is an error, and anything else is
/// critical, for example a socket that does not exist or that weir may not use.
fn level(error: &io::Error) -> Level {
    use io::ErrorKind as Kind;
    match error.kind() {
        // Linux: the queue of a Unix socket is full.
        Kind::WouldBlock
        | Kind::ConnectionRefused
        | Kind::ConnectionReset
        | Kind::NetworkDown
        | Kind::NetworkUnreachable
        | Kind::HostUnreachable => Level::Error,
        _ => Level::Crit,
    }
}

/// Logs a failed try, and gives the name that `proxy_next_upstream` uses; breaks with the answer if the peer did not
/// cause the failure.
pub fn blame(exchange: &mut Exchange<'_>, failure: Failure) -> ControlFlow<Answer, retry::Failure> {
    match &failure {
        // Already logged, or caused by the client.
        Failure::TableFull | Failure::Body(_) | Failure::Client(_) | Failure::Head(HeadFault::Told) => {}
        Failure::Connect(error) => unconnected(exchange, error),
        failure => exchange.log(Level::Error, format_args!("{failure}")),
    }
    let kind = match failure {
        Failure::Connect(_) | Failure::Send(_) | Failure::Receive(_) | Failure::Closed => retry::Failure::Error,
        // Another upstream would not do better.
        Failure::Tls(Fault::Certificate(_)) | Failure::Unsendable(_) => {
            return ControlFlow::Break(Answer::Outcome(Outcome::Status(500)));
        }
        Failure::Tls(Fault::Handshake(_) | Fault::OtherName(_)) => retry::Failure::Error,
        Failure::TimedOut => retry::Failure::Timeout,
        Failure::Head(_) => retry::Failure::InvalidHeader,
        // nginx: a stream reset in place of an answer counts as an invalid answer.
        Failure::Lost(Lost::TooBig | Lost::Malformed(_) | Lost::Rejected(_)) => retry::Failure::InvalidHeader,
        Failure::Lost(Lost::Unprocessed(_) | Lost::Closed) => retry::Failure::Error,
        // nginx: an internal error, not a failure of the peer.
        Failure::TableFull => return ControlFlow::Break(Answer::Outcome(Outcome::Status(500))),
        Failure::Body(BodyFailed::Status(status)) => {
            return ControlFlow::Break(Answer::Outcome(Outcome::Status(status)));
        }
        Failure::Body(BodyFailed::Gone(gone)) => return ControlFlow::Break(Answer::Gone(gone)),
        // The client's stream broke the message it had begun.
        Failure::Client(Gone::Closed(error)) if error.kind() == io::ErrorKind::InvalidData => {
            return ControlFlow::Break(Answer::Outcome(Outcome::Status(Violation::MalformedRequest.status())));
        }
        Failure::Client(gone) => {
            exchange.log(
                Level::Info,
                format_args!("client prematurely closed connection, so upstream connection is closed too"),
            );
            return ControlFlow::Break(Answer::Gone(gone));
        }
    };
    ControlFlow::Continue(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Site, on_worker, proxied, whole};

    fn os(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn each_failure_has_its_words_its_counter_and_its_consequence() {
        use retry::Failure::{Error, InvalidHeader, Timeout};
        let gone = || Gone::Closed(io::ErrorKind::ConnectionReset.into());
        let malformed = || Gone::Closed(io::ErrorKind::InvalidData.into());
        // The failure; its words; its counter; its name for proxy_next_upstream, or the status or the end in its place.
        for (failure, words, counter, consequence) in [
            (Failure::Connect(os(111)), "connect() failed (111: Connection refused)", Why::Refused, Ok(Error)),
            (Failure::Connect(os(2)), "connect() failed (2: No such file or directory)", Why::Refused, Ok(Error)),
            (Failure::Connect(os(113)), "connect() failed (113: No route to host)", Why::Unreachable, Ok(Error)),
            (
                Failure::Connect(os(99)),
                "connect() failed (99: Cannot assign requested address)",
                Why::NoPort,
                Ok(Error),
            ),
            (Failure::Connect(os(24)), "connect() failed (24: Too many open files)", Why::NoFile, Ok(Error)),
            (Failure::Send(os(32)), "writev() failed (32: Broken pipe)", Why::Reset, Ok(Error)),
            (Failure::Receive(os(104)), "recv() failed (104: Connection reset by peer)", Why::Reset, Ok(Error)),
            (Failure::Closed, "upstream prematurely closed connection", Why::Closed, Ok(Error)),
            (Failure::TimedOut, "upstream timed out (110: Connection timed out)", Why::TimedOut, Ok(Timeout)),
            (Failure::Head(HeadFault::TooBig), "upstream sent too big header", Why::BadHead, Ok(InvalidHeader)),
            (
                Failure::Head(HeadFault::Switched),
                "upstream switched protocols unasked",
                Why::BadHead,
                Ok(InvalidHeader),
            ),
            (Failure::Lost(Lost::Malformed("x")), "upstream sent x", Why::BadHead, Ok(InvalidHeader)),
            (Failure::Lost(Lost::Unprocessed(7)), "upstream rejected request with error 7", Why::Closed, Ok(Error)),
            (
                Failure::Lost(Lost::Rejected(2)),
                "upstream rejected request with error 2",
                Why::Closed,
                Ok(InvalidHeader),
            ),
            (Failure::TableFull, "worker_connections are not enough", Why::Other, Err(Some(500))),
            (
                Failure::Body(BodyFailed::Status(413)),
                "the request's body could not be read",
                Why::Other,
                Err(Some(413)),
            ),
            (Failure::Body(BodyFailed::Gone(gone())), "the request's body could not be read", Why::Other, Err(None)),
            (
                Failure::Client(gone()),
                "client prematurely closed connection, so upstream connection is closed too",
                Why::Other,
                Err(None),
            ),
            (
                Failure::Client(malformed()),
                "client prematurely closed connection, so upstream connection is closed too",
                Why::Other,
                Err(Some(400)),
            ),
            (Failure::Tls(Fault::Certificate("x".to_owned())), "x", Why::Tls, Err(Some(500))),
        ] {
            assert_eq!((failure.to_string().as_str(), why(&failure)), (words, counter));
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&proxied(""));
                match blame(&mut site.exchange(&whole("GET /")), failure) {
                    ControlFlow::Continue(kind) => Ok(kind),
                    ControlFlow::Break(Answer::Outcome(Outcome::Status(status))) => Err(Some(status)),
                    ControlFlow::Break(Answer::Gone(_)) => Err(None),
                    ControlFlow::Break(_) => Err(Some(0)),
                }
            });
            assert_eq!(found, consequence, "{words}");
        }
    }
}
