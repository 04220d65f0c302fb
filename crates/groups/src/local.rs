//! A worker's record of each group.
//!
//! A worker counts the references to a group here, and has its own turn of round robin. A count that all workers changed
//! for each exchange would go from core to core.

use std::cell::{OnceCell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use weir_http::hold::board::boards::Boards;
use weir_peers::group::WorkerPart;

use crate::{Parts, Upstream};

/// A peer's name, which tries at this peer share, and the number of the cell that counts them.
pub type KnownPeer = (Rc<str>, u32);

/// A version of a group.
pub struct Local<P: Parts> {
    built: Arc<Upstream<P>>,
    version: u64,
    /// The worker's part of it.
    pub part: WorkerPart,
    /// The peers by their index, looked up at the first use.
    peers: OnceCell<Vec<KnownPeer>>,
}

impl<P: Parts> Local<P> {
    /// A group that the worker begins to use.
    pub fn new(built: Arc<Upstream<P>>) -> Rc<Local<P>> {
        Local::of_version(built, 0)
    }

    fn of_version(built: Arc<Upstream<P>>, version: u64) -> Rc<Local<P>> {
        Rc::new(Local { part: built.group.part(), built, version, peers: OnceCell::new() })
    }

    /// A peer by its index.
    pub fn peer(&self, boards: &Boards, index: usize) -> KnownPeer {
        let group = &self.built.group;
        let known = |address: &str| (address.into(), boards.peer(group.name(), address));
        let peers = self.peers.get_or_init(|| group.peers().map(|peer| known(&peer.address)).collect());
        peers.get(index).cloned().unwrap_or_default()
    }
}

impl<P: Parts> Deref for Local<P> {
    type Target = Upstream<P>;

    fn deref(&self) -> &Upstream<P> {
        &self.built
    }
}

/// The version of a group that the worker used last.
pub struct LastUsed<P: Parts>(RefCell<Option<Rc<Local<P>>>>);

impl<P: Parts> Default for LastUsed<P> {
    fn default() -> LastUsed<P> {
        LastUsed(RefCell::default())
    }
}

impl<P: Parts> LastUsed<P> {
    /// Whether the worker has used the group.
    pub fn is_used(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// The current version of the group, which is `declared` in the configuration.
    #[inline]
    pub fn current(&self, declared: &Arc<Upstream<P>>) -> Rc<Local<P>> {
        let live = declared.live.as_ref();
        let version = live.map_or(0, |live| live.version());
        let mut known = self.0.borrow_mut();
        if let Some(local) = &*known
            && local.version == version
        {
            return local.clone();
        }
        // These peers may already be newer than `version`, which was read first. Then the next call reads them again.
        let built = live.map_or_else(|| declared.clone(), |live| live.current());
        known.insert(Local::<P>::of_version(built, version)).clone()
    }
}

/// The groups of a configuration, by number, in the versions that the worker used last.
pub struct Locals<P: Parts>(RefCell<Vec<LastUsed<P>>>);

impl<P: Parts> Default for Locals<P> {
    fn default() -> Locals<P> {
        Locals(RefCell::default())
    }
}

impl<P: Parts> Locals<P> {
    /// The current version of the group of a number; `all` are those of the configuration.
    pub fn get(&self, all: &[Arc<Upstream<P>>], number: usize) -> Option<Rc<Local<P>>> {
        let declared = all.get(number)?;
        let mut known = self.0.borrow_mut();
        if known.len() <= number {
            known.resize_with(number + 1, LastUsed::default);
        }
        Some(known.get(number)?.current(declared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Plain, fixed, live_of, place, pointing_to};

    fn addresses(local: &Local<Plain>) -> Vec<&str> {
        local.group.peers().map(|peer| peer.address.as_str()).collect()
    }

    #[test]
    fn a_worker_has_one_record_of_each_version() {
        let live = Arc::new(live_of(&["127.0.0.1:1"], &["a.test"]));
        let all = [fixed(&["127.0.0.1:9"]), pointing_to(&live)];
        let locals = Locals::<Plain>::default();
        let get = |number| locals.get(&all, number).unwrap();
        let (still, first) = (get(0), get(1));
        assert!(Rc::ptr_eq(&first, &get(1)) && Rc::ptr_eq(&still, &get(0)));
        live.learn(1, vec![place("10.0.0.1:0")]);
        let second = get(1);
        assert!(!Rc::ptr_eq(&first, &second) && Rc::ptr_eq(&second, &get(1)) && Rc::ptr_eq(&still, &get(0)));
        assert_eq!(addresses(&first), ["127.0.0.1:1"], "an exchange keeps the version it began with");
        assert_eq!(addresses(&second), ["127.0.0.1:1", "10.0.0.1:80"]);
        assert_eq!(addresses(&still), ["127.0.0.1:9"]);
        assert!(locals.get(&all, 2).is_none());
    }

    #[test]
    fn a_peer_has_one_cell_in_all_versions() {
        let live = Arc::new(live_of(&["127.0.0.1:1"], &["a.test"]));
        let (all, locals, boards) = ([pointing_to(&live)], Locals::<Plain>::default(), Boards::default());
        live.learn(1, vec![place("10.0.0.1:0"), place("10.0.0.2:0")]);
        let before = locals.get(&all, 0).unwrap();
        let [fixed, last] = [0, 2].map(|index| before.peer(&boards, index));
        assert_ne!(fixed.1, last.1);
        live.learn(1, vec![place("10.0.0.2:0")]);
        let after = locals.get(&all, 0).unwrap();
        assert_eq!([0, 1].map(|index| after.peer(&boards, index)), [fixed, last]);
        assert_eq!(&*after.peer(&boards, 2).0, "", "a peer that is not in this version has no name");
    }
}
