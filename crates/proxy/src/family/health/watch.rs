//! Starts the checks: `weir_groups` makes the rounds, and each check is an exchange (`ask`).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_groups::Live;
use weir_groups::rounds::{self, Asked};
use weir_http::exchange::line;
use weir_http::hold::worker::{Generation, Worker};
use weir_peers::group::Group;

use super::{Check, ask};
use crate::family::upstream::HttpParts;
use crate::family::upstream::pool::Link;
use crate::family::upstream::source::GroupRef;

/// Starts all checks of the configuration in force that no other worker runs.
pub fn watch(worker: &Rc<Worker>) {
    let generation = worker.generation();
    for check in &crate::declared(&generation.conf).health.checks {
        let Some(placed) = check.placed.get() else { continue };
        if !check.is_watched.swap(true, Ordering::Relaxed) {
            let running = Running { check: check.clone(), live: placed.live.clone(), group: placed.group };
            rounds::run(worker, &generation, running);
        }
    }
}

/// One running `health_check`.
struct Running {
    check: Arc<Check>,
    live: Arc<Live<HttpParts>>,
    /// The number of the group.
    group: usize,
}

/// The values that last from one check of a peer to the next.
#[derive(Default)]
pub(super) struct CheckTarget {
    /// The connection kept for the next check (`keepalive_time`).
    pub kept: Cell<Option<Box<Link>>>,
}

impl rounds::Check for Running {
    type Parts = HttpParts;
    type Seen = GroupRef;
    type Kept = CheckTarget;

    fn interval(&self) -> Duration {
        self.check.interval
    }

    fn jitter(&self) -> Duration {
        self.check.jitter
    }

    fn live(&self) -> &Live<HttpParts> {
        &self.live
    }

    fn look(&self, generation: &Rc<Generation>) -> Option<GroupRef> {
        GroupRef::declared(generation.clone(), self.group)
    }

    fn group(seen: &GroupRef) -> &Group {
        &seen.get().group
    }

    async fn ask(&self, Asked { worker, generation, seen, peer, kept }: Asked<'_, Self>) {
        let Some(placed) = self.check.placed.get() else { return };
        let ended = ask::ask(worker, generation, &self.check, placed, seen, peer, kept).await;
        let location = generation.conf.location(placed.location);
        let say = |level, what: std::fmt::Arguments<'_>| line::place_line(location, level, what);
        rounds::note(&seen.get().group, peer, (placed.number, self.check.name()), &ended, &say);
    }
}
