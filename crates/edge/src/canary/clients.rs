//! The windows of clients: notes about requests become one outcome for each client. Pure: the time is an argument.
//!
//! A client has one window in a canary. It closes with the first failure, 60 s after its first request, or after 10 s without a
//! request. A request under way keeps it open, unless it lasts longer than nearly all requests of the old configuration: then
//! the client does not wait for an end that may never come. A request that is under way when the window closes counts with its
//! time until then. Invariant: whether a client has a window, and when the window closes, depends on its requests and not on its
//! configuration; so under "the new configuration changes nothing" only the coin is random.

use std::collections::HashMap;

use weir_http::hold::split::share_of;
use weir_judge::latencies::{self, Latencies};
use weir_judge::outcome::ClientOutcome;

/// The longest window.
const WINDOW_MS: u64 = 60_000;
/// A client that sends nothing for this time has left.
const IDLE_MS: u64 = 10_000;
/// A request under way that lasts shorter than this is no hang.
const HANG_MS: u64 = 10_000;
/// Requests under way of one client that are known, at most.
const UNDER_WAY_MAX: usize = 16;
/// Windows that are open at once, at most; further clients are skipped.
const OPEN_MAX: usize = 65_536;
/// Bits that remember clients: a client that shares its bit with an earlier one is skipped.
const SEEN_BITS: usize = 1 << 23;
/// Latencies of one client that the known ones take, at most.
const LATENCIES_MAX: usize = 64;
/// Clients whose requests are counted for the one with the most, at most.
const LARGE_MAX: usize = 64;
/// Requests of a client before it is called large.
const LARGE_FROM: u64 = 100;

/// The part of a request that a note is about.
#[derive(Clone, Copy, Debug, Default)]
pub enum NotePart {
    /// All of it: it has ended.
    #[default]
    Whole,
    /// It has lasted for `us`, and goes on. It has this number.
    Long {
        /// Its number.
        number: u64,
        /// The time since its begin, in microseconds.
        us: u64,
    },
    /// The long one with this number is over. If it says anything, a note about all of it has come before.
    Over(u64),
}

/// One request of a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Note {
    /// The part.
    pub part: NotePart,
    /// The client's number, by which the coin decided.
    pub client: u64,
    /// The coin is that of the look, or of the canary.
    pub is_before: bool,
    /// The limit of the coin.
    pub limit: u64,
    /// The request had the new configuration.
    pub is_new: bool,
    /// Its latency; `None` for a request that says nothing about speed.
    pub took_us: Option<u64>,
    /// weir or an origin failed.
    pub has_failed: bool,
    /// The answer says that the client is at fault.
    pub was_refused: bool,
    /// Its answer was cut.
    pub was_reset: bool,
}

struct Window {
    last_ms: u64,
    limit: u64,
    closed: ClosedWindow,
    /// Long requests under way: their number, and when they began.
    under_way: Vec<(u64, u64)>,
    /// A request had the other configuration than the coin says, or another coin.
    is_mixed: bool,
}

/// A window that has closed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedWindow {
    /// The failures and the times of its requests.
    pub outcome: ClientOutcome,
    /// The places of its latencies, of the first requests.
    pub latencies: Vec<u16>,
    /// When it began.
    pub opened_ms: u64,
}

impl ClosedWindow {
    fn add(&mut self, us: u64) {
        self.outcome.requests += 1;
        if self.latencies.len() < LATENCIES_MAX {
            self.latencies.push(latencies::place(us));
        }
    }
}

/// The clients of a canary.
pub struct Clients {
    open: HashMap<u64, Window>,
    seen: Vec<u64>,
    known: Latencies,
    /// Requests of the clients with the most (Misra and Gries 1982), and all requests.
    large: HashMap<u64, u64>,
    /// All have the old configuration, whatever their coin says.
    all_old: bool,
    /// Requests.
    pub requests: u64,
    /// Clients that were not counted.
    pub skipped: u64,
}

impl Clients {
    /// Clients that all have the old configuration.
    pub fn before() -> Clients {
        Clients { all_old: true, ..Clients::with(Latencies::default()) }
    }

    /// Clients of two configurations. `known` are the latencies of the old one before: the coin does not depend on them.
    pub fn with(known: Latencies) -> Clients {
        Clients {
            open: HashMap::new(),
            seen: vec![0; SEEN_BITS / 64],
            known,
            large: HashMap::new(),
            all_old: false,
            requests: 0,
            skipped: 0,
        }
    }

    /// The latencies of the old configuration.
    pub fn known(&self) -> &Latencies {
        &self.known
    }

    /// Takes a request; returns the window that it closes.
    pub fn take(&mut self, note: Note, now_ms: u64) -> Option<ClosedWindow> {
        match note.part {
            NotePart::Whole => self.weigh(note.client),
            NotePart::Long { .. } => {}
            NotePart::Over(number) => {
                let window = self.open.get_mut(&note.client)?;
                window.under_way.retain(|(own, _)| *own != number);
                return None;
            }
        }
        if !self.open.contains_key(&note.client) {
            if self.has_seen(note.client) {
                return None;
            }
            self.remember(note.client);
            if self.open.len() >= OPEN_MAX {
                self.skipped += 1;
                return None;
            }
            let (is_new, share) = (note.client < note.limit, share_of(note.limit));
            let outcome = ClientOutcome { is_new, share, ..ClientOutcome::default() };
            let closed = ClosedWindow { outcome, latencies: Vec::new(), opened_ms: now_ms };
            let under_way = Vec::new();
            let window = Window { last_ms: now_ms, limit: note.limit, closed, under_way, is_mixed: false };
            self.open.insert(note.client, window);
        }
        let window = self.open.get_mut(&note.client)?;
        window.last_ms = now_ms;
        let outcome = &mut window.closed.outcome;
        window.is_mixed |= note.is_new != outcome.is_new || note.limit != window.limit;
        if let NotePart::Long { number, us } = note.part {
            if window.under_way.len() < UNDER_WAY_MAX {
                window.under_way.push((number, now_ms.saturating_sub(us / 1000)));
            }
            return None;
        }
        outcome.failed += u32::from(note.has_failed);
        outcome.refused += u32::from(note.was_refused);
        outcome.resets += u32::from(note.was_reset);
        if let Some(us) = note.took_us {
            window.closed.add(us);
        }
        if note.has_failed || note.was_reset {
            let window = self.open.remove(&note.client)?;
            return self.closed(window, now_ms);
        }
        None
    }

    /// Closes the windows whose time is over.
    pub fn close(&mut self, now_ms: u64) -> Vec<ClosedWindow> {
        let known = self.known.clone();
        let hangs = |began_ms: u64| {
            let age = now_ms.saturating_sub(began_ms);
            // Longer than all but 1 %.
            let [.., beyond] = known.is_slow(latencies::place(age * 1000));
            age >= HANG_MS && beyond
        };
        self.close_if(now_ms, |window| {
            let is_idle = now_ms.saturating_sub(window.last_ms) >= IDLE_MS;
            let is_full = now_ms.saturating_sub(window.closed.opened_ms) >= WINDOW_MS;
            let is_over = if window.under_way.is_empty() {
                is_idle
            } else {
                window.under_way.iter().any(|(_, began_ms)| hangs(*began_ms))
            };
            is_full || is_over
        })
    }

    /// Closes all windows.
    pub fn close_all(&mut self, now_ms: u64) -> Vec<ClosedWindow> {
        self.close_if(now_ms, |_| true)
    }

    fn close_if(&mut self, now_ms: u64, is_over: impl Fn(&Window) -> bool) -> Vec<ClosedWindow> {
        let mut over: Vec<Window> =
            self.open.extract_if(|_, window| is_over(window)).map(|(_, window)| window).collect();
        // A map has no order, and the judge believes that these came one after another.
        over.sort_by_key(|window| window.last_ms);
        over.into_iter().filter_map(|window| self.closed(window, now_ms)).collect()
    }

    /// The share has changed: the clients of today had the coin of before, and are not counted.
    pub fn forget(&mut self) {
        self.skipped += self.open.len() as u64;
        self.open.clear();
    }

    /// The part of all requests that the client with the most sent, at least; 0 while that is few requests.
    pub fn largest(&self) -> f64 {
        let most = self.large.values().copied().max().unwrap_or_default();
        if most < LARGE_FROM { 0.0 } else { most as f64 / self.requests as f64 }
    }

    fn closed(&mut self, mut window: Window, now_ms: u64) -> Option<ClosedWindow> {
        if window.is_mixed {
            self.skipped += 1;
            return None;
        }
        for (_, began_ms) in window.under_way {
            window.closed.add(now_ms.saturating_sub(began_ms) * 1000);
        }
        // Only now: the known latencies are those of the clients before this one, in the judge's order.
        window.closed.outcome.rank(&self.known, &window.closed.latencies);
        if self.all_old || !window.closed.outcome.is_new {
            self.known.add(&window.closed.latencies);
        }
        Some(window.closed)
    }

    /// Where a client's bit is. The coin decides by the upper bits of the number, so these are independent of it.
    fn bit(client: u64) -> (usize, u64) {
        let at = client as usize % SEEN_BITS;
        (at / 64, 1 << (at % 64))
    }

    fn has_seen(&self, client: u64) -> bool {
        let (word, bit) = Clients::bit(client);
        self.seen.get(word).is_some_and(|word| word & bit != 0)
    }

    fn remember(&mut self, client: u64) {
        let (word, bit) = Clients::bit(client);
        if let Some(word) = self.seen.get_mut(word) {
            *word |= bit;
        }
    }

    fn weigh(&mut self, client: u64) {
        self.requests += 1;
        if let Some(count) = self.large.get_mut(&client) {
            *count += 1;
        } else if self.large.len() < LARGE_MAX {
            self.large.insert(client, 1);
        } else {
            self.large.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_judge::judge::{CanaryJudge, CanaryQuestion, Judgement};

    use super::*;

    const HALF: u64 = 1 << 63;

    fn note(client: u64) -> Note {
        let is_new = client < HALF;
        Note { client, limit: HALF, is_new, took_us: Some(1_000), ..Note::default() }
    }

    #[test]
    fn a_client_has_one_window_that_closes_when_it_leaves_or_after_a_minute() {
        let mut clients = Clients::with(Latencies::default());
        assert_eq!(clients.take(note(1), 0), None);
        assert_eq!(clients.take(note(1), 5_000), None);
        assert_eq!(clients.close(14_999), []);
        let closed = clients.close(15_000);
        assert_eq!(
            (closed.len(), closed[0].outcome.requests, closed[0].outcome.is_new, closed[0].outcome.share),
            (1, 2, true, 0.5)
        );
        assert_eq!(clients.take(note(1), 20_000), None);
        assert_eq!(clients.close(99_999), [], "it was counted");
        (0..=6).for_each(|step| assert_eq!(clients.take(note(HALF), step * 9_000), None));
        assert_eq!(clients.close(60_000).len(), 1);
        assert_eq!(clients.skipped, 0);
    }

    #[test]
    fn a_failure_closes_the_window_at_once() {
        let mut clients = Clients::with(Latencies::default());
        assert_eq!(clients.take(note(1), 0), None);
        let outcome = clients.take(Note { has_failed: true, ..note(1) }, 1);
        let outcome = outcome.map(|closed| closed.outcome);
        assert_eq!(outcome.map(|outcome| (outcome.requests, outcome.failed, outcome.resets)), Some((2, 1, 0)));
        assert_eq!(clients.take(Note { was_reset: true, ..note(1) }, 2), None, "a client counts once");
        let cut = clients.take(Note { was_reset: true, took_us: None, ..note(2) }, 2);
        assert_eq!(
            cut.map(|closed| closed.outcome).map(|outcome| (outcome.requests, outcome.failed, outcome.resets)),
            Some((0, 0, 1))
        );
    }

    #[test]
    fn a_client_whose_configuration_changed_is_not_counted() {
        let mut clients = Clients::with(Latencies::default());
        clients.take(note(1), 0);
        clients.take(Note { is_new: false, ..note(1) }, 1);
        assert_eq!((clients.close(20_000), clients.skipped), (vec![], 1));
        clients.take(note(2), 0);
        clients.forget();
        assert_eq!((clients.close(20_000), clients.skipped), (vec![], 2));
    }

    #[test]
    fn windows_have_a_bound_and_further_clients_are_skipped() {
        let mut clients = Clients::with(Latencies::default());
        (0..OPEN_MAX as u64 + 3).for_each(|client| assert_eq!(clients.take(note(client), 0), None));
        assert_eq!((clients.open.len(), clients.skipped), (OPEN_MAX, 3));
        assert_eq!(clients.close(10_000).len(), OPEN_MAX);
    }

    #[test]
    fn slow_requests_are_those_beyond_the_old_ones() {
        let mut clients = Clients::with(Latencies::default());
        for client in 0..400u64 {
            clients.take(Note { took_us: Some(1_000 + client), ..note(HALF + client) }, client);
        }
        clients.close(20_000);
        assert_eq!(clients.known().rank(latencies::place(50_000)), 1.0);
        clients.take(Note { took_us: Some(50_000), ..note(1_000) }, 20_000);
        let outcome = clients.close(40_000)[0].outcome;
        assert_eq!((outcome.ranks, outcome.slow), (1.0, [1; 3]));
    }

    #[test]
    fn clients_that_come_at_once_are_compared_with_each_other() {
        let mut clients = Clients::with(Latencies::default());
        for client in 0..5_000u64 {
            let number = (client << 8) + if client % 2 == 0 { HALF } else { 0 };
            let usual = 10_000 + client % 100 * 100;
            let us = if number < HALF { usual * 3 } else { usual };
            assert_eq!(clients.take(Note { took_us: Some(us), ..note(number) }, client / 10), None);
        }
        let mut judge = CanaryJudge::new(CanaryQuestion::default());
        let closed = clients.close(60_000);
        let found = closed.iter().position(|closed| {
            judge.take(&closed.outcome);
            assert_ne!(judge.judgement(), Judgement::NoHarm);
            judge.judgement() != Judgement::Undecided
        });
        assert!(closed.len() == 5_000 && found.is_some_and(|found| found < 800), "{found:?}");
    }

    #[test]
    fn a_request_that_never_ends_counts_before_its_client_gives_up() {
        let mut clients = Clients::with(Latencies::default());
        for client in 0..400u64 {
            clients.take(Note { took_us: Some(1_000 + client), ..note(HALF + client) }, 0);
        }
        assert_eq!(clients.close(10_000).len(), 400);
        let long = |number| NotePart::Long { number, us: 5_000_000 };
        assert_eq!(clients.take(Note { part: long(1), ..note(1_007) }, 25_000), None);
        assert_eq!(clients.take(Note { part: long(2), ..note(1_008) }, 25_000), None);
        assert_eq!(clients.close(29_999), []);
        // One has ended in time: its window waits for more requests.
        assert_eq!(clients.take(Note { took_us: Some(9_000_000), ..note(1_008) }, 29_000), None);
        assert_eq!(clients.take(Note { part: NotePart::Over(2), ..note(1_008) }, 29_000), None);
        let hung = clients.close(30_000);
        assert_eq!((hung.len(), hung[0].outcome.requests, hung[0].outcome.slow), (1, 1, [1; 3]));
        assert_eq!(clients.take(Note { took_us: Some(60_000_000), ..note(1_007) }, 80_000), None, "it was counted");
        assert_eq!(clients.close(80_000)[0].outcome.requests, 1);
    }

    #[test]
    fn a_request_that_is_as_long_as_others_keeps_its_window_open() {
        let mut clients = Clients::with(Latencies::default());
        for client in 0..400u64 {
            clients.take(Note { took_us: Some(25_000_000), ..note(HALF + client) }, 0);
        }
        clients.close(10_000);
        let polls = Note { part: NotePart::Long { number: 1, us: 5_000_000 }, ..note(1_007) };
        assert_eq!((clients.take(polls, 25_000), clients.close(44_000)), (None, vec![]));
        let failed = clients.take(Note { has_failed: true, ..note(1_007) }, 45_000);
        assert_eq!(failed.map(|closed| closed.outcome.failed), Some(1));
        assert_eq!(clients.take(Note { part: NotePart::Over(1), ..note(1_007) }, 45_000), None);
    }

    #[test]
    fn the_largest_client_is_found_among_many() {
        let mut clients = Clients::with(Latencies::default());
        for round in 0..10_000u64 {
            clients.take(note(if round % 5 == 0 { 1 } else { 1_000 + round }), 0);
        }
        assert!((0.1..=0.2).contains(&clients.largest()), "{}", clients.largest());
    }
}
