//! Counts of sessions, by server and by peer, for the API. All workers share them: a session adds to them at its
//! beginning, at its end, and after each [`STEP_BYTES`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use weir_net::clock;

/// A session that moves many bytes reports them in steps of this size.
pub const STEP_BYTES: u64 = 1 << 20;

/// Counts of the sessions of one zone.
#[derive(Debug, Default)]
pub struct ZoneCounts {
    begun: AtomicU64,
    current: AtomicI64,
    /// By the first digit of the status: 2, 4, 5.
    ended: [AtomicU64; 3],
    discarded: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// The counts of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneSums {
    /// Sessions begun.
    pub begun: u64,
    /// Current sessions.
    pub current: u64,
    /// Sessions with 2xx, 4xx and 5xx.
    pub ended: [u64; 3],
    /// Sessions without a status.
    pub discarded: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
}

impl ZoneCounts {
    /// The counts at this moment.
    pub fn sums(&self) -> ZoneSums {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ZoneSums {
            begun: read(&self.begun),
            current: self.current.load(Ordering::Relaxed).max(0) as u64,
            ended: self.ended.each_ref().map(read),
            discarded: read(&self.discarded),
            received: read(&self.received),
            sent: read(&self.sent),
        }
    }
}

/// A session that is counted until this is dropped.
pub struct Counted {
    zone: Arc<ZoneCounts>,
    reported: (u64, u64),
    has_ended: bool,
}

impl Counted {
    /// Counts a session that begins.
    pub fn new(zone: &Arc<ZoneCounts>) -> Counted {
        zone.begun.fetch_add(1, Ordering::Relaxed);
        zone.current.fetch_add(1, Ordering::Relaxed);
        Counted { zone: zone.clone(), reported: (0, 0), has_ended: false }
    }

    /// Reports bytes if there are many new ones.
    pub fn moved(&mut self, received: u64, sent: u64) {
        if received + sent >= self.reported.0 + self.reported.1 + STEP_BYTES {
            self.report(received, sent);
        }
    }

    fn report(&mut self, received: u64, sent: u64) {
        let before = std::mem::replace(&mut self.reported, (received, sent));
        self.zone.received.fetch_add(received.saturating_sub(before.0), Ordering::Relaxed);
        self.zone.sent.fetch_add(sent.saturating_sub(before.1), Ordering::Relaxed);
    }

    /// Counts the end of the session.
    pub fn end(&mut self, status: u16, received: u64, sent: u64) {
        self.report(received, sent);
        self.has_ended = true;
        let class = match status / 100 {
            2 => 0,
            4 => 1,
            _ => 2,
        };
        if let Some(count) = self.zone.ended.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.zone.current.fetch_sub(1, Ordering::Relaxed);
        if !self.has_ended {
            self.zone.discarded.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A sum of times and how many there were.
#[derive(Debug, Default)]
pub struct Mean {
    us: AtomicU64,
    count: AtomicU64,
}

impl Mean {
    fn add(&self, time: Option<Duration>) {
        let Some(time) = time else { return };
        self.us.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// In milliseconds; `None` without a time.
    pub fn ms(&self) -> Option<u64> {
        let count = self.count.load(Ordering::Relaxed);
        (count > 0).then(|| self.us.load(Ordering::Relaxed) / count / 1000)
    }
}

/// Counts of one peer.
#[derive(Debug, Default)]
pub struct PeerCounts {
    /// Sessions passed to it.
    pub sessions: AtomicU64,
    /// Failed attempts.
    pub fails: AtomicU64,
    /// How often failures ejected it.
    pub ejected: AtomicU64,
    /// Bytes to it.
    pub sent: AtomicU64,
    /// Bytes from it.
    pub received: AtomicU64,
    /// When it was last chosen, in milliseconds since 1970; 0 for never.
    pub selected_ms: AtomicU64,
    /// Times for connecting.
    pub connect: Mean,
    /// Times until the first byte.
    pub first_byte: Mean,
    /// Times until the end.
    pub session: Mean,
}

impl PeerCounts {
    /// Counts an attempt.
    pub fn chosen(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        self.selected_ms.store(clock::unix_ms(), Ordering::Relaxed);
    }

    /// Counts a failed attempt.
    pub fn failed(&self, is_ejected: bool) {
        self.fails.fetch_add(1, Ordering::Relaxed);
        self.ejected.fetch_add(u64::from(is_ejected), Ordering::Relaxed);
    }

    /// Counts the end of a session.
    pub fn ended(&self, attempt: &crate::attempt::Try) {
        self.sent.fetch_add(attempt.sent, Ordering::Relaxed);
        self.received.fetch_add(attempt.received, Ordering::Relaxed);
        self.connect.add(attempt.connect);
        self.first_byte.add(attempt.first_byte);
        self.session.add(attempt.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_counted_once_and_its_bytes_once() {
        let zone = Arc::new(ZoneCounts::default());
        let mut session = Counted::new(&zone);
        session.moved(10, 20);
        assert_eq!((zone.sums().received, zone.sums().current), (0, 1));
        session.moved(STEP_BYTES, 20);
        session.end(200, STEP_BYTES + 5, 30);
        drop(session);
        drop(Counted::new(&zone));
        let expected =
            ZoneSums { begun: 2, current: 0, ended: [1, 0, 0], discarded: 1, received: STEP_BYTES + 5, sent: 30 };
        assert_eq!(zone.sums(), expected);
    }
}
