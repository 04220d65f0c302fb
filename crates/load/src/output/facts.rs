//! Facts about a run that the runner knows and the recorder does not.

use weir_words::{Said, say};

use super::ensure::Check;
use super::number::{grouped, ms};
use crate::texts;

/// Target, time, script and environment of the load, and the generator's self-check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// Every origin that got load, as `scheme://host:port`.
    pub targets: Vec<String>,
    /// The script's file name, or the command of the quick mode.
    pub script: String,
    /// A fingerprint of the script and of everything merged over it ([`fingerprint`]): equal for equal work.
    pub script_id: String,
    /// `t…_…_…`.
    pub test_run_id: String,
    /// The phases in order.
    pub phases: Vec<PhaseFact>,
    /// Start of the first phase, ms since 1970.
    pub started_ms: u64,
    /// End of the last virtual user, ms since 1970.
    pub ended_ms: u64,
    /// Other facts about the environment, name and value: host, cpus, kernel, version, environment name.
    pub environment: Vec<(String, String)>,
    /// The generator's self-check.
    pub self_check: SelfCheck,
    /// The results of the checks of `ensure`.
    pub checks: Vec<Check>,
    /// The reasons why the run is incomplete, one sentence each: stopped by Ctrl-C, an agent lost.
    pub incomplete: Vec<Said>,
}

/// A phase of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseFact {
    /// Its name, `unnamed` if it has none.
    pub name: String,
    /// As the console shows it: `6s`, `5m`.
    pub shown: String,
    /// Duration, ms.
    pub duration_ms: u64,
    /// The arrivals in words: `20 a second`, `2 to 20 a second`.
    pub arrivals: Said,
}

/// The generator's self-check; values that were not measured are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelfCheck {
    /// CPU of each worker thread, 0 to 1 of a core over the whole run.
    pub worker_cpu: Vec<f64>,
    /// The busiest second of any worker, 0 to 1 of a core.
    pub worker_cpu_peak: Option<f64>,
    /// CPU of the whole machine, 0 to 1 of all cores.
    pub machine_cpu: Option<f64>,
    /// The share of its CPU quota's periods in which the kernel stopped the control group, 0 to 1; absent without a
    /// quota.
    pub throttled: Option<f64>,
    /// 99 % of arrivals were at most this late against their schedule, ms; absent if there were fewer than
    /// [`LAG_ARRIVALS_MIN`].
    pub lag_p99_ms: Option<f64>,
    /// The least that the 99th percentile of lateness can be, ms, with 95 % confidence: of a few hundred arrivals the
    /// latest two or three may be late by chance. Absent where `lag_p99_ms` is.
    pub lag_p99_least_ms: Option<f64>,
    /// Lateness of the latest arrival, ms.
    pub lag_max_ms: Option<f64>,
    /// Largest number of local ports in use, and the number that exists for one destination.
    pub ports: Option<(u64, u64)>,
    /// Largest number of open descriptors, and the limit.
    pub descriptors: Option<(u64, u64)>,
    /// Scheduled requests or virtual users that never began.
    pub dropped: u64,
    /// The self-checks of agents by name; with agents, the other fields are empty.
    pub agents: Vec<(String, SelfCheck)>,
}

/// A busier worker has no time left to begin requests on schedule.
const CPU_MAX: f64 = 0.9;
/// A group that is stopped in more of its periods answers late: each stop lasts most of a tenth of a second.
const THROTTLED_MAX: f64 = 0.05;
/// Arrivals that are later than this distort the measurement, ms.
const LAG_MAX_MS: f64 = 10.0;
/// On a machine that is busier than this, every process waits for a CPU.
const MACHINE_FULL: f64 = 0.95;
/// With fewer arrivals, the latest one says nothing about one arrival in a hundred.
pub const LAG_ARRIVALS_MIN: u64 = 20;
/// Accepted lateness of the latest of few arrivals, ms: any process may lose the CPU for a moment.
const LAG_FEW_MAX_MS: f64 = 100.0;
/// Share of ports or descriptors in use above which the next one may fail.
const ROOM_MAX: f64 = 0.9;

impl SelfCheck {
    /// The ways in which the generator was the limit, one sentence each; empty if it was not.
    pub fn limits(&self) -> Vec<Said> {
        let mut limits = Vec::new();
        for (worker, cpu) in self.worker_cpu.iter().enumerate().filter(|(_, cpu)| **cpu >= CPU_MAX) {
            limits.push(say!(texts::WORKER_FULL, worker, per_cent(*cpu)));
        }
        if let Some(part) = self.throttled.filter(|part| *part > THROTTLED_MAX) {
            limits.push(say!(texts::THROTTLED, per_cent(part)));
        }
        if let Some(lag) = self.lag_p99_least_ms.or(self.lag_p99_ms).filter(|lag| *lag > LAG_MAX_MS) {
            limits.push(say!(texts::LATE_HUNDREDTH, ms(lag)));
        }
        if let (None, Some(lag)) = (self.lag_p99_ms, self.lag_max_ms.filter(|lag| *lag > LAG_FEW_MAX_MS)) {
            limits.push(say!(texts::LATE_FEW, ms(lag)));
        }
        if self.dropped > 0 {
            limits.push(say!(texts::NEVER_BEGAN, grouped(self.dropped)));
        }
        for (room, text) in [(self.ports, texts::PORTS_FULL), (self.descriptors, texts::FILES_FULL)] {
            if let Some((used, all)) = room.filter(|(used, all)| *used as f64 >= *all as f64 * ROOM_MAX) {
                limits.push(text.with(&[used.into(), all.into()]));
            }
        }
        for (name, check) in &self.agents {
            limits.extend(check.limits().into_iter().map(|limit| say!(texts::OF_AGENT, name, limit)));
        }
        limits
    }

    /// Facts that affect the figures although the generator was not the limit, one sentence each.
    pub fn cautions(&self) -> Vec<Said> {
        let full = self.machine_cpu.filter(|cpu| *cpu >= MACHINE_FULL);
        let full = full.map(|cpu| say!(texts::MACHINE_FULL, per_cent(cpu)));
        let of = |(name, check): &(String, SelfCheck)| {
            check.cautions().into_iter().map(|caution| say!(texts::OF_AGENT, name, caution)).collect::<Vec<_>>()
        };
        full.into_iter().chain(self.agents.iter().flat_map(of)).collect()
    }

    /// One line with the measured values.
    pub fn figures(&self) -> Said {
        if !self.agents.is_empty() {
            let agents = self.agents.iter().map(|(name, check)| say!(texts::NAMED, name, check.figures()));
            return Said::list(&agents.collect::<Vec<_>>(), "; ");
        }
        let mut parts = Vec::new();
        let busiest = self.worker_cpu.iter().copied().fold(f64::NAN, f64::max);
        if !busiest.is_nan() {
            let busiest = per_cent(busiest);
            parts.push(match self.worker_cpu.len() {
                1 => say!(texts::ONE_WORKER, busiest),
                of => say!(texts::BUSIEST_WORKER, of, busiest),
            });
        }
        parts.extend(self.machine_cpu.map(|cpu| say!(texts::MACHINE_CPU, per_cent(cpu))));
        parts.extend(match (self.lag_p99_ms, self.lag_max_ms) {
            (Some(lag), _) => Some(say!(texts::LATE_P99, ms(lag))),
            (None, Some(lag)) => Some(say!(texts::LATEST, ms(lag))),
            (None, None) => None,
        });
        for (room, text) in [(self.ports, texts::PORTS_USED), (self.descriptors, texts::FILES_USED)] {
            parts.extend(room.map(|(used, all)| text.with(&[used.into(), all.into()])));
        }
        if parts.is_empty() { say!(texts::NOT_LOOKED_AT) } else { Said::list(&parts, ", ") }
    }
}

fn per_cent(part: f64) -> String {
    format!("{:.0}", part * 100.0)
}

/// A fingerprint of some bytes in 16 hex digits: FNV-1a. It distinguishes scripts and protects no secrets.
pub fn fingerprint(parts: &[&[u8]]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // The length makes ["ab", "c"] differ from ["a", "bc"].
        for byte in part.iter().copied().chain(part.len().to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_words::Language;

    #[test]
    fn a_generator_with_room_is_no_limit() {
        let check = SelfCheck {
            worker_cpu: vec![0.43, 0.2],
            lag_p99_ms: Some(0.2),
            lag_p99_least_ms: Some(0.2),
            ports: Some((120, 28_232)),
            descriptors: Some((130, 1024)),
            ..SelfCheck::default()
        };
        assert_eq!(check.limits(), [""; 0]);
        assert_eq!(
            check.figures(),
            "busiest of 2 workers 43 % of a core, arrivals late p99 0.200 ms, 120 of 28232 ports, 130 of 1024 descriptors"
        );
        assert_eq!(SelfCheck::default().figures(), "not looked at");
        let few = SelfCheck { lag_max_ms: Some(30.0), ..SelfCheck::default() };
        assert_eq!((few.limits(), few.figures().en()), (Vec::new(), "latest arrival 30.0 ms late"));
        assert_eq!(few.figures().say(Language::Korean), "가장 늦은 도착 30.0 ms 지연");
    }

    #[test]
    fn a_full_machine_is_a_caution_and_no_limit() {
        let full = SelfCheck { machine_cpu: Some(0.98), ..SelfCheck::default() };
        let of_agents = SelfCheck { agents: vec![("a".into(), full.clone())], ..SelfCheck::default() };
        assert_eq!((full.limits(), of_agents.limits()), (vec![], vec![]));
        assert!(full.cautions()[0].starts_with("the machine was 98 % busy"), "{:?}", full.cautions());
        assert!(of_agents.cautions()[0].starts_with("agent a: the machine was"));
        assert!(SelfCheck { machine_cpu: Some(0.9), ..full }.cautions().is_empty());
    }

    #[test]
    fn each_limit_is_named_with_its_remedy() {
        let none = SelfCheck::default();
        let table = [
            (SelfCheck { worker_cpu: vec![0.1, 0.97], ..none.clone() }, "worker 1 used 97 % of its core"),
            (
                SelfCheck { throttled: Some(0.97), ..none.clone() },
                "stopped the generator in 97 % of the periods: raise the quota",
            ),
            (SelfCheck { lag_p99_least_ms: Some(12.0), ..none.clone() }, "began 12.0 ms late"),
            // An agent of an older version reports one figure alone.
            (SelfCheck { lag_p99_ms: Some(12.0), ..none.clone() }, "began 12.0 ms late"),
            (SelfCheck { lag_max_ms: Some(120.0), ..none.clone() }, "the latest began 120 ms late"),
            (SelfCheck { dropped: 1200, ..none.clone() }, "1 200 scheduled arrivals never began"),
            (SelfCheck { ports: Some((28_000, 28_232)), ..none.clone() }, "28000 of 28232 local ports"),
            (
                SelfCheck {
                    agents: vec![("a".into(), none.clone()), ("b".into(), SelfCheck { dropped: 7, ..none.clone() })],
                    ..none.clone()
                },
                "agent b: 7 scheduled arrivals",
            ),
            (SelfCheck { descriptors: Some((1000, 1024)), ..none }, "raise ulimit -n"),
        ];
        for (check, words) in table {
            let limits = check.limits();
            assert!(limits.len() == 1 && limits[0].contains(words), "{limits:?}");
        }
    }

    #[test]
    fn fingerprints_tell_apart() {
        assert_eq!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"ab", b"c"]));
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
        assert_eq!(fingerprint(&[]).len(), 16);
    }
}
