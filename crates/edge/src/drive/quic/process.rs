//! This process among those that serve the same addresses of QUIC, one after another.
//!
//! A process that takes the place of another one reads the sockets, and forwards the datagrams of connections of older
//! processes to them, by the number in the connection id. It tells them when it begins to read an address; they then only
//! send.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use weir_net::forward::{ForwardBatch, ForwardEnd};
use weir_quic::keys;

/// The secret of configurations that name none.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostKey(String);

impl HostKey {
    /// A random one; empty, which serves no client, if the machine has no random bytes.
    pub fn random() -> HostKey {
        let bytes = keys::random_host_key();
        HostKey(bytes.iter().flatten().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The one that another process has written; `None` for other texts.
    pub fn from_text(text: &str) -> Option<HostKey> {
        let is_key = text.len() == 2 * keys::HOST_KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_key.then(|| HostKey(text.to_owned()))
    }

    /// Its text.
    pub fn as_text(&self) -> &str {
        &self.0
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKey")
    }
}

/// One of these processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicProcess {
    /// The secret that all of them have.
    pub host_key: HostKey,
    /// Its number in connection ids: those that live have different ones.
    pub number: u16,
}

/// The ways between a process and the others.
#[derive(Clone, Debug, Default)]
pub struct QuicWays {
    /// On which newer processes forward to this one.
    pub inbox: Option<ForwardEnd>,
    /// To the older processes, by their numbers.
    pub older: Vec<(u16, ForwardEnd)>,
}

/// This process, as its workers see it.
pub struct This {
    /// Which one it is.
    pub process: QuicProcess,
    /// Its ways to the others.
    pub ways: QuicWays,
    /// Another process serves too.
    is_succeeded: AtomicBool,
    /// The addresses that the other process reads.
    read_elsewhere: Mutex<Vec<SocketAddr>>,
}

static THIS: OnceLock<This> = OnceLock::new();

/// Makes this process one of several. It has no effect once [`this`] was called.
pub fn join(process: QuicProcess, ways: QuicWays) {
    let _ = THIS.set(This::new(process, ways));
}

/// This process; without [`join`], it is alone.
pub fn this() -> &'static This {
    let alone = || QuicProcess { host_key: HostKey::random(), number: 0 };
    THIS.get_or_init(|| This::new(alone(), QuicWays::default()))
}

impl This {
    fn new(process: QuicProcess, ways: QuicWays) -> This {
        This { process, ways, is_succeeded: AtomicBool::new(false), read_elsewhere: Mutex::default() }
    }

    /// Whether an older process of this number lives.
    pub fn reaches(&self, number: u16) -> bool {
        self.older(number).is_some_and(|end| !end.has_ended())
    }

    /// Sends a packet to an older process; `false` if it has no room for the packet, or has ended.
    pub fn send(&self, number: u16, packet: &[u8]) -> bool {
        self.older(number).is_some_and(|end| end.send(packet).is_ok())
    }

    /// Tells the older processes that this one reads the sockets of an address.
    pub fn tell_read(&self, address: SocketAddr) {
        let notice = ForwardBatch::notice(address);
        for (_, end) in &self.ways.older {
            // One that has ended reads nothing.
            let _ = end.send(&notice);
        }
    }

    /// Whether another process serves too: it may have connections that this one does not know.
    pub fn is_succeeded(&self) -> bool {
        self.is_succeeded.load(Ordering::Relaxed)
    }

    /// Another process serves too, or has ended.
    pub fn succeed(&self, is_succeeded: bool) {
        self.is_succeeded.store(is_succeeded, Ordering::Relaxed);
        if !is_succeeded {
            self.lock().clear();
        }
    }

    /// Another process reads the sockets of an address.
    pub fn leave(&self, address: SocketAddr) {
        let mut addresses = self.lock();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }

    /// Whether another process reads the sockets of an address.
    pub fn is_read_elsewhere(&self, address: SocketAddr) -> bool {
        self.lock().contains(&address)
    }

    fn older(&self, number: u16) -> Option<&ForwardEnd> {
        self.ways.older.iter().find(|(other, _)| *other == number).map(|(_, end)| end)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.read_elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_process_knows_what_others_read_and_sends_to_those_that_live() {
        let (here, there) = ForwardEnd::pair().unwrap();
        let process = QuicProcess { host_key: HostKey::random(), number: 2 };
        let this = This::new(process, QuicWays { inbox: None, older: vec![(1, here)] });
        assert!(this.reaches(1) && this.send(1, b"a") && !this.reaches(2) && !this.send(2, b"a"));
        drop(there);
        assert!(!this.reaches(1) && !this.send(1, b"a"));
        let [one, other] = ["192.0.2.1:443", "192.0.2.1:444"].map(|address| address.parse().unwrap());
        this.succeed(true);
        this.leave(one);
        assert!(this.is_succeeded() && this.is_read_elsewhere(one) && !this.is_read_elsewhere(other));
        this.succeed(false);
        assert!(!this.is_succeeded() && !this.is_read_elsewhere(one));
    }

    #[test]
    fn a_key_reads_as_it_was_written_and_shows_itself_to_nobody() {
        let key = HostKey::random();
        assert_eq!(HostKey::from_text(key.as_text()), Some(key.clone()));
        assert_ne!(HostKey::random(), key);
        assert!(!format!("{key:?}").contains(&key.as_text()[..4]));
        for text in ["", "12", &key.as_text()[1..], &format!("{}g", &key.as_text()[1..])] {
            assert_eq!(HostKey::from_text(text), None);
        }
    }
}
