//! Which process listens at an address, also in the network namespaces of containers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::listen;
use super::process::PROCESSES_MAX;

/// Most network namespaces that are read.
const NAMESPACES_MAX: usize = 256;
/// Most descriptors of a process that are read.
const FILES_MAX: usize = 4096;

/// A listening socket of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listener {
    pid: u32,
    /// `127.0.0.1:80`, `[::]:80`, `unix:/run/x.sock`.
    at: String,
    /// The network namespace: its index in [`Listeners::namespaces`].
    namespace: usize,
}

/// The listening sockets of all processes whose descriptors are readable.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    all: Vec<Listener>,
    /// The own addresses of each network namespace; the first is that of this process.
    namespaces: Vec<BTreeSet<IpAddr>>,
}

/// Reads the listening sockets below `root`. Processes of other users are readable only for root.
pub fn listeners_under(root: &Path) -> Listeners {
    let mut found = Listeners::default();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut sockets: Vec<BTreeMap<u64, String>> = Vec::new();
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten().take(PROCESSES_MAX);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = fs::read_link(root.join("proc/self")).ok().and_then(|path| path.to_str()?.parse().ok());
    for pid in own.into_iter().chain(pids) {
        let Ok(name) = fs::read_link(root.join(format!("proc/{pid}/ns/net"))) else { continue };
        let next = numbers.len();
        let namespace = *numbers.entry(name.display().to_string()).or_insert(next);
        if namespace >= NAMESPACES_MAX {
            continue;
        }
        if namespace == sockets.len() {
            sockets.push(listen::listening(root, pid));
            found.namespaces.push(own_addresses(root, pid));
        }
        let Some(known) = sockets.get(namespace).filter(|known| !known.is_empty()) else { continue };
        let entries = fs::read_dir(root.join(format!("proc/{pid}/fd"))).into_iter().flatten().flatten();
        for inode in entries.take(FILES_MAX).filter_map(|entry| listen::inode(&entry.path())) {
            let Some(at) = known.get(&inode) else { continue };
            let listener = Listener { pid, at: at.clone(), namespace };
            if !found.all.contains(&listener) {
                found.all.push(listener);
            }
        }
    }
    found
}

impl Listeners {
    /// The processes that listen where a client of this network namespace arrives with `address`
    /// (`127.0.0.1:3000`, `unix:/run/app.sock`).
    pub fn of(&self, address: &str) -> BTreeSet<u32> {
        self.reached(0, address)
    }

    /// As [`Listeners::of`], for a client in the network namespace of a process that listens. Of a process that does not, for
    /// this namespace.
    pub fn of_client(&self, pid: u32, address: &str) -> BTreeSet<u32> {
        let namespace = self.all.iter().find(|listener| listener.pid == pid).map_or(0, |own| own.namespace);
        self.reached(namespace, address)
    }

    fn reached(&self, from: usize, address: &str) -> BTreeSet<u32> {
        let is_it = |listener: &&Listener| match address.parse::<SocketAddr>() {
            Ok(address) => self.accepts(listener, from, address),
            Err(_) => listener.at == address,
        };
        self.all.iter().filter(is_it).map(|listener| listener.pid).collect()
    }

    /// The addresses at which a process listens.
    pub fn at(&self, pid: u32) -> impl Iterator<Item = &str> {
        self.all.iter().filter(move |listener| listener.pid == pid).map(|listener| listener.at.as_str())
    }

    fn accepts(&self, listener: &Listener, from: usize, address: SocketAddr) -> bool {
        let Ok(at) = listener.at.parse::<SocketAddr>() else { return false };
        let is_own = self.namespaces.get(listener.namespace).is_some_and(|own| own.contains(&address.ip()));
        let is_there = match address.ip().is_loopback() {
            // Each namespace has a loopback interface of its own.
            true => listener.namespace == from,
            false => is_own,
        };
        at.port() == address.port() && is_there && (at.ip().is_unspecified() || at.ip() == address.ip())
    }
}

/// The addresses of the network namespace of a process.
fn own_addresses(root: &Path, pid: u32) -> BTreeSet<IpAddr> {
    let mut found = BTreeSet::new();
    // An address stands in a line `|-- 10.0.0.5`, and the next line `/32 host LOCAL` says that it is an own address
    // (Linux, net/ipv4/fib_trie.c).
    let table = fs::read_to_string(root.join(format!("proc/{pid}/net/fib_trie"))).unwrap_or_default();
    let mut last = None;
    for line in table.lines() {
        match line.split_once("-- ") {
            Some((_, address)) => last = address.trim().parse::<IpAddr>().ok(),
            None if line.contains("host LOCAL") => found.extend(last),
            None => {}
        }
    }
    let table = fs::read_to_string(root.join(format!("proc/{pid}/net/if_inet6"))).unwrap_or_default();
    found.extend(table.lines().filter_map(|line| {
        let digits = line.split(' ').next().filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(|bits| IpAddr::V6(bits.into()))
    }));
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    #[test]
    fn a_container_answers_at_its_own_address_only() {
        let head = "head\n";
        let row = |address: &str, inode: u64| {
            format!("{head} 0: {address} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 0\n")
        };
        let trie =
            |address: &str| format!("Local:\n  |-- {address}\n     /32 host LOCAL\n  |-- 10.9.9.9\n     /24 link\n");
        let files = [
            ("proc/7/net/tcp", row("0100007F:0BB8", 111)),
            ("proc/7/net/fib_trie", trie("192.168.0.9")),
            ("proc/8/net/tcp", row("00000000:0BB8", 222)),
            ("proc/8/net/fib_trie", trie("172.17.0.2")),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let root = tree::made_up(&files);
        std::os::unix::fs::symlink("7", root.path().join("proc/self")).unwrap();
        for (pid, inode) in [(7, 111), (8, 222)] {
            for (name, target) in [("ns/net", format!("net:[{pid}]")), ("fd/3", format!("socket:[{inode}]"))] {
                let link = root.path().join(format!("proc/{pid}/{name}"));
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(target, link).unwrap();
            }
        }
        let found = listeners_under(root.path());
        let of = |address: &str| found.of(address).into_iter().collect::<Vec<_>>();
        assert_eq!(of("127.0.0.1:3000"), [7]);
        assert_eq!(of("172.17.0.2:3000"), [8]);
        // Within the container, loopback is its own.
        assert_eq!(found.of_client(8, "127.0.0.1:3000").into_iter().collect::<Vec<_>>(), [8]);
        assert_eq!(of("10.9.9.9:3000"), Vec::<u32>::new());
        assert_eq!(of("192.168.0.9:3000"), Vec::<u32>::new());
        assert_eq!(found.at(8).collect::<Vec<_>>(), ["0.0.0.0:3000"]);
    }

    #[test]
    fn this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let found = listeners_under(Path::new("/"));
        assert_eq!(found.of(&at).into_iter().collect::<Vec<_>>(), [std::process::id()]);
    }
}
