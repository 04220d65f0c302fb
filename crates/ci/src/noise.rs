//! Disturbances of a run: the machines of pipelines are shared.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_lab::metric::digits;
use weir_lab::said::shown_list;
use weir_lab::stats;
use weir_words::{Language, Said, say};

use crate::texts;

/// Most kinds of disturbances that are named.
const NAMED_MAX: usize = 6;

/// A disturbance of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunNoise {
    /// Blocks that ran.
    pub blocks: usize,
    /// Blocks that do not count.
    pub unused: usize,
    /// Blocks that count although something disturbed them.
    pub cautioned: usize,
    /// The share of CPU time that the hypervisor took: in the middle block, and at most.
    pub steal: Option<(f64, f64)>,
    /// The share of CPU time of other work.
    pub foreign: Option<(f64, f64)>,
    /// How late requests were sent, ms: the 99th percentile of a block.
    pub lag_ms: Option<(f64, f64)>,
    /// Each disturbance with the number of its blocks, the most frequent first.
    pub named: Vec<(Said, usize)>,
}

impl RunNoise {
    /// The noise of a run of the lab.
    pub fn of(run: &Value) -> RunNoise {
        let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has = |block: &&Value, key: &str| block[key].as_array().is_some_and(|list| !list.is_empty());
        let unused = blocks.iter().filter(|block| has(block, "spoiled")).count();
        let cautioned = blocks.iter().filter(|block| !has(block, "spoiled") && has(block, "cautions")).count();
        RunNoise {
            blocks: blocks.len(),
            unused,
            cautioned,
            steal: spread(blocks, |block| block["usage"]["steal"].as_f64()),
            foreign: spread(blocks, |block| block["usage"]["foreign"].as_f64()),
            lag_ms: spread(blocks, |block| block["generator"]["lag_p99_ms"].as_f64()),
            named: named(blocks),
        }
    }

    /// The lines of a report.
    pub fn lines(&self) -> Vec<Said> {
        let percent = |share: f64| digits(share * 100.0);
        let mut lines = vec![say!(texts::NOISE_BLOCKS, self.blocks, self.unused, self.cautioned)];
        for (what, share) in [(texts::NOISE_STEAL, self.steal), (texts::NOISE_FOREIGN, self.foreign)] {
            lines.extend(
                share.map(|(middle, most)| say!(texts::NOISE_SHARES, what.with(&[]), percent(middle), percent(most))),
            );
        }
        lines.extend(self.lag_ms.map(|(middle, most)| say!(texts::NOISE_LAG, digits(middle), digits(most))));
        lines.extend(self.named.iter().map(|(what, count)| say!(texts::NOISE_OF, *count, what.clone())));
        if self.unused + self.cautioned == 0 {
            lines.push(say!(texts::NOISE_NONE));
        }
        lines
    }

    /// The noise, as a report stores it.
    pub fn to_json(&self) -> Value {
        let pair = |pair: Option<(f64, f64)>| pair.map(|(middle, most)| json!({"median": middle, "most": most}));
        let named = self.named.iter().map(|(what, count)| json!({"what": what.en(), "blocks": count}));
        json!({
            "blocks": self.blocks, "unused": self.unused, "cautioned": self.cautioned, "steal": pair(self.steal),
            "foreign": pair(self.foreign), "lag_ms": pair(self.lag_ms), "named": named.collect::<Vec<_>>(),
        })
    }
}

fn spread(blocks: &[Value], of: impl Fn(&Value) -> Option<f64>) -> Option<(f64, f64)> {
    let all: Vec<f64> = blocks.iter().filter_map(of).collect();
    let most = all.iter().copied().reduce(f64::max)?;
    Some((stats::median(&all), most))
}

/// Each disturbance with the number of its blocks. Sentences that differ only in their figures are one kind, and the first
/// stands for all.
fn named(blocks: &[Value]) -> Vec<(Said, usize)> {
    let mut kinds: BTreeMap<String, (Said, usize)> = BTreeMap::new();
    for block in blocks {
        for key in ["spoiled", "cautions"] {
            let (en, ko) = (shown_list(block, key, Language::English), shown_list(block, key, Language::Korean));
            for (en, ko) in en.into_iter().zip(ko) {
                let kind: String = en.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
                kinds.entry(kind).or_insert_with(|| (Said::of_both(en, ko), 0)).1 += 1;
            }
        }
    }
    let mut named: Vec<(Said, usize)> = kinds.into_values().collect();
    named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    named.truncate(NAMED_MAX);
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_are_counted_and_none_is_hidden() {
        let block = |steal: f64, spoiled: &[&str], cautions: &[&str]| {
            json!({
                "spoiled": spoiled, "cautions": cautions,
                "usage": {"steal": steal, "foreign": 0.5}, "generator": {"lag_p99_ms": 2.0},
            })
        };
        let run = json!({"blocks": [
            block(0.0, &[], &[]),
            block(0.3, &["other work used 20 %"], &[]),
            block(0.1, &[], &["other work used 31.5 %", "late"]),
        ]});
        let noise = RunNoise::of(&run);
        assert_eq!((noise.blocks, noise.unused, noise.cautioned), (3, 1, 1));
        assert_eq!((noise.steal, noise.lag_ms), (Some((0.1, 0.3)), Some((2.0, 2.0))));
        assert_eq!(noise.named[0].1, 2, "one kind: {:?}", noise.named);
        let lines: Vec<String> = noise.lines().iter().map(|line| line.en().to_owned()).collect();
        assert!(lines.iter().any(|line| line.contains("30") && line.contains("steal")), "{lines:?}");
        assert_eq!(noise.to_json()["named"][0]["blocks"], 2);
        let quiet = RunNoise::of(&json!({"blocks": []}));
        assert!(quiet.lines().iter().any(|line| line.is(texts::NOISE_NONE)));
    }
}
