//! Counts the objects that a purge names, for the API, before the purge is in force.

use std::sync::PoisonError;

use weir_net::worker;

use super::ban::{Force, Purge};
use super::label::Variant;
use super::node::Disk;
use super::shard::Shard;
use super::zone::Zone;

/// Places of a shard examined under one lock, before other tasks get their turn.
const SLICE: u32 = 1024;

/// The result of a count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of named objects; each variant of a key is an object.
    pub named: u64,
    /// The key of an object that is not named, as an example of the form of keys in this zone.
    pub other: Option<Box<[u8]>>,
    /// Whether the directory is still being read: there may be more.
    pub is_cold: bool,
}

impl Zone {
    /// Counts the objects that at least one of these purges names. A key is looked up; for other purges every place of
    /// the index is examined, in slices, so that the worker's other tasks get their turn.
    pub async fn tally(&self, purges: &[Purge]) -> Tally {
        let mut tally = Tally { is_cold: self.is_cold(), ..Tally::default() };
        let are_keys = purges.iter().all(|purge| matches!(purge, Purge::Key(_)));
        if are_keys {
            tally.named =
                purges.iter().map(|purge| if let Purge::Key(key) = purge { self.named_by(key) } else { 0 }).sum();
            // The rest only finds an example, which is needed if the purges name nothing.
            if tally.named > 0 {
                return tally;
            }
        }
        for shard in &self.shards {
            let mut from: u32 = 0;
            loop {
                let places = {
                    let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                    let places = shard.places();
                    for at in from..places.min(from.saturating_add(SLICE)) {
                        self.count(&mut shard, at, purges, &mut tally);
                        if are_keys && tally.other.is_some() {
                            return tally;
                        }
                    }
                    places
                };
                from = from.saturating_add(SLICE);
                if from >= places {
                    break;
                }
                worker::yield_now().await;
            }
        }
        tally
    }

    fn count(&self, shard: &mut Shard, at: u32, purges: &[Purge], tally: &mut Tally) {
        if !self.has_object(shard, at) {
            return;
        }
        let Some(node) = shard.node(at) else { return };
        if purges.iter().any(|purge| purge.names(&node.label)) {
            tally.named = tally.named.saturating_add(1);
        } else if tally.other.is_none() {
            tally.other = Some(node.label.key.clone());
        }
    }

    fn named_by(&self, key: &[u8]) -> u64 {
        let find = |variant: Variant| {
            let place = self.place_of(key, variant);
            let mut shard = self.shard(place);
            let at = shard.find(place.hash, key, variant)?;
            let variants = shard.node(at)?.variants.as_ref().map(|known| known.known.clone()).unwrap_or_default();
            Some((u64::from(self.has_object(&mut shard, at)), variants))
        };
        let Some((own, variants)) = find(Variant::NONE) else { return 0 };
        own + variants.into_iter().filter_map(find).map(|(count, _)| count).sum::<u64>()
    }

    /// Whether a node has an object that no earlier purge has removed.
    fn has_object(&self, shard: &mut Shard, at: u32) -> bool {
        shard.node(at).is_some_and(|node| {
            (node.memory.is_some() || node.disk != Disk::None)
                && self.bans.judge(node.checked, &node.label).0 != Some(Force::Hard)
        })
    }
}
