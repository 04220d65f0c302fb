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
mod caches;
mod ceilings;
mod gather;
mod machine;
pub mod metrics;
pub mod observer;
mod peers;
mod scene;
mod sums;
pub(crate) mod ticket;
mod trends;
pub mod tunnels;
mod writes;

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock};

use weir_meter::live::Snapshot;

use crate::board::names::Names;
use crate::board::{Board, lock};
use crate::counters::{AllCounters, SEATS_MAX};
use observer::{Question, Reply};
pub use scene::Scene;

/// A question to the observer.
type Errand = ticket::Errand<Question, Reply>;

/// The lookup of the workers' cells, and the way to their reader.
pub struct Live {
    boards: Box<[OnceLock<Arc<Board>>]>,
    counters: AllCounters,
    zones: Names,
    peers: Names,
    limits: Names,
    caches: Names,
    scene: Mutex<Scene>,
    errands: OnceLock<SyncSender<Errand>>,
    newest: Mutex<Arc<Snapshot>>,
}

impl Live {
    /// No counts yet, and no observer.
    pub fn new(counters: AllCounters) -> Arc<Live> {
        Arc::new(Live {
            boards: (0..SEATS_MAX).map(|_| OnceLock::new()).collect(),
            counters,
            zones: Names::default(),
            peers: Names::default(),
            limits: Names::default(),
            caches: Names::default(),
            scene: Mutex::default(),
            errands: OnceLock::new(),
            newest: Mutex::default(),
        })
    }

    /// The cells of a seat below `SEATS_MAX`; they outlive the worker in that seat.
    pub fn board(&self, seat: usize) -> Arc<Board> {
        self.boards.get(seat).map(|board| board.get_or_init(Arc::default).clone()).unwrap_or_default()
    }

    /// The number of a peer's cell, for the first try at that peer. It takes a lock, so callers keep the number.
    pub fn peer(&self, group: &str, address: &str) -> u32 {
        self.peers.number(&peer_name(group, address))
    }

    /// The newest snapshot; empty until the first second has passed.
    pub fn newest(&self) -> Arc<Snapshot> {
        lock(&self.newest).clone()
    }

    fn taken_boards(&self) -> impl Iterator<Item = (usize, &Arc<Board>)> {
        self.boards.iter().enumerate().filter_map(|(seat, board)| Some((seat, board.get()?)))
    }
}

fn peer_name(group: &str, address: &str) -> String {
    format!("{group}\0{address}")
}
