//! Stores responses: one zone per `keys_zone`, shared by all workers and kept across reloads.
//!
//! A hit costs this: hash the key, lock one shard, look up, clone an `Arc`, unlock. The store and the objects it
//! returns know nothing of freshness: the rules and the exchange decide that. Time is an argument.
//!
//! ```text
//!   zone.key(bytes) ─► zone.find ─► Object ──► write head and chunks
//!                          │
//!                          └ Nothing / stale ─► zone.join ─► Lead(leader) ─ fill ─ push… ─ finish
//!                                                        └► Wait(waiter) ─ wait ─► Filling(object) ─ Reader
//! ```
//!
//! Invariants: a purge is in force for every worker when the call returns. An object fetched before a purge that names
//! it is never found after the purge. No lock is held while a file is read or written.

mod ban;
mod check;
pub mod counters;
pub mod directory;
mod file;
pub mod fill;
pub mod flight;
mod flights;
pub mod forms;
pub mod growth;
mod index;
mod jobs;
pub mod keeper;
pub mod label;
pub mod leader;
mod list;
mod node;
pub mod object;
pub mod piece;
pub mod purges;
pub mod queue;
pub mod reader;
pub mod settings;
mod shard;
pub mod spool;
mod tally;
#[cfg(test)]
mod tests;
mod tier;
mod waiter;
pub mod zone;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use weir_net::Instant;

pub use ban::{BANS_MAX, Force, Purge};
pub use counters::{Counters, Figures, Refreshed, Refreshes, Served, Status};
pub use directory::Directory;
pub use fill::{Draft, Fill};
use flight::Flight;
use flights::Boarded;
pub use forms::Packing;
pub use growth::{Cut, Growth};
use index::Looked;
pub use index::{Cold, Found};
pub use label::{KEY_BYTES_MAX, Key, Label, Place, TAGS_MAX, Tag, Variant};
pub use leader::{Leader, StoreRefusal};
use node::{BLOCK_BYTES, Gone};
pub use object::{Body, Coding, Object, StoredHead, Times};
pub use piece::{Chunk, FileBody, Piece};
pub use reader::Reader;
pub use settings::{Settings, Tuning};
pub use shard::VARIANTS_MAX;
pub use tally::Tally;
pub use waiter::{Waited, Waiter};
pub use zone::Zone;

/// The action for a response that must be fetched.
pub enum Joined {
    /// This request leads: it fetches the response.
    Lead(Leader),
    /// Another request fetches it: wait, or serve a stale object.
    Wait(Waiter),
    /// It was stored after the look-up.
    Stored(Arc<Object>),
    /// Too many fetches are in progress: ask the origin without the cache.
    Pass,
}

impl Zone {
    /// The stored object for a request, and its place. `select` makes the variant from the selecting fields, in the
    /// text that the rules gave with the object stored last; `None` if the cache cannot serve this request.
    pub fn find(
        self: &Arc<Zone>,
        key: &Key<'_>,
        now: Instant,
        select: impl FnOnce(&[u8]) -> Option<Variant>,
    ) -> (Place, Found) {
        let vary = match self.look(key.place, key.bytes, now) {
            Looked::Varies(vary) => vary,
            looked => return (key.place, self.found(looked, key, key.place, &[])),
        };
        let Some(variant) = select(&vary) else { return (key.place, Found::Nothing) };
        let place = self.place_of(key.bytes, variant);
        let looked = self.look(place, key.bytes, now);
        (place, self.found(looked, key, place, &vary))
    }

    /// Begins the fetch of an object that `find` did not find or found stale, or joins the fetch in progress. `seen`
    /// is the serial number of the object found.
    pub fn join(self: &Arc<Zone>, key: &Key<'_>, place: Place, seen: Option<u64>, now: Instant) -> Joined {
        let born = self.bans.newest();
        // Another request may have stored it between `find` and this call.
        let stored = || match self.look(place, key.bytes, now) {
            Looked::Object(object) if seen != Some(object.serial) => Some(object),
            _ => None,
        };
        match self.flights.board(key.bytes, place, (now, born), stored) {
            Boarded::Leads(flight, turn) => Joined::Lead(Leader::new(self.clone(), flight, turn, born)),
            Boarded::Waits(flight) => Joined::Wait(Waiter::new(self.clone(), flight)),
            Boarded::Has(object) => Joined::Stored(object),
            Boarded::Passes => Joined::Pass,
        }
    }

    /// Fetches in parallel to other requests: nobody waits for this fetch, and its response is stored too. `None` if
    /// there are too many such fetches.
    pub fn lead_beside(self: &Arc<Zone>, key: &Key<'_>, place: Place, now: Instant) -> Option<Leader> {
        let born = self.bans.newest();
        let flight = Arc::new(Flight::new(key.bytes.into(), place, now, born));
        self.flights.note_beside(&flight).then(|| Leader::new(self.clone(), flight, 1, born))
    }

    /// Counts a request for a key without a stored object; returns the number of such requests (nginx:
    /// `proxy_cache_min_uses`).
    pub fn note_use(&self, key: &Key<'_>, place: Place, now: Instant) -> u16 {
        let label = Arc::new(Label { key: key.bytes.into(), variant: place.variant, ..Label::default() });
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let at = shard.place(place.hash, &label, self.second(now), &mut gone);
        let uses = shard.node(at).map_or(0, |node| {
            node.uses = node.uses.saturating_add(1);
            node.uses
        });
        drop(shard);
        self.finish(gone);
        uses
    }

    /// Purges for all workers before it returns. For a key, true if an object was stored. Always true for a purge of
    /// more than a key, and while the directory is being read: these apply to each object at its next look-up.
    pub fn purge(&self, purge: Purge, force: Force) -> bool {
        if let Purge::Key(key) = &purge {
            // Checked first: only a rule reaches a file that is not read yet, and the file may be read meanwhile.
            let is_cold = self.is_cold();
            self.flights.purge(key);
            let was_there = self.purge_key(key, force);
            if !is_cold {
                return was_there;
            }
        }
        let ban = self.bans.add(purge, force);
        if let Some(tier) = &self.tier {
            tier.note_purge(&ban, || self.bans.all());
        }
        self.queue.wake();
        true
    }

    /// The zone's current figures.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures {
            purged: self.purged.load(Ordering::Relaxed),
            bans: self.bans.len() as u64,
            contended: self.contended.load(Ordering::Relaxed),
            flights: self.flights.count() as u64,
            max_size: self.tuning().max_size,
            cold: self.is_cold(),
            ..Figures::default()
        };
        if let Some(tier) = &self.tier {
            figures.disk_errors = tier.errors.load(Ordering::Relaxed);
            figures.disk_skipped = tier.skipped.load(Ordering::Relaxed);
        }
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            figures.objects += shard.objects;
            figures.memory += shard.memory;
            figures.keys += shard.keys;
            figures.size += shard.blocks * BLOCK_BYTES;
            figures.evictions += shard.evicted;
        }
        figures
    }
}
