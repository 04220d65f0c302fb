//! Names resolved while the edge serves: each worker has one client for each `resolver`, and all workers share the
//! answers.
//!
//! ```text
//!  addresses("app.example") ─► answers ─ known ──────────► answer
//!                                └─ flight (one a name and kind) ─► ask: UDP, TCP where truncated, the next server
//! ```
//!
//! If many exchanges wait for a name, weir asks once. Not used: `/etc/hosts` and `/etc/resolv.conf`, as in nginx.
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#resolver>

mod ask;
mod book;
pub mod counters;
pub mod reading;
pub mod trouble;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use self::trouble::Trouble;
use crate::hold::worker::Generation;
use book::{Answers, Flights, FoundAnswer, Wait};
use counters::ResolverCounters;
use weir_net::{Deadline, Instant, clock};
use weir_wire::dns::{ALIASES_MAX, Code, Kind, Name, Reply};

/// The parameters of one `resolver`.
pub struct Servers {
    /// The servers to ask, in turn; at least one.
    pub servers: Vec<SocketAddr>,
    /// `valid=`: how long an answer is valid, in place of its own TTL.
    pub valid: Option<Duration>,
    /// `ipv4=`.
    pub ipv4: bool,
    /// `ipv6=`.
    pub ipv6: bool,
    /// `status_zone=`, or a zone named after the servers.
    pub zone: Arc<ResolverZone>,
    /// Their answers, to all workers.
    known: Mutex<Answers>,
    /// The server to ask first for the next name.
    turn: AtomicUsize,
}

impl Servers {
    /// Servers without answers yet.
    pub fn new(servers: Vec<SocketAddr>, zone: Arc<ResolverZone>) -> Servers {
        Servers {
            servers,
            valid: None,
            ipv4: true,
            ipv6: true,
            zone,
            known: Mutex::default(),
            turn: AtomicUsize::new(0),
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        // An answer is stored whole or not at all.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counters of the resolvers of one status zone.
pub struct ResolverZone {
    /// Its name.
    pub name: String,
    counters: OnceLock<Arc<ResolverCounters>>,
}

impl ResolverZone {
    /// A zone of that name.
    pub fn new(name: String) -> ResolverZone {
        ResolverZone { name, counters: OnceLock::new() }
    }

    /// Its counters.
    pub fn counters(&self) -> &Arc<ResolverCounters> {
        self.counters.get_or_init(Arc::default)
    }

    /// Continues the counts of the zone of the same name in an older configuration.
    pub fn adopt(&self, old: &ResolverZone) {
        // Already set if an earlier resolver of the zone adopted the same counters.
        let _ = self.counters.set(old.counters().clone());
    }
}

/// An address of a name, or of a service of the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedAddress {
    /// The address; the port is 0 unless the service names it.
    pub address: SocketAddr,
    /// The host that offers the service; empty without a service.
    pub host: String,
    /// The priority of the service; 0 is used first.
    pub priority: u16,
    /// The weight of the service; 1 without a service.
    pub weight: u16,
}

/// The result of resolving a name.
pub struct Resolved {
    /// At least one.
    pub places: Vec<ResolvedAddress>,
    /// The time until which it is valid.
    pub until: Instant,
}

/// Addresses taken from one name, at most.
pub const PLACES_MAX: usize = 1024;

/// The default of `resolver_timeout`.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// The clients of a worker, by the address of the resolver's `Servers`, which a client keeps alive.
#[derive(Default)]
struct Clients(RefCell<HashMap<usize, Rc<Resolver>>>);

/// This worker's client for the servers of a `resolver`.
pub fn client(generation: &Generation, servers: &Arc<Servers>) -> Rc<Resolver> {
    let mut clients = generation.own.of(Clients::default).0.borrow_mut();
    clients.entry(Arc::as_ptr(servers) as usize).or_insert_with(|| Resolver::new(servers.clone())).clone()
}

/// A worker's way to the servers of one `resolver`.
pub struct Resolver {
    servers: Arc<Servers>,
    flights: RefCell<Flights>,
    /// The first address of the next known answer: each answer starts with another address.
    rotation: Cell<usize>,
}

impl Resolver {
    /// A client without questions yet.
    pub fn new(servers: Arc<Servers>) -> Rc<Resolver> {
        Rc::new(Resolver { servers, flights: RefCell::default(), rotation: Cell::new(0) })
    }

    /// The addresses of a name, of both kinds if the resolver allows both.
    ///
    /// # Errors
    ///
    /// nginx's error for the name, after `timeout` at the latest.
    pub async fn addresses(self: &Rc<Self>, name: &str, timeout: Duration) -> Result<Resolved, Trouble> {
        let name = Name::of_text(name).map_err(|_| Trouble::Code(Code::NAME_ERROR))?;
        let deadline = Deadline::new();
        deadline.set(timeout);
        let mut found = self.both_kinds(&name, &deadline).await?;
        if found.is_known {
            // Each use of a known answer starts with another address.
            let first = self.rotation.get() % found.all.len().max(1);
            self.rotation.set(self.rotation.get().wrapping_add(1));
            found.all.rotate_left(first);
        }
        let place =
            |ip| ResolvedAddress { address: SocketAddr::new(ip, 0), host: String::new(), priority: 0, weight: 1 };
        let until = found.until.unwrap_or_else(clock::now);
        Ok(Resolved { places: found.all.into_iter().map(place).collect(), until })
    }

    /// The addresses of a service of a name. `http` stands for `_http._tcp`; a service with a dot is used as written.
    ///
    /// # Errors
    ///
    /// As for addresses. Hosts of the service without an address are left out, and passed to `missing`.
    pub async fn service(
        self: &Rc<Self>,
        name: &str,
        service: &str,
        timeout: Duration,
        mut missing: impl FnMut(&Name, Trouble),
    ) -> Result<Resolved, Trouble> {
        let name = if service.contains('.') { format!("{service}.{name}") } else { format!("_{service}._tcp.{name}") };
        let name = Name::of_text(&name).map_err(|_| Trouble::Code(Code::NAME_ERROR))?;
        let deadline = Deadline::new();
        deadline.set(timeout);
        let (reply, mut until) = self.services(name, &deadline).await?;
        let mut places = Vec::new();
        let mut last = Trouble::Code(Code::NAME_ERROR);
        for service in &reply.services {
            match self.both_kinds(&service.target, &deadline).await {
                Ok(found) => {
                    until = found.until.map_or(until, |valid| until.min(valid));
                    let (host, weight) = (service.target.to_string(), service.weight.max(1));
                    let room = PLACES_MAX.saturating_sub(places.len());
                    places.extend(found.all.into_iter().take(room).map(|ip| ResolvedAddress {
                        address: SocketAddr::new(ip, service.port),
                        host: host.clone(),
                        priority: service.priority,
                        weight,
                    }));
                }
                Err(trouble) => {
                    missing(&service.target, trouble);
                    last = trouble;
                }
            }
        }
        if places.is_empty() { Err(last) } else { Ok(Resolved { places, until }) }
    }

    /// Its servers and their answers.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    fn next_turn(&self) -> usize {
        self.servers.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// The addresses at the end of a name's aliases, and whether all answers were already known.
    ///
    /// As in nginx: if the question for one kind fails, the whole fails. Addresses of one kind are enough. If neither
    /// kind has any, the alias in the answer of the last kind is asked next.
    async fn both_kinds(self: &Rc<Self>, name: &Name, deadline: &Deadline) -> Result<Addresses, Trouble> {
        let mut name = name.clone();
        let mut found = Addresses { all: Vec::new(), until: None, is_known: true };
        for _ in 0..ALIASES_MAX {
            let turn = self.next_turn();
            let kinds = [(self.servers.ipv4, Kind::A), (self.servers.ipv6, Kind::Aaaa)];
            let kinds = kinds.into_iter().filter_map(|(is_wanted, kind)| is_wanted.then_some(kind));
            // All questions are sent before weir waits for an answer.
            let begun: Vec<(Kind, FoundAnswer)> = kinds.map(|kind| (kind, self.look_up(&name, kind, turn))).collect();
            let (mut outcome, mut empty) = (Ok(None), Vec::new());
            for (kind, begun) in begun {
                found.is_known &= matches!(begun, FoundAnswer::Known(..));
                match settle(begun, deadline).await {
                    Ok((reply, until)) => {
                        if reply.addresses.is_empty() {
                            empty.push((kind, reply.clone()));
                        } else {
                            found.note(until);
                        }
                        found.all.extend_from_slice(&reply.addresses);
                        outcome = outcome.map(|_| reply.alias.clone());
                    }
                    Err(trouble) => outcome = outcome.and(Err(trouble)),
                }
            }
            match outcome? {
                _ if !found.all.is_empty() => {
                    for (kind, reply) in empty {
                        // The answer that this kind has no address stays valid as long as the addresses of the other
                        // kind.
                        self.servers.answers().hold((name.clone(), kind), &reply, found.until);
                    }
                    found.all.truncate(PLACES_MAX);
                    return Ok(found);
                }
                Some(alias) => name = alias,
                None => break,
            }
        }
        Err(Trouble::Code(Code::NAME_ERROR))
    }

    /// The services at the end of a name's aliases.
    async fn services(self: &Rc<Self>, mut name: Name, deadline: &Deadline) -> Result<(Arc<Reply>, Instant), Trouble> {
        let mut until: Option<Instant> = None;
        for _ in 0..ALIASES_MAX {
            let (reply, valid) = settle(self.look_up(&name, Kind::Srv, self.next_turn()), deadline).await?;
            let until = *until.insert(until.map_or(valid, |until| until.min(valid)));
            match &reply.alias {
                Some(alias) => name = alias.clone(),
                None if reply.services.is_empty() => break,
                None => return Ok((reply, until)),
            }
        }
        Err(Trouble::Code(Code::NAME_ERROR))
    }

    /// The known answer, the question that is on its way, or a new task that asks.
    fn look_up(self: &Rc<Self>, name: &Name, kind: Kind, turn: usize) -> FoundAnswer {
        let key = (name.clone(), kind);
        if let Some((reply, until)) = self.servers.answers().find(&key, clock::now()) {
            return FoundAnswer::Known(reply, until);
        }
        let found = self.flights.borrow_mut().join(key);
        if let FoundAnswer::New(flight) = &found {
            weir_net::worker::spawn(ask::fly(self.clone(), flight.clone(), turn));
        }
        found
    }
}

/// Addresses of a name.
struct Addresses {
    all: Vec<IpAddr>,
    until: Option<Instant>,
    is_known: bool,
}

impl Addresses {
    fn note(&mut self, until: Instant) {
        self.until = Some(self.until.map_or(until, |before| before.min(until)));
    }
}

/// The known answer, or the result of a flight. An answer with an error code becomes an error.
async fn settle(found: FoundAnswer, deadline: &Deadline) -> Result<(Arc<Reply>, Instant), Trouble> {
    let (reply, until) = match found {
        FoundAnswer::Known(reply, until) => (reply, until),
        FoundAnswer::Flying(flight) | FoundAnswer::New(flight) => {
            let mut wait = Wait::new(flight);
            let landed = poll_fn(|context| match wait.poll(context) {
                Poll::Pending => deadline.poll_expired().map(|()| Err(Trouble::TimedOut)),
                landed => landed,
            });
            landed.await?
        }
        FoundAnswer::Full => return Err(Trouble::Busy),
    };
    if reply.code == Code::NO_ERROR { Ok((reply, until)) } else { Err(Trouble::Code(reply.code)) }
}
