//! A worker's record of each group.
//!
//! A worker counts the references to a group here, and has its own turn of round robin. A count that all workers changed
//! for each exchange would go from core to core.

use std::cell::{OnceCell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use weir_http::board::boards::Boards;
use weir_peers::group::Part;

use crate::Parts;

/// A peer's name, which tries at this peer share, and the number of the cell that counts them.
pub type KnownPeer = (Rc<str>, u32);

/// A version of a group.
pub struct Local<P: Parts> {
    built: Arc<P::Built>,
    version: u64,
    /// The worker's part of it.
    pub part: Part,
    /// The peers by their index, looked up at the first use.
    peers: OnceCell<Vec<KnownPeer>>,
}

impl<P: Parts> Local<P> {
    /// A group that the worker begins to use.
    pub fn new(built: Arc<P::Built>) -> Rc<Local<P>> {
        Local::of_version(built, 0)
    }

    fn of_version(built: Arc<P::Built>, version: u64) -> Rc<Local<P>> {
        Rc::new(Local { part: P::group(&built).part(), built, version, peers: OnceCell::new() })
    }

    /// A peer by its index.
    pub fn peer(&self, boards: &Boards, index: usize) -> KnownPeer {
        let group = P::group(&self.built);
        let known = |address: &str| (address.into(), boards.peer(group.name(), address));
        let peers = self.peers.get_or_init(|| group.peers().map(|peer| known(&peer.address)).collect());
        peers.get(index).cloned().unwrap_or_default()
    }
}

impl<P: Parts> Deref for Local<P> {
    type Target = P::Built;

    fn deref(&self) -> &P::Built {
        &self.built
    }
}

/// The groups of a configuration, by number, in the versions that the worker used last.
pub struct Locals<P: Parts>(RefCell<Vec<Option<Rc<Local<P>>>>>);

impl<P: Parts> Default for Locals<P> {
    fn default() -> Locals<P> {
        Locals(RefCell::default())
    }
}

impl<P: Parts> Locals<P> {
    /// The current version of the group of a number; `all` are those of the configuration.
    pub fn get(&self, all: &[Arc<P::Built>], number: usize) -> Option<Rc<Local<P>>> {
        let declared = all.get(number)?;
        let live = P::live(declared);
        let version = live.map_or(0, |live| live.version());
        let mut known = self.0.borrow_mut();
        if let Some(Some(local)) = known.get(number)
            && local.version == version
        {
            return Some(local.clone());
        }
        // These peers may already be newer than `version`, which was read first. Then the next call reads them again.
        let built = live.map_or_else(|| declared.clone(), |live| live.current());
        let local = Local::<P>::of_version(built, version);
        if known.len() <= number {
            known.resize_with(number + 1, || None);
        }
        if let Some(place) = known.get_mut(number) {
            *place = Some(local.clone());
        }
        Some(local)
    }
}
