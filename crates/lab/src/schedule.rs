//! The order of blocks: quartets ABBA or BAAB, chosen by a seed that is printed.
//!
//! A quartet cancels a linear drift in time. The random choice guards against disturbances that come and go in step
//! with the blocks.

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ComparedSide {
    /// A: the present configuration.
    Before,
    /// B: the changed configuration.
    After,
}

impl ComparedSide {
    /// `A` or `B`.
    pub fn letter(self) -> char {
        match self {
            ComparedSide::Before => 'A',
            ComparedSide::After => 'B',
        }
    }
}

/// Blocks in a quartet.
pub const QUARTET: usize = 4;
/// How often a spoiled block is run again.
pub const AGAIN_MAX: u32 = 2;

/// The position of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPosition {
    /// Its number, from 0.
    pub index: usize,
    /// The pair it belongs to: two neighbours.
    pub pair: usize,
    /// The side that runs in it.
    pub arm: ComparedSide,
}

/// The blocks of this many pairs, in order. Two pairs make a quartet.
pub fn blocks(seed: u64, pairs: usize) -> Vec<BlockPosition> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut places = Vec::with_capacity(2 * pairs);
    while places.len() < 2 * pairs {
        let (one, other) = if rng.bool() {
            (ComparedSide::Before, ComparedSide::After)
        } else {
            (ComparedSide::After, ComparedSide::Before)
        };
        for arm in [one, other, other, one] {
            let index = places.len();
            places.push(BlockPosition { index, pair: index / 2, arm });
        }
    }
    places.truncate(2 * pairs);
    places
}

/// When the lab looks, and at which level.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    /// The numbers of pairs. The last one is the end.
    pub at: Vec<usize>,
    /// The level of each look.
    pub alpha: f64,
}

impl Looks {
    /// Three looks at 8, 16 and 24 pairs, each at Pocock's level.
    pub fn three() -> Looks {
        Looks { at: crate::stats::LOOKS.to_vec(), alpha: crate::stats::LOOK_ALPHA }
    }

    /// One look after exactly this many pairs, at 5 %.
    pub fn one(pairs: usize) -> Looks {
        Looks { at: vec![pairs], alpha: crate::stats::ALPHA }
    }

    /// Pairs of the longest run.
    pub fn pairs_max(&self) -> usize {
        self.at.last().copied().unwrap_or(0)
    }

    /// With fewer pairs, no verdict is given.
    pub fn pairs_min(&self) -> usize {
        self.at.first().copied().unwrap_or(0).max(crate::stats::PAIRS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartets_are_balanced_and_their_order_is_chance() {
        for seed in 0..50 {
            let places = blocks(seed, 24);
            assert_eq!(places.len(), 48);
            for quartet in places.chunks(QUARTET) {
                let letters: String = quartet.iter().map(|place| place.arm.letter()).collect();
                assert!(letters == "ABBA" || letters == "BAAB", "{letters}");
            }
            for pair in places.chunks(2) {
                assert_eq!(pair[0].pair, pair[1].pair);
                assert_ne!(pair[0].arm, pair[1].arm);
            }
        }
        assert_eq!(blocks(7, 8), blocks(7, 8));
        let firsts: Vec<ComparedSide> = (0..50).map(|seed| blocks(seed, 2)[0].arm).collect();
        assert!(firsts.contains(&ComparedSide::Before) && firsts.contains(&ComparedSide::After));
    }

    /// A linear drift adds nothing to the mean of a quartet's two pairs.
    #[test]
    fn a_linear_drift_cancels() {
        for seed in 0..20 {
            for quartet in blocks(seed, 8).chunks(QUARTET) {
                let sum: i64 = quartet
                    .iter()
                    .map(|place| place.index as i64 * if place.arm == ComparedSide::After { 1 } else { -1 })
                    .sum();
                assert_eq!(sum, 0);
            }
        }
    }

    #[test]
    fn looks() {
        let three = Looks::three();
        assert_eq!((three.pairs_min(), three.pairs_max()), (8, 24));
        let one = Looks::one(2);
        assert_eq!((one.pairs_min(), one.pairs_max(), one.alpha), (6, 2, 0.05));
    }
}
