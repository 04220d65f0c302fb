//! Probes the programs of a stack for figures about themselves: busy workers, full pools, waiting queries.
//!
//! The user names a probe with `--probe KIND=AT`, or the lab finds it by a listening process. If a program cannot be
//! read, the result says why: it is never silently absent.

mod apache;
pub mod detail;
mod jvm;
pub mod mysql;
pub mod node;
pub mod php_fpm;
mod program;
pub mod redis;
mod slow_log;
mod spring;
mod sql;
mod uwsgi;
mod ways;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_host as host;
use weir_net::{Instant, clock, worker};

pub use super::plan::WantedProbe;
use super::plan::WatchedProcess;
use detail::Detail;
pub use program::{Probe, ProgramKind};
pub use ways::Reading;

use crate::said::{Said, say};

/// Interval of readings: each answer costs the program work.
const EVERY: Duration = Duration::from_millis(500);
/// How long to wait at the end for the last answers.
const AT_END: Duration = Duration::from_secs(8);
/// Most probes of a block.
const PROBES_MAX: usize = 32;
/// Most readings of a probe that are kept. A longer series is thinned to every second reading.
const READINGS_MAX: usize = 600;

/// Every kind.
pub const KINDS: &[ProgramKind] = &[
    ProgramKind {
        name: "apache",
        says: "busy and idle workers, from `/server-status?auto` (mod_status)",
        programs: &["apache2", "httpd"],
        counters: &["accesses"],
        read: |probe, _| apache::read(probe),
    },
    ProgramKind {
        name: "jvm",
        says: "time in garbage collections and the heap, from the JVM's own counters (what `jcmd PID PerfCounter.print` prints)",
        programs: &["java"],
        counters: &["gc_ms", "gc_count"],
        read: |probe, _| jvm::read(probe),
    },
    ProgramKind {
        name: "spring",
        says: "Tomcat's busy threads and Hikari's connections, from `/actuator/prometheus`, else `/actuator/metrics`",
        programs: &["java"],
        counters: &["gc_ms", "pool_timeouts"],
        read: |probe, _| spring::read(probe),
    },
    ProgramKind {
        name: "php-fpm",
        says: "busy and idle workers, their scripts and the listen queue, from the pool's status page (`pm.status_path`), asked over FastCGI; the slow log",
        programs: PHP_FPM,
        counters: &["accepted", "reached", "slow"],
        read: php_fpm::read,
    },
    ProgramKind {
        name: "uwsgi",
        says: "busy and idle workers and the listen queue, from the stats server (`--stats`); only if you name it",
        programs: &[],
        counters: &["requests", "overflows"],
        read: |probe, _| uwsgi::read(&probe.at),
    },
    ProgramKind {
        name: "mysql",
        says: "threads that run, waits for locks, queries and their time, of MariaDB and MySQL, read with their client",
        programs: &["mariadbd", "mysqld"],
        counters: &["questions", "slow", "lock_waits", "lock_ms", "refused", "scanned", "scans"],
        read: mysql::read,
    },
    ProgramKind {
        name: "redis",
        says: "commands and the time that each takes, blocked clients, evictions (`INFO`, `SLOWLOG`)",
        programs: &["redis-server", "valkey-server"],
        counters: &["commands", "command_us", "evicted", "refused"],
        read: redis::read,
    },
    ProgramKind {
        name: "node",
        says: "the delay of the event loop, by a module that the lab preloads into every Node.js process of the stack; only if you name it",
        programs: &[],
        counters: &[],
        read: |probe, _| node::read(probe),
    },
];

/// PHP-FPM's master process. Debian's name has the version.
const PHP_FPM: &[&str] =
    &["php-fpm", "php-fpm7.4", "php-fpm8.0", "php-fpm8.1", "php-fpm8.2", "php-fpm8.3", "php-fpm8.4", "php-fpm8.5"];

/// The kind of this name.
pub fn kind(name: &str) -> Option<&'static ProgramKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

impl WantedProbe {
    /// Parses a command-line value. The error lists the known kinds.
    pub fn of(text: &str) -> Result<WantedProbe, Said> {
        let (name, at) = text.split_once('=').unwrap_or((text, ""));
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        if kind(name).is_none() {
            return Err(say!(ERR_PROBE_KIND, text, names.join(", ")));
        }
        if (name == "node") != at.is_empty() {
            return Err(say!(ERR_PROBE_PLACE, text));
        }
        Ok(WantedProbe { kind: name.to_owned(), at: at.to_owned() })
    }
}

/// The result of a probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answers {
    /// The process of the stack. Empty if the user gave only a place.
    pub process: String,
    /// [`ProgramKind::name`].
    pub kind: String,
    /// Its address or place, without a password.
    pub at: String,
    /// Readings, each with its time in ms.
    pub readings: Vec<(u64, Reading)>,
    /// Why the last failed reading failed.
    pub failed: Option<String>,
    /// Number of failed readings.
    pub failures: u64,
    /// Its queries, commands or scripts.
    pub detail: Detail,
}

/// Finds the programs of a stack that can be probed, and adds those that the user named.
pub fn find(targets: &[WatchedProcess], wanted: &[WantedProbe], dir: &Path) -> Vec<Probe> {
    let root = Path::new("/");
    let mut found = Vec::new();
    for target in targets.iter().filter(|target| !target.is_edge) {
        let family = host::family_under(root, target.pid);
        for kind in KINDS {
            let is_named = wanted.iter().any(|wanted| wanted.kind == kind.name && kind.name != "node");
            let own = |pid: &&u32| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                kind.programs.contains(&name.trim()) || (kind.name == "node" && node::is_one(dir, **pid))
            };
            let Some(pid) = family.iter().find(own).filter(|_| !is_named) else { continue };
            let at = match kind.name {
                "jvm" | "node" => String::new(),
                _ => place(kind.name, target, &host::listens_of(root, &[*pid])),
            };
            found.push(Probe { kind, process: target.name.clone(), pid: *pid, at, dir: dir.to_owned() });
        }
    }
    for one in wanted.iter().filter(|one| one.kind != "node") {
        let Some(kind) = kind(&one.kind) else { continue };
        let own = targets.iter().find(|target| {
            let listens = host::listens_of(root, &host::family_under(root, target.pid));
            port(&one.at).is_some_and(|wanted| listens.iter().any(|at| port(at) == Some(wanted)))
                || listens.contains(&format!("unix:{}", one.at))
        });
        let process = own.map_or(String::new(), |target| target.name.clone());
        found.push(Probe { kind, process, pid: own.map_or(0, |own| own.pid), at: one.at.clone(), dir: dir.to_owned() });
    }
    found.truncate(PROBES_MAX);
    found
}

/// The port after the host in an address or URL.
fn port(at: &str) -> Option<u16> {
    let rest = at.split_once("://").map_or(at, |(_, rest)| rest);
    let rest = rest.split('/').next()?;
    rest.rsplit_once(':')?.1.parse().ok()
}

/// The place at which the hub reaches a listening process. Empty if it cannot be reached.
fn place(kind: &str, target: &WatchedProcess, listens: &std::collections::BTreeSet<String>) -> String {
    if matches!(kind, "mysql" | "php-fpm")
        && let Some(path) =
            listens.iter().find_map(|at| at.strip_prefix("unix:")).filter(|path| path.ends_with(".sock"))
    {
        return path.to_owned();
    }
    let reach = |at: &String| {
        let at: SocketAddr = at.parse().ok()?;
        let is_hub = target.host == crate::stack::HUB;
        match at.ip() {
            ip if ip.is_unspecified() && is_hub => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), at.port())),
            ip if ip.is_unspecified() => Some(SocketAddr::new(target.address?, at.port())),
            ip if ip.is_loopback() && !is_hub => None,
            _ => Some(at),
        }
    };
    listens.iter().find_map(reach).map(|at| at.to_string()).unwrap_or_default()
}

impl Probe {
    fn read(&self, detail: &mut Detail) -> Result<Reading, String> {
        if self.at.is_empty() && !matches!(self.kind.name, "jvm" | "node") {
            return Err(format!(
                "it listens at no address that the edge's host reaches: name one with --probe {}=WHERE, or let it listen on its host's address",
                self.kind.name
            ));
        }
        detail.begin();
        (self.kind.read)(self, detail).map(finite)
    }

    /// The place without the part before `@`.
    fn shown(&self) -> String {
        self.at.rsplit_once('@').map_or(self.at.as_str(), |(_, at)| at).to_owned()
    }
}

/// A reading without numbers that are none: a program may print `NaN`, and one such number would spoil every sum.
fn finite(mut reading: Reading) -> Reading {
    reading.retain(|_, value| value.is_finite());
    reading
}

/// Probes on its own thread, from [`Asker::start`] to [`Asker::end`].
pub struct Asker {
    is_over: Arc<AtomicBool>,
    answers: mpsc::Receiver<Vec<Answers>>,
}

impl Asker {
    /// Starts probing. Its times count from `start`.
    pub fn start(probes: Vec<Probe>, start: Instant) -> std::io::Result<Asker> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let (tell, answers) = mpsc::channel();
        worker::block_aside("probes", move || {
            let mut all: Vec<Answers> = probes
                .iter()
                .map(|probe| Answers {
                    process: probe.process.clone(),
                    kind: probe.kind.name.to_owned(),
                    at: probe.shown(),
                    ..Answers::default()
                })
                .collect();
            let mut next = clock::precise();
            while !probes.is_empty() {
                let is_last = over.load(Ordering::Relaxed);
                if is_last || clock::precise() >= next {
                    for (probe, answers) in probes.iter().zip(&mut all) {
                        let at_ms = u64::try_from((clock::precise() - start).as_millis()).unwrap_or(u64::MAX);
                        match probe.read(&mut answers.detail) {
                            Ok(reading) => answers.readings.push((at_ms, reading)),
                            Err(why) => {
                                answers.failed = Some(why);
                                answers.failures += 1;
                            }
                        }
                        if answers.readings.len() >= READINGS_MAX {
                            answers.readings = std::mem::take(&mut answers.readings).into_iter().step_by(2).collect();
                        }
                    }
                    next = clock::precise() + EVERY;
                }
                if is_last {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            // The send fails only if the receiver is gone; then the result is not needed.
            let _ = tell.send(all);
        })?;
        Ok(Asker { is_over, answers })
    }

    /// Takes a last reading and stops.
    pub fn end(self) -> Vec<Answers> {
        self.is_over.store(true, Ordering::Relaxed);
        self.answers.recv_timeout(AT_END).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::ways::url;
    use super::*;

    #[test]
    fn a_probe_is_asked_for_by_kind_and_place() {
        let of = |text: &str| WantedProbe::of(text).map(|wanted| (wanted.kind, wanted.at));
        assert_eq!(of("redis=:pw@127.0.0.1:6379"), Ok(("redis".into(), ":pw@127.0.0.1:6379".into())));
        assert_eq!(of("node"), Ok(("node".into(), String::new())));
        assert!(of("oracle=1").unwrap_err().contains("of apache, jvm, spring, php-fpm, uwsgi, mysql, redis, node"));
        assert!(of("redis").is_err() && of("node=1").is_err());
        assert_eq!(url("http://localhost:80/a/b"), ("127.0.0.1:80".into(), Some("/a/b".into())));
        assert_eq!((port("http://x:81/y"), port("[::1]:7"), port("/run/x.sock")), (Some(81), Some(7), None));
    }

    #[test]
    fn who_is_asked_where() {
        let target = |host: &str| WatchedProcess {
            host: host.to_owned(),
            address: Some("10.99.0.2".parse().unwrap()),
            ..WatchedProcess::default()
        };
        let listens = |list: &[&str]| list.iter().map(|at| (*at).to_owned()).collect();
        assert_eq!(place("redis", &target("edge"), &listens(&["0.0.0.0:6379"])), "127.0.0.1:6379");
        assert_eq!(place("redis", &target("db"), &listens(&["0.0.0.0:6379"])), "10.99.0.2:6379");
        assert_eq!(place("redis", &target("db"), &listens(&["127.0.0.1:6379"])), "");
        assert_eq!(place("php-fpm", &target("app"), &listens(&["unix:/run/php/f.sock"])), "/run/php/f.sock");
        assert_eq!(place("mysql", &target("db"), &listens(&["127.0.0.1:3306", "unix:/run/m.sock"])), "/run/m.sock");
    }

    #[test]
    fn one_that_cannot_be_read_says_why() {
        let probe = |kind: &str, at: &str| Probe {
            kind: super::kind(kind).unwrap(),
            process: "db".into(),
            pid: 0,
            at: at.into(),
            dir: "/nowhere".into(),
        };
        assert!(probe("redis", "").read(&mut Detail::default()).unwrap_err().contains("--probe redis=WHERE"));
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let asker = Asker::start(vec![probe("redis", &format!(":secret@{free}"))], clock::precise()).unwrap();
        let answers = asker.end();
        assert!(answers[0].failed.as_ref().unwrap().contains("refused") && answers[0].readings.is_empty());
        assert_eq!(answers[0].at, free.to_string());
    }
}
