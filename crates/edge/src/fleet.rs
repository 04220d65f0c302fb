//! Equal edges that share limits over Redis, without a controller.
//!
//! ```text
//!   workers ─ judge a request by its account ─► Debts, a queue
//!                 ▲                                │
//!        the edge's standing                       ▼
//!                 └─ the thread `fleet`: reports ten times a second (`beats`), pays debts (`pay`), tells its figures and
//!                    reads those of the others (`view`), tells and reads sessions (`sessions`) ─► Redis
//!   the API ─► Records, a queue ─► the thread `fleet records` (`follow`) ─► Redis
//! ```
//!
//! `weir_fleet` says how much an account may let through, and why the sum over all edges has a bound. Invariants: no worker
//! waits for Redis; without Redis each edge goes on with its share; whatever Redis answers costs a line in the log at most.

mod beats;
mod debts;
mod follow;
mod pay;
mod records;
mod scripts;
mod sessions;
mod shared;
mod view;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_fleet::{Account, LimitTerms, Presence, Standing};
use weir_meter::live::{FleetMember, FleetView, Snapshot};
use weir_net::clock;
use weir_net::identity::assume;
use weir_net::process::Identity;
use weir_net::worker::{self, Remote};
use weir_proxy::family::sticky::SharedSessions;

use crate::fleet::debts::Debts;
use crate::fleet::records::Records;
use crate::fleet::scripts::FleetKeys;
use crate::fleet::shared::{FleetShared, FleetState};

pub use crate::fleet::debts::SharedZone;
pub use crate::fleet::records::{SharedSpace, TakenRecord};
pub use crate::fleet::shared::{Fail, FleetSettings};

/// How long an edge that ends waits until its name is removed.
const LEAVE: Duration = Duration::from_millis(500);

/// The things that a configuration shares beside limits.
#[derive(Default)]
pub struct SharedThings {
    /// Records of which each edge has a copy.
    pub spaces: Vec<Arc<dyn SharedSpace>>,
    /// Zones of `sticky learn`.
    pub sessions: Vec<Arc<SharedSessions>>,
}

/// An edge's place in a fleet. Its threads end with it.
pub struct Fleet {
    shared: Arc<FleetShared>,
    thread: Remote,
    /// Takes records over, which may write files: reports do not wait for it.
    records: Remote,
}

impl Fleet {
    /// Takes part in a fleet, as the user `identity`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(settings: &FleetSettings, identity: Option<Identity>) -> io::Result<Arc<Fleet>> {
        let share = 1.0 / settings.edges.max(1) as f64;
        let shared = Arc::new(FleetShared {
            settings: settings.clone(),
            keys: FleetKeys::of(&settings.name),
            run: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
            epoch: clock::precise(),
            view: Mutex::new(FleetState {
                presence: Presence::new(0, share),
                edges: settings.edges,
                lost: None,
                own: FleetMember::default(),
                members: Vec::new(),
            }),
            debts: Debts::default(),
            records: Records::default(),
            sessions: Mutex::default(),
        });
        let (of_thread, of_records, as_user) = (shared.clone(), shared.clone(), identity.clone());
        let records = worker::start("fleet records", None, move || {
            if assume(as_user.as_ref()) {
                worker::spawn(follow::follow(of_records));
            }
        })?;
        let thread = worker::start("fleet", None, move || {
            if assume(identity.as_ref()) {
                // Now, because this thread has the right user.
                of_thread.settings.server.start();
                worker::spawn(beats::report(of_thread.clone()));
                worker::spawn(view::share(of_thread.clone()));
                worker::spawn(sessions::follow(of_thread.clone()));
                worker::spawn(pay::pay(of_thread));
            }
        })?;
        Ok(Arc::new(Fleet { shared, thread, records }))
    }

    /// The settings it was started with.
    pub fn settings(&self) -> &FleetSettings {
        &self.shared.settings
    }

    /// Milliseconds of the fleet's clock at this edge.
    pub fn now_ms(&self) -> i64 {
        self.shared.now_ms(clock::now())
    }

    /// The edge's standing at a time of [`Fleet::now_ms`].
    pub fn standing(&self, now_ms: i64) -> Standing {
        self.shared.standing(now_ms)
    }

    /// Puts an account into the queue of those that owe; the ledger is told soon, or at once if the credit is half used.
    pub fn owe(&self, zone: &Arc<SharedZone>, key: &[u8], account: &mut Account, terms: &LimitTerms) {
        self.shared.debts.add(zone, key, account, terms);
    }

    /// Shares these spaces and zones of sessions with the other edges, in place of the ones before.
    pub fn share(&self, shared: SharedThings) {
        self.shared.records.share(shared.spaces);
        *self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner) = shared.sessions;
    }

    /// Tells the other edges of a change in a space; `None` for a removal.
    pub fn publish(&self, space: &str, key: &str, value: Option<Vec<u8>>) {
        self.shared.records.publish(space, key, value, self.shared.redis_ms().unwrap_or(0));
    }

    /// Tells the other edges the figures of this one.
    pub fn tell(&self, snapshot: &Snapshot) {
        let own = view::member(&self.shared.settings.edge, snapshot);
        self.shared.view().own = own;
    }

    /// The view of this edge: itself, and the others.
    pub fn view(&self) -> FleetView {
        let (shared, settings) = (&self.shared, &self.shared.settings);
        let standing = self.standing(shared.now_ms(clock::precise()));
        let view = shared.view();
        FleetView {
            server: settings.server.to_string(),
            name: settings.name.clone(),
            edge: settings.edge.clone(),
            is_alone: standing.is_alone,
            lost: view.lost.clone(),
            share: standing.share,
            edges: u64::try_from(view.edges).unwrap_or(0),
            debts: shared.debts.len() as u64,
            dropped: shared.debts.dropped(),
            members: view.members.clone(),
        }
    }

    fn end(&self) {
        self.thread.stop();
        self.records.stop();
    }

    /// Ends it; if `for_good`, removes its name, so that its share is not reserved.
    pub fn leave(&self, for_good: bool) {
        self.end();
        // A report that is under way would put the name back.
        self.thread.join();
        if for_good && self.shared.view().lost.is_none() {
            let shared = &self.shared;
            // If this fails, the other edges forget the name in time.
            let _ = shared.settings.server.ask_and_block(shared.keys.leave(&shared.settings.edge), LEAVE);
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.end();
    }
}
