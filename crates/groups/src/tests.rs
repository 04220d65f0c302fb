//! A small group for the tests of this crate, and the laws of groups that change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use weir_http::exchange::conf::{Conf, Location};
use weir_http::exchange::route::LocationId;
use weir_http::hold::dns::{ResolvedAddress, ResolverZone, Servers};
use weir_http::hold::worker::Generation;
use weir_http::read::authority::literal_address;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Contexts, Directive, HTTP, LOCATION, MATCH, ONE, UPSTREAM, join};
use weir_http::read::families::{ENGINE, Families, Family};
use weir_http::read::found::Found;
use weir_http::text::refusal::Refusal;
use weir_net::Address;
use weir_peers::balance::{Affinity, Policy};
use weir_peers::group::{Outcome, WorkerPart};
use weir_peers::health::{CheckRule, State};
use weir_peers::peer::Peer;

use crate::checks::{self, Asked, Asks, Ended, Parameter};
use crate::{Frame, Live, Measure, Members, Named, Parts, Upstream, Written, adopt, block, finish, resolver};

/// A group that only has peers.
#[derive(Clone, Default)]
pub struct Plain {
    renewals: Arc<AtomicUsize>,
    /// The numbers of the group that this one replaced.
    replaced: Option<Vec<usize>>,
}

/// The settings of the families of this crate's tests.
#[derive(Clone, Default)]
pub struct Settings {
    group: Written,
    resolver: resolver::Settings,
    checks: Values,
}

impl Settings {
    fn inherit(&mut self, outer: &Settings) {
        if self.checks.is_empty() {
            self.checks.clone_from(&outer.checks);
        }
    }

    fn values(self) -> Values {
        self.checks
    }
}

/// The numbers of the checks in a place.
type Values = Vec<usize>;

#[derive(Default)]
pub struct Declared {
    upstream: crate::Declared<Plain>,
    pub resolver: resolver::Declared,
    checks: checks::Declared<PlainCheck>,
}

static FAMILIES: &[&Family] =
    &[&Family::new("plain", &ALL).adopt(adopt::<Plain>).finish(finish::<Plain>).check(settle)];
static ALL: [Directive; OWN.len() + RESOLVER.len() + SHARED.len()] = join(&[OWN, &RESOLVER, &SHARED]);
const RESOLVER: [Directive; 2] = resolver::directives::<Plain>(HTTP.or(UPSTREAM));
const SHARED: [Directive; 7] = block::directives::<Plain>("", "", "", "");
const OWN: &[Directive] = &[
    Directive::new("state", UPSTREAM, ONE, "", block::state::<Plain>),
    Directive::new("health_check", LOCATION, Arity::AtLeast(0), "", checks::health_check::<PlainCheck>).many(),
    Directive::new("match", HTTP, ONE, "", checks::tests::<PlainCheck>).many().block(),
];

weir_http::above!(0);

/// Reads these upstreams.
pub fn of_text(http: &str) -> (Option<Conf>, Vec<String>) {
    static ALL: LazyLock<Families> = LazyLock::new(|| Families::new(&[&ENGINE, &LEVEL], &["headers"]));
    weir_http::read::compile::of_text(&format!("events {{}} http {{ {http} }}"), &ALL)
}

impl Parts for Plain {
    const AROUND: Contexts = HTTP;
    const INSIDE: Contexts = UPSTREAM;
    const PORT_DEFAULT: Option<u16> = Some(80);
    const MEASURES: &'static [(&'static str, Measure)] = &[("connect", Measure::Connect), ("all", Measure::LastByte)];
    const MEASURE_DEFAULT: Option<Measure> = None;
    const IS_STICKY: bool = false;

    fn declaring<'b>(b: &'b mut Build<'_>) -> &'b mut crate::Declared<Plain> {
        &mut declaring(b).upstream
    }

    fn declared(conf: &Conf) -> &crate::Declared<Plain> {
        &declared(conf).upstream
    }

    fn declared_mut(conf: &mut Conf) -> &mut crate::Declared<Plain> {
        &mut declared_mut(conf).upstream
    }

    fn written(scope: &mut Scope) -> &mut Written {
        &mut written_mut(scope).group
    }

    fn resolver(scope: &mut Scope) -> &mut resolver::Settings {
        &mut written_mut(scope).resolver
    }

    fn resolvers<'b>(b: &'b mut Build<'_>) -> &'b mut resolver::Declared {
        &mut declaring(b).resolver
    }

    fn follow(&mut self, _: &[Address], before: Option<&Upstream<Plain>>) {
        self.replaced = before.and_then(|before| before.ids.clone());
    }

    fn renewed(&self) {
        self.renewals.fetch_add(1, Ordering::Relaxed);
    }
}

/// A check that asks nobody.
#[derive(Default)]
pub struct PlainCheck {
    /// `group=`: the group to check.
    group: Option<usize>,
    /// The peers that it asked.
    pub asked: AtomicUsize,
}

impl Asks for PlainCheck {
    type Parts = Plain;
    type Tests = ();
    type Place = LocationId;
    type Kept = ();
    const INSIDE: Contexts = MATCH;
    const EXAMPLE: &'static str = "";
    const ZONELESS: [&'static str; 2] = ["of an address", "of a block"];

    fn declaring<'b>(b: &'b mut Build<'_>) -> &'b mut checks::Declared<PlainCheck> {
        &mut declaring(b).checks
    }

    fn declared(conf: &Conf) -> &checks::Declared<PlainCheck> {
        &declared(conf).checks
    }

    fn numbers(scope: &mut Scope) -> &mut Vec<usize> {
        &mut written_mut(scope).checks
    }

    fn tests(_: &mut Scope) {}

    fn parameter(&mut self, word: Parameter<'_>) -> Result<bool, Refusal> {
        if word.name == "group" {
            self.group = Some(word.count::<usize>()? - 1);
        }
        Ok(word.name == "group")
    }

    fn asks(&self) -> String {
        String::new()
    }

    fn location<'g>(generation: &'g Generation, place: &LocationId) -> Option<&'g Location> {
        Some(generation.conf.location(*place))
    }

    async fn ask(asked: &Asked<'_, PlainCheck>) -> Ended {
        asked.check.own.asked.fetch_add(1, Ordering::Relaxed);
        Ended::Passed
    }
}

fn settle(b: &mut Build<'_>, found: &Found<'_>) {
    let places = found.locations.iter().map(|location| (values(location), location.id));
    checks::settle(b, places, |check: &PlainCheck, id| Ok(check.group.map(|group| (group, *id))));
}

/// The entry of a configuration for a group that changes.
pub fn pointing_to(live: &Arc<Live<Plain>>) -> Arc<Upstream<Plain>> {
    Arc::new(Upstream::pointing_to(live.clone()))
}

/// The entry of a configuration for a group that stays as it is.
pub fn fixed(addresses: &[&str]) -> Arc<Upstream<Plain>> {
    let addresses: Vec<Address> = addresses.iter().filter_map(|text| literal_address(text)).collect();
    Arc::new(Upstream::implicit("u", &addresses).unwrap())
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
    Live::new(Frame { name: "u".to_owned(), policy, ..Frame::default() }, members, state).unwrap()
}

/// A resolver that is never asked.
pub fn resolver() -> Arc<Servers> {
    Arc::new(Servers::new(vec![], Arc::new(ResolverZone::new(String::new()))))
}

/// The addresses of a version, with the numbers that they keep.
fn numbered(live: &Live<Plain>) -> Vec<(String, usize)> {
    let current = live.current();
    let peers = current.group.peers().map(|peer| peer.address.clone());
    peers.enumerate().map(|(at, address)| (address, current.id(at))).collect()
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
    assert_eq!(live.frame().own.renewals.load(Ordering::Relaxed), 3);
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
    assert_eq!(live.current().own.replaced, Some(vec![1, 3]), "a version is built from the version before it");
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
    let (old, part) = (live.current(), WorkerPart::default());
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
fn exchanged_names_continue_each_other_if_both_are_there() {
    let text =
        "upstream A { server 127.0.0.1:1; } upstream b { server 127.0.0.1:2; } upstream c { server 127.0.0.1:3; }";
    let conf = of_text(text).0.unwrap();
    let old = Plain::declared(&conf);
    let former = |number: usize, names: Option<[&str; 2]>| {
        old.former(&old.groups[number], names.map(|names| names.map(str::to_owned)).as_ref())
    };
    let all = |names| [former(0, names), former(1, names), former(2, names)];
    assert_eq!(all(None), [Some(0), Some(1), Some(2)]);
    assert_eq!(all(Some(["a", "b"])), [Some(1), Some(0), Some(2)]);
    assert_eq!(all(Some(["a", "none"])), [Some(0), Some(1), Some(2)]);
    assert_eq!(
        old.former(&Upstream::implicit("a", &[literal_address("127.0.0.1:9").unwrap()]).unwrap(), None),
        None,
        "an address is no block"
    );
}

#[test]
fn every_version_is_guarded_by_the_rules_of_health_checks() {
    let live = live_of(&["127.0.0.1:1"], &["a.test"]);
    let rule = CheckRule { asks: "/".into(), fails: 1, passes: 1, mandatory: true, persistent: false };
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
