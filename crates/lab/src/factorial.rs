//! Several changes at once, with separate effects: all combinations, blocks in rounds, main effects and interactions
//! (2^k).
//!
//! A round has each combination once, in a random order. The next round has the reverse order, so that a drift
//! cancels out. A contrast of a round's figures, in logarithms, is one number. Rounds then play the role of pairs.

mod mix;
mod text;

use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use weir_net::clock;

use crate::ab::{Tell, Turned, again, environment_of, measured, now_ms, side_json};
use crate::ask::{Ask, Design, Side, Stack};
use crate::block::Block;
use crate::metric::{METRICS, Metric, Scale};
use crate::said::{Said, say};
use crate::schedule::ComparedSide;
use crate::stack::{self, LabDirectory};
use crate::stats;
use crate::store;
use crate::verdict::{self, Basis, Estimate, Situation};

pub use mix::{FACTORS_MAX, Factor, factors, mixed};
pub use text::text;

/// An experiment.
#[derive(Clone, Debug)]
pub struct Factorial {
    /// The changes, each a factor.
    pub factors: Vec<Factor>,
    /// The combinations. Bit i of an index says whether factor i is on.
    pub sides: Vec<Side>,
    /// The settings that all blocks share.
    pub ask: Ask,
    /// The metric, the threshold and the seed. Its single look is after this many rounds.
    pub design: Design,
}

/// The default number of rounds: the least with which every contrast can be shown, and at least eight.
pub fn rounds(factors: usize) -> usize {
    rounds_min(factors).max(8)
}

/// With fewer rounds, no contrast has an interval.
fn rounds_min(factors: usize) -> usize {
    (stats::PAIRS_MIN..=stats::PAIRS_MAX)
        .find(|n| 0.5f64.powi(*n as i32 - 1) <= alpha(factors))
        .unwrap_or(stats::PAIRS_MAX)
}

/// The level of each contrast, so that all of them together give a false alarm once in twenty (Bonferroni).
fn alpha(factors: usize) -> f64 {
    stats::ALPHA / ((1usize << factors) - 1) as f64
}

/// The order of combinations in each round.
fn order(seed: u64, cells: usize, rounds: usize) -> Vec<Vec<usize>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut found: Vec<Vec<usize>> = Vec::with_capacity(rounds);
    while found.len() < rounds {
        let mut one: Vec<usize> = (0..cells).collect();
        rng.shuffle(&mut one);
        let other = one.iter().rev().copied().collect();
        found.extend([one, other]);
    }
    found.truncate(rounds);
    found
}

/// Runs the experiment and returns the run as it is stored. The error is for the user: nothing could be measured.
pub fn run(it: &Factorial, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Value, Said> {
    stack::sweep().iter().for_each(|line| tell.tell(line));
    crate::ab::refuse_too_few(&it.ask, it.design.primary, &it.design)?;
    let all = it.design.looks.pairs_max() * it.sides.len();
    tell.tell(&crate::outlook::duration(&it.ask, (all, all)));
    let stacks = it.sides.iter().map(|side| it.ask.stack(side)).collect::<Result<Vec<Stack>, Said>>()?;
    let (place, began, started_ms, id) = (LabDirectory::new()?, clock::precise(), now_ms(), store::new_id());
    let rounds = it.design.looks.pairs_max();
    let of = rounds * it.sides.len();
    let (mut blocks, mut done, mut gate): (Vec<(usize, Block)>, usize, Option<Said>) = (Vec::new(), 0, None);
    'rounds: for (round, cells) in order(it.design.seed, it.sides.len(), rounds).into_iter().enumerate() {
        for cell in cells {
            let (Some(side), Some(stack)) = (it.sides.get(cell), stacks.get(cell)) else { continue };
            let what = say!(ROUND, round + 1, rounds, cell_name(&it.factors, cell));
            tell.tell_progress(done, of, &what);
            let mut tried = Vec::new();
            let seed = it.design.seed.wrapping_add(round as u64 * 0x9E37_79B9);
            let turned = again(&what, stop, tell, &mut tried, &mut |attempt| {
                let answer = measured(&it.ask, side, stack, &place, &format!("{done}-{attempt}"), seed, stop)?;
                Ok(vec![Block::of(&answer, round, ComparedSide::Before, attempt, it.ask.asked())])
            })?;
            blocks.extend(tried.into_iter().map(|block| (cell, block)));
            done += 1;
            match turned {
                Turned::Good => {}
                Turned::Stopped => break 'rounds,
                Turned::Spoiled(why) => {
                    gate = Some(why);
                    break 'rounds;
                }
            }
        }
    }
    let minutes_a_round =
        (clock::precise() - began).as_secs_f64() / 60.0 / blocks.len().max(1) as f64 * it.sides.len() as f64;
    let found = analyse(it, &blocks, gate.as_ref(), minutes_a_round);
    let (Some(first), Some(last)) = (it.sides.first(), it.sides.last()) else {
        return Err("no combinations".into());
    };
    Ok(json!({
        "version": 1,
        "id": id,
        "kind": "factorial",
        "started_ms": started_ms,
        "ended_ms": now_ms(),
        "seed": it.design.seed,
        "asked": it.ask.to_json(),
        "load": it.ask.load_in_words(),
        "load_said": it.ask.load_said(),
        "before": side_json(first),
        "after": side_json(last),
        "environment": environment_of(first, last),
        "factors": it.factors.iter().map(|factor| json!({
            "name": factor.name, "changes": factor.changes.iter().map(Said::en).collect::<Vec<_>>(), "changes_said": factor.changes,
        })).collect::<Vec<_>>(),
        "cells": (0..it.sides.len()).map(|cell| cell_name(&it.factors, cell).en().to_owned()).collect::<Vec<_>>(),
        "cells_said": (0..it.sides.len()).map(|cell| cell_name(&it.factors, cell)).collect::<Vec<_>>(),
        "design": {"primary": it.design.primary.key, "threshold": it.design.threshold, "rounds": rounds, "alpha": alpha(it.factors.len())},
        "is_interrupted": stop.load(std::sync::atomic::Ordering::Relaxed),
        "blocks": kept(it, &blocks),
        "effects": found.effects,
        "gate": gate.as_ref().map(Said::en),
        "gate_said": gate,
        "verdict": found.verdict,
    }))
}

/// The blocks as a run stores them, each with its combination.
fn kept(it: &Factorial, blocks: &[(usize, Block)]) -> Vec<Value> {
    let one = |(cell, block): &(usize, Block)| {
        let (mut json, arm) = (block.to_json(), cell_name(&it.factors, *cell));
        json["arm"] = arm.en().into();
        json["arm_said"] = json!(arm);
        json["cell"] = (*cell).into();
        json
    };
    blocks.iter().map(one).collect()
}

/// `nothing`, `keepalive`, `keepalive with gzip`.
fn cell_name(factors: &[Factor], cell: usize) -> Said {
    let on =
        factors.iter().enumerate().filter(|(at, _)| cell >> at & 1 == 1).map(|(_, factor)| Said::from(&factor.name));
    on.reduce(|one, other| say!(WITH, one, other)).unwrap_or_else(|| say!(NOTHING))
}

/// The results of the analysis.
struct Found {
    effects: Vec<Value>,
    verdict: Value,
}

/// The contrasts, as sets of factors. One factor is a main effect; several are an interaction.
fn contrasts(factors: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (1..1usize << factors).collect();
    all.sort_by_key(|mask| (mask.count_ones(), *mask));
    all
}

fn analyse(it: &Factorial, blocks: &[(usize, Block)], gate: Option<&Said>, minutes_a_round: f64) -> Found {
    let count = it.factors.len();
    let mut effects = Vec::new();
    let (mut sentences, mut name, mut is_regression) = (Vec::new(), "factorial", false);
    for mask in contrasts(count) {
        let of = |metric: &'static Metric| estimate(blocks, count, mask, metric);
        let worse: Vec<String> = METRICS
            .iter()
            .filter(|metric| metric.is_guard && metric.key != it.design.primary.key)
            .filter_map(|metric| {
                of(metric).filter(|estimate| estimate.is_worse(metric, metric.threshold)).map(|e| (metric, e))
            })
            .map(|(metric, e)| format!("{} {}", metric.key, verdict::signed(metric, e.amount(metric, e.effect))))
            .collect();
        for metric in METRICS {
            let Some(estimate) = of(metric) else { continue };
            let is_primary = metric.key == it.design.primary.key;
            let threshold = if is_primary { it.design.threshold } else { metric.threshold };
            let situation = Situation {
                metric,
                threshold,
                estimate: &estimate,
                gate,
                pairs_min: rounds_min(count),
                worse: if metric.is_guard { &[] } else { &worse },
                reclassified: &[],
                no_effect: &[],
                minutes_a_pair: minutes_a_round,
            };
            let said =
                if mask.count_ones() == 1 { verdict::judge(&situation) } else { verdict::interaction(&situation) };
            if is_primary {
                is_regression |= said.is_regression;
                if matches!(said.name, "no verdict" | "not comparable") {
                    name = said.name;
                }
                sentences.push(say!(NAMED, cell_name(&it.factors, mask), &said.text));
            }
            let amount = |d: f64| Some(estimate.amount(metric, d)).filter(|value| value.is_finite());
            let interval = estimate.interval.filter(|_| !estimate.has_no_errors(metric));
            effects.push(json!({
                "metric": metric.key, "mask": mask, "of": cell_name(&it.factors, mask).en(), "of_said": cell_name(&it.factors, mask), "rounds": estimate.pairs,
                "effect": amount(estimate.effect), "interval": interval.map(|i| [amount(i.low), amount(i.high)]),
                "p": Some(estimate.p).filter(|p| p.is_finite()), "verdict": said.name, "text": said.text.en(), "text_said": said.text,
            }));
        }
    }
    let has_any = !sentences.is_empty();
    let sentences = match gate {
        Some(why) => vec![say!(NO_VERDICT, why)],
        None if sentences.is_empty() => vec![say!(NOT_COMPARABLE, say!(NO_ROUND))],
        None => sentences,
    };
    let name = if gate.is_some() {
        "no verdict"
    } else if !has_any {
        "not comparable"
    } else {
        name
    };
    let text = Said::list(&sentences, "; ");
    let verdict = json!({
        "name": name, "text": text.en(), "text_said": text, "is_regression": is_regression && gate.is_none(),
        "sentences": sentences.iter().map(Said::en).collect::<Vec<_>>(), "sentences_said": sentences,
    });
    Found { effects, verdict }
}

/// Estimates one contrast of a metric from the rounds. `None` if no round is complete.
///
/// For one factor, it is the mean change that the factor makes, over all states of the others. For several factors,
/// it is how much each of them alters the effects of the others.
fn estimate(blocks: &[(usize, Block)], factors: usize, mask: usize, metric: &'static Metric) -> Option<Estimate> {
    let cells = 1usize << factors;
    let rounds = blocks.iter().map(|(_, block)| block.pair + 1).max()?;
    let usable = |round: usize, cell: usize| {
        blocks
            .iter()
            .find(|(at, block)| *at == cell && block.pair == round && block.spoiled.is_empty())
            .map(|(_, block)| block)
    };
    let on_scale = |block: &Block| match metric.scale {
        Scale::Ratio => block.values.get(metric.key).map(|value| value.ln()),
        Scale::Share => Some(stats::empirical_logit((block.failed(), block.requests))),
    };
    let others = (cells >> mask.count_ones()) as f64;
    let mut differences = Vec::new();
    let mut halves: [Vec<&Block>; 2] = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        let whole: Option<Vec<&Block>> = (0..cells).map(|cell| usable(round, cell)).collect();
        let Some(whole) = whole else { continue };
        let figures: Option<Vec<f64>> = whole.iter().map(|block| on_scale(block)).collect();
        let Some(figures) = figures else { continue };
        let signed = figures.iter().enumerate().map(|(cell, figure)| {
            let off = (mask & !cell).count_ones();
            if off.is_multiple_of(2) { *figure } else { -figure }
        });
        differences.push(signed.sum::<f64>() / others);
        for (cell, block) in whole.into_iter().enumerate() {
            if let Some(half) = halves.get_mut(usize::from(cell & mask == mask)) {
                half.push(block);
            }
        }
    }
    let [off, on] = halves;
    let middle = |half: &[&Block]| {
        stats::median(&half.iter().filter_map(|b| b.values.get(metric.key).copied()).collect::<Vec<_>>())
    };
    let failed = |half: &[&Block]| half.iter().fold((0, 0), |sum, b| (sum.0 + b.failed(), sum.1 + b.requests));
    (!differences.is_empty()).then(|| Estimate {
        basis: Basis::Rounds,
        middles: (middle(&off), middle(&on)),
        failed: (failed(&off), failed(&on)),
        ..Estimate::of_differences(&differences, alpha(factors))
    })
}

#[cfg(test)]
mod tests;
