//! Two connections joined after `101 Switching Protocols`: bytes both ways until one side ends.
//!
//! weir counts the messages of a WebSocket as they pass (`frames`); this delays and changes no byte. Bytes that it need not
//! see may go inside the kernel: all bytes of other protocols, and the rest of a long payload.
//!
//! The idle timeout is `proxy_read_timeout`, for both directions together, as in nginx; close codes are the peers' own
//! bytes and pass through. An idle tunnel holds no buffer, and only the future of its connection: weir puts its
//! exchange aside until the end, for the log.

mod frames;

use std::io;
use std::rc::Rc;
use std::task::Poll;

use frames::Frames;
use weir_http::exchange::Exchange;
use weir_http::exchange::request_body::RequestBody;
use weir_http::hold::board::tunnels::{Closer, Sender, TunnelCell};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::counters;
use weir_http::hold::worker::Worker;
use weir_http::read::families::log_phase;
use weir_http::send::respond;
use weir_net::log::{self, Level};
use weir_net::pump::{self, Pump, PumpFault, Terms};
use weir_net::{Deadline, clock};
use weir_peers::group::Outcome;
use weir_proxy::family::upstream::answer::Upgraded;
use weir_proxy::family::upstream::pool::Link;
use weir_proxy::family::upstream::source::{Hold, Source};

use crate::recorder::messages::MessageTap;

use super::after::{After, parting};
use super::aside::Aside;

/// Bytes moved at a time through memory.
const READ_BYTES: usize = 16 << 10;

/// Sends the 101.
pub async fn open(exchange: &mut Exchange<'_>, conn: &mut Conn) -> Result<(), Gone> {
    exchange.flags.keeps_alive = false;
    exchange.response.header_only = true;
    respond::send::<Source>(exchange, conn, &mut None).await?;
    exchange.facts.step = weir_meter::Step::Tunnel;
    Ok(())
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
    up: Pump,
    down: Pump,
    frames: Option<Frames>,
    /// Records the messages.
    tap: Option<Box<MessageTap>>,
    exchange: Aside,
    writing: Writing,
}

/// Shows the bytes of one direction to the frames of a WebSocket.
struct Watch<'t> {
    from: Sender,
    frames: &'t mut Option<Frames>,
    tap: &'t mut Option<Box<MessageTap>>,
    cell: &'t TunnelCell,
}

impl Terms for Watch<'_> {
    fn room(&mut self) -> Option<usize> {
        Some(READ_BYTES)
    }

    fn unseen(&self) -> u64 {
        if self.tap.is_some() {
            return 0;
        }
        self.frames.as_ref().map_or(u64::MAX, |frames| frames.unread(self.from))
    }

    #[inline]
    fn came(&mut self, count: usize, bytes: Option<&[u8]>) {
        if let (Some(tap), Some(bytes)) = (self.tap.as_mut(), bytes) {
            tap.came(self.from == Sender::Client, bytes);
            if tap.is_over() {
                *self.tap = None;
            }
        }
        match (self.frames.as_mut(), bytes) {
            (Some(frames), Some(bytes)) => frames.came(self.from, bytes, self.cell),
            (Some(frames), None) => frames.skip(self.from, count as u64),
            (None, _) => {}
        }
    }

    fn passes_end(&self) -> bool {
        true
    }
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
    /// Joins the two connections, and puts the exchange aside. The bytes that each sent too early for the other to read go first.
    pub fn new(upgraded: Upgraded, exchange: &mut Exchange<'_>, conn: &mut Conn) -> Box<Tunnel> {
        let Upgraded { link, hold } = upgraded;
        link.deadline.set(weir_proxy::values(exchange.location).proxy.read_timeout);
        // The two ends share one deadline.
        conn.deadline = Deadline::new();
        let writing = Writing::new(exchange.worker);
        let cell = &exchange.worker.board.tunnels;
        cell.opened.one();
        let early_up = exchange.request.unread();
        let origin = exchange.origin.as_ref();
        let early_down = origin.and_then(|origin| origin.bytes.get(origin.head.len..)).unwrap_or_default();
        let mut frames = Frames::of(exchange);
        if let Some(frames) = &mut frames {
            cell.watched.one();
            frames.came(Sender::Client, early_up, cell);
            frames.came(Sender::Upstream, early_down, cell);
        }
        let (up, down) = (Pump::after(early_up), Pump::after(early_down));
        let mut tap = if frames.is_some() { MessageTap::of(exchange) } else { None };
        if let Some(tap) = &mut tap {
            tap.came(true, exchange.request.unread());
            let origin = exchange.origin.as_ref();
            tap.came(false, origin.and_then(|origin| origin.bytes.get(origin.head.len..)).unwrap_or_default());
        }
        let exchange = Aside::put(exchange);
        Box::new(Tunnel { link, hold, up, down, frames, tap, exchange, writing })
    }

    /// Moves bytes until the end.
    pub fn poll(&mut self, conn: &Conn) -> Poll<End> {
        if conn.shared.has_ended() {
            return Poll::Ready(End::Closed);
        }
        let (client, upstream) = (conn.stream(), &self.link.stream);
        let (frames, tap, cell) = (&mut self.frames, &mut self.tap, &self.writing.0.board.tunnels);
        let up = self.up.turn(client, upstream, &mut Watch { from: Sender::Client, frames, tap, cell });
        let down = self.down.turn(upstream, client, &mut Watch { from: Sender::Upstream, frames, tap, cell });
        let turns = match (up, down) {
            (Ok(up), Ok(down)) => [up, down],
            (Err(PumpFault::Read(error) | PumpFault::Write(error)), _)
            | (_, Err(PumpFault::Read(error) | PumpFault::Write(error))) => return Poll::Ready(End::Broken(error)),
        };
        // nginx: the tunnel ends when the upstream ends, after the queued bytes are sent.
        if self.down.is_done() {
            return Poll::Ready(End::Closed);
        }
        let timeout = weir_proxy::values(self.exchange.location()).proxy.read_timeout;
        pump::poll_timeout(turns, &self.link.deadline, Some(timeout)).map(|()| End::TimedOut)
    }

    /// Ends the exchange and writes its log line; returns the next step of the client's connection.
    pub fn close(self: Box<Self>, end: End, conn: &Conn, worker: &Rc<Worker>) -> After {
        let Tunnel { link, mut hold, up, down, frames, tap: _, exchange, writing } = *self;
        drop((link, writing));
        exchange.end(worker, &conn.client, |exchange| {
            let cell = &exchange.worker.board.tunnels;
            count_end(&end, &up, &down, cell);
            cell.lived(clock::now().ms_since(exchange.facts.started));
            if let Some(frames) = &frames {
                let (code, sender) = frames.closed();
                cell.codes.count(code, sender);
            }
            exchange.bytes.body_sent += down.written();
            exchange.bytes.sent += down.written();
            if let Some(attempt) = exchange.last_try() {
                attempt.bytes_received += down.written();
                attempt.bytes_sent += up.written();
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
fn count_end(end: &End, up: &Pump, down: &Pump, cell: &TunnelCell) {
    let closer = match end {
        End::TimedOut => Closer::Timeout,
        End::Broken(_) => Closer::Error,
        End::Closed if up.has_ended() => Closer::Client,
        End::Closed if down.has_ended() => Closer::Upstream,
        End::Closed => Closer::Edge,
    };
    if let Some(count) = cell.closed.get(closer as usize) {
        count.one();
    }
    cell.received.add(up.written());
    cell.sent.add(down.written());
}
