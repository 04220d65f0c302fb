//! Many datagrams of a UDP socket by one system call, with what QUIC needs to know of each (RFC 9000, sections 13.4 and 14).
//!
//! A [`ReceiveBatch`] is a worker's memory for arriving datagrams: one for all its sockets, because a worker handles the
//! datagrams of one call before the next call. A [`SendBatch`] holds what a worker sends on one socket, until the kernel has
//! room. The kernel joins datagrams of one sender that arrive together (GRO), and cuts a message into datagrams (GSO).

use crate::buffer::Lease;
use crate::control::Control;
use crate::counts::{Kind, count};
use crate::datagrams::Receiver;
use crate::sys::{self, Arrived, OutgoingMessage};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Messages that one call receives. The memory of a [`ReceiveBatch`] is this many times [`MESSAGE_BYTES`]: 1 MiB. A page of it
/// is in use once a message has reached it.
pub const RECEIVED_MESSAGES_MAX: usize = 16;
/// Room for a message: the longest datagram, and all that the kernel joins.
const MESSAGE_BYTES: usize = 64 << 10;
/// Messages that one call sends.
const SENT_MESSAGES_MAX: usize = 32;
/// Transmits that wait for the kernel, for each socket of a worker.
pub const TRANSMITS_MAX: usize = 64;
/// Datagrams that the kernel makes of one message, in all its versions (`UDP_MAX_SEGMENTS`).
const SEGMENTS_MAX: usize = 64;
/// Bytes of a message that the kernel cuts: 65,535 with the headers of IPv6 and UDP.
const CUT_BYTES_MAX: usize = 65_535 - 40 - 8;

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedDatagram<'a> {
    /// Its payload.
    pub bytes: &'a [u8],
    /// The sender; v4-mapped if the socket is one of IPv6 and the datagram came by IPv4.
    pub from: SocketAddr,
    /// The address that it was sent to, in the same form.
    pub to: Option<IpAddr>,
    /// Its ECN bits (RFC 3168).
    pub ecn: u8,
}

/// The datagrams of one call.
pub struct ReceiveBatch {
    bytes: Vec<u8>,
    arrived: [Option<Arrived>; RECEIVED_MESSAGES_MAX],
}

impl Default for ReceiveBatch {
    fn default() -> ReceiveBatch {
        ReceiveBatch::new()
    }
}

impl ReceiveBatch {
    /// Memory without datagrams.
    pub fn new() -> ReceiveBatch {
        ReceiveBatch { bytes: vec![0; RECEIVED_MESSAGES_MAX * MESSAGE_BYTES], arrived: [None; RECEIVED_MESSAGES_MAX] }
    }

    /// The datagrams of the last call, in the order of their arrival. Empty ones are left out.
    pub fn datagrams(&self) -> impl Iterator<Item = ReceivedDatagram<'_>> {
        let messages = self.bytes.chunks_exact(MESSAGE_BYTES).zip(&self.arrived);
        messages.filter_map(|(bytes, arrived)| Some((bytes, arrived.as_ref()?))).flat_map(|(bytes, arrived)| {
            let bytes = bytes.get(..arrived.length).unwrap_or_default();
            let each = arrived.segment_bytes.unwrap_or(MESSAGE_BYTES).max(1);
            let datagram = |bytes| ReceivedDatagram { bytes, from: arrived.from, to: arrived.to, ecn: arrived.ecn };
            bytes.chunks(each).map(datagram)
        })
    }
}

impl fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiveBatch({} messages)", self.arrived.iter().flatten().count())
    }
}

/// Datagrams to send to one client.
#[derive(Debug)]
pub struct Transmit {
    /// The client.
    pub to: SocketAddr,
    /// The address to send from; `None` for the kernel's choice.
    pub from: Option<IpAddr>,
    /// The ECN bits of each datagram (RFC 3168).
    pub ecn: u8,
    /// The length of each datagram, but that the last one may be shorter; `None` for a single datagram.
    pub segment_bytes: Option<usize>,
    /// The payloads, one after the other.
    pub bytes: Lease,
}

/// Datagrams that wait for the kernel, of one worker and one socket.
#[derive(Debug)]
pub struct SendBatch {
    queue: VecDeque<Transmit>,
    /// Bytes of the first transmit that are sent or lost.
    start: usize,
    /// The kernel refuses to cut the first transmit.
    is_first_plain: bool,
    /// Whether the kernel cuts messages.
    cuts: bool,
    sent: u64,
    lost: u64,
}

/// The next step for a message that the kernel did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It waits for room.
    Waits,
    /// The call is to be repeated.
    Again,
    /// Its transmit goes without GSO.
    Plain,
    /// All transmits go without GSO.
    AllPlain,
    /// It is lost, as it may also be lost on its way.
    Lost,
}

impl SendBatch {
    /// An empty batch; without `cuts`, each datagram is a message of its own (`quic_gso off`).
    pub(crate) fn new(cuts: bool) -> SendBatch {
        SendBatch { queue: VecDeque::new(), start: 0, is_first_plain: false, cuts, sent: 0, lost: 0 }
    }

    /// Adds a transmit, which is lost if the batch is full.
    pub fn push(&mut self, transmit: Transmit) {
        if self.is_full() {
            self.lost += 1;
        } else if !transmit.bytes.is_empty() {
            self.queue.push_back(transmit);
        }
    }

    /// Whether [`TRANSMITS_MAX`] transmits wait.
    pub fn is_full(&self) -> bool {
        self.queue.len() >= TRANSMITS_MAX
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Datagrams that the kernel took.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Messages that the kernel refused, and transmits for which there was no place.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether the kernel cuts messages into datagrams (GSO); weir stops asking for it after an error that says so.
    pub fn cuts(&self) -> bool {
        self.cuts
    }

    /// Sends all that `send` takes; `false` if something has to wait for room.
    fn send_by(
        &mut self,
        mut send: impl FnMut(&mut dyn Iterator<Item = OutgoingMessage<'_>>) -> io::Result<usize>,
    ) -> bool {
        while !self.queue.is_empty() {
            let sent = send(&mut self.messages());
            let error = match sent {
                Ok(0) => return false,
                Ok(sent) => {
                    (0..sent).for_each(|_| self.sent += self.leave());
                    continue;
                }
                Err(error) => error,
            };
            match fate(&error, self.is_first_cut()) {
                Fate::Waits => return false,
                Fate::Again => {}
                Fate::Plain => self.is_first_plain = true,
                Fate::AllPlain => self.cuts = false,
                Fate::Lost => {
                    self.lost += 1;
                    self.leave();
                }
            }
        }
        true
    }

    /// Whether the kernel is to cut the first message.
    fn is_first_cut(&self) -> bool {
        let segment_bytes = self.queue.front().and_then(|first| first.segment_bytes);
        segment_bytes.zip(self.messages().next()).is_some_and(|(each, message)| each < message.bytes.len())
    }

    /// The messages that remain, in their order.
    fn messages(&self) -> impl Iterator<Item = OutgoingMessage<'_>> {
        self.queue.iter().enumerate().flat_map(|(index, transmit)| {
            let start = if index == 0 { self.start } else { 0 };
            let bytes = transmit.bytes.get(start..).unwrap_or_default();
            bytes.chunks(self.message_bytes(transmit, index == 0)).map(|bytes| message(transmit, bytes))
        })
    }

    /// The length of each message of a transmit, but for the last one.
    fn message_bytes(&self, transmit: &Transmit, is_first: bool) -> usize {
        let Some(each) = transmit.segment_bytes else { return usize::MAX };
        let each = each.max(1);
        match self.cuts && !(is_first && self.is_first_plain) {
            true => each * (CUT_BYTES_MAX / each).clamp(1, SEGMENTS_MAX),
            false => each,
        }
    }

    /// Removes the first message; returns how many datagrams it is.
    fn leave(&mut self) -> u64 {
        let Some(first) = self.queue.front() else { return 0 };
        let rest = first.bytes.len().saturating_sub(self.start);
        let message = self.message_bytes(first, true).min(rest);
        let datagrams = first.segment_bytes.map_or(1, |each| message.div_ceil(each.max(1)));
        self.start = self.start.saturating_add(message);
        if self.start >= first.bytes.len() {
            self.queue.pop_front();
            (self.start, self.is_first_plain) = (0, false);
        }
        datagrams as u64
    }
}

/// The message with these bytes of a transmit.
fn message<'a>(transmit: &Transmit, bytes: &'a [u8]) -> OutgoingMessage<'a> {
    let cut = transmit.segment_bytes.filter(|each| *each < bytes.len());
    let cut = cut.and_then(|each| u16::try_from(each).ok());
    let is_v4 = match transmit.to.ip() {
        IpAddr::V4(_) => true,
        IpAddr::V6(ip) => ip.to_ipv4_mapped().is_some(),
    };
    OutgoingMessage { bytes, to: transmit.to, control: Control::of(transmit.from, is_v4, transmit.ecn, cut) }
}

/// `is_cut` says whether the kernel was asked to cut the message.
fn fate(error: &io::Error, is_cut: bool) -> Fate {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::WOULDBLOCK) => Fate::Waits,
        Some(Errno::INTR) => Fate::Again,
        // The network card does not compute checksums, or IPsec stands between.
        Some(Errno::IO) if is_cut => Fate::AllPlain,
        // The segments or the addresses of this transmit are at fault: others may be cut.
        Some(Errno::MSGSIZE | Errno::INVAL) if is_cut => Fate::Plain,
        _ => Fate::Lost,
    }
}

impl Receiver {
    /// Receives the datagrams that wait, at most [`RECEIVED_MESSAGES_MAX`] messages. `WouldBlock` means wait.
    ///
    /// # Errors
    /// The kernel's; the batch is empty then.
    pub fn try_receive_batch(&self, batch: &mut ReceiveBatch) -> io::Result<()> {
        count(Kind::Read);
        batch.arrived = [None; RECEIVED_MESSAGES_MAX];
        match sys::receive_many(self.fd(), &mut batch.bytes) {
            Ok(arrived) => {
                // A call that leaves room has found the queue empty: the next datagram is an event of its own.
                if arrived.last().is_some_and(Option::is_none) {
                    self.is_drained();
                }
                batch.arrived = arrived;
                Ok(())
            }
            Err(error) => Err(self.after_receive(error)),
        }
    }

    /// An empty batch for this socket. `cuts` lets the kernel cut messages, if it can (`quic_gso`).
    pub fn send_batch(&self, cuts: bool) -> SendBatch {
        // A kernel without GSO does not know the option, and would send a message as one datagram.
        SendBatch::new(cuts && sys::set_option(self.fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok())
    }

    /// Sends what waits. `false` if something has to wait for room: poll [`Receiver::poll_writable`], then call again.
    pub fn try_send_batch(&self, batch: &mut SendBatch) -> bool {
        let is_sent = batch.send_by(|messages| {
            count(Kind::Write);
            sys::send_many::<SENT_MESSAGES_MAX>(self.fd(), messages)
        });
        self.wait_for_room(!is_sent);
        is_sent
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::buffer;
    use crate::counts;
    use crate::datagrams::{DatagramOptions, Receiving, bind};
    use crate::worker::block_on;
    use std::future::poll_fn;
    use std::net::{Ipv4Addr, UdpSocket};
    use std::task::Poll;

    fn socket(address: &str) -> Receiving {
        let options = DatagramOptions { is_quic: true, receive_buffer_bytes: 4 << 20, ..DatagramOptions::default() };
        bind(address.parse().unwrap(), &options).unwrap()
    }

    fn transmit(to: SocketAddr, segment_bytes: Option<usize>, bytes: &[u8]) -> Transmit {
        let mut lease = buffer::lease(bytes.len());
        lease.extend_from_slice(bytes);
        Transmit { to, from: None, ecn: 0, segment_bytes, bytes: lease }
    }

    /// A datagram as an owner has it: its bytes, the sender, the address, the ECN bits.
    type Owned = (Vec<u8>, SocketAddr, Option<IpAddr>, u8);

    /// Receives until that many datagrams have come.
    async fn receive_all(receiver: &Receiver, count: usize) -> Vec<Owned> {
        let (mut batch, mut all) = (ReceiveBatch::new(), Vec::new());
        while all.len() < count {
            poll_fn(|_| receiver.poll_readable()).await;
            match receiver.try_receive_batch(&mut batch) {
                Ok(()) => all.extend(batch.datagrams().map(|one| (one.bytes.to_vec(), one.from, one.to, one.ecn))),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        all
    }

    #[test]
    fn hundreds_of_datagrams_pass_in_two_calls() {
        for cuts in [true, false] {
            block_on(async move {
                let (one, other) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
                let (from, to) = (Receiver::new(&one).unwrap(), Receiver::new(&other).unwrap());
                let mut batch = from.send_batch(cuts);
                let bytes: Vec<u8> = (0..20_000u32).flat_map(u32::to_le_bytes).collect();
                for part in bytes.chunks(40_000) {
                    batch.push(transmit(to.local_addr(), Some(400), part));
                }
                let before = counts::snapshot();
                assert!(from.try_send_batch(&mut batch) && batch.is_empty());
                let received = receive_all(&to, 200).await;
                let calls = counts::snapshot().since(&before);
                // The kernel cuts 64 datagrams at most from a message; without GSO a call sends 32 datagrams.
                assert_eq!((calls.write, cuts && calls.read > 1), (if cuts { 1 } else { 7 }, false));
                assert!(received.iter().all(|one| one.0.len() == 400 && one.1 == from.local_addr()));
                assert!(received.iter().flat_map(|one| &one.0).eq(&bytes), "cuts: {cuts}");
                assert_eq!((batch.sent(), batch.lost(), batch.cuts()), (200, 0, cuts));
            })
            .unwrap();
        }
    }

    #[test]
    fn each_datagram_tells_its_addresses_and_its_ecn_bits() {
        for (bound, asked, client) in [
            ("127.0.0.1:0", "127.0.0.1", "127.0.0.1:0"),
            ("0.0.0.0:0", "127.0.0.2", "127.0.0.3:0"),
            ("[::1]:0", "::1", "[::1]:0"),
            ("[::]:0", "::1", "[::1]:0"),
            ("[::]:0", "::ffff:127.0.0.2", "127.0.0.1:0"),
        ] {
            block_on(async move {
                let options = DatagramOptions { is_quic: true, ipv6only: Some(false), ..DatagramOptions::default() };
                let (server, client) = (bind(bound.parse().unwrap(), &options).unwrap(), socket(client));
                let asked: IpAddr = asked.parse().unwrap();
                let (server, client) = (Receiver::new(&server).unwrap(), Receiver::new(&client).unwrap());
                let mut batch = client.send_batch(true);
                let to = SocketAddr::new(asked.to_canonical(), server.local_addr().port());
                for ecn in 0..4 {
                    batch.push(Transmit { ecn, ..transmit(to, Some(2), b"abcde") });
                }
                assert!(client.try_send_batch(&mut batch));
                let mut batch = server.send_batch(true);
                for (at, (bytes, from, to, ecn)) in receive_all(&server, 12).await.into_iter().enumerate() {
                    assert_eq!((to, usize::from(ecn)), (Some(asked), at / 3), "{bound} {asked}");
                    assert_eq!(from.ip().to_canonical(), client.local_addr().ip());
                    batch.push(Transmit { from: to, ecn: 1, ..transmit(from, None, &bytes) });
                }
                assert!(server.try_send_batch(&mut batch));
                for (bytes, from, _, ecn) in receive_all(&client, 12).await {
                    assert!(b"abcde".windows(bytes.len()).any(|part| part == bytes));
                    assert_eq!((from, ecn), (to, 1), "the answer leaves from the address that was asked");
                }
            })
            .unwrap();
        }
    }

    #[test]
    fn a_datagram_that_cannot_be_sent_takes_no_other_with_it() {
        block_on(async {
            let (one, other) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
            let (from, to) = (Receiver::new(&one).unwrap(), Receiver::new(&other).unwrap());
            let mut batch = from.send_batch(true);
            let nowhere: SocketAddr = "[2001:db8::1]:1".parse().unwrap();
            let stranger = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
            batch.push(transmit(nowhere, None, b"another family"));
            batch.push(transmit(to.local_addr(), None, b"a"));
            batch.push(transmit(to.local_addr(), None, &[0; 65_520]));
            batch.push(transmit(to.local_addr(), None, b""));
            batch.push(Transmit { from: stranger, ..transmit(to.local_addr(), Some(1), b"xy") });
            batch.push(transmit(to.local_addr(), Some(1), b"bc"));
            assert!(from.try_send_batch(&mut batch));
            let received: Vec<u8> = receive_all(&to, 3).await.into_iter().flat_map(|one| one.0).collect();
            assert_eq!((&received[..], batch.cuts()), (&b"abc"[..], true));
            // A kernel that calls an address that is not here an invalid argument gets that transmit as two messages.
            assert!([3, 4].contains(&batch.lost()));
        })
        .unwrap();
    }

    #[test]
    fn a_socket_that_cannot_cut_sends_plainly() {
        block_on(async {
            let (one, other) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
            let (from, to) = (Receiver::new(&one).unwrap(), Receiver::new(&other).unwrap());
            // Without checksums of its own, the kernel refuses to cut (udp_send_skb).
            sys::set_option(from.fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
            let mut batch = from.send_batch(true);
            batch.push(transmit(to.local_addr(), Some(3), b"one two"));
            batch.push(transmit(to.local_addr(), None, b"three"));
            assert!(from.try_send_batch(&mut batch));
            let received: Vec<Vec<u8>> = receive_all(&to, 4).await.into_iter().map(|one| one.0).collect();
            assert_eq!(received, [&b"one"[..], b" tw", b"o", b"three"]);
            assert_eq!(batch.lost(), 0);
        })
        .unwrap();
    }

    /// A kernel that takes messages as its script says, and what it has taken.
    fn scripted(batch: &mut SendBatch, script: &[Result<usize, Errno>]) -> (bool, Vec<Vec<u8>>) {
        let (mut taken, mut script) = (Vec::new(), script.iter());
        let is_sent = batch.send_by(|messages| match script.next() {
            Some(Ok(count)) => {
                let some: Vec<Vec<u8>> = messages.take(*count).map(|message| message.bytes.to_vec()).collect();
                taken.extend_from_slice(&some);
                Ok(some.len())
            }
            Some(Err(error)) => Err((*error).into()),
            None => Err(Errno::WOULDBLOCK.into()),
        });
        (is_sent, taken)
    }

    #[test]
    fn what_has_no_room_waits_in_order() {
        let to = "127.0.0.1:1".parse().unwrap();
        let mut batch = SendBatch::new(true);
        batch.push(transmit(to, Some(2), &[b'a'; 300]));
        batch.push(transmit(to, None, b"b"));
        batch.push(transmit(to, Some(2), b"ccc"));
        // A message of 64 datagrams, then no room; the rest comes in order.
        assert_eq!(scripted(&mut batch, &[Ok(1)]), (false, vec![vec![b'a'; 128]]));
        assert_eq!(scripted(&mut batch, &[]), (false, vec![]));
        let (is_sent, taken) = scripted(&mut batch, &[Err(Errno::INTR), Ok(2), Err(Errno::NOBUFS), Ok(9)]);
        assert!(is_sent && batch.is_empty());
        assert_eq!(taken, [vec![b'a'; 128], vec![b'a'; 44], b"ccc".to_vec()]);
        assert_eq!(batch.lost(), 1);
    }

    #[test]
    fn gso_ends_for_a_transmit_or_for_the_socket() {
        let to = "127.0.0.1:1".parse().unwrap();
        let mut batch = SendBatch::new(true);
        let fill = |batch: &mut SendBatch| (0..2).for_each(|_| batch.push(transmit(to, Some(2), b"aab")));
        fill(&mut batch);
        let (is_sent, taken) = scripted(&mut batch, &[Err(Errno::MSGSIZE), Ok(2), Ok(9)]);
        assert_eq!((is_sent, taken), (true, vec![b"aa".to_vec(), b"b".to_vec(), b"aab".to_vec()]));
        fill(&mut batch);
        let (is_sent, taken) = scripted(&mut batch, &[Ok(1), Err(Errno::IO), Err(Errno::IO), Ok(9)]);
        assert_eq!((is_sent, taken), (true, vec![b"aab".to_vec(), b"b".to_vec()]));
        assert_eq!((batch.cuts(), batch.lost()), (false, 1), "without GSO, an error costs one datagram");
    }

    #[test]
    fn a_full_batch_takes_no_more() {
        let to = "127.0.0.1:1".parse().unwrap();
        let mut batch = SendBatch::new(true);
        (0..=TRANSMITS_MAX).for_each(|_| batch.push(transmit(to, None, b"a")));
        assert!(batch.is_full());
        assert_eq!((batch.queue.len(), batch.lost()), (TRANSMITS_MAX, 1));
    }

    #[test]
    fn a_worker_that_only_sends_is_not_woken_by_datagrams() {
        block_on(async {
            let one = socket("127.0.0.1:0");
            let receiver = Receiver::new(&one).unwrap();
            receiver.set_receiving(false);
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.send_to(b"a", one.local_addr()).unwrap();
            crate::timer::sleep(std::time::Duration::from_millis(20)).await;
            assert_eq!(poll_fn(|_| Poll::Ready(receiver.poll_readable())).await, Poll::Pending);
            // Asking for room is an event at once, and one of room alone.
            receiver.wait_for_room(true);
            poll_fn(|_| receiver.poll_writable()).await;
            assert_eq!(poll_fn(|_| Poll::Ready(receiver.poll_readable())).await, Poll::Pending);
            // The datagram has waited.
            receiver.set_receiving(true);
            assert_eq!(receive_all(&receiver, 1).await[0].0, b"a");
        })
        .unwrap();
    }
}
