//! A zone's thread: its start and its duties. It reads the directory after a start, applies purges to objects that
//! nobody requests, and removes objects that are unused or too many. It works in slices, as the parameters of
//! `proxy_cache_path` say.

use std::fs::ReadDir;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use weir_net::identity::assume;
use weir_net::log::Level;
use weir_net::process::Identity;
use weir_net::{Instant, clock};

use super::ban::Force;
use super::directory::{FileKind, Unread, named};
use super::file::FileRecord;
use super::jobs::Hand;
use super::label::Variant;
use super::node::{BLOCK_BYTES, Disk, Gone};
use super::queue::ReadQueue;
use super::settings::Tuning;
use super::tier::{Tier, blocks};
use super::zone::Zone;

/// The longest sleep of the thread.
const SLEEP_MAX: Duration = Duration::from_secs(10);

/// The interval of the manager (nginx: 10 s).
const MANAGE_EVERY: Duration = Duration::from_secs(10);

/// The most nodes per lock of a shard while purges are applied.
const LURK_NODES: u32 = 256;

/// The deepest nesting of directories that the loader enters: `levels` has three at most.
const DEPTH_MAX: usize = 4;

/// The most log lines about unusable files per start; the rest is only counted.
const LINES_MAX: u64 = 10;

/// The thread's state between turns.
#[derive(Default)]
pub(super) struct Keeper {
    pub hand: Hand,
    loader: Option<Loader>,
    manage_at: Option<Instant>,
    lurk: Option<Lurk>,
    /// The purges up to this number are applied to all nodes.
    lurked: Option<u32>,
}

struct Loader {
    /// The directories being read, the innermost last.
    open: Vec<(PathBuf, ReadDir)>,
    next_at: Instant,
    dropped: u64,
    /// Whether one of them was damaged, and not only of another program or version.
    has_damage: bool,
    is_temp_done: bool,
}

/// A walk through all nodes that applies purges up to a number.
struct Lurk {
    up_to: u32,
    shard: usize,
    at: u32,
}

impl Keeper {
    /// One turn: waiting jobs first, then a slice of each duty; returns how long there is nothing to do.
    pub fn turn(&mut self, zone: &Zone, now: Instant) -> Duration {
        let has_more = zone.serve_queue(&mut self.hand, now);
        let lurks = self.lurk(zone);
        let load_in = self.load(zone, now);
        let manage_in = self.manage(zone, now);
        if has_more || lurks {
            return Duration::ZERO;
        }
        load_in.min(manage_in)
    }

    /// Applies purges to some nodes; true if there are more nodes.
    fn lurk(&mut self, zone: &Zone) -> bool {
        let Some(lurk) = &mut self.lurk else {
            return self.begin_to_lurk(zone);
        };
        if let Some(places) = zone.lurk(lurk.shard, lurk.at) {
            lurk.at += LURK_NODES;
            if lurk.at >= places {
                (lurk.shard, lurk.at) = (lurk.shard + 1, 0);
            }
        } else {
            self.lurked = Some(lurk.up_to);
            self.lurk = None;
        }
        true
    }

    /// Begins a walk if there are purges to apply, and removes the applied ones; true if a walk begins.
    fn begin_to_lurk(&mut self, zone: &Zone) -> bool {
        if zone.bans.len() == 0 || zone.is_cold() {
            return false;
        }
        if let Some(lurked) = self.lurked {
            // A fetch that began before a purge must be checked against it at its end.
            zone.forget_purges(lurked.min(zone.flights.oldest().unwrap_or(u32::MAX)));
        }
        let newest = zone.bans.newest();
        if zone.bans.len() > 0 && self.lurked != Some(newest) {
            self.lurk = Some(Lurk { up_to: newest, shard: 0, at: 0 });
        }
        self.lurk.is_some()
    }

    /// Reads some files of the directory; returns the time until the next slice.
    fn load(&mut self, zone: &Zone, now: Instant) -> Duration {
        let Some((tier, _)) = zone.tier().filter(|(tier, _)| tier.is_cold.load(Ordering::Acquire)) else {
            return Duration::MAX;
        };
        let loader = self.loader.get_or_insert_with(|| {
            let path = tier.directory.path.clone();
            let open = std::fs::read_dir(&path).map(|entries| vec![(path, entries)]).unwrap_or_default();
            Loader { open, next_at: now, dropped: 0, has_damage: false, is_temp_done: false }
        });
        if now < loader.next_at {
            return loader.next_at - now;
        }
        let tuning = zone.tuning();
        let began = clock::precise();
        for _ in 0..tuning.loader_files.max(1) {
            if !loader.step(zone, tier, now) {
                if loader.dropped > LINES_MAX {
                    let level = if loader.has_damage { Level::Crit } else { Level::Notice };
                    zone.complain(level, loader.dropped, " cache files were removed");
                }
                self.loader = None;
                tier.is_cold.store(false, Ordering::Release);
                return Duration::MAX;
            }
            zone.serve_queue(&mut self.hand, now);
            if clock::precise() - began >= tuning.loader_threshold {
                break;
            }
        }
        loader.next_at = now + tuning.loader_sleep;
        tuning.loader_sleep
    }

    /// Removes some objects that are unused or too many; returns the time until the next slice.
    fn manage(&mut self, zone: &Zone, now: Instant) -> Duration {
        let due = *self.manage_at.get_or_insert(now + MANAGE_EVERY);
        if now < due {
            return due - now;
        }
        let tuning = zone.tuning();
        let began = clock::precise();
        let mut has_more = true;
        for _ in 0..tuning.manager_files.max(1) {
            has_more = zone.expire_one(&tuning, now);
            if !has_more || clock::precise() - began >= tuning.manager_threshold {
                break;
            }
        }
        let after = if has_more { tuning.manager_sleep } else { MANAGE_EVERY };
        self.manage_at = Some(now + after);
        after
    }
}

impl Loader {
    /// Handles one entry; false if there are no more.
    fn step(&mut self, zone: &Zone, tier: &Tier, now: Instant) -> bool {
        let Some((path, entries)) = self.open.last_mut() else {
            return self.enter_temp(tier);
        };
        let Some(entry) = entries.next() else {
            self.open.pop();
            return true;
        };
        let Ok(entry) = entry else { return true };
        let path = path.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                if self.open.len() < DEPTH_MAX
                    && let Ok(entries) = std::fs::read_dir(&path)
                {
                    self.open.push((path, entries));
                }
            }
            Ok(kind) if kind.is_file() => self.file(zone, tier, &path, now),
            _ => {}
        }
        true
    }

    /// After the directory, enters the one for temporary files to remove abandoned files.
    fn enter_temp(&mut self, tier: &Tier) -> bool {
        let Some(temp) = tier.directory.temp_path.clone().filter(|_| !self.is_temp_done) else { return false };
        self.is_temp_done = true;
        let Ok(entries) = std::fs::read_dir(&temp) else { return false };
        self.open.push((temp, entries));
        true
    }

    fn file(&mut self, zone: &Zone, tier: &Tier, path: &Path, now: Instant) {
        let Some(run) = tier.run.get().copied() else { return };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match named(name, run, is_running) {
            FileKind::Abandoned => drop(std::fs::remove_file(path)),
            FileKind::Object if path == tier.directory.path_of_name(name) => match tier.directory.peek(path) {
                Ok(record) => drop(zone.adopt(&record, now)),
                Err(unread) => {
                    self.dropped += u64::from(matches!(unread, Unread::Corrupt(_)));
                    self.has_damage |= unread.is_damage();
                    zone.drop_corrupt(tier, path, &unread, self.dropped <= LINES_MAX);
                }
            },
            // It belongs to other `levels`, so it would never be found.
            FileKind::Object => drop(std::fs::remove_file(path)),
            FileKind::Other => {}
        }
    }
}

/// The thread of a zone; it runs as long as the zone exists.
fn keep(zone: &Weak<Zone>, queue: &ReadQueue) {
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

impl Zone {
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
        // The thread sends no message: dropping its end of the channel is the signal.
        let _ = is_opened.recv() as Result<(), _>;
        Ok(())
    }

    /// Takes a file into the index; returns the number of its object. `None`, and the file is removed, if a purge
    /// names it or a newer object has its place.
    pub(super) fn adopt(&self, record: &FileRecord, now: Instant) -> Option<u64> {
        let label = &record.label;
        // If the record of purges was lost, the numbers have no meaning.
        let seen = if record.purges <= self.bans.newest() { record.purges } else { 0 };
        let (force, checked) = self.bans.judge(seen, label);
        let place = self.place_of(&label.key, label.variant);
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let is_known = shard.find(place.hash, &label.key, label.variant).and_then(|at| {
            let node = shard.node(at)?;
            (node.serial != 0).then_some((node.serial, node.disk))
        });
        if let Some((serial, disk)) = is_known {
            if disk == Disk::None {
                gone.files.push(label.clone());
            }
            drop(shard);
            self.finish(gone);
            // An object that is about to be written is newer than the file; only this thread writes.
            return matches!(disk, Disk::Blocks(_)).then_some(serial);
        }
        if force == Some(Force::Hard) {
            gone.files.push(label.clone());
            drop(shard);
            self.finish(gone);
            return None;
        }
        let at = shard.place(place.hash, label, self.second(now), &mut gone);
        shard.relabel(at, label);
        let serial = self.next_serial();
        if let Some(node) = shard.node(at) {
            (node.serial, node.checked) = (serial, checked);
            node.soft_purged = record.soft_purged || force == Some(Force::Soft);
        }
        if force == Some(Force::Soft) {
            gone.marks.push(label.clone());
        }
        shard.set_disk(at, Disk::Blocks(blocks(record.body_at + record.body_len)));
        drop(shard);
        self.finish(gone);
        if label.variant != Variant::NONE {
            self.note_variant(label, now);
        }
        Some(serial)
    }

    /// Applies purges to some nodes from a place on; returns the shard's number of places, `None` after the last
    /// shard.
    fn lurk(&self, shard: usize, from: u32) -> Option<u32> {
        let mut gone = Gone::default();
        let mut shard = self.shards.get(shard)?.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let places = shard.places();
        for at in from..places.min(from + LURK_NODES) {
            self.survives(&mut shard, at, &mut gone);
        }
        drop(shard);
        self.finish(gone);
        Some(places)
    }

    /// Removes purges that are applied everywhere.
    fn forget_purges(&self, up_to: u32) -> bool {
        let has_forgotten = self.bans.forget(up_to);
        if let Some((tier, _)) = self.tier().filter(|_| has_forgotten)
            && tier.rewrite_purges(|| (self.bans.all(), self.bans.newest())).is_err()
        {
            tier.errors.fetch_add(1, Ordering::Relaxed);
        }
        has_forgotten
    }

    /// Removes one object that is unused or exceeds a limit; false if there is none.
    fn expire_one(&self, tuning: &Tuning, now: Instant) -> bool {
        let now_s = self.second(now);
        let inactive_s = u32::try_from(tuning.inactive.as_secs()).unwrap_or(u32::MAX);
        let mut oldest: Option<(u32, usize)> = None;
        let mut size = 0;
        for (number, shard) in self.shards.iter().enumerate() {
            let mut shard = shard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            size += shard.blocks * BLOCK_BYTES;
            let Some(at) = shard.oldest() else { continue };
            let Some(used_s) = shard.node(at).map(|node| node.used_s) else { continue };
            if oldest.is_none_or(|(least, _)| used_s < least) {
                oldest = Some((used_s, number));
            }
        }
        let Some((used_s, number)) = oldest else { return false };
        let is_unused = now_s.saturating_sub(used_s) > inactive_s;
        if !is_unused && !self.is_too_much(tuning, size) {
            return false;
        }
        let Some(shard) = self.shards.get(number) else { return false };
        let mut gone = Gone::default();
        let mut shard = shard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(at) = shard.oldest() {
            shard.evicted += u64::from(!is_unused);
            shard.remove(at, &mut gone);
        }
        drop(shard);
        self.finish(gone);
        true
    }

    fn is_too_much(&self, tuning: &Tuning, size: u64) -> bool {
        if size == 0 {
            return false;
        }
        let lacks_room = |(tier, _): (&Tier, _)| {
            let free = weir_net::path::free_bytes(&tier.directory.path);
            tuning.min_free.is_some_and(|least| free.is_ok_and(|free| free < least))
        };
        tuning.max_size.is_some_and(|most| size > most)
            || (tuning.min_free.is_some() && self.tier().is_some_and(lacks_room))
    }
}

struct CloseOnDrop<'a>(&'a ReadQueue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
/// Whether a process runs: one that has ended, and that its parent has not asked for, writes no more.
fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    // The name, in parentheses, may have any characters; the state follows it.
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X'])))
}
