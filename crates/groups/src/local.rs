//! Groups as one worker uses them.
//!
//! A worker counts the references to a group here, and has its own turn of round robin. A count that all workers changed
//! for each exchange would go from core to core.

use std::cell::OnceCell;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use weir_peers::group::Part;

use crate::Parts;

/// A group of a worker.
pub struct Local<P: Parts> {
    built: Arc<P::Built>,
    /// The worker's part of it.
    pub part: Part,
}

impl<P: Parts> Local<P> {
    /// A group that the worker begins to use.
    pub fn new(built: Arc<P::Built>) -> Rc<Local<P>> {
        Rc::new(Local { part: P::group(&built).part(), built })
    }
}

impl<P: Parts> Deref for Local<P> {
    type Target = P::Built;

    fn deref(&self) -> &P::Built {
        &self.built
    }
}

/// The groups of a configuration, for one worker.
pub struct Locals<P: Parts>(OnceCell<Vec<Rc<Local<P>>>>);

impl<P: Parts> Default for Locals<P> {
    fn default() -> Locals<P> {
        Locals(OnceCell::new())
    }
}

impl<P: Parts> Locals<P> {
    /// The group of a number; `all` are those of the configuration.
    pub fn get(&self, all: &[Arc<P::Built>], number: usize) -> Option<&Rc<Local<P>>> {
        self.0.get_or_init(|| all.iter().cloned().map(Local::new).collect()).get(number)
    }
}
