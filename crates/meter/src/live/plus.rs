//! The objects of NGINX Plus' API, version 9: its names, its units, nothing added and nothing renamed
//! (nginx.org, `ngx_http_api_module`). A field that weir cannot fill honestly is left out rather than zero.

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
    /// The address that accepted the request for this; empty in a snapshot that nobody asked for over HTTP.
    pub address: String,
    /// How often the configuration was loaded, from 1.
    pub generation: u64,
    /// When it was loaded last.
    pub load_timestamp: Timestamp,
    /// Now.
    pub timestamp: Timestamp,
    /// The process.
    pub pid: u32,
    /// Its parent; weir has threads for workers, so this is who started it.
    pub ppid: u32,
}

/// Children that ended badly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processes {
    /// Worker threads that ended without being told to, and were replaced.
    pub respawned: u64,
}

/// Client connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Accepted.
    pub accepted: u64,
    /// Of those, closed at once because the table was full.
    pub dropped: u64,
    /// Open with a request under way.
    pub active: u64,
    /// Open without one.
    pub idle: u64,
}

/// Memory of a named zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slab {
    /// In pages of 4096 bytes.
    pub pages: Pages,
    /// By size of slot; empty, for weir has no slots.
    pub slots: BTreeMap<u32, Slot>,
}

/// Pages of 4096 bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pages {
    /// Taken.
    pub used: u64,
    /// Left.
    pub free: u64,
}

/// Slots of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slot {
    /// Taken.
    pub used: u64,
    /// Left.
    pub free: u64,
    /// Asked for.
    pub reqs: u64,
    /// Not given.
    pub fails: u64,
}

/// Requests of all servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// Begun.
    pub total: u64,
    /// Under way.
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
    /// By exact status, only those that occurred.
    pub codes: BTreeMap<u16, u64>,
    /// All.
    pub total: u64,
}

impl Responses {
    /// Adds responses of one status; one outside 100 to 599 counts in `total` and `codes` alone.
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
    /// Requests under way.
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
    /// TLS handshakes; only where a server of the zone speaks it.
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
    /// Bytes kept.
    pub size: u64,
    /// Bytes that may be kept; left out where there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// Files are still being loaded.
    pub cold: bool,
    /// Valid, from the cache.
    pub hit: CacheRead,
    /// Expired and served all the same.
    pub stale: CacheRead,
    /// Expired and served while being renewed.
    pub updating: CacheRead,
    /// Expired, and the origin said it still holds.
    pub revalidated: CacheRead,
    /// Not there.
    pub miss: CacheFetch,
    /// There, expired, and fetched.
    pub expired: CacheFetch,
    /// Not looked up.
    pub bypass: CacheFetch,
}

/// Responses from the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheRead {
    /// How many.
    pub responses: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// Responses from the origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheFetch {
    /// How many.
    pub responses: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Of those, written to the cache.
    pub responses_written: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// A zone of `limit_conn`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitConn {
    /// Let through.
    pub passed: u64,
    /// Refused.
    pub rejected: u64,
    /// Would have been refused (`limit_conn_dry_run`).
    pub rejected_dry_run: u64,
}

/// A zone of `limit_req`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitReq {
    /// Let through at once.
    pub passed: u64,
    /// Let through later.
    pub delayed: u64,
    /// Refused.
    pub rejected: u64,
    /// Would have been delayed (`limit_req_dry_run`).
    pub delayed_dry_run: u64,
    /// Would have been refused.
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
    /// Servers taken out that still serve.
    pub zombies: u64,
    /// The zone that keeps its state; the group's name where none is written.
    pub zone: String,
    /// Requests that wait for a server; only where `queue` is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// Requests that wait for a server of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Waiting now.
    pub size: u64,
    /// May wait.
    pub max_size: u64,
    /// Did not find room.
    pub overflows: u64,
}

/// A peer's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerState {
    /// It serves.
    #[default]
    Up,
    /// It serves those bound to it alone.
    Draining,
    /// Taken out by hand.
    Down,
    /// Left out for a while, after failures.
    Unavail,
    /// A first health check is under way.
    Checking,
    /// Health checks fail.
    Unhealthy,
}

/// A server of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peer {
    /// Its number in the group.
    pub id: u64,
    /// Its address.
    pub server: String,
    /// The `service` parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// As written in `server`.
    pub name: String,
    /// It is a backup.
    pub backup: bool,
    /// Its weight.
    pub weight: u64,
    /// Its state.
    pub state: PeerState,
    /// Requests it is serving.
    pub active: u64,
    /// TLS handshakes with it; only where TLS is spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl: Option<PeerSsl>,
    /// How many connections it may have; left out where there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_conns: Option<u64>,
    /// Requests sent to it.
    pub requests: u64,
    /// Its responses.
    pub responses: Responses,
    /// Bytes to it.
    pub sent: u64,
    /// Bytes from it.
    pub received: u64,
    /// Tries that failed.
    pub fails: u64,
    /// How often it became `unavail`.
    pub unavail: u64,
    /// Health checks.
    pub health_checks: HealthChecks,
    /// Milliseconds it was not there for clients.
    pub downtime: u64,
    /// Since when it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downstart: Option<Timestamp>,
    /// When it was chosen last; left out until it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<Timestamp>,
    /// Mean milliseconds to its head; left out until there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_time: Option<u64>,
    /// Mean milliseconds to the end of its response; left out until there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time: Option<u64>,
    /// How response times are spread.
    pub response_time_hist: ResponseTimeHist,
}

/// Health checks of a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthChecks {
    /// Made.
    pub checks: u64,
    /// Failed.
    pub fails: u64,
    /// How often the peer became unhealthy.
    pub unhealthy: u64,
    /// Whether the last passed; left out until there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_passed: Option<bool>,
}

/// The upper ends of [`ResponseTimeHist`]'s buckets in milliseconds; a last bucket, `inf`, has none.
pub const RESPONSE_TIME_ENDS_MS: [u64; 14] = [5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];

/// How a peer's response times are spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseTimeHist {
    /// Responses.
    pub count: u64,
    /// Milliseconds, all together.
    pub sum: u64,
    /// Responses by bucket, each without those of the buckets before; keys are [`RESPONSE_TIME_ENDS_MS`], and `inf`.
    pub buckets: BTreeMap<String, u64>,
}

impl ResponseTimeHist {
    /// One from counts in the order of [`RESPONSE_TIME_ENDS_MS`], `inf` last.
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
    /// Asked.
    pub requests: ResolverRequests,
    /// Answered.
    pub responses: ResolverResponses,
}

/// What a resolver was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolverRequests {
    /// Addresses of names.
    pub name: u64,
    /// Services.
    pub srv: u64,
    /// Names of addresses.
    pub addr: u64,
}

/// What a resolver was told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolverResponses {
    /// An answer.
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
    /// Nothing in time.
    pub timedout: u64,
    /// Anything else.
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
