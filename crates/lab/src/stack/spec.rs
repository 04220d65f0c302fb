//! The spec that a keeper gets, as one line of JSON: hosts, processes, and actions with their times.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::group::Group;
use super::host::{self, HUB, Host};
use crate::said::{Said, say};
use crate::wan::{DELAY_MAX, Direction, SHARE_MAX};

/// The longest block.
pub const LIMIT_MAX: Duration = Duration::from_secs(3600);
/// Most hosts beside the hub. Each has a network of its own.
pub const HOSTS_MAX: usize = 200;
/// Most measurements of one stack.
pub const TURNS_MAX: usize = 8;
/// Most processes of a stack.
pub const PROCESSES_MAX: usize = 500;

/// The condition under which a process counts as started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadyCondition {
    /// As soon as it runs.
    #[default]
    Started,
    /// When a connection is accepted at each of these addresses.
    Answers(Vec<SocketAddr>),
    /// When it has written a line that contains this text.
    Prints(String),
}

/// A process of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its name; its output goes to `NAME.out` and `NAME.err`.
    pub name: String,
    /// Its host's name.
    pub host: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables that are added to its environment.
    pub env: Vec<(String, String)>,
    /// Its working directory. `None`: the lab's.
    pub cwd: Option<PathBuf>,
    /// CPUs that it may run on. Empty: all.
    pub cpus: Vec<usize>,
    /// Limit of its descriptors: soft and hard.
    pub files: Option<(u64, u64)>,
    /// The condition under which it counts as started.
    pub ready: ReadyCondition,
    /// The longest time until then, s. 0 means 15.
    pub patience_s: u64,
    /// It starts together with the process before it; the keeper then waits for both.
    pub is_together: bool,
    /// The CPU and memory limits of its host do not apply to it.
    pub is_unlimited: bool,
    /// The limits apply to it only once the load is measured, and to the processes that it starts after that.
    pub is_limited_late: bool,
    /// It is a preparation: it ends by itself before the next process starts.
    pub is_step: bool,
}

/// An operation on a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// SIGSTOP to its whole group.
    Stop(String),
    /// SIGCONT to its whole group.
    Continue(String),
    /// SIGKILL to its whole group. The block does not fail because of this end.
    Kill(String),
    /// Starts it again, after SIGKILL if it still runs.
    Restart(String),
    /// SIGHUP to the process itself: a reload.
    Reload(String),
    /// Runs a process to its end. The JSON in its last output line is kept under its name.
    Run(Process),
}

/// An action during a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Time after the start of the measured load. `None`: after its end.
    pub at_ms: Option<u64>,
    /// The operation.
    pub deed: Deed,
}

/// One of several measurements of the same stack. The edge gets another configuration, is reloaded, warmed up and
/// loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Again {
    /// The file that becomes the served configuration.
    pub conf: PathBuf,
    /// The client that loads it.
    pub client: Process,
    /// The client that warms it up first.
    pub warm: Option<Process>,
}

/// Counts the lines of a process's output or of a log that contain a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineWatch {
    /// The name of the count.
    pub name: String,
    /// `NAME.out`, `NAME.err` in the block's directory, or a path.
    pub file: PathBuf,
    /// The text that a counted line contains.
    pub text: String,
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// The directory of its files.
    pub dir: PathBuf,
    /// It runs in namespaces of its own.
    pub is_isolated: bool,
    /// The hosts. The hub exists even if it is not listed.
    pub hosts: Vec<Host>,
    /// Further names and their addresses.
    pub names: Vec<(String, IpAddr)>,
    /// The processes, in the order in which they start.
    pub processes: Vec<Process>,
    /// The name of the process that is measured as the edge.
    pub edge: String,
    /// The client that loads it. It writes `load.json` into `dir`, or prints its report.
    pub client: Process,
    /// The client that warms it up. It writes `warm.json` into `dir`.
    pub warm: Option<Process>,
    /// The warm-up has the same load as the measurement, so its windows may be judged.
    pub is_warm_judged: bool,
    /// The client's report is the last line that it prints, not a file.
    pub is_report_printed: bool,
    /// Actions during the measurement and after it.
    pub actions: Vec<Action>,
    /// Files that the block mounts over others: the file, and the file below it. Only with namespaces.
    pub overlays: Vec<(PathBuf, PathBuf)>,
    /// How it is watched. `None`: not at all.
    pub watch: Option<crate::watch::plan::WatchPlan>,
    /// Lines that are counted at the end.
    pub watches: Vec<LineWatch>,
    /// Directories that are empty in the block: caches, logs. Only with namespaces.
    pub fresh: Vec<String>,
    /// Directories that the block may write to without lasting changes. Only with namespaces.
    pub overlaid: Vec<String>,
    /// Processes may end during the block. Their ends are counted; the block does not fail.
    pub may_end: bool,
    /// The longest time that it may take, ms.
    pub limit_ms: u64,
    /// Measurements one after the other, instead of one with `client` and `warm`. Nothing is restarted between them.
    pub turns: Vec<Again>,
    /// The configuration file that turns overwrite.
    pub served: PathBuf,
    /// Set by [`super::run`], for the hosts with limits.
    pub groups: Vec<Group>,
}

impl Spec {
    /// A directory that shows all processes of the machine. A keeper in a new process namespace has another `/proc`.
    pub fn machine_proc(&self) -> PathBuf {
        if self.is_isolated { self.dir.join("machine") } else { "/proc".into() }
    }

    /// The longest time that it may take.
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.limit_ms).min(LIMIT_MAX)
    }

    /// A host's address on its link to the hub. For the hub, the address at which every host reaches it. `None` if
    /// the host does not exist.
    pub fn address_of(&self, host: &str) -> Option<IpAddr> {
        host::address_of(&self.hosts, host)
    }

    /// The spec as one line.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Parses a spec. The error says what is wrong with it.
    pub fn of_json(line: &str) -> Result<Spec, Said> {
        let spec: Spec = serde_json::from_str(line).map_err(|error| Said::from(error.to_string()))?;
        spec.check().map(|()| spec)
    }

    /// Checks for specs that a keeper could not run: an unknown host or process, too many of them, a parameter of the
    /// whole machine.
    pub fn check(&self) -> Result<(), Said> {
        if self.hosts.len() > HOSTS_MAX || self.processes.len() > PROCESSES_MAX {
            return Err(say!(ERR_TOO_MANY, HOSTS_MAX, PROCESSES_MAX));
        }
        if self.turns.len() > TURNS_MAX {
            return Err(say!(ERR_TURNS, TURNS_MAX));
        }
        for host in &self.hosts {
            check_host(host)?;
        }
        let done = self.actions.iter().filter_map(|action| match &action.deed {
            Deed::Run(process) => Some(process),
            _ => None,
        });
        let turns = self.turns.iter().flat_map(|turn| std::iter::once(&turn.client).chain(&turn.warm));
        let known = |name: &str| name == HUB || self.hosts.iter().any(|host| host.name == name);
        for process in self.processes.iter().chain([&self.client]).chain(&self.warm).chain(done).chain(turns) {
            if !known(&process.host) {
                return Err(say!(ERR_HOST_OF, &process.name, &process.host));
            }
            if process.argv.is_empty() {
                return Err(say!(ERR_NOTHING_TO_RUN, &process.name));
            }
        }
        for action in &self.actions {
            let (Deed::Stop(name) | Deed::Continue(name) | Deed::Kill(name) | Deed::Restart(name) | Deed::Reload(name)) =
                &action.deed
            else {
                continue;
            };
            if !self.processes.iter().any(|process| process.name == *name) {
                return Err(say!(ERR_NO_PROCESS, name));
            }
        }
        Ok(())
    }
}

fn check_host(host: &Host) -> Result<(), Said> {
    let name = host.name.as_str();
    let is_named =
        !name.is_empty() && name.len() <= 12 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_named || name.starts_with('-') {
        return Err(say!(ERR_HOST_NAME, format!("{name:?}")));
    }
    let of_machine = host.sysctls.iter().find(|(parameter, _)| {
        !parameter.starts_with("net.") || parameter.contains(['/', ' ']) || parameter.contains("..")
    });
    if let Some((parameter, _)) = of_machine {
        return Err(say!(ERR_OF_MACHINE, name, parameter));
    }
    if name == HUB && host.rate_kbit.is_some() {
        return Err(say!(ERR_HUB_RATE, HUB));
    }
    if name == HUB && host.link.is_some() {
        return Err(say!(ERR_HUB_LINK, HUB));
    }
    for way in host.link.iter().flat_map(|link| [link.to, link.from]) {
        check_way(name, way)?;
    }
    if host.cpus.is_some() && host.credits.is_some() {
        return Err(say!(ERR_CPUS_CREDITS, name));
    }
    Ok(())
}

fn check_way(name: &str, way: Direction) -> Result<(), Said> {
    if u128::from(way.delay_us.max(way.jitter_us)) > DELAY_MAX.as_micros() {
        return Err(say!(ERR_DELAY_MAX, name, DELAY_MAX.as_secs()));
    }
    if way.loss.max(way.reorder) > SHARE_MAX {
        return Err(say!(ERR_SHARE_MAX, name, SHARE_MAX / 10));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::wan::BadLink;

    fn spec() -> Spec {
        let process = |name: &str, host: &str| Process {
            name: name.to_owned(),
            host: host.to_owned(),
            argv: vec![name.to_owned(), "-x".into()],
            env: vec![("PORT".into(), "1".into())],
            cpus: vec![0, 3],
            files: Some((30, 30)),
            ready: ReadyCondition::Answers(vec!["[::1]:80".parse().unwrap()]),
            ..Process::default()
        };
        Spec {
            dir: "/tmp/x".into(),
            is_isolated: true,
            hosts: vec![
                Host { sysctls: vec![("net.core.somaxconn".into(), "8".into())], ..Host::named(HUB) },
                Host {
                    rate_kbit: Some(100_000),
                    cpus: Some(0.5),
                    memory_mb: Some(64),
                    link: Some(lossy(10, 20)),
                    ..Host::named("app1")
                },
            ],
            names: vec![("express".into(), "10.99.255.10".parse().unwrap())],
            processes: vec![process("app", "app1"), process("nginx", HUB)],
            edge: "nginx".into(),
            client: process("load", HUB),
            warm: Some(process("load", HUB)),
            actions: vec![Action { at_ms: Some(5), deed: Deed::Stop("nginx".into()) }],
            watches: vec![LineWatch { name: "alerts".into(), file: "nginx.err".into(), text: "[alert]".into() }],
            fresh: vec!["/var/cache".into()],
            limit_ms: 7000,
            ..Spec::default()
        }
    }

    #[test]
    fn a_block_is_told_and_understood() {
        let line = spec().to_json().to_string();
        assert!(!line.contains('\n'));
        assert_eq!(Spec::of_json(&line), Ok(spec()));
        assert!(Spec::of_json("null").is_err());
    }

    fn lossy(loss: u16, reorder: u16) -> BadLink {
        BadLink { from: Direction { loss, reorder, ..Direction::default() }, ..BadLink::default() }
    }

    #[test]
    fn what_a_keeper_could_not_do_is_refused() {
        type Change = fn(&mut Spec);
        let table: &[(Change, &str)] = &[
            (|s| s.processes[0].host = "app2".into(), "app: there is no host app2"),
            (|s| s.client.argv.clear(), "load: nothing to run"),
            (
                |s| s.hosts[1].sysctls = vec![("vm.swappiness".into(), "1".into())],
                "vm.swappiness applies to the whole machine",
            ),
            (|s| s.hosts[1].sysctls = vec![("net.../vm/x".into(), "1".into())], "applies to the whole machine"),
            (|s| s.hosts[0].rate_kbit = Some(1), "links to all other hosts"),
            (|s| s.hosts[1].name = "a b".into(), "a name is up to"),
            (
                |s| s.hosts[0].link = Some(BadLink::late(1, 1)),
                "write the delay, the jitter, the loss and the reorder at",
            ),
            (|s| s.hosts[1].link = Some(BadLink::late(1, 10_000_001)), "a delay or a jitter may be at most 10 s"),
            (|s| s.hosts[1].link = Some(lossy(0, 501)), "a loss or a reorder may be at most 50 %"),
            (|s| s.hosts[1].link = Some(lossy(501, 0)), "a loss or a reorder may be at most 50 %"),
            (|s| s.actions[0].deed = Deed::Kill("x".into()), "there is no process x"),
        ];
        for (change, words) in table {
            let mut spec = spec();
            change(&mut spec);
            let why = spec.check().unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
