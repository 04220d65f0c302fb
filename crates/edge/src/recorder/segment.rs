//! The segments of a run: each goes from a beginning to an ending in one file. If the file is opened again by its name, or another
//! process wrote to it, the run goes on with another beginning.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_net::log::file::{self, LogFile};
use weir_net::log::{self, Level, Os};
use weir_net::{Instant, clock};
use weir_recording::model::{Ending, Losses, RecordingPart};

use super::block::RecordBlock;
use super::form;
use super::run::RecordRun;

/// Bytes of the largest size that are kept free for the losses and the ending.
const ENDING_BYTES: u64 = 4 << 10;

/// How long the thread lets another process finish its recording in the file before blocks are lost.
const OTHER_PATIENCE: Duration = Duration::from_secs(30);

/// How often it looks whether that process has finished.
const OTHER_EVERY: Duration = Duration::from_millis(20);

/// The shortest time between two lines about a file that cannot be written.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// The segments of a run, one after the other.
pub struct Segments<'r> {
    run: &'r RecordRun,
    file: Arc<LogFile>,
    open: Option<Segment>,
    base: Base,
    complained: Option<Instant>,
    is_full_told: bool,
}

/// A segment that has begun.
struct Segment {
    handle: Arc<File>,
    frames: form::SegmentFrames,
    /// Where the file ends, if nobody else writes to it.
    end: u64,
    /// The losses that the file has.
    told: Losses,
    /// The generations of configurations that the file has.
    generations: Vec<u64>,
}

/// The counts of the run that endings before have told.
#[derive(Default)]
struct Base {
    exchanges: u64,
    recorded: u64,
    lost: Losses,
}

/// Why nothing can be written.
enum Unwritten {
    /// The file has its largest size.
    Full,
    /// Another process records into the file.
    Taken,
    /// The system's reason.
    Failed(io::Error),
    /// The file is no whole recording.
    Damaged(String),
}

impl<'r> Segments<'r> {
    /// No segment yet.
    pub fn new(run: &'r RecordRun, file: Arc<LogFile>) -> Segments<'r> {
        Segments { run, file, open: None, base: Base::default(), complained: None, is_full_told: false }
    }

    /// Begins a segment, so that the file tells the beginning before the first exchange.
    pub fn begin(&mut self) {
        if let Err(why) = self.opened().map(drop) {
            self.complain(&why);
        }
    }

    /// Writes a block, or counts what is lost.
    pub fn put(&mut self, block: RecordBlock) {
        let counts = &self.run.counts;
        // A segment that begins here counts the block.
        let written = self.write(&block);
        counts.received.fetch_add(block.exchanges, Ordering::Relaxed);
        let lost = match written {
            Ok(()) => {
                counts.recorded.fetch_add(block.exchanges, Ordering::Relaxed);
                counts.messages.fetch_add(block.messages, Ordering::Relaxed);
                return;
            }
            Err(Unwritten::Full) => {
                self.tell_full();
                &counts.size
            }
            Err(why) => {
                self.complain(&why);
                &counts.writing
            }
        };
        lost.fetch_add(block.count(), Ordering::Relaxed);
    }

    /// Sees whether the file was opened again, and tells new losses.
    pub fn look(&mut self) {
        if self.opened().is_ok() {
            // The ending tells the losses that cannot be written now.
            let _ = self.tell_losses();
        }
    }

    /// Ends the last segment.
    pub fn end(&mut self) {
        self.end_segment();
    }

    /// The segment of the file as it is open now.
    fn opened(&mut self) -> Result<(), Unwritten> {
        let handle = self.file.handle().ok_or_else(|| Unwritten::Failed(io::ErrorKind::NotFound.into()))?;
        if let Some(open) = &mut self.open
            && !Arc::ptr_eq(&open.handle, &handle)
        {
            if is_same(&open.handle, &handle) {
                open.handle = handle.clone();
            } else {
                self.end_segment();
                self.is_full_told = false;
            }
        }
        self.wait_for_other(&handle)?;
        let length = handle.metadata().map_err(Unwritten::Failed)?.len();
        if let Some(open) = &self.open
            && open.end != length
        {
            // Another process wrote meanwhile, or somebody has cut the file: this segment has no ending. The next one
            // tells what this one has not told.
            self.open = None;
            let recorded = self.run.counts.recorded.load(Ordering::Relaxed);
            self.base.exchanges += recorded - self.base.recorded;
            self.base.recorded = recorded;
        }
        if self.open.is_none() {
            self.open = Some(self.new_segment(handle)?);
        }
        Ok(())
    }

    /// Waits while another process has the file; that process ends its recording when this one begins.
    fn wait_for_other(&self, handle: &File) -> Result<(), Unwritten> {
        if file::is_ours(handle) {
            return Ok(());
        }
        let until = clock::precise() + OTHER_PATIENCE;
        while clock::precise() < until && !self.run.is_closing() {
            std::thread::sleep(OTHER_EVERY);
            if file::is_ours(handle) {
                return Ok(());
            }
        }
        Err(Unwritten::Taken)
    }

    fn new_segment(&mut self, handle: Arc<File>) -> Result<Segment, Unwritten> {
        let length = handle.metadata().map_err(Unwritten::Failed)?.len();
        let whole = form::whole_length(&handle).map_err(Unwritten::Damaged)?;
        if whole < length {
            handle.set_len(whole).map_err(Unwritten::Failed)?;
            let path = self.file.path();
            let cut = length - whole;
            log::global(
                Level::Warn,
                format_args!(
                    "record \"{path}\": the last recorder did not end in order, {cut} bytes of a part are cut off"
                ),
            );
        }
        let frames = form::SegmentFrames::new(&self.run.beginning()).map_err(Unwritten::Failed)?;
        let mut segment = Segment { handle, frames, end: whole, told: self.base.lost, generations: Vec::new() };
        self.flush(&mut segment, self.run.options.max_bytes.saturating_sub(ENDING_BYTES))?;
        Ok(segment)
    }

    fn write(&mut self, block: &RecordBlock) -> Result<(), Unwritten> {
        self.opened()?;
        let Some(mut open) = self.open.take() else { return Err(Unwritten::Taken) };
        let written = self.write_to(&mut open, block);
        self.open = Some(open);
        written
    }

    fn write_to(&self, open: &mut Segment, block: &RecordBlock) -> Result<(), Unwritten> {
        let max = self.run.options.max_bytes.saturating_sub(ENDING_BYTES);
        if open.end >= max {
            return Err(Unwritten::Full);
        }
        let new = block.generations.iter().copied().filter(|generation| !open.generations.contains(generation));
        let new: Vec<u64> = new.collect();
        let composed = self.compose(open, block, &new);
        if composed.is_err() {
            // The composed bytes do not go to the file: the whole block counts as lost.
            drop(open.frames.take());
        }
        composed.map_err(Unwritten::Failed)?;
        self.flush(open, max)?;
        open.generations.extend(new);
        Ok(())
    }

    fn compose(&self, open: &mut Segment, block: &RecordBlock, generations: &[u64]) -> io::Result<()> {
        for conf in generations.iter().filter_map(|generation| self.run.configuration(*generation)) {
            open.frames.put(&RecordingPart::Configuration((*conf).clone()))?;
        }
        open.frames.put_block(block)
    }

    /// Writes the composed bytes as one, or none of them.
    fn flush(&self, open: &mut Segment, max: u64) -> Result<(), Unwritten> {
        let bytes = open.frames.take().map_err(Unwritten::Failed)?;
        let count = bytes.len() as u64;
        let written = if open.end + count > max {
            Err(Unwritten::Full)
        } else {
            (&*open.handle).write_all(&bytes).map_err(Unwritten::Failed)
        };
        match written {
            Ok(()) => {
                open.end += count;
                self.run.counts.file_bytes.store(open.end, Ordering::Relaxed);
                Ok(())
            }
            Err(Unwritten::Failed(error)) => {
                // A part of the bytes may be there, and what follows must begin behind a whole part.
                let _ = open.handle.set_len(open.end);
                Err(Unwritten::Failed(error))
            }
            Err(why) => Err(why),
        }
    }

    fn tell_losses(&mut self) -> Result<(), Unwritten> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let lost = self.run.losses();
        let mut told = Ok(());
        if lost != open.told {
            let part = RecordingPart::Lost(beyond(&lost, &open.told));
            told = open
                .frames
                .put(&part)
                .map_err(Unwritten::Failed)
                .and_then(|()| self.flush(&mut open, self.run.options.max_bytes.saturating_sub(ENDING_BYTES)));
            if told.is_ok() {
                open.told = lost;
            }
        }
        self.open = Some(open);
        told
    }

    fn end_segment(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        let (counts, lost) = (&self.run.counts, self.run.losses());
        let mut put = |part: RecordingPart| open.frames.put(&part);
        let mut composed = Ok(());
        if lost != open.told {
            composed = put(RecordingPart::Lost(beyond(&lost, &open.told)));
        }
        let now = Base { exchanges: self.run.exchanges(), recorded: counts.recorded.load(Ordering::Relaxed), lost };
        let before = std::mem::replace(&mut self.base, now);
        let lost = beyond(&lost, &before.lost);
        let ending = Ending {
            at_us: clock::precise().us_since(self.run.begun),
            exchanges: self.base.exchanges - before.exchanges,
            recorded: self.base.recorded - before.recorded,
            lost,
        };
        let composed = composed.and_then(|()| put(RecordingPart::Ending(ending)));
        let ended =
            composed.map_err(Unwritten::Failed).and_then(|()| self.flush(&mut open, self.run.options.max_bytes));
        if let Err(why) = ended {
            self.complain(&why);
        }
        file::give_back(&open.handle);
    }

    fn tell_full(&mut self) {
        if std::mem::replace(&mut self.is_full_told, true) {
            return;
        }
        let (path, max) = (self.file.path(), self.run.options.max_bytes);
        log::global(
            Level::Notice,
            format_args!(
                "record \"{path}\": the file has {max} bytes (\"max\"), what follows is counted but not recorded"
            ),
        );
    }

    fn complain(&mut self, why: &Unwritten) {
        let now = clock::precise();
        if self.complained.is_some_and(|last| now.saturating_duration_since(last) < COMPLAIN_EVERY) {
            return;
        }
        self.complained = Some(now);
        let path = self.file.path();
        match why {
            Unwritten::Full => self.tell_full(),
            Unwritten::Taken => log::global(
                Level::Warn,
                format_args!("record \"{path}\": another process records into the file, what this one sees is lost"),
            ),
            Unwritten::Failed(error) => {
                log::global(Level::Alert, format_args!("write() to \"{path}\" failed {}", Os(error)));
            }
            Unwritten::Damaged(what) => {
                log::global(Level::Alert, format_args!("record \"{path}\": {what}: move the file away and send USR1"));
            }
        }
    }
}

/// The losses in `all` that are not in `before`.
fn beyond(all: &Losses, before: &Losses) -> Losses {
    Losses {
        queue: all.queue - before.queue,
        size: all.size - before.size,
        writing: all.writing - before.writing,
        large: all.large - before.large,
    }
}

/// Whether both are the same file.
fn is_same(one: &File, other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |file: &File| file.metadata().ok().map(|facts| (facts.dev(), facts.ino()));
    id(one).is_some() && id(one) == id(other)
}
