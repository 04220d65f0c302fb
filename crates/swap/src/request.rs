//! A request for A and B, and all that one of them showed for it.

/// A field of a message: its name and its value, as bytes of the message.
pub type SwapField = (Vec<u8>, Vec<u8>);

/// A request that both sides answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwapRequest {
    /// The index of the door in the list of [`crate::side::SwapDoor`]s.
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
}

/// An answer, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapAnswer {
    /// It arrived.
    Whole(WholeAnswer),
    /// The exchange failed, under this name: `ECONNRESET`.
    Failed(String),
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
    pub log: Vec<Vec<u8>>,
    /// The requests that the server sent to origins for it, in their order.
    pub origin: Vec<OriginRequest>,
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

impl Observed {
    /// An answer without anything beside it.
    pub fn of(answer: SwapAnswer) -> Observed {
        Observed { answer, log: Vec::new(), origin: Vec::new() }
    }
}

impl WholeAnswer {
    /// The first field of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut named = self.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        named.next().map(|(_, value)| value.as_slice())
    }
}
