//! The figures of one loaded block that rules may read: no totals, no text, no clock.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::course::Course;
use super::good::GoodStatuses;
use super::policies::Policy;
use crate::said::Said;
use crate::watch::account::{Acted, Cache, Paced, UpstreamPeer};
use crate::watch::inside::Inside;

/// Everything that was observed in one block.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Signals {
    /// How long the block was observed, s.
    pub seconds: f64,
    /// Requests sent and answers seen by the client.
    pub load: LoadSignals,
    /// The settings of the configuration.
    pub conf: Conf,
    /// The work of the edge in that time.
    pub edge: EdgeSignals,
    /// Every process, including the client.
    pub processes: Vec<ProcessSignals>,
    /// Every network namespace.
    pub hosts: Vec<HostSignals>,
    /// The machine that they run on.
    pub machine: Machine,
    /// Number of lines in the edge's log by kind ([`crate::watch::errors`]).
    pub said: BTreeMap<String, u64>,
    /// Number of lines that each process wrote, by process and kind ([`crate::watch::errors`]).
    pub wrote: BTreeMap<String, BTreeMap<String, u64>>,
    /// Pools of applications with a size that the user gave to the lab.
    pub pools: Vec<Pool>,
    /// Figures that the probed programs reported about themselves.
    pub told: Vec<ProgramFigures>,
    /// The values that could not be read, a sentence each. Their counts are 0 here, but unknown.
    #[serde(serialize_with = "crate::said::in_english")]
    pub unread: Vec<Said>,
    /// Where threads waited, if `--inside` was given.
    pub inside: Option<Inside>,
    /// The block in windows.
    #[serde(skip_serializing_if = "Course::is_long")]
    pub course: Course,
}

/// A pool of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pool {
    /// The process that has the pool.
    pub process: String,
    /// The environment variable that sets its size.
    pub variable: String,
    /// Its size.
    pub size: u64,
}

/// Figures that a probed program reported about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProgramFigures {
    /// The process.
    pub process: String,
    /// The kind of the program ([`crate::watch::probe::KINDS`]).
    pub kind: String,
    /// The address or place of the probe.
    pub at: String,
    /// Why the probe failed or returned nothing.
    #[serde(serialize_with = "crate::said::in_english")]
    pub failed: Option<Said>,
    /// The figures that are missing, a sentence each.
    #[serde(serialize_with = "crate::said::in_english")]
    pub partly: Vec<Said>,
    /// Its counters: how much they grew while the lab watched.
    pub grew: BTreeMap<String, f64>,
    /// Its levels: the mean and the maximum.
    pub level: BTreeMap<String, (f64, f64)>,
    /// How much the totals of its queries, commands or places grew, by group, the largest first.
    pub totals: BTreeMap<String, Vec<ProgramText>>,
    /// How many of its queries, scripts or waits there were at a moment on the average, by group, the largest first.
    pub seen: BTreeMap<String, Vec<ProgramText>>,
    /// How long it was watched, s.
    pub seconds: f64,
}

/// A query, a command or a script of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProgramText {
    /// The text, without literals and bounded.
    pub text: String,
    /// Its numbers; the first is the one to compare by.
    pub numbers: Vec<f64>,
    /// The largest number of one of them.
    pub most: Option<f64>,
}

/// Requests sent and answers seen by the client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadSignals {
    /// Requests a second that were asked for. `None` for a closed loop and for a script.
    pub offered: Option<f64>,
    /// The time for sending them, s.
    pub length_s: f64,
    /// Whether the requests accept compressed answers. `None`: unknown, for a script.
    pub accepts_gzip: Option<bool>,
    /// Every request is a GET. `None`: unknown, for a script.
    pub is_get: Option<bool>,
    /// The clients are not the lab's: the edge's account is all that is known of the requests.
    pub is_outside: bool,
    /// A closed loop: each connection sends its next request as soon as it has an answer.
    pub is_closed: bool,
    /// Connections of a load on one URL.
    pub connections: u64,
    /// Requests, or messages, that were sent.
    pub sent: u64,
    /// Requests that got an answer with any status, and messages of other protocols.
    pub answered: u64,
    /// The good answers among them.
    pub well: u64,
    /// The statuses that count as good.
    pub good: GoodStatuses,
    /// Failures by name: statuses that are not good, and errors of the client.
    pub errors: BTreeMap<String, u64>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Latencies of responses, ms: mean, p50, p95, p99, max.
    pub ms: [f64; 5],
    /// The mean time from the moment a request was due until it was sent: all connections of the load waited, ms.
    pub unsent_ms: f64,
    /// Histogram of latencies: ms and count. Each bucket is about 5 % wide.
    pub shape: Vec<(f64, u64)>,
    /// The time of the first failure, s.
    pub first_error_s: Option<f64>,
    /// Answers a second, in windows.
    pub strip: Vec<f64>,
    /// Requests sent in each window, as long as there were requests to send.
    pub sent_strip: Vec<f64>,
    /// Requests in flight at the end of each of these windows.
    pub flight: Vec<f64>,
    /// The median latency of each window that has one, ms.
    pub medians: Vec<f64>,
    /// Bytes of the bodies of all answers.
    pub bytes: u64,
    /// Work that the load itself left undone: arrivals that did not begin, virtual users that did not finish.
    pub incomplete: Vec<String>,
    /// Why no conclusion is allowed: limits of the load generator, or of the machine.
    #[serde(serialize_with = "crate::said::in_english")]
    pub spoiled: Vec<Said>,
    /// Cautions for the use of these figures.
    #[serde(serialize_with = "crate::said::in_english")]
    pub cautions: Vec<Said>,
    /// For scripts: successful WebSocket upgrades, and attempts.
    pub upgrades: (u64, u64),
    /// Messages of WebSocket and Socket.IO.
    pub messages: Messages,
    /// Requests and messages that the script offers, if its plan shows it.
    pub planned: Option<f64>,
    /// The script's virtual users.
    pub users: UserCounts,
    /// How long the sessions of the script's users took: a quantile, and its value in ms.
    pub sessions: Vec<(f64, f64)>,
}

/// Messages of WebSocket and Socket.IO. A message is good if it was sent and, where the script waits for an answer or an acknowledgement,
/// that came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Messages {
    /// Messages sent.
    pub sent: u64,
    /// The good ones of them.
    pub good: u64,
    /// Messages of servers that a step took.
    pub received: u64,
}

/// The virtual users of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UserCounts {
    /// Users that began.
    pub created: u64,
    /// Users that went through their whole flow.
    pub completed: u64,
    /// Users that failed in it, and sent no more.
    pub failed: u64,
    /// Users that did not begin, because `maxVusers` of them were there.
    pub skipped: u64,
}

/// The settings of the configuration, as far as rules need them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conf {
    /// weir serves the configuration. Its defaults differ from nginx's.
    pub is_weir: bool,
    /// `worker_processes`. Without it, nginx's default is 1.
    pub worker_processes: Option<String>,
    /// `worker_connections`.
    pub worker_connections: Option<u64>,
    /// `worker_rlimit_nofile`.
    pub worker_rlimit_nofile: Option<u64>,
    /// The largest `keepalive` of an upstream.
    pub keepalive: Option<u64>,
    /// Upstream connections are kept if there is a pool: HTTP/1.1, and no `Connection: close`.
    pub can_keep: bool,
    /// The smallest `keepalive_requests` of an upstream.
    pub upstream_requests: Option<u64>,
    /// The smallest `keepalive_requests` for clients.
    pub client_requests: Option<u64>,
    /// The conditions of a `proxy_next_upstream`. `None`: the default, `error timeout`.
    pub next_upstream: Option<Vec<String>>,
    /// `proxy_connect_timeout`, `proxy_read_timeout` and `proxy_send_timeout`: the shortest value of each, ms.
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
    /// The largest `gzip_comp_level`; 0 if none is set, which means 1.
    pub gzip_level: u64,
    /// There is an `upstream` block.
    pub has_upstream: bool,
    /// The first address in a `proxy_pass` that is not the name of an `upstream` block.
    pub passed: Option<String>,
    /// A `proxy_pass` asks over TLS.
    pub passes_tls: bool,
    /// The servers of the largest upstream, as written, without `down` and `backup` servers.
    pub servers: Vec<String>,
    /// The servers of each `upstream` block, by their names in the edge's account.
    pub groups: Vec<BTreeSet<String>>,
    /// Statements that refuse or delay requests on purpose.
    pub policies: Vec<Policy>,
    /// The first `auth_request` and the first `mirror`.
    pub subrequests: Vec<Policy>,
    /// Statements that take servers out of use because they fail: `max_fails` of a server that is not alone in its
    /// upstream, `health_check`.
    pub outages: Vec<Policy>,
    /// The rules of the cache.
    pub cache: CacheConf,
    /// Names are resolved at run time (`resolver`).
    pub has_resolver: bool,
}

/// The statements about a cache that decide what it stores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheConf {
    /// The last `proxy_cache_key`, or that of another module.
    pub key: Option<String>,
    /// The fields of `proxy_ignore_headers`, in lower case.
    pub ignored: Vec<String>,
    /// A lifetime is set (`proxy_cache_valid`).
    pub has_valid: bool,
    /// The first `proxy_no_cache` or `proxy_cache_bypass`, with its place.
    pub excluded: Option<Policy>,
    /// The largest `proxy_cache_min_uses`.
    pub min_uses: u64,
}

/// The work of the edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EdgeSignals {
    /// The edge reported its account.
    pub is_known: bool,
    /// Clients' connections accepted.
    pub accepted: u64,
    /// Connections dropped because the connection table was full.
    pub dropped: u64,
    /// Most open connections.
    pub active_max: u64,
    /// Most idle connections.
    pub idle_max: u64,
    /// Requests.
    pub requests: u64,
    /// TLS handshakes, and resumed ones.
    pub handshakes: u64,
    /// See `handshakes`.
    pub resumed: u64,
    /// Servers of upstreams.
    pub peers: BTreeMap<String, UpstreamPeer>,
    /// Requests that used an upstream.
    pub exchanges: u64,
    /// Tries: attempts at a server of an upstream.
    pub tries: u64,
    /// Connections opened to upstreams, as weir or the kernel counted them.
    pub opened: Option<u64>,
    /// Caches.
    pub cache: Cache,
    /// For each step, how often it ran and how long it took in total, µs.
    pub steps: BTreeMap<String, (u64, u64)>,
    /// Limits by kind and owner: highest use, limit, how often the limit was met.
    pub limits: BTreeMap<String, (f64, f64, u64)>,
    /// Failures, by the edge's names for them.
    pub errors: BTreeMap<String, u64>,
    /// Answers that a rate held back.
    pub paced: Paced,
    /// Effects of policies, by directive, with the zone if it is known.
    pub policies: BTreeMap<String, Acted>,
    /// Answers with status 400 or higher that the edge made itself.
    pub own: BTreeMap<u16, u64>,
    /// Answers with status 400 or higher that came from servers.
    pub given: BTreeMap<u16, u64>,
    /// Requests for which the upstream had no live server.
    pub no_server: u64,
    /// Lives of upgraded connections that ended in the block: ms, rounded down to two digits, and their number.
    pub lives: BTreeMap<u64, u64>,
}

/// The role of a process in the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Serves the configuration.
    Edge,
    /// Sends the load.
    Client,
    /// Listens on an address that the edge uses as an upstream.
    #[default]
    App,
    /// None of these: a server that applications use, or any other process in the stack.
    Beside,
}

/// A process with its descendants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessSignals {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// What it is.
    pub role: Role,
    /// CPUs that it used.
    pub cpu: f64,
    /// The part of `cpu` of threads and processes that have ended: no live thread has it.
    pub ended: f64,
    /// CPUs that it may use: the CPUs of its affinity mask, or its host's quota.
    pub cpus: f64,
    /// Its host's quota, if there is one.
    pub quota: Option<f64>,
    /// The numbers of the CPUs that it may run on.
    pub pinned: Vec<usize>,
    /// The addresses that it listens on.
    pub listens: Vec<String>,
    /// Its threads, busiest first: the share of a CPU that each ran, and the share of time that it waited for a CPU.
    pub threads: Vec<(f64, f64)>,
    /// The busiest thread is the main thread.
    pub is_main_busiest: bool,
    /// It is Node.js.
    pub is_node: bool,
    /// The size of the pool of threads of Node.js (libuv), which looks names up and reads files. `None`: it has no such pool.
    pub uv_threads: Option<u64>,
    /// Most open descriptors, and their limit.
    pub fds: (u64, u64),
    /// Share of the quota's periods in which it was throttled.
    pub throttled: f64,
    /// The same, in quarters of the block.
    pub throttled_strip: Vec<f64>,
    /// Bytes swapped out during the block.
    pub swapped: u64,
    /// The limit of its cgroup's memory, if there is one.
    pub memory_max: Option<u64>,
    /// How often its cgroup's memory reached its limit.
    pub memory_full: u64,
    /// How often the kernel killed a process of its cgroup for that.
    pub memory_killed: u64,
    /// Share of the samples of its threads' states in which a thread waited for a disk.
    pub stuck: f64,
    /// Share of the samples in which a thread of the edge waited until somebody reads from a full pipe or terminal.
    pub unread: f64,
    /// Involuntary context switches of its main threads, a second.
    pub preempted: f64,
}

impl ProgramFigures {
    /// Growth of a counter, a second; 0 if it was not reported.
    pub fn rate(&self, name: &str) -> f64 {
        self.grew.get(name).copied().unwrap_or(0.0) / self.seconds.max(1e-9)
    }

    /// The mean of a level, if it was reported.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.level.get(name).map(|(mean, _)| *mean)
    }

    /// The maximum of a level, if it was reported.
    pub fn most(&self, name: &str) -> Option<f64> {
        self.level.get(name).map(|(_, most)| *most)
    }
}

impl ProcessSignals {
    /// How much of its CPUs it used, 0 to 1.
    pub fn usage(&self) -> f64 {
        if self.cpus > 0.0 { self.cpu / self.cpus } else { 0.0 }
    }

    /// Whether both may run on one CPU.
    pub fn is_beside(&self, other: &ProcessSignals) -> bool {
        self.pinned.iter().any(|cpu| other.pinned.contains(cpu))
    }

    /// How much of its time the busiest thread wanted a CPU: the time that it ran plus the time that it waited for
    /// one.
    pub fn wanted(&self) -> f64 {
        self.threads.first().map_or(0.0, |(ran, waited)| (ran + waited).min(1.0))
    }
}

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSignals {
    /// Its name.
    pub name: String,
    /// How much the kernel's counters grew.
    pub counters: BTreeMap<String, u64>,
    /// By address: most connections that waited to be accepted, and the size of the queue.
    pub queues: BTreeMap<String, (u64, u64)>,
    /// By address: share of samples in which two or more connections waited to be accepted.
    pub lasting: BTreeMap<String, f64>,
    /// By address: connections that were turned away because the accept queue was full.
    pub turned_away: BTreeMap<String, u64>,
    /// Open sockets towards a name server, mean over the samples.
    pub asking_names: f64,
    /// Queries to name servers: the mean number without an answer yet over the samples, and how many were sent.
    pub questions: (f64, u64),
    /// By remote address: most local ports in use, and how many of them were in TIME_WAIT.
    pub held: BTreeMap<String, (u64, u64)>,
    /// Number of local ports.
    pub ports: u64,
    /// Bits a second on its busiest link, in or out.
    pub link_bits: f64,
    /// It sends on that link more than it receives.
    pub link_sends: bool,
    /// The capacity of that link.
    pub link_max: Option<f64>,
    /// This is the edge's network. The answers to the client leave through it.
    pub is_hub: bool,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// CPUs that the stack may use.
    pub cpus: f64,
    /// Shares of these CPUs: `busy` is work without interrupts, `interrupts` is time in interrupts, `steal` is time
    /// that the hypervisor took.
    pub busy: f64,
    /// See `busy`.
    pub interrupts: f64,
    /// See `busy`.
    pub steal: f64,
    /// Work of processes outside the stack.
    pub foreign: f64,
    /// Share of the block in which some task was stalled, by `cpu`, `memory`, `io`.
    pub pressure: BTreeMap<String, f64>,
}

impl LoadSignals {
    /// Answers whose status was good and whose end did not come.
    pub fn cut_off(&self) -> u64 {
        let good = self.statuses.iter().filter(|(status, _)| self.good.has(**status)).map(|(_, count)| count);
        good.sum::<u64>().saturating_sub(self.well)
    }
}

impl Signals {
    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.load.errors.values().sum::<u64>().min(self.load.sent)
    }

    /// The share of failed requests.
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

    /// The part of the offered requests that got a good answer. The time of the last answers does not count against
    /// it. 1 for a load without a rate.
    pub fn reached(&self) -> f64 {
        let Some(offered) = self.load.offered else { return 1.0 };
        let seconds = self.load.length_s.max(self.seconds - self.load.ms[2] / 1000.0);
        self.load.well as f64 / (offered * seconds).max(1e-9)
    }

    /// The process of the edge.
    pub fn edge_process(&self) -> Option<&ProcessSignals> {
        self.processes.iter().find(|process| process.role == Role::Edge)
    }

    /// The applications behind the edge.
    pub fn apps(&self) -> impl Iterator<Item = &ProcessSignals> {
        self.processes.iter().filter(|process| process.role == Role::App)
    }

    /// The applications, and the servers that the applications use: processes that listen and have connections held
    /// towards them.
    pub fn servers(&self) -> impl Iterator<Item = &ProcessSignals> {
        let is_asked = |process: &ProcessSignals| {
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

    /// The reports of the programs of one kind.
    pub fn told_by(&self, kind: &str) -> impl Iterator<Item = &ProgramFigures> {
        self.told.iter().filter(move |told| told.kind == kind && told.failed.is_none())
    }

    /// The edge's network.
    pub fn hub(&self) -> Option<&HostSignals> {
        self.hosts.iter().find(|host| host.is_hub)
    }

    /// How many lines of a kind the edge logged.
    pub fn said(&self, kind: &str) -> u64 {
        self.said.get(kind).copied().unwrap_or(0)
    }

    /// The number of failures with one of these names.
    pub fn errors_of(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.load.errors.get(*name)).sum()
    }

    /// Tries that failed in one way (`closed`, `refused`). The edge's log and weir's account each count all of them.
    pub fn tries_failed(&self, way: &str) -> u64 {
        self.said(way).max(self.edge.errors.get(&format!("upstream {way}")).copied().unwrap_or(0))
    }

    /// Tries on connections that had carried a request before. `None` if the opened connections were not counted.
    pub fn kept_tries(&self) -> Option<u64> {
        Some(self.edge.tries.saturating_sub(self.edge.opened?))
    }

    /// The mean of a step for each request of the client, ms.
    pub fn step_ms(&self, name: &str) -> f64 {
        let (_, micros) = self.edge.steps.get(name).copied().unwrap_or_default();
        let requests = self.edge.requests.max(self.load.sent).max(1);
        micros as f64 / 1000.0 / requests as f64
    }

    /// New upstream connections for each try. `None` if there was no try.
    pub fn opened_share(&self) -> Option<f64> {
        let opened = self.edge.opened?;
        (self.edge.tries > 0).then(|| (opened as f64 / self.edge.tries as f64).min(1.0))
    }

    /// The share of answers that took about this many ms: from 3 % less to 10 % more.
    pub fn share_near(&self, ms: f64) -> f64 {
        self.share_between(ms * 0.97, ms * 1.10)
    }

    /// The share of sessions that took about this many ms, as far as their quantiles show it: at least so many.
    pub fn sessions_near(&self, ms: f64) -> f64 {
        let near = self.load.sessions.iter().filter(|(_, value)| (ms * 0.97..=ms * 1.10).contains(value));
        let parts: Vec<f64> = near.map(|(part, _)| *part).collect();
        parts.last().zip(parts.first()).map_or(0.0, |(last, first)| last - first)
    }

    /// The share of upgraded connections that lived about this many ms.
    pub fn lives_near(&self, ms: f64) -> f64 {
        let all: u64 = self.edge.lives.values().sum();
        let near = self.edge.lives.iter().filter(|(life, _)| (ms * 0.97..=ms * 1.10).contains(&(**life as f64)));
        near.map(|(_, count)| count).sum::<u64>() as f64 / all.max(1) as f64
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
    /// A block without any shortage: 200 requests a second, an nginx, an application.
    pub(crate) fn quiet() -> Signals {
        let process = |name: &str, role, cpu: f64| ProcessSignals {
            name: name.to_owned(),
            host: "edge".to_owned(),
            role,
            cpu,
            cpus: 1.0,
            pinned: vec![0],
            threads: vec![(cpu, 0.01)],
            fds: (40, 1024),
            ..ProcessSignals::default()
        };
        let peer = UpstreamPeer { requests: 2000, header: (2000, 4_000_000), ..UpstreamPeer::default() };
        Signals {
            seconds: 10.0,
            load: LoadSignals {
                offered: Some(200.0),
                length_s: 10.0,
                connections: 16,
                sent: 2000,
                answered: 2000,
                well: 2000,
                statuses: [(200, 2000)].into(),
                ms: [3.0, 2.8, 4.0, 6.0, 9.0],
                unsent_ms: 0.0,
                shape: vec![(2.5, 1000), (3.0, 900), (5.0, 100)],
                strip: vec![200.0; 20],
                sent_strip: vec![100.0; 20],
                flight: vec![1.0; 20],
                medians: vec![2.8; 20],
                bytes: 2_000_000,
                ..LoadSignals::default()
            },
            conf: Conf { worker_connections: Some(1024), can_keep: true, keepalive: Some(32), ..Conf::default() },
            edge: EdgeSignals {
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
                ..EdgeSignals::default()
            },
            processes: vec![
                process("edge", Role::Edge, 0.2),
                process("app", Role::App, 0.3),
                process("load", Role::Client, 0.1),
            ],
            hosts: vec![HostSignals {
                name: "edge".to_owned(),
                ports: 28_232,
                held: [("127.0.0.1:3000".to_owned(), (20, 2))].into(),
                queues: [("0.0.0.0:80".to_owned(), (0, 511))].into(),
                is_hub: true,
                ..HostSignals::default()
            }],
            machine: Machine { cpus: 2.0, busy: 0.3, ..Machine::default() },
            said: BTreeMap::new(),
            wrote: BTreeMap::new(),
            pools: Vec::new(),
            told: Vec::new(),
            unread: Vec::new(),
            inside: None,
            course: Course::default(),
        }
    }
}
