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
pub mod forms;
pub mod growth;
mod index;
pub mod keeper;
pub mod label;
mod list;
pub mod object;
pub mod purges;
pub mod queue;
mod shard;
pub mod spool;
mod tally;
#[cfg(test)]
mod tests;
mod tier;

use std::collections::HashMap;
use std::hash::RandomState;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak, mpsc};
use std::time::Duration;

use weir_net::process::Identity;
use weir_net::{Instant, clock};

use weir_net::identity::assume;

use ban::Bans;
pub use ban::{BANS_MAX, Force, Purge};
pub use counters::{Counters, Figures, Refreshed, Refreshes, Served, Status};
pub use directory::Directory;
pub use fill::{Draft, Fill, Leader, Refused};
use flight::{FLIGHTS_MAX, Flight};
pub use flight::{Waited, Waiter};
pub use forms::Packing;
pub use growth::{Cut, Growth, Piece, Reader};
use index::Looked;
use keeper::Keeper;
pub use keeper::Tuning;
pub use label::{KEY_BYTES_MAX, Label, TAGS_MAX, Tag, Variant};
pub use object::{Body, Chunk, FileBody, Head, Object, Times};
use queue::Queue;
pub use shard::VARIANTS_MAX;
use shard::{Bounds, Gone, Shard};
pub use tally::Tally;
use tier::Tier;

/// The most shards of a zone.
const SHARDS_MAX: usize = 64;

/// The least memory of a shard: the largest object in memory is half of it.
const SHARD_MEMORY_MIN: u64 = 4 << 20;

/// The part of an object's share of memory that is reserved for its head.
const HEAD_SHARE: u64 = 8 << 10;

/// The least room for keys in a shard.
const SHARD_KEYS_MIN: u64 = 256 << 10;

/// The identity of a zone: two configurations with equal settings share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `keys_zone`'s name.
    pub name: String,
    /// Bytes of keys and nodes: `keys_zone`'s size.
    pub keys_bytes: u64,
    /// Bytes of objects in memory.
    pub memory_bytes: u64,
    /// The place of the files; `None` for a zone in memory only.
    pub directory: Option<Directory>,
}

/// A key and its hash in one zone.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    place: Place,
}

/// A place in the index: the position of the object for a request, even if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    hash: u64,
    variant: Variant,
}

/// The result of a look-up.
pub enum Found {
    /// The whole object; the caller checks whether it is fresh.
    Object(Arc<Object>),
    /// An object that is only on disk: load it.
    Cold(Cold),
    /// Nothing.
    Nothing,
}

/// An object on disk, or one that may be there because the directory is not fully read yet.
pub struct Cold {
    zone: Arc<Zone>,
    place: Place,
    label: Arc<Label>,
    serial: u64,
}

impl Cold {
    /// Lets the zone's thread read the object; `None` if it is missing, corrupt, or purged meanwhile. All callers at
    /// the same time share one read.
    pub async fn load(self) -> Option<Arc<Object>> {
        let answer = self.zone.queue.load(self.place, &self.label, self.serial)?;
        std::future::poll_fn(|context| answer.poll(context)).await
    }
}

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

/// One cache.
pub struct Zone {
    settings: Settings,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    flights: Box<[Flights]>,
    flying: AtomicUsize,
    /// Fetches without waiters: a purge must reach them too.
    beside: Mutex<Vec<Weak<Flight>>>,
    bans: Bans,
    counters: Counters,
    serial: AtomicU64,
    purged: AtomicU64,
    contended: AtomicU64,
    /// The start of the zone's time.
    epoch: Instant,
    object_bytes_max: u64,
    body_bytes_max: u64,
    tuning: RwLock<Tuning>,
    queue: Arc<Queue>,
    tier: Option<Tier>,
    is_started: AtomicBool,
}

type Flights = Mutex<HashMap<Place, Arc<Flight>>>;

impl std::hash::Hash for Place {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Zone {
    /// Makes an empty zone with this much memory. It touches no file: `start` does.
    pub fn new(settings: Settings) -> Arc<Zone> {
        let wanted = (settings.memory_bytes / SHARD_MEMORY_MIN).max(settings.keys_bytes / SHARD_KEYS_MIN);
        let count = usize::try_from(wanted).unwrap_or(SHARDS_MAX).clamp(1, SHARDS_MAX);
        let parts = count as u64;
        let bounds = Bounds { memory: settings.memory_bytes / parts, keys: settings.keys_bytes / parts };
        let shards: Box<[_]> = (0..count).map(|_| Mutex::new(Shard::new(bounds))).collect();
        let tier = settings.directory.clone().map(Tier::new);
        Arc::new(Zone {
            settings,
            hasher: RandomState::new(),
            shards,
            flights: (0..SHARDS_MAX).map(|_| Mutex::default()).collect(),
            flying: AtomicUsize::new(0),
            beside: Mutex::default(),
            bans: Bans::default(),
            counters: Counters::default(),
            serial: AtomicU64::new(1),
            purged: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            epoch: clock::now(),
            object_bytes_max: bounds.memory / 2,
            body_bytes_max: (bounds.memory / 2).saturating_sub(HEAD_SHARE),
            tuning: RwLock::default(),
            queue: Arc::default(),
            tier,
            is_started: AtomicBool::new(false),
        })
    }

    /// Starts the zone's thread as `identity`, and returns once the thread has opened the directory: recorded purges
    /// are in force from then on. Further calls do nothing. If the directory cannot be used, the zone logs a line and
    /// keeps objects in memory only. Fails if the thread cannot be started.
    pub fn start(self: &Arc<Zone>, identity: Option<Identity>) -> io::Result<()> {
        if self.is_started.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let (zone, queue) = (Arc::downgrade(self), self.queue.clone());
        let name = format!("cache {}", self.settings.name);
        let (opened, is_opened) = mpsc::channel();
        weir_net::worker::block_aside(&name, move || {
            // If the thread panics, the zone goes on in memory.
            let _closes = CloseOnDrop(&queue);
            if assume(identity.as_ref()) {
                zone.upgrade().inspect(|zone| zone.open());
                drop(opened);
                keep(&zone, &queue);
            }
        })?;
        // The thread sends nothing: it drops its end.
        let _ = is_opened.recv() as Result<(), _>;
        Ok(())
    }

    /// Sets the values that may change at a reload.
    pub fn retune(&self, tuning: Tuning) {
        *self.tuning.write().unwrap_or_else(PoisonError::into_inner) = tuning;
        self.queue.wake();
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its counters of requests.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A key of a request, hashed.
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, place: self.place_of(bytes, Variant::NONE) }
    }

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
        // Another request may have stored it between `find` and this call.
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

    /// Fetches in parallel to other requests: nobody waits for this fetch, and its response is stored too. `None` if
    /// there are too many such fetches.
    pub fn lead_beside(self: &Arc<Zone>, key: &Key<'_>, place: Place, now: Instant) -> Option<Leader> {
        let born = self.bans.newest();
        let flight = Arc::new(Flight::new(key.bytes.into(), place, now, born));
        self.note_beside(&flight).then(|| Leader::new(self.clone(), flight, 1, born))
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
            self.purge_flights(key);
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
            flights: self.flying.load(Ordering::Relaxed) as u64,
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
            figures.size += shard.blocks * shard::BLOCK_BYTES;
            figures.evictions += shard.evicted;
        }
        figures
    }

    /// Whether a body of that length can be kept at present: in memory, or on a working disk.
    pub fn takes(&self, length: u64, now: Instant) -> bool {
        self.takes_in_memory(length) || self.spools(length, now)
    }
}

impl Drop for Zone {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The thread of a zone; it runs as long as the zone exists.
fn keep(zone: &Weak<Zone>, queue: &Queue) {
    let mut keeper = Keeper::default();
    loop {
        let Some(zone) = zone.upgrade() else { return };
        let idle = keeper.turn(&zone, clock::now());
        drop(zone);
        if !queue.sleep(idle.min(SLEEP_MAX)) {
            return;
        }
    }
}

struct CloseOnDrop<'a>(&'a Queue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The longest sleep of the thread.
const SLEEP_MAX: Duration = Duration::from_secs(10);
