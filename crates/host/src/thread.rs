//! CPU time of this process's threads, by name.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::machine::TICK;

/// CPU time of one thread since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCpu {
    /// The kernel's id of the thread.
    pub id: u32,
    /// Its name; the kernel keeps 15 bytes.
    pub name: String,
    /// User and system time together; the kernel reports it in steps of 10 ms.
    pub cpu: Duration,
}

/// More threads than weir ever starts: a limit for reading.
pub const THREADS_MAX: usize = 4096;

/// The threads of this process, without those that have ended.
pub fn threads() -> Vec<ThreadCpu> {
    threads_under(Path::new("/"))
}

/// As [`threads`], reading `proc/self/task` below `root`, at most [`THREADS_MAX`].
pub fn threads_under(root: &Path) -> Vec<ThreadCpu> {
    let Ok(tasks) = fs::read_dir(root.join("proc/self/task")) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .take(THREADS_MAX)
        .filter_map(|task| fs::read_to_string(task.path().join("stat")).ok())
        .filter_map(|stat| parse(&stat))
        .collect()
}

/// CPU time of the calling thread; `None` if `/proc` does not have it. In steps of 10 ms if the kernel was built
/// without scheduler statistics.
pub fn own_cpu() -> Option<Duration> {
    let exact = fs::read_to_string("/proc/thread-self/schedstat").ok();
    exact.and_then(|text| nanoseconds(&text)).or_else(|| {
        let stat = fs::read_to_string("/proc/thread-self/stat").ok()?;
        Some(parse(&stat)?.cpu)
    })
}

/// The kernel's id of the calling thread; `None` if `/proc` does not have it.
pub fn own_thread() -> Option<u32> {
    fs::read_link("/proc/thread-self").ok()?.file_name()?.to_str()?.parse().ok()
}

/// User and system time in a `stat` file of a thread.
pub(super) fn cpu_of(stat: &str) -> Option<Duration> {
    parse(stat).map(|thread| thread.cpu)
}

/// `RAN WAITED SLICES`, the times in nanoseconds (Linux, Documentation/scheduler/sched-stats.rst).
pub(super) fn nanoseconds(schedstat: &str) -> Option<Duration> {
    let ran = schedstat.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ran))
}

/// `ID (NAME) STATE ...`; utime and stime are the 12th and 13th field after the name (proc_pid_stat(5)). A name may
/// contain spaces and parentheses, so the last one counts.
pub(super) fn parse(stat: &str) -> Option<ThreadCpu> {
    let (id, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(ThreadCpu {
        id: id.parse().ok()?,
        name: name.to_owned(),
        cpu: TICK.saturating_mul(user.saturating_add(system)),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    #[test]
    fn a_stat_line_is_read_from_behind_its_name() {
        let root = tree::made_up(&[
            ("proc/self/task/7/stat", "7 (a) b (c)) R 1 1 1 0 -1 4194304 9 0 0 0 12 30 5 5 20 0 3 0 99\n"),
            ("proc/self/task/8/stat", "8 (short) R 1 1\n"),
            ("proc/self/task/9/stat", "rubbish"),
        ]);
        let seven = ThreadCpu { id: 7, name: "a) b (c)".to_owned(), cpu: Duration::from_millis(420) };
        assert_eq!(threads_under(root.path()), [seven]);
        assert_eq!(threads_under(Path::new("/nowhere")), []);
    }

    #[test]
    fn scheduler_statistics_are_nanoseconds() {
        assert_eq!(nanoseconds("1234567 89 10\n"), Some(Duration::from_nanos(1_234_567)));
        assert_eq!(nanoseconds(""), None);
        assert_eq!(nanoseconds("rubbish 1 2"), None);
    }

    #[test]
    fn a_running_thread_is_found_by_its_name() {
        let looking = std::thread::Builder::new().name("meter looks".to_owned());
        let found = looking.spawn(|| threads().iter().any(|thread| thread.name == "meter looks")).unwrap();
        assert!(found.join().unwrap());
        assert!(own_cpu().is_some());
    }
}
