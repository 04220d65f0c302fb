//! Two connections joined after `101 Switching Protocols`: bytes both ways until one side ends.
//!
//! weir counts the messages of a WebSocket as they pass (`frames`); this delays and changes no byte.
//!
//! The idle timeout is `proxy_read_timeout`, for both directions together, as in nginx; close codes are the peers' own
//! bytes and pass through. An idle tunnel holds no buffer, and only the future of its connection: weir puts its
//! exchange aside until the end, for the log.

mod frames;

use std::io;
use std::rc::Rc;
use std::task::Poll;

use frames::Frames;
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::{Exchange, Parts};
use weir_http::hold::board::tunnels::{Closer, Sender, TunnelCell};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::counters;
use weir_http::hold::worker::Worker;
use weir_http::read::families::log_phase;
use weir_http::send::respond;
use weir_net::log::{self, Level};
use weir_net::{Deadline, Lease, Transport, buffer, clock};
use weir_peers::group::Outcome;
use weir_proxy::family::upstream::answer::Upgraded;
use weir_proxy::family::upstream::pool::Link;
use weir_proxy::family::upstream::source::{Hold, Source};

use super::after::{After, parting};
use super::aside::Aside;

/// Bytes moved at a time.
const READ_BYTES: usize = 16 << 10;

/// One direction. It holds a buffer only while there are bytes that were read and could not be written.
#[derive(Default)]
struct Flow {
    pending: Option<Box<Pending>>,
    moved: u64,
    ended: bool,
    finished: bool,
}

/// Bytes that were read, and how many of them are written.
struct Pending {
    bytes: Lease,
    start: usize,
}

impl Flow {
    fn of(bytes: &[u8]) -> Flow {
        let mut flow = Flow::default();
        if !bytes.is_empty() {
            let mut lease = buffer::lease(bytes.len());
            lease.extend_from_slice(bytes);
            flow.pending = Some(Box::new(Pending { bytes: lease, start: 0 }));
        }
        flow
    }

    /// The bytes that arrived before the tunnel began.
    fn early(&self) -> &[u8] {
        self.pending.as_ref().map_or(&[], |pending| &pending.bytes)
    }

    /// Moves the bytes that can be moved at the moment and shows them to `watch`; `true` if it moved any.
    fn turn(&mut self, from: &Transport, to: &Transport, mut watch: impl FnMut(&[u8])) -> io::Result<bool> {
        let mut progress = false;
        loop {
            if let Some(pending) = &mut self.pending {
                let before = pending.start;
                let written = to.try_write_rest(&pending.bytes, &mut pending.start);
                self.moved += (pending.start - before) as u64;
                progress |= pending.start > before;
                if !written? {
                    return Ok(progress);
                }
                self.pending = None;
            }
            if self.ended {
                if !self.finished {
                    self.finished = true;
                    // The other side sees the end of this direction; it may still answer.
                    let _ = to.shutdown_write();
                    return Ok(true);
                }
                return Ok(progress);
            }
            if from.poll_readable().is_pending() {
                return Ok(progress);
            }
            let mut bytes = buffer::lease(READ_BYTES);
            match from.try_read_vec(&mut bytes, READ_BYTES) {
                Ok(0) => self.ended = true,
                Ok(_) => {
                    progress = true;
                    watch(&bytes);
                    let mut start = 0;
                    let written = to.try_write_rest(&bytes, &mut start);
                    self.moved += start as u64;
                    if !written? {
                        self.pending = Some(Box::new(Pending { bytes, start }));
                        return Ok(true);
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Two connections that have agreed, with the bytes that each sent too early for the other to read.
pub struct Joined {
    upgraded: Box<Upgraded>,
    up: Flow,
    down: Flow,
}

/// Sends the 101.
pub async fn open(exchange: &mut Exchange<'_>, conn: &mut Conn, upgraded: Box<Upgraded>) -> Result<Joined, Gone> {
    exchange.flags.keeps_alive = false;
    exchange.response.header_only = true;
    respond::send::<Source>(exchange, conn, &mut None).await?;
    exchange.facts.step = weir_meter::Step::Tunnel;
    let up = Flow::of(exchange.request.unread());
    let early = exchange.origin.as_ref().and_then(|origin| origin.bytes.get(origin.head.len..));
    let down = Flow::of(early.unwrap_or_default());
    Ok(Joined { upgraded, up, down })
}

/// How a tunnel ended.
pub enum End {
    /// A side ended it, or weir did.
    Closed,
    /// Nothing moved for `proxy_read_timeout`.
    TimedOut,
    /// A connection failed.
    Broken(io::Error),
}

/// A tunnel, and the exchange it began with.
pub struct Tunnel {
    link: Box<Link>,
    hold: Hold,
    up: Flow,
    down: Flow,
    frames: Option<Frames>,
    exchange: Aside,
    writing: Writing,
}

/// The tunnel counts as a connection in the state "writing" until this is dropped, also if its task panics.
struct Writing(Rc<Worker>);

impl Writing {
    fn new(worker: &Rc<Worker>) -> Writing {
        counters::shift(&worker.counters().writing, 1);
        Writing(worker.clone())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        counters::shift(&self.0.counters().writing, -1);
    }
}

impl Tunnel {
    /// Joins the two connections; returns the exchange's memory.
    pub fn new(joined: Joined, exchange: Exchange<'_>, conn: &mut Conn) -> (Box<Tunnel>, Parts) {
        let Joined { upgraded, up, down } = joined;
        let Upgraded { link, hold } = *upgraded;
        link.deadline.set(weir_proxy::values(exchange.location).proxy.read_timeout);
        // The two ends share one deadline.
        conn.deadline = Deadline::new();
        let writing = Writing::new(exchange.worker);
        let cell = &exchange.worker.board.tunnels;
        cell.opened.one();
        let mut frames = Frames::of(&exchange);
        if let Some(frames) = &mut frames {
            cell.watched.one();
            frames.came(Sender::Client, up.early(), cell);
            frames.came(Sender::Upstream, down.early(), cell);
        }
        let (exchange, parts) = Aside::put(exchange);
        (Box::new(Tunnel { link, hold, up, down, frames, exchange, writing }), parts)
    }

    /// Moves bytes until the end.
    pub fn poll(&mut self, conn: &Conn) -> Poll<End> {
        let (client, upstream) = (conn.stream(), &self.link.stream);
        let cell = &self.writing.0.board.tunnels;
        loop {
            if conn.shared.has_ended() {
                return Poll::Ready(End::Closed);
            }
            let frames = &mut self.frames;
            let mut watch = |from, bytes: &[u8]| {
                if let Some(frames) = frames {
                    frames.came(from, bytes, cell);
                }
            };
            let up = self.up.turn(client, upstream, |bytes| watch(Sender::Client, bytes));
            let moved = match (up, self.down.turn(upstream, client, |bytes| watch(Sender::Upstream, bytes))) {
                (Ok(up), Ok(down)) => up | down,
                (Err(error), _) | (_, Err(error)) => return Poll::Ready(End::Broken(error)),
            };
            // nginx: the tunnel ends when the upstream ends, after the queued bytes are sent.
            if self.down.finished && self.down.pending.is_none() {
                return Poll::Ready(End::Closed);
            }
            if moved {
                self.link.deadline.set(weir_proxy::values(self.exchange.location()).proxy.read_timeout);
                continue;
            }
            return self.link.deadline.poll_expired().map(|()| End::TimedOut);
        }
    }

    /// Ends the exchange and writes its log line; returns the next step of the client's connection.
    pub fn close(self: Box<Self>, end: End, conn: &Conn, worker: &Rc<Worker>) -> After {
        let Tunnel { link, mut hold, up, down, frames, exchange, writing } = *self;
        drop((link, writing));
        exchange.end(worker, &conn.client, |exchange| {
            let cell = &exchange.worker.board.tunnels;
            count_end(&end, &up, &down, cell);
            cell.lived(clock::now().ms_since(exchange.facts.started));
            if let Some(frames) = &frames {
                let (code, sender) = frames.closed();
                cell.codes.count(code, sender);
            }
            exchange.bytes.body_sent += down.moved;
            exchange.bytes.sent += down.moved;
            if let Some(attempt) = exchange.last_try() {
                attempt.bytes_received += down.moved;
                attempt.bytes_sent += up.moved;
                attempt.end();
            }
            hold.release(Outcome::Ok);
            match end {
                End::Closed => {}
                End::TimedOut => {
                    exchange.log(Level::Error, format_args!("upstream timed out (110: Connection timed out)"));
                }
                End::Broken(error) => {
                    exchange.log(Level::Info, format_args!("tunnel broken {}", log::Os(&error)));
                }
            }
            log_phase(exchange);
            let after = parting(exchange);
            // A tunnel that has ended needs no file of a body.
            exchange.body = RequestBody::Gone;
            after
        })
    }
}

/// Counts the end of a tunnel. If both sides have ended, weir takes the client as the first: an upstream that ends
/// first ends the tunnel at once.
fn count_end(end: &End, up: &Flow, down: &Flow, cell: &TunnelCell) {
    let closer = match end {
        End::TimedOut => Closer::Timeout,
        End::Broken(_) => Closer::Error,
        End::Closed if up.ended => Closer::Client,
        End::Closed if down.ended => Closer::Upstream,
        End::Closed => Closer::Edge,
    };
    if let Some(count) = cell.closed.get(closer as usize) {
        count.one();
    }
    cell.received.add(up.moved);
    cell.sent.add(down.moved);
}
