//! The temporary file of an answer that waits for a slow client.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes in a file that wait for a slow client. The file keeps its length until all of it is read.
pub struct Spill {
    /// The file, which has no name.
    pub file: File,
    /// Bytes written to it.
    pub written: u64,
    /// Bytes read back.
    pub read: u64,
}

impl Spill {
    /// A file without bytes.
    pub fn new(file: File) -> Spill {
        Spill { file, written: 0, read: 0 }
    }

    /// Counts bytes that were written.
    pub fn wrote(&mut self, count: usize) {
        self.written += count as u64;
        SPILLED.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        SPILLED.fetch_sub(self.written, Ordering::Relaxed);
    }
}

/// Bytes of all answers in temporary files at the moment, for the whole process.
static SPILLED: AtomicU64 = AtomicU64::new(0);

/// Bytes of all answers together that may wait in temporary files, if `proxy_max_temp_file_size` is not set. Otherwise
/// a client that opens many streams and accepts nothing would fill the disk, because each answer has its own file.
const SPILLED_MAX: u64 = 1 << 30;

/// Whether an answer's file, which has `written` bytes, may take more. A configured size bounds the file of each
/// answer, as in nginx.
pub fn has_room(file_max: Option<u64>, written: u64) -> bool {
    match file_max {
        Some(max) => written < max,
        None => SPILLED.load(Ordering::Relaxed) < SPILLED_MAX,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_are_bounded_one_by_one_or_all_together() {
        for (file_max, written, expected) in
            [(Some(0), 0, false), (Some(9), 8, true), (Some(9), 9, false), (None, 9, true)]
        {
            assert_eq!(has_room(file_max, written), expected, "{file_max:?} {written}");
        }
        let mut spills: Vec<Spill> = (0..4).map(|_| Spill::new(File::open("/dev/null").unwrap())).collect();
        for spill in &mut spills {
            assert!(has_room(None, 0));
            spill.wrote(SPILLED_MAX as usize / 4);
        }
        assert!(!has_room(None, 0) && has_room(Some(1), 0));
        spills.pop();
        assert!(has_room(None, 0));
        drop(spills);
        assert_eq!(SPILLED.load(Ordering::Relaxed), 0);
    }
}
