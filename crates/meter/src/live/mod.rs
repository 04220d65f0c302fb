//! What an edge knows about itself at one instant, as plain data.
//!
//! [`Snapshot`] says everything: [`plus`] holds the objects of NGINX Plus' API, in its names and units and with nothing
//! added, so that what reads those reads ours; [`own`] holds what only weir says. The edge gathers one each second; the
//! API, the metrics, the dashboard and `weir status` read it and nothing else.
//!
//! Totals count from the start of the process or the last reset; what is about now says over which time.

pub mod cells;
mod example;
pub mod histogram;
pub mod own;
pub mod plus;
mod ssl;
mod timestamp;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use own::*;
pub use plus::*;
pub use ssl::*;
pub use timestamp::Timestamp;

/// Zones, peers, limits and whatever else has a name, at most, of each kind; those beyond count into [`OTHER`].
pub const NAMES_MAX: usize = 1024;

/// The name under which everything beyond [`NAMES_MAX`] is counted together.
pub const OTHER: &str = "other";

/// Everything an edge knows of itself at one instant. Serialised, it is `GET /api/weir`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The process. `GET /api/9/nginx`.
    pub nginx: Nginx,
    /// Children that ended badly. `GET /api/9/processes`.
    pub processes: Processes,
    /// Client connections. `GET /api/9/connections`.
    pub connections: Connections,
    /// TLS with clients, all servers together. `GET /api/9/ssl`.
    pub ssl: Ssl,
    /// Memory of named zones. `GET /api/9/slabs/`.
    pub slabs: BTreeMap<String, Slab>,
    /// What stands below `GET /api/9/http/`.
    pub http: Http,
    /// Resolvers by zone. `GET /api/9/resolvers/`.
    pub resolvers: BTreeMap<String, Resolver>,
    /// The workers that serve now. `GET /api/9/workers/`.
    pub workers: Vec<Worker>,
    /// What NGINX Plus has no word for.
    pub weir: Weir,
}

/// What stands below `http/` in the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Http {
    /// Requests of all servers.
    pub requests: Requests,
    /// By zone: the first `server_name`, else the first address listened on, or what `status_zone` says.
    pub server_zones: BTreeMap<String, ServerZone>,
    /// By zone: `SERVER/LOCATION` as written, or what `status_zone` says.
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
        // Maps have strings and numbers as keys, and no number here is NaN: serialising cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Snapshot::to_json`] wrote, of this version or a later one: what is unknown is left out, what lacks
    /// is empty.
    ///
    /// # Errors
    /// The text is not JSON, or not of a snapshot; with line and column.
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
