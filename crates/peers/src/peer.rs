//! One address of an upstream group: its configuration, and the state from its failures.
//!
//! It is neither a connection nor a name lookup: a `server` line that resolves to three addresses gives three peers
//! with the same [`Peer::server`].
//!
//! Invariant: `effective_weight` stays within `0..=weight`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use md5::{Digest, Md5};

use crate::health::Health;

/// `weight` of a `server` line without it.
pub const DEFAULT_WEIGHT: u32 = 1;
/// `max_fails` of a `server` line without it.
pub const DEFAULT_MAX_FAILS: u32 = 1;
/// `fail_timeout` of a `server` line without it, in seconds.
pub const DEFAULT_FAIL_TIMEOUT_S: u64 = 10;

/// The configuration of one address of a group; it never changes after the group is built.
///
/// The parameters are those of the `server` directive, nginx.org `ngx_http_upstream_module`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number in the group; the API uses it.
    pub id: u32,
    /// Where to connect: `127.0.0.1:8081`, `[::1]:80` or `unix:/path`.
    pub address: String,
    /// The server as written in the configuration. Consistent hashing places this text on the ring, so a name keeps
    /// its place when its address changes.
    pub server: String,
    /// Its share of the requests, at least 1.
    pub weight: u32,
    /// The most exchanges at a time on this peer; 0 is unlimited.
    pub max_conns: u32,
    /// Failures within `fail_timeout_s` that eject the peer; 0 never ejects.
    pub max_fails: u32,
    /// The seconds over which failures are counted, and the seconds that an ejection lasts.
    pub fail_timeout_s: u64,
    /// Milliseconds in which the share of a recovered peer grows to its weight; 0 gives it the whole share at once.
    pub slow_start_ms: u64,
    /// Serves only if no primary peer can.
    pub backup: bool,
    /// Never serves.
    pub down: bool,
    /// Gets only exchanges that are bound to it; its current exchanges go on.
    pub drain: bool,
    /// The peer's name for `sticky`; if empty, the name comes from the address.
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
            slow_start_ms: 0,
            backup: false,
            down: false,
            drain: false,
            route: String::new(),
        }
    }

    /// Whether the configuration and the API allow exchanges on it.
    #[must_use]
    pub fn may_serve(&self) -> bool {
        !self.down && !self.drain
    }
}

/// A peer's place in a round of picks, and its measured times. It belongs to one worker, or to all of them under the
/// group's lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerState {
    /// The current weight: failures lower it, and each pick raises it again.
    effective_weight: i64,
    /// The current credit of smooth weighted round robin.
    pub current_weight: i64,
    /// The failures that have lowered the weight so far, of [`Record::failures`].
    paid: u32,
    /// The measured times of its answers.
    pub times: Times,
}

/// The marks that failures have left on one peer. All workers share it, without a lock: a healthy peer's record is only read. Groups
/// that continue each other share it too: two configurations in force would else each learn of a failure for themselves.
///
/// The times of a window are whole seconds, because nginx compares whole seconds. To choose among peers that have
/// failed, weir compares milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Failures counted in the current window.
    fails: AtomicU32,
    /// All failures; it wraps around.
    failures: AtomicU32,
    /// The second of the last failure.
    accessed: AtomicU64,
    /// The millisecond of the last failure, to compare peers.
    failed_ms: AtomicU64,
    /// The second when the window was last opened: by a failure, or by the first pick after `fail_timeout`.
    checked: AtomicU64,
    /// The millisecond when the peer last became available again; 0 if it always was.
    recovered_ms: AtomicU64,
}

/// The averages that `least_time` compares, in milliseconds; 0 before the first answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// Until the head of an answer.
    pub header: u64,
    /// Until the last byte of an answer.
    pub response: u64,
    /// The time that exchanges without an answer have waited so far.
    pub inflight: u64,
    /// The exchanges without an answer.
    pub inflight_count: u64,
    /// The sum of their times, at `inflight_changed`.
    pub inflight_sum: u64,
    /// The millisecond when their number last changed.
    pub inflight_changed: u64,
}

impl Times {
    /// Adds a value to an average: nginx weights a new value by a twentieth.
    pub(crate) fn average(average: &mut u64, value: u64) {
        *average = if *average == 0 { value } else { (value + 19 * *average + 10) / 20 };
    }

    /// Records an exchange that begins to wait.
    pub(crate) fn enter(&mut self, now_ms: u64) {
        self.inflight_sum += now_ms.saturating_sub(self.inflight_changed) * self.inflight_count;
        self.inflight_changed = now_ms;
        self.inflight_count += 1;
    }

    /// Records that an exchange that has waited for `waited_ms` waits no more.
    pub(crate) fn leave(&mut self, now_ms: u64, waited_ms: u64) {
        let all = self.inflight_sum + now_ms.saturating_sub(self.inflight_changed) * self.inflight_count;
        self.inflight_count = self.inflight_count.saturating_sub(1);
        self.inflight_sum = if self.inflight_count == 0 { 0 } else { all.saturating_sub(waited_ms) };
        self.inflight_changed = now_ms;
    }

    /// Brings the average time of waiting exchanges up to date.
    pub(crate) fn look(&mut self, now_ms: u64) {
        if let Some(mean) = self.inflight_sum.checked_div(self.inflight_count) {
            Self::average(&mut self.inflight, mean + now_ms.saturating_sub(self.inflight_changed));
        }
    }
}

impl PeerState {
    pub(crate) fn fresh(slot: &Slot) -> Self {
        let paid = slot.record.failures.load(Ordering::Relaxed);
        Self { effective_weight: i64::from(slot.peer.weight), paid, ..Self::default() }
    }

    /// Takes over the weight and the times of the same address from another configuration, limited by this peer's own
    /// weight.
    pub(crate) fn inherit(&mut self, old: &Self, slot: &Slot) {
        self.effective_weight = old.effective_weight.clamp(0, i64::from(slot.peer.weight));
        self.paid = old.paid;
        self.times = Times { header: old.times.header, response: old.times.response, ..Times::default() };
    }

    /// Adds this turn's credit, `share` for each unit of weight, and lets the weight recover by one; returns the added
    /// credit. The failures since the last turn lower the weight first.
    pub(crate) fn earn_credit(&mut self, slot: &Slot, share: i64) -> i64 {
        let (peer, failures) = (&slot.peer, slot.record.failures.load(Ordering::Relaxed));
        if failures != self.paid {
            let new = i64::from(failures.wrapping_sub(self.paid));
            let each = i64::from(peer.weight.checked_div(peer.max_fails).unwrap_or(0));
            self.effective_weight = (self.effective_weight - new * each).max(0);
            self.paid = failures;
        }
        let earned = self.effective_weight * share;
        self.current_weight += earned;
        if self.effective_weight < i64::from(peer.weight) {
            self.effective_weight += 1;
        }
        earned
    }

    #[cfg(test)]
    pub(crate) fn effective_weight(&self) -> i64 {
        self.effective_weight
    }
}

impl Record {
    /// Failures in the current window.
    pub(crate) fn fails(&self) -> u32 {
        // A worker that sees a failure must see its time.
        self.fails.load(Ordering::Acquire)
    }

    pub(crate) fn failed_ms(&self) -> u64 {
        self.failed_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn recovered_ms(&self) -> u64 {
        self.recovered_ms.load(Ordering::Relaxed)
    }

    /// The peer is available again from this moment.
    pub(crate) fn recover(&self, now_ms: u64) {
        self.recovered_ms.store(now_ms, Ordering::Relaxed);
    }

    /// The second when the window was last opened.
    pub(crate) fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }
}

/// A peer with its count of exchanges in progress.
///
/// The count is shared with the group that this one replaced, so an exchange from before a reload still leaves it at
/// its end. It is not used if each worker counts for itself.
#[derive(Debug)]
pub(crate) struct Slot {
    pub peer: Peer,
    /// The peer's name for `sticky`.
    pub name: Box<str>,
    pub conns: Arc<AtomicU32>,
    pub record: Arc<Record>,
    /// The results of its health checks; `None` without a check.
    pub health: Option<Arc<Health>>,
}

impl Slot {
    pub(crate) fn new(peer: Peer) -> Self {
        let name = if peer.route.is_empty() { name_of(&peer.address) } else { peer.route.clone() };
        Self { peer, name: name.into(), conns: Arc::default(), record: Arc::default(), health: None }
    }

    /// Whether it may get an exchange that is bound to this name, or that is not bound.
    pub(crate) fn may_serve(&self, bound: Option<&[u8]>) -> bool {
        let is_allowed = self.peer.may_serve() || (!self.peer.down && bound == Some(self.name.as_bytes()));
        is_allowed && self.is_healthy()
    }

    /// Whether no health check keeps it out.
    pub(crate) fn is_healthy(&self) -> bool {
        self.health.as_ref().is_none_or(|health| health.lets_serve())
    }

    /// The millisecond when it last became available again, by failures or by health checks.
    pub(crate) fn recovered_ms(&self) -> u64 {
        let checked = self.health.as_ref().map_or(0, |health| health.up_since_ms());
        self.record.recovered_ms().max(checked)
    }

    /// Whether failures keep the peer out at `now_s`.
    pub(crate) fn ejected(&self, now_s: u64) -> bool {
        self.peer.max_fails != 0 && self.record.fails() >= self.peer.max_fails && !self.window_over(now_s)
    }

    /// Whether the window of failures is over.
    pub(crate) fn window_over(&self, now_s: u64) -> bool {
        now_s.saturating_sub(self.record.checked()) > self.peer.fail_timeout_s
    }

    /// Records a pick: the first one after `fail_timeout` opens a new window, so a returning peer gets one trial at a
    /// time until a trial succeeds.
    pub(crate) fn note_pick(&self, now_s: u64) {
        if self.window_over(now_s) {
            self.record.checked.store(now_s, Ordering::Relaxed);
        }
    }

    /// Records a failure; true if the peer is ejected.
    pub(crate) fn note_failure(&self, now_ms: u64) -> bool {
        let (record, now_s) = (&self.record, now_ms / 1000);
        record.accessed.store(now_s, Ordering::Relaxed);
        record.failed_ms.store(now_ms, Ordering::Relaxed);
        record.checked.store(now_s, Ordering::Relaxed);
        record.failures.fetch_add(1, Ordering::Relaxed);
        let fails = record.fails.fetch_add(1, Ordering::Release).saturating_add(1);
        self.peer.max_fails != 0 && fails >= self.peer.max_fails
    }

    /// Records a success. It forgives failures only if the pick came after them, which `accessed < checked` means.
    pub(crate) fn note_success(&self, now_ms: u64) {
        if self.record.fails() > 0 && self.record.accessed.load(Ordering::Relaxed) < self.record.checked() {
            self.readmit(now_ms);
        }
    }

    /// Forgives all failures. If they had ejected the peer, it is available again from this moment.
    pub(crate) fn readmit(&self, now_ms: u64) {
        if self.peer.max_fails != 0 && self.record.fails() >= self.peer.max_fails {
            self.record.recover(now_ms);
        }
        self.record.fails.store(0, Ordering::Relaxed);
    }

    pub(crate) fn conns(&self) -> u32 {
        self.conns.load(Ordering::Relaxed)
    }

    pub(crate) fn saturated(&self) -> bool {
        self.peer.max_conns != 0 && self.conns() >= self.peer.max_conns
    }

    /// Takes a place if `max_conns` allows it.
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
        // Otherwise a leave without a matching entry would make the count wrap around, and the peer would be full
        // forever.
        let _ = self.conns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| taken.checked_sub(1));
    }
}
/// The name of a peer without a route.
fn name_of(address: &str) -> String {
    Md5::digest(address).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_named_by_their_addresses() {
        // printf 127.0.0.1:8081 | md5sum
        assert_eq!(name_of("127.0.0.1:8081"), "df2b80dc43705d28db9be6f29fe58da3");
    }
}
