//! The number of CPUs that weir may really use: affinity mask ∩ cgroup quota.

use std::fs;
use std::path::Path;

use super::files::Files;

/// The number of workers that make sense on this machine, at least 1.
///
/// The smaller of two numbers, rounded up: the CPUs in weir's affinity mask, and the CPU quota of its control group
/// (v1 or v2, the tightest on the path to the root).
pub fn effective_cpus() -> usize {
    effective_cpus_under(&Files::under(Path::new("/")))
}

/// As [`effective_cpus`], reading `proc/` and `sys/` of `files`.
pub fn effective_cpus_under(files: &Files) -> usize {
    effective_cpus_at(files, "self")
}

/// As [`effective_cpus_under`], for another process; `None` if `/proc` does not have it.
pub fn effective_cpus_of(root: &Path, pid: u32) -> Option<usize> {
    let pid = pid.to_string();
    root.join("proc").join(&pid).exists().then(|| effective_cpus_at(&Files::under(root), &pid))
}

fn effective_cpus_at(files: &Files, process: &str) -> usize {
    let allowed = allowed_cpus_of(files, process).len().max(1);
    match quota_cpus(files, process) {
        Some(quota) => allowed.min(quota).max(1),
        None => allowed,
    }
}

/// The numbers of the CPUs that weir may run on, ascending; `[0]` if unknown.
pub fn allowed_cpus(root: &Path) -> Vec<usize> {
    allowed_cpus_under(&Files::under(root))
}

/// As [`allowed_cpus`], reading `proc/` of `files`.
pub fn allowed_cpus_under(files: &Files) -> Vec<usize> {
    allowed_cpus_of(files, "self")
}

fn allowed_cpus_of(files: &Files, process: &str) -> Vec<usize> {
    let status = files.text(&format!("proc/{process}/status")).unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
    let cpus = parse_list(list.trim());
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// More CPUs than Linux supports: a limit for the numbers in a list.
const CPUS_MAX: usize = 8192;

/// Parses the kernel's CPU list format, `0-3,8`.
fn parse_list(list: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<usize>()) {
            cpus.extend(first..=last.min(CPUS_MAX));
        }
    }
    cpus
}

/// The tightest CPU quota of weir's control group and its parents, in whole CPUs.
fn quota_cpus(files: &Files, process: &str) -> Option<usize> {
    let groups = files.text(&format!("proc/{process}/cgroup"))?;
    groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            if controllers.is_empty() {
                tightest(files, "sys/fs/cgroup", path, quota_v2)
            } else if controllers.split(',').any(|c| c == "cpu") {
                ["sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpu"]
                    .iter()
                    .filter_map(|mount| tightest(files, mount, path, quota_v1))
                    .min()
            } else {
                None
            }
        })
        .min()
}

/// The directories from the mount down to the group. Inside a container, `/proc` often shows the host's path although
/// the mount is already weir's own group. So the mount itself is always one of them.
pub(super) fn path_to(mount: &str, group: &str) -> Vec<String> {
    let mut all = vec![mount.to_owned()];
    for part in group.split('/').filter(|part| !part.is_empty() && *part != "..") {
        all.extend(all.last().map(|at| format!("{at}/{part}")));
    }
    all
}

fn tightest(files: &Files, mount: &str, group: &str, quota: fn(&Files, &str) -> Option<usize>) -> Option<usize> {
    path_to(mount, group).iter().filter_map(|at| quota(files, at)).min()
}

/// cgroup v2: `cpu.max` holds `QUOTA PERIOD` or `max PERIOD`.
fn quota_v2(files: &Files, dir: &str) -> Option<usize> {
    let text = files.text(&format!("{dir}/cpu.max"))?;
    let mut words = text.split_whitespace();
    whole_cpus(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

/// cgroup v1: two files; a quota of -1 means none.
fn quota_v1(files: &Files, dir: &str) -> Option<usize> {
    let number = |name: &str| files.number::<u64>(&format!("{dir}/{name}"));
    whole_cpus(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

/// Periods of the CPU quota of a process (this one if `pid` is `None`), and the number of them in which it was
/// throttled. From `cpu.stat` of the nearest group that has periods, version 1 or 2.
pub fn throttling_under(root: &Path, pid: Option<u32>) -> Option<(u64, u64)> {
    let process = pid.map_or("self".to_owned(), |pid| pid.to_string());
    let groups = fs::read_to_string(root.join("proc").join(process).join("cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let mounts: &[&str] = if controllers.is_empty() {
            &["sys/fs/cgroup"]
        } else if controllers.split(',').any(|c| c == "cpu") {
            &["sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpu"]
        } else {
            return None;
        };
        mounts.iter().find_map(|mount| {
            let mount = root.join(mount);
            let group = mount.join(path.trim_start_matches('/'));
            let around = group.ancestors().take_while(|group| group.starts_with(&mount));
            around.filter_map(stopped).find(|(periods, _)| *periods > 0)
        })
    })
}

fn stopped(group: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((number("nr_periods ")?, number("nr_throttled ")?))
}

fn whole_cpus(quota_us: u64, period_us: u64) -> Option<usize> {
    (period_us > 0).then(|| usize::try_from(quota_us.div_ceil(period_us)).unwrap_or(usize::MAX).max(1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    fn check(files: &[(&str, &str)], expect: usize) {
        let root = tree::made_up(files);
        assert_eq!(effective_cpus_under(&Files::under(root.path())), expect, "{files:?}");
    }

    const EIGHT: (&str, &str) = ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-6,9\n");

    #[test]
    fn affinity_alone() {
        check(&[], 1);
        check(&[EIGHT], 8);
        check(&[("proc/self/status", "Cpus_allowed_list:\t3\n")], 1);
        check(&[("proc/self/status", "Cpus_allowed_list:\tx-9,\n")], 1);
    }

    #[test]
    fn version_2_quota_is_rounded_up_and_the_tightest_wins() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        check(&[EIGHT, group], 8);
        check(&[EIGHT, group, ("sys/fs/cgroup/a/cpu.max", "250000 100000\n")], 3);
        check(&[EIGHT, group, ("sys/fs/cgroup/a/cpu.max", "max 100000\n")], 8);
        check(
            &[
                EIGHT,
                group,
                ("sys/fs/cgroup/a/cpu.max", "400000 100000\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n"),
            ],
            1,
        );
        // A container: the path is the host's, the mount is already weir's own group.
        check(&[EIGHT, group, ("sys/fs/cgroup/cpu.max", "200000 100000\n")], 2);
    }

    #[test]
    fn version_1_quota() {
        let group = ("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/x\n");
        let period = ("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
        let quota = "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us";
        check(&[EIGHT, group, period, (quota, "150000\n")], 2);
        check(&[EIGHT, group, period, (quota, "-1\n")], 8);
        check(&[EIGHT, group, (quota, "150000\n")], 8);
    }

    #[test]
    fn throttling_is_of_the_nearest_group_with_a_quota() {
        let stat = "nr_periods 50\nnr_throttled 7\nthrottled_usec 1\n";
        let two = tree::made_up(&[
            ("proc/7/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 1\n"),
            ("sys/fs/cgroup/a/cpu.stat", stat),
        ]);
        assert_eq!(throttling_under(two.path(), Some(7)), Some((50, 7)));
        let one = tree::made_up(&[("proc/self/cgroup", "3:cpu,cpuacct:/x\n"), ("sys/fs/cgroup/cpu/x/cpu.stat", stat)]);
        assert_eq!(throttling_under(one.path(), None), Some((50, 7)));
        assert_eq!(throttling_under(one.path(), Some(8)), None);
    }

    #[test]
    fn nonsense_is_no_limit() {
        let group = ("proc/self/cgroup", "0::/\nrubbish\n");
        check(&[EIGHT, group, ("sys/fs/cgroup/cpu.max", "100000 0\n")], 8);
        check(&[EIGHT, group, ("sys/fs/cgroup/cpu.max", "\n")], 8);
    }

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(effective_cpus() >= 1);
        assert!(effective_cpus() <= allowed_cpus(Path::new("/")).len());
    }
}
