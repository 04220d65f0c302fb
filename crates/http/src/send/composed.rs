//! Bodies that contain the answers of subrequests, in order, while they are sent.
//!
//! ```text
//!  own body ─ inner filters ─ reader ─► queue of texts and answers ─ outer filters ─ frame ─► client
//!                                          subrequests ─ pipes ─┘
//! ```
//!
//! The reader reads the body of the exchange, and writes texts and orders for answers. Subrequests run while earlier
//! parts are sent. Filters that work on the whole body (`BodyFilter::is_outer`) come after the queue. Invariant: queue,
//! pipes and read-ahead are bounded; if the client takes nothing, weir reads nothing more.

mod feed;

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use feed::Feed;

use crate::exchange::Exchange;
use crate::exchange::composing::queue::{self, Order};
use crate::exchange::composing::{Compose, Composed};
use crate::exchange::response_body::{BodyFilter, Broken, Framing, Source};
use crate::hold::conn::{Conn, Gone};
use crate::hold::patience::SendTimeout;
use crate::send::pace::Pace;
use crate::send::{filtering, head_out, writing};

/// Framed bytes that wait for the client: beyond this many, weir takes no more from the queue.
const OUT_BYTES_MAX: usize = 64 << 10;

/// Sends the head, and then the body with the answers in it. The head waits for the first bytes of the body: an answer
/// that is too large for its place ends the connection without a head, as in nginx.
pub async fn send<S: Source>(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    source: &mut Option<S>,
    framing: Framing,
) -> Result<(), Gone> {
    let Composed { before, after, reader } =
        exchange.own.take::<Composed>().map(|composed| *composed).unwrap_or_default();
    let body = std::mem::take(&mut exchange.response.body);
    let filters = std::mem::take(&mut exchange.response.body_filters);
    let is_urgent = source.as_ref().is_some_and(|source| source.is_urgent(exchange));
    let (outer, inner) = filters.into_iter().partition(|filter| filter.is_outer());
    exchange.response.body_filters = inner;
    let mut sender = Sender {
        feed: Feed::of(body, source.take()),
        input: Vec::new(),
        used: 0,
        is_last: false,
        withheld: None,
        is_composed: false,
        is_broken: false,
        is_urgent,
        reader,
        after,
        queue: queue::Store::default(),
        outer,
        framing,
        has_head: exchange.flags.is_subrequest,
        out: Vec::new(),
        written: 0,
        has_ended: false,
        is_blocked: false,
        pace: Pace::of(exchange, 0),
        timeout: exchange.location.values.core.send_timeout,
    };
    let mut result = match before {
        Some(path) => sender.queue.with(conn).insert(exchange, Order::of(path)).then_some(()).ok_or(Gone::Cut),
        None => Ok(()),
    };
    if result.is_ok() {
        conn.await_taking(sender.timeout);
        result = sender.run(exchange, conn).await;
    }
    exchange.response.body_filters = sender.outer;
    sender.feed.close(exchange, result.is_ok()).await;
    result
}

/// Why a turn of the sender ended.
enum Turn {
    /// Everything is sent.
    Done,
    /// The body has to be read by a future.
    Read,
}

struct Sender<S> {
    feed: Feed<S>,
    /// Bytes of the own body behind the inner filters; the first `used` of them are read.
    input: Vec<u8>,
    used: usize,
    /// Nothing follows the input.
    is_last: bool,
    /// A filter has more output for the bytes that it got; true if these were the last ones.
    withheld: Option<bool>,
    /// The reader has read everything, and the queue has all parts.
    is_composed: bool,
    /// The own body broke off: its beginning goes to the client, then the connection ends.
    is_broken: bool,
    /// The filters hold nothing back: the client should get each piece at once.
    is_urgent: bool,
    reader: Option<Box<dyn Compose>>,
    after: Option<Vec<u8>>,
    queue: queue::Store,
    outer: Vec<Box<dyn BodyFilter>>,
    framing: Framing,
    has_head: bool,
    /// Framed bytes; the client has the first `written` of them.
    out: Vec<u8>,
    written: usize,
    /// The end of the body is in `out`.
    has_ended: bool,
    is_blocked: bool,
    pace: Option<Pace>,
    timeout: SendTimeout,
}

impl<S: Source> Sender<S> {
    async fn run(&mut self, exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<(), Gone> {
        loop {
            match poll_fn(|context| self.poll(exchange, conn, context)).await? {
                Turn::Done => return Ok(()),
                Turn::Read => {
                    let mut read = Vec::new();
                    let is_last = self.feed.next(exchange, conn, &mut read).await?;
                    self.take_in(exchange, read, is_last)?;
                }
            }
        }
    }

    fn poll(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        context: &Context<'_>,
    ) -> Poll<Result<Turn, Gone>> {
        loop {
            let mut moves = match self.write(exchange, conn) {
                Ok(wrote) => wrote,
                Err(gone) => return Poll::Ready(Err(gone)),
            };
            if self.has_ended && self.out.is_empty() {
                return Poll::Ready(if self.is_broken { Err(Gone::Cut) } else { Ok(Turn::Done) });
            }
            match self.take_part(exchange, conn) {
                Ok(took) => moves |= took,
                Err(gone) => return Poll::Ready(Err(gone)),
            }
            match self.compose(exchange, conn) {
                Ok(composed) => moves |= composed,
                Err(gone) => return Poll::Ready(Err(gone)),
            }
            if self.used == self.input.len() && !self.is_last && !self.queue.is_full() {
                let pulled = match self.withheld {
                    Some(is_last) => self.take_in(exchange, Vec::new(), is_last).map(|()| true),
                    None if self.feed.needs_future() => return Poll::Ready(Ok(Turn::Read)),
                    None => self.pull(exchange, context),
                };
                match pulled {
                    Ok(pulled) => moves |= pulled,
                    Err(gone) => return Poll::Ready(Err(gone)),
                }
            }
            if !moves {
                if self.out.is_empty()
                    && let Poll::Ready(error) = conn.poll_gone()
                {
                    return Poll::Ready(Err(Gone::Closed(error)));
                }
                return Poll::Pending;
            }
        }
    }

    /// Reads the next bytes of the own body.
    fn pull(&mut self, exchange: &mut Exchange<'_>, context: &Context<'_>) -> Result<bool, Gone> {
        let mut read = Vec::new();
        let is_last = match self.feed.poll(exchange, context, &mut read) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(is_last)) => is_last,
            Poll::Ready(Err(Broken)) => {
                self.is_broken = true;
                true
            }
        };
        self.take_in(exchange, read, is_last).map(|()| true)
    }

    /// Passes bytes of the own body through its filters. A filter that has more output gives it at the next call, which
    /// has no bytes.
    fn take_in(&mut self, exchange: &mut Exchange<'_>, read: Vec<u8>, is_last: bool) -> Result<(), Gone> {
        let mut has_more = false;
        self.input = if exchange.response.body_filters.is_empty() {
            read
        } else {
            let filtered = filtering::filtered(exchange, &read, self.is_urgent, is_last)?;
            has_more = filtered.has_more;
            filtered.bytes.to_vec()
        };
        self.withheld = has_more.then_some(is_last);
        (self.used, self.is_last) = (0, is_last && !has_more);
        Ok(())
    }

    /// Lets the reader go on.
    fn compose(&mut self, exchange: &mut Exchange<'_>, conn: &Conn) -> Result<bool, Gone> {
        if self.is_composed || self.queue.is_full() {
            return Ok(false);
        }
        if self.queue.waits() {
            return self.queue.end_wait(exchange);
        }
        let rest = self.input.get(self.used..).unwrap_or_default();
        if rest.is_empty() && !self.is_last {
            return Ok(false);
        }
        let mut queue = self.queue.with(conn);
        match &mut self.reader {
            Some(reader) => self.used += reader.read(exchange, rest, self.is_last, &mut queue),
            None => {
                queue.text(rest);
                self.used = self.input.len();
            }
        }
        if self.used < self.input.len() || !self.is_last || self.queue.waits() {
            return Ok(true);
        }
        self.is_composed = true;
        match self.after.take() {
            Some(path) if !self.is_broken => {
                self.queue.with(conn).insert(exchange, Order::of(path)).then_some(true).ok_or(Gone::Cut)
            }
            Some(_) | None => Ok(true),
        }
    }

    /// Moves the next part of the queue to the client's bytes.
    fn take_part(&mut self, exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<bool, Gone> {
        if self.out.len() >= OUT_BYTES_MAX || self.has_ended {
            return Ok(false);
        }
        match self.queue.next(exchange, conn)? {
            queue::NextPart::Bytes(bytes) => {
                self.push(exchange, conn, bytes, false)?;
                Ok(true)
            }
            queue::NextPart::Moved => Ok(true),
            queue::NextPart::Later => Ok(false),
            queue::NextPart::Empty if !self.is_composed => Ok(false),
            queue::NextPart::Empty => {
                self.has_ended = true;
                // Of a body that broke off, the client gets the beginning without an end.
                self.push(exchange, conn, Vec::new(), !self.is_broken)?;
                Ok(true)
            }
        }
    }

    /// Filters and frames bytes for the client; the head goes first.
    fn push(&mut self, exchange: &mut Exchange<'_>, conn: &Conn, bytes: Vec<u8>, is_last: bool) -> Result<(), Gone> {
        if !self.has_head {
            self.has_head = true;
            head_out::begin(exchange, conn, self.framing, &mut self.out)?;
        }
        let mut changed = bytes;
        for filter in &mut self.outer {
            let mut next = Vec::with_capacity(changed.len());
            filter.write(&changed, self.is_urgent, is_last, &mut next);
            changed = next;
        }
        exchange.bytes.body_sent += changed.len() as u64;
        writing::frame(self.framing, &changed, &mut self.out);
        if is_last && self.framing == Framing::Chunked {
            self.out.extend_from_slice(b"0\r\n");
            self.out.extend_from_slice(&filtering::trailer_text(exchange));
            self.out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// Writes as much as the client takes, at the allowed rate; `true` if it took some.
    fn write(&mut self, exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<bool, Gone> {
        let mut moves = false;
        while !self.out.is_empty() {
            if self.is_blocked {
                if conn.stream().poll_writable().is_pending() {
                    return if conn.poll_took_nothing().is_ready() { Err(Gone::TimedOut) } else { Ok(moves) };
                }
                self.is_blocked = false;
            }
            let left = self.out.get(self.written..).unwrap_or_default();
            let allowed = match self.pace.as_ref().map(|pace| pace.ask(left.len())) {
                None => left.len(),
                Some(Ok(allowed)) => allowed.min(left.len()),
                Some(Err(pause)) => {
                    conn.deadline.set(pause);
                    match conn.deadline.poll_expired() {
                        Poll::Ready(()) => continue,
                        Poll::Pending => return Ok(moves),
                    }
                }
            };
            match conn.stream().try_write(left.get(..allowed).unwrap_or_default()) {
                Ok(0) => return Err(Gone::Closed(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    moves = true;
                    self.wrote(exchange, count);
                    conn.await_taking(self.timeout);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    conn.await_taking(self.timeout);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Gone::Closed(error)),
            }
        }
        Ok(moves)
    }

    fn wrote(&mut self, exchange: &mut Exchange<'_>, count: usize) {
        exchange.bytes.sent += count as u64;
        if let Some(pace) = &mut self.pace {
            pace.sent(count);
        }
        self.written += count;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }
}
