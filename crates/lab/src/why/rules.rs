//! All rules, and their findings in a block, by falling weight.

mod behind;
mod blocked;
mod bursts;
mod cache;
mod cpu;
mod ended;
mod growing;
mod held;
mod inside;
mod limits;
mod load;
mod network;
mod outage;
mod policy;
mod programs;
mod rate;
mod rejected;
mod upstream;
pub(super) mod waits;

use serde_json::{Value, json};
use weir_words::{Language, words};

use super::rule::{FiredRule, MINOR, Rule, Segment, Tier};
use super::signals::Signals;
use crate::said::{self, Said, Text};

/// Most findings that are kept.
pub const FINDINGS_MAX: usize = 3;

/// Every rule, grouped by family.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        policy::RULES,
        rate::RULES,
        outage::RULES,
        limits::RULES,
        cpu::RULES,
        inside::RULES,
        behind::RULES,
        blocked::RULES,
        ended::RULES,
        rejected::RULES,
        held::RULES,
        upstream::RULES,
        cache::RULES,
        network::RULES,
        load::RULES,
        bursts::RULES,
        growing::RULES,
        waits::RULES,
    ]
    .into_iter()
    .flatten()
}

/// A rule's finding with its score.
#[derive(Clone)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// What it found.
    pub found: FiredRule,
    /// Degree of fullness, times certainty, times the share of the time that it explains.
    pub score: f64,
}

impl Finding {
    /// Whether the finding may be the bottleneck. Minor waste is reported, but never suspected.
    pub fn may_limit(&self) -> bool {
        self.rule.tier != Tier::Waste || self.found.degree > MINOR
    }

    /// The finding, as a run stores it.
    pub(super) fn to_json(&self) -> Value {
        let found = &self.found;
        let evidence = |of: &dyn Fn(&(Text, Said)) -> Value| found.evidence.iter().map(of).collect::<Vec<_>>();
        let mut json = json!({
            "rule": self.rule.id,
            "says": self.rule.says.en,
            "what": found.subject.en(),
            "remedy": found.knob.en(),
            "score": (self.score * 1000.0).round() / 1000.0,
            "evidence": evidence(&|(label, text)| json!([label.en, text.en()])),
            "evidence_said": evidence(&|(label, text)| json!([Said::from(*label), text])),
        });
        for (name, said) in [("subject", &found.subject), ("knob", &found.knob), ("expect", &found.expect)] {
            said::keep(&mut json, name, Some(said));
        }
        json
    }
}

/// The findings of all rules. `grew` is the share that each part of a request's way has in the growth from half the
/// load to this load. Without it, the score ignores time.
pub fn find(signals: &Signals, grew: Option<&[(Segment, f64)]>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = all()
        .filter_map(|rule| {
            let found = (rule.check)(signals)?;
            let explained = match grew {
                Some(grew) if !found.explains.is_empty() => grew
                    .iter()
                    .filter(|(segment, _)| found.explains.contains(segment))
                    .map(|(_, share)| share.max(0.0))
                    .sum::<f64>(),
                // A finding that makes requests fail need not make any slower.
                _ => 1.0,
            };
            // Times are means over a block, and shares of a small growth are noise. So the score of a suspect is
            // halved, not set to 0.
            let score = rule.tier.weight() * found.degree.max(0.05) * (0.5 + 0.5 * explained.min(1.0));
            Some(Finding { rule, found, score })
        })
        .collect();
    // Requests that a policy refused never reached any other resource that may be full.
    findings.sort_by(|one, other| has_acted(other).cmp(&has_acted(one)).then(other.score.total_cmp(&one.score)));
    findings.truncate(FINDINGS_MAX);
    findings
}

/// A policy of the configuration refused or delayed a large part of the requests.
fn has_acted(finding: &Finding) -> bool {
    finding.rule.tier == Tier::Policy && finding.found.degree >= policy::LARGE
}

/// Whether the first finding is a policy that refused or delayed a large part of the requests. Then no other finding
/// counts.
pub fn is_policy(findings: &[Finding]) -> bool {
    findings.first().is_some_and(has_acted)
}

/// The rules as a table, for the guide.
pub fn table(language: Language) -> String {
    let rows = all().map(|rule| format!("| {} | {} |\n", rule.id, rule.says.say(language)));
    let head = words("rule | condition", "규칙 | 조건").say(language);
    format!("| {head} |\n|---|---|\n{}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_speaks_and_is_silent_where_it_says() {
        assert_eq!(
            find(&Signals::quiet(), None).len(),
            0,
            "{:?}",
            find(&Signals::quiet(), None).iter().map(|f| f.rule.id).collect::<Vec<_>>()
        );
        for rule in all() {
            let mut signals = Signals::quiet();
            (rule.fires)(&mut signals);
            let found = (rule.check)(&signals);
            assert!(found.is_some(), "{} is silent where it should speak", rule.id);
            let found = found.unwrap_or_default();
            assert!(!found.subject.is_empty() && !found.knob.is_empty() && !found.expect.is_empty(), "{}", rule.id);
            assert!((1..=6).contains(&found.evidence.len()), "{}", rule.id);
            assert!(
                found.evidence.iter().any(|(_, text)| text.contains(|c: char| c.is_ascii_digit())),
                "{}: no number",
                rule.id
            );
            let mut signals = Signals::quiet();
            (rule.silent)(&mut signals);
            assert_eq!((rule.check)(&signals), None, "{} speaks where it should be silent", rule.id);
        }
    }

    #[test]
    fn the_heaviest_of_what_a_rules_own_case_shows_is_its_own() {
        for rule in all() {
            let mut signals = Signals::quiet();
            (rule.fires)(&mut signals);
            let first = find(&signals, None).first().map(|finding| finding.rule.id);
            // A full core explains the wait of a full pool. An imbalance is also a full core.
            let also: &[&str] = match rule.id {
                "B18" => &["B18", "B19"],
                "B13" => &["B13", "B12"],
                id => &[id],
            };
            assert!(
                first.is_some_and(|first| also.contains(&first)) || first == Some(rule.id),
                "{}: {first:?}",
                rule.id
            );
        }
    }

    /// Pairs whose test blocks set the same figure, so that the second one undoes the first.
    const UNDONE: [[&str; 2]; 8] = [
        ["B64", "B27"],
        ["B13", "B19"],
        ["B14", "B18"],
        ["B04", "B02"],
        ["B63", "B03"],
        ["B63", "B28"],
        ["B02", "B04"],
        ["B02", "B03"],
    ];

    /// Faults come in company. A third cause is never the first of the findings.
    #[test]
    fn of_two_causes_at_once_one_is_the_first() {
        for one in all() {
            for other in all().filter(|other| other.id != one.id && !UNDONE.contains(&[one.id, other.id])) {
                let mut signals = Signals::quiet();
                (one.fires)(&mut signals);
                (other.fires)(&mut signals);
                let found: Vec<&str> = find(&signals, None).iter().map(|finding| finding.rule.id).collect();
                let is_one = found.first().is_some_and(|first| [one.id, other.id].contains(first));
                // Either order of the two undoes what it undoes.
                assert!(is_one || UNDONE.contains(&[other.id, one.id]), "{} and {}: {found:?}", one.id, other.id);
            }
        }
    }

    #[test]
    fn the_guide_has_the_tables() {
        for (language, guide) in [
            (Language::English, include_str!("../../../../docs/guide/why.md")),
            (Language::Korean, include_str!("../../../../docs/guide/why.ko.md")),
        ] {
            for part in [table(language), crate::verdict::table_of_why(language)] {
                assert!(guide.contains(&part), "the guide about why lacks:\n{part}");
            }
        }
    }

    #[test]
    fn ids_are_nobody_elses() {
        let mut ids: Vec<&str> = all().map(|rule| rule.id).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), count >= 38), (count, true));
    }
}
