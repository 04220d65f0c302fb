//! The counter-experiment: each suspect has a fifth less, in blocks that take turns with blocks as they are. What limits is what
//! the answers shrink with; what does not, is ruled out by a number.
//!
//! The elasticity of a resource is the relative change of answers a second over the relative change of the resource: 1 where it
//! alone limits, 0 where it has room. (Coz's virtual speed-up the other way round, so that it works on any black box.) What can be
//! given half as much again is, too: that is told beside, and proves nothing by itself.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::rule::Squeeze;
use super::rules::Finding;
use super::signals::{Pool, Process, Role, Signals};
use crate::stack::{Host, Spec};
use crate::stats;
use crate::watch::tap::{self, Change};

/// What is left of a resource that is squeezed.
pub const LEFT: f64 = 0.8;
/// What there is of a resource that is relaxed.
pub const MORE: f64 = 1.5;
/// The least that a neighbour is left, CPUs.
const NEIGHBOUR_LEAST: f64 = 0.05;
/// Resources that are squeezed: suspects first, then those that should not matter.
pub const ARMS_MAX: usize = 3;
/// An elasticity whose interval lies above this is the bottleneck's.
pub const PROVED: f64 = 0.3;
/// And of every other it has to lie below this.
pub const OTHERS: f64 = 0.2;
/// An interval within this much of nothing rules a suspect out.
pub const NOTHING: f64 = 0.1;

/// A squeeze that can be carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// What is squeezed.
    pub squeeze: Squeeze,
    /// The number of the finding it tests; none of a control.
    pub finding: Option<usize>,
    /// What it is called.
    pub name: String,
    /// From how much to how much.
    pub from: f64,
    /// See `from`.
    pub to: f64,
    /// What is set for that: `to`, but of a neighbour what it is left.
    pub limit: f64,
    /// Half as much again instead of a fifth less.
    pub is_relaxed: bool,
}

/// What came of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Elasticity {
    /// What was squeezed.
    pub name: String,
    /// The number of the finding; none of a control.
    pub finding: Option<usize>,
    /// From how much to how much.
    pub from: f64,
    /// See `from`.
    pub to: f64,
    /// The estimate.
    pub value: f64,
    /// Its 95 % interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Rounds it rests on.
    pub rounds: usize,
    /// It had half as much again, and not a fifth less.
    #[serde(default)]
    pub is_relaxed: bool,
}

/// What all arms say together.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// One finding, by its number, and nothing else.
    Proved(usize),
    /// Several matter.
    Shared(Vec<usize>),
    /// No suspect matters.
    RuledOut,
    /// The intervals are too wide, or nothing was there to compare with.
    Unclear(String),
}

/// What there is to squeeze: suspects that can be, and controls beside them. With `is_beyond`, the load asks for more than there is,
/// so that the first suspect is also given more.
pub fn arms(findings: &[Finding], signals: &Signals, spec: &Spec, is_beyond: bool) -> Vec<Arm> {
    let mut wanted: Vec<(Squeeze, Option<usize>)> = Vec::new();
    for (number, finding) in findings.iter().enumerate() {
        if let Some(squeeze) = &finding.found.squeeze
            && !wanted.iter().any(|(known, _)| known == squeeze)
        {
            // That a server less costs nothing is what speaks for something behind them: it is a control, and no suspect.
            let finding = (!matches!(squeeze, Squeeze::Servers(_))).then_some(number);
            wanted.push((squeeze.clone(), finding));
        }
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    let first = wanted.first().filter(|(_, finding)| finding.is_some()).cloned();
    let is_neighbour = |process: &Process| {
        wanted.iter().any(|(squeeze, _)| matches!(squeeze, Squeeze::Neighbour(_, other) if *other == process.name))
    };
    let mut controls: Vec<&Process> =
        signals.processes.iter().filter(|process| process.role != Role::Client && !is_neighbour(process)).collect();
    controls.sort_by(|one, other| other.usage().total_cmp(&one.usage()));
    let controls: Vec<Squeeze> = controls.into_iter().map(|process| Squeeze::Cpu(process.name.clone())).collect();
    wanted.extend(controls.into_iter().map(|squeeze| (squeeze, None)));
    let mut seen = BTreeSet::new();
    let mut arms: Vec<Arm> = wanted
        .into_iter()
        .filter_map(|(squeeze, finding)| arm(squeeze, finding, signals, spec))
        .filter(|arm| seen.insert(arm.name.clone()))
        .take(ARMS_MAX)
        .collect();
    if let Some((squeeze, finding)) = first.filter(|_| is_beyond) {
        arms.extend(arm(squeeze, finding, signals, spec).and_then(|arm| relaxed(arm, signals)));
    }
    arms
}

fn arm(squeeze: Squeeze, finding: Option<usize>, signals: &Signals, spec: &Spec) -> Option<Arm> {
    let process = |name: &String| signals.processes.iter().find(|known| known.name == *name);
    let whole = |from: f64| (from, (from * LEFT).round());
    let (name, (from, to)) = match &squeeze {
        Squeeze::Cpu(name) => {
            let from = cpus_of(process(name)?, spec)?;
            (format!("CPU of {name}"), (from, from * LEFT))
        }
        Squeeze::Neighbour(name, other) => {
            let (victim, other) = (process(name)?, process(other)?);
            // A group that is there already is not the neighbour's alone.
            if spec.hosts.iter().any(|host| host.name == other.host && (host.cpus.is_some() || host.credits.is_some()))
            {
                return None;
            }
            let given = (victim.cpu * (MORE - 1.0)).min(other.cpu - NEIGHBOUR_LEAST);
            let name = format!("CPU of {name} that {} leaves", other.name);
            return (given > 0.0).then_some(Arm {
                squeeze,
                finding,
                name,
                from: victim.cpu,
                to: victim.cpu + given,
                limit: other.cpu - given,
                is_relaxed: false,
            });
        }
        Squeeze::Ports(host) => {
            let ports = signals.hosts.iter().find(|known| known.name == *host)?.ports;
            (format!("local ports of {host}"), whole(ports as f64))
        }
        Squeeze::Files(name) => (format!("descriptors of {name}"), whole(process(name)?.fds.1 as f64)),
        Squeeze::Slots => {
            ("worker_connections".to_owned(), whole(signals.conf.worker_connections.unwrap_or(512) as f64))
        }
        Squeeze::Link(host) => {
            let most = signals.hosts.iter().find(|known| known.name == *host)?.link_max?;
            (format!("link of {host}"), whole(most / 1000.0))
        }
        Squeeze::Pool(name, variable) => {
            let of = |pool: &&Pool| pool.process == *name && pool.variable == *variable;
            let size = signals.pools.iter().find(of)?.size as f64;
            // Of a small pool a fifth is less than one.
            (format!("pool of {name} ({variable})"), (size, (size * LEFT).round().min(size - 1.0)))
        }
        Squeeze::Servers(_) => {
            let count = signals.conf.servers.len() as f64;
            ("servers of the upstream".to_owned(), (count, count - 1.0))
        }
    };
    (to >= 0.01 && to < from).then_some(Arm { squeeze, finding, name, from, to, limit: to, is_relaxed: false })
}

/// The arm with half as much again; `None` of what the lab cannot give.
fn relaxed(arm: Arm, signals: &Signals) -> Option<Arm> {
    let to = match &arm.squeeze {
        // More CPU than there is can only be given where a quota withholds it.
        Squeeze::Cpu(name) => {
            let process = signals.processes.iter().find(|known| known.name == *name)?;
            (arm.from * MORE).min(process.quota.and(Some(process.pinned.len() as f64))?)
        }
        Squeeze::Neighbour(..) | Squeeze::Servers(_) => return None,
        Squeeze::Ports(_) | Squeeze::Files(_) | Squeeze::Slots | Squeeze::Link(_) | Squeeze::Pool(..) => {
            (arm.from * MORE).round()
        }
    };
    (to > arm.from * 1.1).then_some(Arm { to, limit: to, is_relaxed: true, ..arm })
}

/// What a process can use at most; `None` where its share of a group cannot be told from others'.
fn cpus_of(process: &Process, spec: &Spec) -> Option<f64> {
    let host = spec.hosts.iter().find(|host| host.name == process.host);
    if host.is_some_and(|host| host.credits.is_some()) {
        return None;
    }
    if let Some(quota) = process.quota {
        return Some(quota);
    }
    // The group that is there is somebody else's.
    if host.is_some_and(|host| host.cpus.is_some()) {
        return None;
    }
    let threads = process.threads.iter().filter(|(ran, waited)| ran + waited >= 0.05).count().max(1);
    Some(process.cpus.min(threads as f64))
}

/// Makes a block's spec one in which the arm's resource has less; what the configuration has to say otherwise comes back.
pub fn squeeze(arm: &Arm, spec: &mut Spec, has_file_limit: bool) -> Vec<Change> {
    match &arm.squeeze {
        Squeeze::Cpu(name) | Squeeze::Neighbour(_, name) => limit_cpu(spec, name, arm.limit),
        Squeeze::Ports(host) => {
            let parameter = "net.ipv4.ip_local_port_range";
            let host = host_of(spec, host);
            let known = host.sysctls.iter().find(|(name, _)| name == parameter).map(|(_, range)| range.clone());
            let low =
                known.and_then(|range| range.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(32_768);
            host.sysctls.retain(|(name, _)| name != parameter);
            host.sysctls.push((parameter.to_owned(), format!("{low} {}", low + arm.to as u64 - 1)));
        }
        Squeeze::Files(name) => {
            let limit = arm.to as u64;
            if has_file_limit {
                return vec![("worker_rlimit_nofile".to_owned(), limit.to_string())];
            }
            spec.processes
                .iter_mut()
                .filter(|process| process.name == *name)
                .for_each(|process| process.files = Some((limit, limit)));
        }
        Squeeze::Slots => return vec![("worker_connections".to_owned(), (arm.to as u64).to_string())],
        Squeeze::Link(host) => host_of(spec, host).rate_kbit = Some(arm.to as u64),
        Squeeze::Pool(name, variable) => {
            let own = spec.processes.iter_mut().filter(|process| process.name == *name);
            own.for_each(|process| give(&mut process.env, variable, arm.to as u64));
        }
        Squeeze::Servers(server) => return vec![(tap::DOWN.to_owned(), server.clone())],
    }
    Vec::new()
}

/// Lets a process alone of its host use so many CPUs; where the host has a quota already, it is everybody's there.
fn limit_cpu(spec: &mut Spec, name: &str, cpus: f64) {
    let named = spec.processes.iter().find(|process| process.name == name);
    let Some(host) = named.map(|process| process.host.clone()) else { return };
    if host_of(spec, &host).cpus.is_none() {
        let all = spec.processes.iter_mut().chain([&mut spec.client]).chain(&mut spec.warm);
        all.filter(|process| process.host == host).for_each(|process| process.is_unlimited = process.name != name);
    }
    host_of(spec, &host).cpus = Some(cpus);
}

/// Sets an environment variable to a number.
pub fn give(env: &mut Vec<(String, String)>, variable: &str, value: u64) {
    env.retain(|(name, _)| name != variable);
    env.push((variable.to_owned(), value.to_string()));
}

fn host_of<'a>(spec: &'a mut Spec, name: &str) -> &'a mut Host {
    let at = spec.hosts.iter().position(|host| host.name == name).unwrap_or_else(|| {
        spec.hosts.push(Host::named(name));
        spec.hosts.len() - 1
    });
    // It was found there, or put there.
    #[allow(clippy::indexing_slicing)]
    &mut spec.hosts[at]
}

/// The elasticity from answers a second of each round: as it is, and squeezed.
pub fn elasticity(arm: &Arm, rounds: &[(f64, f64)]) -> Option<Elasticity> {
    let logs: Vec<f64> =
        rounds.iter().map(|(base, less)| (less.max(1e-3) / base.max(1e-3)).ln() / (arm.to / arm.from).ln()).collect();
    let interval = stats::interval(&logs, 0.95)?;
    Some(Elasticity {
        name: arm.name.clone(),
        finding: arm.finding,
        from: arm.from,
        to: arm.to,
        value: stats::hodges_lehmann(&logs),
        low: interval.low,
        high: interval.high,
        rounds: rounds.len(),
        is_relaxed: arm.is_relaxed,
    })
}

/// What the arms say together.
pub fn judge(arms: &[Elasticity]) -> Proof {
    // What more of a resource gives tells where the next limit is, and not which this one is.
    let arms: Vec<&Elasticity> = arms.iter().filter(|arm| !arm.is_relaxed).collect();
    let strong: Vec<&Elasticity> = arms.iter().copied().filter(|arm| arm.low > PROVED).collect();
    let mut suspected = arms.iter().filter(|arm| arm.finding.is_some());
    let is_nothing = |arm: &&Elasticity| arm.low > -NOTHING && arm.high < NOTHING;
    let mut suspects: Vec<usize> = strong.iter().filter_map(|arm| arm.finding).collect();
    suspects.dedup();
    match (strong.as_slice(), suspects.as_slice()) {
        ([one], [finding]) => {
            let mut others = arms.iter().filter(|arm| arm.name != one.name).peekable();
            match others.peek() {
                None => {
                    Proof::Unclear("there was nothing else to squeeze, and so nothing it could be told from".to_owned())
                }
                Some(_) => match others.find(|other| other.high >= OTHERS) {
                    None => Proof::Proved(*finding),
                    Some(other) => {
                        Proof::Unclear(format!("{} may matter too: elasticity up to {:.2}", other.name, other.high))
                    }
                },
            }
        }
        ([], _) if suspected.clone().next().is_some() && suspected.all(is_nothing) => Proof::RuledOut,
        ([], _) => Proof::Unclear(
            "no elasticity is surely above 0.3: more rounds (--rounds), or longer blocks (--block)".to_owned(),
        ),
        (_, []) => Proof::Unclear(format!(
            "it shrinks with {}, of which nothing else says that it is full",
            strong.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>().join(" and ")
        )),
        (_, several) => Proof::Shared(several.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::stack::{HUB, Process as Planned};
    use crate::stats::chance::normal;
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

    fn arm(name: &str, finding: Option<usize>) -> Arm {
        Arm { squeeze: Squeeze::Slots, finding, name: name.into(), from: 1.0, to: LEFT, limit: LEFT, is_relaxed: false }
    }

    /// Blocks of a made-up system in which a resource has an elasticity, with noise of some per cent.
    fn simulated(arm: &Arm, truth: f64, noise: f64, seed: u64) -> Elasticity {
        let mut rng = fastrand::Rng::with_seed(seed);
        let rounds: Vec<(f64, f64)> = (0..6)
            .map(|_| {
                (
                    1000.0 * (noise * normal(&mut rng)).exp(),
                    1000.0 * LEFT.powf(truth) * (noise * normal(&mut rng)).exp(),
                )
            })
            .collect();
        elasticity(arm, &rounds).unwrap()
    }

    #[test]
    fn what_limits_is_proved_and_what_does_not_is_not() {
        let (mut proved, mut wrong) = (0, 0);
        for seed in 0..200 {
            let of = |one: f64, other: f64, noise: f64| {
                judge(&[
                    simulated(&arm("one", Some(0)), one, noise, seed),
                    simulated(&arm("other", None), other, noise, seed + 1000),
                ])
            };
            proved += u32::from(of(1.0, 0.0, 0.015) == Proof::Proved(0));
            for noise in [0.01, 0.03, 0.10] {
                // Nothing limits; or what was not suspected does; or both do.
                for (one, other) in [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
                    wrong += u32::from(matches!(of(one, other, noise), Proof::Proved(_)));
                }
            }
        }
        assert!(proved >= 150, "{proved} of 200");
        assert_eq!(wrong, 0);
    }

    #[test]
    fn what_the_arms_say_together() {
        let of = |name: &str, finding, low, high| Elasticity {
            name: name.into(),
            finding,
            low,
            high,
            ..Elasticity::default()
        };
        assert_eq!(judge(&[of("a", Some(0), 0.8, 1.1), of("b", None, -0.1, 0.1)]), Proof::Proved(0));
        assert_eq!(judge(&[of("a", Some(0), 0.8, 1.1), of("b", Some(1), 0.4, 0.9)]), Proof::Shared(vec![0, 1]));
        assert_eq!(judge(&[of("a", Some(0), -0.05, 0.05), of("b", None, -0.1, 0.3)]), Proof::RuledOut);
        for unclear in [
            vec![of("a", Some(0), 0.8, 1.1)],
            vec![of("a", Some(0), 0.8, 1.1), of("b", None, -0.1, 0.5)],
            vec![of("a", Some(0), 0.1, 1.1), of("b", None, -0.1, 0.1)],
            vec![of("a", Some(0), -0.1, 0.1), of("b", None, 0.6, 1.1)],
        ] {
            assert!(matches!(judge(&unclear), Proof::Unclear(_)), "{unclear:?}");
        }
    }

    #[test]
    fn a_squeeze_changes_what_it_is_about_and_nothing_else() {
        let mut signals = Signals::quiet();
        signals.processes[0].threads = vec![(0.98, 0.0)];
        signals.processes[0].cpu = 0.98;
        let findings = find(&signals, None);
        let arms = arms(&findings, &signals, &spec(), false);
        assert_eq!(
            arms.iter().map(|arm| (arm.name.as_str(), arm.finding)).collect::<Vec<_>>(),
            [("CPU of edge", Some(0)), ("CPU of app", None)]
        );
        let mut squeezed = spec();
        assert_eq!(squeeze(&arms[0], &mut squeezed, false), []);
        assert_eq!((squeezed.hosts[0].name.as_str(), squeezed.hosts[0].cpus), (HUB, Some(0.8)));
        assert!(
            squeezed.processes[0].is_unlimited && squeezed.client.is_unlimited && !squeezed.processes[1].is_unlimited
        );
        let mut squeezed = spec();
        squeezed.hosts.push(Host {
            sysctls: vec![("net.ipv4.ip_local_port_range".into(), "50000 50199".into())],
            ..Host::named(HUB)
        });
        let of = |squeeze: Squeeze, to: f64| Arm { squeeze, to, limit: to, ..arm("x", None) };
        let ports = of(Squeeze::Ports(HUB.into()), 160.0);
        squeeze(&ports, &mut squeezed, false);
        assert_eq!(squeezed.hosts[0].sysctls, [("net.ipv4.ip_local_port_range".to_owned(), "50000 50159".to_owned())]);
        let files = of(Squeeze::Files("edge".into()), 24.0);
        assert_eq!(squeeze(&files, &mut spec(), true), [("worker_rlimit_nofile".to_owned(), "24".to_owned())]);
        squeeze(&files, &mut squeezed, false);
        assert_eq!(squeezed.processes[1].files, Some((24, 24)));
    }
    #[test]
    fn a_neighbour_gives_what_the_other_gets() {
        let mut signals = Signals::quiet();
        signals.processes[0].cpu = 0.3;
        signals.processes[0].threads = vec![(0.3, 0.7)];
        signals.processes[1].role = Role::Beside;
        signals.processes[1].cpu = 0.7;
        let findings = find(&signals, None);
        assert_eq!(findings[0].rule.id, "B18");
        let arms = arms(&findings, &signals, &spec(), true);
        assert_eq!(
            arms.iter().map(|arm| (arm.name.as_str(), arm.finding)).collect::<Vec<_>>(),
            [("CPU of edge that app leaves", Some(0)), ("CPU of edge", None)]
        );
        assert!((arms[0].to - 0.45).abs() < 1e-9 && (arms[0].limit - 0.55).abs() < 1e-9);
        let mut squeezed = spec();
        squeeze(&arms[0], &mut squeezed, false);
        assert!(squeezed.hosts[0].cpus.is_some_and(|cpus| (cpus - 0.55).abs() < 1e-9));
        assert!(!squeezed.processes[0].is_unlimited && squeezed.processes[1].is_unlimited);
    }

    #[test]
    fn what_can_be_given_is_given_and_proves_nothing() {
        let mut signals = Signals::quiet();
        signals.processes[0].quota = Some(0.2);
        signals.processes[0].throttled = 0.9;
        signals.processes[0].pinned = vec![0];
        let findings = find(&signals, None);
        let mut quota = spec();
        quota.hosts.push(Host { cpus: Some(0.2), ..Host::named(HUB) });
        let all = arms(&findings, &signals, &quota, true);
        let last = all.last().unwrap();
        assert!(last.is_relaxed && (last.to - 0.3).abs() < 1e-9 && last.finding == Some(0));
        assert!(!arms(&findings, &signals, &quota, false).iter().any(|arm| arm.is_relaxed));
        let of =
            |is_relaxed, low, high, finding| Elasticity { is_relaxed, low, high, finding, ..Elasticity::default() };
        assert_eq!(judge(&[of(true, 0.9, 1.1, Some(0)), of(false, -0.05, 0.05, Some(0))]), Proof::RuledOut);
    }

    #[test]
    fn a_pool_is_what_its_variable_says() {
        let mut signals = Signals::quiet();
        signals.pools = vec![Pool { process: "app".into(), variable: "POOL".into(), size: 5 }];
        let pool = super::arm(Squeeze::Pool("app".into(), "POOL".into()), None, &signals, &spec()).unwrap();
        assert_eq!((pool.from, pool.to), (5.0, 4.0));
        let mut squeezed = spec();
        squeezed.processes[0].env = vec![("POOL".into(), "5".into()), ("X".into(), "y".into())];
        squeeze(&pool, &mut squeezed, false);
        assert_eq!(squeezed.processes[0].env, [("X".into(), "y".into()), ("POOL".into(), "4".into())]);
        signals.conf.servers = vec!["a:1".into(), "b:1".into(), "c:1".into()];
        let servers = super::arm(Squeeze::Servers("c:1".into()), None, &signals, &spec()).unwrap();
        assert_eq!((servers.from, servers.to), (3.0, 2.0));
        assert_eq!(squeeze(&servers, &mut squeezed, false), [(tap::DOWN.to_owned(), "c:1".to_owned())]);
    }
}
