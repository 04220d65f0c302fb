//! CPU time of a process and all its descendants.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::machine::TICK;
use super::thread::{THREADS_MAX, nanoseconds, parse};

/// Most processes that are read.
pub const PROCESSES_MAX: usize = 65_536;

/// The flag of kernel threads (`include/linux/sched.h`).
const PF_KTHREAD: u32 = 0x0020_0000;

/// CPU time of a family of processes, without those that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilyCpu {
    /// User and system time of all threads; to the nanosecond if the kernel supports it, otherwise in steps of 10 ms.
    pub cpu: Duration,
    /// Number of live processes.
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
    family_among(&everybody(&root.join("proc")), pid)
}

fn family_among(everybody: &BTreeMap<u32, Stat>, pid: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (id, stat) in everybody {
        children.entry(stat.parent).or_default().push(*id);
    }
    let mut family = if everybody.contains_key(&pid) { vec![pid] } else { Vec::new() };
    let mut at = 0;
    while let Some(member) = family.get(at) {
        // A process has one parent, so no process is listed twice.
        family.extend(children.remove(member).unwrap_or_default());
        at += 1;
    }
    family
}

/// CPU time of the programs outside this process's family, with their ended children, in steps of 10 ms. Reads the
/// `/proc` mounted at `proc`, which may belong to an outer namespace. Kernel threads are left out, because they work
/// for any program. `None` if that `/proc` does not show the whole machine, as in a container.
pub fn others_cpu(proc: &Path) -> Option<Duration> {
    let own = fs::read_link(proc.join("self")).ok()?.to_str()?.parse().ok()?;
    others_cpu_of(proc, own)
}

fn others_cpu_of(proc: &Path, own: u32) -> Option<Duration> {
    let mut everybody = everybody(proc);
    // Kernel threads are visible only in a `/proc` that shows the whole machine.
    let sees_all = everybody.values().any(|stat| stat.is_kernels);
    for member in family_among(&everybody, own) {
        everybody.remove(&member);
    }
    let programs = everybody.values().filter(|stat| !stat.is_kernels);
    sees_all.then(|| programs.map(|stat| stat.cpu + stat.ended_children).sum())
}

/// CPU time of the ended children that this process has waited for, in steps of 10 ms (`cutime` and `cstime`,
/// proc_pid_stat(5)).
pub fn ended_children_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").ok();
    stat.and_then(|stat| Stat::parse(&stat)).map_or(Duration::ZERO, |stat| stat.ended_children)
}

/// The fields that weir reads from a process's `stat` file (proc_pid_stat(5)).
pub(super) struct Stat {
    pub(super) parent: u32,
    /// True for a kernel thread.
    pub(super) is_kernels: bool,
    pub(super) cpu: Duration,
    ended_children: Duration,
    pub(super) threads: Option<u64>,
    /// Start time in ticks since the machine started.
    pub(super) started: Option<u64>,
    /// Pages of resident memory.
    pub(super) pages: Option<u64>,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // The name may contain spaces and parentheses.
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
        let number = |place: usize| fields.get(place).and_then(|word| word.parse::<u32>().ok());
        let ticks = |place: usize| TICK.saturating_mul(number(place).unwrap_or_default());
        Some(Stat {
            parent: number(1)?,
            is_kernels: number(6).is_some_and(|flags| flags & PF_KTHREAD != 0),
            cpu: ticks(11) + ticks(12),
            ended_children: ticks(13) + ticks(14),
            threads: fields.get(17).and_then(|word| word.parse().ok()),
            started: fields.get(19).and_then(|word| word.parse().ok()),
            pages: fields.get(21).and_then(|word| word.parse().ok()),
        })
    }
}

/// All processes, at most [`PROCESSES_MAX`].
pub(super) fn everybody(proc: &Path) -> BTreeMap<u32, Stat> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).take(PROCESSES_MAX);
    let read = |id: u32| Stat::parse(&fs::read_to_string(proc.join(format!("{id}/stat"))).ok()?);
    ids.filter_map(|id| Some((id, read(id)?))).collect()
}

/// Start of a process, in ticks since the machine started. Together with the id, it identifies a process for ever.
pub fn started_ticks(pid: u32) -> Option<u64> {
    Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?.started
}

fn process_cpu(tasks: &Path) -> Duration {
    let threads = fs::read_dir(tasks).into_iter().flatten().flatten().take(THREADS_MAX);
    let cpu = threads.filter_map(|thread| {
        let exact = fs::read_to_string(thread.path().join("schedstat")).ok().and_then(|text| nanoseconds(&text));
        exact.or_else(|| Some(parse(&fs::read_to_string(thread.path().join("stat")).ok()?)?.cpu))
    });
    cpu.sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

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
    fn others_are_programs_outside_the_family() {
        let stat = |id: u32, parent: u32, flags: u32, ticks: [u32; 4]| {
            let [user, system, ended_user, ended_system] = ticks;
            let times = format!("{user} {system} {ended_user} {ended_system}");
            (format!("proc/{id}/stat"), format!("{id} (a) S {parent} 1 1 0 -1 {flags} 9 9 9 9 {times} 20 0 1 0 5\n"))
        };
        let init = stat(1, 0, 0, [1, 0, 2, 0]);
        let ours = [stat(10, 1, 0, [50, 0, 50, 0]), stat(11, 10, 0, [50, 0, 0, 0])];
        let other = stat(20, 1, 0, [3, 4, 5, 6]);
        let kernels = stat(2, 0, PF_KTHREAD, [70, 70, 0, 0]);
        let sum = |files: &[&(String, String)]| {
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            others_cpu_of(&tree::made_up(&files).path().join("proc"), 10)
        };
        let [family, child] = &ours;
        assert_eq!(sum(&[&init, family, child, &other, &kernels]), Some(Duration::from_millis(210)));
        assert_eq!(sum(&[&init, family, child, &kernels]), Some(Duration::from_millis(30)));
        // A container shows only its own programs.
        assert_eq!(sum(&[&init, family, child, &other]), None);
    }

    #[test]
    fn this_process_is_a_family() {
        let own = std::process::id();
        assert!(family(own).contains(&own) && family_cpu(own).unwrap().cpu > Duration::ZERO);
        assert!(others_cpu(Path::new("/nowhere")).is_none());
        assert!(started_ticks(own).unwrap() > 0 && started_ticks(u32::MAX).is_none());
    }
}
