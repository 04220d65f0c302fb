//! The facts about a block that its answer does not have.

use std::collections::BTreeMap;

use weir_conf::Tree;

use super::good::GoodStatuses;
use super::signals::{Pool, Role};
use crate::stack::Spec;

/// A block's spec, and further facts about it.
#[derive(Clone)]
pub struct KnownBlock<'a> {
    /// The spec that the keeper got.
    pub spec: &'a Spec,
    /// Its configuration.
    pub tree: &'a Tree,
    /// Requests a second that were asked for.
    pub offered: Option<f64>,
    /// Requests and messages that a script offers, if its plan shows it.
    pub planned: Option<f64>,
    /// The time for sending them, s.
    pub length_s: f64,
    /// Connections of a closed loop.
    pub connections: u64,
    /// The load is a closed loop.
    pub is_closed: bool,
    /// Other work on this machine causes only a warning.
    pub is_noisy: bool,
    /// The load goes to the edge itself.
    pub is_direct: bool,
    /// Served by weir.
    pub is_weir: bool,
    /// Pools with a known size.
    pub pools: &'a [Pool],
    /// The statuses that count as good.
    pub good: &'a GoodStatuses,
    /// The processes, if they ran before and the lab only watches them.
    pub running: Option<&'a BTreeMap<String, RunningProcess>>,
}

/// A process that the lab did not start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunningProcess {
    /// Its part in the stack.
    pub role: Role,
    /// The CPUs of its quota.
    pub quota: Option<f64>,
    /// It only shares CPUs with the others: no request waits for it.
    pub is_neighbour: bool,
}
