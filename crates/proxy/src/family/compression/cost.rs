//! The memory of coders, reckoned before they are made, and the plans that need less of it.
//!
//! The figures are upper bounds of the memory that the libraries take; a test beside the coders measures it.

use super::coding::{Coding, CodingPlan};

/// zlib's window and tables are the same for every level.
const GZIP_BYTES: u64 = 400 << 10;

/// The largest window of brotli in bits (RFC 7932 §9.1).
pub const BROTLI_WINDOW_BITS_MAX: i32 = 24;

/// The smallest window of brotli in bits.
const BROTLI_WINDOW_BITS_MIN: i32 = 10;

/// At these levels, the library has tables of 34 MB for windows below 17 bits.
const BROTLI_LEVELS_WITHOUT_SMALL: std::ops::RangeInclusive<i32> = 5..=9;
const BROTLI_WINDOW_BITS_MIN_THERE: i32 = 17;

/// The window of brotli in bits: a short body needs no larger one than itself, and the tables are then small, too.
pub fn brotli_window(level: i32, most: i32, length: Option<u64>) -> i32 {
    let least = match BROTLI_LEVELS_WITHOUT_SMALL.contains(&level) {
        true => BROTLI_WINDOW_BITS_MIN_THERE,
        false => BROTLI_WINDOW_BITS_MIN,
    };
    let fits = |bits: &i32| length.is_some_and(|length| length <= 1 << bits);
    (least..most).find(fits).unwrap_or(most.max(least))
}

/// The most memory that the coder of a plan takes, in bytes.
pub fn bytes(plan: CodingPlan) -> u64 {
    match plan.coding {
        Coding::Gzip => GZIP_BYTES,
        Coding::Brotli => {
            let window =
                1 << brotli_window(plan.level, plan.window_bits.unwrap_or(BROTLI_WINDOW_BITS_MAX), plan.length);
            // Tables of the level in KiB, and windows of input and output.
            let (tables, windows) = match plan.level {
                ..=1 => return 256 << 10,
                2..=3 => (640, 6),
                4 => (5_632, 6),
                5 => (3_072, 6),
                6 => (5_120, 6),
                7 => (10_240, 6),
                8 => (18_432, 6),
                9 => (36_864, 6),
                10.. => (4_096, 12),
            };
            (tables << 10) + windows * window
        }
        Coding::Zstd => {
            let by_level = match (plan.level, plan.window_bits) {
                (..=1, Some(_)) => 640,
                (..=1, None) => 1_408,
                (2, _) => 2_112,
                (3, _) => 3_648,
                (4, _) => 4_928,
                (5..=6, _) => 5_440,
                (7..=8, _) => 8_192,
                (9..=10, _) => 24_576,
                (11..=12, _) => 47_104,
                (13..=17, _) => 73_728,
                (18, _) => 61_440,
                (19, _) => 94_208,
                (20, _) => 180_224,
                (21.., _) => 696_320,
            };
            // A short body has small tables at every level.
            let by_length = plan.length.map_or(u64::MAX, |length| (2_048 << 10) + 20 * length);
            (by_level << 10).min(by_length)
        }
    }
}

/// The same coding with little memory, for a time when many coders are open.
pub fn small(plan: CodingPlan) -> CodingPlan {
    match plan.coding {
        Coding::Gzip => plan,
        Coding::Brotli => CodingPlan { level: plan.level.min(1), ..plan },
        Coding::Zstd => CodingPlan { level: plan.level.min(1), window_bits: Some(16), ..plan },
    }
}
