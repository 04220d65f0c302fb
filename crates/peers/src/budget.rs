//! The retry budget of a group: retries may be a fixed share of the traffic,
//! so that a failing group is not drowned by its own second attempts.
//!
//! Beyond nginx, which knows no such limit. Small numbers of retries always
//! pass: a second's allowance comes first, the earned share after it.
//!
//! Invariant: earned credit stays within `0..=BURST`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Retries any second allows, whatever the traffic.
pub const FREE_PER_SECOND: u64 = 10;
/// Thousandths of a retry each first attempt earns.
pub const EARNED_MILLI: u64 = 200;
/// Earned retries a group can save up, and has at the start.
pub const BURST: u64 = 100;

const COST_MILLI: u64 = 1000;
const CAP_MILLI: u64 = BURST * COST_MILLI;
/// Low bits of `window` that count the free retries used in its second.
const USED_BITS: u32 = 8;
const USED_MASK: u64 = (1 << USED_BITS) - 1;

/// One group's retry budget, shared by all workers without a lock.
#[derive(Debug)]
pub struct Budget {
    credit_milli: AtomicU64,
    /// The second last seen above [`USED_BITS`], the free retries used in it
    /// below.
    window: AtomicU64,
    refused: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { credit_milli: AtomicU64::new(CAP_MILLI), window: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }
}

impl Budget {
    /// Counts an exchange's first attempt in. Costs a plain load while the
    /// savings are full, which is where a healthy group lives.
    pub fn earn(&self) {
        let _ =
            update(&self.credit_milli, |credit| (credit < CAP_MILLI).then(|| (credit + EARNED_MILLI).min(CAP_MILLI)));
    }

    /// Pays for one retry; false, and counted, when neither the second's
    /// allowance nor the savings can.
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
        // Bounded so that a budget that never refuses fails instead of hanging.
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
