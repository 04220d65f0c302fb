//! CPU time of a process and all its descendants, also of threads and processes that have ended.
//!
//! The kernel adds the time of a thread that ends to its process, and the time of a process that ends to the parent that waits for it
//! (`utime` and `cutime`, proc_pid_stat(5)). Both accounts go in steps of 10 ms; only a thread that lives has an exact one. A
//! server with a thread or a process for each connection would look idle by the threads that live.

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

/// CPU time of a family of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilyCpu {
    /// User and system time of all its processes and threads. A process that has ended counts if its parent is of the family and has
    /// waited for it. The time of ended threads and processes is in steps of 10 ms.
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
    let members = members_under(root, pid);
    let of = |member: &Member| member.cpu(process_cpu(&root.join(format!("proc/{}/task", member.pid))));
    let sum = FamilyCpu { cpu: members.iter().map(of).sum(), processes: members.len() };
    (!members.is_empty()).then_some(sum)
}

/// A process of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The kernel's id.
    pub pid: u32,
    /// CPU time of all its threads, also of those that have ended.
    account: Duration,
    /// CPU time of its children that have ended and for which it has waited.
    ended_children: Duration,
    /// Its start, in ticks since the machine started; with the id, it names one process. `None` if the kernel did not tell it.
    pub started: Option<u64>,
}

impl Member {
    /// CPU time of the process and its ended children. `threads`: the exact time of the threads that live.
    pub fn cpu(&self, threads: Duration) -> Duration {
        // Both parts of the account are rounded down.
        self.account.max(threads) + self.ended_children
    }
}

/// The process and its descendants, parents first; empty if there is no such process. Reads `proc` below `root`.
pub fn members_under(root: &Path, pid: u32) -> Vec<Member> {
    let everybody = everybody(&root.join("proc"));
    let of = |pid: u32| {
        let stat = everybody.get(&pid)?;
        Some(Member { pid, account: stat.cpu, ended_children: stat.ended_children, started: stat.started })
    };
    family_among(&everybody, pid).into_iter().filter_map(of).collect()
}

/// The ids of the process and its descendants, parents first; empty if there is no such process.
pub fn family(pid: u32) -> Vec<u32> {
    family_under(Path::new("/"), pid)
}

/// As [`family`], reading `proc` below `root`.
pub fn family_under(root: &Path, pid: u32) -> Vec<u32> {
    members_under(root, pid).into_iter().map(|member| member.pid).collect()
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

/// The fields that weir reads from a process's `stat` file (proc_pid_stat(5)).
pub(super) struct Stat {
    pub(super) parent: u32,
    /// True for a kernel thread.
    pub(super) is_kernels: bool,
    pub(super) cpu: Duration,
    pub(super) ended_children: Duration,
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

/// The number of a process in its own namespace: the last one of `NSpid` (proc_pid_status(5)).
pub fn number_inside(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().last()?.parse().ok()
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
    fn a_process_has_a_number_in_its_own_namespace() {
        let own = std::process::id();
        assert_eq!((number_inside(own), number_inside(u32::MAX)), (Some(own), None));
    }

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
    fn threads_and_children_that_have_ended_count() {
        // 420 ms of its own, of which a thread that lives has 100; 50 ms of children that have ended.
        let files = [
            ("proc/10/stat", "10 (a) S 1 1 1 0 -1 4194304 9 9 9 9 40 2 4 1 20 0 2 0 5\n"),
            ("proc/10/task/10/schedstat", "100000000 5 6\n"),
            // Its threads say more than its account, which is rounded down.
            ("proc/11/stat", "11 (b) S 10 1 1 0 -1 4194304 9 9 9 9 3 0 0 0 20 0 1 0 5\n"),
            ("proc/11/task/11/schedstat", "39000000 5 6\n"),
        ];
        let root = tree::made_up(&files);
        let sum = family_cpu_under(root.path(), 10).unwrap();
        assert_eq!((sum.processes, sum.cpu), (2, Duration::from_millis(420 + 50 + 39)));
    }

    #[test]
    fn a_family_of_short_processes_is_as_busy_as_the_shell_says() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};
        let run = "i=0; while [ $i -lt 40 ]; do sh -c 'j=0; while [ $j -lt 4000 ]; do j=$((j+1)); done'; i=$((i+1)); done; times; read x";
        let mut child =
            Command::new("sh").args(["-c", run]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // `0m0.01s 0m0.02s` of the shell, and of its children.
        let lines: Vec<String> =
            BufReader::new(child.stdout.take().unwrap()).lines().take(2).map(Result::unwrap).collect();
        let seconds = |time: &str| {
            let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
            minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
        };
        let truth: f64 = lines.iter().flat_map(|line| line.split(' ')).map(seconds).sum();
        let seen = family_cpu(child.id()).unwrap().cpu.as_secs_f64();
        child.stdin.take();
        child.wait().unwrap();
        assert!(truth > 0.04 && (seen - truth).abs() < 0.05, "{seen} {truth}");
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
