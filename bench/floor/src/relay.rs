//! The floor relay: HTTP/1.1 keep-alive on both sides, pooled upstream connections.
//!
//! Per exchange and side: one read and one write, nothing else; no allocation on that path.
//! An idle connection holds no buffer: bytes are read into one scratch buffer and either
//! leave in the same turn or, when the other socket is full, wait in that socket's `out`.
//! While `out` holds anything its source is not read, so TCP does the back-pressure.
//! Bodies pass by read and write: `splice` through a 1 MiB pipe was tried and cost the same.

use crate::flags::Flags;
use crate::http::{self, Length, Unfinished};
use crate::sys::{self, Event, LISTENER, Listener, Moved, Poll};
use rustix::fd::OwnedFd;
use std::io;
use std::net::SocketAddr;

/// One read takes at most this much: a 1 MiB body passes in a handful of turns.
const SCRATCH: usize = 256 * 1024;
/// Idle upstream connections kept; one more is closed.
const POOL_MAX: usize = 2048;
/// `Conn::peer` of a connection that has none.
const NONE: usize = usize::MAX;

/// Relays for ever.
pub fn run(flags: &Flags) -> io::Result<()> {
    let poll = Poll::new()?;
    let listener = Listener::bind(flags.address("listen")?, &poll)?;
    let origin = flags.address("origin")?;
    let host = origin.to_string();
    let (conns, free, pool) = (Vec::new(), Vec::new(), Vec::new());
    let mut relay = Relay { poll, origin, host, conns, free, pool, head: Vec::new() };
    let mut events = Vec::new();
    let mut scratch = vec![0; SCRATCH];
    loop {
        relay.poll.wait(&mut events, None)?;
        for event in &events {
            if event.token == LISTENER {
                listener.accept().for_each(|fd| relay.accepted(fd));
            } else {
                relay.event(event, &mut scratch);
            }
        }
    }
}

/// What the bytes arriving on a connection are.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
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

struct Conn {
    fd: OwnedFd,
    phase: Phase,
    /// The other side of the exchange, by slot.
    peer: usize,
    client: bool,
    readable: bool,
    ended: bool,
    watches_writing: bool,
    /// Client: the answer to this request is the last. Any: close once `out` is empty.
    last: bool,
    closing: bool,
    bodiless: bool,
    /// Read but not used yet: a part of a head, or the next pipelined request.
    held: Vec<u8>,
    /// What the socket has not taken yet.
    out: Vec<u8>,
}

struct Relay {
    poll: Poll,
    origin: SocketAddr,
    host: String,
    conns: Vec<Option<Conn>>,
    free: Vec<usize>,
    /// Idle upstream connections, the one used last on top.
    pool: Vec<usize>,
    /// The rewritten head, reused.
    head: Vec<u8>,
}

impl Relay {
    fn accepted(&mut self, fd: OwnedFd) {
        self.insert(fd, true);
    }

    /// An event may be for a slot's previous owner, so it is only a hint to try.
    fn event(&mut self, event: &Event, scratch: &mut [u8]) {
        let at = event.token;
        let Some(conn) = self.get(at) else { return };
        conn.readable |= event.readable;
        conn.ended |= event.ended;
        if event.writable && !conn.out.is_empty() {
            let peer = conn.peer;
            if !self.flush(at) {
                return self.end(at);
            }
            self.pump(peer, scratch);
        }
        self.pump(at, scratch);
    }

    /// Reads and forwards until the socket is drained or the other side is full.
    fn pump(&mut self, at: usize, scratch: &mut [u8]) {
        while self.may_read(at) {
            let Some(conn) = self.get(at) else { return };
            match sys::read(&conn.fd, scratch) {
                Moved::Blocked => conn.readable = false,
                Moved::Ended => return self.end(at),
                Moved::Bytes(n) => {
                    // A short read drained the socket, unless its end is queued behind it.
                    conn.readable = n == scratch.len() || conn.ended;
                    let bytes = scratch.get(..n).unwrap_or_default();
                    self.take(at, bytes);
                }
            }
        }
    }

    fn may_read(&mut self, at: usize) -> bool {
        let Some(conn) = self.get(at) else {
            return false;
        };
        if !conn.readable || conn.closing {
            return false;
        }
        let (phase, peer, own_empty) = (conn.phase, conn.peer, conn.out.is_empty());
        match phase {
            Phase::Wait => false,
            Phase::Head | Phase::Pooled => own_empty,
            Phase::Body(_) | Phase::Raw => self.get(peer).is_some_and(|peer| peer.out.is_empty()),
        }
    }

    /// Bytes arrived: what they are depends on the phase.
    fn take(&mut self, at: usize, bytes: &[u8]) {
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
            Phase::Wait | Phase::Pooled => self.end(at),
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
        let Some(conn) = self.get(at) else { return };
        if conn.phase != Phase::Body(0) {
            return;
        }
        if conn.client {
            conn.phase = Phase::Wait;
            return;
        }
        let client = std::mem::replace(&mut conn.peer, NONE);
        conn.phase = Phase::Pooled;
        if conn.last || conn.ended || self.pool.len() >= POOL_MAX {
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
        // What the client has sent meanwhile was left unread; nothing reports it again.
        if self.get(at).is_some_and(|conn| conn.readable) {
            let mut small = [0; 4096];
            self.pump(at, &mut small);
        }
    }

    /// The connection is over, and with it what depends on it.
    fn end(&mut self, at: usize) {
        let Some(conn) = self.remove(at) else { return };
        if conn.phase == Phase::Pooled {
            self.pool.retain(|&pooled| pooled != at);
        }
        match conn.phase {
            Phase::Raw => self.close_when_sent(conn.peer),
            _ => drop(self.remove(conn.peer)),
        }
    }

    fn close_when_sent(&mut self, at: usize) {
        let Some(conn) = self.get(at) else { return };
        conn.closing = true;
        if conn.out.is_empty() {
            self.remove(at);
        }
    }

    /// Sends now what the socket takes and keeps the rest; false when it is dead.
    fn send(&mut self, at: usize, first: &[u8], second: &[u8]) -> bool {
        let Some(Some(conn)) = self.conns.get_mut(at) else {
            return false;
        };
        if !conn.out.is_empty() {
            conn.out.extend_from_slice(first);
            conn.out.extend_from_slice(second);
            return true;
        }
        let sent = match (first.is_empty() && second.is_empty(), &conn.fd) {
            (true, _) => return true,
            (false, fd) => match sys::write(fd, first, second) {
                Moved::Bytes(n) => n,
                Moved::Blocked => 0,
                Moved::Ended => return false,
            },
        };
        if sent == first.len() + second.len() {
            return true;
        }
        conn.out.extend_from_slice(first.get(sent..).unwrap_or_default());
        conn.out.extend_from_slice(second.get(sent.saturating_sub(first.len())..).unwrap_or_default());
        if conn.watches_writing {
            return true;
        }
        conn.watches_writing = true;
        self.poll.watch_writing(&conn.fd, at).is_ok()
    }

    /// Sends what waited; false when the connection is dead or was only waiting for this.
    fn flush(&mut self, at: usize) -> bool {
        let Some(conn) = self.get(at) else {
            return false;
        };
        match sys::write(&conn.fd, &conn.out, &[]) {
            Moved::Bytes(n) => drop(conn.out.drain(..n)),
            Moved::Blocked => {}
            Moved::Ended => return false,
        }
        if conn.out.is_empty() {
            conn.out = Vec::new(); // an idle connection holds no buffer
            return !conn.closing;
        }
        true
    }

    /// The pooled connection used last, or a new one.
    fn upstream(&mut self) -> Option<usize> {
        if let Some(at) = self.pool.pop() {
            return Some(at);
        }
        let fd = sys::connect(self.origin).ok()?;
        self.insert(fd, false)
    }

    fn insert(&mut self, fd: OwnedFd, client: bool) -> Option<usize> {
        let at = self.free.pop().unwrap_or(self.conns.len());
        if self.poll.add(&fd, at, !client).is_err() {
            self.free.push(at);
            return None;
        }
        let conn = Conn {
            fd,
            phase: Phase::Head,
            peer: NONE,
            client,
            readable: false,
            ended: false,
            watches_writing: !client,
            last: false,
            closing: false,
            bodiless: false,
            held: Vec::new(),
            out: Vec::new(),
        };
        match self.conns.get_mut(at) {
            Some(slot) => *slot = Some(conn),
            None => self.conns.push(Some(conn)),
        }
        Some(at)
    }

    fn get(&mut self, at: usize) -> Option<&mut Conn> {
        self.conns.get_mut(at)?.as_mut()
    }

    /// Takes a connection out of its slot; dropping it closes it.
    fn remove(&mut self, at: usize) -> Option<Conn> {
        let conn = self.conns.get_mut(at)?.take()?;
        self.free.push(at);
        Some(conn)
    }
}

fn split(bytes: &[u8], left: u64) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)))
}
