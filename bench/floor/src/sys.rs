//! Sockets and epoll, as thin as rustix makes them.
//!
//! Every connection is registered once, edge-triggered, for reading; interest in writing is
//! added the first time a socket refuses bytes and then stays. So the steady path has no
//! `epoll_ctl` at all.

use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

/// The token of the listening socket; connections use their slot number.
pub const LISTENER: usize = usize::MAX;
/// New connections taken per wake-up, so that a burst cannot starve those already there.
const ACCEPT_BATCH: usize = 64;
/// Events taken per wake-up.
const EVENTS: usize = 512;
/// The listen queue: above the 1000 connections wrk opens at once.
const BACKLOG: i32 = 4096;

/// What one event says about one token.
#[derive(Clone, Copy)]
pub struct Event {
    pub token: usize,
    /// There may be bytes, an end or an error to read.
    pub readable: bool,
    pub writable: bool,
    /// The end of the stream is already queued: a short read does not mean "drained".
    pub ended: bool,
}

/// One epoll instance and room for the events of one wake-up.
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poll {
    pub fn new() -> io::Result<Self> {
        Ok(Poll { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, events: Vec::with_capacity(EVENTS) })
    }

    /// Registers a socket, edge-triggered; `writing` also reports when it accepts bytes.
    pub fn add(&self, fd: &OwnedFd, token: usize, writing: bool) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token as u64), interest(writing))?)
    }

    /// Adds interest in writing; reports at once if the socket already accepts bytes again.
    pub fn watch_writing(&self, fd: &OwnedFd, token: usize) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token as u64), interest(true))?)
    }

    /// Waits and replaces `into` with the events; `None` waits for ever.
    ///
    /// `epoll_wait` counts in milliseconds, and valgrind knows no `epoll_pwait2`. So `ppoll` waits for a time.
    pub fn wait(&mut self, into: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        self.events.clear();
        into.clear();
        if let Some(time) = timeout {
            let nanoseconds = time.subsec_nanos().into();
            let time = Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: nanoseconds };
            match rustix::event::poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&time)) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        into.extend(self.events.iter().map(|event| {
            let flags = event.flags;
            let (data, ended) =
                (event.data, epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            Event {
                token: usize::try_from(data.u64()).unwrap_or(LISTENER),
                readable: flags.intersects(epoll::EventFlags::IN | ended),
                writable: flags.contains(epoll::EventFlags::OUT),
                ended: flags.intersects(ended),
            }
        }));
        Ok(())
    }
}

fn interest(writing: bool) -> epoll::EventFlags {
    let reading = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    if writing { reading | epoll::EventFlags::OUT } else { reading }
}

/// A listening socket, level-triggered: what one batch leaves behind is reported again.
pub struct Listener(OwnedFd);

impl Listener {
    pub fn bind(at: SocketAddr, shared: bool, poll: &Poll) -> io::Result<Self> {
        let fd = listening(at, shared)?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        epoll::add(&poll.epoll, &fd, epoll::EventData::new_u64(LISTENER as u64), epoll::EventFlags::IN)?;
        Ok(Listener(fd))
    }

    /// The connections waiting, at most one batch of them.
    pub fn accept(&self) -> impl Iterator<Item = OwnedFd> {
        std::iter::from_fn(|| {
            let fd = net::accept_with(&self.0, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).ok()?;
            net::sockopt::set_tcp_nodelay(&fd, true).ok()?;
            Some(fd)
        })
        .take(ACCEPT_BATCH)
    }
}

/// A socket that listens. With `shared`, others may listen at the same address, and the kernel spreads connections evenly.
pub fn listening(at: SocketAddr, shared: bool) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_socket_reuseaddr(&fd, true)?;
    net::sockopt::set_socket_reuseport(&fd, shared)?;
    net::bind(&fd, &at)?;
    net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// Begins a connection; it is there when the socket first reports writable.
pub fn connect(to: SocketAddr) -> io::Result<OwnedFd> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_tcp_nodelay(&fd, true)?;
    match net::connect(&fd, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error.into()),
    }
}

/// How a read or a write ended.
pub enum Moved {
    Bytes(usize),
    /// Nothing now; the next event says when.
    Blocked,
    /// End of stream, or an error: the connection is of no more use.
    Ended,
}

/// One `read`.
pub fn read(fd: impl AsFd, into: &mut [u8]) -> Moved {
    match rustix::io::read(fd, into) {
        Ok(0) => Moved::Ended,
        Ok(n) => Moved::Bytes(n),
        Err(Errno::AGAIN | Errno::INTR) => Moved::Blocked,
        Err(_) => Moved::Ended,
    }
}

/// One `write`, or one `writev` when there are two pieces.
pub fn write(fd: impl AsFd, first: &[u8], second: &[u8]) -> Moved {
    let sent = if second.is_empty() {
        rustix::io::write(fd, first)
    } else {
        rustix::io::writev(fd, &[IoSlice::new(first), IoSlice::new(second)])
    };
    match sent {
        Ok(n) => Moved::Bytes(n),
        Err(Errno::AGAIN | Errno::INTR | Errno::NOTCONN) => Moved::Blocked,
        Err(_) => Moved::Ended,
    }
}

/// Lets short waits be as short as asked: the default slack of 50 µs would pace in steps.
pub fn precise_waits() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?)
}
