//! Counts the traffic of a WebSocket as it passes: messages, round trips of pings, the close code.
//!
//! Socket.IO does not ping with WebSocket's frames but with messages of one digit (Engine.IO's `2`, answered by `3`);
//! if the request is for Engine.IO, weir counts these messages as pings. Invariant: the memory for a WebSocket does not
//! grow with its age.

use weir_http::exchange::Exchange;
use weir_http::hold::board::tunnels::{Sender, TunnelCell};
use weir_net::{Instant, clock};
use weir_wire::Known;
use weir_wire::websocket::{Mark, Passing, Seen};

/// Both directions of a WebSocket.
pub(super) struct Frames {
    up: Passing,
    down: Passing,
    ping: Option<Ping>,
    close: Option<(u16, Sender)>,
    is_engine_io: bool,
}

/// The newest ping on its way.
#[derive(Clone, Copy)]
struct Ping {
    at: Instant,
    mark: Mark,
    from: Sender,
    /// A ping with the same payload before this one has no answer yet, so the next pong may belong to that ping.
    is_doubtful: bool,
}

/// The codes for a Close without a code, and for an end without a Close (RFC 6455 §7.1.5).
const NO_CODE: u16 = 1005;
const NO_CLOSE: u16 = 1006;

/// Engine.IO's ping and pong, and the mark that replaces the payload of both: no frame has this mark.
const ENGINE_PING: u8 = b'2';
const ENGINE_PONG: u8 = b'3';
const ENGINE_MARK: Mark = Mark { bytes: u8::MAX, first: [ENGINE_PING, 0, 0, 0] };

impl Frames {
    /// For an exchange that switched protocols; `None` if the upstream did not switch to a WebSocket.
    pub(super) fn of(exchange: &Exchange<'_>) -> Option<Frames> {
        let origin = exchange.origin.as_ref()?;
        let protocol = origin.head.value(&origin.bytes, Known::Upgrade)?;
        protocol.eq_ignore_ascii_case(b"websocket").then(|| Frames {
            up: Passing::default(),
            down: Passing::default(),
            ping: None,
            close: None,
            is_engine_io: exchange.args.split(|byte| *byte == b'&').any(|pair| pair.starts_with(b"EIO=")),
        })
    }

    /// Counts bytes on their way.
    #[inline]
    pub(super) fn came(&mut self, from: Sender, bytes: &[u8], cell: &TunnelCell) {
        let Frames { up, down, ping, close, is_engine_io } = self;
        let (passing, messages) =
            if from == Sender::Client { (up, &cell.messages_received) } else { (down, &cell.messages_sent) };
        passing.take(bytes, |seen| match seen {
            Seen::Message(byte) => {
                messages.one();
                match byte {
                    Some(ENGINE_PING) if *is_engine_io => pinged(ping, ENGINE_MARK, from),
                    Some(ENGINE_PONG) if *is_engine_io => answered(ping, ENGINE_MARK, from, cell),
                    Some(_) | None => {}
                }
            }
            Seen::Ping(mark) => pinged(ping, mark, from),
            Seen::Pong(mark) => answered(ping, mark, from, cell),
            Seen::Close(code) => *close = close.or(Some((code.unwrap_or(NO_CODE), from))),
            Seen::Lost => cell.lost.one(),
        });
    }

    /// How many of the next bytes of this side change no count.
    pub(super) fn unread(&self, from: Sender) -> u64 {
        if from == Sender::Client { self.up.unread() } else { self.down.unread() }
    }

    /// So many of these bytes are on their way.
    pub(super) fn skip(&mut self, from: Sender, count: u64) {
        if from == Sender::Client { self.up.skip(count) } else { self.down.skip(count) }
    }

    /// The close code, and the sender of the first Close.
    pub(super) fn closed(&self) -> (u16, Sender) {
        self.close.unwrap_or((NO_CLOSE, Sender::Nobody))
    }
}

#[cold]
fn pinged(newest: &mut Option<Ping>, mark: Mark, from: Sender) {
    let is_doubtful = newest.is_some_and(|ping| (ping.mark, ping.from) == (mark, from));
    *newest = Some(Ping { at: clock::now(), mark, from, is_doubtful });
}

/// Handles a pong: it answers the newest ping if it comes from the other side with the same payload (RFC 6455
/// §5.5.3). Else it is unsolicited.
#[cold]
fn answered(newest: &mut Option<Ping>, mark: Mark, from: Sender, cell: &TunnelCell) {
    let Some(ping) = newest.filter(|ping| ping.mark == mark && ping.from != from) else { return };
    *newest = None;
    let [client, upstream] = &cell.round_trips;
    if !ping.is_doubtful {
        let times = if from == Sender::Client { client } else { upstream };
        times.record(clock::now().us_since(ping.at));
    }
}

#[cfg(test)]
mod tests {
    use weir_wire::websocket::{Opcode, push_frame};

    use super::*;

    fn frames(is_engine_io: bool) -> Frames {
        Frames { up: Passing::default(), down: Passing::default(), ping: None, close: None, is_engine_io }
    }

    fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        push_frame(&mut out, opcode, false, payload);
        out
    }

    /// Messages from clients and to clients, round trips of clients and of upstreams.
    fn counted(cell: &TunnelCell) -> [u64; 4] {
        let times = cell.round_trips.each_ref().map(|histogram| {
            let mut tally = weir_meter::live::histogram::Tally::default();
            tally.add(histogram);
            tally.count()
        });
        [cell.messages_received.get(), cell.messages_sent.get(), times[0], times[1]]
    }

    #[test]
    fn it_is_small() {
        assert!(size_of::<Option<Frames>>() <= 64, "{}", size_of::<Option<Frames>>());
    }

    #[test]
    fn a_pong_is_its_pings_or_nobodys() {
        let (mut frames, cell) = (frames(false), TunnelCell::default());
        let mut pass = |from, opcode, payload: &[u8]| frames.came(from, &frame(opcode, payload), &cell);
        // First an unsolicited pong; then one for another ping; then the right payload, from the wrong side, and from
        // the right one.
        pass(Sender::Client, Opcode::Pong, b"a");
        pass(Sender::Upstream, Opcode::Ping, b"a");
        pass(Sender::Client, Opcode::Pong, b"b");
        pass(Sender::Upstream, Opcode::Pong, b"a");
        assert_eq!(counted(&cell), [0, 0, 0, 0]);
        pass(Sender::Client, Opcode::Pong, b"a");
        assert_eq!(counted(&cell), [0, 0, 1, 0]);
        pass(Sender::Client, Opcode::Ping, b"");
        pass(Sender::Upstream, Opcode::Pong, b"");
        assert_eq!(counted(&cell), [0, 0, 1, 1]);
        // Two equal pings: it is unknown which of them the first pong answers.
        pass(Sender::Upstream, Opcode::Ping, b"");
        pass(Sender::Upstream, Opcode::Ping, b"");
        pass(Sender::Client, Opcode::Pong, b"");
        pass(Sender::Client, Opcode::Pong, b"");
        assert_eq!(counted(&cell), [0, 0, 1, 1]);
    }

    #[test]
    fn digits_are_pings_for_engine_io_alone() {
        for (is_engine_io, expect) in [(false, [1, 2, 0, 0]), (true, [1, 2, 1, 0])] {
            let (mut frames, cell) = (frames(is_engine_io), TunnelCell::default());
            frames.came(Sender::Upstream, &frame(Opcode::Text, b"2"), &cell);
            frames.came(Sender::Client, &frame(Opcode::Text, b"3"), &cell);
            frames.came(Sender::Upstream, &frame(Opcode::Text, b"42"), &cell);
            assert_eq!(counted(&cell), expect);
        }
    }

    #[test]
    fn the_first_close_counts() {
        let (mut frames, cell) = (frames(false), TunnelCell::default());
        assert_eq!(frames.closed(), (1006, Sender::Nobody));
        frames.came(Sender::Upstream, &frame(Opcode::Close, b""), &cell);
        frames.came(Sender::Client, &frame(Opcode::Close, &1000u16.to_be_bytes()), &cell);
        assert_eq!(frames.closed(), (1005, Sender::Upstream));
    }
}
