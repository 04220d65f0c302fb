//! Two connections joined after `101 Switching Protocols`: bytes both ways until one side ends.
//!
//! The idle budget is `proxy_read_timeout`, for both directions together, as in nginx; close codes are the
//! peers' own bytes and pass through. An idle tunnel holds no buffer and no future but its connection's: its
//! exchange is put aside until the log wants it.

use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_net::{Deadline, Lease, Transport, buffer, clock};

use crate::aside::Aside;
use crate::body;
use crate::conn::{self, After, Conn, Gone};
use crate::counters;
use crate::exchange::{Exchange, Parts};
use crate::family::log_phase;
use crate::family::upstream::group::Outcome;
use crate::family::upstream::pool::Link;
use crate::family::upstream::source::Hold;
use crate::live::board::Closer;
use crate::log::{self, Level};
use crate::respond;
use crate::worker::Worker;

/// Bytes moved at a time.
const READ_BYTES: usize = 16 << 10;

/// An upstream that agreed to switch protocols.
pub struct Upgraded {
    /// The connection.
    pub link: Box<Link>,
    /// The chosen peer.
    pub hold: Hold,
}

/// One direction: what was read and not yet written. The buffer is held only while it is not empty.
#[derive(Default)]
struct Flow {
    pending: Option<Lease>,
    start: usize,
    ended: bool,
    finished: bool,
    moved: u64,
}

impl Flow {
    fn of(bytes: &[u8]) -> Flow {
        let mut flow = Flow::default();
        if !bytes.is_empty() {
            let mut lease = buffer::lease(bytes.len());
            lease.extend_from_slice(bytes);
            flow.pending = Some(lease);
        }
        flow
    }

    /// Moves what can be moved now; `true` when something did.
    fn turn(&mut self, from: &Transport, to: &Transport) -> io::Result<bool> {
        let mut progress = false;
        loop {
            if let Some(pending) = &self.pending {
                match to.try_write(pending.get(self.start..).unwrap_or_default()) {
                    Ok(count) => {
                        progress = true;
                        self.start += count;
                        self.moved += count as u64;
                        if self.start >= pending.len() {
                            self.pending = None;
                            self.start = 0;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if to.poll_writable().is_pending() {
                            return Ok(progress);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            if self.ended {
                if !self.finished {
                    self.finished = true;
                    // The other side learns of the end; it may still answer.
                    let _ = to.shutdown_write();
                    return Ok(true);
                }
                return Ok(progress);
            }
            if from.poll_readable().is_pending() {
                return Ok(progress);
            }
            let mut lease = buffer::lease(READ_BYTES);
            match from.try_read_vec(&mut lease, READ_BYTES) {
                Ok(0) => self.ended = true,
                Ok(_) => {
                    progress = true;
                    self.pending = Some(lease);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Two ends that have agreed, with what each sent too early to be read by the other.
pub struct Joined {
    upgraded: Upgraded,
    up: Flow,
    down: Flow,
}

/// Sends the 101.
pub async fn open(exchange: &mut Exchange<'_>, conn: &mut Conn, upgraded: Upgraded) -> Result<Joined, Gone> {
    exchange.keeps_alive = false;
    exchange.response.header_only = true;
    respond::send(exchange, conn, None).await?;
    exchange.step = weir_meter::Step::Tunnel;
    let up = Flow::of(exchange.request.unread());
    let early = exchange.origin.as_ref().and_then(|origin| origin.bytes.get(origin.head.len..));
    let down = Flow::of(early.unwrap_or_default());
    Ok(Joined { upgraded, up, down })
}

/// How a tunnel came to its end.
pub enum End {
    /// A side ended, or was told to.
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
    idle: Duration,
    exchange: Aside,
    _writing: Writing,
}

/// Counts as a connection that is written to until it is dropped, be it that its task panics.
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
    /// Joins the two connections; the exchange's memory comes back.
    pub fn new(joined: Joined, exchange: Exchange<'_>, conn: &mut Conn) -> (Box<Tunnel>, Parts) {
        let Joined { upgraded: Upgraded { link, hold }, up, down } = joined;
        let idle = exchange.location.values.proxy.read_timeout;
        link.deadline.set(idle);
        // One deadline is enough for two ends.
        conn.deadline = Deadline::new();
        let writing = Writing::new(exchange.worker);
        exchange.worker.board.tunnels.opened.one();
        let (exchange, parts) = Aside::put(exchange);
        (Box::new(Tunnel { link, hold, up, down, idle, exchange, _writing: writing }), parts)
    }

    /// Moves what can be moved, to the end.
    pub fn poll(&mut self, conn: &Conn) -> Poll<End> {
        let (client, upstream) = (conn.stream(), &self.link.stream);
        loop {
            if conn.shared.has_ended() {
                return Poll::Ready(End::Closed);
            }
            let moved = match (self.up.turn(client, upstream), self.down.turn(upstream, client)) {
                (Ok(up), Ok(down)) => up | down,
                (Err(error), _) | (_, Err(error)) => return Poll::Ready(End::Broken(error)),
            };
            // nginx: the tunnel ends when the upstream has; what is queued goes first.
            if self.down.finished && self.down.pending.is_none() {
                return Poll::Ready(End::Closed);
            }
            if moved {
                self.link.deadline.set(self.idle);
                continue;
            }
            return self.link.deadline.poll_expired().map(|()| End::TimedOut);
        }
    }

    /// Ends the exchange, with its line in the log; tells what becomes of the client's connection.
    pub fn close(self: Box<Self>, end: End, conn: &Conn, worker: &Rc<Worker>) -> After {
        let Tunnel { link, mut hold, up, down, idle: _, exchange, _writing: writing } = *self;
        drop((link, writing));
        exchange.end(worker, &conn.client, |exchange| {
            count_end(&end, &up, &down, exchange);
            exchange.body_bytes_sent += down.moved;
            exchange.bytes_sent += down.moved;
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
            let after = conn::parting(exchange);
            body::remove(exchange);
            after
        })
    }
}

/// Counts the end of a tunnel. Where both sides have ended, the client is taken to have gone first: an upstream that
/// goes first ends the tunnel at once.
fn count_end(end: &End, up: &Flow, down: &Flow, exchange: &Exchange<'_>) {
    let closer = match end {
        End::TimedOut => Closer::Timeout,
        End::Broken(_) => Closer::Error,
        End::Closed if up.ended => Closer::Client,
        End::Closed if down.ended => Closer::Upstream,
        End::Closed => Closer::Edge,
    };
    let cell = &exchange.worker.board.tunnels;
    if let Some(count) = cell.closed.get(closer as usize) {
        count.one();
    }
    cell.received.add(up.moved);
    cell.sent.add(down.moved);
    cell.age.record(clock::now().us_since(exchange.started));
}
