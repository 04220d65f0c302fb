//! What one loaded block showed, as figures that rules may look at: no totals, no text, no clock.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::good::Good;
use super::policies::Policy;
use crate::watch::edge::{Acted, Cache, Peer};
use crate::watch::inside::Inside;

/// Everything that was seen of one block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Signals {
    /// How long it was watched.
    pub seconds: f64,
    /// What the client sent and saw.
    pub load: Load,
    /// What the configuration says.
    pub conf: Conf,
    /// What the edge did in that time.
    pub edge: Edge,
    /// Every process, the client's among them.
    pub processes: Vec<Process>,
    /// Every network.
    pub hosts: Vec<Host>,
    /// The machine they run on.
    pub machine: Machine,
    /// Kinds of lines in the edge's log ([`crate::watch::errors`]).
    pub said: BTreeMap<String, u64>,
    /// Kinds of lines that processes wrote ([`crate::watch::errors`]), by process.
    pub wrote: BTreeMap<String, BTreeMap<String, u64>>,
    /// Pools of applications whose sizes the lab was told.
    pub pools: Vec<Pool>,
    /// What processes told of themselves when they were asked.
    pub told: Vec<Told>,
    /// What could not be read, a sentence each. Its counts stand at nothing here, and are not known.
    pub unread: Vec<String>,
    /// Where threads waited, if that was asked for.
    pub inside: Option<Inside>,
}

/// A pool of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pool {
    /// Whose it is.
    pub process: String,
    /// The environment variable that says its size.
    pub variable: String,
    /// Its size.
    pub size: u64,
}

/// What a process told of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// The process.
    pub process: String,
    /// What kind of program it is ([`crate::watch::probe::KINDS`]).
    pub kind: String,
    /// Where it was asked.
    pub at: String,
    /// Why it could not be asked, or told nothing.
    pub failed: Option<String>,
    /// What of it is not known, a sentence each.
    pub partly: Vec<String>,
    /// What it counts: by how much that grew while it was looked at.
    pub grew: BTreeMap<String, f64>,
    /// What it has: the mean and the most.
    pub level: BTreeMap<String, (f64, f64)>,
    /// How long it was looked at, s.
    pub seconds: f64,
}

/// What the client sent and saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Requests a second that were asked for; none of a closed loop and of a script.
    pub offered: Option<f64>,
    /// How long they were to be sent, s.
    pub length_s: f64,
    /// Its requests say that an answer may be compressed; unknown of a script.
    pub accepts_gzip: Option<bool>,
    /// Each asks again as soon as it is answered.
    pub is_closed: bool,
    /// Connections of a URL's load.
    pub connections: u64,
    /// Requests, or messages.
    pub sent: u64,
    /// Answered, with whatever status; messages of other protocols among them.
    pub answered: u64,
    /// Of those, the good ones.
    pub well: u64,
    /// Which are good.
    pub good: Good,
    /// Failed, by name: statuses that are not good, errors of the client.
    pub errors: BTreeMap<String, u64>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Latencies of responses, ms: mean, p50, p95, p99, max.
    pub ms: [f64; 5],
    /// Latencies by their size, ms, and how many; each bucket about 5 % wide.
    pub shape: Vec<(f64, u64)>,
    /// When the first request failed, s.
    pub first_error_s: Option<f64>,
    /// Answers a second, in windows.
    pub strip: Vec<f64>,
    /// Requests sent in each window of the time in which there was something to send.
    pub sent_strip: Vec<f64>,
    /// Requests in flight at the end of each of these windows.
    pub flight: Vec<f64>,
    /// The median latency of each window that has one, ms.
    pub medians: Vec<f64>,
    /// Bytes of the bodies of all answers.
    pub bytes: u64,
    /// What the load's own arithmetic left undone: arrivals that were not begun, virtual users unfinished.
    pub incomplete: Vec<String>,
    /// Why nothing may be said: the generator's own limits, the machine's.
    pub spoiled: Vec<String>,
    /// What is to be known when it is used.
    pub cautions: Vec<String>,
    /// Answers of WebSocket upgrades, and how many were tried; of scripts.
    pub upgrades: (u64, u64),
}

/// What the configuration says, as far as rules need it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conf {
    /// Served by weir, whose defaults are others than nginx's.
    pub is_weir: bool,
    /// `worker_processes`; nginx's own without it is 1.
    pub worker_processes: Option<String>,
    /// `worker_connections`.
    pub worker_connections: Option<u64>,
    /// `worker_rlimit_nofile`.
    pub worker_rlimit_nofile: Option<u64>,
    /// The largest `keepalive` of an upstream.
    pub keepalive: Option<u64>,
    /// Connections to upstreams are kept where there is a pool: HTTP/1.1, and no `Connection: close`.
    pub can_keep: bool,
    /// `proxy_connect_timeout`, `proxy_read_timeout`, `proxy_send_timeout`, the shortest that is set, ms.
    pub timeouts: BTreeMap<String, u64>,
    /// `backlog=`.
    pub backlog: Option<u64>,
    /// `proxy_cache` is on somewhere.
    pub has_cache: bool,
    /// `proxy_cache_lock on`.
    pub has_lock: bool,
    /// `proxy_cache_use_stale … updating`.
    pub has_stale_updating: bool,
    /// `proxy_cache_background_update on`.
    pub has_background_update: bool,
    /// A server listens with TLS.
    pub has_tls: bool,
    /// An upgrade is forwarded.
    pub has_upgrade: bool,
    /// A peer is named `localhost`.
    pub names_localhost: bool,
    /// `access_log` with a buffer, or none.
    pub has_buffered_log: bool,
    /// `gzip on`.
    pub has_gzip: bool,
    /// The largest `gzip_comp_level`; 0 where none is set, which is 1.
    pub gzip_level: u64,
    /// There is an `upstream` block.
    pub has_upstream: bool,
    /// The first address that a `proxy_pass` names itself, without an `upstream` block of that name.
    pub passed: Option<String>,
    /// The servers of the largest upstream, as written, those that are down or stand by left out.
    pub servers: Vec<String>,
    /// What refuses or delays requests on purpose.
    pub policies: Vec<Policy>,
    /// Names are resolved while it runs (`resolver`).
    pub has_resolver: bool,
}

/// What the edge did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Edge {
    /// It answered when it was asked for its account.
    pub is_known: bool,
    /// Clients' connections accepted.
    pub accepted: u64,
    /// Dropped for want of a slot.
    pub dropped: u64,
    /// Open at most.
    pub active_max: u64,
    /// Idle at most.
    pub idle_max: u64,
    /// Requests.
    pub requests: u64,
    /// TLS handshakes, and resumed ones.
    pub handshakes: u64,
    /// See `handshakes`.
    pub resumed: u64,
    /// Servers of upstreams.
    pub peers: BTreeMap<String, Peer>,
    /// Requests that asked an upstream.
    pub exchanges: u64,
    /// How often one was asked.
    pub tries: u64,
    /// Connections opened to upstreams; by weir's count, or the kernel's.
    pub opened: Option<u64>,
    /// Caches.
    pub cache: Cache,
    /// How many, and microseconds together, of each step.
    pub steps: BTreeMap<String, (u64, u64)>,
    /// Limits by kind and whose: used at most, limit, how often met.
    pub limits: BTreeMap<String, (f64, f64, u64)>,
    /// What failed, by the edge's names.
    pub errors: BTreeMap<String, u64>,
    /// What policies did, by the directive and its zone where that is known.
    pub policies: BTreeMap<String, Acted>,
    /// Answers from 400 on that the edge made itself.
    pub own: BTreeMap<u16, u64>,
    /// Answers from 400 on that servers gave.
    pub given: BTreeMap<u16, u64>,
    /// Requests for which the upstream had no server.
    pub no_server: u64,
}

/// What a process is in the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Serves the configuration.
    Edge,
    /// Sends the load.
    Client,
    /// Listens where the edge asks an upstream.
    #[default]
    App,
    /// Neither: what applications ask, or whoever else runs there.
    Beside,
}

/// A process with its descendants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// What it is.
    pub role: Role,
    /// CPUs it used.
    pub cpu: f64,
    /// CPUs it may use: those it may run on, or its host's quota.
    pub cpus: f64,
    /// Its host's quota, where there is one.
    pub quota: Option<f64>,
    /// The numbers of the CPUs it may run on.
    pub pinned: Vec<usize>,
    /// Where it listens.
    pub listens: Vec<String>,
    /// Of its threads, busiest first: share of a CPU they ran, and share of the time they waited for one.
    pub threads: Vec<(f64, f64)>,
    /// The busiest is a first thread.
    pub is_main_busiest: bool,
    /// Node.js.
    pub is_node: bool,
    /// Descriptors at most, and the limit.
    pub fds: (u64, u64),
    /// Share of the quota's periods in which it had to wait.
    pub throttled: f64,
    /// The same, in quarters of the block.
    pub throttled_strip: Vec<f64>,
    /// Bytes swapped out in this time.
    pub swapped: u64,
    /// How often its memory reached the limit of its group.
    pub memory_full: u64,
    /// How often one of its group was killed for that.
    pub memory_killed: u64,
    /// Share of the looks at its threads' states at which one of them waited for a disk.
    pub stuck: f64,
    /// How often its first threads were taken off their CPUs, a second.
    pub preempted: f64,
}

impl Told {
    /// By how much something grew a second; 0 of what was not told.
    pub fn rate(&self, name: &str) -> f64 {
        self.grew.get(name).copied().unwrap_or(0.0) / self.seconds.max(1e-9)
    }

    /// The mean of a level, if it was told.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.level.get(name).map(|(mean, _)| *mean)
    }

    /// The most of a level, if it was told.
    pub fn most(&self, name: &str) -> Option<f64> {
        self.level.get(name).map(|(_, most)| *most)
    }
}

impl Process {
    /// How much of its CPUs it used, 0 to 1.
    pub fn usage(&self) -> f64 {
        if self.cpus > 0.0 { self.cpu / self.cpus } else { 0.0 }
    }

    /// Whether both may run on one CPU.
    pub fn is_beside(&self, other: &Process) -> bool {
        self.pinned.iter().any(|cpu| other.pinned.contains(cpu))
    }

    /// How much the busiest thread wanted of its time: what it ran and what it waited.
    pub fn wanted(&self) -> f64 {
        self.threads.first().map_or(0.0, |(ran, waited)| (ran + waited).min(1.0))
    }
}

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The kernel's counters, what they grew by.
    pub counters: BTreeMap<String, u64>,
    /// The most that waited to be accepted, and how many may, by address.
    pub queues: BTreeMap<String, (u64, u64)>,
    /// The share of looks at which two or more waited to be accepted, by address.
    pub lasting: BTreeMap<String, f64>,
    /// Connections that a listening socket's full queue turned away, by address.
    pub turned_away: BTreeMap<String, u64>,
    /// Sockets that are open towards a name server: the mean over the looks.
    pub asking_names: f64,
    /// Questions to name servers that wait for their answer: the mean over the looks, and how many were sent.
    pub questions: (f64, u64),
    /// Local ports held towards an address at most, and those that rested then.
    pub held: BTreeMap<String, (u64, u64)>,
    /// Local ports there are.
    pub ports: u64,
    /// Bits a second in and out of its busiest link.
    pub link_bits: f64,
    /// What that may carry.
    pub link_max: Option<f64>,
    /// Whose outgoing side the client's answers leave by.
    pub is_hub: bool,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// CPUs of the stack.
    pub cpus: f64,
    /// Shares of them: at work, in interrupts, stolen; and the stack's own work.
    pub busy: f64,
    /// See `busy`.
    pub interrupts: f64,
    /// See `busy`.
    pub steal: f64,
    /// Work of others.
    pub foreign: f64,
    /// Share of the block in which some task waited, by `cpu`, `memory`, `io`.
    pub pressure: BTreeMap<String, f64>,
}

impl Signals {
    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.load.errors.values().sum::<u64>().min(self.load.sent)
    }

    /// Their share.
    pub fn failed_share(&self) -> f64 {
        self.failed() as f64 / (self.load.sent.max(1)) as f64
    }

    /// Good answers a second.
    pub fn goodput(&self) -> f64 {
        self.load.well as f64 / self.seconds.max(1e-9)
    }

    /// Requests sent a second.
    pub fn sent_rate(&self) -> f64 {
        self.load.sent as f64 / self.load.length_s.max(1e-9)
    }

    /// The part of what was offered whose answer was good. The last answers take their time: that is not counted against
    /// them. 1 of what has no rate.
    pub fn reached(&self) -> f64 {
        let Some(offered) = self.load.offered else { return 1.0 };
        let seconds = self.load.length_s.max(self.seconds - self.load.ms[2] / 1000.0);
        self.load.well as f64 / (offered * seconds).max(1e-9)
    }

    /// The edge.
    pub fn edge_process(&self) -> Option<&Process> {
        self.processes.iter().find(|process| process.role == Role::Edge)
    }

    /// Those behind it.
    pub fn apps(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|process| process.role == Role::App)
    }

    /// Those behind it, and those whom these ask: processes that listen, and towards whom connections are held.
    pub fn servers(&self) -> impl Iterator<Item = &Process> {
        let is_asked = |process: &Process| {
            let port = |at: &str| at.rsplit_once(':').map(|(_, port)| port.to_owned());
            let held = |wanted: &str| {
                self.hosts.iter().flat_map(|host| host.held.keys()).any(|at| port(at).as_deref() == Some(wanted))
            };
            process.listens.iter().any(|at| at.starts_with("unix:") || port(at).is_some_and(|port| held(&port)))
        };
        self.processes
            .iter()
            .filter(move |process| process.role == Role::App || (process.role == Role::Beside && is_asked(process)))
    }

    /// What programs of a kind told.
    pub fn told_by(&self, kind: &str) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(move |told| told.kind == kind && told.failed.is_none())
    }

    /// The edge's network.
    pub fn hub(&self) -> Option<&Host> {
        self.hosts.iter().find(|host| host.is_hub)
    }

    /// How many lines of a kind the edge logged.
    pub fn said(&self, kind: &str) -> u64 {
        self.said.get(kind).copied().unwrap_or(0)
    }

    /// Failures of requests whose name is one of these.
    pub fn errors_of(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.load.errors.get(*name)).sum()
    }

    /// What the edge counted as this.
    pub fn edge_errors(&self, part: &str) -> u64 {
        self.edge.errors.iter().filter(|(name, _)| name.contains(part)).map(|(_, count)| count).sum()
    }

    /// The mean of a step for each request of the client, ms.
    pub fn step_ms(&self, name: &str) -> f64 {
        let (_, micros) = self.edge.steps.get(name).copied().unwrap_or_default();
        let requests = self.edge.requests.max(self.load.sent).max(1);
        micros as f64 / 1000.0 / requests as f64
    }

    /// New connections to upstreams for each try; `None` where nothing was tried.
    pub fn opened_share(&self) -> Option<f64> {
        let opened = self.edge.opened?;
        (self.edge.tries > 0).then(|| (opened as f64 / self.edge.tries as f64).min(1.0))
    }

    /// The share of answers that took about so many ms, within a tenth.
    pub fn share_near(&self, ms: f64) -> f64 {
        self.share_between(ms * 0.97, ms * 1.10)
    }

    /// The share of answers between two latencies.
    pub fn share_between(&self, from: f64, to: f64) -> f64 {
        let all: u64 = self.load.shape.iter().map(|(_, count)| count).sum();
        let near: u64 = self.load.shape.iter().filter(|(ms, _)| (from..=to).contains(ms)).map(|(_, count)| count).sum();
        near as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
impl Signals {
    /// A block in which nothing is short: 200 requests a second, an nginx, an application.
    pub(crate) fn quiet() -> Signals {
        let process = |name: &str, role, cpu: f64| Process {
            name: name.to_owned(),
            host: "edge".to_owned(),
            role,
            cpu,
            cpus: 1.0,
            pinned: vec![0],
            threads: vec![(cpu, 0.01)],
            fds: (40, 1024),
            ..Process::default()
        };
        let peer = Peer { requests: 2000, opened: None, bad: 0, header: (2000, 4_000_000) };
        Signals {
            seconds: 10.0,
            load: Load {
                offered: Some(200.0),
                length_s: 10.0,
                connections: 16,
                sent: 2000,
                answered: 2000,
                well: 2000,
                statuses: [(200, 2000)].into(),
                ms: [3.0, 2.8, 4.0, 6.0, 9.0],
                shape: vec![(2.5, 1000), (3.0, 900), (5.0, 100)],
                strip: vec![200.0; 20],
                sent_strip: vec![100.0; 20],
                flight: vec![1.0; 20],
                medians: vec![2.8; 20],
                bytes: 2_000_000,
                ..Load::default()
            },
            conf: Conf { worker_connections: Some(1024), can_keep: true, keepalive: Some(32), ..Conf::default() },
            edge: Edge {
                is_known: true,
                accepted: 16,
                active_max: 20,
                idle_max: 10,
                requests: 2000,
                peers: [("127.0.0.1:3000".to_owned(), peer)].into(),
                exchanges: 2000,
                tries: 2000,
                opened: Some(10),
                steps: [("connect".to_owned(), (2000, 10_000)), ("wait".to_owned(), (2000, 4_000_000))].into(),
                ..Edge::default()
            },
            processes: vec![
                process("edge", Role::Edge, 0.2),
                process("app", Role::App, 0.3),
                process("load", Role::Client, 0.1),
            ],
            hosts: vec![Host {
                name: "edge".to_owned(),
                ports: 28_232,
                held: [("127.0.0.1:3000".to_owned(), (20, 2))].into(),
                queues: [("0.0.0.0:80".to_owned(), (0, 511))].into(),
                is_hub: true,
                ..Host::default()
            }],
            machine: Machine { cpus: 2.0, busy: 0.3, ..Machine::default() },
            said: BTreeMap::new(),
            wrote: BTreeMap::new(),
            pools: Vec::new(),
            told: Vec::new(),
            unread: Vec::new(),
            inside: None,
        }
    }
}
