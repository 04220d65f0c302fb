//! A request for A and B, and all that one of them showed for it.

use std::sync::Arc;

use weir_cache::personal;

use crate::logs::LoggedLine;

/// The number of arms.
pub const ARMS: usize = 3;

/// One of the three that answer each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arm {
    /// A.
    First,
    /// A again. If swap starts A, this is a second server with the same configuration: each has its own cache, counts
    /// and turns, so that both have answered the same requests before.
    Again,
    /// B.
    B,
}

impl Arm {
    /// All arms.
    pub const ALL: [Arm; ARMS] = [Arm::First, Arm::Again, Arm::B];
}

/// A field of a message: its name and its value, as bytes of the message.
pub type SwapField = (Vec<u8>, Vec<u8>);

/// A request that both sides answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwapRequest {
    /// The index of its door in [`crate::side::Bench::doors`].
    pub door: usize,
    /// The method.
    pub method: String,
    /// The value of `Host`, with the port that a client of A would send.
    pub host: String,
    /// Path and query, as a client sends them.
    pub target: Vec<u8>,
    /// The other fields, in their order; without `Connection` and without those that frame the body.
    pub fields: Vec<SwapField>,
    /// The body.
    pub body: Vec<u8>,
    /// The request has the version HTTP/1.0.
    pub is_http10: bool,
    /// The client. Requests of one client keep their order.
    pub client: u64,
    /// The moment of the request, in microseconds since the first one.
    pub at_us: u64,
    /// The client's cookies are sent. A request with a `Cookie` keeps it, with the values that the arm gave.
    pub takes_cookies: bool,
    /// The validators of the answer are asked for, in requests of their own.
    pub wants_conditions: bool,
    /// The facts that a recording has about the request.
    pub recorded: Option<Arc<Recorded>>,
}

/// The facts that a recording has about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The fields of its answer.
    pub fields: Vec<SwapField>,
    /// The body of its answer without content coding; empty if the recording does not have it.
    pub body: Vec<u8>,
    /// The places of the request at which the recording has a hash for a secret.
    pub hidden: Vec<Hidden>,
}

/// A place in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The text.
    pub text: HiddenText,
    /// Begin and end in it, in bytes.
    pub span: (usize, usize),
}

/// A text of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenText {
    /// The target.
    Target,
    /// The value of the field with this index.
    Field(usize),
    /// The body.
    Body,
}

/// An answer, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapAnswer {
    /// It arrived.
    Whole(WholeAnswer),
    /// The exchange failed, under this name: `ECONNRESET`.
    Failed(String),
}

impl SwapAnswer {
    /// The status; 0 without an answer.
    pub fn status(&self) -> u16 {
        match self {
            SwapAnswer::Whole(answer) => answer.status,
            SwapAnswer::Failed(_) => 0,
        }
    }

    /// It did not end within the time of an exchange.
    pub fn is_late(&self) -> bool {
        matches!(self, SwapAnswer::Failed(name) if name == "ETIMEDOUT")
    }
}

/// A complete answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholeAnswer {
    /// The status.
    pub status: u16,
    /// The fields in their order, with their names as the server writes them.
    pub fields: Vec<SwapField>,
    /// The body without its content coding, up to [`crate::ask::BODY_KEPT_MAX`] bytes.
    pub body: Vec<u8>,
    /// The length of the body as received, without chunk lines.
    pub body_bytes: u64,
}

/// All that one side showed for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The answer that the client got.
    pub answer: SwapAnswer,
    /// The lines that the server wrote into its access logs for the request.
    pub log: Vec<LoggedLine>,
    /// The requests that the server sent to origins for it, in their order.
    pub origin: Vec<OriginRequest>,
    /// The request had credentials or the cookie of a session: weir's caches share nothing with it.
    pub is_personal: bool,
}

/// A request that a side sent to an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginRequest {
    /// The origin, as the configuration says it: `app:3000`.
    pub to: String,
    /// The request line without the version: method and target.
    pub line: Vec<u8>,
    /// The version of HTTP, as in the request line.
    pub version: Vec<u8>,
    /// The fields in their order.
    pub fields: Vec<SwapField>,
    /// The body without its framing.
    pub body: Vec<u8>,
}

impl SwapRequest {
    /// The first field of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        field(&self.fields, name)
    }

    /// The request has credentials or the cookie of a session.
    pub fn is_personal(&self) -> bool {
        self.field("authorization").is_some() || self.field("cookie").is_some_and(personal::has_session)
    }

    /// Sets a field, or adds it.
    pub fn set(&mut self, name: &str, value: &[u8]) {
        let known = self.fields.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        match known {
            Some((_, known)) => *known = value.to_vec(),
            None => self.fields.push((name.as_bytes().to_vec(), value.to_vec())),
        }
    }
}

impl Observed {
    /// An answer without anything beside it.
    pub fn of(answer: SwapAnswer) -> Observed {
        Observed { answer, log: Vec::new(), origin: Vec::new(), is_personal: false }
    }
}

impl WholeAnswer {
    /// The first field of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        field(&self.fields, name)
    }
}

/// The first field of that name, in any case.
pub fn field<'f>(fields: &'f [SwapField], name: &str) -> Option<&'f [u8]> {
    let mut named = fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
    named.next().map(|(_, value)| value.as_slice())
}
