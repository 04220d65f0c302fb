//! The ledger in Redis: its scripts, and their answers.
//!
//! Redis runs a script as one step (<https://redis.io/docs/latest/develop/programmability/eval-intro/>). Both scripts take
//! the time from Redis; tests give it.

/// The script with which an edge reports. Its arguments stand in its first lines.
pub const BEAT: &str = include_str!("beat.lua");

/// The script that takes debts into the buckets. Its arguments stand in its first lines.
pub const DEBIT: &str = include_str!("debit.lua");

/// An edge that has not reported for this time is away, and its share is reserved for it. In milliseconds.
pub const SILENT_MS: i64 = 300;

/// A report that takes longer than this to Redis is not counted. In milliseconds.
pub const GRACE_MS: i64 = 100;

/// An edge that has not reported for this time is forgotten, with its share. In milliseconds.
pub const FORGET_MS: i64 = 300_000;

/// Edges in one fleet, at most.
pub const EDGES_MAX: i64 = 256;

/// The answer to a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BeatReply {
    /// It came too late, and was not counted.
    Late {
        /// Redis' clock, in milliseconds.
        redis_ms: i64,
    },
    /// It was counted.
    Counted {
        /// Redis' clock, in milliseconds.
        redis_ms: i64,
        /// The edge's share of each rate, from 0 to 1.
        share: f64,
        /// The edges of the fleet, also those that are away.
        edges: i64,
    },
}

impl BeatReply {
    /// Reads the items of an answer; `None` if no script of this version gives it.
    pub fn read(items: &[&str]) -> Option<BeatReply> {
        let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
        match *items {
            ["0", redis_ms] => Some(BeatReply::Late { redis_ms: number(redis_ms)? }),
            ["1", redis_ms, share, edges] => Some(BeatReply::Counted {
                redis_ms: number(redis_ms)?,
                share: share.parse().ok().filter(|share| (0.0..=1.0).contains(share))?,
                edges: number(edges).filter(|edges| (1..=EDGES_MAX).contains(edges))?,
            }),
            _ => None,
        }
    }
}

/// The ledger's answer to one debt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebitReply {
    /// The accepted part of the debt, in thousandths of a request.
    pub taken: i64,
    /// How full the bucket is now, in thousandths of a request.
    pub level: i64,
}

impl DebitReply {
    /// Reads the items of an answer to `count` debts; `None` if there is no ledger, or no script of this version gives it.
    pub fn read(items: &[i64], count: usize) -> Option<Vec<DebitReply>> {
        let [1, _, rest @ ..] = items else { return None };
        let (pairs, []) = rest.as_chunks::<2>() else { return None };
        let replies = pairs.iter().map(|&[taken, level]| DebitReply { taken, level });
        let is_sound = |reply: &DebitReply| reply.taken >= 0 && reply.level >= 0;
        let replies: Vec<DebitReply> = replies.filter(is_sound).collect();
        (replies.len() == count).then_some(replies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_strangers_are_not_believed() {
        assert_eq!(BeatReply::read(&["0", "5"]), Some(BeatReply::Late { redis_ms: 5 }));
        let counted = BeatReply::Counted { redis_ms: 5, share: 0.5, edges: 2 };
        assert_eq!(BeatReply::read(&["1", "5", "0.500000000", "2"]), Some(counted));
        for strange in [
            &["1", "5", "1.5", "2"][..],
            &["1", "5", "NaN", "2"],
            &["1", "5", "0.5", "0"],
            &["1", "5", "0.5", "257"],
            &["1", "-5", "0.5", "2"],
            &["0"],
            &[],
        ] {
            assert_eq!(BeatReply::read(strange), None, "{strange:?}");
        }
        assert_eq!(DebitReply::read(&[1, 5, 1000, 2000], 1), Some(vec![DebitReply { taken: 1000, level: 2000 }]));
        for strange in [&[0][..], &[1, 5], &[1, 5, 1000], &[1, 5, -1, 2000], &[1, 5, 1, 2, 3, 4], &[]] {
            assert_eq!(DebitReply::read(strange, 1), None, "{strange:?}");
        }
    }
}
