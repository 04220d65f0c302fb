//! What an edge knows about itself: cells that workers write, and one thread that reads them.
//!
//! ```text
//!  worker ─► Board (cells of its own) ─┐
//!  worker ─► Board ────────────────────┴─► observer ─► Snapshot ─► API, metrics, dashboard
//!                                            ▲
//!  a request to the API ─ question ──────────┘
//! ```
//!
//! A cell is found by a number that the configuration holds: nothing is hashed and nothing allocated for a request.
//! Numbers belong to names and stay over reloads. Invariant: a worker never waits for the observer but to answer a
//! request that asks it something, and then as any request waits, beside others.

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

use crate::counters::{AllCounters, SEATS_MAX};
use crate::board::names::Names;
use crate::board::{Board, lock};
use observer::{Question, Reply};
pub use scene::Scene;

/// What the observer is asked.
type Errand = ticket::Errand<Question, Reply>;

/// What the workers' cells are found by, and whoever reads them.
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
    /// Nothing counted yet, nobody observing.
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

    /// The cells of a seat below `SEATS_MAX`; they outlive who sits there.
    pub fn board(&self, seat: usize) -> Arc<Board> {
        self.boards.get(seat).map(|board| board.get_or_init(Arc::default).clone()).unwrap_or_default()
    }

    /// The number of a peer's cell, for the first try that asks it; it takes a lock, and callers keep the number.
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
