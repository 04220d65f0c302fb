//! A request as it was composed for HTTP/1.1 goes out as HTTP/2: one place composes, whatever is spoken.

use std::fmt;
use std::io;

use weir_wire::h2::composed::Composed;

use super::stream::Stream;

/// Why a request cannot be sent.
#[derive(Debug)]
pub enum Unsent {
    /// Its connection is gone.
    Io(io::Error),
    /// A variable of it holds what no field may hold.
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
    /// Sends a request's head, composed as HTTP/1.1 has it; gives its length as it goes out. `ends` when no body
    /// follows, `length` is the body's where that is known.
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
