//! The connections of one endpoint of a worker: what they want to send, and when they want to be looked at. A server's
//! [`Port`](crate::port::Port) and a client's [`ClientPort`](crate::client::ClientPort) are around it.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use quinn_proto::{Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Incoming};
use weir_meter::live::quic::{DatagramDrop, QuicCell};
use weir_net::batch::{ReceiveBatch, ReceivedDatagram, SendBatch, Transmit};
use weir_net::datagrams::Receiver;
use weir_net::{Deadline, Instant, Lease, buffer, clock};

use crate::connection::{QuicConnection, QuicCounts};
use crate::id;
use crate::listed::Listed;
use crate::proved::AddressProof;
use crate::timers::Timers;
use crate::tls::VERSION;

/// Datagrams in one send, at most: the kernel takes 64, and fewer than 32 cost more at a megabyte.
const SEGMENTS_MAX: usize = 32;
/// Room for the datagrams of one send.
const SEND_BYTES: usize = 48 << 10;

/// A bit that each packet has (RFC 9000 §17.2), and the bits of the type of a packet with a long header.
const FIXED: u8 = 0x40;
const TYPE: u8 = 0x30;

/// After datagrams have come, the drivers of their connections run, and then the tasks that those wake. What all of them send goes
/// out together with the acknowledgments.
const RESTS: u8 = 2;

/// See the module.
pub struct Hub {
    pub endpoint: RefCell<Endpoint>,
    connections: RefCell<Vec<Option<Rc<QuicConnection>>>>,
    count: Cell<usize>,
    /// The counts of connections that have ended.
    gone: Cell<QuicCounts>,
    pub listed: Rc<Listed>,
    timers: RefCell<Timers>,
    deadline: Deadline,
    out: RefCell<SendBatch>,
    /// Turns that are left to other tasks, since datagrams have come.
    rests: Cell<u8>,
    /// Counts what happens.
    pub cell: Arc<QuicCell>,
}

impl Hub {
    /// A hub without connections, which counts in `cell`. `out` is for its socket.
    pub fn new(endpoint: Endpoint, out: SendBatch, cell: Arc<QuicCell>) -> Hub {
        Hub {
            endpoint: RefCell::new(endpoint),
            connections: RefCell::default(),
            count: Cell::new(0),
            gone: Cell::default(),
            listed: Rc::new(Listed::new()),
            timers: RefCell::default(),
            deadline: Deadline::new(),
            out: RefCell::new(out),
            rests: Cell::new(0),
            cell,
        }
    }

    /// Connections that have not ended.
    pub fn connections(&self) -> usize {
        self.count.get()
    }

    /// Adds a connection of the endpoint.
    pub fn add(&self, handle: ConnectionHandle, inner: Connection, proof: Arc<AddressProof>) -> Rc<QuicConnection> {
        let connection = QuicConnection::new(handle, inner, self.listed.clone(), proof);
        let mut connections = self.connections.borrow_mut();
        if connections.len() <= handle.0 {
            connections.resize_with(handle.0 + 1, || None);
        }
        if let Some(place) = connections.get_mut(handle.0) {
            *place = Some(connection.clone());
        }
        self.count.set(self.count.get() + 1);
        connection.touch();
        connection
    }

    /// All connections.
    pub fn each(&self, act: impl FnMut(&Rc<QuicConnection>)) {
        self.connections.borrow().iter().flatten().for_each(act);
    }

    /// What all connections have sent, received and lost so far, also those that have ended.
    pub fn counts(&self) -> QuicCounts {
        let mut sum = self.gone.get();
        self.each(|connection| sum = sum.plus(connection.counts()));
        sum
    }

    fn connection(&self, handle: ConnectionHandle) -> Option<Rc<QuicConnection>> {
        self.connections.borrow().get(handle.0).cloned().flatten()
    }

    /// Handles a datagram; it may be from a new client.
    pub fn take(&self, datagram: &ReceivedDatagram<'_>) -> Option<Incoming> {
        let mut answer = Lease::none();
        let event = self.endpoint.borrow_mut().handle(
            clock::now().std(),
            datagram.from,
            datagram.to,
            EcnCodepoint::from_bits(datagram.ecn),
            BytesMut::from(datagram.bytes),
            &mut answer,
        );
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let connection = self.connection(handle)?;
                let mut inner = connection.inner.borrow_mut();
                inner.handle_event(event);
                if connection.remote.heard(datagram.from, inner.remote_address()) {
                    self.cell.migrations.one();
                }
                drop(inner);
                connection.touch();
                connection.wake();
            }
            Some(DatagramEvent::NewConnection(incoming)) => return Some(incoming),
            Some(DatagramEvent::Response(transmit)) => {
                self.count_answer(&answer);
                self.push(transmit, answer);
            }
            None => self.cell.dropped(reason(datagram.bytes), 1),
        }
        None
    }

    /// Counts an answer to a datagram that belongs to no connection.
    fn count_answer(&self, answer: &[u8]) {
        match answer {
            [first, ..] if first & id::LONG == 0 => self.cell.resets.one(),
            [_, 0, 0, 0, 0, ..] => self.cell.negotiations.one(),
            _ => self.cell.refused.one(),
        }
    }

    /// Leaves the next turns to the tasks that datagrams have woken.
    pub fn rest(&self) {
        self.rests.set(RESTS);
    }

    /// Whether this turn is left to other tasks.
    pub fn is_resting(&self) -> bool {
        let rests = self.rests.get();
        self.rests.set(rests.saturating_sub(1));
        rests > 0
    }

    /// Tells the connections whose moment has come.
    pub fn ring(&self) {
        let now = clock::now().std();
        loop {
            let due = self.timers.borrow_mut().due(now);
            let Some(number) = due else { return };
            let Some(connection) = self.connection(ConnectionHandle(number)) else { continue };
            let is_due = |at| at <= now;
            let mut inner = connection.inner.borrow_mut();
            if inner.poll_timeout().is_some_and(is_due) {
                inner.handle_timeout(now);
                connection.wake();
            }
            drop(inner);
            connection.touch();
        }
    }

    /// Waits for the next moment of a connection; ready if it has come.
    pub fn wait(&self) -> Poll<()> {
        match self.timers.borrow().next() {
            Some(at) => self.deadline.set_at(Instant::of_std(at)),
            None => self.deadline.clear(),
        }
        self.deadline.poll_expired()
    }

    /// Drives every connection that is listed.
    pub fn drive_listed(&self, socket: &Receiver) {
        let listed = self.listed.take();
        for handle in listed {
            if let Some(connection) = self.connection(handle).filter(|connection| connection.unlist()) {
                self.drive(&connection, socket);
            }
        }
    }

    /// Takes what a connection wants to send, and notes when it wants to be looked at.
    fn drive(&self, connection: &Rc<QuicConnection>, socket: &Receiver) {
        let now = clock::now().std();
        let mut inner = connection.inner.borrow_mut();
        let mut has_ended = false;
        while let Some(event) = inner.poll_endpoint_events() {
            has_ended |= event.is_drained();
            let answer = self.endpoint.borrow_mut().handle_event(connection.handle, event);
            if let Some(answer) = answer {
                inner.handle_event(answer);
            }
        }
        if has_ended {
            self.count_lost(connection, &inner);
            drop(inner);
            return self.remove(connection);
        }
        let mut is_shut = false;
        loop {
            if self.is_full() && !self.send(socket) {
                is_shut = true;
                break;
            }
            let mut bytes = buffer::lease(SEND_BYTES);
            let Some(transmit) = inner.poll_transmit(now, SEGMENTS_MAX, &mut bytes) else {
                if connection.reset_waiting(&mut inner) {
                    continue;
                }
                break;
            };
            connection.remote.sent(transmit.destination);
            self.push(transmit, bytes);
        }
        self.timers.borrow_mut().want(connection.handle.0, inner.poll_timeout());
        self.count_lost(connection, &inner);
        drop(inner);
        if is_shut {
            connection.touch();
        }
    }

    /// Counts the packets that were declared lost since the last call.
    fn count_lost(&self, connection: &QuicConnection, inner: &Connection) {
        let lost = inner.stats().path.lost_packets;
        self.cell.lost.add(lost.saturating_sub(connection.lost.replace(lost)));
    }

    /// Adds datagrams to those that wait for the socket.
    pub fn push(&self, transmit: quinn_proto::Transmit, bytes: Lease) {
        self.out.borrow_mut().push(Transmit {
            to: transmit.destination,
            from: transmit.src_ip,
            ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
            segment_bytes: transmit.segment_size,
            bytes,
        });
    }

    /// Whether so many datagrams wait that none may be received.
    pub fn is_full(&self) -> bool {
        self.out.borrow().is_full()
    }

    /// Whether no connection has something to send, and nothing waits for the socket.
    pub fn is_idle(&self) -> bool {
        self.listed.is_empty() && self.out.borrow().is_empty()
    }

    /// Sends what waits; `false` if something has to wait for room.
    pub fn send(&self, socket: &Receiver) -> bool {
        let mut out = self.out.borrow_mut();
        let (sent, lost) = (out.sent(), out.lost());
        let has_sent = socket.try_send_batch(&mut out);
        self.cell.sent.add(out.sent() - sent);
        self.cell.unsent.add(out.lost() - lost);
        has_sent
    }

    fn remove(&self, connection: &QuicConnection) {
        if let Some(place) = self.connections.borrow_mut().get_mut(connection.handle.0)
            && place.take().is_some()
        {
            self.count.set(self.count.get() - 1);
            self.gone.set(self.gone.get().plus(connection.counts()));
        }
        self.timers.borrow_mut().forget(connection.handle.0);
        connection.wake();
    }
}

/// Why a datagram reached no connection, and no answer went back.
fn reason(datagram: &[u8]) -> DatagramDrop {
    let Some(first) = datagram.first().filter(|_| id::destination(datagram).is_some()) else {
        return DatagramDrop::Garbage;
    };
    let is_version_known = first & id::LONG == 0 || datagram.get(1..5) == Some(&VERSION.to_be_bytes());
    // Of a client that weir does not know, only a broken Initial packet gets here.
    let is_initial = first & (id::LONG | TYPE) == id::LONG;
    if first & FIXED == 0 || !is_version_known || is_initial { DatagramDrop::Garbage } else { DatagramDrop::UnknownId }
}

/// Receives a batch; `false` if there is nothing, and then the current task is woken when there is.
pub fn receive(socket: &Receiver, batch: &mut ReceiveBatch) -> bool {
    loop {
        if socket.poll_readable().is_pending() {
            return false;
        }
        match socket.try_receive_batch(batch) {
            // The next question waits for an event.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // An error is that of a datagram sent before: nobody listens there any more. The batch is empty then.
            Ok(()) | Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_reach_no_connection_are_garbage_or_of_an_unknown_one() {
        let long = |first: u8, version: u32| {
            [&[first][..], &version.to_be_bytes(), &[8], &[7; 8], &[8], &[7; 8], &[0; 40]].concat()
        };
        for garbage in [vec![], vec![0x40; 17], vec![0; 60], long(0xc0, VERSION), long(0xe0, 7), long(0xa0, VERSION)] {
            assert_eq!(reason(&garbage), DatagramDrop::Garbage, "{garbage:?}");
        }
        for unknown in [vec![0x40; 60], long(0xd0, VERSION), long(0xe0, VERSION), long(0xf0, VERSION)] {
            assert_eq!(reason(&unknown), DatagramDrop::UnknownId, "{unknown:?}");
        }
    }
}
