//! Work that comes and goes: a batch beside the edge, a collection, a flush of a disk, a runtime that stands still. Means over a block
//! hide it, so this looks at the windows.

use crate::metric::digits;
use crate::said::{Said, Text, say};
use crate::texts;
use crate::watch::Beat;
use crate::why::course::{Course, Window, middle};
use crate::why::episodes::{Episodes, LoadWindows, RECURS, together};
use crate::why::rule::{FiredRule, Rule, Squeeze, Tier, percent};
use crate::why::signals::{ProcessSignals, Role, Signals};

/// CPUs with this usage are full, as in `cpu`.
const CPUS_FULL: f64 = 0.88;
/// A neighbour takes CPU time from somebody if it uses at least this part of a CPU while the other waits for as much.
const TAKES: f64 = 0.3;
/// Of five looks at a process, two that see a wait for a disk are no chance.
const STUCK: f64 = 0.4;
/// In a window with this part of throttled periods, the quota is used up.
const THROTTLED: f64 = 0.5;
/// A hypervisor that takes this part of the CPU time.
const STEAL: f64 = 0.1;
/// A link with this usage is full.
const LINK_FULL: f64 = 0.9;
/// An application stands still if at most this part of the usual answers comes, and it computes less than [`IDLE`].
const STILL: f64 = 0.1;
const IDLE: f64 = 0.5;
/// Usual answers in a window, least: of fewer, a window without any may be chance.
const ANSWERS_MIN: f64 = 5.0;
/// A high use has to be at least this many times the usual one.
const CONTRAST: f64 = 2.0;
/// The degree of what recurs, which may limit, and of what was seen once or twice, which may not.
const RECURRING: f64 = 0.45;
const SEEN: f64 = 0.2;

/// The rules.
pub const RULES: &[Rule] = &[Rule {
    id: "B73",
    says: texts::BURSTS_SLOW_REQUESTS,
    tier: Tier::Waste,
    check: bursts,
    fires: |s| s.course = rhythm(s, 480.0),
    // The same work, and no request is slower.
    silent: |s| s.course = rhythm(s, 14.0),
}];

/// Something that may be high from time to time.
struct Candidate {
    subject: Said,
    /// Whether the use is high, by window.
    high: Vec<bool>,
    /// Its values, by window: the contrast is theirs.
    values: Vec<Option<f64>>,
    /// The sentence, from the values in the episodes and else.
    rose: Box<dyn Fn(f64, f64) -> (Text, Said)>,
    /// The wait that it causes, by window, and its sentence.
    waits: Option<(Said, Vec<Option<f64>>)>,
    squeeze: Option<Squeeze>,
    knob: Said,
    /// It is defined by answers that do not come.
    is_of_answers: bool,
}

fn bursts(s: &Signals) -> Option<FiredRule> {
    let course = &s.course;
    let slow = course.slow(s.load.is_closed);
    let counts: Vec<[f64; 3]> =
        course.windows.iter().map(|window| [window.sent, window.answered, window.failed]).collect();
    let load = LoadWindows::of(&slow, &counts);
    let found = candidates(s).into_iter().filter_map(|one| {
        let found = together(&one.high, &load, !one.is_of_answers)?;
        let (there, other) = (inside(&one.values, &one.high, true)?, inside(&one.values, &found.area, false)?);
        // A standstill is low where others are high.
        (there >= CONTRAST * other || other >= CONTRAST * there).then_some((one, found, there, other))
    });
    // The first of those that explain most: the order of the candidates is from a cause outside to one inside.
    let all: Vec<(Candidate, Episodes, f64, f64)> = found.collect();
    let most = all.iter().map(|(_, found, ..)| found.bad_within).max()?;
    let (one, episodes, there, other) = all.into_iter().find(|(_, found, ..)| found.bad_within == most)?;
    let degree = if episodes.runs.len() >= RECURS { RECURRING } else { SEEN };
    let (label, rose) = (one.rose)(there, other);
    let waits = one.waits.as_ref().and_then(|(name, waits)| {
        let (there, other) = (inside(waits, &one.high, true)?, inside(waits, &episodes.area, false)?);
        Some(say!(WAIT_FOR_CPU_ROSE, name, percent(there.min(1.0)), percent(other.min(1.0))))
    });
    let is_hit = |at: usize| load.slow.get(at).copied().unwrap_or(false);
    let of_bad: Vec<Option<f64>> = slow.iter().enumerate().filter(|(at, _)| is_hit(*at)).map(|(_, ms)| *ms).collect();
    let of_rest: Vec<Option<f64>> = slow.iter().enumerate().filter(|(at, _)| !is_hit(*at)).map(|(_, ms)| *ms).collect();
    let quantile = if s.load.is_closed { "max" } else { "p95" };
    let ms = middle(of_bad.into_iter()).zip(middle(of_rest.into_iter()));
    let found = FiredRule::new(one.subject, degree)
        .with(texts::LABEL_WHEN, episodes.in_words(|at| course.at_s(at), course.step_s))
        .with(label, rose)
        .with(texts::LABEL_WAITED, waits.unwrap_or_default())
        .with(
            texts::LABEL_LATENCY,
            ms.map_or_else(Said::default, |(slow, usual)| say!(SLOW_WHILE, quantile, digits(slow), digits(usual))),
        )
        .with(texts::LABEL_FAILED, failures(&counts, &episodes))
        .with(texts::LABEL_NEAR, say!(COINCIDES, episodes.hit, episodes.runs.len(), episodes.bad_within, episodes.bad));
    let found = match one.squeeze {
        Some(squeeze) => found.squeezed(squeeze),
        None => found,
    };
    let usual = ms.map_or(0.0, |(_, usual)| usual);
    Some(found.knob(one.knob, say!(AS_FAST_AS_ELSE, quantile, digits(usual))).for_the_tail())
}

/// The middle of the values in the windows of a mask, or outside of it.
fn inside(values: &[Option<f64>], mask: &[bool], is_inside: bool) -> Option<f64> {
    middle(values.iter().zip(mask).filter(|(_, is_in)| **is_in == is_inside).map(|(value, _)| *value))
}

/// Failed requests in the episodes and else; nothing if there are few.
fn failures(counts: &[[f64; 3]], episodes: &Episodes) -> Said {
    let sum = |is_inside: bool| {
        let own = counts.iter().zip(&episodes.area).filter(|(_, is_in)| **is_in == is_inside);
        own.fold((0.0, 0.0), |sum, ([sent, _, failed], _)| (sum.0 + failed, sum.1 + sent))
    };
    let (within, other) = (sum(true), sum(false));
    if within.0 < 1.0 {
        return Said::default();
    }
    say!(FAILED_WHILE, within.0 as u64, within.1 as u64, other.0 as u64, other.1 as u64)
}

fn mask(values: &[Option<f64>], is_high: impl Fn(f64) -> bool) -> Vec<bool> {
    values.iter().map(|value| value.is_some_and(&is_high)).collect()
}

/// All that may be high from time to time, causes outside of the serving processes first.
fn candidates(s: &Signals) -> Vec<Candidate> {
    let servers: Vec<&ProcessSignals> = s.servers().chain(s.edge_process()).collect();
    let mut all: Vec<Candidate> = steal(s).into_iter().chain(links(s)).collect();
    all.extend(servers.iter().filter_map(|process| throttled(s, process)));
    for victim in &servers {
        let others = s.processes.iter().filter(|other| other.role != Role::Client && other.name != victim.name);
        // Work that serves nobody first.
        let (beside, serving): (Vec<_>, Vec<_>) =
            others.filter(|other| other.is_beside(victim)).partition(|other| other.role == Role::Beside);
        all.extend(beside.into_iter().chain(serving).map(|other| neighbour(s, victim, other)));
    }
    let of_disk = |process: &&ProcessSignals| process.role != Role::Client;
    all.extend(s.processes.iter().filter(of_disk).map(|process| disk(s, process)));
    all.extend(servers.iter().map(|process| own(s, process)));
    all.extend(still(s));
    all
}

fn name(process: &ProcessSignals) -> Said {
    match process.role {
        Role::Edge => say!(EDGE),
        Role::App => say!(APPLICATION_NAMED, &process.name),
        Role::Client | Role::Beside => Said::from(&process.name),
    }
}

fn steal(s: &Signals) -> Option<Candidate> {
    let values: Vec<Option<f64>> = s.course.steal.iter().copied().map(Some).collect();
    (!values.is_empty()).then(|| Candidate {
        subject: say!(SUBJECT_STEAL_BURSTS),
        high: mask(&values, |share| share >= STEAL),
        values,
        rose: Box::new(|there, other| (texts::LABEL_CPU, say!(STEAL_ROSE, percent(there), percent(other)))),
        waits: None,
        squeeze: None,
        knob: say!(MACHINE_WITHOUT_STEAL),
        is_of_answers: false,
    })
}

fn links(s: &Signals) -> Vec<Candidate> {
    let one = |host: &crate::why::signals::HostSignals| {
        let (bits, most) = (s.course.bits.get(&host.name)?, host.link_max.filter(|most| *most > 0.0)?);
        let values: Vec<Option<f64>> = bits.iter().map(|bits| Some(bits / most)).collect();
        Some(Candidate {
            subject: say!(SUBJECT_LINK_BURSTS, &host.name),
            high: mask(&values, |share| share >= LINK_FULL),
            values,
            rose: Box::new(|there, other| (texts::LABEL_LINK, say!(LINK_ROSE, percent(there), percent(other)))),
            waits: None,
            squeeze: None,
            knob: say!(FIND_WHAT_IS_SENT),
            is_of_answers: false,
        })
    };
    s.hosts.iter().filter_map(one).collect()
}

fn throttled(s: &Signals, process: &ProcessSignals) -> Option<Candidate> {
    process.quota?;
    let values = s.course.lane(&process.name, |beat| beat.throttled);
    Some(Candidate {
        subject: say!(SUBJECT_QUOTA_BURSTS, name(process)),
        high: mask(&values, |share| share >= THROTTLED),
        values,
        rose: Box::new(|there, other| (texts::LABEL_THROTTLED, say!(THROTTLED_ROSE, percent(there), percent(other)))),
        waits: None,
        squeeze: None,
        knob: say!(LARGER_QUOTA_FOR_BURSTS, name(process)),
        is_of_answers: false,
    })
}

fn neighbour(s: &Signals, victim: &ProcessSignals, other: &ProcessSignals) -> Candidate {
    let values = s.course.lane(&other.name, |beat| beat.cpu_most);
    let waits = s.course.lane(&victim.name, |beat| beat.waited);
    let high = values
        .iter()
        .zip(&waits)
        .map(|(cpu, waited)| cpu.is_some_and(|cpu| cpu >= TAKES) && waited.is_some_and(|waited| waited >= TAKES));
    let whose = name(other);
    Candidate {
        subject: say!(SUBJECT_NEIGHBOUR_BURSTS, name(other), name(victim)),
        high: high.collect(),
        values,
        rose: Box::new(move |there, before| {
            (texts::LABEL_CPU, say!(CPU_ROSE, whose.clone(), percent(before), percent(there)))
        }),
        waits: Some((name(victim), waits)),
        squeeze: Some(Squeeze::Neighbour(victim.name.clone(), other.name.clone())),
        knob: say!(MOVE_THE_WORK, name(other)),
        is_of_answers: false,
    }
}

fn disk(s: &Signals, process: &ProcessSignals) -> Candidate {
    let values = s.course.lane(&process.name, |beat| beat.stuck);
    let whose = name(process);
    Candidate {
        subject: say!(SUBJECT_DISK_BURSTS, name(process)),
        high: mask(&values, |share| share >= STUCK),
        values,
        rose: Box::new(move |there, other| {
            (texts::LABEL_WAITED, say!(DISK_WAIT_ROSE, whose.clone(), percent(there), percent(other)))
        }),
        waits: None,
        squeeze: None,
        knob: say!(SPREAD_THE_WRITES, name(process)),
        is_of_answers: false,
    }
}

fn own(s: &Signals, process: &ProcessSignals) -> Candidate {
    let values = s.course.lane(&process.name, |beat| beat.cpu_most);
    let whose = name(process);
    // A process that shares a CPU waits for a part of the time in which it would run. A process that mostly waits is another case.
    let wanted = s.course.lane(&process.name, |beat| beat.cpu_most + beat.waited.min(beat.cpu_most));
    // A thread that runs alone can use one CPU.
    let cpus = if process.threads.len() <= 1 || process.is_node { process.cpus.min(1.0) } else { process.cpus };
    Candidate {
        subject: say!(SUBJECT_OWN_BURSTS, name(process)),
        high: mask(&wanted, |wanted| wanted >= CPUS_FULL * cpus),
        values,
        rose: Box::new(move |there, other| {
            (texts::LABEL_CPU, say!(CPU_ROSE, whose.clone(), percent(other), percent(there)))
        }),
        waits: None,
        squeeze: None,
        knob: say!(SPREAD_THE_WORK, name(process)),
        is_of_answers: false,
    }
}

/// The one application stands still: no answer comes from it although requests wait, and it does not compute.
fn still(s: &Signals) -> Option<Candidate> {
    let mut apps = s.apps();
    let (Some(app), None) = (apps.next(), apps.next()) else { return None };
    let heads = &s.course.heads;
    let usual = middle(heads.iter().copied()).filter(|usual| *usual >= ANSWERS_MIN)?;
    let (own, edge) = (s.course.lane(&app.name, |beat| beat.cpu), s.edge_process()?);
    let of_edge = s.course.lane(&edge.name, |beat| beat.cpu);
    let is_idle = |lane: &[Option<f64>], at: usize, cpus: f64| {
        lane.get(at).copied().flatten().is_some_and(|cpu| cpu < IDLE * cpus.min(1.0))
    };
    let high: Vec<bool> = heads
        .iter()
        .enumerate()
        .map(|(at, heads)| {
            let is_asked = s.course.windows.get(at).is_some_and(|window| window.sent > 0.0 || s.load.is_closed);
            let none = heads.is_some_and(|heads| heads <= STILL * usual);
            none && is_asked && is_idle(&own, at, app.cpus) && is_idle(&of_edge, at, edge.cpus)
        })
        .collect();
    let used = inside(&own, &high, true).unwrap_or(0.0) / app.cpus.max(1e-9);
    let step = digits(s.course.step_s);
    Some(Candidate {
        subject: say!(SUBJECT_STANDS_STILL, name(app)),
        high,
        values: heads.clone(),
        rose: Box::new(move |there, other| {
            let said = say!(NO_ANSWERS_CAME, digits(there), step.as_str(), digits(other), percent(used));
            (texts::LABEL_ANSWERS, said)
        }),
        waits: None,
        squeeze: None,
        knob: say!(FIND_THE_STANDSTILL, name(app)),
        is_of_answers: true,
    })
}

/// Eight seconds, in which a batch beside the edge runs for half a second in every two. Requests then take so long.
fn rhythm(s: &mut Signals, ms: f64) -> Course {
    let batch = ProcessSignals {
        name: "batch".into(),
        role: Role::Beside,
        pinned: vec![0],
        cpus: 1.0,
        ..ProcessSignals::default()
    };
    s.processes.push(batch);
    let is_on = |at: usize| at % 8 == 3 || at % 8 == 4;
    let beat = |cpu: f64, waited: f64| Some(Beat { cpu, cpu_most: cpu, waited, ..Beat::default() });
    let window = |at: usize| Window {
        sent: 50.0,
        answered: 50.0,
        failed: 0.0,
        ms: Some(if is_on(at) { [ms / 2.0, ms, ms] } else { [4.0, 12.0, 14.0] }),
    };
    let all = 0..31;
    Course {
        step_s: 0.25,
        windows: all.clone().map(window).collect(),
        lanes: [
            (
                "batch".to_owned(),
                all.clone().map(|at| if is_on(at) { beat(0.72, 0.2) } else { beat(0.03, 0.0) }).collect(),
            ),
            (
                "edge".to_owned(),
                all.clone().map(|at| if is_on(at) { beat(0.26, 0.7) } else { beat(0.2, 0.02) }).collect(),
            ),
            ("app".to_owned(), all.clone().map(|_| beat(0.3, 0.01)).collect()),
        ]
        .into(),
        steal: vec![0.0; all.len()],
        heads: all.clone().map(|_| Some(50.0)).collect(),
        bits: [].into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(change: impl Fn(&mut Signals)) -> FiredRule {
        let mut s = Signals::quiet();
        s.course = rhythm(&mut s, 480.0);
        change(&mut s);
        bursts(&s).unwrap_or_default()
    }

    fn lines(found: &FiredRule) -> Vec<&str> {
        found.evidence.iter().map(|(_, text)| text.en()).collect()
    }

    #[test]
    fn a_batch_beside_the_edge_is_named_with_its_period() {
        let found = found(|_| ());
        assert_eq!(found.subject, "batch: bursts of CPU time on the CPUs of edge");
        assert_eq!(
            lines(&found),
            [
                "every 2.00 s, for 0.500 s: 4 times from 1.00 s on",
                "CPU of batch rose from 3.00 % to 72 %",
                "edge waited for a CPU for 70 % of the time, and for 2.00 % else",
                "p95 was 480 ms in these windows, and 12.0 ms else",
                "4 of 4 times slow or failed requests came with it; 8 of the 8 slow windows are in this time",
            ]
        );
        assert_eq!(found.squeeze, Some(Squeeze::Neighbour("edge".into(), "batch".into())));
    }

    /// Sets the figures of a process in the slow windows.
    fn in_slow(s: &mut Signals, name: &str, change: impl Fn(&mut Beat)) {
        let lane = s.course.lanes.get_mut(name).unwrap();
        lane.iter_mut()
            .enumerate()
            .filter(|(at, _)| at % 8 == 3 || at % 8 == 4)
            .for_each(|(_, beat)| change(beat.as_mut().unwrap()));
    }

    #[test]
    fn each_resource_that_comes_and_goes_has_its_subject() {
        let subject = |change: &dyn Fn(&mut Signals)| {
            let found = found(|s| {
                in_slow(s, "batch", |beat| beat.cpu_most = 0.03);
                in_slow(s, "edge", |beat| beat.waited = 0.0);
                change(s);
            });
            found.subject.en().to_owned()
        };
        assert_eq!(subject(&|_| ()), "", "nothing is high");
        assert_eq!(
            subject(&|s| in_slow(s, "app", |beat| beat.cpu_most = 0.97)),
            "application app: bursts of CPU time of its own"
        );
        assert_eq!(
            subject(&|s| in_slow(s, "app", |beat| beat.stuck = 0.8)),
            "application app: waits for a disk that come and go"
        );
        let quota = |s: &mut Signals| {
            s.processes[1].quota = Some(0.5);
            in_slow(s, "app", |beat| beat.throttled = 0.9);
        };
        assert_eq!(subject(&quota), "application app: its CPU quota, used up from time to time");
        let steal = |s: &mut Signals| {
            s.course
                .steal
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| at % 8 == 3 || at % 8 == 4)
                .for_each(|(_, steal)| *steal = 0.4)
        };
        assert!(subject(&steal).starts_with("this machine: CPU time that the hypervisor takes"));
        let link = |s: &mut Signals| {
            s.hosts[0].link_max = Some(1e6);
            let bits = (0..31).map(|at| if at % 8 == 3 || at % 8 == 4 { 9.8e5 } else { 1e5 });
            s.course.bits.insert("edge".into(), bits.collect());
        };
        assert_eq!(subject(&link), "the link of edge: full from time to time");
        let still = |s: &mut Signals| {
            s.course
                .heads
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| at % 8 == 3 || at % 8 == 4)
                .for_each(|(_, heads)| *heads = Some(0.0));
        };
        assert_eq!(subject(&still), "application app: it stands still from time to time");
    }

    /// An episode that was seen once limits nothing, and the rule claims no period.
    #[test]
    fn once_is_told_as_once() {
        let found = found(|s| {
            for at in 8..31 {
                s.course.windows[at].ms = Some([4.0, 12.0, 14.0]);
                s.course.lanes.get_mut("batch").unwrap()[at].as_mut().unwrap().cpu_most = 0.03;
            }
        });
        assert_eq!(lines(&found)[0], "once, from 1.00 s to 1.50 s");
        assert!(found.degree < crate::why::rule::MINOR);
    }
}
