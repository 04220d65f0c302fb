//! UDP: the datagrams of a socket go to the sessions of their clients; a datagram of a new client begins a session.
//!
//! The kernel gives all datagrams of a client to one worker, so a worker's table of sessions is its own.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

use weir_http::hold::counters;
use weir_http::hold::table_place::TablePlace;
use weir_http::hold::worker::{Generation, Worker};
use weir_net::datagrams::{Arrived, DATAGRAM_BYTES_MAX, Receiver, Receiving};
use weir_net::log::{self, Level, Os};
use weir_net::worker::{Task, spawn, yield_now};
use weir_net::{Address, SocketAddress};

use super::status::{INTERNAL, OK};
use super::talk::{Client, Table};
use super::{begin, pass, volley};
use crate::conf::{self, Content, Stream};
use crate::part::Next;
use crate::session::{Around, Session};

/// Datagrams received before other tasks have their turn.
const RECEIVED_MAX: usize = 64;

/// Ends the receiving of a socket from outside.
#[derive(Default)]
pub struct Stop {
    is_set: Cell<bool>,
    task: Cell<Option<Task>>,
}

impl Stop {
    /// Ends it, and all its sessions.
    pub fn set(&self) {
        self.is_set.set(true);
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }
}

/// Receives on one socket until it is stopped.
pub async fn serve(worker: Rc<Worker>, socket: Receiving, stop: Rc<Stop>) {
    let receiver = match Receiver::new(&socket) {
        Ok(receiver) => Rc::new(receiver),
        Err(error) => {
            log::global(Level::Emerg, format_args!("UDP socket could not be registered {}", Os(&error)));
            return;
        }
    };
    drop(socket);
    let table = Rc::new(Table::default());
    let mut buf = vec![0; DATAGRAM_BYTES_MAX];
    while next(&receiver, &stop).await {
        for _ in 0..RECEIVED_MAX {
            match receiver.try_receive(&mut buf) {
                Ok(arrived) => take(&worker, &receiver, &table, arrived, buf.get(..arrived.length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    log::global(Level::Alert, format_args!("recvmsg() failed {}", Os(&error)));
                    break;
                }
            }
        }
        yield_now().await;
    }
    table.end();
}

/// Waits for a datagram; `false` after the stop.
async fn next(receiver: &Receiver, stop: &Stop) -> bool {
    poll_fn(|_| {
        if stop.is_set.get() {
            return Poll::Ready(false);
        }
        stop.task.set(Some(Task::current()));
        receiver.poll_readable().map(|()| true)
    })
    .await
}

/// Gives a datagram to its session, or begins one.
fn take(worker: &Rc<Worker>, receiver: &Rc<Receiver>, table: &Rc<Table>, arrived: Arrived, bytes: &[u8]) {
    let key = (arrived.from, arrived.to);
    if table.give(&key, bytes) {
        return;
    }
    counters::add(&worker.counters().accepted, 1);
    if table.is_full() {
        return worker.board.places_refused.one();
    }
    let generation = worker.lane(|| Some(arrived.from.ip()));
    let bound = Address::Tcp(receiver.local_addr());
    let to = SocketAddr::new(arrived.to.unwrap_or(receiver.local_addr().ip()), receiver.local_addr().port());
    let Some(listen) = listen_of(conf::of(&generation.conf), &bound, &to) else { return };
    let Some(place) = worker.take_place() else { return };
    counters::add(&worker.counters().handled, 1);
    let client = table.begin(receiver, key, requests_max(conf::of(&generation.conf), listen));
    spawn(converse(worker.clone(), generation, client, bytes.to_vec(), place));
}

/// The number of the listen for datagrams to an address.
fn listen_of(stream: &Stream, bound: &Address, to: &SocketAddr) -> Option<usize> {
    let socket = stream.datagrams.sockets.iter().find(|socket| socket.address == *bound)?;
    Some(socket.listen_for(Some(to)))
}

/// `proxy_requests` of the server of a listen: UDP has no names, so the default server serves all sessions.
fn requests_max(stream: &Stream, listen: usize) -> u64 {
    let server = stream.datagrams.listens.get(listen).and_then(|listen| stream.server(listen.hosts.default_server()));
    let server = server.filter(|server| matches!(server.content, Content::Proxy(_)));
    server.map_or(0, |server| crate::values(&server.place).proxy.requests)
}

/// One session.
async fn converse(worker: Rc<Worker>, generation: Rc<Generation>, client: Client, first: Vec<u8>, place: TablePlace) {
    let _active = counters::raise(&worker.counters().active);
    let _place = place;
    let stream = conf::of(&generation.conf);
    let (bound, to) = (Address::Tcp(client.bound()), client.local_addr());
    let listen = listen_of(stream, &bound, &to).and_then(|listen| stream.datagrams.listens.get(listen));
    let Some(listen) = listen else { return };
    let Some(server) = stream.server(listen.hosts.default_server()) else { return };
    let around = Around { worker: &worker, generation: &generation, stream, listen, server };
    let mut session = Session::new(around, SocketAddress::Tcp(client.remote()), None);
    session.number = worker.next_connection_number();
    session.came_to(SocketAddress::Tcp(to));
    session.received = first.len() as u64;
    session.early = first;
    let status = match Box::pin(begin::begin(&mut session)).await {
        Next::End(status) => status,
        Next::Continue => content(&mut session, &client).await,
    };
    // The log may be slow: the client's next datagram begins a new session already.
    client.leave();
    session.finish(status);
}

async fn content(session: &mut Session<'_>, client: &Client) -> u16 {
    session.step = None;
    match &session.server.content {
        Content::Nothing => INTERNAL,
        Content::Proxy(target) => volley::proxy(session, target, client).await,
        Content::Pass(onward) => pass::find(session, onward).err().unwrap_or(INTERNAL),
        Content::Return(text) => {
            let text = text.text(session);
            match client.send(&text) {
                Ok(()) => session.sent = text.len() as u64,
                Err(error) => session.log(Level::Info, format_args!("sendmsg() failed {}", Os(&error))),
            }
            OK
        }
    }
}
