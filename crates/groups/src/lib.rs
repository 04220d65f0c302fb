//! Groups whose peers change at run time: names are resolved (`server NAME resolve`, `service=`), and the API adds,
//! changes and removes servers of a group with a `zone`.
//!
//! ```text
//!  a worker resolves a name ─► learn ─┐
//!                                     ├─► a new group adopts the peers' state ─► all workers see a higher version
//!  the API changes a server ─► edit ──┘
//! ```
//!
//! The groups of `http` and those of `stream` differ only in their [`Parts`]. An exchange or a session keeps the peers it began with. Resolved names survive a reload, by group, name and service; changes by the
//! API survive it through `state`. Invariant: a version is higher than another exactly if its peers are newer.
//!
//! - `upstream`, `block`, `resolver`: a group with its peers; reads `upstream` and the directives inside it; reads
//!   `resolver`
//! - `members`, `watch`: the servers; resolves their names
//! - `edit`, `state`: the API's view; the file that stores changes
//! - `checks`, `rounds`: reads `health_check` and `match`; the schedule of the checks
//! - `local`: a worker's record of each group
#![forbid(unsafe_code)]

pub mod block;
pub mod checks;
pub mod edit;
mod local;
mod members;
pub mod resolver;
pub mod rounds;
mod state;
#[cfg(test)]
mod tests;
mod upstream;
mod watch;

pub use block::Written;
pub use local::{KnownPeer, LastUsed, Local, Locals};
pub use members::{Member, MemberKind, Members, Named};
pub use upstream::{Declared, Frame, Measure, Parts, Upstream, adopt, finish};
pub use watch::watch;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_http::hold::dns::{ResolvedAddress, Servers, TIMEOUT_DEFAULT};
use weir_http::read::authority::literal_address;
use weir_http::text::refusal::Refusal;
use weir_net::log::{self, Level};
use weir_net::{Address, clock};
use weir_peers::group::{Group, GroupError, MAX_PEERS};
use weir_peers::health::CheckRule;
use weir_peers::peer::Peer;

/// A group whose peers change.
pub struct Live<P: Parts> {
    frame: Frame<P>,
    /// The file that stores the API's changes (`state`).
    state: Option<String>,
    resolver: OnceLock<(Arc<Servers>, Duration)>,
    /// The rules that turn results of health checks into states.
    rules: OnceLock<Arc<[CheckRule]>>,
    /// Guards the known peers; a thread that learns or changes something holds the lock while it builds the group.
    known: Mutex<Known<P>>,
    current: Mutex<Arc<Upstream<P>>>,
    version: AtomicU64,
    /// The tasks that wait for the next version.
    waiting: Mutex<Vec<Waker>>,
}

#[derive(Default)]
struct Known<P: Parts> {
    members: Members,
    /// The names that a worker resolves.
    watched: HashSet<u32>,
    /// The number of each address: a peer's index may belong to another peer in the next version.
    ids: HashMap<String, usize>,
    /// The last number. A group that continues this one goes on from here, so that no number means two addresses in both.
    last_id: Arc<AtomicUsize>,
    /// Older groups that exchanges may still use, for counting them.
    before: Vec<Weak<Upstream<P>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded values are always replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Parts> Live<P> {
    /// A group of these servers; no name among them is resolved yet.
    pub fn new(frame: Frame<P>, members: Members, state: Option<String>) -> Result<Live<P>, GroupError> {
        let mut known = Known::default();
        let current = assemble(&frame, members.peers().0, &mut known, None)?;
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

    /// The parts that do not change.
    pub fn frame(&self) -> &Frame<P> {
        &self.frame
    }

    /// The current peers.
    pub fn current(&self) -> Arc<Upstream<P>> {
        lock(&self.current).clone()
    }

    /// Sets the resolver; without it the resolver of the block is used.
    pub fn set_resolver(&self, servers: Arc<Servers>, timeout: Duration) {
        let _ = self.resolver.set((servers, timeout));
    }

    /// Whether it has a server that is not down.
    pub fn has_servers(&self) -> bool {
        lock(&self.known).members.list.iter().any(|member| !member.pattern().down)
    }

    /// Whether it has a resolver.
    pub fn has_resolver(&self) -> bool {
        self.resolver.get().is_some()
    }

    /// Gives it the resolver of its block, unless it has one of its own; a refusal if it has names and gets none.
    pub fn default_resolver(
        &self,
        servers: Option<&Arc<Servers>>,
        timeout: Option<Duration>,
        block: &str,
    ) -> Result<(), Refusal> {
        let has_names =
            || lock(&self.known).members.list.iter().any(|member| matches!(member.kind, MemberKind::Named(..)));
        match servers {
            _ if self.has_resolver() => Ok(()),
            Some(servers) => {
                self.set_resolver(servers.clone(), timeout.unwrap_or(TIMEOUT_DEFAULT));
                Ok(())
            }
            None if has_names() => {
                let name = &self.frame.name;
                let what = format!("no resolver defined to resolve names at run time in upstream \"{name}\"");
                Err(Refusal::whole(what)
                    .todo(format!("name a resolver in {block} or in the upstream: resolver 127.0.0.53;"))
                    .needs("resolver", ""))
            }
            None => Ok(()),
        }
    }

    /// Sets the rules of health checks: called once, before the configuration comes into force.
    pub fn guard(&self, rules: Arc<[CheckRule]>) {
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
        let old: Vec<_> = known.before.iter().filter_map(Weak::upgrade).collect();
        let here = |address: &str| known.ids.contains_key(address);
        let mut gone = HashSet::new();
        for upstream in &old {
            let group = &upstream.group;
            let views = group.view(0);
            let busy = group.peers().zip(&views).filter(|(peer, view)| view.conns > 0 && !here(&peer.address));
            gone.extend(busy.map(|(peer, _)| peer.address.clone()));
        }
        gone.len()
    }

    /// Sets the addresses of a name, by the number of its server; the same addresses as before change nothing.
    pub fn learn(&self, id: u32, places: Vec<ResolvedAddress>) {
        let mut known = lock(&self.known);
        if known.members.learn(id, places) {
            self.renew(&mut known);
        }
    }

    /// Takes over the addresses of names that `old` also has, and the numbers of its peers.
    pub fn adopt(&self, old: &Live<P>) {
        let before = lock(&old.known);
        let mut known = lock(&self.known);
        known.members.adopt(&before.members);
        (known.ids, known.last_id) = (before.ids.clone(), before.last_id.clone());
        self.renew(&mut known);
        let mut current = lock(&self.current);
        if let Some(current) = Arc::get_mut(&mut current) {
            current.adopt(&lock(&old.current));
        }
    }

    /// Puts the current servers into force.
    fn renew(&self, known: &mut Known<P>) {
        let name = &self.frame.name;
        let (peers, too_many) = known.members.peers();
        if too_many {
            log::global(
                Level::Error,
                format_args!("upstream \"{name}\" has more than {MAX_PEERS} peers, weir ignores the others"),
            );
        }
        match assemble(&self.frame, peers, known, Some(&*self.current())) {
            Ok(upstream) => self.put(upstream, known),
            Err(error) => log::global(Level::Error, format_args!("upstream \"{name}\" keeps its servers: {error}")),
        }
    }

    fn put(&self, mut upstream: Upstream<P>, known: &mut Known<P>) {
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
        self.frame.own.renewed();
    }
}

fn assemble<P: Parts>(
    frame: &Frame<P>,
    peers: Vec<Peer>,
    known: &mut Known<P>,
    before: Option<&Upstream<P>>,
) -> Result<Upstream<P>, GroupError> {
    let mut group = Group::of_now(&frame.name, peers, frame.policy)?;
    // Groups whose peers change have a `zone`.
    group.share();
    // weir wrote these addresses, or checked them when it read the file.
    let addresses: Vec<Address> = group.peers().filter_map(|peer| literal_address(&peer.address)).collect();
    let mut numbers = HashMap::new();
    let mut ids = Vec::with_capacity(addresses.len());
    for peer in group.peers() {
        let id = match numbers.get(&peer.address).or(known.ids.get(&peer.address)) {
            Some(id) => *id,
            None => known.last_id.fetch_add(1, Ordering::Relaxed) + 1,
        };
        numbers.insert(peer.address.clone(), id);
        ids.push(id);
    }
    known.ids = numbers;
    Ok(Upstream { ids: Some(ids), ..Upstream::of(frame.clone(), group, addresses, before) })
}
