//! Groups of `stream` whose peers change at run time: `weir_groups` has the mechanism, which `http` shares.

use std::rc::Rc;
use std::sync::Arc;

use weir_conf::At;
use weir_groups::Parts;
use weir_http::build::Build;
use weir_http::template::Template;
use weir_http::worker::Worker;
use weir_net::{Address, clock};
use weir_peers::balance::Policy;
use weir_peers::group::Group;

use super::resolver;
use super::upstream::{Declared, Measure, Upstream};

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

/// The entry for a group in a configuration.
pub fn declared(live: Live) -> Upstream {
    let frame = live.parts().clone();
    let group = Group::nobody(&frame.name, frame.policy);
    Upstream { live: Some(Arc::new(live)), ..Upstream::of(frame, group, Vec::new()) }
}

/// Gives groups without their own resolver `stream`'s resolver, or refuses the file.
pub fn give_resolver(b: &mut Build<'_>, stream: &resolver::Settings) {
    let default = stream.servers.clone().flatten();
    let groups = crate::declaring(b).upstream.groups.iter();
    let lives: Vec<_> = groups.filter_map(|upstream| upstream.live.clone()).collect();
    for live in lives {
        if let Err(refusal) = live.default_resolver(default.as_ref(), stream.timeout, "stream") {
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

/// Takes over from the older configuration: addresses of names, the health and the counts of peers that both have.
pub fn adopt(new: &mut Declared, old: &Declared) {
    for upstream in &mut new.groups {
        let same = |other: &&Arc<Upstream>| other.name == upstream.name && other.is_implicit == upstream.is_implicit;
        let Some(before) = old.groups.iter().find(same) else { continue };
        match (&upstream.live, &before.live) {
            (Some(live), Some(before)) => live.adopt(before),
            (None, None) => {
                if let Some(upstream) = Arc::get_mut(upstream) {
                    Frame::adopt(upstream, before);
                }
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
}
