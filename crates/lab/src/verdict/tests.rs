#![allow(clippy::unwrap_used)]

use super::*;
use crate::metric::{METRICS, of};
use crate::stats::chance::normal;
use crate::stats::{LOOK_ALPHA, LOOKS};
use weir_words::{english_in, is_korean};

/// Pairs with the figures `before` and `before · e^effect`, with the same noise in every run.
fn pairs(metric: &Metric, before: f64, effect: f64, noise: f64, count: usize) -> Vec<Pair> {
    let mut rng = fastrand::Rng::with_seed(11);
    (0..count)
        .map(|_| {
            let d = effect + noise * normal(&mut rng);
            match metric.scale {
                Scale::Ratio => {
                    Pair { before, after: before * d.exp(), failed_before: (0, 1000), failed_after: (0, 1000) }
                }
                Scale::Share => {
                    let failed = (before * 1e6) as u64;
                    let moved = (stats::share_moved(before, d) * 1e6) as u64;
                    let (failed_before, failed_after) = ((failed, 1_000_000), (moved, 1_000_000));
                    Pair { before, after: moved as f64 / 1e6, failed_before, failed_after }
                }
            }
        })
        .collect()
}

struct Case {
    metric: &'static str,
    before: f64,
    effect: f64,
    noise: f64,
    count: usize,
    change: fn(&mut Situation<'_>),
}

const PLAIN: Case = Case { metric: "p95", before: 41.0, effect: 0.0, noise: 0.02, count: 8, change: |_| {} };

fn say(case: &Case) -> Verdict {
    let metric = of(case.metric).unwrap();
    let estimate = Estimate::of(metric, &pairs(metric, case.before, case.effect, case.noise, case.count), 0.05);
    let mut it = Situation {
        metric,
        threshold: metric.threshold,
        estimate: &estimate,
        gate: None,
        pairs_min: 6,
        worse: &[],
        reclassified: &[],
        no_effect: &[],
        minutes_a_pair: 0.75,
    };
    (case.change)(&mut it);
    judge(&it)
}

fn worse() -> &'static [String] {
    Box::leak(Box::new(["errors +2.1 pp".to_owned()]))
}

/// One sentence for each row. A new row without a sentence fails this test.
#[test]
fn every_row_says_its_sentence() {
    let golden: &[(&str, Case, &str)] = &[
        (
            "no verdict",
            Case { change: |it| it.gate = Some(Box::leak(Box::new(say!(SATURATED, "97")))), ..PLAIN },
            "no verdict: load generator saturated (core 97 %)",
        ),
        ("not comparable", Case { count: 1, ..PLAIN }, "not comparable: one run per arm"),
        (
            "no errors",
            Case { metric: "errors", before: 0.0, ..PLAIN },
            "no errors in either: 0 of 8000000 (95 %: at most 0.000037 %) before, 0 of 8000000 (95 %: at most 0.000037 %) after",
        ),
        (
            "trade-off",
            Case { effect: -0.15, change: |it| it.worse = worse(), ..PLAIN },
            "trade-off: p95 −14 % but errors +2.1 pp: not an improvement",
        ),
        (
            "reclassified",
            Case {
                metric: "errors",
                before: 0.05,
                change: |it| it.reclassified = Box::leak(Box::new(["ETIMEDOUT".to_owned()])),
                ..PLAIN
            },
            "errors only changed their kind: fewer ETIMEDOUT, but −0.1…+0.1 pp in all",
        ),
        ("negligible", Case { effect: 0.02, noise: 0.005, ..PLAIN }, "real but negligible: +1.4…+2.7 %"),
        ("better", Case { effect: -0.16, ..PLAIN }, "faster by 12–17 % (95 % CI), p95 41.0→34.6 ms, 8 pairs"),
        ("worse", Case { effect: 0.16, ..PLAIN }, "slower by 14–21 % (95 % CI), p95 41.0→47.7 ms, 8 pairs"),
        (
            "as expected",
            Case {
                change: |it| {
                    it.no_effect = Box::leak(Box::new([Said::of_both("60s is the default", "60s가 기본값입니다")]))
                },
                ..PLAIN
            },
            "as expected: the change has no effective difference (60s is the default)",
        ),
        ("no difference", PLAIN, "no difference larger than 5.0 % (8 pairs)"),
        (
            "inconclusive",
            Case { noise: 0.1, ..PLAIN },
            "inconclusive: −12…+15 %; smallest detectable now 17 %; run 55 more pairs (≈ 42 min) to detect 5.0 %",
        ),
    ];
    for (name, case, text) in golden {
        let verdict = say(case);
        assert_eq!((verdict.name, verdict.text.en()), (*name, *text));
        // The word stays in English with the Korean beside it. No other English word stays.
        let korean = verdict.text.say(Language::Korean);
        let word = match *name {
            "better" => "faster",
            "worse" => "slower",
            name => name,
        };
        assert!(korean.starts_with(&format!("{word} (")) && is_korean(korean), "{korean}");
        assert_eq!(english_in(korean), None, "{korean}");
        assert_eq!(crate::said::read(&verdict.to_json()["text_said"]), Some(verdict.text));
    }
    let names: Vec<&str> = golden.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ROWS.iter().map(|row| row.name).collect::<Vec<_>>());
}

/// The guide contains the present vocabulary.
#[test]
fn the_guide_is_not_stale() {
    assert!(include_str!("../../../../docs/guide/lab.md").contains(&table(Language::English)));
    assert!(include_str!("../../../../docs/guide/lab.ko.md").contains(&table(Language::Korean)));
}

/// For every metric, the word agrees with the direction, and the sentence has the metric's unit.
#[test]
fn words_agree_with_signs() {
    for metric in METRICS {
        for effect in [-0.5, 0.5] {
            let before = if metric.scale == Scale::Share { 0.05 } else { 100.0 };
            let verdict = say(&Case { metric: metric.key, before, effect, noise: 0.01, ..PLAIN });
            let is_good = (effect > 0.0) == (metric.good == GoodDirection::More);
            let (word, name) = if is_good { (metric.words.0, "better") } else { (metric.words.1, "worse") };
            assert!(verdict.text.starts_with(&format!("{} by ", word.en)), "{}: {}", metric.key, verdict.text);
            assert_eq!((verdict.name, verdict.is_regression), (name, !is_good));
            assert!(verdict.text.contains(metric.unit) && verdict.text.contains(" CI)"), "{}", verdict.text);
        }
    }
}

#[test]
fn intervals_of_looks_say_their_confidence() {
    let metric = of("throughput").unwrap();
    let estimate = Estimate::of(metric, &pairs(metric, 1000.0, 0.3, 0.01, 8), LOOK_ALPHA);
    let it = Situation {
        metric,
        threshold: metric.threshold,
        estimate: &estimate,
        gate: None,
        pairs_min: 8,
        worse: &[],
        reclassified: &[],
        no_effect: &[],
        minutes_a_pair: 1.0,
    };
    let text = judge(&it).text;
    assert!(text.contains("(97.8 % CI)") && text.contains("throughput 1000→13") && text.contains("/s,"), "{text}");
}

#[test]
fn a_thousand_more_answers_are_no_fewer_errors() {
    let metric = of("errors").unwrap();
    let pair = Pair { before: 0.0, after: 0.0, failed_before: (0, 10_000), failed_after: (0, 30_000) };
    let estimate = Estimate::of(metric, &[pair; 8], 0.05);
    assert!(estimate.excludes_zero() && !estimate.is_worse(metric, 0.1), "logits differ where sizes do");
    let case = Case { metric: "errors", before: 0.0, ..PLAIN };
    assert_eq!(say(&case).name, "no errors");
}

/// A whole lab of simulated blocks with a drifting level, heavy-tailed noise, and looks. Returns its result.
fn lab(seed: u64, effect: f64, cv: f64) -> (bool, f64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let metric = of("throughput").unwrap();
    let mut found = Vec::new();
    for pair in 0..LOOKS[2] {
        let block = |place: usize, rng: &mut fastrand::Rng, effect: f64| {
            let drift = 1.0 - 0.001 * (2 * pair + place) as f64;
            1000.0 * drift * (effect + cv * normal(rng)).exp()
        };
        let is_first = rng.bool();
        let (one, other) = if is_first { (0.0, effect) } else { (effect, 0.0) };
        let (first, second) = (block(0, &mut rng, one), block(1, &mut rng, other));
        let (before, after) = if is_first { (first, second) } else { (second, first) };
        found.push(Pair { before, after, failed_before: (0, 1), failed_after: (0, 1) });
        if LOOKS.contains(&found.len()) {
            let estimate = Estimate::of(metric, &found, LOOK_ALPHA);
            if is_decided(&estimate, metric, metric.threshold) || found.len() == LOOKS[2] {
                return (estimate.excludes_zero(), estimate.effect);
            }
        }
    }
    unreachable!("the last look ends it")
}

/// 40 labs of a configuration with itself give at most 2 alarms. Of 20 labs with 10 % less, slightly more than the
/// smallest detectable effect, at least 16 find it, and none calls it an improvement.
#[test]
fn labs_of_nothing_are_quiet_and_labs_of_something_are_not() {
    let alarms = (0..40).filter(|seed| lab(*seed, 0.0, 0.05).0).count();
    assert!(alarms <= 2, "{alarms} of 40");
    let slower = 0.9f64.ln();
    let ends: Vec<_> = (100..120).map(|seed| lab(seed, slower, 0.09)).collect();
    let found = ends.iter().filter(|(shown, effect)| *shown && *effect < 0.0).count();
    assert!(found >= 16 && !ends.iter().any(|(shown, effect)| *shown && *effect > 0.0), "{found} of 20");
}

/// An effect exactly as large as the smallest detectable one is found about as often as promised. Signed ranks have
/// 95 % of the efficiency of the t test behind that size, so slightly less than 80 % is correct.
#[test]
fn what_is_called_detectable_is_found() {
    let slower = 0.9f64.ln();
    let cv = -slower / stats::detectable(2f64.sqrt(), LOOKS[2], LOOK_ALPHA);
    let runs = 400u32;
    let found = (0..runs).filter(|seed| lab(u64::from(*seed) + 50_000, slower, cv).0).count();
    let part = found as f64 / f64::from(runs);
    assert!(part >= 0.78 - 3.0 * (0.8f64 * 0.2 / f64::from(runs)).sqrt(), "{part} at CV {cv}");
}

/// With many more labs, the rate itself is known: at most 5 % over all looks.
#[test]
fn false_alarms_are_as_rare_as_promised() {
    let runs = 600u32;
    let alarms = (0..runs).filter(|seed| lab(u64::from(*seed) + 10_000, 0.0, 0.03).0).count();
    let part = alarms as f64 / f64::from(runs);
    assert!(part <= 0.05 + 3.0 * (0.05f64 * 0.95 / f64::from(runs)).sqrt(), "{part}");
}

#[test]
fn both_tables_are_in_both_languages() {
    for table in [table, table_of_why] {
        assert!(table(Language::Korean).starts_with("| 판정 | 조건 |\n"));
        assert!(table(Language::English).starts_with("| verdict | condition |\n"));
        assert_eq!(table(Language::Korean).lines().count(), table(Language::English).lines().count());
    }
}
