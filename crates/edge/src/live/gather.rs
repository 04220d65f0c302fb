//! Builds one snapshot from the cells of all workers and the figures of the machine.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use weir_http::exchange::conf::Conf;
use weir_http::hold::board::boards::peer_name;
use weir_http::hold::board::lock;
use weir_http::hold::bounds::MEMORY;
use weir_meter::live::cells::{PeerSums, Why, ZoneSums};
use weir_meter::live::histogram::Tally;
use weir_meter::live::{
    self as shown, CLASSES_MAX, ErrorClass, ErrorKind, ErrorSample, OTHER, PATH, SAMPLES_MAX, Snapshot, StepTimes,
    Timestamp, WorkerCpu, ZoneAccount, ZoneTimes,
};
use weir_proxy::family::upstream::Upstream;

use super::books::MetricBook;
use super::caches::{Row, cache_sums};
use super::ceilings;
use super::certificates;
use super::machine::{Machine, Share};
use super::peers;
use super::protocols::ProtocolBooks;
use super::sessions;
use super::sums::{Flow, Sums, flow_of_all, groups, last_error, limit_sums, peer_sums, resolvers, sums, traces};
use super::trends::Trends;
use super::tunnels::websockets;
use super::{Live, Scene};
use crate::{canary, recorder};

/// The data that the observer keeps from second to second.
pub struct Gatherer {
    root: PathBuf,
    pub(super) servers: MetricBook<ZoneSums>,
    pub(super) locations: MetricBook<ZoneSums>,
    pub(super) peers: MetricBook<PeerSums>,
    pub(super) limits: MetricBook<Vec<u64>>,
    pub(super) caches: MetricBook<Vec<u64>>,
    /// Accepted, dropped, requests: of all workers (`""`), and by seat.
    pub(super) flows: MetricBook<Vec<u64>>,
    pub(super) requests: MetricBook<Vec<u64>>,
    pub(super) handshakes: MetricBook<ZoneSums>,
    protocols: ProtocolBooks,
    trends: Trends,
    machine: Machine,
    errors: HashMap<String, (Timestamp, VecDeque<ErrorSample>)>,
    /// Samples taken so far.
    samples: u64,
    counted: BTreeMap<String, u64>,
    pub(super) maxima: HashMap<String, f64>,
}

/// The counters that a DELETE sets to zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Accepted and dropped, and QUIC.
    Connections,
    /// All servers' requests, also by protocol.
    Requests,
    /// All handshakes.
    Ssl,
    /// Nothing: weir does not count workers that ended with an error.
    Processes,
    /// A server zone.
    Server(String),
    /// A location zone.
    Location(String),
    /// A zone of `limit_req`.
    LimitReq(String),
    /// A zone of `limit_conn`.
    LimitConn(String),
    /// A cache.
    Cache(String),
    /// All peers of a group.
    Upstream(String),
    /// One worker, or all.
    Workers(Option<u64>),
}

impl Gatherer {
    /// A gatherer without data; it reads the machine's files below `root`.
    pub fn new(root: PathBuf, now_ms: u64) -> Gatherer {
        Gatherer {
            root,
            servers: MetricBook::default(),
            locations: MetricBook::default(),
            peers: MetricBook::default(),
            limits: MetricBook::default(),
            caches: MetricBook::default(),
            flows: MetricBook::default(),
            requests: MetricBook::default(),
            handshakes: MetricBook::default(),
            protocols: ProtocolBooks::default(),
            trends: Trends::new(now_ms),
            machine: Machine::default(),
            errors: HashMap::new(),
            samples: 0,
            counted: BTreeMap::new(),
            maxima: HashMap::new(),
        }
    }

    /// Once a second: takes the figures that are measured over time.
    pub fn tick(&mut self, live: &Live, now_ms: u64) {
        self.machine.look(&self.root, now_ms);
        MEMORY.set_used(self.machine.host.rss);
        for (_, board) in live.boards.taken() {
            for (mishap, sample) in board.take_samples() {
                self.keep_sample(mishap.class(), sample);
            }
        }
        let scene = lock(&live.scene);
        let Some(conf) = scene.conf.clone() else { return };
        drop(scene);
        self.machine.look_at_ports(&conf);
        let sums = sums(live, &conf);
        let mut second = self.trends.second(now_ms);
        for (name, zone) in &sums.servers {
            let key = format!("server\0{name}");
            second.tally(&key, &zone.times);
            second.count(key, zone.begun);
        }
        for (name, zone) in &sums.locations {
            let key = format!("location\0{name}");
            second.tally(&key, &zone.times);
            second.count(key, zone.ended());
        }
        for (step, tally) in PATH.iter().zip(&sums.path) {
            second.tally(&format!("path\0{step}"), tally);
        }
        for upstream in groups(&conf) {
            let views = upstream.group.view(now_ms);
            for (peer, view) in upstream.group.peers().zip(views) {
                let name = peer_name(&upstream.name, &peer.address);
                let sums = peer_sums(live, &name);
                for (what, tally) in
                    [("connect", &sums.connect), ("header", &sums.header), ("response", &sums.response)]
                {
                    let key = format!("{what}\0{name}");
                    second.tally(&key, tally);
                    second.count(key, tally.count());
                }
                second.outage(name, view.is_out());
            }
        }
        for upstream in
            weir_stream::declared(&conf).upstream.groups.iter().map(weir_stream::family::upstream::StreamUpstream::now)
        {
            for (peer, view) in upstream.group.peers().zip(upstream.group.view(now_ms)) {
                second.outage(sessions::outage_name(&upstream.name, &peer.address), view.is_out());
            }
        }
        second.end();
    }

    /// The state of everything at this moment.
    pub fn snapshot(&mut self, live: &Live, now_ms: u64) -> Snapshot {
        let scene = lock(&live.scene).clone();
        let Some(conf) = scene.conf.clone() else { return Snapshot::default() };
        let sums = sums(live, &conf);
        let mut snapshot = Snapshot {
            nginx: shown::Nginx {
                version: weir_http::send::respond::VERSION.to_owned(),
                // Clients of NGINX Plus read the release here; this release introduced version 9.
                build: format!("weir {} (nginx-plus-r30 API)", env!("CARGO_PKG_VERSION")),
                address: String::new(),
                generation: conf.generation.into(),
                load_timestamp: Timestamp(scene.loaded_ms),
                timestamp: Timestamp(now_ms),
                pid: std::process::id(),
                ppid: std::os::unix::process::parent_id(),
            },
            ssl: self.handshakes.net("", sums.all.clone()).ssl,
            ..Snapshot::default()
        };
        self.connections(live, &scene, &mut snapshot);
        self.protocols.fill(live, &mut snapshot);
        self.zones(&conf, sums, &mut snapshot);
        self.limit_zones(live, &conf, &mut snapshot);
        self.cache_zones(live, &conf, &mut snapshot);
        let secure = asked_over_tls(&conf);
        for upstream in &weir_proxy::declared(&conf).upstream.groups {
            if upstream.live.is_some() {
                snapshot.weir.changeable.push(upstream.name.clone());
            }
            let zombies = upstream.live.as_ref().map_or(0, |live| live.zombies());
            let is_tls = secure.contains(upstream.name.as_str());
            self.upstream(live, &upstream.now(), is_tls, zombies, now_ms, &mut snapshot);
        }
        resolvers(&conf, &mut snapshot);
        snapshot.weir.uptime_ms = self.trends.uptime_ms(now_ms);
        snapshot.weir.recent_ms = self.trends.recent_ms(now_ms);
        snapshot.weir.loads_refused = scene.refused;
        snapshot.weir.is_last_load_refused = scene.is_last_refused;
        snapshot.weir.names_merged = live.boards.zones.merged()
            + live.boards.peers.merged()
            + live.boards.limits.merged()
            + live.boards.caches.merged();
        snapshot.weir.websockets = websockets(live, &conf);
        snapshot.weir.certificates = certificates::all(&conf);
        snapshot.weir.traces = traces(&conf);
        snapshot.weir.recordings = recorder::api::all(&conf);
        snapshot.weir.canary = canary::api::state();
        snapshot.weir.fleet = crate::declared(&conf).fleet.fleet().map(|fleet| fleet.view());
        snapshot.weir.host = self.machine.host.clone();
        snapshot.weir.errors = self.errors(live, now_ms, &snapshot);
        snapshot.weir.limits = ceilings::limits(live, &scene, &self.machine, &snapshot);
        let mut maxima = HashMap::new();
        for limit in &mut snapshot.weir.limits {
            let key = format!("{}\0{}", limit.kind, limit.of);
            limit.max = self.maxima.get(&key).map_or(limit.used, |most| most.max(limit.used));
            maxima.insert(key, limit.max);
        }
        self.maxima = maxima;
        snapshot
    }

    /// Begins these totals again at zero.
    pub(super) fn reset(&mut self, live: &Live, what: &Reset) {
        let Some(conf) = lock(&live.scene).conf.clone() else { return };
        match what {
            Reset::Connections => {
                let flow = flow_of_all(live);
                self.flows.reset("", flow);
                self.protocols.reset_quic(live);
            }
            Reset::Requests => {
                let requests = at(&flow_of_all(live), 2);
                self.requests.reset("", vec![requests]);
                self.protocols.reset_traffic(live);
            }
            Reset::Ssl => self.handshakes.reset("", sums(live, &conf).all),
            Reset::Processes => {}
            Reset::Server(name) => {
                let raw = sums(live, &conf).servers.remove(name).unwrap_or_default();
                self.servers.reset(name, raw);
            }
            Reset::Location(name) => {
                let raw = sums(live, &conf).locations.remove(name).unwrap_or_default();
                self.locations.reset(name, raw);
            }
            Reset::LimitReq(name) | Reset::LimitConn(name) => {
                let kind = if matches!(what, Reset::LimitReq(_)) { "req" } else { "conn" };
                let key = format!("{kind}\0{name}");
                let cell = live.boards.limits.find(&key).unwrap_or(weir_http::hold::board::names::OTHERS);
                self.limits.reset(&key, limit_sums(live, cell));
            }
            Reset::Cache(name) => {
                let caches = weir_proxy::declared(&conf).cache.all();
                let found =
                    caches.iter().zip(&weir_proxy::declared(&conf).cache.paths).find(|(_, path)| path.name == *name);
                if let Some((zone, path)) = found {
                    self.caches.reset(name, cache_sums(live, zone, path.cell));
                }
            }
            Reset::Upstream(name) => {
                let group = groups(&conf).into_iter().find(|upstream| upstream.name == *name);
                for peer in group.iter().flat_map(|upstream| upstream.group.peers()) {
                    let name = peer_name(name, &peer.address);
                    self.trends.forget_outage(&name);
                    self.peers.reset(&name, peer_sums(live, &name));
                }
            }
            Reset::Workers(only) => {
                let seats = lock(&live.scene).seats.clone();
                for (id, seat) in seats.into_iter().enumerate() {
                    if only.is_none_or(|only| only == id as u64) {
                        let totals = Flow::of(live.counters.seat(seat)).totals.to_vec();
                        self.flows.reset(&seat.to_string(), totals);
                    }
                }
            }
        }
    }

    fn connections(&self, live: &Live, scene: &Scene, snapshot: &mut Snapshot) {
        let mut all = [0; 3];
        let (mut active, mut idle, mut current) = (0, 0, 0);
        for (seat, counters) in live.counters.iter().enumerate() {
            let one = Flow::of(counters);
            for (sum, count) in all.iter_mut().zip(one.totals) {
                *sum += count;
            }
            (active, idle, current) = (active + one.active, idle + one.idle, current + one.current);
            if let Some(id) = scene.seats.iter().position(|taken| *taken == seat) {
                let net = self.flows.net(&seat.to_string(), one.totals.to_vec());
                let thread = live.boards.of_seat(seat).thread.get();
                snapshot.workers.push(shown::Worker {
                    id: id as u64,
                    pid: thread as u32,
                    connections: shown::Connections {
                        accepted: at(&net, 0),
                        dropped: at(&net, 1),
                        active: one.active,
                        idle: one.idle,
                    },
                    http: shown::WorkerHttp { requests: shown::Requests { total: at(&net, 2), current: one.current } },
                });
                let Share { cpu, wait, wakeups } =
                    self.machine.shares.get(&(thread as u32)).copied().unwrap_or_default();
                snapshot.weir.workers.push(WorkerCpu { id: id as u64, cpu, wait, wakeups });
            }
        }
        snapshot.workers.sort_by_key(|worker| worker.id);
        snapshot.weir.workers.sort_by_key(|worker| worker.id);
        let net = self.flows.net("", all.to_vec());
        snapshot.connections = shown::Connections { accepted: at(&net, 0), dropped: at(&net, 1), active, idle };
        let total = self.requests.net("", vec![all[2]]);
        snapshot.http.requests = shown::Requests { total: at(&total, 0), current };
    }

    fn zones(&self, conf: &Conf, sums: Sums, snapshot: &mut Snapshot) {
        let secure: HashSet<&str> = conf
            .servers
            .iter()
            .map(|server| conf.location(server.root))
            .filter(|root| !crate::values(root).ssl.certificates.is_empty())
            .map(|root| root.zone.server.as_str())
            .collect();
        for (step, tally) in PATH.iter().zip(&sums.path) {
            let recent = self.trends.recent(&format!("path\0{step}"), tally);
            snapshot.weir.path.push(StepTimes { step: (*step).to_owned(), recent, total: tally.times() });
        }
        for (name, raw) in sums.servers {
            let times = self.trends.times(&format!("server\0{name}"), &raw.times);
            let net = self.servers.net(&name, raw);
            let zone = shown::ServerZone {
                processing: net.begun.saturating_sub(net.ended()),
                requests: net.begun.max(net.ended()),
                responses: net.responses(),
                discarded: net.discarded,
                received: net.received,
                sent: net.sent,
                ssl: secure.contains(name.as_str()).then(|| net.ssl.clone().into()),
            };
            snapshot.weir.server_zones.insert(name.clone(), account(&net, times));
            snapshot.http.server_zones.insert(name, zone);
        }
        for (name, raw) in sums.locations {
            let times = self.trends.times(&format!("location\0{name}"), &raw.times);
            let net = self.locations.net(&name, raw);
            let zone = shown::LocationZone {
                requests: net.ended(),
                responses: net.responses(),
                discarded: net.discarded,
                received: net.received,
                sent: net.sent,
            };
            snapshot.weir.location_zones.insert(name.clone(), account(&net, times));
            snapshot.http.location_zones.insert(name, zone);
        }
    }

    fn limit_zones(&self, live: &Live, conf: &Conf, snapshot: &mut Snapshot) {
        for zone in crate::declared(conf).limit_req.iter() {
            let net = self.limits.net(&format!("req\0{}", zone.name), limit_sums(live, zone.cell));
            let shown = shown::LimitReq {
                passed: at(&net, 0),
                delayed: at(&net, 1),
                rejected: at(&net, 2),
                delayed_dry_run: at(&net, 3),
                rejected_dry_run: at(&net, 4),
            };
            snapshot.http.limit_reqs.insert(zone.name.clone(), shown);
            let bytes = zone.table.bytes() + zone.parameters.shared_bytes();
            snapshot.slabs.insert(zone.name.clone(), slab(bytes, zone.size()));
        }
        snapshot.stream = sessions::stream(conf, &self.trends, weir_net::clock::unix_ms());
        for zone in crate::declared(conf).limit_conn.sessions.iter() {
            let net = self.limits.net(&format!("sessions\0{}", zone.name), limit_sums(live, zone.cell));
            let shown = shown::LimitConn { passed: at(&net, 0), rejected: at(&net, 2), rejected_dry_run: at(&net, 4) };
            snapshot.stream.limit_conns.insert(zone.name.clone(), shown);
            snapshot.slabs.insert(zone.name.clone(), slab(zone.table.bytes(), zone.size()));
        }
        for zone in crate::declared(conf).limit_conn.requests.iter() {
            let net = self.limits.net(&format!("conn\0{}", zone.name), limit_sums(live, zone.cell));
            let shown = shown::LimitConn { passed: at(&net, 0), rejected: at(&net, 2), rejected_dry_run: at(&net, 4) };
            snapshot.http.limit_conns.insert(zone.name.clone(), shown);
            snapshot.slabs.insert(zone.name.clone(), slab(zone.table.bytes(), zone.size()));
        }
        for zone in &crate::declared(conf).keyval.zones {
            snapshot.slabs.insert(zone.name.clone(), slab(zone.bytes(), zone.size));
        }
    }

    fn cache_zones(&self, live: &Live, conf: &Conf, snapshot: &mut Snapshot) {
        for (zone, path) in weir_proxy::declared(conf).cache.all().iter().zip(&weir_proxy::declared(conf).cache.paths) {
            let figures = zone.figures();
            let row = Row(self.caches.net(&path.name, cache_sums(live, zone, path.cell)));
            let mut wait = Tally::default();
            for (_, board) in live.boards.taken() {
                if let Some(cell) = board.known_cache(path.cell) {
                    wait.add(&cell.wait);
                }
            }
            let cache = row.cache(&figures, zone.settings().directory.is_some(), path.memory);
            let account = row.account(&cache, &figures, path.memory, &wait);
            snapshot.weir.caches.insert(path.name.clone(), account);
            snapshot.http.caches.insert(path.name.clone(), cache);
            snapshot.slabs.insert(path.name.clone(), slab(figures.keys, path.keys_bytes));
        }
    }

    fn upstream(
        &self,
        live: &Live,
        upstream: &Upstream,
        is_tls: bool,
        zombies: usize,
        now_ms: u64,
        snapshot: &mut Snapshot,
    ) {
        let (mut peers, mut times, mut idle) = (Vec::new(), Vec::new(), 0);
        let views = upstream.group.view(now_ms);
        for (peer, view) in upstream.group.peers().zip(views) {
            let name = peer_name(&upstream.name, &peer.address);
            let raw = peer_sums(live, &name);
            idle += raw.idle;
            let of = |what: &str, raw: &Tally, net: &Tally| ZoneTimes {
                total: net.times(),
                ..self.trends.times(&format!("{what}\0{name}"), raw)
            };
            let net = self.peers.net(&name, raw.clone());
            let outage = self.trends.outage(&name);
            times.push(shown::PeerTimes {
                server: peer.address.clone(),
                opened: net.opened,
                reused: net.reused,
                idle: raw.idle,
                retries: net.retries,
                connect: of("connect", &raw.connect, &net.connect),
                header: of("header", &raw.header, &net.header),
                response: of("response", &raw.response, &net.response),
                fails: Why::ALL.iter().zip(net.fails).filter(|(_, count)| *count > 0).map(named).collect(),
                last_error: last_error(live, &name),
            });
            let is_out = outage.since_ms.filter(|_| view.is_out());
            peers.push(shown::Peer {
                id: peer.id.into(),
                server: peer.address.clone(),
                service: None,
                name: peer.server.clone(),
                backup: peer.backup,
                weight: peer.weight.into(),
                state: peers::state(peer, &view),
                active: view.conns.into(),
                ssl: (is_tls || net.ssl != shown::Ssl::default()).then(|| net.ssl.clone().into()),
                max_conns: (peer.max_conns > 0).then_some(peer.max_conns.into()),
                requests: net.requests,
                responses: net.responses(),
                sent: net.sent,
                received: net.received,
                fails: net.fails.iter().sum(),
                unavail: net.unavail,
                health_checks: peers::health_checks(&view),
                downtime: outage.total_ms(now_ms),
                downstart: is_out.map(Timestamp),
                selected: (net.selected_ms > 0).then_some(Timestamp(net.selected_ms)),
                header_time: mean_ms(&net.header),
                response_time: mean_ms(&net.response),
                response_time_hist: shown::ResponseTimeHist::new(&net.spread(), net.response.sum_us() / 1000),
            });
        }
        let group = shown::Upstream {
            peers,
            keepalive: idle,
            zombies: zombies as u64,
            zone: upstream.zone.clone().unwrap_or_else(|| upstream.name.clone()),
            queue: upstream.own.queue.as_ref().map(|queue| {
                let counted = queue.counted();
                shown::QueueCounts { size: counted.size, max_size: queue.most as u64, overflows: counted.overflows }
            }),
        };
        snapshot.http.upstreams.insert(upstream.name.clone(), group);
        if let Some(queue) = &upstream.own.queue {
            let counted = queue.counted();
            let account = shown::QueueAccount { waited: counted.waited, timed_out: counted.timed_out };
            snapshot.weir.queues.insert(upstream.name.clone(), account);
        }
        snapshot.weir.upstreams.insert(upstream.name.clone(), times);
    }

    fn keep_sample(&mut self, class: String, mut sample: ErrorSample) {
        self.samples += 1;
        sample.number = self.samples;
        let class =
            if self.errors.len() < CLASSES_MAX || self.errors.contains_key(&class) { class } else { OTHER.into() };
        let (last, samples) = self.errors.entry(class).or_default();
        *last = (*last).max(sample.at);
        samples.push_front(sample);
        samples.truncate(SAMPLES_MAX);
    }

    fn errors(&mut self, live: &Live, now_ms: u64, snapshot: &Snapshot) -> Vec<ErrorClass> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut kinds: HashMap<String, ErrorKind> = HashMap::new();
        let mut accept_failed = 0;
        for (_, board) in live.boards.taken() {
            for (mishap, count) in board.mishaps.all() {
                *counts.entry(mishap.class()).or_default() += count;
                kinds.insert(mishap.class(), mishap.kind());
            }
            accept_failed += board.accept_failed.get();
        }
        for (class, count) in [("connections full", snapshot.connections.dropped), ("accept failed", accept_failed)] {
            if count > 0 {
                counts.insert(class.to_owned(), count);
            }
        }
        let mut rest = 0;
        while counts.len() > CLASSES_MAX {
            rest += counts.pop_last().map_or(0, |(_, count)| count);
        }
        if rest > 0 {
            *counts.entry(OTHER.to_owned()).or_default() += rest;
        }
        let mut all = Vec::new();
        for (class, count) in &counts {
            let (last, samples) = self.errors.entry(class.clone()).or_default();
            // Not every error leaves a sample. Without a new sample, the class was last seen when its count grew.
            if self.counted.get(class) != Some(count) && samples.front().is_none_or(|sample| sample.at <= *last) {
                *last = (*last).max(samples.front().map_or(Timestamp(now_ms), |sample| sample.at));
            }
            let samples = samples.iter().cloned().collect();
            let kind = kinds.get(class).copied().unwrap_or_default();
            all.push(ErrorClass { class: class.clone(), kind, count: *count, last: *last, samples });
        }
        self.counted = counts;
        all.sort_by(|one, other| {
            one.kind.cmp(&other.kind).then(other.count.cmp(&one.count)).then_with(|| one.class.cmp(&other.class))
        });
        all
    }
}

fn account(net: &ZoneSums, times: ZoneTimes) -> ZoneAccount {
    let times = ZoneTimes { total: net.times.times(), ..times };
    ZoneAccount { times, failed: net.failed, refused: net.refused }
}

/// The groups that some location names with `https://`.
fn asked_over_tls(conf: &Conf) -> HashSet<&str> {
    let passes = conf.locations.iter().filter_map(|location| weir_proxy::values(location).proxy.pass.as_ref());
    let groups = &weir_proxy::declared(conf).upstream.groups;
    let secure = passes.filter(|pass| pass.is_tls).filter_map(|pass| groups.get(pass.group?));
    secure.map(|group| group.name.as_str()).collect()
}

fn slab(used: u64, size: u64) -> shown::Slab {
    let (used, all) = (used.div_ceil(PAGE), size / PAGE);
    shown::Slab { pages: shown::Pages { used, free: all.saturating_sub(used) }, slots: BTreeMap::new() }
}

const PAGE: u64 = 4096;

fn mean_ms(tally: &Tally) -> Option<u64> {
    let count = tally.count();
    (count > 0).then(|| tally.sum_us() / count / 1000)
}

fn named((why, count): (&Why, u64)) -> (String, u64) {
    (why.as_str().to_owned(), count)
}

fn at(numbers: &[u64], index: usize) -> u64 {
    numbers.get(index).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    #[test]
    fn a_group_is_asked_over_tls_where_one_location_does() {
        let text = "events {} http { upstream plain { server [::1]:1; } upstream both { server [::1]:2; } upstream rpc { server [::1]:3; }
            upstream unasked { server [::1]:4; }
            server { listen 1; location /p { proxy_pass http://plain; } location /b { proxy_pass http://both; }
                location /t { proxy_pass https://both; } location /g { grpc_pass grpcs://rpc; } } }";
        let (conf, said) = of_text(text);
        assert!(said.is_empty(), "{said:?}");
        let conf = conf.unwrap();
        let mut names: Vec<&str> = asked_over_tls(&conf).into_iter().collect();
        names.sort_unstable();
        assert_eq!(names, ["both", "rpc"]);
    }

    #[test]
    fn samples_and_classes_are_bounded() {
        let mut gatherer = Gatherer::new("/nowhere".into(), 0);
        for number in 0..CLASSES_MAX + 9 {
            for at in 0..SAMPLES_MAX as u64 + 5 {
                gatherer.keep_sample(number.to_string(), ErrorSample { at: Timestamp(at), ..Default::default() });
            }
        }
        assert_eq!(gatherer.errors.len(), CLASSES_MAX + 1);
        let (last, samples) = &gatherer.errors[OTHER];
        assert_eq!((samples.len(), samples[0].at, *last), (SAMPLES_MAX, Timestamp(24), Timestamp(24)));
    }
}
