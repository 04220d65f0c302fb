//! The results of one peer's health checks, and whether it may serve. Pure: no socket, no clock.
//!
//! All versions of a group and all workers share it: one worker checks, the others only read whether the peer may
//! serve. Invariant: selection always reads the worst state of all checks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a check turns its results into a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRule {
    /// The request of the check: a check with the same text after a reload is the same check.
    pub asks: String,
    /// Failures in a row that make a peer unhealthy.
    pub fails: u32,
    /// Passes in a row that make it healthy again.
    pub passes: u32,
    /// A peer must pass once before it may serve.
    pub mandatory: bool,
    /// A peer that was healthy before a reload need not pass again.
    pub persistent: bool,
}

/// The state of a peer by one check or by all; in order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It may serve.
    #[default]
    Up,
    /// The first check has not been made yet.
    Checking,
    /// Checks fail.
    Unhealthy,
}

/// The values shown for a peer's checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The state.
    pub state: State,
    /// Checks made.
    pub checks: u64,
    /// Checks failed.
    pub fails: u64,
    /// How often the peer became unhealthy.
    pub unhealthy: u64,
    /// Whether the last passed.
    pub last_passed: Option<bool>,
}

/// The results of one peer's checks.
#[derive(Debug)]
pub struct Health {
    rules: Arc<[CheckRule]>,
    /// The flag that selection reads, without a lock.
    is_up: AtomicBool,
    /// The millisecond when the peer last became healthy; 0 if it always was.
    up_since_ms: AtomicU64,
    found: Mutex<Found>,
}

#[derive(Clone, Debug, Default)]
struct Found {
    /// One per rule, by its number.
    tallies: Vec<Tally>,
    shown: Shown,
}

/// The results of one check.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    state: State,
    /// Results in a row that contradict the state.
    against: u32,
}

impl Tally {
    fn note(&mut self, rule: &CheckRule, passed: bool) {
        let (speaks_against, limit) = match self.state {
            State::Up => (!passed, rule.fails),
            State::Unhealthy => (passed, rule.passes),
            // nginx: until the first check is completed.
            State::Checking => (true, 1),
        };
        self.against = if speaks_against { self.against + 1 } else { 0 };
        if self.against >= limit {
            *self = Tally { state: if passed { State::Up } else { State::Unhealthy }, against: 0 };
        }
    }
}

impl CheckRule {
    fn first(&self) -> Tally {
        Tally { state: if self.mandatory { State::Checking } else { State::Up }, against: 0 }
    }
}

impl Health {
    /// The health of a peer that was never checked.
    pub fn new(rules: &Arc<[CheckRule]>) -> Health {
        let tallies = rules.iter().map(CheckRule::first).collect();
        Health::of(rules, Found { tallies, shown: Shown::default() })
    }

    fn of(rules: &Arc<[CheckRule]>, mut found: Found) -> Health {
        found.shown.state = found.worst();
        let is_up = AtomicBool::new(found.shown.state == State::Up);
        Health { rules: rules.clone(), is_up, up_since_ms: AtomicU64::new(0), found: Mutex::new(found) }
    }

    /// The successor of `old`; within one configuration, `old` itself. After a reload, a check that existed before
    /// keeps a peer unhealthy that it found unhealthy: reading the configuration again changes nothing. A peer that
    /// was healthy must pass again if a check is `mandatory`, unless the check is `persistent`.
    pub fn follow(new: &Arc<Health>, old: Option<&Arc<Health>>) -> Arc<Health> {
        let Some(old) = old else {
            // A peer without a check counted as healthy.
            return Arc::new(Health::after(&new.rules, &[], &Found::default()));
        };
        if Arc::ptr_eq(&new.rules, &old.rules) {
            return old.clone();
        }
        let health = Health::after(&new.rules, &old.rules, &old.lock());
        health.up_since_ms.store(old.up_since_ms(), Ordering::Relaxed);
        Arc::new(health)
    }

    fn after(rules: &Arc<[CheckRule]>, old_rules: &[CheckRule], old: &Found) -> Health {
        let was_healthy = old.shown.state == State::Up;
        let tally = |rule: &CheckRule| {
            let before = old_rules.iter().position(|old| old.asks == rule.asks).and_then(|at| old.tallies.get(at));
            match before {
                Some(before) if before.state == State::Unhealthy => *before,
                _ if was_healthy && rule.persistent => Tally::default(),
                _ => rule.first(),
            }
        };
        let tallies = rules.iter().map(tally).collect();
        Health::of(rules, Found { tallies, shown: old.shown })
    }

    /// Whether the peer may get clients' requests.
    #[inline]
    pub fn lets_serve(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// The millisecond when the peer last became healthy; 0 if it always was.
    pub fn up_since_ms(&self) -> u64 {
        self.up_since_ms.load(Ordering::Relaxed)
    }

    /// Records a result of the check of that number; returns the new state if it has changed.
    pub fn note(&self, number: usize, passed: bool, now_ms: u64) -> Option<State> {
        let mut found = self.lock();
        let (Some(rule), Some(tally)) = (self.rules.get(number), found.tallies.get_mut(number)) else { return None };
        tally.note(rule, passed);
        let (before, now) = (found.shown.state, found.worst());
        let shown = &mut found.shown;
        shown.state = now;
        shown.checks += 1;
        shown.fails += u64::from(!passed);
        shown.last_passed = Some(passed);
        shown.unhealthy += u64::from(now == State::Unhealthy && before != now);
        if now == State::Up && before != now {
            self.up_since_ms.store(now_ms, Ordering::Relaxed);
        }
        self.is_up.store(now == State::Up, Ordering::Relaxed);
        (before != now).then_some(now)
    }

    /// The values to show.
    pub fn shown(&self) -> Shown {
        self.lock().shown
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        // Each step leaves the numbers valid.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    fn worst(&self) -> State {
        self.tallies.iter().map(|tally| tally.state).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(asks: &str, fails: u32, passes: u32) -> CheckRule {
        CheckRule { asks: asks.to_owned(), fails, passes, mandatory: false, persistent: false }
    }

    fn health(rules: &[CheckRule]) -> Arc<Health> {
        Arc::new(Health::new(&rules.into()))
    }

    #[test]
    fn as_many_in_a_row_as_the_rule_says_turn_it() {
        let health = health(&[rule("/", 2, 3)]);
        let turns: Vec<_> = [false, true, false, false, true, true, false, true, true, true]
            .into_iter()
            .map(|passed| health.note(0, passed, 1))
            .collect();
        let (down, up) = (Some(State::Unhealthy), Some(State::Up));
        assert_eq!(turns, [None, None, None, down, None, None, None, None, None, up]);
        let shown = Shown { state: State::Up, checks: 10, fails: 4, unhealthy: 1, last_passed: Some(true) };
        assert_eq!(health.shown(), shown);
        assert_eq!(health.note(7, false, 1), None, "a check that is not there");
    }

    #[test]
    fn one_check_that_fails_is_enough() {
        let health = health(&[rule("/a", 1, 1), rule("/b", 1, 1)]);
        assert_eq!(health.note(0, false, 1), Some(State::Unhealthy));
        assert_eq!(health.note(1, false, 1), None);
        assert_eq!(health.note(0, true, 1), None);
        assert!(!health.lets_serve());
        assert_eq!(health.note(1, true, 1), Some(State::Up));
        assert!(health.lets_serve());
    }

    #[test]
    fn a_mandatory_check_comes_first_and_its_first_result_decides() {
        let mandatory = CheckRule { mandatory: true, ..rule("/", 3, 3) };
        for (passed, state) in [(true, State::Up), (false, State::Unhealthy)] {
            let health = health(std::slice::from_ref(&mandatory));
            assert_eq!((health.lets_serve(), health.shown().state), (false, State::Checking));
            assert_eq!(health.note(0, passed, 1), Some(state));
            assert_eq!(health.lets_serve(), passed);
        }
    }

    #[test]
    fn a_reload_keeps_what_it_should() {
        let mandatory = CheckRule { mandatory: true, ..rule("/", 1, 1) };
        let persistent = CheckRule { persistent: true, ..mandatory.clone() };
        let is_after = |old: &CheckRule, passed: bool, new: &CheckRule| {
            let old = health(std::slice::from_ref(old));
            old.note(0, passed, 1);
            let new = Health::follow(&health(std::slice::from_ref(new)), Some(&old));
            assert_eq!(new.shown().checks, 1);
            new.shown().state
        };
        assert_eq!(is_after(&mandatory, true, &mandatory), State::Checking);
        assert_eq!(is_after(&mandatory, true, &persistent), State::Up);
        assert_eq!(is_after(&persistent, false, &persistent), State::Unhealthy);
        assert_eq!(is_after(&rule("/", 1, 1), false, &rule("/", 2, 2)), State::Unhealthy);
        assert_eq!(is_after(&rule("/", 1, 1), false, &rule("/other", 1, 1)), State::Up);
        assert_eq!(
            is_after(&mandatory, false, &CheckRule { asks: "/other".to_owned(), ..persistent.clone() }),
            State::Checking
        );
        let from_nothing = Health::follow(&health(&[persistent]), None);
        assert_eq!(from_nothing.shown().state, State::Up);
    }

    #[test]
    fn within_one_configuration_it_stays_the_same() {
        let rules: Arc<[CheckRule]> = [rule("/", 1, 1)].into();
        let (old, new) = (Arc::new(Health::new(&rules)), Arc::new(Health::new(&rules)));
        assert!(Arc::ptr_eq(&Health::follow(&new, Some(&old)), &old));
    }
}
