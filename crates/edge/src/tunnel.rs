//! Two connections joined after `101 Switching Protocols`: bytes both ways until one side ends.
//!
//! The idle budget is `proxy_read_timeout`, for both directions together, as in nginx; close codes are the
//! peers' own bytes and pass through. An idle tunnel holds no buffer.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use weir_net::{Deadline, Lease, Stream, buffer};

use crate::conn::{Conn, Gone};
use crate::exchange::Exchange;
use crate::family::upstream::group::Outcome;
use crate::family::upstream::pool::Link;
use crate::family::upstream::source::Hold;
use crate::log::Level;
use crate::respond;

/// Bytes moved at a time.
const READ_BYTES: usize = 16 << 10;

/// An upstream that agreed to switch protocols.
pub struct Upgraded {
    /// The connection.
    pub link: Link,
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
    fn turn(&mut self, from: &Stream, to: &Stream) -> io::Result<bool> {
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

/// Sends the 101 and joins the two connections.
pub async fn run(exchange: &mut Exchange<'_>, conn: &mut Conn, upgraded: Upgraded) -> Result<(), Gone> {
    exchange.keeps_alive = false;
    let early = exchange.origin.as_ref().map(|origin| origin.bytes.get(origin.head.len..).unwrap_or_default().to_vec());
    exchange.response.header_only = true;
    respond::send(exchange, conn, None).await?;
    exchange.step = weir_meter::Step::Tunnel;
    let Upgraded { link, mut hold } = upgraded;
    let mut up = Flow::of(exchange.request.unread());
    let mut down = Flow::of(&early.unwrap_or_default());
    exchange.let_go();
    let idle = exchange.location.values.proxy.read_timeout;
    let deadline: &Deadline = &link.deadline;
    deadline.set(idle);
    conn.deadline.clear();
    let client = conn.stream();
    let end = poll_fn(|_| {
        loop {
            if conn.shared.has_ended() {
                return Poll::Ready(Ok(true));
            }
            let moved = match (up.turn(client, &link.stream), down.turn(&link.stream, client)) {
                (Ok(a), Ok(b)) => a | b,
                (Err(error), _) | (_, Err(error)) => return Poll::Ready(Err(error)),
            };
            // nginx: the tunnel ends when the upstream has, or when the client has; what is queued goes first.
            if (up.finished && up.pending.is_none()) && (down.finished && down.pending.is_none()) {
                return Poll::Ready(Ok(true));
            }
            if down.finished && down.pending.is_none() {
                return Poll::Ready(Ok(true));
            }
            if moved {
                deadline.set(idle);
                continue;
            }
            return deadline.poll_expired().map(|()| Ok(false));
        }
    })
    .await;
    exchange.body_bytes_sent += down.moved;
    exchange.bytes_sent += down.moved;
    if let Some(attempt) = exchange.last_try() {
        attempt.bytes_received += down.moved;
        attempt.bytes_sent += up.moved;
        attempt.end();
    }
    hold.release(Outcome::Ok);
    match end {
        Ok(true) => {}
        Ok(false) => {
            exchange.log(Level::Error, format_args!("upstream timed out (110: Connection timed out)"));
        }
        Err(error) => {
            let error = crate::log::Os(&error);
            exchange.log(Level::Info, format_args!("tunnel broken {error}"));
        }
    }
    Ok(())
}
