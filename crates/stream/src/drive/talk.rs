//! A session of UDP as its socket knows it: the datagrams that wait, and the way back to the client.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use weir_net::datagrams::Receiver;
use weir_net::slots::{self, Slots};
use weir_net::worker::Task;

/// Sessions of UDP of one socket of a worker, at most; the worker's table of connections also limits them.
pub const SESSIONS_MAX: usize = 1 << 16;
/// Datagrams of one client that wait for its session; weir drops further ones, as the kernel does.
const WAITING_MAX: usize = 64;
/// Bytes that wait for all sessions of one socket; weir drops further datagrams.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The client's address, and the address that it sent to if the socket has several.
pub type Key = (SocketAddr, Option<IpAddr>);

/// The sessions of a socket.
#[derive(Default)]
pub struct Table {
    /// The sessions that take further datagrams.
    talks: RefCell<HashMap<Key, Rc<Talk>>>,
    /// All sessions that have not ended.
    all: RefCell<Slots<Rc<Talk>>>,
    waiting_bytes: Cell<usize>,
}

/// A session as the socket knows it.
#[derive(Default)]
struct Talk {
    waiting: RefCell<VecDeque<Box<[u8]>>>,
    task: Cell<Option<Task>>,
    has_ended: Cell<bool>,
    /// The datagrams that it may still take (`proxy_requests`); `None` for no limit. It is decided when a datagram
    /// arrives: of several that wait in the kernel, the first one too many begins a session.
    left: Cell<Option<u64>>,
}

/// The way back to a client.
pub struct Client {
    receiver: Rc<Receiver>,
    key: Key,
    table: Rc<Table>,
    talk: Rc<Talk>,
    seat: slots::SlotKey,
}

impl Table {
    /// Gives a datagram to its session; `false` if there is none.
    pub fn give(&self, key: &Key, bytes: &[u8]) -> bool {
        let mut talks = self.talks.borrow_mut();
        let Some(talk) = talks.get(key) else { return false };
        let total = self.waiting_bytes.get() + bytes.len();
        if talk.waiting.borrow().len() >= WAITING_MAX || total > WAITING_BYTES_MAX {
            return true;
        }
        talk.waiting.borrow_mut().push_back(bytes.into());
        self.waiting_bytes.set(total);
        talk.wake();
        if talk.takes_no_more() {
            talks.remove(key);
        }
        true
    }

    /// Whether it holds all sessions that it may.
    pub fn is_full(&self) -> bool {
        self.all.borrow().len() >= SESSIONS_MAX
    }

    /// A new session with its first datagram; it takes `requests_max` datagrams, or any number if that is 0.
    pub fn begin(self: &Rc<Self>, receiver: &Rc<Receiver>, key: Key, requests_max: u64) -> Client {
        let left = Cell::new((requests_max > 0).then_some(requests_max));
        let talk = Rc::new(Talk { left, ..Talk::default() });
        if !talk.takes_no_more() {
            self.talks.borrow_mut().insert(key, talk.clone());
        }
        let seat = self.all.borrow_mut().insert(talk.clone());
        Client { receiver: receiver.clone(), key, table: self.clone(), talk, seat }
    }

    /// Ends all sessions.
    pub fn end(&self) {
        for talk in self.all.borrow().iter() {
            talk.has_ended.set(true);
            talk.wake();
        }
    }
}

impl Talk {
    /// Counts a datagram; `true` if it was the last one.
    fn takes_no_more(&self) -> bool {
        let left = self.left.get().map(|left| left.saturating_sub(1));
        self.left.set(left);
        left == Some(0)
    }

    fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }
}

impl Client {
    /// Our end: the address that the client sends to.
    pub fn local_addr(&self) -> SocketAddr {
        let bound = self.receiver.local_addr();
        SocketAddr::new(self.key.1.unwrap_or(bound.ip()), bound.port())
    }

    /// The address of the socket.
    pub fn bound(&self) -> SocketAddr {
        self.receiver.local_addr()
    }

    /// The client's address.
    pub fn remote(&self) -> SocketAddr {
        self.key.0
    }

    /// Makes this task the one that is woken for a datagram.
    pub fn keep(&self, task: Task) {
        self.talk.task.set(Some(task));
    }

    /// Whether weir ended the session.
    pub fn has_ended(&self) -> bool {
        self.talk.has_ended.get()
    }

    /// The next datagram of the client.
    pub fn next(&self) -> Option<Box<[u8]>> {
        let bytes = self.talk.waiting.borrow_mut().pop_front()?;
        self.release(bytes.len());
        Some(bytes)
    }

    /// Sends a datagram.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.receiver.try_send(bytes, self.key.0, self.key.1)
    }

    /// The next datagram of this client begins a session of its own.
    pub fn leave(&self) {
        let mut talks = self.table.talks.borrow_mut();
        if talks.get(&self.key).is_some_and(|talk| Rc::ptr_eq(talk, &self.talk)) {
            talks.remove(&self.key);
        }
    }

    fn release(&self, bytes: usize) {
        self.table.waiting_bytes.set(self.table.waiting_bytes.get().saturating_sub(bytes));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave();
        self.table.all.borrow_mut().remove(self.seat);
        self.release(self.talk.waiting.borrow().iter().map(|bytes| bytes.len()).sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> Key {
        (SocketAddr::from(([192, 0, 2, 7], port)), None)
    }

    /// A session of this client in the table, which takes so many datagrams.
    fn talk(table: &Table, port: u16, left: Option<u64>) -> Rc<Talk> {
        let talk = Rc::new(Talk { left: Cell::new(left), ..Talk::default() });
        table.talks.borrow_mut().insert(key(port), talk.clone());
        talk
    }

    #[test]
    fn a_datagram_goes_to_the_session_of_its_client_and_of_the_address_it_was_sent_to() {
        let table = Table::default();
        let (first, second) = (talk(&table, 1, None), talk(&table, 2, None));
        let other_end = (key(1).0, Some(IpAddr::from([10, 0, 0, 1])));
        for (key, bytes, taken) in [
            (key(1), "a", true),
            (key(2), "b", true),
            (key(1), "c", true),
            (key(3), "d", false),
            (other_end, "e", false),
        ] {
            assert_eq!(table.give(&key, bytes.as_bytes()), taken, "{bytes}");
        }
        let waiting = |talk: &Talk| talk.waiting.borrow().iter().map(|bytes| bytes[0] as char).collect::<String>();
        assert_eq!((waiting(&first), waiting(&second), table.waiting_bytes.get()), ("ac".into(), "b".into(), 3));
    }

    #[test]
    fn a_client_that_sends_too_much_loses_datagrams_and_not_its_session() {
        let table = Table::default();
        let many = talk(&table, 1, None);
        for _ in 0..=WAITING_MAX {
            assert!(table.give(&key(1), b"x"));
        }
        assert_eq!((many.waiting.borrow().len(), table.waiting_bytes.get()), (WAITING_MAX, WAITING_MAX));
        let large = talk(&table, 2, None);
        let most = WAITING_BYTES_MAX - WAITING_MAX;
        for (length, waits) in [(most + 1, 0), (most, 1), (1, 1)] {
            assert!(table.give(&key(2), &vec![0; length]));
            assert_eq!(large.waiting.borrow().len(), waits, "{length}");
        }
    }

    #[test]
    fn after_its_last_datagram_a_session_gets_no_more() {
        let table = Table::default();
        for (port, left, taken) in [(1, Some(1), 1), (2, Some(3), 3), (3, None, 9)] {
            let talk = talk(&table, port, left);
            let given = (0..9).filter(|_| table.give(&key(port), b"x")).count();
            assert_eq!((given, talk.waiting.borrow().len()), (taken, taken), "{left:?}");
        }
        assert!(Talk { left: Cell::new(Some(1)), ..Talk::default() }.takes_no_more(), "its first datagram counts");
    }
}
