//! Passes an upstream's body to the client: reads ahead of a slow client within bounds, in memory first, then in a
//! file.
//!
//! ```text
//!  upstream ─ read ─► decode ─► filters ─► frame ─► queue (memory, then file) ─► write ─► client
//! ```
//!
//! One task, one loop: each turn writes as much as the client accepts and reads as much as the upstream sends. A body
//! that arrived whole with its head leaves with the client's head in one write.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::task::Poll;

use aside::{drain_rest, feed_first, keep};
use spill::{Spill, has_room};
use weir_http::exchange::Exchange;
use weir_http::exchange::response_body::Framing;
use weir_http::hold::bounds::{BUFFERS, EXCHANGE_BYTES, Share};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::patience::SendTimeout;
use weir_http::receive::body::BodyFailed;
use weir_http::send::pace::Pace;
use weir_http::send::{filtering, writing};
use weir_net::log::Level;
use weir_net::{Instant, Lease, buffer, clock};
use weir_wire::encode;

use crate::family::proxy::{self, response};
use crate::family::upstream::failure::Failure;
use crate::family::upstream::sending::Upload;
use crate::family::upstream::source::{Broken, Source};

mod aside;
mod direct;
mod source;
mod spill;

pub use aside::{collect, drain};

/// One read from an upstream takes at most this much: large enough that a megabyte costs few calls, small enough for
/// the second-level cache.
const READ_BYTES: usize = 128 << 10;

/// The size of the first read of a body of unknown length.
const READ_BYTES_FIRST: usize = 16 << 10;

/// Pieces written in one call.
const PIECES_MAX: usize = 16;

/// Sends `head` and then the body of `source`.
async fn run(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    source: &mut Source,
    framing: Framing,
    head: &mut Vec<u8>,
) -> Result<(), Gone> {
    let timeout = exchange.location.values.core.send_timeout;
    let pace = Pace::of(exchange, head.len());
    let read_pace = crate::values(exchange.location).proxy.limit_rate.as_ref().and_then(|template| {
        let text = template.text(exchange);
        Pace::new(std::str::from_utf8(&text).ok().and_then(weir_http::text::value::size_of).unwrap_or(0))
    });
    if let Some(result) = whole(exchange, conn, source, framing, head, timeout, pace.is_none()).await {
        return result;
    }
    let mut relay = Relay {
        queue: VecDeque::new(),
        queued: 0,
        spill: None,
        behind: None,
        is_buffered: response::is_buffered(exchange),
        is_without_file: false,
        framing,
        ended: false,
        is_cut: false,
        is_broken: false,
        unfinished: None,
        is_blocked: false,
        pace,
        paced_since: None,
        read_pace,
        is_large: source.exact_left().is_some_and(|left| left >= direct::LARGE_BYTES),
        ahead: None,
        read_next: source
            .exact_left()
            .map_or(READ_BYTES_FIRST, |left| usize::try_from(left).unwrap_or(READ_BYTES).min(READ_BYTES)),
    };
    if !head.is_empty() {
        relay.push_head(std::mem::take(head));
    }
    // Other clients may wait for an answer that the cache stores: it does not wait for this client.
    let has_room = match exchange.cache.is_filling() {
        true => Ok(()),
        false => filtering::await_room(exchange, conn).await,
    };
    let result = match has_room {
        Ok(()) => relay.pump(exchange, conn, source, timeout).await,
        Err(gone) => Err(End::Client(gone)),
    };
    match result {
        Ok(()) => source.finish(exchange),
        Err(End::Client(gone)) => {
            // The client is gone, but the cache still wants the answer for later clients.
            exchange.cache.saving = None;
            if exchange.cache.is_filling() {
                drain_rest(exchange, source).await;
            } else if relay.is_cut {
                source.fail(exchange);
            } else {
                source.abandon(exchange);
            }
            return Err(gone);
        }
        Err(End::Origin(broken)) => {
            note(exchange, &broken);
            exchange.cache.cut();
            source.fail(exchange);
            return Err(Gone::Cut);
        }
        Err(End::Cut) => {
            source.fail(exchange);
            return Err(Gone::Cut);
        }
    }
    Ok(())
}

enum End {
    Client(Gone),
    Origin(Broken),
    /// The client has all bytes of an answer that the upstream broke off.
    Cut,
}

fn note(exchange: &mut Exchange<'_>, broken: &Broken) {
    exchange.facts.step = weir_meter::Step::ReadResponse;
    exchange.log(Level::Error, format_args!("{broken}"));
}

/// The usual small answer: its body arrived with its head, and nothing changes it. weir frees the connection to the
/// upstream first, and then sends the answer in one write. `None` if this is another kind of answer.
async fn whole(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    source: &mut Source,
    framing: Framing,
    head: &mut Vec<u8>,
    timeout: SendTimeout,
    unpaced: bool,
) -> Option<Result<(), Gone>> {
    let length = source.exact_left()?;
    if !unpaced || framing != Framing::Length || !exchange.response.body_filters.is_empty() {
        return None;
    }
    let origin = exchange.origin.as_ref()?;
    let start = origin.head.len;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    if origin.bytes.len() < end {
        return None;
    }
    source.skip(length);
    if let Some(attempt) = exchange.last_try() {
        attempt.response_length = length;
    }
    source.finish(exchange);
    let origin = exchange.origin.as_ref()?;
    let body = origin.bytes.get(start..end).unwrap_or_default();
    exchange.cache.keep(body, true);
    let sent = head.len() as u64 + length;
    let result = if body.len() <= writing::COPY_MAX {
        head.extend_from_slice(body);
        conn.write(head, timeout).await
    } else {
        conn.write_all(&mut [IoSlice::new(head), IoSlice::new(body)], timeout).await
    };
    if result.is_ok() {
        exchange.bytes.body_sent = length;
        exchange.bytes.sent += sent;
    }
    Some(result)
}

/// Sends the rest of the request, if the answer arrived before all of the request was sent.
fn poll_upload(exchange: &mut Exchange<'_>, conn: &Conn, source: &Source) -> Result<(), End> {
    let (Some(mut upload), Some(link)) = (exchange.own.take::<Upload>(), source.link()) else { return Ok(()) };
    match upload.poll(exchange, conn, link) {
        Poll::Pending => exchange.own.put_back(upload),
        Poll::Ready(Ok(())) => {}
        Poll::Ready(Err(Failure::TimedOut)) => return Err(End::Origin(Broken::TimedOut)),
        Poll::Ready(Err(Failure::Client(gone) | Failure::Body(BodyFailed::Gone(gone)))) => {
            return Err(End::Client(gone));
        }
        Poll::Ready(Err(_)) => return Err(End::Client(Gone::Cut)),
    }
    Ok(())
}

struct Piece {
    bytes: Lease,
    start: usize,
    /// How many of these bytes are body, for `$body_bytes_sent`.
    body: u64,
}

struct Relay {
    queue: VecDeque<Piece>,
    queued: usize,
    spill: Option<Spill>,
    /// Body bytes behind those in the file: the disk has no room for them.
    behind: Option<Lease>,
    /// weir reads ahead of the client; else each read goes to the client at once.
    is_buffered: bool,
    /// The disk took no more bytes: the rest of the answer goes through memory, as fast as the client reads.
    is_without_file: bool,
    framing: Framing,
    ended: bool,
    /// The upstream broke its answer off, which is logged: only the bytes before that are still to be sent.
    is_cut: bool,
    /// A filter failed: the answer cannot be completed.
    is_broken: bool,
    /// A filter has more output for the piece that it got; whether that piece was the last.
    unfinished: Option<bool>,
    /// The client's socket accepts no more.
    is_blocked: bool,
    pace: Option<Pace>,
    /// Since when the pace allows no byte.
    paced_since: Option<Instant>,
    read_pace: Option<Pace>,
    read_next: usize,
    /// The body may pass inside the kernel.
    is_large: bool,
    /// The memory beyond [`EXCHANGE_BYTES`], from the moment when the body first needs it: `Err` if it was refused.
    ahead: Option<Result<Share, ()>>,
}

impl Relay {
    /// The bytes that may wait in memory, of at most `wanted`, and the size of the next read. The body asks for memory beyond
    /// [`EXCHANGE_BYTES`] once, when it first needs it; without that memory, weir reads no further than the client takes.
    fn room(&mut self, wanted: usize) -> (usize, usize) {
        let plain = EXCHANGE_BYTES as usize;
        if self.ahead.is_none() && self.queued + self.read_next > plain {
            let mut share = BUFFERS.share();
            let more = wanted.max(self.read_next).saturating_sub(plain) as u64;
            self.ahead = Some(if share.grow(more) { Ok(share) } else { Err(()) });
        }
        match self.ahead {
            Some(Err(())) => (wanted.min(plain / 2), self.read_next.min(plain / 2)),
            _ => (wanted, self.read_next),
        }
    }

    fn push_head(&mut self, head: Vec<u8>) {
        let mut bytes = buffer::lease(head.len());
        bytes.extend_from_slice(&head);
        self.push(bytes, 0);
    }

    fn push(&mut self, bytes: Lease, body: u64) {
        self.queued += bytes.len();
        self.queue.push_back(Piece { bytes, start: 0, body });
    }

    async fn pump(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        source: &mut Source,
        timeout: SendTimeout,
    ) -> Result<(), End> {
        let proxy = &crate::values(exchange.location).proxy;
        let buffering = self.is_buffered;
        let (count, size) = proxy.buffers;
        let memory_max = if buffering { (u64::from(count) * size).max(READ_BYTES as u64) as usize } else { 0 };
        let file_max = if buffering { proxy.max_temp_file } else { Some(0) };
        let read_timeout = proxy.read_timeout;
        self.first(exchange, source)?;
        if let Some(link) = source.link() {
            link.deadline.set(read_timeout);
        }
        conn.await_taking(timeout);
        // Bytes of the body that have come meanwhile go out with the first ones, if they fit in memory: one call, and one
        // wake-up of the client. So the first turn reads and does not write.
        let mut reads_first = !self.is_large && self.queued < memory_max;
        poll_fn(|context| {
            loop {
                if self.is_broken {
                    return Poll::Ready(Err(End::Client(Gone::Cut)));
                }
                poll_upload(exchange, conn, source)?;
                // `true` makes another turn, which writes.
                let wrote = std::mem::take(&mut reads_first)
                    || match self.poll_write(exchange, conn, timeout) {
                        Poll::Ready(Ok(wrote)) => wrote,
                        Poll::Ready(Err(gone)) => return Poll::Ready(Err(End::Client(gone))),
                        Poll::Pending => false,
                    };
                if (self.ended || self.is_cut) && self.queue.is_empty() && self.spill.is_none() {
                    return Poll::Ready(if self.is_cut { Err(End::Cut) } else { Ok(()) });
                }
                if exchange.cache.poll_ready(context).is_pending() {
                    if wrote {
                        continue;
                    }
                    return Poll::Pending;
                }
                if self.passes(exchange, conn, source) {
                    match self.poll_pass(exchange, conn, source, (timeout, read_timeout)) {
                        Poll::Ready(Ok(true)) => continue,
                        Poll::Ready(Ok(false)) => {}
                        Poll::Ready(Err(end)) => return Poll::Ready(Err(end)),
                        Poll::Pending if wrote => continue,
                        Poll::Pending => {
                            return match conn.poll_gone() {
                                Poll::Ready(error) => Poll::Ready(Err(End::Client(Gone::Closed(error)))),
                                Poll::Pending => Poll::Pending,
                            };
                        }
                    }
                }
                let read = match self.poll_fill(exchange, source, memory_max, file_max, read_timeout) {
                    Poll::Ready(Ok(read)) => read,
                    Poll::Ready(Err(broken)) => {
                        note(exchange, &broken);
                        exchange.cache.cut();
                        self.is_cut = true;
                        true
                    }
                    Poll::Pending => false,
                };
                if !wrote && !read {
                    if self.queue.is_empty()
                        && let Poll::Ready(error) = conn.poll_gone()
                    {
                        return Poll::Ready(Err(End::Client(Gone::Closed(error))));
                    }
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// The body bytes that arrived with the upstream's head.
    fn first(&mut self, exchange: &mut Exchange<'_>, source: &mut Source) -> Result<(), End> {
        if let Some(piece) = feed_first(exchange, source).map_err(End::Origin)? {
            self.take_in(exchange, source, piece);
        }
        Ok(())
    }

    /// Writes as much as the client accepts. `Ready(Ok(true))` if it wrote something.
    fn poll_write(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        timeout: SendTimeout,
    ) -> Poll<Result<bool, Gone>> {
        let mut progress = false;
        loop {
            // Waits for room before it writes again: the kernel may accept a few bytes at any time, and each of these
            // writes would restart the timeout of a client that accepts nothing.
            if self.is_blocked {
                if conn.stream().poll_writable().is_ready() {
                    self.is_blocked = false;
                } else if conn.poll_took_nothing().is_ready() {
                    return Poll::Ready(Err(Gone::TimedOut));
                } else {
                    return if progress { Poll::Ready(Ok(true)) } else { Poll::Pending };
                }
            }
            if self.queue.is_empty() {
                match self.unspill(exchange) {
                    Ok(true) => {}
                    Ok(false) => return Poll::Ready(Ok(progress)),
                    Err(gone) => return Poll::Ready(Err(gone)),
                }
            }
            let mut limit = usize::MAX;
            if let Some(pace) = &self.pace {
                match pace.ask(self.queued) {
                    Ok(allowed) => {
                        limit = allowed;
                        if let Some(since) = self.paced_since.take() {
                            exchange.rare_mut().paced_us += clock::now().us_since(since);
                        }
                    }
                    Err(wait) => {
                        self.paced_since.get_or_insert_with(clock::now);
                        conn.deadline.set(wait);
                        if conn.deadline.poll_expired().is_pending() {
                            return Poll::Pending;
                        }
                        continue;
                    }
                }
            }
            match self.write_once(conn, limit) {
                Ok(0) => return Poll::Ready(Err(Gone::Closed(io::ErrorKind::WriteZero.into()))),
                Ok(count) => {
                    progress = true;
                    exchange.bytes.sent += count as u64;
                    if let Some(pace) = &mut self.pace {
                        pace.sent(count);
                    }
                    self.advance(exchange, count);
                    conn.await_taking(timeout);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    conn.await_taking(timeout);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(Gone::Closed(error))),
            }
        }
    }

    fn write_once(&self, conn: &Conn, mut limit: usize) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        let mut used = 0;
        for (slot, piece) in slices.iter_mut().zip(&self.queue) {
            let bytes = piece.bytes.get(piece.start..).unwrap_or_default();
            let bytes = bytes.get(..limit.min(bytes.len())).unwrap_or_default();
            limit -= bytes.len();
            *slot = IoSlice::new(bytes);
            used += 1;
            if limit == 0 {
                break;
            }
        }
        conn.stream().try_write_vectored(slices.get(..used).unwrap_or_default())
    }

    fn advance(&mut self, exchange: &mut Exchange<'_>, mut count: usize) {
        self.queued = self.queued.saturating_sub(count);
        while let Some(piece) = self.queue.front_mut() {
            let left = piece.bytes.len() - piece.start;
            if count < left {
                piece.start += count;
                return;
            }
            count -= left;
            exchange.bytes.body_sent += piece.body;
            self.queue.pop_front();
        }
    }

    /// Reads from the upstream if there is room. `Ready(Ok(true))` if it read something.
    fn poll_fill(
        &mut self,
        exchange: &mut Exchange<'_>,
        source: &mut Source,
        memory_max: usize,
        file_max: Option<u64>,
        timeout: std::time::Duration,
    ) -> Poll<Result<bool, Broken>> {
        if self.ended || self.is_cut {
            return Poll::Pending;
        }
        let (memory_max, read_next) = self.room(memory_max);
        let in_memory = self.spill.is_none() && (self.queued == 0 || self.queued < memory_max);
        // weir reads no further now: this function runs again when the client has accepted some bytes.
        let written = self.spill.as_ref().map_or(0, |spill| spill.written);
        if !in_memory && (self.is_without_file || !has_room(file_max, written)) {
            return Poll::Pending;
        }
        if let Some(last) = self.unfinished.take() {
            self.filter(exchange, b"", last);
            return Poll::Ready(Ok(true));
        }
        if let Some(pace) = &self.read_pace
            && let Err(wait) = pace.ask(READ_BYTES)
            && let Some(link) = source.link()
        {
            link.deadline.set(wait);
            return match link.deadline.poll_expired() {
                Poll::Ready(()) => Poll::Ready(Ok(true)),
                Poll::Pending => Poll::Pending,
            };
        }
        let room = self.read_pace.as_ref().map_or(read_next, |pace| pace.ask(read_next).unwrap_or(1));
        let mut piece = buffer::lease(room);
        match source.poll_read(exchange, &mut piece, room) {
            Poll::Ready(Ok(_)) => {
                if let Some(link) = source.link() {
                    link.deadline.set(timeout);
                }
                if piece.len() >= self.read_next {
                    self.read_next = (self.read_next * 2).min(READ_BYTES);
                }
                if let Some(pace) = &mut self.read_pace {
                    pace.sent(piece.len());
                }
                self.take_in(exchange, source, piece);
                Poll::Ready(Ok(true))
            }
            Poll::Ready(Err(broken)) => Poll::Ready(Err(broken)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Filters and queues body bytes; notes the end.
    fn take_in(&mut self, exchange: &mut Exchange<'_>, source: &mut Source, piece: Lease) {
        let last = source.is_done();
        if last {
            response::take_trailers(exchange, source.take_trailers());
        }
        keep(exchange, source, &piece);
        if last {
            source.finish(exchange);
        }
        if !exchange.response.body_filters.is_empty() && (last || !piece.is_empty()) {
            self.filter(exchange, &piece, last);
        } else {
            self.put(exchange, piece, last);
        }
    }

    /// Passes body bytes through the filters and queues their output. A filter may have more output than fits now.
    fn filter(&mut self, exchange: &mut Exchange<'_>, input: &[u8], last: bool) {
        match filtering::filtered(exchange, input, !self.is_buffered, last) {
            Ok(output) => {
                self.unfinished = output.has_more.then_some(last);
                self.put(exchange, output.bytes, last && !output.has_more);
            }
            Err(_) => self.is_broken = true,
        }
    }

    /// Queues body bytes in memory or in the file; notes the end.
    fn put(&mut self, exchange: &mut Exchange<'_>, piece: Lease, last: bool) {
        self.ended = last;
        let piece = if self.must_spill(exchange, &piece) { self.spill(exchange, piece) } else { Some(piece) };
        if let Some(piece) = piece {
            self.enqueue(exchange, piece, last);
        }
    }

    /// Frames body bytes, and queues them in memory; after the `last` bytes, adds the end of the body.
    fn enqueue(&mut self, exchange: &mut Exchange<'_>, mut piece: Lease, last: bool) {
        let body = piece.len() as u64;
        if self.framing == Framing::Chunked && body > 0 {
            let mut space = [0; encode::CHUNK_HEAD_BYTES];
            let mut head = buffer::lease(encode::CHUNK_HEAD_BYTES);
            head.extend_from_slice(encode::chunk_head(body, &mut space));
            self.push(head, 0);
            piece.extend_from_slice(b"\r\n");
        }
        if self.framing == Framing::Chunked && last {
            piece.extend_from_slice(b"0\r\n");
            piece.extend_from_slice(&filtering::trailer_text(exchange));
            piece.extend_from_slice(b"\r\n");
        }
        if !piece.is_empty() {
            self.push(piece, body);
        }
    }

    /// Whether body bytes must go into the file: other bytes wait there, or memory is full.
    fn must_spill(&mut self, exchange: &Exchange<'_>, piece: &[u8]) -> bool {
        let proxy = &crate::values(exchange.location).proxy;
        let (count, size) = proxy.buffers;
        let (memory_max, _) = self.room((u64::from(count) * size).max(READ_BYTES as u64) as usize);
        let is_full = self.queued >= memory_max && self.is_buffered && has_room(proxy.max_temp_file, 0);
        self.spill.is_some() || (is_full && !self.is_without_file && !piece.is_empty())
    }

    /// Writes body bytes to the file without framing: they are framed when they are read back. Gives them back if there is
    /// no file; if the disk takes no more, they wait behind the bytes in the file.
    fn spill(&mut self, exchange: &mut Exchange<'_>, piece: Lease) -> Option<Lease> {
        if self.spill.is_none() {
            let path = crate::values(exchange.location).proxy.temp_path.as_deref();
            let Some((file, name)) = weir_http::receive::body::temporary(exchange, path, proxy::TEMPORARY) else {
                self.is_without_file = true;
                return Some(piece);
            };
            // The file needs no name: weir reads it back through the descriptor.
            let _ = std::fs::remove_file(&name);
            exchange.log(Level::Warn, format_args!("an upstream response is buffered to a temporary file"));
            self.spill = Some(Spill::new(file));
        }
        let spill = self.spill.as_mut()?;
        match spill.file.write_all_at(&piece, spill.written) {
            Ok(()) => {
                spill.wrote(piece.len());
                None
            }
            Err(error) => {
                exchange.log(Level::Crit, format_args!("pwritev() to a temporary file failed: {error}"));
                self.is_without_file = true;
                if spill.written == 0 {
                    self.spill = None;
                    return Some(piece);
                }
                self.behind = Some(piece);
                None
            }
        }
    }

    /// Reads the next part of the file back; `false` if there is none.
    fn unspill(&mut self, exchange: &mut Exchange<'_>) -> Result<bool, Gone> {
        let Some(spill) = &mut self.spill else { return Ok(false) };
        let count = (spill.written - spill.read).min(READ_BYTES as u64) as usize;
        let mut bytes = buffer::lease(count);
        bytes.resize(count, 0);
        if let Err(error) = spill.file.read_exact_at(&mut bytes, spill.read) {
            exchange.log(Level::Crit, format_args!("pread() of a temporary file failed: {error}"));
            return Err(Gone::Cut);
        }
        spill.read += count as u64;
        let is_read = spill.read == spill.written;
        if is_read {
            self.spill = None;
        }
        let behind = if is_read { self.behind.take() } else { None };
        self.enqueue(exchange, bytes, is_read && self.ended && behind.is_none());
        if let Some(piece) = behind {
            self.enqueue(exchange, piece, self.ended);
        }
        Ok(count > 0)
    }
}
