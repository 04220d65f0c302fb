//! Files that stay open under their names: `open_file_cache`, `open_log_file_cache`.
//!
//! Invariant: no more names than the `max` of the last use, and the least recently used one goes first.

use std::hash::RandomState;
use std::time::Duration;

use lru::LruCache;

use crate::Instant;
use crate::opening::Guard;

/// Names that one use may drop because nobody used them for `inactive`, as in nginx.
const DROPPED_AT_ONCE: usize = 2;

/// How long files stay open, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most names; at least one is kept.
    pub max: usize,
    /// A name that is not used for this time is dropped.
    pub inactive: Duration,
    /// So often a name is used within `inactive` before its file stays open.
    pub min_uses: u64,
    /// After this time a file is opened again, because its name may belong to another file.
    pub valid: Duration,
}

/// Files that were opened, or the result of opening them.
pub struct OpenFiles<F> {
    known: LruCache<Vec<u8>, Known<F>, RandomState>,
}

struct Known<F> {
    /// `None` while the name is not used often enough.
    file: Option<F>,
    guard: Guard,
    uses: u64,
    opened: Instant,
    used: Instant,
}

impl<F> Default for OpenFiles<F> {
    fn default() -> OpenFiles<F> {
        OpenFiles { known: LruCache::unbounded_with_hasher(RandomState::new()) }
    }
}

impl<F: Clone> OpenFiles<F> {
    /// The file of this name. `open` opens it if weir does not hold it, and gets the file that weir held longer than `valid`:
    /// it may still be the right one.
    ///
    /// # Errors
    /// Those of `open`. The name is not known then.
    pub fn get<E>(
        &mut self,
        name: &[u8],
        guard: Guard,
        limits: &Limits,
        now: Instant,
        open: impl FnOnce(Option<&F>) -> Result<F, E>,
    ) -> Result<F, E> {
        self.drop_unused(limits.inactive, now);
        let Some(known) = self.known.get_mut(name) else {
            let file = open(None)?;
            self.make_room(limits.max);
            let kept = (limits.min_uses <= 1).then(|| file.clone());
            self.known.put(name.to_vec(), Known { file: kept, guard, uses: 1, opened: now, used: now });
            return Ok(file);
        };
        known.uses += 1;
        known.used = now;
        let held = known.file.as_ref().filter(|_| known.guard == guard);
        if let Some(file) = held
            && now.saturating_duration_since(known.opened) < limits.valid
        {
            return Ok(file.clone());
        }
        match open(held) {
            Ok(file) => {
                known.file = (known.uses >= limits.min_uses).then(|| file.clone());
                (known.guard, known.opened) = (guard, now);
                Ok(file)
            }
            Err(error) => {
                self.known.pop(name);
                Err(error)
            }
        }
    }

    /// Closes all files; `false` if there are none.
    pub fn clear(&mut self) -> bool {
        let had_some = !self.known.is_empty();
        self.known.clear();
        had_some
    }

    fn drop_unused(&mut self, inactive: Duration, now: Instant) {
        for _ in 0..DROPPED_AT_ONCE {
            match self.known.peek_lru() {
                Some((_, last)) if now.saturating_duration_since(last.used) >= inactive => self.known.pop_lru(),
                Some(_) | None => return,
            };
        }
    }

    /// Drops the least recently used names until one more fits.
    fn make_room(&mut self, max: usize) {
        while self.known.len() >= max.max(1) {
            self.known.pop_lru();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::rc::Rc;

    const LIMITS: Limits =
        Limits { max: 2, inactive: Duration::from_secs(10), min_uses: 1, valid: Duration::from_secs(5) };

    /// Files with the number of their opening.
    #[derive(Default)]
    struct Disk {
        files: OpenFiles<Rc<u32>>,
        opened: u32,
    }

    impl Disk {
        fn get(&mut self, name: &str, limits: &Limits, now: Instant) -> u32 {
            let opened = &mut self.opened;
            let open = |_: Option<&Rc<u32>>| {
                *opened += 1;
                Ok::<_, Infallible>(Rc::new(*opened))
            };
            match self.files.get(name.as_bytes(), None, limits, now, open) {
                Ok(file) => *file,
            }
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::FIRST + Duration::from_secs(seconds)
    }

    #[test]
    fn a_file_is_opened_again_when_it_is_no_longer_valid_or_was_not_used() {
        let mut disk = Disk::default();
        let opened = [0, 4, 5, 9, 10, 19, 29].map(|second| disk.get("a", &LIMITS, at(second)));
        assert_eq!(opened, [1, 1, 2, 2, 3, 4, 5]);
        let lasting = Limits { valid: Duration::from_secs(1000), ..LIMITS };
        let opened = [29, 38, 47, 57].map(|second| disk.get("a", &lasting, at(second)));
        assert_eq!(opened, [5, 5, 5, 6], "nobody used it for ten seconds");
    }

    #[test]
    fn the_least_recently_used_name_makes_room() {
        let mut disk = Disk::default();
        let opened = ["a", "b", "a", "c", "a", "b"].map(|name| disk.get(name, &LIMITS, at(0)));
        assert_eq!(opened, [1, 2, 1, 3, 1, 4]);
        assert!(disk.files.clear() && !disk.files.clear());
        assert_eq!(disk.get("a", &LIMITS, at(0)), 5);
    }

    #[test]
    fn a_file_stays_open_after_enough_uses() {
        let mut disk = Disk::default();
        let seldom = Limits { min_uses: 3, ..LIMITS };
        let opened = [0, 1, 2, 3].map(|second| disk.get("a", &seldom, at(second)));
        assert_eq!(opened, [1, 2, 3, 3]);
    }

    #[test]
    fn a_held_file_is_offered_unless_its_links_were_checked_in_another_way() {
        use crate::path::Links;
        let mut files = OpenFiles::default();
        let guard = Some((Links::Refused, 0));
        let offered = [(0, None), (6, None), (6, guard), (12, guard)].map(|(second, guard)| {
            let mut seen = None;
            let file = files.get(b"a", guard, &LIMITS, at(second), |held: Option<&u32>| {
                seen = held.copied();
                Ok::<_, Infallible>(1)
            });
            assert_eq!(file, Ok(1));
            seen
        });
        assert_eq!(offered, [None, Some(1), None, Some(1)]);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_forgotten() {
        let mut files = OpenFiles::default();
        assert_eq!(files.get(b"a", None, &LIMITS, at(0), |_| Ok::<_, ()>(1)), Ok(1));
        assert_eq!(files.get(b"a", None, &LIMITS, at(6), |_| Err::<u32, _>("gone")), Err("gone"));
        assert!(!files.clear());
    }
}
