//! A run of a recorder: its queue and its counts.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use weir_http::hold::board::lock;
use weir_meter::live::{RecordingLosses, RecordingTotals};
use weir_net::{Instant, clock};
use weir_recording::Secrets;
use weir_recording::model::{Beginning, Losses, RecordedConfiguration};

use super::block::RecordBlock;
use super::key::RecordKey;
use super::options::RecordOptions;

/// Blocks that wait for the thread, at most.
const QUEUE_BLOCKS_MAX: usize = 64;

/// The counts of a run. The thread writes them, but for `queue`, `large` and `unreceived`.
#[derive(Debug, Default)]
pub struct RunCounts {
    /// Exchanges in blocks that the thread has got.
    pub received: AtomicU64,
    /// Exchanges in the file.
    pub recorded: AtomicU64,
    /// Messages in the file.
    pub messages: AtomicU64,
    /// Lost because the queue was full.
    pub queue: AtomicU64,
    /// Lost because they are larger than a block.
    pub large: AtomicU64,
    /// Exchanges of both: the thread has not got them.
    pub unreceived: AtomicU64,
    /// Lost because the file had its largest size.
    pub size: AtomicU64,
    /// Lost because the file could not be written.
    pub writing: AtomicU64,
    /// The size of the file.
    pub file_bytes: AtomicU64,
}

/// A run.
pub struct RecordRun {
    /// Its number in the process.
    pub number: u64,
    /// The options of the file.
    pub options: Arc<RecordOptions>,
    /// The share of clients that are recorded, in millionths.
    pub share_ppm: u32,
    /// Replaces secrets.
    pub secrets: Secrets,
    /// The moment from which offsets count.
    pub begun: Instant,
    /// The same in microseconds since 1970.
    pub unix_us: u64,
    /// When it ends by itself.
    pub until: Option<Instant>,
    /// Its counts.
    pub counts: RunCounts,
    /// Blocks that workers fill now.
    pub open_blocks: AtomicUsize,
    configurations: Mutex<Vec<Arc<RecordedConfiguration>>>,
    send: SyncSender<Option<RecordBlock>>,
    receive: Mutex<Option<Receiver<Option<RecordBlock>>>>,
    is_closing: AtomicBool,
    has_ended: (Mutex<bool>, Condvar),
}

impl RecordRun {
    /// A run that has no thread yet.
    pub fn new(
        number: u64,
        options: Arc<RecordOptions>,
        share_ppm: u32,
        key: RecordKey,
        known: Vec<Arc<RecordedConfiguration>>,
        until: Option<Instant>,
    ) -> Arc<RecordRun> {
        let (send, receive) = sync_channel(QUEUE_BLOCKS_MAX);
        let unix = clock::precise_wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Arc::new(RecordRun {
            number,
            options,
            share_ppm,
            secrets: Secrets::new(key.0),
            begun: clock::precise(),
            unix_us: u64::try_from(unix.as_micros()).unwrap_or(u64::MAX),
            until,
            counts: RunCounts::default(),
            open_blocks: AtomicUsize::new(0),
            configurations: Mutex::new(known),
            send,
            receive: Mutex::new(Some(receive)),
            is_closing: AtomicBool::new(false),
            has_ended: Default::default(),
        })
    }

    /// The blocks that workers give, for its thread; `None` if a thread has them already.
    pub fn blocks(&self) -> Option<Receiver<Option<RecordBlock>>> {
        lock(&self.receive).take()
    }

    /// Adds a configuration that exchanges may name.
    pub fn know(&self, conf: Arc<RecordedConfiguration>) {
        lock(&self.configurations).push(conf);
    }

    /// The configuration of that generation.
    pub fn configuration(&self, generation: u64) -> Option<Arc<RecordedConfiguration>> {
        lock(&self.configurations).iter().rev().find(|known| known.generation == generation).cloned()
    }

    /// Its beginning, as a file has it.
    pub fn beginning(&self) -> Beginning {
        Beginning {
            unix_us: self.unix_us,
            program: concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned(),
            share_ppm: self.share_ppm,
            key_id: self.secrets.id(),
            has_bodies: self.options.has_bodies,
        }
    }

    /// Takes a block of a worker, or drops it and counts its exchanges. Never waits.
    pub fn hand_over(&self, block: RecordBlock) {
        if let Err(TrySendError::Full(Some(block)) | TrySendError::Disconnected(Some(block))) =
            self.send.try_send(Some(block))
        {
            self.counts.unreceived.fetch_add(block.exchanges, Ordering::Relaxed);
            self.counts.queue.fetch_add(block.count(), Ordering::Relaxed);
        }
        self.open_blocks.fetch_sub(1, Ordering::AcqRel);
    }

    /// Counts an exchange that no block can hold.
    pub fn too_large(&self) {
        self.counts.unreceived.fetch_add(1, Ordering::Relaxed);
        self.counts.large.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message that no block can hold.
    pub fn too_large_message(&self) {
        self.counts.large.fetch_add(1, Ordering::Relaxed);
    }

    /// Exchanges of recorded clients so far, also those that are lost. Those in blocks that workers fill are not among them.
    pub fn exchanges(&self) -> u64 {
        self.counts.received.load(Ordering::Relaxed) + self.counts.unreceived.load(Ordering::Relaxed)
    }

    /// Everything that the recording lacks so far.
    pub fn losses(&self) -> Losses {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let RunCounts { queue, large, size, writing, .. } = &self.counts;
        Losses { queue: of(queue), size: of(size), writing: of(writing), large: of(large) }
    }

    /// Lets the thread end, once it has the blocks of all workers.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        // A full queue wakes the thread as well.
        let _ = self.send.try_send(None);
    }

    /// Waits until the thread has ended, but not longer than that.
    pub fn wait(&self, until: Instant) {
        let (ended, told) = &self.has_ended;
        let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = until.saturating_duration_since(clock::precise());
        drop(told.wait_timeout_while(ended, patience, |ended| !*ended));
    }

    /// Whether the run ends.
    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        *lock(&self.has_ended.0)
    }

    /// The thread has ended.
    pub fn ended(&self) {
        let (ended, told) = &self.has_ended;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
    }

    /// Its losses, as the API shows them.
    pub fn lost(&self) -> RecordingLosses {
        let Losses { queue, size, writing, large } = self.losses();
        RecordingLosses { queue, size, writing, large }
    }

    /// Adds its counts to those of all runs.
    pub fn add_to(&self, totals: &mut RecordingTotals) {
        totals.exchanges += self.exchanges();
        totals.recorded += self.counts.recorded.load(Ordering::Relaxed);
        totals.lost.add(&self.lost());
    }
}
