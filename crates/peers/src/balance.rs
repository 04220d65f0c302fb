//! The balancing policies: each looks at one list of a group and names the peer for an attempt.
//!
//! A policy never counts a connection or a failure: the group does, after the choice. Every policy except `least_conn`
//! may return `None` (no key, too few peers, too many misses). The group then falls back to round robin, as nginx
//! does.

mod field;
mod hash;
mod ip_hash;
mod least_conn;
mod least_time;
mod policy;
mod prng;
mod random;
mod ring;
mod round_robin;

use crate::selection::Walk;
pub(crate) use field::{Field, SHARES};
pub use policy::{Affinity, Better, Policy, Until};
pub use prng::Prng;
pub(crate) use ring::Ring;

/// Returns the peer of `field` that `policy` chooses, or `None` if no peer in the list is usable.
pub(crate) fn choose(
    policy: Policy,
    ring: &Ring,
    field: &mut Field<'_>,
    walk: &mut Walk,
    affinity: &Affinity<'_>,
    random: &mut dyn FnMut(u32) -> u32,
) -> Option<usize> {
    if let Some(bound) = affinity.bound.and_then(|name| field.bound(name)) {
        if policy == Policy::RoundRobin {
            field.charge(bound);
        }
        return Some(bound);
    }
    let preferred = match policy {
        Policy::RoundRobin => None,
        // If no peer is usable here, round robin would not find one either.
        Policy::LeastConn => return least_conn::choose(field),
        Policy::LeastTime { until, .. } => return least_time::choose(field, until),
        Policy::IpHash => ip_hash::choose(field, walk, affinity.client),
        Policy::Hash { consistent: false } => hash::choose(field, walk, affinity.key),
        Policy::Hash { consistent: true } => ring.choose(field, walk, affinity.key),
        Policy::Random { two: None } => random::one(field, walk, random),
        Policy::Random { two: Some(better) } => random::two(field, walk, better, random),
    };
    preferred.or_else(|| round_robin::choose(field))
}
