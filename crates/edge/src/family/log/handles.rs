//! Files whose names have variables: opened for each line, or kept open by `open_log_file_cache`.
//!
//! The process has one cache, limited by `max`.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use weir_http::family::disable_symlinks::{Guarded, append};
use weir_net::clock;
use weir_net::open_files::{Limits, OpenFiles};

static OPEN: LazyLock<Mutex<OpenFiles<Arc<File>>>> = LazyLock::new(Mutex::default);

/// Appends a line to the file of that name. Only a failure to open the file is an error, as in nginx.
pub fn write(path: &[u8], cache: Option<&Limits>, guard: Guarded, line: &[u8]) -> io::Result<()> {
    let open = || append(guard, path).map(Arc::new);
    let file = match cache {
        None => open()?,
        Some(limits) => {
            let mut files = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
            files.get(path, guard, limits, clock::now(), |_| open())?
        }
    };
    let _ = (&*file).write(line);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::time::Duration;

    #[test]
    fn lines_go_to_the_file_that_stays_open_or_to_a_new_one() {
        let path = std::env::temp_dir().join(format!("weir-handles-{}", std::process::id()));
        let moved = path.with_extension("1");
        let bytes = path.as_os_str().as_bytes();
        let minute = Duration::from_secs(60);
        let limits = Limits { max: 1, inactive: minute, min_uses: 1, valid: minute };
        write(bytes, Some(&limits), None, b"1\n").unwrap();
        std::fs::rename(&path, &moved).unwrap();
        write(bytes, Some(&limits), None, b"2\n").unwrap();
        write(bytes, None, None, b"3\n").unwrap();
        assert_eq!(std::fs::read(&moved).unwrap(), b"1\n2\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"3\n");
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&moved).unwrap();
        assert!(write(b"/nonexistent/log", Some(&limits), None, b"").is_err());
    }
}
