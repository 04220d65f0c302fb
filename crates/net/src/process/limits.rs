//! Sets the limit on open files; the crate `host` reads it.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::io;

/// Raises the soft limit on open files to the hard one: `(old, new)` soft limit.
///
/// A proxy needs two descriptors per exchange, and the usual soft limit of 1024
/// exists for programs that call `select`. `u64::MAX` means unlimited.
pub fn raise_nofile() -> io::Result<(u64, u64)> {
    let limit = getrlimit(Resource::Nofile);
    let old = limit.current.unwrap_or(u64::MAX);
    let new = limit.maximum.unwrap_or(u64::MAX);
    if new > old {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised)?;
    }
    Ok((old, new))
}

/// The soft limit on open files in force; `u64::MAX` means unlimited.
pub fn nofile() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The hard limit on open files: the most that [`raise_nofile`] can set.
pub fn nofile_hard() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Sets both limits; nginx's `worker_rlimit_nofile`.
///
/// Only root may raise the hard limit (`EPERM`); nobody may raise it above `fs.nr_open`.
pub fn set_nofile(files: u64) -> io::Result<()> {
    let limit = Rlimit { current: Some(files), maximum: Some(files) };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Gives another process of this user, or any if this one is root, the limits of this one.
pub fn share_nofile(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(prlimit(Some(pid), Resource::Nofile, getrlimit(Resource::Nofile)).map(drop)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_host::file_limit;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let (old, new) = raise_nofile().unwrap();
        assert!(new >= old);
        let limit = file_limit().unwrap();
        assert_eq!((limit.soft, limit.hard), (new, new));
        // The limits in force may always be set again.
        set_nofile(new).unwrap();
        assert_eq!(file_limit().unwrap(), limit);
    }
}
