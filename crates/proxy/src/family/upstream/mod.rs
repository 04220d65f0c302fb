//! `upstream` and its `server`s: groups of peers, the choice of a peer, and kept connections.
//!
//! `weir_peers` makes the decisions. `pool` keeps idle connections, `line` those that carry many exchanges at once.
//! `attempt` makes one try (`sending` sends its request, `reading` reads the head of its answer), `walk` goes from try
//! to try, `blame` says why one failed. `answered` interprets a head, `source` reads the answer's body.
//! <https://nginx.org/en/docs/http/ngx_http_upstream_module.html>

pub mod answer;
mod answered;
pub mod attempt;
pub mod blame;
mod choose;
pub mod failure;
pub mod forward;
mod heads;
mod lend;
pub mod line;
pub mod live;
pub mod pool;
pub mod queue;
mod reading;
mod records;
pub mod sending;
pub mod source;
mod sweep;
mod walk;
mod wrapped;

use std::sync::Arc;
use std::time::Duration;

use live::{Frame, Live, Members, Named, fits, named, parameter};
use queue::Queue;
use weir_conf::Statement;
use weir_http::hold::dns::TIMEOUT_DEFAULT;
use weir_http::read::authority::{literal_address, resolve};
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::read::directive::{Arity, Directive, HTTP, NONE, ONE, UPSTREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::Address;
use weir_peers::balance::{Better, Policy, Until};
use weir_peers::budget::Budget;
use weir_peers::group::{Group, GroupError};
use weir_peers::peer::Peer;
use weir_peers::pool_policy::PoolPolicy;

use crate::family::proxy_ssl::sessions::AllSessions;
use crate::family::sticky::Sticky;

weir_http::settings! {
    /// The servers of this block so far.
    servers: Vec<Peer> = Vec::new(),
    /// The servers with `resolve`.
    named: Vec<Named> = Vec::new(),
    /// The method of this block.
    policy: Policy = Policy::RoundRobin,
    /// The key of `hash`.
    hash_key: Option<Template> = None,
    /// `queue`: the most exchanges that wait, and how long.
    queue: Option<(usize, Duration)> = None,
    /// `keepalive`.
    keepalive: usize = IDLE_MAX_DEFAULT,
    /// `keepalive_requests`.
    keepalive_requests: u64 = 1000,
    /// `keepalive_time`.
    keepalive_time: Duration = Duration::from_secs(3600),
    /// `keepalive_timeout`.
    keepalive_timeout: Duration = Duration::from_secs(60),
    /// `zone`: its name. Such a group has one turn for all workers, and its peers can change.
    zone: Option<String> = None,
    /// `state`: the file.
    state: Option<String> = None,
}

/// The most idle connections that a worker keeps to a group without `keepalive` (nginx: 32).
pub const IDLE_MAX_DEFAULT: usize = 1024;

/// All groups: those of `upstream` blocks, and those for addresses in a `proxy_pass`.
#[derive(Default)]
pub struct Declared {
    /// By number; `proxy_pass` keeps the number.
    pub groups: Vec<Arc<Upstream>>,
}

impl Declared {
    /// The number of the group of an `upstream` block.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|upstream| !upstream.is_implicit && upstream.name.eq_ignore_ascii_case(name))
    }

    /// The number of the implicit group for a `host:port` in a `proxy_pass`.
    pub fn find_implicit(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|upstream| upstream.is_implicit && upstream.name == name)
    }
}

/// A group of peers with all data needed to reach them.
pub struct Upstream {
    /// The name of the block, or `host:port`.
    pub name: String,
    /// The peers.
    pub group: Group,
    /// The peers' addresses, by the group's index.
    pub addresses: Vec<Address>,
    /// The budget for retries.
    pub budget: Arc<Budget>,
    /// The limits for keeping connections.
    pub pooling: PoolPolicy,
    /// The key of `hash`.
    pub hash_key: Option<Template>,
    /// `sticky` of the group.
    pub sticky: Option<Arc<Sticky>>,
    /// The exchanges that wait for a peer.
    pub queue: Option<Arc<Queue>>,
    /// The TLS sessions with its peers, if it has a `zone`: all workers share them.
    pub sessions: Option<Arc<AllSessions>>,
    /// The name of its `zone`.
    pub zone: Option<String>,
    /// A `proxy_pass` created it, not a block.
    pub is_implicit: bool,
    /// The keys of the peers' kept connections, if they are not the peers' indexes.
    pub pool_ids: Option<Vec<usize>>,
    /// The group changes at run time: this entry only points to it.
    pub live: Option<Arc<Live>>,
}

impl Upstream {
    /// The key of a peer's kept connections.
    pub fn pool_id(&self, peer: usize) -> usize {
        self.pool_ids.as_ref().and_then(|ids| ids.get(peer)).copied().unwrap_or(peer)
    }

    /// An implicit group for addresses.
    pub fn implicit(name: &str, addresses: &[Address]) -> Result<Upstream, GroupError> {
        let peers = addresses
            .iter()
            .map(|address| Peer { server: name.to_owned(), ..Peer::new(address.to_string()) })
            .collect();
        let group = Group::new(name, peers, Policy::RoundRobin)?;
        let pooling = PoolPolicy { max_idle: IDLE_MAX_DEFAULT, ..PoolPolicy::default() };
        let frame = Frame { name: name.to_owned(), pooling, ..Frame::default() };
        Ok(Upstream { is_implicit: true, ..Upstream::of(frame, group, addresses.to_vec()) })
    }

    /// A group of these peers in this frame.
    fn of(frame: Frame, group: Group, addresses: Vec<Address>) -> Upstream {
        let Frame { name, policy: _, pooling, hash_key, sticky, budget, queue, sessions, zone, at: _ } = frame;
        let (is_implicit, pool_ids, live) = (false, None, None);
        Upstream {
            name,
            group,
            addresses,
            budget,
            pooling,
            hash_key,
            sticky,
            queue,
            sessions,
            zone,
            is_implicit,
            pool_ids,
            live,
        }
    }
}

const STATE_AND_SERVER: &str = "\"state\" and \"server\" cannot be used together";

const METHOD_NOTE: &str = "load balancing method redefined";

/// The family.
pub static FAMILY: Family = Family::new("upstream", &[
    Directive::new("upstream", HTTP, ONE, "Defines a group of servers.", upstream).many().block(),
    Directive::new("server", UPSTREAM, Arity::AtLeast(1),
        "Defines an address of the group: weight= max_conns= max_fails= fail_timeout= slow_start= backup down drain route= resolve service=.", server).many(),
    Directive::new("zone", UPSTREAM, Arity::Between(1, 2),
        "Names the group's state: all workers take its servers in one turn, and the API can change them.", zone).many(),
    Directive::new("state", UPSTREAM, ONE, "The file that stores the group's servers and the API's changes; it replaces the server directives.",
        state),
    Directive::new("least_conn", UPSTREAM, NONE, "Prefers the peer with the fewest active connections.",
        |b, _| method(b, Policy::LeastConn)).many(),
    Directive::new("least_time", UPSTREAM, Arity::Between(1, 2),
        "Prefers the peer with the shortest answers, until their header or their last_byte, and the fewest active connections; inflight also counts answers that have not come.",
        least_time),
    Directive::new("ip_hash", UPSTREAM, NONE, "Chooses by the client's address: three octets of IPv4, all of IPv6.",
        |b, _| method(b, Policy::IpHash)).many(),
    Directive::new("hash", UPSTREAM, Arity::Between(1, 2), "Chooses by a key; consistent moves few keys when peers change.", hash).many(),
    Directive::new("random", UPSTREAM, Arity::Between(0, 2), "Chooses at random; two chooses the better of two random peers, by least_conn or least_time.", random).many(),
    Directive::new("queue", UPSTREAM, Arity::Between(1, 2),
        "The number of requests that wait until a server is free, and timeout=; a request above it gets 502.", queue::read),
    Directive::new("keepalive", UPSTREAM, Arity::Between(1, 2), "The idle connections that each worker keeps to the group; 0 keeps none.",
        keepalive).default("1024 (nginx: 32)"),
    Directive::new("keepalive_requests", UPSTREAM, ONE, "The largest number of requests on one connection to a peer.",
        |b, s| { crate::settings(b).upstream.keepalive_requests = Some(value::first_number(s)?); Ok(()) }).default("1000"),
    Directive::new("keepalive_time", UPSTREAM, ONE, "How long weir may use one connection to a peer.",
        |b, s| { crate::settings(b).upstream.keepalive_time = Some(value::time(s)?); Ok(()) }).default("1h"),
    Directive::new("keepalive_timeout", UPSTREAM, ONE, "How long weir keeps an idle connection to a peer.",
        |b, s| { crate::settings(b).upstream.keepalive_timeout = Some(value::time(s)?); Ok(()) }).default("60s"),
])
.adopt(|new, old| {
    live::adopt(&mut crate::declared_mut(new).upstream, &crate::declared(old).upstream);
    Ok(())
})
.finish(finish)
.start(sweep::start)
.watch(live::watch);

fn upstream(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if crate::declaring(b).upstream.find(&name).is_some() {
        return Err(Refusal::whole(format!("duplicate upstream \"{name}\"")));
    }
    let mut scope = b.block(Scope::new(Kind::Plain, UPSTREAM, b.at()), statement)?;
    let written = std::mem::take(crate::written_mut(&mut scope));
    let settings = written.upstream;
    let has_state = settings.state.is_some();
    if !has_state
        && settings.servers.as_ref().is_none_or(Vec::is_empty)
        && settings.named.as_ref().is_none_or(Vec::is_empty)
    {
        if b.has_lost("upstream", &name) {
            return Ok(()); // the servers have errors, but they are there
        }
        b.lose(statement);
        let empty = Refusal::whole("no servers are inside upstream").todo("add: server ADDRESS;");
        b.refuse_at("upstream", empty, statement.end);
        return Ok(());
    }
    let is_keepalive_written = settings.keepalive.is_some();
    let values = settings.values();
    let pooling = PoolPolicy {
        max_idle: values.keepalive,
        max_requests: values.keepalive_requests,
        max_age_ms: values.keepalive_time.as_millis() as u64,
        idle_timeout_ms: values.keepalive_timeout.as_millis() as u64,
        is_written: is_keepalive_written,
    };
    let Values { policy, hash_key, zone, queue, .. } = values;
    let queue = queue.map(|(most, timeout)| Arc::new(Queue::new(most, timeout)));
    let sticky = written.sticky.sticky.flatten();
    if let Some(sticky) = &sticky {
        crate::declaring(b).sticky.belongs(sticky, &name);
    }
    let (budget, at) = (Arc::default(), b.at());
    let sessions = zone.as_ref().map(|_| Arc::default());
    let frame = Frame { name, policy, pooling, hash_key, sticky, budget, queue, sessions, zone, at };
    let built = if frame.zone.is_some() {
        let resolver = written.resolver;
        let members = Members::new(values.servers, values.named);
        let name = frame.name.clone();
        let live = Live::new(frame, members, values.state).map_err(|error| refused(&error, &name))?;
        if let Some(Some(servers)) = resolver.servers {
            live.set_resolver(servers, resolver.timeout.unwrap_or(TIMEOUT_DEFAULT));
        }
        live::declared(live)
    } else if values.named.is_empty() && !has_state {
        fixed(frame, values.servers)?
    } else if has_state {
        return Err(Refusal::whole(format!("\"state\" requires upstream \"{}\" to be in shared memory", frame.name))
            .todo("add: zone NAME 64k;"));
    } else {
        let what = format!("resolving names at run time requires upstream \"{}\" to be in shared memory", frame.name);
        return Err(Refusal::whole(what).todo("add: zone NAME 64k;"));
    };
    crate::declaring(b).upstream.groups.push(Arc::new(built));
    Ok(())
}

/// Runs after `http` is read: groups that resolve names and have no resolver of their own use `http`'s.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    if scope.context == HTTP {
        live::give_resolver(b, &crate::written(scope).resolver);
    }
}

/// nginx's words for servers that are no group.
fn refused(error: &GroupError, name: &str) -> Refusal {
    Refusal::whole(format!("{error} \"{name}\""))
}

/// A group of addresses.
fn fixed(frame: Frame, mut all: Vec<Peer>) -> Result<Upstream, Refusal> {
    all.iter_mut().zip(0..).for_each(|(peer, id)| peer.id = id);
    let group = Group::new(&frame.name, all, frame.policy).map_err(|error| refused(&error, &frame.name))?;
    let mut addresses = Vec::with_capacity(group.peers().len());
    for peer in group.peers() {
        match literal_address(&peer.address) {
            Some(address) => addresses.push(address),
            None => return Err(Refusal::whole(format!("invalid address \"{}\"", peer.address))),
        }
    }
    Ok(Upstream::of(frame, group, addresses))
}

fn server(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    if crate::settings(b).upstream.state.is_some() {
        return Err(
            Refusal::whole(STATE_AND_SERVER).todo("remove the server directives: the state file contains the servers")
        );
    }
    let written = statement.text(0).to_owned();
    let mut pattern = Peer { server: written.clone(), ..Peer::new(written.clone()) };
    let (mut resolves, mut service) = (false, None);
    for word in statement.args.iter().skip(1) {
        match word.text.as_str() {
            "resolve" => resolves = true,
            "service=" => return Err(Refusal::whole("service is empty")),
            text => match text.strip_prefix("service=") {
                Some(name) => service = Some(name.to_owned()),
                None => parameter(&mut pattern, text)?,
            },
        }
    }
    fits(crate::settings(b).upstream.policy, &pattern)?;
    if let Some(named) = named(&written, &pattern, resolves, service, Some(80))? {
        crate::settings(b).upstream.named.get_or_insert_default().push(named);
        return Ok(());
    }
    for address in resolve(b, &written, 80)? {
        let peer = Peer { address: address.to_string(), ..pattern.clone() };
        crate::settings(b).upstream.servers.get_or_insert_default().push(peer);
    }
    Ok(())
}

/// Reads the servers of the file, as if they were written here (NGINX Plus).
fn state(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let path = b.path(statement.text(0));
    let written = &crate::settings(b).upstream;
    if written.servers.is_some() || written.named.is_some() {
        return Err(
            Refusal::whole(STATE_AND_SERVER).todo("remove the server directives: the state file contains the servers")
        );
    }
    for read in live::read(&path, statement)? {
        server(b, &read)?;
    }
    b.reach.write_file(&path);
    crate::settings(b).upstream.state = Some(Some(path));
    Ok(())
}

fn zone(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    crate::settings(b).upstream.zone = Some(Some(weir_groups::zone(statement)?));
    Ok(())
}

fn method(b: &mut Build<'_>, policy: Policy) -> Result<(), Refusal> {
    if crate::settings(b).upstream.policy.is_some() {
        b.warn(METHOD_NOTE, None);
    }
    crate::settings(b).upstream.policy = Some(policy);
    Ok(())
}

fn least_time(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let inflight = value::has_word(statement, 1, "inflight")?;
    let until =
        until(statement.text(0)).ok_or_else(|| Refusal::whole(format!("invalid value \"{}\"", statement.text(0))))?;
    method(b, Policy::LeastTime { until, inflight })
}

fn until(word: &str) -> Option<Until> {
    match word {
        "header" => Some(Until::Header),
        "last_byte" => Some(Until::LastByte),
        _ => None,
    }
}

fn hash(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let consistent = value::has_word(statement, 1, "consistent")?;
    let key = b.template(statement.text(0))?;
    crate::settings(b).upstream.hash_key = Some(Some(key));
    method(b, Policy::Hash { consistent })
}

fn random(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = |index: usize| statement.args.get(index).map(|word| word.text.as_str());
    let two = match (word(0), word(1)) {
        (None, _) => None,
        (Some("two"), None | Some("least_conn")) => Some(Better::LeastConn),
        (Some("two"), Some("least_time")) => Some(Better::LeastTime(Until::LastByte)),
        (Some("two"), Some(other)) => match other.strip_prefix("least_time=").and_then(until) {
            Some(until) => Some(Better::LeastTime(until)),
            None => return Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
        },
        (Some(other), _) => return Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
    };
    method(b, Policy::Random { two })
}

fn keepalive(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    value::has_word(statement, 1, "local")?;
    let count = value::number(statement.text(0))
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(|| Refusal::whole(format!("invalid value \"{}\" in \"keepalive\" directive", statement.text(0))))?;
    crate::settings(b).upstream.keepalive = Some(count);
    Ok(())
}
