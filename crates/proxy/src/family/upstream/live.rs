//! Groups whose peers change at run time: names are resolved (`server NAME resolve`, `service=`), and the API adds,
//! changes and removes servers of a group with a `zone`.
//!
//! ```text
//!  a worker resolves a name ─► learn ─┐
//!                                     ├─► a new `Upstream` adopts the peers' state ─► all workers see a higher version
//!  the API changes a server ─► edit ──┘
//! ```
//!
//! An exchange keeps the peers it began with. Resolved names survive a reload, by group, name and service; changes by
//! the API survive it through `state`. Invariant: a version is higher than another exactly if its peers are newer.

pub mod edit;
mod members;
mod state;
mod watch;

pub use members::{Kind, Member, Members, Named};
pub use state::{read, written_time};
pub use watch::watch;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_conf::At;
use weir_http::board::boards::Boards;
use weir_http::build::Build;
use weir_http::refusal::Refusal;
use weir_http::variable::Template;
use weir_http::worker::Generation;
use weir_net::log::{self, Level};
use weir_net::{Address, clock};
use weir_peers::balance::Policy;
use weir_peers::budget::Budget;
use weir_peers::group::{Group, GroupError, MAX_PEERS};
use weir_peers::health::Rule;
use weir_peers::peer::Peer;
use weir_peers::pool_policy::PoolPolicy;

use super::queue::Queue;
use super::{Declared, Upstream, parse_address};
use crate::family::proxy_ssl::sessions::AllSessions;
use crate::family::resolver;
use crate::family::sticky::Sticky;
use weir_http::dns::{Place, Servers, TIMEOUT_DEFAULT};

/// The fixed parts of a group, without its peers.
#[derive(Clone, Default)]
pub struct Frame {
    /// The group's name.
    pub name: String,
    /// The balancing method.
    pub policy: Policy,
    /// The limits for keeping connections.
    pub pooling: PoolPolicy,
    /// The key of `hash`.
    pub hash_key: Option<Template>,
    /// `sticky` of the group.
    pub sticky: Option<Arc<Sticky>>,
    /// The budget for retries.
    pub budget: Arc<Budget>,
    /// The exchanges that wait for a peer.
    pub queue: Option<Arc<Queue>>,
    /// The TLS sessions with its peers, which all workers share.
    pub sessions: Option<Arc<AllSessions>>,
    /// The name of its `zone`.
    pub zone: Option<String>,
    /// The place of its block.
    pub at: At,
}

/// A group whose peers change.
pub struct Live {
    frame: Frame,
    /// The file that stores the API's changes (`state`).
    state: Option<String>,
    resolver: OnceLock<(Arc<Servers>, Duration)>,
    /// The rules that turn results of health checks into states.
    rules: OnceLock<Arc<[Rule]>>,
    /// Guards the known peers; a thread that learns or changes something holds the lock while it builds the group.
    known: Mutex<Known>,
    current: Mutex<Arc<Upstream>>,
    version: AtomicU64,
    /// The tasks that wait for the next version.
    waiting: Mutex<Vec<Waker>>,
}

#[derive(Default)]
struct Known {
    members: Members,
    /// The names that a worker resolves.
    watched: HashSet<u32>,
    /// The key of a peer's kept connections: its index may belong to another peer in the next version.
    pool_ids: HashMap<String, usize>,
    next_pool_id: usize,
    /// Older groups that exchanges may still use, for counting them.
    before: Vec<std::sync::Weak<Upstream>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded values are always replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// A group of these servers; no name among them is resolved yet.
    pub fn new(frame: Frame, members: Members, state: Option<String>) -> Result<Live, GroupError> {
        let mut known = Known::default();
        let current = assemble(&frame, members.peers().0, &mut known)?;
        known.members = members;
        Ok(Live {
            frame,
            state,
            resolver: OnceLock::new(),
            rules: OnceLock::new(),
            known: Mutex::new(known),
            current: Mutex::new(Arc::new(current)),
            version: AtomicU64::new(0),
            waiting: Mutex::default(),
        })
    }

    /// The entry for the group in a configuration.
    pub fn declared(self) -> Upstream {
        let frame = self.frame.clone();
        let group = Group::nobody(&frame.name, frame.policy);
        Upstream { live: Some(Arc::new(self)), ..Upstream::of(frame, group, Vec::new()) }
    }

    /// The current peers.
    pub fn current(&self) -> Arc<Upstream> {
        lock(&self.current).clone()
    }

    /// Sets the resolver; without it `http`'s resolver is used.
    pub fn set_resolver(&self, servers: Arc<Servers>, timeout: Duration) {
        let _ = self.resolver.set((servers, timeout));
    }

    /// Sets the rules of health checks: called once, before the configuration comes into force.
    pub fn guard(&self, rules: Arc<[Rule]>) {
        if let Some(current) = Arc::get_mut(&mut lock(&self.current)) {
            current.group.guard(&rules);
        }
        let _ = self.rules.set(rules);
    }

    /// The number of the current version.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Ready once the version differs from `seen`.
    pub fn poll_newer(&self, seen: u64, context: &Context<'_>) -> Poll<()> {
        let mut waiting = lock(&self.waiting);
        if self.version() != seen {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Peers that have left the group and still have exchanges in progress (NGINX Plus: `zombies`).
    pub fn zombies(&self) -> usize {
        let mut known = lock(&self.known);
        known.before.retain(|upstream| upstream.strong_count() > 0);
        let old: Vec<_> = known.before.iter().filter_map(std::sync::Weak::upgrade).collect();
        let here = |address: &str| known.pool_ids.contains_key(address);
        let mut gone = HashSet::new();
        for upstream in &old {
            let views = upstream.group.view(0);
            let busy = upstream.group.peers().zip(&views).filter(|(peer, view)| view.conns > 0 && !here(&peer.address));
            gone.extend(busy.map(|(peer, _)| peer.address.clone()));
        }
        gone.len()
    }

    /// Sets the addresses of a name; the same addresses as before change nothing.
    fn learn(&self, id: u32, places: Vec<Place>) {
        let mut known = lock(&self.known);
        if known.members.learn(id, places) {
            self.renew(&mut known);
        }
    }

    /// Takes over the addresses of names that `old` also has.
    fn adopt(&self, old: &Live) {
        let before = lock(&old.known);
        let mut known = lock(&self.known);
        known.members.adopt(&before.members);
        self.renew(&mut known);
        let mut current = lock(&self.current);
        if let Some(current) = Arc::get_mut(&mut current) {
            current.group.adopt(&lock(&old.current).group, clock::unix_ms());
        }
    }

    /// Puts the current servers into force.
    fn renew(&self, known: &mut Known) {
        let name = &self.frame.name;
        let (peers, too_many) = known.members.peers();
        if too_many {
            log::global(
                Level::Error,
                format_args!("upstream \"{name}\" has more than {MAX_PEERS} peers, weir ignores the others"),
            );
        }
        match assemble(&self.frame, peers, known) {
            Ok(upstream) => self.put(upstream, known),
            Err(error) => log::global(Level::Error, format_args!("upstream \"{name}\" keeps its servers: {error}")),
        }
    }

    fn put(&self, mut upstream: Upstream, known: &mut Known) {
        let mut current = lock(&self.current);
        if let Some(rules) = self.rules.get() {
            upstream.group.guard(rules);
        }
        upstream.group.adopt(&current.group, clock::unix_ms());
        known.before.retain(|upstream| upstream.strong_count() > 0);
        known.before.push(Arc::downgrade(&current));
        *current = Arc::new(upstream);
        self.version.fetch_add(1, Ordering::Release);
        for waker in lock(&self.waiting).drain(..) {
            waker.wake();
        }
        if let Some(queue) = &self.frame.queue {
            queue.offer();
        }
    }
}

fn assemble(frame: &Frame, peers: Vec<Peer>, known: &mut Known) -> Result<Upstream, GroupError> {
    let group = Group::of_now(frame.name.as_str(), peers, frame.policy)?;
    // weir wrote these addresses, or checked them when it read the file.
    let addresses: Vec<Address> = group.peers().filter_map(|peer| parse_address(&peer.address)).collect();
    let mut ids = HashMap::new();
    let mut pool_ids = Vec::with_capacity(addresses.len());
    for peer in group.peers() {
        let id = match ids.get(&peer.address).or(known.pool_ids.get(&peer.address)) {
            Some(id) => *id,
            None => {
                known.next_pool_id += 1;
                known.next_pool_id
            }
        };
        ids.insert(peer.address.clone(), id);
        pool_ids.push(id);
    }
    known.pool_ids = ids;
    Ok(Upstream { pool_ids: Some(pool_ids), ..Upstream::of(frame.clone(), group, addresses) })
}

/// Gives groups without their own resolver `http`'s resolver, or refuses the file.
pub fn give_resolver(b: &mut Build<'_>, http: &resolver::Settings) {
    let default = http.servers.clone().flatten();
    let timeout = http.timeout.unwrap_or(TIMEOUT_DEFAULT);
    let lives: Vec<_> =
        crate::declaring(b).upstream.groups.iter().filter_map(|upstream| upstream.live.clone()).collect();
    for live in lives.iter().filter(|live| live.resolver.get().is_none()) {
        let has_names = || lock(&live.known).members.list.iter().any(|member| matches!(member.kind, Kind::Named(..)));
        match &default {
            Some(servers) => live.set_resolver(servers.clone(), timeout),
            None if has_names() => {
                let name = &live.frame.name;
                let refusal =
                    Refusal::whole(format!("no resolver defined to resolve names at run time in upstream \"{name}\""))
                        .todo("name a resolver in http or in the upstream: resolver 127.0.0.53;")
                        .needs("resolver", "");
                b.refuse_at("upstream", refusal, live.frame.at);
            }
            None => {}
        }
    }
}

/// Takes over from the older configuration: addresses of names, and the health of peers that both have.
pub fn adopt(new: &mut Declared, old: &Declared) {
    for upstream in &mut new.groups {
        let same = |other: &&Arc<Upstream>| other.name == upstream.name && other.is_implicit == upstream.is_implicit;
        let Some(before) = old.groups.iter().find(same) else { continue };
        if let (Some(queue), Some(before)) = (&upstream.queue, &before.queue) {
            queue.adopt(before);
        }
        match (&upstream.live, &before.live) {
            (Some(live), Some(before)) => live.adopt(before),
            (None, None) => {
                if let Some(upstream) = Arc::get_mut(upstream) {
                    upstream.group.adopt(&before.group, clock::unix_ms());
                }
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
}

/// A version of a group, as a worker's exchanges use it.
pub struct Seen {
    version: u64,
    /// The peers.
    pub upstream: Arc<Upstream>,
    /// The peers' names, shared by tries.
    pub names: Vec<Rc<str>>,
    /// The numbers of their cells, looked up at the first use.
    cells: OnceCell<Vec<u32>>,
}

impl Seen {
    /// A peer's name and the number of its cell.
    pub fn known_peer(&self, boards: &Boards, peer: usize) -> (Rc<str>, u32) {
        let number = |address: &Rc<str>| boards.peer(&self.upstream.name, address);
        let cells = self.cells.get_or_init(|| self.names.iter().map(number).collect());
        let name = self.names.get(peer).cloned().unwrap_or_default();
        (name, cells.get(peer).copied().unwrap_or(0))
    }
}

/// The versions that a worker saw last, by the number of the group.
#[derive(Default)]
pub struct AllSeen(RefCell<Vec<Option<Rc<Seen>>>>);

/// The versions that a configuration's exchanges saw last on this worker.
pub fn all_seen(generation: &Generation) -> &AllSeen {
    generation.own.of(AllSeen::default)
}

impl AllSeen {
    /// The current version.
    pub fn look(&self, number: usize, live: &Live) -> Rc<Seen> {
        let version = live.version();
        let mut all = self.0.borrow_mut();
        if let Some(Some(seen)) = all.get(number)
            && seen.version == version
        {
            return seen.clone();
        }
        // These peers may already be newer than `version`, which was read first. Then the next call reads them again.
        let upstream = live.current();
        let names = upstream.group.peers().map(|peer| peer.address.as_str().into()).collect();
        let seen = Rc::new(Seen { version, upstream, names, cells: OnceCell::new() });
        if all.len() <= number {
            all.resize_with(number + 1, || None);
        }
        if let Some(place) = all.get_mut(number) {
            *place = Some(seen.clone());
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn live(service: Option<&str>, fixed: &[&str]) -> Live {
        let frame = Frame { name: "u".to_owned(), zone: Some("u".to_owned()), ..Frame::default() };
        let named = Named {
            host: "a.example".to_owned(),
            port: 8080,
            service: service.map(str::to_owned),
            pattern: Peer { server: "a.example:8080".to_owned(), ..Peer::new("") },
        };
        let fixed = fixed.iter().map(|address| Peer::new(*address)).collect();
        Live::new(frame, Members::new(fixed, vec![named]), None).unwrap()
    }

    fn place(address: &str, priority: u16, weight: u16) -> Place {
        Place { address: address.parse().unwrap(), host: "h.example".to_owned(), priority, weight }
    }

    fn shown(live: &Live) -> Vec<String> {
        live.current().group.peers().map(|peer| peer.address.clone()).collect()
    }

    #[test]
    fn peers_follow_the_name_and_keep_their_connections() {
        let live = live(None, &["127.0.0.9:80"]);
        assert_eq!(shown(&live), ["127.0.0.9:80"]);
        live.learn(1, vec![place("10.0.0.1:0", 0, 1), place("10.0.0.2:0", 0, 1)]);
        assert_eq!(shown(&live), ["127.0.0.9:80", "10.0.0.1:8080", "10.0.0.2:8080"]);
        let before = live.current();
        live.learn(1, vec![place("10.0.0.2:0", 0, 1), place("10.0.0.3:0", 0, 1)]);
        let now = live.current();
        assert_eq!(before.pool_id(2), now.pool_id(1));
        assert_eq!(before.pool_id(0), now.pool_id(0));
        assert!(now.pool_id(2) != before.pool_id(1));
        live.learn(1, Vec::new());
        assert_eq!(shown(&live), ["127.0.0.9:80"]);
    }

    #[test]
    fn the_same_again_makes_no_version() {
        let (live, all) = (live(None, &[]), AllSeen::default());
        let empty = all.look(0, &live);
        assert!(empty.upstream.group.peers().len() == 0);
        live.learn(0, vec![place("10.0.0.1:0", 0, 1)]);
        let seen = all.look(0, &live);
        assert_eq!(&*seen.names[0], "10.0.0.1:8080");
        live.learn(0, vec![place("10.0.0.1:0", 0, 1)]);
        assert!(Rc::ptr_eq(&seen, &all.look(0, &live)));
        live.learn(0, vec![place("10.0.0.2:0", 0, 1), place("10.0.0.1:0", 0, 1)]);
        let seen = all.look(0, &live);
        assert_eq!(&*seen.names[0], "10.0.0.1:8080");
        live.learn(0, vec![place("10.0.0.2:0", 0, 1), place("10.0.0.1:0", 0, 1)]);
        assert!(Rc::ptr_eq(&seen, &all.look(0, &live)));
    }

    #[test]
    fn services_bring_port_weight_and_rank() {
        let live = live(Some("http"), &[]);
        live.learn(0, vec![place("10.0.0.1:81", 2, 7), place("10.0.0.2:82", 1, 5), place("10.0.0.2:82", 1, 5)]);
        let current = live.current();
        let peers: Vec<_> =
            current.group.peers().map(|peer| (peer.address.as_str(), peer.weight, peer.backup)).collect();
        assert_eq!(peers, [("10.0.0.2:82", 5, false), ("10.0.0.2:82", 5, false), ("10.0.0.1:81", 7, true)]);
        assert_eq!(current.group.peer(0).unwrap().server, "h.example");
    }

    #[test]
    fn weights_beyond_all_bounds_shrink_in_proportion() {
        let live = live(Some("http"), &[]);
        live.learn(
            0,
            vec![place("10.0.0.1:81", 1, 60_000), place("10.0.0.2:82", 1, 60_000), place("10.0.0.3:83", 1, 1)],
        );
        let weights: Vec<_> = live.current().group.peers().map(|peer| peer.weight).collect();
        assert_eq!(weights, [30_000, 30_000, 1]);
    }

    #[test]
    fn a_reload_keeps_what_was_known_under_the_new_port() {
        let (old, new) = (live(None, &[]), {
            let new = live(None, &[]);
            if let Kind::Named(named, _) = &mut lock(&new.known).members.list[0].kind {
                named.port = 9090;
            }
            new
        });
        old.learn(0, vec![place("10.0.0.1:0", 0, 1)]);
        new.adopt(&old);
        assert_eq!(shown(&new), ["10.0.0.1:9090"]);
    }

    fn served(live: &Live) -> Vec<(u32, String, bool)> {
        live.current().group.peers().map(|peer| (peer.id, peer.address.clone(), peer.may_serve())).collect()
    }

    #[test]
    fn servers_come_change_and_go() {
        let live = live(None, &["10.0.0.1:80", "10.0.0.2:80"]);
        let added = live.add_server(&serde_json::json!({"server": "10.0.0.3", "weight": 4})).unwrap();
        assert_eq!(
            (&added["id"], &added["server"], &added["weight"], &added["fail_timeout"]),
            (&3.into(), &"10.0.0.3".into(), &4.into(), &"10s".into())
        );
        let drained = live.change_server(0, &serde_json::json!({"drain": true})).unwrap();
        assert_eq!(drained["drain"], true);
        let left = live.remove_server(1).unwrap();
        assert_eq!(left.as_array().unwrap().len(), 3);
        assert_eq!(served(&live), [(0, "10.0.0.1:80".into(), false), (3, "10.0.0.3:80".into(), true)]);
        live.change_server(3, &serde_json::json!({"server": "10.0.0.4:81", "down": true})).unwrap();
        assert_eq!(served(&live)[1], (3, "10.0.0.4:81".into(), false));
    }

    #[test]
    fn what_a_name_stands_for_is_shown_and_left_alone() {
        let live = live(None, &[]);
        live.learn(0, vec![place("10.0.0.1:0", 0, 1)]);
        let shown = live.servers();
        assert_eq!(
            (&shown[1]["id"], &shown[1]["parent"], &shown[1]["server"]),
            (&1.into(), &"0".into(), &"10.0.0.1:8080".into())
        );
        let refused = live.remove_server(1).unwrap_err();
        assert_eq!((refused.status, refused.code), (400, "UpstreamServerImmutable"));
        live.change_server(0, &serde_json::json!({"down": true})).unwrap();
        assert_eq!(served(&live), [(1, "10.0.0.1:8080".into(), false)]);
    }

    #[test]
    fn a_wrong_change_has_a_name_and_changes_nothing() {
        let live = live(None, &["10.0.0.1:80"]);
        for (body, status, code) in [
            (serde_json::json!([]), 415, "JsonError"),
            (serde_json::json!({}), 400, "UpstreamConfFormatError"),
            (serde_json::json!({"server": "10.0.0.2", "colour": 1}), 400, "UpstreamConfFormatError"),
            (serde_json::json!({"server": "10.0.0.2", "weight": 0}), 400, "UpstreamBadWeight"),
            (serde_json::json!({"server": "10.0.0.2", "weight": "much"}), 400, "UpstreamConfFormatError"),
            (serde_json::json!({"server": "10.0.0.2:x"}), 400, "UpstreamBadAddress"),
            (serde_json::json!({"server": "10.0.0.2", "service": "http"}), 400, "UpstreamBadAddress"),
            (serde_json::json!({"server": "b.example"}), 400, "UpstreamConfNoResolver"),
        ] {
            let refused = live.add_server(&body).unwrap_err();
            assert_eq!((refused.status, refused.code), (status, code), "{body}: {refused}");
        }
        assert_eq!(live.server(7).unwrap_err().status, 404);
        assert_eq!(served(&live), [(0, "10.0.0.1:80".into(), true)]);
    }
}
