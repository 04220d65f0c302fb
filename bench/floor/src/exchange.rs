//! The relay's HTTP/1.1: keep-alive on both sides, pooled upstream connections. A `Carrier` moves the bytes.
//!
//! Nothing here allocates on the steady path. An idle connection holds no bytes.

use crate::http::{self, Length, Unfinished};

/// Idle upstream connections kept; one more is closed.
const POOL_MAX: usize = 2048;
/// `Conn::peer` of a connection that has none.
pub const NONE: usize = usize::MAX;

/// Moves the bytes of connections: on epoll, or on io_uring.
pub trait Carrier {
    /// The carrier's part of one connection.
    type Line;
    /// Begins a connection to the origin, for this slot of the relay.
    fn connect(&mut self, at: usize) -> Option<Self::Line>;
    /// Sends both pieces, now or when the socket takes them; false when the connection is dead.
    fn send(&mut self, at: usize, line: &mut Self::Line, first: &[u8], second: &[u8]) -> bool;
    /// Everything is sent.
    fn is_clear(&self, line: &Self::Line) -> bool;
    /// The end of the stream is already known.
    fn has_ended(&self, line: &Self::Line) -> bool;
    /// A connection that was not read for a while may be read again.
    fn read_again(&mut self, at: usize, line: &Self::Line);
    /// Closes it.
    fn close(&mut self, line: Self::Line);
}

/// The meaning of the next bytes of a connection.
#[derive(Clone, Copy, PartialEq)]
pub enum Phase {
    /// A request head from a client, an answer's head from an upstream.
    Head,
    /// So many more bytes of a body.
    Body(u64),
    /// Client: nothing to read until its answer is through.
    Wait,
    /// Upstream: in the pool; anything that arrives ends it.
    Pooled,
    /// A tunnel, or a body that ends with the connection.
    Raw,
}

/// One connection, of a client or to the origin.
pub struct Conn<L> {
    pub line: L,
    pub phase: Phase,
    /// The other side of the exchange, by slot.
    pub peer: usize,
    /// Close it as soon as everything is sent.
    pub closing: bool,
    client: bool,
    /// Client: the answer to this request is the last. Upstream: the origin closes after this answer.
    last: bool,
    bodiless: bool,
    /// Read but not used yet: a part of a head, or the next pipelined request.
    held: Vec<u8>,
}

/// The exchanges of one worker.
pub struct Relay<C: Carrier> {
    pub carrier: C,
    host: String,
    conns: Vec<Option<Conn<C::Line>>>,
    free: Vec<usize>,
    /// Idle upstream connections, the one used last on top.
    pool: Vec<usize>,
    /// The rewritten head, reused.
    head: Vec<u8>,
}

impl<C: Carrier> Relay<C> {
    /// A relay that calls the origin `host`.
    pub fn new(carrier: C, host: String) -> Self {
        Relay { carrier, host, conns: Vec::new(), free: Vec::new(), pool: Vec::new(), head: Vec::new() }
    }

    /// A new client; `open` makes its line for the slot that it gets.
    pub fn accepted(&mut self, open: impl FnOnce(&mut C, usize) -> Option<C::Line>) {
        self.insert(true, open);
    }

    /// Uses bytes that arrived, as the phase of their connection says.
    pub fn take(&mut self, at: usize, bytes: &[u8]) {
        let Some(conn) = self.get(at) else { return };
        let peer = conn.peer;
        match conn.phase {
            Phase::Head if !conn.held.is_empty() => {
                let mut whole = std::mem::take(&mut conn.held);
                whole.extend_from_slice(bytes);
                self.head(at, &whole);
            }
            Phase::Head => self.head(at, bytes),
            Phase::Body(left) => {
                let (body, rest) = split(bytes, left);
                conn.phase = Phase::Body(left - body.len() as u64);
                conn.held.extend_from_slice(rest);
                if !self.send(peer, body, &[]) {
                    return self.end(at);
                }
                self.body_done(at);
            }
            Phase::Raw => {
                if !self.send(peer, bytes, &[]) {
                    self.end(at);
                }
            }
            // The next request is early.
            Phase::Wait => conn.held.extend_from_slice(bytes),
            Phase::Pooled => self.end(at),
        }
    }

    fn head(&mut self, at: usize, bytes: &[u8]) {
        let Some(client) = self.get(at).map(|conn| conn.client) else {
            return;
        };
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        let outcome = if client { self.request(at, bytes, &mut head) } else { self.answer(at, bytes, &mut head) };
        self.head = head;
        match outcome {
            Ok(()) => self.body_done(at),
            Err(Unfinished::Bad) => self.end(at),
            Err(Unfinished::Partial) => {
                if let Some(conn) = self.get(at) {
                    conn.held = bytes.to_vec();
                }
            }
        }
    }

    fn request(&mut self, at: usize, bytes: &[u8], head: &mut Vec<u8>) -> Result<(), Unfinished> {
        let request = http::rewrite_request(bytes, &self.host, head)?;
        let (body, rest) = split(bytes.get(request.len..).unwrap_or_default(), request.body);
        let up = self.upstream().ok_or(Unfinished::Bad)?;
        if let Some(conn) = self.get(up) {
            conn.phase = Phase::Head;
            conn.peer = at;
        }
        if let Some(conn) = self.get(at) {
            conn.peer = up;
            conn.last = request.close;
            conn.bodiless = request.bodiless;
            conn.phase = Phase::Body(request.body - body.len() as u64);
            conn.held.extend_from_slice(rest);
        }
        if self.send(up, head, body) { Ok(()) } else { Err(Unfinished::Bad) }
    }

    fn answer(&mut self, at: usize, bytes: &[u8], head: &mut Vec<u8>) -> Result<(), Unfinished> {
        let client = self.get(at).map_or(NONE, |conn| conn.peer);
        let (last, bodiless) = self.get(client).map_or((true, false), |conn| (conn.last, conn.bodiless));
        let response = http::rewrite_response(bytes, last, head)?;
        let rest = bytes.get(response.len..).unwrap_or_default();
        let body = match response.length {
            _ if response.status == 101 => rest,
            Length::Exact(n) => split(rest, if bodiless { 0 } else { n }).0,
            Length::UntilClose => rest,
        };
        if let Some(conn) = self.get(at) {
            conn.last = response.close;
            conn.phase = match response.length {
                _ if response.status == 101 => Phase::Raw,
                Length::Exact(_) if bodiless => Phase::Body(0),
                Length::Exact(n) => Phase::Body(n - body.len() as u64),
                Length::UntilClose => Phase::Raw,
            };
        }
        if response.status == 101
            && let Some(conn) = self.get(client)
        {
            conn.phase = Phase::Raw;
        }
        if self.send(client, head, body) { Ok(()) } else { Err(Unfinished::Bad) }
    }

    /// A body came to its end: the client waits for its answer, or the exchange is over.
    fn body_done(&mut self, at: usize) {
        let Some(Some(conn)) = self.conns.get_mut(at) else { return };
        if conn.phase != Phase::Body(0) {
            return;
        }
        if conn.client {
            conn.phase = Phase::Wait;
            return;
        }
        let client = std::mem::replace(&mut conn.peer, NONE);
        conn.phase = Phase::Pooled;
        if conn.last || self.carrier.has_ended(&conn.line) || self.pool.len() >= POOL_MAX {
            self.remove(at);
        } else {
            self.pool.push(at);
        }
        self.next_request(client);
    }

    fn next_request(&mut self, at: usize) {
        let Some(conn) = self.get(at) else { return };
        conn.peer = NONE;
        if conn.last {
            return self.close_when_sent(at);
        }
        conn.phase = Phase::Head;
        if !conn.held.is_empty() {
            let pipelined = std::mem::take(&mut conn.held);
            self.head(at, &pipelined);
        }
        // The relay did not read from the client while it waited for the answer.
        if let Some(Some(conn)) = self.conns.get(at) {
            self.carrier.read_again(at, &conn.line);
        }
    }

    /// The connection is over, and with it what depends on it.
    pub fn end(&mut self, at: usize) {
        let Some((phase, peer)) = self.get(at).map(|conn| (conn.phase, conn.peer)) else { return };
        self.remove(at);
        if phase == Phase::Pooled {
            self.pool.retain(|&pooled| pooled != at);
        }
        match phase {
            Phase::Raw => self.close_when_sent(peer),
            _ => self.remove(peer),
        }
    }

    fn close_when_sent(&mut self, at: usize) {
        let Some(Some(conn)) = self.conns.get_mut(at) else { return };
        conn.closing = true;
        if self.carrier.is_clear(&conn.line) {
            self.remove(at);
        }
    }

    /// Sends to a slot; false when the connection is dead.
    fn send(&mut self, at: usize, first: &[u8], second: &[u8]) -> bool {
        let Some(Some(conn)) = self.conns.get_mut(at) else {
            return false;
        };
        (first.is_empty() && second.is_empty()) || self.carrier.send(at, &mut conn.line, first, second)
    }

    /// The pooled connection used last, or a new one.
    fn upstream(&mut self) -> Option<usize> {
        self.pool.pop().or_else(|| self.insert(false, C::connect))
    }

    fn insert(&mut self, client: bool, open: impl FnOnce(&mut C, usize) -> Option<C::Line>) -> Option<usize> {
        let at = self.free.pop().unwrap_or(self.conns.len());
        let Some(line) = open(&mut self.carrier, at) else {
            self.forget(at);
            return None;
        };
        let (phase, peer, held) = (Phase::Head, NONE, Vec::new());
        let conn = Conn { line, phase, peer, closing: false, client, last: false, bodiless: false, held };
        match self.conns.get_mut(at) {
            Some(slot) => *slot = Some(conn),
            None => self.conns.push(Some(conn)),
        }
        Some(at)
    }

    /// Gives back a slot that got no connection.
    fn forget(&mut self, at: usize) {
        if at < self.conns.len() {
            self.free.push(at);
        }
    }

    /// The connection in a slot.
    pub fn get(&mut self, at: usize) -> Option<&mut Conn<C::Line>> {
        self.conns.get_mut(at)?.as_mut()
    }

    /// Takes a connection out of its slot and closes it.
    fn remove(&mut self, at: usize) {
        if let Some(conn) = self.conns.get_mut(at).and_then(Option::take) {
            self.free.push(at);
            self.carrier.close(conn.line);
        }
    }
}

fn split(bytes: &[u8], left: u64) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records what is sent, by line; every socket takes everything.
    #[derive(Default)]
    struct Record(Vec<(usize, String)>);

    impl Carrier for Record {
        type Line = usize;

        fn connect(&mut self, at: usize) -> Option<usize> {
            Some(at)
        }

        fn send(&mut self, _at: usize, line: &mut usize, first: &[u8], second: &[u8]) -> bool {
            self.0.push((*line, String::from_utf8_lossy(&[first, second].concat()).into_owned()));
            true
        }

        fn is_clear(&self, _: &usize) -> bool {
            true
        }

        fn has_ended(&self, _: &usize) -> bool {
            false
        }

        fn read_again(&mut self, _at: usize, _: &usize) {}

        fn close(&mut self, line: usize) {
            self.0.push((line, "closed".to_string()));
        }
    }

    const ASKED: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    fn relay() -> Relay<Record> {
        let mut relay = Relay::new(Record::default(), "o".to_string());
        relay.accepted(|_, at| Some(at));
        relay
    }

    #[test]
    fn an_early_request_waits_for_the_answer_and_takes_the_same_upstream() {
        let mut relay = relay();
        relay.take(0, ASKED);
        relay.take(0, ASKED);
        assert_eq!(relay.carrier.0.len(), 1);
        relay.take(1, ANSWER);
        let to: Vec<usize> = relay.carrier.0.iter().map(|(line, _)| *line).collect();
        assert_eq!(to, [1, 0, 1]);
    }

    #[test]
    fn an_end_closes_both_sides_of_an_exchange_and_a_pooled_connection_alone() {
        let mut relay = relay();
        relay.take(0, ASKED);
        relay.take(1, ANSWER);
        relay.end(1);
        assert!(relay.get(0).is_some() && relay.get(1).is_none());
        relay.take(0, ASKED);
        relay.end(0);
        assert!(relay.get(0).is_none() && relay.get(1).is_none());
    }
}
