//! Numbers for names: given once, kept over reloads.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_meter::live::NAMES_MAX;

use super::lock::lock;

/// The number for all names that got no number of their own.
pub const OTHERS: u32 = 0;

/// Names and their numbers, 1 to [`NAMES_MAX`].
#[derive(Default)]
pub struct CellNames {
    known: Mutex<HashMap<String, u32>>,
    merged: AtomicU64,
}

impl CellNames {
    /// The number of a name, a new number if one is left; else [`OTHERS`].
    pub fn number(&self, name: &str) -> u32 {
        let mut known = lock(&self.known);
        if let Some(number) = known.get(name) {
            return *number;
        }
        if known.len() >= NAMES_MAX {
            self.merged.fetch_add(1, Ordering::Relaxed);
            return OTHERS;
        }
        let number = known.len() as u32 + 1;
        known.insert(name.to_owned(), number);
        number
    }

    /// The number of a name, if it has one.
    pub fn find(&self, name: &str) -> Option<u32> {
        lock(&self.known).get(name).copied()
    }

    /// All names that have a number.
    pub fn all(&self) -> Vec<(String, u32)> {
        lock(&self.known).iter().map(|(name, number)| (name.clone(), *number)).collect()
    }

    /// How often no number was left.
    pub fn merged(&self) -> u64 {
        self.merged.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_end() {
        let names = CellNames::default();
        assert_eq!((names.number("a"), names.number("b"), names.number("a")), (1, 2, 1));
        for number in 3..=NAMES_MAX {
            assert_eq!(names.number(&number.to_string()), number as u32);
        }
        assert_eq!((names.number("one more"), names.number("another"), names.merged()), (OTHERS, OTHERS, 2));
        assert_eq!((names.number("b"), names.find("b"), names.find("one more")), (2, Some(2), None));
    }
}
