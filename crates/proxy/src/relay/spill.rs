//! The temporary file of an answer that waits for a slow client.

use std::fs::File;

use weir_http::hold::bounds::{Share, TEMPORARY};

/// The bytes in a file that wait for a slow client. The file keeps its length until all of it is read.
pub struct Spill {
    /// The file, which has no name.
    pub file: File,
    /// Bytes written to it.
    pub written: u64,
    /// Bytes read back.
    pub read: u64,
    held: Share,
}

impl Spill {
    /// A file without bytes.
    pub fn new(file: File) -> Spill {
        Spill { file, written: 0, read: 0, held: TEMPORARY.share() }
    }

    /// Counts bytes that were written.
    pub fn wrote(&mut self, count: usize) {
        self.written += count as u64;
        self.held.add(count as u64);
    }
}

/// Whether an answer's file, which has `written` bytes, may take more: it has a bound of its own (`proxy_max_temp_file_size`),
/// and all files together have one. Otherwise a client that opens many streams and accepts nothing would fill the disk.
pub fn has_room(file_max: Option<u64>, written: u64) -> bool {
    file_max.is_none_or(|max| written < max) && !TEMPORARY.is_full()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_are_bounded_one_by_one_and_all_together() {
        for (file_max, written, expected) in
            [(Some(0), 0, false), (Some(9), 8, true), (Some(9), 9, false), (None, 9, true)]
        {
            assert_eq!(has_room(file_max, written), expected, "{file_max:?} {written}");
        }
        TEMPORARY.set_most(TEMPORARY.used() + 100);
        let mut spills: Vec<Spill> = (0..4).map(|_| Spill::new(File::open("/dev/null").unwrap())).collect();
        for spill in &mut spills {
            assert!(has_room(None, 0));
            spill.wrote(25);
        }
        assert!(!has_room(None, 0) && !has_room(Some(1), 0));
        spills.pop();
        assert!(has_room(None, 0));
        TEMPORARY.set_most(u64::MAX);
    }
}
