//! One UDP socket of one worker: its connections, what they want to send, and when they want to be looked at.
//!
//! ```text
//!  socket ─ receive ─► Endpoint ─► QuicConnection ─ wakes ─► the task that serves it
//!  tasks ─ touch ─► the list ─ drive ─► packets ─► the socket, in batches
//! ```
//!
//! A port works by batches: it hands over all datagrams of a batch, lets the tasks run, and then sends what all of them
//! have written. So the answers to several requests share packets and system calls. Invariants: nothing here is shared
//! with another worker; a connection stays here until its peer has learnt of the end (RFC 9000 §10.2).

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use quinn_proto::{
    AcceptError, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Incoming, ServerConfig,
};
use weir_meter::live::quic::{DatagramDrop, QuicCell};
use weir_net::batch::{ReceiveBatch, ReceivedDatagram, SendBatch, Transmit};
use weir_net::datagrams::Receiver;
use weir_net::worker::Task;
use weir_net::{Deadline, Instant, Lease, buffer, clock};

use crate::connection::{QuicConnection, QuicEnd};
use crate::id::{self, IdKey, WorkerPlace};
use crate::listed::Listed;
use crate::settings::{PortSettings, endpoint_config};
use crate::timers::Timers;
use crate::tls::{Chooser, Crypto, Handshake, VERSION};

/// Datagrams in one send, at most: the kernel takes 64, and fewer than 32 cost more at a megabyte.
const SEGMENTS_MAX: usize = 32;
/// Room for the datagrams of one send.
const SEND_BYTES: usize = 48 << 10;

/// A bit that each packet has (RFC 9000 §17.2), and the bits of the type of a packet with a long header.
const FIXED: u8 = 0x40;
const TYPE: u8 = 0x30;

/// What a port asks of the server around it.
pub trait PortHost {
    /// Whether a new client gets a connection.
    fn admit(&self, asks: Asks) -> Admission;

    /// Takes a datagram for a connection of another worker or of another process; `false` if that process has gone, and then
    /// [`Port::take`] resets the connection.
    fn forward(&self, place: WorkerPlace, datagram: &ReceivedDatagram<'_>) -> bool;
}

/// A new client.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// Its address.
    pub from: SocketAddr,
    /// The address that it sent to.
    pub to: Option<IpAddr>,
    /// It has proved its address with a token (RFC 9000 §8.1).
    pub is_validated: bool,
    /// It has no token yet, so a Retry packet may ask for one.
    pub may_retry: bool,
}

/// Takes the connection of a new client, or the reason why there is none.
pub type Begun = Box<dyn FnOnce(Result<Rc<QuicConnection>, QuicEnd>, Handshake)>;

/// The answer to a new client.
pub enum Admission {
    /// It may begin: the chooser has its TLS settings.
    Accept(Chooser, Begun),
    /// It must prove its address first (RFC 9000 §8.1.2).
    Retry,
    /// It is refused (`CONNECTION_REFUSED`).
    Refuse,
    /// It gets no answer.
    Ignore,
}

/// A port. See the module.
pub struct Port {
    place: WorkerPlace,
    key: Arc<IdKey>,
    endpoint: RefCell<Endpoint>,
    server: RefCell<(Arc<Crypto>, Arc<ServerConfig>)>,
    connections: RefCell<Vec<Option<Rc<QuicConnection>>>>,
    count: Cell<usize>,
    listed: Rc<Listed>,
    timers: RefCell<Timers>,
    deadline: Deadline,
    socket: Receiver,
    out: RefCell<SendBatch>,
    is_stopped: Cell<bool>,
    /// The counters of the worker.
    cell: Arc<QuicCell>,
}

impl Port {
    /// A port of the current worker, which counts in `cell`. The ids of its connections name `place`.
    pub fn new(socket: Receiver, place: WorkerPlace, settings: &PortSettings, cell: Arc<QuicCell>) -> Rc<Port> {
        let config = endpoint_config(&settings.keys, place);
        let endpoint = Endpoint::new(Arc::new(config), Some(settings.server.clone()), true, None);
        Rc::new(Port {
            place,
            key: settings.keys.id.clone(),
            endpoint: RefCell::new(endpoint),
            server: RefCell::new((settings.crypto.clone(), settings.server.clone())),
            connections: RefCell::default(),
            count: Cell::new(0),
            listed: Rc::new(Listed::new()),
            timers: RefCell::default(),
            deadline: Deadline::new(),
            out: RefCell::new(socket.send_batch(settings.cuts)),
            socket,
            is_stopped: Cell::new(false),
            cell,
        })
    }

    /// Accepts new connections with other settings from here on. The keys stay: they are those of the address.
    pub fn adopt(&self, settings: &PortSettings) {
        self.endpoint.borrow_mut().set_server_config(Some(settings.server.clone()));
        self.server.replace((settings.crypto.clone(), settings.server.clone()));
    }

    /// Takes no new connections. The port goes on until the last connection has ended.
    pub fn stop(&self) {
        self.is_stopped.set(true);
        self.listed.wake();
    }

    /// Whether the port receives from its socket; other workers or processes may read it.
    pub fn set_receiving(&self, receives: bool) {
        self.socket.set_receiving(receives);
        self.listed.wake();
    }

    /// Connections that have not ended.
    pub fn connections(&self) -> usize {
        self.count.get()
    }

    /// Receives, drives and sends; ready when the port is stopped and has no connection left.
    pub fn poll(&self, batch: &mut ReceiveBatch, host: &dyn PortHost) -> Poll<()> {
        self.listed.driven_here();
        self.ring();
        let has_received = !self.out.borrow().is_full() && self.receive(batch, host);
        self.drive_listed();
        let has_sent = self.send();
        if self.is_stopped.get() && self.count.get() == 0 && has_sent {
            return Poll::Ready(());
        }
        let has_room = !has_sent && self.socket.poll_writable().is_ready();
        if has_received || has_room || self.wait().is_ready() {
            // The tasks that were woken run first, so that their answers go out together.
            Task::current().wake();
        }
        Poll::Pending
    }

    /// Waits for the next moment of a connection; ready if it has come.
    fn wait(&self) -> Poll<()> {
        match self.timers.borrow().next() {
            Some(at) => self.deadline.set_at(Instant::of_std(at)),
            None => self.deadline.clear(),
        }
        self.deadline.poll_expired()
    }

    fn connection(&self, handle: ConnectionHandle) -> Option<Rc<QuicConnection>> {
        self.connections.borrow().get(handle.0).cloned().flatten()
    }

    /// Hands over the datagrams that have come; `false` if there were none.
    fn receive(&self, batch: &mut ReceiveBatch, host: &dyn PortHost) -> bool {
        self.receive_from(&self.socket, batch, host)
    }

    /// Hands over the datagrams that have come to another socket of this address.
    pub fn read_also(&self, socket: &Receiver, batch: &mut ReceiveBatch, host: &dyn PortHost) {
        if self.receive_from(socket, batch, host) {
            Task::current().wake();
        }
    }

    fn receive_from(&self, socket: &Receiver, batch: &mut ReceiveBatch, host: &dyn PortHost) -> bool {
        let has_come = receive(socket, batch);
        if has_come {
            let mut count = 0;
            batch.datagrams().for_each(|datagram| {
                count += 1;
                self.route(&datagram, host);
            });
            self.cell.received.add(count);
        }
        has_come
    }

    /// Sends what waits; `false` if something has to wait for room.
    fn send(&self) -> bool {
        let mut out = self.out.borrow_mut();
        let (sent, lost) = (out.sent(), out.lost());
        let has_sent = self.socket.try_send_batch(&mut out);
        self.cell.sent.add(out.sent() - sent);
        self.cell.unsent.add(out.lost() - lost);
        has_sent
    }

    /// Whether a datagram is for a connection of this port.
    pub fn knows(&self, datagram: &ReceivedDatagram<'_>) -> bool {
        let id = id::destination(datagram.bytes);
        self.count.get() > 0
            && id.and_then(|id| self.key.open(id)).is_some_and(|place| place.is_same_worker(self.place))
    }

    /// Handles a datagram that came to a socket of this address: for a connection of this port, or of another place.
    pub fn route(&self, datagram: &ReceivedDatagram<'_>, host: &dyn PortHost) {
        let place = id::destination(datagram.bytes).and_then(|id| self.key.open(id));
        let is_passed_on = match place {
            Some(place) if !place.is_same_worker(self.place) => host.forward(place, datagram),
            _ => false,
        };
        if !is_passed_on {
            self.take(datagram, host);
        }
    }

    /// Handles a datagram for this port, wherever it came from.
    pub fn take(&self, datagram: &ReceivedDatagram<'_>, host: &dyn PortHost) {
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
                if let Some(connection) = self.connection(handle) {
                    let mut inner = connection.inner.borrow_mut();
                    inner.handle_event(event);
                    if connection.remote.heard(datagram.from, inner.remote_address()) {
                        self.cell.migrations.one();
                    }
                    drop(inner);
                    connection.touch();
                    connection.wake();
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.admit(incoming, host),
            Some(DatagramEvent::Response(transmit)) => {
                self.count_answer(&answer);
                self.push(transmit, answer);
            }
            None => self.cell.dropped(reason(datagram.bytes), 1),
        }
    }

    /// Counts an answer to a datagram that belongs to no connection.
    fn count_answer(&self, answer: &[u8]) {
        match answer {
            [first, ..] if first & id::LONG == 0 => self.cell.resets.one(),
            [_, 0, 0, 0, 0, ..] => self.cell.negotiations.one(),
            _ => self.cell.refused.one(),
        }
    }

    fn admit(&self, incoming: Incoming, host: &dyn PortHost) {
        let asks = Asks {
            from: incoming.remote_address(),
            to: incoming.local_ip(),
            is_validated: incoming.remote_address_validated(),
            may_retry: incoming.may_retry(),
        };
        let admission = if self.is_stopped.get() { Admission::Refuse } else { host.admit(asks) };
        let mut answer = Lease::none();
        let mut endpoint = self.endpoint.borrow_mut();
        let transmit = match admission {
            Admission::Accept(chooser, begun) => {
                drop(endpoint);
                return self.accept(incoming, chooser, begun);
            }
            Admission::Retry => match endpoint.retry(incoming, &mut answer) {
                Ok(transmit) => {
                    self.cell.retries.one();
                    transmit
                }
                Err(error) => {
                    self.cell.refused.one();
                    endpoint.refuse(error.into_incoming(), &mut answer)
                }
            },
            Admission::Refuse => {
                self.cell.refused.one();
                endpoint.refuse(incoming, &mut answer)
            }
            Admission::Ignore => return endpoint.ignore(incoming),
        };
        drop(endpoint);
        self.push(transmit, answer);
    }

    fn accept(&self, incoming: Incoming, chooser: Chooser, begun: Begun) {
        let (crypto, base) = self.server.borrow().clone();
        let (config, handshake, proof) = crypto.hearing(&base, chooser);
        let mut answer = Lease::none();
        let accepted = self.endpoint.borrow_mut().accept(incoming, clock::now().std(), &mut answer, Some(config));
        match accepted {
            Ok((handle, inner)) => {
                let connection = QuicConnection::new(handle, inner, self.listed.clone(), proof);
                let mut connections = self.connections.borrow_mut();
                if connections.len() <= handle.0 {
                    connections.resize_with(handle.0 + 1, || None);
                }
                if let Some(place) = connections.get_mut(handle.0) {
                    *place = Some(connection.clone());
                }
                drop(connections);
                self.count.set(self.count.get() + 1);
                connection.touch();
                begun(Ok(connection), handshake);
            }
            Err(AcceptError { cause, response }) => {
                if let Some(transmit) = response {
                    self.push(transmit, answer);
                }
                begun(Err(cause.into()), handshake);
            }
        }
    }

    /// Tells the connections whose moment has come.
    fn ring(&self) {
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

    /// Drives every connection that is listed.
    fn drive_listed(&self) {
        let listed = self.listed.take();
        for handle in listed {
            if let Some(connection) = self.connection(handle).filter(|connection| connection.unlist()) {
                self.drive(&connection);
            }
        }
    }

    /// Takes what a connection wants to send, and notes when it wants to be looked at.
    fn drive(&self, connection: &Rc<QuicConnection>) {
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
            if self.out.borrow().is_full() && !self.send() {
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

    fn push(&self, transmit: quinn_proto::Transmit, bytes: Lease) {
        self.out.borrow_mut().push(Transmit {
            to: transmit.destination,
            from: transmit.src_ip,
            ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
            segment_bytes: transmit.segment_size,
            bytes,
        });
    }

    fn remove(&self, connection: &QuicConnection) {
        if let Some(place) = self.connections.borrow_mut().get_mut(connection.handle.0)
            && place.take().is_some()
        {
            self.count.set(self.count.get() - 1);
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
fn receive(socket: &Receiver, batch: &mut ReceiveBatch) -> bool {
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
