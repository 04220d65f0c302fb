//! The floor relay on io_uring: one ring for each worker, which enters the kernel once a turn.
//!
//! - The kernel accepts and receives by requests that stay (`multishot`), into a ring of buffers.
//! - Sockets are registered files.
//! - A send does not wait, so it always ends as it is submitted. The worker therefore knows how many completions it has
//!   before anything happens, and waits for one more. A socket that is full gets a second request, which waits.
//! - What is sent is copied, because it has to stay until its completion. An idle connection holds no buffer.

use crate::buffers::{Buffers, GROUP};
use crate::exchange::{Carrier, Relay};
use crate::flags::Flags;
use crate::sys;
use io_uring::types::{Fd, Fixed};
use io_uring::{CompletionQueue, IoUring, SubmissionQueue, Submitter, cqueue, opcode, squeue};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;

const SUBMISSIONS: u32 = 2048;
const COMPLETIONS: u32 = 8192;
/// Registered files of a ring, unless the limit of descriptors is lower.
const FILES_MAX: u64 = 8192;
/// The relay stops to read from one socket while this many bytes wait for the other one.
const WAITING_MAX: usize = 256 * 1024;
/// Buffers kept for the next sends.
const SPARE_MAX: usize = 256;
const MSG_DONTWAIT: i32 = 0x40;
const MSG_WAITALL: i32 = 0x100;
const MSG_NOSIGNAL: i32 = 0x4000;
const SHUT_RDWR: i32 = 2;

/// How the ring is used.
#[derive(Clone, Copy)]
pub struct Tuning {
    /// A request to receive stays; else there is one for each receipt.
    stays: bool,
    buffers: u16,
}

impl Tuning {
    /// `--ring multi` or `--ring single`, and `--buffers N`; none without `--ring`.
    pub fn of(flags: &Flags) -> io::Result<Option<Self>> {
        let stays = match flags.text("ring") {
            None => return Ok(None),
            Some("multi") => true,
            Some("single") => false,
            Some(_) => return Err(io::Error::other("--ring is multi or single")),
        };
        let buffers = if flags.text("buffers").is_some() { flags.need("buffers")? } else { 256 };
        Ok(Some(Tuning { stays, buffers }))
    }
}

/// The request that a completion ends: the low bits of its number. The high bits are the number of the line.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Received,
    Sent,
    /// A send that could wait.
    SentLate,
    Accepted,
    ShutDown,
    Closed,
    Ignored,
}

const KINDS: [Kind; 7] =
    [Kind::Received, Kind::Sent, Kind::SentLate, Kind::Accepted, Kind::ShutDown, Kind::Closed, Kind::Ignored];

/// One worker, of several that share the address if `is_one_of_many`; returns only on a failure of the ring.
pub fn run(listen: SocketAddr, origin: SocketAddr, is_one_of_many: bool, tuning: Tuning) -> io::Result<()> {
    let listener = sys::listening(listen, is_one_of_many)?;
    // Sockets inherit it from the listener.
    rustix::net::sockopt::set_tcp_nodelay(&listener, true)?;
    let ring: &'static mut IoUring = Box::leak(Box::new(make_ring()?));
    let mut buffers = Buffers::register(ring, tuning.buffers)?;
    let mut relay = Relay::new(Uring::new(ring, origin, tuning)?, origin.to_string());
    let accept = opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).build();
    relay.carrier.push(accept.clone(), 0, Kind::Accepted)?;
    let mut done = Vec::new();
    loop {
        relay.carrier.enter(&mut done)?;
        for entry in done.drain(..) {
            let (line, kind) = told(entry.user_data());
            if kind == Kind::Accepted && !cqueue::more(entry.flags()) {
                relay.carrier.push(accept.clone(), 0, Kind::Accepted)?;
            }
            completed(&mut relay, &mut buffers, line, kind, &entry);
        }
    }
}

fn make_ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)
}

fn told(number: u64) -> (usize, Kind) {
    let kind = KINDS.get((number & 7) as usize).copied().unwrap_or(Kind::Ignored);
    (usize::try_from(number >> 3).unwrap_or(usize::MAX), kind)
}

fn completed(relay: &mut Relay<Uring>, buffers: &mut Buffers, line: usize, kind: Kind, entry: &cqueue::Entry) {
    match kind {
        Kind::Received => received(relay, buffers, line, entry),
        Kind::Sent | Kind::SentLate => sent(relay, line, kind, entry.result()),
        Kind::Accepted => accepted(relay, entry.result()),
        Kind::ShutDown => relay.carrier.shut_down(line),
        Kind::Closed => relay.carrier.free.push(line),
        Kind::Ignored => {}
    }
}

#[expect(unsafe_code, reason = "the kernel tells a descriptor as a number")]
fn accepted(relay: &mut Relay<Uring>, result: i32) {
    if result >= 0 {
        // SAFETY: the kernel has just opened it for this request, and nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(result) };
        relay.accepted(|uring, at| uring.open(&fd, at));
    }
}

fn received(relay: &mut Relay<Uring>, buffers: &mut Buffers, line: usize, entry: &cqueue::Entry) {
    let Some(at) = relay.carrier.received(line, entry) else {
        if let Some(number) = cqueue::buffer_select(entry.flags()) {
            buffers.give(number);
        }
        return;
    };
    match (cqueue::buffer_select(entry.flags()), usize::try_from(entry.result())) {
        (Some(number), Ok(len)) if len > 0 => {
            relay.take(at, buffers.filled(number, len));
            buffers.give(number);
            pace(relay, at, line);
        }
        _ if retries(entry.result()) => pace(relay, at, line),
        _ => relay.end(at),
    }
}

/// Whether a request to receive ended for a reason that is none of its connection's.
fn retries(result: i32) -> bool {
    [Errno::NOBUFS, Errno::CANCELED, Errno::INTR, Errno::AGAIN].map(|one| -one.raw_os_error()).contains(&result)
}

/// Receives on, unless the other side takes no more: then what stays in this socket does the back-pressure.
fn pace(relay: &mut Relay<Uring>, at: usize, line: usize) {
    let Some(conn) = relay.get(at) else { return };
    let peer = conn.peer;
    let is_full = relay.get(peer).map(|peer| peer.line).is_some_and(|to| relay.carrier.is_full(to));
    relay.carrier.read(line, !is_full);
}

fn sent(relay: &mut Relay<Uring>, line: usize, kind: Kind, result: i32) {
    let Some(at) = relay.carrier.sent(line, kind, result) else { return };
    let Some(conn) = relay.get(at) else { return };
    let (peer, closing) = (conn.peer, conn.closing);
    if result < 0 && result != -Errno::AGAIN.raw_os_error() {
        return relay.end(at);
    }
    if !relay.carrier.is_clear(&line) {
        return;
    }
    if closing {
        return relay.end(at);
    }
    if let Some(from) = relay.get(peer).map(|peer| peer.line) {
        relay.carrier.read(from, true);
    }
}

/// io_uring's side of a relay.
struct Uring {
    submitter: Submitter<'static>,
    submissions: SubmissionQueue<'static>,
    completions: CompletionQueue<'static>,
    /// Sends that will have ended when the ring has been entered.
    sends: usize,
    origin: SocketAddr,
    stays: bool,
    /// By the number of their registered file.
    lines: Vec<Line>,
    free: Vec<usize>,
    spare: Vec<Vec<u8>>,
}

/// A socket. It outlives its connection until the kernel has ended all that was asked about it.
#[derive(Default)]
struct Line {
    at: usize,
    is_closed: bool,
    is_receiving: bool,
    is_cancelled: bool,
    is_sending: bool,
    is_shutting_down: bool,
    /// The kernel reads this: nothing changes it until the send has ended.
    out: Vec<u8>,
    gone: usize,
    /// Bytes that came while the kernel sent `out`.
    waiting: Vec<u8>,
}

impl Uring {
    fn new(ring: &'static mut IoUring, origin: SocketAddr, tuning: Tuning) -> io::Result<Self> {
        let (mut submitter, submissions, completions) = ring.split();
        submitter.register_ring_fd()?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(FILES_MAX);
        let files = limit.min(FILES_MAX) as u32;
        submitter.register_files_sparse(files)?;
        let free = (0..files as usize).rev().collect();
        let (lines, spare) = (Vec::new(), Vec::new());
        Ok(Uring { submitter, submissions, completions, sends: 0, origin, stays: tuning.stays, lines, free, spare })
    }

    /// Submits, and waits for one completion more than the sends bring.
    fn enter(&mut self, done: &mut Vec<cqueue::Entry>) -> io::Result<()> {
        self.submissions.sync();
        match self.submitter.submit_and_wait(self.sends.min(COMPLETIONS as usize / 2) + 1) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        self.sends = 0;
        self.submissions.sync();
        self.completions.sync();
        done.extend(&mut self.completions);
        Ok(())
    }

    /// Every entry names a file and either no memory or that of a line's `out`, which stays until the completion.
    #[expect(unsafe_code, reason = "the queue takes any entry; these are sound, as said above")]
    fn push(&mut self, entry: squeue::Entry, line: usize, kind: Kind) -> io::Result<()> {
        let entry = entry.user_data((line as u64) << 3 | kind as u64);
        if self.submissions.is_full() {
            self.submissions.sync();
            self.submitter.submit()?;
            self.submissions.sync();
        }
        // SAFETY: as said above.
        unsafe { self.submissions.push(&entry) }.map_err(|_| io::Error::other("the submission queue is full"))
    }

    /// Registers a socket and begins to receive.
    fn open(&mut self, fd: &OwnedFd, at: usize) -> Option<usize> {
        let line = self.free.pop()?;
        if self.submitter.register_files_update(line as u32, &[fd.as_raw_fd()]).is_err() {
            self.free.push(line);
            return None;
        }
        if line >= self.lines.len() {
            self.lines.resize_with(line + 1, Line::default);
        }
        *self.lines.get_mut(line)? = Line { at, ..Line::default() };
        self.read(line, true);
        Some(line)
    }

    /// Receives or stops: without a request, bytes stay in the socket.
    fn read(&mut self, number: usize, wanted: bool) {
        let Some(line) = self.lines.get_mut(number) else { return };
        if line.is_closed || line.is_cancelled || line.is_receiving == wanted {
            return;
        }
        let file = Fixed(number as u32);
        let entry = match (wanted, self.stays) {
            (true, true) => opcode::RecvMulti::new(file, GROUP).build(),
            (true, false) => opcode::Recv::new(file, std::ptr::null_mut(), 0)
                .buf_group(GROUP)
                .build()
                .flags(squeue::Flags::BUFFER_SELECT),
            (false, true) => opcode::AsyncCancel::new((number as u64) << 3 | Kind::Received as u64).build(),
            (false, false) => return,
        };
        let kind = if wanted { Kind::Received } else { Kind::Ignored };
        let is_taken = self.push(entry, number, kind).is_ok();
        // Until its completion, the kernel has the request. It may have a send of the same line meanwhile.
        if let Some(line) = self.lines.get_mut(number).filter(|_| is_taken) {
            line.is_receiving = true;
            line.is_cancelled = !wanted;
        }
    }

    /// Books a receipt and says which connection it is for; none if that is closed.
    fn received(&mut self, number: usize, entry: &cqueue::Entry) -> Option<usize> {
        let line = self.lines.get_mut(number)?;
        if !cqueue::more(entry.flags()) {
            line.is_receiving = false;
            line.is_cancelled = false;
        }
        if line.is_closed {
            self.release(number);
            return None;
        }
        Some(line.at)
    }

    fn is_full(&self, number: usize) -> bool {
        self.lines.get(number).is_some_and(|line| line.out.len() - line.gone + line.waiting.len() > WAITING_MAX)
    }

    /// Books a send, goes on with the rest, and says which connection it is for; none if that is closed.
    fn sent(&mut self, number: usize, kind: Kind, result: i32) -> Option<usize> {
        let line = self.lines.get_mut(number)?;
        line.is_sending = false;
        if line.is_closed {
            self.release(number);
            return None;
        }
        line.gone += usize::try_from(result).unwrap_or(0);
        if result < 0 && result != -Errno::AGAIN.raw_os_error() {
            return Some(line.at);
        }
        let at = line.at;
        if line.gone < line.out.len() {
            self.start_send(number, if kind == Kind::Sent { Kind::SentLate } else { Kind::Sent });
            return Some(at);
        }
        line.gone = 0;
        line.out.clear();
        if line.waiting.is_empty() {
            let out = std::mem::take(&mut line.out);
            if self.spare.len() < SPARE_MAX && out.capacity() <= WAITING_MAX {
                self.spare.push(out);
            }
        } else {
            std::mem::swap(&mut line.out, &mut line.waiting);
            self.start_send(number, Kind::Sent);
        }
        Some(at)
    }

    fn start_send(&mut self, number: usize, kind: Kind) -> bool {
        let Some(line) = self.lines.get_mut(number) else { return false };
        let rest = line.out.get(line.gone..).unwrap_or_default();
        let flags = if kind == Kind::Sent { MSG_NOSIGNAL | MSG_DONTWAIT } else { MSG_NOSIGNAL | MSG_WAITALL };
        let entry = opcode::Send::new(Fixed(number as u32), rest.as_ptr(), rest.len() as u32).flags(flags).build();
        let is_taken = self.push(entry, number, kind).is_ok();
        if let Some(line) = self.lines.get_mut(number).filter(|_| is_taken) {
            line.is_sending = true;
            self.sends += usize::from(kind == Kind::Sent);
        }
        is_taken
    }

    /// Books a shutdown. The kernel does it on another thread, and looks the file up only then: until now, its number may not
    /// be that of another socket.
    fn shut_down(&mut self, number: usize) {
        if let Some(line) = self.lines.get_mut(number) {
            line.is_shutting_down = false;
            self.release(number);
        }
    }

    /// Closes the file of a closed line once nothing is asked about it; its number is free when that has happened.
    fn release(&mut self, number: usize) {
        let Some(line) = self.lines.get_mut(number) else { return };
        if line.is_closed && !line.is_receiving && !line.is_sending && !line.is_shutting_down {
            *line = Line { is_closed: true, ..Line::default() };
            // Without room for it the file stays open and its number unused.
            let _ = self.push(opcode::Close::new(Fixed(number as u32)).build(), number, Kind::Closed);
        }
    }
}

impl Carrier for Uring {
    type Line = usize;

    fn connect(&mut self, at: usize) -> Option<usize> {
        let fd = sys::connect(self.origin).ok()?;
        self.open(&fd, at)
    }

    fn send(&mut self, _at: usize, number: &mut usize, first: &[u8], second: &[u8]) -> bool {
        let Some(line) = self.lines.get_mut(*number) else { return false };
        let into = if line.is_sending { &mut line.waiting } else { &mut line.out };
        if into.capacity() == 0 {
            *into = self.spare.pop().unwrap_or_default();
        }
        into.extend_from_slice(first);
        into.extend_from_slice(second);
        line.is_sending || self.start_send(*number, Kind::Sent)
    }

    fn is_clear(&self, number: &usize) -> bool {
        self.lines.get(*number).is_none_or(|line| !line.is_sending)
    }

    /// The end comes as a completion of its own.
    fn has_ended(&self, _: &usize) -> bool {
        false
    }

    /// The kernel has read on meanwhile, and the relay holds these bytes.
    fn read_again(&mut self, _at: usize, _: &usize) {}

    /// Ends what is asked about the socket; the last completion releases it.
    fn close(&mut self, number: usize) {
        let Some(line) = self.lines.get_mut(number) else { return };
        line.is_closed = true;
        if line.is_receiving || line.is_sending {
            let shutdown = opcode::Shutdown::new(Fixed(number as u32), SHUT_RDWR).build();
            let is_taken = self.push(shutdown, number, Kind::ShutDown).is_ok();
            if let Some(line) = self.lines.get_mut(number) {
                line.is_shutting_down = is_taken;
            }
        }
        self.release(number);
    }
}
