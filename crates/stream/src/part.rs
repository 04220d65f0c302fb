//! Parts that crates above add to sessions: variables, handlers of phases, and the log.

use std::future::Future;
use std::pin::Pin;

use weir_http::exchange::conf::Location;
use weir_net::{Address, Stream, Transport};

use crate::session::Session;
use crate::variable::Variable;

/// nginx's phases of a session, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The address of a client behind a trusted proxy becomes known.
    PostAccept,
    /// Limits.
    Preaccess,
    /// Whether the client may connect.
    Access,
}

/// The decision of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next handler follows.
    Continue,
    /// The session ends with this status.
    End(u16),
}

/// Whether a server with these settings needs a part.
pub type Wants = fn(&Location) -> bool;

/// A handler. It never waits.
pub type Enter = fn(&mut Session<'_>) -> Next;

/// A handler that waits: the TLS handshake with the client.
pub type Wait = for<'s> fn(&'s mut Session<'_>) -> Pin<Box<dyn Future<Output = Next> + 's>>;

/// Why there is no connection to a peer; it is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// The peer failed: another may follow.
    Peer,
    /// The session ends with this status.
    End(u16),
}

/// Wraps a new connection to a peer: TLS. The text is the name of the group or the host.
pub type Wrap = for<'s> fn(&'s mut Session<'_>, Stream, &'s Address, &'s str) -> Wrapped<'s>;

/// The result of wrapping, later.
pub type Wrapped<'s> = Pin<Box<dyn Future<Output = Result<Transport, Unreached>> + 's>>;

/// The additions of one family to sessions.
pub struct Part {
    /// Its variables.
    pub variables: &'static [Variable],
    /// Its handler of a phase; the function says whether a server needs it, when the configuration is compiled.
    pub handler: Option<(Phase, Wants, Enter)>,
    /// Its handler when the first byte of the peer has come, or the peer's end.
    pub answered: Option<fn(&mut Session<'_>)>,
    /// Its handler at the end of a session.
    pub log: Option<fn(&mut Session<'_>)>,
    /// The handshake with a client of a socket that speaks TLS.
    pub secure: Option<Wait>,
    /// TLS to peers; the function says whether a server needs it.
    pub wrap: Option<(Wants, Wrap)>,
}

impl Part {
    /// A part without anything.
    pub const NOTHING: Part =
        Part { variables: &[], handler: None, answered: None, log: None, secure: None, wrap: None };
}
