//! QUIC on this worker: one port for each UDP socket of a `listen … quic`, and the clients that begin on it.
//!
//! The settings of QUIC are those of the default server of an address, as in nginx; those of TLS are the settings of the
//! server that the client names.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::Poll;

use weir_http::exchange::conf::Conf;
use weir_http::exchange::route::ServerId;
use weir_http::hold::counters::{self, SEATS_MAX};
use weir_http::hold::worker::Worker;
use weir_http::receive::head::default_values;
use weir_meter::live::quic::{DatagramDrop, QuicCell};
use weir_net::batch::{ReceiveBatch, ReceivedDatagram};
use weir_net::datagrams::{Receiver, Receiving};
use weir_net::forward::{self, ForwardBatch, ForwardEnd, ForwardReceiver};
use weir_net::log::{self, Level};
use weir_net::worker::Task;
use weir_net::{Address, Carried, Transport};
use weir_quic::connection::{QuicConnection, QuicEnd};
use weir_quic::id::WorkerPlace;
use weir_quic::port::{Admission, Asks, Port, PortHost};
use weir_quic::settings::{self, PortSettings};
use weir_quic::tls::Handshake;

use super::{http3, secure, serve};

pub mod process;

/// The sockets of one address that a worker reads. The worker sends on the first one, whose number is its own; others are
/// those of workers that have gone.
pub struct PortSockets {
    /// The sockets, at least one.
    pub all: Vec<Receiving>,
    /// The number of the first one among those of the address.
    pub number: usize,
}

/// Ends the task of a port from outside.
#[derive(Default)]
pub struct PortStop {
    is_set: Cell<bool>,
    /// Others read the socket.
    others_read: Cell<bool>,
    has_left: Cell<bool>,
    /// Sockets to read besides the first one, if they are to change.
    others: Cell<Option<Vec<Receiving>>>,
    task: Cell<Option<Task>>,
}

impl PortStop {
    /// Takes no more clients; connections go on to their end, by what `others_read` and pass on or by the socket.
    pub fn set(&self, others_read: bool) {
        self.others_read.set(others_read);
        self.is_set.set(true);
        self.wake();
    }

    /// Reads these sockets besides the first one, and no others.
    pub fn read_also(&self, others: Vec<Receiving>) {
        self.others.set(Some(others));
        self.wake();
    }

    fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }
}

thread_local! {
    /// The memory for arriving datagrams of all ports of a worker: a batch is handled before the next one is read.
    static BATCH: RefCell<Option<ReceiveBatch>> = const { RefCell::new(None) };
    /// The ports of this worker, for datagrams that other workers pass on.
    static PORTS: RefCell<Vec<(SocketAddr, Weak<ServedPort>)>> = const { RefCell::new(Vec::new()) };
    /// A task of this worker takes what newer processes forward.
    static HEARS_NEWER: Cell<bool> = const { Cell::new(false) };
}

/// A port, and what it has around it.
struct ServedPort {
    port: Rc<Port>,
    here: Here,
    stop: Rc<PortStop>,
    /// The sockets besides the port's own.
    others: RefCell<Vec<Receiver>>,
}

impl ServedPort {
    /// Receives, unless others do.
    fn receive_again(&self) {
        let receives = !self.stop.others_read.get() && !process::this().is_read_elsewhere(self.here.address);
        self.port.set_receiving(receives);
        self.others.borrow().iter().for_each(|socket| socket.set_receiving(receives));
    }

    /// Reads these sockets besides its own.
    fn read_also(&self, sockets: &[Receiving]) {
        self.others.replace(sockets.iter().filter_map(|socket| Receiver::new(socket).ok()).collect());
        self.receive_again();
    }
}

/// Lets the ports of this worker receive, unless others do.
pub fn receive_again() {
    ports().iter().for_each(|served| served.receive_again());
}

/// Whether a port of this worker goes on: it waits for its last connections to end.
pub fn has_ports() -> bool {
    PORTS.with_borrow(|ports| ports.iter().any(|(_, port)| port.strong_count() > 0))
}

/// The ports of this worker.
fn ports() -> Vec<Rc<ServedPort>> {
    PORTS.with_borrow(|ports| ports.iter().filter_map(|(_, port)| port.upgrade()).collect())
}

/// Serves the sockets of an address until the port is stopped and its last connection has ended.
pub async fn serve(worker: Rc<Worker>, sockets: PortSockets, stop: Rc<PortStop>) {
    let PortSockets { all, number } = sockets;
    let Some((first, others)) = all.split_first() else { return };
    let address = first.local_addr();
    // A socket has one port, whatever the lanes of its clients.
    let generation = worker.main();
    let made = Receiver::new(first).map_err(|error| log::Os(&error).to_string()).and_then(|receiver| {
        let place = WorkerPlace {
            generation: process::this().process.number,
            worker: u16::try_from(generation.seat).unwrap_or(u16::MAX),
            socket: u8::try_from(number).unwrap_or(u8::MAX),
        };
        let settings = port_settings(&generation.conf, address).ok_or("it has no keys")?;
        Ok(Port::new(receiver, place, &settings, worker.board.quic.clone()))
    });
    let port = match made {
        Ok(port) => port,
        Err(why) => return log::global(Level::Emerg, format_args!("QUIC on {address} could not begin: {why}")),
    };
    let conf = generation.conf.generation;
    drop(generation);
    let here = Here {
        worker,
        address,
        socket: Rc::new(Address::Tcp(address)),
        generation: Cell::new(conf),
        passed_on: RefCell::default(),
    };
    let served = Rc::new(ServedPort { port, here, stop, others: RefCell::default() });
    PORTS.with_borrow_mut(|ports| {
        ports.retain(|(_, port)| port.strong_count() > 0);
        ports.push((address, Rc::downgrade(&served)));
    });
    served.read_also(others);
    hear_newer(&served.here.worker);
    if number == 0 {
        process::this().tell_read(address);
    }
    let stop = served.stop.clone();
    poll_fn(|_| {
        stop.task.set(Some(Task::current()));
        if stop.is_set.get() || served.here.worker.is_draining() {
            served.port.stop();
            if stop.others_read.get() && !stop.has_left.replace(true) {
                served.receive_again();
            }
        }
        if let Some(sockets) = stop.others.take() {
            served.read_also(&sockets);
        }
        served.here.adopt(&served.port);
        let done = BATCH.with_borrow_mut(|batch| {
            let batch = batch.get_or_insert_default();
            served.others.borrow().iter().for_each(|socket| served.port.read_also(socket, batch, &served.here));
            served.port.poll(batch, &served.here)
        });
        served.here.pass_on();
        done
    })
    .await;
}

/// Starts the task that takes what newer processes forward to this one, unless this worker has it.
fn hear_newer(worker: &Rc<Worker>) {
    if let Some(inbox) = process::this().ways.inbox.clone().filter(|_| !HEARS_NEWER.replace(true)) {
        let worker = worker.clone();
        weir_net::worker::spawn(async move {
            // The worker's other sockets stand, whatever becomes of this one.
            let _ = take_newer(&worker, &inbox).await;
            HEARS_NEWER.set(false);
        });
    }
}

/// Takes what newer processes forward, until this worker has no port.
async fn take_newer(worker: &Worker, inbox: &ForwardEnd) -> io::Result<()> {
    let (receiver, mut packet) = (ForwardReceiver::new(inbox)?, Vec::new());
    loop {
        poll_fn(|_| receiver.poll_readable()).await;
        // A worker with ports has the same event.
        if !has_ports() {
            return Ok(());
        }
        match receiver.try_receive(&mut packet) {
            Ok(()) => forwarded_by_newer(worker, &packet),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Handles a packet of a newer process: datagrams, or the notice that it reads an address.
fn forwarded_by_newer(worker: &Worker, packet: &[u8]) {
    let Some((address, datagrams)) = forward::socket_of(packet) else { return };
    if datagrams.is_empty() {
        process::this().leave(address);
        for seat in 0..SEATS_MAX {
            worker.on_colleague(seat, |_| receive_again());
        }
        return;
    }
    let ports = ports();
    let served: Vec<_> = ports.iter().filter(|served| served.here.address == address).collect();
    for datagram in forward::forwarded(datagrams) {
        match served.iter().find(|served| served.port.knows(&datagram)).or(served.last()) {
            Some(owner) => owner.port.route(&datagram, &owner.here),
            None => worker.board.quic.dropped(DatagramDrop::UnknownId, 1),
        }
    }
    served.iter().for_each(|served| served.here.pass_on());
}

/// Takes the datagrams that another worker got for a connection of this one.
fn passed_on(worker: &Worker, address: SocketAddr, packet: &[u8]) {
    let served = PORTS.with_borrow(|ports| {
        let all = ports.iter().filter(|(other, _)| *other == address).filter_map(|(_, port)| port.upgrade());
        all.collect::<Vec<_>>()
    });
    // After a stop and a start there are two for a while: the older one has connections to end.
    for datagram in forward::forwarded(packet) {
        match served.iter().find(|served| served.port.knows(&datagram)).or(served.last()) {
            Some(owner) => owner.port.take(&datagram, &owner.here),
            None => worker.board.quic.dropped(DatagramDrop::UnknownId, 1),
        }
    }
}

/// Makes the kernel give each datagram of QUIC to the worker of its connection. A kernel that cannot leaves it to the
/// workers, which pass datagrams on.
pub fn steer(conf: &Conf, address: SocketAddr, sockets: &[Receiving], workers: usize) {
    let attached = port_settings(conf, address).map(|settings| settings.steering().attach(sockets, workers));
    if let Some(Err(error)) = attached {
        let what = "setsockopt(SO_ATTACH_REUSEPORT_CBPF) failed";
        log::global(Level::Notice, format_args!("{what} {}: workers of {address} pass datagrams on", log::Os(&error)));
    }
}

/// The settings of an address, which are those of its default server.
fn port_settings(conf: &Conf, address: SocketAddr) -> Option<PortSettings> {
    let socket = conf.quic.iter().find(|socket| socket.address == Address::Tcp(address))?;
    let values = default_values(conf, socket.fallback);
    // Without keepalive, a client still has the time for its request.
    let idle = values.core.keepalive_timeout.max(values.core.header_timeout);
    settings::port_settings(&settings::Wanted {
        host_key: values.http3.host_key.as_deref().unwrap_or(process::this().process.host_key.as_bytes()),
        idle,
        streams: values.http3.streams_max,
        stream_window: values.http3.stream_buffer,
        ids: values.http3.ids,
        cuts: values.http3.gso,
    })
}

/// The worker and the address of a port, as its host.
struct Here {
    worker: Rc<Worker>,
    address: SocketAddr,
    socket: Rc<Address>,
    /// The configuration whose settings the port has.
    generation: Cell<u32>,
    /// Datagrams for other workers and other processes.
    passed_on: RefCell<Vec<(Elsewhere, ForwardBatch)>>,
}

impl Here {
    /// Sends the datagrams for other workers and other processes.
    fn pass_on(&self) {
        for (place, mut batch) in self.passed_on.take() {
            if let Some(packet) = batch.take() {
                self.send_to(place, packet);
            }
        }
    }

    /// Sends datagrams elsewhere. A place that has gone, or has too much to do, loses them.
    fn send_to(&self, place: Elsewhere, packet: Vec<u8>) {
        let (address, cell) = (self.address, &self.worker.board.quic);
        // A packet for another process begins with the address, which has no bytes of a datagram.
        let count = forward::forwarded(&packet).filter(|datagram| !datagram.bytes.is_empty()).count() as u64;
        let (is_sent, sent) = match place {
            Elsewhere::Worker(seat) => {
                let take = move |worker: &Worker| passed_on(worker, address, &packet);
                (self.worker.on_colleague(seat.into(), take), &cell.to_workers)
            }
            Elsewhere::Process(number) => (process::this().send(number, &packet), &cell.to_processes),
        };
        match is_sent {
            true => sent.add(count),
            false => cell.dropped(DatagramDrop::Full, count),
        }
    }

    /// Gives the port the settings of another configuration.
    fn adopt(&self, port: &Port) {
        let generation = self.worker.main();
        if self.generation.replace(generation.conf.generation) != generation.conf.generation
            && let Some(settings) = port_settings(&generation.conf, self.address)
        {
            port.adopt(&settings);
        }
    }
}

impl PortHost for Here {
    fn admit(&self, asks: Asks) -> Admission {
        let worker = &self.worker;
        let generation = worker.lane(|| Some(asks.from.ip()));
        let Some(listen) = generation.listen_of_quic(self.address, asks.to) else { return Admission::Refuse };
        if default_values(&generation.conf, listen).http3.retry && asks.may_retry && !asks.is_validated {
            return Admission::Retry;
        }
        counters::add(&worker.counters().accepted, 1);
        let Some(place) = worker.take_place_of_client() else { return Admission::Refuse };
        let counted = QuicCell::open(&worker.board.quic);
        let carrier = Rc::new(QuicCarrier::default());
        let entry = worker.enlist(Transport::Carried(carrier.clone()), place, &generation);
        let number = worker.next_connection_number();
        let remote = SocketAddr::new(asks.from.ip().to_canonical(), asks.from.port());
        let conn = serve::conn(&entry, &generation, remote.into(), self.socket.clone(), listen, number);
        let local = asks.to.map_or(self.address.ip(), |ip| ip.to_canonical());
        let _ = conn.client.local.set(SocketAddr::new(local, self.address.port()).into());
        let chosen = Rc::new(Cell::new(None));
        let (client, told) = (conn.client.clone(), chosen.clone());
        let place = (worker.clone(), generation.clone());
        let chooser = move |hello: &weir_net::tls::ClientHello| {
            let (server, session): (ServerId, _) =
                secure::choose(&client, &place.0, &place.1, secure::Carrier::Quic, Some(hello))?;
            told.set(Some(server));
            Ok(session)
        };
        let begun = move |result: Result<Rc<QuicConnection>, QuicEnd>, handshake: Handshake| match result {
            Ok(quic) => {
                let _ = carrier.0.set(quic.clone());
                http3::serve(conn, (entry, counted), generation, quic, (handshake, chosen));
            }
            Err(end) => {
                let failure = handshake.take().and_then(Result::err);
                let place = (&*entry.worker, &*generation.conf);
                secure::quic_failed(&conn, place, (failure.as_ref(), chosen.get()), Some(&end));
            }
        };
        Admission::Accept(Box::new(chooser), Box::new(begun))
    }

    fn forward(&self, place: WorkerPlace, datagram: &ReceivedDatagram<'_>) -> bool {
        let this = process::this();
        let (place, batch) = match place.generation {
            own if own == this.process.number => (Elsewhere::Worker(place.worker), ForwardBatch::default()),
            older if this.reaches(older) => (Elsewhere::Process(older), ForwardBatch::of_socket(self.address)),
            // While another process serves too, it may be that one's: its client would lose a connection that lives.
            _ if this.is_succeeded() => {
                self.worker.board.quic.dropped(DatagramDrop::UnknownId, 1);
                return true;
            }
            _ => return false,
        };
        let mut passed_on = self.passed_on.borrow_mut();
        let at = passed_on.iter().position(|(other, _)| *other == place).unwrap_or_else(|| {
            passed_on.push((place, batch));
            passed_on.len() - 1
        });
        let full = passed_on.get_mut(at).and_then(|(_, batch)| batch.push(datagram));
        drop(passed_on);
        if let Some(packet) = full {
            self.send_to(place, packet);
        }
        true
    }
}

/// Where the connection of a datagram is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Elsewhere {
    /// At the worker of this process in this seat.
    Worker(u16),
    /// In the older process of this number.
    Process(u16),
}

/// A whole connection of QUIC in the place of a socket: nobody reads or writes it, but it can be ended.
#[derive(Debug, Default)]
struct QuicCarrier(OnceCell<Rc<QuicConnection>>);

impl Carried for QuicCarrier {
    fn socket(&self) -> Option<&weir_net::Stream> {
        None
    }

    fn is_secure(&self) -> bool {
        true
    }

    fn poll_readable(&self) -> Poll<()> {
        Poll::Pending
    }

    fn poll_writable(&self) -> Poll<()> {
        Poll::Pending
    }

    fn poll_closed(&self) -> Poll<()> {
        match self.0.get() {
            Some(quic) if quic.has_ended() => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    fn try_read_vec(&self, _: &mut Vec<u8>, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn try_write_vectored(&self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn shutdown_write(&self) -> io::Result<()> {
        Ok(())
    }

    fn shutdown(&self) {
        if let Some(quic) = self.0.get() {
            quic.close(http3::NO_ERROR, b"");
            // No event of a socket tells its task.
            quic.wake();
        }
    }
}
