//! Sends a request to a peer: the head, then the body from memory, from a file, or while the client sends it.

use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_http::exchange::Exchange;
use weir_http::exchange::request_body::RequestBody;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::own::Owned;
use weir_http::receive::body::{self, BodyFailed};
use weir_http::receive::h2;
use weir_http::receive::h2::ask::Unsent;
use weir_net::{Deadline, Lease, buffer};
use weir_wire::{encode, fastcgi};

use super::failure::{Failure, Progressed};
use super::pool::Link;
use crate::family;
use crate::family::proxy::Values;
use crate::family::proxy::request::BodyFraming;

/// Bytes of a request's body to send at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A request to send to a peer.
#[derive(Clone, Copy)]
pub struct Outgoing<'h> {
    /// The composed head.
    pub head: &'h [u8],
    /// The framing of the body.
    pub framing: BodyFraming,
    /// The text of `proxy_set_body`, which takes the place of the client's body.
    pub text: Option<&'h Rc<[u8]>>,
    /// The location's settings.
    pub values: &'h family::Values,
}

/// The rest of a request that is being sent.
pub(super) struct Sending<'h> {
    head: &'h [u8],
    head_sent: usize,
    /// The peer took less than was offered.
    is_blocked: bool,
    piece: Lease,
    piece_sent: usize,
    file_at: u64,
    body: BodyState,
    /// The text that the location sends in place of the client's body.
    text: Option<Rc<[u8]>>,
    frame: Frame,
    /// The answer has begun and has its own deadlines; the upload uses this one.
    beside: Option<Deadline>,
}

/// The bytes around each piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// None.
    Bare,
    /// Those of a chunk.
    Chunk,
    /// Those of FastCGI's records.
    Record,
}

impl Frame {
    /// A piece of a body in its frame; `is_last` adds the end of the body.
    fn piece(self, bytes: &[u8], is_last: bool) -> Lease {
        let mut piece = buffer::lease(match self {
            Frame::Bare | Frame::Chunk => bytes.len() + 2 * encode::CHUNK_HEAD_BYTES,
            Frame::Record => fastcgi::stdin_bytes(bytes.len()) + fastcgi::HEADER_BYTES,
        });
        match self {
            Frame::Chunk if !bytes.is_empty() => {
                let mut space = [0; encode::CHUNK_HEAD_BYTES];
                piece.extend_from_slice(encode::chunk_head(bytes.len() as u64, &mut space));
                piece.extend_from_slice(bytes);
                piece.extend_from_slice(b"\r\n");
            }
            Frame::Bare | Frame::Chunk => piece.extend_from_slice(bytes),
            Frame::Record => fastcgi::push_stdin(&mut piece, bytes),
        }
        match self {
            Frame::Chunk if is_last => piece.extend_from_slice(b"0\r\n\r\n"),
            Frame::Record if is_last => piece.extend_from_slice(&fastcgi::END_OF_STDIN),
            Frame::Bare | Frame::Chunk | Frame::Record => {}
        }
        piece
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyState {
    /// No bytes follow the head and the current piece.
    Done,
    /// The text of the location or `RequestBody::Memory`, from this byte.
    Memory(usize),
    /// `RequestBody::Memory`, from this byte, in frames.
    Framed(usize),
    /// `RequestBody::File`.
    File,
    /// Still coming from the client.
    Client,
}

impl BodyState {
    pub fn of(exchange: &Exchange<'_>, &Outgoing { framing, text, .. }: &Outgoing<'_>) -> BodyState {
        if framing == BodyFraming::None {
            return BodyState::Done;
        }
        if text.is_some() {
            return BodyState::Memory(0);
        }
        match &exchange.body {
            RequestBody::Unread => BodyState::Client,
            RequestBody::Memory(_) if framing == BodyFraming::Records => BodyState::Framed(0),
            RequestBody::Memory(_) => BodyState::Memory(0),
            RequestBody::File(_) => BodyState::File,
            RequestBody::Gone => BodyState::Done,
        }
    }
}

impl<'h> Sending<'h> {
    pub fn new(Outgoing { head, framing, text, .. }: Outgoing<'h>, body: BodyState) -> Sending<'h> {
        let frame = match framing {
            BodyFraming::None | BodyFraming::Length(_) => Frame::Bare,
            BodyFraming::Chunked => Frame::Chunk,
            BodyFraming::Records => Frame::Record,
        };
        Sending {
            head,
            head_sent: 0,
            is_blocked: false,
            piece: Lease::none(),
            piece_sent: 0,
            file_at: 0,
            body,
            text: text.cloned(),
            frame,
            beside: None,
        }
    }

    /// Over HTTP/2, sends the head at once; frames mark the end of the body.
    pub fn send_head(
        &mut self,
        exchange: &mut Exchange<'_>,
        stream: &h2::stream::Stream,
        framing: BodyFraming,
    ) -> Result<(), Failure> {
        let (ends, length) = match framing {
            BodyFraming::None | BodyFraming::Length(0) => (true, None),
            BodyFraming::Length(length) => (false, Some(length)),
            BodyFraming::Chunked | BodyFraming::Records => (false, None),
        };
        let sent = stream.send_request(self.head, ends, length).map_err(|unsent| match unsent {
            // The stream is over already, and it knows why.
            Unsent::Io(_) => Failure::Lost(stream.lost()),
            Unsent::Invalid(_) => Failure::Unsendable(unsent),
        })?;
        if let Some(attempt) = exchange.tries.last_mut() {
            attempt.bytes_sent += sent as u64;
        }
        (self.head, self.frame) = (&[], Frame::Bare);
        if ends {
            self.body = BodyState::Done;
        }
        Ok(())
    }

    /// The rest of a request whose answer has begun; the head is already sent.
    pub fn into_upload(self) -> Upload {
        Upload { sending: Sending { head: &[], head_sent: 0, beside: Some(Deadline::new()), ..self } }
    }

    /// Sets the time to wait for the client.
    fn await_client(&self, conn: &Conn, time: Duration) {
        self.beside.as_ref().unwrap_or(&conn.deadline).set(time);
    }

    /// Sets the time to wait for the peer.
    fn await_peer(&self, link: &Link, time: Duration) {
        self.beside.as_ref().unwrap_or(&link.deadline).set(time);
    }

    pub fn waits_for_client(&self) -> bool {
        self.body == BodyState::Client && self.head_sent == self.head.len() && self.piece_sent == self.piece.len()
    }

    /// Sends as much as possible; ready when all is sent.
    pub fn poll(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        link: &Link,
        proxy: &Values,
        progressed: &mut Progressed,
    ) -> Poll<Result<(), Failure>> {
        loop {
            if self.piece_sent == self.piece.len()
                && self.body != BodyState::Done
                && !matches!(self.body, BodyState::Memory(_))
            {
                match self.refill(exchange, conn, link) {
                    Poll::Ready(Ok(())) => self.await_client(conn, exchange.location.values.core.body_timeout.longest),
                    Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                    Poll::Pending if self.head_sent == self.head.len() => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            let memory = in_memory(self.body, self.text.as_deref(), exchange);
            let head = self.head.get(self.head_sent..).unwrap_or_default();
            let piece = self.piece.get(self.piece_sent..).unwrap_or_default();
            let wanted = head.len() + piece.len() + memory.len();
            if wanted == 0 {
                return Poll::Ready(self.end(link));
            }
            // weir writes again only when the socket reports room. The kernel may accept a few bytes at any time, and
            // each such write would restart the timeout of a peer that accepts nothing.
            if self.is_blocked {
                if link.stream.poll_writable().is_pending() {
                    return Poll::Pending;
                }
                self.is_blocked = false;
            }
            // Most requests have no body: a single piece needs no vector.
            let written = match [head, piece, memory] {
                [only, [], []] | [[], only, []] | [[], [], only] => link.stream.try_write(only),
                pieces => link.stream.try_write_vectored(&pieces.map(IoSlice::new)),
            };
            match written {
                Ok(count) => {
                    progressed.request_sent = true;
                    if let Some(attempt) = exchange.tries.last_mut() {
                        attempt.bytes_sent += count as u64;
                    }
                    self.advance(count);
                    if count == wanted && self.body == BodyState::Done {
                        return Poll::Ready(self.end(link));
                    }
                    let is_memory = matches!(self.body, BodyState::Memory(_));
                    if count == wanted && is_memory && in_memory(self.body, self.text.as_deref(), exchange).is_empty() {
                        return Poll::Ready(self.end(link));
                    }
                    self.await_peer(link, proxy.send_timeout);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(Failure::Send(error))),
            }
        }
    }

    /// All is sent: ends a stream of unknown length.
    fn end(&self, link: &Link) -> Result<(), Failure> {
        match &link.h2 {
            Some(_) => link.stream.shutdown_write().map_err(Failure::Send),
            None => Ok(()),
        }
    }

    fn advance(&mut self, mut count: usize) {
        let step = count.min(self.head.len() - self.head_sent);
        self.head_sent += step;
        count -= step;
        let step = count.min(self.piece.len() - self.piece_sent);
        self.piece_sent += step;
        count -= step;
        if let BodyState::Memory(from) = &mut self.body {
            *from += count;
        }
    }

    /// The next piece of a body from a file or from the client.
    fn refill(&mut self, exchange: &mut Exchange<'_>, conn: &Conn, link: &Link) -> Poll<Result<(), Failure>> {
        self.piece_sent = 0;
        self.piece.clear();
        match self.body {
            BodyState::File => return Poll::Ready(self.refill_from_file(exchange)),
            BodyState::Framed(from) => {
                self.refill_from_memory(exchange, from);
                return Poll::Ready(Ok(()));
            }
            BodyState::Done | BodyState::Memory(_) | BodyState::Client => {}
        }
        let mut bytes = buffer::lease(PIECE_BYTES);
        let done = match body::poll_read(exchange, conn, &mut bytes) {
            Poll::Ready(Ok(done)) => done,
            Poll::Ready(Err(failed)) => return Poll::Ready(Err(Failure::Body(failed))),
            Poll::Pending => return Poll::Pending,
        };
        if done {
            // Lets the last frame carry the end flag.
            if let Some(stream) = &link.h2 {
                stream.promise(bytes.len() as u64);
            }
            self.body = BodyState::Done;
            exchange.body = RequestBody::Gone;
        }
        self.piece = self.frame.piece(&bytes, done);
        Poll::Ready(Ok(()))
    }

    /// The next piece of a body that is in memory and needs frames.
    fn refill_from_memory(&mut self, exchange: &Exchange<'_>, from: usize) {
        let RequestBody::Memory(all) = &exchange.body else {
            self.body = BodyState::Done;
            return;
        };
        let end = (from + PIECE_BYTES).min(all.len());
        self.body = if end == all.len() { BodyState::Done } else { BodyState::Framed(end) };
        self.piece = self.frame.piece(all.get(from..end).unwrap_or_default(), self.body == BodyState::Done);
    }

    fn refill_from_file(&mut self, exchange: &Exchange<'_>) -> Result<(), Failure> {
        let RequestBody::File(body) = &exchange.body else {
            self.body = BodyState::Done;
            return Ok(());
        };
        let count = (body.length() - self.file_at).min(PIECE_BYTES as u64) as usize;
        let mut bytes = buffer::lease(count);
        bytes.resize(count, 0);
        body.file().read_exact_at(&mut bytes, self.file_at).map_err(|_| Failure::Body(BodyFailed::Status(500)))?;
        self.file_at += count as u64;
        if self.file_at >= body.length() {
            self.body = BodyState::Done;
        }
        self.piece = match self.frame {
            Frame::Bare => bytes,
            Frame::Chunk | Frame::Record => self.frame.piece(&bytes, self.body == BodyState::Done),
        };
        Ok(())
    }
}

/// The rest of a body in memory: of the text that the location sends, or of the client's body.
fn in_memory<'m>(body: BodyState, text: Option<&'m [u8]>, exchange: &'m Exchange<'_>) -> &'m [u8] {
    let BodyState::Memory(from) = body else { return &[] };
    let all = match (text, &exchange.body) {
        (Some(text), _) => text,
        (None, RequestBody::Memory(bytes)) => bytes.as_slice(),
        (None, _) => &[],
    };
    all.get(from..).unwrap_or_default()
}

/// The rest of a request whose answer has begun: over HTTP/2 both continue at the same time.
pub struct Upload {
    sending: Sending<'static>,
}

impl Owned for Upload {}

impl Upload {
    /// Sends as much as possible; ready when all is sent, or when the peer wants no more.
    pub fn poll(&mut self, exchange: &mut Exchange<'_>, conn: &Conn, link: &Link) -> Poll<Result<(), Failure>> {
        let (core, proxy) = (&exchange.location.values.core, &crate::values(exchange.location).proxy);
        match self.sending.poll(exchange, conn, link, proxy, &mut Progressed::default()) {
            // The answer shows why sending broke.
            Poll::Ready(Ok(()) | Err(Failure::Send(_))) => Poll::Ready(Ok(())),
            Poll::Ready(Err(failure)) => Poll::Ready(Err(failure)),
            Poll::Pending => {
                let Some(deadline) = &self.sending.beside else { return Poll::Pending };
                let waits_for_client = self.sending.waits_for_client();
                if !deadline.is_set() {
                    deadline.set(if waits_for_client { core.body_timeout.longest } else { proxy.send_timeout });
                }
                let late = if waits_for_client { Failure::Client(Gone::TimedOut) } else { Failure::TimedOut };
                deadline.poll_expired().map(|()| Err(late))
            }
        }
    }
}
