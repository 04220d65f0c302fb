//! Sends a request that was composed for HTTP/1.1 as HTTP/2: one place composes requests for all protocols.

use std::fmt;
use std::io;

use weir_wire::section::composed::Composed;

use super::stream::Stream;

/// Why a request cannot be sent.
#[derive(Debug)]
pub enum Unsent {
    /// Its connection is gone.
    Io(io::Error),
    /// One of its variables contains bytes that no field may contain.
    Invalid(&'static str),
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsent::Io(error) => error.fmt(f),
            Unsent::Invalid(what) => write!(f, "the request cannot be sent over HTTP/2: {what}"),
        }
    }
}

impl Stream {
    /// Sends a request's head that was composed for HTTP/1.1; returns its length on the wire. `ends` if no body
    /// follows; `length` is the length of the body, if known.
    pub fn send_request(&self, text: &[u8], ends: bool, length: Option<u64>) -> Result<usize, Unsent> {
        let composed = Composed::read(text).map_err(Unsent::Invalid)?;
        if composed.method == b"HEAD"
            && let Some(replies) = self.replies()
        {
            replies.expect_no_body();
        }
        let scheme: &[u8] = if self.session().transport().is_secure() { b"https" } else { b"http" };
        let sent = self.send_head(ends, length, |encoder, out| composed.write(scheme, encoder, out));
        sent.map_err(Unsent::Io)
    }
}
