//! The counter-experiment: each suspect gets a fifth less of its resource, in blocks that alternate with unchanged
//! blocks. A resource limits if the answers shrink with it. If they do not, a number rules it out.
//!
//! The elasticity of a resource is the relative change of answers a second divided by the relative change of the
//! resource: 1 if it alone limits, 0 if it has room. (This reverses Coz's virtual speed-up, so that it works on any
//! black box.)
//!
//! That is half of a proof: an almost full CPU slows every answer when it is squeezed, even if another resource
//! limits. The other half is [`super::widen`]: with more of the suspect, the answers have to rise.

use std::collections::BTreeSet;

use super::arm::{Arm, Elasticity, MORE, host_of, limit_cpu};
use super::assign;
use super::rule::Squeeze;
use super::rules::Finding;
use super::signals::{Pool, ProcessSignals, Role, Signals};
use super::widen;
use crate::said::{Said, say};
use crate::stack::Spec;
use crate::stats;
use crate::watch::tap::{self, NewValue};

/// The part of a resource that is left when it is squeezed.
pub const LEFT: f64 = 0.8;
/// The least CPU share that a neighbour keeps.
const NEIGHBOUR_LEAST: f64 = 0.05;
/// Most resources that are squeezed: suspects first, then controls that should not matter.
pub const ARMS_MAX: usize = 3;
/// The interval of the bottleneck's elasticity has to lie above this.
pub const PROVED: f64 = 0.3;
/// The interval of every other elasticity has to lie below this.
pub const OTHERS: f64 = 0.2;
/// An interval within this distance of 0 rules a suspect out.
pub const NOTHING: f64 = 0.1;

/// The conclusion from all arms.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// One finding, by its number, and no other.
    Proved(usize),
    /// Several findings matter.
    Shared(Vec<usize>),
    /// No suspect matters.
    RuledOut,
    /// The intervals are too wide, or there was nothing to compare with.
    Unclear(Said),
}

/// The arms of a proof: suspects that can be squeezed, and controls beside them.
pub fn arms(findings: &[Finding], signals: &Signals, spec: &Spec) -> Vec<Arm> {
    let mut wanted: Vec<(Squeeze, Option<usize>)> = Vec::new();
    for (number, finding) in findings.iter().enumerate() {
        if let Some(squeeze) = &finding.found.squeeze
            && !wanted.iter().any(|(known, _)| known == squeeze)
        {
            // A server less that costs nothing is evidence for a shared limit behind the servers. So this arm is a
            // control, not a suspect.
            let finding = (!matches!(squeeze, Squeeze::Servers(_))).then_some(number);
            wanted.push((squeeze.clone(), finding));
        }
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    let is_neighbour = |process: &ProcessSignals| {
        wanted.iter().any(|(squeeze, _)| matches!(squeeze, Squeeze::Neighbour(_, other) if *other == process.name))
    };
    let mut controls: Vec<&ProcessSignals> =
        signals.processes.iter().filter(|process| process.role != Role::Client && !is_neighbour(process)).collect();
    controls.sort_by(|one, other| other.usage().total_cmp(&one.usage()));
    let controls: Vec<Squeeze> = controls.into_iter().map(|process| Squeeze::Cpu(process.name.clone())).collect();
    wanted.extend(controls.into_iter().map(|squeeze| (squeeze, None)));
    let mut seen = BTreeSet::new();
    wanted
        .into_iter()
        .filter_map(|(squeeze, finding)| arm(squeeze, finding, signals, spec))
        .filter(|arm| seen.insert(arm.name.en().to_owned()))
        .take(ARMS_MAX)
        .collect()
}

fn arm(squeeze: Squeeze, finding: Option<usize>, signals: &Signals, spec: &Spec) -> Option<Arm> {
    let process = |name: &String| signals.processes.iter().find(|known| known.name == *name);
    let whole = |from: f64| (from, (from * LEFT).round());
    let (name, (from, to)) = match &squeeze {
        Squeeze::Cpu(name) => {
            let from = cpus_of(process(name)?, spec)?;
            (say!(CPU_OF, name), (from, from * LEFT))
        }
        Squeeze::Neighbour(name, other) => {
            let (victim, other) = (process(name)?, process(other)?);
            // An existing cgroup limit does not belong to the neighbour alone.
            if spec.hosts.iter().any(|host| host.name == other.host && (host.cpus.is_some() || host.credits.is_some()))
            {
                return None;
            }
            let given = (victim.cpu * (MORE - 1.0)).min(other.cpu - NEIGHBOUR_LEAST);
            let name = say!(CPU_THAT_LEAVES, name, &other.name);
            return (given > 0.0).then_some(Arm {
                squeeze,
                finding,
                name,
                from: victim.cpu,
                to: victim.cpu + given,
                limit: other.cpu - given,
                is_relaxed: false,
                spread: None,
            });
        }
        Squeeze::Ports(host) => {
            let ports = signals.hosts.iter().find(|known| known.name == *host)?.ports;
            (say!(LOCAL_PORTS, host), whole(ports as f64))
        }
        Squeeze::Files(name) => (say!(DESCRIPTORS, name), whole(process(name)?.fds.1 as f64)),
        Squeeze::Slots => {
            (Said::from("worker_connections"), whole(signals.conf.worker_connections.unwrap_or(512) as f64))
        }
        Squeeze::Link(host) => {
            let most = signals.hosts.iter().find(|known| known.name == *host)?.link_max?;
            (say!(LINK_OF, host), whole(most / 1000.0))
        }
        Squeeze::Pool(name, variable) => {
            let of = |pool: &&Pool| pool.process == *name && pool.variable == *variable;
            let size = signals.pools.iter().find(of)?.size as f64;
            // A fifth of a small pool can be less than one place.
            (say!(POOL, name, variable), (size, (size * LEFT).round().min(size - 1.0)))
        }
        Squeeze::Servers(_) => {
            let count = signals.conf.servers.len() as f64;
            (say!(SERVERS_UPSTREAM), (count, count - 1.0))
        }
    };
    (to >= 0.01 && to < from).then_some(Arm {
        squeeze,
        finding,
        name,
        from,
        to,
        limit: to,
        is_relaxed: false,
        spread: None,
    })
}

/// The most CPUs that a process can use. `None` if its share of a cgroup cannot be separated from the other
/// processes' shares.
fn cpus_of(process: &ProcessSignals, spec: &Spec) -> Option<f64> {
    let host = spec.hosts.iter().find(|host| host.name == process.host);
    if host.is_some_and(|host| host.credits.is_some()) {
        return None;
    }
    if let Some(quota) = process.quota {
        return Some(quota);
    }
    // The existing cgroup limit is for other processes too.
    if host.is_some_and(|host| host.cpus.is_some()) {
        return None;
    }
    let threads = process.threads.iter().filter(|(ran, waited)| ran + waited >= 0.05).count().max(1);
    Some(process.cpus.min(threads as f64))
}

/// Changes a block's spec so that the resource has the arm's size. Returns the changes that the configuration needs.
pub fn squeeze(arm: &Arm, spec: &mut Spec, has_file_limit: bool) -> Vec<NewValue> {
    match &arm.squeeze {
        Squeeze::Cpu(name) if arm.spread.is_some() => return widen::spread(arm, name, spec),
        Squeeze::Cpu(name) | Squeeze::Neighbour(_, name) => limit_cpu(spec, name, arm.limit),
        Squeeze::Ports(host) => {
            let parameter = "net.ipv4.ip_local_port_range";
            let host = host_of(spec, host);
            let known = host.sysctls.iter().find(|(name, _)| name == parameter).map(|(_, range)| range.clone());
            let low =
                known.and_then(|range| range.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(32_768);
            // The last port is 65535: a wider range begins lower.
            let low = low.min((widen::PORT_MAX + 1).saturating_sub(arm.to as u64));
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

/// Sets an environment variable to a number.
pub fn give(env: &mut Vec<(String, String)>, variable: &str, value: u64) {
    env.retain(|(name, _)| name != variable);
    env.push((variable.to_owned(), value.to_string()));
}

/// The elasticity from the answers a second of each round: unchanged, and squeezed.
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
        needed: 0.0,
    })
}

/// Judges all arms. `refused` holds the findings that cannot be given more, with the reasons.
pub fn judge(all: &[Elasticity], refused: &[(usize, Said)]) -> Proof {
    let arms: Vec<&Elasticity> = all.iter().filter(|arm| !arm.is_relaxed).collect();
    let strong: Vec<&Elasticity> = arms.iter().copied().filter(|arm| arm.low > PROVED).collect();
    let mut suspected = arms.iter().filter(|arm| arm.finding.is_some());
    let is_nothing = |arm: &&Elasticity| arm.low > -NOTHING && arm.high < NOTHING;
    let suspects = suspects(&strong);
    // Why a suspect is not proved although the answers shrink with its resource.
    let missing = |finding: usize| widen::missing(finding, all, refused);
    match (strong.as_slice(), suspects.as_slice()) {
        ([one], [finding]) => {
            let mut others = arms.iter().filter(|arm| arm.name != one.name).peekable();
            match others.peek() {
                None => Proof::Unclear(say!(NO_OTHER_SUSPECT_SQUEEZE)),
                Some(_) => match others.find(|other| other.high >= OTHERS) {
                    None => missing(*finding).map_or(Proof::Proved(*finding), Proof::Unclear),
                    Some(other) => {
                        Proof::Unclear(say!(MAY_MATTER_TOO_ELASTICITY, &other.name, format!("{:.2}", other.high)))
                    }
                },
            }
        }
        ([], _) if suspected.clone().next().is_some() && suspected.all(is_nothing) => Proof::RuledOut,
        ([], _) => Proof::Unclear(say!(NO_ELASTICITY_CERTAINLY_ABOVE)),
        (_, []) => Proof::Unclear(say!(
            ANSWERS_SHRINK_BUT_NO,
            assign::all_of(&strong.iter().map(|arm| arm.name.clone()).collect::<Vec<_>>())
        )),
        (_, several) => match several.iter().find_map(|finding| missing(*finding)) {
            None => Proof::Shared(several.to_vec()),
            Some(why) => Proof::Unclear(why),
        },
    }
}

/// The findings that the answers shrink with, each once.
fn suspects(strong: &[&Elasticity]) -> Vec<usize> {
    let mut suspects: Vec<usize> = strong.iter().filter_map(|arm| arm.finding).collect();
    suspects.dedup();
    suspects
}

/// The suspects that need the second half of the proof: the lab has to give more of them.
pub fn shrinking(arms: &[Arm], found: &[Elasticity]) -> Vec<Arm> {
    let is_strong = |arm: &&Arm| found.iter().any(|one| one.name == arm.name && !one.is_relaxed && one.low > PROVED);
    arms.iter().filter(|arm| arm.finding.is_some()).filter(is_strong).cloned().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::stack::{HUB, Host, Process as Planned};
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
        Arm {
            squeeze: Squeeze::Slots,
            finding,
            name: name.into(),
            from: 1.0,
            to: LEFT,
            limit: LEFT,
            is_relaxed: false,
            spread: None,
        }
    }

    /// The elasticity measured on a simulated system with a true elasticity and relative noise.
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

    /// The verdict on a simulated system, with the blocks of a whole proof. `answers` gives its good answers from the
    /// amount of the suspect; the control has a true elasticity of its own.
    fn proof(answers: &dyn Fn(f64) -> f64, control: f64, noise: f64, seed: u64) -> Proof {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut block = |mean: f64| mean * (noise * normal(&mut rng)).exp();
        let mut rounds =
            |to: f64| -> Vec<(f64, f64)> { (0..6).map(|_| (block(answers(1.0)), block(answers(to)))).collect() };
        let one = arm("one", Some(0));
        let mut found = vec![elasticity(&one, &rounds(LEFT)).unwrap()];
        found.push(simulated(&arm("other", None), control, noise, seed + 1000));
        let more = Arm { to: MORE, limit: MORE, is_relaxed: true, ..one };
        let given = rounds(MORE);
        found.push(Elasticity { needed: widen::needed(&given, None), ..elasticity(&more, &given).unwrap() });
        judge(&found, &[])
    }

    #[test]
    fn what_limits_is_proved_and_what_does_not_is_not() {
        let (mut proved, mut wrong) = (0, 0);
        for seed in 0..200 {
            proved += u32::from(proof(&|has| 1000.0 * has, 0.0, 0.015, seed) == Proof::Proved(0));
            for noise in [0.01, 0.03, 0.10] {
                // Nothing limits; or a resource that was not suspected limits; or both limit.
                for (one, other) in [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
                    let said = proof(&|has: f64| 1000.0 * has.powf(one), other, noise, seed);
                    wrong += u32::from(matches!(said, Proof::Proved(_)));
                }
            }
        }
        assert!(proved >= 150, "{proved} of 200");
        assert_eq!(wrong, 0);
    }

    /// `limit_conn` admits a fixed number of requests at once and refuses the rest. A squeezed CPU makes each request
    /// stay longer, so that fewer are admitted. But a second CPU changes nothing (192 answers a second became 190).
    #[test]
    fn what_only_hurts_when_it_is_squeezed_is_not_proved() {
        let limit_conn = |has: f64| 192.0 * has.min(1.0) - 2.0 * f64::from(has > 1.0);
        let refusal = "giving more of it changed nothing";
        for seed in 0..200 {
            for noise in [0.005, 0.01, 0.03, 0.10] {
                let said = proof(&limit_conn, 0.0, noise, seed);
                assert!(!matches!(said, Proof::Proved(_)), "{seed} {noise}: {said:?}");
                if noise <= 0.005 {
                    assert!(matches!(&said, Proof::Unclear(why) if why.contains(refusal)), "{seed}: {said:?}");
                }
            }
        }
    }

    /// The next limit, close behind, takes most of the rise. A gain counts if it is larger than a negligible gain. A
    /// negligible gain is no proof.
    #[test]
    fn a_next_limit_close_behind_leaves_a_small_rise() {
        let count = |next: f64| {
            (0..200)
                .filter(|seed| proof(&|has: f64| 1000.0 * has.min(next), 0.0, 0.005, *seed) == Proof::Proved(0))
                .count()
        };
        assert!(count(1.08) >= 190, "{}", count(1.08));
        assert_eq!((count(1.01), count(1.0)), (0, 0));
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
        let more = |finding: usize, low: f64, high: f64| Elasticity {
            from: 1.0,
            to: 1.5,
            value: (low + high) / 2.0,
            is_relaxed: true,
            needed: widen::RISE_MIN,
            ..of("m", Some(finding), low, high)
        };
        let (a, b) = (of("a", Some(0), 0.8, 1.1), of("b", None, -0.1, 0.1));
        let both = vec![a.clone(), of("b", Some(1), 0.4, 0.9)];
        let judged = |arms: &[&[Elasticity]]| judge(&arms.concat(), &[]);
        assert_eq!(judged(&[&[a.clone(), b.clone(), more(0, 0.5, 1.0)]]), Proof::Proved(0));
        assert_eq!(judged(&[&both, &[more(0, 0.5, 1.0), more(1, 0.2, 0.4)]]), Proof::Shared(vec![0, 1]));
        assert_eq!(judge(&[of("a", Some(0), -0.05, 0.05), of("b", None, -0.1, 0.3)], &[]), Proof::RuledOut);
        for unclear in [
            vec![a.clone()],
            // No arm gave more, or more made no difference, or the blocks are inconclusive.
            vec![a.clone(), b.clone()],
            vec![a.clone(), b.clone(), more(0, -0.05, 0.02)],
            vec![a.clone(), b.clone(), more(0, -0.05, 0.9)],
            [both, vec![more(0, 0.5, 1.0), more(1, -0.02, 0.02)]].concat(),
            vec![a, of("b", None, -0.1, 0.5), more(0, 0.5, 1.0)],
            vec![of("a", Some(0), 0.1, 1.1), b.clone(), more(0, 0.5, 1.0)],
            vec![of("a", Some(0), -0.1, 0.1), of("b", None, 0.6, 1.1)],
        ] {
            assert!(matches!(judge(&unclear, &[]), Proof::Unclear(_)), "{unclear:?}");
        }
        let refused = [(0, "this machine has no CPU beside its own".into())];
        let said = judge(&[of("a", Some(0), 0.8, 1.1), b], &refused);
        assert!(matches!(&said, Proof::Unclear(why) if why.contains("no CPU beside its own")), "{said:?}");
    }

    #[test]
    fn a_squeeze_changes_what_it_is_about_and_nothing_else() {
        let mut signals = Signals::quiet();
        signals.processes[0].threads = vec![(0.98, 0.0)];
        signals.processes[0].cpu = 0.98;
        let findings = find(&signals, None);
        let arms = arms(&findings, &signals, &spec());
        assert_eq!(
            arms.iter().map(|arm| (arm.name.en(), arm.finding)).collect::<Vec<_>>(),
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
        let arms = arms(&findings, &signals, &spec());
        assert_eq!(
            arms.iter().map(|arm| (arm.name.en(), arm.finding)).collect::<Vec<_>>(),
            [("CPU of edge that app leaves", Some(0)), ("CPU of edge", None)]
        );
        assert!((arms[0].to - 0.45).abs() < 1e-9 && (arms[0].limit - 0.55).abs() < 1e-9);
        let mut squeezed = spec();
        squeeze(&arms[0], &mut squeezed, false);
        assert!(squeezed.hosts[0].cpus.is_some_and(|cpus| (cpus - 0.55).abs() < 1e-9));
        assert!(!squeezed.processes[0].is_unlimited && squeezed.processes[1].is_unlimited);
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
