//! Both ends of the TCP sockets of a network namespace, by socket number (inode), as descriptors name them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;

use super::listen;
use super::tcp::{LISTEN, SOCKETS_MAX, row};

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The local address.
    pub local: SocketAddr,
    /// The remote address.
    pub remote: SocketAddr,
    /// True if the socket listens.
    pub is_listening: bool,
}

/// The TCP sockets in a process's network namespace, at most [`SOCKETS_MAX`], from `/proc/PID/net/tcp` and `tcp6`.
pub fn ends_of(root: &Path, pid: u32) -> BTreeMap<u64, Ends> {
    let mut found = BTreeMap::new();
    for name in ["tcp", "tcp6"] {
        let Ok(file) = File::open(root.join(format!("proc/{pid}/net/{name}"))) else { continue };
        let lines = BufReader::new(file.take(SOCKETS_MAX as u64 * 256)).lines().skip(1);
        let rows = lines.map_while(Result::ok).take(SOCKETS_MAX).filter_map(|line| row(&line));
        found.extend(
            rows.filter(|row| row.inode != 0).map(|row| {
                (row.inode, Ends { local: row.local, remote: row.remote, is_listening: row.state == LISTEN })
            }),
        );
    }
    found
}

/// Most descriptors of a process that are read.
const FILES_MAX: usize = 65_536;

/// The remote addresses of the connections that a family of processes opened: those from a local port at which no
/// process listens. Assumes that all are in the first one's network namespace.
pub fn peers_of(root: &Path, family: &[u32]) -> BTreeSet<SocketAddr> {
    let Some(first) = family.first() else { return BTreeSet::new() };
    let all = ends_of(root, *first);
    let own: BTreeSet<u16> = all.values().filter(|ends| ends.is_listening).map(|ends| ends.local.port()).collect();
    let mut found = BTreeSet::new();
    for pid in family {
        let entries = fs::read_dir(root.join(format!("proc/{pid}/fd"))).into_iter().flatten().flatten();
        let inodes = entries.take(FILES_MAX).filter_map(|entry| listen::inode(&entry.path()));
        let ends = inodes.filter_map(|inode| all.get(&inode));
        found.extend(
            ends.filter(|ends| !ends.is_listening && !own.contains(&ends.local.port())).map(|ends| ends.remote),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_socket_is_found_by_its_number() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(at).unwrap();
        let all = ends_of(Path::new("/"), std::process::id());
        assert!(all.values().any(|ends| ends.is_listening && ends.local == at));
        let own = client.local_addr().unwrap();
        assert!(all.values().any(|ends| !ends.is_listening && ends.local == own && ends.remote == at));
        assert!(ends_of(Path::new("/nowhere"), 1).is_empty());
        // The other end is accepted at a port that listens.
        let _accepted = listener.accept().unwrap();
        let peers = peers_of(Path::new("/"), &[std::process::id()]);
        assert!(peers.contains(&at) && !peers.contains(&own) && peers_of(Path::new("/"), &[]).is_empty());
    }
}
