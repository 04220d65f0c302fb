//! CPU time of a process and all that descend from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::thread::{THREADS_MAX, nanoseconds, parse};

/// Processes that are looked at.
pub const PROCESSES_MAX: usize = 65_536;

/// What a family of processes has used, those that have ended left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilyCpu {
    /// User and system time of all threads; to the nanosecond where the kernel tells it, else in steps of 10 ms.
    pub cpu: Duration,
    /// Processes that are alive.
    pub processes: usize,
}

/// The process and its descendants; `None` if there is no such process.
pub fn family_cpu(pid: u32) -> Option<FamilyCpu> {
    family_cpu_under(Path::new("/"), pid)
}

/// As [`family_cpu`], reading `proc` below `root`.
pub fn family_cpu_under(root: &Path, pid: u32) -> Option<FamilyCpu> {
    let family = family_under(root, pid);
    let mut sum = FamilyCpu::default();
    for member in &family {
        sum.cpu += process_cpu(&root.join(format!("proc/{member}/task")));
        sum.processes += 1;
    }
    (!family.is_empty()).then_some(sum)
}

/// The ids of the process and its descendants, parents first; empty if there is no such process.
pub fn family(pid: u32) -> Vec<u32> {
    family_under(Path::new("/"), pid)
}

/// As [`family`], reading `proc` below `root`.
pub fn family_under(root: &Path, pid: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).take(PROCESSES_MAX);
    let mut is_alive = false;
    for id in ids {
        let Some(parent) = fs::read_to_string(root.join(format!("proc/{id}/stat"))).ok().and_then(|stat| parent(&stat))
        else {
            continue;
        };
        is_alive |= id == pid;
        children.entry(parent).or_default().push(id);
    }
    let mut family = if is_alive { vec![pid] } else { Vec::new() };
    let mut at = 0;
    while let Some(member) = family.get(at) {
        // A process has one parent: nobody is listed twice.
        family.extend(children.remove(member).unwrap_or_default());
        at += 1;
    }
    family
}

/// What a process's children that it waited for have used, in steps of 10 ms (`cutime` and `cstime`, proc_pid_stat(5)).
pub fn ended_children_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split_ascii_whitespace().skip(13);
    let ticks: u32 = ticks.take(2).filter_map(|word| word.parse::<u32>().ok()).fold(0, u32::saturating_add);
    Duration::from_millis(10).saturating_mul(ticks)
}

/// When a process began, in ticks since the machine did: with its id, it names one process and no later one.
pub fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn process_cpu(tasks: &Path) -> Duration {
    let threads = fs::read_dir(tasks).into_iter().flatten().flatten().take(THREADS_MAX);
    let cpu = threads.filter_map(|thread| {
        let exact = fs::read_to_string(thread.path().join("schedstat")).ok().and_then(|text| nanoseconds(&text));
        exact.or_else(|| Some(parse(&fs::read_to_string(thread.path().join("stat")).ok()?)?.cpu))
    });
    cpu.sum()
}

fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::host::tree;

    #[test]
    fn descendants_are_found_and_summed() {
        let stat = |id: u32, parent: u32| (format!("proc/{id}/stat"), format!("{id} (a) b) S {parent} 1 1\n"));
        let task = |id: u32, ns: u64| (format!("proc/{id}/task/{id}/schedstat"), format!("{ns} 5 6\n"));
        let files = [stat(10, 1), stat(11, 10), stat(12, 11), stat(13, 1), task(10, 100), task(11, 20), task(12, 3)];
        let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push(("proc/12/task/99/stat", "99 (x) R 1 1 1 0 -1 4194304 9 0 0 0 1 1 5 5 20 0 3 0 99\n"));
        let root = tree::made_up(&files);
        assert_eq!(family_under(root.path(), 10), [10, 11, 12]);
        let sum = family_cpu_under(root.path(), 10).unwrap();
        assert_eq!((sum.processes, sum.cpu), (3, Duration::from_nanos(123) + Duration::from_millis(20)));
        assert_eq!(family_cpu_under(root.path(), 14), None);
    }

    #[test]
    fn this_process_is_a_family() {
        let own = std::process::id();
        assert!(family(own).contains(&own) && family_cpu(own).unwrap().cpu > Duration::ZERO);
        assert!(started_ticks(own).unwrap() > 0 && started_ticks(u32::MAX).is_none());
    }
}
