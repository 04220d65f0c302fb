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
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use quinn_proto::{AcceptError, Endpoint, Incoming, ServerConfig};
use weir_meter::live::quic::QuicCell;
use weir_net::batch::{ReceiveBatch, ReceivedDatagram};
use weir_net::datagrams::Receiver;
use weir_net::worker::Task;
use weir_net::{Lease, clock};

use crate::connection::{QuicConnection, QuicEnd};
use crate::hub::{Hub, receive};
use crate::id::{self, IdKey, WorkerPlace};
use crate::settings::{PortSettings, endpoint_config};
use crate::tls::{Chooser, Crypto, Handshake};

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
    server: RefCell<(Arc<Crypto>, Arc<ServerConfig>)>,
    hub: Hub,
    socket: Receiver,
    is_stopped: Cell<bool>,
}

impl Port {
    /// A port of the current worker, which counts in `cell`. The ids of its connections name `place`.
    pub fn new(socket: Receiver, place: WorkerPlace, settings: &PortSettings, cell: Arc<QuicCell>) -> Rc<Port> {
        let config = endpoint_config(&settings.keys, place);
        let endpoint = Endpoint::new(Arc::new(config), Some(settings.server.clone()), true, None);
        Rc::new(Port {
            place,
            key: settings.keys.id.clone(),
            server: RefCell::new((settings.crypto.clone(), settings.server.clone())),
            hub: Hub::new(endpoint, socket.send_batch(settings.cuts), cell),
            socket,
            is_stopped: Cell::new(false),
        })
    }

    /// Accepts new connections with other settings from here on. The keys stay: they are those of the address.
    pub fn adopt(&self, settings: &PortSettings) {
        self.hub.endpoint.borrow_mut().set_server_config(Some(settings.server.clone()));
        self.server.replace((settings.crypto.clone(), settings.server.clone()));
    }

    /// Takes no new connections. The port goes on until the last connection has ended.
    pub fn stop(&self) {
        self.is_stopped.set(true);
        self.hub.listed.wake();
    }

    /// Whether the port receives from its socket; other workers or processes may read it.
    pub fn set_receiving(&self, receives: bool) {
        self.socket.set_receiving(receives);
        self.hub.listed.wake();
    }

    /// Connections that have not ended.
    pub fn connections(&self) -> usize {
        self.hub.connections()
    }

    /// Receives, drives and sends; ready when the port is stopped and has no connection left.
    pub fn poll(&self, batch: &mut ReceiveBatch, host: &dyn PortHost) -> Poll<()> {
        self.hub.listed.driven_here();
        if self.hub.is_resting() {
            Task::current().wake();
            return Poll::Pending;
        }
        self.hub.ring();
        self.hub.drive_listed(&self.socket);
        let has_sent = self.hub.send(&self.socket);
        if self.is_stopped.get() && self.hub.connections() == 0 && has_sent {
            return Poll::Ready(());
        }
        let has_room = !has_sent && self.socket.poll_writable().is_ready();
        let has_received = !self.hub.is_full() && self.receive(batch, host);
        if has_received || has_room || self.hub.wait().is_ready() {
            Task::current().wake();
        }
        Poll::Pending
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
            self.hub.rest();
            let mut count = 0;
            batch.datagrams().for_each(|datagram| {
                count += 1;
                self.route(&datagram, host);
            });
            self.hub.cell.received.add(count);
        }
        has_come
    }

    /// Whether a datagram is for a connection of this port.
    pub fn knows(&self, datagram: &ReceivedDatagram<'_>) -> bool {
        let id = id::destination(datagram.bytes);
        self.hub.connections() > 0
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
        if let Some(incoming) = self.hub.take(datagram) {
            self.admit(incoming, host);
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
        let mut endpoint = self.hub.endpoint.borrow_mut();
        let transmit = match admission {
            Admission::Accept(chooser, begun) => {
                drop(endpoint);
                return self.accept(incoming, chooser, begun);
            }
            Admission::Retry => match endpoint.retry(incoming, &mut answer) {
                Ok(transmit) => {
                    self.hub.cell.retries.one();
                    transmit
                }
                Err(error) => {
                    self.hub.cell.refused.one();
                    endpoint.refuse(error.into_incoming(), &mut answer)
                }
            },
            Admission::Refuse => {
                self.hub.cell.refused.one();
                endpoint.refuse(incoming, &mut answer)
            }
            Admission::Ignore => return endpoint.ignore(incoming),
        };
        drop(endpoint);
        self.hub.push(transmit, answer);
    }

    fn accept(&self, incoming: Incoming, chooser: Chooser, begun: Begun) {
        let (crypto, base) = self.server.borrow().clone();
        let (config, handshake, proof) = crypto.hearing(&base, chooser);
        let mut answer = Lease::none();
        let accepted = self.hub.endpoint.borrow_mut().accept(incoming, clock::now().std(), &mut answer, Some(config));
        match accepted {
            Ok((handle, inner)) => {
                let connection = self.hub.add(handle, inner, proof);
                begun(Ok(connection), handshake);
            }
            Err(AcceptError { cause, response }) => {
                if let Some(transmit) = response {
                    self.hub.push(transmit, answer);
                }
                begun(Err(cause.into()), handshake);
            }
        }
    }
}
