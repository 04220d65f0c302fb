//! What weir says of itself beyond NGINX Plus' objects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// What NGINX Plus has no word for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weir {
    /// Milliseconds since the process started.
    pub uptime_ms: u64,
    /// Milliseconds the [`recent`](StepTimes::recent) figures are about; shorter in the first seconds.
    pub recent_ms: u64,
    /// When totals were last set to zero as a whole; `None` when never.
    pub reset: Option<Timestamp>,
    /// The way of a request, in the order of [`PATH`]: always all nine.
    pub path: Vec<StepTimes>,
    /// By server zone, same names as `http.server_zones`.
    pub server_zones: BTreeMap<String, ZoneAccount>,
    /// By location zone.
    pub location_zones: BTreeMap<String, ZoneAccount>,
    /// By group, then peers in the order of `http.upstreams[].peers`.
    pub upstreams: BTreeMap<String, Vec<PeerTimes>>,
    /// Groups whose servers can be changed while it runs: those with a `zone`.
    pub changeable: Vec<String>,
    /// By cache.
    pub caches: BTreeMap<String, CacheAccount>,
    /// Upgraded connections.
    pub websockets: WebSockets,
    /// Spans for OpenTelemetry.
    pub traces: Traces,
    /// Each limit beside its use.
    pub limits: Vec<Limit>,
    /// What the machine does.
    pub host: Host,
    /// The workers' own CPU, same order as `workers`.
    pub workers: Vec<WorkerCpu>,
    /// What went wrong, by class: those that failed first, then by count.
    pub errors: Vec<ErrorClass>,
    /// Names beyond the bound that were counted together as `other`.
    pub names_merged: u64,
}

/// The steps of [`Weir::path`].
pub const PATH: [&str; 9] = ["accept", "tls", "queue", "cache", "pool", "connect", "wait", "body", "write"];

/// One step of the way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepTimes {
    /// Its name, of [`PATH`].
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
    /// How often it happened.
    pub count: u64,
    /// Microseconds, all together.
    pub sum_us: u64,
    /// The median.
    pub p50_us: u64,
    /// 95 of 100 were no longer.
    pub p95_us: u64,
    /// 99 of 100 were no longer.
    pub p99_us: u64,
    /// The longest.
    pub max_us: u64,
}

/// A rate, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneTimes {
    /// A second, over the last second.
    pub rate: f64,
    /// The highest that was.
    pub rate_max: f64,
    /// Over the last [`recent_ms`](Weir::recent_ms).
    pub recent: Times,
    /// Since the start or a reset.
    pub total: Times,
}

impl ZoneTimes {
    /// Quantiles of the last seconds beside totals: what a Prometheus summary tells.
    pub fn summary(&self) -> Times {
        Times { count: self.total.count, sum_us: self.total.sum_us, ..self.recent.clone() }
    }
}

/// What NGINX Plus does not say of a zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneAccount {
    /// Request times, from the first byte of the request to the last of the response.
    #[serde(flatten)]
    pub times: ZoneTimes,
    /// Requests that failed: answered 5xx, cut after the head because the origin broke off, or never answered because the
    /// origin failed. A client that leaves and a policy that refuses are no failures.
    pub failed: u64,
    /// Requests that a policy of the configuration refused on purpose: `limit_req`, `limit_conn`.
    pub refused: u64,
}

/// What a peer costs and why it fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerTimes {
    /// Its address.
    pub server: String,
    /// Connections opened to it.
    pub opened: u64,
    /// Requests that went over a kept one.
    pub reused: u64,
    /// Kept and idle now.
    pub idle: u64,
    /// Tries that followed a failed one.
    pub retries: u64,
    /// Time to a connection, for those opened.
    pub connect: ZoneTimes,
    /// Time to its head.
    pub header: ZoneTimes,
    /// Time to its end.
    pub response: ZoneTimes,
    /// Failed tries by reason: `timeout`, `refused`, `reset`, …, or `http_502`.
    pub fails: BTreeMap<String, u64>,
    /// What the last failure said; empty when there was none.
    pub last_error: String,
}

/// A cache's books: `requests = hit + stale + updating + revalidated + miss + expired + bypass + error`, always.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheAccount {
    /// Requests that the cache was asked about, or that went past it.
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
    /// Ended before the cache could say: the client left, or an error was answered.
    pub error: u64,
    /// Requests sent to the origin, refreshes behind a client's back among them.
    pub fetches: u64,
    /// Requests that waited for another's fetch.
    pub waited: u64,
    /// Time they waited.
    pub wait: Times,
    /// Objects kept.
    pub objects: u64,
    /// Bytes kept in memory.
    pub memory: u64,
    /// Bytes that may be kept in memory.
    pub memory_max: u64,
    /// Objects removed by purges.
    pub purged: u64,
    /// Why answers were not kept or not given, by reason.
    pub reasons: BTreeMap<String, u64>,
}

/// Upgraded connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebSockets {
    /// Open now.
    pub open: u64,
    /// Opened since the start.
    pub opened: u64,
    /// Closed, by who and why: `client`, `upstream`, `timeout`, `shutdown`, `error`.
    pub closes: BTreeMap<String, u64>,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
    /// Messages from clients; `None` where none of the upgraded ever was a WebSocket.
    pub messages_received: Option<u64>,
    /// Messages to clients; `None` likewise.
    pub messages_sent: Option<u64>,
    /// Directions of WebSockets in which something came that is no frame: nothing after that is counted as messages.
    pub lost: u64,
    /// How WebSockets were closed, by code and who said so first.
    pub codes: Vec<CloseCode>,
    /// How old those were that have closed; measured in milliseconds.
    pub age: Times,
    /// The same by [`CLOSE_AGES_S`], exactly.
    pub ages: Vec<AgeBucket>,
    /// From a ping on its way to a client to that client's pong.
    pub rtt_client: Times,
    /// From a client's ping to the upstream's pong.
    pub rtt_upstream: Times,
    /// The timeout that ends an idle one, in milliseconds (`proxy_read_timeout`), the shortest in the configuration.
    pub timeout_ms: u64,
}

/// How often WebSockets were closed with a code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloseCode {
    /// As sent; 1005 for a Close without one, 1006 for an end without a Close (RFC 6455 §7.1.5), 0 for all those beyond
    /// what is counted one by one.
    pub code: u16,
    /// Who sent the first Close: `client`, `upstream`, `nobody`.
    pub by: String,
    /// How often.
    pub count: u64,
}

/// How many were no older than this, and older than the bucket before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgeBucket {
    /// Seconds; `None` for the last.
    pub to_s: Option<u64>,
    /// How many.
    pub count: u64,
}

/// The ends of the buckets of [`WebSockets::ages`]: where timeouts use to be set, and up to a day.
pub const CLOSE_AGES_S: [u64; 12] = [1, 5, 15, 30, 60, 65, 120, 300, 900, 3600, 21_600, 86_400];

/// What became of the spans of recorded requests (`otel_trace`), since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traces {
    /// Where they go; `None` without an `otel_exporter`.
    pub endpoint: Option<String>,
    /// The collector has them.
    pub exported: u64,
    /// There was no room for them while they waited for the collector.
    pub dropped: u64,
    /// The collector refused them.
    pub failed: u64,
}

/// A limit beside its use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// What is limited: `connections`, `fds`, `ports`, `accept_queue`, `pool`, `worker_cpu`, `cpu_quota`, `cache_size`,
    /// `upstream_conns`, `memory`, `cpu_credits`, `tx_link`.
    pub kind: String,
    /// Of what, where there are several: a worker, `ADDRESS` of a peer, a cache; else empty.
    pub of: String,
    /// `count`, `bytes` (of `tx_link` a second), or `cores`.
    pub unit: String,
    /// In use.
    pub used: f64,
    /// What may be used; never 0.
    pub limit: f64,
    /// The most that was in use since the start or a reset.
    pub max: f64,
    /// How often it was met: connections dropped, `EMFILE`, port exhausted, queue overflown, throttled.
    pub hits: u64,
    /// The directive, file or sysctl that sets it: `worker_connections`, `RLIMIT_NOFILE`, ….
    pub set_by: String,
}

/// What the machine does, shares over the last second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// CPUs that weir may use.
    pub cpus: u64,
    /// Share of all CPUs' time, 0 to 1.
    pub cpu: CpuShares,
    /// Seconds that weir's threads waited for a CPU, per second; `None` where the kernel does not say.
    pub run_queue_wait: Option<f64>,
    /// Tasks that ran or wanted to.
    pub runnable: Option<u64>,
    /// Load over a minute.
    pub load: Option<f64>,
    /// Pressure: the share of time in which some task waited, over 10 s, 0 to 1; `None` where the kernel does not say.
    pub psi_cpu: Option<f64>,
    /// As `psi_cpu`, for memory.
    pub psi_memory: Option<f64>,
    /// As `psi_cpu`, for the disk.
    pub psi_io: Option<f64>,
    /// CPUs that the control group allows; `None` where there is no quota.
    pub quota_cpus: Option<f64>,
    /// Share of the quota's periods in which the group was throttled, over the last second; `None` without a quota.
    pub throttled: Option<f64>,
    /// Bytes of memory the machine has.
    pub memory_total: u64,
    /// Bytes that could be had.
    pub memory_available: u64,
    /// Bytes resident in this process.
    pub rss: u64,
    /// TCP connections of this network namespace in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Segments sent again, a second.
    pub retransmits: Option<f64>,
}

/// Shares of all CPUs' time, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuShares {
    /// us: programs, niced ones too.
    pub user: f64,
    /// sy: the kernel.
    pub system: f64,
    /// si: interrupts, soft and hard.
    pub interrupts: f64,
    /// st: taken by the hypervisor.
    pub steal: f64,
    /// id: nothing to do.
    pub idle: f64,
    /// wa: nothing to do but wait for a disk.
    pub wait: f64,
}

/// A worker thread's CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerCpu {
    /// Its number, as in `workers`.
    pub id: u64,
    /// Share of one CPU over the last second, 0 to 1.
    pub cpu: f64,
    /// Seconds it waited for a CPU, per second; `None` where the kernel does not say.
    pub wait: Option<f64>,
}

/// To whom a class of errors belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorKind {
    /// The request failed, as in [`ZoneAccount::failed`].
    #[default]
    Failed,
    /// A policy of the configuration refused it.
    Refused,
    /// A try at a server failed, and the client was answered all the same.
    Recovered,
    /// The request was at fault, or its client left.
    Client,
}

/// One way for things to go wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorClass {
    /// Its name: `502 connection refused`, `cut short`, `limit_req`, `try timeout`, `413`, `connections full`, ….
    pub class: String,
    /// To whom it belongs.
    pub kind: ErrorKind,
    /// How often.
    pub count: u64,
    /// When last.
    pub last: Timestamp,
    /// The newest, newest first, at most [`SAMPLES_MAX`].
    pub samples: Vec<ErrorSample>,
}

/// Samples kept for each class of error.
pub const SAMPLES_MAX: usize = 20;

/// Classes of errors kept; those beyond count into `other`.
pub const CLASSES_MAX: usize = 64;

/// One thing that went wrong. It holds no cookie, no body, and of a query only the names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorSample {
    /// Its number, from 1 and never twice.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Client's address.
    pub client: String,
    /// The server.
    pub server: String,
    /// Method and path.
    pub request: String,
    /// The status answered; 0 for none.
    pub status: u16,
    /// The peer asked last; empty for none.
    pub upstream: String,
    /// Microseconds from its first byte.
    pub took_us: u64,
    /// The line in the error log; empty when nothing was logged.
    pub line: String,
    /// What logs may know it by: `$request_id`, the trace's id, and an id that the client sent.
    pub ids: Vec<String>,
}
