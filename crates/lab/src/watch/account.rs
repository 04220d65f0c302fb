//! The account of a loaded edge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Totals since the edge started, and levels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Account {
    /// The edge answered.
    pub is_there: bool,
    /// The edge answered, but its answer could not be read, for this reason.
    pub unread: Option<String>,
    /// Clients' connections accepted.
    pub accepted: u64,
    /// Accepted connections that were dropped because the connection table was full.
    pub dropped: u64,
    /// Open connections of clients; a level.
    pub active: u64,
    /// Open connections without a request; a level.
    pub idle: u64,
    /// Requests.
    pub requests: u64,
    /// TLS handshakes.
    pub handshakes: u64,
    /// TLS handshakes that resumed a session.
    pub resumed: u64,
    /// Servers of upstreams, by address.
    pub peers: BTreeMap<String, UpstreamPeer>,
    /// Requests that used an upstream.
    pub exchanges: u64,
    /// Tries, including second tries.
    pub tries: u64,
    /// All caches together.
    pub cache: Cache,
    /// For each step, how often it ran and how long it took in total, µs.
    pub steps: BTreeMap<String, (u64, u64)>,
    /// Limits that the edge itself counts, by kind and owner: present use, limit, how often it was met.
    pub limits: BTreeMap<String, (f64, f64, u64)>,
    /// Failures, by the edge's names for them.
    pub errors: BTreeMap<String, u64>,
    /// Answers that a rate held back.
    pub paced: Paced,
    /// Effects of policies, by directive and zone, as `limit_req one`. Without the zone if the edge does not report it.
    pub policies: BTreeMap<String, Acted>,
    /// Answers with status 400 or higher that the edge made itself, without a server or a cache, by status.
    pub own: BTreeMap<u16, u64>,
    /// Answers with status 400 or higher that came from servers of upstreams, by status.
    pub given: BTreeMap<u16, u64>,
    /// Requests for which the upstream had no live server.
    pub no_server: u64,
    /// Lives of upgraded connections that have ended: ms, rounded down to two digits, and their number. Empty for weir, which logs the
    /// time limit that ended one.
    pub lives: BTreeMap<u64, u64>,
    /// Lines of nginx's private log that arrived. `None` for weir, which has no such log.
    pub lines: Option<u64>,
    /// How often the lab read the account. nginx counts these reads as requests.
    pub asked: u64,
}

/// The effects of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Acted {
    /// Requests that it refused.
    pub refused: u64,
    /// Requests that it delayed.
    pub delayed: u64,
    /// The total delay, µs. `None` for weir, which counts it in its step `queue`.
    pub delay_us: Option<u64>,
}

/// The answers of nginx that a rate held back: `limit_rate`, `$limit_rate`, or the field `X-Accel-Limit-Rate` of an upstream's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Paced {
    /// All of them.
    pub answers: u64,
    /// Those whose rate is that of the field.
    pub by_field: u64,
    /// Their rates, added up, bytes a second.
    pub rates: u64,
}

/// One server of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamPeer {
    /// Tries.
    pub requests: u64,
    /// Connections opened. `None` for nginx.
    pub opened: Option<u64>,
    /// Tries that failed or got a 5xx answer.
    pub bad: u64,
    /// Number of response heads, and the total time until they arrived, µs.
    pub header: (u64, u64),
}

/// The counts of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// Answers by nginx's cache status: `HIT`, `MISS`, `EXPIRED`, `STALE`, `UPDATING`, `REVALIDATED`, `BYPASS`.
    pub said: BTreeMap<String, u64>,
    /// Fetches from the origin. For nginx: requests that used an upstream.
    pub fetches: u64,
    /// Requests that waited for the fetch of another request.
    pub waited: Option<u64>,
    /// Why responses were not stored, by weir's names.
    pub reasons: BTreeMap<String, u64>,
    /// Slow answers from a cache: those that took about a multiple of 500 ms.
    pub polled: u64,
}
