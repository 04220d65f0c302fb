//! `buffer=`, `flush=`, `gzip`: lines that stay in memory longer than a turn.
//!
//! All workers share the buffer, so lines keep their order and `buffer=` limits the total (nginx: per worker). weir
//! writes the buffer when a line does not fit, when `flush=` has passed since its first line, before it reopens log
//! files, and at the end.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use weir_net::log::file::LogFile;
use weir_net::{timer, worker};

/// How a log is buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    /// The most bytes held back.
    pub size: usize,
    /// The longest time that lines are held back.
    pub flush: Option<Duration>,
    /// Compression level: each write is a gzip member.
    pub gzip: Option<u32>,
}

/// The lines held back for one file.
pub struct Buffer {
    /// The file of the lines.
    pub file: Arc<LogFile>,
    /// The parameters of the buffer.
    pub buffering: Buffering,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    /// The file that was open when the first line arrived.
    handle: Option<Arc<File>>,
    /// Counts first lines: a timer can see whether the lines it was set for are still here.
    number: u64,
}

/// All buffers in use. Adding one removes dead entries.
static BUFFERS: Mutex<Vec<Weak<Buffer>>> = Mutex::new(Vec::new());

thread_local! {
    /// The memory of the line being composed, reused for the next line.
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Writes the contents of all buffers.
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

    /// Appends a line that `write` composes. The buffer is not locked while `write` runs.
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

    /// Writes the contents of the buffer.
    pub fn flush(&self) {
        self.write_out(&mut self.held());
    }

    /// Adds a line; returns a number if it is the first.
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

    /// The bytes for the file: plain, or as a gzip member.
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
    /// The configuration of the buffer is no longer in use: write the rest.
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
