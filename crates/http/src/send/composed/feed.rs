//! Reads the own body of a composed response, piece by piece.

use std::fs::File;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use weir_cache::store::{Piece, Reader};
use weir_net::log::Level;
use weir_net::opening;

use crate::exchange::Exchange;
use crate::exchange::response_body::{Body, BodyStream, Broken, Kept, Part, Source, Whole};
use crate::hold::conn::{Conn, Gone};

/// A file is read in pieces of this size, and so are stored bodies.
const PIECE_BYTES: usize = 32 << 10;

/// The own body.
pub enum Feed<S> {
    /// All of it was read.
    Empty,
    /// Bytes of weir's own.
    Bytes(Vec<u8>),
    /// A part of a file.
    File { file: Rc<File>, at: u64, end: u64 },
    /// A stored body; `left` is `None` while its length is not known.
    Kept { reader: Reader, left: Option<u64> },
    /// An upstream's body.
    Origin(S),
    /// A body that is made while it is sent.
    Stream(Box<dyn BodyStream>),
    /// Heads and parts of a body, the next one last.
    Several(Vec<Feed<S>>),
}

impl<S: Source> Feed<S> {
    /// The body of a response, or its source.
    pub fn of(body: Body, source: Option<S>) -> Feed<S> {
        match (body, source) {
            (_, Some(source)) => Feed::Origin(source),
            (Body::Bytes(bytes), None) => Feed::Bytes(bytes),
            (Body::File { file, offset, length }, None) => {
                Feed::File { file, at: offset, end: offset.saturating_add(length) }
            }
            (Body::Kept(kept), None) => Feed::Kept { reader: Reader::new(kept.object, kept.offset), left: kept.length },
            (Body::Stream(stream), None) => Feed::Stream(stream),
            (Body::Parts { whole, parts, end }, None) => Feed::parts(&whole, parts, end),
            (Body::Empty | Body::Origin, None) => Feed::Empty,
        }
    }

    fn parts(whole: &Whole, parts: Vec<Part>, end: Vec<u8>) -> Feed<S> {
        let mut feeds = vec![Feed::Bytes(end)];
        for Part { head, offset, length } in parts.into_iter().rev() {
            let body = match whole {
                Whole::File(file) => Body::File { file: file.clone(), offset, length },
                Whole::Kept(object) => Body::Kept(Kept { object: object.clone(), offset, length: Some(length) }),
            };
            feeds.push(Feed::of(body, None));
            feeds.push(Feed::Bytes(head));
        }
        Feed::Several(feeds)
    }

    /// Whether `next` reads it, not `poll`.
    pub fn needs_future(&self) -> bool {
        matches!(self, Feed::Stream(_))
    }

    /// The next bytes of a body that is made while it is sent; `true` after the last ones.
    pub async fn next(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        out: &mut Vec<u8>,
    ) -> Result<bool, Gone> {
        match self {
            Feed::Stream(stream) => stream.next(exchange, conn, out).await,
            _ => Ok(true),
        }
    }

    /// The next bytes; `true` after the last ones. An error means that the body broke off.
    pub fn poll(
        &mut self,
        exchange: &mut Exchange<'_>,
        context: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<bool, Broken>> {
        match self {
            Feed::Empty | Feed::Stream(_) => Poll::Ready(Ok(true)),
            Feed::Bytes(bytes) => {
                *out = std::mem::take(bytes);
                Poll::Ready(Ok(true))
            }
            Feed::File { file, at, end } => {
                let count = usize::try_from(*end - *at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
                Poll::Ready(read(exchange, file, (at, count), out).map(|()| *at >= *end))
            }
            Feed::Kept { reader, left } => poll_kept(exchange, context, (reader, left), out),
            Feed::Origin(source) => source.poll_next(exchange, context, out),
            Feed::Several(feeds) => {
                let Some(feed) = feeds.last_mut() else { return Poll::Ready(Ok(true)) };
                let is_last = ready!(feed.poll(exchange, context, out))?;
                if is_last {
                    feeds.pop();
                }
                Poll::Ready(Ok(feeds.is_empty()))
            }
        }
    }

    /// Ends it. `is_sent` if the client got all of it.
    pub async fn close(self, exchange: &mut Exchange<'_>, is_sent: bool) {
        if let Feed::Origin(mut source) = self {
            source.close(exchange, is_sent).await;
        }
    }
}

fn read(
    exchange: &mut Exchange<'_>,
    file: &File,
    (at, count): (&mut u64, usize),
    out: &mut Vec<u8>,
) -> Result<(), Broken> {
    opening::read_at(file, *at, count, out).map_err(|error| {
        out.clear();
        exchange.log(Level::Crit, format_args!("pread() failed or the file was truncated: {error}"));
        Broken
    })?;
    *at += count as u64;
    Ok(())
}

fn poll_kept(
    exchange: &mut Exchange<'_>,
    context: &Context<'_>,
    (reader, left): (&mut Reader, &mut Option<u64>),
    out: &mut Vec<u8>,
) -> Poll<Result<bool, Broken>> {
    if *left == Some(0) {
        return Poll::Ready(Ok(true));
    }
    let piece = match reader.poll_piece(context) {
        Poll::Pending => return Poll::Pending,
        Poll::Ready(Some(Ok(piece))) => piece,
        // The body ended before its length, or the exchange that fetches it lost the origin.
        Poll::Ready(None) if left.is_none() => return Poll::Ready(Ok(true)),
        Poll::Ready(None | Some(Err(_))) => return Poll::Ready(Err(Broken)),
    };
    let count = usize::try_from(piece.len().min(left.unwrap_or(u64::MAX))).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
    match &piece {
        Piece::Memory(..) => {
            out.extend_from_slice(piece.bytes().and_then(|bytes| bytes.get(..count)).unwrap_or_default());
        }
        Piece::File(body) => {
            if read(exchange, &body.file, (&mut { body.offset }, count), out).is_err() {
                return Poll::Ready(Err(Broken));
            }
        }
    }
    reader.advance(count as u64);
    *left = left.map(|left| left - count as u64);
    Poll::Ready(Ok(*left == Some(0)))
}
