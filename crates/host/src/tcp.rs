//! TCP in the network namespace of a process: its sockets, and the kernel's counters.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::files::Files;

/// Most sockets that are read; each is a line of about 150 bytes.
pub const SOCKETS_MAX: usize = 200_000;
/// Most peers that are counted separately; further ones are left out.
pub const PEERS_MAX: usize = 1024;

/// `st` in `/proc/net/tcp`: TIME_WAIT, LISTEN, SYN_RECV (Linux, include/net/tcp_states.h).
const TIME_WAIT: u8 = 6;
pub(super) const LISTEN: u8 = 10;
const SYN_RECV: u8 = 3;

/// The sockets of a namespace, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    /// Connections that wait to be accepted, by the listening address.
    pub waiting: BTreeMap<SocketAddr, u64>,
    /// Local ports that connections to an address hold, including those in `TIME_WAIT`.
    pub held: BTreeMap<SocketAddr, HeldPorts>,
    /// Incoming connections that are not established yet.
    pub arriving: u64,
    /// True if there were more than [`SOCKETS_MAX`].
    pub is_cut: bool,
}

/// Local ports towards one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldPorts {
    /// All ports.
    pub ports: u64,
    /// Ports in `TIME_WAIT`.
    pub resting: u64,
}

/// The sockets in a process's network namespace. A connection counts as outgoing if no socket listens on its local
/// port.
pub fn sockets_of(root: &Path, pid: u32) -> SocketCounts {
    let mut found = SocketCounts::default();
    let mut rows = Vec::new();
    for file in ["tcp", "tcp6"] {
        let Ok(file) = File::open(root.join(format!("proc/{pid}/net/{file}"))) else { continue };
        // A line has a limited length; a longer line is not from the kernel.
        let lines = BufReader::new(file.take(SOCKETS_MAX as u64 * 256)).lines().skip(1);
        for line in lines.map_while(Result::ok).take(SOCKETS_MAX) {
            rows.extend(row(&line));
        }
    }
    found.is_cut = rows.len() >= SOCKETS_MAX;
    for row in rows.iter().filter(|row| row.state == LISTEN) {
        *found.waiting.entry(row.local).or_default() += row.received;
    }
    let ports: std::collections::BTreeSet<u16> = found.waiting.keys().map(SocketAddr::port).collect();
    for row in rows.iter().filter(|row| row.state != LISTEN) {
        found.arriving += u64::from(row.state == SYN_RECV);
        let is_known = found.held.contains_key(&row.remote);
        if ports.contains(&row.local.port()) || (!is_known && found.held.len() >= PEERS_MAX) {
            continue;
        }
        let held = found.held.entry(row.remote).or_default();
        held.ports += 1;
        held.resting += u64::from(row.state == TIME_WAIT);
    }
    found
}

/// Port of name servers (RFC 1035 §4.2).
const NAMES: u16 = 53;

/// Sockets in a process's network namespace that are open towards a name server. The C library's resolver has one for
/// each waiting question; a resolver with its own sockets (nginx's) has one as long as it lives.
pub fn asking_names(root: &Path, pid: u32) -> u64 {
    let mut count = 0;
    for file in ["udp", "udp6", "tcp", "tcp6"] {
        let Ok(file) = File::open(root.join(format!("proc/{pid}/net/{file}"))) else { continue };
        let lines = BufReader::new(file.take(SOCKETS_MAX as u64 * 256)).lines().skip(1);
        let rows = lines.map_while(Result::ok).take(SOCKETS_MAX).filter_map(|line| row(&line));
        count += rows.filter(|row| row.remote.port() == NAMES && row.state != TIME_WAIT).count() as u64;
    }
    count
}

pub(super) struct Row {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub state: u8,
    /// Bytes that wait to be read; for a listener, connections that wait to be accepted.
    pub received: u64,
    /// The socket's number, as descriptors name it.
    pub inode: u64,
}

/// `sl: LOCAL REMOTE st tx:rx …` (Linux, net/ipv4/tcp_ipv4.c, `get_tcp4_sock`).
pub(super) fn row(line: &str) -> Option<Row> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let (_, received) = words.next()?.split_once(':')?;
    // The fields in between: timers, retransmissions, the owner's id and a timeout.
    let inode = words.nth(4).and_then(|inode| inode.parse().ok()).unwrap_or(0);
    Some(Row { local, remote, state, received: u64::from_str_radix(received, 16).ok()?, inode })
}

/// Parses an address in the kernel's hexadecimal form: 32-bit words in the machine's byte order, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes.get_mut(at * 4..at * 4 + 4)?.copy_from_slice(&word(at)?);
            }
            let ip = Ipv6Addr::from(bytes);
            ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// The counters `names` (of `TcpExt`, `Tcp`, `Udp` and `Ip`) of a process's network namespace; missing ones are left
/// out.
pub fn counters_of(root: &Path, pid: u32, names: &[&str]) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for file in ["netstat", "snmp"] {
        let text = fs::read_to_string(root.join(format!("proc/{pid}/net/{file}"))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let (Some(heads), Some(values)) = (pair.first(), pair.get(1)) else { continue };
            let columns = heads.split_ascii_whitespace().zip(values.split_ascii_whitespace()).skip(1);
            for (name, value) in columns.filter(|(name, _)| names.contains(name)) {
                // ip_forward and others may be negative. UdpLite has the same names as Udp, and comes after it.
                if let Ok(value) = value.parse() {
                    found.entry(name.to_owned()).or_insert(value);
                }
            }
        }
    }
    found
}

/// Bytes received and sent so far by each network device in a process's network namespace, except `lo`.
pub fn devices_of(root: &Path, pid: u32) -> BTreeMap<String, (u64, u64)> {
    let text = fs::read_to_string(root.join(format!("proc/{pid}/net/dev"))).unwrap_or_default();
    let device = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        Some((name.trim().to_owned(), (*numbers.first()?, *numbers.get(8)?)))
    };
    text.lines().filter_map(device).filter(|(name, _)| name != "lo").take(PEERS_MAX).collect()
}

/// Network devices that report their speed: bytes a second that they can send. Loopback and most virtual devices
/// report none.
pub fn link_speeds_under(files: &Files) -> BTreeMap<String, u64> {
    let text = files.text("proc/self/net/dev").unwrap_or_default();
    let speed = |line: &str| {
        let name = line.split_once(':')?.0.trim();
        let megabits = files.number::<u64>(&format!("sys/class/net/{name}/speed")).filter(|megabits| *megabits > 0)?;
        Some((name.to_owned(), megabits.saturating_mul(125_000)))
    };
    text.lines().filter_map(speed).take(PEERS_MAX).collect()
}

/// Of the devices in `speeds`: bytes sent so far, and the speed.
pub fn links_under(files: &Files, speeds: &BTreeMap<String, u64>) -> BTreeMap<String, (u64, u64)> {
    if speeds.is_empty() {
        return BTreeMap::new();
    }
    let text = files.text("proc/self/net/dev").unwrap_or_default();
    let link = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let speed = speeds.get(name.trim())?;
        let sent = numbers.split_ascii_whitespace().nth(8)?.parse().ok()?;
        Some((name.trim().to_owned(), (sent, *speed)))
    };
    text.lines().filter_map(link).collect()
}

/// The lowest and the highest local port of outgoing connections, in this thread's namespace.
pub fn local_port_range(root: &Path) -> Option<(u16, u16)> {
    let text = fs::read_to_string(root.join("proc/sys/net/ipv4/ip_local_port_range")).ok()?;
    let mut ends = text.split_ascii_whitespace().map(str::parse::<u16>);
    Some((ends.next()?.ok()?, ends.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    #[test]
    fn sockets_are_told_apart() {
        let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000011 00:00000000 0\n\
            1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 0\n\
            2: 0100007F:C351 0200000A:0BB8 06 00000000:00000000 00:00000000 0\n\
            3: 0100007F:C352 0200000A:0BB8 01 00000000:00000000 00:00000000 0\n\
            4: 0100007F:1F90 0100007F:C353 03 00000000:00000000 00:00000000 0\n\
            rubbish\n";
        let six = "head\n 0: 0000000000000000FFFF00000100007F:C360 0000000000000000FFFF00000100007F:0051 01 0:0 0\n";
        let root = tree::made_up(&[("proc/7/net/tcp", tcp), ("proc/7/net/tcp6", six)]);
        let found = sockets_of(root.path(), 7);
        assert_eq!(found.waiting, [("127.0.0.1:8080".parse().unwrap(), 17)].into());
        let held = |ports, resting| HeldPorts { ports, resting };
        let expected = [("10.0.0.2:3000".parse().unwrap(), held(2, 1)), ("127.0.0.1:81".parse().unwrap(), held(1, 0))];
        assert_eq!(found.held, expected.into());
        assert_eq!((found.arriving, found.is_cut), (1, false));
        assert_eq!(sockets_of(Path::new("/nowhere"), 7), SocketCounts::default());
    }

    #[test]
    fn counters_and_devices_are_read() {
        let root = tree::made_up(&[
            ("proc/7/net/netstat", "TcpExt: A ListenOverflows ListenDrops\nTcpExt: 9 4 5\nIpExt: X\nIpExt: 1\n"),
            (
                "proc/7/net/snmp",
                "Tcp: ActiveOpens MaxConn\nTcp: 17 -1\nUdp: OutDatagrams\nUdp: 40\nUdpLite: OutDatagrams\nUdpLite: 0\n",
            ),
            (
                "proc/7/net/udp",
                "head\n 5: 0200000A:C350 0300000A:0035 01 0:0 0\n 6: 00000000:0035 00000000:0000 07 0:0 0\n",
            ),
            ("proc/7/net/dev", "a|b\n face|bytes\n  eth0: 5 1 0 0 0 0 0 0 6 2 0 0 0 0 0 0\n lo: 1 1 0 0 0 0 0 0 1 1\n"),
            ("proc/sys/net/ipv4/ip_local_port_range", "50000\t50199\n"),
        ]);
        let found = counters_of(root.path(), 7, &["ListenOverflows", "ActiveOpens", "MaxConn", "OutDatagrams"]);
        let expected = [("ListenOverflows", 4), ("ActiveOpens", 17), ("OutDatagrams", 40)];
        assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
        assert_eq!((asking_names(root.path(), 7), asking_names(root.path(), 8)), (1, 0));
        assert_eq!(devices_of(root.path(), 7), [("eth0".to_owned(), (5, 6))].into());
        let dev = " eth0: 5 1 0 0 0 0 0 0 600 2 0\n tun0: 1 1 0 0 0 0 0 0 7 1 0\n lo: 1 1 0 0 0 0 0 0 8 1 0\n";
        let files =
            [("proc/self/net/dev", dev), ("sys/class/net/eth0/speed", "1000\n"), ("sys/class/net/tun0/speed", "-1\n")];
        let made_up = tree::made_up(&files);
        let files = Files::under(made_up.path());
        let speeds = link_speeds_under(&files);
        assert_eq!(speeds, [("eth0".to_owned(), 125_000_000)].into());
        assert_eq!(links_under(&files, &speeds), [("eth0".to_owned(), (600, 125_000_000))].into());
        assert_eq!(local_port_range(root.path()), Some((50_000, 50_199)));
        assert_eq!(local_port_range(Path::new("/nowhere")), None);
    }
}
