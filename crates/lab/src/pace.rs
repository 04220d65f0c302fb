//! The rate that a machine bears: each side answers as fast as it can for a moment, and a part of the smaller figure
//! leaves CPU time free.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Value, json};
use weir_net::clock;

use crate::ab::{Tell, measured};
use crate::ask::{Ask, Load, Side};
use crate::block::Block;
use crate::said::{Said, say};
use crate::schedule::ComparedSide;
use crate::stack::{self, BlockFailure, LabDirectory};

/// The part of the smaller capacity that both sides get. Above about 60 % of a capacity, requests wait for each other, and
/// the noise of a busy machine grows with the queue. Far below, a slower application hardly shows.
pub const PART: f64 = 0.4;
/// How long a side answers as fast as it can, and how long it warms up first.
pub const LENGTH: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(2));

/// The pace of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPace {
    /// Answers a second of the side before, and of the side after.
    pub capacity: [f64; 2],
    /// Requests a second for both sides.
    pub rate: f64,
    /// The longest time that a block took beside its warm-up and its measurement: starting, further warm-ups, ending.
    pub beside: Duration,
}

impl MeasuredPace {
    /// The pace, as a run stores it.
    pub fn to_json(&self) -> Value {
        json!({
            "capacity": self.capacity, "rate": self.rate, "part": PART, "beside_s": self.beside.as_secs_f64(),
        })
    }
}

/// Measures both sides, each in a block of its own. `None`: the user stopped it. The error is for the user: a side does not
/// start or does not answer.
pub fn pace(
    ask: &Ask,
    sides: [&Side; 2],
    stop: &AtomicBool,
    tell: &mut dyn Tell,
) -> Result<Option<MeasuredPace>, Said> {
    stack::sweep().iter().for_each(|line| tell.tell(line));
    let Load::Path { path, connections, .. } = &ask.load else { return Ok(None) };
    let load = Load::Path { path: path.clone(), connections: *connections, rate: None };
    let ask = Ask { load, block: LENGTH.0, warm_up: LENGTH.1, is_noisy: true, ..ask.clone() };
    let place = LabDirectory::new()?;
    let (mut capacity, mut beside) = ([0.0; 2], Duration::ZERO);
    let arms = [ComparedSide::Before, ComparedSide::After];
    for (number, ((side, arm), own)) in sides.into_iter().zip(arms).zip(&mut capacity).enumerate() {
        tell.tell_progress(number, sides.len(), &say!(PACE_OF, arm.letter().to_string()));
        let stack = ask.stack(side)?;
        let began = clock::precise();
        let answer = match measured(&ask, side, &stack, &place, &format!("pace-{number}"), number as u64, stop) {
            Ok(answer) => answer,
            Err(BlockFailure::Stopped) => return Ok(None),
            Err(BlockFailure::Broken(why)) => return Err(say!(PACE_BROKEN, arm.letter().to_string(), why)),
        };
        beside = beside.max((clock::precise() - began).saturating_sub(LENGTH.0 + LENGTH.1));
        let block = Block::of(&answer, 0, arm, 0, ask.asked());
        *own = answered(&block).ok_or_else(|| said_of(&block, arm))?;
    }
    let rate = rounded(capacity.into_iter().fold(f64::INFINITY, f64::min) * PART);
    Ok(Some(MeasuredPace { capacity, rate, beside }))
}

/// Answers a second without failures. `None`: hardly any request was answered well.
fn answered(block: &Block) -> Option<f64> {
    let good = block.requests.saturating_sub(block.failed()) as f64 / block.requests.max(1) as f64;
    block.values.get("throughput").map(|all| all * good).filter(|rate| *rate >= 1.0)
}

/// Why a side has no pace.
fn said_of(block: &Block, arm: ComparedSide) -> Said {
    let names: Vec<&str> = block.errors.keys().map(String::as_str).take(3).collect();
    say!(PACE_NONE, arm.letter().to_string(), block.requests, block.failed(), names.join(", "))
}

/// Two significant digits, downwards, so that a repeated run is likely to have the same rate.
fn rounded(rate: f64) -> f64 {
    let step = 10f64.powi((rate.max(1.0).log10().floor() as i32 - 1).max(0));
    ((rate / step).floor() * step).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_two_digits_and_is_at_least_one() {
        let of = |rates: [f64; 6]| rates.map(rounded);
        assert_eq!(of([0.2, 7.9, 42.6, 487.0, 1_234.0, 98_765.0]), [1.0, 7.0, 42.0, 480.0, 1_200.0, 98_000.0]);
    }

    #[test]
    fn failures_are_no_capacity() {
        let mut block = Block { requests: 1_000, ..crate::block::tests::empty() };
        assert_eq!(answered(&block), None);
        block.values.insert("throughput".to_owned(), 500.0);
        assert_eq!(answered(&block), Some(500.0));
        block.errors.insert("502".to_owned(), 900);
        assert_eq!(answered(&block).map(f64::round), Some(50.0));
        block.errors.insert("502".to_owned(), 1_000);
        assert_eq!(answered(&block), None);
        assert!(said_of(&block, ComparedSide::After).contains("502"));
    }
}
