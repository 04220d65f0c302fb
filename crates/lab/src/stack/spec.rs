//! What a keeper is told, as one line of JSON: hosts, processes, what is done to them and when.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::credits::Credits;
use super::group::Group;
use crate::wan::DELAY_MAX;

/// The longest block.
pub const LIMIT_MAX: Duration = Duration::from_secs(3600);
/// The host in the middle: the edge's, and everybody's where there are no namespaces.
pub const HUB: &str = "edge";
/// Hosts beside the hub: each has a network of its own.
pub const HOSTS_MAX: usize = 200;
/// Measurements of one stack.
pub const TURNS_MAX: usize = 8;
/// Processes of a stack.
pub const PROCESSES_MAX: usize = 500;

/// A machine of the stack: a network namespace joined to the hub's by a link, and a control group if it is limited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Its name, which is its namespace's, and what others call it.
    pub name: String,
    /// Addresses beside the one it is given.
    pub addresses: Vec<IpAddr>,
    /// Kernel parameters of its network, `net.…`, and their values.
    pub sysctls: Vec<(String, String)>,
    /// What its link carries, kilobits a second each way; not of the hub, which has a link to everybody.
    pub rate_kbit: Option<u64>,
    /// How late what goes to it arrives, and what comes from it, µs; not of the hub.
    pub delay_us: Option<(u64, u64)>,
    /// CPUs its processes may use up together, 0.5 being half of one.
    pub cpus: Option<f64>,
    /// Its memory, MiB.
    pub memory_mb: Option<u64>,
    /// Instead of `cpus`: as many as its credits buy.
    pub credits: Option<Credits>,
}

impl Host {
    /// One without limits.
    pub fn named(name: &str) -> Host {
        Host { name: name.to_owned(), ..Host::default() }
    }
}

/// When a process is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ready {
    /// As soon as it is started.
    #[default]
    Started,
    /// When somebody answers at all of these.
    Answers(Vec<SocketAddr>),
    /// When it has written a line with this text.
    Prints(String),
}

/// A process of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// What it is called; its files are `NAME.out` and `NAME.err`.
    pub name: String,
    /// Its host's name.
    pub host: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Added to its environment.
    pub env: Vec<(String, String)>,
    /// Where it runs, if not where the lab does.
    pub cwd: Option<PathBuf>,
    /// CPUs it may run on; all if none are named.
    pub cpus: Vec<usize>,
    /// Descriptors it may have: soft and hard limit.
    pub files: Option<(u64, u64)>,
    /// When it is there.
    pub ready: Ready,
    /// How long that may take, s; 15 if 0.
    pub patience_s: u64,
    /// It is started together with the one before it, and both are waited for.
    pub is_together: bool,
    /// Its host's limits of CPU and memory are not for it.
    pub is_unlimited: bool,
    /// Nor are they until the load is measured: from then on, for the process itself and what it starts afterwards.
    pub is_limited_late: bool,
    /// It is one that ends by itself before the next is started: a preparation.
    pub is_step: bool,
}

/// What is done to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// SIGSTOP to its whole group.
    Stop(String),
    /// SIGCONT to its whole group.
    Continue(String),
    /// SIGKILL to its whole group: its end is no fault of the block.
    Kill(String),
    /// Started again, after SIGKILL where it still runs.
    Restart(String),
    /// SIGHUP to the process itself: a reload.
    Reload(String),
    /// Something run to its end; what it prints as JSON in its last line is kept under its name.
    Run(Process),
}

/// Something that happens during a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// How long after the measured load began; after its end if not said.
    pub at_ms: Option<u64>,
    /// What.
    pub deed: Deed,
}

/// A measurement among several that share a stack: the edge is given another configuration, reloaded, warmed up and loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Again {
    /// What becomes the served configuration.
    pub conf: PathBuf,
    /// What loads it.
    pub client: Process,
    /// What warms it up first.
    pub warm: Option<Process>,
}

/// Lines of a file that are counted: what a process said, or a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// What the count is called.
    pub name: String,
    /// `NAME.out`, `NAME.err` in the block's directory, or a path.
    pub file: PathBuf,
    /// The text that a counted line holds.
    pub text: String,
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// Where its files go.
    pub dir: PathBuf,
    /// In namespaces of its own.
    pub is_isolated: bool,
    /// The hosts; the hub is there even if it is not named.
    pub hosts: Vec<Host>,
    /// Further names and where they are.
    pub names: Vec<(String, IpAddr)>,
    /// What runs, in the order in which it is started.
    pub processes: Vec<Process>,
    /// The name of the process that is measured as the edge.
    pub edge: String,
    /// What loads it; it writes `load.json` into `dir`, or prints it.
    pub client: Process,
    /// What warms it up; it writes `warm.json` into `dir`.
    pub warm: Option<Process>,
    /// The warm-up is what the measurement is, and may be judged by its windows.
    pub is_warm_judged: bool,
    /// The client's report is the last line that it prints, and not a file.
    pub is_report_printed: bool,
    /// What happens while it is measured, and after.
    pub actions: Vec<Action>,
    /// Files of the block that are laid over others while it lasts: the file, and what it is laid over. Only with namespaces.
    pub overlays: Vec<(PathBuf, PathBuf)>,
    /// How it is watched, if it is.
    pub watch: Option<crate::watch::Plan>,
    /// Lines that are counted at the end.
    pub watches: Vec<Watch>,
    /// Directories that are to be empty: caches, logs. Only with namespaces.
    pub fresh: Vec<String>,
    /// Directories that may be written to, and are as they were afterwards. Only with namespaces.
    pub overlaid: Vec<String>,
    /// Processes may end during the block: their ends are counted, and not its failure.
    pub may_end: bool,
    /// How long it may take, ms.
    pub limit_ms: u64,
    /// Measurements one after the other, instead of `client` and `warm` once; nothing is started anew between them.
    pub turns: Vec<Again>,
    /// The configuration file that turns write over.
    pub served: PathBuf,
    /// Made by [`super::run`], of the hosts with limits.
    pub groups: Vec<Group>,
}

impl Spec {
    /// Where all processes of the machine are shown: a keeper with a namespace of its own has another `/proc`.
    pub fn machine_proc(&self) -> PathBuf {
        if self.is_isolated { self.dir.join("machine") } else { "/proc".into() }
    }

    /// How long it may take.
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.limit_ms).min(LIMIT_MAX)
    }

    /// A host's address on its link to the hub; of the hub, the one that everybody reaches. `None` if there is no such host.
    pub fn address_of(&self, host: &str) -> Option<IpAddr> {
        super::network::address_of(&self.hosts, host)
    }

    /// As a line.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Read back; what is wrong with it if it is none.
    pub fn of_json(line: &str) -> Result<Spec, String> {
        let spec: Spec = serde_json::from_str(line).map_err(|error| error.to_string())?;
        spec.check().map(|()| spec)
    }

    /// What a keeper could not do: an unknown host or process, too many of them, a parameter of the whole machine.
    pub fn check(&self) -> Result<(), String> {
        if self.hosts.len() > HOSTS_MAX || self.processes.len() > PROCESSES_MAX {
            return Err(format!("more than {HOSTS_MAX} hosts or {PROCESSES_MAX} processes"));
        }
        if self.turns.len() > TURNS_MAX {
            return Err(format!("more than {TURNS_MAX} measurements of one stack"));
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
                return Err(format!("{}: there is no host {}", process.name, process.host));
            }
            if process.argv.is_empty() {
                return Err(format!("{}: nothing to run", process.name));
            }
        }
        for action in &self.actions {
            let (Deed::Stop(name) | Deed::Continue(name) | Deed::Kill(name) | Deed::Restart(name) | Deed::Reload(name)) =
                &action.deed
            else {
                continue;
            };
            if !self.processes.iter().any(|process| process.name == *name) {
                return Err(format!("there is no process {name}"));
            }
        }
        Ok(())
    }
}

fn check_host(host: &Host) -> Result<(), String> {
    let name = host.name.as_str();
    let is_named =
        !name.is_empty() && name.len() <= 12 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_named || name.starts_with('-') {
        return Err(format!("host {name:?}: a name is up to 12 letters, digits and -"));
    }
    let of_machine = host.sysctls.iter().find(|(parameter, _)| {
        !parameter.starts_with("net.") || parameter.contains(['/', ' ']) || parameter.contains("..")
    });
    if let Some((parameter, _)) = of_machine {
        return Err(format!("host {name}: {parameter} is the whole machine's; a host has those that begin with net."));
    }
    if name == HUB && host.rate_kbit.is_some() {
        return Err(format!("host {HUB}: it has a link to everybody; give the rate to those at their other ends"));
    }
    if name == HUB && host.delay_us.is_some() {
        return Err(format!("host {HUB}: it has a link to everybody; give the delay to those at their other ends"));
    }
    if host.delay_us.is_some_and(|(there, back)| u128::from(there.max(back)) > DELAY_MAX.as_micros()) {
        return Err(format!("host {name}: a delay is {} s at most", DELAY_MAX.as_secs()));
    }
    if host.cpus.is_some() && host.credits.is_some() {
        return Err(format!("host {name}: either CPUs or credits"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec() -> Spec {
        let process = |name: &str, host: &str| Process {
            name: name.to_owned(),
            host: host.to_owned(),
            argv: vec![name.to_owned(), "-x".into()],
            env: vec![("PORT".into(), "1".into())],
            cpus: vec![0, 3],
            files: Some((30, 30)),
            ready: Ready::Answers(vec!["[::1]:80".parse().unwrap()]),
            ..Process::default()
        };
        Spec {
            dir: "/tmp/x".into(),
            is_isolated: true,
            hosts: vec![
                Host { sysctls: vec![("net.core.somaxconn".into(), "8".into())], ..Host::named(HUB) },
                Host { rate_kbit: Some(100_000), cpus: Some(0.5), memory_mb: Some(64), ..Host::named("app1") },
            ],
            names: vec![("express".into(), "10.99.255.10".parse().unwrap())],
            processes: vec![process("app", "app1"), process("nginx", HUB)],
            edge: "nginx".into(),
            client: process("load", HUB),
            warm: Some(process("load", HUB)),
            actions: vec![Action { at_ms: Some(5), deed: Deed::Stop("nginx".into()) }],
            watches: vec![Watch { name: "alerts".into(), file: "nginx.err".into(), text: "[alert]".into() }],
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

    #[test]
    fn what_a_keeper_could_not_do_is_refused() {
        type Change = fn(&mut Spec);
        let table: &[(Change, &str)] = &[
            (|s| s.processes[0].host = "app2".into(), "app: there is no host app2"),
            (|s| s.client.argv.clear(), "load: nothing to run"),
            (
                |s| s.hosts[1].sysctls = vec![("vm.swappiness".into(), "1".into())],
                "vm.swappiness is the whole machine's",
            ),
            (|s| s.hosts[1].sysctls = vec![("net.../vm/x".into(), "1".into())], "is the whole machine's"),
            (|s| s.hosts[0].rate_kbit = Some(1), "a link to everybody"),
            (|s| s.hosts[1].name = "a b".into(), "a name is up to"),
            (|s| s.hosts[0].delay_us = Some((1, 1)), "give the delay to those"),
            (|s| s.hosts[1].delay_us = Some((1, 10_000_001)), "a delay is 10 s at most"),
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
