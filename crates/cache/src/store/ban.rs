//! Purges of more than one key: kept as numbered rules, and applied to an object at its next look-up.
//!
//! A purge is in force for every worker once it has a number. A sweep (`lurk`) applies it to objects that nobody
//! requests, then the rule is removed. Invariant: no rule applies to an object whose `checked` number is the newest.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

use super::label::{Label, Tag};

/// The most purges in progress. One more replaces all of them by a purge of everything stored before: too much is
/// purged rather than too little.
pub const BANS_MAX: usize = 16_384;

/// The objects of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// One key with all its variants.
    Key(Box<[u8]>),
    /// Every key with this prefix (nginx: a trailing `*`).
    Prefix(Box<[u8]>),
    /// Every object with the tag.
    Tag(Tag),
    /// Everything.
    All,
}

impl Purge {
    /// Reads a key as nginx does for a purge: a `*` at its end means all keys with the prefix before it.
    pub fn of_key(key: &[u8]) -> Purge {
        match key.strip_suffix(b"*") {
            Some(b"") => Purge::All,
            Some(prefix) => Purge::Prefix(prefix.into()),
            None => Purge::Key(key.into()),
        }
    }

    /// Whether the purge names an object.
    pub fn names(&self, label: &Label) -> bool {
        match self {
            Purge::Key(key) => *key == label.key,
            Purge::Prefix(prefix) => label.key.starts_with(prefix),
            Purge::Tag(tag) => label.tags.contains(tag),
            Purge::All => true,
        }
    }
}

/// The effect of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Force {
    /// The object becomes stale: it is fetched again at the next request, and stays available if the origin fails.
    Soft,
    /// The object is removed.
    Hard,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ban {
    pub number: u32,
    pub force: Force,
    pub purge: Purge,
}

/// The rules in force.
#[derive(Default)]
pub(super) struct Bans {
    /// By number, the oldest first.
    rules: RwLock<VecDeque<Ban>>,
    newest: AtomicU32,
}

impl Bans {
    /// The number of the newest purge.
    pub fn newest(&self) -> u32 {
        self.newest.load(Ordering::Acquire)
    }

    /// Puts a purge in force; returns the rule with its number.
    pub fn add(&self, purge: Purge, force: Force) -> Ban {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let number = self.newest().wrapping_add(1);
        // The new purge includes an earlier one with the same target.
        let covers = |old: &Ban| old.force <= force && (old.purge == purge || purge == Purge::All);
        if rules.back().is_some_and(covers) || purge == Purge::All {
            rules.retain(|old| !covers(old));
        }
        let mut ban = Ban { number, force, purge };
        if rules.len() >= BANS_MAX {
            rules.clear();
            ban = Ban { number, force: Force::Hard, purge: Purge::All };
        }
        rules.push_back(ban.clone());
        self.newest.store(number, Ordering::Release);
        ban
    }

    /// Takes over the rules of an earlier run; `newest` is the highest number of that run.
    pub fn restore(&self, bans: Vec<Ban>, newest: u32) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *rules = bans.into();
        self.newest.fetch_max(newest, Ordering::AcqRel);
    }

    /// The effect on an object of the purges after number `checked`, and the number up to which it is valid.
    pub fn judge(&self, checked: u32, label: &Label) -> (Option<Force>, u32) {
        let newest = self.newest();
        if checked == newest {
            return (None, checked);
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let from = rules.partition_point(|ban| ban.number <= checked);
        let force = rules.range(from..).filter(|ban| ban.purge.names(label)).map(|ban| ban.force).max();
        // Read under the lock that `add` holds for writing.
        (force, self.newest())
    }

    /// Removes the rules up to a number: they have been applied to all objects.
    pub fn forget(&self, up_to: u32) -> bool {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let before = rules.len();
        let keep = rules.partition_point(|ban| ban.number <= up_to);
        rules.drain(..keep);
        rules.len() != before
    }

    /// The rules in force.
    pub fn all(&self) -> Vec<Ban> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(key: &[u8], tags: &[&[u8]]) -> Label {
        Label { key: key.into(), tags: tags.iter().map(|tag| Tag::of(tag)).collect(), ..Label::default() }
    }

    #[test]
    fn a_purge_names_what_it_says() {
        for (purge, key, tags, named) in [
            (Purge::of_key(b"/a"), &b"/a"[..], &[][..], true),
            (Purge::of_key(b"/a"), b"/ab", &[], false),
            (Purge::of_key(b"/a*"), b"/ab", &[], true),
            (Purge::of_key(b"/a*"), b"/b", &[], false),
            (Purge::of_key(b"*"), b"", &[], true),
            (Purge::Tag(Tag::of(b"red")), b"/a", &[&b"blue"[..], b"red"], true),
            (Purge::Tag(Tag::of(b"red")), b"/a", &[b"Red"], false),
        ] {
            assert_eq!(purge.names(&label(key, tags)), named, "{purge:?}");
        }
    }

    #[test]
    fn an_object_is_judged_by_later_purges_only_and_once() {
        let bans = Bans::default();
        bans.add(Purge::of_key(b"/a*"), Force::Soft);
        let (a, b) = (label(b"/a1", &[]), label(b"/b", &[]));
        assert_eq!(bans.judge(0, &a), (Some(Force::Soft), 1));
        assert_eq!(bans.judge(1, &a), (None, 1));
        assert_eq!(bans.judge(0, &b), (None, 1));
        bans.add(Purge::All, Force::Hard);
        assert_eq!(bans.judge(0, &a), (Some(Force::Hard), 2));
        assert_eq!(bans.len(), 1, "what is purged whole needs no smaller rule");
        assert!(bans.forget(2) && bans.len() == 0);
        assert_eq!(bans.judge(0, &a), (None, 2));
    }

    #[test]
    fn a_soft_purge_does_not_undo_a_hard_one() {
        let bans = Bans::default();
        bans.add(Purge::of_key(b"/a"), Force::Hard);
        bans.add(Purge::of_key(b"/a"), Force::Soft);
        assert_eq!(bans.judge(0, &label(b"/a", &[])), (Some(Force::Hard), 2));
    }

    #[test]
    fn too_many_purges_become_one_of_everything() {
        let bans = Bans::default();
        for number in 0..=BANS_MAX {
            bans.add(Purge::Prefix(number.to_string().into_bytes().into()), Force::Soft);
        }
        assert_eq!(bans.len(), 1);
        assert_eq!(bans.judge(0, &label(b"any", &[])).0, Some(Force::Hard));
    }
}
