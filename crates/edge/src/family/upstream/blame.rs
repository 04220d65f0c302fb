//! What a failed try is called: by the log in nginx's words, by `proxy_next_upstream` in its own.

use std::io;
use std::ops::ControlFlow;

use weir_meter::live::cells::Why;
use weir_wire::Violation;

use super::attempt::{Failure, HeadFault};
use super::forward::Answer;
use super::retry;
use crate::body::Failed;
use crate::conn::Gone;
use crate::exchange::Exchange;
use crate::family::proxy_ssl::handshake::{self, Broken};
use crate::h2::Lost;
use crate::log::{self, Level};
use crate::phase::Outcome;

/// What a failed try is counted under.
pub fn why(failure: &Failure) -> Why {
    match failure {
        Failure::Connect(error) | Failure::Send(error) | Failure::Receive(error) => why_of(error),
        Failure::Tls(_) => Why::Tls,
        Failure::Closed => Why::Closed,
        Failure::TimedOut => Why::TimedOut,
        Failure::Head(_) => Why::BadHead,
        Failure::Lost(_) => Why::Closed,
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

/// Logs a failed try, and names it as `proxy_next_upstream` knows it; breaks with the answer to a failure that
/// is not the peer's.
pub fn blame(exchange: &mut Exchange<'_>, failure: Failure) -> ControlFlow<Answer, retry::Failure> {
    let kind = match failure {
        Failure::Connect(error) => {
            exchange.log(Level::Error, format_args!("connect() failed {}", log::Os(&error)));
            retry::Failure::Error
        }
        Failure::Tls(fault) => {
            if !handshake::tell(exchange, &fault) {
                return ControlFlow::Break(Answer::Outcome(Outcome::Status(500)));
            }
            retry::Failure::Error
        }
        Failure::Send(error) => {
            exchange.log(Level::Error, format_args!("{}", Broken("writev()", "SSL_write()", &error)));
            retry::Failure::Error
        }
        Failure::Receive(error) => {
            exchange.log(Level::Error, format_args!("{}", Broken("recv()", "SSL_read()", &error)));
            retry::Failure::Error
        }
        Failure::Closed => {
            exchange.log(Level::Error, format_args!("upstream prematurely closed connection"));
            retry::Failure::Error
        }
        Failure::TimedOut => {
            exchange.log(Level::Error, format_args!("upstream timed out (110: Connection timed out)"));
            retry::Failure::Timeout
        }
        Failure::Head(HeadFault::TooBig) => {
            exchange.log(Level::Error, format_args!("upstream sent too big header"));
            retry::Failure::InvalidHeader
        }
        Failure::Head(HeadFault::Violation(violation)) => {
            exchange.log(Level::Error, format_args!("{}", violation.upstream_message()));
            retry::Failure::InvalidHeader
        }
        Failure::Lost(lost) => {
            exchange.log(Level::Error, format_args!("{}", lost));
            match lost {
                // nginx: a reset instead of an answer is an answer that is none.
                Lost::TooBig | Lost::Malformed(_) | Lost::Rejected(_) => retry::Failure::InvalidHeader,
                Lost::Unprocessed(_) | Lost::Closed => retry::Failure::Error,
            }
        }
        Failure::Unsendable(unsent) => {
            exchange.log(Level::Error, format_args!("{unsent}"));
            return ControlFlow::Break(Answer::Outcome(Outcome::Status(500)));
        }
        // nginx: an internal error, and no peer's fault.
        Failure::TableFull => return ControlFlow::Break(Answer::Outcome(Outcome::Status(500))),
        Failure::Body(Failed::Status(status)) => return ControlFlow::Break(Answer::Outcome(Outcome::Status(status))),
        Failure::Body(Failed::Gone(gone)) => return ControlFlow::Break(Answer::Gone(gone)),
        // What came on its stream is not the message it began as.
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
