//! The TLS sessions that make later handshakes with upstreams cheaper.
//!
//! Each worker has a table of its own. A group with a `zone` has one table for all workers, as in nginx.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weir_net::Address;
use weir_net::tls::Sessions;

/// The most TLS 1.3 tickets kept for one upstream: as many connections can resume before the next full handshake.
const TICKETS_MAX: usize = 8;

/// The most upstreams whose sessions a table keeps; beyond it, a new upstream replaces an old one.
const UPSTREAMS_MAX: usize = 1024;

/// The owner of sessions: the party's settings by their place in memory, the peer's cell, and the address. As in nginx,
/// two groups share no sessions with a server that both have. The settings live as long as the configuration, and so
/// does each table: the place stays unique.
type Owner = (usize, u32, Address);

/// A table of sessions. Only handshakes lock it.
#[derive(Debug, Default)]
pub struct AllSessions {
    known: Mutex<HashMap<Owner, Sessions>>,
}

impl AllSessions {
    /// The sessions of an owner.
    pub fn of(&self, settings: usize, cell: u32, address: &Address) -> Sessions {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = (settings, cell, address.clone());
        if let Some(sessions) = known.get(&owner) {
            return sessions.clone();
        }
        if known.len() >= UPSTREAMS_MAX
            && let Some(some) = known.keys().next().cloned()
        {
            known.remove(&some);
        }
        let sessions = Sessions::new(TICKETS_MAX);
        known.insert(owner, sessions.clone());
        sessions
    }
}
