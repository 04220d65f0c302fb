//! Lines that a worker holds back until the end of its turn or of a connection; then it writes all of them at once.
//!
//! Invariant: weir writes the lines to the file that was open when the first of them arrived, never to a file that a
//! rotation opened later.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use weir_net::log::file::LogFile;
use weir_net::worker;

/// The approximate size of one write of a turn's lines.
const TURN_MAX: usize = 64 << 10;

/// The most empty buffers kept for later turns.
const SPARE_MAX: usize = 4;

/// The lines for one file.
struct Held {
    file: Arc<LogFile>,
    handle: Arc<File>,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Pending {
    held: Vec<Held>,
    spare: Vec<Vec<u8>>,
    has_hook: bool,
}

thread_local! {
    static PENDING: RefCell<Pending> = RefCell::default();
}

/// Appends a line that `write` composes; `write` must not append another. Outside a worker the line is written at
/// once.
pub fn append(file: &Arc<LogFile>, write: impl FnOnce(&mut Vec<u8>)) {
    let Some(mut held) = PENDING.with_borrow_mut(|pending| pending.take(file)) else {
        return;
    };
    write(&mut held.bytes);
    PENDING.with_borrow_mut(|pending| pending.put(held));
}

/// Writes all lines that this worker holds back.
pub fn flush() {
    PENDING.with_borrow_mut(|pending| {
        while let Some(held) = pending.held.pop() {
            pending.write(held);
        }
    });
}

impl Pending {
    /// Takes the lines of a file out for appending; `None` if the file is not open.
    fn take(&mut self, file: &Arc<LogFile>) -> Option<Held> {
        if let Some(at) = self.held.iter().position(|held| Arc::ptr_eq(&held.file, file)) {
            return Some(self.held.swap_remove(at));
        }
        let handle = file.handle()?;
        Some(Held { file: file.clone(), handle, bytes: self.spare.pop().unwrap_or_default() })
    }

    fn put(&mut self, held: Held) {
        if held.bytes.len() >= TURN_MAX || !self.hook() {
            self.write(held);
        } else {
            self.held.push(held);
        }
    }

    /// Asks the worker to call `flush` at the end of each turn; `false` outside a worker.
    fn hook(&mut self) -> bool {
        self.has_hook = self.has_hook || worker::at_turn_end(Rc::new(flush));
        self.has_hook
    }

    fn write(&mut self, mut held: Held) {
        held.file.write_to(&held.handle, &held.bytes);
        if self.spare.len() < SPARE_MAX && held.bytes.capacity() <= 2 * TURN_MAX {
            held.bytes.clear();
            self.spare.push(held.bytes);
        }
    }
}

impl Drop for Pending {
    /// The thread ends: write all lines.
    fn drop(&mut self) {
        for held in &self.held {
            // Thread-locals such as the clock and the error log may be gone already: only write.
            let _ = (&*held.handle).write_all(&held.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(file: &Arc<LogFile>, text: &str) {
        append(file, |out| out.extend_from_slice(text.as_bytes()));
    }

    #[test]
    fn a_turn_is_one_write_and_nothing_is_lost_at_the_end() {
        let path = std::env::temp_dir().join(format!("weir-pending-{}", std::process::id()));
        let file = LogFile::shared(path.to_str().unwrap());
        line(&file, "not open: lost\n");
        file.open().unwrap();
        let inside = file.clone();
        worker::block_on(async move {
            line(&inside, "1\n");
            line(&inside, "2\n");
            assert_eq!(std::fs::read(inside.path()).unwrap(), b"");
            worker::yield_now().await;
            assert_eq!(std::fs::read(inside.path()).unwrap(), b"1\n2\n");
            line(&inside, "3\n");
        })
        .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n2\n3\n");
        std::fs::remove_file(&path).unwrap();
    }
}
