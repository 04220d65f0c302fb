//! Shows the other programs of the machine that an edge runs here: an abstract UNIX socket whose name has the process and
//! the address of its dashboard (unix(7)).
//!
//! The kernel removes the name with the process, so nothing is left behind. It needs no directory and no right.

use std::fs;
use std::net::{Shutdown, SocketAddr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};

/// The first part of the name.
const KIND: &str = "weir-edge";
/// Stands for the address of an edge without a dashboard of its own.
const NONE: &str = "none";
/// Edges that are listed at most.
const EDGES_MAX: usize = 256;

/// The sign of this process.
#[derive(Debug, Default)]
pub struct Beacon(Option<UnixDatagram>);

impl Beacon {
    /// Shows an edge with this dashboard, in the place of what was shown before. Without a sign the edge serves as well.
    pub fn show(&mut self, dashboard: Option<SocketAddr>) {
        self.0 = None;
        let edge = Edge { pid: std::process::id(), dashboard };
        let bound = UnixAddress::from_abstract_name(edge.name()).and_then(|name| UnixDatagram::bind_addr(&name));
        // The name is all: nobody may leave messages.
        self.0 = bound.ok().filter(|socket| socket.shutdown(Shutdown::Both).is_ok());
    }
}

/// An edge of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The address of the dashboard's own server.
    pub dashboard: Option<SocketAddr>,
    /// The process.
    pub pid: u32,
}

impl Edge {
    fn name(self) -> String {
        let address = self.dashboard.map_or(NONE.to_owned(), |address| address.to_string());
        format!("{KIND} {} {address}", self.pid)
    }

    fn named(name: &str) -> Option<Edge> {
        let (pid, address) = name.strip_prefix(KIND)?.strip_prefix(' ')?.split_once(' ')?;
        let dashboard = match address {
            NONE => None,
            address => Some(address.parse().ok()?),
        };
        Some(Edge { pid: pid.parse().ok()?, dashboard })
    }
}

/// The edges that show themselves in this network namespace, in the order of their dashboards' addresses, at most 256. Any
/// program of the machine can bind such a name, so an address may be any address.
pub fn edges() -> Vec<Edge> {
    edges_in(&fs::read_to_string("/proc/net/unix").unwrap_or_default())
}

/// The edges in the text of `/proc/net/unix`: the name stands behind `@` at the end of the line.
fn edges_in(sockets: &str) -> Vec<Edge> {
    let names = sockets.lines().filter_map(|line| line.split_once(" @"));
    let mut edges: Vec<Edge> = names.filter_map(|(_, name)| Edge::named(name)).take(EDGES_MAX).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_edge_is_seen_while_it_shows_itself() {
        let pid = std::process::id();
        let mine = || edges().into_iter().filter(|edge| edge.pid == pid).map(|edge| edge.dashboard).collect::<Vec<_>>();
        let address = "127.0.0.1:9200".parse().ok();
        let mut beacon = Beacon::default();
        beacon.show(None);
        assert_eq!(mine(), [None]);
        beacon.show(address);
        assert_eq!(mine(), [address]);
        drop(beacon);
        assert_eq!(mine(), []);
    }

    #[test]
    fn other_names_are_no_edges() {
        let line = |name: &str| format!("0000000000000000: 00000002 00000000 00000000 0002 01 43008 {name}\n");
        let names = [
            "@weir-edge 7 [::1]:9144",
            "@weir-edge x none",
            "@weir-edge 7",
            "/run/weir-edge 7 none",
            "@weir-edge 9 none",
        ];
        let sockets: String = names.iter().map(|name| line(name)).collect();
        let dashboard = Some("[::1]:9144".parse().unwrap());
        assert_eq!(edges_in(&sockets), [Edge { pid: 9, dashboard: None }, Edge { pid: 7, dashboard }]);
    }
}
