//! The smallest part of a list that still shows a difference: delta debugging (`ddmin`, Zeller and Hildebrandt 2002).
//!
//! Pure: [`DeltaSearch`] says which items to try, and the caller tells the outcome. So the same search serves a test in
//! memory, and a trial that starts a server.

use std::collections::{BTreeSet, HashMap};

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The difference is there.
    Shows,
    /// There is no difference.
    Silent,
    /// The trial says nothing: a configuration was refused, for example.
    Unresolved,
}

/// A search for the smallest set of items that shows the difference.
///
/// All items together must show it: the search does not try them.
#[derive(Debug)]
pub struct DeltaSearch {
    /// The smallest set so far.
    kept: Vec<usize>,
    /// The number of parts that `kept` is divided into.
    parts: usize,
    /// The number of the next set for this division; see [`DeltaSearch::candidate`].
    next: usize,
    /// Nothing is tried yet: the first trial has no items at all.
    is_new: bool,
    trials: usize,
    trials_max: usize,
    /// The outcomes, because `ddmin` asks for some sets twice.
    known: HashMap<Vec<usize>, Trial>,
    asked: Option<Vec<usize>>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smallest {
    /// The items, as indices in rising order.
    pub kept: Vec<usize>,
    /// The number of trials.
    pub trials: usize,
    /// No item can be left out: each such set was tried, and did not show the difference. False if the bound of trials
    /// ended the search.
    pub is_minimal: bool,
}

impl DeltaSearch {
    /// A search among `count` items, with at most `trials_max` trials.
    pub fn new(count: usize, trials_max: usize) -> DeltaSearch {
        DeltaSearch {
            kept: (0..count).collect(),
            parts: 2,
            next: 0,
            is_new: true,
            trials: 0,
            trials_max,
            known: HashMap::new(),
            asked: None,
        }
    }

    /// The items of the next trial; [`DeltaSearch::tell`] must follow. `None`: the search has ended.
    pub fn trial(&mut self) -> Option<&[usize]> {
        loop {
            let items = self.candidate()?;
            if let Some(outcome) = self.known.get(&items) {
                self.learn(items, *outcome);
                continue;
            }
            if self.trials >= self.trials_max {
                return None;
            }
            self.trials += 1;
            return Some(self.asked.insert(items));
        }
    }

    /// The outcome of the last trial.
    pub fn tell(&mut self, outcome: Trial) {
        if let Some(items) = self.asked.take() {
            self.known.insert(items.clone(), outcome);
            self.learn(items, outcome);
        }
    }

    /// Makes all trials. `test` ends the search with `None`.
    pub fn run(&mut self, mut test: impl FnMut(&[usize]) -> Option<Trial>) {
        while let Some(items) = self.trial() {
            let Some(outcome) = test(items) else { return };
            self.tell(outcome);
        }
    }

    /// The smallest set that is known.
    pub fn result(&self) -> Smallest {
        let is_needed = |item: &usize| self.without(*item).is_some_and(|outcome| outcome != Trial::Shows);
        Smallest { kept: self.kept.clone(), trials: self.trials, is_minimal: self.kept.iter().all(is_needed) }
    }

    /// The outcome of the smallest set without this item. `None`: that was not tried.
    pub fn without(&self, item: usize) -> Option<Trial> {
        let others: Vec<usize> = self.kept.iter().copied().filter(|other| *other != item).collect();
        self.known.get(&others).copied()
    }

    /// The next set: no item, then each part of the division, then all but each part. `None`: there is none left.
    fn candidate(&mut self) -> Option<Vec<usize>> {
        if self.is_new {
            return (!self.kept.is_empty()).then(Vec::new);
        }
        loop {
            let count = self.kept.len();
            if count < 2 {
                return None;
            }
            let parts = self.parts.min(count);
            if self.next < parts {
                return Some(self.part(self.next, parts).collect());
            }
            // With two parts, all but one part is the other part.
            if parts > 2 && self.next < 2 * parts {
                let out: BTreeSet<usize> = self.part(self.next - parts, parts).collect();
                return Some(self.kept.iter().copied().filter(|item| !out.contains(item)).collect());
            }
            if parts >= count {
                return None;
            }
            self.parts = (2 * parts).min(count);
            self.next = 0;
        }
    }

    fn part(&self, number: usize, parts: usize) -> impl Iterator<Item = usize> {
        let bound = |number: usize| number * self.kept.len() / parts;
        self.kept.get(bound(number)..bound(number + 1)).unwrap_or_default().iter().copied()
    }

    fn learn(&mut self, items: Vec<usize>, outcome: Trial) {
        let is_rest = self.next >= self.parts.min(self.kept.len());
        if outcome != Trial::Shows {
            self.next = if self.is_new { 0 } else { self.next + 1 };
        } else {
            let parts = self.parts.min(self.kept.len());
            self.parts = if is_rest && !self.is_new { (parts - 1).max(2) } else { 2 };
            self.kept = items;
            self.next = 0;
        }
        self.is_new = false;
    }
}

/// The smallest set of `count` items for which `test` shows the difference, with at most `trials_max` trials. `test`
/// ends the search with `None`.
pub fn smallest(count: usize, trials_max: usize, test: impl FnMut(&[usize]) -> Option<Trial>) -> Smallest {
    let mut search = DeltaSearch::new(count, trials_max);
    search.run(test);
    search.result()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Shows the difference if all of these items are there.
    fn needs(wanted: &[usize]) -> impl Fn(&[usize]) -> Option<Trial> + '_ {
        |items| match wanted.iter().all(|one| items.contains(one)) {
            true => Some(Trial::Shows),
            false => Some(Trial::Silent),
        }
    }

    #[test]
    fn one_item_of_many_is_found_in_few_trials() {
        let found = smallest(1000, 100, needs(&[777]));
        assert_eq!(found.kept, [777]);
        assert!(found.is_minimal && found.trials <= 24, "{}", found.trials);
    }

    #[test]
    fn items_that_need_each_other_stay_together() {
        let found = smallest(20, 1000, needs(&[2, 11, 19]));
        assert_eq!((found.kept, found.is_minimal), (vec![2, 11, 19], true));
    }

    #[test]
    fn a_difference_without_any_item_needs_one_trial() {
        let found = smallest(50, 1000, |_| Some(Trial::Shows));
        assert_eq!((found.kept, found.trials, found.is_minimal), (vec![], 1, true));
        let none = smallest(0, 1000, |_| Some(Trial::Shows));
        assert_eq!((none.kept, none.trials), (vec![], 0));
    }

    #[test]
    fn unresolved_trials_do_not_end_the_search() {
        // Item 4 is refused without item 5.
        let found = smallest(8, 1000, |items| match (items.contains(&4), items.contains(&5)) {
            (true, true) => Some(Trial::Shows),
            (true, false) => Some(Trial::Unresolved),
            _ => Some(Trial::Silent),
        });
        assert_eq!(found.kept, [4, 5]);
    }

    #[test]
    fn the_bound_ends_the_search_and_the_result_says_so() {
        let found = smallest(1000, 3, needs(&[777]));
        assert_eq!(found.trials, 3);
        assert!(!found.is_minimal && found.kept.contains(&777));
        let found = smallest(10, 1000, |_| None);
        assert_eq!((found.kept.len(), found.is_minimal), (10, false));
    }

    proptest! {
        #[test]
        fn the_result_shows_the_difference_and_lacks_nothing_and_the_trials_are_bounded(
            count in 0_usize..40,
            groups in proptest::collection::vec(proptest::collection::vec(0_usize..40, 1..5), 0..4),
            refused in proptest::collection::vec((0_usize..40, 0_usize..40), 0..4),
            trials_max in 0_usize..4000,
        ) {
            // Any group of items alone shows the difference; some items are refused without others.
            let test = |items: &[usize]| {
                let has = |item: &usize| items.contains(item);
                if items.len() < count && refused.iter().any(|(one, other)| has(one) && !has(other)) {
                    return Trial::Unresolved;
                }
                if groups.iter().any(|group| group.iter().all(has)) { Trial::Shows } else { Trial::Silent }
            };
            let all: Vec<usize> = (0..count).collect();
            prop_assume!(test(&all) == Trial::Shows);
            let mut trials = 0;
            let found = smallest(count, trials_max, |items| {
                trials += 1;
                Some(test(items))
            });
            prop_assert_eq!(found.trials, trials);
            prop_assert!(trials <= trials_max);
            prop_assert!(found.kept.is_sorted());
            prop_assert_eq!(test(&found.kept), Trial::Shows);
            // The bound of `ddmin`, and the trial without items.
            prop_assert!(trials <= count * count + 3 * count + 1);
            if trials < trials_max {
                prop_assert!(found.is_minimal);
            }
            if found.is_minimal {
                for left_out in &found.kept {
                    let others: Vec<usize> = found.kept.iter().copied().filter(|item| item != left_out).collect();
                    prop_assert_ne!(test(&others), Trial::Shows);
                }
            }
        }
    }
}
