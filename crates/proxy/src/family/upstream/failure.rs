//! Why a try at a peer got no head, and how far it came.

use std::io;

use weir_http::hold::conn::Gone;
use weir_http::receive::body::BodyFailed;
use weir_http::receive::h2::ask::Unsent;
use weir_http::receive::h2::reply::Lost;
use weir_wire::Violation;

use crate::family::proxy_ssl::fault::Fault;

/// Why a try got no head.
#[derive(Debug)]
pub enum Failure {
    /// The connection failed.
    Connect(io::Error),
    /// TLS with the right upstream could not be established.
    Tls(Fault),
    /// The connection broke while weir was sending.
    Send(io::Error),
    /// The connection broke while weir was waiting for the head.
    Receive(io::Error),
    /// The peer closed before the head was complete.
    Closed,
    /// A step took too long.
    TimedOut,
    /// The head is not valid HTTP, or too large.
    Head(HeadFault),
    /// The client's body failed.
    Body(BodyFailed),
    /// The client left.
    Client(Gone),
    /// The worker's connection table is full; this is already logged.
    TableFull,
    /// The stream ended too early (HTTP/2).
    Lost(Lost),
    /// HTTP/2 cannot carry the request.
    Unsendable(Unsent),
}

/// The fault of an answer's head.
#[derive(Clone, Copy, Debug)]
pub enum HeadFault {
    /// It violates a rule.
    Violation(Violation),
    /// It does not fit `proxy_buffer_size`.
    TooBig,
    /// It switches protocols, and weir did not ask for that.
    Switched,
    /// A fault of another protocol than HTTP, which is already logged.
    Told,
}

/// How far a try got, to decide whether another may follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progressed {
    /// A part of the request was written.
    pub request_sent: bool,
    /// A byte of the answer arrived.
    pub response_begun: bool,
    /// The whole request was written.
    pub request_complete: bool,
}
