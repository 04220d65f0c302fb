//! Files whose names hold variables: opened for each line, or kept open by `open_log_file_cache`.
//!
//! The cache is the worker's own, bounded by `max`, and forgets what is used least recently.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_net::clock;

use crate::log::file::append;

/// `open_log_file_cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSize {
    /// Names remembered.
    pub max: usize,
    /// A name not used for that long is forgotten.
    pub inactive: Duration,
    /// Uses within `inactive` from which on a file stays open.
    pub min_uses: u64,
    /// After that long a file is opened anew, in case its name means another now.
    pub valid: Duration,
}

impl Default for CacheSize {
    fn default() -> CacheSize {
        CacheSize { max: 0, inactive: Duration::from_secs(10), min_uses: 1, valid: Duration::from_secs(60) }
    }
}

struct Known {
    file: Option<File>,
    uses: u64,
    opened: Instant,
    used: Instant,
}

thread_local! {
    static KNOWN: RefCell<HashMap<Vec<u8>, Known>> = RefCell::default();
}

/// Appends a line to the file of that name. Only failing to open it is an error, as in nginx.
pub fn write(path: &[u8], cache: Option<&CacheSize>, line: &[u8]) -> io::Result<()> {
    let Some(size) = cache else {
        let mut file = open(path)?;
        let _ = file.write(line);
        return Ok(());
    };
    KNOWN.with_borrow_mut(|known| {
        let now = clock::now();
        expire(known, size, path, now);
        let entry = match known.get_mut(path) {
            Some(entry) => entry,
            None => known.entry(path.to_vec()).or_insert(Known { file: None, uses: 0, opened: now, used: now }),
        };
        entry.uses += 1;
        entry.used = now;
        if entry.file.is_none() || now.saturating_duration_since(entry.opened) >= size.valid {
            entry.file = None;
            entry.file = Some(open(path)?);
            entry.opened = now;
        }
        if let Some(file) = &mut entry.file {
            let _ = file.write(line);
        }
        if entry.uses < size.min_uses {
            entry.file = None;
        }
        Ok(())
    })
}

/// Forgets what was not used lately, and makes room for `path`.
fn expire(known: &mut HashMap<Vec<u8>, Known>, size: &CacheSize, path: &[u8], now: Instant) {
    known.retain(|_, entry| now.saturating_duration_since(entry.used) < size.inactive);
    while !known.contains_key(path) && known.len() >= size.max.max(1) {
        let oldest = known.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone());
        match oldest {
            Some(oldest) => known.remove(&oldest),
            None => return,
        };
    }
}

fn open(path: &[u8]) -> io::Result<File> {
    append(Path::new(std::ffi::OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_files_used_often_enough_stay_open() {
        let path = std::env::temp_dir().join(format!("weir-handles-{}", std::process::id()));
        let bytes = path.as_os_str().as_bytes();
        let size = CacheSize { max: 1, min_uses: 2, ..CacheSize::default() };
        let is_open = || KNOWN.with_borrow(|known| known.get(bytes).is_some_and(|entry| entry.file.is_some()));
        write(bytes, Some(&size), b"1\n").unwrap();
        assert!(!is_open());
        write(bytes, Some(&size), b"2\n").unwrap();
        assert!(is_open());
        write(bytes, None, b"3\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n2\n3\n");

        let other = [bytes, b"-other"].concat();
        write(&other, Some(&size), b"1\n").unwrap();
        assert_eq!(KNOWN.with_borrow(HashMap::len), 1);
        assert!(!is_open());
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(Path::new(std::ffi::OsStr::from_bytes(&other))).unwrap();
        assert!(write(b"/nonexistent/log", Some(&size), b"").is_err());
    }
}
