//! The cells of all workers added up, by name.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_http::exchange::conf::Conf;
use weir_http::hold::counters;
use weir_meter::live::cells::{PeerSums, ZoneSums};
use weir_meter::live::histogram::Tally;
use weir_meter::live::{self as shown, OTHER, PATH};
use weir_proxy::family::upstream::Upstream;

use super::Live;

/// The contents of all boards at one moment.
pub(super) struct Sums {
    pub(super) servers: BTreeMap<String, ZoneSums>,
    pub(super) locations: BTreeMap<String, ZoneSums>,
    pub(super) all: ZoneSums,
    pub(super) path: Vec<Tally>,
}
/// All groups with their current peers.
pub(crate) fn groups(conf: &Conf) -> Vec<Arc<Upstream>> {
    weir_proxy::declared(conf).upstream.groups.iter().map(Upstream::now).collect()
}

/// The questions of resolvers and their answers.
pub(super) fn resolvers(conf: &Conf, snapshot: &mut shown::Snapshot) {
    for zone in weir_proxy::declared(conf).resolver.zones() {
        let counters = zone.counters();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shown = shown::Resolver {
            requests: shown::ResolverRequests {
                name: get(&counters.name),
                srv: get(&counters.srv),
                addr: get(&counters.addr),
            },
            responses: shown::ResolverResponses {
                noerror: get(&counters.noerror),
                formerr: get(&counters.formerr),
                servfail: get(&counters.servfail),
                nxdomain: get(&counters.nxdomain),
                notimp: get(&counters.notimp),
                refused: get(&counters.refused),
                timedout: get(&counters.timedout),
                unknown: get(&counters.unknown),
            },
        };
        snapshot.resolvers.insert(zone.name.clone(), shown);
    }
}

/// One worker's connections and requests.
pub(super) struct Flow {
    /// Accepted, dropped, requests.
    pub(super) totals: [u64; 3],
    pub(super) active: u64,
    pub(super) idle: u64,
    pub(super) current: u64,
}

impl Flow {
    pub(super) fn of(counters: &counters::Counters) -> Flow {
        let one = std::slice::from_ref(counters);
        let handled = counters::total(one, |counters| &counters.handled);
        let accepted = counters::total(one, |counters| &counters.accepted).max(handled);
        let requests = counters::requests(one);
        let open = counters::level(one, |counters| &counters.active);
        let current = counters::level(one, |counters| &counters.writing);
        let busy = current + counters::level(one, |counters| &counters.reading);
        // Over HTTP/2 a connection has several requests under way.
        let idle = open.saturating_sub(busy);
        Flow { totals: [accepted, accepted - handled, requests], active: open - idle, idle, current }
    }
}

/// The counters of `flow` for all seats.
pub(super) fn flow_of_all(live: &Live) -> Vec<u64> {
    let mut all = vec![0; 3];
    for counters in live.counters.iter() {
        for (sum, count) in all.iter_mut().zip(Flow::of(counters).totals) {
            *sum += count;
        }
    }
    all
}

/// The sums of all zones.
pub(super) fn sums(live: &Live, conf: &Conf) -> Sums {
    let servers: HashSet<&str> = conf.locations.iter().map(|location| location.zone.server.as_str()).collect();
    let locations: HashSet<&str> =
        conf.locations.iter().filter_map(|location| location.zone.location.as_deref()).collect();
    let none = || ZoneSums::default();
    let mut sums = Sums {
        servers: servers.iter().map(|name| ((*name).to_owned(), none())).collect(),
        locations: locations.iter().map(|name| ((*name).to_owned(), none())).collect(),
        all: none(),
        path: vec![Tally::default(); PATH.len()],
    };
    for (name, number) in
        live.boards.zones.all().into_iter().chain([(format!("{OTHER}\0"), weir_http::hold::board::names::OTHERS)])
    {
        let mut cell = none();
        let known = live.boards.taken().filter_map(|(_, board)| board.known_zone(number));
        let counted = known.map(|known| cell.add(known)).count();
        if counted == 0 {
            continue;
        }
        sums.all.merge(&cell);
        let (server, location) = name.split_once('\0').unwrap_or((&name, ""));
        if number == weir_http::hold::board::names::OTHERS {
            sums.servers.entry(OTHER.to_owned()).or_default().merge(&cell);
        } else if let Some(zone) = sums.servers.get_mut(server) {
            // The counts of a location that no longer exists still belong to its server.
            zone.merge(&cell);
        }
        if let Some(zone) = sums.locations.get_mut(location) {
            zone.merge(&cell);
        }
    }
    for (_, board) in live.boards.taken() {
        for (sum, histogram) in sums.path.iter_mut().zip(&board.path) {
            sum.add(histogram);
        }
    }
    sums
}

/// The sums of one peer.
pub(super) fn peer_sums(live: &Live, name: &str) -> PeerSums {
    let mut sums = PeerSums::default();
    let Some(number) = live.boards.peers.find(name) else { return sums };
    for (_, board) in live.boards.taken() {
        if let Some(cell) = board.known_peer(number) {
            sums.add(cell);
        }
    }
    sums
}

/// The log line of a peer's newest failure; empty if it had none.
pub(super) fn last_error(live: &Live, name: &str) -> String {
    let number = live.boards.peers.find(name);
    let all = live.boards.taken().filter_map(|(_, board)| board.last_error(number?));
    all.max_by_key(|(at_ms, _)| *at_ms).map(|(_, line)| line).unwrap_or_default()
}

/// Passed, delayed, rejected, and the two counts of a dry run.
pub(super) fn limit_sums(live: &Live, cell: u32) -> Vec<u64> {
    let mut sums = vec![0; 5];
    for (_, board) in live.boards.taken() {
        let Some(cell) = board.known_limit(cell) else { continue };
        let counts = [&cell.passed, &cell.delayed, &cell.rejected, &cell.delayed_dry_run, &cell.rejected_dry_run];
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count.get();
        }
    }
    sums
}

/// The counts of exported, dropped and failed spans.
pub(super) fn traces(conf: &Conf) -> shown::Traces {
    let otel = &conf.declared.otel;
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let counts = &otel.counts;
    shown::Traces {
        endpoint: otel.endpoint(),
        exported: read(&counts.exported),
        dropped: read(&counts.dropped),
        failed: read(&counts.failed),
    }
}
