//! The cells of all workers, and the numbers by which workers find them.

use std::sync::{Arc, OnceLock};

use super::Board;
use super::names::CellNames;
use crate::hold::counters::SEATS_MAX;

/// See the module.
pub struct Boards {
    seats: Box<[OnceLock<Arc<Board>>]>,
    /// The numbers of zones that count requests.
    pub zones: CellNames,
    /// The numbers of peers.
    pub peers: CellNames,
    /// The numbers of limits.
    pub limits: CellNames,
    /// The numbers of caches.
    pub caches: CellNames,
}

impl Default for Boards {
    fn default() -> Boards {
        Boards {
            seats: (0..SEATS_MAX).map(|_| OnceLock::new()).collect(),
            zones: CellNames::default(),
            peers: CellNames::default(),
            limits: CellNames::default(),
            caches: CellNames::default(),
        }
    }
}

impl Boards {
    /// The cells of a seat below `SEATS_MAX`; they outlive the worker in that seat.
    pub fn of_seat(&self, seat: usize) -> Arc<Board> {
        self.seats.get(seat).map(|board| board.get_or_init(Arc::default).clone()).unwrap_or_default()
    }

    /// The seats that had a worker, and their cells.
    pub fn taken(&self) -> impl Iterator<Item = (usize, &Arc<Board>)> {
        self.seats.iter().enumerate().filter_map(|(seat, board)| Some((seat, board.get()?)))
    }

    /// The number of a peer's cell, for the first try at that peer. It takes a lock, so callers keep the number.
    pub fn peer(&self, group: &str, address: &str) -> u32 {
        self.peers.number(&peer_name(group, address))
    }
}

/// The name of a peer among the numbers.
pub fn peer_name(group: &str, address: &str) -> String {
    format!("{group}\0{address}")
}
