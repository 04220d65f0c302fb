//! The pid file: how `-s reload` finds the running process.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes our process id and a newline. Only the owner may write the file, also under the umask 0 that nginx passes on
/// at a binary upgrade: Debian's init script refuses a file that everybody may write.
pub fn write_pid_file(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path)?;
    writeln!(file, "{}", std::process::id())
}

/// Whether [`write_pid_file`] can write this file; leaves the file as it is, or none if there was none.
///
/// # Errors
/// The directory is missing, the path is one of a directory, or this user may not write it.
pub fn try_pid_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        Ok(_) => Ok(()),
        // No file is made and removed: another process may write its own there meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => crate::path::try_new_file(path),
        Err(error) => Err(error),
    }
}

/// Reads a process id written by us or by nginx; `InvalidData` if it holds none.
pub fn read_pid_file(path: &Path) -> io::Result<u32> {
    let text = fs::read_to_string(path)?;
    let text = text.trim();
    match text.parse::<u32>() {
        Ok(pid) if pid > 0 && i32::try_from(pid).is_ok() => Ok(pid),
        // nginx: the words of `nginx -s` (ngx_cycle.c).
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("invalid PID number \"{text}\" in \"{}\"", path.display()),
        )),
    }
}

/// Removes it; a missing file is not an error.
pub fn remove_pid_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Renames it, as at a binary upgrade (`nginx.pid` to `nginx.pid.oldbin`) and back.
pub fn rename_pid_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_try_changes_nothing() {
        let path = std::env::temp_dir().join(format!("weir-net-try-{}.pid", std::process::id()));
        try_pid_file(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "7").unwrap();
        try_pid_file(&path).unwrap();
        assert_eq!(read_pid_file(&path).unwrap(), 7);
        let below = try_pid_file(&path.join("nginx.pid")).unwrap_err();
        assert_eq!(below.kind(), io::ErrorKind::NotADirectory);
        assert_eq!(try_pid_file(&std::env::temp_dir()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        remove_pid_file(&path).unwrap();
    }

    #[test]
    fn several_tries_at_once_do_not_see_one_another() {
        let path = std::env::temp_dir().join(format!("weir-net-tries-{}.pid", std::process::id()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..2000).for_each(|_| try_pid_file(&path).unwrap()));
            }
        });
    }

    #[test]
    fn written_renamed_read_removed() {
        let path = std::env::temp_dir().join(format!("weir-net-{}.pid", std::process::id()));
        let old = path.with_extension("pid.oldbin");
        write_pid_file(&path).unwrap();
        rename_pid_file(&path, &old).unwrap();
        assert_eq!(read_pid_file(&old).unwrap(), std::process::id());
        assert!(read_pid_file(&path).is_err());
        for bad in ["", "x", "0", "-5", "4294967295"] {
            fs::write(&old, bad).unwrap();
            let error = read_pid_file(&old).unwrap_err();
            assert!(error.to_string().starts_with("invalid PID number"), "{bad}");
        }
        remove_pid_file(&old).unwrap();
        remove_pid_file(&old).unwrap();
    }
}
