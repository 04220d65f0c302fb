//! Where requests failed between two snapshots, and which server failed them.

use std::collections::BTreeMap;

use weir_meter::live::{ErrorClass, ErrorKind, ErrorSample, Responses, Snapshot, ZoneAccount};

/// A location or a server in which requests failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailingPlace<'s> {
    /// Its zone.
    pub name: &'s str,
    /// Requests that ended there.
    pub requests: u64,
    /// Requests that failed there.
    pub failed: u64,
    /// The status of most of them, and how many had it; `None` if their clients got no status of 5xx.
    pub status: Option<(u16, u64)>,
    /// The class of most of their samples.
    pub class: Option<&'s ErrorClass>,
    /// The server of an upstream that most of these samples name; empty if they name none.
    pub peer: &'s str,
}

/// The locations in which requests failed, or the servers if no location counts them; most failures first.
pub fn places<'s>(first: &Snapshot, last: &'s Snapshot) -> Vec<FailingPlace<'s>> {
    let all = [&last.weir.location_zones, &last.weir.server_zones];
    let before = [&first.weir.location_zones, &first.weir.server_zones];
    for (is_server, (now, then)) in [false, true].into_iter().zip(all.into_iter().zip(before)) {
        let places = now.iter().filter_map(|(name, account)| {
            let grown = Grown::of(account, then.get(name))?;
            let (now, then) = (counts(last, name, is_server), counts(first, name, is_server));
            Some(place(name, grown, now, then, samples(first, last, name, is_server)))
        });
        let mut places: Vec<FailingPlace<'s>> = places.collect();
        if !places.is_empty() {
            places.sort_by_key(|place| std::cmp::Reverse(place.failed));
            return places;
        }
    }
    Vec::new()
}

/// Requests that failed and that were refused, if any failed.
struct Grown {
    failed: u64,
    refused: u64,
}

impl Grown {
    fn of(now: &ZoneAccount, then: Option<&ZoneAccount>) -> Option<Grown> {
        let failed = now.failed.saturating_sub(then.map_or(0, |then| then.failed));
        let refused = now.refused.saturating_sub(then.map_or(0, |then| then.refused));
        (failed > 0).then_some(Grown { failed, refused })
    }
}

/// The requests of a zone that ended, and their answers.
fn counts<'s>(snapshot: &'s Snapshot, name: &str, is_server: bool) -> Option<(u64, &'s Responses)> {
    if is_server {
        return snapshot.http.server_zones.get(name).map(|zone| (zone.requests, &zone.responses));
    }
    snapshot.http.location_zones.get(name).map(|zone| (zone.requests, &zone.responses))
}

/// The newest samples of failed requests of a zone, with their classes.
fn samples<'s>(
    first: &Snapshot,
    last: &'s Snapshot,
    name: &str,
    is_server: bool,
) -> Vec<(&'s ErrorClass, &'s ErrorSample)> {
    let failed = last.weir.errors.iter().filter(|class| class.kind == ErrorKind::Failed);
    let each = failed.flat_map(|class| class.samples.iter().map(move |sample| (class, sample)));
    let is_of = |sample: &ErrorSample| if is_server { sample.server == name } else { sample.zone == name };
    each.filter(|(_, sample)| sample.at >= first.nginx.timestamp && is_of(sample)).collect()
}

fn place<'s>(
    name: &'s str,
    grown: Grown,
    now: Option<(u64, &Responses)>,
    then: Option<(u64, &Responses)>,
    samples: Vec<(&'s ErrorClass, &'s ErrorSample)>,
) -> FailingPlace<'s> {
    let codes = now.into_iter().flat_map(|(_, responses)| responses.codes.range(500..));
    let statuses = codes.map(|(status, count)| {
        let before = then.and_then(|(_, responses)| responses.codes.get(status)).copied().unwrap_or(0);
        // limit_req and limit_conn refuse with 503, unless the configuration says otherwise.
        let refused = if *status == 503 { grown.refused } else { 0 };
        (*status, count.saturating_sub(before).saturating_sub(refused).min(grown.failed))
    });
    let class = most(samples.iter().map(|(class, _)| class.class.as_str()));
    let of_class = || samples.iter().filter(|(one, _)| Some(one.class.as_str()) == class);
    let peer = most(of_class().map(|(_, sample)| sample.upstream.as_str()).filter(|peer| !peer.is_empty()));
    FailingPlace {
        name,
        requests: now.map_or(0, |(requests, _)| requests).saturating_sub(then.map_or(0, |(requests, _)| requests)),
        failed: grown.failed,
        status: statuses.filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count),
        class: of_class().map(|(class, _)| *class).next(),
        peer: peer.unwrap_or_default(),
    }
}

/// The most frequent of these; of two, the first by name.
fn most<'s>(all: impl Iterator<Item = &'s str>) -> Option<&'s str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name))).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use weir_meter::live::{LocationZone, ServerZone, Timestamp};

    fn sample(at: u64, zone: &str, upstream: &str) -> ErrorSample {
        let (zone, upstream) = (zone.to_owned(), upstream.to_owned());
        ErrorSample { at: Timestamp(at), zone, server: "shop".to_owned(), upstream, ..ErrorSample::default() }
    }

    fn failing(at: u64, api: u64, old: u64) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.nginx.timestamp = Timestamp(at);
        for (name, failed, refused, answers) in [
            ("shop/api/", api, 0, [(200, 90), (500, api)]),
            ("shop/login", old, 70 * api, [(503, 70 * api), (502, old)]),
        ] {
            let mut zone = LocationZone { requests: 100 + 10 * api, ..LocationZone::default() };
            answers.iter().for_each(|(status, count)| zone.responses.add(*status, *count));
            snapshot.http.location_zones.insert(name.into(), zone);
            snapshot.weir.location_zones.insert(name.into(), ZoneAccount { failed, refused, ..ZoneAccount::default() });
        }
        snapshot
    }

    #[test]
    fn the_worst_location_and_its_server_come_first() {
        let (first, mut last) = (failing(1000, 4, 9), failing(11_000, 20, 12));
        let class = |class: &str, samples| ErrorClass { class: class.into(), samples, ..ErrorClass::default() };
        let of_api = |at, upstream| sample(at, "shop/api/", upstream);
        last.weir.errors = vec![
            class(
                "500",
                vec![
                    of_api(9000, "a:1"),
                    of_api(8000, "b:1"),
                    of_api(7000, "b:1"),
                    of_api(900, "c:1"),
                    of_api(800, "c:1"),
                ],
            ),
            class("502 connection refused", vec![sample(9000, "shop/login", "d:1"), of_api(9000, "e:1")]),
        ];
        let places = places(&first, &last);
        assert_eq!(places.len(), 2);
        let [api, login] = [&places[0], &places[1]];
        assert_eq!((api.name, api.requests, api.failed, api.status), ("shop/api/", 160, 16, Some((500, 16))));
        // Samples from before the first snapshot do not count.
        assert_eq!((api.class.map(|class| class.class.as_str()), api.peer), (Some("500"), "b:1"));
        // What limit_req refused is not of the failed ones.
        assert_eq!((login.name, login.failed, login.status, login.peer), ("shop/login", 3, Some((502, 3)), "d:1"));
    }

    #[test]
    fn servers_stand_for_locations_that_do_not_count() {
        let (mut first, mut last) = (Snapshot::default(), Snapshot::default());
        for (snapshot, failed) in [(&mut first, 3), (&mut last, 5)] {
            snapshot.http.server_zones.insert("shop".into(), ServerZone { requests: failed, ..ServerZone::default() });
            snapshot.weir.server_zones.insert("shop".into(), ZoneAccount { failed, ..ZoneAccount::default() });
        }
        let found = places(&first, &last);
        assert_eq!(found, [FailingPlace { name: "shop", requests: 2, failed: 2, ..FailingPlace::default() }]);
        assert!(places(&last, &last).is_empty());
    }
}
