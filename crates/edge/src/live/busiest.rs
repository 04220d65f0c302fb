//! The program that uses most CPU time. weir reads all processes for that, so it looks only while CPU time is short.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use weir_host::{self as host, Program, Seen};
use weir_meter::live::Busiest;
use weir_net::clock::{self, Instant};

/// CPU time is short if at least this part of it is used. The verdict speaks of it later, so that the program is known by then.
const SHORT: f64 = 0.7;
/// The shortest time between two looks.
const EVERY: Duration = Duration::from_secs(4);
/// Programs whose control group is read, at most.
const GROUPS_MAX: usize = 32;
/// A look may take this part of the time until the next one: a machine may have thousands of processes.
const COST: u32 = 200;

/// The last look.
#[derive(Default)]
pub(super) struct Watch {
    seen: Vec<Seen>,
    at: Option<Instant>,
    /// How long the last look took.
    took: Duration,
    pub(super) found: Option<Busiest>,
    /// The same, of the programs in weir's own control group.
    pub(super) found_in_group: Option<Busiest>,
}

impl Watch {
    /// Looks at the programs below `root`, if that is due. `used` is the part of the CPU time that is in use.
    pub(super) fn look(&mut self, root: &Path, now: Instant, used: f64) {
        if used < SHORT {
            *self = Watch::default();
            return;
        }
        let age = self.at.map(|at| now.saturating_duration_since(at));
        if age.is_some_and(|age| age < EVERY.max(self.took * COST)) {
            return;
        }
        let began = clock::precise();
        let seen = host::seen_under(root);
        if let Some(age) = age {
            let mut programs = by_name(host::programs(&self.seen, &seen, age, std::process::id()));
            programs.sort_by(|one, other| other.cpus.total_cmp(&one.cpus));
            self.found = programs.first().map(told);
            self.found_in_group = programs.iter().take(GROUPS_MAX).find(|one| is_in_group(root, one)).map(told);
        }
        (self.seen, self.at, self.took) = (seen, Some(now), clock::precise().saturating_duration_since(began));
    }
}

/// Programs of one name together: a compiler runs below many parents. This process stays apart.
fn by_name(programs: Vec<Program>) -> Vec<Program> {
    let own = std::process::id();
    let mut all: BTreeMap<(String, bool), Program> = BTreeMap::new();
    for mut one in programs {
        let sum = all.entry((one.name.clone(), one.pids.contains(&own))).or_default();
        sum.name = one.name;
        sum.cpus += one.cpus;
        sum.pids.append(&mut one.pids);
    }
    all.into_values().collect()
}

fn told(program: &Program) -> Busiest {
    Busiest { name: program.name.clone(), cpus: program.cpus, is_own: program.pids.contains(&std::process::id()) }
}

/// Whether a program runs in weir's control group, so that both share its quota.
fn is_in_group(root: &Path, program: &Program) -> bool {
    let group = |process: &str| fs::read_to_string(root.join("proc").join(process).join("cgroup")).ok();
    let (own, first) = (group("self"), program.pids.first());
    own.is_some() && first.is_some_and(|pid| group(&pid.to_string()) == own)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn processes_of_one_name_are_one_program_wherever_they_began() {
        let one = |name: &str, pid: u32, cpus: f64| Program {
            name: name.to_owned(),
            pids: vec![pid],
            cpus,
            ..Program::default()
        };
        let all =
            by_name(vec![one("cc", 1, 0.5), one("ld", 2, 0.6), one("cc", 3, 0.5), one("cc", std::process::id(), 0.1)]);
        let told: Vec<_> = all.iter().map(|one| (one.name.as_str(), one.pids.len(), one.cpus)).collect();
        assert_eq!(told, [("cc", 2, 1.0), ("cc", 1, 0.1), ("ld", 1, 0.6)]);
    }

    #[test]
    fn the_program_that_works_is_named_while_cpu_time_is_short() {
        let (root, begun) = (Path::new("/"), clock::precise());
        let mut watch = Watch::default();
        watch.look(root, begun, 0.9);
        assert_eq!(watch.found, None);
        // From now on this process works, and nobody else does.
        while clock::precise().saturating_duration_since(begun) < Duration::from_millis(300) {}
        let others = watch.seen.iter_mut().filter(|one| one.pid != std::process::id());
        others.for_each(|one| one.cpu = Duration::MAX);
        watch.took = Duration::ZERO;
        // The next look is not due yet.
        watch.look(root, begun + EVERY / 2, 0.9);
        assert_eq!(watch.found, None);
        watch.look(root, begun + EVERY, 0.9);
        let found = watch.found.clone().unwrap();
        assert!(found.is_own && found.cpus > 0.0, "{found:?}");
        assert_eq!(watch.found_in_group, watch.found);
        // A machine with enough CPU time needs no look.
        watch.look(root, begun + EVERY, 0.5);
        assert!(watch.found.is_none() && watch.seen.is_empty());
    }
}
