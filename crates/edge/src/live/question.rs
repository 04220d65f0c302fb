//! A question to the observer, and its answer.

/// Questions that wait for the observer, at most; one more is refused.
pub const QUESTIONS_MAX: usize = 64;

/// The question of a request.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The method.
    pub method: String,
    /// The part of the path after the location; `None` asks for metrics.
    pub path: Option<String>,
    /// The query string.
    pub query: String,
    /// `api write=on`.
    pub may_write: bool,
    /// The client, for the log.
    pub client: String,
    /// The body of a write.
    pub body: Vec<u8>,
    /// The address that accepted the request.
    pub address: String,
    /// `$request_id`.
    pub request_id: String,
    /// OpenMetrics, and not Prometheus' older text format.
    pub wants_openmetrics: bool,
}

/// The answer of the observer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}
