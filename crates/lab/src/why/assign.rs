//! Which CPUs the edge, the load generator and the application run on, which of them share a CPU, and whether another
//! assignment works better.
//!
//! A load generator that shares a CPU with the application takes CPU time from it. Then neither a rate nor a proof is
//! valid. On two CPUs, two of the three have to share. The lab chooses those two by their CPU use.

use super::rule::percent;
use super::signals::{Role, Signals};
use crate::ask::Cpus;
use crate::said::{Said, Text, say};
use crate::texts;

/// CPUs that are used this much make the processes on them wait for each other.
const FULL: f64 = 0.9;
/// The most that processes may use of shared CPUs, so that none of them waits long.
const ROOM: f64 = 0.75;

/// Names of the three, in the order of [`Cpus`].
const NAMES: [Text; 3] = [texts::EDGE, texts::LOAD_GENERATOR, texts::APPLICATION];

/// CPUs that each of the three used, in the order of [`NAMES`].
fn used(signals: &Signals) -> [f64; 3] {
    let of = |is: &dyn Fn(Role) -> bool| -> f64 {
        signals.processes.iter().filter(|process| is(process.role)).map(|process| process.cpu).sum()
    };
    let sum = [Role::Edge, Role::Client].map(|role| of(&|one| one == role));
    [sum[0], sum[1], of(&|one| one == Role::App)]
}

fn lists(cpus: &Cpus) -> [&Vec<usize>; 3] {
    [&cpus.edge, &cpus.client, &cpus.origin]
}

/// Sets of CPUs, the parts that run on each set, and their CPU use together.
fn sets(cpus: &Cpus, used: [f64; 3]) -> Vec<(Vec<usize>, Vec<usize>, f64)> {
    let mut sets: Vec<(Vec<usize>, Vec<usize>, f64)> = Vec::new();
    for (part, list) in lists(cpus).into_iter().enumerate() {
        let used = used.get(part).copied().unwrap_or(0.0) / list.len().max(1) as f64;
        match sets.iter_mut().find(|(known, ..)| known.iter().any(|cpu| list.contains(cpu))) {
            Some((_, parts, sum)) => {
                parts.push(part);
                *sum += used;
            }
            None => sets.push((list.clone(), vec![part], used)),
        }
    }
    sets
}

/// `edge on CPU 0; load generator and application share CPU 1, of which they used 64 %`.
pub fn in_words(cpus: &Cpus, signals: &Signals) -> Option<Said> {
    let sets = sets(cpus, used(signals));
    let is_shared = sets.iter().any(|(_, parts, _)| parts.len() > 1);
    let numbers = |list: &[usize]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let said = |(list, parts, used): &(Vec<usize>, Vec<usize>, f64)| {
        let names: Vec<Said> = parts.iter().filter_map(|part| NAMES.get(*part).copied().map(Said::from)).collect();
        match names.as_slice() {
            [one] => say!(PART_ON_CPU, one, numbers(list)),
            [first @ .., last] => {
                let names = say!(AND, Said::list(first, ", "), last);
                say!(SHARE_CPU_WHICH_THEY_USED, names, numbers(list), percent(*used))
            }
            [] => Said::default(),
        }
    };
    is_shared.then(|| Said::list(&sets.iter().map(said).collect::<Vec<_>>(), "; "))
}

/// `edge and application`.
pub fn all_of(names: &[Said]) -> Said {
    let mut names = names.iter();
    let Some(first) = names.next() else { return Said::default() };
    names.fold(first.clone(), |all, name| say!(AND_ALSO, all, name))
}

/// A better assignment of these CPUs, if two parts share CPUs that are full. The part that used most gets CPUs of its
/// own, if the use of the other two fits together. The error says why no assignment works. `None`: no part is in the
/// way of another.
pub fn better(now: &Cpus, allowed: &[usize], signals: &Signals) -> Result<Option<Cpus>, Said> {
    let used = used(signals);
    let crowded = sets(now, used).into_iter().filter(|(_, parts, sum)| parts.len() > 1 && *sum >= FULL);
    let Some((_, parts, sum)) = crowded.max_by(|one, other| one.2.total_cmp(&other.2)) else { return Ok(None) };
    let of = |part: usize| used.get(part).copied().unwrap_or(0.0);
    let names = |parts: &[usize]| {
        all_of(&parts.iter().filter_map(|part| NAMES.get(*part).copied().map(Said::from)).collect::<Vec<_>>())
    };
    let crowd = say!(USED_CPUS_THEY_SHARE, names(&parts), percent(sum));
    let ([first, rest @ ..], Some(alone)) =
        (allowed, parts.iter().copied().max_by(|one, other| of(*one).total_cmp(&of(*other))))
    else {
        return Ok(None);
    };
    if rest.is_empty() {
        return Err(say!(ONLY_ONE_CPU_SO, crowd));
    }
    let others: Vec<usize> = (0..NAMES.len()).filter(|part| *part != alone).collect();
    // With CPUs of its own, the first part answers more. That gives the others more work, by the same factor.
    let gain = (1.0 / of(alone).max(0.1)).clamp(1.0, 2.0);
    let together: f64 = others.iter().map(|part| of(*part)).sum::<f64>() * gain;
    if together > ROOM {
        return Err(say!(
            ALONE_WOULD_USE_OTHER,
            crowd,
            names(&[alone]),
            names(&others),
            percent(together),
            allowed.len()
        ));
    }
    let mut lists = [vec![*first], vec![*first], vec![*first]];
    if let Some(own) = lists.get_mut(alone) {
        *own = rest.to_vec();
    }
    let [edge, client, origin] = lists;
    let other = Cpus { edge, client, origin };
    Ok((other != *now).then_some(other))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Signals with this CPU use of the edge, the application and the load generator.
    fn using(edge: f64, app: f64, load: f64) -> Signals {
        let mut signals = Signals::quiet();
        for (process, cpu) in signals.processes.iter_mut().zip([edge, app, load]) {
            process.cpu = cpu;
        }
        signals
    }

    #[test]
    fn who_shares_a_cpu_is_named() {
        let two = Cpus::of(&[0, 1]);
        assert_eq!(
            in_words(&two, &using(0.5, 0.3, 0.2)).unwrap(),
            "edge on CPU 0; load generator and application share CPU 1, of which they used 50 %"
        );
        assert_eq!(in_words(&Cpus::of(&[0, 1, 2]), &using(0.5, 0.3, 0.2)), None);
    }

    #[test]
    fn a_full_application_gets_a_cpu_and_the_others_share() {
        let two = Cpus::of(&[0, 1]);
        let chosen = better(&two, &[0, 1], &using(0.1, 0.85, 0.12)).unwrap().unwrap();
        assert_eq!((chosen.origin, chosen.edge, chosen.client), (vec![1], vec![0], vec![0]));
        // If the load generator needs most, it gets CPUs of its own.
        let chosen = better(&two, &[0, 1], &using(0.2, 0.2, 0.75)).unwrap().unwrap();
        assert_eq!((chosen.client, chosen.edge, chosen.origin), (vec![1], vec![0], vec![0]));
    }

    #[test]
    fn nobody_in_the_way_changes_nothing_and_no_way_is_said() {
        let two = Cpus::of(&[0, 1]);
        assert_eq!(better(&two, &[0, 1], &using(0.98, 0.3, 0.3)), Ok(None), "the edge has its CPU alone");
        let why = better(&two, &[0, 1], &using(0.9, 0.6, 0.4)).unwrap_err();
        assert!(why.contains("no assignment of the 2 CPUs works"), "{why}");
        assert!(better(&Cpus::of(&[3]), &[3], &using(0.4, 0.4, 0.2)).unwrap_err().contains("only one CPU"));
    }
}
