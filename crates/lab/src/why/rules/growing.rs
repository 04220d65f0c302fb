//! Uses that grow with each request until they meet a limit: descriptors, memory, the CPU time of a request.

use crate::metric::digits;
use crate::said::{Said, say};
use crate::stats;
use crate::texts;
use crate::why::rule::{FiredRule, MINOR, Rule, Tier, of};
use crate::why::signals::{ProcessSignals, Role, Signals};

/// Parts of a block in each of which the mean has to be higher than in the one before. By chance, that happens to one of 40,000 series
/// without a trend, and to one of 128 random walks.
const PARTS: usize = 8;
/// A use that becomes warm grows less and less. A leak grows at the end at least by this part of its growth at the beginning.
const NOT_SLOWING: f64 = 0.5;
/// A limit with this usage is met.
const MET: f64 = 0.95;
/// A limit that is further away than this is not told, s: until then, much else changes.
const WITHIN_S: f64 = 600.0;
/// Growth by less than this part of the limit is not told.
const PART_MIN: f64 = 0.1;
/// Descriptors beyond those of connections, least: logs and libraries open some.
const FILES_MIN: f64 = 16.0;
/// The CPU time of a request grows from this factor on. Less may come from other clocks and caches.
const CPU_FACTOR: f64 = 1.5;
/// MiB.
const MIB: f64 = 1048576.0;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B74",
        says: texts::GROWS_UNTIL_LIMIT,
        tier: Tier::Limit,
        check: met,
        fires: |s| grows(s, 10.0),
        // It becomes warm: each step is smaller than the one before.
        silent: |s| {
            grows(s, 10.0);
            let lane = s.course.lanes.values_mut().flatten().flatten();
            lane.enumerate().for_each(|(at, beat)| beat.fds.0 = 250 - 200 / (at as u64 + 1));
        },
    },
    Rule {
        id: "B75",
        says: texts::GROWS_TOWARDS_LIMIT,
        tier: Tier::Waste,
        check: coming,
        fires: |s| grows(s, 4.0),
        // The connections of more clients at once.
        silent: |s| {
            grows(s, 4.0);
            s.load.flight = (0..20).map(|at| f64::from(at) * 8.0).collect();
        },
    },
];

/// A use that grew, and its limit.
struct Growth {
    what: Said,
    whose: Said,
    from: f64,
    to: f64,
    per_s: f64,
    limit: f64,
    /// When the limit was met, s after the beginning of the load.
    met_s: Option<f64>,
    unit: &'static str,
    knob: Said,
}

impl Growth {
    /// Seconds until the limit is met, at this rate.
    fn left_s(&self) -> f64 {
        (self.limit - self.to).max(0.0) / self.per_s.max(1e-9)
    }

    fn found(&self, s: &Signals, subject: Said, degree: f64) -> FiredRule {
        let number = |value: f64| format!("{}{}", digits(value), self.unit);
        let limit = match self.met_s {
            Some(at) => say!(LIMIT_MET_AFTER, number(self.limit), digits(at)),
            None => say!(LIMIT_MET_IN, number(self.limit), digits(self.left_s())),
        };
        let grew = say!(
            GREW_FROM_TO,
            self.what.clone(),
            self.whose.clone(),
            number(self.from),
            number(self.to),
            number(self.per_s * 60.0)
        );
        let failed = s.failed();
        FiredRule::new(subject, degree)
            .with(texts::LABEL_GROWTH, grew)
            .with(texts::LABEL_LIMIT, limit)
            .with(texts::LABEL_MEASURED, say!(GREW_IN_EACH_PART, PARTS))
            .with(texts::LABEL_FAILED, if failed > 0 { of(failed, s.load.sent) } else { Said::default() })
            .knob(self.knob.clone(), say!(STAYS_AT, self.what.clone(), self.whose.clone(), number(self.from)))
    }
}

fn met(s: &Signals) -> Option<FiredRule> {
    let all = growths(s).into_iter().filter_map(|one| Some((one.met_s?, one)));
    let (_, first) = all.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let subject = say!(SUBJECT_GREW_UNTIL, first.whose.clone(), first.what.clone());
    Some(first.found(s, subject, 0.97))
}

fn coming(s: &Signals) -> Option<FiredRule> {
    let is_coming = |one: &Growth| one.met_s.is_none() && one.left_s() <= WITHIN_S;
    let all = growths(s).into_iter().filter(is_coming);
    let next = all.min_by(|one, other| one.left_s().total_cmp(&other.left_s()))?;
    let subject = say!(SUBJECT_GROWS, next.whose.clone(), next.what.clone());
    // It limits nothing yet.
    Some(next.found(s, subject, MINOR))
}

fn growths(s: &Signals) -> Vec<Growth> {
    let is_server = |process: &&ProcessSignals| process.role != Role::Client;
    s.processes
        .iter()
        .filter(is_server)
        .flat_map(|process| [files(s, process), memory(s, process), cpu(s, process)])
        .flatten()
        .collect()
}

/// A series that grows all the time.
struct Rise {
    /// The mean of its first part.
    from: f64,
    /// Its last value, and the mean of its last part.
    to: f64,
    last_part: f64,
    per_s: f64,
    /// The window in which the limit was met.
    met: Option<usize>,
}

/// The rise of a series towards a limit, if it grows in each of its parts and does not slow down. Values after the limit do not count.
fn rise(values: &[Option<f64>], limit: f64, step_s: f64) -> Option<Rise> {
    let known: Vec<(usize, f64)> = values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).collect();
    let met = known.iter().position(|(_, value)| *value >= MET * limit);
    let until = known.get(..=met.unwrap_or(known.len().checked_sub(1)?))?;
    let size = until.len() / PARTS;
    if size == 0 {
        return None;
    }
    let skipped = until.len() - size * PARTS;
    let parts: Vec<f64> = until
        .get(skipped..)?
        .chunks(size)
        .map(|part| stats::mean(&part.iter().map(|(_, value)| *value).collect::<Vec<_>>()))
        .collect();
    let steps: Vec<f64> = parts.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?)).collect();
    let third = steps.len().div_ceil(3);
    let sum = |steps: &[f64]| steps.iter().sum::<f64>();
    let (early, late) = (sum(steps.get(..third)?), sum(steps.get(steps.len() - third..)?));
    let is_steady = steps.iter().all(|step| *step > 0.0) && late >= NOT_SLOWING * early;
    let (from, to, last_part) = (*parts.first()?, until.last()?.1, *parts.last()?);
    let per_s = (last_part - from) / (step_s * (size * (PARTS - 1)) as f64).max(1e-9);
    let is_large = to - from >= PART_MIN * limit;
    (is_steady && is_large && per_s > 0.0).then(|| Rise {
        from,
        to,
        last_part,
        per_s,
        met: met.and_then(|at| Some(known.get(at)?.0)),
    })
}

impl Rise {
    fn growth(
        self,
        s: &Signals,
        process: &ProcessSignals,
        limit: f64,
        (what, unit, knob): (Said, &'static str, Said),
    ) -> Growth {
        let met_s = self.met.map(|at| s.course.at_s(at));
        let whose = name(process);
        Growth { what, whose, from: self.from, to: self.to, per_s: self.per_s, limit, met_s, unit, knob }
    }
}

fn name(process: &ProcessSignals) -> Said {
    match process.role {
        Role::Edge => say!(EDGE),
        Role::App => say!(APPLICATION_NAMED, &process.name),
        Role::Client | Role::Beside => Said::from(&process.name),
    }
}

/// How much the requests in flight grew from the first quarter to the last.
fn queued(s: &Signals) -> f64 {
    let flight = &s.load.flight;
    let quarter = flight.len() / 4;
    let part = |range: std::ops::Range<usize>| stats::mean(flight.get(range).unwrap_or_default());
    if quarter == 0 { 0.0 } else { (part(flight.len() - quarter..flight.len()) - part(0..quarter)).max(0.0) }
}

fn files(s: &Signals, process: &ProcessSignals) -> Option<Growth> {
    let limit = process.fds.1 as f64;
    let values = s.course.lane(&process.name, |beat| beat.fds.0 as f64);
    let rise = rise(&values, limit, s.course.step_s).filter(|_| limit > 0.0)?;
    // Clients and requests that wait hold descriptors as well: one on each side.
    let of_connections = 2.0 * (s.load.connections as f64).max(queued(s));
    let knob = say!(FIND_OPEN_FILES, &process.name);
    (rise.to - rise.from >= FILES_MIN + of_connections)
        .then(|| rise.growth(s, process, limit, (say!(OPEN_FILES), "", knob)))
}

fn memory(s: &Signals, process: &ProcessSignals) -> Option<Growth> {
    let limit = process.memory_max? as f64 / MIB;
    let values = s.course.lane(&process.name, |beat| beat.rss as f64 / MIB);
    let rise = rise(&values, limit, s.course.step_s)?;
    let knob = say!(FIND_KEPT_MEMORY, &process.name);
    let mut growth = rise.growth(s, process, limit, (say!(RESIDENT_MEMORY), " MB", knob));
    // The group also counts what the kernel keeps for the process, so the end comes a little before.
    if process.memory_killed > 0 && growth.met_s.is_none() {
        let last = values.iter().rposition(Option::is_some).unwrap_or(0);
        growth.met_s = Some(s.course.at_s(last));
    }
    Some(growth)
}

fn cpu(s: &Signals, process: &ProcessSignals) -> Option<Growth> {
    let lane = s.course.lane(&process.name, |beat| beat.cpu);
    let answered: Vec<f64> = s.course.windows.iter().map(|window| window.answered).collect();
    let rate = stats::median(&answered) / s.course.step_s.max(1e-9);
    let cost = |(cpu, answered): (&Option<f64>, &f64)| {
        (*answered >= 1.0).then_some((*cpu)? * s.course.step_s * 1000.0 / answered)
    };
    let values: Vec<Option<f64>> = lane.iter().zip(&answered).map(cost).collect();
    // The CPU time of a request that all its CPUs can give at this rate.
    let limit = process.cpus * 1000.0 / rate.max(1e-9);
    let rise = rise(&values, limit, s.course.step_s).filter(|rise| rise.last_part >= CPU_FACTOR * rise.from)?;
    // Of one window alone, the figure is a matter of chance.
    let rise = Rise { to: rise.last_part, ..rise };
    let knob = say!(FIND_LONGER_WORK, &process.name);
    Some(rise.growth(s, process, limit, (say!(CPU_TIME_OF_A_REQUEST), " ms", knob)))
}

/// Five seconds, in which an application opens so many files in each window, of 250 that it may open.
fn grows(s: &mut Signals, files: f64) {
    use crate::watch::Beat;
    use crate::why::course::Window;
    let all = 0..20;
    s.load.connections = 16;
    s.processes.iter_mut().filter(|process| process.role == Role::App).for_each(|app| app.fds = (250, 250));
    let beat = |at: usize| Some(Beat { cpu: 0.3, fds: ((60.0 + files * at as f64) as u64, 250), ..Beat::default() });
    s.course.step_s = 0.25;
    s.course.windows = all.clone().map(|_| Window { sent: 50.0, answered: 50.0, ..Window::default() }).collect();
    s.course.lanes.insert("app".to_owned(), all.map(beat).collect());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn lines(found: &FiredRule) -> Vec<&str> {
        found.evidence.iter().map(|(_, text)| text.en()).collect()
    }

    #[test]
    fn what_leaks_says_its_limit_and_when() {
        let mut s = Signals::quiet();
        grows(&mut s, 10.0);
        let found = met(&s).unwrap();
        assert_eq!(found.subject, "application app: open files grew until the limit");
        assert_eq!(lines(&found)[1], "limit 250, met after 4.75 s");
        assert!(lines(&found)[0].starts_with("open files of application app: from 95.0 to 240"), "{:?}", lines(&found));
        assert!(coming(&s).is_none());
        let mut s = Signals::quiet();
        grows(&mut s, 4.0);
        let found = coming(&s).unwrap();
        assert_eq!(lines(&found)[0], "open files of application app: from 78.0 to 136, +960 a minute");
        assert_eq!(lines(&found)[1], "limit 250: met in about 7.12 s at this rate");
        assert!(met(&s).is_none() && found.degree <= MINOR);
    }

    #[test]
    fn memory_and_the_cpu_time_of_a_request_grow_too() {
        let lane = |change: &dyn Fn(&mut crate::watch::Beat, f64)| {
            let mut s = Signals::quiet();
            grows(&mut s, 0.0);
            s.processes[1].memory_max = Some(200 << 20);
            let lane = s.course.lanes.get_mut("app").unwrap();
            lane.iter_mut().flatten().enumerate().for_each(|(at, beat)| change(beat, at as f64));
            s
        };
        let leak = lane(&|beat, at| beat.rss = ((50.0 + 3.0 * at) * MIB) as u64);
        assert!(lines(&coming(&leak).unwrap())[0].starts_with("memory of application app: from 63.5 MB to 107 MB"));
        // A collection in between: it is no leak.
        let collected = lane(&|beat, at| beat.rss = ((50.0 + 9.0 * (at % 7.0)) * MIB) as u64);
        assert!(coming(&collected).is_none() && met(&collected).is_none());
        let longer = lane(&|beat, at| beat.cpu = 0.1 + 0.03 * at);
        assert!(lines(&coming(&longer).unwrap())[0].starts_with("CPU time of a request of application app: from"));
    }

    /// Series that go up and down by chance.
    #[test]
    fn chance_does_not_grow() {
        let mut rng = fastrand::Rng::with_seed(3);
        let noise = (0..4_000).filter(|_| {
            let values: Vec<Option<f64>> = (0..32).map(|_| Some(50.0 + rng.f64() * 100.0)).collect();
            rise(&values, 250.0, 0.25).is_some()
        });
        assert!(noise.count() <= 2);
        let walks = (0..4_000).filter(|_| {
            let mut at = 100.0;
            let mut step = || {
                at += 10.0 * (rng.f64() - 0.5);
                Some(at)
            };
            let values: Vec<Option<f64>> = (0..32).map(|_| step()).collect();
            rise(&values, 250.0, 0.25).is_some()
        });
        assert!(walks.count() <= 120);
    }
}
