//! Follows a file that another program appends to: first its end, then what is added. The file may be rotated.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes that are read of the part from before the watch: some minutes of a busy log.
const PAST_MAX: u64 = 8 << 20;
/// Most bytes of one file that are read while weir watches.
const READ_MAX: u64 = 64 << 20;
/// Most bytes of a line whose end has not come yet.
const LINE_MAX: usize = 64 << 10;

/// A file, read up to a place.
#[derive(Debug)]
pub struct FollowedFile {
    path: PathBuf,
    file: File,
    /// The file system and the number of the file: another number at the same path is another file.
    number: (u64, u64),
    /// The first byte that is not read yet.
    from: u64,
    /// A line without its end.
    begun: Vec<u8>,
    /// Bytes read since the beginning of the watch.
    read: u64,
    /// The file was replaced or emptied meanwhile.
    pub was_rotated: bool,
    /// More was written than is read.
    pub is_cut: bool,
}

impl FollowedFile {
    /// Opens a file, and reads its last lines, at most 8 MB of them.
    ///
    /// # Errors
    /// It cannot be read, or it is a pipe or a terminal, which only its reader may read.
    pub fn open(path: &Path) -> io::Result<(FollowedFile, Vec<u8>)> {
        let (mut file, about) = opened(path)?;
        let from = about.len().saturating_sub(PAST_MAX);
        file.seek(SeekFrom::Start(from))?;
        let mut past = Vec::new();
        (&file).take(about.len() - from).read_to_end(&mut past)?;
        // A line that began before, and a line that has not ended yet.
        let begin =
            if from == 0 { 0 } else { past.iter().position(|byte| *byte == b'\n').map_or(past.len(), |at| at + 1) };
        past.drain(..begin);
        let end = past.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let begun = past.split_off(end);
        let number = (about.dev(), about.ino());
        let (was_rotated, is_cut) = (false, false);
        let followed = FollowedFile {
            path: path.to_owned(),
            file,
            number,
            from: about.len(),
            begun,
            read: 0,
            was_rotated,
            is_cut,
        };
        Ok((followed, past))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole lines that were added since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        let mut added = std::mem::take(&mut self.begun);
        self.read_on(&mut added);
        let about = fs::metadata(&self.path).ok();
        let is_other = about.as_ref().is_some_and(|about| (about.dev(), about.ino()) != self.number);
        let is_emptied = about.as_ref().is_some_and(|about| !is_other && about.len() < self.from);
        if (is_other || is_emptied) && self.reopen() {
            self.was_rotated = true;
            self.read_on(&mut added);
        }
        let end = added.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = added.split_off(end);
        self.begun = if rest.len() > LINE_MAX { Vec::new() } else { rest };
        added
    }

    fn read_on(&mut self, added: &mut Vec<u8>) {
        let room = READ_MAX.saturating_sub(self.read);
        let before = added.len();
        // A file that cannot be read any more has no more lines.
        let _ = self.file.seek(SeekFrom::Start(self.from)).and_then(|_| (&self.file).take(room).read_to_end(added));
        let count = (added.len() - before) as u64;
        self.from += count;
        self.read += count;
        self.is_cut |= self.read >= READ_MAX;
    }

    fn reopen(&mut self) -> bool {
        let Ok((file, about)) = opened(&self.path) else { return false };
        (self.file, self.number, self.from) = (file, (about.dev(), about.ino()), 0);
        true
    }
}

/// The file. To open a pipe would wait for its writer.
fn opened(path: &Path) -> io::Result<(File, fs::Metadata)> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    Ok((file, about))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    #[test]
    fn a_log_is_followed_through_its_rotation() {
        let path = std::env::temp_dir().join(format!("weir-followed-{}", std::process::id()));
        let old = path.with_extension("1");
        fs::write(&path, "one\ntwo\nthr").unwrap();
        let (mut log, past) = FollowedFile::open(&path).unwrap();
        assert_eq!(past, b"one\ntwo\n");
        let append = |path: &Path, text: &str| {
            fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
        };
        append(&path, "ee\nfour");
        assert_eq!(log.take(), b"three\n");
        // The old file is written to until the program opens the new one.
        fs::rename(&path, &old).unwrap();
        append(&old, "\nfive\n");
        append(&path, "six\n");
        assert_eq!((log.take(), log.was_rotated), (b"four\nfive\nsix\n".to_vec(), true));
        // copytruncate of logrotate.
        fs::write(&path, "a\n").unwrap();
        assert_eq!(log.take(), b"a\n");
        assert!(FollowedFile::open(Path::new("/dev/null")).is_err() && !log.is_cut);
        for file in [&path, &old] {
            fs::remove_file(file).unwrap();
        }
    }
}
