//! Groups of `stream` whose peers change at run time: `weir_groups` has the mechanism, which `http` shares.

use std::rc::Rc;
use std::sync::Arc;

use weir_groups::Parts;
use weir_http::hold::worker::Worker;
use weir_http::read::build::Build;
use weir_peers::group::Group;

use super::group::{Frame, Live, Upstream};
use super::resolver;

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
pub fn adopt(new: &mut [Arc<Upstream>], old: &[Arc<Upstream>]) {
    for upstream in new {
        let same = |other: &&Arc<Upstream>| other.name == upstream.name && other.is_implicit == upstream.is_implicit;
        let Some(before) = old.iter().find(same) else { continue };
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
