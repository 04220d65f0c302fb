//! `config.phases` (artillery.md §1.2).

use std::time::Duration;

use weir_words::say;

use super::keys;
use super::node::{Node, NodeValue};
use super::notes::Notes;
use crate::plan::{Arrivals, Phase};
use crate::texts::script as texts;

/// Most phases of a script.
pub(crate) const PHASES_MAX: usize = 10_000;

/// The most virtual users that a phase may request in a second.
const RATE_MAX: f64 = 10_000_000.0;

/// Reads all phases.
pub(crate) fn read(config: &Node, notes: &mut Notes) -> Vec<Phase> {
    let list = config.get("phases").and_then(Node::list).unwrap_or_default();
    if list.len() > PHASES_MAX
        && let Some(node) = list.get(PHASES_MAX)
    {
        notes.refuse(node.at, say!(texts::TOO_MANY_PHASES, PHASES_MAX));
    }
    let mode = config.get("mode");
    let phases: Vec<Phase> = list.iter().take(PHASES_MAX).filter_map(|node| phase(node, mode, notes)).collect();
    let is_idle = phases.iter().all(|phase| matches!(phase.arrivals, Arrivals::Pause));
    if is_idle && let Some(node) = config.get("phases") {
        notes.warn(node.at, texts::NOBODY_ARRIVES);
    }
    phases
}

fn phase(node: &Node, mode: Option<&Node>, notes: &mut Notes) -> Option<Phase> {
    if node.map().is_none() {
        notes.refuse(node.at, texts::PHASE_NO_OBJECT);
        return None;
    }
    keys::PHASE.check(node, notes);
    let has = |key: &str| node.get(key).is_some();
    let kind = ["pause", "arrivalCount", "rampTo", "arrivalRate"].into_iter().find(|key| has(key));
    let Some(kind) = kind else {
        notes.warn(node.at, texts::UNKNOWN_PHASE);
        return None;
    };
    let length = if kind == "pause" { "pause" } else { "duration" };
    let given = match node.get(length) {
        Some(given) => given.clone(),
        // A ramp without a duration takes one second.
        None if kind == "rampTo" => Node::new(node.at, NodeValue::Number(1.0)),
        None => {
            notes.refuse(node.at, texts::NO_DURATION);
            return None;
        }
    };
    let duration = length_of(&given, length, notes)?;
    let arrivals = match kind {
        "pause" => Arrivals::Pause,
        "arrivalCount" => Arrivals::Count(number(node, kind, notes)? as u64),
        "rampTo" => {
            let from = if has("arrivalRate") { number(node, "arrivalRate", notes)? } else { 0.0 };
            Arrivals::Ramp(from, number(node, kind, notes)?)
        }
        _ => match number(node, kind, notes)? {
            0.0 => Arrivals::Pause,
            rate if is_poisson(node.get("mode").or(mode), notes) => Arrivals::Poisson(rate),
            rate => Arrivals::Rate(rate),
        },
    };
    let vusers_max = match has("maxVusers") {
        true => Some(number(node, "maxVusers", notes)?.ceil() as u64).filter(|most| *most > 0),
        false => None,
    };
    let name = node.get("name").map(Node::shown).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "unnamed".to_owned());
    Some(Phase { name, shown: shown(&given), duration, arrivals, vusers_max })
}

/// `6s` for whole seconds; otherwise as in the script.
fn shown(given: &Node) -> String {
    let is_whole = given.number().fract() == 0.0;
    if is_whole { format!("{}s", given.shown()) } else { given.shown() }
}

fn length_of(node: &Node, key: &str, notes: &mut Notes) -> Option<Duration> {
    match crate::duration::phase(&node.value()) {
        Some(time) => {
            if time.is_bare_fraction {
                notes.fraction(node.at);
            }
            Some(time.time)
        }
        None => {
            notes.refuse(node.at, say!(texts::BAD_LENGTH, key, node.shown()));
            None
        }
    }
}

fn number(node: &Node, key: &str, notes: &mut Notes) -> Option<f64> {
    let given = node.get(key)?;
    let number = given.number();
    if (0.0..=RATE_MAX).contains(&number) && !given.text().is_some_and(|text| text.trim().is_empty()) {
        return Some(number);
    }
    notes.refuse(given.at, say!(texts::BAD_RATE, key, given.shown(), RATE_MAX));
    None
}

fn is_poisson(mode: Option<&Node>, notes: &mut Notes) -> bool {
    let Some(mode) = mode else { return false };
    match mode.text() {
        Some("poisson") => true,
        Some("uniform") => false,
        _ => {
            notes.refuse(mode.at, say!(texts::BAD_MODE, mode.shown()));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::yaml;
    use super::*;
    use weir_words::Said;

    fn one(phase: &str) -> Result<Option<Phase>, Said> {
        let mut notes = Notes::default();
        let config = yaml::read(&format!("phases: [{phase}]"), 0).unwrap();
        let phases = read(&config, &mut notes);
        notes.refusal().map_or(Ok(phases.first().cloned()), Err)
    }

    #[test]
    fn what_arrives() {
        let cases = [
            ("{duration: 10, arrivalRate: 5}", 10_000, Arrivals::Rate(5.0)),
            ("{duration: '10', arrivalRate: '0.5'}", 10_000, Arrivals::Rate(0.5)),
            ("{duration: 5m, arrivalRate: 1, rampTo: 10}", 300_000, Arrivals::Ramp(1.0, 10.0)),
            ("{duration: 2, rampTo: 10}", 2000, Arrivals::Ramp(0.0, 10.0)),
            ("{duration: 2, arrivalRate: 4, rampTo: 0}", 2000, Arrivals::Ramp(4.0, 0.0)),
            ("{arrivalRate: 4, rampTo: 5}", 1000, Arrivals::Ramp(4.0, 5.0)),
            ("{duration: 10, arrivalCount: 7}", 10_000, Arrivals::Count(7)),
            ("{duration: 10, arrivalCount: 7, arrivalRate: 3}", 10_000, Arrivals::Count(7)),
            ("{pause: 3, arrivalRate: 3}", 3000, Arrivals::Pause),
            ("{duration: 3, arrivalRate: 0}", 3000, Arrivals::Pause),
            ("{duration: 1, arrivalRate: 3, mode: poisson}", 1000, Arrivals::Poisson(3.0)),
            ("{duration: 0.5, arrivalRate: 3}", 500, Arrivals::Rate(3.0)),
        ];
        for (text, ms, arrivals) in cases {
            let phase = one(text).unwrap().unwrap();
            assert_eq!((phase.duration.as_millis(), phase.arrivals), (ms, arrivals), "{text}");
        }
        assert_eq!(one("{duration: 5}"), Ok(None));
    }

    #[test]
    fn names_and_caps() {
        let phase = one("{duration: 5m, arrivalRate: 1, name: warm, maxVusers: '7'}").unwrap().unwrap();
        assert_eq!((phase.name.as_str(), phase.shown.as_str(), phase.vusers_max), ("warm", "5m", Some(7)));
        let phase = one("{pause: 5}").unwrap().unwrap();
        assert_eq!((phase.name.as_str(), phase.shown.as_str(), phase.vusers_max), ("unnamed", "5s", None));
    }

    #[test]
    fn refusals_say_why() {
        for (text, why) in [
            ("{duration: 0, arrivalRate: 1}", "Invalid duration for phase: 0"),
            ("{duration: soon, arrivalRate: 1}", "Invalid duration for phase: soon"),
            ("{pause: ''}", "Invalid pause for phase: "),
            ("{arrivalRate: 1}", "no `duration`"),
            ("{duration: 1, arrivalRate: many}", "`arrivalRate: many` is not a number"),
            ("{duration: 1, arrivalCount: -1}", "`arrivalCount: -1` is not a number"),
            ("{duration: 1, arrivalRate: 1, mode: odd}", "neither `uniform` nor `poisson`"),
            ("5", "a phase must be an object"),
        ] {
            let refusal = one(text).unwrap_err();
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }
}
