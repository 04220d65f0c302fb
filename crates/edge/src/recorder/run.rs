//! A run of a recorder: its queue, its thread, its counts.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use weir_http::hold::board::lock;
use weir_net::identity::assume;
use weir_net::process::Identity;
use weir_net::{Instant, clock, worker};
use weir_recording::model::{Beginning, Losses, RecordedConfiguration};

use super::Recorder;
use super::block::Block;
use super::key::RecordKey;
use super::options::RecordOptions;
use super::segment::Segments;

/// Blocks that wait for the thread, at most.
const QUEUE_BLOCKS_MAX: usize = 64;

/// How often the thread looks at its file and at its end, if no block comes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The same at the end of the run.
const CLOSE_EVERY: Duration = Duration::from_millis(10);

/// How long the end of a run waits for blocks that workers still fill: each worker gives its block within a second.
const BLOCKS_PATIENCE: Duration = Duration::from_millis(2500);

/// The counts of a run. The thread writes them, but for `queue` and `large`.
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
    /// The key of the hashes.
    pub key: RecordKey,
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
    recorder: Weak<Recorder>,
    configurations: Mutex<Vec<Arc<RecordedConfiguration>>>,
    send: SyncSender<Option<Block>>,
    receive: Mutex<Option<Receiver<Option<Block>>>>,
    is_closing: AtomicBool,
    has_ended: (Mutex<bool>, Condvar),
}

impl RecordRun {
    /// A run that has no thread yet.
    #[allow(clippy::too_many_arguments)] // long: called in one place, with all that is known at the start
    pub fn new(
        recorder: &Arc<Recorder>,
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
            key,
            begun: clock::precise(),
            unix_us: u64::try_from(unix.as_micros()).unwrap_or(u64::MAX),
            until,
            counts: RunCounts::default(),
            open_blocks: AtomicUsize::new(0),
            recorder: Arc::downgrade(recorder),
            configurations: Mutex::new(known),
            send,
            receive: Mutex::new(Some(receive)),
            is_closing: AtomicBool::new(false),
            has_ended: Default::default(),
        })
    }

    /// Starts its thread, as `identity`. The thread first waits for the runs before it on the same file.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(self: &Arc<Self>, identity: Option<Identity>, before: Vec<Arc<RecordRun>>) -> io::Result<()> {
        let (run, receive) = (self.clone(), lock(&self.receive).take());
        let Some(receive) = receive else { return Ok(()) };
        worker::block_aside("recorder", move || {
            let _ends = Ends(run.clone());
            let until = clock::precise() + BLOCKS_PATIENCE;
            before.iter().for_each(|earlier| earlier.wait(until));
            drop(before);
            if assume(identity.as_ref()) {
                run.serve(&receive);
            }
        })
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
            key_id: self.key.id(),
            has_bodies: self.options.has_bodies,
        }
    }

    /// Takes a block of a worker, or drops it and counts its exchanges. Never waits.
    pub fn hand_over(&self, block: Block) {
        if let Err(TrySendError::Full(Some(block)) | TrySendError::Disconnected(Some(block))) =
            self.send.try_send(Some(block))
        {
            self.counts.queue.fetch_add(block.count(), Ordering::Relaxed);
        }
        self.open_blocks.fetch_sub(1, Ordering::AcqRel);
    }

    /// Counts an exchange that no block can hold.
    pub fn too_large(&self) {
        self.counts.large.fetch_add(1, Ordering::Relaxed);
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

    fn serve(&self, receive: &Receiver<Option<Block>>) {
        let Some(recorder) = self.recorder.upgrade() else { return };
        let mut segments = Segments::new(self, recorder.file().clone());
        drop(recorder);
        segments.begin();
        let mut closes = None;
        loop {
            let is_closing = self.is_closing.load(Ordering::Acquire);
            match receive.recv_timeout(if is_closing { CLOSE_EVERY } else { LOOK_EVERY }) {
                Ok(Some(block)) => {
                    segments.put(block);
                    continue;
                }
                Ok(None) => {}
                Err(RecvTimeoutError::Timeout) => segments.look(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = clock::precise();
            if is_closing {
                let until = *closes.get_or_insert(now + BLOCKS_PATIENCE);
                if now >= until || self.open_blocks.load(Ordering::Acquire) == 0 && self.drain(receive, &mut segments) {
                    break;
                }
            } else if self.until.is_some_and(|until| now >= until)
                && let Some(recorder) = self.recorder.upgrade()
            {
                recorder.expire(self.number);
            }
        }
        segments.end();
    }

    /// Writes the blocks that wait. A worker has put its block into the queue before it counts as given.
    fn drain(&self, receive: &Receiver<Option<Block>>, segments: &mut Segments<'_>) -> bool {
        while let Ok(block) = receive.try_recv() {
            block.into_iter().for_each(|block| segments.put(block));
        }
        true
    }
}

/// Reports that the thread has ended, for whatever reason.
struct Ends(Arc<RecordRun>);

impl Drop for Ends {
    fn drop(&mut self) {
        let (ended, told) = &self.0.has_ended;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
    }
}
