//! Reports of `weir ci`: files, or stdout.

use std::path::{Path, PathBuf};

use weir_words::Said;

use crate::lab::kept::write;

/// Writes a report to a file; `-` is stdout.
pub(super) fn give(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Said> {
    match path {
        None => Ok(()),
        Some(path) if path.as_os_str() == "-" => {
            print!("{}", text());
            Ok(())
        }
        Some(path) => write(path, &text()),
    }
}

/// Whether one of these reports goes to stdout. Then nothing else does.
pub(super) fn is_stdout_taken(paths: &[&Option<PathBuf>]) -> bool {
    paths.iter().any(|path| path.as_ref().is_some_and(|path| path.as_os_str() == "-"))
}
