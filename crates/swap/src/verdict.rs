//! The bound for all requests that are like the asked ones.

use std::collections::{BTreeMap, BTreeSet};

use weir_lab::stats::exact_interval;

use crate::judge::Judgement;

/// The probability with which a bound holds.
pub const LEVEL: f64 = 0.95;
/// A route with fewer requests is not shown to be the same.
pub const ROUTE_MIN: u64 = 60;

/// The word for all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapVerdict {
    /// No difference.
    Same,
    /// Differences.
    Differs,
    /// Nothing could be compared.
    Undecided,
}

impl SwapVerdict {
    /// The word for JSON.
    pub fn word(self) -> &'static str {
        match self {
            SwapVerdict::Same => "same",
            SwapVerdict::Differs => "differs",
            SwapVerdict::Undecided => "undecided",
        }
    }
}

/// The largest share of differing requests, and of clients with one, that is still likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Requests that differ, and those that could be compared.
    pub requests: (u64, u64),
    /// Clients with a request that differs, and all of them.
    pub clients: (u64, u64),
    /// The bound for requests, if each stands for itself.
    pub upper: f64,
    /// The bound for clients: the requests of one client depend on each other.
    pub upper_clients: f64,
}

/// The requests of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCount {
    /// The route.
    pub route: String,
    /// Its requests that could be compared.
    pub requests: u64,
    /// Those that differ.
    pub differing: u64,
}

impl RouteCount {
    /// Whether there are enough requests to say something.
    pub fn is_shown(&self) -> bool {
        self.requests >= ROUTE_MIN
    }
}

/// The verdict.
pub fn verdict(judged: &Judgement) -> SwapVerdict {
    let comparable = judged.requests.iter().any(|request| request.is_comparable);
    match (judged.found.is_empty(), comparable) {
        (false, _) => SwapVerdict::Differs,
        (true, true) => SwapVerdict::Same,
        (true, false) => SwapVerdict::Undecided,
    }
}

/// The bounds.
pub fn bound(judged: &Judgement) -> Bound {
    let comparable = || judged.requests.iter().filter(|request| request.is_comparable);
    let differing = || comparable().filter(|request| !request.differences.is_empty());
    let clients: BTreeSet<u64> = comparable().map(|request| request.routed.request.client).collect();
    let differ: BTreeSet<u64> = differing().map(|request| request.routed.request.client).collect();
    let requests = (differing().count() as u64, comparable().count() as u64);
    let clients = (differ.len() as u64, clients.len() as u64);
    Bound { requests, clients, upper: upper(requests), upper_clients: upper(clients) }
}

/// The one-sided bound (Clopper and Pearson 1934); without a difference it is 1 - 0.05^(1/n).
fn upper(counts: (u64, u64)) -> f64 {
    if counts.1 == 0 { 1.0 } else { exact_interval(counts, 2.0 * LEVEL - 1.0).1 }
}

/// The routes, those with the most requests first.
pub fn routes(judged: &Judgement) -> Vec<RouteCount> {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for request in judged.requests.iter().filter(|request| request.is_comparable) {
        let count = counts.entry(&request.route).or_default();
        count.0 += 1;
        count.1 += u64::from(!request.differences.is_empty());
    }
    let one = |(route, (requests, differing)): (&str, (u64, u64))| RouteCount {
        route: route.to_owned(),
        requests,
        differing,
    };
    let mut all: Vec<RouteCount> = counts.into_iter().map(one).collect();
    all.sort_by(|one, other| other.requests.cmp(&one.requests).then_with(|| one.route.cmp(&other.route)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_without_a_difference_is_exact() {
        assert!((upper((0, 41_200)) - (1.0 - 0.05f64.powf(1.0 / 41_200.0))).abs() < 1e-9);
        assert!((upper((0, 41_200)) - 0.0000727).abs() < 1e-7);
        assert!((upper((3, 100)) - 0.0757).abs() < 1e-4);
        assert!((upper((0, 0)) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn nothing_compared_is_undecided() {
        assert_eq!(verdict(&Judgement::default()), SwapVerdict::Undecided);
    }
}
