//! The result of a swap.

use std::collections::{BTreeMap, BTreeSet};

use weir_words::Said;

use crate::cause::CausingLine;
use crate::cause::request::earlier;
use crate::difference::DifferenceKind;
use crate::exercised::ExercisedStatement;
use crate::judge::{FoundDifference, Judgement};
use crate::noise::NoisyPart;
use crate::request::SwapRequest;
use crate::traffic::NotReplayed;
use crate::verdict::{self, Bound, RouteCount, SwapVerdict};

/// Most different values of one part that are told apart; of more, the locations are.
const VALUES_MAX: usize = 10;
/// Most different values of one part on one route that are told apart.
const VALUES_OF_ROUTE_MAX: usize = 3;

/// A difference, as it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedDifference {
    /// The part.
    pub part: String,
    /// The kind.
    pub kind: DifferenceKind,
    /// The value of A in `request`.
    pub a: String,
    /// The value of B.
    pub b: String,
    /// The requests that show it.
    pub requests: u64,
    /// Their routes.
    pub routes: Vec<String>,
    /// One of them; after [`crate::cause`] the smallest that shows it.
    pub request: SwapRequest,
    /// The earlier requests that may have to come before it; after [`crate::cause`] those that have to.
    pub before: Vec<SwapRequest>,
    /// The lines that make it.
    pub causes: Vec<CausingLine>,
    /// Why there is no line, or what else is known.
    pub cause_note: Option<Said>,
}

/// The result of a swap.
pub struct SwapReport {
    /// A and B, as the user named them.
    pub names: [String; 2],
    /// The verdict.
    pub verdict: SwapVerdict,
    /// The requests that were asked.
    pub asked: u64,
    /// Those that were left out.
    pub not_replayed: BTreeMap<NotReplayed, u64>,
    /// The bounds.
    pub bound: Bound,
    /// The differences, those of the most requests first.
    pub differences: Vec<ReportedDifference>,
    /// Deliberate differences of weir: the index in [`crate::compare::EXPLAINED`], and the requests.
    pub explained: BTreeMap<usize, u64>,
    /// Differences that a second round did not show.
    pub passing: u64,
    /// The noise.
    pub noise: Vec<NoisyPart>,
    /// The routes.
    pub routes: Vec<RouteCount>,
    /// The statements of A's file. Empty: A is an address, or weir does not understand the file.
    pub exercised: Vec<ExercisedStatement>,
    /// Sentences about the traffic.
    pub sources: Vec<Said>,
    /// The user ended the run.
    pub is_stopped: bool,
}

/// Values of A and B.
type Values<'j> = BTreeSet<(&'j str, &'j str)>;

/// A difference, with its index in [`Judgement::found`].
type Numbered<'j> = (usize, &'j FoundDifference);

/// Puts the differences together that one report line can say: the same part with the same values; of a part with many
/// values, in all or on one route, those of one route.
pub fn gathered(judged: &Judgement) -> Vec<ReportedDifference> {
    let mut values: BTreeMap<(&str, DifferenceKind), Values<'_>> = BTreeMap::new();
    let mut values_of_route: BTreeMap<(&str, &str, DifferenceKind), Values<'_>> = BTreeMap::new();
    for FoundDifference { difference: one, routes, .. } in &judged.found {
        values.entry((&one.part, one.kind)).or_default().insert((&one.a, &one.b));
        for route in routes {
            values_of_route.entry((route, &one.part, one.kind)).or_default().insert((&one.a, &one.b));
        }
    }
    let mut groups: BTreeMap<(String, DifferenceKind, String), Vec<Numbered<'_>>> = BTreeMap::new();
    for (number, found) in judged.found.iter().enumerate() {
        let one = &found.difference;
        let of_route =
            found.routes.first().and_then(|route| values_of_route.get(&(route.as_str(), &one.part, one.kind)));
        let has_many = values.get(&(one.part.as_str(), one.kind)).is_some_and(|all| all.len() > VALUES_MAX)
            || of_route.is_some_and(|all| all.len() > VALUES_OF_ROUTE_MAX);
        let which = match has_many {
            true => found.routes.first().cloned().unwrap_or_default(),
            false => format!("{}\0{}", one.a, one.b),
        };
        groups.entry((one.part.clone(), one.kind, which)).or_default().push((number, found));
    }
    let mut all: Vec<ReportedDifference> = groups.into_values().filter_map(|group| reported(judged, &group)).collect();
    all.sort_by(|one, other| {
        (one.part != "status", other.requests, &one.part).cmp(&(other.part != "status", one.requests, &other.part))
    });
    all
}

fn reported(judged: &Judgement, group: &[Numbered<'_>]) -> Option<ReportedDifference> {
    let (_, first) = group.iter().min_by_key(|(_, found)| found.first)?;
    let is_in = |number: &usize| group.iter().any(|(own, _)| own == number);
    let shows = |request: &&crate::judge::JudgedRequest| request.differences.iter().any(is_in);
    let mut routes: Vec<String> = judged.requests.iter().filter(shows).map(|request| request.route.clone()).collect();
    let requests = routes.len() as u64;
    routes.sort();
    routes.dedup();
    let request = judged.requests.get(first.first)?.routed.request.clone();
    let all = judged.requests.get(..first.first).unwrap_or_default().iter().map(|one| &one.routed.request);
    let before = earlier(&all.collect::<Vec<_>>(), &request);
    let one = &first.difference;
    Some(ReportedDifference {
        part: one.part.clone(),
        kind: one.kind,
        a: one.a.clone(),
        b: one.b.clone(),
        requests,
        routes,
        request,
        before,
        causes: Vec::new(),
        cause_note: None,
    })
}

impl SwapReport {
    /// The report of a judgement.
    pub fn of(judged: &Judgement, names: [String; 2]) -> SwapReport {
        SwapReport {
            names,
            verdict: verdict::verdict(judged),
            asked: judged.requests.len() as u64,
            not_replayed: BTreeMap::new(),
            bound: verdict::bound(judged),
            differences: gathered(judged),
            explained: judged.explained.clone(),
            passing: judged.passing,
            noise: judged.noise.clone(),
            routes: verdict::routes(judged),
            exercised: Vec::new(),
            sources: Vec::new(),
            is_stopped: false,
        }
    }

    /// The exit code: 0 the same, 1 differences, 3 undecided.
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            SwapVerdict::Same => 0,
            SwapVerdict::Differs => 1,
            SwapVerdict::Undecided => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::PartDifference;
    use crate::judge::{JudgedRequest, RoutedRequest};

    /// Requests of two routes, each with one difference.
    fn judged(differences: &[(&str, &str)]) -> Judgement {
        let mut judged = Judgement::default();
        for (number, (route, value)) in differences.iter().enumerate() {
            judged.requests.push(JudgedRequest {
                routed: RoutedRequest::default(),
                route: (*route).to_owned(),
                status: 302,
                cache: None,
                is_comparable: true,
                differences: vec![number],
                noise: BTreeSet::new(),
                explained: BTreeSet::new(),
                changing: Vec::new(),
            });
            let part = "field location".to_owned();
            let difference = PartDifference {
                place: part.clone(),
                part,
                kind: DifferenceKind::Value,
                a: format!("/{value}"),
                b: format!("http://a.test/{value}"),
                ways: Vec::new(),
            };
            judged.found.push(FoundDifference {
                difference,
                requests: 1,
                routes: vec![(*route).to_owned()],
                first: number,
            });
        }
        judged
    }

    fn counts(differences: &[(&str, &str)]) -> Vec<(u64, usize)> {
        gathered(&judged(differences)).iter().map(|one| (one.requests, one.routes.len())).collect()
    }

    #[test]
    fn many_values_of_one_route_are_one_difference() {
        let orders: Vec<String> = (1..=6).map(|number| format!("orders/{number}")).collect();
        let mut all: Vec<(&str, &str)> = orders.iter().map(|value| ("GET /orders/:id 302", value.as_str())).collect();
        all.extend([("GET /login 302", "login"), ("HEAD /login 302", "login")]);
        assert_eq!(counts(&all), [(6, 1), (2, 2)]);
        // Few values stay apart.
        assert_eq!(counts(all.get(..2).unwrap_or_default()), [(1, 1), (1, 1)]);
    }
}
