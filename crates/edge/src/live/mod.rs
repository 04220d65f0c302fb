//! The counters of an edge: workers write them in cells, and one thread reads them.
//!
//! ```text
//!  worker ─► Board (cells of its own) ─┐
//!  worker ─► Board ────────────────────┴─► observer ─► Snapshot ─► API, metrics, dashboard
//!                                            ▲
//!  a request to the API ─ question ──────────┘
//! ```
//!
//! The configuration holds the number of each cell: a request needs no hash and no allocation. Numbers belong to
//! names and survive reloads. Invariant: a worker never waits for the observer, except for a request that asks the
//! observer something. Such a request waits like any other, and the worker serves others meanwhile.

pub mod api;
mod books;
mod busiest;
mod caches;
mod ceilings;
mod certificates;
mod gather;
mod machine;
pub mod metrics;
pub mod observer;
mod peers;
mod protocols;
mod question;
mod scene;
pub mod servers;
mod sessions;
mod sums;
pub(crate) mod ticket;
mod trends;
pub mod tunnels;
mod writes;

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock};

use question::{Question, Reply};
use weir_http::hold::board::boards::Boards;
use weir_http::hold::board::lock;
use weir_http::hold::counters::AllCounters;
use weir_http::hold::worker::Worker;
use weir_meter::live::Snapshot;

pub use scene::Scene;
pub(crate) use sums::groups;

/// A question to the observer.
type LiveQuestion = ticket::PendingQuestion<Question, Reply>;

/// The workers' cells, and the way to their reader.
pub struct Live {
    boards: Arc<Boards>,
    counters: AllCounters,
    scene: Mutex<Scene>,
    questions: OnceLock<SyncSender<LiveQuestion>>,
    newest: Mutex<Arc<Snapshot>>,
}

impl Live {
    /// No counts yet, and no observer.
    pub fn new(counters: AllCounters) -> Arc<Live> {
        Arc::new(Live {
            boards: Arc::default(),
            counters,
            scene: Mutex::default(),
            questions: OnceLock::new(),
            newest: Mutex::default(),
        })
    }

    /// The cells of all workers.
    pub fn boards(&self) -> &Arc<Boards> {
        &self.boards
    }

    /// The newest snapshot; empty until the first second has passed.
    pub fn newest(&self) -> Arc<Snapshot> {
        lock(&self.newest).clone()
    }
}

/// The counts that a worker belongs to.
pub fn of(worker: &Worker) -> &Arc<Live> {
    worker.own.of(|| Live::new(worker.all_counters.clone()))
}

/// Connects a worker with the counts that it belongs to; only the first call has an effect.
pub fn join(worker: &Worker, live: &Arc<Live>) {
    worker.own.of(|| live.clone());
}
