//! What programs told of themselves, from readings to what grew and what was there.

use super::signals::Told;
use crate::watch::probe::{Answers, kind};

/// Sums up: counters by how much they grew, levels by their mean and their most.
pub fn summed(all: &[Answers]) -> Vec<Told> {
    all.iter().map(one).collect()
}

fn one(answers: &Answers) -> Told {
    let counters = kind(&answers.kind).map_or(&[][..], |kind| kind.counters);
    let (first, last) = (answers.readings.first(), answers.readings.last());
    let mut told = Told {
        process: answers.process.clone(),
        kind: answers.kind.clone(),
        at: answers.at.clone(),
        failed: answers.failed.clone().filter(|_| answers.readings.is_empty()),
        ..Told::default()
    };
    let (Some((from_ms, from)), Some((to_ms, to))) = (first, last) else {
        told.failed = told.failed.or_else(|| Some("it was not asked".to_owned()));
        return told;
    };
    told.seconds = to_ms.saturating_sub(*from_ms) as f64 / 1000.0;
    for (name, now) in to {
        if counters.contains(&name.as_str()) {
            told.grew.insert(name.clone(), (now - from.get(name).copied().unwrap_or(*now)).max(0.0));
            continue;
        }
        // The first look is of a time before the load, and the last of one after it.
        let inner = answers.readings.get(1..answers.readings.len().saturating_sub(1)).filter(|inner| !inner.is_empty());
        let values: Vec<f64> =
            inner.unwrap_or(&answers.readings).iter().filter_map(|(_, reading)| reading.get(name).copied()).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        told.level.insert(name.clone(), (mean, values.iter().copied().fold(0.0, f64::max)));
    }
    told
}

/// What was asked and did not tell, a sentence each.
pub fn unread(all: &[Told]) -> Vec<String> {
    let failed = all.iter().filter_map(|told| Some((told, told.failed.as_ref()?)));
    failed
        .map(|(told, why)| match told.process.as_str() {
            "" => format!("{}: {why}", told.kind),
            process => format!("{} of {process}: {why}", told.kind),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
        assert_eq!(unread(&told), ["mysql: no client"]);
    }
}
