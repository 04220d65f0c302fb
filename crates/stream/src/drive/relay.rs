//! Relays a session: bytes both ways until one side ends.
//!
//! A silent session holds no buffer, and only the future of its relay. A direction with a rate waits as nginx's does.

use std::io;
use std::task::Poll;
use std::time::Duration;

use weir_http::hold::table_place::TablePlace;
use weir_meter::Step;
use weir_net::log::{Level, Os};
use weir_net::pump::{self, Pump, PumpFault, Terms, Turn};
use weir_net::{Deadline, Transport, clock};
use weir_peers::group::Outcome;

use super::hold::Hold;
use super::status::OK;
use crate::family::proxy::Values;
use crate::session::Session;

/// Two ends that are joined.
pub struct Relay {
    hold: Hold,
    link: Transport,
    _place: TablePlace,
    up: Side,
    down: Side,
    deadline: Deadline,
    timeout: Duration,
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

/// One direction.
struct Side {
    pump: Pump,
    limits: Limits,
}

/// Limits of one direction, and the bytes that were read.
struct Limits {
    pace: Option<Box<Pace>>,
    read_max: usize,
    half_close: bool,
    read: u64,
}

/// A rate: nginx's formula, with the pause after each read.
pub struct Pace {
    rate: u64,
    started_s: u64,
    pause: Deadline,
    /// Nothing is read now.
    pub waits: bool,
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
        let up = Side::new(Pump::after(first), upload, settings);
        let down = Side::new(Pump::default(), download, settings);
        let deadline = Deadline::new();
        deadline.set(settings.timeout);
        Relay { hold, link, _place: place, up, down, deadline, timeout: settings.timeout }
    }

    /// Moves bytes until the end.
    pub fn poll(&mut self, session: &mut Session<'_>) -> Poll<End> {
        let Some(shared) = session.shared.clone() else { return Poll::Ready(End::Stopped) };
        let client = &shared.stream;
        if shared.has_ended() {
            return Poll::Ready(End::Stopped);
        }
        let down_had_ended = self.down.pump.has_ended();
        let up = self.up.pump.turn(client, &self.link, &mut self.up.limits);
        let up_ended_first = self.up.pump.has_ended() && !self.down.pump.has_ended();
        let down = self.down.pump.turn(&self.link, client, &mut self.down.limits);
        self.note(session);
        let up = written(up, session, Step::FromClient, Level::Info);
        let down = written(down, session, Step::FromOrigin, Level::Error);
        let turns = match (up, down) {
            (Ok(up), Ok(down)) => [up, down],
            (Err(error), _) => return Poll::Ready(End::Broken(false, error)),
            (_, Err(error)) => return Poll::Ready(End::Broken(true, error)),
        };
        if self.is_done() {
            // nginx names the side whose end is also the end of the session: with half_close, the later one.
            return Poll::Ready(End::Closed(if self.up.limits.half_close { down_had_ended } else { up_ended_first }));
        }
        let timeout = (!self.up.waits() && !self.down.waits()).then_some(self.timeout);
        pump::poll_timeout(turns, &self.deadline, timeout).map(|()| End::TimedOut)
    }

    /// nginx's rule: the session ends when a side has ended and the other has all of its bytes.
    fn is_done(&self) -> bool {
        let (up, down) = (&self.up.pump, &self.down.pump);
        if self.up.limits.half_close {
            return up.is_done() && down.is_done();
        }
        up.is_done() || down.is_done() || up.has_ended() && down.has_ended()
    }

    /// Copies the counts to the session.
    fn note(&mut self, session: &mut Session<'_>) {
        let (up, down) = (&self.up, &self.down);
        let early = session.received.saturating_sub(session.relayed);
        session.relayed = up.limits.read;
        session.received = early + up.limits.read;
        session.sent = down.pump.written();
        let (moved_up, moved_down) = (session.received, session.sent);
        if let Some(counted) = &mut session.counted {
            counted.moved(moved_up, moved_down);
        }
        if let Some(attempt) = session.last_try() {
            (attempt.sent, attempt.received) = (up.pump.written(), down.limits.read);
            if (down.limits.read > 0 || down.pump.has_ended()) && attempt.first_byte.is_none() {
                attempt.first_byte = Some(attempt.age());
                self.hold.answered();
                session.answered();
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
                session.is_cut |= !is_client;
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
                session.received,
                session.sent,
                self.down.limits.read,
                self.up.pump.written()
            ),
        );
    }
}

/// Logs an error of reading, which ends only its direction; an error of writing is left.
fn written(turn: Result<Turn, PumpFault>, session: &mut Session<'_>, step: Step, level: Level) -> io::Result<Turn> {
    match turn {
        Ok(turn) => Ok(turn),
        Err(PumpFault::Write(error)) => Err(error),
        Err(PumpFault::Read(error)) => {
            session.is_cut |= step == Step::FromOrigin;
            session.step = Some(step);
            session.log(level, format_args!("recv() failed {}", Os(&error)));
            session.step = Some(Step::Session);
            // The next turn passes the end on.
            Ok(Turn::More)
        }
    }
}

impl Side {
    fn new(pump: Pump, rate: u64, settings: &Values) -> Side {
        let (pace, read_max, half_close) = (Pace::new(rate).map(Box::new), settings.buffer, settings.half_close);
        Side { pump, limits: Limits { pace, read_max, half_close, read: 0 } }
    }

    fn waits(&self) -> bool {
        self.limits.pace.as_ref().is_some_and(|pace| pace.waits)
    }
}

impl Terms for Limits {
    fn room(&mut self) -> Option<usize> {
        let Some(pace) = &mut self.pace else { return Some(self.read_max) };
        let left = pace.left(self.read)?;
        Some(self.read_max.min(usize::try_from(left).unwrap_or(usize::MAX)))
    }

    fn unseen(&self) -> u64 {
        // A rate limits each read.
        if self.pace.is_some() { 0 } else { u64::MAX }
    }

    fn came(&mut self, count: usize, _: Option<&[u8]>) {
        self.read += count as u64;
        if let Some(pace) = &mut self.pace {
            pace.took(count);
        }
    }

    fn passes_end(&self) -> bool {
        self.half_close
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
            let (session, sent) = (&joined.session, sent as u64);
            assert_eq!((session.received, session.tries[0].sent), (sent, sent), "inside the kernel they count too");
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
