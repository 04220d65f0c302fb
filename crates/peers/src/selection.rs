//! The state of one exchange between its attempts: the peers it tried, the tries left, and the position of its hash.
//!
//! Invariant: at most one peer is held at a time, and a held peer is given back exactly once, through
//! `Group::release`.

/// Bits in one machine word of the tried set; groups up to this size need no allocation per exchange.
const WORD_BITS: usize = 64;

/// The misses that a hashing or random policy allows per exchange before round robin takes over; the number is
/// nginx's.
const MAX_MISSES: u32 = 20;

/// The state of one exchange's attempts; made by `Group::begin`.
#[derive(Debug)]
pub struct Selection {
    pub(crate) tried: Tried,
    pub(crate) walk: Walk,
    pub(crate) on_backup: bool,
    pub(crate) held: Option<Held>,
    pub(crate) picks: u32,
    pub(crate) tries: u32,
}

impl Selection {
    pub(crate) fn new(widest_list: usize, tries: u32) -> Self {
        Self { tried: Tried::new(widest_list), walk: Walk::default(), on_backup: false, held: None, picks: 0, tries }
    }

    /// The tries left: the current attempt counts until it is released as failed.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Whether a peer is held.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// The held peer.
    #[must_use]
    pub fn peer(&self) -> Option<usize> {
        self.held.map(|held| held.peer())
    }

    /// The attempts so far, including the current one.
    #[must_use]
    pub fn picks(&self) -> u32 {
        self.picks
    }

    /// Lowers the tries to `limit` (`proxy_next_upstream_tries`); 0 is no limit.
    pub fn limit_tries(&mut self, limit: u32) {
        if limit != 0 {
            self.tries = self.tries.min(limit);
        }
    }

    pub(crate) fn move_to_backup(&mut self) {
        self.on_backup = true;
        self.tried.clear();
    }
}

/// The peer an exchange holds: 16 bytes, since each exchange moves them several times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Below `MAX_PEERS`.
    peer: u32,
    /// The low half of the millisecond of the pick.
    since_ms: u32,
    /// The milliseconds from the pick to the head of the answer, or [`NO_HEAD`].
    header_ms: u32,
    pub last_resort: bool,
    /// The peer counts it among its exchanges without an answer.
    pub inflight: bool,
}

/// No head has come yet; the longest time that can be kept is a millisecond less, 49 days.
const NO_HEAD: u32 = u32::MAX;

impl Held {
    pub(crate) fn new(peer: usize, last_resort: bool, inflight: bool, now_ms: u64) -> Self {
        Self { peer: peer as u32, since_ms: now_ms as u32, header_ms: NO_HEAD, last_resort, inflight }
    }

    pub(crate) fn peer(self) -> usize {
        self.peer as usize
    }

    /// The milliseconds since the pick.
    pub(crate) fn age_ms(self, now_ms: u64) -> u64 {
        (now_ms as u32).wrapping_sub(self.since_ms).into()
    }

    /// Records that the head of the answer has come; returns the milliseconds until then.
    pub(crate) fn note_head(&mut self, now_ms: u64) -> u64 {
        let age_ms = self.age_ms(now_ms);
        self.header_ms = u32::try_from(age_ms).unwrap_or(NO_HEAD).min(NO_HEAD - 1);
        age_ms
    }

    /// The milliseconds until the head of the answer, if it has come.
    pub(crate) fn header_ms(self) -> Option<u64> {
        (self.header_ms != NO_HEAD).then_some(self.header_ms.into())
    }
}

/// The position of a hashing or random policy for one exchange.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Misses so far, over all attempts of the exchange.
    pub misses: u32,
    /// The current hash or ring point; `None` before the first attempt.
    pub hash: Option<u32>,
    /// Rounds of `hash` so far; from the second one on, the round salts the key.
    pub rounds: u32,
}

impl Walk {
    /// Whether the exchange has used up its allowed misses.
    pub fn is_over(&self) -> bool {
        self.misses > MAX_MISSES
    }

    /// Counts a miss; true if the exchange has used up its allowed misses.
    pub fn gives_up(&mut self) -> bool {
        self.misses += 1;
        self.is_over()
    }
}

/// The set of peers that one exchange has tried, in one list of the group.
#[derive(Debug)]
pub(crate) enum Tried {
    Small(u64),
    Large(Box<[u64]>),
}

impl Tried {
    fn new(peers: usize) -> Self {
        if peers <= WORD_BITS {
            Self::Small(0)
        } else {
            Self::Large(vec![0; peers.div_ceil(WORD_BITS)].into_boxed_slice())
        }
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        let bit = 1u64 << (index % WORD_BITS);
        self.words().get(index / WORD_BITS).is_some_and(|word| word & bit != 0)
    }

    pub(crate) fn insert(&mut self, index: usize) {
        let bit = 1u64 << (index % WORD_BITS);
        if let Some(word) = self.words_mut().get_mut(index / WORD_BITS) {
            *word |= bit;
        }
    }

    fn clear(&mut self) {
        self.words_mut().fill(0);
    }

    fn words(&self) -> &[u64] {
        match self {
            Self::Small(word) => std::slice::from_ref(word),
            Self::Large(words) => words,
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Small(word) => std::slice::from_mut(word),
            Self::Large(words) => words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tried_set_spans_words() {
        for peers in [1, 64, 65, 200] {
            let mut tried = Tried::new(peers);
            tried.insert(0);
            tried.insert(peers - 1);
            for index in 0..peers {
                let expected = index == 0 || index == peers - 1;
                assert_eq!(tried.contains(index), expected, "{index} of {peers}");
            }
            tried.clear();
            assert!(!tried.contains(0) && !tried.contains(peers - 1));
        }
    }

    #[test]
    fn limit_only_lowers() {
        let mut selection = Selection::new(3, 3);
        selection.limit_tries(0);
        assert_eq!(selection.tries(), 3);
        selection.limit_tries(9);
        assert_eq!(selection.tries(), 3);
        selection.limit_tries(2);
        assert_eq!(selection.tries(), 2);
    }
}
