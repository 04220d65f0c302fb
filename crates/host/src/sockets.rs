//! Numbers of local ports: existing and used ones.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use super::files::Files;

/// Number of local ports for outgoing connections; `None` if `/proc` does not have it.
pub fn local_ports() -> Option<u64> {
    local_ports_under(&Files::under(Path::new("/")))
}

/// As [`local_ports`], in `files`.
pub fn local_ports_under(files: &Files) -> Option<u64> {
    let range = files.text("proc/sys/net/ipv4/ip_local_port_range")?;
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u64>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(high.checked_sub(low)? + 1)
}

/// How long a connection that weir or nginx closed holds its local port towards the same address: in milliseconds.
///
/// The port rests for 60 s in TIME_WAIT. With `net.ipv4.tcp_tw_reuse`, the kernel gives it to a new connection after
/// `tcp_tw_reuse_delay` (1 s): 1 for every peer, 2 (the default since Linux 4.19) for peers on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRest {
    /// Towards 127.0.0.0/8 and ::1.
    pub loopback_ms: u32,
    /// Towards every other address.
    pub others_ms: u32,
}

/// `TCP_TIMEWAIT_LEN` (Linux, include/net/tcp.h).
pub const TIME_WAIT_MS: u32 = 60_000;

/// The kernel's delay if it has no setting for it.
const REUSE_MS: u32 = 1_000;

impl Default for PortRest {
    fn default() -> PortRest {
        PortRest { loopback_ms: REUSE_MS, others_ms: TIME_WAIT_MS }
    }
}

impl PortRest {
    /// Towards an address.
    pub fn towards(&self, address: IpAddr) -> u32 {
        if address.to_canonical().is_loopback() { self.loopback_ms } else { self.others_ms }
    }
}

/// The rest of local ports by the settings in `files`; the kernel's defaults if they are absent.
pub fn port_rest_under(files: &Files) -> PortRest {
    let reuse = files.number::<u32>("proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or(2);
    let soon = files.number::<u32>("proc/sys/net/ipv4/tcp_tw_reuse_delay").unwrap_or(REUSE_MS).min(TIME_WAIT_MS);
    let rest = |is_soon| if is_soon { soon } else { TIME_WAIT_MS };
    PortRest { loopback_ms: rest(reuse != 0), others_ms: rest(reuse == 1) }
}

/// A number below `proc/sys`, such as `net/core/somaxconn`; `None` if `/proc` does not have it.
pub fn sysctl_under(root: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(root.join("proc/sys").join(name)).ok()?.trim().parse().ok()
}

/// True if the hosts table has both an IPv4 and an IPv6 address for `localhost`; `None` without a table.
pub fn localhost_is_dual_under(root: &Path) -> Option<bool> {
    let table = fs::read_to_string(root.join("etc/hosts")).ok()?;
    let addresses: Vec<&str> = table
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .filter(|line| line.split_ascii_whitespace().skip(1).any(|name| name == "localhost"))
        .filter_map(|line| line.split_ascii_whitespace().next())
        .collect();
    Some(addresses.iter().any(|address| address.contains(':')) && addresses.iter().any(|address| address.contains('.')))
}

/// TCP connections of this network namespace that have ended but still hold their ports (`TIME_WAIT`).
pub fn waiting_sockets_under(files: &Files) -> Option<u64> {
    tcp_figure(files, "tw")
}

/// All TCP sockets of the machine, and those of this network namespace that rest: never fewer than the local ports in
/// use towards a peer.
pub fn tcp_sockets_under(files: &Files) -> Option<u64> {
    Some(tcp_figure(files, "alloc")? + waiting_sockets_under(files)?)
}

/// A figure of the line `TCP: inuse 4 orphan 0 tw 17 alloc 9 mem 1` (Linux, net/ipv4/proc.c, `sockstat_seq_show`).
fn tcp_figure(files: &Files, name: &str) -> Option<u64> {
    let stat = files.text("proc/net/sockstat")?;
    let tcp = stat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = tcp.split_ascii_whitespace();
    words.find(|word| *word == name)?;
    words.next()?.parse().ok()
}

/// Number of open descriptors of this process; `None` if `/proc` does not have it.
pub fn open_files() -> Option<u64> {
    // Linux 6.2 and later report the number without a listing, which is slow for many descriptors.
    if let Ok(count @ 1..) = fs::metadata("/proc/self/fd").map(|directory| directory.len()) {
        return Some(count);
    }
    // The listing itself uses one descriptor.
    Some((fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ports_and_waiting_sockets_are_read() {
        let root = std::env::temp_dir().join(format!("weir-sockets-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/sys/net/ipv4")).unwrap();
        fs::create_dir_all(root.join("proc/net")).unwrap();
        let read = || {
            let files = Files::under(&root);
            (local_ports_under(&files), waiting_sockets_under(&files), tcp_sockets_under(&files))
        };
        assert_eq!(read(), (None, None, None));
        fs::write(root.join("proc/sys/net/ipv4/ip_local_port_range"), "50000\t50199\n").unwrap();
        let stat = "sockets: used 5\nTCP: inuse 4 orphan 0 tw 17 alloc 9 mem 1\nUDP: inuse 1 mem 0\n";
        fs::write(root.join("proc/net/sockstat"), stat).unwrap();
        assert_eq!(read(), (Some(200), Some(17), Some(26)));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_rest_of_ports_follows_the_settings() {
        let rest = |reuse: &str, delay: &str| {
            let root = crate::tree::made_up(&[
                ("proc/sys/net/ipv4/tcp_tw_reuse", reuse),
                ("proc/sys/net/ipv4/tcp_tw_reuse_delay", delay),
            ]);
            let rest = port_rest_under(&Files::under(root.path()));
            (rest.towards("127.0.0.2".parse().unwrap()), rest.towards("10.0.0.1".parse().unwrap()))
        };
        assert_eq!(rest("0\n", "1000\n"), (60_000, 60_000));
        assert_eq!(rest("1\n", "2000\n"), (2_000, 2_000));
        assert_eq!(rest("2\n", ""), (1_000, 60_000));
        assert_eq!(port_rest_under(&Files::under(Path::new("/nowhere"))), PortRest::default());
    }

    #[test]
    fn kernel_numbers_and_the_hosts_table_are_read() {
        let root = crate::tree::made_up(&[
            ("proc/sys/net/core/somaxconn", "4096\n"),
            ("etc/hosts", "127.0.0.1 localhost # x\n::1 ip6-localhost localhost\n"),
        ]);
        assert_eq!(sysctl_under(root.path(), "net/core/somaxconn"), Some(4096));
        assert_eq!(sysctl_under(root.path(), "net/core/none"), None);
        assert_eq!(localhost_is_dual_under(root.path()), Some(true));
        let one = crate::tree::made_up(&[("etc/hosts", "127.0.0.1 localhost\n#::1 localhost\n")]);
        assert_eq!(localhost_is_dual_under(one.path()), Some(false));
        assert_eq!(localhost_is_dual_under(Path::new("/nowhere")), None);
    }

    #[test]
    fn a_process_has_files_open() {
        assert!(open_files().unwrap() >= 3);
    }
}
