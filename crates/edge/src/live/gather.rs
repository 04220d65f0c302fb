//! The cells of all workers, and what the machine says, made into one snapshot.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_meter::host::{self, CpuKinds};
use weir_meter::live::cells::{PeerSums, Why, ZoneSums};
use weir_meter::live::histogram::{Count, Tally};
use weir_meter::live::{
    self as shown, CLASSES_MAX, CpuShares, ErrorClass, ErrorSample, Host, OTHER, PATH, SAMPLES_MAX, Snapshot,
    StepTimes, Timestamp, WorkerCpu, ZoneTimes,
};

use super::board::Closer;
use super::books::Book;
use super::ceilings;
use super::{Live, Scene, lock, peer_name};
use crate::cache::reason::Reason;
use crate::cache::store::{Served, Status, Zone};
use crate::conf::Conf;
use crate::counters;
use crate::family::upstream::Upstream;

/// How far apart the marks are that recent figures are measured from.
const MARK_EVERY_MS: u64 = 5_000;

/// Marks kept: recent figures are about the last 10 to 15 s.
const MARKS_MAX: usize = 3;

/// Everything that the observer remembers from second to second.
pub struct Gatherer {
    root: PathBuf,
    started_ms: u64,
    pub(super) servers: Book<ZoneSums>,
    pub(super) locations: Book<ZoneSums>,
    pub(super) peers: Book<PeerSums>,
    pub(super) limits: Book<Vec<u64>>,
    pub(super) caches: Book<Vec<u64>>,
    /// Accepted, dropped, requests: of all (`""`), and by seat.
    pub(super) flows: Book<Vec<u64>>,
    pub(super) requests: Book<Vec<u64>>,
    pub(super) handshakes: Book<ZoneSums>,
    marks: VecDeque<Mark>,
    rates: HashMap<String, Rate>,
    outages: HashMap<String, Outage>,
    machine: Machine,
    errors: HashMap<String, (Timestamp, VecDeque<ErrorSample>)>,
    counted: BTreeMap<String, u64>,
    pub(super) maxima: HashMap<String, f64>,
}

/// What a DELETE sets to zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Accepted and dropped.
    Connections,
    /// All servers' requests.
    Requests,
    /// All handshakes.
    Ssl,
    /// Nothing: workers that end badly are not counted apart from others.
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

/// Tallies as they were at one moment.
struct Mark {
    at_ms: u64,
    tallies: HashMap<String, Tally>,
}

/// Requests a second, as of the last two ticks.
#[derive(Clone, Copy, Default)]
struct Rate {
    count: u64,
    at_ms: u64,
    rate: f64,
    most: f64,
}

/// When a peer was not there for clients.
#[derive(Default)]
struct Outage {
    since_ms: Option<u64>,
    before_ms: u64,
}

/// What the machine did in the last second.
#[derive(Default)]
pub(super) struct Machine {
    at_ms: u64,
    times: Option<CpuKinds>,
    threads: HashMap<u32, host::ThreadTimes>,
    quota: Option<host::Quota>,
    resent: Option<u64>,
    pub(super) host: Host,
    /// By thread: share of a CPU, and seconds waited a second.
    pub(super) shares: HashMap<u32, (f64, Option<f64>)>,
    /// CPUs used of a quota, and periods throttled since the start.
    pub(super) quota_used: f64,
    pub(super) throttled_total: u64,
    pub(super) open_files: u64,
    pub(super) overflows: u64,
    /// Local ports taken towards peers.
    pub(super) ports: HashMap<SocketAddr, u64>,
    /// Whose ports are looked at next.
    port_turn: usize,
}

/// What all boards hold at one moment.
pub(super) struct Sums {
    pub(super) servers: BTreeMap<String, ZoneSums>,
    pub(super) locations: BTreeMap<String, ZoneSums>,
    pub(super) all: ZoneSums,
    path: Vec<Tally>,
}

impl Gatherer {
    /// One that knows nothing yet; it reads the machine's files below `root`.
    pub fn new(root: PathBuf, now_ms: u64) -> Gatherer {
        Gatherer {
            root,
            started_ms: now_ms,
            servers: Book::default(),
            locations: Book::default(),
            peers: Book::default(),
            limits: Book::default(),
            caches: Book::default(),
            flows: Book::default(),
            requests: Book::default(),
            handshakes: Book::default(),
            marks: VecDeque::new(),
            rates: HashMap::new(),
            outages: HashMap::new(),
            machine: Machine::default(),
            errors: HashMap::new(),
            counted: BTreeMap::new(),
            maxima: HashMap::new(),
        }
    }

    /// Once a second: what is measured over time.
    pub fn tick(&mut self, live: &Live, now_ms: u64) {
        self.machine.look(&self.root, now_ms);
        for (_, board) in live.taken_boards() {
            for (class, sample) in board.take_samples() {
                self.keep_sample(class, sample);
            }
        }
        let scene = lock(&live.scene);
        let Some(conf) = scene.conf.clone() else { return };
        drop(scene);
        self.machine.look_at_ports(&conf);
        let sums = sums(live, &conf);
        for (kind, zones) in [("server", &sums.servers), ("location", &sums.locations)] {
            for (name, zone) in zones {
                let count = if kind == "server" { zone.begun } else { zone.ended() };
                self.rates.entry(format!("{kind}\0{name}")).or_default().step(count, now_ms);
            }
        }
        let mut tallies = HashMap::new();
        let is_due = self.marks.back().is_none_or(|mark| now_ms.saturating_sub(mark.at_ms) >= MARK_EVERY_MS);
        let mut mark = |name: String, tally: &Tally| {
            if is_due {
                tallies.insert(name, tally.clone());
            }
        };
        for (name, zone) in &sums.servers {
            mark(format!("server\0{name}"), &zone.times);
        }
        for (name, zone) in &sums.locations {
            mark(format!("location\0{name}"), &zone.times);
        }
        for (step, tally) in PATH.iter().zip(&sums.path) {
            mark(format!("path\0{step}"), tally);
        }
        let now_s = now_ms / 1000;
        for upstream in groups(&conf) {
            let views = upstream.group.view(now_s);
            for (peer, view) in upstream.group.peers().zip(views) {
                let name = peer_name(&upstream.name, &peer.address);
                let sums = peer_sums(live, &name);
                for (what, tally) in
                    [("connect", &sums.connect), ("header", &sums.header), ("response", &sums.response)]
                {
                    self.rates.entry(format!("{what}\0{name}")).or_default().step(tally.count(), now_ms);
                    mark(format!("{what}\0{name}"), tally);
                }
                self.outages.entry(name).or_default().step(view.ejected, now_ms);
            }
        }
        if is_due {
            self.marks.push_back(Mark { at_ms: now_ms, tallies });
            if self.marks.len() > MARKS_MAX {
                self.marks.pop_front();
            }
        }
    }

    /// Everything at this moment.
    pub fn snapshot(&mut self, live: &Live, now_ms: u64) -> Snapshot {
        let scene = lock(&live.scene);
        let Some(conf) = scene.conf.clone() else { return Snapshot::default() };
        let (loaded_ms, sockets, seats) = (scene.loaded_ms, scene.sockets.clone(), scene.seats.clone());
        drop(scene);
        let scene = Scene { conf: Some(conf.clone()), loaded_ms, sockets, seats };
        let sums = sums(live, &conf);
        let mut snapshot = Snapshot {
            nginx: shown::Nginx {
                version: crate::respond::VERSION.to_owned(),
                // Clients of NGINX Plus read here which release they speak to: the one that brought version 9.
                build: format!("weir {} (API of nginx-plus-r30)", env!("CARGO_PKG_VERSION")),
                address: String::new(),
                generation: conf.generation.into(),
                load_timestamp: Timestamp(loaded_ms),
                timestamp: Timestamp(now_ms),
                pid: std::process::id(),
                ppid: std::os::unix::process::parent_id(),
            },
            ssl: self.handshakes.net("", sums.all.clone()).ssl,
            ..Snapshot::default()
        };
        self.connections(live, &scene, &mut snapshot);
        self.zones(&conf, sums, &mut snapshot);
        self.limit_zones(live, &conf, &mut snapshot);
        self.cache_zones(live, &conf, &mut snapshot);
        for upstream in &conf.declared.upstream.groups {
            let zombies = upstream.live.as_ref().map_or(0, |live| live.zombies());
            self.upstream(live, &current(upstream), zombies, now_ms, &mut snapshot);
        }
        resolvers(&conf, &mut snapshot);
        snapshot.weir.uptime_ms = now_ms.saturating_sub(self.started_ms);
        snapshot.weir.recent_ms = self.recent_ms(now_ms);
        snapshot.weir.names_merged =
            live.zones.merged() + live.peers.merged() + live.limits.merged() + live.caches.merged();
        snapshot.weir.websockets = websockets(live, &conf);
        snapshot.weir.host = self.machine.host.clone();
        snapshot.weir.errors = self.errors(live, now_ms, &snapshot);
        snapshot.weir.limits = ceilings::limits(live, &scene, &self.machine, &snapshot);
        for limit in &mut snapshot.weir.limits {
            let most = self.maxima.entry(format!("{}\0{}", limit.kind, limit.of)).or_default();
            *most = most.max(limit.used);
            limit.max = *most;
        }
        snapshot
    }

    /// Totals of this begin anew.
    pub(super) fn reset(&mut self, live: &Live, what: &Reset) {
        let Some(conf) = lock(&live.scene).conf.clone() else { return };
        match what {
            Reset::Connections => {
                let flow = flow_of_all(live);
                self.flows.reset("", flow);
            }
            Reset::Requests => {
                let requests = at(&flow_of_all(live), 2);
                self.requests.reset("", vec![requests]);
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
                let cell = live.limits.find(&key).unwrap_or(super::names::OTHERS);
                self.limits.reset(&key, limit_sums(live, cell));
            }
            Reset::Cache(name) => {
                let caches = conf.declared.cache.all();
                let found = caches.iter().zip(&conf.declared.cache.paths).find(|(_, path)| path.name == *name);
                if let Some((zone, path)) = found {
                    self.caches.reset(name, cache_sums(live, zone, path.cell));
                }
            }
            Reset::Upstream(name) => {
                let group = groups(&conf).into_iter().find(|upstream| upstream.name == *name);
                for peer in group.iter().flat_map(|upstream| upstream.group.peers()) {
                    let name = peer_name(name, &peer.address);
                    self.outages.remove(&name);
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

    fn recent_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.marks.front().map_or(self.started_ms, |mark| mark.at_ms))
    }

    /// What came since the oldest mark.
    fn recent(&self, name: &str, tally: &Tally) -> shown::Times {
        match self.marks.front().and_then(|mark| mark.tallies.get(name)) {
            Some(mark) => tally.since(mark).times(),
            None => tally.times(),
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
                let thread = live.board(seat).thread.get();
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
                let (cpu, wait) = self.machine.shares.get(&(thread as u32)).copied().unwrap_or_default();
                snapshot.weir.workers.push(WorkerCpu { id: id as u64, cpu, wait });
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
            .filter(|root| !root.values.ssl.certificates.is_empty())
            .map(|root| root.zone.server.as_str())
            .collect();
        for (step, tally) in PATH.iter().zip(&sums.path) {
            let recent = self.recent(&format!("path\0{step}"), tally);
            snapshot.weir.path.push(StepTimes { step: (*step).to_owned(), recent, total: tally.times() });
        }
        for (name, raw) in sums.servers {
            let times = self.zone_times("server", &name, &raw.times);
            let net = self.servers.net(&name, raw);
            let zone = shown::ServerZone {
                processing: net.begun.saturating_sub(net.ended()),
                requests: net.begun.max(net.ended()),
                responses: net.responses(),
                discarded: net.discarded,
                received: net.received,
                sent: net.sent,
                ssl: secure.contains(name.as_str()).then(|| net.ssl.clone()),
            };
            snapshot.weir.server_zones.insert(name.clone(), ZoneTimes { total: net.times.times(), ..times });
            snapshot.http.server_zones.insert(name, zone);
        }
        for (name, raw) in sums.locations {
            let times = self.zone_times("location", &name, &raw.times);
            let net = self.locations.net(&name, raw);
            let zone = shown::LocationZone {
                requests: net.ended(),
                responses: net.responses(),
                discarded: net.discarded,
                received: net.received,
                sent: net.sent,
            };
            snapshot.weir.location_zones.insert(name.clone(), ZoneTimes { total: net.times.times(), ..times });
            snapshot.http.location_zones.insert(name, zone);
        }
    }

    fn zone_times(&self, kind: &str, name: &str, tally: &Tally) -> ZoneTimes {
        let key = format!("{kind}\0{name}");
        let rate = self.rates.get(&key).copied().unwrap_or_default();
        ZoneTimes { rate: rate.rate, rate_max: rate.most, recent: self.recent(&key, tally), total: tally.times() }
    }

    fn limit_zones(&self, live: &Live, conf: &Conf, snapshot: &mut Snapshot) {
        for zone in conf.declared.limit_req.iter() {
            let net = self.limits.net(&format!("req\0{}", zone.name), limit_sums(live, zone.cell));
            let shown = shown::LimitReq {
                passed: at(&net, 0),
                delayed: at(&net, 1),
                rejected: at(&net, 2),
                delayed_dry_run: at(&net, 3),
                rejected_dry_run: at(&net, 4),
            };
            snapshot.http.limit_reqs.insert(zone.name.clone(), shown);
            snapshot.slabs.insert(zone.name.clone(), slab(zone.table.bytes(), zone.size()));
        }
        for zone in conf.declared.limit_conn.iter() {
            let net = self.limits.net(&format!("conn\0{}", zone.name), limit_sums(live, zone.cell));
            let shown = shown::LimitConn { passed: at(&net, 0), rejected: at(&net, 2), rejected_dry_run: at(&net, 4) };
            snapshot.http.limit_conns.insert(zone.name.clone(), shown);
            snapshot.slabs.insert(zone.name.clone(), slab(zone.table.bytes(), zone.size()));
        }
    }

    fn cache_zones(&self, live: &Live, conf: &Conf, snapshot: &mut Snapshot) {
        for (zone, path) in conf.declared.cache.all().iter().zip(&conf.declared.cache.paths) {
            let figures = zone.figures();
            let net = self.caches.net(&path.name, cache_sums(live, zone, path.cell));
            let served = |status: Status| Served {
                responses: at(&net, status as usize * 4),
                bytes: at(&net, status as usize * 4 + 1),
                responses_written: at(&net, status as usize * 4 + 2),
                bytes_written: at(&net, status as usize * 4 + 3),
            };
            let read = |status| {
                let Served { responses, bytes, .. } = served(status);
                shown::CacheRead { responses, bytes }
            };
            let fetch = |status| {
                let Served { responses, bytes, responses_written, bytes_written } = served(status);
                shown::CacheFetch { responses, bytes, responses_written, bytes_written }
            };
            let is_on_disk = zone.settings().directory.is_some();
            let cache = shown::Cache {
                size: if is_on_disk { figures.size } else { figures.memory },
                max_size: figures.max_size.or((!is_on_disk).then_some(path.memory)),
                cold: figures.cold,
                hit: read(Status::Hit),
                stale: read(Status::Stale),
                updating: read(Status::Updating),
                revalidated: read(Status::Revalidated),
                miss: fetch(Status::Miss),
                expired: fetch(Status::Expired),
                bypass: fetch(Status::Bypass),
            };
            let extra = Status::ALL.len() * 4;
            let mut wait = Tally::default();
            let mut reasons = BTreeMap::new();
            for (number, reason) in Reason::ALL.iter().enumerate() {
                let count = at(&net, extra + 5 + number);
                if count > 0 {
                    reasons.insert(reason.as_str().to_owned(), count);
                }
            }
            for (_, board) in live.taken_boards() {
                if let Some(cell) = board.known_cache(path.cell) {
                    wait.add(&cell.wait);
                }
            }
            let account = shown::CacheAccount {
                requests: at(&net, extra),
                hit: cache.hit.responses,
                stale: cache.stale.responses,
                updating: cache.updating.responses,
                revalidated: cache.revalidated.responses,
                miss: cache.miss.responses,
                expired: cache.expired.responses,
                bypass: cache.bypass.responses,
                error: at(&net, extra + 1),
                fetches: cache.miss.responses
                    + cache.expired.responses
                    + cache.bypass.responses
                    + cache.revalidated.responses
                    + at(&net, extra + 2)
                    + at(&net, extra + 3)
                    + at(&net, extra + 4),
                waited: wait.count(),
                wait: wait.times(),
                objects: figures.objects,
                memory: figures.memory,
                memory_max: path.memory,
                purged: figures.purged,
                reasons,
            };
            snapshot.weir.caches.insert(path.name.clone(), account);
            snapshot.http.caches.insert(path.name.clone(), cache);
            snapshot.slabs.insert(path.name.clone(), slab(figures.keys, path.keys_bytes));
        }
    }

    fn upstream(&self, live: &Live, upstream: &Upstream, zombies: usize, now_ms: u64, snapshot: &mut Snapshot) {
        let (mut peers, mut times, mut idle) = (Vec::new(), Vec::new(), 0);
        let views = upstream.group.view(now_ms / 1000);
        for (peer, view) in upstream.group.peers().zip(views) {
            let name = peer_name(&upstream.name, &peer.address);
            let raw = peer_sums(live, &name);
            idle += raw.idle;
            let of = |what: &str, raw: &Tally, net: &Tally| ZoneTimes {
                total: net.times(),
                ..self.zone_times(what, &name, raw)
            };
            let net = self.peers.net(&name, raw.clone());
            let outage = self.outages.get(&name);
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
            let is_out = outage.and_then(|outage| outage.since_ms).filter(|_| view.ejected);
            peers.push(shown::Peer {
                id: peer.id.into(),
                server: peer.address.clone(),
                service: None,
                name: peer.server.clone(),
                backup: peer.backup,
                weight: peer.weight.into(),
                state: match (peer.down, peer.drain, view.ejected) {
                    (true, ..) => shown::PeerState::Down,
                    (false, true, _) => shown::PeerState::Draining,
                    (false, false, true) => shown::PeerState::Unavail,
                    (false, false, false) => shown::PeerState::Up,
                },
                active: view.conns.into(),
                ssl: None,
                max_conns: (peer.max_conns > 0).then_some(peer.max_conns.into()),
                requests: net.requests,
                responses: net.responses(),
                sent: net.sent,
                received: net.received,
                fails: net.fails.iter().sum(),
                unavail: net.unavail,
                health_checks: shown::HealthChecks::default(),
                downtime: outage.map_or(0, |outage| outage.total_ms(now_ms)),
                downstart: is_out.map(Timestamp),
                selected: (net.selected_ms > 0).then_some(Timestamp(net.selected_ms)),
                header_time: mean_ms(&net.header),
                response_time: mean_ms(&net.response),
                response_time_hist: shown::ResponseTimeHist::new(&net.spread, net.spread_sum_ms),
            });
        }
        let group = shown::Upstream {
            peers,
            keepalive: idle,
            zombies: zombies as u64,
            zone: upstream.zone.clone().unwrap_or_else(|| upstream.name.clone()),
            queue: None,
        };
        snapshot.http.upstreams.insert(upstream.name.clone(), group);
        snapshot.weir.upstreams.insert(upstream.name.clone(), times);
    }

    fn keep_sample(&mut self, class: String, sample: ErrorSample) {
        let class =
            if self.errors.len() < CLASSES_MAX || self.errors.contains_key(&class) { class } else { OTHER.into() };
        let (last, samples) = self.errors.entry(class).or_default();
        *last = (*last).max(sample.at);
        samples.push_front(sample);
        samples.truncate(SAMPLES_MAX);
    }

    fn errors(&mut self, live: &Live, now_ms: u64, snapshot: &Snapshot) -> Vec<ErrorClass> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut accept_failed = 0;
        for (_, board) in live.taken_boards() {
            for (class, count) in board.errors.all() {
                *counts.entry(class).or_default() += count;
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
            // Not every error leaves a sample: its class was last seen when its count grew.
            if self.counted.get(class) != Some(count) && samples.front().is_none_or(|sample| sample.at <= *last) {
                *last = (*last).max(samples.front().map_or(Timestamp(now_ms), |sample| sample.at));
            }
            let samples = samples.iter().cloned().collect();
            all.push(ErrorClass { class: class.clone(), count: *count, last: *last, samples });
        }
        self.counted = counts;
        all.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.class.cmp(&other.class)));
        all
    }
}

/// A group as its peers are now.
pub(super) fn current(upstream: &Arc<Upstream>) -> Arc<Upstream> {
    upstream.live.as_ref().map_or_else(|| upstream.clone(), |live| live.current())
}

/// All groups as their peers are now.
fn groups(conf: &Conf) -> Vec<Arc<Upstream>> {
    conf.declared.upstream.groups.iter().map(current).collect()
}

fn resolvers(conf: &Conf, snapshot: &mut Snapshot) {
    for zone in conf.declared.resolver.zones() {
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
    active: u64,
    idle: u64,
    current: u64,
}

impl Flow {
    pub(super) fn of(counters: &counters::Counters) -> Flow {
        let one = std::slice::from_ref(counters);
        let handled = counters::total(one, |counters| &counters.handled);
        let accepted = counters::total(one, |counters| &counters.accepted).max(handled);
        let requests = counters::total(one, |counters| &counters.requests);
        let open = counters::level(one, |counters| &counters.active);
        let current = counters::level(one, |counters| &counters.writing);
        let busy = current + counters::level(one, |counters| &counters.reading);
        // Over HTTP/2 a connection has several requests under way.
        let idle = open.saturating_sub(busy);
        Flow { totals: [accepted, accepted - handled, requests], active: open - idle, idle, current }
    }
}

/// The place of `flow` totals of all seats.
pub(super) fn flow_of_all(live: &Live) -> Vec<u64> {
    let mut all = vec![0; 3];
    for counters in live.counters.iter() {
        for (sum, count) in all.iter_mut().zip(Flow::of(counters).totals) {
            *sum += count;
        }
    }
    all
}

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
    for (name, number) in live.zones.all().into_iter().chain([(format!("{OTHER}\0"), super::names::OTHERS)]) {
        let mut cell = none();
        let known = live.taken_boards().filter_map(|(_, board)| board.known_zone(number));
        let counted = known.map(|known| cell.add(known)).count();
        if counted == 0 {
            continue;
        }
        sums.all.merge(&cell);
        let (server, location) = name.split_once('\0').unwrap_or((&name, ""));
        if number == super::names::OTHERS {
            sums.servers.entry(OTHER.to_owned()).or_default().merge(&cell);
        } else if let Some(zone) = sums.servers.get_mut(server) {
            // Those of a location that is gone still belong to their server.
            zone.merge(&cell);
        }
        if let Some(zone) = sums.locations.get_mut(location) {
            zone.merge(&cell);
        }
    }
    for (_, board) in live.taken_boards() {
        for (sum, histogram) in sums.path.iter_mut().zip(&board.path) {
            sum.add(histogram);
        }
    }
    sums
}

pub(super) fn peer_sums(live: &Live, name: &str) -> PeerSums {
    let mut sums = PeerSums::default();
    let Some(number) = live.peers.find(name) else { return sums };
    for (_, board) in live.taken_boards() {
        if let Some(cell) = board.known_peer(number) {
            sums.add(cell);
        }
    }
    sums
}

/// What the log said of a peer's newest failure; empty when it had none.
fn last_error(live: &Live, name: &str) -> String {
    let number = live.peers.find(name);
    let all = live.taken_boards().filter_map(|(_, board)| board.last_error(number?));
    all.max_by_key(|(at_ms, _)| *at_ms).map(|(_, line)| line).unwrap_or_default()
}

/// Passed, delayed, rejected, and the two of a dry run.
pub(super) fn limit_sums(live: &Live, cell: u32) -> Vec<u64> {
    let mut sums = vec![0; 5];
    for (_, board) in live.taken_boards() {
        let Some(cell) = board.known_limit(cell) else { continue };
        let counts = [&cell.passed, &cell.delayed, &cell.rejected, &cell.delayed_dry_run, &cell.rejected_dry_run];
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count.get();
        }
    }
    sums
}

/// Four of each status; requests, errors; refreshes stored, confirmed, failed; then reasons.
pub(super) fn cache_sums(live: &Live, zone: &Zone, cell: u32) -> Vec<u64> {
    let mut sums = Vec::new();
    for status in Status::ALL {
        let Served { responses, bytes, responses_written, bytes_written } = zone.counters().read(status);
        sums.extend([responses, bytes, responses_written, bytes_written]);
    }
    let refreshes = zone.counters().refreshes();
    let extra = sums.len();
    sums.extend([0, 0, refreshes.stored, refreshes.confirmed, refreshes.failed]);
    sums.extend(Reason::ALL.iter().map(|_| 0));
    for (_, board) in live.taken_boards() {
        let Some(cell) = board.known_cache(cell) else { continue };
        let counts: Vec<(usize, &Count)> = [(0, &cell.requests), (1, &cell.errors)]
            .into_iter()
            .chain(cell.reasons.iter().enumerate().map(|(number, count)| (number + 5, count)))
            .collect();
        for (place, count) in counts {
            if let Some(sum) = sums.get_mut(extra + place) {
                *sum += count.get();
            }
        }
    }
    sums
}

fn websockets(live: &Live, conf: &Conf) -> shown::WebSockets {
    let mut all = shown::WebSockets::default();
    let mut age = Tally::default();
    for (_, board) in live.taken_boards() {
        let cell = &board.tunnels;
        for (word, count) in Closer::WORDS.iter().zip(&cell.closed) {
            if count.get() > 0 {
                *all.closes.entry((*word).to_owned()).or_default() += count.get();
            }
        }
        all.opened += cell.opened.get();
        all.received += cell.received.get();
        all.sent += cell.sent.get();
        age.add(&cell.age);
    }
    all.open = all.opened.saturating_sub(all.closes.values().sum());
    all.age = age.times();
    let proxies = conf.locations.iter().filter(|location| location.values.proxy.pass.is_some());
    let timeouts = proxies.map(|location| location.values.proxy.read_timeout.as_millis() as u64);
    all.timeout_ms = timeouts.min().unwrap_or(0);
    all
}

impl Rate {
    fn step(&mut self, count: u64, now_ms: u64) {
        let passed = now_ms.saturating_sub(self.at_ms);
        if self.at_ms > 0 && passed > 0 {
            self.rate = count.saturating_sub(self.count) as f64 * 1000.0 / passed as f64;
            self.most = self.most.max(self.rate);
        }
        (self.count, self.at_ms) = (count, now_ms);
    }
}

impl Outage {
    fn step(&mut self, is_out: bool, now_ms: u64) {
        match (self.since_ms, is_out) {
            (None, true) => self.since_ms = Some(now_ms),
            (Some(since), false) => {
                self.before_ms += now_ms.saturating_sub(since);
                self.since_ms = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    fn total_ms(&self, now_ms: u64) -> u64 {
        self.before_ms + self.since_ms.map_or(0, |since| now_ms.saturating_sub(since))
    }
}

impl Machine {
    fn look(&mut self, root: &std::path::Path, now_ms: u64) {
        let seconds = now_ms.saturating_sub(self.at_ms) as f64 / 1000.0;
        let is_first = std::mem::replace(&mut self.at_ms, now_ms) == 0 || seconds <= 0.0;
        let (memory_total, memory_available) = host::memory_under(root);
        let quota = host::quota_under(root);
        let resent = host::retransmitted_under(root);
        let times = host::cpu_kinds_under(root);
        let mut new = Host {
            cpus: host::effective_cpus_under(root) as u64,
            runnable: times.map(|(_, running)| running),
            load: host::load_under(root),
            psi_cpu: host::pressure_under(root, "cpu"),
            psi_memory: host::pressure_under(root, "memory"),
            psi_io: host::pressure_under(root, "io"),
            quota_cpus: quota.map(|quota| quota.cpus),
            memory_total,
            memory_available,
            rss: host::resident_under(root),
            time_wait: host::waiting_sockets_under(root),
            ..Host::default()
        };
        let threads = host::thread_times_under(root);
        if !is_first {
            if let (Some(then), Some((now, _))) = (self.times, times) {
                new.cpu = shares(&then, &now);
            }
            self.shares = threads.iter().filter_map(|now| Some((now.id, self.share(now, seconds)?))).collect();
            let waits: Vec<f64> = self.shares.values().filter_map(|(_, wait)| *wait).collect();
            new.run_queue_wait = (!waits.is_empty()).then(|| waits.iter().sum());
            if let (Some(then), Some(now)) = (self.quota, quota) {
                let periods = now.periods.saturating_sub(then.periods);
                let throttled = now.throttled.saturating_sub(then.throttled);
                new.throttled = Some(if periods > 0 { throttled as f64 / periods as f64 } else { 0.0 });
                self.quota_used = now.used_us.saturating_sub(then.used_us) as f64 / (seconds * 1e6);
                self.throttled_total += throttled;
            }
            if let (Some(then), Some(now)) = (self.resent, resent) {
                new.retransmits = Some(now.saturating_sub(then) as f64 / seconds);
            }
        }
        self.times = times.map(|(times, _)| times);
        self.threads = threads.into_iter().map(|thread| (thread.id, thread)).collect();
        (self.quota, self.resent, self.host) = (quota, resent, new);
        self.open_files = host::open_files().unwrap_or(0);
        self.overflows = host::listen_overflows_under(root).unwrap_or(0);
    }

    /// Asks the kernel about the ports towards the next few peers: each answer is a walk through all connections.
    fn look_at_ports(&mut self, conf: &Conf) {
        let mut peers: Vec<SocketAddr> = Vec::new();
        let groups = groups(conf);
        let addresses = groups.iter().flat_map(|upstream| &upstream.addresses);
        for address in addresses.filter_map(|address| address.tcp()) {
            if peers.len() < PORT_PEERS_MAX && !peers.contains(&address) {
                peers.push(address);
            }
        }
        self.ports.retain(|address, _| peers.contains(address));
        for _ in 0..PEERS_AT_ONCE.min(peers.len()) {
            self.port_turn = (self.port_turn + 1) % peers.len();
            let next = peers.get(self.port_turn);
            if let Some((address, taken)) = next.and_then(|peer| Some((*peer, weir_net::diag::connections_to(*peer)?)))
            {
                self.ports.insert(address, taken);
            }
        }
    }

    /// Share of a CPU and seconds waited a second, if the thread was there before.
    fn share(&self, now: &host::ThreadTimes, seconds: f64) -> Option<(f64, Option<f64>)> {
        let then = self.threads.get(&now.id)?;
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / (seconds * 1e9);
        let wait = now.waited_ns.zip(then.waited_ns).map(|(now, then)| per_second(now, then));
        Some((per_second(now.ran_ns, then.ran_ns), wait))
    }
}

/// Peers whose ports are counted, at most.
const PORT_PEERS_MAX: usize = 64;

/// Of those, looked at in one second.
const PEERS_AT_ONCE: usize = 2;

fn shares(then: &CpuKinds, now: &CpuKinds) -> CpuShares {
    let all = now.total().saturating_sub(then.total());
    let share = |now: u64, then: u64| if all == 0 { 0.0 } else { now.saturating_sub(then) as f64 / all as f64 };
    CpuShares {
        user: share(now.user, then.user),
        system: share(now.system, then.system),
        interrupts: share(now.interrupts, then.interrupts),
        steal: share(now.steal, then.steal),
        idle: share(now.idle, then.idle),
        wait: share(now.wait, then.wait),
    }
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
    use super::*;

    #[test]
    fn a_rate_is_per_second_and_the_highest_is_kept() {
        let mut rate = Rate::default();
        for (count, at_ms) in [(10, 1_000), (30, 2_000), (31, 2_500)] {
            rate.step(count, at_ms);
        }
        assert_eq!((rate.rate, rate.most), (2.0, 20.0));
    }

    #[test]
    fn an_outage_lasts_until_the_peer_is_back() {
        let mut outage = Outage::default();
        outage.step(true, 1_000);
        outage.step(true, 2_000);
        assert_eq!(outage.total_ms(2_500), 1_500);
        outage.step(false, 3_000);
        outage.step(true, 9_000);
        assert_eq!((outage.total_ms(9_500), outage.since_ms), (2_500, Some(9_000)));
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
