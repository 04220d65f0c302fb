//! Sums up the figures that programs report about themselves: by how much counters grew, and which levels there were.

use std::collections::BTreeMap;

use super::signals::{ProgramFigures, ProgramText};
use crate::said::{Said, say};
use crate::watch::probe::detail::{Detail, TextGroups};
use crate::watch::probe::{Answers, kind};

/// Sums up the readings. A counter becomes its growth; a level becomes its mean and its maximum.
pub fn summed(all: &[Answers]) -> Vec<ProgramFigures> {
    all.iter().map(one).collect()
}

fn one(answers: &Answers) -> ProgramFigures {
    let counters = kind(&answers.kind).map_or(&[][..], |kind| kind.counters);
    let (first, last) = (answers.readings.first(), answers.readings.last());
    let mut told = ProgramFigures {
        process: answers.process.clone(),
        kind: answers.kind.clone(),
        at: answers.at.clone(),
        failed: answers.failed.as_ref().filter(|_| answers.readings.is_empty()).map(Said::from),
        totals: parts(&answers.detail.last, |group| answers.detail.grew(group), &answers.detail),
        seen: parts(
            &answers.detail.seen,
            |group| answers.detail.mean(group).into_iter().map(|(text, mean)| (text, vec![mean])).collect(),
            &answers.detail,
        ),
        partly: answers.detail.lacks.clone(),
        ..ProgramFigures::default()
    };
    // If most readings failed, the figures between them are unknown.
    let read = answers.readings.len() as u64;
    if let Some(why) = answers.failed.as_ref().filter(|_| read > 0 && answers.failures > read) {
        told.partly.push(say!(READINGS_FAILED, answers.failures, answers.failures + read, why));
    }
    let (Some((from_ms, _)), Some((to_ms, to))) = (first, last) else {
        told.failed = told.failed.or_else(|| Some(say!(NOT_ASKED)));
        return told;
    };
    told.seconds = to_ms.saturating_sub(*from_ms) as f64 / 1000.0;
    for (name, now) in to {
        if counters.contains(&name.as_str()) {
            let Some(then) = answers.readings.iter().find_map(|(_, reading)| reading.get(name)) else { continue };
            let values = answers.readings.iter().filter_map(|(_, reading)| reading.get(name));
            if values.clone().zip(values.skip(1)).any(|(one, next)| next < one) {
                told.partly.push(say!(FELL_OR_ANOTHER, name));
            } else {
                told.grew.insert(name.clone(), now - then);
            }
            continue;
        }
        // The first reading is from before the load, the last from after it.
        let inner = answers.readings.get(1..answers.readings.len().saturating_sub(1)).filter(|inner| !inner.is_empty());
        let values: Vec<f64> =
            inner.unwrap_or(&answers.readings).iter().filter_map(|(_, reading)| reading.get(name).copied()).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        told.level.insert(name.clone(), (mean, values.iter().copied().fold(0.0, f64::max)));
    }
    let lacking: Vec<&str> = counters.iter().copied().filter(|name| !to.contains_key(*name)).collect();
    if !lacking.is_empty() {
        told.partly.push(say!(DOES_REPORT, lacking.join(", ")));
    }
    told
}

/// Most texts of a group that a run keeps.
const PARTS_MAX: usize = 20;

/// The texts of each group with their numbers.
fn parts<T>(
    groups: &TextGroups<T>,
    numbers: impl Fn(&str) -> Vec<(String, Vec<f64>)>,
    detail: &Detail,
) -> BTreeMap<String, Vec<ProgramText>> {
    let one = |group: &str| {
        let part = |(text, numbers): (String, Vec<f64>)| ProgramText { most: detail.most(group, &text), text, numbers };
        numbers(group).into_iter().take(PARTS_MAX).map(part).collect::<Vec<_>>()
    };
    groups.keys().map(|group| (group.clone(), one(group))).filter(|(_, parts)| !parts.is_empty()).collect()
}

/// The programs that gave no answer or an incomplete one, a sentence each.
pub fn unread(all: &[ProgramFigures]) -> Vec<Said> {
    let failed = all.iter().flat_map(|told| told.failed.iter().chain(&told.partly).map(move |why| (told, why)));
    failed
        .map(|(told, why)| match told.process.as_str() {
            "" => say!(NAMED, &told.kind, why),
            process => say!(PROBE_OF, &told.kind, process, why),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow_and_levels_are_there() {
        let reading = |commands: f64, clients: f64| {
            BTreeMap::from([("commands".to_owned(), commands), ("clients".to_owned(), clients)])
        };
        let answers = Answers {
            kind: "redis".into(),
            process: "cache".into(),
            readings: vec![(0, reading(100.0, 1.0)), (1000, reading(600.0, 9.0)), (2000, reading(1100.0, 2.0))],
            failed: Some("once".into()),
            ..Answers::default()
        };
        let silent = Answers { kind: "mysql".into(), failed: Some("no client".into()), ..Answers::default() };
        let told = summed(&[answers, silent]);
        assert_eq!(
            (told[0].rate("commands"), told[0].mean("clients"), told[0].failed.is_none()),
            (500.0, Some(9.0), true)
        );
        // The list names the figures that this kind of redis does not report. It does not list events that did not
        // happen.
        let lacks = "redis of cache: it does not report command_us, evicted, refused";
        assert_eq!(unread(&told), [lacks, "mysql: no client"]);
        assert_eq!((told[0].grew.get("evicted"), told[0].grew.get("commands")), (None, Some(&1000.0)));
    }

    /// A missing reading is not zero, and a counter that was reset is not zero.
    #[test]
    fn a_program_that_tells_little_is_named() {
        let reading = |commands: f64| {
            ["commands", "command_us", "evicted", "refused"].map(|name| (name.to_owned(), commands)).into()
        };
        let answers = Answers {
            kind: "redis".into(),
            process: "cache".into(),
            readings: vec![(0, reading(100.0)), (1000, reading(60.0))],
            failed: Some("127.0.0.1:6379: refused".into()),
            failures: 6,
            ..Answers::default()
        };
        let told = summed(&[answers]);
        let said = unread(&told);
        assert_eq!(said[0], "redis of cache: 6 of 8 readings failed: 127.0.0.1:6379: refused");
        assert!(
            said.len() == 5 && said[1].ends_with("fell: the process was restarted, or another program answered"),
            "{said:?}"
        );
        assert!(told[0].grew.is_empty());
    }
}
