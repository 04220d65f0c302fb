//! Names a failed try: in nginx's words for the log, and in the terms of `proxy_next_upstream`.

use std::fmt;
use std::io;
use std::ops::ControlFlow;

use weir_http::body::BodyFailed;
use weir_http::conn::Gone;
use weir_http::exchange::Exchange;
use weir_http::h2::reply::Lost;
use weir_http::phase::Outcome;
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
