//! The second half of a proof: the lab gives more of the suspected resource and checks whether the answers rise.
//!
//! Every squeeze has a counterpart: a larger quota or one more CPU, ports, descriptors, a larger table, a wider link,
//! a larger pool. If the lab cannot give more, nothing is proved, and the verdict says why.

use super::arm::{Arm, Elasticity, MORE, Spread, limit_cpu};
use super::assign;
use super::rule::{Squeeze, percent};
use super::signals::{ProcessSignals, Role, Signals};
use crate::metric::digits;
use crate::said::{Said, say};
use crate::stack::Spec;
use crate::watch::tap::NewValue;

/// The relative rise of good answers that counts. `weir lab ab` calls a smaller change no difference in throughput.
/// Nobody would remove a limit for a smaller gain, which happens where the next limit is close behind.
pub const RISE_MIN: f64 = 0.03;
/// If so few requests failed that all of them together are less than [`RISE_MIN`], this part of them has to be
/// answered.
const OF_THE_FAILED: f64 = 0.5;
/// More of a resource is given only if it grows by more than this factor.
const WORTH_IT: f64 = 1.1;
/// The last port. Ports below 1024 are not for general use.
pub const PORT_MAX: u64 = 65_535;
const PORTS_MAX: f64 = 64_512.0;
/// A thread that wants less of a CPU than this could not use one more CPU.
const THREAD_BUSY: f64 = 0.05;

/// The arm with more of its resource. The error says why this machine, or the lab, cannot give more.
///
/// `allowed` are the CPUs that the lab may use.
pub fn more(arm: &Arm, signals: &Signals, allowed: &[usize]) -> Result<Arm, Said> {
    let given = |to: f64| Ok(Arm { to, limit: to, is_relaxed: true, ..arm.clone() });
    match &arm.squeeze {
        Squeeze::Cpu(name) => more_cpu(arm, name, signals, allowed),
        Squeeze::Neighbour(..) => Err(say!(LAB_ALREADY_GIVEN_MORE)),
        Squeeze::Servers(_) => Err(say!(LAB_CANNOT_ADD_SERVER)),
        Squeeze::Ports(_) if (arm.from * WORTH_IT) > PORTS_MAX => Err(say!(ADDRESS_ONLY_PORTS, digits(arm.from))),
        Squeeze::Ports(_) => given((arm.from * MORE).round().min(PORTS_MAX)),
        // Half of a small pool can be less than one place.
        Squeeze::Pool(..) => given((arm.from * MORE).round().max(arm.from + 1.0)),
        Squeeze::Files(_) | Squeeze::Slots | Squeeze::Link(_) => given((arm.from * MORE).round()),
    }
}

fn more_cpu(arm: &Arm, name: &str, signals: &Signals, allowed: &[usize]) -> Result<Arm, Said> {
    let process = signals.processes.iter().find(|process| process.name == name).ok_or_else(|| say!(NOT_WATCHED))?;
    let (own, wanted) = (process.pinned.len().max(1) as f64, arm.from * MORE);
    if process.quota.is_some() && wanted <= own {
        return Ok(Arm { to: wanted, limit: wanted, is_relaxed: true, ..arm.clone() });
    }
    let workers = workers(process, signals);
    if let Some(why) = unusable(process, workers, arm.from) {
        return Err(why);
    }
    let free: Vec<usize> = allowed.iter().copied().filter(|cpu| !process.pinned.contains(cpu)).collect();
    // An edge with a fixed number of workers can leave some of its own CPUs unused. More workers can use them.
    let left_own = (own - arm.from).max(0.0).min(if workers.is_some() { own } else { 0.0 });
    let room: f64 = free.iter().map(|cpu| idle(*cpu, signals)).sum::<f64>() + left_own;
    let to = wanted.max(arm.from + 1.0).min(arm.from + room);
    let quota = process.quota.map(|_| to);
    if to <= arm.from * WORTH_IT {
        return Err(match free.as_slice() {
            [] => say!(MACHINE_NO_CPU_OTHER, digits(own), name),
            taken => {
                let others: Vec<Said> =
                    signals
                        .processes
                        .iter()
                        .filter(|other| other.name != name && other.cpu > THREAD_BUSY)
                        .filter(|other| other.pinned.iter().any(|cpu| taken.contains(cpu)))
                        .map(|other| {
                            if other.role == Role::Client { say!(THE_LOAD_GENERATOR) } else { Said::from(&other.name) }
                        })
                        .collect();
                let used = 1.0 - room / free.len() as f64;
                say!(OTHER_CPU_NO_ROOM, percent(used), assign::all_of(&others))
            }
        });
    }
    let cpus = process.pinned.iter().copied().chain(free).collect();
    let workers = workers.map(|_| to.ceil() as usize);
    Ok(Arm { to, limit: to, is_relaxed: true, spread: Some(Spread { cpus, workers, quota }), ..arm.clone() })
}

/// The number of the edge's workers, if that number is fixed.
fn workers(process: &ProcessSignals, signals: &Signals) -> Option<usize> {
    if process.role != Role::Edge {
        return None;
    }
    match signals.conf.worker_processes.as_deref() {
        Some("auto") => None,
        Some(count) => count.parse().ok(),
        None => (!signals.conf.is_weir).then_some(1),
    }
}

/// Why a process could not use one more CPU.
fn unusable(process: &ProcessSignals, workers: Option<usize>, from: f64) -> Option<Said> {
    let busy = process.threads.iter().filter(|(ran, waited)| ran + waited >= THREAD_BUSY).count();
    let is_single = process.role != Role::Edge && busy <= 1;
    if is_single {
        return Some(say!(COMPUTES_ONE_THREAD_THREAD, &process.name));
    }
    let has_enough = workers.is_some_and(|workers| workers as f64 > from + 0.5);
    (process.role == Role::Edge && workers.is_some() && has_enough && busy <= 1)
        .then(|| say!(ONE_WORKERS_DOES_ALL, &process.name))
}

/// The part of a CPU that no process of the stack uses.
fn idle(cpu: usize, signals: &Signals) -> f64 {
    let on = signals.processes.iter().filter(|process| process.pinned.contains(&cpu));
    let used: f64 = on.map(|process| process.cpu / process.pinned.len().max(1) as f64).sum();
    (1.0 - used).clamp(0.0, 1.0)
}

/// Gives a process the CPUs of its arm. Returns the changes that the configuration needs.
pub fn spread(arm: &Arm, name: &str, spec: &mut Spec) -> Vec<NewValue> {
    let Some(spread) = &arm.spread else { return Vec::new() };
    if let Some(quota) = spread.quota {
        limit_cpu(spec, name, quota);
    }
    let own = spec.processes.iter_mut().filter(|process| process.name == name);
    own.for_each(|process| process.cpus.clone_from(&spread.cpus));
    spread.workers.iter().map(|workers| ("worker_processes".to_owned(), workers.to_string())).collect()
}

/// Raises the descriptor limit for a larger connection table, which is useless without descriptors. Does nothing if
/// the configuration sets its own limit.
pub fn files_for(arm: &Arm, spec: &mut Spec, has_file_limit: bool) {
    if arm.squeeze == Squeeze::Slots && arm.is_relaxed && !has_file_limit {
        // One for the client's connection and one for the upstream's.
        let files = (arm.to as u64).saturating_mul(2).max(1024);
        let edge = spec.edge.clone();
        let own = spec.processes.iter_mut().filter(|process| process.name == edge);
        own.for_each(|process| process.files = process.files.map(|(soft, hard)| (soft.max(files), hard.max(files))));
    }
}

/// The relative rise of good answers that is needed, from the rounds with and without more. An open load cannot get
/// more answers than it sends requests: if few failed, half of the possible rise is enough.
pub fn needed(rounds: &[(f64, f64)], offered: Option<f64>) -> f64 {
    let Some(offered) = offered else { return RISE_MIN };
    let base = rounds.iter().map(|(base, _)| *base).sum::<f64>() / rounds.len().max(1) as f64;
    let possible = (offered / base.max(1e-9) - 1.0).max(0.0);
    (possible * OF_THE_FAILED).min(RISE_MIN)
}

/// Why a finding is not proved although the answers shrink with its resource. `None` if the answers also rise with
/// more of it.
pub fn missing(finding: usize, all: &[Elasticity], refused: &[(usize, Said)]) -> Option<Said> {
    let of = |arm: &&Elasticity| arm.finding == Some(finding);
    // The neighbour arm already gave the process more: its neighbour had less.
    let is_more = |arm: &&Elasticity| arm.is_relaxed || arm.to > arm.from;
    let Some(arm) = all.iter().filter(of).find(is_more) else {
        let why = refused
            .iter()
            .find(|(known, _)| *known == finding)
            .map_or_else(|| say!(IT_WAS_NOT_TRIED), |(_, why)| why.clone());
        return Some(say!(ANSWERS_SHRINK_LAB_COULD, why));
    };
    let needed = if arm.is_relaxed { arm.needed } else { RISE_MIN };
    let [_, low, high] = arm.change();
    let figures = || in_words(arm);
    match () {
        () if low > needed && low > 0.0 => None,
        () if high < needed.max(f64::MIN_POSITIVE) || (low < 0.0 && high < 2.0 * needed) => {
            Some(say!(ANSWERS_SHRINK_BUT_GIVING, figures()))
        }
        () => Some(say!(ANSWERS_SHRINK_BUT_CERTAIN, percent(needed), figures())),
    }
}

/// The change of good answers with more of a resource, in words.
pub fn in_words(arm: &Elasticity) -> Said {
    let [value, low, high] = arm.change();
    let (from, to) = (digits(arm.from), digits(arm.to));
    let percent = |part: f64| if part > 9.0 { say!(TENFOLD) } else { Said::from(percent(part)) };
    say!(ANSWERS_MORE, &arm.name, from, to, percent(value), percent(low), percent(high))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::metric;
    use crate::stack::{HUB, Host, Process as Planned};
    use crate::why::prove::{self, arms};
    use crate::why::rules::find;

    fn spec() -> Spec {
        let process =
            |name: &str| Planned { name: name.into(), host: HUB.into(), argv: vec!["x".into()], ..Planned::default() };
        Spec {
            processes: vec![process("app"), process("edge")],
            edge: "edge".into(),
            client: process("load"),
            ..Spec::default()
        }
    }

    fn full_edge() -> Signals {
        let mut signals = Signals::quiet();
        signals.processes[0].threads = vec![(0.98, 0.0)];
        signals.processes[0].cpu = 0.98;
        signals.processes[1].pinned = vec![1];
        signals.processes[2].pinned = vec![1];
        signals
    }

    fn edge_arm(signals: &Signals, spec: &Spec) -> Arm {
        arms(&find(signals, None), signals, spec).into_iter().find(|arm| arm.name == "CPU of edge").unwrap()
    }

    #[test]
    fn an_edge_gets_a_second_cpu_and_a_second_worker() {
        let signals = full_edge();
        let given = more(&edge_arm(&signals, &spec()), &signals, &[0, 1]).unwrap();
        assert!((given.to - 1.6).abs() < 1e-9, "the other CPU has 60 % left: {}", given.to);
        let mut larger = spec();
        let changes = prove::squeeze(&given, &mut larger, false);
        assert_eq!(changes, [("worker_processes".to_owned(), "2".to_owned())]);
        assert_eq!((larger.processes[1].cpus.clone(), larger.hosts.len()), (vec![0, 1], 0), "and no quota");
    }

    #[test]
    fn where_there_is_no_more_the_reason_is_said() {
        let mut signals = full_edge();
        let arm = edge_arm(&signals, &spec());
        let refused = |signals: &Signals, allowed: &[usize]| more(&arm, signals, allowed).unwrap_err();
        assert_eq!(refused(&signals, &[0]), "this machine has no CPU other than the 1.00 that edge uses");
        signals.processes[1].cpu = 0.9;
        let why = refused(&signals, &[0, 1]);
        assert_eq!(why, "the other CPU has no room: 100 % of it is used, by app and the load generator");
        let app = Arm { squeeze: Squeeze::Cpu("app".into()), ..arm };
        let why = more(&app, &signals, &[0, 1]).unwrap_err();
        assert_eq!(why, "app computes in one thread, and a thread uses only one CPU");
    }

    #[test]
    fn a_quota_is_raised_and_a_whole_one_takes_a_cpu_more() {
        let mut signals = full_edge();
        signals.processes[0].quota = Some(0.2);
        signals.processes[0].throttled = 0.9;
        let mut quota = spec();
        quota.hosts.push(Host { cpus: Some(0.2), ..Host::named(HUB) });
        let arm = edge_arm(&signals, &quota);
        let given = more(&arm, &signals, &[0]).unwrap();
        assert!((given.to - 0.3).abs() < 1e-9 && given.spread.is_none());
        prove::squeeze(&given, &mut quota, false);
        assert!(quota.hosts[0].cpus.is_some_and(|cpus| (cpus - 0.3).abs() < 1e-9));
        let whole = Arm { from: 1.0, ..arm };
        assert!(more(&whole, &signals, &[0]).is_err_and(|why| why.contains("no CPU other than")));
        let given = more(&whole, &signals, &[0, 1]).unwrap();
        prove::squeeze(&given, &mut quota, false);
        assert_eq!((quota.hosts[0].cpus, quota.processes[1].cpus.clone()), (Some(given.to), vec![0, 1]));
    }

    #[test]
    fn every_squeeze_has_its_counterpart() {
        let signals = Signals::quiet();
        let arm = |squeeze: Squeeze, from: f64| Arm { squeeze, from, ..edge_arm(&full_edge(), &spec()) };
        let to = |squeeze: Squeeze, from: f64| more(&arm(squeeze, from), &signals, &[0, 1]).map(|arm| arm.to);
        assert_eq!(to(Squeeze::Ports(HUB.into()), 200.0), Ok(300.0));
        assert_eq!(to(Squeeze::Ports(HUB.into()), 50_000.0), Ok(64_512.0));
        assert!(to(Squeeze::Ports(HUB.into()), 64_000.0).is_err());
        assert_eq!(to(Squeeze::Files("edge".into()), 30.0), Ok(45.0));
        assert_eq!(to(Squeeze::Slots, 32.0), Ok(48.0));
        assert_eq!(to(Squeeze::Link("client".into()), 20_000.0), Ok(30_000.0));
        assert_eq!(to(Squeeze::Pool("app".into(), "POOL".into()), 1.0), Ok(2.0));
        assert!(to(Squeeze::Servers("a:1".into()), 2.0).is_err());
        // A range that would end beyond the last port has to begin lower.
        let mut wider = spec();
        let range = vec![("net.ipv4.ip_local_port_range".into(), "60000 64999".into())];
        wider.hosts.push(Host { sysctls: range, ..Host::named(HUB) });
        let ports = Arm { to: 7500.0, limit: 7500.0, is_relaxed: true, ..arm(Squeeze::Ports(HUB.into()), 5000.0) };
        prove::squeeze(&ports, &mut wider, false);
        assert_eq!(wider.hosts[0].sysctls[0].1, "58036 65535");
    }

    #[test]
    fn of_few_failures_half_have_to_go() {
        let rounds = |base: f64| vec![(base, base); 6];
        assert!((needed(&rounds(995.0), Some(1000.0)) - 0.0025).abs() < 1e-4);
        assert!((needed(&rounds(500.0), Some(1000.0)) - RISE_MIN).abs() < 1e-9);
        assert!((needed(&rounds(500.0), None) - RISE_MIN).abs() < 1e-9);
        let throughput = metric::of("throughput").unwrap().threshold;
        assert!((RISE_MIN - throughput).abs() < 1e-12, "what lab ab calls no difference");
    }
}
