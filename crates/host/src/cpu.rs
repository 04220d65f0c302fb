//! The number of CPUs that weir may really use: affinity mask ∩ cgroup quota.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// The numbers of the CPUs that a process may run on, ascending; `[0]` if unknown.
pub fn allowed_cpus_of_process(root: &Path, pid: u32) -> Vec<usize> {
    allowed_cpus_of(&Files::under(root), &pid.to_string())
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
    groups_of(root, &process, "cpu").into_iter().find_map(|(mount, group)| {
        let around = group.ancestors().take_while(|group| group.starts_with(&mount));
        around.filter_map(stopped).find(|(periods, _)| *periods > 0)
    })
}

/// Most processes of a control group that are read.
const MEMBERS_MAX: usize = 4096;

/// The control group that a process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnGroup {
    /// CPU time of all processes that it has and has had, also of those for which nobody has waited.
    pub cpu: Duration,
    /// The ids of its processes, without those in groups below it.
    pub members: Vec<u32>,
}

/// The control group of a process, version 1 or 2. `None` for the group at the root, and for one with more than [`MEMBERS_MAX`] processes.
pub fn own_group_under(root: &Path, pid: u32) -> Option<OwnGroup> {
    groups_of(root, &pid.to_string(), "cpuacct").into_iter().find_map(|(mount, group)| {
        if group == mount {
            return None;
        }
        let members = fs::read_to_string(group.join("cgroup.procs")).ok()?;
        let members: Vec<u32> = members.lines().take(MEMBERS_MAX + 1).filter_map(|line| line.parse().ok()).collect();
        let usage = fs::read_to_string(group.join("cpuacct.usage")).ok();
        let cpu = match usage.and_then(|text| text.trim().parse().ok()) {
            Some(ns) => Duration::from_nanos(ns),
            None => {
                let stat = fs::read_to_string(group.join("cpu.stat")).ok()?;
                let us = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                Duration::from_micros(us.trim().parse().ok()?)
            }
        };
        (members.len() <= MEMBERS_MAX).then_some(OwnGroup { cpu, members })
    })
}

/// The groups of a process with this controller: where the hierarchy is mounted, and the directory of the group. A group of version 2 has
/// all controllers.
fn groups_of(root: &Path, process: &str, controller: &str) -> Vec<(PathBuf, PathBuf)> {
    let text = fs::read_to_string(root.join("proc").join(process).join("cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mounts = match controllers.split(',').any(|own| own == controller) {
            _ if controllers.is_empty() => vec!["sys/fs/cgroup".to_owned()],
            true => vec!["sys/fs/cgroup/cpu,cpuacct".to_owned(), format!("sys/fs/cgroup/{controller}")],
            false => continue,
        };
        found.extend(mounts.into_iter().map(|mount| {
            let mount = root.join(mount);
            let group = mount.join(path.trim_start_matches('/'));
            (mount, group)
        }));
    }
    found
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

    #[test]
    fn the_group_of_a_process_has_an_account_in_both_versions() {
        let of = |files: &[(&str, &str)]| own_group_under(tree::made_up(files).path(), 7);
        let seven_ms = Some(OwnGroup { cpu: Duration::from_millis(7), members: vec![7, 8] });
        let one = [
            ("proc/7/cgroup", "4:memory:/m\n3:cpuacct:/x\n2:cpu:/y\n"),
            ("sys/fs/cgroup/cpuacct/x/cpuacct.usage", "7000000\n"),
            ("sys/fs/cgroup/cpuacct/x/cgroup.procs", "7\n8\n"),
        ];
        assert_eq!(of(&one), seven_ms);
        let two = [
            ("proc/7/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 7000\nuser_usec 1\n"),
            ("sys/fs/cgroup/a/b/cgroup.procs", "7\n8\n"),
        ];
        assert_eq!(of(&two), seven_ms);
        let top = [
            ("proc/7/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.stat", "usage_usec 7000\n"),
            ("sys/fs/cgroup/cgroup.procs", "7\n"),
        ];
        assert_eq!((of(&top), of(&[])), (None, None));
    }

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
