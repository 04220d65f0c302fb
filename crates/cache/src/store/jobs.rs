//! How a zone's thread does the queued jobs, and how it handles a failing disk.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use weir_net::log::{Level, Os};
use weir_net::{Instant, clock};

use super::check::{CHECKS_MAX, Checking};
use super::directory::{Run, Unread};
use super::file::FileRecord;
use super::label::{Label, Place};
use super::node::{Disk, Gone, Node};
use super::object::{Body, Forms, Object};
use super::purges;
use super::queue::{Job, QueuedRead};
use super::spool::{SPOOLS_MAX, Spool, SpoolProgress, Writing, write_whole};
use super::tier::{Tier, blocks};
use super::zone::Zone;

/// How long a failing disk is not used.
const REST: Duration = Duration::from_secs(10);

/// A cold body of up to this size is read into memory, even if the memory tier does not keep it.
const READ_BYTES_MAX: u64 = 256 << 10;

/// The state of the disk tier between turns of the thread.
#[derive(Default)]
pub(super) struct Hand {
    writing: Vec<Writing>,
    checking: VecDeque<Checking>,
    /// The failure of the disk was logged.
    has_complained: bool,
}

impl Drop for Hand {
    /// The thread ends early: it gives up its writes, so that no task waits for it.
    fn drop(&mut self) {
        self.writing.iter().for_each(|writing| writing.spool.give_up());
    }
}

impl Zone {
    /// Opens the directory; if that fails, the zone stays in memory only.
    pub(super) fn open(&self) {
        if let Some(tier) = &self.tier
            && let Err(error) = self.open_tier(tier)
        {
            tier.errors.fetch_add(1, Ordering::Relaxed);
            let what =
                format_args!("weir cannot use \"{}\" and keeps objects in memory only ", tier.directory.path.display());
            self.complain(Level::Crit, what, Os(&error));
        }
    }

    /// Makes the directories, reads the recorded purges, and enables the use of files. After an error the zone has
    /// only its memory.
    fn open_tier(&self, tier: &Tier) -> io::Result<()> {
        let run = Run { process: std::process::id(), start: clock::unix_ms() };
        tier.directory.make()?;
        let restored = purges::read(&tier.directory.path)?;
        if restored.is_lost {
            self.complain(
                Level::Error,
                "weir cannot read the record of purges, so it treats all objects on disk as purged",
                "",
            );
        }
        self.bans.restore(restored.bans, restored.newest);
        // On a full disk the existing record is enough, if it could be read.
        if let Err(error) = tier.rewrite_purges(|| (self.bans.all(), self.bans.newest()))
            && (restored.is_lost || tier.append_purges().is_err())
        {
            return Err(error);
        }
        tier.is_cold.store(true, Ordering::Release);
        let _ = tier.run.set(run);
        Ok(())
    }

    /// Does the waiting jobs; true if there is more to do at once.
    pub(super) fn serve_queue(&self, hand: &mut Hand, now: Instant) -> bool {
        self.serve_loads(hand, now);
        let checks = self.serve_check(hand, now);
        if let Some(job) = self.queue.next_job() {
            let bytes = job.bytes();
            self.serve_job(job, hand, now);
            self.queue.done(bytes);
            return true;
        }
        self.serve_writing(hand, now) || checks
    }

    fn serve_loads(&self, hand: &mut Hand, now: Instant) {
        while let Some(load) = self.queue.next_load() {
            let read = self.tier().and_then(|(tier, _)| self.read_cold(tier, &load, now));
            let object = match read {
                Some((serial, record, Body::File(body))) => {
                    if hand.checking.len() < CHECKS_MAX {
                        hand.checking.push_back(Checking::new(load, serial, record, body));
                        continue;
                    }
                    None
                }
                Some((serial, record, body)) => self.thaw(load.place, serial, record, body, now),
                None => None,
            };
            self.answer(load, object);
        }
    }

    fn answer(&self, load: QueuedRead, object: Option<Arc<Object>>) {
        self.queue.loaded(load.place);
        load.answer.give(object);
    }

    /// Gives the check of one long body a turn; true if there is more to do at once.
    fn serve_check(&self, hand: &mut Hand, now: Instant) -> bool {
        let Some(mut checking) = hand.checking.pop_front() else { return false };
        let Some((tier, _)) = self.tier() else { return false };
        match checking.turn() {
            Ok(false) => hand.checking.push_back(checking),
            Ok(true) => {
                let Checking { load, serial, record, body, .. } = checking;
                let object = self.thaw(load.place, serial, record, Body::File(body), now);
                self.answer(load, object);
            }
            Err(unread) => {
                let (label, serial) = (checking.record.label, checking.serial);
                // A newer object may have taken its place meanwhile.
                if self.with_node(&label, |node| node.serial == serial) {
                    self.drop_corrupt(tier, &tier.directory.path_of(&label), &unread, true);
                    self.forget_file(&label, serial);
                }
                self.answer(checking.load, None);
            }
        }
        true
    }

    fn serve_job(&self, job: Job, hand: &mut Hand, now: Instant) {
        let Some((tier, run)) = self.tier() else { return };
        match job {
            Job::Write(object) => {
                if !self.is_wanted(&object) {
                    return;
                }
                let written = write_whole(&tier.directory, run, &object);
                self.settle_write(tier, hand, &object, written.as_ref().copied(), now);
            }
            Job::Spool(spool) => self.begin_spool(tier, run, hand, spool, now),
            Job::Remove(label) => {
                if !self.is_on_disk(&label)
                    && let Err(error) = tier.directory.remove(&label)
                {
                    self.fail(tier, hand, &error, now);
                }
            }
            // A file that was removed meanwhile needs no mark.
            Job::Mark(label) => drop(tier.directory.mark_soft(&label)),
        }
    }

    fn begin_spool(&self, tier: &Tier, run: Run, hand: &mut Hand, spool: Arc<Spool>, now: Instant) {
        if hand.writing.len() >= SPOOLS_MAX {
            tier.skipped.fetch_add(1, Ordering::Relaxed);
            return spool.give_up();
        }
        match Writing::begin(&tier.directory, run, spool.clone()) {
            Ok(writing) => hand.writing.push(writing),
            Err(error) => {
                spool.give_up();
                self.fail(tier, hand, &error, now);
            }
        }
    }

    /// Gives each long body a turn; true if there is more to do at once.
    fn serve_writing(&self, hand: &mut Hand, now: Instant) -> bool {
        let Some((tier, run)) = self.tier() else { return false };
        let mut has_more = false;
        let mut rest = Vec::with_capacity(hand.writing.len());
        for mut writing in std::mem::take(&mut hand.writing) {
            let spool = writing.spool.clone();
            match writing.turn() {
                Ok(SpoolProgress::Waits) => rest.push(writing),
                Ok(SpoolProgress::More) => {
                    has_more = true;
                    rest.push(writing);
                }
                Ok(SpoolProgress::Whole(body)) => match spool.take_leader() {
                    // The last byte is written, but the fill has not handed over its leader yet.
                    None => rest.push(writing),
                    Some((leader, began)) => match writing.keep(&tier.directory, run) {
                        Ok(()) => {
                            // A purge may refuse the object; the write worked all the same.
                            let _ = leader.keep(&spool.object, body, began);
                            self.note_success(tier, hand);
                        }
                        // The leader is dropped, and a waiter fetches.
                        Err(error) => self.fail(tier, hand, &error, now),
                    },
                },
                Err(error) => {
                    spool.give_up();
                    if error.kind() != io::ErrorKind::UnexpectedEof {
                        self.fail(tier, hand, &error, now);
                    }
                }
            }
            self.serve_loads(hand, now);
        }
        hand.writing = rest;
        has_more
    }

    /// Reads a cold object, with its body if it is short enough; also returns its number in the index.
    fn read_cold(&self, tier: &Tier, load: &QueuedRead, now: Instant) -> Option<(u64, FileRecord, Body)> {
        let path = tier.directory.path_of(&load.label);
        let memory_max = self.object_bytes_max.max(READ_BYTES_MAX);
        match tier.directory.read(&path, memory_max) {
            Ok((record, body)) => {
                let serial = match load.serial {
                    0 => self.adopt(&record, now)?,
                    serial => serial,
                };
                Some((serial, record, body))
            }
            Err(Unread::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                // The file is missing: users often empty the directory of a cache.
                self.forget_file(&load.label, load.serial);
                None
            }
            Err(unread) => {
                self.drop_corrupt(tier, &path, &unread, true);
                self.forget_file(&load.label, load.serial);
                None
            }
        }
    }

    /// Removes a file that cannot be used, and logs a line.
    pub(super) fn drop_corrupt(&self, tier: &Tier, path: &std::path::Path, unread: &Unread, is_told: bool) {
        let shown = path.display();
        let level = if unread.is_damage() { Level::Crit } else { Level::Notice };
        tier.errors.fetch_add(u64::from(unread.is_damage()), Ordering::Relaxed);
        match unread {
            Unread::Io(error) if is_told => self.complain(level, format_args!("open() \"{shown}\" failed "), Os(error)),
            Unread::Corrupt(corrupt) => {
                if is_told {
                    self.complain(level, format_args!("weir removed the cache file \"{shown}\": "), corrupt.as_str());
                }
                let _ = std::fs::remove_file(path);
            }
            Unread::Io(_) => {}
        }
    }

    /// Records the result of a write in the index.
    fn settle_write(
        &self,
        tier: &Tier,
        hand: &mut Hand,
        object: &Object,
        written: Result<u64, &io::Error>,
        now: Instant,
    ) {
        match written {
            Ok(bytes) => {
                self.note_success(tier, hand);
                if !self.note_file(object, Disk::Blocks(blocks(bytes))) {
                    let _ = tier.directory.remove(&object.label);
                }
            }
            Err(error) => {
                self.note_file(object, Disk::None);
                // A restart would find the file of an older object again.
                let _ = tier.directory.remove(&object.label);
                self.fail(tier, hand, error, now);
            }
        }
    }

    /// A write succeeded: a failure of the disk is over.
    fn note_success(&self, tier: &Tier, hand: &mut Hand) {
        if std::mem::take(&mut hand.has_complained) {
            tier.resting_until_s.store(0, Ordering::Release);
            self.complain(Level::Notice, "the disk works again", "");
        }
    }

    /// A write failed: do not use the disk for a while, and log this once.
    fn fail(&self, tier: &Tier, hand: &mut Hand, error: &io::Error, now: Instant) {
        tier.errors.fetch_add(1, Ordering::Relaxed);
        let until = self.second(now).saturating_add(REST.as_secs() as u32);
        tier.resting_until_s.store(until, Ordering::Release);
        if !std::mem::replace(&mut hand.has_complained, true) {
            let path = tier.directory.path.display();
            let what = format_args!(
                "writing to \"{path}\" failed, weir keeps objects in memory only until writing works again "
            );
            self.complain(Level::Crit, what, Os(error));
        }
    }

    /// Puts an object that was read into its node of the index, if the node still belongs to it.
    fn thaw(&self, place: Place, serial: u64, record: FileRecord, body: Body, now: Instant) -> Option<Arc<Object>> {
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let at = shard.find(place.hash, &record.label.key, record.label.variant)?;
        let node = shard.node(at).filter(|node| node.serial == serial)?;
        let object = Arc::new(Object {
            label: node.label.clone(),
            head: record.head,
            times: record.times,
            body,
            parsed: OnceLock::new(),
            serial,
            born: node.checked,
            soft_purged: AtomicBool::new(node.soft_purged || record.soft_purged),
            is_spooled: false,
            stays_in_memory: false,
            forms: Forms::default(),
            is_being_packed: AtomicBool::new(false),
        });
        let is_there = self.survives(&mut shard, at, &mut gone);
        if is_there {
            shard.touch(at, self.second(now));
            shard.admit(at, object.clone(), &mut gone);
        }
        drop(shard);
        self.finish(gone);
        is_there.then_some(object)
    }

    fn is_wanted(&self, object: &Object) -> bool {
        self.with_node(&object.label, |node| node.serial == object.serial && node.disk == Disk::Pending)
    }

    fn is_on_disk(&self, label: &Label) -> bool {
        self.with_node(label, |node| node.disk != Disk::None)
    }

    fn with_node(&self, label: &Label, ask: impl FnOnce(&Node) -> bool) -> bool {
        let place = self.place_of(&label.key, label.variant);
        let mut shard = self.shard(place);
        let Some(at) = shard.find(place.hash, &label.key, label.variant) else { return false };
        shard.node(at).is_some_and(|node| ask(node))
    }

    /// Records the place of an object on disk; false if the index no longer has the object.
    fn note_file(&self, object: &Object, disk: Disk) -> bool {
        let label = &object.label;
        let place = self.place_of(&label.key, label.variant);
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let Some(at) = shard.find(place.hash, &label.key, label.variant) else { return false };
        let Some(node) = shard.node(at) else { return false };
        if node.serial != object.serial {
            // A newer object waits to be written and will replace the file.
            return node.disk == Disk::Pending;
        }
        shard.set_disk(at, disk);
        shard.release(at);
        if disk == Disk::None && shard.node(at).is_some_and(|node| node.memory.is_none()) {
            shard.remove(at, &mut gone);
        }
        drop(shard);
        self.finish(gone);
        true
    }

    /// Removes an unusable file from the index.
    fn forget_file(&self, label: &Label, serial: u64) {
        let place = self.place_of(&label.key, label.variant);
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        if let Some(at) = shard.find(place.hash, &label.key, label.variant)
            && let Some(node) = shard.node(at)
            && node.serial == serial
            && node.serial != 0
        {
            let is_nowhere = node.memory.is_none();
            shard.set_disk(at, Disk::None);
            if is_nowhere {
                shard.remove(at, &mut gone);
            }
        }
        drop(shard);
        self.finish(gone);
    }
}
