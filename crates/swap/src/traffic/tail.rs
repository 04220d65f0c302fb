//! The last lines of a log, however large it is and whatever it contains.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use weir_words::{Said, said};

/// Most bytes that are read, from the end of a log.
pub const TAIL_BYTES_MAX: u64 = 16 << 20;
/// The longest line that is read, in bytes; a longer line is left out.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Calls `see` for each of the last lines, the newest first, until `see` returns false.
///
/// # Errors
/// A sentence for the user: why the file cannot be read.
pub fn lines(path: &Path, mut see: impl FnMut(&[u8]) -> bool) -> Result<(), Said> {
    let shown = path.display();
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => said!(
            "{shown}: permission denied: run weir adopt as root",
            "{shown}: 권한이 없습니다. weir adopt를 root로 실행하세요"
        ),
        _ => said!("{shown}: {error}", "{shown}: {error}"),
    };
    // The kind comes first: opening a FIFO would wait for a writer.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() {
        return Err(said!("{shown} is not a regular file", "일반 파일이 아닙니다: {shown}"));
    }
    let mut file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    let from = len.saturating_sub(TAIL_BYTES_MAX);
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    let mut kept = bytes.as_slice();
    if from > 0 {
        // The first line began earlier.
        let end = memchr::memchr(b'\n', kept).map_or(kept.len(), |end| end + 1);
        kept = kept.get(end..).unwrap_or_default();
    }
    for line in kept.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line.len() <= LINE_BYTES_MAX) {
        if !see(line) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    fn seen(path: &Path) -> Result<Vec<String>, Said> {
        let mut all = Vec::new();
        lines(path, |line| {
            all.push(String::from_utf8_lossy(line).into_owned());
            true
        })?;
        Ok(all)
    }

    #[test]
    fn only_the_end_of_a_large_log_is_read() {
        let place = std::env::temp_dir().join(format!("weir-adopt-tail-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let log = place.join("log");
        let mut file = File::create(&log).unwrap();
        file.set_len(10 << 30).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"cut\none\n\n").unwrap();
        file.write_all(&vec![b'x'; LINE_BYTES_MAX + 1]).unwrap();
        file.write_all(b"\ntwo").unwrap();
        assert_eq!(seen(&log).unwrap(), ["two", "one"]);
        std::fs::write(&log, b"").unwrap();
        assert!(seen(&log).unwrap().is_empty());
        assert!(seen(&place).unwrap_err().contains("is not a regular file"));
        assert!(seen(&place.join("none")).unwrap_err().contains("No such file"));
        std::fs::remove_dir_all(place).unwrap();
    }
}
