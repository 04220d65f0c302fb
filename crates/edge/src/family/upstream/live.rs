//! Groups whose servers are names resolved while the edge serves (`server NAME resolve`, `service=`).
//!
//! ```text
//!  one worker asks ─► learn ─► another `Upstream`, which adopts the peers' state ─► all workers see a higher version
//! ```
//!
//! An exchange keeps the peers it began with. What is known outlives a reload, by group, name and service.
//! Invariant: a version is higher than another exactly when its peers are newer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use weir_net::{Address, Instant, clock, timer};
use weir_wire::dns::Code;

use super::balance::Policy;
use super::budget::Budget;
use super::group::{Group, GroupError, MAX_PEERS, MAX_TOTAL_WEIGHT};
use super::peer::Peer;
use super::pool_policy::PoolPolicy;
use super::{Declared, Upstream, parse_address};
use crate::build::Build;
use crate::directive::Refusal;
use crate::dns::{Client, Place, Servers, Trouble};
use crate::family::resolver;
use crate::log::{self, Level};
use crate::variable::Template;
use crate::worker::Worker;

/// How long it is believed that a name is gone, where `valid=` does not say (nginx: 10 s).
const GONE: Duration = Duration::from_secs(10);

/// The shortest pause between two questions for one name.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// A `server` whose addresses are asked for again and again.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name.
    pub host: String,
    /// The port of its addresses; a service brings its own.
    pub port: u16,
    /// `service=`.
    pub service: Option<String>,
    /// What else is written about it.
    pub pattern: Peer,
}

/// What a group is made of, whoever its peers are at the moment.
#[derive(Clone)]
pub struct Frame {
    /// The group's name.
    pub name: String,
    /// Its method.
    pub policy: Policy,
    /// Which connections are kept.
    pub pooling: PoolPolicy,
    /// The key of `hash`.
    pub hash_key: Option<Template>,
    /// What may be spent on retries.
    pub budget: Arc<Budget>,
}

/// A group with names in it.
pub struct Live {
    frame: Frame,
    fixed: Vec<Peer>,
    named: Vec<Named>,
    resolver: OnceLock<(Arc<Servers>, Duration)>,
    /// Guards what is known; held for as long as a group takes to be built, by whoever learnt something.
    known: Mutex<Known>,
    current: Mutex<Arc<Upstream>>,
    version: AtomicU64,
    /// A worker asks for its names.
    is_watched: AtomicBool,
}

#[derive(Default)]
struct Known {
    /// By the number of the name.
    places: Vec<Vec<Place>>,
    /// What a peer's kept connections go by: its index may be another's in the next version.
    pool_ids: HashMap<String, usize>,
    next_id: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is guarded is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// A group of which only the `fixed` peers are known.
    pub fn new(frame: Frame, fixed: Vec<Peer>, named: Vec<Named>) -> Result<Live, GroupError> {
        let mut known = Known { places: vec![Vec::new(); named.len()], ..Known::default() };
        let current = assemble(&frame, fixed.clone(), &mut known)?;
        Ok(Live {
            frame,
            fixed,
            named,
            resolver: OnceLock::new(),
            known: Mutex::new(known),
            current: Mutex::new(Arc::new(current)),
            version: AtomicU64::new(0),
            is_watched: AtomicBool::new(false),
        })
    }

    /// What stands for the group among those of a configuration.
    pub fn declared(self) -> Upstream {
        let Frame { name, policy, pooling, hash_key, budget } = self.frame.clone();
        let group = Group::nobody(&name, policy);
        let (addresses, live) = (Vec::new(), Some(Arc::new(self)));
        Upstream { name, group, addresses, budget, pooling, hash_key, is_implicit: false, pool_ids: None, live }
    }

    /// The peers of the moment.
    pub fn current(&self) -> Arc<Upstream> {
        lock(&self.current).clone()
    }

    /// Who is asked, unless `http`'s resolver is.
    pub fn set_resolver(&self, servers: Arc<Servers>, timeout: Duration) {
        let _ = self.resolver.set((servers, timeout));
    }

    /// Takes what a name stands for from now on; the same as before changes nothing.
    fn learn(&self, number: usize, places: Vec<Place>) {
        let mut known = lock(&self.known);
        let Some(before) = known.places.get_mut(number) else { return };
        let now = in_order_of(before, places);
        if *before != now {
            *before = now;
            self.renew(&mut known);
        }
    }

    /// Takes over what `old` knew of the names both have.
    fn adopt(&self, old: &Live) {
        let before = lock(&old.known);
        let mut known = lock(&self.known);
        for (named, places) in self.named.iter().zip(&mut known.places) {
            let same = |other: &Named| other.host == named.host && other.service == named.service;
            if let Some(number) = old.named.iter().position(same) {
                *places = before.places.get(number).cloned().unwrap_or_default();
            }
        }
        self.renew(&mut known);
    }

    fn renew(&self, known: &mut Known) {
        let mut peers = self.fixed.clone();
        for (named, places) in self.named.iter().zip(&known.places) {
            peers.extend(peers_of(named, places));
        }
        let name = &self.frame.name;
        if peers.len() > MAX_PEERS {
            log::global(Level::Error, format_args!("upstream \"{name}\" has more than {MAX_PEERS} peers, the rest is left out"));
            peers.truncate(MAX_PEERS);
        }
        lighten(&mut peers);
        match assemble(&self.frame, peers, known) {
            Ok(mut upstream) => {
                let mut current = lock(&self.current);
                upstream.group.adopt(&current.group);
                *current = Arc::new(upstream);
                self.version.fetch_add(1, Ordering::Release);
            }
            Err(error) => log::global(Level::Error, format_args!("upstream \"{name}\" stays as it is: {error}")),
        }
    }
}

/// Servers tell of the same places in another order each time: here those known before keep theirs.
fn in_order_of(before: &[Place], mut places: Vec<Place>) -> Vec<Place> {
    let mut ordered = Vec::with_capacity(places.len());
    for known in before {
        if let Some(at) = places.iter().position(|place| place == known) {
            ordered.push(places.remove(at));
        }
    }
    ordered.append(&mut places);
    ordered
}

/// The peers a name stands for.
fn peers_of(named: &Named, places: &[Place]) -> Vec<Peer> {
    let first = places.iter().map(|place| place.priority).min().unwrap_or(0);
    let peer = |place: &Place| {
        let mut peer = named.pattern.clone();
        let mut address = place.address;
        if named.service.is_some() {
            peer.server.clone_from(&place.host);
            peer.backup |= place.priority != first;
            if peer.weight == 1 {
                peer.weight = u32::from(place.weight);
            }
        } else {
            address.set_port(named.port);
        }
        peer.address = address.to_string();
        peer
    };
    places.iter().map(peer).collect()
}

/// Services may weigh more than a group can bear: then all weigh less, in proportion.
fn lighten(peers: &mut [Peer]) {
    let total: u64 = peers.iter().map(|peer| u64::from(peer.weight)).sum();
    let limit = u64::from(MAX_TOTAL_WEIGHT) - MAX_PEERS as u64;
    if total > limit {
        let divisor = total.div_ceil(limit) as u32;
        peers.iter_mut().for_each(|peer| peer.weight = (peer.weight / divisor).max(1));
    }
}

fn assemble(frame: &Frame, peers: Vec<Peer>, known: &mut Known) -> Result<Upstream, GroupError> {
    let group = Group::of_now(frame.name.as_str(), peers, frame.policy)?;
    // Addresses were written by us, or read when the file was.
    let addresses: Vec<Address> = group.peers().filter_map(|peer| parse_address(&peer.address)).collect();
    let mut ids = HashMap::new();
    let mut pool_ids = Vec::with_capacity(addresses.len());
    for peer in group.peers() {
        let id = match ids.get(&peer.address).or(known.pool_ids.get(&peer.address)) {
            Some(id) => *id,
            None => {
                known.next_id += 1;
                known.next_id
            }
        };
        ids.insert(peer.address.clone(), id);
        pool_ids.push(id);
    }
    known.pool_ids = ids;
    Ok(Upstream {
        name: frame.name.clone(),
        group,
        addresses,
        budget: frame.budget.clone(),
        pooling: frame.pooling,
        hash_key: frame.hash_key.clone(),
        is_implicit: false,
        pool_ids: Some(pool_ids),
        live: None,
    })
}

/// Gives groups without a resolver of their own that of `http`, or refuses the file.
pub fn give_resolver(b: &mut Build<'_>, http: &resolver::Settings) {
    let default = http.servers.clone().flatten();
    let timeout = http.timeout.unwrap_or(resolver::TIMEOUT_DEFAULT);
    let lives: Vec<_> = b.declared.upstream.groups.iter().filter_map(|upstream| upstream.live.clone()).collect();
    for live in lives.iter().filter(|live| live.resolver.get().is_none()) {
        match &default {
            Some(servers) => live.set_resolver(servers.clone(), timeout),
            None => {
                let name = &live.frame.name;
                let refusal = Refusal::whole(format!("no resolver defined to resolve names at run time in upstream \"{name}\""))
                    .todo("name one in http or in the upstream: resolver 127.0.0.53;");
                b.refuse_at("upstream", refusal, None);
            }
        }
    }
}

/// What groups of an older configuration knew goes on being known.
pub fn adopt(new: &Declared, old: &Declared) {
    for live in new.groups.iter().filter_map(|upstream| upstream.live.as_deref()) {
        let old = old.groups.iter().filter_map(|upstream| upstream.live.as_deref());
        if let Some(old) = old.into_iter().find(|old| old.frame.name == live.frame.name) {
            live.adopt(old);
        }
    }
}

/// A version of a group as a worker's exchanges use it.
pub struct Seen {
    version: u64,
    /// The peers.
    pub upstream: Arc<Upstream>,
    /// Their names, for tries to share.
    pub names: Vec<Rc<str>>,
}

/// The versions a worker saw last, by the number of the group.
#[derive(Default)]
pub struct AllSeen(RefCell<Vec<Option<Rc<Seen>>>>);

impl AllSeen {
    /// The version of the moment.
    pub fn look(&self, number: usize, live: &Live) -> Rc<Seen> {
        let version = live.version.load(Ordering::Acquire);
        let mut all = self.0.borrow_mut();
        if let Some(Some(seen)) = all.get(number)
            && seen.version == version
        {
            return seen.clone();
        }
        // Newer peers under an older version are looked at once more.
        let upstream = live.current();
        let names = upstream.group.peers().map(|peer| peer.address.as_str().into()).collect();
        let seen = Rc::new(Seen { version, upstream, names });
        if all.len() <= number {
            all.resize_with(number + 1, || None);
        }
        if let Some(place) = all.get_mut(number) {
            *place = Some(seen.clone());
        }
        seen
    }
}

/// Asks for the names of all groups that no other worker asks for, as long as the configuration is in force.
pub fn watch(worker: &Rc<Worker>) {
    let generation = worker.generation();
    for live in generation.conf.declared.upstream.groups.iter().filter_map(|upstream| upstream.live.as_ref()) {
        let Some((servers, timeout)) = live.resolver.get() else { continue };
        if live.is_watched.swap(true, Ordering::Relaxed) {
            continue;
        }
        for number in 0..live.named.len() {
            let watch = Watch {
                worker: worker.clone(),
                live: live.clone(),
                client: generation.resolver(servers),
                timeout: *timeout,
                number,
            };
            weir_net::worker::spawn(watch.run(generation.conf.generation));
        }
    }
}

/// One name that is asked for.
struct Watch {
    worker: Rc<Worker>,
    live: Arc<Live>,
    client: Rc<Client>,
    timeout: Duration,
    number: usize,
}

impl Watch {
    async fn run(self, generation: u32) {
        let is_in_force = || self.worker.generation().conf.generation == generation && !self.worker.is_draining();
        while is_in_force() {
            let Some(named) = self.live.named.get(self.number) else { return };
            let pause = match self.ask(named).await {
                Ok(until) => until.saturating_duration_since(clock::now()),
                Err(trouble) => {
                    complain(named, trouble);
                    match trouble {
                        Trouble::Code(Code::NAME_ERROR) => {
                            self.live.learn(self.number, Vec::new());
                            self.client.servers().valid.unwrap_or(GONE)
                        }
                        Trouble::Code(_) | Trouble::TimedOut | Trouble::Busy => self.timeout,
                    }
                }
            };
            timer::sleep(pause.max(PAUSE_MIN)).await;
        }
    }

    async fn ask(&self, named: &Named) -> Result<Instant, Trouble> {
        let Named { host, service, .. } = named;
        let resolved = match service {
            None => self.client.addresses(host, self.timeout).await?,
            Some(service) => {
                let missing = |name: &_, trouble| {
                    let what = format_args!("{name} could not be resolved {trouble} while resolving service {service} of {host}");
                    log::global(Level::Error, what);
                };
                self.client.service(host, service, self.timeout, missing).await?
            }
        };
        self.live.learn(self.number, resolved.places);
        Ok(resolved.until)
    }
}

fn complain(Named { host, service, .. }: &Named, trouble: Trouble) {
    match service {
        None => log::global(Level::Error, format_args!("{host} could not be resolved {trouble}")),
        Some(service) => {
            log::global(Level::Error, format_args!("service {service} of {host} could not be resolved {trouble}"));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn live(service: Option<&str>, fixed: &[&str]) -> Live {
        let frame = Frame {
            name: "u".to_owned(),
            policy: Policy::RoundRobin,
            pooling: PoolPolicy::default(),
            hash_key: None,
            budget: Arc::default(),
        };
        let named = Named {
            host: "a.example".to_owned(),
            port: 8080,
            service: service.map(str::to_owned),
            pattern: Peer { server: "a.example:8080".to_owned(), ..Peer::new("") },
        };
        Live::new(frame, fixed.iter().map(|address| Peer::new(*address)).collect(), vec![named]).unwrap()
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
        live.learn(0, vec![place("10.0.0.1:0", 0, 1), place("10.0.0.2:0", 0, 1)]);
        assert_eq!(shown(&live), ["127.0.0.9:80", "10.0.0.1:8080", "10.0.0.2:8080"]);
        let before = live.current();
        live.learn(0, vec![place("10.0.0.2:0", 0, 1), place("10.0.0.3:0", 0, 1)]);
        let now = live.current();
        assert_eq!(before.pool_id(2), now.pool_id(1));
        assert_eq!(before.pool_id(0), now.pool_id(0));
        assert!(now.pool_id(2) != before.pool_id(1));
        live.learn(0, Vec::new());
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
        let peers: Vec<_> = current.group.peers().map(|peer| (peer.address.as_str(), peer.weight, peer.backup)).collect();
        assert_eq!(peers, [("10.0.0.2:82", 5, false), ("10.0.0.2:82", 5, false), ("10.0.0.1:81", 7, true)]);
        assert_eq!(current.group.peer(0).unwrap().server, "h.example");
    }

    #[test]
    fn weights_beyond_all_bounds_shrink_in_proportion() {
        let live = live(Some("http"), &[]);
        live.learn(0, vec![place("10.0.0.1:81", 1, 60_000), place("10.0.0.2:82", 1, 60_000), place("10.0.0.3:83", 1, 1)]);
        let weights: Vec<_> = live.current().group.peers().map(|peer| peer.weight).collect();
        assert_eq!(weights, [30_000, 30_000, 1]);
    }

    #[test]
    fn a_reload_keeps_what_was_known_under_the_new_port() {
        let (old, new) = (live(None, &[]), {
            let mut new = live(None, &[]);
            new.named[0].port = 9090;
            new
        });
        old.learn(0, vec![place("10.0.0.1:0", 0, 1)]);
        new.adopt(&old);
        assert_eq!(shown(&new), ["10.0.0.1:9090"]);
    }
}
