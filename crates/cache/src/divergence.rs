//! Notices that answers under one key differ by who asks (`reference/lab.md` B32).
//!
//! Of each fill it is told the key, who asked ([`identity`](crate::personal::identity)) and a hash of the body. A
//! page that changes with time differs for everybody; a page that is somebody's comes back the same to the same person
//! and differently to another. So two persons must have had different bodies, and one of them the same body again after
//! the other's.

/// Keys that are watched; beyond them the ones not seen for longest are forgotten. About 96 bytes each.
pub const KEYS_MAX: usize = 8192;
/// Fills of one key that are remembered.
pub const FILLS_MAX: usize = 4;
/// A key that was found to differ stays so for this long after its last fill, in milliseconds.
pub const KEPT_MS: i64 = 3_600_000;

/// Slots that a key may be in.
const WAYS: usize = 4;

/// What was noticed by a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// Nothing that would keep the answer from being shared.
    Nothing,
    /// Now it is known that bodies differ by person: to be logged, and what is stored to be removed.
    Diverges,
    /// It was known already: not to be stored.
    Known,
}

/// The memory of fills; one for each zone.
pub struct Detector {
    sets: Box<[[Slot; WAYS]]>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: u64,
    seen_ms: i64,
    /// Who asked and what came, oldest first.
    fills: [(u64, u64); FILLS_MAX],
    count: u8,
    diverges: bool,
}

impl Default for Detector {
    fn default() -> Self {
        Detector::new(KEYS_MAX)
    }
}

impl Detector {
    /// Watches so many keys, rounded up; never more than [`KEYS_MAX`]. The memory is taken at once.
    pub fn new(keys: usize) -> Detector {
        let sets = keys.clamp(1, KEYS_MAX).div_ceil(WAYS);
        Detector { sets: vec![[Slot::default(); WAYS]; sets].into_boxed_slice() }
    }

    /// Notes a complete fill of a key (a hash that is spread well) at a time in milliseconds.
    pub fn note(&mut self, key: u64, person: u64, body: u64, now_ms: i64) -> Noticed {
        let Some(slot) = self.slot(key, now_ms) else { return Noticed::Nothing };
        slot.seen_ms = now_ms;
        if slot.diverges {
            return Noticed::Known;
        }
        slot.push(person, body);
        slot.diverges = slot.differs_by_person();
        if slot.diverges { Noticed::Diverges } else { Noticed::Nothing }
    }

    /// Whether a key's answers were found to differ by person, not longer than [`KEPT_MS`] ago.
    pub fn is_personal(&self, key: u64, now_ms: i64) -> bool {
        let found = self.set(key).and_then(|set| set.iter().find(|slot| slot.is(key)));
        found.is_some_and(|slot| slot.diverges && slot.is_kept(now_ms))
    }

    fn set(&self, key: u64) -> Option<&[Slot; WAYS]> {
        self.sets.get(key as usize % self.sets.len())
    }

    /// The key's slot, or one made free for it; `None` when all hold keys that differ.
    fn slot(&mut self, key: u64, now_ms: i64) -> Option<&mut Slot> {
        let index = key as usize % self.sets.len();
        let set = self.sets.get_mut(index)?;
        for slot in set.iter_mut() {
            if !slot.is_kept(now_ms) {
                *slot = Slot::default();
            }
        }
        if let Some(at) = set.iter().position(|slot| slot.is(key)) {
            return set.get_mut(at);
        }
        let oldest = set.iter_mut().filter(|slot| !slot.diverges).min_by_key(|slot| (slot.count > 0, slot.seen_ms))?;
        *oldest = Slot { key, ..Slot::default() };
        Some(oldest)
    }
}

impl Slot {
    fn is(&self, key: u64) -> bool {
        self.key == key && (self.count > 0)
    }

    fn is_kept(&self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.seen_ms) < KEPT_MS
    }

    fn push(&mut self, person: u64, body: u64) {
        if usize::from(self.count) == FILLS_MAX {
            self.fills.rotate_left(1);
        } else {
            self.count += 1;
        }
        if let Some(last) = self.fills.get_mut(usize::from(self.count) - 1) {
            *last = (person, body);
        }
    }

    /// Whether the last fill gave somebody the same body again after another person had a different one.
    fn differs_by_person(&self) -> bool {
        let fills = self.fills.get(..usize::from(self.count)).unwrap_or_default();
        let Some(((person, body), before)) = fills.split_last() else { return false };
        let Some(first) = before.iter().position(|fill| fill == &(*person, *body)) else { return false };
        let between = before.get(first + 1..).unwrap_or_default();
        between.iter().any(|(other, theirs)| other != person && theirs != body)
            && between.iter().all(|(other, theirs)| other != person || theirs == body)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn noted(fills: &[(u64, u64)]) -> Noticed {
        let mut detector = Detector::default();
        let mut last = Noticed::Nothing;
        for (at, (person, body)) in fills.iter().enumerate() {
            last = detector.note(7, *person, *body, at as i64);
        }
        last
    }

    #[test]
    fn a_body_that_comes_back_to_one_and_not_to_another_is_personal() {
        for (fills, expected) in [
            (&[(1, 10), (2, 20), (1, 10)][..], Noticed::Diverges),
            (&[(0, 10), (2, 20), (0, 10)], Noticed::Diverges),
            (&[(1, 10), (2, 20), (3, 30), (1, 10)], Noticed::Diverges),
            (&[(1, 10), (2, 20), (1, 10), (5, 5)], Noticed::Known),
            // The same for all.
            (&[(1, 10), (2, 10), (1, 10)], Noticed::Nothing),
            // It changes with time, for everybody.
            (&[(1, 10), (2, 20), (1, 30), (2, 40)], Noticed::Nothing),
            // It changed and changed back while nobody else asked.
            (&[(1, 10), (1, 20), (1, 10)], Noticed::Nothing),
            // It changed for the same person in between, so time may be the cause.
            (&[(1, 10), (2, 20), (1, 20), (1, 10)], Noticed::Nothing),
            (&[(1, 10), (2, 20)], Noticed::Nothing),
        ] {
            assert_eq!(noted(fills), expected, "{fills:?}");
        }
    }

    #[test]
    fn what_was_found_is_remembered_for_its_time() {
        let mut detector = Detector::default();
        for (person, body) in [(1, 10), (2, 20), (1, 10)] {
            detector.note(7, person, body, 1000);
        }
        assert!(detector.is_personal(7, 1000) && !detector.is_personal(8, 1000));
        assert!(detector.is_personal(7, 1000 + KEPT_MS - 1) && !detector.is_personal(7, 1000 + KEPT_MS));
        assert_eq!(detector.note(7, 1, 10, 1000 + KEPT_MS), Noticed::Nothing, "a new beginning");
    }

    #[test]
    fn many_keys_push_out_others_but_none_that_differs() {
        let mut detector = Detector::new(WAYS);
        for (person, body) in [(1, 10), (2, 20), (1, 10)] {
            detector.note(7, person, body, 0);
        }
        for key in 100..1000 {
            detector.note(key, 1, 10, 1);
        }
        assert!(detector.is_personal(7, 1));
        assert_eq!(detector.sets.len() * WAYS, WAYS);
    }

    proptest! {
        #[test]
        fn one_person_alone_never_differs(bodies: Vec<u64>, keys in 1..9_u64) {
            let mut detector = Detector::new(8);
            for (at, body) in bodies.iter().enumerate() {
                prop_assert_eq!(detector.note(body % keys, 1, *body, at as i64), Noticed::Nothing);
            }
        }
    }
}
