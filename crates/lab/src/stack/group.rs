//! Limits a host's CPU and memory with control groups of version 1 or 2. The groups' names contain the lab's process
//! id.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::host::Host;
use super::name::{NAME, owner};

/// The period of a quota, µs.
const PERIOD_US: u64 = 100_000;
/// The smallest quota that the kernel accepts.
const CPUS_MIN: f64 = 0.01;
/// How long the processes of a group may take to end.
const EMPTY: Duration = Duration::from_secs(3);

/// The control groups of one host, in the directories of its controllers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The host.
    pub host: String,
    /// Version 1: a directory for each controller. Version 2: one directory for all.
    directories: Vec<PathBuf>,
    is_v2: bool,
}

/// The resources that a group has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// CPU time of all its processes.
    pub cpu: Duration,
    /// Periods in which it ran.
    pub periods: u64,
    /// Periods in which it was throttled.
    pub throttled: u64,
    /// How often its memory reached the limit.
    pub memory_full: u64,
    /// How often the kernel killed one of its processes for that.
    pub memory_killed: u64,
}

impl Group {
    /// Makes a group for a host with limits, below `root` (`/`). `None` for a host without limits. The error names
    /// what the system lacks.
    fn make(root: &Path, lab: &str, host: &Host) -> Result<Option<Group>, String> {
        let cpus = host.cpus.or(host.credits.as_ref().map(|credits| credits.cpus));
        if cpus.is_none() && host.memory_mb.is_none() {
            return Ok(None);
        }
        let (parents, is_v2) =
            hierarchy(root).ok_or("no control group with a cpu controller: a quota needs one (cgroup v1 or v2)")?;
        let name = format!("{lab}-{}", host.name);
        let group = Group {
            host: host.name.clone(),
            directories: parents.iter().map(|parent| parent.join(&name)).collect(),
            is_v2,
        };
        for directory in &group.directories {
            fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        cpus.map_or(Ok(()), |cpus| group.set_cpus(cpus))?;
        if let Some(memory_mb) = host.memory_mb {
            let file = if is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
            group.write(file, &(memory_mb << 20).to_string())?;
        }
        Ok(Some(group))
    }

    /// Changes the number of CPUs that the group may use.
    pub fn set_cpus(&self, cpus: f64) -> Result<(), String> {
        if cpus.is_nan() || cpus < CPUS_MIN {
            return Err(format!("host {}: {cpus} CPUs are too few: write at least {CPUS_MIN}", self.host));
        }
        let quota_us = (cpus * PERIOD_US as f64).round() as u64;
        if self.is_v2 {
            return self.write("cpu.max", &format!("{quota_us} {PERIOD_US}"));
        }
        self.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
        self.write("cpu.cfs_quota_us", &quota_us.to_string())
    }

    /// The files through which a process joins the group, by writing 0.
    pub fn members(&self) -> Vec<String> {
        self.directories.iter().map(|directory| directory.join("cgroup.procs").display().to_string()).collect()
    }

    /// The resources that its processes have used.
    pub fn used(&self) -> Used {
        let stat = self.read("cpu.stat");
        let number = |text: &str, name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let (cpu, memory_full) = if self.is_v2 {
            (Duration::from_micros(number(&stat, "usage_usec ")), number(&self.read("memory.events"), "max "))
        } else {
            let ns = self.read("cpuacct.usage").trim().parse().unwrap_or(0);
            (Duration::from_nanos(ns), self.read("memory.failcnt").trim().parse().unwrap_or(0))
        };
        let events = self.read(if self.is_v2 { "memory.events" } else { "memory.oom_control" });
        Used {
            cpu,
            periods: number(&stat, "nr_periods "),
            throttled: number(&stat, "nr_throttled "),
            memory_full,
            memory_killed: number(&events, "oom_kill "),
        }
    }

    /// Reads a file from the first directory that has it.
    fn read(&self, file: &str) -> String {
        self.directories.iter().find_map(|directory| fs::read_to_string(directory.join(file)).ok()).unwrap_or_default()
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let controller = file.split('.').next().unwrap_or_default();
        let of = |directory: &&PathBuf| {
            self.is_v2
                || directory
                    .parent()
                    .and_then(Path::file_name)
                    .is_some_and(|name| name.to_string_lossy().split(',').any(|known| known == controller))
        };
        let directory = self
            .directories
            .iter()
            .find(of)
            .ok_or_else(|| format!("no control group with a {controller} controller"))?;
        let file = directory.join(file);
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    }
}

/// The groups of a block. Dropping it removes them.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<Group>);

impl Groups {
    /// Makes the groups of all hosts with limits. The groups' names begin with `lab`, and they are removed with that
    /// lab.
    pub fn make(root: &Path, lab: &str, hosts: &[Host]) -> Result<Groups, String> {
        let mut groups = Groups::default();
        for host in hosts {
            groups.0.extend(Group::make(root, lab, host)?);
        }
        Ok(groups)
    }

    /// The groups, in the form that a keeper gets.
    pub fn list(&self) -> Vec<Group> {
        self.0.clone()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let end = weir_net::clock::precise() + EMPTY;
        for directory in self.0.iter().flat_map(|group| &group.directories) {
            // A killed process stays in its group until it is gone completely. If a group remains, the next lab
            // removes it.
            while fs::remove_dir(directory).is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy)
                && weir_net::clock::precise() < end
            {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// The directories in which groups are made, and whether they are version 2. For version 1: the directories of the
/// present controllers, which must include cpu.
fn hierarchy(root: &Path) -> Option<(Vec<PathBuf>, bool)> {
    let base = root.join("sys/fs/cgroup");
    let is_there = |path: &PathBuf| path.join("cgroup.procs").exists();
    let mut old: Vec<PathBuf> = [["cpu,cpuacct", "cpu"], ["cpuacct", "cpuacct"], ["memory", "memory"]]
        .into_iter()
        .filter_map(|names| names.map(|name| base.join(name)).into_iter().find(is_there))
        .collect();
    // If both controllers are mounted together, cpuacct is a link to the same directory.
    if old.first().is_some_and(|path| path.ends_with("cpu,cpuacct")) {
        old.retain(|path| !path.ends_with("cpuacct") || path.ends_with("cpu,cpuacct"));
    }
    if old.iter().any(|path| path.ends_with("cpu") || path.ends_with("cpu,cpuacct")) {
        return Some((old, false));
    }
    let controllers = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
    controllers.split_ascii_whitespace().any(|name| name == "cpu").then_some((vec![base], true))
}

/// Removes groups of labs that no longer run.
pub(super) fn sweep(is_alive: &dyn Fn(u32) -> bool) -> Vec<String> {
    let Some((parents, _)) = hierarchy(Path::new("/")) else { return Vec::new() };
    let groups = parents.into_iter().flat_map(|parent| fs::read_dir(parent).into_iter().flatten().flatten());
    let stale = groups.filter(|group| {
        let name = group.file_name().to_string_lossy().into_owned();
        owner(&name).is_some_and(|pid| !is_alive(pid))
    });
    stale.filter(|group| fs::remove_dir(group.path()).is_ok()).map(|group| group.path().display().to_string()).collect()
}

/// The beginning of the names of a lab's groups: the name of the lab's directory, or one with this process's id.
pub(super) fn lab_name(dir: &Path) -> String {
    let own = || format!("{NAME}{}", std::process::id());
    let names = dir.ancestors().filter_map(|part| part.file_name().and_then(|name| name.to_str()));
    names.into_iter().find(|name| owner(name).is_some()).map_or_else(own, str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn both_versions_are_told_in_their_own_words() {
        let base = std::env::temp_dir().join(format!("weir-test-group-{}", std::process::id()));
        let host = Host { cpus: Some(0.5), memory_mb: Some(64), ..Host::named("app") };
        for (version, parents, files) in [
            (
                "1",
                vec!["cpu", "cpuacct", "memory"],
                vec![
                    ("cpu/weir-lab-1-app/cpu.cfs_quota_us", "50000"),
                    ("memory/weir-lab-1-app/memory.limit_in_bytes", "67108864"),
                ],
            ),
            (
                "2",
                vec![""],
                vec![("weir-lab-1-app/cpu.max", "50000 100000"), ("weir-lab-1-app/memory.max", "67108864")],
            ),
        ] {
            let root = base.join(version);
            let groups = root.join("sys/fs/cgroup");
            for parent in &parents {
                fs::create_dir_all(groups.join(parent)).unwrap();
                fs::write(groups.join(parent).join("cgroup.procs"), "").unwrap();
            }
            if version == "2" {
                fs::write(groups.join("cgroup.subtree_control"), "memory cpu io\n").unwrap();
            }
            let group = Group::make(&root, "weir-lab-1", &host).unwrap().unwrap();
            for (file, text) in files {
                assert_eq!(fs::read_to_string(groups.join(file)).unwrap(), text);
            }
            assert_eq!(group.members().len(), parents.len());
            assert!(group.members()[0].ends_with("weir-lab-1-app/cgroup.procs"));
            let first = &group.directories[0];
            fs::write(first.join("cpu.stat"), "usage_usec 7000\nnr_periods 12\nnr_throttled 11\n").unwrap();
            fs::write(groups.join(parents.get(1).unwrap_or(&"")).join("weir-lab-1-app/cpuacct.usage"), "7000000\n")
                .unwrap();
            let last = group.directories.last().unwrap();
            fs::write(last.join("memory.events"), "low 0\nmax 9\noom 2\noom_kill 3\n").unwrap();
            fs::write(last.join("memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n").unwrap();
            let used = group.used();
            assert_eq!((used.cpu.as_millis(), used.periods, used.throttled, used.memory_killed), (7, 12, 11, 3));
            assert!(group.set_cpus(0.0).unwrap_err().contains("at least 0.01"));
            assert_eq!(Group::make(&root, "weir-lab-1", &Host::named("free")), Ok(None));
        }
        assert!(Group::make(&base.join("none"), "weir-lab-1", &host).unwrap_err().contains("no control group"));
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_group_has_its_labs_name() {
        assert_eq!(lab_name(Path::new("/tmp/weir-lab-77/3-0")), "weir-lab-77");
        assert_eq!(lab_name(Path::new("/tmp/x")), format!("{NAME}{}", std::process::id()));
    }
}
