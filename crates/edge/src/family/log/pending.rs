//! Lines a worker holds back: to the end of its turn, or as long as `buffer=` and `flush=` say.
//!
//! One write takes all lines of a turn. Invariant: held-back lines go to the file as it was when the first of
//! them came, so lines never land in a file that a rotation opened after them.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use weir_net::{timer, worker};

use crate::log::file::LogFile;

/// `buffer=`, `flush=` and `gzip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    /// Bytes held back at most.
    pub size: usize,
    /// Longest time they are.
    pub flush: Option<Duration>,
    /// Compression level: what is written is a gzip member.
    pub gzip: Option<u32>,
}

/// Without `buffer=`, a turn's lines are written in pieces of about this size.
const TURN_MAX: usize = 64 << 10;

/// Empty buffers kept for the next turns.
const SPARE_MAX: usize = 4;

/// The lines for one file.
struct Held {
    file: Arc<LogFile>,
    handle: Arc<File>,
    bytes: Vec<u8>,
    buffering: Option<Buffering>,
    /// Tells a timer whether the lines it was set for are still here.
    number: u64,
}

impl Held {
    fn limit(&self) -> usize {
        self.buffering.map_or(TURN_MAX, |buffering| buffering.size)
    }

    fn write(&self, bytes: &[u8]) {
        match self.buffering.and_then(|buffering| buffering.gzip) {
            None => self.file.write_to(&self.handle, bytes),
            Some(level) if !bytes.is_empty() => {
                let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(level));
                // Writing to memory does not fail.
                if encoder.write_all(bytes).is_ok()
                    && let Ok(member) = encoder.finish()
                {
                    self.file.write_to(&self.handle, &member);
                }
            }
            Some(_) => {}
        }
    }
}

#[derive(Default)]
struct Pending {
    held: Vec<Held>,
    spare: Vec<Vec<u8>>,
    numbers: u64,
    has_hook: bool,
}

thread_local! {
    static PENDING: RefCell<Pending> = RefCell::default();
}

/// Appends a line that `write` composes; it must not append another.
pub fn append(file: &Arc<LogFile>, buffering: Option<&Buffering>, write: impl FnOnce(&mut Vec<u8>)) {
    let Some(mut held) = PENDING.with_borrow_mut(|pending| pending.take(file, buffering)) else { return };
    let start = held.bytes.len();
    write(&mut held.bytes);
    let timer = PENDING.with_borrow_mut(|pending| pending.put(held, start));
    if let Some((number, after)) = timer {
        worker::spawn(async move {
            timer::sleep(after).await;
            PENDING.with_borrow_mut(|pending| pending.write_out(|held| held.number == number));
        });
    }
}

/// Writes all this worker holds back: before log files are opened again, and at the end.
pub fn flush() {
    PENDING.with_borrow_mut(|pending| pending.write_out(|_| true));
}

impl Pending {
    /// Takes the lines for a file out, to be appended to; `None` when the file is not open.
    fn take(&mut self, file: &Arc<LogFile>, buffering: Option<&Buffering>) -> Option<Held> {
        if let Some(at) = self.held.iter().position(|held| Arc::ptr_eq(&held.file, file)) {
            return Some(self.held.swap_remove(at));
        }
        let handle = file.handle()?;
        self.numbers += 1;
        let bytes = self.spare.pop().unwrap_or_default();
        Some(Held { file: file.clone(), handle, bytes, buffering: buffering.copied(), number: self.numbers })
    }

    /// Puts lines back of which those before `start` were there already. Says whether a timer is to be set.
    fn put(&mut self, mut held: Held, start: usize) -> Option<(u64, Duration)> {
        let limit = held.limit();
        let mut is_first = start == 0;
        if held.bytes.len() > limit && !is_first {
            // nginx: what was held back leaves before the line that does not fit.
            held.write(held.bytes.get(..start).unwrap_or_default());
            held.bytes.drain(..start.min(held.bytes.len()));
            self.numbers += 1;
            held.number = self.numbers;
            is_first = true;
        }
        if held.bytes.len() > limit {
            held.write(&held.bytes);
            self.spare(held.bytes);
            return None;
        }
        let Some(buffering) = held.buffering else {
            if !self.hook() {
                held.write(&held.bytes);
                self.spare(held.bytes);
                return None;
            }
            self.held.push(held);
            return None;
        };
        let timer = buffering.flush.filter(|_| is_first).map(|after| (held.number, after));
        self.held.push(held);
        timer
    }

    /// Asks the worker to call at the end of each turn; `false` off a worker.
    fn hook(&mut self) -> bool {
        self.has_hook = self.has_hook
            || worker::at_turn_end(Rc::new(|| {
                PENDING.with_borrow_mut(|pending| pending.write_out(|held| held.buffering.is_none()));
            }));
        self.has_hook
    }

    fn write_out(&mut self, which: impl Fn(&Held) -> bool) {
        let mut at = 0;
        while let Some(held) = self.held.get(at) {
            if which(held) {
                let held = self.held.swap_remove(at);
                held.write(&held.bytes);
                self.spare(held.bytes);
            } else {
                at += 1;
            }
        }
    }

    fn spare(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && bytes.capacity() <= 2 * TURN_MAX {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

impl Drop for Pending {
    /// The thread ends: nothing may be lost.
    fn drop(&mut self) {
        self.write_out(|_| true);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;

    use super::*;

    fn scratch(name: &str) -> Arc<LogFile> {
        let path = std::env::temp_dir().join(format!("weir-pending-{}-{name}", std::process::id()));
        let file = LogFile::shared(path.to_str().unwrap());
        file.open().unwrap();
        file
    }

    fn line(file: &Arc<LogFile>, buffering: Option<&Buffering>, text: &str) {
        append(file, buffering, |out| out.extend_from_slice(text.as_bytes()));
    }

    fn taken(file: &LogFile) -> Vec<u8> {
        let bytes = std::fs::read(file.path()).unwrap();
        std::fs::remove_file(file.path()).unwrap();
        bytes
    }

    #[test]
    fn a_turn_is_one_write_and_nothing_is_lost_at_the_end() {
        let file = scratch("turn");
        let inside = file.clone();
        worker::block_on(async move {
            line(&inside, None, "1\n");
            line(&inside, None, "2\n");
            assert_eq!(std::fs::read(inside.path()).unwrap(), b"");
            worker::yield_now().await;
            assert_eq!(std::fs::read(inside.path()).unwrap(), b"1\n2\n");
            line(&inside, None, "3\n");
        })
        .unwrap();
        assert_eq!(taken(&file), b"1\n2\n3\n");
    }

    #[test]
    fn buffered_lines_wait_until_one_does_not_fit() {
        let file = scratch("buffer");
        let buffering = Buffering { size: 8, flush: None, gzip: None };
        line(&file, Some(&buffering), "aaaa\n");
        line(&file, Some(&buffering), "bbb\n");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"aaaa\n");
        line(&file, Some(&buffering), "longer than the buffer\n");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"aaaa\nbbb\nlonger than the buffer\n");
        line(&file, Some(&buffering), "c\n");
        flush();
        assert_eq!(taken(&file), b"aaaa\nbbb\nlonger than the buffer\nc\n");
    }

    #[test]
    fn flush_time_ends_the_wait() {
        let file = scratch("flush");
        let buffering = Buffering { size: 1024, flush: Some(Duration::from_millis(1)), gzip: None };
        let inside = file.clone();
        worker::block_on(async move {
            line(&inside, Some(&buffering), "soon\n");
            while std::fs::read(inside.path()).unwrap().is_empty() {
                timer::sleep(Duration::from_millis(1)).await;
            }
        })
        .unwrap();
        assert_eq!(taken(&file), b"soon\n");
    }

    #[test]
    fn gzip_writes_members_that_together_are_one_file() {
        let file = scratch("gzip");
        let buffering = Buffering { size: 1024, flush: None, gzip: Some(1) };
        line(&file, Some(&buffering), "first\n");
        flush();
        line(&file, Some(&buffering), "second\n");
        flush();
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(taken(&file).as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "first\nsecond\n");
    }
}
