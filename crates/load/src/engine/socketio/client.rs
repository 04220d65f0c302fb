//! One connection of socket.io-client: its namespaces, the packets to send, and the data that a step waits for.
//!
//! The tasks of `transport` open the connection and read it; they pass each packet to [`SocketioClient::take_in`]. The
//! virtual user emits, listens at `user`, and leaves.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;

use super::options::SocketioOptions;
use super::packet::{EnginePacket, Malformed, Packet, PacketType, SEPARATOR, push_head};
use crate::engine::bell::Bell;
use crate::engine::websocket::Socket;
use crate::processor::wires::{HeardKind, Wires};
use crate::value::{Value, parse_json};

/// Most namespaces of one connection.
const NAMESPACES_MAX: usize = 1000;
/// Most packets that wait for a connection or for the next POST; at this limit, emitting waits.
const QUEUE_PACKETS_MAX: usize = 10_000;
/// Most events kept for a step that waits for one.
const EVENTS_MAX: usize = 10_000;
/// Time of silence after which a server counts as gone, if the server names no interval.
const SILENCE: Duration = Duration::from_secs(45);

/// A connection with its namespaces.
pub(super) struct SocketioClient {
    pub(super) options: Rc<SocketioOptions>,
    pub(super) link: RefCell<PacketTransport>,
    pub(super) upgrade: RefCell<Upgrade>,
    namespaces: RefCell<Vec<Namespace>>,
    wanted: RefCell<Wanted>,
    /// A packet with missing attachments, and the number of missing ones.
    held: RefCell<Option<(String, u32)>>,
    /// The virtual user is done with the connection.
    pub(super) leaves: Cell<bool>,
    /// The connection is over; waiting packets are dropped.
    pub(super) is_over: Cell<bool>,
    /// A POST is being sent.
    pub(super) posts: Cell<bool>,
    /// The error that ends this connection, with engine.io-client's wording.
    pub(super) fault: Cell<Option<&'static str>>,
    /// Number of the connection, so that a task of an earlier connection can notice that it is outdated.
    pub(super) generation: Cell<u32>,
    /// Rings for the virtual user.
    user: Bell,
    /// Rings for the task that keeps the connection.
    pub(super) keeper: Bell,
    /// Rings for the task that sends POSTs.
    pub(super) poster: Bell,
    /// The processor's listeners, if there are any.
    wires: RefCell<Weak<Wires>>,
}

/// The way in which packets are sent.
pub(super) enum PacketTransport {
    /// Not connected.
    Down,
    /// By POST, one after another.
    Polling {
        handshake: Handshake,
        queue: VecDeque<Vec<u8>>,
    },
    WebSocket(Rc<Socket>),
}

/// State of the upgrade from a long poll to a WebSocket.
pub(super) enum Upgrade {
    No,
    /// The client has asked the server.
    Probing(Rc<Socket>),
    /// The server agrees: packets go to the WebSocket once no request is open.
    Ready(Rc<Socket>),
}

/// The handshake that a server sends when a connection opens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Handshake {
    pub(super) sid: String,
    pub(super) can_upgrade: bool,
    /// The longest allowed silence: the ping interval and the ping timeout.
    pub(super) silence: Duration,
    pub(super) payload_bytes_max: usize,
}

struct Namespace {
    name: String,
    state: State,
    next_id: u64,
    /// Packets emitted while there was no connection.
    waiting: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Not yet connected for the first time.
    New,
    Connected,
    /// It was connected, and will be connected again.
    Lost,
    /// The server refused it, with this message.
    Refused(String),
    /// The server disconnected it.
    Gone,
}

/// The data that the current step waits for, and the data that has arrived.
#[derive(Default)]
struct Wanted {
    ack: Option<(usize, u64)>,
    acked: Option<String>,
    event: Option<(usize, String)>,
    events: VecDeque<String>,
    lost: Option<&'static str>,
}

impl SocketioClient {
    pub(super) fn new(options: Rc<SocketioOptions>) -> SocketioClient {
        SocketioClient {
            options,
            link: RefCell::new(PacketTransport::Down),
            upgrade: RefCell::new(Upgrade::No),
            namespaces: RefCell::default(),
            wanted: RefCell::default(),
            held: RefCell::default(),
            leaves: Cell::new(false),
            is_over: Cell::new(false),
            posts: Cell::new(false),
            fault: Cell::new(None),
            generation: Cell::new(0),
            user: Bell::default(),
            keeper: Bell::default(),
            poster: Bell::default(),
            wires: RefCell::default(),
        }
    }

    // Functions for the virtual user.

    /// The index of the namespace with this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.namespaces.borrow().iter().position(|namespace| namespace.name == name)
    }

    /// Calls `f` with the name of a namespace.
    pub(super) fn with_name(&self, index: usize, f: impl FnOnce(&str)) {
        if let Some(namespace) = self.namespaces.borrow().get(index) {
            f(&namespace.name);
        }
    }

    // Functions for the processor.

    /// The full names of the namespaces.
    pub(super) fn names(&self) -> Vec<String> {
        self.namespaces.borrow().iter().map(|namespace| namespace.name.clone()).collect()
    }

    /// True if the namespace is connected.
    pub(super) fn is_connected(&self, index: usize) -> bool {
        self.namespaces.borrow().get(index).is_some_and(|one| one.state == State::Connected)
    }

    /// Sets the listeners that get every event.
    pub(super) fn heard_by(&self, wires: Weak<Wires>) {
        self.wires.replace(wires);
    }

    /// Leaves a namespace; also ends the connection if it was the last one.
    pub(super) fn close(&self, index: usize) {
        let name = self.namespaces.borrow_mut().get_mut(index).filter(|one| one.state == State::Connected).map(|one| {
            one.state = State::Gone;
            one.name.clone()
        });
        if let Some(name) = name {
            let mut packet = Vec::new();
            push_head(&mut packet, PacketType::Disconnect, &name, None);
            self.send(&packet);
            if !self.is_needed() {
                self.leave();
            }
        }
    }

    fn tell(&self, kind: HeardKind, index: usize, text: &str, number: u64) {
        let Some(wires) = self.wires.borrow().upgrade() else { return };
        let name = self.namespaces.borrow().get(index).map(|one| self.options.short_name(&one.name));
        wires.tell(kind, &name.unwrap_or_default(), text, number);
    }

    /// Begins to connect a namespace.
    pub(super) fn add(&self, name: &str) -> usize {
        let mut namespaces = self.namespaces.borrow_mut();
        let state = match namespaces.len() {
            0..NAMESPACES_MAX => State::New,
            _ => State::Refused("too many namespaces".to_owned()),
        };
        namespaces.push(Namespace { name: name.to_owned(), state, next_id: 0, waiting: Vec::new() });
        let index = namespaces.len() - 1;
        drop(namespaces);
        if !matches!(*self.link.borrow(), PacketTransport::Down) {
            self.send(&self.connect_packet(name));
        }
        index
    }

    /// Waits until a namespace is connected; the error says why it is not.
    pub(super) async fn connected(&self, index: usize) -> Result<(), String> {
        poll_fn(|context| {
            match self.namespaces.borrow().get(index).map(|namespace| &namespace.state) {
                Some(State::New) => {}
                Some(State::Refused(message)) => return Poll::Ready(Err(message.clone())),
                _ => return Poll::Ready(Ok(())),
            }
            self.user.listen(context);
            Poll::Pending
        })
        .await
    }

    /// True if the namespace has not been connected yet.
    pub(super) fn is_new(&self, index: usize) -> bool {
        self.namespaces.borrow().get(index).is_some_and(|namespace| namespace.state == State::New)
    }

    /// The number for the next event that asks for an acknowledgement.
    pub(super) fn next_id(&self, index: usize) -> u64 {
        let mut namespaces = self.namespaces.borrow_mut();
        let Some(namespace) = namespaces.get_mut(index) else { return 0 };
        namespace.next_id += 1;
        namespace.next_id - 1
    }

    /// From now on, keeps the acknowledgement with this number and the events with this name.
    pub(super) fn want(&self, index: usize, ack: Option<u64>, event: Option<String>) {
        let wanted =
            Wanted { ack: ack.map(|id| (index, id)), event: event.map(|name| (index, name)), ..Wanted::default() };
        self.wanted.replace(wanted);
    }

    /// From now on, keeps nothing.
    pub(super) fn want_nothing(&self) {
        self.wanted.replace(Wanted::default());
    }

    /// Sends a packet of a namespace; keeps the packet if the namespace is not connected yet.
    pub(super) fn emit(&self, index: usize, packet: &[u8]) {
        let mut namespaces = self.namespaces.borrow_mut();
        let Some(namespace) = namespaces.get_mut(index) else { return };
        if namespace.state == State::Connected {
            drop(namespaces);
            return self.send(packet);
        }
        if namespace.waiting.len() < QUEUE_PACKETS_MAX {
            namespace.waiting.push(packet.to_vec());
        }
    }

    /// Waits until the emitted packets are sent, or until the queue has room.
    pub(super) async fn room(&self) {
        let socket = match &*self.link.borrow() {
            PacketTransport::WebSocket(socket) => Some(socket.clone()),
            _ => None,
        };
        if let Some(socket) = socket {
            return socket.sent().await;
        }
        poll_fn(|context| match &*self.link.borrow() {
            PacketTransport::Polling { queue, .. } if queue.len() >= QUEUE_PACKETS_MAX => {
                self.user.listen(context);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
        .await;
    }

    /// A received event, as the JSON of its name and arguments.
    pub(super) fn take_event(&self) -> Option<String> {
        self.wanted.borrow_mut().events.pop_front()
    }

    /// The acknowledgement, as the JSON of its arguments; an error if it can no longer arrive.
    pub(super) fn take_ack(&self, index: usize) -> Option<Result<String, &'static str>> {
        let mut wanted = self.wanted.borrow_mut();
        let acked = wanted.acked.take().map(Ok);
        let is_gone = || self.namespaces.borrow().get(index).is_none_or(|one| one.state == State::Gone);
        let lost = wanted.lost.or_else(|| is_gone().then_some("io server disconnect"));
        acked.or_else(|| lost.or_else(|| self.is_over.get().then_some("transport close")).map(Err))
    }

    /// Wakes this task when something changes.
    pub(super) fn listen(&self, context: &std::task::Context<'_>) {
        self.user.listen(context);
    }

    /// Disconnects every namespace and ends the connection.
    pub(super) fn leave(&self) {
        if self.leaves.replace(true) {
            return;
        }
        let names: Vec<String> = {
            let namespaces = self.namespaces.borrow();
            let connected = namespaces.iter().filter(|namespace| namespace.state == State::Connected);
            connected.map(|namespace| namespace.name.clone()).collect()
        };
        for name in names {
            let mut packet = Vec::new();
            push_head(&mut packet, PacketType::Disconnect, &name, None);
            self.send(&packet);
        }
        match &mut *self.link.borrow_mut() {
            PacketTransport::Down => self.is_over.set(true),
            PacketTransport::Polling { queue, .. } => queue.push_back(b"1".to_vec()),
            PacketTransport::WebSocket(socket) => socket.close(),
        }
        if let Upgrade::Probing(socket) | Upgrade::Ready(socket) = &*self.upgrade.borrow() {
            socket.terminate();
        }
        self.keeper.ring();
        self.poster.ring();
    }

    // Functions for the tasks of the connection.

    /// Takes a packet of a WebSocket message or of a long poll.
    pub(super) fn take_in(&self, frame: EnginePacket<'_>) -> Result<(), Malformed> {
        match frame {
            EnginePacket::Ping => self.send(b"3"),
            EnginePacket::Message(text) => return self.take_packet(text),
            EnginePacket::Binary => return self.take_attachment(),
            EnginePacket::Open(_)
            | EnginePacket::Close
            | EnginePacket::Pong(_)
            | EnginePacket::Upgrade
            | EnginePacket::Noop => {}
        }
        Ok(())
    }

    /// True if a namespace is connected or must be connected.
    pub(super) fn is_needed(&self) -> bool {
        let needed = |one: &Namespace| matches!(one.state, State::New | State::Connected | State::Lost);
        self.namespaces.borrow().iter().any(needed)
    }

    /// The connection is open: connects the namespaces over it.
    pub(super) fn opened(&self, link: PacketTransport) {
        self.link.replace(link);
        self.held.replace(None);
        let names: Vec<String> = {
            let namespaces = self.namespaces.borrow();
            let wanted = namespaces.iter().filter(|one| matches!(one.state, State::New | State::Lost));
            wanted.map(|namespace| namespace.name.clone()).collect()
        };
        for name in names {
            self.send(&self.connect_packet(&name));
        }
    }

    /// The connection is lost, or could not be opened.
    pub(super) fn down(&self, why: &'static str) {
        for index in 0..self.namespaces.borrow().len() {
            if self.is_connected(index) {
                self.tell(HeardKind::Lost, index, why, 0);
            }
        }
        let was_up = !matches!(self.link.replace(PacketTransport::Down), PacketTransport::Down);
        let fault = self.fault.take();
        self.upgrade.replace(Upgrade::No);
        self.generation.set(self.generation.get() + 1);
        for namespace in self.namespaces.borrow_mut().iter_mut() {
            match namespace.state {
                State::New if !was_up => namespace.state = State::Refused(why.to_owned()),
                // As in socket.io-client: an error while the namespace is being connected is a connect_error. If the
                // connection closed without an error, the namespace is tried again with the next connection.
                State::New => {
                    if let Some(fault) = fault {
                        namespace.state = State::Refused(fault.to_owned());
                    }
                }
                State::Connected => namespace.state = State::Lost,
                _ => {}
            }
        }
        self.wanted.borrow_mut().lost = Some(why);
        self.user.ring();
        self.poster.ring();
    }

    /// Sends a packet, or queues it for the next POST.
    pub(super) fn send(&self, packet: &[u8]) {
        match &mut *self.link.borrow_mut() {
            PacketTransport::Down => {}
            PacketTransport::Polling { queue, .. } => {
                if queue.len() < 2 * QUEUE_PACKETS_MAX {
                    queue.push_back(packet.to_vec());
                }
                self.poster.ring();
            }
            PacketTransport::WebSocket(socket) => socket.send_text(packet),
        }
    }

    /// The body of the next POST, if one may be sent.
    pub(super) fn next_post(&self) -> Option<Vec<u8>> {
        if matches!(*self.upgrade.borrow(), Upgrade::Ready(_)) && !self.leaves.get() {
            return None;
        }
        let mut link = self.link.borrow_mut();
        let PacketTransport::Polling { queue, handshake } = &mut *link else { return None };
        let mut body = queue.pop_front()?;
        while let Some(packet) = queue.front() {
            // The server handles a close packet before the others of its POST, so it is sent alone.
            if packet == b"1" || body.len() + 1 + packet.len() > handshake.payload_bytes_max {
                break;
            }
            body.push(SEPARATOR);
            body.extend_from_slice(packet);
            queue.pop_front();
        }
        self.user.ring();
        Some(body)
    }

    /// Switches to the WebSocket that the server accepted.
    pub(super) fn upgrade_to(&self, socket: &Rc<Socket>) {
        socket.send_text(b"5");
        self.upgrade.replace(Upgrade::No);
        let before = self.link.replace(PacketTransport::WebSocket(socket.clone()));
        if let PacketTransport::Polling { queue, .. } = before {
            queue.iter().for_each(|packet| socket.send_text(packet));
        }
        self.user.ring();
    }

    fn connect_packet(&self, name: &str) -> Vec<u8> {
        let mut packet = Vec::new();
        push_head(&mut packet, PacketType::Connect, name, None);
        packet.extend_from_slice(self.options.auth.as_deref().unwrap_or_default().as_bytes());
        packet
    }

    fn take_attachment(&self) -> Result<(), Malformed> {
        let mut held = self.held.borrow_mut();
        let (_, missing) = held.as_mut().ok_or(Malformed)?;
        *missing -= 1;
        if *missing > 0 {
            return Ok(());
        }
        let text = held.take().map(|(text, _)| text).unwrap_or_default();
        drop(held);
        self.deliver(&Packet::parse(&text)?);
        Ok(())
    }

    fn take_packet(&self, text: &str) -> Result<(), Malformed> {
        if self.held.borrow().is_some() {
            return Err(Malformed);
        }
        let packet = Packet::parse(text)?;
        if packet.attachments > 0 {
            self.held.replace(Some((text.to_owned(), packet.attachments)));
            return Ok(());
        }
        self.deliver(&packet);
        Ok(())
    }

    fn deliver(&self, packet: &Packet<'_>) {
        let Some(index) = self.find(packet.namespace) else { return };
        match packet.kind {
            PacketType::Event => {
                self.tell(HeardKind::Event, index, packet.payload, 0);
                let mut wanted = self.wanted.borrow_mut();
                let is_wanted = wanted.event.as_ref().is_some_and(|(at, name)| *at == index && is_of(packet, name));
                if is_wanted && wanted.events.len() < EVENTS_MAX {
                    wanted.events.push_back(packet.payload.to_owned());
                    drop(wanted);
                    self.user.ring();
                }
            }
            PacketType::Ack => {
                let mut wanted = self.wanted.borrow_mut();
                if wanted.ack.is_some() && wanted.ack == packet.id.map(|id| (index, id)) {
                    wanted.ack = None;
                    wanted.acked = Some(packet.payload.to_owned());
                    drop(wanted);
                    self.user.ring();
                } else if let Some(id) = packet.id {
                    drop(wanted);
                    self.tell(HeardKind::Ack, index, packet.payload, id);
                }
            }
            PacketType::Connect => self.welcomed(index, packet.payload),
            PacketType::ConnectError => self.is_refused(index, message_of(packet.payload)),
            PacketType::Disconnect => {
                if let Some(namespace) = self.namespaces.borrow_mut().get_mut(index) {
                    namespace.state = State::Gone;
                }
                self.wanted.borrow_mut().lost = Some("io server disconnect");
                self.tell(HeardKind::Lost, index, "io server disconnect", 0);
                self.user.ring();
                // A connection without any namespace is closed, and not opened again.
                if !self.is_needed() {
                    self.leave();
                }
            }
        }
    }

    fn welcomed(&self, index: usize, payload: &str) {
        if payload.is_empty() {
            // The wording of the client for a server with another protocol version.
            let message = "It seems you are trying to reach a Socket.IO server in v2.x with a v3.x client, but they are \
                not compatible (more information here: https://socket.io/docs/v3/migrating-from-2-x-to-3-0/)";
            return self.is_refused(index, message.to_owned());
        }
        let waiting = match self.namespaces.borrow_mut().get_mut(index) {
            Some(namespace) => {
                namespace.state = State::Connected;
                std::mem::take(&mut namespace.waiting)
            }
            None => Vec::new(),
        };
        waiting.iter().for_each(|packet| self.send(packet));
        self.tell(HeardKind::Connected, index, "", 0);
        self.user.ring();
    }

    fn is_refused(&self, index: usize, message: String) {
        if let Some(namespace) = self.namespaces.borrow_mut().get_mut(index) {
            namespace.state = State::Refused(message);
        }
        self.user.ring();
    }
}

impl Handshake {
    /// Parses the JSON of an open packet.
    pub(super) fn parse(json: &str) -> Option<Handshake> {
        let Ok(Value::Map(map)) = parse_json(json.as_bytes()) else { return None };
        let ms = |name: &str| map.get(name).map(Value::to_number).filter(|ms| *ms >= 0.0 && *ms < 1e9);
        let silence = match (ms("pingInterval"), ms("pingTimeout")) {
            (Some(interval), Some(timeout)) => Duration::from_secs_f64((interval + timeout) / 1e3),
            _ => SILENCE,
        };
        let upgrades = match map.get("upgrades") {
            Some(Value::List(names)) => names.iter().any(|name| name.as_str() == Some("websocket")),
            _ => false,
        };
        Some(Handshake {
            sid: map.get("sid")?.as_str()?.to_owned(),
            can_upgrade: upgrades,
            silence,
            payload_bytes_max: ms("maxPayload").map_or(usize::MAX, |bytes| bytes as usize),
        })
    }
}

/// True if the packet is an event with this name.
fn is_of(packet: &Packet<'_>, name: &str) -> bool {
    let plain = packet.payload.strip_prefix("[\"").and_then(|rest| rest.split_once('"')).map(|(name, _)| name);
    match plain {
        Some(plain) if !plain.contains('\\') => plain == name,
        _ => match parse_json(packet.payload.as_bytes()) {
            Ok(Value::List(list)) => list.first().is_some_and(|first| first.to_text() == name),
            _ => false,
        },
    }
}

/// The message of a CONNECT_ERROR: `{"message": …}`.
fn message_of(payload: &str) -> String {
    match parse_json(payload.as_bytes()) {
        Ok(Value::Map(map)) => map.get("message").map(|message| message.to_text().into_owned()).unwrap_or_default(),
        Ok(value) => value.to_text().into_owned(),
        Err(_) => String::new(),
    }
}
