//! A hierarchical timer wheel over slots: pure, counted in milliseconds.
//!
//! Six levels of 64 slots; level `n` has slots of 64^n ms, so the wheel reaches a year ahead and anything later waits
//! in the last slot and is checked again. Every entry stores the moment when it is *wanted*; its place in the wheel
//! may be earlier. Invariant: a linked entry never sits later than it is wanted.

use crate::slots::{SlotKey, Slots};

/// The moment that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

const LEVELS: usize = 6;
const SLOTS: usize = 64;
const BITS: u32 = 6;
/// The farthest place of an entry: half of the wheel, so that the wheel never overtakes itself. Later entries are
/// inserted again on the way.
const SPAN_MS: u64 = 1 << (BITS * LEVELS as u32 - 1);
const NIL: u32 = u32::MAX;

/// One timer: the moment it is wanted, and its place in the wheel.
pub(crate) struct TimerEntry {
    /// When to fire, in ms of the worker's clock; [`NEVER`] if it should not fire.
    wanted: u64,
    /// The moment of its place in the wheel; [`NEVER`] if it is not.
    linked: u64,
    /// The task to wake.
    task: SlotKey,
    prev: u32,
    next: u32,
    level: u8,
    slot: u8,
}

/// All timers of a worker.
pub(crate) struct Wheel {
    entries: Slots<TimerEntry>,
    heads: [[u32; SLOTS]; LEVELS],
    occupied: [u64; LEVELS],
    /// Everything linked before this has been fired.
    now: u64,
}

impl Wheel {
    pub(crate) const fn new() -> Wheel {
        Wheel { entries: Slots::new(), heads: [[NIL; SLOTS]; LEVELS], occupied: [0; LEVELS], now: 0 }
    }

    /// Bytes per timer.
    #[cfg(test)]
    pub(crate) const fn entry_bytes() -> usize {
        Slots::<TimerEntry>::slot_bytes()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A new timer that is never wanted and has no place in the wheel.
    pub(crate) fn add(&mut self) -> SlotKey {
        self.entries.insert(TimerEntry {
            wanted: NEVER,
            linked: NEVER,
            task: SlotKey::NONE,
            prev: NIL,
            next: NIL,
            level: 0,
            slot: 0,
        })
    }

    /// Forgets a timer; constant time.
    pub(crate) fn remove(&mut self, key: SlotKey) {
        self.unlink(key);
        self.entries.remove(key);
    }

    /// Sets the moment when the timer is wanted. This is only a store, unless a task already waits for a later moment.
    #[inline]
    pub(crate) fn want(&mut self, key: SlotKey, at: u64) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.wanted = at;
        if at < entry.linked && entry.task != SlotKey::NONE {
            self.relink(key);
        }
    }

    /// When the timer is wanted.
    pub(crate) fn wanted(&self, key: SlotKey) -> u64 {
        self.entries.get(key).map_or(NEVER, |entry| entry.wanted)
    }

    /// True if the moment has come; otherwise `task` will be woken when it does.
    #[inline]
    pub(crate) fn poll(&mut self, key: SlotKey, now: u64, task: SlotKey) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        if entry.wanted <= now {
            return true;
        }
        entry.task = task;
        if entry.wanted < entry.linked {
            self.relink(key);
        }
        false
    }

    /// Sets the moment when the timer is wanted, and polls it.
    #[inline]
    pub(crate) fn want_and_poll(&mut self, key: SlotKey, at: u64, now: u64, task: SlotKey) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        entry.wanted = at;
        entry.task = task;
        if at < entry.linked {
            self.relink(key);
        }
        at <= now
    }

    /// Moves the wheel to `now` and passes on every task whose timer is due.
    pub(crate) fn advance(&mut self, now: u64, mut wake: impl FnMut(SlotKey)) {
        while let Some((level, slot, start)) = self.first() {
            if start > now {
                break;
            }
            self.now = self.now.max(start);
            self.empty_slot(level, slot, now, &mut wake);
        }
        self.now = self.now.max(now);
    }

    /// The next moment at which [`Wheel::advance`] has something to do.
    pub(crate) fn next(&self) -> Option<u64> {
        self.first().map(|(_, _, start)| start)
    }

    /// The occupied slot that starts first, the lower level on a tie.
    fn first(&self) -> Option<(usize, usize, u64)> {
        let mut best: Option<(usize, usize, u64)> = None;
        for level in 0..LEVELS {
            if let Some((slot, start)) = self.first_of(level)
                && best.is_none_or(|(_, _, least)| start < least)
            {
                best = Some((level, slot, start));
            }
        }
        best
    }

    fn first_of(&self, level: usize) -> Option<(usize, u64)> {
        let occupied = self.occupied.get(level).copied().filter(|&bits| bits != 0)?;
        let shift = BITS * level as u32;
        let here = (self.now >> shift) as u32 & (SLOTS as u32 - 1);
        let ahead = occupied.rotate_right(here).trailing_zeros();
        let slot = (here + ahead) as usize % SLOTS;
        let start = ((self.now >> shift) + u64::from(ahead)) << shift;
        Some((slot, start))
    }

    /// Fires or re-inserts everything in a slot. An entry that is wanted later (its owner stored a later moment, or
    /// it was on a coarse level) moves on.
    fn empty_slot(&mut self, level: usize, slot: usize, now: u64, wake: &mut impl FnMut(SlotKey)) {
        let mut at = std::mem::replace(&mut self.heads[level][slot], NIL);
        self.occupied[level] &= !(1 << slot);
        while let Some((key, entry)) = self.entries.at_mut(at) {
            at = entry.next;
            entry.linked = NEVER;
            entry.prev = NIL;
            entry.next = NIL;
            if entry.wanted <= now {
                let task = std::mem::replace(&mut entry.task, SlotKey::NONE);
                wake(task);
            } else if entry.wanted != NEVER {
                self.link(key);
            }
        }
    }

    fn relink(&mut self, key: SlotKey) {
        self.unlink(key);
        self.link(key);
    }

    fn link(&mut self, key: SlotKey) {
        let now = self.now;
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let at = entry.wanted.clamp(now, now.saturating_add(SPAN_MS));
        // The highest bit in which the moment differs from `now` chooses the level: within a level, the slot's number
        // alone gives the order.
        let differs = (at ^ now) | (SLOTS as u64 - 1);
        let level = ((63 - differs.leading_zeros()) / BITS).min(LEVELS as u32 - 1) as usize;
        let slot = (at >> (BITS * level as u32)) as usize % SLOTS;
        let head = std::mem::replace(&mut self.heads[level][slot], key.index);
        entry.linked = at;
        entry.level = level as u8;
        entry.slot = slot as u8;
        entry.prev = NIL;
        entry.next = head;
        if let Some((_, old)) = self.entries.at_mut(head) {
            old.prev = key.index;
        }
        self.occupied[level] |= 1 << slot;
    }

    fn unlink(&mut self, key: SlotKey) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.linked == NEVER {
            return;
        }
        let (prev, next) = (entry.prev, entry.next);
        let (level, slot) = (usize::from(entry.level), usize::from(entry.slot));
        entry.linked = NEVER;
        entry.prev = NIL;
        entry.next = NIL;
        if let Some((_, after)) = self.entries.at_mut(next) {
            after.prev = prev;
        }
        match self.entries.at_mut(prev) {
            Some((_, before)) => before.next = next,
            None => self.heads[level][slot] = next,
        }
        if self.heads[level][slot] == NIL {
            self.occupied[level] &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that distinguish tasks in these tests.
    fn task(n: u32) -> SlotKey {
        SlotKey::unpack(u64::from(n))
    }

    fn fired(wheel: &mut Wheel, now: u64) -> Vec<u32> {
        let mut woken = Vec::new();
        wheel.advance(now, |key| woken.push(key.index));
        woken
    }

    #[test]
    fn fires_in_order_at_every_level() {
        let mut wheel = Wheel::new();
        wheel.advance(1_000_003, |_| ());
        let now = 1_000_003;
        let after = [0, 1, 63, 64, 65, 4095, 4096, 75_000, 3_600_000, 40_000_000_000];
        for (n, ms) in after.iter().enumerate() {
            let key = wheel.add();
            wheel.want(key, now + ms);
            wheel.poll(key, now.saturating_sub(1), task(n as u32));
        }
        for (n, ms) in after.iter().enumerate() {
            if *ms > 0 {
                assert_eq!(fired(&mut wheel, now + ms - 1), [0u32; 0], "{ms}");
            }
            assert_eq!(fired(&mut wheel, now + ms), [n as u32], "{ms}");
        }
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_jump_fires_everything_once() {
        let mut wheel = Wheel::new();
        for n in 0..1000u32 {
            let key = wheel.add();
            wheel.want(key, u64::from(n) * 97 + 1);
            assert!(!wheel.poll(key, 0, task(n)));
        }
        let mut woken = fired(&mut wheel, 50_000);
        woken.extend(fired(&mut wheel, 1_000_000));
        woken.sort_unstable();
        assert_eq!(woken, (0..1000).collect::<Vec<_>>());
        assert_eq!(fired(&mut wheel, 2_000_000), [0u32; 0]);
    }

    #[test]
    fn a_later_wish_is_only_a_store_and_is_kept() {
        let mut wheel = Wheel::new();
        let key = wheel.add();
        wheel.want(key, 100);
        assert!(!wheel.poll(key, 0, task(1)));
        wheel.want(key, 5000);
        assert_eq!(wheel.next(), Some(64), "still where it was");
        assert_eq!(fired(&mut wheel, 4999), [0u32; 0]);
        assert_eq!(fired(&mut wheel, 5000), [1]);
    }

    #[test]
    fn an_earlier_wish_moves_a_waiting_timer() {
        let mut wheel = Wheel::new();
        let key = wheel.add();
        wheel.want(key, 75_000);
        assert!(!wheel.poll(key, 0, task(1)));
        wheel.want(key, 10);
        assert_eq!(fired(&mut wheel, 10), [1]);
        assert!(wheel.poll(key, 10, task(1)));
    }

    #[test]
    fn never_and_removed_do_not_fire() {
        let mut wheel = Wheel::new();
        let (a, b, c) = (wheel.add(), wheel.add(), wheel.add());
        for (n, key) in [a, b, c].into_iter().enumerate() {
            wheel.want(key, 100);
            wheel.poll(key, 0, task(n as u32));
        }
        wheel.want(a, NEVER);
        wheel.remove(b);
        assert_eq!(fired(&mut wheel, 1000), [2]);
        assert_eq!(wheel.len(), 2);
        assert!(!wheel.poll(a, 2000, task(0)));
        assert_eq!(wheel.wanted(b), NEVER);
    }

    #[test]
    fn next_never_lies_in_the_past_of_a_wish() {
        let mut wheel = Wheel::new();
        let mut seed = 1u64;
        let mut now = 0;
        for n in 0..2000u32 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let key = wheel.add();
            wheel.want(key, now + 1 + (seed >> 33) % 100_000);
            wheel.poll(key, now, task(n));
            if n % 3 == 0 {
                let next = wheel.next();
                assert!(next.is_some_and(|next| next <= wheel.wanted(key)));
                now += (seed >> 40) % 200;
                wheel.advance(now, |_| ());
            }
        }
        let mut left = 0;
        while let Some(next) = wheel.next() {
            wheel.advance(next, |_| left += 1);
        }
        assert!(left > 0);
    }
}
