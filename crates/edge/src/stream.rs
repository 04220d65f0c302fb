//! Bodies that other parts of the edge make or read while they are sent.

use std::future::Future;
use std::pin::Pin;

use crate::conn::{Conn, Gone};
use crate::exchange::Exchange;
use crate::response_body::Framing;

/// The source of a `Body::Origin`: an answer whose head has come, and whose body is still to be read.
pub trait Source {
    /// Sends `head`, and then the body.
    fn send(
        self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        framing: Framing,
        head: &mut Vec<u8>,
    ) -> impl Future<Output = Result<(), Gone>>;

    /// No client gets the body. If a cache wants it, reads the body to its end; else leaves it unread.
    fn discard(self, exchange: &mut Exchange<'_>) -> impl Future<Output = ()>;
}

/// The result of sending a `Stream`.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), Gone>> + 'a>>;

/// A body that is made while it is sent.
pub trait Stream {
    /// Sends `head`, and then the body.
    fn send<'a, 'e: 'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange<'e>,
        conn: &'a mut Conn,
        framing: Framing,
        head: &'a mut Vec<u8>,
    ) -> Sending<'a>;

    /// Limits the body to bytes `start..end`; a body without an end ignores it.
    fn cut(&mut self, start: u64, end: u64) {
        let _ = (start, end);
    }
}

/// A reader of a body on its way to the client.
pub trait Along {
    /// Reads the next bytes.
    fn read(&mut self, bytes: &[u8]);

    /// The body is complete. If it does not become complete, the reader is dropped.
    fn end(self: Box<Self>);
}
