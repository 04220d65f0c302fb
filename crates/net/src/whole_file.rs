//! Small files that are read and written whole: the state that an edge keeps over a restart.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads a file of at most `max` bytes; a larger one is an error of the kind `FileTooLarge`, also if it grew meanwhile.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let why = format!("larger than {max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Replaces a file, whole or not at all: writes a new file beside it, flushes that to the disk, then renames it.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    // Only the owner may write it, whatever umask started weir.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_replaces_is_read_and_what_is_too_large_is_not() {
        let path = std::env::temp_dir().join(format!("weir-whole-{}", std::process::id()));
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::NotFound);
        for text in ["one", "two"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(read(&path, 3).unwrap(), text.as_bytes());
        }
        assert_eq!(read(&path, 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::remove_file(&path).unwrap();
    }
}
