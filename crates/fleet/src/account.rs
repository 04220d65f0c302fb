//! The account of one key at one edge: its knowledge of the bucket, and its debt.

use crate::presence::Standing;
use crate::terms::{LimitTerms, ONE};

/// The account of a key at one edge. A request is judged by it alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// How full the fleet's bucket was at `seen_ms`, as far as this edge knows, in thousandths of a request.
    level: i64,
    seen_ms: i64,
    /// Requests that this edge let through and the ledger does not have, in thousandths.
    debt: i64,
    /// The edge's time alone until which `debt` has leaked, in microseconds.
    alone_us: i64,
    /// The account waits in the queue for the ledger.
    is_owing: bool,
}

/// The verdict on one more request. The excess is nginx's: the content of the bucket beside this request, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountVerdict {
    /// It passes.
    Passes {
        /// For the delay.
        excess: i64,
    },
    /// It is refused.
    Overflows {
        /// For the log.
        excess: i64,
    },
}

impl Account {
    /// The account of a key that this edge does not know.
    pub fn begin(now_ms: i64, standing: Standing) -> Account {
        Account { seen_ms: now_ms, alone_us: standing.alone_us, ..Account::default() }
    }

    /// Judges one more request, and notes it if `charges` is set and it passes.
    pub fn ask(&mut self, now_ms: i64, standing: Standing, terms: &LimitTerms, charges: bool) -> AccountVerdict {
        self.pass_time(now_ms, standing, terms);
        let debt = self.debt.saturating_add(ONE);
        let level = self.level.saturating_add(ONE);
        let has_credit = debt <= terms.credit;
        // Alone, the edge has its share of the rate: so the time until a request may pass is longer.
        let excess = if standing.is_alone { standing.whole(debt - ONE) } else { level - ONE };
        if !has_credit || !standing.is_alone && level > terms.capacity {
            return AccountVerdict::Overflows { excess };
        }
        if charges {
            (self.debt, self.level) = (debt, level);
        }
        AccountVerdict::Passes { excess }
    }

    /// The debt now, in thousandths of a request.
    pub fn owed(&mut self, now_ms: i64, standing: Standing, terms: &LimitTerms) -> i64 {
        self.pass_time(now_ms, standing, terms);
        self.debt
    }

    /// Notes the ledger's answer: the accepted part of the debt, and how full the bucket is now.
    pub fn settle(&mut self, accepted: i64, level: i64, now_ms: i64) {
        self.debt = self.debt.saturating_sub(accepted.max(0)).max(0);
        (self.level, self.seen_ms) = (level.max(0).saturating_add(self.debt), now_ms);
    }

    /// The time after which a rest that the ledger refused fits in, in milliseconds.
    pub fn fits_after_ms(&self, terms: &LimitTerms) -> i64 {
        terms.time_us(self.level.saturating_sub(terms.capacity).max(0)) / 1000
    }

    /// Whether half of the credit is used, so that the ledger is to be told at once.
    pub fn is_pressed(&self, terms: &LimitTerms) -> bool {
        self.debt.saturating_mul(2) >= terms.credit
    }

    /// Puts it into the queue of those that owe; false if it is there.
    pub fn begin_owing(&mut self) -> bool {
        !std::mem::replace(&mut self.is_owing, true)
    }

    /// Takes it out of the queue.
    pub fn end_owing(&mut self) {
        self.is_owing = false;
    }

    fn pass_time(&mut self, now_ms: i64, standing: Standing, terms: &LimitTerms) {
        let leaked = terms.leak(now_ms.saturating_sub(self.seen_ms).saturating_mul(1000));
        if leaked > 0 {
            self.level = self.level.saturating_sub(leaked).max(0);
            self.seen_ms = now_ms;
        }
        let leaked = terms.leak(standing.alone_us.saturating_sub(self.alone_us));
        if leaked >= self.debt {
            (self.debt, self.alone_us) = (0, standing.alone_us);
        } else if leaked > 0 {
            self.debt -= leaked;
            self.alone_us = self.alone_us.saturating_add(terms.time_us(leaked));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOGETHER: Standing = Standing { is_alone: false, alone_us: 0, share: 0.5 };

    fn passes(account: &mut Account, now_ms: i64, standing: Standing, terms: &LimitTerms) -> bool {
        matches!(account.ask(now_ms, standing, terms, true), AccountVerdict::Passes { .. })
    }

    #[test]
    fn a_debt_never_passes_the_credit() {
        let terms = LimitTerms::new(1000, 9000, Some(3000));
        let mut account = Account::begin(0, TOGETHER);
        assert_eq!((0..9).filter(|_| passes(&mut account, 0, TOGETHER, &terms)).count(), 3);
        assert_eq!(account.owed(0, TOGETHER, &terms), 3000);
        // The ledger takes two, and another edge had four.
        account.settle(2000, 6000, 1);
        assert_eq!((0..9).filter(|_| passes(&mut account, 1, TOGETHER, &terms)).count(), 2);
        account.settle(3000, 10_000, 2);
        assert!(!passes(&mut account, 2, TOGETHER, &terms), "the bucket is full");
        assert!(passes(&mut account, 1002, TOGETHER, &terms), "one leaks in a second");
    }

    #[test]
    fn alone_an_edge_has_its_share_of_the_rate() {
        let terms = LimitTerms::new(10_000, 9000, Some(2000));
        let mut account = Account::begin(0, TOGETHER);
        let mut passed = 0;
        for ms in 0..10_000 {
            // Half of each millisecond is its own.
            let standing = Standing { is_alone: true, alone_us: ms * 500, share: 0.5 };
            passed += i64::from(passes(&mut account, ms, standing, &terms));
        }
        assert_eq!(passed, 2 + 5 * 10 - 1, "its credit, and half of ten a second for ten seconds");
    }

    #[test]
    fn a_question_charges_nothing() {
        let terms = LimitTerms::new(1000, 0, Some(1000));
        let mut account = Account::begin(5, TOGETHER);
        assert_eq!(account.ask(5, TOGETHER, &terms, false), AccountVerdict::Passes { excess: 0 });
        assert_eq!(account.owed(5, TOGETHER, &terms), 0);
        assert!(account.begin_owing() && !account.begin_owing());
        account.end_owing();
        assert!(account.begin_owing());
    }
}
