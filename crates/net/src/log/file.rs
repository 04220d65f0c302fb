//! Log files: one open file per path in the whole process, for all its writers. A file of another kind, whose owner alone
//! may read it and whose beginning is checked, is opened, passed on and opened again as a log file is.
//!
//! Invariant: a line or batch is one `write(2)` to a file opened for appending, so lines never mix and writers need
//! no lock. A pipe gets whole lines of at most [`PIPE_BUF`] bytes with each write, for the same reason, and never makes a
//! writer wait: lines are lost while nobody reads them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_lock, fcntl_setfl};
use rustix::io::Errno;

use crate::clock;
use crate::log::level::Level;
use crate::log::os::Os;

/// The kernel writes so many bytes to a pipe whole or not at all (pipe(7)).
const PIPE_BUF: usize = 4096;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Lines, which everybody may read.
    Log,
    /// Records, which the owner alone may read.
    Record,
}

/// Says why an open file may not be appended to; the text follows the name of the file.
pub type FileCheck = fn(&File) -> Result<(), String>;

/// A file that lines are appended to.
pub struct LogFile {
    path: String,
    /// For a [`FileKind::Record`]: the check of the file when it is opened.
    check: Option<FileCheck>,
    open: RwLock<Option<Arc<File>>>,
    /// The open file is a pipe.
    is_pipe: AtomicBool,
    /// The Unix second in which the disk was full: nothing is written for the rest of this second.
    full_at: AtomicU64,
    /// The Unix second of the last log line about it.
    complained_at: AtomicU64,
}

/// Every log file in use, by path. Dead entries are swept whenever one is added.
static FILES: Mutex<Vec<Weak<LogFile>>> = Mutex::new(Vec::new());

/// If a file cannot be written to, weir logs it once in this many seconds, as nginx does.
const COMPLAIN_EVERY: u64 = 60;

impl LogFile {
    /// The file of that path. It is not opened here, so that reading a configuration changes no file.
    pub fn shared(path: &str) -> Arc<LogFile> {
        LogFile::shared_of(path, None)
    }

    /// The same for a file of records: weir opens it for reading too, and refuses it if `check` does.
    pub fn shared_record(path: &str, check: FileCheck) -> Arc<LogFile> {
        LogFile::shared_of(path, Some(check))
    }

    fn shared_of(path: &str, check: Option<FileCheck>) -> Arc<LogFile> {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |file: &Arc<LogFile>| file.path == path && file.check.is_some() == check.is_some();
        if let Some(file) = files.iter().filter_map(Weak::upgrade).find(is_same) {
            return file;
        }
        files.retain(|file| file.strong_count() > 0);
        let file = Arc::new(LogFile {
            path: path.to_owned(),
            check,
            open: RwLock::new(None),
            is_pipe: AtomicBool::new(false),
            full_at: AtomicU64::new(0),
            complained_at: AtomicU64::new(0),
        });
        files.push(Arc::downgrade(&file));
        file
    }

    /// The path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its kind.
    pub fn kind(&self) -> FileKind {
        if self.check.is_some() { FileKind::Record } else { FileKind::Log }
    }

    /// The directory of the file, if that directory is missing.
    pub fn missing_directory(&self) -> Option<&str> {
        let (directory, _) = self.path.rsplit_once('/')?;
        (!directory.is_empty() && !std::path::Path::new(directory).exists()).then_some(directory)
    }

    /// Opens it unless it is open; the error is nginx's `open() "PATH" failed (13: Permission denied)`.
    pub fn open(&self) -> Result<(), String> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            *open = Some(self.opened()?);
        }
        Ok(())
    }

    /// The open file, for a later write even if the name is reopened meanwhile.
    pub fn handle(&self) -> Option<Arc<File>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Appends bytes. If they cannot be written, they are lost, and the error log reports it once a minute.
    pub fn write(&self, bytes: &[u8]) {
        if let Some(file) = self.handle() {
            self.write_to(&file, bytes);
        }
    }

    /// As `write`, to a file that `handle` returned.
    pub fn write_to(&self, file: &File, mut bytes: &[u8]) {
        if self.is_pipe.load(Ordering::Relaxed) {
            while let (piece, rest @ [_, ..]) = bytes.split_at(whole_lines(bytes)) {
                self.write_once(file, piece);
                bytes = rest;
            }
        }
        self.write_once(file, bytes);
    }

    fn write_once(&self, mut file: &File, bytes: &[u8]) {
        let now = clock::unix_seconds();
        if bytes.is_empty() || self.full_at.load(Ordering::Relaxed) == now {
            return;
        }
        let written = loop {
            match file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match written {
            Ok(count) if count == bytes.len() => {}
            Ok(count) => self.complain(now, format_args!("was incomplete: {count} of {}", bytes.len())),
            Err(error) => {
                if error.kind() == io::ErrorKind::StorageFull {
                    self.full_at.store(now, Ordering::Relaxed);
                }
                self.complain(now, format_args!("failed {}", Os(&error)));
            }
        }
    }

    fn complain(&self, now: u64, what: std::fmt::Arguments<'_>) {
        let last = self.complained_at.swap(now, Ordering::Relaxed);
        if now.saturating_sub(last) < COMPLAIN_EVERY {
            self.complained_at.store(last, Ordering::Relaxed);
            return;
        }
        crate::log::global(Level::Alert, format_args!("write() to \"{}\" {what}", self.path));
    }

    fn opened(&self) -> Result<Arc<File>, String> {
        let opened = match self.check {
            None => append(&self.path),
            Some(_) => OpenOptions::new().read(true).append(true).create(true).mode(RECORD_MODE).open(&self.path),
        };
        let file = opened.map_err(|error| format!("open() \"{}\" failed {}", self.path, Os(&error)))?;
        if let Some(check) = self.check {
            check(&file).map_err(|why| format!("\"{}\" {why}", self.path))?;
        }
        Ok(self.ready(file))
    }

    /// The file, which nobody waits for.
    fn ready(&self, file: File) -> Arc<File> {
        let kind = file.metadata().map(|found| found.file_type());
        let (is_pipe, is_device) = kind.map_or((false, false), |kind| (kind.is_fifo(), kind.is_char_device()));
        if is_pipe || is_device {
            // The open file is weir's own, also that of /dev/stdout: other programs with this pipe still wait. A device without
            // this flag stays as it is.
            let _ = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags | OFlags::NONBLOCK));
        }
        self.is_pipe.store(is_pipe, Ordering::Relaxed);
        Arc::new(file)
    }

    /// Writes to this open file from now on: another process has opened the path.
    pub fn give(&self, file: File) {
        let file = self.ready(file);
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }

    fn reopen(&self) -> Result<(), String> {
        if self.handle().is_none() {
            return Ok(());
        }
        let file = self.opened()?;
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }
}

/// The length of the lines at the beginning that a pipe takes with one write. All bytes, if they are fewer, or if the first line
/// is longer.
fn whole_lines(bytes: &[u8]) -> usize {
    match bytes.get(..PIPE_BUF) {
        Some(first) if bytes.len() > PIPE_BUF => {
            let is_end = |byte: &u8| *byte == b'\n';
            let end = first.iter().rposition(is_end).or_else(|| bytes.iter().position(is_end));
            end.map_or(bytes.len(), |at| at + 1)
        }
        _ => bytes.len(),
    }
}

/// The mode of a new file of records.
const RECORD_MODE: u32 = 0o600;

/// Whether this process alone may write to the file from now on. The kernel ends the right when the process ends, or
/// closes a descriptor of the file: ask before each write. It fails only for files that have no such rights.
pub fn is_ours(file: &File) -> bool {
    !matches!(fcntl_lock(file, FlockOperation::NonBlockingLockExclusive), Err(Errno::ACCESS | Errno::AGAIN))
}

/// Gives the right of [`is_ours`] back.
pub fn give_back(file: &File) {
    // A file without such rights has none to give back.
    let _ = fcntl_lock(file, FlockOperation::Unlock);
}

/// Opens a file for appending, creating it readable for all.
pub fn append(path: impl AsRef<std::path::Path>) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o644).open(path)
}

/// As [`append`], for a worker: a pipe without a reader is an error, and neither this nor a write waits for a reader.
pub fn append_at_once(path: impl AsRef<std::path::Path>) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    OpenOptions::new().append(true).create(true).mode(0o644).custom_flags(flags).open(path)
}

/// Opens every open log file by its name again; returns the failures.
pub fn reopen_all() -> Vec<String> {
    let files: Vec<Arc<LogFile>> =
        FILES.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    files.iter().filter_map(|file| file.reopen().err()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn scratch(name: &str) -> String {
        let path = std::env::temp_dir().join(format!("weir-log-{}-{name}", std::process::id()));
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_path_is_one_file_and_is_reopened_by_name() {
        let path = scratch("reopen");
        let (one, two) = (LogFile::shared(&path), LogFile::shared(&path));
        assert!(Arc::ptr_eq(&one, &two));
        one.write(b"before it is open: lost\n");
        one.open().unwrap();
        one.write(b"1\n");
        let rotated = format!("{path}.1");
        std::fs::rename(&path, &rotated).unwrap();
        two.write(b"2\n");
        assert!(one.reopen().is_ok());
        two.write(b"3\n");
        assert_eq!(std::fs::read(&rotated).unwrap(), b"1\n2\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"3\n");
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&rotated).unwrap();
    }

    #[test]
    fn a_file_of_records_is_its_owners_and_is_checked() {
        use std::os::unix::fs::PermissionsExt;
        let path = scratch("record");
        let check: FileCheck = |file| match file.metadata().map(|found| found.len()) {
            Ok(0) => Ok(()),
            _ => Err("has something".to_owned()),
        };
        let (record, log) = (LogFile::shared_record(&path, check), LogFile::shared(&path));
        assert!(!Arc::ptr_eq(&record, &log));
        assert_eq!((record.kind(), log.kind()), (FileKind::Record, FileKind::Log));
        record.open().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let handle = record.handle().unwrap();
        assert!(is_ours(&handle) && is_ours(&handle));
        give_back(&handle);
        drop(record);
        std::fs::write(&path, "x").unwrap();
        let again = LogFile::shared_record(&path, check);
        assert_eq!(again.open().unwrap_err(), format!("\"{path}\" has something"));
        std::fs::remove_file(&path).unwrap();
    }

    /// A reader that rests makes nobody wait, and gets whole lines when it reads on.
    #[test]
    fn a_pipe_that_nobody_reads_loses_lines() {
        use std::io::Read;
        let path = scratch("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let mut reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let log = LogFile::shared(&path);
        log.open().unwrap();
        let mut at_once = append_at_once(&path).unwrap();
        // More than a pipe holds: 64 KiB.
        let batch: String = (0..300).map(|number| format!("{number} {}\n", "x".repeat(number % 50))).collect();
        for _ in 0..40 {
            log.write(batch.as_bytes());
        }
        let whole = [b'x'; PIPE_BUF];
        assert!(at_once.write(&whole).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
        let mut got = vec![0; 1 << 20];
        let length = reader.read(&mut got).unwrap();
        let text = String::from_utf8(got[..length].to_vec()).unwrap();
        assert!((30_000..=65_536).contains(&length), "{length}");
        assert!(text.ends_with('\n') && text.lines().all(|line| batch.lines().any(|one| one == line)), "{text}");
        drop((reader, log));
        assert!(append_at_once(&path).is_err(), "nobody reads");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_pipe_gets_whole_lines_with_each_write() {
        let of = |lengths: &[usize]| {
            let text: String = lengths.iter().map(|length| format!("{}\n", "x".repeat(length - 1))).collect();
            whole_lines(text.as_bytes())
        };
        assert_eq!([of(&[10]), of(&[4096]), of(&[4000, 90, 10]), of(&[5000, 10])], [10, 4096, 4090, 5000]);
        assert_eq!(whole_lines(&[b'x'; 9000]), 9000);
    }

    #[test]
    fn what_cannot_be_opened_is_told_in_nginx_words() {
        let file = LogFile::shared("/nonexistent/weir.log");
        assert_eq!(file.open().unwrap_err(), "open() \"/nonexistent/weir.log\" failed (2: No such file or directory)");
    }
}
