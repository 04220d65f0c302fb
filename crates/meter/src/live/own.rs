//! weir's data about itself beyond NGINX Plus' objects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use super::canary::Canary;
use super::fleet::FleetView;
use super::protocols::{ProtocolAccount, Quic};

/// Data that NGINX Plus does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weir {
    /// Milliseconds since the process started.
    pub uptime_ms: u64,
    /// Milliseconds that the [`recent`](StepTimes::recent) figures cover; fewer in the first seconds.
    pub recent_ms: u64,
    /// Time of the last reset of all totals; `None`: never.
    pub reset: Option<Timestamp>,
    /// How many configurations weir refused at a reload, since the start.
    pub loads_refused: u64,
    /// Whether the last reload was refused.
    pub is_last_load_refused: bool,
    /// The steps of a request, in the order of [`PATH`]: always all nine.
    pub path: Vec<StepTimes>,
    /// Requests by protocol, in the order of [`PROTOCOLS`](super::PROTOCOLS): always all three.
    pub protocols: Vec<ProtocolAccount>,
    /// QUIC with clients.
    pub quic: Quic,
    /// By server zone, same names as `http.server_zones`.
    pub server_zones: BTreeMap<String, ZoneAccount>,
    /// By location zone.
    pub location_zones: BTreeMap<String, ZoneAccount>,
    /// By group, then peers in the order of `http.upstreams[].peers`.
    pub upstreams: BTreeMap<String, Vec<PeerTimes>>,
    /// The queues of groups, by group; more than `http.upstreams[].queue` has.
    pub queues: BTreeMap<String, QueueAccount>,
    /// Groups whose servers can be changed at run time: those with a `zone`.
    pub changeable: Vec<String>,
    /// By cache.
    pub caches: BTreeMap<String, CacheAccount>,
    /// Upgraded connections.
    pub websockets: WebSockets,
    /// The certificates that servers show to clients, the first to expire first.
    pub certificates: Vec<Certificate>,
    /// Spans for OpenTelemetry.
    pub traces: Traces,
    /// Recorders of `record`, in the order of the file.
    pub recordings: Vec<Recording>,
    /// The canary, or the last one of this process.
    pub canary: Option<Canary>,
    /// The place of this edge in a fleet.
    pub fleet: Option<FleetView>,
    /// Each limit beside its use.
    pub limits: Vec<Limit>,
    /// State of the machine.
    pub host: Host,
    /// The workers' own CPU, same order as `workers`.
    pub workers: Vec<WorkerCpu>,
    /// Errors by class: first the classes of failed requests, then by count.
    pub errors: Vec<ErrorClass>,
    /// Number of names beyond the limit that were counted together as `other`.
    pub names_merged: u64,
}

/// The recorder of one file, with the counts of its run: of the present one, or else of the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// The file, as the configuration names it.
    pub file: String,
    /// Whether it records now.
    pub is_on: bool,
    /// Whether its last run still writes what workers have.
    pub is_ending: bool,
    /// The share of clients that are recorded, from 0 to 1.
    pub share: f64,
    /// When the run began; `None` before the first one.
    pub since: Option<Timestamp>,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// Exchanges of recorded clients, also those that are lost.
    pub exchanges: u64,
    /// Exchanges in the file.
    pub recorded: u64,
    /// The losses.
    pub lost: RecordingLosses,
    /// Messages of WebSockets in the file.
    pub messages: u64,
    /// The size of the file.
    pub bytes: u64,
    /// Its largest size.
    pub max_bytes: u64,
    /// The counts of all runs of the process.
    pub totals: RecordingTotals,
}

/// Exchanges and messages that a recording lacks, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingLosses {
    /// The queue to the thread was full.
    pub queue: u64,
    /// The file had its largest size.
    pub size: u64,
    /// The file could not be written.
    pub writing: u64,
    /// They are larger than a block may be.
    pub large: u64,
}

impl RecordingLosses {
    /// The losses with the words for their reasons.
    pub fn by_reason(&self) -> [(&'static str, u64); 4] {
        [("queue", self.queue), ("size", self.size), ("writing", self.writing), ("large", self.large)]
    }

    /// Adds others.
    pub fn add(&mut self, other: &RecordingLosses) {
        self.queue += other.queue;
        self.size += other.size;
        self.writing += other.writing;
        self.large += other.large;
    }
}

/// The counts of all runs of a recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingTotals {
    /// Exchanges of recorded clients, also those that are lost.
    pub exchanges: u64,
    /// Exchanges that were written.
    pub recorded: u64,
    /// The losses.
    pub lost: RecordingLosses,
}

/// A certificate that servers show to clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Certificate {
    /// The file, or the name of the authority that weir gets it from.
    pub source: String,
    /// Whether weir gets and renews it itself.
    pub is_renewed: bool,
    /// Its hosts; of a certificate without hosts, the names of its subject.
    pub hosts: Vec<String>,
    /// The beginning of its validity; `None` if there is no certificate yet.
    pub begins: Option<Timestamp>,
    /// The end of its validity.
    pub ends: Option<Timestamp>,
    /// When weir acts next: asks the authority when to renew, or renews.
    pub next: Option<Timestamp>,
    /// Failures in a row.
    pub failures: u32,
    /// Why weir's last step failed.
    pub error: Option<String>,
}

impl Certificate {
    /// Seconds from a moment, in milliseconds since 1970, to the end of its validity; negative after the end.
    pub fn seconds_left(&self, now_ms: u64) -> Option<f64> {
        let ends = self.ends?;
        Some((ends.0 as f64 - now_ms as f64) / 1e3)
    }
}

/// The steps of [`Weir::path`].
pub const PATH: [&str; 12] =
    ["accept", "tls", "queue", "auth", "read", "cache", "pool", "connect", "wait", "body", "write", "rate"];

/// One step of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepTimes {
    /// Name of the step, from [`PATH`].
    pub step: String,
    /// Over the last [`recent_ms`](Weir::recent_ms).
    pub recent: Times,
    /// Since the start or a reset.
    pub total: Times,
}

/// How long something took. Quantiles are upper ends of log-linear buckets, at most 12.5 % above the true value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// Number of occurrences.
    pub count: u64,
    /// Sum in microseconds.
    pub sum_us: u64,
    /// The median.
    pub p50_us: u64,
    /// 95 of 100 were at most this long.
    pub p95_us: u64,
    /// 99 of 100 were at most this long.
    pub p99_us: u64,
    /// The longest.
    pub max_us: u64,
}

/// A rate, and durations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneTimes {
    /// Per second, over the last second.
    pub rate: f64,
    /// The highest rate so far.
    pub rate_max: f64,
    /// Over the last [`recent_ms`](Weir::recent_ms).
    pub recent: Times,
    /// Since the start or a reset.
    pub total: Times,
}

impl ZoneTimes {
    /// The quantiles of the last seconds with the totals, as in a Prometheus summary.
    pub fn summary(&self) -> Times {
        Times { count: self.total.count, sum_us: self.total.sum_us, ..self.recent.clone() }
    }
}

/// Data about a zone that NGINX Plus does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneAccount {
    /// Request times, from the first byte of the request to the last of the response.
    #[serde(flatten)]
    pub times: ZoneTimes,
    /// Failed requests: answered with 5xx, cut off after the head because the origin failed, or not answered because
    /// the origin failed. A client that disconnects and a policy that refuses are not failures.
    pub failed: u64,
    /// Requests that a policy of the configuration refused on purpose: `limit_req`, `limit_conn`.
    pub refused: u64,
}

/// The requests that waited for a server of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueAccount {
    /// Requests that waited so far.
    pub waited: u64,
    /// Requests whose timeout passed.
    pub timed_out: u64,
}

/// Times of a peer, and the reasons of its failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerTimes {
    /// Address of the peer.
    pub server: String,
    /// Connections opened to the peer.
    pub opened: u64,
    /// Requests over a kept connection.
    pub reused: u64,
    /// Idle kept connections at this instant.
    pub idle: u64,
    /// Tries that followed a failed one.
    pub retries: u64,
    /// Time to connect, for new connections.
    pub connect: ZoneTimes,
    /// Time to the peer's response head.
    pub header: ZoneTimes,
    /// Time to the end of the peer's response.
    pub response: ZoneTimes,
    /// Failed tries by reason: `timeout`, `refused`, `reset`, …, or `http_502`.
    pub fails: BTreeMap<String, u64>,
    /// The text of the last failure; empty if there was none.
    pub last_error: String,
}

/// Counts of a cache; always `requests = hit + stale + updating + revalidated + miss + expired + bypass + error`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheAccount {
    /// Requests that looked in the cache, or bypassed it.
    pub requests: u64,
    /// As in `http.caches`.
    pub hit: u64,
    /// As in `http.caches`.
    pub stale: u64,
    /// As in `http.caches`.
    pub updating: u64,
    /// As in `http.caches`.
    pub revalidated: u64,
    /// As in `http.caches`.
    pub miss: u64,
    /// As in `http.caches`.
    pub expired: u64,
    /// As in `http.caches`.
    pub bypass: u64,
    /// Requests that ended before the cache result was known: the client left, or got an error.
    pub error: u64,
    /// Requests to the origin, including background refreshes.
    pub fetches: u64,
    /// Requests that waited for another request's fetch.
    pub waited: u64,
    /// Waiting time of these requests.
    pub wait: Times,
    /// Number of stored objects.
    pub objects: u64,
    /// Bytes stored in memory.
    pub memory: u64,
    /// Limit of the bytes stored in memory.
    pub memory_max: u64,
    /// Objects removed by purges.
    pub purged: u64,
    /// Why answers were not stored or not served from the cache, by reason.
    pub reasons: BTreeMap<String, u64>,
}

/// Upgraded connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebSockets {
    /// Open at this instant.
    pub open: u64,
    /// Opened since the start.
    pub opened: u64,
    /// Closed connections, by the side that closed or the reason: `client`, `upstream`, `timeout`, `shutdown`,
    /// `error`.
    pub closes: BTreeMap<String, u64>,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
    /// Messages from clients; `None` if no upgraded connection was a WebSocket.
    pub messages_received: Option<u64>,
    /// Messages to clients; `None` if no upgraded connection was a WebSocket.
    pub messages_sent: Option<u64>,
    /// Directions of WebSockets with data that is not a frame; later messages in such a direction are not counted.
    pub lost: u64,
    /// Closed WebSockets, by close code and by the side that sent it first.
    pub codes: Vec<CloseCode>,
    /// Ages of the closed connections, measured in milliseconds.
    pub age: Times,
    /// The same ages by [`CLOSE_AGES_S`], exactly.
    pub ages: Vec<AgeBucket>,
    /// From a ping on its way to a client to the client's pong.
    pub rtt_client: Times,
    /// From a client's ping to the upstream's pong.
    pub rtt_upstream: Times,
    /// The timeout of an idle connection, in milliseconds (`proxy_read_timeout`); the shortest in the configuration.
    pub timeout_ms: u64,
}

/// Number of WebSockets that were closed with a code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloseCode {
    /// The code sent; 1005 for a Close without a code, 1006 for an end without a Close (RFC 6455 §7.1.5), 0 for all
    /// codes that are not counted separately.
    pub code: u16,
    /// The side that sent the first Close: `client`, `upstream`, `nobody`.
    pub by: String,
    /// Number of WebSockets.
    pub count: u64,
}

/// Number of connections in a bucket of ages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgeBucket {
    /// Upper end in seconds; `None` for the last bucket.
    pub to_s: Option<u64>,
    /// Number of connections above the end of the bucket before and up to `to_s`.
    pub count: u64,
}

/// The ends of the buckets of [`WebSockets::ages`]: common timeouts, and up to a day.
pub const CLOSE_AGES_S: [u64; 12] = [1, 5, 15, 30, 60, 65, 120, 300, 900, 3600, 21_600, 86_400];

/// Results of the spans of recorded requests (`otel_trace`), since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traces {
    /// Address of the collector; `None` without an `otel_exporter`.
    pub endpoint: Option<String>,
    /// Spans that the collector has accepted.
    pub exported: u64,
    /// Spans that were dropped because too many waited for the collector.
    pub dropped: u64,
    /// Spans that the collector refused.
    pub failed: u64,
}

/// A limit beside its use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// The kind of limit: `connections`, `fds`, `ports`, `accept_queue`, `pool`, `worker_cpu`, `machine_cpu`, `cpu_quota`,
    /// `cache_size`, `upstream_conns`, `upstream_queue`, `memory`, `own_memory`, `buffers`, `temp_files`, `streams`, `cpu_credits`, `tx_link`.
    pub kind: String,
    /// The object of the limit, if there are several: a worker, `ADDRESS` of a peer, a cache; otherwise empty.
    pub of: String,
    /// `count`, `bytes` (for `tx_link` per second), or `cores`.
    pub unit: String,
    /// In use.
    pub used: f64,
    /// The limit; never 0.
    pub limit: f64,
    /// Highest use since the start or a reset.
    pub max: f64,
    /// How often the limit was hit: connections dropped, `EMFILE`, no free port, queue overflowed, throttled.
    pub hits: u64,
    /// The directive, file or sysctl that sets it: `worker_connections`, `RLIMIT_NOFILE`, ….
    pub set_by: String,
}

/// State of the machine; shares are over the last second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Number of CPUs that weir may use: those on which it may run, or fewer if its quota is smaller.
    pub cpus: u64,
    /// Share of the time of the CPUs on which weir may run, 0 to 1.
    pub cpu: CpuShares,
    /// Seconds that weir's threads waited for a CPU, per second; `None` if the kernel does not report it.
    pub run_queue_wait: Option<f64>,
    /// Number of tasks that ran or wanted to run.
    pub runnable: Option<u64>,
    /// Load average over a minute.
    pub load: Option<f64>,
    /// Pressure: the share of time in which some task waited, over 10 s, 0 to 1; `None` if the kernel does not report
    /// it.
    pub psi_cpu: Option<f64>,
    /// As `psi_cpu`, for memory.
    pub psi_memory: Option<f64>,
    /// As `psi_cpu`, for the disk.
    pub psi_io: Option<f64>,
    /// CPUs that the control group allows; `None` without a quota.
    pub quota_cpus: Option<f64>,
    /// Share of the quota's periods in which the group was throttled, over the last second; `None` without a quota.
    pub throttled: Option<f64>,
    /// Bytes of memory of the machine.
    pub memory_total: u64,
    /// Bytes of available memory.
    pub memory_available: u64,
    /// Resident memory of this process in bytes.
    pub rss: u64,
    /// TCP connections of this network namespace in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Retransmitted segments per second.
    pub retransmits: Option<f64>,
    /// The row of vmstat(8) for the last second; `None` if the kernel's files are not readable.
    pub vm: Option<VmRow>,
    /// The program that uses most CPU time; `None` while there is enough CPU time, and before two looks at it. Not in the
    /// API: its readers need not know the programs of the machine.
    #[serde(skip)]
    pub busiest: Option<Busiest>,
    /// The same, of the programs in weir's own control group: those that share its CPU quota.
    #[serde(skip)]
    pub busiest_of_group: Option<Busiest>,
}

/// The program that uses most CPU time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Busiest {
    /// Its name, without arguments.
    pub name: String,
    /// CPUs that it uses: 1 is one CPU.
    pub cpus: f64,
    /// Whether it is this edge.
    pub is_own: bool,
}

/// One row of vmstat(8): sizes in bytes, rates per second over the last second. The shares of CPU are in
/// [`Host::cpu`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VmRow {
    /// r: tasks that run or wait for a CPU.
    pub r: u64,
    /// b: tasks that wait for a disk.
    pub b: u64,
    /// swpd: swap in use.
    pub swpd: u64,
    /// free: memory that nothing uses.
    pub free: u64,
    /// buff: buffers of the kernel.
    pub buff: u64,
    /// cache: the page cache.
    pub cache: u64,
    /// si: bytes read from swap.
    pub si: f64,
    /// so: bytes written to swap.
    pub so: f64,
    /// bi: bytes read from block devices.
    pub bi: f64,
    /// bo: bytes written to block devices.
    pub bo: f64,
    /// in: interrupts.
    #[serde(rename = "in")]
    pub interrupts: f64,
    /// cs: switches between tasks.
    pub cs: f64,
}

/// Shares of CPUs' time, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuShares {
    /// us: programs, including niced ones.
    pub user: f64,
    /// sy: the kernel.
    pub system: f64,
    /// si: interrupts, soft and hard.
    pub interrupts: f64,
    /// st: taken by the hypervisor.
    pub steal: f64,
    /// id: idle.
    pub idle: f64,
    /// wa: idle while waiting for a disk.
    pub wait: f64,
}

impl CpuShares {
    /// The share of time in which a CPU had work.
    pub fn worked(&self) -> f64 {
        self.user + self.system + self.interrupts
    }
}

/// CPU use of a worker thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerCpu {
    /// Its number, as in `workers`.
    pub id: u64,
    /// Share of one CPU over the last second, 0 to 1.
    pub cpu: f64,
    /// Seconds that the worker waited for a CPU, per second; `None` if the kernel does not report it.
    pub wait: Option<f64>,
    /// How often its thread woke up, per second; `None` if the kernel does not report it.
    pub wakeups: Option<f64>,
}

/// The side to which a class of errors belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorKind {
    /// The request failed, as in [`ZoneAccount::failed`].
    #[default]
    Failed,
    /// A policy of the configuration refused the request.
    Refused,
    /// A try at a server failed, but the client still got an answer.
    Recovered,
    /// The request was wrong, or the client disconnected.
    Client,
}

/// A class of errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorClass {
    /// Its name: `502 connection refused`, `cut short`, `limit_req`, `try timeout`, `413`, `connections full`, ….
    pub class: String,
    /// The side to which the class belongs.
    pub kind: ErrorKind,
    /// Number of errors.
    pub count: u64,
    /// Time of the last error.
    pub last: Timestamp,
    /// The latest errors, newest first, at most [`SAMPLES_MAX`].
    pub samples: Vec<ErrorSample>,
}

/// Most samples of each class of errors.
pub const SAMPLES_MAX: usize = 20;

/// Most classes of errors; further ones count under `other`.
pub const CLASSES_MAX: usize = 64;

/// One error. It holds no cookie, no body, and only the names of a query's parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorSample {
    /// Its number, counted from 1 and unique.
    pub number: u64,
    /// Time of the error.
    pub at: Timestamp,
    /// Client's address.
    pub client: String,
    /// The server.
    pub server: String,
    /// The location's zone; empty if the location counts with its server.
    pub zone: String,
    /// Method and path.
    pub request: String,
    /// The status of the answer; 0 if there was none.
    pub status: u16,
    /// The last peer that was tried; empty if there was none.
    pub upstream: String,
    /// Microseconds since the request's first byte.
    pub took_us: u64,
    /// The line in the error log; empty if nothing was logged.
    pub line: String,
    /// Ids by which logs may name the request: `$request_id`, the trace's id, and an id that the client sent.
    pub ids: Vec<String>,
}
