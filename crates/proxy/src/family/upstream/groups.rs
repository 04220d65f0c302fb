//! A worker's records of the groups of a configuration. Its number finds all that a worker knows of a group, at once.

use std::rc::Rc;
use std::sync::Arc;

use weir_http::hold::worker::{Generation, Worker};

use super::line::Lines;
use super::pool::{Pool, Shelf};
use super::{LastUsed, Local, Upstream};

/// A worker's record of a group.
pub struct Home {
    /// The idle connections to its peers; two configurations in force share those of an equal group.
    pub pool: Rc<Pool>,
    /// The connections to its peers that carry many exchanges at once; shared in the same way.
    pub lines: Rc<Lines>,
    declared: Arc<Upstream>,
    used: LastUsed,
}

impl Home {
    /// Whether the worker has used the group.
    pub fn is_used(&self) -> bool {
        self.used.is_used()
    }

    /// The group in its current version.
    #[inline]
    pub fn current(&self) -> Rc<Local> {
        self.used.current(&self.declared)
    }
}

/// The records of all groups of a configuration, by number.
pub struct Groups(Box<[Rc<Home>]>);

/// The groups of a configuration on this worker.
#[inline]
pub fn groups(generation: &Generation) -> &Groups {
    generation.own.of(|| Groups::of(generation, None))
}

/// Lets the configuration beside the main one use the main one's connections, where both mean the same peers: a configuration
/// with few clients would find fewer open connections, and look slower.
pub fn share(worker: &Rc<Worker>, generation: &Rc<Generation>) {
    if worker.is_beside(generation) {
        let main = worker.main();
        generation.own.of(|| Groups::of(generation, Some(&main)));
    }
}

/// Whether no number means different peers in both groups. One that changes at run time continues the numbers of the other one.
fn is_same(one: &Upstream, other: &Upstream) -> bool {
    one.live.is_some() == other.live.is_some() && one.addresses == other.addresses
}

impl Groups {
    #[cold]
    fn of(generation: &Generation, main: Option<&Generation>) -> Groups {
        let declared = &crate::declared(&generation.conf).upstream.groups;
        let home = |(number, declared): (usize, &Arc<Upstream>)| {
            let same = main.and_then(|main| {
                let before = &crate::declared(&main.conf).upstream;
                let number = before.former(declared, generation.conf.exchanged.as_ref())?;
                groups(main).home(number).filter(|other| is_same(&other.declared, declared))
            });
            let (pool, lines) = same.map_or_else(
                || {
                    let shelf = Shelf {
                        counters: generation.all_counters.clone(),
                        seat: generation.seat,
                        generation: generation.conf.generation,
                        group: number,
                    };
                    (Rc::new(Pool::new(shelf.clone())), Rc::new(Lines::new(shelf)))
                },
                |same| (same.pool.clone(), same.lines.clone()),
            );
            Rc::new(Home { pool, lines, declared: declared.clone(), used: LastUsed::default() })
        };
        Groups(declared.iter().enumerate().map(home).collect())
    }

    /// The record of a group; `None` if the configuration has no group of this number.
    #[inline]
    pub fn home(&self, number: usize) -> Option<&Rc<Home>> {
        self.0.get(number)
    }

    /// All records.
    pub fn all(&self) -> &[Rc<Home>] {
        &self.0
    }

    /// Closes the connection that was idle for longest, of all groups; one that carries many exchanges at once, if there is no
    /// other one. `false` if none is kept.
    pub fn close_oldest(&self) -> bool {
        let kept = self.0.iter().filter(|home| !home.pool.is_empty());
        let lines = || {
            let idle = self.0.iter().filter_map(|home| Some((home.lines.oldest()?, home)));
            idle.min_by_key(|(since, _)| *since).is_some_and(|(_, home)| home.lines.close_oldest())
        };
        kept.min_by_key(|home| home.pool.oldest()).is_some_and(|home| home.pool.close_oldest()) || lines()
    }
}
