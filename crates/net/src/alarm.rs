//! Moments with nanosecond resolution and the tasks that wait for them, in order. Pure.
//!
//! The timer wheel counts milliseconds, which suits the deadlines of connections: there are thousands, they move all
//! the time, and hardly any is reached. An alarm is different: a task sets it once, it is nearly always reached, and it
//! must wake the task on time. The alarms are in an ordered map: each alarm costs a search, and a turn without alarms
//! only checks that the map is empty. Invariant: there is one entry for each alarm that a task waits for, so there are
//! never more alarms than waiting tasks.

use crate::slots::SlotKey;
use std::collections::BTreeMap;

/// All alarms of a worker.
pub(crate) struct Alarms {
    /// From moment and number to the task to wake.
    waiting: BTreeMap<(u64, u64), SlotKey>,
    /// The number of the next alarm: alarms of the same moment ring in the order in which they were set.
    number: u64,
}

impl Alarms {
    pub(crate) const fn new() -> Alarms {
        Alarms { waiting: BTreeMap::new(), number: 0 }
    }

    /// A new alarm at `at_ns`; returns its number, for [`Alarms::remove`].
    pub(crate) fn add(&mut self, at_ns: u64, task: SlotKey) -> u64 {
        let number = self.number;
        self.number += 1;
        self.waiting.insert((at_ns, number), task);
        number
    }

    /// Makes the alarm wake the task that polled it last.
    pub(crate) fn pass_on(&mut self, at_ns: u64, number: u64, task: SlotKey) {
        if let Some(waits) = self.waiting.get_mut(&(at_ns, number)) {
            *waits = task;
        }
    }

    /// Forgets an alarm; nothing if it rang.
    pub(crate) fn remove(&mut self, at_ns: u64, number: u64) {
        self.waiting.remove(&(at_ns, number));
    }

    /// The next moment.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|(&(at_ns, _), _)| at_ns)
    }

    /// Takes out one alarm that is due.
    #[inline]
    pub(crate) fn ring(&mut self, now_ns: u64) -> Option<SlotKey> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now_ns).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(n: u32) -> SlotKey {
        SlotKey::unpack(u64::from(n))
    }

    fn rung(alarms: &mut Alarms, now_ns: u64) -> Vec<u32> {
        std::iter::from_fn(|| alarms.ring(now_ns)).map(|key| key.index).collect()
    }

    #[test]
    fn they_ring_once_in_order_and_never_early() {
        let mut alarms = Alarms::new();
        for (n, at_ns) in [30, 10, 20, 10].into_iter().enumerate() {
            alarms.add(at_ns, task(n as u32));
        }
        assert_eq!(alarms.next(), Some(10));
        assert_eq!(rung(&mut alarms, 9), [0u32; 0]);
        assert_eq!(rung(&mut alarms, 10), [1, 3]);
        assert_eq!(rung(&mut alarms, 29), [2]);
        assert_eq!(alarms.next(), Some(30));
        assert_eq!(rung(&mut alarms, u64::MAX), [0]);
        assert_eq!(alarms.next(), None);
    }

    #[test]
    fn what_is_removed_does_not_ring_and_the_last_to_ask_is_woken() {
        let mut alarms = Alarms::new();
        let (gone, kept) = (alarms.add(10, task(1)), alarms.add(10, task(2)));
        alarms.remove(10, gone);
        alarms.pass_on(10, kept, task(3));
        // The alarm rang, is removed, and is passed on: this does not change another alarm of the same moment.
        assert_eq!(rung(&mut alarms, 10), [3]);
        alarms.pass_on(10, kept, task(4));
        let other = alarms.add(10, task(5));
        alarms.remove(10, kept);
        assert_ne!(other, kept);
        assert_eq!(rung(&mut alarms, 10), [5]);
    }
}
