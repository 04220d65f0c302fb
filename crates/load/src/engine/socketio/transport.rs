//! The tasks behind a client: one keeps the connection and reads it. For a long poll, a second task sends, and a
//! third tries to upgrade to a WebSocket.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_net::timer::sleep;
use weir_net::{Deadline, worker};

use super::client::{Handshake, PacketTransport, SocketioClient, Upgrade};
use super::options::{SocketioOptions, Transport};
use super::packet::{EnginePacket, SEPARATOR};
use super::poll::Poller;
use crate::engine::dial::UrlAddress;
use crate::engine::websocket::{self, IncomingMessage, ReadingEnd, Socket};

/// Longest time for a POST, also for the last one.
const POST_MAX: Duration = Duration::from_secs(60);
/// Longest time for the goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(5);
/// Most doublings of the pause between attempts.
const DOUBLINGS_MAX: u64 = 30;

/// Opens the connection, and opens it again when it breaks, until the virtual user leaves.
pub(super) async fn keep(client: Rc<SocketioClient>) {
    let mut attempts: u64 = 0;
    loop {
        let mut was_open = false;
        for transport in &client.options.transports {
            let why = guarded(&client, Box::pin(connection(&client, *transport))).await;
            was_open = !matches!(*client.link.borrow(), PacketTransport::Down);
            if was_open || !client.options.tries_all || client.is_over.get() {
                client.down(why);
                break;
            }
        }
        if !was_open && client.options.tries_all {
            client.down("No transports available");
        }
        if was_open {
            attempts = 0;
        }
        let is_wanted = client.is_needed() && !client.leaves.get();
        if !is_wanted || !client.options.reconnects || attempts >= client.options.attempts_max {
            client.is_over.set(true);
            return;
        }
        let pause = pause(&client.options, attempts, fastrand::f64());
        attempts += 1;
        let mut pause = pin!(sleep(pause));
        poll_fn(|context| {
            client.keeper.listen(context);
            if client.leaves.get() { Poll::Ready(()) } else { pause.as_mut().poll(context) }
        })
        .await;
        if client.leaves.get() {
            client.is_over.set(true);
            return;
        }
    }
}

/// The pause before an attempt: doubled each time, with a random part (socket.io-client's Backoff).
fn pause(options: &SocketioOptions, attempts: u64, chance: f64) -> Duration {
    let doubled = options.delay.as_secs_f64() * 2f64.powi(attempts.min(DOUBLINGS_MAX) as i32);
    let deviation = chance * options.jitter * doubled;
    let is_longer = (chance * 10.0) as u64 & 1 != 0;
    let pause = if is_longer { doubled + deviation } else { doubled - deviation };
    Duration::try_from_secs_f64(pause).unwrap_or(options.delay_max).min(options.delay_max)
}

/// Runs a connection to its end. Ends it early after the time limit for opening, or when the virtual user no longer
/// wants it.
async fn guarded(
    client: &SocketioClient,
    mut connection: Pin<Box<dyn Future<Output = &'static str> + '_>>,
) -> &'static str {
    let opening = Deadline::new();
    if let Some(timeout) = client.options.timeout {
        opening.set(timeout);
    }
    poll_fn(|context| {
        // A WebSocket sends its own goodbye.
        client.keeper.listen(context);
        if client.is_over.get() {
            return Poll::Ready("io client disconnect");
        }
        if client.fault.get().is_some() {
            return Poll::Ready("transport error");
        }
        if matches!(*client.link.borrow(), PacketTransport::Down) {
            if opening.poll_expired().is_ready() {
                return Poll::Ready("timeout");
            }
        } else {
            opening.clear();
        }
        connection.as_mut().poll(context)
    })
    .await
}

/// One connection, from opening to its end; returns the reason for its end.
async fn connection(client: &Rc<SocketioClient>, transport: Transport) -> &'static str {
    match transport {
        Transport::WebSocket => {
            let target = format!("{}websocket", client.options.begin);
            match Box::pin(open(&client.options, target)).await {
                Some(socket) => read(client, &socket, false).await,
                None => "websocket error",
            }
        }
        Transport::Polling => Box::pin(poll(client)).await,
    }
}

async fn open(options: &SocketioOptions, target: String) -> Option<Rc<Socket>> {
    let place = UrlAddress { target, ..options.place.clone() };
    let how = websocket::WebSocketOptions {
        headers: options.headers.clone(),
        tls: options.tls.clone(),
        resolver: options.resolver.clone(),
        ..websocket::WebSocketOptions::default()
    };
    websocket::open(&place, &how).await.ok().map(Rc::new)
}

/// Reads a WebSocket to its end. If `upgrading`, it belongs to a long poll until the server has accepted the upgrade.
async fn read(client: &Rc<SocketioClient>, socket: &Rc<Socket>, upgrading: bool) -> &'static str {
    let mut is_agreed = !upgrading;
    let mut is_faulty = false;
    let end = socket
        .read(&mut |message: IncomingMessage<'_>| {
            let frame = frame_of(message);
            let is_right = match frame {
                Some(EnginePacket::Open(json)) if !upgrading => open_with(client, json, |handshake| {
                    socket.limit_silence(handshake.silence);
                    PacketTransport::WebSocket(socket.clone())
                }),
                Some(EnginePacket::Pong("probe")) if !is_agreed => {
                    is_agreed = true;
                    client.upgrade.replace(Upgrade::Ready(socket.clone()));
                    client.keeper.ring();
                    true
                }
                _ if !is_agreed => false,
                frame => frame.is_some_and(|frame| client.take_in(frame).is_ok()),
            };
            if !is_right {
                is_faulty = true;
                socket.terminate();
            }
        })
        .await;
    match end {
        _ if matches!(*client.link.borrow(), PacketTransport::Down) => "websocket error",
        _ if is_faulty => "parse error",
        ReadingEnd::Closed(_) => "transport close",
        ReadingEnd::Silent => "ping timeout",
        ReadingEnd::Broken(_) | ReadingEnd::Violation(_) => {
            // A failed upgrade breaks nothing: the long poll goes on.
            client.fault.set(is_agreed.then_some("websocket error"));
            "transport error"
        }
    }
}

/// The packet in a message; `None` if it is malformed.
fn frame_of(message: IncomingMessage<'_>) -> Option<EnginePacket<'_>> {
    if !message.is_text {
        return Some(EnginePacket::Binary);
    }
    EnginePacket::parse(std::str::from_utf8(message.payload).ok()?).ok()
}

/// Takes a handshake; false if the JSON is not a handshake.
fn open_with(client: &Rc<SocketioClient>, json: &str, link: impl FnOnce(&Handshake) -> PacketTransport) -> bool {
    let Some(handshake) = Handshake::parse(json) else { return false };
    client.opened(link(&handshake));
    true
}

/// A long poll, until it ends, or until it has become a WebSocket and the WebSocket ends.
async fn poll(client: &Rc<SocketioClient>) -> &'static str {
    let mut poller = Poller::default();
    let deadline = Deadline::new();
    let Some(body) = get(client, &mut poller, None, &deadline).await else { return "xhr poll error" };
    let (first, rest) = body.split_once(char::from(SEPARATOR)).unwrap_or((&body, ""));
    let Ok(EnginePacket::Open(json)) = EnginePacket::parse(first) else { return "xhr poll error" };
    let Some(handshake) = Handshake::parse(json) else { return "xhr poll error" };
    let generation = client.generation.get();
    client.opened(PacketTransport::Polling { handshake: handshake.clone(), queue: Default::default() });
    worker::spawn(send(client.clone(), handshake.sid.clone(), generation));
    let ended = Rc::new(RefCell::new(None));
    if client.options.upgrades && handshake.can_upgrade && client.options.transports.contains(&Transport::WebSocket) {
        worker::spawn(probe(client.clone(), handshake.sid.clone(), ended.clone(), generation));
    }
    if let Some(why) = take_in(client, rest) {
        return why;
    }
    loop {
        let ready = match &*client.upgrade.borrow() {
            Upgrade::Ready(socket) => Some(socket.clone()),
            _ => None,
        };
        if let Some(socket) = ready {
            // Wait for the current POST: later packets must not overtake it.
            until(client, || !client.posts.get()).await;
            if client.leaves.get() {
                until(client, || client.is_over.get()).await;
            }
            socket.limit_silence(handshake.silence);
            client.upgrade_to(&socket);
            drop((socket, poller));
            until(client, || ended.borrow().is_some()).await;
            return ended.take().unwrap_or("transport close");
        }
        deadline.set(handshake.silence);
        let Some(body) = get(client, &mut poller, Some(&handshake.sid), &deadline).await else {
            if deadline.poll_expired().is_ready() {
                return "ping timeout";
            }
            client.fault.set(Some("xhr poll error"));
            return "transport error";
        };
        if let Some(why) = take_in(client, &body) {
            return why;
        }
    }
}

/// Waits until the condition is true; the keeper's bell wakes it.
async fn until(client: &SocketioClient, is_so: impl Fn() -> bool) {
    poll_fn(|context| {
        client.keeper.listen(context);
        if is_so() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Takes the packets in a poll's body; returns the reason if the connection ends.
fn take_in(client: &SocketioClient, body: &str) -> Option<&'static str> {
    for packet in body.split(char::from(SEPARATOR)).filter(|packet| !packet.is_empty()) {
        if packet == "1" {
            return Some("transport close");
        }
        if EnginePacket::parse(packet).and_then(|frame| client.take_in(frame)).is_err() {
            return Some("parse error");
        }
    }
    None
}

async fn get(client: &SocketioClient, poller: &mut Poller, sid: Option<&str>, deadline: &Deadline) -> Option<String> {
    let target = target(&client.options, sid);
    let answer = poller.ask(&client.options, &target, None, deadline).await.ok()?;
    if answer.status != 200 { None } else { String::from_utf8(answer.body).ok() }
}

/// The target of a poll's request.
fn target(options: &SocketioOptions, sid: Option<&str>) -> String {
    let mut target = format!("{}polling", options.begin);
    if let Some(sid) = sid {
        target.push_str("&sid=");
        target.push_str(sid);
    }
    if let Some(name) = &options.timestamp {
        target.push_str(&format!("&{name}={:08x}", fastrand::u32(..)));
    }
    target
}

/// Sends the queue of a long poll, POST by POST, until the poll ends or has become a WebSocket.
async fn send(client: Rc<SocketioClient>, sid: String, generation: u32) {
    let mut poller = Poller::default();
    let deadline = Deadline::new();
    loop {
        let body = poll_fn(|context| {
            if client.generation.get() != generation
                || !matches!(*client.link.borrow(), PacketTransport::Polling { .. })
            {
                return Poll::Ready(None);
            }
            if let Some(body) = client.next_post() {
                return Poll::Ready(Some(body));
            }
            if client.leaves.get() {
                return Poll::Ready(None);
            }
            client.poster.listen(context);
            Poll::Pending
        })
        .await;
        let Some(body) = body else { break };
        deadline.set(if client.leaves.get() { GOODBYE_MAX } else { POST_MAX });
        client.posts.set(true);
        let target = target(&client.options, Some(&sid));
        let answer = poller.ask(&client.options, &target, Some(&body), &deadline).await;
        client.posts.set(false);
        let is_taken = answer.is_ok_and(|answer| answer.status == 200);
        // With several server processes, the process that gets the POST may not know the session that another process
        // serves. The poll would then wait until the server misses a pong. engine.io-client ends the connection at
        // once, and so does weir.
        if !is_taken && client.generation.get() == generation {
            client.fault.set(Some("xhr post error"));
        }
        client.keeper.ring();
        if !is_taken {
            break;
        }
    }
    if client.leaves.get() {
        client.is_over.set(true);
        client.keeper.ring();
    }
}

/// Tries to upgrade to a WebSocket, and reads the WebSocket if the server accepts.
async fn probe(client: Rc<SocketioClient>, sid: String, ended: Rc<RefCell<Option<&'static str>>>, generation: u32) {
    let target = format!("{}websocket&sid={sid}", client.options.begin);
    let Some(socket) = Box::pin(open(&client.options, target)).await else { return };
    if client.leaves.get() || client.generation.get() != generation {
        return;
    }
    client.upgrade.replace(Upgrade::Probing(socket.clone()));
    socket.send_text(b"2probe");
    let why = read(&client, &socket, true).await;
    if client.generation.get() == generation {
        // If the server does not accept, the poll goes on unchanged.
        client.upgrade.replace(Upgrade::No);
        ended.replace(Some(why));
        client.keeper.ring();
        client.poster.ring();
    }
}
