//! The route of each request: its method and its path, in which ids and names are parameters.

use std::collections::{BTreeMap, BTreeSet};

use weir_load::traffic::routes_of;

use super::plan::{PlacedRequest, Planner, bare};
use crate::judge::RoutedRequest;
use crate::request::SwapRequest;

/// Requests with their routes, and the places that answer them.
#[derive(Debug, Default)]
pub struct Routed {
    /// The requests.
    pub requests: Vec<RoutedRequest>,
    /// The places, as [`RoutedRequest::place`] numbers them.
    pub places: Vec<PlacedRequest>,
}

/// Finds the routes. Without a planner, no place is known.
pub fn find(requests: Vec<SwapRequest>, planner: Option<&Planner<'_>>) -> Routed {
    let targets: Vec<String> =
        requests.iter().map(|request| String::from_utf8_lossy(&request.target).into_owned()).collect();
    let calls = requests.iter().zip(&targets).map(|(request, target)| (request.method.as_str(), target.as_str()));
    let routes = routes_of(calls);
    let hosts: BTreeSet<&str> = requests.iter().map(|request| bare(&request.host)).collect();
    let has_hosts = hosts.len() > 1;
    let mut routed = Routed::default();
    let mut places_of: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let mut all = Vec::new();
    for (request, route) in requests.into_iter().zip(routes) {
        let route = match route.split_once(' ').filter(|_| has_hosts) {
            Some((method, path)) => format!("{method} {}{path}", bare(&request.host)),
            None => route,
        };
        let place = planner.and_then(|planner| planner.place(&request)).map(|place| routed.number(place));
        places_of.entry(route.clone()).or_default().extend(place);
        all.push(RoutedRequest { request, route, place });
    }
    // The path alone does not tell two locations apart.
    for one in &mut all {
        let is_shared = places_of.get(&one.route).is_some_and(|places| places.len() > 1);
        let place = one.place.and_then(|place| routed.places.get(place));
        if let Some((_, location)) = place.filter(|_| is_shared).and_then(|place| place.shown.split_once(' ')) {
            one.route = format!("{} ({location})", one.route);
        }
    }
    routed.requests = all;
    routed
}

impl Routed {
    fn number(&mut self, place: PlacedRequest) -> usize {
        match self.places.iter().position(|known| *known == place) {
            Some(known) => known,
            None => {
                self.places.push(place);
                self.places.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_the_host_if_there_are_several() {
        let request = |host: &str, target: &str| SwapRequest {
            method: "GET".to_owned(),
            host: host.to_owned(),
            target: target.into(),
            ..SwapRequest::default()
        };
        let routes = |requests: Vec<SwapRequest>| -> Vec<String> {
            find(requests, None).requests.into_iter().map(|one| one.route).collect()
        };
        assert_eq!(routes(vec![request("a", "/x/1"), request("a:80", "/x/2")]), ["GET /x/:id", "GET /x/:id"]);
        assert_eq!(routes(vec![request("a", "/x/1"), request("b", "/x/2")]), ["GET a/x/:id", "GET b/x/:id"]);
    }
}
