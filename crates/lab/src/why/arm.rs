//! An arm of a proof, its result, and the changes of a spec that several arms make.

use serde::Serialize;

use super::rule::Squeeze;
use crate::said::Said;
use crate::stack::{Host, Spec};

/// The factor by which a resource grows when the lab gives more of it.
pub const MORE: f64 = 1.5;

/// A squeeze that the lab can carry out.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The resource that is squeezed.
    pub squeeze: Squeeze,
    /// The number of the finding that it tests. `None` for a control.
    pub finding: Option<usize>,
    /// Its name.
    pub name: Said,
    /// The amount of the resource without and with the arm.
    pub from: f64,
    /// See `from`.
    pub to: f64,
    /// The limit that the lab sets: equal to `to`, except for a neighbour, where it is the neighbour's remaining
    /// share.
    pub limit: f64,
    /// The arm gives more of the resource, instead of a fifth less.
    pub is_relaxed: bool,
    /// For additional CPUs: which CPUs, and how many workers use them.
    pub spread: Option<Spread>,
}

/// CPUs for a process that gets more of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// All CPUs that the process may run on.
    pub cpus: Vec<usize>,
    /// Workers of the edge, if its file or its default has too few for these CPUs.
    pub workers: Option<usize>,
    /// The quota of its host, if the host has one.
    pub quota: Option<f64>,
}

/// The result of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Elasticity {
    /// The resource that was squeezed.
    #[serde(serialize_with = "crate::said::one_in_english")]
    pub name: Said,
    /// The number of the finding. `None` for a control.
    pub finding: Option<usize>,
    /// The amount of the resource without and with the arm.
    pub from: f64,
    /// See `from`.
    pub to: f64,
    /// The estimate.
    pub value: f64,
    /// Its 95 % interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// The arm gave more of the resource, instead of a fifth less.
    pub is_relaxed: bool,
    /// For an arm that gave more: the relative rise of good answers that is needed.
    pub needed: f64,
}

impl Elasticity {
    /// The relative change of the answers with `to` instead of `from`, and its 95 % interval.
    pub fn change(&self) -> [f64; 3] {
        let ratio = self.to / self.from.max(1e-9);
        let of = |elasticity: f64| ratio.powf(elasticity) - 1.0;
        let (one, other) = (of(self.low), of(self.high));
        [of(self.value), one.min(other), one.max(other)]
    }
}

/// Limits one process of its host to this many CPUs. If the host already has a quota, changes that quota for all of
/// its processes.
pub(super) fn limit_cpu(spec: &mut Spec, name: &str, cpus: f64) {
    let named = spec.processes.iter().find(|process| process.name == name);
    let Some(host) = named.map(|process| process.host.clone()) else { return };
    if host_of(spec, &host).cpus.is_none() {
        let all = spec.processes.iter_mut().chain([&mut spec.client]).chain(&mut spec.warm);
        all.filter(|process| process.host == host).for_each(|process| process.is_unlimited = process.name != name);
    }
    host_of(spec, &host).cpus = Some(cpus);
}

/// The host of this name; added if the spec does not have it.
pub(super) fn host_of<'a>(spec: &'a mut Spec, name: &str) -> &'a mut Host {
    let at = spec.hosts.iter().position(|host| host.name == name).unwrap_or_else(|| {
        spec.hosts.push(Host::named(name));
        spec.hosts.len() - 1
    });
    // The entry was found or added above.
    #[allow(clippy::indexing_slicing)]
    &mut spec.hosts[at]
}
