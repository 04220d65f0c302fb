//! A small group for the tests of this crate, and the laws of groups that change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use weir_conf::At;
use weir_http::hold::dns::{ResolvedAddress, ResolverZone, Servers};
use weir_net::Address;
use weir_peers::balance::{Affinity, Policy};
use weir_peers::group::{Group, Outcome, Part};
use weir_peers::health::{Rule, State};
use weir_peers::peer::Peer;

use crate::{Live, Members, Named, Parts};

/// The parts of a group that only has peers.
#[derive(Clone)]
pub struct Plain {
    policy: Policy,
    renewals: Arc<AtomicUsize>,
}

/// A version of such a group.
pub struct Built {
    group: Group,
    pub addresses: Vec<Address>,
    pub ids: Vec<usize>,
    /// The numbers of the group that this one replaced.
    pub replaced: Option<Vec<usize>>,
    live: Option<Arc<Live<Plain>>>,
}

impl Parts for Plain {
    type Built = Built;
    const PORT_DEFAULT: Option<u16> = Some(80);

    fn name(&self) -> &str {
        "u"
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn at(&self) -> At {
        At::default()
    }

    fn build(&self, group: Group, addresses: Vec<Address>, ids: Vec<usize>, before: Option<&Built>) -> Built {
        Built { group, addresses, ids, replaced: before.map(|before| before.ids.clone()), live: None }
    }

    fn group(built: &Built) -> &Group {
        &built.group
    }

    fn live(built: &Built) -> Option<&Arc<Live<Plain>>> {
        built.live.as_ref()
    }

    fn group_mut(built: &mut Built) -> &mut Group {
        &mut built.group
    }

    fn renewed(&self) {
        self.renewals.fetch_add(1, Ordering::Relaxed);
    }
}

impl Built {
    /// The entry of a configuration for a group that changes.
    pub fn pointing_to(live: &Arc<Live<Plain>>) -> Arc<Built> {
        let group = Group::nobody("u", Policy::RoundRobin);
        Arc::new(Built { group, addresses: vec![], ids: vec![], replaced: None, live: Some(live.clone()) })
    }

    /// The entry of a configuration for a group that stays as it is.
    pub fn fixed(addresses: &[&str]) -> Arc<Built> {
        let group = Group::of_now("u", addresses.iter().map(|address| peer(address)).collect(), Policy::RoundRobin);
        Arc::new(Built { group: group.unwrap(), addresses: vec![], ids: vec![], replaced: None, live: None })
    }
}

pub fn peer(address: &str) -> Peer {
    Peer::new(address)
}

pub fn place(address: &str) -> ResolvedAddress {
    ResolvedAddress { address: address.parse().unwrap(), host: String::new(), priority: 0, weight: 1 }
}

/// A server whose name is resolved repeatedly.
pub fn name(host: &str, port: u16) -> Named {
    Named { host: host.to_owned(), port, service: None, pattern: Peer::new(format!("{host}:{port}")) }
}

/// A group of addresses, then of names.
pub fn live_of(addresses: &[&str], names: &[&str]) -> Live<Plain> {
    live(Policy::RoundRobin, addresses, names, None)
}

pub fn live(policy: Policy, addresses: &[&str], names: &[&str], state: Option<String>) -> Live<Plain> {
    let fixed = addresses.iter().map(|address| peer(address)).collect();
    let members = Members::new(fixed, names.iter().map(|host| name(host, 80)).collect());
    Live::new(Plain { policy, renewals: Arc::default() }, members, state).unwrap()
}

/// A resolver that is never asked.
pub fn resolver() -> Arc<Servers> {
    Arc::new(Servers::new(vec![], Arc::new(ResolverZone::new(String::new()))))
}

/// The addresses of a version, with the numbers that they keep.
fn numbered(live: &Live<Plain>) -> Vec<(String, usize)> {
    let current = live.current();
    let peers = current.group.peers().map(|peer| peer.address.clone());
    peers.zip(current.ids.iter().copied()).collect()
}

fn with_numbers(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
    expected.iter().map(|(address, id)| ((*address).to_owned(), *id)).collect()
}

/// A waker that counts.
#[derive(Default)]
pub struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counting {
    pub fn new() -> (Arc<Counting>, Waker) {
        let counting = Arc::new(Counting::default());
        (counting.clone(), counting.into())
    }

    pub fn times(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_version_is_higher_exactly_if_its_peers_are_newer() {
    let live = live_of(&["127.0.0.1:1"], &["a.test"]);
    let mut seen = (live.version(), Arc::as_ptr(&live.current()));
    for (id, places, changes) in [
        (1, vec!["10.0.0.1:0", "10.0.0.2:0"], true),
        (1, vec!["10.0.0.2:0", "10.0.0.1:0"], false),
        (0, vec!["10.0.0.3:0"], false),
        (7, vec!["10.0.0.3:0"], false),
        (1, vec!["10.0.0.2:0"], true),
        (1, vec![], true),
        (1, vec![], false),
    ] {
        live.learn(id, places.iter().map(|text| place(text)).collect());
        let now = (live.version(), Arc::as_ptr(&live.current()));
        assert_eq!((now.0 > seen.0, now.1 != seen.1), (changes, changes), "server {id} gets {places:?}");
        seen = now;
    }
    assert_eq!(live.parts().renewals.load(Ordering::Relaxed), 3);
}

#[test]
fn an_address_keeps_its_number_while_it_is_in_the_group() {
    let live = live_of(&["127.0.0.1:1"], &["a.test"]);
    for (places, expected) in [
        (&["10.0.0.1:0", "10.0.0.2:0"][..], &[("127.0.0.1:1", 1), ("10.0.0.1:80", 2), ("10.0.0.2:80", 3)][..]),
        (&["10.0.0.2:0"], &[("127.0.0.1:1", 1), ("10.0.0.2:80", 3)]),
        // An address that comes back is another one: connections of its former number are not used for it.
        (&["10.0.0.1:0", "10.0.0.2:0"], &[("127.0.0.1:1", 1), ("10.0.0.2:80", 3), ("10.0.0.1:80", 4)]),
    ] {
        live.learn(1, places.iter().map(|text| place(text)).collect());
        assert_eq!(numbered(&live), with_numbers(expected), "{places:?}");
        assert_eq!(live.current().addresses.len(), expected.len());
    }
    assert_eq!(live.current().replaced, Some(vec![1, 3]), "a version is built from the version before it");
    let twice = live_of(&["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:1"], &[]);
    let expected = [("127.0.0.1:1", 1), ("127.0.0.1:2", 2), ("127.0.0.1:1", 1)];
    assert_eq!(numbered(&twice), with_numbers(&expected), "two servers with one address share its number");
}

#[test]
fn a_task_that_waits_for_a_version_is_woken_once_by_the_next_one() {
    let live = live_of(&[], &["a.test"]);
    let (counting, waker) = Counting::new();
    let context = Context::from_waker(&waker);
    assert_eq!(live.poll_newer(1, &context), Poll::Ready(()), "another version is in force already");
    assert_eq!(live.poll_newer(0, &context), Poll::Pending);
    assert_eq!(live.poll_newer(0, &context), Poll::Pending);
    live.learn(0, vec![place("10.0.0.1:0")]);
    assert_eq!((counting.times(), live.poll_newer(0, &context)), (1, Poll::Ready(())));
    live.learn(0, vec![]);
    assert_eq!(counting.times(), 1, "it does not wait any more");
}

#[test]
fn exchanges_of_peers_that_left_are_counted_until_they_end() {
    let live = live_of(&["127.0.0.1:1"], &["a.test"]);
    live.learn(1, vec![place("10.0.0.1:0"), place("10.0.0.2:0")]);
    let (old, part) = (live.current(), Part::default());
    let mut held: Vec<_> = (0..3).map(|_| old.group.begin(0)).collect();
    for selection in &mut held {
        old.group.pick(&part, selection, &Affinity::default(), &mut |_| 0, 1000).unwrap();
    }
    assert_eq!(live.zombies(), 0, "all three peers are in the group");
    live.learn(1, vec![]);
    assert_eq!(live.zombies(), 2);
    live.learn(1, vec![place("10.0.0.2:0")]);
    assert_eq!(live.zombies(), 1, "an address that is back has left no exchange behind");
    for selection in &mut held {
        old.group.release(&part, selection, Outcome::Ok, 1000);
    }
    assert_eq!(live.zombies(), 0);
}

#[test]
fn a_reload_takes_over_the_addresses_of_the_same_names() {
    let old = live_of(&["127.0.0.1:1"], &["a.test", "b.test"]);
    old.learn(1, vec![place("10.0.0.1:0")]);
    old.learn(2, vec![place("10.0.0.2:0")]);
    let new = live_of(&[], &["c.test", "b.test"]);
    new.adopt(&old);
    let peers: Vec<String> = new.current().group.peers().map(|peer| peer.address.clone()).collect();
    assert_eq!(peers, ["10.0.0.2:80"]);
}

#[test]
fn every_version_is_guarded_by_the_rules_of_health_checks() {
    let live = live_of(&["127.0.0.1:1"], &["a.test"]);
    let rule = Rule { asks: "/".into(), fails: 1, passes: 1, mandatory: true, persistent: false };
    live.guard(Arc::new([rule]));
    let states = |live: &Live<Plain>| -> Vec<State> {
        live.current().group.view(0).iter().filter_map(|view| view.health).map(|shown| shown.state).collect()
    };
    assert_eq!(states(&live), [State::Checking]);
    assert_eq!(live.current().group.health(0).unwrap().note(0, true, 1), Some(State::Up));
    live.learn(1, vec![place("10.0.0.1:0")]);
    assert_eq!(states(&live), [State::Up, State::Checking], "a known peer keeps its state, a new one must pass first");
}

#[test]
fn names_need_a_resolver() {
    let servers = resolver();
    for (names, own, of_block, refused) in [
        (&[][..], false, false, false),
        (&["a.test"][..], false, true, false),
        (&["a.test"], true, false, false),
        (&["a.test"], false, false, true),
    ] {
        let live = live_of(&["127.0.0.1:1"], names);
        if own {
            live.set_resolver(servers.clone(), Duration::from_secs(1));
        }
        let told = live.default_resolver(of_block.then_some(&servers), None, "http");
        let words = "no resolver defined to resolve names at run time in upstream \"u\"";
        assert_eq!(told.err().map(|refusal| refusal.what), refused.then(|| words.to_owned()), "{names:?} {own}");
        assert_eq!(live.has_resolver(), own || of_block);
    }
}
