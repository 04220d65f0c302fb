//! The blocks and pairs that a budget has time for.

use std::time::Duration;

use weir_lab::stats;

/// Fewer pairs cannot reach the level of one figure: the smallest p of a signed-rank test of 12 pairs is 0.0005.
pub const PAIRS_LEAST: usize = 12;
/// The shortest and the longest block that a plan chooses. In a shorter block, starting weighs more than measuring. A longer
/// one gains less than a further pair.
pub const BLOCK: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(15));
/// The time that stays free at the end of a budget, to end the last block and to write the reports.
pub const RESERVE: Duration = Duration::from_secs(8);

/// A plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairPlan {
    /// The measured time of a block.
    pub block: Duration,
    /// Pairs of blocks, even and from 12 to 24.
    pub pairs: usize,
}

/// The input of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanWish {
    /// The time that is left.
    pub left: Duration,
    /// The time of a block before it measures, and after it.
    pub beside: Duration,
    /// The shortest block that has enough requests.
    pub enough: Duration,
    /// The block that the user asked for, or that a script has.
    pub block: Option<Duration>,
    /// The pairs that the user asked for.
    pub pairs: Option<usize>,
}

/// The most pairs, and then the longest blocks, for which there is time.
///
/// # Errors
/// There is not even time for the least pairs of the shortest blocks: how many fit, and the time that is needed.
pub fn plan(wish: &PlanWish) -> Result<PairPlan, (usize, Duration)> {
    let most = wish.pairs.unwrap_or(stats::PAIRS_MAX).clamp(PAIRS_LEAST, stats::PAIRS_MAX);
    let each = |block: Duration| 2 * (block + wish.beside);
    let fits = |block: Duration| (wish.left.as_secs_f64() / each(block).as_secs_f64().max(1e-3)) as usize;
    let shortest = wish.block.unwrap_or_else(|| BLOCK.0.max(wish.enough));
    let pairs = fits(shortest).min(most) / 2 * 2;
    if pairs < PAIRS_LEAST {
        return Err((fits(shortest), each(shortest) * PAIRS_LEAST as u32));
    }
    let room = wish.left / (2 * pairs as u32);
    let longest = BLOCK.1.max(shortest);
    let block = wish.block.unwrap_or_else(|| room.saturating_sub(wish.beside).clamp(shortest, longest));
    Ok(PairPlan { block, pairs })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(left: u64) -> PlanWish {
        let seconds = Duration::from_secs;
        PlanWish { left: seconds(left), beside: seconds(4), enough: Duration::ZERO, block: None, pairs: None }
    }

    #[test]
    fn a_budget_buys_pairs_first_and_then_longer_blocks() {
        let of = |left| plan(&wish(left)).map(|plan| (plan.pairs, plan.block.as_secs()));
        assert_eq!(of(600), Ok((24, 8)));
        assert_eq!(of(288), Ok((24, 2)), "24 pairs of the shortest blocks");
        assert_eq!(of(287), Ok((22, 2)));
        assert_eq!(of(144), Ok((12, 2)));
        assert_eq!(of(143), Err((11, Duration::from_secs(144))), "and what is needed");
        assert_eq!(of(0), Err((0, Duration::from_secs(144))));
        assert_eq!(of(100_000), Ok((24, 15)), "no longer than is useful");
    }

    #[test]
    fn wishes_are_kept() {
        let slow = PlanWish { enough: Duration::from_secs(20), ..wish(3_600) };
        assert_eq!(plan(&slow).map(|plan| plan.block), Ok(Duration::from_secs(20)));
        let asked = PlanWish { block: Some(Duration::from_millis(500)), pairs: Some(14), ..wish(600) };
        assert_eq!(plan(&asked), Ok(PairPlan { block: Duration::from_millis(500), pairs: 14 }));
        let few = PlanWish { pairs: Some(2), ..wish(600) };
        assert_eq!(plan(&few).map(|plan| plan.pairs), Ok(PAIRS_LEAST));
        for left in 0..2_000 {
            let Ok(plan) = plan(&wish(left)) else { continue };
            assert!(
                2 * plan.pairs as u32 * (plan.block + Duration::from_secs(4)) <= Duration::from_secs(left),
                "{left}"
            );
        }
    }
}
