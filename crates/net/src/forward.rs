//! Datagrams that a worker passes on to the worker that has their connection: in this process by its mailbox, in the process
//! that an upgrade or a reload has replaced by a socket pair.
//!
//! Both ways carry packets: encoded datagrams, one after the other. A packet that finds no room is lost, as its datagrams may
//! also be lost on their way.

use crate::batch::ReceivedDatagram;
use crate::core::{self, OpenedBy, READ};
use crate::counts::{Kind, count};
use crate::slots::SlotKey;
use crate::sys;
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::Poll;

/// The bytes before a datagram, at most: flags, the sender with its port and zone, the address, the length.
const HEAD_BYTES_MAX: usize = 1 + 2 + 16 + 4 + 16 + 2;
/// Bytes of a packet, at most: the longest datagram fits, also behind the address of a socket.
pub const PACKET_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX + u16::MAX as usize;
/// Bytes that may wait in a socket pair, by the kernel's count; for a process that may not ask for them, twice
/// `net.core.wmem_max`.
const WAITING_BYTES_MAX: i32 = 4 << 20;

/// Bits of the first byte: ECN, and the families of both addresses.
const ECN_BITS: u8 = 3;
const FROM_V6: u8 = 4;
const TO_V4: u8 = 8;
const TO_V6: u8 = 16;

/// The datagrams for one worker, until their packet is full or the turn ends.
#[derive(Debug, Default)]
pub struct ForwardBatch {
    packet: Vec<u8>,
    /// Begins each packet.
    socket: Option<SocketAddr>,
}

impl ForwardBatch {
    /// A batch for another process: [`socket_of`] has the address of the socket to which the datagrams came.
    pub fn of_socket(socket: SocketAddr) -> ForwardBatch {
        ForwardBatch { packet: Vec::new(), socket: Some(socket) }
    }

    /// A packet without a datagram, which only names a socket.
    pub fn notice(socket: SocketAddr) -> Vec<u8> {
        let mut packet = Vec::new();
        put_head(&mut packet, &ReceivedDatagram { bytes: b"", from: socket, to: None, ecn: 0 }, 0);
        packet
    }

    /// Adds a datagram; returns the packet before it if both do not fit into one.
    pub fn push(&mut self, datagram: &ReceivedDatagram<'_>) -> Option<Vec<u8>> {
        let Ok(length) = u16::try_from(datagram.bytes.len()) else { return None };
        let is_full = self.packet.len() + HEAD_BYTES_MAX + datagram.bytes.len() > PACKET_BYTES_MAX;
        let full = if is_full { self.take() } else { None };
        if let Some(socket) = self.socket.filter(|_| self.packet.is_empty()) {
            self.packet = ForwardBatch::notice(socket);
        }
        put_head(&mut self.packet, datagram, length);
        self.packet.extend_from_slice(datagram.bytes);
        full
    }

    /// The packet, unless it is empty.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        (!self.packet.is_empty()).then(|| std::mem::take(&mut self.packet))
    }
}

fn put_head(packet: &mut Vec<u8>, datagram: &ReceivedDatagram<'_>, length: u16) {
    let families = match (datagram.from, datagram.to) {
        (SocketAddr::V4(_), None) => 0,
        (SocketAddr::V4(_), Some(IpAddr::V4(_))) => TO_V4,
        (SocketAddr::V4(_), Some(IpAddr::V6(_))) => TO_V6,
        (SocketAddr::V6(_), None) => FROM_V6,
        (SocketAddr::V6(_), Some(IpAddr::V4(_))) => FROM_V6 | TO_V4,
        (SocketAddr::V6(_), Some(IpAddr::V6(_))) => FROM_V6 | TO_V6,
    };
    packet.push(datagram.ecn & ECN_BITS | families);
    packet.extend_from_slice(&datagram.from.port().to_be_bytes());
    match datagram.from {
        SocketAddr::V4(from) => packet.extend_from_slice(&from.ip().octets()),
        SocketAddr::V6(from) => {
            packet.extend_from_slice(&from.ip().octets());
            packet.extend_from_slice(&from.scope_id().to_be_bytes());
        }
    }
    match datagram.to {
        Some(IpAddr::V4(ip)) => packet.extend_from_slice(&ip.octets()),
        Some(IpAddr::V6(ip)) => packet.extend_from_slice(&ip.octets()),
        None => {}
    }
    packet.extend_from_slice(&length.to_be_bytes());
}

/// The datagrams of a packet, in their order. Bytes that are none end it.
pub fn forwarded(packet: &[u8]) -> impl Iterator<Item = ReceivedDatagram<'_>> {
    let mut rest = packet;
    std::iter::from_fn(move || {
        let (datagram, after) = first(rest)?;
        rest = after;
        Some(datagram)
    })
}

/// The address of the socket, and the packet without it, of a packet for another process; `None` for other bytes.
pub fn socket_of(packet: &[u8]) -> Option<(SocketAddr, &[u8])> {
    first(packet).filter(|(head, _)| head.bytes.is_empty()).map(|(head, rest)| (head.from, rest))
}

/// The first datagram, and the bytes after it.
fn first(bytes: &[u8]) -> Option<(ReceivedDatagram<'_>, &[u8])> {
    let (&flags, rest) = bytes.split_first()?;
    let (port, rest) = number(rest)?;
    let (from, rest) = match flags & FROM_V6 {
        0 => v4(rest).map(|(ip, rest)| (SocketAddr::new(ip.into(), port), rest))?,
        _ => {
            let (ip, rest) = v6(rest)?;
            let (scope, rest) = rest.split_first_chunk()?;
            (SocketAddrV6::new(ip, port, 0, u32::from_be_bytes(*scope)).into(), rest)
        }
    };
    let (to, rest) = match flags & (TO_V4 | TO_V6) {
        0 => (None, rest),
        TO_V4 => v4(rest).map(|(ip, rest)| (Some(ip.into()), rest))?,
        _ => v6(rest).map(|(ip, rest)| (Some(ip.into()), rest))?,
    };
    let (length, rest) = number(rest)?;
    let (bytes, rest) = rest.split_at_checked(length.into())?;
    Some((ReceivedDatagram { bytes, from, to, ecn: flags & ECN_BITS }, rest))
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u16::from_be_bytes(*number), rest))
}

fn v4(bytes: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    bytes.split_first_chunk::<4>().map(|(octets, rest)| (Ipv4Addr::from(*octets), rest))
}

fn v6(bytes: &[u8]) -> Option<(Ipv6Addr, &[u8])> {
    bytes.split_first_chunk::<16>().map(|(octets, rest)| (Ipv6Addr::from(*octets), rest))
}

/// One end of a socket pair between two processes; clones share it, and workers may send on it at the same time.
#[derive(Clone, Debug)]
pub struct ForwardEnd(Arc<OwnedFd>);

impl ForwardEnd {
    /// Both ends.
    ///
    /// # Errors
    /// The kernel has no more descriptors.
    pub fn pair() -> io::Result<(ForwardEnd, ForwardEnd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&one, &other] {
            // Only root may go beyond the machine's limit; the other call takes as much as the limit allows.
            let forced = sys::set_option(end.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, WAITING_BYTES_MAX / 2);
            forced
                .or_else(|_| sys::set_option(end.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, WAITING_BYTES_MAX / 2))?;
        }
        Ok((ForwardEnd(Arc::new(one)), ForwardEnd(Arc::new(other))))
    }

    /// Takes over an end that another process passed.
    ///
    /// # Errors
    /// It is no such end.
    pub fn from_fd(fd: OwnedFd) -> io::Result<ForwardEnd> {
        match is_end(fd.as_fd()) {
            true => Ok(ForwardEnd(Arc::new(fd))),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Takes over the end that another process left us under this number; `None`, and nothing is changed, if there is none. A
    /// number may be taken over once.
    pub(crate) fn from_number(number: RawFd) -> Option<ForwardEnd> {
        let fd = sys::adopt_inherited(number, is_end)?;
        fcntl_setfd(&fd, FdFlags::CLOEXEC).ok()?;
        Some(ForwardEnd(Arc::new(fd)))
    }

    /// Whether the other process has ended, or has closed its end.
    pub fn has_ended(&self) -> bool {
        let mut ends = [PollFd::new(&self.0, PollFlags::empty())];
        let polled = poll(&mut ends, Some(&Timespec::default()));
        polled.is_ok() && ends.iter().any(|end| end.revents().intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// `WouldBlock`: there is no room, and the packet is lost. `BrokenPipe` or `ConnectionReset`: the other process has ended,
    /// with all its connections.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        count(Kind::Write);
        Ok(net::send(&self.0, packet, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).map(drop)?)
    }
}

fn is_end(fd: BorrowedFd<'_>) -> bool {
    sockopt::socket_type(fd).is_ok_and(|kind| kind == SocketType::SEQPACKET)
        && sockopt::socket_domain(fd).is_ok_and(|family| family == AddressFamily::UNIX)
}

impl AsFd for ForwardEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One worker's registration of an end.
#[derive(Debug)]
pub struct ForwardReceiver {
    key: SlotKey,
    end: ForwardEnd,
    not_send: PhantomData<*const ()>,
}

impl ForwardReceiver {
    /// Registers the end with the current worker.
    pub fn new(end: &ForwardEnd) -> io::Result<ForwardReceiver> {
        let key = core::with(|core| core.register(end.as_fd(), OpenedBy::Theirs, READ, EventFlags::IN))
            .unwrap_or_else(|| Err(core::not_a_worker()))?;
        Ok(ForwardReceiver { key, end: end.clone(), not_send: PhantomData })
    }

    /// Receives a packet in place of the bytes in `packet`; [`forwarded`] reads it. `WouldBlock` means wait.
    ///
    /// # Errors
    /// `UnexpectedEof`: the other process has ended, or has closed its end.
    pub fn try_receive(&self, packet: &mut Vec<u8>) -> io::Result<()> {
        packet.clear();
        packet.reserve(PACKET_BYTES_MAX);
        count(Kind::Read);
        match sys::recv_spare(self.end.as_fd(), packet, PACKET_BYTES_MAX, RecvFlags::DONTWAIT) {
            Ok(0) | Err(Errno::CONNRESET) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) => {
                if error == Errno::WOULDBLOCK {
                    core::with(|core| core.clear_ready(self.key, READ));
                }
                Err(error.into())
            }
        }
    }

    /// Ready if a packet may have arrived; otherwise the current task is woken when one has.
    pub fn poll_readable(&self) -> Poll<()> {
        core::with(|core| core.poll_ready(self.key, READ)).unwrap_or(Poll::Pending)
    }
}

impl Drop for ForwardReceiver {
    fn drop(&mut self) {
        // Others may have a copy of the descriptor, so it must be removed from epoll.
        core::with(|core| core.unregister(self.key, self.end.as_fd()));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::batch::{ReceiveBatch, Transmit};
    use crate::buffer;
    use crate::datagrams::{DatagramOptions, Receiver, Receiving, bind};
    use crate::worker::{self, block_on};
    use std::future::poll_fn;
    use std::io::{stderr, stdin};
    use std::net::UdpSocket;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::time::Duration;

    fn samples() -> Vec<ReceivedDatagram<'static>> {
        let datagram = |bytes, from: &str, to: Option<&str>, ecn| ReceivedDatagram {
            bytes,
            from: from.parse().unwrap(),
            to: to.map(|to| to.parse().unwrap()),
            ecn,
        };
        vec![
            datagram(b"one", "192.0.2.1:443", Some("192.0.2.2"), 0),
            datagram(b"", "[2001:db8::1]:65535", Some("2001:db8::2"), 3),
            datagram(b"three", "[fe80::1%7]:1", None, 1),
            datagram(b"four", "[::ffff:192.0.2.1]:1", Some("::ffff:192.0.2.2"), 2),
            datagram(b"five", "192.0.2.1:443", None, 2),
            datagram(b"six", "192.0.2.1:443", Some("::1"), 2),
            datagram(b"seven", "[::1]:443", Some("127.0.0.1"), 2),
        ]
    }

    #[test]
    fn a_packet_holds_datagrams_with_all_that_is_known_of_them() {
        let mut batch = ForwardBatch::default();
        assert!(samples().iter().all(|datagram| batch.push(datagram).is_none()));
        let packet = batch.take().unwrap();
        assert!(forwarded(&packet).eq(samples()));
        assert!(batch.take().is_none());
        for end in 0..packet.len() {
            let count = forwarded(&packet[..end]).count();
            assert!(count < samples().len() && forwarded(&packet[..end]).eq(samples().into_iter().take(count)));
        }
    }

    #[test]
    fn a_full_packet_comes_out_and_the_longest_datagram_fits() {
        let mut batch = ForwardBatch::default();
        let long = vec![7; usize::from(u16::MAX)];
        let longest = ReceivedDatagram { bytes: &long, ..samples()[1] };
        assert!(batch.push(&longest).is_none());
        let full = batch.push(&samples()[0]).unwrap();
        assert!(full.len() <= PACKET_BYTES_MAX && forwarded(&full).eq([longest]));
        let too_long = vec![7; long.len() + 1];
        assert!(batch.push(&ReceivedDatagram { bytes: &too_long, ..longest }).is_none());
        assert!(forwarded(&batch.take().unwrap()).eq([samples()[0]]));
    }

    mod mutate {
        use super::*;

        #[test]
        fn packets() {
            let mut batch = ForwardBatch::default();
            samples().iter().for_each(|datagram| drop(batch.push(datagram)));
            let packet = batch.take().unwrap();
            weir_mutate::mutate(&[&packet], &["\0", "\x04", "\x18"], |bytes| {
                let mut again = ForwardBatch::default();
                for datagram in forwarded(bytes) {
                    assert!(again.push(&datagram).is_none());
                    assert!(forwarded(&again.take().unwrap()).eq([datagram]));
                }
            });
        }
    }

    #[test]
    fn each_packet_for_another_process_names_the_socket() {
        for socket in ["192.0.2.1:443".parse().unwrap(), "[::]:8443".parse().unwrap()] {
            assert_eq!(socket_of(&ForwardBatch::notice(socket)), Some((socket, &b""[..])));
            let mut batch = ForwardBatch::of_socket(socket);
            assert!(batch.take().is_none());
            let long = vec![7; usize::from(u16::MAX)];
            let longest = ReceivedDatagram { bytes: &long, ..samples()[1] };
            assert!(batch.push(&longest).is_none());
            for (packet, held) in [(batch.push(&samples()[0]), longest), (batch.take(), samples()[0])] {
                let packet = packet.unwrap();
                assert!(packet.len() <= PACKET_BYTES_MAX);
                let (named, rest) = socket_of(&packet).unwrap();
                assert!(named == socket && forwarded(rest).eq([held]));
            }
        }
        assert!(socket_of(b"").is_none());
    }

    #[test]
    fn a_packet_reaches_another_worker() {
        let (tell, told) = mpsc::channel();
        let other = worker::start("other", None, || {}).unwrap();
        let mut batch = ForwardBatch::default();
        batch.push(&samples()[3]);
        let packet = batch.take().unwrap();
        assert!(other.run(move || {
            let is_same = forwarded(&packet).eq([samples()[3]]);
            tell.send(is_same).unwrap();
        }));
        assert!(told.recv().unwrap());
        other.stop();
        other.join();
    }

    #[test]
    fn a_pair_without_room_loses_packets_and_tells_the_end() {
        block_on(async {
            let (here, there) = ForwardEnd::pair().unwrap();
            let receiver = ForwardReceiver::new(&there).unwrap();
            drop(there);
            let packet = vec![7; PACKET_BYTES_MAX];
            let mut sent = 0;
            while here.send(&packet).is_ok() {
                sent += 1;
            }
            assert!((1..=WAITING_BYTES_MAX as usize / PACKET_BYTES_MAX).contains(&sent), "{sent}");
            assert_eq!(here.send(b"a").unwrap_err().kind(), io::ErrorKind::WouldBlock);
            let mut buffer = Vec::new();
            for _ in 0..sent {
                receiver.try_receive(&mut buffer).unwrap();
                assert!(buffer == packet);
            }
            assert_eq!(receiver.try_receive(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            assert!(poll_fn(|_| Poll::Ready(receiver.poll_readable())).await.is_pending());
            assert!(!receiver.end.has_ended());
            drop(here);
            assert!(receiver.end.has_ended());
            poll_fn(|_| receiver.poll_readable()).await;
            assert_eq!(receiver.try_receive(&mut buffer).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        })
        .unwrap();
        assert!(ForwardEnd::from_fd(UdpSocket::bind("127.0.0.1:0").unwrap().into()).is_err());
    }

    /// Marks the process that plays the new binary of an upgrade.
    const ENV_SUCCESSOR: &str = "WEIR_TEST_SUCCESSOR";
    /// Begins a datagram of a connection of the old process.
    const OLD: u8 = b'o';

    /// Answers a datagram with a word.
    fn answer(socket: &Receiver, datagram: &ReceivedDatagram<'_>, word: &[u8]) {
        let mut bytes = buffer::lease(word.len());
        bytes.extend_from_slice(word);
        let mut batch = socket.send_batch(true);
        let (to, from, ecn) = (datagram.from, datagram.to, datagram.ecn);
        batch.push(Transmit { to, from, ecn, segment_bytes: None, bytes });
        assert!(socket.try_send_batch(&mut batch));
    }

    /// Its standard input is the UDP socket, and its standard error the end of a socket pair.
    async fn succeed() {
        let socket = Receiving::from_fd(stdin().as_fd().try_clone_to_owned().unwrap()).unwrap();
        let socket = Receiver::new(&socket).unwrap();
        let end = ForwardEnd::from_fd(stderr().as_fd().try_clone_to_owned().unwrap()).unwrap();
        let (mut batch, mut forwards, mut has_ended) = (ReceiveBatch::new(), ForwardBatch::default(), false);
        while !has_ended {
            poll_fn(|_| socket.poll_readable()).await;
            if socket.try_receive_batch(&mut batch).is_err() {
                continue;
            }
            for datagram in batch.datagrams() {
                match datagram.bytes.first() {
                    Some(&OLD) => assert!(forwards.push(&datagram).is_none()),
                    _ => answer(&socket, &datagram, b"new"),
                }
                has_ended |= datagram.bytes == b"end";
            }
            if let Some(packet) = forwards.take() {
                end.send(&packet).unwrap();
            }
        }
    }

    #[test]
    fn a_process_answers_what_its_successor_forwards() {
        if std::env::var_os(ENV_SUCCESSOR).is_some() {
            return block_on(succeed()).unwrap();
        }
        let options = DatagramOptions { is_quic: true, ..DatagramOptions::default() };
        let socket = bind("0.0.0.0:0".parse().unwrap(), &options).unwrap();
        let (here, there) = ForwardEnd::pair().unwrap();
        let mut successor = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "forward::tests::a_process_answers_what_its_successor_forwards", "--nocapture"])
            .env(ENV_SUCCESSOR, "1")
            .stdin(socket.as_fd().try_clone_to_owned().unwrap())
            .stdout(Stdio::null())
            .stderr(there.as_fd().try_clone_to_owned().unwrap())
            .spawn()
            .unwrap();
        drop(there);
        let port = socket.local_addr().port();
        let client = std::thread::Builder::new().spawn(move || {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            client.connect(("127.0.0.2", port)).unwrap();
            let ask = |word: &[u8]| {
                client.send(word).unwrap();
                let mut buf = [0; 16];
                let length = client.recv(&mut buf).unwrap();
                buf[..length].to_vec()
            };
            [&b"old 1"[..], b"new 2", b"old 3", b"end"].map(ask)
        });
        block_on(async move {
            let (socket, forwards) = (Receiver::new(&socket).unwrap(), ForwardReceiver::new(&here).unwrap());
            socket.set_receiving(false);
            let mut packet = Vec::new();
            loop {
                poll_fn(|_| forwards.poll_readable()).await;
                match forwards.try_receive(&mut packet) {
                    Ok(()) => forwarded(&packet).for_each(|datagram| answer(&socket, &datagram, b"old")),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => break assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof),
                }
            }
        })
        .unwrap();
        assert_eq!(client.unwrap().join().unwrap(), [b"old", b"new", b"old", b"new"]);
        assert!(successor.wait().unwrap().success());
    }
}
