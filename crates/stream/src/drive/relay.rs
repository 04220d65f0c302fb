//! Relays a session: bytes both ways until one side ends.
//!
//! A silent session holds no buffer, and only the future of its relay. A direction with a rate waits as nginx's does.

use std::io;
use std::task::Poll;
use std::time::Duration;

use weir_http::table_place::TablePlace;
use weir_meter::Step;
use weir_net::log::{Level, Os};
use weir_net::splice::{PIPE_BYTES, Pipe};
use weir_net::worker::Task;
use weir_net::{Deadline, Lease, Stream, Transport, buffer, clock};
use weir_peers::group::Outcome;

use super::hold::Hold;
use super::status::OK;
use crate::family::proxy::Values;
use crate::session::Session;

/// So many reads in a row that fill the buffer make a direction move bytes inside the kernel.
const FULL_READS: u8 = 2;
/// Reads of one direction before other sessions have their turn.
const READS_MAX: usize = 16;

/// Two ends that are joined.
pub struct Relay {
    hold: Hold,
    link: Transport,
    _place: TablePlace,
    up: Flow,
    down: Flow,
    deadline: Deadline,
    timeout: Duration,
    half_close: bool,
}

/// How a relay ended.
pub enum End {
    /// A side closed its connection: the client if true.
    Closed(bool),
    /// Nothing moved for `proxy_timeout`.
    TimedOut,
    /// Bytes could not be sent: to the client if true.
    Broken(bool, io::Error),
    /// weir ended it.
    Stopped,
}

/// One direction. It holds a buffer only while there are bytes that were read and could not be written.
struct Flow {
    pending: Option<Box<Pending>>,
    pace: Option<Box<Pace>>,
    read_max: usize,
    read: u64,
    written: u64,
    /// The sender has ended.
    ended: bool,
    /// The receiver knows it.
    is_shut: bool,
    /// The error that ended it.
    failed: Option<io::Error>,
    /// Reads in a row that filled the buffer.
    full_reads: u8,
    /// Bytes on their way inside the kernel.
    pipe: Option<Pipe>,
}

/// Bytes that were read, and how many of them are written.
struct Pending {
    bytes: Lease,
    start: usize,
}

/// A rate: nginx's formula, with the pause after each read.
pub struct Pace {
    rate: u64,
    started_s: u64,
    pause: Deadline,
    /// Nothing is read now.
    pub waits: bool,
}

/// The result of one turn of a direction.
enum Turn {
    /// Nothing: it waits for a side.
    Idle,
    /// It moved bytes, or it ended.
    Moved,
    /// It moved bytes, and more are waiting.
    More,
}

impl Relay {
    /// Joins two ends; `first` goes to the peer before all other bytes.
    pub fn new(
        hold: Hold,
        link: Transport,
        place: TablePlace,
        first: &[u8],
        rates: [u64; 2],
        settings: &Values,
    ) -> Relay {
        let [upload, download] = rates;
        let mut up = Flow::new(settings.buffer, upload);
        if !first.is_empty() {
            let mut bytes = buffer::lease(first.len());
            bytes.extend_from_slice(first);
            up.pending = Some(Box::new(Pending { bytes, start: 0 }));
        }
        let deadline = Deadline::new();
        deadline.set(settings.timeout);
        let down = Flow::new(settings.buffer, download);
        let (timeout, half_close) = (settings.timeout, settings.half_close);
        Relay { hold, link, _place: place, up, down, deadline, timeout, half_close }
    }

    /// Moves bytes until the end.
    pub fn poll(&mut self, session: &mut Session<'_>) -> Poll<End> {
        let Some(shared) = session.shared.clone() else { return Poll::Ready(End::Stopped) };
        let client = &shared.stream;
        if shared.has_ended() {
            return Poll::Ready(End::Stopped);
        }
        let up = self.up.turn(client, &self.link, self.half_close);
        let up_ended_first = self.up.ended && !self.down.ended;
        let down = self.down.turn(&self.link, client, self.half_close);
        self.note(session);
        let (up, down) = match (up, down) {
            (Ok(up), Ok(down)) => (up, down),
            (Err(error), _) => return Poll::Ready(End::Broken(false, error)),
            (_, Err(error)) => return Poll::Ready(End::Broken(true, error)),
        };
        if self.is_done() {
            return Poll::Ready(End::Closed(up_ended_first));
        }
        let waits = |flow: &Flow| flow.pace.as_ref().is_some_and(|pace| pace.waits);
        if waits(&self.up) || waits(&self.down) {
            self.deadline.clear();
        } else if !matches!((&up, &down), (Turn::Idle, Turn::Idle)) || !self.deadline.is_set() {
            self.deadline.set(self.timeout);
        }
        if matches!(up, Turn::More) || matches!(down, Turn::More) {
            // Other sessions have their turn first.
            Task::current().wake();
            return Poll::Pending;
        }
        self.deadline.poll_expired().map(|()| End::TimedOut)
    }

    /// nginx's rule: the session ends when a side has ended and the other has all of its bytes.
    fn is_done(&self) -> bool {
        let (client_ended, peer_ended) = (self.up.ended, self.down.ended);
        let (to_client, to_peer) = (self.down.has_waiting(), self.up.has_waiting());
        if self.half_close {
            return client_ended && peer_ended && !to_client && !to_peer;
        }
        match (client_ended, peer_ended) {
            (false, false) => false,
            (true, false) => !to_peer,
            (false, true) => !to_client,
            (true, true) => true,
        }
    }

    /// Copies the counts to the session, and logs errors of reading.
    fn note(&mut self, session: &mut Session<'_>) {
        let early = session.received.saturating_sub(session.relayed);
        session.relayed = self.up.read;
        session.received = early + self.up.read;
        session.sent = self.down.written;
        let (moved_up, moved_down) = (session.received, session.sent);
        if let Some(counted) = &mut session.counted {
            counted.moved(moved_up, moved_down);
        }
        let (sent, received, has_answered) = (self.up.written, self.down.read, self.down.read > 0 || self.down.ended);
        if let Some(attempt) = session.last_try() {
            (attempt.sent, attempt.received) = (sent, received);
            if has_answered && attempt.first_byte.is_none() {
                attempt.first_byte = Some(attempt.age());
                self.hold.answered();
            }
        }
        for (flow, step, level) in
            [(&mut self.up, Step::FromClient, Level::Info), (&mut self.down, Step::FromOrigin, Level::Error)]
        {
            if let Some(error) = flow.failed.take() {
                session.step = Some(step);
                session.log(level, format_args!("recv() failed {}", Os(&error)));
                session.step = Some(Step::Session);
            }
        }
    }

    /// Ends the session's part with its peer; returns the status.
    pub fn close(mut self, session: &mut Session<'_>, end: End) -> u16 {
        if let Some(attempt) = session.last_try() {
            attempt.session = Some(attempt.age());
            self.hold.ended(attempt);
        }
        match end {
            End::Closed(is_client) => self.tell(session, if is_client { "client" } else { "upstream" }),
            End::TimedOut => {
                session.log(Level::Info, format_args!("connection timed out (110: Connection timed out)"));
            }
            End::Broken(is_client, error) => {
                session.step = Some(if is_client { Step::ToClient } else { Step::ToOrigin });
                let level = if is_client { Level::Info } else { Level::Error };
                session.log(level, format_args!("send() failed {}", Os(&error)));
            }
            End::Stopped => session.log(Level::Info, format_args!("shutdown timeout")),
        }
        if self.link.is_secure() {
            let _ = self.link.shutdown_write();
        }
        self.hold.release(Outcome::Ok);
        OK
    }

    fn tell(&self, session: &Session<'_>, side: &str) {
        session.tell(
            Level::Info,
            format_args!(
                "{side} disconnected, bytes from/to client:{}/{}, bytes from/to upstream:{}/{}",
                session.received, session.sent, self.down.read, self.up.written
            ),
        );
    }
}

impl Flow {
    fn new(read_max: usize, rate: u64) -> Flow {
        let pace = Pace::new(rate).map(Box::new);
        Flow {
            pending: None,
            pace,
            read_max,
            read: 0,
            written: 0,
            ended: false,
            is_shut: false,
            failed: None,
            full_reads: 0,
            pipe: None,
        }
    }

    /// Whether there are bytes that were read and not written.
    fn has_waiting(&self) -> bool {
        self.pending.is_some() || self.pipe.as_ref().is_some_and(|pipe| pipe.held() > 0)
    }

    /// Moves bytes inside the kernel. Gives the pipe back when nothing more has arrived.
    fn splice(&mut self, from: &Stream, to: &Stream) -> io::Result<Turn> {
        let mut turn = Turn::Idle;
        for _ in 0..READS_MAX {
            let Some(pipe) = &mut self.pipe else { return Ok(turn) };
            if pipe.held() > 0 {
                match to.try_splice_from(pipe) {
                    Ok(count) => {
                        self.written += count as u64;
                        turn = Turn::Moved;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if to.poll_writable().is_pending() {
                            return Ok(turn);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            match from.try_splice_into(pipe, PIPE_BYTES) {
                Ok(0) => {
                    self.ended = true;
                    self.pipe = None;
                    return Ok(Turn::Moved);
                }
                Ok(count) => {
                    self.read += count as u64;
                    turn = Turn::Moved;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if from.poll_readable().is_pending() {
                        self.pipe = None;
                        return Ok(turn);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.failed = Some(error);
                    self.pipe = None;
                    return Ok(Turn::Moved);
                }
            }
        }
        Ok(Turn::More)
    }

    /// Moves the bytes that can be moved at the moment; the error is one of writing.
    fn turn(&mut self, from: &Transport, to: &Transport, half_close: bool) -> io::Result<Turn> {
        let mut turn = Turn::Idle;
        if self.pipe.is_some()
            && let (Some(from), Some(to)) = (from.bare(), to.bare())
        {
            turn = self.splice(from, to)?;
            if self.pipe.is_some() || !self.ended {
                return Ok(turn);
            }
        }
        for _ in 0..READS_MAX {
            if let Some(pending) = &mut self.pending {
                let before = pending.start;
                let is_whole = to.try_write_rest(&pending.bytes, &mut pending.start)?;
                self.written += (pending.start - before) as u64;
                if pending.start > before {
                    turn = Turn::Moved;
                }
                if !is_whole {
                    return Ok(turn);
                }
                self.pending = None;
            }
            if self.ended {
                if half_close && !self.is_shut {
                    self.is_shut = true;
                    // The other side sees the end of this direction; it may still answer.
                    let _ = to.shutdown_write();
                }
                return Ok(turn);
            }
            let Some(room) = self.room() else { return Ok(turn) };
            if from.poll_readable().is_pending() {
                return Ok(turn);
            }
            let mut bytes = buffer::lease(room);
            match from.try_read_vec(&mut bytes, room) {
                Ok(0) => {
                    self.ended = true;
                    turn = Turn::Moved;
                }
                Ok(count) => {
                    turn = Turn::Moved;
                    self.took(count);
                    self.full_reads = if count == room { self.full_reads.saturating_add(1) } else { 0 };
                    let mut start = 0;
                    let is_whole = to.try_write_rest(&bytes, &mut start);
                    self.written += start as u64;
                    if !is_whole? {
                        self.pending = Some(Box::new(Pending { bytes, start }));
                        return Ok(turn);
                    }
                    if self.full_reads >= FULL_READS
                        && self.pace.is_none()
                        && from.bare().is_some()
                        && to.bare().is_some()
                    {
                        self.full_reads = 0;
                        // Without a pipe, the bytes go on through memory.
                        self.pipe = Pipe::lease().ok();
                        if self.pipe.is_some() {
                            return Ok(Turn::More);
                        }
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => {
                    self.ended = true;
                    self.failed = Some(error);
                    turn = Turn::Moved;
                }
            }
        }
        Ok(Turn::More)
    }

    /// How many bytes may be read now; `None` while the rate makes it wait.
    fn room(&mut self) -> Option<usize> {
        let Some(pace) = &mut self.pace else { return Some(self.read_max) };
        let left = pace.left(self.read)?;
        Some(self.read_max.min(usize::try_from(left).unwrap_or(usize::MAX)))
    }

    fn took(&mut self, count: usize) {
        self.read += count as u64;
        if let Some(pace) = &mut self.pace {
            pace.took(count);
        }
    }
}

impl Pace {
    /// A rate that starts at this moment; `None` for 0.
    pub fn new(rate: u64) -> Option<Pace> {
        let (started_s, pause) = (clock::unix_seconds(), Deadline::new());
        (rate > 0).then_some(Pace { rate, started_s, pause, waits: false })
    }

    /// How many bytes may be read now, after `read` bytes; `None` while it waits.
    pub fn left(&mut self, read: u64) -> Option<u64> {
        if self.waits {
            if self.pause.poll_expired().is_pending() {
                return None;
            }
            self.waits = false;
        }
        let seconds = clock::unix_seconds().saturating_sub(self.started_s) + 1;
        let budget = self.rate.saturating_mul(seconds);
        match budget.checked_sub(read).filter(|left| *left > 0) {
            Some(left) => Some(left),
            None => {
                self.wait((read - budget).saturating_mul(1000) / self.rate + 1);
                None
            }
        }
    }

    /// Notes the bytes of one read.
    pub fn took(&mut self, count: usize) {
        let ms = (count as u64).saturating_mul(1000) / self.rate;
        if ms > 0 {
            self.wait(ms);
        }
    }

    fn wait(&mut self, ms: u64) {
        self.waits = true;
        self.pause.set(Duration::from_millis(ms));
        // The current task is woken then.
        let _ = self.pause.poll_expired();
    }
}
