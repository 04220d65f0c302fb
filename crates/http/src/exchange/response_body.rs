//! The body of a response, and how the client finds its end.

use std::fs::File;
use std::future::{Future, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use weir_cache::store::Object;

use crate::exchange::Exchange;
use crate::hold::conn::{Conn, Gone};

/// The body of a response.
#[derive(Default)]
pub enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// Bytes that weir made.
    Bytes(Vec<u8>),
    /// A part of a file.
    File {
        /// The open file.
        file: Rc<File>,
        /// Where the part begins.
        offset: u64,
        /// Its length.
        length: u64,
    },
    /// Several parts of a body, each after its own head: `multipart/byteranges`.
    Parts {
        /// The whole that the parts belong to.
        whole: Whole,
        /// The parts in order.
        parts: Vec<Part>,
        /// The text after the last part.
        end: Vec<u8>,
    },
    /// A body from the cache, or a part of it.
    Kept(Kept),
    /// A body that is made while it is sent.
    Stream(Box<dyn BodyStream>),
    /// The upstream's body, still to be read.
    Origin,
}

/// The whole that the parts of a `Body::Parts` belong to.
pub enum Whole {
    /// An open file.
    File(Rc<File>),
    /// A body from the cache.
    Kept(Arc<Object>),
}

/// One part of a `Body::Parts`.
pub struct Part {
    /// The text before it.
    pub head: Vec<u8>,
    /// Where it begins in the whole.
    pub offset: u64,
    /// Its length.
    pub length: u64,
}

/// Changes a body on its way out: gzip, ranges over a stream. Fed in order; `last` comes exactly once, except to a
/// filter that is full. A filter that changes the length removes `content_length` from the response, or sets the right
/// one.
pub trait BodyFilter {
    /// Takes `input`, and appends the bytes to send to `out`. `flush` also appends the bytes that the filter holds
    /// back.
    fn write(&mut self, input: &[u8], flush: bool, last: bool, out: &mut Vec<u8>);

    /// Whether it works on the whole body of the client's answer, with the answers of subrequests in it.
    fn is_outer(&self) -> bool {
        false
    }

    /// Whether its first `write` takes much memory: a client that has no room for the output does not make it run.
    fn is_costly(&self) -> bool {
        false
    }

    /// The state after a `write`.
    fn state(&self) -> FilterState<'_> {
        FilterState::Done
    }

    /// Bytes taken and returned so far, if the filter counts them (`$gzip_ratio`).
    fn bytes(&self) -> Option<(u64, u64)> {
        None
    }
}

/// The state of a filter after a piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterState<'f> {
    /// It is done with the piece.
    Done,
    /// It has more output than it gives at once: `write` must be called again, without input, until it is done.
    Full,
    /// The body cannot be completed; the text is for the error log.
    Failed(&'f str),
}

/// How the client finds the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body at all.
    Bodiless,
    /// `Content-Length`.
    Length,
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The connection closes.
    Close,
    /// The stream ends (HTTP/2).
    Stream,
}

/// A stored body or a part of it.
#[derive(Clone)]
pub struct Kept {
    /// The stored object.
    pub object: Arc<Object>,
    /// Where the part begins.
    pub offset: u64,
    /// Its length; `None`, while the end of the body is not known, for all that follows.
    pub length: Option<u64>,
}

impl Kept {
    /// All of an object's body.
    pub fn whole(object: Arc<Object>) -> Kept {
        let length = object.is_whole().then(|| object.body.len());
        Kept { object, offset: 0, length }
    }

    /// Whether it is the whole body, and the whole body is stored.
    pub fn is_all(&self) -> bool {
        self.offset == 0 && self.object.is_whole() && self.length == Some(self.object.body.len())
    }

    /// Bytes `start..end` of it.
    pub fn cut(&mut self, start: u64, end: u64) {
        self.offset += start;
        self.length = Some(end - start);
    }
}

/// The source of a `Body::Origin`: an answer whose head has come, and whose body is still to be read.
pub trait Source {
    /// Sends `head`, and then the body.
    fn send(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        framing: Framing,
        head: &mut Vec<u8>,
    ) -> impl Future<Output = Result<(), Gone>>;

    /// Reads the next bytes of the body, and appends them to `out`; `true` after the last ones. For a body that does not
    /// go to the client as it is; `close` ends it.
    fn poll_next(
        &mut self,
        exchange: &mut Exchange<'_>,
        context: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<bool, Broken>>;

    /// Whether the client should get each piece at once: filters hold nothing of it back.
    fn is_urgent(&self, exchange: &Exchange<'_>) -> bool;

    /// Ends a body that was read with `poll_next`. `is_sent` if the client got everything that was read.
    fn close(&mut self, exchange: &mut Exchange<'_>, is_sent: bool) -> impl Future<Output = ()>;

    /// No client gets the body. If a cache wants it, reads the body to its end; else leaves it unread.
    fn discard(&mut self, exchange: &mut Exchange<'_>) -> impl Future<Output = ()>;
}

/// The body broke off, and the log says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// The result of reading from a `Stream`.
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<bool, Gone>> + 'a>>;

/// The result of sending a `Stream`.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), Gone>> + 'a>>;

/// A body that is made while it is sent.
pub trait BodyStream {
    /// Sends `head`, and then the body.
    fn send<'a, 'e: 'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange<'e>,
        conn: &'a mut Conn,
        framing: Framing,
        head: &'a mut Vec<u8>,
    ) -> Sending<'a>;

    /// Whether it has an end, and `next` reads it.
    fn is_finite(&self) -> bool {
        false
    }

    /// Appends the next bytes of the body to `out`; `true` after the last ones.
    fn next<'a, 'e: 'a>(
        &'a mut self,
        exchange: &'a mut Exchange<'e>,
        conn: &'a mut Conn,
        out: &'a mut Vec<u8>,
    ) -> Reading<'a> {
        let _ = (exchange, conn, out);
        Box::pin(ready(Err(Gone::Cut)))
    }

    /// Limits the body to bytes `start..end`; a body without an end ignores it.
    fn cut(&mut self, start: u64, end: u64) {
        let _ = (start, end);
    }
}
