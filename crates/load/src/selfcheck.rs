//! The generator measures itself, because figures are worthless if the generator and not the target was the limit.

use std::fs;
use std::path::Path;
use std::time::Duration;

use weir_net::clock::{self, Instant};

use weir_host::{self as host, file_limit, local_ports, open_files, threads};

use crate::client::peers;
use crate::output::SelfCheck;
use crate::output::facts::LAG_ARRIVALS_MIN;
use crate::record::{Hdr, OwnMeasurements};

/// Interval between two measurements.
const EVERY: Duration = Duration::from_secs(1);
/// With fewer periods of a quota, there is no figure: two seconds of the usual 100 ms periods.
const PERIODS_MIN: u64 = 20;
/// Prefix of worker threads' names; a number follows.
pub const THREAD_NAME: &str = "load ";

/// Measures this process and its machine during a run.
#[derive(Debug)]
pub struct Sampler {
    began: Instant,
    last: Instant,
    /// CPU time of each worker thread at the first and the last measurement.
    workers: Vec<Worker>,
    machine: Option<Machine>,
    /// At the start: periods of the CPU quota, and those in which the group was throttled.
    quota: Option<(u64, u64)>,
    peak: Option<f64>,
    descriptors: u64,
    ports: u64,
}

#[derive(Clone, Debug)]
struct Worker {
    id: u32,
    since: Instant,
    first: Duration,
    last: Duration,
}

/// Jiffies of the machine: all, and idle ones.
#[derive(Clone, Copy, Debug)]
struct Machine {
    all: u64,
    idle: u64,
}

impl Default for Sampler {
    fn default() -> Sampler {
        let now = clock::precise();
        Sampler {
            began: now,
            last: now,
            workers: Vec::new(),
            machine: machine(),
            quota: quota(),
            peak: None,
            descriptors: 0,
            ports: 0,
        }
    }
}

impl Sampler {
    /// Measures, if it is time to.
    pub fn look(&mut self) {
        let now = clock::precise();
        let since = now - self.last;
        if since < EVERY && !self.workers.is_empty() {
            return;
        }
        self.last = now;
        for thread in threads().into_iter().filter(|thread| thread.name.starts_with(THREAD_NAME)) {
            match self.workers.iter_mut().find(|worker| worker.id == thread.id) {
                Some(worker) => {
                    let used = thread.cpu.saturating_sub(worker.last).as_secs_f64() / since.as_secs_f64();
                    self.peak = Some(self.peak.unwrap_or(0.0).max(used.min(1.0)));
                    worker.last = thread.cpu;
                }
                None => {
                    self.workers.push(Worker { id: thread.id, since: now, first: thread.cpu, last: thread.cpu });
                }
            }
        }
        self.descriptors = self.descriptors.max(open_files().unwrap_or(0));
        self.ports = self.ports.max(peers::ports_held().unwrap_or(0));
    }

    /// The results, with the lateness and the losses from the recorder.
    pub fn finish(self, own: &OwnMeasurements) -> SelfCheck {
        let cpu = |worker: &Worker| {
            let seconds = (self.last - worker.since).as_secs_f64();
            if seconds < EVERY.as_secs_f64() {
                return 0.0;
            }
            worker.last.saturating_sub(worker.first).as_secs_f64() / seconds
        };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let has_lag = own.lag.count() > 0;
        let spent = |then: Machine| {
            let now = machine()?;
            let all = now.all.checked_sub(then.all).filter(|all| *all > 0)?;
            Some(1.0 - now.idle.saturating_sub(then.idle) as f64 / all as f64)
        };
        SelfCheck {
            worker_cpu: self.workers.iter().map(cpu).collect(),
            worker_cpu_peak: self.peak,
            machine_cpu: self.machine.and_then(spent).filter(|_| clock::precise() - self.began >= EVERY),
            throttled: self.quota.and_then(|then| stopped(then, quota()?)),
            lag_p99_ms: (own.lag.count() >= LAG_ARRIVALS_MIN).then(|| ms(own.lag.quantile(0.99))),
            lag_p99_least_ms: (own.lag.count() >= LAG_ARRIVALS_MIN).then(|| ms(least_p99(&own.lag))),
            lag_max_ms: has_lag.then(|| ms(own.lag.max())),
            ports: local_ports().map(|all| (self.ports, all)),
            descriptors: file_limit().map(|limit| (self.descriptors, limit.soft)),
            dropped: own.dropped,
            agents: Vec::new(),
        }
    }
}

/// The least that the 99th percentile can be: more arrivals are at least this late than chance explains.
fn least_p99(lag: &Hdr) -> Duration {
    let all = lag.count();
    // Half a rank less, because the histogram rounds a rank up.
    lag.quantile((all as f64 - beyond_chance(all) + 0.5) / all as f64)
}

/// The number of late arrivals that chance does not explain if one arrival in a hundred is late: fewer than 5 % of runs with
/// so many arrivals have that many. It is the 95th percentile of the binomial distribution, and one more.
fn beyond_chance(arrivals: u64) -> f64 {
    const SHARE: f64 = 0.01;
    const CHANCE: f64 = 0.05;
    // With more arrivals, the first terms of the sum are too small for a number. The normal distribution then differs by
    // one, because the binomial one is not symmetric.
    const EXACT_MAX: u64 = 10_000;
    const NORMAL_95: f64 = 1.645;
    let all = arrivals as f64;
    if arrivals > EXACT_MAX {
        return (all * SHARE + NORMAL_95 * (all * SHARE * (1.0 - SHARE)).sqrt()).ceil() + 1.0;
    }
    // Each probability follows from the one of a late arrival less.
    let (mut late, mut of_late, mut beyond) = (0.0, (1.0 - SHARE).powf(all), 1.0);
    while beyond > CHANCE && late < all {
        beyond -= of_late;
        of_late *= (all - late) / (late + 1.0) * SHARE / (1.0 - SHARE);
        late += 1.0;
    }
    late
}

fn quota() -> Option<(u64, u64)> {
    host::throttling_under(Path::new("/"), None)
}

/// The share of periods between two measurements in which the group was throttled. `None` for few periods, where a
/// single one would be a large share.
fn stopped(then: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let periods = now.0.saturating_sub(then.0);
    (periods >= PERIODS_MIN).then(|| now.1.saturating_sub(then.1) as f64 / periods as f64)
}

fn machine() -> Option<Machine> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_ascii_whitespace().filter_map(|field| field.parse().ok()).collect();
    // The fields are user nice system idle iowait …; waiting for a disk counts as idle (proc_stat(5)).
    let idle = fields.get(3)?.saturating_add(*fields.get(4)?);
    Some(Machine { all: fields.iter().take(8).sum(), idle })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_no_time_claims_nothing_of_cpu() {
        let mut sampler = Sampler::default();
        sampler.look();
        let check = sampler.finish(&OwnMeasurements::default());
        assert_eq!((check.machine_cpu, check.lag_p99_ms, check.dropped), (None, None, 0));
        assert!(check.descriptors.is_some_and(|(open, limit)| open >= 3 && limit >= open), "{:?}", check.descriptors);
        assert_eq!(check.limits(), Vec::<String>::new());
    }

    #[test]
    fn a_quota_says_something_after_some_periods() {
        assert_eq!((stopped((10, 3), (110, 93)), stopped((10, 3), (29, 22))), (Some(0.9), None));
    }

    #[test]
    fn some_are_beyond_chance() {
        // Exact sums of the binomial distribution, with its terms as exponentials of log-gamma functions.
        for (arrivals, late) in
            [(20, 2.0), (192, 5.0), (1000, 16.0), (10_000, 118.0), (100_000, 1053.0), (1_000_000, 10_165.0)]
        {
            assert_eq!(beyond_chance(arrivals), late, "{arrivals}");
        }
    }

    #[test]
    fn four_late_of_two_hundred_may_be_chance_and_eight_are_not() {
        let late_of = |late: usize| {
            let mut own = OwnMeasurements::default();
            (0..200).for_each(|at| own.lag.add(Duration::from_millis(if at < late { 40 } else { 0 })));
            Sampler::default().finish(&own)
        };
        let (few, many) = (late_of(4), late_of(8));
        assert!(few.lag_p99_ms.is_some_and(|lag| lag > 39.0) && few.lag_p99_least_ms.is_some_and(|lag| lag < 1.0));
        assert!(many.lag_p99_least_ms.is_some_and(|lag| lag > 39.0));
        assert_eq!((few.limits().len(), many.limits().len()), (0, 1));
    }

    #[test]
    fn a_few_late_arrivals_are_no_percentile() {
        let mut own = OwnMeasurements::default();
        for arrivals in 1..=LAG_ARRIVALS_MIN {
            own.lag.add(Duration::from_millis(40));
            let check = Sampler::default().finish(&own);
            let is_limited = check.limits().iter().any(|limit| limit.contains("late"));
            assert_eq!(
                (check.lag_p99_ms.is_some(), is_limited),
                (arrivals == LAG_ARRIVALS_MIN, arrivals == LAG_ARRIVALS_MIN)
            );
        }
    }
}
