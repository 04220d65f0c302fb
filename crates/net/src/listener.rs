//! Listening sockets: bound by the control thread, accepted from by workers.
//!
//! A [`Listening`] is the socket itself: made before the workers, cheap to clone, inherited by a new binary. A
//! [`Listener`] is one worker's registration of it. Without `reuseport` the workers share one socket and the kernel
//! wakes one of them per connection (`EPOLLEXCLUSIVE`); with it each worker binds its own. Invariant: after an error
//! from accept, readiness is kept, so that a caller that pauses and tries again loses no connection.

use crate::address::{Address, SocketAddress};
use crate::core::{self, OpenedBy, READ, WRITE};
use crate::counts::{Kind, count};
use crate::slots::SlotKey;
use crate::stream::{Keepalive, Stream, apply_keepalive};
use crate::sys;
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{self, SocketFlags, SocketType, sockopt};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::task::Poll;

/// Connections that the kernel may hold for us if `backlog=` is not set: the default limit of Linux
/// (`net.core.somaxconn`). nginx's 511 drops connections when a few thousand clients arrive at once.
pub const BACKLOG_DEFAULT: i32 = 4096;

/// The parameters of nginx's `listen` that concern the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections the kernel queues for us; capped by `net.core.somaxconn`.
    pub backlog: i32,
    /// `SO_REUSEPORT`: several sockets on one address.
    pub reuseport: bool,
    /// `SO_RCVBUF` in bytes; 0 leaves the system's.
    pub receive_buffer_bytes: usize,
    /// `SO_SNDBUF` in bytes; 0 leaves the system's.
    pub send_buffer_bytes: usize,
    /// `TCP_FASTOPEN` with this queue length.
    pub fastopen: Option<u32>,
    /// `TCP_DEFER_ACCEPT`: accept when data has arrived.
    pub deferred: bool,
    /// `IPV6_V6ONLY`; nginx sets it by default.
    pub ipv6only: Option<bool>,
    /// `SO_KEEPALIVE`, inherited by accepted connections.
    pub keepalive: Option<Keepalive>,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: BACKLOG_DEFAULT,
            reuseport: false,
            receive_buffer_bytes: 0,
            send_buffer_bytes: 0,
            fastopen: None,
            deferred: false,
            ipv6only: None,
            keepalive: None,
        }
    }
}

/// A bound, listening, non-blocking socket; clones share it.
#[derive(Clone)]
pub struct Listening {
    fd: Arc<OwnedFd>,
    address: Address,
}

/// Binds and listens. `SO_REUSEADDR` is always set; a unix socket that a dead process left behind is replaced, and gets
/// mode 0666 as in nginx. (weir tries one connection to find out whether the process is dead; nginx fails with
/// `EADDRINUSE` instead.)
pub fn bind(address: &SocketAddress, options: &ListenOptions) -> io::Result<Listening> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = net::socket_with(address.family(), SocketType::STREAM, flags, None)?;
    prepare(fd.as_fd(), address, options)?;
    bind_socket(fd.as_fd(), address)?;
    net::listen(&fd, options.backlog)?;
    if let Address::Unix(path) = address {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    }
    Listening::from_fd(fd)
}

/// Whether [`bind`] would get as far as this address: binds a socket of its own and closes it at once. An address that
/// is in use is no error, because its holder is usually the program that the test is for (nginx: `ngx_test_config`).
///
/// # Errors
/// The kernel does not take the options, the address is not here, or this user may not bind it.
pub fn try_bind(address: &SocketAddress, options: &ListenOptions) -> io::Result<()> {
    let fd = net::socket_with(address.family(), SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Beside a socket with the same option, the test would get some of its clients.
    prepare(fd.as_fd(), address, &ListenOptions { reuseport: false, ..options.clone() })?;
    match (net::bind(&fd, &address.to_kernel()?), address) {
        (Ok(()), Address::Unix(path)) => std::fs::remove_file(path),
        (Ok(()) | Err(Errno::ADDRINUSE), _) => Ok(()),
        (Err(error), _) => Err(error.into()),
    }
}

impl Listening {
    /// Takes over the listening socket that another process left us under this number; `None`, and nothing is changed, if
    /// there is none. A number may be taken over once.
    pub(crate) fn from_number(number: RawFd) -> Option<Listening> {
        let fd = sys::adopt_inherited(number, |fd| sockopt::socket_acceptconn(fd).unwrap_or(false))?;
        fcntl_setfd(&fd, FdFlags::CLOEXEC).ok()?;
        Listening::from_fd(fd).ok()
    }

    /// Takes over a listening socket, such as one that another process passed.
    ///
    /// # Errors
    /// It is no socket.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Listening> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK)?;
        let address = Address::from_kernel(net::getsockname(&fd)?);
        Ok(Listening { fd: Arc::new(fd), address })
    }

    /// Its address; if the options had port 0, this has the real port.
    pub fn local_addr(&self) -> &SocketAddress {
        &self.address
    }

    /// A view of the socket that does not keep it open.
    pub fn watch(&self) -> Watched {
        Watched { fd: Arc::downgrade(&self.fd), address: self.address.clone() }
    }

    /// Listens again with another backlog, and sets the options that may change on
    /// a living socket; for a reload. With `reuseport`, other sockets may join it at its address from then on.
    pub fn reconfigure(&self, options: &ListenOptions) -> io::Result<()> {
        if options.reuseport {
            sockopt::set_socket_reuseport(self.fd.as_fd(), true)?;
        }
        set_buffers(self.fd.as_fd(), options)?;
        if !self.address.is_unix() {
            set_tcp(self.fd.as_fd(), options)?;
        }
        Ok(net::listen(&*self.fd, options.backlog)?)
    }
}

/// A view of a listening socket that does not keep the socket open.
#[derive(Clone, Debug)]
pub struct Watched {
    fd: Weak<OwnedFd>,
    address: Address,
}

impl Watched {
    /// Its address.
    pub fn address(&self) -> &SocketAddress {
        &self.address
    }

    /// The number of connections that wait to be accepted, and the limit; `None` if the kernel does not say (unix
    /// sockets), or if the socket is closed.
    pub fn queue(&self) -> Option<(u64, u64)> {
        let fd = self.fd.upgrade().filter(|_| !self.address.is_unix())?;
        // For a listening socket, these two fields describe its queue (Linux, tcp_diag.c: `tcp_get_info`).
        let info = crate::sys::tcp_info(fd.as_fd()).ok()?;
        Some((info.tcpi_unacked.into(), info.tcpi_sacked.into()))
    }
}

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listening({} {})", self.fd.as_raw_fd(), self.address)
    }
}

fn prepare(fd: BorrowedFd<'_>, address: &Address, options: &ListenOptions) -> io::Result<()> {
    sockopt::set_socket_reuseaddr(fd, true)?;
    if options.reuseport {
        sockopt::set_socket_reuseport(fd, true)?;
    }
    if matches!(address, Address::Tcp(std::net::SocketAddr::V6(_))) {
        sockopt::set_ipv6_v6only(fd, options.ipv6only.unwrap_or(true))?;
    }
    set_buffers(fd, options)?;
    if !address.is_unix() {
        set_tcp(fd, options)?;
    }
    Ok(())
}

fn set_buffers(fd: BorrowedFd<'_>, options: &ListenOptions) -> io::Result<()> {
    if options.receive_buffer_bytes > 0 {
        sockopt::set_socket_recv_buffer_size(fd, options.receive_buffer_bytes)?;
    }
    if options.send_buffer_bytes > 0 {
        sockopt::set_socket_send_buffer_size(fd, options.send_buffer_bytes)?;
    }
    Ok(())
}

fn set_tcp(fd: BorrowedFd<'_>, options: &ListenOptions) -> io::Result<()> {
    // Accepted sockets inherit it, which saves them the syscall.
    sockopt::set_tcp_nodelay(fd, true)?;
    if let Some(queue) = options.fastopen {
        let queue = i32::try_from(queue).unwrap_or(i32::MAX);
        sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, queue)?;
    }
    // Also if it is off: a reload may have removed it.
    sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, i32::from(options.deferred))?;
    match &options.keepalive {
        Some(keepalive) => apply_keepalive(fd, keepalive),
        None => Ok(()),
    }
}

fn bind_socket(fd: BorrowedFd<'_>, address: &Address) -> io::Result<()> {
    match (net::bind(fd, &address.to_kernel()?), address) {
        (Err(Errno::ADDRINUSE), Address::Unix(path)) if is_abandoned(path, address) => {
            std::fs::remove_file(path)?;
            Ok(net::bind(fd, &address.to_kernel()?)?)
        }
        (result, _) => Ok(result?),
    }
}

/// True for a socket file that no process listens on.
fn is_abandoned(path: &Path, address: &Address) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    is_socket && refuses(address).unwrap_or(false)
}

fn refuses(address: &Address) -> io::Result<bool> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let probe = net::socket_with(address.family(), SocketType::STREAM, flags, None)?;
    Ok(net::connect(&probe, &address.to_kernel()?) == Err(Errno::CONNREFUSED))
}

/// One worker's registration of a listening socket.
pub struct Listener {
    key: SlotKey,
    listening: Listening,
    not_send: PhantomData<*const ()>,
}

impl Listener {
    /// Registers the socket with the current worker.
    pub fn new(listening: &Listening) -> io::Result<Listener> {
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        let key = core::with(|core| core.register(listening.as_fd(), OpenedBy::Theirs, READ, flags))
            .unwrap_or_else(|| Err(core::not_a_worker()))?;
        Ok(Listener { key, listening: listening.clone(), not_send: PhantomData })
    }

    /// Its address.
    pub fn local_addr(&self) -> &SocketAddress {
        self.listening.local_addr()
    }

    /// The kernel does not wake this worker for new connections any more; `try_accept` still takes the waiting ones.
    pub fn leave(&self) {
        core::with(|core| core.unregister(self.key, self.listening.as_fd()));
    }

    /// The next connection and its peer's address.
    ///
    /// Errors that concern us (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`) are
    /// returned and the connection stays queued: pause, or shed idle connections,
    /// and call again. A connection that was reset while queued is skipped.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddress)> {
        loop {
            poll_fn(|_| self.poll_acceptable()).await;
            match self.try_accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    /// Ready if a connection may be waiting; otherwise wakes the current task.
    pub fn poll_acceptable(&self) -> Poll<()> {
        core::with(|core| core.poll_ready(self.key, READ)).unwrap_or(Poll::Pending)
    }

    /// As [`Listener::accept`], but `WouldBlock` if none is waiting.
    pub fn try_accept(&self) -> io::Result<(Stream, SocketAddress)> {
        for _ in 0..ABORTED_MAX {
            count(Kind::Accept);
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match net::acceptfrom_with(&self.listening, flags) {
                Ok((fd, peer)) => {
                    let peer = peer.map_or_else(Address::unnamed, Address::from_kernel);
                    return Ok((Stream::register(fd, OpenedBy::Theirs, WRITE)?, peer));
                }
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(Errno::WOULDBLOCK) => {
                    core::with(|core| core.clear_ready(self.key, READ));
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

/// Connections reset while queued that one call skips.
const ABORTED_MAX: usize = 64;

impl Drop for Listener {
    fn drop(&mut self) {
        // The socket may live on in other workers, so it must be removed from epoll.
        core::with(|core| core.unregister(self.key, self.listening.as_fd()));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({})", self.listening.address)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Without it, each client of such a socket would need a call of its own.
    #[test]
    fn clients_of_a_socket_that_another_process_made_have_nodelay() {
        let theirs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = theirs.local_addr().unwrap();
        let has_nodelay = || {
            let _client = std::net::TcpStream::connect(address).unwrap();
            theirs.accept().unwrap().0.nodelay().unwrap()
        };
        assert!(!has_nodelay());
        let ours = Listening::from_fd(theirs.try_clone().unwrap().into()).unwrap();
        ours.reconfigure(&ListenOptions::default()).unwrap();
        assert!(has_nodelay());
    }
}
