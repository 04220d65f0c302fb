//! A worker's part of the groups of a configuration: one look-up finds all of it.

use std::rc::Rc;

use weir_http::hold::worker::Generation;

use super::Locals;
use super::pool::{Pools, Shelf};

/// The groups of a configuration on this worker.
pub struct Groups {
    /// The worker's record of each.
    pub locals: Locals,
    /// The idle connections to their peers.
    pub pools: Pools,
}

/// The groups of a configuration on this worker.
pub fn groups(generation: &Generation) -> &Rc<Groups> {
    let shelf = || Shelf {
        counters: generation.all_counters.clone(),
        seat: generation.seat,
        generation: generation.conf.generation,
    };
    generation.own.of(|| Rc::new(Groups { locals: Locals::default(), pools: Pools::new(shelf()) }))
}

/// The idle connections to the peers of a configuration's groups on this worker.
pub fn pools(generation: &Generation) -> &Pools {
    &groups(generation).pools
}
