//! The processes of the machine, and which of them serve the edge.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_host::{self as host, Listeners, Program, Seen};
use weir_net::clock::Instant;

/// Programs in an answer, at most: those of upstreams, then by CPU.
const PROGRAMS_MAX: usize = 60;
/// Questions within this time get the same answer.
const FRESH: Duration = Duration::from_millis(900);
/// After this time without a question, CPU shares begin anew.
const STALE: Duration = Duration::from_secs(30);
/// How often weir reads which process listens where: it reads every descriptor for that.
const LISTENERS_EVERY: Duration = Duration::from_secs(10);
/// A clock tick of the kernel in `/proc/PID/stat`.
const TICKS_PER_SECOND: f64 = 100.0;

/// An address to which the edge connects, and the names under which the configuration knows it.
pub type ProgramOrigin = (String, String);

/// The last readings.
#[derive(Default)]
pub struct Programs {
    at: Option<Instant>,
    seen: Vec<Seen>,
    programs: Vec<Program>,
    listeners: Listeners,
    listened: Option<Instant>,
}

impl Programs {
    /// The programs as the page shows them.
    pub fn look(&mut self, root: &Path, now: Instant, origins: &[ProgramOrigin]) -> Value {
        let age = self.at.map(|at| now.saturating_duration_since(at));
        if age.is_none_or(|age| age >= FRESH) {
            let seen = host::seen_under(root);
            let before = if age.is_some_and(|age| age < STALE) { std::mem::take(&mut self.seen) } else { Vec::new() };
            self.programs = host::programs(&before, &seen, age.unwrap_or_default(), std::process::id());
            (self.seen, self.at) = (seen, Some(now));
        }
        if self.listened.is_none_or(|at| now.saturating_duration_since(at) >= LISTENERS_EVERY) {
            (self.listeners, self.listened) = (host::listeners_under(root), Some(now));
        }
        let up_ticks = up_seconds(root) * TICKS_PER_SECOND;
        let serving: Vec<(&ProgramOrigin, BTreeSet<u32>)> =
            origins.iter().map(|origin| (origin, self.listeners.of(&origin.0))).collect();
        let own = std::process::id();
        let mut rows: Vec<(bool, f64, Value)> = self
            .programs
            .iter()
            .map(|program| {
                let serves = serving.iter().filter(|(_, pids)| program.pids.iter().any(|pid| pids.contains(pid)));
                let serves: Vec<Value> =
                    serves.map(|((address, name), _)| json!({"address": address, "name": name})).collect();
                let listens: BTreeSet<&str> = program.pids.iter().flat_map(|pid| self.listeners.at(*pid)).collect();
                // The server of this edge is the keeper's child.
                let is_own = program.pids.contains(&own) || program.parent == own;
                // Only the log of an origin is asked for.
                let service = program.pids.first().filter(|_| !serves.is_empty());
                let service = service.and_then(|pid| host::service_under(root, *pid));
                let row = json!({
                    "name": program.name,
                    "pids": program.pids.len(),
                    "pid": program.pids.first(),
                    "cpus": (program.cpus * 1e3).round() / 1e3,
                    "resident": program.resident,
                    "threads": program.threads,
                    "youngest": ((up_ticks - program.youngest as f64) / TICKS_PER_SECOND).max(0.0).round(),
                    "serves": serves,
                    "listens": listens,
                    "unit": service,
                    "is_own": is_own,
                });
                (is_own || !serves.is_empty(), program.cpus, row)
            })
            .collect();
        rows.sort_by(|one, other| other.0.cmp(&one.0).then(other.1.total_cmp(&one.1)));
        let more = rows.len().saturating_sub(PROGRAMS_MAX);
        rows.truncate(PROGRAMS_MAX);
        let unknown: BTreeSet<&str> =
            serving.iter().filter(|(_, pids)| pids.is_empty()).map(|(origin, _)| origin.0.as_str()).collect();
        json!({
            "programs": rows.into_iter().map(|(_, _, row)| row).collect::<Vec<_>>(),
            "more": more,
            "elsewhere": unknown,
            "is_root": weir_net::process::is_root(),
        })
    }
}

fn up_seconds(root: &Path) -> f64 {
    let text = std::fs::read_to_string(root.join("proc/uptime")).unwrap_or_default();
    text.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_net::clock;

    #[test]
    fn the_program_behind_an_address_leads_the_list() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap().to_string();
        let origins = [(here.clone(), "app".to_owned()), ("127.0.0.1:1".to_owned(), "gone".to_owned())];
        let mut programs = Programs::default();
        let now = clock::precise();
        let first = programs.look(Path::new("/"), now, &origins);
        let leads = &first["programs"][0];
        assert_eq!(leads["serves"][0], json!({"address": here, "name": "app"}));
        assert!(leads["is_own"] == true && leads["resident"].as_u64().unwrap() > 1 << 20, "{leads}");
        assert_eq!(first["elsewhere"], json!(["127.0.0.1:1"]));
        assert!(first["programs"].as_array().unwrap().len() <= PROGRAMS_MAX);
        // A second question soon after it is answered from the same reading, a later one from another.
        drop(programs.look(Path::new("/"), now + FRESH / 2, &origins));
        assert_eq!(programs.at, Some(now));
        drop(programs.look(Path::new("/"), now + FRESH, &origins));
        assert_eq!(programs.at, Some(now + FRESH));
    }
}
