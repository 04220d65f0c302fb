//! The search for main files: those that nginx reads first, and that name the others.

use std::fs;
use std::path::{Path, PathBuf};

use weir_doctor::guard::Folder;

use crate::document::is_main;

/// Most entries of directories that one search looks at.
const ENTRIES_MAX: usize = 20_000;

/// Deepest directory below a folder.
const DEPTH_MAX: usize = 8;

/// Most main files.
pub const MAINS_MAX: usize = 100;

/// Most bytes of a file that may be a main file; larger ones are generated.
const CANDIDATE_BYTES_MAX: u64 = 1 << 20;

/// Most bytes that one search reads.
const READ_BYTES_MAX: u64 = 32 << 20;

/// Directories without configurations, and with many files.
const SKIPPED: [&str; 6] = ["node_modules", "target", "vendor", "__pycache__", "dist", "build"];

/// Endings of names of files that may be main files.
const ENDINGS: [&str; 6] = [".conf", ".conf.template", ".conf.tmpl", ".conf.j2", ".nginx", ".nginxconf"];

/// Where to search: a folder, and whether its directories are searched, too.
pub struct ScanPlace<'f> {
    /// The folder.
    pub folder: &'f Folder,
    /// Whether directories below it are searched.
    pub is_deep: bool,
}

/// The main files of some places, the most likely ones first. Links are not followed.
pub fn mains(places: &[ScanPlace<'_>]) -> Vec<String> {
    let mut scan = Scan { entries: 0, bytes: 0, found: Vec::new() };
    for place in places {
        scan.walk(&place.folder.path, if place.is_deep { DEPTH_MAX } else { 0 });
    }
    let mut found = scan.found;
    found.sort_by_cached_key(|path| {
        let text = path.display().to_string();
        (path.file_name().is_none_or(|name| name != "nginx.conf"), text.matches('/').count(), text)
    });
    found.truncate(MAINS_MAX);
    found.into_iter().filter_map(|path| path.into_os_string().into_string().ok()).collect()
}

struct Scan {
    entries: usize,
    bytes: u64,
    found: Vec<PathBuf>,
}

impl Scan {
    fn walk(&mut self, folder: &Path, depth: usize) {
        let mut waiting = vec![(folder.to_path_buf(), depth)];
        while let Some((directory, depth)) = waiting.pop() {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                self.entries += 1;
                if self.entries > ENTRIES_MAX {
                    return;
                }
                let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
                if kind.is_dir() {
                    let is_searched = depth > 0 && !name.starts_with('.') && !SKIPPED.contains(&name.as_str());
                    if is_searched {
                        waiting.push((entry.path(), depth - 1));
                    }
                } else if kind.is_file() && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                    self.look(entry.path());
                }
            }
        }
    }

    fn look(&mut self, path: PathBuf) {
        let length = fs::metadata(&path).map_or(0, |facts| facts.len());
        if length > CANDIDATE_BYTES_MAX || self.bytes.saturating_add(length) > READ_BYTES_MAX {
            return;
        }
        self.bytes += length;
        if fs::read(&path).is_ok_and(|bytes| is_main(&bytes)) {
            self.found.push(path);
        }
    }
}
