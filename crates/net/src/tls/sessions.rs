//! Sessions kept for resumption, by the owner of a connection.
//!
//! A [`Client`](super::Client) is shared by every thread and every simulated user, but a user must not resume another
//! user's session: the server's handshakes would be cheaper than those of as many real clients. So rustls' store
//! keeps nothing itself; it uses the [`Sessions`] of the current connection.

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Servers that one owner remembers, at most; the oldest is forgotten first.
pub const SERVERS_MAX: usize = 16;

/// The sessions that one owner of connections may resume; clones share them, in any thread. Only handshakes lock them.
#[derive(Clone)]
pub struct Sessions {
    kept: Arc<Mutex<VecDeque<Kept>>>,
    tickets_max: usize,
}

struct Kept {
    server: ServerName<'static>,
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    /// Each is valid for one connection (RFC 8446 C.4).
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    /// Keeps at most `tickets_max` TLS 1.3 tickets per server: that many connections can resume at once.
    ///
    /// A ticket takes 1 to 3 kB, because rustls keeps the server's certificates with it.
    pub fn new(tickets_max: usize) -> Sessions {
        Sessions { kept: Arc::default(), tickets_max }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        // Each step leaves a valid list.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({} servers)", self.lock().len())
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Sessions>> = const { RefCell::new(None) };
}

/// Runs `work`; inside it, rustls finds these sessions, or none.
pub(super) fn among<T>(sessions: Option<&Sessions>, work: impl FnOnce() -> T) -> T {
    let Some(sessions) = sessions else {
        return work();
    };
    CURRENT.set(Some(sessions.clone()));
    let done = work();
    CURRENT.set(None);
    done
}

/// rustls' store: it uses the current sessions.
#[derive(Debug)]
pub(super) struct Store;

impl Store {
    fn look<T>(server: &ServerName<'_>, take: impl FnOnce(&mut Kept) -> Option<T>) -> Option<T> {
        CURRENT.with_borrow(|current| {
            let mut kept = current.as_ref()?.lock();
            kept.iter_mut().find(|kept| kept.server == *server).and_then(take)
        })
    }

    fn keep(server: ServerName<'static>, give: impl FnOnce(&mut Kept, usize)) {
        CURRENT.with_borrow(|current| {
            let Some(sessions) = current else {
                return;
            };
            let mut kept = sessions.lock();
            if !kept.iter().any(|kept| kept.server == server) {
                if kept.len() >= SERVERS_MAX {
                    kept.pop_front();
                }
                kept.push_back(Kept { server: server.clone(), group: None, tls12: None, tickets: VecDeque::new() });
            }
            if let Some(kept) = kept.iter_mut().find(|kept| kept.server == server) {
                give(kept, sessions.tickets_max);
            }
        });
    }
}

impl ClientSessionStore for Store {
    fn set_kx_hint(&self, server: ServerName<'static>, group: NamedGroup) {
        Store::keep(server, |kept, _| kept.group = Some(group));
    }

    fn kx_hint(&self, server: &ServerName<'_>) -> Option<NamedGroup> {
        Store::look(server, |kept| kept.group)
    }

    fn set_tls12_session(&self, server: ServerName<'static>, session: Tls12ClientSessionValue) {
        Store::keep(server, |kept, _| kept.tls12 = Some(session));
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        Store::look(server, |kept| kept.tls12.clone())
    }

    fn remove_tls12_session(&self, server: &ServerName<'static>) {
        let _: Option<()> = Store::look(server, |kept| {
            kept.tls12 = None;
            None
        });
    }

    fn insert_tls13_ticket(&self, server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        Store::keep(server, |kept, tickets_max| {
            kept.tickets.push_back(ticket);
            while kept.tickets.len() > tickets_max {
                kept.tickets.pop_front();
            }
        });
    }

    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        Store::look(server, |kept| kept.tickets.pop_back())
    }
}
