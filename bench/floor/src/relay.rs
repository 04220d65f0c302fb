//! The floor relay: HTTP/1.1 keep-alive on both sides, pooled upstream connections, on epoll.
//!
//! Per exchange and side: one read and one write, nothing else; no allocation on that path.
//! An idle connection holds no buffer: bytes are read into one scratch buffer and either
//! leave in the same turn or, when the other socket is full, wait in that socket's `out`.
//! While `out` holds anything its source is not read, so TCP does the back-pressure.
//! Bodies pass by read and write: `splice` through a 1 MiB pipe was tried and cost the same.
//! With `--send late`, nothing leaves before all events of a turn are served, as on io_uring: the order of the calls is
//! then the same, and what remains between the two relays is io_uring's own.

use crate::exchange::{Carrier, Phase, Relay};
use crate::flags::Flags;
use crate::sys::{self, Event, LISTENER, Listener, Moved, Poll};
use crate::uring;
use rustix::fd::OwnedFd;
use std::io;
use std::net::SocketAddr;

/// One read takes at most this much: a 1 MiB body passes in a handful of turns.
const SCRATCH: usize = 256 * 1024;

/// The settings of every worker.
#[derive(Clone, Copy)]
struct Plan {
    listen: SocketAddr,
    origin: SocketAddr,
    workers: usize,
    /// On epoll: sends at the end of a turn.
    late: bool,
    /// None: on epoll.
    ring: Option<uring::Tuning>,
}

/// Relays for ever, with `--workers N` threads; on io_uring with `--ring multi` or `--ring single`, else on epoll.
pub fn run(flags: &Flags) -> io::Result<()> {
    let workers = if flags.text("workers").is_some() { flags.need("workers")? } else { 1 };
    let ring = uring::Tuning::of(flags)?;
    let late = match flags.text("send") {
        None => false,
        Some("late") => true,
        Some(_) => return Err(io::Error::other("--send is late, or not there")),
    };
    let plan = Plan { listen: flags.address("listen")?, origin: flags.address("origin")?, workers, late, ring };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(move || work(&plan))).collect();
        let own = work(&plan);
        for other in others {
            other.join().map_err(|_| io::Error::other("a worker ended"))??;
        }
        own
    })
}

fn work(plan: &Plan) -> io::Result<()> {
    match plan.ring {
        None => on_epoll(plan),
        Some(tuning) => uring::run(plan.listen, plan.origin, plan.workers > 1, tuning),
    }
}

fn on_epoll(plan: &Plan) -> io::Result<()> {
    let poll = Poll::new()?;
    let listener = Listener::bind(plan.listen, plan.workers > 1, &poll)?;
    let mut relay = Relay::new(Epoll::new(poll, plan), plan.origin.to_string());
    let mut events = Vec::new();
    let mut scratch = vec![0; SCRATCH];
    loop {
        relay.carrier.poll.wait(&mut events, None)?;
        for event in &events {
            if event.token == LISTENER {
                listener.accept().for_each(|fd| relay.accepted(|epoll, at| epoll.open(fd, at, false)));
            } else {
                reported(&mut relay, event, &mut scratch);
            }
            while let Some(at) = relay.carrier.again.pop() {
                pump(&mut relay, at, &mut scratch);
            }
        }
        while let Some(at) = relay.carrier.due.pop() {
            send_due(&mut relay, at, &mut scratch);
        }
    }
}

/// A relay's carrier on epoll.
struct Epoll {
    poll: Poll,
    origin: SocketAddr,
    /// Connections that were readable while nothing could be read from them.
    again: Vec<usize>,
    late: bool,
    /// Connections with something to send at the end of the turn.
    due: Vec<usize>,
    /// Buffers for the next sends.
    spare: Vec<Vec<u8>>,
}

struct Line {
    fd: OwnedFd,
    readable: bool,
    ended: bool,
    watches_writing: bool,
    /// Bytes that the socket has not taken yet.
    out: Vec<u8>,
}

/// An event may be for a slot's previous owner, so it is only a hint to try.
fn reported(relay: &mut Relay<Epoll>, event: &Event, scratch: &mut [u8]) {
    let at = event.token;
    let Some(conn) = relay.get(at) else { return };
    conn.line.readable |= event.readable;
    conn.line.ended |= event.ended;
    if event.writable && !conn.line.out.is_empty() {
        let peer = conn.peer;
        if !conn.line.flush() || (conn.closing && conn.line.out.is_empty()) {
            return relay.end(at);
        }
        pump(relay, peer, scratch);
    }
    pump(relay, at, scratch);
}

/// Reads and forwards until the socket is drained or the other side is full.
fn pump(relay: &mut Relay<Epoll>, at: usize, scratch: &mut [u8]) {
    while may_read(relay, at) {
        let Some(conn) = relay.get(at) else { return };
        match sys::read(&conn.line.fd, scratch) {
            Moved::Blocked => conn.line.readable = false,
            Moved::Ended => return relay.end(at),
            Moved::Bytes(n) => {
                // A short read drained the socket, unless its end is queued behind it.
                conn.line.readable = n == scratch.len() || conn.line.ended;
                let bytes = scratch.get(..n).unwrap_or_default();
                relay.take(at, bytes);
            }
        }
    }
}

fn may_read(relay: &mut Relay<Epoll>, at: usize) -> bool {
    let Some(conn) = relay.get(at) else {
        return false;
    };
    if !conn.line.readable || conn.closing {
        return false;
    }
    let (phase, peer, own_empty) = (conn.phase, conn.peer, conn.line.out.is_empty());
    match phase {
        Phase::Wait => false,
        Phase::Head | Phase::Pooled => own_empty,
        Phase::Body(_) | Phase::Raw => relay.get(peer).is_some_and(|peer| peer.line.out.is_empty()),
    }
}

/// Sends the bytes that a turn has left for a connection. If the slot has a new owner, these are the new owner's bytes.
fn send_due(relay: &mut Relay<Epoll>, at: usize, scratch: &mut [u8]) {
    let Some(conn) = relay.get(at) else { return };
    if conn.line.out.is_empty() {
        return;
    }
    let (peer, closing) = (conn.peer, conn.closing);
    let mut out = std::mem::take(&mut conn.line.out);
    let sent = match sys::write(&conn.line.fd, &out, &[]) {
        Moved::Bytes(n) => n,
        Moved::Blocked => 0,
        Moved::Ended => return relay.end(at),
    };
    if sent < out.len() {
        out.drain(..sent);
        conn.line.out = out; // epoll tells when it goes on: `open` asked for that
        return;
    }
    out.clear();
    relay.carrier.spare.push(out);
    if closing {
        return relay.end(at);
    }
    pump(relay, peer, scratch);
}

impl Epoll {
    fn new(poll: Poll, plan: &Plan) -> Self {
        let (origin, late) = (plan.origin, plan.late);
        Epoll { poll, origin, again: Vec::new(), late, due: Vec::new(), spare: Vec::new() }
    }

    fn open(&mut self, fd: OwnedFd, at: usize, writing: bool) -> Option<Line> {
        let writing = writing || self.late;
        self.poll.add(&fd, at, writing).ok()?;
        Some(Line { fd, readable: false, ended: false, watches_writing: writing, out: Vec::new() })
    }
}

impl Carrier for Epoll {
    type Line = Line;

    fn connect(&mut self, at: usize) -> Option<Line> {
        let fd = sys::connect(self.origin).ok()?;
        self.open(fd, at, true)
    }

    fn send(&mut self, at: usize, line: &mut Line, first: &[u8], second: &[u8]) -> bool {
        if self.late && line.out.is_empty() {
            self.due.push(at);
            line.out = self.spare.pop().unwrap_or_default();
        }
        if self.late || !line.out.is_empty() {
            line.out.extend_from_slice(first);
            line.out.extend_from_slice(second);
            return true;
        }
        let sent = match sys::write(&line.fd, first, second) {
            Moved::Bytes(n) => n,
            Moved::Blocked => 0,
            Moved::Ended => return false,
        };
        if sent == first.len() + second.len() {
            return true;
        }
        line.out.extend_from_slice(first.get(sent..).unwrap_or_default());
        line.out.extend_from_slice(second.get(sent.saturating_sub(first.len())..).unwrap_or_default());
        if line.watches_writing {
            return true;
        }
        line.watches_writing = true;
        self.poll.watch_writing(&line.fd, at).is_ok()
    }

    fn is_clear(&self, line: &Line) -> bool {
        line.out.is_empty()
    }

    fn has_ended(&self, line: &Line) -> bool {
        line.ended
    }

    fn read_again(&mut self, at: usize, line: &Line) {
        if line.readable {
            self.again.push(at);
        }
    }

    fn close(&mut self, line: Line) {
        drop(line);
    }
}

impl Line {
    /// Sends what waited; false when the connection is dead.
    fn flush(&mut self) -> bool {
        match sys::write(&self.fd, &self.out, &[]) {
            Moved::Bytes(n) => drop(self.out.drain(..n)),
            Moved::Blocked => {}
            Moved::Ended => return false,
        }
        if self.out.is_empty() {
            self.out = Vec::new(); // an idle connection holds no buffer
        }
        true
    }
}
