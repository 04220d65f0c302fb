//! Effects that the kind of load hides.

use crate::metric::digits;
use crate::said::say;
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Tier, percent};
use crate::why::signals::Signals;

/// A window with less than this part of the usual answers stood still.
const STILL: f64 = 0.2;
/// Least share of a block that stood still.
const SHARE: f64 = 0.02;

/// The rules.
pub const RULES: &[Rule] = &[Rule {
    id: "B38",
    says: texts::CLOSED_LOOP_SENT_NOTHING,
    tier: Tier::Waste,
    check: omitted,
    fires: |s| {
        s.load.is_closed = true;
        s.load.offered = None;
        s.load.ms[4] = 1010.0;
        s.load.strip.iter_mut().take(2).for_each(|window| *window = 0.0);
    },
    // The same gap in an open load: its latencies already show how late each request was.
    silent: |s| {
        s.load.ms[4] = 1010.0;
        s.load.strip.iter_mut().take(2).for_each(|window| *window = 0.0);
    },
}];

fn omitted(s: &Signals) -> Option<FiredRule> {
    let mut sorted = s.load.strip.clone();
    sorted.sort_by(f64::total_cmp);
    let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let still = s.load.strip.iter().filter(|window| **window < STILL * usual).count();
    let share = still as f64 / s.load.strip.len().max(1) as f64;
    let [_, _, _, p99, max] = s.load.ms;
    // The pause is much longer than p99: the percentile does not show it.
    if !s.load.is_closed || usual <= 0.0 || share < SHARE || max < 10.0 * p99.max(1.0) {
        return None;
    }
    // At an even pace, a request during the pause waits for the rest of the pause. The pause holds `share` of all
    // requests, so p99 is the wait that only a hundredth of all requests exceed.
    let length = max * (still as f64).min(1.0);
    let p99_open = (length * (1.0 - 0.01 / share)).max(p99);
    // The finding is about the measurement. It limits nothing.
    let found = FiredRule::new(say!(LOAD_CLOSED_LOOP_DOES), 0.3)
        .with(texts::LABEL_STOOD_STILL, say!(BLOCK_MS_MOST, percent(share), digits(max)))
        .with(texts::LABEL_LATENCY, say!(P99_MS_MEASURED_ABOUT, digits(p99), digits(p99_open)))
        .with(texts::LABEL_SENT, say!(CONNECTIONS_WAIT_ANSWER_BEFORE, &s.load.connections));
    Some(
        found
            .knob(say!(RATE_OPEN_LOAD_MEASURES, digits((s.goodput() * 0.9).floor())), say!(P99_THEN_CONTAINS_PAUSE))
            .for_the_tail(),
    )
}
