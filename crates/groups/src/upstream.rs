//! A group of peers, the parts that only `http` or only `stream` has, and the groups of a configuration.

use std::ops::Deref;
use std::sync::Arc;

use weir_conf::At;
use weir_http::exchange::conf::Conf;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::Contexts;
use weir_http::text::template::Template;
use weir_net::{Address, clock};
use weir_peers::balance::{Policy, Until};
use weir_peers::group::{Group, GroupError};
use weir_peers::peer::Peer;

use crate::{Live, Written, resolver};

/// The parts of a group that only `http` or only `stream` has, and the differences between the directives of both.
pub trait Parts: Clone + Default + Send + Sync + 'static {
    /// The block around the groups.
    const AROUND: Contexts;
    /// The block of a group.
    const INSIDE: Contexts;
    /// The port of a server without one; `None` if each server needs one.
    const PORT_DEFAULT: Option<u16>;
    /// The times that `least_time` can compare, by their words.
    const MEASURES: &'static [(&'static str, Measure)];
    /// The time of `random two least_time` without a word; `None` if it needs one.
    const MEASURE_DEFAULT: Option<Measure>;
    /// Servers have the parameters of `sticky`: `drain` and `route=`.
    const IS_STICKY: bool;

    /// The groups read so far.
    fn declaring<'b>(b: &'b mut Build<'_>) -> &'b mut Declared<Self>;
    /// The groups of a configuration.
    fn declared(conf: &Conf) -> &Declared<Self>;
    /// The groups of a configuration that is not in force yet.
    fn declared_mut(conf: &mut Conf) -> &mut Declared<Self>;
    /// The statements of a group's block.
    fn written(scope: &mut Scope) -> &mut Written;
    /// The resolver of a block.
    fn resolver(scope: &mut Scope) -> &mut resolver::Settings;
    /// The resolvers read so far.
    fn resolvers<'b>(b: &'b mut Build<'_>) -> &'b mut resolver::Declared;

    /// The parts of the group of this name, whose block is read. A group with a `zone` `is_shared` by all workers.
    fn read(_b: &mut Build<'_>, _scope: &mut Scope, _name: &str, _is_shared: bool) -> Self {
        Self::default()
    }
    /// Takes what belongs to peers with these addresses from `before`, the group that this one replaces.
    fn follow(&mut self, _addresses: &[Address], _before: Option<&Upstream<Self>>) {}
    /// Takes over what the group of an older configuration knows, apart from its peers.
    fn adopt(&self, _old: &Self) {}
    /// Other peers are in force.
    fn renewed(&self) {}
}

/// The time that `least_time` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Until the connection is made.
    Connect,
    /// Until the peer's first byte, or the head of its answer.
    FirstByte,
    /// Until the end.
    LastByte,
}

impl Measure {
    /// The time for `weir_peers`: it knows one time before the end of an attempt.
    pub fn until(self) -> Until {
        match self {
            Measure::Connect | Measure::FirstByte => Until::Header,
            Measure::LastByte => Until::LastByte,
        }
    }
}

/// The fixed parts of a group, without its peers.
#[derive(Clone, Default)]
pub struct Frame<P> {
    /// The name of the block, or the `host:port` of a `proxy_pass`.
    pub name: String,
    /// The balancing method.
    pub policy: Policy,
    /// The time that the method compares.
    pub measure: Option<Measure>,
    /// The key of `hash`.
    pub hash_key: Option<Template>,
    /// The name of its `zone`.
    pub zone: Option<String>,
    /// The place of its block.
    pub at: At,
    /// The parts that only `http` or only `stream` has.
    pub own: P,
}

/// A group of peers with all data needed to reach them.
pub struct Upstream<P: Parts> {
    /// The fixed parts.
    pub frame: Frame<P>,
    /// The peers.
    pub group: Group,
    /// The peers' addresses, by the group's index.
    pub addresses: Vec<Address>,
    /// A `proxy_pass` created it, not a block.
    pub is_implicit: bool,
    /// The numbers of the peers, if they are not the peers' indexes. A peer keeps its number as long as its address is
    /// in the group.
    pub ids: Option<Vec<usize>>,
    /// The group changes at run time: this entry only points to it.
    pub live: Option<Arc<Live<P>>>,
}

impl<P: Parts> Deref for Upstream<P> {
    type Target = Frame<P>;

    fn deref(&self) -> &Frame<P> {
        &self.frame
    }
}

impl<P: Parts> Upstream<P> {
    /// A group of these peers. `before` is the group that it replaces.
    pub fn of(mut frame: Frame<P>, group: Group, addresses: Vec<Address>, before: Option<&Upstream<P>>) -> Self {
        frame.own.follow(&addresses, before);
        Upstream { frame, group, addresses, is_implicit: false, ids: None, live: None }
    }

    /// A group for addresses without a block.
    pub fn implicit(name: &str, addresses: &[Address]) -> Result<Upstream<P>, GroupError> {
        let peer = |address: &Address| Peer { server: name.to_owned(), ..Peer::new(address.to_string()) };
        let group = Group::new(name, addresses.iter().map(peer).collect(), Policy::RoundRobin)?;
        let frame = Frame { name: name.to_owned(), ..Frame::default() };
        Ok(Upstream { is_implicit: true, ..Upstream::of(frame, group, addresses.to_vec(), None) })
    }

    /// The entry for a group in a configuration.
    pub fn pointing_to(live: Arc<Live<P>>) -> Upstream<P> {
        let frame = live.frame().clone();
        let group = Group::nobody(&frame.name, frame.policy);
        Upstream { live: Some(live), ..Upstream::of(frame, group, Vec::new(), None) }
    }

    /// The group with its present peers.
    pub fn now(self: &Arc<Self>) -> Arc<Self> {
        self.live.as_ref().map_or_else(|| self.clone(), |live| live.current())
    }

    /// Whether it has a server that is not down.
    pub fn has_servers(&self) -> bool {
        match &self.live {
            Some(live) => live.has_servers(),
            None => self.group.peers().any(|peer| !peer.down),
        }
    }

    /// The number of a peer.
    pub fn id(&self, peer: usize) -> usize {
        self.ids.as_ref().and_then(|ids| ids.get(peer)).copied().unwrap_or(peer)
    }

    /// Takes over the state of the peers that `old` also has.
    pub(crate) fn adopt(&mut self, old: &Upstream<P>) {
        self.group.adopt(&old.group, clock::unix_ms());
        self.frame.own.follow(&self.addresses, Some(old));
    }
}

/// All groups: those of `upstream` blocks, and those for addresses in a `proxy_pass`.
#[derive(Default)]
pub struct Declared<P: Parts> {
    /// By number; `proxy_pass` keeps the number.
    pub groups: Vec<Arc<Upstream<P>>>,
}

impl<P: Parts> Declared<P> {
    /// The number of the group of an `upstream` block.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|upstream| !upstream.is_implicit && upstream.name.eq_ignore_ascii_case(name))
    }

    /// The number of the group that a group of a newer configuration continues. Two `exchanged` names continue each other, if both are here.
    pub fn former(&self, newer: &Upstream<P>, exchanged: Option<&[String; 2]>) -> Option<usize> {
        if newer.is_implicit {
            return self.find_implicit(&newer.name);
        }
        let both = exchanged.filter(|both| both.iter().all(|name| self.find(name).is_some()));
        let name = match both {
            Some([one, other]) if newer.name.eq_ignore_ascii_case(one) => other,
            Some([one, other]) if newer.name.eq_ignore_ascii_case(other) => one,
            _ => &newer.name,
        };
        self.find(name)
    }

    /// The number of the implicit group for a `host:port` in a `proxy_pass`.
    pub fn find_implicit(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|upstream| upstream.is_implicit && upstream.name == name)
    }
}

/// Takes over from the older configuration: addresses of names, the state of peers that both have.
pub fn adopt<P: Parts>(new: &mut Conf, old: &Conf) -> Result<(), String> {
    let (old, exchanged) = (P::declared(old), new.exchanged.clone());
    for upstream in &mut P::declared_mut(new).groups {
        let number = old.former(upstream, exchanged.as_ref());
        let Some(before) = number.and_then(|number| old.groups.get(number)) else { continue };
        upstream.own.adopt(&before.own);
        match (&upstream.live, &before.live) {
            (Some(live), Some(before)) => live.adopt(before),
            (None, None) => {
                if let Some(upstream) = Arc::get_mut(upstream) {
                    upstream.adopt(before);
                }
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
    Ok(())
}

/// Runs after the block around the groups is read: gives groups without their own resolver the resolver of that block,
/// or refuses the file.
pub fn finish<P: Parts>(b: &mut Build<'_>, scope: &mut Scope) {
    if scope.context != P::AROUND {
        return;
    }
    let resolver = P::resolver(scope).clone();
    let default = resolver.servers.flatten();
    let lives: Vec<_> = P::declaring(b).groups.iter().filter_map(|upstream| upstream.live.clone()).collect();
    for live in lives {
        if let Err(refusal) = live.default_resolver(default.as_ref(), resolver.timeout, &P::AROUND.to_string()) {
            b.refuse_at("upstream", refusal, live.frame().at);
        }
    }
}
