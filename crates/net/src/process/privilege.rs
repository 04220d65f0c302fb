//! Users, groups, and a thread that gives up root.
//!
//! Linux keeps credentials per thread; the C library spreads a `setuid` over all threads. We make the system calls
//! themselves. A server gives root up as a whole ([`confine`]). With `master_process off`, worker threads become `user`,
//! and the control thread stays root so that a reload can bind port 80. The limit of this: threads share memory, so against code execution in a worker it protects less than nginx's processes
//! (docs/why/001-runtime.md).

use crate::log::{self, Level, Os};
use crate::sys;
use rustix::process::{Gid, Uid, geteuid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities, set_keep_capabilities,
    set_no_new_privs,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Groups one user may be in; the kernel's own bound is 65536.
const GROUPS_MAX: usize = 65_536;

/// The user of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// All groups, including `gid`.
    pub groups: Vec<u32>,
    /// The thread keeps `CAP_NET_RAW`, to connect from addresses of other machines.
    pub keeps_raw: bool,
}

/// Finds a user, and a group if it should not be the user's own group.
///
/// From `/etc/passwd` and `/etc/group`, not through the C library's name service: that would need dynamic loading.
/// Fails in nginx's words if a name is unknown.
pub fn look_up(user: &str, group: Option<&str>) -> io::Result<Identity> {
    look_up_under(Path::new("/"), user, group)
}

/// As [`look_up`], reading `etc/` below `root`.
pub fn look_up_under(root: &Path, user: &str, group: Option<&str>) -> io::Result<Identity> {
    let passwd = fs::read_to_string(root.join("etc/passwd"))?;
    let groups = fs::read_to_string(root.join("etc/group"))?;
    // name:password:uid:gid:...
    let (uid, own_gid) = passwd
        .lines()
        .find_map(|line| {
            let mut parts = line.split(':');
            if parts.next()? != user {
                return None;
            }
            Some((parts.nth(1)?.parse().ok()?, parts.next()?.parse().ok()?))
        })
        .ok_or_else(|| unknown("getpwnam", user))?;
    let gid = match group {
        Some(name) => groups
            .lines()
            .filter_map(parse_group)
            .find_map(|(known, gid, _)| (known == name).then_some(gid))
            .ok_or_else(|| unknown("getgrnam", name))?,
        None => own_gid,
    };
    let mut all = vec![gid];
    for (_, member_gid, members) in groups.lines().filter_map(parse_group) {
        let is_member = members.split(',').any(|member| member == user);
        if is_member && !all.contains(&member_gid) && all.len() < GROUPS_MAX {
            all.push(member_gid);
        }
    }
    Ok(Identity { uid, gid, groups: all, keeps_raw: false })
}

/// `name:password:gid:member,member`.
fn parse_group(line: &str) -> Option<(&str, u32, &str)> {
    let mut parts = line.split(':');
    let name = parts.next()?;
    let gid = parts.nth(1)?.parse().ok()?;
    Some((name, gid, parts.next().unwrap_or("").trim()))
}

fn unknown(call: &str, name: &str) -> io::Error {
    let what = format!("{call}(\"{name}\") failed");
    io::Error::new(io::ErrorKind::NotFound, what)
}

/// True if this thread may change its user.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// The effective user of this thread.
pub fn effective_user() -> u32 {
    geteuid().as_raw()
}

/// The user who started this process: it does not change when a thread gives up root.
pub fn starter() -> u32 {
    static STARTER: OnceLock<u32> = OnceLock::new();
    *STARTER.get_or_init(|| getuid().as_raw())
}

/// Makes `identity` the user of the calling thread, and of threads that it starts, for good.
///
/// Groups first, then gid, then uid: after that there is no way back. On an error the thread may be half-way and must
/// end.
pub fn drop_privileges_this_thread(identity: &Identity) -> io::Result<()> {
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    // Read while all threads still have the user who started them.
    starter();
    let (gid, uid) = (Gid::from_raw(identity.gid), Uid::from_raw(identity.uid));
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    let keeps = identity.keeps_raw && geteuid().is_root() && !uid.is_root();
    if keeps {
        // Otherwise the kernel takes all capabilities with the user.
        set_keep_capabilities(true)?;
    }
    set_thread_res_uid(uid, uid, uid)?;
    if keeps {
        let (raw, none) = (CapabilitySet::NET_RAW, CapabilitySet::empty());
        set_capabilities(None, CapabilitySets { effective: raw, permitted: raw, inheritable: none })?;
        set_keep_capabilities(false)?;
    }
    Ok(())
}

/// Lets the calling thread open files as `identity`, for good, and gives up its capabilities. The thread itself keeps its user: a
/// process of `identity`'s user may not signal it, nor with it the whole process.
pub fn open_files_as(identity: &Identity) -> io::Result<()> {
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    set_thread_groups(&groups)?;
    if !sys::set_file_user(identity.uid, identity.gid) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// Whether this process has its user for good.
static IS_CONFINED: AtomicBool = AtomicBool::new(false);

/// Whether [`confine`] has given this process its user.
pub fn is_confined() -> bool {
    IS_CONFINED.load(Ordering::Relaxed)
}

/// Gives up the capabilities that a service manager has given to the user who starts weir. Only the keeper needs them, except
/// for the one with which a server connects from addresses of other machines.
fn give_up_capabilities() -> io::Result<()> {
    let kept = capabilities(None)?.permitted & CapabilitySet::NET_RAW;
    clear_ambient_capability_set()?;
    Ok(set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?)
}

/// Makes `identity` the user of this process for good, if there is one, without capabilities; no program that it starts
/// gets more rights than it has.
///
/// Call before any thread is started.
pub fn confine(identity: Option<&Identity>) -> io::Result<()> {
    match identity {
        Some(identity) => drop_privileges_this_thread(identity)?,
        None => {
            starter();
            // A service manager may forbid the call.
            if let Err(error) = give_up_capabilities() {
                log::global(Level::Warn, format_args!("capset() failed {}: the server keeps capabilities", Os(&error)));
            }
        }
    }
    set_no_new_privs(true)?;
    IS_CONFINED.store(true, Ordering::Relaxed);
    Ok(())
}

/// No program that this process starts gets more rights than it has; [`super::restrict_files`] needs this without root.
///
/// Call before any thread is started.
pub fn forbid_more_rights() -> io::Result<()> {
    Ok(set_no_new_privs(true)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn root_dir(name: &str, passwd: &str, group: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("weir-net-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::write(root.join("etc/passwd"), passwd).unwrap();
        fs::write(root.join("etc/group"), group).unwrap();
        root
    }

    #[test]
    fn users_and_groups_are_found() {
        let root = root_dir(
            "users",
            "root:x:0:0:root:/root:/bin/sh\nbroken\nwww:x:33:34:www:/:/bin/false\n",
            "root:x:0:\nwww:x:34:\nlogs:x:50:ann,www\nssl:x:51:wwwx\nstrange\n",
        );
        let check = |user: &str, group, uid, gid, groups: &[u32]| {
            let found = look_up_under(&root, user, group).unwrap();
            assert_eq!((found.uid, found.gid, &*found.groups), (uid, gid, groups));
        };
        check("root", None, 0, 0, &[0]);
        check("www", None, 33, 34, &[34, 50]);
        check("www", Some("ssl"), 33, 51, &[51, 50]);
        let error = look_up_under(&root, "bob", None).unwrap_err();
        assert_eq!(error.to_string(), "getpwnam(\"bob\") failed");
        let error = look_up_under(&root, "www", Some("x")).unwrap_err();
        assert_eq!(error.to_string(), "getgrnam(\"x\") failed");
        fs::remove_dir_all(root).unwrap();
    }

    fn uids_of_this_thread() -> String {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("Uid:"));
        line.unwrap().to_owned()
    }

    #[test]
    fn one_capability_may_outlast_root() {
        let identity = |keeps_raw| Identity { uid: 65_534, gid: 65_534, groups: vec![65_534], keeps_raw };
        let effective = || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).map(str::to_owned);
            u64::from_str_radix(&line.unwrap(), 16).unwrap()
        };
        // CAP_NET_RAW is number 13 in <linux/capability.h>.
        for (keeps_raw, left) in [(false, 0), (true, 1 << 13)] {
            let worker = std::thread::spawn(move || {
                let may = is_root() && effective() & (1 << 13) != 0;
                (may && drop_privileges_this_thread(&identity(keeps_raw)).is_ok()).then(effective)
            });
            if let Some(kept) = worker.join().unwrap() {
                assert_eq!(kept, left);
            }
        }
    }

    #[test]
    fn a_thread_opens_files_as_a_user_that_may_not_signal_it() {
        if !is_root() {
            return;
        }
        let path = std::env::temp_dir().join(format!("weir-files-as-{}", std::process::id()));
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let (file, identity) =
            (path.clone(), Identity { uid: 65_534, gid: 65_534, groups: vec![65_534], keeps_raw: false });
        let thread = std::thread::spawn(move || {
            open_files_as(&identity).unwrap();
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
            (fs::read(&file).unwrap_err().kind(), line("Uid:"), line("CapEff:\t"))
        });
        let (refused, uids, capabilities) = thread.join().unwrap();
        assert_eq!(refused, io::ErrorKind::PermissionDenied);
        // Real, effective, saved, of files: the kernel asks the first and the third whether a signal may come.
        assert_eq!(uids, "\t0\t0\t0\t65534");
        assert_eq!(capabilities.trim_start_matches('0'), "");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn only_the_calling_thread_drops() {
        let before = uids_of_this_thread();
        let identity = Identity { uid: 65_534, gid: 65_534, groups: vec![65_534], keeps_raw: false };
        let root = is_root();
        let worker = std::thread::spawn(move || {
            let dropped = drop_privileges_this_thread(&identity);
            (dropped.is_ok(), uids_of_this_thread(), is_root())
        });
        let (dropped, uids, still_root) = worker.join().unwrap();
        // Without privilege the call fails and nothing changes. With privilege it changes this thread, and only this
        // thread, for good.
        if root && dropped {
            assert_eq!(uids, "Uid:\t65534\t65534\t65534\t65534");
            assert!(!still_root);
        } else {
            assert_eq!(uids, before);
        }
        assert_eq!(uids_of_this_thread(), before);
        assert_eq!(is_root(), root);
    }
}
