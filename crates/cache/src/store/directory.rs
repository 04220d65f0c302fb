//! The directory of a zone's files: their names, and the operations on them. All operations block: the zone's own
//! thread runs them, except the unlink of a purge.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::file::{self, Corrupt, FileRecord};
use super::label::Label;
use super::object::Body;
use super::piece::FileBody;

/// Bytes of the first read: a small object is read completely.
const FIRST_READ_BYTES: usize = 64 << 10;

/// Size of the pieces of a body that is read from a file into memory.
const PIECE_BYTES: usize = 256 << 10;

/// Digits of a file's name.
pub(super) const NAME_DIGITS: usize = 32;

/// The place of a zone's files, from `proxy_cache_path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The path.
    pub path: PathBuf,
    /// `levels`: up to three numbers of digits, each 1 or 2.
    pub levels: Vec<u8>,
    /// The directory where files are written before they are renamed; `None` for beside their final place
    /// (`use_temp_path=off`).
    pub temp_path: Option<PathBuf>,
}

/// Why an object could not be read.
#[derive(Debug)]
pub(super) enum Unread {
    Io(io::Error),
    Corrupt(Corrupt),
}

impl Unread {
    /// Whether a file of this version cannot be read. A switch from nginx, or an upgrade, finds files of others.
    pub(super) fn is_damage(&self) -> bool {
        !matches!(self, Unread::Corrupt(Corrupt::Form))
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Unread {
        Unread::Io(error)
    }
}

impl From<Corrupt> for Unread {
    fn from(corrupt: Corrupt) -> Unread {
        Unread::Corrupt(corrupt)
    }
}

/// A file that is being written; dropping it removes the file unless it was kept.
pub(super) struct Temp {
    path: PathBuf,
    pub file: Arc<File>,
    is_kept: bool,
}

/// Distinguishes this process's temporary files from files of a killed process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub process: u32,
    pub start: u64,
}

impl Directory {
    /// Makes the required directories.
    pub(super) fn make(&self) -> io::Result<()> {
        make_directory(&self.path)?;
        self.temp_path.as_deref().map_or(Ok(()), make_directory)
    }

    /// The file of an object.
    pub(super) fn path_of(&self, label: &Label) -> PathBuf {
        self.path_of_name(&name_of(label))
    }

    /// The path of a file with that name: the levels come from the end of the name, as in nginx.
    pub(super) fn path_of_name(&self, name: &str) -> PathBuf {
        let mut path = self.path.clone();
        let mut end = name.len();
        for digits in &self.levels {
            let from = end.saturating_sub(usize::from(*digits));
            path.push(name.get(from..end).unwrap_or_default());
            end = from;
        }
        path.push(name);
        path
    }

    /// Makes a new file for an object.
    pub(super) fn begin(&self, label: &Label, run: Run) -> io::Result<Temp> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = name_of(label);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temp_name = format!("{name}.{}-{}-{number}", run.process, run.start);
        let path = match &self.temp_path {
            Some(temp) => temp.join(temp_name),
            None => self.path_of_name(&name).with_file_name(temp_name),
        };
        let open = || OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = with_parent(&path, open)?;
        Ok(Temp { path, file: Arc::new(file), is_kept: false })
    }

    /// Moves a finished file to its place; it replaces an older file atomically.
    pub(super) fn keep(&self, mut temp: Temp, label: &Label, run: Run) -> io::Result<()> {
        let place = self.path_of(label);
        match with_parent(&place, || std::fs::rename(&temp.path, &place)) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices && self.temp_path.is_some() => {
                let beside = Directory { temp_path: None, ..self.clone() };
                let copy = beside.begin(label, run)?;
                copy_file(&temp.file, &copy.file)?;
                beside.keep(copy, label, run)
            }
            renamed => {
                temp.is_kept = renamed.is_ok();
                renamed
            }
        }
    }

    /// Removes an object's file; a missing file is no error.
    pub(super) fn remove(&self, label: &Label) -> io::Result<()> {
        match std::fs::remove_file(self.path_of(label)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Marks an object's file as soft-purged.
    pub(super) fn mark_soft(&self, label: &Label) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path_of(label))?.write_all_at(&[1], file::SOFT_AT)
    }

    /// Reads an object; a body longer than `memory_max` stays in the file, and its checksum is
    /// left to `check`.
    pub(super) fn read(&self, path: &Path, memory_max: u64) -> Result<(FileRecord, Body), Unread> {
        let file = File::open(path)?;
        let (record, first) = read_header(&file, path, FIRST_READ_BYTES)?;
        let body = if record.body_len > memory_max {
            Body::File(FileBody { file: Arc::new(file), offset: record.body_at, len: record.body_len })
        } else {
            read_body(&file, &record, first.get(record.body_at as usize..).unwrap_or_default())?
        };
        Ok((record, body))
    }

    /// Reads the header of a file, for the loader.
    pub(super) fn peek(&self, path: &Path) -> Result<FileRecord, Unread> {
        Ok(read_header(&File::open(path)?, path, 1024)?.0)
    }
}

/// The name of an object's file: its digest in hexadecimal digits.
pub(super) fn name_of(label: &Label) -> String {
    label.digest().iter().fold(String::with_capacity(NAME_DIGITS), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// The kind of a file in the directory, by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Object,
    /// A temporary file of a process that has ended.
    Abandoned,
    /// A file being written, or a foreign file.
    Other,
}

/// Classifies a name. `is_alive` tells whether a process of that number runs.
pub(super) fn named(name: &str, run: Run, is_alive: impl FnOnce(u32) -> bool) -> FileKind {
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    let (digest, rest) = name.split_once('.').map_or((name, None), |(digest, rest)| (digest, Some(rest)));
    if digest.len() != NAME_DIGITS || !digest.bytes().all(is_hex) {
        return FileKind::Other;
    }
    let Some(rest) = rest else { return FileKind::Object };
    let mut parts = rest.split('-').map(str::parse::<u64>);
    let (Some(Ok(process)), Some(Ok(start)), Some(Ok(_)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return FileKind::Other;
    };
    let is_ours = process == u64::from(run.process);
    let lives = if is_ours { start == run.start } else { u32::try_from(process).is_ok_and(is_alive) };
    if lives { FileKind::Other } else { FileKind::Abandoned }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn read_header(file: &File, path: &Path, first: usize) -> Result<(FileRecord, Vec<u8>), Unread> {
    let file_len = file.metadata()?.len();
    let mut bytes = read_at_most(file, first)?;
    let header_len = file::header_len_of(&bytes)?;
    if header_len > bytes.len() {
        bytes = read_at_most(file, header_len)?;
    }
    let record = file::decode(&bytes)?;
    if record.body_at.checked_add(record.body_len) != Some(file_len) {
        return Err(Corrupt::Length.into());
    }
    if path.file_name().and_then(|name| name.to_str()) != Some(&name_of(&record.label)) {
        return Err(Corrupt::Name.into());
    }
    Ok((record, bytes))
}

fn read_at_most(file: &File, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let mut len = 0;
    while let Some(room) = bytes.get_mut(len..).filter(|room| !room.is_empty()) {
        match file.read_at(room, len as u64) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

fn read_body(file: &File, record: &FileRecord, first: &[u8]) -> Result<Body, Unread> {
    let body = if first.len() as u64 == record.body_len {
        Body::One(first.into())
    } else {
        let len = usize::try_from(record.body_len).map_err(|_| Corrupt::Bounds)?;
        let mut chunks = Vec::with_capacity(len.div_ceil(PIECE_BYTES));
        for from in (0..len).step_by(PIECE_BYTES) {
            let mut piece = vec![0; PIECE_BYTES.min(len - from)];
            file.read_exact_at(&mut piece, record.body_at + from as u64)?;
            chunks.push(piece.into());
        }
        match <[_; 1]>::try_from(chunks) {
            Ok([chunk]) => Body::One(chunk),
            Err(chunks) => Body::Many(chunks.into()),
        }
    };
    let mut sum = crc32fast::Hasher::new();
    body.chunks().iter().for_each(|chunk| sum.update(chunk));
    if sum.finalize() != record.body_crc {
        return Err(Corrupt::Checksum.into());
    }
    Ok(body)
}

/// Runs an operation on a path; makes missing directories.
fn with_parent<T>(path: &Path, work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match work() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directory(path.parent().unwrap_or(Path::new("/")))?;
            work()
        }
        done => done,
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn copy_file(from: &File, to: &File) -> io::Result<()> {
    let len = from.metadata()?.len();
    copy_range(from, 0, to, 0, len)
}

/// Copies bytes between files.
pub(super) fn copy_range(from: &File, at: u64, to: &File, to_at: u64, len: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut done = 0;
    while done < len {
        let count = usize::try_from(len - done).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let piece = piece.get_mut(..count).unwrap_or_default();
        from.read_exact_at(piece, at + done)?;
        to.write_all_at(piece, to_at + done)?;
        done += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_taken_from_the_end_of_the_name() {
        let name = "b7f54b2df7773722d382f4809d650293";
        for (levels, path) in [
            (&[][..], "/c/b7f54b2df7773722d382f4809d650293"),
            (&[1, 2], "/c/3/29/b7f54b2df7773722d382f4809d650293"),
            (&[2, 2, 1], "/c/93/02/5/b7f54b2df7773722d382f4809d650293"),
        ] {
            let directory = Directory { path: "/c".into(), levels: levels.to_vec(), temp_path: None };
            assert_eq!(directory.path_of_name(name), Path::new(path));
        }
    }

    #[test]
    fn names_tell_objects_from_what_a_killed_process_left() {
        let run = Run { process: 7, start: 100 };
        let hex = "b7f54b2df7773722d382f4809d650293";
        for (name, expected) in [
            (hex.to_owned(), FileKind::Object),
            (hex.to_uppercase(), FileKind::Other),
            (format!("{hex}.7-100-0"), FileKind::Other),
            (format!("{hex}.7-99-0"), FileKind::Abandoned),
            (format!("{hex}.8-99-0"), FileKind::Other),
            (format!("{hex}.9-99-0"), FileKind::Abandoned),
            (format!("{hex}.0000000001"), FileKind::Other),
            (format!("{hex}.7-99-0-1"), FileKind::Other),
            ("index.html".to_owned(), FileKind::Other),
        ] {
            assert_eq!(named(&name, run, |process| process == 8), expected, "{name}");
        }
    }
}
