//! One try at one peer: connect or reuse, send, await the head.
//!
//! Envelope with a pooled connection: one `writev` for head and body, one `read` that usually brings head and
//! body of the answer. While it waits it also watches the client: nobody works for one who has left.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::task::Poll;
use std::time::Duration;

use weir_meter::Step;
use weir_net::{ConnectOptions, Deadline, Lease, Stream, Transport, buffer, clock};
use weir_wire::{Progress, Version, Violation, encode};

use super::line::Opened;
use super::pool::{Link, Terms};
use crate::body::{self, Failed as BodyFailed, RequestBody};
use crate::conn::{Conn, Gone};
use crate::exchange::{Exchange, Origin, Try};
use crate::family::early_hints;
use crate::family::proxy::request::BodyFraming;
use crate::family::proxy_ssl::handshake::{Fault, shake_hands};
use crate::h2::{self, Lost, Unsent};

/// Bytes of an answer read at a time before its body's length is known.
const READ_BYTES: usize = 16 << 10;

/// Pieces of a request's body sent at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Interim answers (1xx) taken before the final one.
const INTERIM_MAX: u32 = 16;

/// Why a try did not come to a head.
#[derive(Debug)]
pub enum Failure {
    /// The connection could not be made.
    Connect(io::Error),
    /// It could not be made a TLS connection to the right upstream.
    Tls(Fault),
    /// It broke while sending.
    Send(io::Error),
    /// It broke while the head was awaited.
    Receive(io::Error),
    /// The peer closed before the head was complete.
    Closed,
    /// A step took too long.
    TimedOut,
    /// The head is not HTTP, or too large.
    Head(HeadFault),
    /// The client's body failed.
    Body(BodyFailed),
    /// The client left.
    Client(Gone),
    /// The worker's connection table is full; the log has it.
    TableFull,
    /// Its stream ended before its time (HTTP/2).
    Lost(Lost),
    /// The request holds what HTTP/2 cannot carry.
    Unsendable(Unsent),
}

/// What is wrong with an answer's head.
#[derive(Clone, Copy, Debug)]
pub enum HeadFault {
    /// It breaks a rule.
    Violation(Violation),
    /// It does not fit `proxy_buffer_size`.
    TooBig,
}

/// How far a try came, for the decision whether another may follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progressed {
    /// Something of the request was written.
    pub request_sent: bool,
    /// A byte of the answer came.
    pub response_begun: bool,
    /// The whole request was written.
    pub request_complete: bool,
}

/// Opens a connection to a peer on these terms; connecting and shaking hands take `proxy_connect_timeout` together.
pub async fn connect(
    exchange: &mut Exchange<'_>,
    conn: &Conn,
    address: &weir_net::Address,
    peer: usize,
    terms: Terms<'_>,
) -> Result<Box<Link>, Failure> {
    let (Opened { stream, place, at: opened, .. }, deadline) = dial(exchange, conn, address, terms).await?;
    let Terms { bound, party } = terms;
    let (party, place) = (party.cloned(), Some(place));
    Ok(Box::new(Link { stream, deadline, peer, bound, party, opened, carried: 0, place, h2: None }))
}

/// The connection itself, with what bounded it.
pub async fn dial(
    exchange: &mut Exchange<'_>,
    conn: &Conn,
    address: &weir_net::Address,
    Terms { bound, party }: Terms<'_>,
) -> Result<(Opened, Deadline), Failure> {
    let location = exchange.location;
    let values = &location.values.proxy;
    let options = ConnectOptions {
        bind: bound,
        receive_buffer_bytes: values.receive_buffer as usize,
        send_buffer_bytes: values.send_buffer as usize,
        keepalive: values.socket_keepalive,
    };
    exchange.step = Step::Connect;
    let place = exchange.worker.take_place().ok_or(Failure::TableFull)?;
    let stream = Stream::connect(address, &options).map_err(Failure::Connect)?;
    let (deadline, opened) = (Deadline::new(), clock::now());
    deadline.set(values.connect_timeout);
    let watch = exchange.is_for_its_client_alone();
    poll_fn(|_| {
        if stream.poll_writable().is_ready() {
            return Poll::Ready(Ok(()));
        }
        if watch && let Poll::Ready(error) = conn.poll_gone() {
            return Poll::Ready(Err(Failure::Client(Gone::Closed(error))));
        }
        deadline.poll_expired().map(|()| Err(Failure::TimedOut))
    })
    .await?;
    // Only now is it known whether the connection stands.
    stream.connected(&deadline).await.map_err(Failure::Connect)?;
    let stream: Transport = match party {
        None => stream.into(),
        // Boxed: few exchanges shake hands, and every one would hold the room for it.
        Some(party) => Box::pin(shake_hands(exchange, conn, stream, address, party, &deadline)).await?.into(),
    };
    Ok((Opened { stream, place, at: opened, opening: None }, deadline))
}

/// A request as it goes to a peer.
#[derive(Clone, Copy)]
pub struct Outgoing<'h> {
    /// Its head, as composed.
    pub head: &'h [u8],
    /// How its body is framed.
    pub framing: BodyFraming,
}

/// Sends the request over `link` and reads the answer's head.
pub async fn exchange_heads(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    link: &Link,
    outgoing: Outgoing<'_>,
    progressed: &mut Progressed,
) -> Result<Box<Origin>, Failure> {
    let body = BodyState::of(exchange, outgoing.framing);
    let streams = body == BodyState::Client;
    if streams {
        body::welcome(exchange, conn).await.map_err(Failure::Client)?;
    }
    let mut sending = Sending::new(outgoing, body);
    exchange.step = Step::SendRequest;
    if let Some(stream) = &link.h2 {
        sending.send_head(exchange, stream, outgoing.framing)?;
        progressed.request_sent = true;
    }
    let mut heads =
        Heads { link, progressed, streams, is_timed: false, sending, reading: Reading::default() };
    if streams {
        conn.deadline.set(exchange.location.values.core.body_timeout);
    }
    loop {
        match poll_fn(|_| heads.poll(exchange, conn)).await? {
            Received::Final(origin) => {
                let Heads { sending, progressed, .. } = heads;
                if link.h2.is_some() && !progressed.request_complete {
                    exchange.upload = Some(Box::new(Upload { sending: sending.beside() }));
                }
                return Ok(origin);
            }
            // Boxed: few answers have one before them, and every exchange would hold the room for it.
            Received::Interim(origin) => Box::pin(heads.pass_on(exchange, conn, origin)).await?,
        }
    }
}

/// A request on its way to a peer and the answer's head on its way back.
struct Heads<'h> {
    link: &'h Link,
    progressed: &'h mut Progressed,
    /// The body passes through as the client sends it.
    streams: bool,
    /// A deadline stands: requests that leave at once need none for being sent.
    is_timed: bool,
    sending: Sending<'h>,
    reading: Reading,
}

impl Heads<'_> {
    /// Lets the client have an interim answer, and goes on to what follows it.
    async fn pass_on(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        origin: Box<Origin>,
    ) -> Result<(), Failure> {
        early_hints::pass(exchange, conn, &origin).await.map_err(Failure::Client)?;
        self.reading.go_on(origin);
        self.link.deadline.set(exchange.location.values.proxy.read_timeout);
        if self.streams {
            conn.deadline.set(exchange.location.values.core.body_timeout);
        }
        Ok(())
    }

    fn poll(&mut self, exchange: &mut Exchange<'_>, conn: &Conn) -> Poll<Result<Received, Failure>> {
        let (link, proxy) = (self.link, &exchange.location.values.proxy);
        if !self.progressed.request_complete {
            match self.sending.poll(exchange, conn, link, self.progressed) {
                Poll::Ready(Ok(())) => {
                    self.progressed.request_complete = true;
                    exchange.step = Step::AwaitHead;
                    link.deadline.set(proxy.read_timeout);
                }
                // An answer may have come before the peer stopped reading: look for it first.
                Poll::Ready(Err(Failure::Send(error))) => match self.reading.poll(exchange, link, self.progressed) {
                    Poll::Ready(Ok(received)) => return Poll::Ready(Ok(received)),
                    _ => return Poll::Ready(Err(Failure::Send(error))),
                },
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Pending if !self.is_timed => link.deadline.set(proxy.send_timeout),
                Poll::Pending => {}
            }
            self.is_timed = true;
        }
        if let Poll::Ready(result) = self.reading.poll(exchange, link, self.progressed) {
            return Poll::Ready(result);
        }
        if (!self.streams || self.progressed.request_complete)
            && exchange.is_for_its_client_alone()
            && let Poll::Ready(error) = conn.poll_gone()
        {
            return Poll::Ready(Err(Failure::Client(Gone::Closed(error))));
        }
        if self.streams && !self.progressed.request_complete && self.sending.waits_for_client() {
            // The pause is the client's: the peer's clock stands still.
            link.deadline.set(proxy.send_timeout.max(proxy.read_timeout));
            return conn.deadline.poll_expired().map(|()| Err(Failure::Client(Gone::TimedOut)));
        }
        link.deadline.poll_expired().map(|()| Err(Failure::TimedOut))
    }
}

/// What is still to be sent of a request.
struct Sending<'h> {
    head: &'h [u8],
    head_sent: usize,
    piece: Lease,
    piece_sent: usize,
    file_at: u64,
    body: BodyState,
    chunked: bool,
    /// The answer is under way already, and its deadlines are its own.
    beside: Option<Deadline>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    /// Nothing beyond head and piece.
    Done,
    /// `RequestBody::Memory`, from this byte.
    Memory(usize),
    /// `RequestBody::File`.
    File,
    /// Still coming from the client.
    Client,
}

impl BodyState {
    fn of(exchange: &Exchange<'_>, framing: BodyFraming) -> BodyState {
        if framing == BodyFraming::None {
            return BodyState::Done;
        }
        match &exchange.body {
            RequestBody::Unread => BodyState::Client,
            RequestBody::Memory(_) => BodyState::Memory(0),
            RequestBody::File { .. } => BodyState::File,
            RequestBody::Gone => BodyState::Done,
        }
    }
}

impl<'h> Sending<'h> {
    fn new(Outgoing { head, framing }: Outgoing<'h>, body: BodyState) -> Sending<'h> {
        let chunked = framing == BodyFraming::Chunked;
        Sending { head, head_sent: 0, piece: Lease::none(), piece_sent: 0, file_at: 0, body, chunked, beside: None }
    }

    /// Over HTTP/2 the head goes out at once, and frames tell where the body ends.
    fn send_head(
        &mut self,
        exchange: &mut Exchange<'_>,
        stream: &h2::Stream,
        framing: BodyFraming,
    ) -> Result<(), Failure> {
        let (ends, length) = match framing {
            BodyFraming::None | BodyFraming::Length(0) => (true, None),
            BodyFraming::Length(length) => (false, Some(length)),
            BodyFraming::Chunked => (false, None),
        };
        let sent = stream.send_request(self.head, ends, length).map_err(|unsent| match unsent {
            Unsent::Io(error) => Failure::Send(error),
            Unsent::Invalid(_) => Failure::Unsendable(unsent),
        })?;
        if let Some(attempt) = exchange.tries.last_mut() {
            attempt.bytes_sent += sent as u64;
        }
        (self.head, self.chunked) = (&[], false);
        if ends {
            self.body = BodyState::Done;
        }
        Ok(())
    }

    /// The rest of a request whose answer has begun; its head is out.
    fn beside(self) -> Sending<'static> {
        Sending { head: &[], head_sent: 0, beside: Some(Deadline::new()), ..self }
    }

    /// The client is waited for this long.
    fn await_client(&self, conn: &Conn, time: Duration) {
        self.beside.as_ref().unwrap_or(&conn.deadline).set(time);
    }

    /// The peer is.
    fn await_peer(&self, link: &Link, time: Duration) {
        self.beside.as_ref().unwrap_or(&link.deadline).set(time);
    }

    fn waits_for_client(&self) -> bool {
        self.body == BodyState::Client && self.head_sent == self.head.len() && self.piece_sent == self.piece.len()
    }

    fn poll(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &Conn,
        link: &Link,
        progressed: &mut Progressed,
    ) -> Poll<Result<(), Failure>> {
        let values = &exchange.location.values;
        loop {
            if self.piece_sent == self.piece.len() && self.body != BodyState::Done && !matches!(self.body, BodyState::Memory(_)) {
                match self.refill(exchange, conn, link) {
                    Poll::Ready(Ok(())) => self.await_client(conn, values.core.body_timeout),
                    Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                    Poll::Pending if self.head_sent == self.head.len() => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            let memory: &[u8] = match (&self.body, &exchange.body) {
                (BodyState::Memory(from), RequestBody::Memory(bytes)) => bytes.get(*from..).unwrap_or_default(),
                _ => &[],
            };
            let head = self.head.get(self.head_sent..).unwrap_or_default();
            let piece = self.piece.get(self.piece_sent..).unwrap_or_default();
            let wanted = head.len() + piece.len() + memory.len();
            if wanted == 0 {
                return Poll::Ready(self.end(link));
            }
            // Most requests have no body: one piece needs no vector.
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
                    if count == wanted
                        && let (BodyState::Memory(from), RequestBody::Memory(bytes)) = (self.body, &exchange.body)
                        && from >= bytes.len()
                    {
                        return Poll::Ready(self.end(link));
                    }
                    self.await_peer(link, values.proxy.send_timeout);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if link.stream.poll_writable().is_pending() {
                        return Poll::Pending;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(Failure::Send(error))),
            }
        }
    }

    /// All is sent: a stream whose length nobody knew ends here.
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

    /// The next piece of a body that is in a file or still comes from the client.
    fn refill(&mut self, exchange: &mut Exchange<'_>, conn: &Conn, link: &Link) -> Poll<Result<(), Failure>> {
        self.piece_sent = 0;
        self.piece.clear();
        if self.body == BodyState::File {
            return Poll::Ready(self.refill_from_file(exchange));
        }
        let mut bytes = buffer::lease(PIECE_BYTES);
        let done = match body::poll_read(exchange, conn, &mut bytes) {
            Poll::Ready(Ok(done)) => done,
            Poll::Ready(Err(failed)) => return Poll::Ready(Err(Failure::Body(failed))),
            Poll::Pending => return Poll::Pending,
        };
        self.piece = buffer::lease(bytes.len() + 2 * encode::CHUNK_HEAD_BYTES);
        if self.chunked && !bytes.is_empty() {
            let mut space = [0; encode::CHUNK_HEAD_BYTES];
            self.piece.extend_from_slice(encode::chunk_head(bytes.len() as u64, &mut space));
            self.piece.extend_from_slice(&bytes);
            self.piece.extend_from_slice(b"\r\n");
        } else {
            self.piece.extend_from_slice(&bytes);
        }
        if done {
            if self.chunked {
                self.piece.extend_from_slice(b"0\r\n\r\n");
            }
            // The last frame says that it is the last.
            if let Some(stream) = &link.h2 {
                stream.promise(bytes.len() as u64);
            }
            self.body = BodyState::Done;
            exchange.body = RequestBody::Gone;
        }
        Poll::Ready(Ok(()))
    }

    fn refill_from_file(&mut self, exchange: &Exchange<'_>) -> Result<(), Failure> {
        let RequestBody::File { file, length, .. } = &exchange.body else {
            self.body = BodyState::Done;
            return Ok(());
        };
        let file: &File = file;
        let count = (*length - self.file_at).min(PIECE_BYTES as u64) as usize;
        self.piece = buffer::lease(count);
        self.piece.resize(count, 0);
        file.read_exact_at(&mut self.piece, self.file_at).map_err(|_| Failure::Body(BodyFailed::Status(500)))?;
        self.file_at += count as u64;
        if self.file_at >= *length {
            self.body = BodyState::Done;
        }
        Ok(())
    }
}

/// The rest of a request whose answer has begun: over HTTP/2 the two go on beside each other.
pub struct Upload {
    sending: Sending<'static>,
}

impl Upload {
    /// Sends what can be sent now; ready when that is all, or nobody wants more of it.
    pub fn poll(&mut self, exchange: &mut Exchange<'_>, conn: &Conn, link: &Link) -> Poll<Result<(), Failure>> {
        let (core, proxy) = (&exchange.location.values.core, &exchange.location.values.proxy);
        match self.sending.poll(exchange, conn, link, &mut Progressed::default()) {
            // Why it broke, the answer tells.
            Poll::Ready(Ok(()) | Err(Failure::Send(_))) => Poll::Ready(Ok(())),
            Poll::Ready(Err(failure)) => Poll::Ready(Err(failure)),
            Poll::Pending => {
                let Some(deadline) = &self.sending.beside else { return Poll::Pending };
                let waits_for_client = self.sending.waits_for_client();
                if !deadline.is_set() {
                    deadline.set(if waits_for_client { core.body_timeout } else { proxy.send_timeout });
                }
                let late = if waits_for_client { Failure::Client(Gone::TimedOut) } else { Failure::TimedOut };
                deadline.poll_expired().map(|()| Err(late))
            }
        }
    }
}

/// A head that came.
enum Received {
    /// The answer.
    Final(Box<Origin>),
    /// An interim answer (RFC 9110 §15.2): it is not the answer, and another head follows.
    Interim(Box<Origin>),
}

/// How far a head is.
enum Parsed {
    Final,
    Interim,
    Partial,
}

/// An answer's head on its way in. Nothing is held for it before its first byte is there: what waits for an
/// answer is cold when it comes.
#[derive(Default)]
struct Reading {
    origin: Option<Box<Origin>>,
    interim: u32,
    /// What follows an interim answer came with it.
    has_more: bool,
}

impl Reading {
    /// Reads until a head is complete.
    fn poll(
        &mut self,
        exchange: &mut Exchange<'_>,
        link: &Link,
        progressed: &mut Progressed,
    ) -> Poll<Result<Received, Failure>> {
        let proxy = &exchange.location.values.proxy;
        if let Some(stream) = &link.h2 {
            return self.poll_frames(exchange, stream, progressed);
        }
        loop {
            // Asked first: the usual answer has not come yet, and a read for nothing costs a call.
            if !self.has_more && link.stream.poll_readable().is_pending() {
                return Poll::Pending;
            }
            let mut origin = self.origin.take().unwrap_or_else(|| exchange.worker.lease_origin());
            if !std::mem::take(&mut self.has_more) {
                match receive(exchange, link, &mut origin, progressed) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.origin = Some(origin);
                        continue;
                    }
                    Err(failure) => return Poll::Ready(Err(failure)),
                }
            }
            match self.parse(&mut origin, proxy.buffer_size as usize) {
                Ok(Parsed::Final) => return Poll::Ready(Ok(Received::Final(origin))),
                Ok(Parsed::Interim) => return Poll::Ready(Ok(Received::Interim(origin))),
                Ok(Parsed::Partial) => link.deadline.set(proxy.read_timeout),
                Err(fault) => return Poll::Ready(Err(Failure::Head(fault))),
            }
            self.origin = Some(origin);
        }
    }

    /// The same of a stream, whose heads come whole.
    fn poll_frames(
        &mut self,
        exchange: &mut Exchange<'_>,
        stream: &h2::Stream,
        progressed: &mut Progressed,
    ) -> Poll<Result<Received, Failure>> {
        let buffer_size = exchange.location.values.proxy.buffer_size as usize;
        let origin = match stream.poll_head() {
            Poll::Ready(Ok(origin)) => origin,
            Poll::Ready(Err(lost)) => return Poll::Ready(Err(Failure::Lost(lost))),
            Poll::Pending => return Poll::Pending,
        };
        progressed.response_begun = true;
        if let Some(attempt) = exchange.tries.last_mut() {
            attempt.bytes_received += origin.bytes.len() as u64;
        }
        let is_interim = origin.head.is_interim();
        self.interim += u32::from(is_interim);
        if origin.head.len > buffer_size || self.interim > INTERIM_MAX {
            exchange.worker.return_origin(origin);
            return Poll::Ready(Err(Failure::Head(HeadFault::TooBig)));
        }
        Poll::Ready(Ok(if is_interim { Received::Interim(origin) } else { Received::Final(origin) }))
    }

    fn parse(&mut self, origin: &mut Origin, buffer_size: usize) -> Result<Parsed, HeadFault> {
        match origin.parser.response(&origin.bytes, &mut origin.head) {
            Ok(Progress::Done) if origin.head.len > buffer_size => Err(HeadFault::TooBig),
            Ok(Progress::Done) if origin.head.is_interim() => {
                self.interim += 1;
                if self.interim > INTERIM_MAX { Err(HeadFault::TooBig) } else { Ok(Parsed::Interim) }
            }
            Ok(Progress::Done) => Ok(Parsed::Final),
            Ok(Progress::Partial { .. }) if origin.bytes.len() >= buffer_size => Err(HeadFault::TooBig),
            Ok(Progress::Partial { .. }) => Ok(Parsed::Partial),
            Err(violation) => Err(HeadFault::Violation(violation)),
        }
    }

    /// Puts an interim answer behind.
    fn go_on(&mut self, mut origin: Box<Origin>) {
        if origin.head.version == Version::Http2 {
            return; // what follows it is another
        }
        let len = origin.head.len.min(origin.bytes.len());
        origin.bytes.drain(..len);
        origin.parser.reset();
        self.has_more = !origin.bytes.is_empty();
        self.origin = Some(origin);
    }
}

/// Reads what is there of an answer; `false` when nothing is.
fn receive(
    exchange: &mut Exchange<'_>,
    link: &Link,
    origin: &mut Origin,
    progressed: &mut Progressed,
) -> Result<bool, Failure> {
    if origin.bytes.is_empty() {
        origin.bytes = buffer::lease(READ_BYTES);
    }
    match link.stream.try_read_vec(&mut origin.bytes, READ_BYTES) {
        Ok(0) => Err(Failure::Closed),
        Ok(count) => {
            progressed.response_begun = true;
            if let Some(attempt) = exchange.tries.last_mut() {
                attempt.bytes_received += count as u64;
            }
            Ok(true)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
        Err(error) => Err(Failure::Receive(error)),
    }
}

impl Try {
    /// Microseconds since the try began.
    pub fn elapsed_us(&self) -> u64 {
        self.started.map_or(0, |started| clock::now().us_since(started))
    }

    /// Notes the end.
    pub fn end(&mut self) {
        if self.response_us.is_none() {
            self.response_us = Some(self.elapsed_us());
        }
    }
}
