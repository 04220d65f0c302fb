//! The windows of clients: notes about requests become one outcome for each client. Pure: the time is an argument.
//!
//! A client has one window in a canary. It closes with the first failure, 60 s after its first request, or after 10 s without a
//! request. Invariant: whether a client has a window, and when the window closes, depends on its requests and not on its
//! configuration; so under "the new configuration changes nothing" only the coin is random.

use std::collections::HashMap;

use weir_http::hold::split::share_of;
use weir_judge::outcome::{ClientOutcome, QUANTILES};

use super::latencies::{self, Latencies};

/// The longest window.
const WINDOW_MS: u64 = 60_000;
/// A client that sends nothing for this time has left.
const IDLE_MS: u64 = 10_000;
/// Windows that are open at once, at most; further clients are skipped.
const OPEN_MAX: usize = 65_536;
/// Bits that remember clients: a client that shares its bit with an earlier one is skipped.
const SEEN_BITS: usize = 1 << 23;
/// Latencies of one client that the known ones take, at most.
const LATENCIES_MAX: usize = 64;
/// Clients whose requests are counted for the one with the most, at most.
const LARGE_MAX: usize = 64;
/// Requests before a client is called large.
const LARGE_FROM: u64 = 2_000;

/// One request of a client.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The client's number, by which the coin decided.
    pub client: u64,
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
    opened_ms: u64,
    last_ms: u64,
    limit: u64,
    outcome: ClientOutcome,
    latencies: Vec<u16>,
    /// A request had the other configuration than the coin says, or another coin.
    is_mixed: bool,
}

/// The clients of a canary.
pub struct Clients {
    open: HashMap<u64, Window>,
    seen: Vec<u64>,
    known: Latencies,
    /// Requests of the clients with the most (Misra and Gries 1982), and all requests.
    large: HashMap<u64, u64>,
    requests: u64,
    /// Clients that were not counted.
    pub skipped: u64,
}

impl Default for Clients {
    fn default() -> Clients {
        Clients {
            open: HashMap::new(),
            seen: vec![0; SEEN_BITS / 64],
            known: Latencies::default(),
            large: HashMap::new(),
            requests: 0,
            skipped: 0,
        }
    }
}

impl Clients {
    /// Takes a request; returns the outcome of a client whose window it closes.
    pub fn take(&mut self, note: Note, now_ms: u64) -> Option<ClientOutcome> {
        self.weigh(note.client);
        if !self.open.contains_key(&note.client) {
            if self.has_seen(note.client) {
                return None;
            }
            self.remember(note.client);
            if self.open.len() >= OPEN_MAX {
                self.skipped += 1;
                return None;
            }
            let outcome = ClientOutcome {
                is_new: note.client < note.limit,
                share: share_of(note.limit),
                requests: 0,
                failed: 0,
                refused: 0,
                resets: 0,
                ranks: 0.0,
                slow: [0; 3],
            };
            let window = Window {
                opened_ms: now_ms,
                last_ms: now_ms,
                limit: note.limit,
                outcome,
                latencies: Vec::new(),
                is_mixed: false,
            };
            self.open.insert(note.client, window);
        }
        let window = self.open.get_mut(&note.client)?;
        window.last_ms = now_ms;
        window.is_mixed |= note.is_new != window.outcome.is_new || note.limit != window.limit;
        let outcome = &mut window.outcome;
        outcome.failed += u32::from(note.has_failed);
        outcome.refused += u32::from(note.was_refused);
        outcome.resets += u32::from(note.was_reset);
        if let Some(us) = note.took_us {
            let place = latencies::place(us);
            outcome.requests += 1;
            outcome.ranks += self.known.rank(place);
            for (slow, is_slow) in outcome.slow.iter_mut().zip(self.known.is_slow(place)) {
                *slow += u32::from(is_slow);
            }
            if window.latencies.len() < LATENCIES_MAX {
                window.latencies.push(place);
            }
        }
        if note.has_failed || note.was_reset {
            let window = self.open.remove(&note.client)?;
            return self.closed(window);
        }
        None
    }

    /// Closes the windows whose time is over.
    pub fn close(&mut self, now_ms: u64) -> Vec<ClientOutcome> {
        let is_over = |window: &Window| {
            now_ms.saturating_sub(window.opened_ms) >= WINDOW_MS || now_ms.saturating_sub(window.last_ms) >= IDLE_MS
        };
        let mut over: Vec<Window> =
            self.open.extract_if(|_, window| is_over(window)).map(|(_, window)| window).collect();
        // A map has no order, and the judge believes that these came one after another.
        over.sort_by_key(|window| window.last_ms);
        over.into_iter().filter_map(|window| self.closed(window)).collect()
    }

    /// The share has changed: the clients of today had the coin of before, and are not counted.
    pub fn forget(&mut self) {
        self.skipped += self.open.len() as u64;
        self.open.clear();
    }

    /// The part of all requests that the client with the most sent, at least; 0 while there are few requests.
    pub fn largest(&self) -> f64 {
        let most = self.large.values().copied().max().unwrap_or_default();
        if self.requests < LARGE_FROM { 0.0 } else { most as f64 / self.requests as f64 }
    }

    fn closed(&mut self, window: Window) -> Option<ClientOutcome> {
        if window.is_mixed {
            self.skipped += 1;
            return None;
        }
        if !window.outcome.is_new {
            self.known.add(&window.latencies, QUANTILES);
        }
        Some(window.outcome)
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
    use super::*;

    const HALF: u64 = 1 << 63;

    fn note(client: u64) -> Note {
        let is_new = client < HALF;
        Note {
            client,
            limit: HALF,
            is_new,
            took_us: Some(1_000),
            has_failed: false,
            was_refused: false,
            was_reset: false,
        }
    }

    #[test]
    fn a_client_has_one_window_that_closes_when_it_leaves_or_after_a_minute() {
        let mut clients = Clients::default();
        assert_eq!(clients.take(note(1), 0), None);
        assert_eq!(clients.take(note(1), 5_000), None);
        assert_eq!(clients.close(14_999), []);
        let closed = clients.close(15_000);
        assert_eq!((closed.len(), closed[0].requests, closed[0].is_new, closed[0].share), (1, 2, true, 0.5));
        assert_eq!(clients.take(note(1), 20_000), None);
        assert_eq!(clients.close(99_999), [], "it was counted");
        (0..=6).for_each(|step| assert_eq!(clients.take(note(HALF), step * 9_000), None));
        assert_eq!(clients.close(60_000).len(), 1);
        assert_eq!(clients.skipped, 0);
    }

    #[test]
    fn a_failure_closes_the_window_at_once() {
        let mut clients = Clients::default();
        assert_eq!(clients.take(note(1), 0), None);
        let outcome = clients.take(Note { has_failed: true, ..note(1) }, 1);
        assert_eq!(outcome.map(|outcome| (outcome.requests, outcome.failed, outcome.resets)), Some((2, 1, 0)));
        assert_eq!(clients.take(Note { was_reset: true, ..note(1) }, 2), None, "a client counts once");
        let cut = clients.take(Note { was_reset: true, took_us: None, ..note(2) }, 2);
        assert_eq!(cut.map(|outcome| (outcome.requests, outcome.failed, outcome.resets)), Some((0, 0, 1)));
    }

    #[test]
    fn a_client_whose_configuration_changed_is_not_counted() {
        let mut clients = Clients::default();
        clients.take(note(1), 0);
        clients.take(Note { is_new: false, ..note(1) }, 1);
        assert_eq!((clients.close(20_000), clients.skipped), (vec![], 1));
        clients.take(note(2), 0);
        clients.forget();
        assert_eq!((clients.close(20_000), clients.skipped), (vec![], 2));
    }

    #[test]
    fn windows_have_a_bound_and_further_clients_are_skipped() {
        let mut clients = Clients::default();
        (0..OPEN_MAX as u64 + 3).for_each(|client| assert_eq!(clients.take(note(client), 0), None));
        assert_eq!((clients.open.len(), clients.skipped), (OPEN_MAX, 3));
        assert_eq!(clients.close(10_000).len(), OPEN_MAX);
    }

    #[test]
    fn slow_requests_are_those_beyond_the_old_ones() {
        let mut clients = Clients::default();
        for client in 0..400u64 {
            clients.take(Note { took_us: Some(1_000 + client), ..note(HALF + client) }, client);
        }
        clients.close(20_000);
        clients.take(Note { took_us: Some(50_000), ..note(1_000) }, 20_000);
        let outcome = &clients.close(40_000)[0];
        assert_eq!((outcome.ranks, outcome.slow), (1.0, [1; 3]));
    }

    #[test]
    fn the_largest_client_is_found_among_many() {
        let mut clients = Clients::default();
        for round in 0..10_000u64 {
            clients.take(note(if round % 5 == 0 { 1 } else { 1_000 + round }), 0);
        }
        assert!((0.1..=0.2).contains(&clients.largest()), "{}", clients.largest());
    }
}
