//! Relays a session: bytes both ways until one side ends.
//!
//! A silent session holds no buffer, and only the future of its relay. A direction with a rate waits as nginx's does.

use std::io;
use std::task::Poll;
use std::time::Duration;

use weir_http::hold::table_place::TablePlace;
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
        let down_had_ended = self.down.ended;
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
            // nginx names the side whose end is also the end of the session: with half_close, the later one.
            return Poll::Ready(End::Closed(if self.half_close { down_had_ended } else { up_ended_first }));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Try;
    use crate::tests::{Edge, on_worker, pair};
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use weir_net::worker::yield_now;

    /// A relay between two ends that the test holds.
    struct Joined<'e> {
        session: Session<'e>,
        relay: Relay,
        client: UnixStream,
        peer: UnixStream,
    }

    fn joined<'e>(edge: &'e Edge, first: &[u8]) -> Joined<'e> {
        let (mut session, client) = edge.connected();
        let (link, peer) = pair();
        let mut hold = Hold::new(edge.group("u"), 0);
        hold.pick(b"", &mut |_| 0).unwrap();
        session.tries.push(Try::new("u".into()));
        session.received = first.len() as u64;
        let place = edge.worker.take_place().unwrap();
        let settings = &crate::values(&session.server.place).proxy;
        let relay = Relay::new(hold, link, place, first, [0, 0], settings);
        Joined { session, relay, client, peer }
    }

    impl Joined<'_> {
        /// Lets the relay run until it has nothing more to do; its end, if it has come.
        async fn settle(&mut self) -> Option<End> {
            for _ in 0..6 {
                if let Poll::Ready(end) = self.relay.poll(&mut self.session) {
                    return Some(end);
                }
                yield_now().await;
            }
            None
        }
    }

    /// The bytes that have come to an end, and whether it has seen the end of the other side.
    fn arrived(mut end: &UnixStream) -> (String, bool) {
        let (mut all, mut room) = (Vec::new(), [0; 4096]);
        loop {
            match end.read(&mut room) {
                Ok(0) => return (String::from_utf8(all).unwrap(), true),
                Ok(count) => all.extend_from_slice(&room[..count]),
                Err(_) => return (String::from_utf8(all).unwrap(), false),
            }
        }
    }

    const GROUP: &str = "upstream u { server 127.0.0.1:1; }";

    fn server(settings: &str) -> String {
        format!("{GROUP} server {{ listen 127.0.0.1:2; proxy_pass u; {settings} }}")
    }

    #[test]
    fn a_session_ends_when_a_side_has_ended_and_the_other_has_all_its_bytes() {
        // The steps: `<` is the client, `>` the peer; a text is written, `.` is the end of that side. Then the step with
        // which the session ends, and whether the client is said to have left.
        for (half_close, steps, ends_at, by_client) in [
            ("off", "<a >b <c <.", 3, true),
            ("off", "<a >b >.", 2, false),
            ("off", "<.", 0, true),
            ("off", ">.", 0, false),
            ("on", "<a <. >b >c >.", 4, false),
            ("on", ">a >. <b <.", 3, true),
            ("on", "<. >.", 1, false),
        ] {
            let text = server(&format!("proxy_half_close {half_close};"));
            let shown = format!("{half_close} {steps}");
            on_worker(async move {
                let edge = Edge::new(&text);
                let mut joined = joined(&edge, b"");
                let mut sent = [String::new(), String::new()];
                for (at, step) in steps.split(' ').enumerate() {
                    let (from, what) = step.split_at(1);
                    let (mut end, side) = if from == "<" { (&joined.client, 0) } else { (&joined.peer, 1) };
                    if what == "." {
                        end.shutdown(Shutdown::Write).unwrap();
                    } else {
                        end.write_all(what.as_bytes()).unwrap();
                        sent[side].push_str(what);
                    }
                    let end = joined.settle().await;
                    assert_eq!(end.is_some(), at == ends_at, "{shown}: step {at}");
                    if let Some(end) = end {
                        assert!(matches!(end, End::Closed(client) if client == by_client), "{shown}");
                        let Joined { mut session, relay, .. } = joined;
                        assert_eq!(relay.close(&mut session, end), OK);
                        let attempt = &session.tries[0];
                        assert_eq!([session.received, attempt.sent], [sent[0].len() as u64; 2], "{shown}");
                        assert_eq!([session.sent, attempt.received], [sent[1].len() as u64; 2], "{shown}");
                        assert!(attempt.session.is_some(), "{shown}");
                        assert!(attempt.first_byte.is_some() || sent[1].is_empty(), "{shown}");
                        return;
                    }
                }
            });
        }
    }

    #[test]
    fn only_half_close_tells_a_side_that_the_other_sends_no_more() {
        for (half_close, sees_end) in [("off", false), ("on", true)] {
            let text = server(&format!("proxy_half_close {half_close};"));
            on_worker(async move {
                let edge = Edge::new(&text);
                let mut joined = joined(&edge, b"");
                joined.client.write_all(b"last").unwrap();
                joined.client.shutdown(Shutdown::Write).unwrap();
                let end = joined.settle().await;
                assert_eq!(end.is_none(), sees_end);
                assert_eq!(arrived(&joined.peer), ("last".to_owned(), sees_end), "{half_close}");
                if sees_end {
                    joined.peer.write_all(b"answer").unwrap();
                    assert!(joined.settle().await.is_none());
                    assert_eq!(arrived(&joined.client), ("answer".to_owned(), false));
                }
            });
        }
    }

    #[test]
    fn bytes_that_were_read_before_go_first_and_count_once() {
        on_worker(async {
            let edge = Edge::new(&server(""));
            let mut joined = joined(&edge, b"early ");
            joined.client.write_all(b"later").unwrap();
            assert!(joined.settle().await.is_none());
            assert_eq!(arrived(&joined.peer), ("early later".to_owned(), false));
            assert_eq!((joined.session.received, joined.session.tries[0].sent), (11, 11));
        });
    }

    #[test]
    fn a_side_that_reads_nothing_holds_back_the_other() {
        on_worker(async {
            let edge = Edge::new(&server("proxy_buffer_size 4k;"));
            let mut joined = joined(&edge, b"");
            let whole: Vec<u8> = (0..1 << 20).map(|at: u32| b'a' + (at / 4099 % 26) as u8).collect();
            let (mut written, mut all) = (0, Vec::new());
            let mut write = |joined: &Joined<'_>| {
                while let Ok(count) = (&joined.client).write(&whole[written..]) {
                    written += count;
                    if count == 0 {
                        break;
                    }
                }
                written
            };
            write(&joined);
            for _ in 0..50 {
                assert!(joined.settle().await.is_none());
                write(&joined);
            }
            let stuck = joined.session.received;
            assert!(stuck < whole.len() as u64, "all bytes fit into the kernel: the peer holds nothing back");
            assert!(joined.session.tries[0].sent <= stuck);
            for _ in 0..1000 {
                all.extend_from_slice(arrived(&joined.peer).0.as_bytes());
                write(&joined);
                assert!(joined.settle().await.is_none());
            }
            assert!(all == whole, "bytes keep their order, through memory and inside the kernel");
            joined.client.shutdown(Shutdown::Write).unwrap();
            assert!(matches!(joined.settle().await, Some(End::Closed(true))));
        });
    }

    #[test]
    fn an_end_waits_for_bytes_that_the_other_side_has_not_taken() {
        on_worker(async {
            let edge = Edge::new(&server(""));
            let mut joined = joined(&edge, b"");
            let mut sent = 0;
            while let Ok(count) = joined.client.write(&[b'x'; 64 << 10]) {
                sent += count;
                assert!(joined.settle().await.is_none());
            }
            joined.client.shutdown(Shutdown::Write).unwrap();
            assert!(joined.settle().await.is_none(), "the peer has not got all bytes");
            let mut got = 0;
            let mut end = None;
            for _ in 0..1000 {
                got += arrived(&joined.peer).0.len();
                end = end.or(joined.settle().await);
            }
            assert!(got == sent && matches!(end, Some(End::Closed(true))), "{got} of {sent} bytes");
        });
    }

    #[test]
    fn weir_ends_a_session_at_once() {
        on_worker(async {
            let edge = Edge::new(&server(""));
            let mut joined = joined(&edge, b"");
            joined.session.shared.clone().unwrap().end();
            assert!(matches!(joined.settle().await, Some(End::Stopped)));
        });
    }

    #[test]
    fn a_rate_pauses_after_each_read() {
        on_worker(async {
            assert!(Pace::new(0).is_none());
            let mut pace = Pace::new(10_000).unwrap();
            assert!(pace.left(0).is_some_and(|left| left >= 10_000));
            for (count, waits) in [(9, false), (10, true)] {
                pace.took(count);
                assert_eq!(pace.waits, waits, "{count} bytes");
            }
            assert_eq!(pace.left(0), None, "nothing is read during the pause");
            let mut spent = Pace::new(10).unwrap();
            assert_eq!((spent.left(1 << 40), spent.waits), (None, true), "more was read than the time allows");
        });
    }
}
