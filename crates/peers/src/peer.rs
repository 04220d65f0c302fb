//! One address of an upstream group: what the configuration says about it, and
//! the little that its failures have taught us.
//!
//! Not a connection and not a name lookup: a `server` line that resolves to
//! three addresses is three peers with the same [`Peer::server`].
//!
//! Invariant: `effective_weight` stays within `0..=weight`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use md5::{Digest, Md5};

use crate::health::Health;

/// `weight` of a `server` line that does not say.
pub const DEFAULT_WEIGHT: u32 = 1;
/// `max_fails` of a `server` line that does not say.
pub const DEFAULT_MAX_FAILS: u32 = 1;
/// `fail_timeout` of a `server` line that does not say, in seconds.
pub const DEFAULT_FAIL_TIMEOUT_S: u64 = 10;

/// What the configuration says about one address of a group; never changes
/// after the group is built.
///
/// Parameters are those of the `server` directive, nginx.org
/// `ngx_http_upstream_module`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number in the group; the API knows it by that.
    pub id: u32,
    /// Where to connect: `127.0.0.1:8081`, `[::1]:80` or `unix:/path`.
    pub address: String,
    /// The server as written in the configuration; consistent hashing places
    /// this text on the ring, so a name keeps its place when its address moves.
    pub server: String,
    /// Share of the requests, at least 1.
    pub weight: u32,
    /// Most exchanges at a time on this peer; 0 is unlimited.
    pub max_conns: u32,
    /// Failures within `fail_timeout_s` that eject the peer; 0 never ejects.
    pub max_fails: u32,
    /// Seconds failures are counted over, and seconds an ejection lasts.
    pub fail_timeout_s: u64,
    /// Serves only when no primary peer can.
    pub backup: bool,
    /// Never serves.
    pub down: bool,
    /// Is given no more exchanges but those that are bound to it; those it has go on.
    pub drain: bool,
    /// What `sticky` calls it; empty where its address says.
    pub route: String,
}

impl Peer {
    /// A peer with the defaults of a bare `server address;` line.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        let address = address.into();
        Self {
            id: 0,
            server: address.clone(),
            address,
            weight: DEFAULT_WEIGHT,
            max_conns: 0,
            max_fails: DEFAULT_MAX_FAILS,
            fail_timeout_s: DEFAULT_FAIL_TIMEOUT_S,
            backup: false,
            down: false,
            drain: false,
            route: String::new(),
        }
    }

    /// Whether the configuration or the API lets it have exchanges.
    #[must_use]
    pub fn may_serve(&self) -> bool {
        !self.down && !self.drain
    }
}

/// What failures and picks have left behind on one peer.
///
/// Guarded by the group's lock. Times are in the seconds the caller passes in;
/// whole seconds, because nginx compares whole seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerState {
    /// The weight now in force: lowered by failures, regained pick by pick.
    pub effective_weight: i64,
    /// The running credit of smooth weighted round robin.
    pub current_weight: i64,
    /// Failures counted in the present window.
    pub fails: u32,
    /// Second of the last failure.
    pub accessed: u64,
    /// Second the window was last opened: a failure, or the first pick after
    /// `fail_timeout`.
    pub checked: u64,
}

impl PeerState {
    pub(crate) fn fresh(peer: &Peer) -> Self {
        Self { effective_weight: i64::from(peer.weight), ..Self::default() }
    }

    /// Takes over what another configuration's state knew about the health of
    /// the same address, within this peer's own weight.
    pub(crate) fn inherit_health(&mut self, old: &Self, peer: &Peer) {
        self.effective_weight = old.effective_weight.clamp(0, i64::from(peer.weight));
        self.fails = old.fails;
        self.accessed = old.accessed;
        self.checked = old.checked;
    }

    /// Whether failures keep the peer out at `now_s`.
    pub(crate) fn ejected(&self, peer: &Peer, now_s: u64) -> bool {
        peer.max_fails != 0 && self.fails >= peer.max_fails && !self.window_over(peer, now_s)
    }

    /// Notes a pick: the first one after `fail_timeout` opens a new window, so
    /// a peer let back in gets one trial at a time until it has proved itself.
    pub(crate) fn note_pick(&mut self, peer: &Peer, now_s: u64) {
        if self.window_over(peer, now_s) {
            self.checked = now_s;
        }
    }

    /// Notes a failure; true when the peer is now ejected.
    pub(crate) fn note_failure(&mut self, peer: &Peer, now_s: u64) -> bool {
        self.fails = self.fails.saturating_add(1);
        self.accessed = now_s;
        self.checked = now_s;
        if peer.max_fails == 0 {
            return false;
        }
        let cost = i64::from(peer.weight / peer.max_fails);
        self.effective_weight = (self.effective_weight - cost).max(0);
        self.fails >= peer.max_fails
    }

    /// Notes a success; failures are forgiven only when the pick came after
    /// them, which is what `accessed < checked` says.
    pub(crate) fn note_success(&mut self) {
        if self.accessed < self.checked {
            self.fails = 0;
        }
    }

    /// Forgives all failures: the peer answered while it was ejected.
    pub(crate) fn readmit(&mut self) {
        self.fails = 0;
    }

    /// Adds this turn's credit and lets the weight recover by one; returns the
    /// credit added.
    pub(crate) fn earn_credit(&mut self, peer: &Peer) -> i64 {
        let earned = self.effective_weight;
        self.current_weight += earned;
        if self.effective_weight < i64::from(peer.weight) {
            self.effective_weight += 1;
        }
        earned
    }

    fn window_over(&self, peer: &Peer, now_s: u64) -> bool {
        now_s.saturating_sub(self.checked) > peer.fail_timeout_s
    }
}

/// A peer with its count of exchanges under way.
///
/// The count is shared with the group this one replaced, so an exchange begun
/// before a reload still leaves when it ends.
#[derive(Debug)]
pub(crate) struct Slot {
    pub peer: Peer,
    /// What `sticky` calls it.
    pub name: Box<str>,
    pub conns: Arc<AtomicU32>,
    /// What its health checks say; none where there is no check.
    pub health: Option<Arc<Health>>,
}

impl Slot {
    pub(crate) fn new(peer: Peer) -> Self {
        let name = if peer.route.is_empty() { name_of(&peer.address) } else { peer.route.clone() };
        Self { peer, name: name.into(), conns: Arc::default(), health: None }
    }

    /// Whether it may have an exchange that is bound to a peer of this name, or to none.
    pub(crate) fn may_serve(&self, bound: Option<&[u8]>) -> bool {
        let is_allowed = self.peer.may_serve() || (!self.peer.down && bound == Some(self.name.as_bytes()));
        is_allowed && self.is_healthy()
    }

    /// Whether no health check keeps it out.
    pub(crate) fn is_healthy(&self) -> bool {
        self.health.as_ref().is_none_or(|health| health.lets_serve())
    }

    pub(crate) fn conns(&self) -> u32 {
        self.conns.load(Ordering::Relaxed)
    }

    pub(crate) fn saturated(&self) -> bool {
        self.peer.max_conns != 0 && self.conns() >= self.peer.max_conns
    }

    /// Takes a place if `max_conns` leaves one.
    pub(crate) fn enter(&self) -> bool {
        if self.peer.max_conns == 0 {
            self.conns.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        self.conns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < self.peer.max_conns).then_some(taken + 1)
            })
            .is_ok()
    }

    pub(crate) fn leave(&self) {
        // An unmatched leave would otherwise wrap and saturate the peer for good.
        let _ = self.conns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| taken.checked_sub(1));
    }
}
/// The name of a peer that has no route of its own.
fn name_of(address: &str) -> String {
    Md5::digest(address).iter().map(|byte| format!("{byte:02x}")).collect()
}

