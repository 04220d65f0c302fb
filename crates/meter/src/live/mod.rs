//! An edge's data about itself at one instant, as plain data.
//!
//! [`Snapshot`] holds all of it. [`plus`] has the objects of NGINX Plus' API with its names and units and with no
//! additions, so that tools for that API can read weir's. [`own`] has the data that only weir reports. The edge makes
//! one snapshot each second; the API, the metrics, the dashboard and `weir status` read nothing else.
//!
//! Totals count from the start of the process or the last reset; data about the present names the time it covers.

mod canary;
pub mod cells;
mod example;
mod fleet;
pub mod histogram;
pub mod own;
pub mod plus;
mod protocols;
mod queries;
pub mod quic;
pub mod sessions;
mod ssl;
mod timestamp;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use canary::*;
pub use fleet::{FleetMember, FleetView, OddOne};
pub use own::*;
pub use plus::*;
pub use protocols::*;
pub use queries::without_queries;
pub use sessions::*;
pub use ssl::*;
pub use timestamp::Timestamp;

/// Most names of each kind: zones, peers, limits and others; the data of further names are counted under [`OTHER`].
pub const NAMES_MAX: usize = 1024;

/// The name for all data beyond [`NAMES_MAX`] together.
pub const OTHER: &str = "other";

/// All data of an edge about itself at one instant. Serialised, it is `GET /api/weir`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Data of the process. `GET /api/9/nginx`.
    pub nginx: Nginx,
    /// Children that ended abnormally. `GET /api/9/processes`.
    pub processes: Processes,
    /// Client connections. `GET /api/9/connections`.
    pub connections: Connections,
    /// TLS with clients, all servers together. `GET /api/9/ssl`.
    pub ssl: Ssl,
    /// Memory of named zones. `GET /api/9/slabs/`.
    pub slabs: BTreeMap<String, Slab>,
    /// The objects below `GET /api/9/http/`.
    pub http: Http,
    /// The objects below `GET /api/9/stream/`.
    pub stream: StreamObjects,
    /// Resolvers by zone. `GET /api/9/resolvers/`.
    pub resolvers: BTreeMap<String, Resolver>,
    /// The workers that serve at this instant. `GET /api/9/workers/`.
    pub workers: Vec<Worker>,
    /// Data that NGINX Plus does not have.
    pub weir: Weir,
}

/// The objects below `http/` in the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Http {
    /// Requests of all servers.
    pub requests: Requests,
    /// By zone: the name in `status_zone`, otherwise the first `server_name`, otherwise the first listen address.
    pub server_zones: BTreeMap<String, ServerZone>,
    /// By zone: the name in `status_zone`, otherwise `SERVER/LOCATION` as written.
    pub location_zones: BTreeMap<String, LocationZone>,
    /// By the name in `keys_zone`.
    pub caches: BTreeMap<String, Cache>,
    /// By the name of the zone.
    pub limit_conns: BTreeMap<String, LimitConn>,
    /// By the name of the zone.
    pub limit_reqs: BTreeMap<String, LimitReq>,
    /// By the name of the group; a `proxy_pass` to an address is a group of that name.
    pub upstreams: BTreeMap<String, Upstream>,
}

impl Snapshot {
    /// The snapshot as one line of JSON.
    pub fn to_json(&self) -> String {
        // This cannot fail: map keys are strings and numbers, and no number here is NaN.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the JSON of [`Snapshot::to_json`], of this version or a later one: unknown members are ignored, missing
    /// ones are empty.
    ///
    /// # Errors
    /// The text is not JSON, or is not a snapshot; with line and column.
    pub fn from_json(text: &str) -> Result<Snapshot, serde_json::Error> {
        serde_json::from_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_gives_the_snapshot_back() {
        let example = Snapshot::example();
        assert_eq!(Snapshot::from_json(&example.to_json()).unwrap(), example);
        assert_eq!(Snapshot::from_json("{}").unwrap(), Snapshot::default());
        assert!(Snapshot::from_json("[").is_err());
    }

    #[test]
    fn names_are_plus_names() {
        let json: serde_json::Value = serde_json::from_str(&Snapshot::example().to_json()).unwrap();
        assert_eq!(json["http"]["server_zones"]["shop.example"]["responses"]["2xx"], 48_112);
        assert_eq!(json["http"]["server_zones"]["shop.example"]["responses"]["codes"]["200"], 48_000);
        assert_eq!(json["nginx"]["timestamp"], "2026-11-22T16:00:00.250Z");
        assert_eq!(json["http"]["upstreams"]["app"]["peers"][0]["response_time_hist"]["buckets"]["5"], 40_100);
    }
}
