//! The objects below `stream/` of NGINX Plus' API, with its names and units. A field for which weir has no true value
//! is left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{HealthChecks, LimitConn, PeerState, Timestamp};

/// The objects below `stream/` in the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamObjects {
    /// By zone: the name in `status_zone`, otherwise the first `server_name`, otherwise the first listen address.
    pub server_zones: BTreeMap<String, SessionZone>,
    /// By the name of the zone.
    pub limit_conns: BTreeMap<String, LimitConn>,
    /// By the name of the group; a `proxy_pass` to an address is a group of that name.
    pub upstreams: BTreeMap<String, SessionUpstream>,
}

/// Sessions of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionZone {
    /// Current sessions.
    pub processing: u64,
    /// Sessions begun.
    pub connections: u64,
    /// Sessions that ended, by status.
    pub sessions: SessionStatuses,
    /// Sessions that ended without a status.
    pub discarded: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
}

/// Sessions by status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionStatuses {
    /// 2xx.
    #[serde(rename = "2xx")]
    pub c2xx: u64,
    /// 4xx.
    #[serde(rename = "4xx")]
    pub c4xx: u64,
    /// 5xx.
    #[serde(rename = "5xx")]
    pub c5xx: u64,
    /// All.
    pub total: u64,
}

/// A group of peers of sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionUpstream {
    /// In the order of the group.
    pub peers: Vec<SessionPeer>,
    /// Peers that have left the group and still have sessions.
    pub zombies: u64,
    /// The name of the zone.
    pub zone: String,
}

/// A peer of sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionPeer {
    /// Its number in the group.
    pub id: u64,
    /// Its address.
    pub server: String,
    /// The server as written.
    pub name: String,
    /// It serves only if no primary peer can.
    pub backup: bool,
    /// Its weight.
    pub weight: u64,
    /// Its state.
    pub state: PeerState,
    /// Current sessions.
    pub active: u64,
    /// `max_conns`; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_conns: Option<u64>,
    /// Sessions that were passed to it.
    pub connections: u64,
    /// The mean time for connecting, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_time: Option<u64>,
    /// The mean time until its first byte, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_time: Option<u64>,
    /// The mean time until its last byte, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time: Option<u64>,
    /// Bytes to it.
    pub sent: u64,
    /// Bytes from it.
    pub received: u64,
    /// Failed attempts.
    pub fails: u64,
    /// How often failures ejected it.
    pub unavail: u64,
    /// Health checks.
    pub health_checks: HealthChecks,
    /// Milliseconds in which it was not available for clients.
    pub downtime: u64,
    /// Time since which it is unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downstart: Option<Timestamp>,
    /// When it was last chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<Timestamp>,
}
