//! Notices that answers under one key differ by client (`reference/lab.md` B32).
//!
//! For each fill it gets the key, the client ([`identity`](crate::personal::identity)) and a hash of the body. A page
//! that changes with time differs for everybody. A personal page stays the same for one person and differs between
//! persons. So the detector waits until two persons got different bodies, and one of them then gets the same body
//! again.

/// The most watched keys; beyond it the detector drops the key not seen for longest. About 96 bytes each.
pub const KEYS_MAX: usize = 8192;
/// The most fills remembered for one key.
pub const FILLS_MAX: usize = 4;
/// How long a key counts as personal after its last fill, in milliseconds.
pub const KEPT_MS: i64 = 3_600_000;

/// Slots for a key.
const WAYS: usize = 4;

/// The result of noting a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// The answer may be shared.
    Nothing,
    /// This fill shows that bodies differ by person: log it, and remove the stored object.
    Diverges,
    /// This was known already: do not store the answer.
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
    /// The clients and the bodies they got, oldest first.
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
    /// Makes a detector for this many keys, rounded up, at most [`KEYS_MAX`]. It allocates the memory at once.
    pub fn new(keys: usize) -> Detector {
        let sets = keys.clamp(1, KEYS_MAX).div_ceil(WAYS);
        Detector { sets: vec![[Slot::default(); WAYS]; sets].into_boxed_slice() }
    }

    /// Notes a complete fill of a key (a well-distributed hash), at a time in milliseconds.
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

    /// Whether a key's answers were found to differ by person within the last [`KEPT_MS`].
    pub fn is_personal(&self, key: u64, now_ms: i64) -> bool {
        let found = self.set(key).and_then(|set| set.iter().find(|slot| slot.is(key)));
        found.is_some_and(|slot| slot.diverges && slot.is_kept(now_ms))
    }

    fn set(&self, key: u64) -> Option<&[Slot; WAYS]> {
        self.sets.get(key as usize % self.sets.len())
    }

    /// The key's slot, or one freed for it; `None` if all slots hold personal keys.
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

    /// Whether the last fill gave a person the same body again after another person got a different one.
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
            // All persons get the same body.
            (&[(1, 10), (2, 10), (1, 10)], Noticed::Nothing),
            // The page changes with time, for everybody.
            (&[(1, 10), (2, 20), (1, 30), (2, 40)], Noticed::Nothing),
            // The page changed and changed back while nobody else asked.
            (&[(1, 10), (1, 20), (1, 10)], Noticed::Nothing),
            // The page changed for the same person in between, so time may be the cause.
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
