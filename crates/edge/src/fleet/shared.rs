//! The state that the thread of a fleet and the workers share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_fleet::{Presence, Standing};
use weir_meter::live::FleetMember;
use weir_net::log::{self, Level};
use weir_net::{Instant, clock};
use weir_proxy::family::sticky::SharedSessions;
use weir_redis::{NoReply, RedisServer};

use crate::fleet::debts::Debts;
use crate::fleet::records::Records;
use crate::fleet::scripts::FleetKeys;

/// How long Redis may take to answer before the connection is given up.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// `fail=`: how an edge that is alone goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fail {
    /// Goes on with its share.
    #[default]
    Local,
    /// Lets all requests through.
    Open,
    /// Refuses all requests.
    Close,
}

/// `fleet`.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetSettings {
    /// The Redis server.
    pub server: RedisServer,
    /// `name=`: edges with the same name are one fleet.
    pub name: String,
    /// `edge=`: the name of this edge.
    pub edge: String,
    /// `edges=`: how many edges there are, for an edge that Redis has not answered yet.
    pub edges: i64,
    /// `fail=`.
    pub fail: Fail,
}

/// The state that the thread and the workers share.
pub(super) struct FleetShared {
    pub(super) settings: FleetSettings,
    pub(super) keys: FleetKeys,
    /// This start of this edge, for people who look into Redis.
    pub(super) run: String,
    pub(super) epoch: Instant,
    pub(super) view: Mutex<FleetState>,
    pub(super) debts: Debts,
    pub(super) records: Records,
    pub(super) sessions: Mutex<Vec<Arc<SharedSessions>>>,
}

/// The knowledge of this edge about the fleet.
pub(super) struct FleetState {
    pub(super) presence: Presence,
    pub(super) edges: i64,
    /// Why Redis did not answer last; `None` while it answers.
    pub(super) lost: Option<String>,
    /// The figures of this edge, as they were told last.
    pub(super) own: FleetMember,
    /// The figures of all edges, as they were read last.
    pub(super) members: Vec<FleetMember>,
}

impl FleetShared {
    pub(super) fn now_ms(&self, now: Instant) -> i64 {
        i64::try_from(now.saturating_duration_since(self.epoch).as_millis()).unwrap_or(i64::MAX)
    }

    /// Redis' clock now, as far as this edge knows it.
    pub(super) fn redis_ms(&self) -> Option<i64> {
        let now_ms = self.now_ms(clock::precise());
        self.view().presence.redis_ms(now_ms)
    }

    pub(super) fn standing(&self, now_ms: i64) -> Standing {
        self.view().presence.standing(now_ms)
    }

    pub(super) fn sessions(&self) -> Vec<Arc<SharedSessions>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn view(&self) -> MutexGuard<'_, FleetState> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that Redis answers, and logs it if it did not.
    pub(super) fn note_answer(&self) {
        if self.view().lost.take().is_some() {
            let (server, name) = (&self.settings.server, &self.settings.name);
            log::global(Level::Notice, format_args!("weir is connected again to the fleet {name} at {server}"));
        }
    }

    /// Notes that Redis does not answer, and logs it once.
    pub(super) fn note_failure(&self, failed: &NoReply) {
        let before = self.view().lost.replace(failed.to_string());
        if before.is_none() {
            let (server, name) = (&self.settings.server, &self.settings.name);
            log::global(
                Level::Error,
                format_args!(
                    "weir cannot reach the fleet {name} at {server}: {failed}; this edge goes on alone and keeps trying"
                ),
            );
        }
    }
}
