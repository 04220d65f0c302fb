//! The retry budget of a group: retries may be only a fixed share of the traffic, so that retries do not overload a
//! failing group.
//!
//! nginx has no such limit. Small numbers of retries always pass: first the allowance of each second is used, then the
//! earned share.
//!
//! Invariant: earned credit stays within `0..=BURST`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Retries allowed in each second, whatever the traffic.
pub const FREE_PER_SECOND: u64 = 10;
/// Thousandths of a retry that each first attempt earns.
pub const EARNED_MILLI: u64 = 200;
/// The most earned retries that a group can save; it starts with this many.
pub const BURST: u64 = 100;

const COST_MILLI: u64 = 1000;
const CAP_MILLI: u64 = BURST * COST_MILLI;
/// The low bits of `window`: they count the free retries used in its second.
const USED_BITS: u32 = 8;
const USED_MASK: u64 = (1 << USED_BITS) - 1;

/// The retry budget of one group, shared by all workers without a lock.
#[derive(Debug)]
pub struct Budget {
    credit_milli: AtomicU64,
    /// The last second seen, above [`USED_BITS`]; the free retries used in it, below.
    window: AtomicU64,
    refused: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { credit_milli: AtomicU64::new(CAP_MILLI), window: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }
}

impl Budget {
    /// Counts the first attempt of an exchange. With full savings this costs only a plain load; a healthy group has
    /// full savings.
    #[inline]
    pub fn earn(&self) {
        let _ =
            update(&self.credit_milli, |credit| (credit < CAP_MILLI).then(|| (credit + EARNED_MILLI).min(CAP_MILLI)));
    }

    /// Pays for one retry; returns false, and counts a refusal, if neither the second's allowance nor the savings are
    /// enough.
    pub fn spend(&self, now_s: u64) -> bool {
        let paid = self.spend_free(now_s) || self.spend_credit();
        if !paid {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        paid
    }

    /// Retries refused since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn spend_free(&self, now_s: u64) -> bool {
        let second = now_s << USED_BITS;
        update(&self.window, |window| {
            let used = if window & !USED_MASK == second { window & USED_MASK } else { 0 };
            (used < FREE_PER_SECOND).then_some(second | (used + 1))
        })
    }

    fn spend_credit(&self) -> bool {
        update(&self.credit_milli, |credit| credit.checked_sub(COST_MILLI))
    }
}

fn update(cell: &AtomicU64, change: impl FnMut(u64) -> Option<u64>) -> bool {
    cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend_all(budget: &Budget, now_s: u64) -> u64 {
        // Limited, so that a budget that never refuses fails the test instead of hanging it.
        (0..10_000).take_while(|_| budget.spend(now_s)).count() as u64
    }

    #[test]
    fn starts_with_the_burst_and_a_seconds_allowance() {
        let budget = Budget::default();
        assert_eq!(spend_all(&budget, 7), BURST + FREE_PER_SECOND);
        assert_eq!(budget.refused(), 1);
        assert_eq!(spend_all(&budget, 8), FREE_PER_SECOND);
        assert_eq!(budget.refused(), 2);
    }

    #[test]
    fn traffic_earns_a_fifth() {
        let budget = Budget::default();
        spend_all(&budget, 1);
        for _ in 0..50 {
            budget.earn();
        }
        assert_eq!(spend_all(&budget, 1), 10);
    }

    #[test]
    fn savings_are_capped() {
        let budget = Budget::default();
        for _ in 0..10_000 {
            budget.earn();
        }
        assert_eq!(spend_all(&budget, 1), BURST + FREE_PER_SECOND);
    }
}
