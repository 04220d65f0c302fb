//! The objects of NGINX Plus' API, version 9, with its names and units, without additions or changed names
//! (nginx.org, `ngx_http_api_module`). A field for which weir has no true value is left out rather than zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PeerSsl, Timestamp, ZoneSsl};

/// The process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nginx {
    /// Version of weir.
    pub version: String,
    /// `weir`: the build's name.
    pub build: String,
    /// The address that accepted the request for this snapshot; empty if the snapshot was not requested over HTTP.
    pub address: String,
    /// Number of times that the configuration was loaded, from 1.
    pub generation: u64,
    /// Time of the last load.
    pub load_timestamp: Timestamp,
    /// Time of the snapshot.
    pub timestamp: Timestamp,
    /// Process id.
    pub pid: u32,
    /// Parent's process id; weir's workers are threads, so this is the process that started weir.
    pub ppid: u32,
}

/// Children that ended abnormally.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processes {
    /// Worker threads that ended unexpectedly and were replaced.
    pub respawned: u64,
}

/// Client connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Accepted connections.
    pub accepted: u64,
    /// Accepted connections that were closed at once because the table was full.
    pub dropped: u64,
    /// Open connections with a current request.
    pub active: u64,
    /// Open connections without a request.
    pub idle: u64,
}

/// Memory of a named zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slab {
    /// In pages of 4096 bytes.
    pub pages: Pages,
    /// By size of slot; empty, because weir has no slots.
    pub slots: BTreeMap<u32, Slot>,
}

/// Pages of 4096 bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pages {
    /// Used pages.
    pub used: u64,
    /// Free pages.
    pub free: u64,
}

/// Slots of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slot {
    /// Used slots.
    pub used: u64,
    /// Free slots.
    pub free: u64,
    /// Number of requests for a slot.
    pub reqs: u64,
    /// Number of failed requests for a slot.
    pub fails: u64,
}

/// Requests of all servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// Requests begun.
    pub total: u64,
    /// Current requests.
    pub current: u64,
}

/// Responses by status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Responses {
    /// Final responses with a 1xx status: `101 Switching Protocols`.
    #[serde(rename = "1xx")]
    pub c1xx: u64,
    /// 2xx.
    #[serde(rename = "2xx")]
    pub c2xx: u64,
    /// 3xx.
    #[serde(rename = "3xx")]
    pub c3xx: u64,
    /// 4xx.
    #[serde(rename = "4xx")]
    pub c4xx: u64,
    /// 5xx.
    #[serde(rename = "5xx")]
    pub c5xx: u64,
    /// By exact status; only statuses that occurred.
    pub codes: BTreeMap<u16, u64>,
    /// All.
    pub total: u64,
}

impl Responses {
    /// Adds responses of one status; a status outside 100 to 599 counts only in `total` and `codes`.
    pub fn add(&mut self, status: u16, count: u64) {
        if count == 0 {
            return;
        }
        match status / 100 {
            1 => self.c1xx += count,
            2 => self.c2xx += count,
            3 => self.c3xx += count,
            4 => self.c4xx += count,
            5 => self.c5xx += count,
            _ => {}
        }
        *self.codes.entry(status).or_default() += count;
        self.total += count;
    }
}

/// A server's zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerZone {
    /// Current requests.
    pub processing: u64,
    /// Requests begun.
    pub requests: u64,
    /// Responses.
    pub responses: Responses,
    /// Requests that ended without a response: `requests = processing + responses.total + discarded`.
    pub discarded: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
    /// TLS handshakes; only if a server of the zone uses TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl: Option<ZoneSsl>,
}

/// A location's zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocationZone {
    /// Requests that ended here.
    pub requests: u64,
    /// Responses.
    pub responses: Responses,
    /// Requests that ended without a response.
    pub discarded: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
}

/// A cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// Bytes stored.
    pub size: u64,
    /// Limit of the bytes stored; left out if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// True while files are being loaded.
    pub cold: bool,
    /// Valid responses from the cache.
    pub hit: CacheRead,
    /// Expired responses that were served from the cache.
    pub stale: CacheRead,
    /// Expired responses that were served while they were being renewed.
    pub updating: CacheRead,
    /// Expired responses that the origin confirmed as still valid.
    pub revalidated: CacheRead,
    /// Not in the cache.
    pub miss: CacheFetch,
    /// Expired in the cache, and fetched.
    pub expired: CacheFetch,
    /// Not looked up in the cache.
    pub bypass: CacheFetch,
}

/// Responses from the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheRead {
    /// Number of responses.
    pub responses: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// Responses from the origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheFetch {
    /// Number of responses.
    pub responses: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Responses that were written to the cache.
    pub responses_written: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// A zone of `limit_conn`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitConn {
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were refused.
    pub rejected: u64,
    /// Requests that would have been refused (`limit_conn_dry_run`).
    pub rejected_dry_run: u64,
}

/// A zone of `limit_req`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitReq {
    /// Requests that passed at once.
    pub passed: u64,
    /// Requests that passed after a delay.
    pub delayed: u64,
    /// Requests that were refused.
    pub rejected: u64,
    /// Requests that would have been delayed (`limit_req_dry_run`).
    pub delayed_dry_run: u64,
    /// Requests that would have been refused.
    pub rejected_dry_run: u64,
}

/// A group of servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Upstream {
    /// Its servers.
    pub peers: Vec<Peer>,
    /// Idle connections kept.
    pub keepalive: u64,
    /// Removed servers that still have requests.
    pub zombies: u64,
    /// The zone that keeps its state; the group's name if the configuration names none.
    pub zone: String,
    /// Requests that wait for a server; only with `queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueCounts>,
}

/// Requests that wait for a server of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueCounts {
    /// Current number.
    pub size: u64,
    /// Largest number.
    pub max_size: u64,
    /// Requests that found the queue full.
    pub overflows: u64,
}

/// A peer's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerState {
    /// The peer serves.
    #[default]
    Up,
    /// The peer serves only clients that are bound to it.
    Draining,
    /// The peer was taken out by hand.
    Down,
    /// The peer is not used for a while, after failures.
    Unavail,
    /// The first health check is running.
    Checking,
    /// Health checks fail.
    Unhealthy,
}

/// A server of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peer {
    /// Number of the server in the group.
    pub id: u64,
    /// Address of the server.
    pub server: String,
    /// The `service` parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The name as written in `server`.
    pub name: String,
    /// True for a backup server.
    pub backup: bool,
    /// Its weight.
    pub weight: u64,
    /// Its state.
    pub state: PeerState,
    /// Current requests.
    pub active: u64,
    /// TLS handshakes with the server; only if TLS is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl: Option<PeerSsl>,
    /// Largest number of connections; left out if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_conns: Option<u64>,
    /// Requests sent to the server.
    pub requests: u64,
    /// Responses of the server.
    pub responses: Responses,
    /// Bytes to the server.
    pub sent: u64,
    /// Bytes from the server.
    pub received: u64,
    /// Failed tries.
    pub fails: u64,
    /// How often it became `unavail`.
    pub unavail: u64,
    /// Health checks.
    pub health_checks: HealthChecks,
    /// Milliseconds in which the server was not available for clients.
    pub downtime: u64,
    /// Time since which the server is unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downstart: Option<Timestamp>,
    /// Time of the last selection; left out if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<Timestamp>,
    /// Mean milliseconds to the response head; left out if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_time: Option<u64>,
    /// Mean milliseconds to the end of the response; left out if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time: Option<u64>,
    /// Histogram of response times.
    pub response_time_hist: ResponseTimeHist,
}

/// Health checks of a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthChecks {
    /// Number of checks.
    pub checks: u64,
    /// Number of failed checks.
    pub fails: u64,
    /// How often the peer became unhealthy.
    pub unhealthy: u64,
    /// True if the last check passed; left out if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_passed: Option<bool>,
}

/// The upper ends of [`ResponseTimeHist`]'s buckets in milliseconds; a last bucket, `inf`, has none.
pub const RESPONSE_TIME_ENDS_MS: [u64; 14] = [5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];

/// Histogram of a peer's response times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseTimeHist {
    /// Number of responses.
    pub count: u64,
    /// Sum in milliseconds.
    pub sum: u64,
    /// Responses by bucket, without those of the buckets before; keys are [`RESPONSE_TIME_ENDS_MS`], and `inf`.
    pub buckets: BTreeMap<String, u64>,
}

impl ResponseTimeHist {
    /// Makes a histogram from counts in the order of [`RESPONSE_TIME_ENDS_MS`], `inf` last.
    pub fn new(counts: &[u64; 15], sum: u64) -> ResponseTimeHist {
        let ends = RESPONSE_TIME_ENDS_MS.iter().map(u64::to_string).chain([String::from("inf")]);
        let buckets = ends.zip(counts.iter().copied()).collect();
        ResponseTimeHist { count: counts.iter().sum(), sum, buckets }
    }
}

/// A resolver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resolver {
    /// Questions.
    pub requests: ResolverRequests,
    /// Answers.
    pub responses: ResolverResponses,
}

/// Questions to a resolver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolverRequests {
    /// Names to addresses.
    pub name: u64,
    /// Services.
    pub srv: u64,
    /// Addresses to names.
    pub addr: u64,
}

/// Answers to a resolver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolverResponses {
    /// Successful answers.
    pub noerror: u64,
    /// FORMERR.
    pub formerr: u64,
    /// SERVFAIL.
    pub servfail: u64,
    /// NXDOMAIN.
    pub nxdomain: u64,
    /// NOTIMP.
    pub notimp: u64,
    /// REFUSED.
    pub refused: u64,
    /// No answer within the timeout.
    pub timedout: u64,
    /// Other answers.
    pub unknown: u64,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    /// Its number.
    pub id: u64,
    /// The id of its thread.
    pub pid: u32,
    /// Its connections.
    pub connections: Connections,
    /// Its requests.
    pub http: WorkerHttp,
}

/// A worker's requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerHttp {
    /// Its requests.
    pub requests: Requests,
}
