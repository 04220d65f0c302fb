//! A share of a CPU for a role: a control group of version 1 or 2, with a name that says whose it is.

use std::fs;
use std::path::{Path, PathBuf};

use super::leftovers::NAME;

/// What a quota is reckoned over, µs.
const PERIOD_US: u64 = 100_000;

/// A group that limits what its processes use; removed when dropped.
#[derive(Debug)]
pub struct Quota {
    directory: PathBuf,
}

impl Quota {
    /// A group `weir-lab-PID-ROLE` with so many CPUs, below `root` (`/`). The error says what the system lacks.
    pub fn new(root: &Path, role: &str, cpus: f64) -> Result<Quota, String> {
        let quota_us = (cpus * PERIOD_US as f64).round() as u64;
        if cpus.is_nan() || quota_us < 1000 {
            return Err(format!("a quota of {cpus} CPUs: at least 0.01"));
        }
        let name = format!("{NAME}{}-{role}", std::process::id());
        let (parent, files) = match hierarchy(root) {
            Some((parent, true)) => (parent, vec![("cpu.max", format!("{quota_us} {PERIOD_US}"))]),
            Some((parent, false)) => {
                (parent, vec![("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota_us.to_string())])
            }
            None => {
                return Err("no control group with a cpu controller: a quota needs one (cgroup v1 or v2)".to_owned());
            }
        };
        let directory = parent.join(name);
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let quota = Quota { directory };
        for (file, text) in files {
            let file = quota.directory.join(file);
            fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(quota)
    }

    /// The file into which a process writes 0 to belong to it.
    pub fn members(&self) -> String {
        self.directory.join("cgroup.procs").display().to_string()
    }

    /// Periods so far, and in how many of them somebody had to wait.
    pub fn throttled(&self) -> (u64, u64) {
        let text = fs::read_to_string(self.directory.join("cpu.stat")).unwrap_or_default();
        let read = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0);
        (read("nr_periods "), read("nr_throttled "))
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // A group with a process in it stays, and the next lab removes it.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Where groups with a cpu controller are made, and whether that is version 2.
fn hierarchy(root: &Path) -> Option<(PathBuf, bool)> {
    let base = root.join("sys/fs/cgroup");
    if let Some(old) = ["cpu", "cpu,cpuacct"]
        .map(|name| base.join(name))
        .into_iter()
        .find(|path| path.join("cpu.cfs_quota_us").exists() || path.join("cgroup.procs").exists())
    {
        return Some((old, false));
    }
    let controllers = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
    controllers.split_ascii_whitespace().any(|name| name == "cpu").then_some((base, true))
}

/// Removes groups of labs that are no more.
pub(super) fn sweep(is_alive: &dyn Fn(u32) -> bool) -> Vec<String> {
    let Some((parent, _)) = hierarchy(Path::new("/")) else { return Vec::new() };
    let groups = fs::read_dir(parent).into_iter().flatten().flatten();
    let stale = groups.filter(|group| {
        let name = group.file_name().to_string_lossy().into_owned();
        super::leftovers::owner(&name).is_some_and(|pid| !is_alive(pid))
    });
    stale.filter(|group| fs::remove_dir(group.path()).is_ok()).map(|group| group.path().display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn both_versions_are_told_in_their_own_words() {
        let base = std::env::temp_dir().join(format!("weir-lab-test-quota-{}", std::process::id()));
        for (version, file, marker, text) in [
            ("1", "cpu.cfs_quota_us", "sys/fs/cgroup/cpu/cgroup.procs", "50000"),
            ("2", "cpu.max", "sys/fs/cgroup/cgroup.subtree_control", "50000 100000"),
        ] {
            let root = base.join(version);
            let marker = root.join(marker);
            fs::create_dir_all(marker.parent().unwrap()).unwrap();
            fs::write(&marker, "memory cpu io\n").unwrap();
            let quota = Quota::new(&root, "edge", 0.5).unwrap();
            assert_eq!(fs::read_to_string(quota.directory.join(file)).unwrap(), text);
            fs::write(quota.directory.join("cpu.stat"), "nr_periods 12\nnr_throttled 11\nthrottled_time 5\n").unwrap();
            assert_eq!(quota.throttled(), (12, 11));
            assert!(quota.members().ends_with(&format!("{NAME}{}-edge/cgroup.procs", std::process::id())));
        }
        assert!(Quota::new(&base.join("none"), "edge", 0.5).unwrap_err().contains("no control group"));
        assert!(Quota::new(&base.join("1"), "edge", 0.0).unwrap_err().contains("at least 0.01"));
        fs::remove_dir_all(base).unwrap();
    }
}
