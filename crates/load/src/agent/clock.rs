//! The offset of the controller's clock, measured over the network. The exchange with the shortest round trip counts.

use std::time::{Duration, UNIX_EPOCH};

use weir_net::{Instant, clock};

/// Number of exchanges.
const EXCHANGES: u64 = 8;
/// Longest time to wait for an answer; then the agent asks again.
const PATIENCE: Duration = Duration::from_millis(500);

/// Microseconds since 1970 by this machine's clock.
pub fn now_us() -> i64 {
    let since = clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The agent's side.
#[derive(Debug, Default)]
pub struct Offset {
    asked: u64,
    waiting: Option<(Instant, i64)>,
    answered: u64,
    /// Round trip and the controller's lead over this clock, both in µs.
    best: Option<(i64, i64)>,
}

impl Offset {
    /// True after enough exchanges.
    pub fn is_known(&self) -> bool {
        self.answered >= EXCHANGES
    }

    /// The number of the next question, if it is time to ask. Both times are the current time.
    pub fn ask(&mut self, now: Instant, now_us: i64) -> Option<u64> {
        let waits = self.waiting.is_some_and(|(sent, _)| now.saturating_duration_since(sent) < PATIENCE);
        if self.is_known() || waits {
            return None;
        }
        self.asked += 1;
        self.waiting = Some((now, now_us));
        Some(self.asked)
    }

    /// Takes an answer: the controller's time, in µs.
    pub fn answer(&mut self, number: u64, theirs_us: i64, now: Instant) {
        let Some((sent, sent_us)) = self.waiting.filter(|_| number == self.asked) else { return };
        self.waiting = None;
        self.answered += 1;
        let trip = i64::try_from(now.saturating_duration_since(sent).as_micros()).unwrap_or(i64::MAX);
        let ahead = theirs_us.saturating_sub(sent_us.saturating_add(trip / 2));
        if self.best.is_none_or(|(best, _)| trip < best) {
            self.best = Some((trip, ahead));
        }
    }

    /// The controller's lead over this clock, µs.
    pub fn ahead_us(&self) -> i64 {
        self.best.map_or(0, |(_, ahead)| ahead)
    }

    /// The largest possible error of [`Offset::ahead_us`], µs.
    pub fn error_us(&self) -> i64 {
        self.best.map_or(0, |(trip, _)| trip / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_exchange_counts() {
        let start = clock::precise();
        let mut offset = Offset::default();
        let mut now = start;
        // The controller is 5 s ahead. Round trips take longer and longer, and all of the time is in one direction.
        for trip in [40_u64, 4, 400, 30, 20, 10, 90, 80] {
            let us = i64::try_from((now - start).as_micros()).unwrap();
            let number = offset.ask(now, us).unwrap();
            assert_eq!(offset.ask(now, us), None, "one at a time");
            now = now + Duration::from_millis(trip);
            offset.answer(number + 1, 0, now);
            offset.answer(number, us + 5_000_000 + i64::try_from(trip).unwrap() * 1000, now);
        }
        assert!(offset.is_known() && offset.ask(now + PATIENCE, 0).is_none());
        assert_eq!((offset.ahead_us(), offset.error_us()), (5_002_000, 2_000));
    }

    #[test]
    fn a_lost_answer_is_asked_for_again() {
        let start = clock::precise();
        let mut offset = Offset::default();
        assert_eq!(offset.ask(start, 0), Some(1));
        assert_eq!(offset.ask(start + PATIENCE / 2, 0), None);
        assert_eq!(offset.ask(start + PATIENCE, 0), Some(2));
        offset.answer(1, 99, start + PATIENCE);
        assert_eq!((offset.ahead_us(), offset.is_known()), (0, false));
    }
}
