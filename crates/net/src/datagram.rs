//! A UDP socket with one peer: it sends a question and receives the answer.
//!
//! The kernel chooses a random port for each socket, and drops datagrams from other senders than the peer. Registered
//! once, as a [`crate::Stream`] is; it never leaves its worker.

use crate::core::{self, OpenedBy, READ};
use crate::counts::{Kind, count};
use crate::slots::SlotKey;
use crate::stream::{ConnectOptions, make_transparent};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::task::Poll;

/// A connected, non-blocking UDP socket; closed when dropped.
pub struct Datagram {
    key: SlotKey,
    fd: OwnedFd,
    not_send: PhantomData<*const ()>,
}

impl Drop for Datagram {
    fn drop(&mut self) {
        count(Kind::Close);
        core::with(|core| core.forget(self.key));
    }
}

impl Datagram {
    /// A socket for one peer, on a port of the kernel's choice.
    pub fn connect(peer: SocketAddr) -> io::Result<Datagram> {
        Datagram::connect_with(peer, &ConnectOptions::default())
    }

    /// As `connect`, with a local address and buffer sizes.
    pub fn connect_with(peer: SocketAddr, options: &ConnectOptions) -> io::Result<Datagram> {
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = net::socket_with(family, SocketType::DGRAM, flags, None)?;
        if options.receive_buffer_bytes > 0 {
            sockopt::set_socket_recv_buffer_size(&fd, options.receive_buffer_bytes)?;
        }
        if options.send_buffer_bytes > 0 {
            sockopt::set_socket_send_buffer_size(&fd, options.send_buffer_bytes)?;
        }
        if let Some(local) = &options.bind {
            if local.transparent {
                make_transparent(fd.as_fd(), &local.address)?;
            }
            net::bind(&fd, &local.address)?;
        }
        count(Kind::Connect);
        net::connect(&fd, &peer)?;
        let key = core::with(|core| core.register(fd.as_fd(), OpenedBy::Ours, 0, EventFlags::IN))
            .unwrap_or_else(|| Err(core::not_a_worker()))?;
        Ok(Datagram { key, fd, not_send: PhantomData })
    }

    /// Sends one datagram, or fails: a datagram without room is lost, as it may also be lost on its way.
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<()> {
        count(Kind::Write);
        Ok(net::send(&self.fd, bytes, SendFlags::NOSIGNAL).map(drop)?)
    }

    /// Receives one datagram; a datagram longer than `buf` is cut off. `WouldBlock` means wait.
    pub fn try_receive(&self, buf: &mut [u8]) -> io::Result<usize> {
        count(Kind::Read);
        match net::recv(&self.fd, buf, RecvFlags::empty()) {
            Ok((length, _)) => Ok(length),
            Err(error) => {
                if error == Errno::WOULDBLOCK {
                    core::with(|core| core.clear_ready(self.key, READ));
                }
                Err(error.into())
            }
        }
    }

    /// Our end.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        SocketAddr::try_from(net::getsockname(&self.fd)?).map_err(io::Error::from)
    }

    /// Ready if a datagram may have arrived; otherwise the current task is woken when one has.
    pub fn poll_readable(&self) -> Poll<()> {
        core::with(|core| core.poll_ready(self.key, READ)).unwrap_or(Poll::Pending)
    }
}

impl fmt::Debug for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Datagram({})", self.fd.as_raw_fd())
    }
}
