//! A group of peers of `stream`, and its fixed parts.

use std::sync::Arc;

use weir_conf::At;
use weir_groups::Parts;
use weir_http::text::template::Template;
use weir_net::{Address, clock};
use weir_peers::balance::{Policy, Until};
use weir_peers::group::Group;
use weir_peers::peer::Peer;

use crate::counts::PeerCounts;

/// A worker's record of a group.
pub type Local = weir_groups::Local<Frame>;

/// A worker's records of the groups of a configuration.
pub type Locals = weir_groups::Locals<Frame>;

/// A group of peers.
pub struct Upstream {
    /// The name of the block, or the `host:port` of a `proxy_pass`.
    pub name: String,
    /// The peers.
    pub group: Group,
    /// The peers' addresses, by the group's index.
    pub addresses: Vec<Address>,
    /// The peers' counts, by the group's index.
    pub counts: Vec<Arc<PeerCounts>>,
    /// The time that the method compares.
    pub measure: Option<Measure>,
    /// The key of `hash`.
    pub hash_key: Option<Template>,
    /// The name of its `zone`.
    pub zone: Option<String>,
    /// A `proxy_pass` created it, not a block.
    pub is_implicit: bool,
    /// The group changes at run time: this entry only points to it.
    pub live: Option<Arc<Live>>,
}

/// The time that `least_time` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Until the connection is made.
    Connect,
    /// Until the peer's first byte.
    FirstByte,
    /// Until the end of the session.
    LastByte,
}

impl Measure {
    /// The time of this name.
    pub fn of(word: &str) -> Option<Measure> {
        match word {
            "connect" => Some(Measure::Connect),
            "first_byte" => Some(Measure::FirstByte),
            "last_byte" => Some(Measure::LastByte),
            _ => None,
        }
    }

    /// The time for `weir_peers`: it knows one time before the end of an attempt.
    pub fn until(self) -> Until {
        match self {
            Measure::Connect | Measure::FirstByte => Until::Header,
            Measure::LastByte => Until::LastByte,
        }
    }
}

impl Upstream {
    /// A group for addresses that a session found by itself.
    pub fn implicit(name: &str, addresses: &[Address]) -> Result<Upstream, String> {
        let peer = |address: &Address| Peer { server: name.to_owned(), ..Peer::new(address.to_string()) };
        let policy = Policy::RoundRobin;
        let group =
            Group::new(name, addresses.iter().map(peer).collect(), policy).map_err(|error| error.to_string())?;
        let frame =
            Frame { name: name.to_owned(), policy, measure: None, hash_key: None, zone: None, at: At::default() };
        Ok(Upstream { is_implicit: true, ..Upstream::of(frame, group, addresses.to_vec()) })
    }

    /// A group of these peers in this frame.
    pub fn of(frame: Frame, group: Group, addresses: Vec<Address>) -> Upstream {
        let Frame { name, policy: _, measure, hash_key, zone, at: _ } = frame;
        let counts = addresses.iter().map(|_| Arc::default()).collect();
        Upstream { name, group, addresses, counts, measure, hash_key, zone, is_implicit: false, live: None }
    }

    /// The group with its present peers.
    pub fn now(self: &Arc<Self>) -> Arc<Upstream> {
        self.live.as_ref().map_or_else(|| self.clone(), |live| live.current())
    }

    /// Goes on with the counts of the peers that both groups have.
    pub fn count_as(&mut self, old: &Upstream) {
        for (address, counts) in self.addresses.iter().zip(&mut self.counts) {
            let known = old.addresses.iter().position(|known| known == address);
            if let Some(before) = known.and_then(|number| old.counts.get(number)) {
                *counts = before.clone();
            }
        }
    }
}

/// The fixed parts of a group, without its peers.
#[derive(Clone)]
pub struct Frame {
    /// The group's name.
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
}

/// A group whose peers change.
pub type Live = weir_groups::Live<Frame>;

impl Parts for Frame {
    type Built = Upstream;
    const PORT_DEFAULT: Option<u16> = None;

    fn name(&self) -> &str {
        &self.name
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn at(&self) -> At {
        self.at
    }

    fn build(&self, group: Group, addresses: Vec<Address>, _: Vec<usize>, before: Option<&Upstream>) -> Upstream {
        let mut built = Upstream::of(self.clone(), group, addresses);
        if let Some(before) = before {
            built.count_as(before);
        }
        built
    }

    fn group(built: &Upstream) -> &Group {
        &built.group
    }

    fn live(built: &Upstream) -> Option<&Arc<Live>> {
        built.live.as_ref()
    }

    fn group_mut(built: &mut Upstream) -> &mut Group {
        &mut built.group
    }

    fn adopt(built: &mut Upstream, old: &Upstream) {
        built.group.adopt(&old.group, clock::unix_ms());
        built.count_as(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use weir_http::read::authority::literal_address;

    #[test]
    fn a_reload_goes_on_with_the_counts_of_the_same_addresses() {
        let upstream = |addresses: &[&str]| {
            let addresses: Vec<Address> = addresses.iter().filter_map(|text| literal_address(text)).collect();
            Upstream::implicit("u", &addresses).unwrap()
        };
        let old = upstream(&["127.0.0.1:1", "127.0.0.1:2"]);
        old.counts[1].failed(true);
        let mut new = upstream(&["127.0.0.1:2", "127.0.0.1:3"]);
        new.count_as(&old);
        let fails = |at: usize| new.counts[at].fails.load(Ordering::Relaxed);
        assert_eq!((fails(0), fails(1)), (1, 0));
        assert!(Arc::ptr_eq(&new.counts[0], &old.counts[1]), "sessions of both configurations count together");
    }
}
