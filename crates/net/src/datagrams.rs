//! A UDP socket with many peers: the side of a server.
//!
//! A [`Receiving`] is the socket itself, made before the workers; each worker has its own (`SO_REUSEPORT`), so that the
//! kernel gives all datagrams of one client to one worker. A [`Receiver`] is a worker's registration of it. On a
//! wildcard address each datagram comes with the address that it was sent to, and the answer leaves from there.

use crate::control::Control;
use crate::core::{self, OpenedBy, READ, WRITE};
use crate::counts::{Kind, count};
use crate::slots::SlotKey;
pub use crate::sys::Arrived;
use crate::sys::{self, OutgoingMessage};
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::Poll;

/// The longest datagram of UDP, without its headers.
pub const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Bytes of datagrams that may wait in the kernel for a socket of QUIC whose options name no other number.
pub const QUIC_RECEIVE_BYTES: usize = 4 << 20;

/// A bound, non-blocking UDP socket; clones share it.
#[derive(Clone)]
pub struct Receiving {
    fd: Arc<OwnedFd>,
    address: SocketAddr,
}

/// The options of a UDP socket: those of nginx's `listen … udp`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatagramOptions {
    /// `SO_RCVBUF` in bytes; 0 leaves the system's, and for QUIC means [`QUIC_RECEIVE_BYTES`].
    pub receive_buffer_bytes: usize,
    /// `SO_SNDBUF` in bytes; 0 leaves the system's.
    pub send_buffer_bytes: usize,
    /// `IPV6_V6ONLY`; set by default.
    pub ipv6only: Option<bool>,
    /// For QUIC: each datagram tells the address that it was sent to and its ECN bits, the kernel joins datagrams, and no
    /// router cuts one that weir sends.
    pub is_quic: bool,
}

/// Binds a socket. Several sockets may have one address: each worker has one.
pub fn bind(address: SocketAddr, options: &DatagramOptions) -> io::Result<Receiving> {
    let fd = prepare(address, options)?;
    sockopt::set_socket_reuseport(&fd, true)?;
    net::bind(&fd, &address)?;
    Receiving::from_fd(fd)
}

/// Binds a socket of a client to a port that the kernel chooses. No other socket has it: with `SO_REUSEPORT`, the kernel may
/// give several sockets of one user the same.
///
/// # Errors
/// The kernel does not take the options, or has no port left.
pub fn bind_client(is_v4: bool, options: &DatagramOptions) -> io::Result<Receiving> {
    let any: IpAddr = if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let address = SocketAddr::new(any, 0);
    let fd = prepare(address, options)?;
    net::bind(&fd, &address)?;
    Receiving::from_fd(fd)
}

/// Binds sockets of one address until there are `count` of them. The order is that of the kernel's numbers for them
/// ([`crate::steer`]), so those that are there keep their places.
///
/// # Errors
/// As [`bind`]; the sockets that are bound by then are in `sockets`.
pub fn bind_more(
    sockets: &mut Vec<Receiving>,
    address: SocketAddr,
    options: &DatagramOptions,
    count: usize,
) -> io::Result<()> {
    // If the address has port 0, the first socket knows the real one.
    while sockets.len() < count {
        let address = sockets.first().map_or(address, Receiving::local_addr);
        sockets.push(bind(address, options)?);
    }
    Ok(())
}

/// As [`crate::listener::try_bind`].
///
/// # Errors
/// The kernel does not take the options, the address is not here, or this user may not bind it.
pub fn try_bind(address: SocketAddr, options: &DatagramOptions) -> io::Result<()> {
    match net::bind(&prepare(address, options)?, &address) {
        Ok(()) | Err(Errno::ADDRINUSE) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn prepare(address: SocketAddr, options: &DatagramOptions) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = net::socket_with(family, SocketType::DGRAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&fd, options.ipv6only.unwrap_or(true))?;
    }
    match options.receive_buffer_bytes {
        0 if options.is_quic => make_room(&fd)?,
        0 => {}
        bytes => sockopt::set_socket_recv_buffer_size(&fd, bytes)?,
    }
    if options.send_buffer_bytes > 0 {
        sockopt::set_socket_send_buffer_size(&fd, options.send_buffer_bytes)?;
    }
    if address.ip().is_unspecified() || options.is_quic {
        sys::tell_destination(fd.as_fd(), address.is_ipv4())?;
    }
    if options.is_quic {
        prepare_quic(fd.as_fd(), address.is_ipv4())?;
    }
    Ok(fd)
}

/// All clients of QUIC share one socket of a worker, and the kernel's default holds a hundred datagrams.
fn make_room(fd: &OwnedFd) -> io::Result<()> {
    // Beyond `net.core.rmem_max` only with CAP_NET_ADMIN.
    if sockopt::set_socket_recv_buffer_size_force(fd, QUIC_RECEIVE_BYTES).is_err() {
        sockopt::set_socket_recv_buffer_size(fd, QUIC_RECEIVE_BYTES)?;
    }
    Ok(())
}

fn prepare_quic(fd: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    // Also on a socket of IPv6: datagrams of IPv4 may reach it.
    sys::set_option(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
    // QUIC looks for the longest datagram itself (RFC 9000, section 14.3).
    sys::set_option(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    if !is_v4 {
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
    }
    // A kernel before Linux 5.0 joins nothing.
    let _ = sys::set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok(())
}

impl Receiving {
    /// Takes over the UDP socket that another process left us under this number; `None`, and nothing is changed, if there is
    /// none. A number may be taken over once.
    pub(crate) fn from_number(number: RawFd) -> Option<Receiving> {
        let fd = sys::adopt_inherited(number, |fd| {
            let is_udp = sockopt::socket_type(fd).is_ok_and(|kind| kind == SocketType::DGRAM);
            is_udp && sockopt::socket_domain(fd).is_ok_and(|family| family != AddressFamily::UNIX)
        })?;
        fcntl_setfd(&fd, FdFlags::CLOEXEC).ok()?;
        Receiving::from_fd(fd).ok()
    }

    /// Takes over a bound socket, such as one that another process passed.
    ///
    /// # Errors
    /// It is no UDP socket.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Receiving> {
        let address = SocketAddr::try_from(net::getsockname(&fd)?).map_err(io::Error::from)?;
        Ok(Receiving { fd: Arc::new(fd), address })
    }

    /// Its address; if it was bound to port 0, this has the real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl AsFd for Receiving {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl fmt::Debug for Receiving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiving({} {})", self.fd.as_raw_fd(), self.address)
    }
}

/// One worker's registration of a socket.
pub struct Receiver {
    key: SlotKey,
    socket: Receiving,
    /// Whether datagrams that arrive are events.
    receives: Cell<bool>,
    /// Whether room to send is an event.
    waits_for_room: Cell<bool>,
    not_send: PhantomData<*const ()>,
}

impl Receiver {
    /// Registers the socket with the current worker.
    pub fn new(socket: &Receiving) -> io::Result<Receiver> {
        let key = core::with(|core| core.register(socket.fd.as_fd(), OpenedBy::Theirs, READ, EventFlags::IN))
            .unwrap_or_else(|| Err(core::not_a_worker()))?;
        let (receives, waits_for_room) = (Cell::new(true), Cell::new(false));
        Ok(Receiver { key, socket: socket.clone(), receives, waits_for_room, not_send: PhantomData })
    }

    /// Its address.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.address
    }

    /// Receives one datagram; a datagram longer than `buf` is cut off. `WouldBlock` means wait.
    pub fn try_receive(&self, buf: &mut [u8]) -> io::Result<Arrived> {
        count(Kind::Read);
        match sys::receive_many::<1>(self.fd(), buf) {
            Ok([arrived]) => arrived.ok_or_else(|| io::ErrorKind::InvalidData.into()),
            Err(error) => Err(self.after_receive(error)),
        }
    }

    /// Notes the error of a call that received nothing.
    pub(crate) fn after_receive(&self, error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::WouldBlock {
            self.is_drained();
        }
        error
    }

    /// Notes that no datagram waits.
    pub(crate) fn is_drained(&self) {
        core::with(|core| core.clear_ready(self.key, READ));
    }

    /// Sends one datagram, from this address if it is given. A datagram without room is lost, as it may also be lost on
    /// its way.
    pub fn try_send(&self, bytes: &[u8], to: SocketAddr, from: Option<IpAddr>) -> io::Result<()> {
        count(Kind::Write);
        let control = Control::of(from, to.is_ipv4(), 0, None);
        sys::send_many::<1>(self.fd(), [OutgoingMessage { bytes, to, control }].into_iter()).map(drop)
    }

    /// Ready if a datagram may have arrived; otherwise the current task is woken when one has.
    pub fn poll_readable(&self) -> Poll<()> {
        core::with(|core| core.poll_ready(self.key, READ)).unwrap_or(Poll::Pending)
    }

    /// Ready if there may be room to send again, after a call that found none; otherwise the current task is woken when
    /// there is.
    pub fn poll_writable(&self) -> Poll<()> {
        core::with(|core| core.poll_ready(self.key, WRITE)).unwrap_or(Poll::Pending)
    }

    /// Whether this worker receives from now on. If another process receives from the socket, this one only sends.
    pub fn set_receiving(&self, receives: bool) {
        self.receives.set(receives);
        self.is_drained();
        // A datagram that waits already is an event at once.
        self.watch();
    }

    /// Asks for the event that there is room, or for no such events: else each datagram that leaves the machine is one.
    pub(crate) fn wait_for_room(&self, waits: bool) {
        if waits {
            core::with(|core| core.clear_ready(self.key, WRITE));
        }
        // The kernel looks at the socket again, so that room that has come meanwhile is an event too.
        if self.waits_for_room.replace(waits) || waits {
            self.watch();
        }
    }

    fn watch(&self) {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.receives.get());
        flags.set(EventFlags::OUT, self.waits_for_room.get());
        core::with(|core| core.watch(self.key, self.fd(), flags));
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd.as_fd()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // The control thread has a copy of the socket, so it must be removed from epoll.
        core::with(|core| core.unregister(self.key, self.fd()));
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({})", self.socket.address)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::worker::block_on;
    use std::future::poll_fn;
    use std::net::UdpSocket;

    #[test]
    fn an_answer_leaves_from_the_address_that_was_asked() {
        for (bound, asked) in [("0.0.0.0:0", "127.0.0.2"), ("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "::1")] {
            let socket = bind(bound.parse().unwrap(), &DatagramOptions::default()).unwrap();
            let asked = SocketAddr::new(asked.parse().unwrap(), socket.local_addr().port());
            let client = UdpSocket::bind(if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }).unwrap();
            client.send_to(b"ping", asked).unwrap();
            let own = client.local_addr().unwrap();
            block_on(async move {
                let receiver = Receiver::new(&socket).unwrap();
                poll_fn(|_| receiver.poll_readable()).await;
                let mut buf = [0; 16];
                let arrived = receiver.try_receive(&mut buf).unwrap();
                assert_eq!((&buf[..arrived.length], arrived.from), (&b"ping"[..], own));
                let is_wildcard = socket.local_addr().ip().is_unspecified();
                assert_eq!(arrived.to, is_wildcard.then_some(asked.ip()));
                receiver.try_send(b"pong", arrived.from, arrived.to).unwrap();
            })
            .unwrap();
            let mut buf = [0; 16];
            let (length, from) = client.recv_from(&mut buf).unwrap();
            assert_eq!((&buf[..length], from), (&b"pong"[..], asked));
        }
    }
}
