//! CPU time of each CPU of the machine, by use.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Most CPUs that are read.
pub const CPUS_MAX: usize = 4096;

/// The kernel reports times to processes in hundredths of a second (`USER_HZ`).
pub const TICK: Duration = Duration::from_millis(10);

/// CPU time of one CPU since the machine started, in steps of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Number of the CPU.
    pub cpu: usize,
    /// Time for processes, in their code and in the kernel's.
    pub busy: Duration,
    /// Time for interrupts and the work after them.
    pub interrupts: Duration,
    /// Idle time.
    pub idle: Duration,
    /// Time in which the CPU was wanted, but the hypervisor gave it to another guest.
    pub steal: Duration,
}

impl CpuTime {
    /// The increase since `before`.
    pub fn since(self, before: CpuTime) -> CpuTime {
        CpuTime {
            cpu: self.cpu,
            busy: self.busy.saturating_sub(before.busy),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            idle: self.idle.saturating_sub(before.idle),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    /// As [`worked`], for an increase during `elapsed`.
    pub fn worked(&self, elapsed: Duration) -> Duration {
        worked(elapsed, self.idle, self.steal)
    }
}

/// Time in which CPUs had work: all the time that there was, without idle time. The kernel measures idle time
/// exactly, but it samples the kind of work only at each tick: work at the rate of the ticks is seen at every tick or
/// at none. So `busy` and `interrupts` show only the kind of work, and not its amount.
pub fn worked(room: Duration, idle: Duration, steal: Duration) -> Duration {
    room.saturating_sub(idle).saturating_sub(steal)
}

/// All CPUs; empty if `/proc` does not have them.
pub fn cpu_times() -> Vec<CpuTime> {
    cpu_times_under(Path::new("/"))
}

/// As [`cpu_times`], reading `proc/stat` below `root`.
pub fn cpu_times_under(root: &Path) -> Vec<CpuTime> {
    let text = fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
    text.lines().filter_map(parse).take(CPUS_MAX).collect()
}

/// `cpuN user nice system idle iowait irq softirq steal …` (proc_stat(5)).
fn parse(line: &str) -> Option<CpuTime> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u32> = words.map_while(|word| word.parse().ok()).collect();
    let at = |places: &[usize]| {
        let sum: u32 =
            places.iter().filter_map(|place| ticks.get(*place)).fold(0, |sum, ticks| sum.saturating_add(*ticks));
        TICK.saturating_mul(sum)
    };
    Some(CpuTime { cpu, busy: at(&[0, 1, 2]), idle: at(&[3, 4]), interrupts: at(&[5, 6]), steal: at(&[7]) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn each_cpu_has_a_line() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 10 0 0 0\nintr 5\n";
        let root = tree::made_up(&[("proc/stat", text)]);
        let ms = Duration::from_millis;
        let first = CpuTime { cpu: 0, busy: ms(60), interrupts: ms(130), idle: ms(450), steal: ms(80) };
        let times = cpu_times_under(root.path());
        assert_eq!((times.len(), times[0], times[1].busy), (2, first, ms(100)));
        assert_eq!(times[1].since(CpuTime { busy: ms(40), ..CpuTime::default() }).busy, ms(60));
        assert!(cpu_times_under(Path::new("/nowhere")).is_empty());
    }

    #[test]
    fn work_is_what_was_not_idle_whatever_the_ticks_saw() {
        let ms = Duration::from_millis;
        let time =
            |busy, idle, steal| CpuTime { busy: ms(busy), idle: ms(idle), steal: ms(steal), ..CpuTime::default() };
        // A load at the rate of the ticks: seen at no tick, and at every tick.
        assert_eq!(time(0, 700, 0).worked(ms(1000)), ms(300));
        assert_eq!(time(1000, 700, 0).worked(ms(1000)), ms(300));
        assert_eq!(time(300, 500, 200).worked(ms(1000)), ms(300));
        // Idle times come in steps of 10 ms, so they may exceed the elapsed time.
        assert_eq!(time(0, 1010, 0).worked(ms(1000)), ms(0));
    }
}
