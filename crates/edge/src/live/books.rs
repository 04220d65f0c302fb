//! Totals since a reset: the counts so far, minus the counts at the time of the reset.

use std::collections::HashMap;

use weir_meter::live::Quic;
use weir_meter::live::cells::{PeerSums, ZoneSums};
use weir_meter::live::histogram::Tally;

/// A value that only grows.
pub trait Since {
    /// The increase since `base`.
    fn since(&self, base: &Self) -> Self;
}

impl Since for ZoneSums {
    fn since(&self, base: &Self) -> Self {
        ZoneSums::since(self, base)
    }
}

impl Since for PeerSums {
    fn since(&self, base: &Self) -> Self {
        PeerSums::since(self, base)
    }
}

impl Since for Tally {
    fn since(&self, base: &Self) -> Self {
        Tally::since(self, base)
    }
}

impl Since for Quic {
    fn since(&self, base: &Self) -> Self {
        Quic::since(self, base)
    }
}

impl Since for Vec<u64> {
    fn since(&self, base: &Self) -> Self {
        let base = base.iter().copied().chain(std::iter::repeat(0));
        self.iter().zip(base).map(|(now, then)| now.saturating_sub(then)).collect()
    }
}

/// Things of one kind by name, and the counts where their totals begin. The names come from a configuration, or from
/// peers that have a number, so their number is bounded.
pub struct MetricBook<T> {
    bases: HashMap<String, T>,
}

impl<T> Default for MetricBook<T> {
    fn default() -> MetricBook<T> {
        MetricBook { bases: HashMap::new() }
    }
}

impl<T: Since> MetricBook<T> {
    /// The increase since the last reset.
    pub fn net(&self, name: &str, raw: T) -> T {
        match self.bases.get(name) {
            Some(base) => raw.since(base),
            None => raw,
        }
    }

    /// Begins new totals at the counts `raw`.
    pub fn reset(&mut self, name: &str, raw: T) {
        self.bases.insert(name.to_owned(), raw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_begin_anew_at_a_reset_and_for_that_name_alone() {
        let mut book: MetricBook<Vec<u64>> = MetricBook::default();
        assert_eq!(book.net("a", vec![3, 4]), [3, 4]);
        book.reset("a", vec![3]);
        assert_eq!((book.net("a", vec![5, 4]), book.net("b", vec![5, 4])), (vec![2, 4], vec![5, 4]));
    }
}
