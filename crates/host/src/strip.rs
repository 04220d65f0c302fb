//! State of the machine: CPU time by kind, pressure, throttling, memory, and run and wait times of threads.
//!
//! All values are totals or levels from the kernel. To get rates, read twice.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::cpu::path_to;
use super::files::{self, Files};
use crate::thread::{self, THREADS_MAX};

/// CPU time of all CPUs since boot, in ticks of 10 ms (proc_stat(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuKinds {
    /// Programs, including niced ones.
    pub user: u64,
    /// The kernel.
    pub system: u64,
    /// Interrupts, soft and hard.
    pub interrupts: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while waiting for a disk.
    pub wait: u64,
    /// Number of CPUs.
    pub cpus: u64,
}

impl CpuKinds {
    /// The times of both together.
    fn and(self, other: CpuKinds) -> CpuKinds {
        CpuKinds {
            user: self.user + other.user,
            system: self.system + other.system,
            interrupts: self.interrupts + other.interrupts,
            steal: self.steal + other.steal,
            idle: self.idle + other.idle,
            wait: self.wait + other.wait,
            cpus: self.cpus + other.cpus,
        }
    }

    /// The share of all time since boot that the hypervisor took.
    pub fn stolen(&self) -> f64 {
        let all = self.user + self.system + self.interrupts + self.steal + self.idle + self.wait;
        self.steal as f64 / all.max(1) as f64
    }
}

/// CPU times of the CPUs with these numbers, and the number of tasks that run or want to run; `None` if `/proc` does not
/// have them. Without any number, and if the numbers are those of all CPUs, the times are the machine's.
pub fn cpu_kinds_under(files: &Files, numbers: &[usize]) -> Option<(CpuKinds, u64)> {
    let stat = files.text("proc/stat")?;
    let running = stat.lines().find_map(|line| line.strip_prefix("procs_running "));
    let running = running.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    // The first line is the sum of all CPUs, and each CPU has its own line.
    let each = || stat.lines().skip(1).map_while(|line| line.strip_prefix("cpu"));
    let cpus = each().count();
    let number = |line: &str| line.split(' ').next().and_then(|number| number.parse::<usize>().ok());
    let some = || each().filter(|line| number(line).is_some_and(|number| numbers.contains(&number)));
    if (1..cpus).contains(&some().count()) {
        let add = |sum: CpuKinds, line: &str| sum.and(times_in(line, 1));
        return Some((some().fold(CpuKinds::default(), add), running));
    }
    let all = stat.lines().find(|line| line.starts_with("cpu "))?;
    Some((times_in(all, cpus as u64), running))
}

/// The times in a line: a name, then `user nice system idle iowait irq softirq steal` (proc_stat(5)).
fn times_in(line: &str, cpus: u64) -> CpuKinds {
    let mut fields = line.split_ascii_whitespace().skip(1).map(|word| word.parse::<u64>().unwrap_or(0));
    let mut next = || fields.next().unwrap_or(0);
    let (user, nice, system, idle, wait, irq, softirq, steal) =
        (next(), next(), next(), next(), next(), next(), next(), next());
    CpuKinds { user: user + nice, system, interrupts: irq + softirq, steal, idle, wait, cpus }
}

/// Time in which some task waited for `what` (`cpu`, `memory` or `io`) since the machine started; `None` if the
/// kernel has no PSI.
pub fn stalled_under(files: &Files, what: &str) -> Option<Duration> {
    Some(Duration::from_micros(some_pressure(files, what, "total=")?.parse().ok()?))
}

/// The share of time, over the last 10 s, in which some task waited for `what` (`cpu`, `memory` or `io`), 0 to 1;
/// `None` if the kernel has no PSI.
pub fn pressure_under(files: &Files, what: &str) -> Option<f64> {
    Some(some_pressure(files, what, "avg10=")?.parse::<f64>().ok()? / 100.0)
}

/// A number from the `some` line, which counts the time in which at least one task waited.
fn some_pressure(files: &Files, what: &str, name: &str) -> Option<String> {
    let text = files.text(&format!("proc/pressure/{what}"))?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)).map(str::to_owned)
}

/// A CPU quota, and how often the group used it up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quota {
    /// CPUs allowed.
    pub cpus: f64,
    /// Periods in which the group ran, so far.
    pub periods: u64,
    /// Periods in which it was throttled.
    pub throttled: u64,
    /// CPU time used by the group, in microseconds.
    pub used_us: u64,
}

/// The tightest quota of weir's control group and its parents; `None` without a quota.
pub fn quota_under(files: &Files) -> Option<Quota> {
    quota_of(files, "self")
}

/// As [`quota_under`], for another process.
pub fn quota_of_process(root: &Path, pid: u32) -> Option<Quota> {
    quota_of(&Files::under(root), &pid.to_string())
}

fn quota_of(files: &Files, process: &str) -> Option<Quota> {
    let groups = files.text(&format!("proc/{process}/cgroup"))?;
    let mut all = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next()) else { continue };
        if controllers.is_empty() {
            all.extend(path_to("sys/fs/cgroup", group).iter().filter_map(|dir| quota_v2(files, dir)));
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            for mount in ["sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpu"] {
                all.extend(path_to(mount, group).iter().filter_map(|dir| quota_v1(files, dir)));
            }
        }
    }
    all.into_iter().min_by(|one, other| one.cpus.total_cmp(&other.cpus))
}

fn quota_v2(files: &Files, dir: &str) -> Option<Quota> {
    let max = files.text(&format!("{dir}/cpu.max"))?;
    let mut words = max.split_ascii_whitespace().map(str::parse::<f64>);
    let (quota, period) = (words.next()?.ok()?, words.next()?.ok()?);
    let stat = files.text(&format!("{dir}/cpu.stat"))?;
    (period > 0.0).then(|| Quota {
        cpus: quota / period,
        periods: figure(&stat, "nr_periods"),
        throttled: figure(&stat, "nr_throttled"),
        used_us: figure(&stat, "usage_usec"),
    })
}

fn quota_v1(files: &Files, dir: &str) -> Option<Quota> {
    let number = |name: &str| files.number::<f64>(&format!("{dir}/{name}"));
    // Most groups have no quota; their other files are not needed.
    let quota = number("cpu.cfs_quota_us").filter(|quota| *quota > 0.0)?;
    let period = number("cpu.cfs_period_us")?;
    // Most systems mount both controllers together. Where they are apart, the group has the same name in both.
    let elsewhere = || {
        let group = dir.strip_prefix("sys/fs/cgroup/cpu/")?;
        files.number::<f64>(&format!("sys/fs/cgroup/cpuacct/{group}/cpuacct.usage"))
    };
    let stat = files.text(&format!("{dir}/cpu.stat"))?;
    (period > 0.0).then(|| Quota {
        cpus: quota / period,
        periods: figure(&stat, "nr_periods"),
        throttled: figure(&stat, "nr_throttled"),
        used_us: (number("cpuacct.usage").or_else(elsewhere).unwrap_or(0.0) / 1000.0) as u64,
    })
}

/// The number after a name, in files of `NAME NUMBER` lines; 0 if it is missing.
pub(super) fn figure(text: &str, name: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix([' ', ':', '\t']));
    rest.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Bytes of memory: total, and available.
pub fn memory_under(files: &Files) -> (u64, u64) {
    let text = files.text("proc/meminfo").unwrap_or_default();
    (figure(&text, "MemTotal") * 1024, figure(&text, "MemAvailable") * 1024)
}

/// Bytes of memory that this process may have: those of the machine, or of the tightest limit of its control group and the
/// parents; 0 if `/proc` does not have it.
pub fn memory_limit_under(root: &Path) -> u64 {
    let files = Files::under(root);
    let mut least = memory_under(&files).0;
    let groups = files.text("proc/self/cgroup").unwrap_or_default();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let dirs = path_to(mount, group);
        let limits = dirs.iter().filter_map(|dir| files.number::<u64>(&format!("{dir}/{file}")));
        least = limits.fold(least, u64::min);
    }
    least
}

/// Resident memory of this process in bytes; 0 if `/proc` does not have it.
pub fn resident_under(files: &Files) -> u64 {
    figure(&files.text("proc/self/status").unwrap_or_default(), "VmRSS") * 1024
}

/// The load average over a minute.
pub fn load_under(files: &Files) -> Option<f64> {
    files.text("proc/loadavg")?.split_ascii_whitespace().next()?.parse().ok()
}

/// TCP segments of this network namespace that were retransmitted so far.
pub fn retransmitted_under(files: &Files) -> Option<u64> {
    column(files, "proc/net/snmp", "Tcp:", "RetransSegs")
}

/// Connections of this network namespace refused so far because the accept queue was full.
pub fn listen_overflows_under(files: &Files) -> Option<u64> {
    column(files, "proc/net/netstat", "TcpExt:", "ListenOverflows")
}

/// A number from a file in which one line has the names of the next line's columns.
fn column(files: &Files, path: &str, prefix: &str, name: &str) -> Option<u64> {
    let text = files.text(path)?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let at = lines.next()?.split_ascii_whitespace().position(|word| word == name)?;
    lines.next()?.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// Run time of a thread, and the time that it waited for a CPU, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTimes {
    /// The kernel's id of the thread.
    pub id: u32,
    /// Time it ran.
    pub ran_ns: u64,
    /// Time it waited for a CPU; `None` if the kernel was built without scheduler statistics.
    pub waited_ns: Option<u64>,
    /// How often it began to run; `None` without scheduler statistics.
    pub runs: Option<u64>,
}

/// The times of this process's threads, at most [`THREADS_MAX`].
pub fn thread_times_under(files: &Files) -> Vec<ThreadTimes> {
    thread_times_in(files, "self")
}

/// As [`thread_times_under`], for another process.
pub fn thread_times_of(root: &Path, pid: u32) -> Vec<ThreadTimes> {
    thread_times_in(&Files::under(root), &pid.to_string())
}

fn thread_times_in(files: &Files, process: &str) -> Vec<ThreadTimes> {
    let Ok(tasks) = fs::read_dir(files.root().join(format!("proc/{process}/task"))) else { return Vec::new() };
    let mut room = Vec::new();
    let read = |task: fs::DirEntry| {
        let id = task.file_name().to_str()?.parse().ok()?;
        if let Some(text) = files::read(&task.path().join("schedstat"), &mut room) {
            let mut words = text.split_ascii_whitespace().map(str::parse::<u64>);
            let (ran_ns, waited, runs) = (words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?);
            return Some(ThreadTimes { id, ran_ns, waited_ns: Some(waited), runs: Some(runs) });
        }
        let stat = files::read(&task.path().join("stat"), &mut room)?;
        let ran = thread::cpu_of(stat)?;
        Some(ThreadTimes { id, ran_ns: ran.as_nanos() as u64, waited_ns: None, runs: None })
    };
    tasks.flatten().take(THREADS_MAX).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    #[test]
    fn the_kernels_files_are_read() {
        let root = tree::made_up(&[
            ("proc/stat", "cpu  10 2 30 400 50 6 7 8 0 0\ncpu0 1 1 1 1\nctxt 5\nprocs_running 3\n"),
            ("proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=0.00\n"),
            ("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n"),
            ("proc/self/status", "Name:\tx\nVmRSS:\t     70 kB\n"),
            ("proc/loadavg", "1.25 0.5 0.1 1/99 7\n"),
            ("proc/net/snmp", "Ip: A B\nIp: 1 2\nTcp: RtoMin RetransSegs\nTcp: 200 17\n"),
            ("proc/net/netstat", "TcpExt: A ListenOverflows ListenDrops\nTcpExt: 9 4 5\n"),
            ("proc/self/task/7/schedstat", "1000 200 3\n"),
            ("proc/self/task/8/stat", "8 (short) R 1 1 1 0 -1 4194304 9 0 0 0 12 30 5 5 20 0 3 0 99\n"),
        ]);
        let files = &Files::under(root.path());
        let times = CpuKinds { user: 12, system: 30, interrupts: 13, steal: 8, idle: 400, wait: 50, cpus: 1 };
        assert_eq!(cpu_kinds_under(files, &[0]), Some((times, 3)));
        assert_eq!(pressure_under(files, "cpu"), Some(0.125));
        assert_eq!((stalled_under(files, "cpu"), stalled_under(files, "io")), (Some(Duration::from_micros(5)), None));
        assert_eq!((memory_under(files), resident_under(files)), ((1000 << 10, 400 << 10), 70 << 10));
        assert_eq!((load_under(files), retransmitted_under(files)), (Some(1.25), Some(17)));
        assert_eq!(listen_overflows_under(files), Some(4));
        let mut threads = thread_times_under(files);
        threads.sort_by_key(|thread| thread.id);
        let seven = ThreadTimes { id: 7, ran_ns: 1000, waited_ns: Some(200), runs: Some(3) };
        let eight = ThreadTimes { id: 8, ran_ns: 420_000_000, waited_ns: None, runs: None };
        assert_eq!(threads, [seven, eight]);
    }

    #[test]
    fn a_process_that_may_use_some_cpus_sees_those() {
        let text = "cpu  33 0 0 300\ncpu0 1 0 0 100\ncpu1 2 0 0 100\ncpu10 30 0 0 100\nintr 5\nprocs_running 2\n";
        let root = tree::made_up(&[("proc/stat", text)]);
        let of = |numbers: &[usize]| {
            let (times, running) = cpu_kinds_under(&Files::under(root.path()), numbers).unwrap();
            (times.user, times.idle, times.cpus, running)
        };
        assert_eq!((of(&[1]), of(&[0, 10])), ((2, 100, 1, 2), (31, 200, 2, 2)));
        // All of them, and numbers that are no CPUs here: the machine's.
        assert_eq!((of(&[]), of(&[0, 1, 10]), of(&[7])), ((33, 300, 3, 2), (33, 300, 3, 2), (33, 300, 3, 2)));
    }

    #[test]
    fn what_is_not_there_is_unknown() {
        let files = &Files::under(Path::new("/nowhere"));
        assert_eq!((cpu_kinds_under(files, &[0]), pressure_under(files, "io"), quota_under(files)), (None, None, None));
        assert_eq!((memory_under(files), load_under(files), retransmitted_under(files)), ((0, 0), None, None));
        assert!(thread_times_under(files).is_empty());
    }

    #[test]
    fn the_tightest_quota_tells_how_often_it_was_met() {
        let root = tree::made_up(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nnr_periods 5\nnr_throttled 1\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 70\nnr_periods 12\nnr_throttled 11\n"),
        ]);
        let expected = Quota { cpus: 0.5, periods: 12, throttled: 11, used_us: 70 };
        assert_eq!(quota_under(&Files::under(root.path())), Some(expected));
        let root = tree::made_up(&[
            ("proc/self/cgroup", "3:cpu,cpuacct:/x\n"),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "10000\n"),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/x/cpu.stat", "nr_periods 12\nnr_throttled 11\nthrottled_time 5\n"),
            ("sys/fs/cgroup/cpu/x/cpuacct.usage", "7000\n"),
        ]);
        assert_eq!(
            quota_under(&Files::under(root.path())),
            Some(Quota { cpus: 0.1, periods: 12, throttled: 11, used_us: 7 })
        );
        let root = tree::made_up(&[
            ("proc/self/cgroup", "4:cpuacct:/x\n3:cpu:/x\n"),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "10000\n"),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/x/cpu.stat", "nr_periods 12\nnr_throttled 11\nthrottled_time 5\n"),
            ("sys/fs/cgroup/cpuacct/x/cpuacct.usage", "9000\n"),
        ]);
        let apart = quota_under(&Files::under(root.path()));
        assert_eq!(apart.map(|quota| (quota.cpus, quota.used_us)), Some((0.1, 9)));
    }
}
