//! Names resolved while the edge serves: one client a worker and `resolver`, with what it has learnt.
//!
//! ```text
//!  addresses("app.example") ─► book ─ known ─────────────► answer
//!                                └─ flight (one a name and kind) ─► ask: UDP, TCP where truncated, the next server
//! ```
//!
//! A name that many exchanges wait for is asked once. Not here: `/etc/hosts` and `/etc/resolv.conf`, as in nginx.
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#resolver>

mod ask;
mod book;
pub mod counters;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use weir_net::{Deadline, Instant, clock};
use weir_wire::dns::{ALIASES_MAX, Code, Kind, Name, Reply};

use book::{Book, Flight, Found, Wait};
use counters::Counters;

/// What one `resolver` says.
pub struct Servers {
    /// Its place among all of the configuration.
    pub number: usize,
    /// Whom to ask, in turn; at least one.
    pub servers: Vec<SocketAddr>,
    /// `valid=`: how long an answer holds, whatever it says itself.
    pub valid: Option<Duration>,
    /// `ipv4=`.
    pub ipv4: bool,
    /// `ipv6=`.
    pub ipv6: bool,
    /// `status_zone=`, or one that goes by the servers.
    pub zone: Arc<Zone>,
}

/// Where what resolvers of one status zone do is counted.
pub struct Zone {
    /// Its name.
    pub name: String,
    counters: OnceLock<Arc<Counters>>,
}

impl Zone {
    /// A zone of that name.
    pub fn new(name: String) -> Zone {
        Zone { name, counters: OnceLock::new() }
    }

    /// Its counters.
    pub fn counters(&self) -> &Arc<Counters> {
        self.counters.get_or_init(Arc::default)
    }

    /// Goes on counting where an older configuration's zone of the name is.
    pub fn adopt(&self, old: &Zone) {
        // Set already where an earlier resolver of the zone adopted the same.
        let _ = self.counters.set(old.counters().clone());
    }
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A server said so.
    Code(Code),
    /// Nobody said anything in time.
    TimedOut,
    /// `FLIGHTS_MAX` other names are being asked for.
    Busy,
}

impl fmt::Display for Trouble {
    /// nginx's number and words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Code(code) => write!(f, "({}: {})", code.0, code.words()),
            Trouble::TimedOut => f.write_str("(110: Operation timed out)"),
            Trouble::Busy => write!(f, "({}: too many names are being resolved)", Code::SERVER_FAILURE.0),
        }
    }
}

/// An address under which a name, or a service of it, can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where; the port is 0 unless the service names it.
    pub address: SocketAddr,
    /// The host that offers the service; empty without one.
    pub host: String,
    /// The service's; 0 is asked first.
    pub priority: u16,
    /// The service's; 1 without one.
    pub weight: u16,
}

/// What a name came to.
pub struct Resolved {
    /// At least one.
    pub places: Vec<Place>,
    /// How long it holds.
    pub until: Instant,
}

/// Places taken of one name, at most.
pub const PLACES_MAX: usize = 1024;

/// A worker's way to the servers of one `resolver`.
pub struct Client {
    servers: Arc<Servers>,
    book: RefCell<Book>,
    /// Who is asked first for the next name.
    turn: Cell<usize>,
}

impl Client {
    /// A client that knows nothing yet.
    pub fn new(servers: Arc<Servers>) -> Rc<Client> {
        Rc::new(Client { servers, book: RefCell::default(), turn: Cell::new(0) })
    }

    /// The addresses of a name, both kinds where the resolver allows both.
    ///
    /// # Errors
    ///
    /// What nginx says of it, after `timeout` at the latest.
    pub async fn addresses(self: &Rc<Self>, name: &str, timeout: Duration) -> Result<Resolved, Trouble> {
        let name = Name::of_text(name).map_err(|_| Trouble::Code(Code::NAME_ERROR))?;
        let deadline = Deadline::new();
        deadline.set(timeout);
        let (places, until) = self.both_kinds(&name, &deadline).await?;
        let place = |ip| Place { address: SocketAddr::new(ip, 0), host: String::new(), priority: 0, weight: 1 };
        Ok(Resolved { places: places.into_iter().map(place).collect(), until })
    }

    /// Where a service of a name is: `http` stands for `_http._tcp`; one with a dot is taken as it is.
    ///
    /// # Errors
    ///
    /// As for addresses; hosts of the service without an address are left out, and told to `missing`.
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
        let (reply, mut until) = self.follow(name, Kind::Srv, self.next_turn(), &deadline).await?;
        if reply.services.is_empty() {
            return Err(Trouble::Code(Code::NAME_ERROR));
        }
        let mut places = Vec::new();
        let mut last = Trouble::Code(Code::NAME_ERROR);
        for service in &reply.services {
            match self.both_kinds(&service.target, &deadline).await {
                Ok((found, valid)) => {
                    until = until.min(valid);
                    let (host, weight) = (service.target.to_string(), service.weight.max(1));
                    places.extend(found.into_iter().take(PLACES_MAX - places.len().min(PLACES_MAX)).map(|ip| Place {
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

    /// Its servers and what is said of them.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    fn next_turn(&self) -> usize {
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        turn
    }

    async fn both_kinds(self: &Rc<Self>, name: &Name, deadline: &Deadline) -> Result<(Vec<IpAddr>, Instant), Trouble> {
        let turn = self.next_turn();
        let mut kinds = Vec::new();
        kinds.extend(self.servers.ipv4.then_some(Kind::A));
        kinds.extend(self.servers.ipv6.then_some(Kind::Aaaa));
        // All are on their way before one is waited for.
        let _begun: Vec<Found> = kinds.iter().map(|kind| self.look_up(name, *kind, turn)).collect();
        let mut until: Option<Instant> = None;
        let mut addresses = Vec::new();
        let mut trouble = None;
        for kind in kinds {
            match self.follow(name.clone(), kind, turn, deadline).await {
                Ok((reply, valid)) => {
                    if !reply.addresses.is_empty() {
                        until = Some(until.map_or(valid, |until| until.min(valid)));
                    }
                    addresses.extend_from_slice(&reply.addresses);
                }
                Err(found) => trouble = trouble.or(Some(found)),
            }
        }
        addresses.truncate(PLACES_MAX);
        match until {
            Some(until) => Ok((addresses, until)),
            None => Err(trouble.unwrap_or(Trouble::Code(Code::NAME_ERROR))),
        }
    }

    /// The answer at the end of a name's aliases.
    async fn follow(
        self: &Rc<Self>,
        mut name: Name,
        kind: Kind,
        turn: usize,
        deadline: &Deadline,
    ) -> Result<(Rc<Reply>, Instant), Trouble> {
        let mut until: Option<Instant> = None;
        for _ in 0..ALIASES_MAX {
            let (reply, valid) = match self.look_up(&name, kind, turn) {
                Found::Known(reply, valid) => (reply, valid),
                Found::Flying(flight) | Found::New(flight) => wait(flight, deadline).await?,
                Found::Full => return Err(Trouble::Busy),
            };
            let until = *until.insert(until.map_or(valid, |until| until.min(valid)));
            match &reply.alias {
                _ if reply.code != Code::NO_ERROR => return Err(Trouble::Code(reply.code)),
                Some(alias) => name = alias.clone(),
                None => return Ok((reply, until)),
            }
        }
        Err(Trouble::Code(Code::NAME_ERROR))
    }

    /// What is known, who asks already, or a task that begins to.
    fn look_up(self: &Rc<Self>, name: &Name, kind: Kind, turn: usize) -> Found {
        let found = self.book.borrow_mut().find(name, kind, clock::now());
        if let Found::New(flight) = &found {
            weir_net::worker::spawn(ask::fly(self.clone(), flight.clone(), turn));
        }
        found
    }
}

/// Waits for a flight to land.
async fn wait(flight: Rc<Flight>, deadline: &Deadline) -> Result<(Rc<Reply>, Instant), Trouble> {
    let mut wait = Wait::new(flight);
    poll_fn(|context| match wait.poll(context) {
        Poll::Pending => deadline.poll_expired().map(|()| Err(Trouble::TimedOut)),
        landed => landed,
    })
    .await
}
