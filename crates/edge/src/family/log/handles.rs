//! Files whose names have variables: opened for each line, or kept open by `open_log_file_cache`.
//!
//! The process has one cache, limited by `max`. It drops the least recently used name first.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_http::family::disable_symlinks::{Guarded, append};
use weir_net::{Instant, clock};

/// `open_log_file_cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSize {
    /// The most names in the cache.
    pub max: usize,
    /// A name not used for this time is dropped.
    pub inactive: Duration,
    /// Uses within `inactive` after which a file stays open.
    pub min_uses: u64,
    /// After this time the file is opened again, because its name may point to another file.
    pub valid: Duration,
}

impl Default for CacheSize {
    fn default() -> CacheSize {
        CacheSize { max: 0, inactive: Duration::from_secs(10), min_uses: 1, valid: Duration::from_secs(60) }
    }
}

struct Known {
    file: Option<Arc<File>>,
    guard: Guarded,
    uses: u64,
    opened: Instant,
    used: Instant,
}

fn known() -> MutexGuard<'static, HashMap<Vec<u8>, Known>> {
    static KNOWN: LazyLock<Mutex<HashMap<Vec<u8>, Known>>> = LazyLock::new(Mutex::default);
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends a line to the file of that name. Only a failure to open the file is an error, as in nginx.
pub fn write(path: &[u8], cache: Option<&CacheSize>, guard: Guarded, line: &[u8]) -> io::Result<()> {
    let file = match cache {
        None => Arc::new(append(guard, path)?),
        Some(size) => cached(path, size, guard)?,
    };
    let _ = (&*file).write(line);
    Ok(())
}

/// The file of that name, from the cache if possible; it stays in the cache after enough uses.
fn cached(path: &[u8], size: &CacheSize, guard: Guarded) -> io::Result<Arc<File>> {
    let mut known = known();
    let now = clock::now();
    known.retain(|_, entry| now.saturating_duration_since(entry.used) < size.inactive);
    let (mut uses, mut opened) = (1, now);
    let mut file = None;
    if let Some(entry) = known.get(path) {
        uses += entry.uses;
        if now.saturating_duration_since(entry.opened) < size.valid && entry.guard == guard {
            opened = entry.opened;
            file = entry.file.clone();
        }
    }
    let file = match file {
        Some(file) => file,
        None => Arc::new(append(guard, path)?),
    };
    if !known.contains_key(path) {
        make_room(&mut known, size.max);
    }
    let kept = (uses >= size.min_uses).then(|| file.clone());
    known.insert(path.to_vec(), Known { file: kept, guard, uses, opened, used: now });
    Ok(file)
}

/// Drops the least recently used names until one more fits.
fn make_room(known: &mut HashMap<Vec<u8>, Known>, max: usize) {
    while known.len() >= max.max(1) {
        let oldest = known.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone());
        match oldest {
            Some(oldest) => known.remove(&oldest),
            None => return,
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    #[test]
    fn only_files_used_often_enough_stay_open() {
        let path = std::env::temp_dir().join(format!("weir-handles-{}", std::process::id()));
        let bytes = path.as_os_str().as_bytes();
        let size = CacheSize { max: 1, min_uses: 2, ..CacheSize::default() };
        let is_open = || known().get(bytes).is_some_and(|entry| entry.file.is_some());
        write(bytes, Some(&size), None, b"1\n").unwrap();
        assert!(!is_open());
        write(bytes, Some(&size), None, b"2\n").unwrap();
        assert!(is_open());
        write(bytes, None, None, b"3\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n2\n3\n");

        let other = [bytes, b"-other"].concat();
        write(&other, Some(&size), None, b"1\n").unwrap();
        assert_eq!(known().len(), 1);
        assert!(!is_open());
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(Path::new(std::ffi::OsStr::from_bytes(&other))).unwrap();
        assert!(write(b"/nonexistent/log", Some(&size), None, b"").is_err());
    }
}
