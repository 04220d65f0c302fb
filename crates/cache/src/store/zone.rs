//! A zone: its parts, and the short functions that its verbs call. The verbs are in `store`, `index`, `forms`, `jobs`,
//! `keeper` and `tally`.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};

use weir_net::log::{self, Level};
use weir_net::{Instant, clock};

use super::ban::Bans;
use super::counters::Counters;
use super::directory::Run;
use super::flights::{self, Flights};
use super::label::{Key, Place, Variant};
use super::queue::ReadQueue;
use super::settings::{Settings, Tuning};
use super::shard::{Bounds, Shard};
use super::tier::Tier;

/// The most shards of a zone.
const SHARDS_MAX: usize = 64;

/// The least memory of a shard: the largest object in memory is half of it.
const SHARD_MEMORY_MIN: u64 = 4 << 20;

/// The part of an object's share of memory that is reserved for its head.
const HEAD_SHARE: u64 = 8 << 10;

/// The least room for keys in a shard.
const SHARD_KEYS_MIN: u64 = 256 << 10;

/// One cache.
pub struct Zone {
    pub(super) settings: Settings,
    hasher: RandomState,
    pub(super) shards: Box<[Mutex<Shard>]>,
    pub(super) flights: Flights,
    pub(super) bans: Bans,
    pub(super) counters: Counters,
    serial: AtomicU64,
    pub(super) purged: AtomicU64,
    pub(super) contended: AtomicU64,
    /// The start of the zone's time.
    epoch: Instant,
    pub(super) object_bytes_max: u64,
    body_bytes_max: u64,
    pub(super) tuning: RwLock<Tuning>,
    pub(super) queue: Arc<ReadQueue>,
    pub(super) tier: Option<Tier>,
    pub(super) is_started: AtomicBool,
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
            flights: Flights::new(flights::PARTS),
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

    /// Whether a body of that length can be kept at present: in memory, or on a working disk.
    pub fn takes(&self, length: u64, now: Instant) -> bool {
        self.takes_in_memory(length) || self.spools(length, now)
    }

    /// Whether the memory tier may hold a body of that length.
    #[inline]
    pub(super) fn takes_in_memory(&self, length: u64) -> bool {
        length <= self.body_bytes_max
    }

    /// Whether a body of that length would be written to a file while it arrives.
    pub(super) fn spools(&self, length: u64, now: Instant) -> bool {
        let has_room = self.tuning().max_size.is_none_or(|most| length <= most);
        has_room && self.tier.as_ref().is_some_and(|tier| tier.writes(self.second(now)))
    }

    /// Whether the directory is not fully read yet.
    #[inline]
    pub(super) fn is_cold(&self) -> bool {
        self.tier.as_ref().is_some_and(|tier| tier.is_cold.load(Ordering::Acquire))
    }

    pub(super) fn tuning(&self) -> Tuning {
        self.tuning.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[inline]
    pub(super) fn purges(&self) -> u32 {
        self.bans.newest()
    }

    #[inline]
    pub(super) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn second(&self, now: Instant) -> u32 {
        u32::try_from(now.saturating_duration_since(self.epoch).as_secs()).unwrap_or(u32::MAX)
    }

    #[inline]
    pub(super) fn place_of(&self, key: &[u8], variant: Variant) -> Place {
        // Not by `Hash`, which would also write the length: keys are compared after the look-up.
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        if variant != Variant::NONE {
            hasher.write(&variant.0);
        }
        Place { hash: hasher.finish(), variant }
    }

    #[inline]
    pub(super) fn shard(&self, place: Place) -> MutexGuard<'_, Shard> {
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

    /// The tier and its run, once the tier is open.
    pub(super) fn tier(&self) -> Option<(&Tier, Run)> {
        let tier = self.tier.as_ref()?;
        Some((tier, *tier.run.get()?))
    }

    /// Logs a line about this zone.
    pub(super) fn complain(&self, level: Level, what: impl std::fmt::Display, why: impl std::fmt::Display) {
        log::global(level, format_args!("cache \"{}\": {what}{why}", self.settings.name));
    }
}

impl Drop for Zone {
    fn drop(&mut self) {
        self.queue.close();
    }
}
