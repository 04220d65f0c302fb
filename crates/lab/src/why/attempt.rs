//! A remedy is a hypothesis until the lab has tried it. The lab puts the recommended line into a copy of the
//! configuration and alternates blocks of the copy with blocks of the original.

use std::fs;
use std::path::Path;

use super::blocks::{AGAIN_MAX, Ended, Lab, gate, write_overlays};
use super::remedy::{self, Made};
use super::rule::percent;
use super::say::EndFacts;
use super::signals::Signals;
use super::tried::{Copied, Tried, Word};
use super::widen;
use crate::ask::Load;
use crate::metric::{self, digits};
use crate::said::{Said, say};
use crate::schedule::{ComparedSide, blocks};
use crate::stats;
use crate::texts;

/// A larger relative change is printed in words, without its figure.
const TENFOLD: f64 = 9.0;

/// The figure that a try compares.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    /// Good answers a second: more is better.
    Answers,
    /// A quantile of the latency. The index is its place in [`super::signals::LoadSignals::ms`]. Less is better.
    Latency(&'static str, usize),
}

impl Lab<'_> {
    /// Writes the copy with the remedy of a finding, and compares it with the original.
    pub(super) fn attempt(&mut self, facts: &mut EndFacts, lead: usize) -> Result<(), Ended> {
        let Some(found) = facts.findings.get(lead).map(|finding| finding.found.clone()) else { return Ok(()) };
        let made = match remedy::made(&found.knob, &self.it.side.tree) {
            Ok(made) => made,
            Err(why) => {
                facts.tried = Some(Tried::without(Word::CannotBeTried, why));
                return Ok(());
            }
        };
        let copied = copy(&made, &self.it.store, &self.id).map_err(Ended::Broken)?;
        facts.copied = Some(copied.clone());
        facts.tried = Some(match self.compare(facts, found.is_of_tail, &made, &copied) {
            Ok(tried) => tried,
            // Keep the findings so far.
            Err(Ended::Stopped) => Tried::without(Word::NotTried, say!(STOPPED_BEFORE_END)),
            Err(Ended::Broken(why)) => Tried::without(Word::CannotBeTried, why.lines().next().unwrap_or_default()),
        });
        Ok(())
    }

    fn compare(&mut self, facts: &EndFacts, is_of_tail: bool, made: &Made, copied: &Copied) -> Result<Tried, Ended> {
        if made.names().iter().any(|name| name == "gzip") && facts.full.load.accepts_gzip == Some(false) {
            let why = say!(LOAD_DOES_REQUEST_COMPRESSED);
            return Ok(Tried::without(Word::CannotBeTried, why));
        }
        if !self.it.ask.is_isolated && copied.is_beside {
            return Ok(Tried::without(Word::CannotBeTried, say!(WITHOUT_ROOT_COPY_MUST)));
        }
        let measure = match measure(facts, is_of_tail) {
            Ok(measure) => measure,
            Err(why) => return Ok(Tried::without(Word::CannotBeTried, why)),
        };
        let pairs = match self.it.trying.pairs(&self.it.ask) {
            Ok(pairs) => pairs,
            Err(_) if self.it.trying.budget.is_zero() => return Ok(Tried::without(Word::NotTried, say!(TRY_TRIES))),
            Err(why) => return Ok(Tried::without(Word::NotTried, why)),
        };
        let load = self.it.ask.load.clone();
        let mut found = vec![(0.0, 0.0); pairs];
        for place in blocks(self.it.seed, pairs) {
            let after = place.arm == ComparedSide::After;
            let what = if after { "trying the remedy" } else { "as it is" };
            self.tell.progress(place.index, 2 * pairs, what);
            let Some(signals) = self.tried(&load, after.then_some((made, copied)))? else {
                return Ok(Tried::without(Word::NotTried, say!(BLOCKS_UNUSABLE_BECAUSE_LOAD)));
            };
            if let Some(pair) = found.get_mut(place.pair) {
                let value = figure(measure, &signals);
                if after { pair.1 = value } else { pair.0 = value }
            }
        }
        let offered = match &load {
            Load::Path { rate, .. } => *rate,
            Load::Script { .. } => None,
        };
        Ok(judged(measure, found, offered))
    }

    /// A block of the original, or of the copy. `None` if three blocks in a row were spoiled.
    fn tried(&mut self, load: &Load, with: Option<(&Made, &Copied)>) -> Result<Option<Signals>, Ended> {
        for _ in 0..=AGAIN_MAX {
            let (mut spec, dir) = self.spec(load)?;
            match with {
                Some((made, _)) if self.it.ask.is_isolated => {
                    spec.overlays = write_overlays(&dir, &made.files).map_err(Ended::Broken)?;
                }
                Some((_, copied)) => {
                    let edge = spec.edge.clone();
                    let own = spec.processes.iter_mut().filter(|process| process.name == edge);
                    let original = self.it.side.file.display().to_string();
                    own.flat_map(|process| process.argv.iter_mut()).filter(|word| **word == original).for_each(
                        |word| {
                            *word = copied.file.display().to_string();
                        },
                    );
                }
                None => {}
            }
            let signals = self.block(&spec, load)?;
            if gate(&signals).is_none() {
                return Ok(Some(signals));
            }
        }
        Ok(None)
    }
}

/// Writes the copy into the directory of the runs.
fn copy(made: &Made, store: &Path, id: &str) -> Result<Copied, Said> {
    let file = store.join(format!("{id}.after.conf"));
    let file = std::path::absolute(&file).unwrap_or(file);
    let written = fs::create_dir_all(store).and_then(|()| fs::write(&file, made.text()));
    written.map_err(|error| say!(ERR_FILE, file.display().to_string(), error.to_string()))?;
    Ok(Copied { file, names: made.names(), is_beside: !made.is_movable() })
}

/// The figure that the try compares. At saturation or in a closed loop: good answers. Below saturation: latency.
fn measure(facts: &EndFacts, is_of_tail: bool) -> Result<Measure, Said> {
    if facts.is_saturated || facts.full.load.is_closed {
        return Ok(Measure::Answers);
    }
    let requests = facts.full.load.sent;
    [("p95", 2), ("p50", 1)]
        .into_iter()
        // The median does not show a shorter tail.
        .filter(|(key, _)| *key != "p50" || !is_of_tail)
        .find(|(key, _)| metric::of(key).is_some_and(|metric| requests >= metric.requests_min))
        .map(|(key, at)| Measure::Latency(key, at))
        .ok_or_else(|| say!(REQUESTS_BLOCK_TOO_FEW, requests))
}

fn figure(measure: Measure, signals: &Signals) -> f64 {
    match measure {
        Measure::Answers => signals.goodput(),
        Measure::Latency(_, at) => signals.load.ms.get(at).copied().unwrap_or(0.0),
    }
}

/// Judges the pairs: the exact 95 % interval of the change, and one of four words.
fn judged(measure: Measure, pairs: Vec<(f64, f64)>, offered: Option<f64>) -> Tried {
    let (sign, needed) = match measure {
        Measure::Answers => (1.0, widen::needed(&pairs, offered)),
        Measure::Latency(key, _) => (-1.0, metric::of(key).map_or(0.05, |metric| metric.threshold)),
    };
    let logs: Vec<f64> = pairs.iter().map(|(before, after)| (after.max(1e-3) / before.max(1e-3)).ln()).collect();
    let Some(interval) = stats::interval(&logs, 0.95) else {
        return Tried { pairs, ..Tried::without(Word::NotShown, say!(TOO_FEW_PAIRS)) };
    };
    let part = |log: f64| log.exp_m1();
    let value = stats::hodges_lehmann(&logs);
    // From here, a positive change is an improvement.
    let (one, other) = (sign * interval.low, sign * interval.high);
    let (low, high) = (one.min(other), one.max(other));
    let bound = needed.ln_1p();
    let word = match () {
        () if low > 0.0 && sign * value >= bound => Word::Helps,
        () if high < 0.0 && -sign * value >= bound => Word::MakesItWorse,
        () if high < bound.max(f64::MIN_POSITIVE) || (low > -bound && high < bound) => Word::DoesNotHelp,
        () => Word::NotShown,
    };
    let middle = |of: fn(&(f64, f64)) -> f64| digits(stats::median(&pairs.iter().map(of).collect::<Vec<_>>()));
    let signed = |log: f64| match part(log) {
        // If the figure before was almost zero, a percentage means nothing. The figures follow in the text.
        part if part > TENFOLD => say!(MORE_THAN_TENFOLD),
        part => Said::from(format!("{}{}", if part < 0.0 { "-" } else { "+" }, percent(part.abs()))),
    };
    let holes = [
        signed(value),
        signed(interval.low),
        signed(interval.high),
        Said::from(middle(|pair| pair.0)),
        Said::from(middle(|pair| pair.1)),
        Said::from(pairs.len()),
    ];
    let figures = match measure {
        Measure::Answers => texts::GOOD_ANSWERS_IN_PAIRS.with(&holes),
        Measure::Latency(key, _) => texts::LATENCY_IN_PAIRS.with(&[&[Said::from(key)], holes.as_slice()].concat()),
    };
    Tried { name: word.name().to_owned(), text: word.text().with(&[figures]), pairs }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::stats::chance::normal;

    fn pairs(before: f64, after: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut block = |mean: f64| mean * (noise * normal(&mut rng)).exp();
        (0..8).map(|_| (block(before), block(after))).collect()
    }

    #[test]
    fn a_try_says_one_of_four_words() {
        let of = |measure, after: f64, noise| judged(measure, pairs(190.0, after, noise, 3), None).name;
        assert_eq!(of(Measure::Answers, 240.0, 0.01), "helps");
        assert_eq!(of(Measure::Answers, 190.0, 0.005), "does not help");
        assert_eq!(of(Measure::Answers, 150.0, 0.01), "makes it worse");
        assert_eq!(of(Measure::Answers, 200.0, 0.30), "not shown to help");
        assert_eq!(of(Measure::Latency("p50", 1), 120.0, 0.01), "helps");
        assert_eq!(of(Measure::Latency("p50", 1), 240.0, 0.01), "makes it worse");
        let text = judged(Measure::Answers, pairs(100.0, 110.0, 0.0, 1), None).text;
        assert_eq!(text, "helps: good answers +10 % [+10 %, +10 %], from 100 to 110/s, 8 pairs of blocks");
    }

    #[test]
    fn more_than_nothing_has_no_per_cent() {
        let text = judged(Measure::Answers, vec![(0.0, 200.0); 8], None).text;
        let tenfold = "more than tenfold";
        assert_eq!(
            text,
            format!("helps: good answers {tenfold} [{tenfold}, {tenfold}], from 0 to 200/s, 8 pairs of blocks")
        );
    }

    /// A remedy without effect may be judged `helps` no more often than a 95 % interval allows.
    #[test]
    fn what_does_nothing_is_not_said_to_help() {
        let helps = |seed| judged(Measure::Answers, pairs(190.0, 190.0, 0.03, seed), None).name == "helps";
        let wrong = (0..400).filter(|seed| helps(*seed)).count();
        assert!(wrong <= 20, "{wrong} of 400");
    }

    #[test]
    fn few_failures_can_be_mended() {
        let few: Vec<(f64, f64)> = vec![(995.0, 1000.0); 8];
        assert_eq!(judged(Measure::Answers, few.clone(), Some(1000.0)).name, "helps");
        assert_eq!(judged(Measure::Answers, few, None).name, "does not help", "half a per cent of a closed loop");
    }

    #[test]
    fn what_is_not_full_has_to_answer_sooner() {
        let mut facts = EndFacts { full: Signals::quiet(), is_saturated: true, ..EndFacts::default() };
        assert_eq!(measure(&facts, false), Ok(Measure::Answers));
        facts.is_saturated = false;
        assert_eq!(measure(&facts, false), Ok(Measure::Latency("p95", 2)));
        facts.full.load.sent = 600;
        assert_eq!(measure(&facts, false), Ok(Measure::Latency("p50", 1)));
        assert!(measure(&facts, true).is_err(), "the median says nothing of a tail");
        facts.full.load.sent = 30;
        assert!(measure(&facts, false).is_err());
    }
}
