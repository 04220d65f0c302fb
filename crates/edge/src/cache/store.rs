//! Where responses are kept: one zone per `keys_zone`, shared by all workers and kept over reloads.
//!
//! A hit is: hash the key, lock one shard, look up, clone an `Arc`, unlock. Neither the store nor what it returns
//! knows what freshness is; that is the rules' and the exchange's. Time is an argument.
//!
//! ```text
//!   zone.key(bytes) ─► zone.find ─► Object ──► write head and chunks
//!                          │
//!                          └ Nothing / stale ─► zone.join ─► Lead(leader) ─ fill ─ push… ─ finish
//!                                                        └► Wait(waiter) ─ wait ─► Filling(object) ─ Reader
//! ```
//!
//! Invariants: a purge is in force for every worker when the call returns; an object that was fetched before a purge
//! that names it is never found after; nothing here is locked while a file is read or written.

mod ban;
pub mod counters;
pub mod fill;
pub mod flight;
pub mod growth;
pub mod label;
mod list;
pub mod object;
mod shard;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use weir_net::{Instant, clock};

use ban::Bans;
pub use ban::{BANS_MAX, Force, Purge};
pub use counters::{Counters, Figures, Served, Status};
pub use fill::{Draft, Fill, Leader, Refused};
use flight::{FLIGHTS_MAX, Flight};
pub use flight::{Waited, Waiter};
pub use growth::{Cut, Growth, Piece, Reader};
pub use label::{KEY_BYTES_MAX, Label, TAGS_MAX, Tag, Variant};
pub use object::{Body, Chunk, FileBody, Head, Object, Times};
pub use shard::VARIANTS_MAX;
use shard::{Bounds, Gone, Shard, Variants};

/// A zone has at most this many shards.
const SHARDS_MAX: usize = 64;

/// No shard has less memory than this: it bounds the largest object in memory, which is half of it.
const SHARD_MEMORY_MIN: u64 = 4 << 20;

/// No shard has less room for keys than this.
const SHARD_KEYS_MIN: u64 = 256 << 10;

/// What makes two zones of two configurations the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `keys_zone`'s name.
    pub name: String,
    /// Bytes of keys and nodes: `keys_zone`'s size.
    pub keys_bytes: u64,
    /// Bytes of objects in memory.
    pub memory_bytes: u64,
}

/// A key and its hash in one zone.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    place: Place,
}

/// A place in the index: where the object for a request is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    hash: u64,
    variant: Variant,
}

/// What there is for a request.
pub enum Found {
    /// The object, whole; fresh or not is for the caller to say.
    Object(Arc<Object>),
    /// Nothing.
    Nothing,
}

/// What to do about a response that has to be fetched.
pub enum Joined {
    /// Fetch it: this request leads.
    Lead(Leader),
    /// Another fetches it: wait, or serve what is stale.
    Wait(Waiter),
    /// It has been stored since it was looked for.
    Stored(Arc<Object>),
    /// Too many fetches are under way: ask the origin, without the cache.
    Pass,
}

/// One cache.
pub struct Zone {
    settings: Settings,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    flights: Box<[Mutex<HashMap<Place, Arc<Flight>>>]>,
    flying: AtomicUsize,
    bans: Bans,
    counters: Counters,
    serial: AtomicU64,
    purged: AtomicU64,
    contended: AtomicU64,
    /// The beginning of its time.
    epoch: Instant,
    object_bytes_max: u64,
}

impl std::hash::Hash for Place {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Zone {
    /// A zone of so much memory, with nothing in it. Touches no file: that is `start`'s.
    pub fn new(settings: Settings) -> Arc<Zone> {
        let wanted = (settings.memory_bytes / SHARD_MEMORY_MIN).max(settings.keys_bytes / SHARD_KEYS_MIN);
        let count = usize::try_from(wanted).unwrap_or(SHARDS_MAX).clamp(1, SHARDS_MAX);
        let parts = count as u64;
        let bounds = Bounds { memory: settings.memory_bytes / parts, keys: settings.keys_bytes / parts };
        let shards: Box<[_]> = (0..count).map(|_| Mutex::new(Shard::new(bounds))).collect();
        Arc::new(Zone {
            settings,
            hasher: RandomState::new(),
            shards,
            flights: (0..SHARDS_MAX).map(|_| Mutex::default()).collect(),
            flying: AtomicUsize::new(0),
            bans: Bans::default(),
            counters: Counters::default(),
            serial: AtomicU64::new(1),
            purged: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            epoch: clock::now(),
            object_bytes_max: bounds.memory / 2,
        })
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it counts about requests.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A key of a request, hashed.
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, place: self.place_of(bytes, Variant::NONE) }
    }

    /// What is stored for a request, and the place where it is or would be. `select` makes the variant out of the
    /// selecting fields, in the text the rules gave with the object stored last; `None` if this request cannot be served
    /// from the cache.
    pub fn find(&self, key: &Key<'_>, now: Instant, select: impl FnOnce(&[u8]) -> Option<Variant>) -> (Place, Found) {
        let vary = match self.look(key.place, key.bytes, now) {
            Looked::Object(object) => return (key.place, Found::Object(object)),
            Looked::Nothing => return (key.place, Found::Nothing),
            Looked::Varies(vary) => vary,
        };
        let Some(variant) = select(&vary) else { return (key.place, Found::Nothing) };
        let place = self.place_of(key.bytes, variant);
        match self.look(place, key.bytes, now) {
            Looked::Object(object) if *object.label.vary == *vary => (place, Found::Object(object)),
            _ => (place, Found::Nothing),
        }
    }

    /// Begins to fetch what `find` did not find, or found stale, at a place: or learns who does. `seen` is the serial
    /// number of the object that was found.
    pub fn join(self: &Arc<Zone>, key: &Key<'_>, place: Place, seen: Option<u64>, now: Instant) -> Joined {
        let born = self.bans.newest();
        let mut flights = self.flights_of(place);
        if let Some(flight) = flights.get(&place).cloned() {
            if !flight.is_of(key.bytes, place.variant) {
                return Joined::Pass;
            }
            return match flight.take_if_vacant(now, born) {
                Some(turn) => Joined::Lead(Leader::new(self.clone(), flight, turn, born)),
                None => Joined::Wait(Waiter::new(self.clone(), flight)),
            };
        }
        // Between `find` and here another may have landed.
        if let Looked::Object(object) = self.look(place, key.bytes, now)
            && seen != Some(object.serial)
        {
            return Joined::Stored(object);
        }
        if self.flying.fetch_add(1, Ordering::Relaxed) >= FLIGHTS_MAX {
            self.flying.fetch_sub(1, Ordering::Relaxed);
            return Joined::Pass;
        }
        let flight = Arc::new(Flight::new(key.bytes.into(), place, now, born));
        flights.insert(place, flight.clone());
        Joined::Lead(Leader::new(self.clone(), flight, 1, born))
    }

    /// Counts a request for a key of which nothing is stored; how many there were with this one
    /// (nginx: `proxy_cache_min_uses`).
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

    /// Purges, for all workers, before it returns. True for a key of which something was stored; for what names more
    /// than a key, always: it is applied to each object when it is next looked at.
    pub fn purge(&self, purge: Purge, force: Force) -> bool {
        if let Purge::Key(key) = &purge {
            self.purge_flights(key);
            return self.purge_key(key, force);
        }
        self.bans.add(purge, force);
        true
    }

    /// What the zone is now.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures {
            purged: self.purged.load(Ordering::Relaxed),
            bans: self.bans.len() as u64,
            contended: self.contended.load(Ordering::Relaxed),
            flights: self.flying.load(Ordering::Relaxed) as u64,
            ..Figures::default()
        };
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            figures.objects += shard.objects;
            figures.memory += shard.memory;
            figures.keys += shard.keys;
            figures.size += shard.blocks * shard::BLOCK_BYTES;
            figures.evictions += shard.evicted;
        }
        figures
    }

    /// Whether a body of that length can be kept.
    pub fn takes(&self, length: u64) -> bool {
        length <= self.object_bytes_max
    }
}

/// What one place of the index holds.
enum Looked {
    Object(Arc<Object>),
    Varies(Arc<[u8]>),
    Nothing,
}

impl Zone {
    fn look(&self, place: Place, key: &[u8], now: Instant) -> Looked {
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let looked = self.look_in(&mut shard, place, key, now, &mut gone);
        drop(shard);
        self.finish(gone);
        looked
    }

    fn look_in(&self, shard: &mut Shard, place: Place, key: &[u8], now: Instant, gone: &mut Gone) -> Looked {
        let Some(at) = shard.find(place.hash, key, place.variant) else { return Looked::Nothing };
        if !self.survives(shard, at, gone) {
            return Looked::Nothing;
        }
        shard.touch(at, self.second(now));
        let Some(node) = shard.node(at) else { return Looked::Nothing };
        match (&node.memory, &node.variants) {
            (Some(object), _) => Looked::Object(object.clone()),
            (None, Some(variants)) => Looked::Varies(variants.vary.clone()),
            (None, None) => Looked::Nothing,
        }
    }

    /// Applies to a node the purges it has not seen; false when it is gone.
    fn survives(&self, shard: &mut Shard, at: u32, gone: &mut Gone) -> bool {
        let Some(node) = shard.node(at) else { return false };
        if node.checked == self.bans.newest() {
            return true;
        }
        let (force, checked) = self.bans.judge(node.checked, &node.label);
        node.checked = checked;
        match force {
            // What only points to variants is not an object: they are judged one by one.
            _ if node.serial == 0 => true,
            Some(Force::Hard) => {
                shard.remove(at, gone);
                self.purged.fetch_add(1, Ordering::Relaxed);
                false
            }
            Some(Force::Soft) => {
                node.soft_purge();
                true
            }
            None => true,
        }
    }

    /// Puts a whole object where requests find it.
    fn store(&self, object: &Arc<Object>, now: Instant) -> Result<(), Refused> {
        let label = &object.label;
        let (force, checked) = self.bans.judge(object.born, label);
        match force {
            Some(Force::Hard) => return Err(Refused::Purged),
            Some(Force::Soft) => object.soft_purged.store(true, Ordering::Release),
            None => {}
        }
        let place = self.place_of(&label.key, label.variant);
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let at = shard.place(place.hash, label, self.second(now), &mut gone);
        shard.relabel(at, label);
        if let Some(node) = shard.node(at) {
            node.serial = object.serial;
            node.checked = checked;
            node.soft_purged = object.is_soft_purged();
            if let Some(variants) = node.variants.take() {
                gone.variants.push((label.clone(), variants.known));
            }
        }
        let is_kept = shard.admit(at, object.clone(), &mut gone);
        if !is_kept {
            shard.remove(at, &mut gone);
        }
        drop(shard);
        self.finish(gone);
        if is_kept && label.variant != Variant::NONE {
            self.note_variant(label, now);
        }
        if is_kept { Ok(()) } else { Err(Refused::TooLarge) }
    }

    /// Lets the key's own place lead to a variant.
    fn note_variant(&self, label: &Arc<Label>, now: Instant) {
        let place = self.place_of(&label.key, Variant::NONE);
        let primary = Arc::new(Label { key: label.key.clone(), ..Label::default() });
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let at = shard.place(place.hash, &primary, self.second(now), &mut gone);
        // A response without Vary that was there before is not what this origin answers any more.
        shard.strip(at, &mut gone);
        let checked = self.bans.newest();
        if let Some(node) = shard.node(at) {
            node.checked = checked;
            let variants = node
                .variants
                .get_or_insert_with(|| Box::new(Variants { vary: label.vary.as_ref().into(), known: Vec::new() }));
            if *variants.vary != *label.vary {
                variants.vary = label.vary.as_ref().into();
            }
            variants.known.retain(|known| *known != label.variant);
            variants.known.push(label.variant);
            if variants.known.len() > VARIANTS_MAX {
                let oldest = variants.known.remove(0);
                gone.variants.push((primary.clone(), vec![oldest]));
            }
        }
        drop(shard);
        self.finish(gone);
    }

    /// Removes, outside any lock, what a shard let go of.
    fn finish(&self, gone: Gone) {
        for (label, variants) in gone.variants {
            for variant in variants {
                let place = self.place_of(&label.key, variant);
                let mut more = Gone::default();
                let mut shard = self.shard(place);
                if let Some(at) = shard.find(place.hash, &label.key, variant) {
                    shard.remove(at, &mut more);
                }
            }
        }
    }

    fn purge_key(&self, key: &[u8], force: Force) -> bool {
        let place = self.place_of(key, Variant::NONE);
        let mut shard = self.shard(place);
        let Some(at) = shard.find(place.hash, key, Variant::NONE) else { return false };
        let variants = shard.node(at).and_then(|node| node.variants.as_ref()).map(|known| known.known.clone());
        let mut gone = Gone::default();
        let mut was_there = shard.purge(at, force, &mut gone);
        drop(shard);
        gone.variants.clear();
        for variant in variants.unwrap_or_default() {
            let place = self.place_of(key, variant);
            let mut shard = self.shard(place);
            if let Some(at) = shard.find(place.hash, key, variant) {
                was_there |= shard.purge(at, force, &mut gone);
            }
        }
        self.purged.fetch_add(gone.objects, Ordering::Relaxed);
        self.finish(gone);
        was_there
    }

    /// What is being fetched for a key now is not stored.
    fn purge_flights(&self, key: &[u8]) {
        if self.flying.load(Ordering::Acquire) == 0 {
            return;
        }
        for flights in &self.flights {
            let flights = flights.lock().unwrap_or_else(PoisonError::into_inner);
            for flight in flights.values().filter(|flight| *flight.key == *key) {
                flight.is_purged.store(true, Ordering::Release);
            }
        }
    }

    /// A flight is over.
    fn land(&self, flight: &Arc<Flight>) {
        let mut flights = self.flights_of(flight.place);
        self.strike(&mut flights, flight);
    }

    /// A flight is over, unless somebody took it up meanwhile.
    fn land_if_vacant(&self, flight: &Arc<Flight>) {
        let mut flights = self.flights_of(flight.place);
        if flight.is_deserted() {
            self.strike(&mut flights, flight);
        }
    }

    fn strike(&self, flights: &mut HashMap<Place, Arc<Flight>>, flight: &Arc<Flight>) {
        if flights.get(&flight.place).is_some_and(|known| Arc::ptr_eq(known, flight)) {
            flights.remove(&flight.place);
            self.flying.fetch_sub(1, Ordering::Release);
        }
    }

    fn purges(&self) -> u32 {
        self.bans.newest()
    }

    fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    fn second(&self, now: Instant) -> u32 {
        u32::try_from(now.saturating_duration_since(self.epoch).as_secs()).unwrap_or(u32::MAX)
    }

    fn place_of(&self, key: &[u8], variant: Variant) -> Place {
        let hash = match variant {
            Variant::NONE => self.hasher.hash_one(key),
            Variant(bytes) => self.hasher.hash_one((key, bytes)),
        };
        Place { hash, variant }
    }

    fn shard(&self, place: Place) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[(place.hash >> 32) as usize % self.shards.len()];
        match shard.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.contended.fetch_add(1, Ordering::Relaxed);
                shard.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    fn flights_of(&self, place: Place) -> MutexGuard<'_, HashMap<Place, Arc<Flight>>> {
        self.flights[place.hash as usize % self.flights.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
