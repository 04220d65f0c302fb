//! `buffer=`, `flush=`, `gzip`: lines held back longer than a turn.
//!
//! The buffer is shared by all workers, so that lines keep their order and `buffer=` bounds what is held back
//! in all (nginx: for each worker). It is written when a line does not fit, when `flush=` has passed since
//! its first line, before log files are opened again, and at the end.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use weir_net::{timer, worker};

use weir_net::log::file::LogFile;

/// How a log is buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    /// Bytes held back at most.
    pub size: usize,
    /// Longest time they are.
    pub flush: Option<Duration>,
    /// Compression level: what is written is a gzip member.
    pub gzip: Option<u32>,
}

/// The lines held back for one file.
pub struct Buffer {
    /// Where they go.
    pub file: Arc<LogFile>,
    /// How long.
    pub buffering: Buffering,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    /// The file as it was when the first line came.
    handle: Option<Arc<File>>,
    /// Counts first lines: tells a timer whether the lines it was set for are still here.
    number: u64,
}

/// Every buffer in use. Dead entries are swept whenever one is added.
static BUFFERS: Mutex<Vec<Weak<Buffer>>> = Mutex::new(Vec::new());

thread_local! {
    /// The memory of the line being composed, used again for the next.
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Writes what all buffers hold back.
pub fn flush() {
    let buffers: Vec<Arc<Buffer>> =
        BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    for buffer in buffers {
        buffer.flush();
    }
}

impl Buffer {
    /// An empty buffer.
    pub fn new(file: Arc<LogFile>, buffering: Buffering) -> Arc<Buffer> {
        let buffer = Arc::new(Buffer { file, buffering, held: Mutex::default() });
        let mut buffers = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.retain(|known| known.strong_count() > 0);
        buffers.push(Arc::downgrade(&buffer));
        buffer
    }

    /// Appends a line that `write` composes. The buffer is not held while it does.
    pub fn append(self: &Arc<Self>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut line = LINE.take();
        line.clear();
        write(&mut line);
        let first = self.put(&line);
        LINE.set(line);
        if let (Some(number), Some(after)) = (first, self.buffering.flush) {
            let buffer = self.clone();
            worker::spawn(async move {
                timer::sleep(after).await;
                let mut held = buffer.held();
                if held.number == number {
                    buffer.write_out(&mut held);
                }
            });
        }
    }

    /// Writes what is held back.
    pub fn flush(&self) {
        self.write_out(&mut self.held());
    }

    /// Puts a line in; gives a number when it is the first.
    fn put(&self, line: &[u8]) -> Option<u64> {
        let mut held = self.held();
        let size = self.buffering.size;
        if held.bytes.len() + line.len() > size {
            self.write_out(&mut held);
        }
        if line.len() > size {
            if let Some(handle) = self.file.handle() {
                self.file.write_to(&handle, &self.encoded(line));
            }
            return None;
        }
        let is_first = held.bytes.is_empty();
        if is_first {
            held.handle = Some(self.file.handle()?);
            held.number += 1;
        }
        held.bytes.extend_from_slice(line);
        is_first.then_some(held.number)
    }

    fn write_out(&self, held: &mut Held) {
        if let Some(handle) = held.handle.take() {
            self.file.write_to(&handle, &self.encoded(&held.bytes));
        }
        held.bytes.clear();
    }

    /// As they go to the file: themselves, or as a gzip member.
    fn encoded<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(level) = self.buffering.gzip else {
            return Cow::Borrowed(bytes);
        };
        let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(level));
        // Writing to memory does not fail.
        let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
        written.map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Buffer {
    /// Its configuration is no longer in use: nothing may be lost.
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;

    use super::*;

    fn buffer(name: &str, size: usize, flush: Option<Duration>, gzip: Option<u32>) -> Arc<Buffer> {
        let path = std::env::temp_dir().join(format!("weir-buffer-{}-{name}", std::process::id()));
        let file = LogFile::shared(path.to_str().unwrap());
        file.open().unwrap();
        Buffer::new(file, Buffering { size, flush, gzip })
    }

    fn line(buffer: &Arc<Buffer>, text: &str) {
        buffer.append(|out| out.extend_from_slice(text.as_bytes()));
    }

    fn written(buffer: &Buffer) -> Vec<u8> {
        std::fs::read(buffer.file.path()).unwrap()
    }

    #[test]
    fn lines_wait_until_one_does_not_fit() {
        let log = buffer("fit", 8, None, None);
        line(&log, "aaaa\n");
        line(&log, "bbb\n");
        assert_eq!(written(&log), b"aaaa\n");
        line(&log, "longer than the buffer\n");
        assert_eq!(written(&log), b"aaaa\nbbb\nlonger than the buffer\n");
        line(&log, "c\n");
        flush();
        assert_eq!(written(&log), b"aaaa\nbbb\nlonger than the buffer\nc\n");
        line(&log, "d\n");
        let file = log.file.clone();
        drop(log);
        assert!(std::fs::read(file.path()).unwrap().ends_with(b"c\nd\n"));
        std::fs::remove_file(file.path()).unwrap();
    }

    #[test]
    fn flush_time_ends_the_wait() {
        let log = buffer("time", 1024, Some(Duration::from_millis(1)), None);
        let inside = log.clone();
        worker::block_on(async move {
            line(&inside, "soon\n");
            while written(&inside).is_empty() {
                timer::sleep(Duration::from_millis(1)).await;
            }
        })
        .unwrap();
        assert_eq!(written(&log), b"soon\n");
        std::fs::remove_file(log.file.path()).unwrap();
    }

    #[test]
    fn gzip_writes_members_that_together_are_one_file() {
        let log = buffer("gzip", 1024, None, Some(1));
        line(&log, "first\n");
        log.flush();
        line(&log, "second\n");
        log.flush();
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(written(&log).as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "first\nsecond\n");
        std::fs::remove_file(log.file.path()).unwrap();
    }
}
