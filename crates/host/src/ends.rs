//! Both ends of the TCP sockets of a network namespace, by socket number (inode), as descriptors name them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;

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
    }
}
