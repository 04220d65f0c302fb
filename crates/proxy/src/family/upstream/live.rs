//! Groups whose peers change at run time, as exchanges use them: `weir_groups` has the mechanism.

pub use weir_groups::{Members, Named, Parts, edit, fits, named, parameter, read, written_time};

use std::rc::Rc;
use std::sync::Arc;

use weir_conf::At;
use weir_http::hold::worker::Worker;
use weir_http::read::build::Build;
use weir_http::text::template::Template;
use weir_net::{Address, clock};
use weir_peers::balance::Policy;
use weir_peers::budget::Budget;
use weir_peers::group::Group;
use weir_peers::pool_policy::PoolPolicy;

use super::queue::Queue;
use super::{Declared, Upstream};
use crate::family::proxy_ssl::sessions::AllSessions;
use crate::family::resolver;
use crate::family::sticky::Sticky;

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

/// A worker's record of a group.
pub type Local = weir_groups::Local<Frame>;

/// A worker's records of the groups of a configuration.
pub type Locals = weir_groups::Locals<Frame>;

/// A group whose peers change.
pub type Live = weir_groups::Live<Frame>;

impl Parts for Frame {
    type Built = Upstream;
    const PORT_DEFAULT: Option<u16> = Some(80);

    fn name(&self) -> &str {
        &self.name
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn at(&self) -> At {
        self.at
    }

    fn build(&self, group: Group, addresses: Vec<Address>, ids: Vec<usize>, _: Option<&Upstream>) -> Upstream {
        Upstream { pool_ids: Some(ids), ..Upstream::of(self.clone(), group, addresses) }
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

    fn renewed(&self) {
        if let Some(queue) = &self.queue {
            queue.offer();
        }
    }
}

/// The entry for a group in a configuration.
pub fn declared(live: Live) -> Upstream {
    let frame = live.parts().clone();
    let group = Group::nobody(&frame.name, frame.policy);
    Upstream { live: Some(Arc::new(live)), ..Upstream::of(frame, group, Vec::new()) }
}

/// Gives groups without their own resolver `http`'s resolver, or refuses the file.
pub fn give_resolver(b: &mut Build<'_>, http: &resolver::Settings) {
    let default = http.servers.clone().flatten();
    let lives: Vec<_> =
        crate::declaring(b).upstream.groups.iter().filter_map(|upstream| upstream.live.clone()).collect();
    for live in lives {
        if let Err(refusal) = live.default_resolver(default.as_ref(), http.timeout, "http") {
            b.refuse_at("upstream", refusal, live.parts().at);
        }
    }
}

/// Resolves the names of all groups that no other worker resolves, while the configuration is in force.
pub fn watch(worker: &Rc<Worker>) {
    let generation = worker.generation();
    let groups = &crate::declared(&generation.conf).upstream.groups;
    weir_groups::watch(worker, groups.iter().filter_map(|upstream| upstream.live.as_ref()));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use weir_http::hold::dns::ResolvedAddress;
    use weir_peers::peer::Peer;

    fn live(service: Option<&str>, fixed: &[&str]) -> Live {
        live_on(8080, service, fixed)
    }

    fn live_on(port: u16, service: Option<&str>, fixed: &[&str]) -> Live {
        let frame = Frame { name: "u".to_owned(), zone: Some("u".to_owned()), ..Frame::default() };
        let named = Named {
            host: "a.example".to_owned(),
            port,
            service: service.map(str::to_owned),
            pattern: Peer { server: "a.example:8080".to_owned(), ..Peer::new("") },
        };
        let fixed = fixed.iter().map(|address| Peer::new(*address)).collect();
        Live::new(frame, Members::new(fixed, vec![named]), None).unwrap()
    }

    fn place(address: &str, priority: u16, weight: u16) -> ResolvedAddress {
        ResolvedAddress { address: address.parse().unwrap(), host: "h.example".to_owned(), priority, weight }
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
        let (all, locals) = ([Arc::new(declared(live(None, &[])))], Locals::default());
        let live = all[0].live.clone().unwrap();
        let look = || locals.get(&all, 0).unwrap();
        let first = |local: &Local| local.group.peer(0).map(|peer| peer.address.clone()).unwrap_or_default();
        assert!(look().group.peers().len() == 0);
        live.learn(0, vec![place("10.0.0.1:0", 0, 1)]);
        let seen = look();
        assert_eq!(first(&seen), "10.0.0.1:8080");
        live.learn(0, vec![place("10.0.0.1:0", 0, 1)]);
        assert!(Rc::ptr_eq(&seen, &look()));
        live.learn(0, vec![place("10.0.0.2:0", 0, 1), place("10.0.0.1:0", 0, 1)]);
        let seen = look();
        assert_eq!(first(&seen), "10.0.0.1:8080");
        live.learn(0, vec![place("10.0.0.1:0", 0, 1), place("10.0.0.2:0", 0, 1)]);
        assert!(Rc::ptr_eq(&seen, &look()));
        assert!(locals.get(&all, 1).is_none());
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
        let (old, new) = (live(None, &[]), live_on(9090, None, &[]));
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
