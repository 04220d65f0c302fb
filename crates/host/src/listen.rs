//! The listening sockets of a network namespace, and the processes that hold them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;

use super::tcp::{LISTEN, SOCKETS_MAX, row};

/// Most descriptors of a process that are read.
const FILES_MAX: usize = 65_536;
/// `__SO_ACCEPTCON`, the flag of a listening Unix socket (Linux, include/uapi/linux/net.h).
const ACCEPTS: u64 = 1 << 16;

/// The listening addresses of a family of processes: `127.0.0.1:80`, `[::]:80`, `unix:/run/x.sock`. Assumes that all
/// are in the first one's network namespace.
///
/// For a process whose descriptors are not readable, no address is known.
pub fn listens_of(root: &Path, family: &[u32]) -> BTreeSet<String> {
    let Some(first) = family.first() else { return BTreeSet::new() };
    let known = listening(root, *first);
    let mut found = BTreeSet::new();
    for pid in family {
        let entries = fs::read_dir(root.join(format!("proc/{pid}/fd"))).into_iter().flatten().flatten();
        let inodes = entries.take(FILES_MAX).filter_map(|entry| inode(&entry.path()));
        found.extend(inodes.filter_map(|inode| known.get(&inode)).cloned());
    }
    found
}

/// The TCP addresses at which any process of a network namespace listens: that of the process `pid`, else that of this
/// one. `None` if the kernel's table is not readable.
pub fn listening_under(root: &Path, pid: Option<u32>) -> Option<BTreeSet<SocketAddr>> {
    // Below the root of a container, this process has no directory, and the first one does.
    let names = pid.map_or(vec!["self".to_owned(), "1".to_owned()], |pid| vec![pid.to_string()]);
    let name = names.iter().find(|name| root.join(format!("proc/{name}/net/tcp")).exists())?;
    Some(tcp(root, name).into_values().filter_map(|at| at.parse().ok()).collect())
}

/// The listening sockets of a process's network namespace, by their inode.
pub(super) fn listening(root: &Path, pid: u32) -> BTreeMap<u64, String> {
    let mut known = tcp(root, &pid.to_string());
    known.extend(unix(root, pid));
    known
}

/// The inode of the socket behind a descriptor of `/proc/PID/fd`; `None` if it is not a socket.
pub(super) fn inode(descriptor: &Path) -> Option<u64> {
    fs::read_link(descriptor).ok()?.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn tcp(root: &Path, pid: &str) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    for name in ["tcp", "tcp6"] {
        let Ok(file) = File::open(root.join(format!("proc/{pid}/net/{name}"))) else { continue };
        let lines = BufReader::new(file.take(SOCKETS_MAX as u64 * 256)).lines().skip(1);
        let rows = lines.map_while(Result::ok).take(SOCKETS_MAX).filter_map(|line| row(&line));
        found.extend(rows.filter(|row| row.state == LISTEN).map(|row| (row.inode, row.local.to_string())));
    }
    found
}

/// `Num: RefCount Protocol Flags Type St Inode Path` (Linux, net/unix/af_unix.c, `unix_seq_show`).
fn unix(root: &Path, pid: u32) -> BTreeMap<u64, String> {
    let Ok(file) = File::open(root.join(format!("proc/{pid}/net/unix"))) else { return BTreeMap::new() };
    let lines = BufReader::new(file.take(SOCKETS_MAX as u64 * 256)).lines().skip(1);
    let listener = |line: String| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, _, flags, _, _, inode, path] = words.as_slice() else { return None };
        let flags = u64::from_str_radix(flags, 16).ok()?;
        (flags & ACCEPTS != 0).then_some((inode.parse().ok()?, format!("unix:{path}")))
    };
    lines.map_while(Result::ok).take(SOCKETS_MAX).filter_map(listener).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    #[test]
    fn a_socket_is_whose_descriptor_it_is() {
        let tcp = "head\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0\n\
            1: 00000000:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1 0\n\
            2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 333 1 0\n";
        let unix = "head\n0000: 00000002 00000000 00010000 0001 01 444 /run/x.sock\n\
            0000: 00000002 00000000 00000000 0001 03 555 /run/y.sock\n";
        let root = tree::made_up(&[("proc/7/net/tcp", tcp), ("proc/7/net/unix", unix)]);
        for (pid, descriptor, inode) in [(7, 3, 111), (8, 4, 444), (8, 5, 333), (8, 6, 555)] {
            let dir = root.path().join(format!("proc/{pid}/fd"));
            fs::create_dir_all(&dir).unwrap();
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), dir.join(descriptor.to_string())).unwrap();
        }
        let of = |family: &[u32]| listens_of(root.path(), family).into_iter().collect::<Vec<_>>();
        assert_eq!(of(&[7]), ["127.0.0.1:8080"]);
        assert_eq!(of(&[7, 8]), ["127.0.0.1:8080", "unix:/run/x.sock"]);
        assert_eq!(of(&[]), Vec::<String>::new());
    }

    #[test]
    fn this_process_is_found_where_it_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        assert!(listens_of(Path::new("/"), &[std::process::id()]).contains(&at));
    }
}
