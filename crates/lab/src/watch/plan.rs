//! How a block is watched: data that the lab sends to the keeper with the rest of the block's specification.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A process to watch, with its descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Its name in the stack.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its id.
    pub pid: u32,
    /// It is the edge.
    pub is_edge: bool,
    /// No request waits for it: it only shares CPUs with the others.
    pub is_neighbour: bool,
    /// Its host's address, as the hub reaches it.
    pub address: Option<IpAddr>,
}

/// How to watch a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchPlan {
    /// The edge is weir, not nginx.
    pub is_weir: bool,
    /// The socket that reports the edge's account. Empty if the configuration could not be tapped.
    pub at: PathBuf,
    /// A file of the block. The edge writes its log there too.
    pub log: PathBuf,
    /// The directory of the block.
    pub dir: PathBuf,
    /// Programs to probe, beside those that the lab finds itself.
    pub probes: Vec<WantedProbe>,
    /// Whether and how the waits of threads are observed.
    pub inside: Way,
    /// The processes run on this machine already: nothing is sent to them.
    pub is_running: bool,
    /// Report only the limits, each with its highest use.
    pub is_summed: bool,
}

/// A probe that the user asked for: `redis=:password@127.0.0.1:6379`,
/// `spring=http://127.0.0.1:8081/actuator/prometheus`, `node`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WantedProbe {
    /// The name of a [`ProgramKind`](super::probe::ProgramKind).
    pub kind: String,
    /// Its address or place. Empty for `node`.
    pub at: String,
}

/// How the waits of threads are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Not at all.
    #[default]
    Off,
    /// With programs in the kernel; through `/proc` if the kernel accepts none.
    Auto,
    /// Through `/proc` alone.
    Proc,
}
