//! One TCP or unix-domain connection: readiness, and calls that never block.
//!
//! A stream is registered once, edge-triggered, for its whole life; the reported readiness is kept as bits, so the
//! steady path is one read and one write with no `epoll_ctl` between. Try first, wait only after `WouldBlock`. A
//! connection that waits holds no buffer: await [`Stream::readable`], then read into a lease. Invariant: a stream
//! never leaves its worker (it is not `Send`); its descriptor may, by [`Stream::into_fd`].

use crate::address::{Address, SocketAddress};
use crate::core::{self, ENDING, FAILED, HUNG_UP, OPENING, OpenedBy, PEER_CLOSED, READ, WRITE};
use crate::counts::{Kind, count};
use crate::slots::SlotKey;
use crate::sys;
use crate::timer::{Deadline, TimedOut};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, sockopt};
use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::task::Poll;
use std::time::Duration;

/// The options for making a connection.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// The local address to connect from; nginx's `proxy_bind`.
    pub bind: Option<Local>,
    /// `SO_RCVBUF` in bytes; 0 leaves the system's.
    pub receive_buffer_bytes: usize,
    /// `SO_SNDBUF` in bytes; 0 leaves the system's.
    pub send_buffer_bytes: usize,
    /// `SO_KEEPALIVE`; nginx's `proxy_socket_keepalive`.
    pub keepalive: bool,
}

/// A local address to connect from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// The address; port 0 lets the kernel choose one.
    pub address: SocketAddr,
    /// The address may belong to another machine; nginx's `transparent`. Needs `CAP_NET_RAW` or `CAP_NET_ADMIN`, and a
    /// route that brings the answers back.
    pub transparent: bool,
}

/// Probing of an idle connection by the kernel; nginx's `so_keepalive`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first probe.
    pub idle: Option<Duration>,
    /// Time between two probes.
    pub interval: Option<Duration>,
    /// Probes before the connection counts as dead.
    pub count: Option<u32>,
}

/// The kernel's facts about a TCP connection; nginx's `$tcpinfo_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// Its variation in microseconds.
    pub rttvar_us: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Receive window in bytes.
    pub rcv_space: u32,
    /// Segments retransmitted over the connection's life.
    pub retransmits: u32,
}

/// A non-blocking connection on this worker; closed when dropped.
pub struct Stream {
    // Dropped in this order: first forgotten by the worker, then closed.
    socket: Socket,
    fd: OwnedFd,
}

/// The worker's side of a stream.
struct Socket {
    key: SlotKey,
    not_send: PhantomData<*const ()>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        count(Kind::Close);
        core::with(|core| core.forget(self.key));
    }
}

impl Stream {
    /// Starts connecting; [`Stream::connected`] waits for the outcome.
    ///
    /// TCP connections get `TCP_NODELAY`. Errors that show at once (no route, refusal by a unix socket, no descriptor
    /// left) are returned here.
    pub fn connect(address: &SocketAddress, options: &ConnectOptions) -> io::Result<Stream> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = net::socket_with(address.family(), SocketType::STREAM, flags, None)?;
        prepare(fd.as_fd(), address, options)?;
        count(Kind::Connect);
        let ready = match net::connect(&fd, &address.to_kernel()?) {
            Ok(()) => WRITE,
            Err(Errno::INPROGRESS | Errno::INTR) => OPENING,
            Err(error) => return Err(error.into()),
        };
        let stream = Stream::register(fd, OpenedBy::Ours, ready)?;
        if ready == OPENING {
            core::with(|core| core.coalescing.opening(core.clock.now()));
        }
        Ok(stream)
    }

    /// Connects, and waits until the connection is made: [`Stream::connect`] and [`Stream::connected`].
    pub async fn connect_by(
        address: &SocketAddress,
        options: &ConnectOptions,
        deadline: &Deadline,
    ) -> io::Result<Stream> {
        let stream = Stream::connect(address, options)?;
        stream.connected(deadline).await?;
        Ok(stream)
    }

    /// Takes over a connected socket; it is made non-blocking.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Stream> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK)?;
        Stream::register(fd, OpenedBy::Theirs, WRITE)
    }

    /// A connection without a peer: its other end sends and accepts nothing. The caller must keep the other end as
    /// long as the connection.
    pub fn with_nobody() -> io::Result<(Stream, OwnedFd)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, other) = net::socketpair(net::AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok((Stream::register(fd, OpenedBy::Theirs, WRITE)?, other))
    }

    /// A connected, non-blocking socket. It is not assumed to be readable, because epoll reports available bytes at
    /// registration.
    pub(crate) fn register(fd: OwnedFd, side: OpenedBy, ready: u8) -> io::Result<Stream> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP;
        let key = core::with(|core| core.register(fd.as_fd(), side, ready, flags))
            .unwrap_or_else(|| Err(core::not_a_worker()))?;
        let socket = Socket { key, not_send: PhantomData };
        Ok(Stream { socket, fd })
    }

    /// Waits until the connection is made; an error says why it is not.
    ///
    /// `ETIMEDOUT` if the deadline passes first.
    pub async fn connected(&self, deadline: &Deadline) -> io::Result<()> {
        self.writable(deadline).await?;
        // A failed connect always reports an error event: without such an event, SO_ERROR has no error, and weir
        // saves the syscall.
        if self.ready() & FAILED != 0 {
            count(Kind::Sockopt);
            sockopt::socket_error(&self.fd)??;
        }
        Ok(())
    }

    // Waiting.

    /// Ready if there is, or may be, something to read; otherwise the current task is woken when there is. One task
    /// waits at a time: the last that polled.
    #[inline]
    pub fn poll_readable(&self) -> Poll<()> {
        self.poll_ready(READ)
    }

    /// Ready once the peer has shut down its side or the connection failed, also if bytes are left to read. Otherwise
    /// the current task is woken then, or when bytes arrive.
    #[inline]
    pub fn poll_closed(&self) -> Poll<()> {
        self.poll_ready(ENDING)
    }

    /// As [`Stream::poll_readable`], for room to write.
    #[inline]
    pub fn poll_writable(&self) -> Poll<()> {
        self.poll_ready(WRITE)
    }

    /// Waits for something to read.
    pub async fn readable(&self, deadline: &Deadline) -> Result<(), TimedOut> {
        self.wait(READ, deadline).await
    }

    /// Waits for room to write.
    pub async fn writable(&self, deadline: &Deadline) -> Result<(), TimedOut> {
        self.wait(WRITE, deadline).await
    }

    async fn wait(&self, bits: u8, deadline: &Deadline) -> Result<(), TimedOut> {
        poll_fn(|_| {
            if self.poll_ready(bits).is_ready() {
                return Poll::Ready(Ok(()));
            }
            deadline.poll_expired().map(|()| Err(TimedOut))
        })
        .await
    }

    #[inline]
    fn poll_ready(&self, bits: u8) -> Poll<()> {
        core::with(|core| core.poll_ready(self.socket.key, bits)).unwrap_or(Poll::Pending)
    }

    // Reading and writing.

    /// Reads at most `max` bytes into the spare capacity, without zeroing it.
    ///
    /// Never reallocates unless there is no spare capacity at all; then room for
    /// `max` is reserved. 0 is the end (or `max` was 0); `WouldBlock` means wait.
    #[inline]
    pub fn try_read_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        if buf.len() == buf.capacity() {
            buf.reserve(max);
        }
        let room = max.min(buf.capacity() - buf.len());
        count(Kind::Read);
        let result = sys::recv_spare(self.fd.as_fd(), buf, room, RecvFlags::empty());
        self.after_read(result, room)
    }

    /// As [`Stream::try_read_vec`], but the bytes stay in the kernel: the next read returns them again.
    pub fn try_peek_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        if buf.len() == buf.capacity() {
            buf.reserve(max);
        }
        let room = max.min(buf.capacity() - buf.len());
        count(Kind::Peek);
        match sys::recv_spare(self.fd.as_fd(), buf, room, RecvFlags::PEEK) {
            Ok(len) => Ok(len),
            failed => self.after_read(failed, room),
        }
    }

    /// After a peek whose bytes are not enough: the next wait to read ends only when more have arrived, or the end.
    pub fn await_more(&self) {
        core::with(|core| core.clear_read_unless_ending(self.socket.key));
    }

    /// Writes as many bytes as fit. `WouldBlock` means wait.
    #[inline]
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        count(Kind::Write);
        let result = net::send(&self.fd, buf, SendFlags::NOSIGNAL);
        self.after_write(result, buf.len())
    }

    /// Writes as many bytes of several pieces (at most 1024) as fit, with one syscall.
    #[inline]
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let pieces = pieces.get(..PIECES_MAX).unwrap_or(pieces);
        count(Kind::Writev);
        let result = rustix::io::writev(&self.fd, pieces);
        let len = pieces.iter().map(|piece| piece.len()).sum();
        self.after_write(result, len)
    }

    /// Sends a range of a file without copying it here, and advances `offset`.
    ///
    /// 0 means the file ended early.
    pub fn try_sendfile(&self, file: &File, offset: &mut u64, len: usize) -> io::Result<usize> {
        count(Kind::Sendfile);
        let result = rustix::fs::sendfile(&self.fd, file, Some(offset), len);
        // A short count may also mean the end of the file: readiness stays, and the next call finds out.
        self.after_write(result, 0)
    }

    /// Updates readiness after a read. After a short read the socket is empty, and the next byte raises a new edge -
    /// unless the end was announced, because no edge follows it: then readiness stays until 0 or an error.
    #[inline]
    fn after_read(&self, result: rustix::io::Result<usize>, room: usize) -> io::Result<usize> {
        match result {
            Ok(len) if len == room || len == 0 => Ok(len),
            Ok(len) => {
                core::with(|core| core.clear_read_unless_ending(self.socket.key));
                Ok(len)
            }
            Err(Errno::WOULDBLOCK) => {
                self.clear(READ);
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(Errno::INTR) => Err(io::ErrorKind::Interrupted.into()),
            Err(error) => Err(error.into()),
        }
    }

    #[inline]
    fn after_write(&self, result: rustix::io::Result<usize>, asked: usize) -> io::Result<usize> {
        match result {
            Ok(len) if len >= asked => Ok(len),
            Ok(len) => {
                // A short write: the send buffer is full, and the kernel will report room.
                self.clear(WRITE);
                Ok(len)
            }
            Err(Errno::WOULDBLOCK) => {
                self.clear(WRITE);
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(Errno::INTR) => Err(io::ErrorKind::Interrupted.into()),
            Err(error) => {
                // The kernel reports it as well, but only later: until then, the caller would not read the bytes that
                // the peer sent before it closed.
                core::with(|core| core.note_failed(self.socket.key));
                Err(error.into())
            }
        }
    }

    #[inline]
    fn clear(&self, bits: u8) {
        core::with(|core| core.clear_ready(self.socket.key, bits));
    }

    #[inline]
    fn ready(&self) -> u8 {
        core::with(|core| core.ready(self.socket.key)).unwrap_or(0)
    }

    // State.

    /// For a pooled connection: whether the peer has closed it, or sent unsolicited bytes. Costs a syscall only if
    /// something happened since the last read.
    #[inline]
    pub fn peek_closed(&self) -> bool {
        match self.ready() {
            ready if ready & (HUNG_UP | FAILED) != 0 => true,
            ready => ready & READ != 0 && self.has_closed_or_sent(),
        }
    }

    /// Looks whether a socket that may have something to read was closed, or has bytes.
    fn has_closed_or_sent(&self) -> bool {
        count(Kind::Peek);
        let mut byte = [0u8; 1];
        match net::recv(&self.fd, &mut byte, RecvFlags::PEEK) {
            Err(Errno::WOULDBLOCK) => {
                self.clear(READ);
                false
            }
            Err(Errno::INTR) => false,
            Ok(_) | Err(_) => true,
        }
    }

    /// Whether bytes of the peer wait unread, also those that the event loop has not reported yet. Always costs a syscall.
    pub fn has_unread(&self) -> bool {
        count(Kind::Peek);
        matches!(net::recv(&self.fd, &mut [0u8; 1], RecvFlags::PEEK), Ok((1.., _)))
    }

    /// The peer has shut down its side, or the connection failed. Bytes sent
    /// before may still be waiting to be read.
    pub fn is_hup(&self) -> bool {
        self.ready() & ENDING != 0
    }

    /// The peer has shut down its sending side only.
    pub fn is_half_closed(&self) -> bool {
        self.ready() & ENDING == PEER_CLOSED
    }

    /// Sends FIN: no more bytes will be written.
    pub fn shutdown_write(&self) -> io::Result<()> {
        count(Kind::Shutdown);
        Ok(net::shutdown(&self.fd, Shutdown::Write)?)
    }

    /// Ends both directions: a task that waits for this socket is woken and finds the end.
    pub fn shutdown(&self) {
        count(Kind::Shutdown);
        // Fails only if the socket is not connected any more.
        let _ = net::shutdown(&self.fd, Shutdown::Both);
    }

    /// Makes a close send RST and drop unsent bytes; nginx's `reset_timedout_connection`.
    pub fn set_linger_zero(&self) -> io::Result<()> {
        count(Kind::Sockopt);
        Ok(sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO))?)
    }

    /// `TCP_NODELAY`: send small segments at once.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        count(Kind::Sockopt);
        Ok(sockopt::set_tcp_nodelay(&self.fd, on)?)
    }

    /// `TCP_CORK`: send full segments only; nginx's `tcp_nopush`.
    pub fn set_nopush(&self, on: bool) -> io::Result<()> {
        count(Kind::Sockopt);
        Ok(sockopt::set_tcp_cork(&self.fd, on)?)
    }

    /// `SO_KEEPALIVE` and its figures.
    pub fn set_keepalive(&self, keepalive: &Keepalive) -> io::Result<()> {
        count(Kind::Sockopt);
        apply_keepalive(self.fd.as_fd(), keepalive)
    }

    /// The other end.
    pub fn peer_addr(&self) -> io::Result<SocketAddress> {
        let any = net::getpeername(&self.fd)?;
        Ok(any.map_or_else(Address::unnamed, Address::from_kernel))
    }

    /// Our end.
    pub fn local_addr(&self) -> io::Result<SocketAddress> {
        Ok(Address::from_kernel(net::getsockname(&self.fd)?))
    }

    /// The kernel's figures; fails on a unix socket.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        count(Kind::Sockopt);
        let info = sys::tcp_info(self.fd.as_fd())?;
        Ok(TcpInfo {
            rtt_us: info.tcpi_rtt,
            rttvar_us: info.tcpi_rttvar,
            snd_cwnd: info.tcpi_snd_cwnd,
            rcv_space: info.tcpi_rcv_space,
            retransmits: info.tcpi_total_retrans,
        })
    }

    /// Whether the peer has accepted none of the waiting bytes for about six seconds or more: the kernel probes at
    /// doubling intervals, and has doubled them often. `false` if this is unknown.
    pub fn is_stuck(&self) -> bool {
        count(Kind::Sockopt);
        sys::tcp_info(self.fd.as_fd()).is_ok_and(|info| info.tcpi_backoff >= STUCK_DOUBLINGS)
    }

    /// Bytes that the peer has acknowledged since the connection began. `None` if this is unknown.
    pub fn taken_bytes(&self) -> Option<u64> {
        count(Kind::Sockopt);
        sys::tcp_bytes_acked(self.fd.as_fd()).ok()
    }

    /// The worker's key of its registration.
    pub(crate) fn key(&self) -> SlotKey {
        self.socket.key
    }

    /// Hands the socket out of the runtime; it stays non-blocking.
    pub fn into_fd(self) -> OwnedFd {
        let Stream { socket, fd } = self;
        core::with(|core| core.unregister(socket.key, fd.as_fd()));
        std::mem::forget(socket);
        fd
    }
}

/// The first interval is at least 200 ms, and each next one is twice as long: five of them are 6.2 s.
const STUCK_DOUBLINGS: u8 = 5;

/// `IOV_MAX`: the kernel refuses more pieces.
const PIECES_MAX: usize = 1024;

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.fd.as_raw_fd())
    }
}

/// Lets a socket have an address of another machine.
pub(crate) fn make_transparent(fd: BorrowedFd<'_>, local: &SocketAddr) -> io::Result<()> {
    let (level, name) = match local {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
    };
    sys::set_option(fd, level, name, 1)
}

fn prepare(fd: BorrowedFd<'_>, address: &Address, options: &ConnectOptions) -> io::Result<()> {
    if options.receive_buffer_bytes > 0 {
        sockopt::set_socket_recv_buffer_size(fd, options.receive_buffer_bytes)?;
    }
    if options.send_buffer_bytes > 0 {
        sockopt::set_socket_send_buffer_size(fd, options.send_buffer_bytes)?;
    }
    if options.keepalive {
        sockopt::set_socket_keepalive(fd, true)?;
    }
    if !address.is_unix() {
        sockopt::set_tcp_nodelay(fd, true)?;
        if let Some(Local { address: local, transparent }) = &options.bind {
            if *transparent {
                make_transparent(fd, local)?;
            }
            // The port is chosen at connect, when the whole 4-tuple is known.
            if local.port() == 0 {
                let _ = sys::set_option(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
            }
            net::bind(fd, local)?;
        }
    }
    Ok(())
}

pub(crate) fn apply_keepalive(fd: BorrowedFd<'_>, keepalive: &Keepalive) -> io::Result<()> {
    sockopt::set_socket_keepalive(fd, true)?;
    if let Some(idle) = keepalive.idle {
        sockopt::set_tcp_keepidle(fd, idle)?;
    }
    if let Some(interval) = keepalive.interval {
        sockopt::set_tcp_keepintvl(fd, interval)?;
    }
    if let Some(count) = keepalive.count {
        sockopt::set_tcp_keepcnt(fd, count)?;
    }
    Ok(())
}
