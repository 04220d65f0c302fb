//! The moments at which the connections of a port want to be looked at.
//!
//! A connection's moment changes with nearly every packet, and is hardly ever reached. So a moment that moves back stays in
//! the heap as it is: when it comes, the connection is asked again. Invariant: the heap has at most [`ENTRIES_EACH`]
//! entries for each connection on average, because an earlier moment is entered only if it is earlier by [`GRAIN`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// A moment that is earlier by less than this is not entered again: the wheel of a worker counts milliseconds.
const GRAIN: Duration = Duration::from_millis(1);

/// Entries for each connection, after which the heap is made anew.
const ENTRIES_EACH: usize = 4;

/// The moments of the connections of one port.
#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The moment that is in the heap and counts, by the number of the connection.
    entered: Vec<Option<Instant>>,
    live: usize,
}

impl Timers {
    /// Notes when a connection wants to be looked at; `None`: never.
    pub fn want(&mut self, number: usize, at: Option<Instant>) {
        if self.entered.len() <= number {
            self.entered.resize(number + 1, None);
        }
        let Some(at) = at else { return };
        let Some(entered) = self.entered.get_mut(number) else { return };
        if entered.is_some_and(|entered| entered <= at + GRAIN) {
            return;
        }
        self.live += usize::from(entered.is_none());
        *entered = Some(at);
        self.heap.push(Reverse((at, number)));
        if self.heap.len() > 64 && self.heap.len() > self.live * ENTRIES_EACH {
            let entered = &self.entered;
            self.heap.retain(|Reverse((at, number))| entered.get(*number).is_some_and(|counts| *counts == Some(*at)));
        }
    }

    /// Forgets a connection that has ended.
    pub fn forget(&mut self, number: usize) {
        if let Some(entered) = self.entered.get_mut(number) {
            self.live -= usize::from(entered.take().is_some());
        }
    }

    /// Takes out a connection whose moment has come.
    pub fn due(&mut self, now: Instant) -> Option<usize> {
        while let Some(&Reverse((at, number))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            // Other entries of this connection do not count any more.
            if self.entered.get(number).is_some_and(|counts| *counts == Some(at)) {
                self.forget(number);
                return Some(number);
            }
        }
        None
    }

    /// The next moment.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]
    use super::*;

    fn at(base: Instant, ms: u64) -> Option<Instant> {
        Some(base + Duration::from_millis(ms))
    }

    #[test]
    fn a_connection_is_due_once_at_its_earliest_moment() {
        let base = Instant::now();
        let mut timers = Timers::default();
        timers.want(0, at(base, 50));
        timers.want(1, at(base, 20));
        timers.want(0, at(base, 10));
        assert_eq!(timers.due(base), None);
        assert_eq!(timers.next(), at(base, 10));
        let late = base + Duration::from_millis(100);
        assert_eq!([timers.due(late), timers.due(late), timers.due(late)], [Some(0), Some(1), None]);
    }

    #[test]
    fn a_later_moment_stays_where_it_was_and_none_is_entered_after_the_end() {
        let base = Instant::now();
        let mut timers = Timers::default();
        timers.want(3, at(base, 10));
        timers.want(3, at(base, 90));
        assert_eq!(timers.due(base + Duration::from_millis(10)), Some(3));
        timers.want(3, at(base, 90));
        timers.forget(3);
        assert_eq!(timers.due(base + Duration::from_millis(100)), None);
    }

    #[test]
    fn moments_that_come_ever_earlier_do_not_fill_the_heap() {
        let base = Instant::now();
        let mut timers = Timers::default();
        for ms in (0..100_000).rev() {
            timers.want(7, at(base, 2 * ms));
        }
        assert!(timers.heap.len() <= 65, "{}", timers.heap.len());
    }
}
