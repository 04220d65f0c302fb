//! `hash key consistent`: servers as points on a ring of hashes. If a server leaves, only its own keys move.
//!
//! Compatible with Cache::Memcached::Fast with 160 ketama points: each point is the CRC of host, a zero byte, port and
//! the point before it.
//!
//! Invariant: points are sorted, and no two have the same hash.

use super::field::Field;
use crate::peer::Slot;
use crate::selection::Walk;

/// Points per unit of weight.
pub(crate) const POINTS_PER_WEIGHT: usize = 160;

/// The points of a group's primary list; empty for every other policy.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    points: Box<[Point]>,
    /// For each peer, the number of the server it belongs to.
    servers: Box<[u32]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    hash: u32,
    server: u32,
}

impl Ring {
    pub(crate) fn build(slots: &[Slot]) -> Self {
        let servers = number_servers(slots);
        let mut points = Vec::new();
        for (slot, &server) in slots.iter().zip(&servers) {
            points_of(&slot.peer.server, slot.peer.weight, |hash| {
                points.push(Point { hash, server });
            });
        }
        points.sort_by_key(|point| point.hash);
        points.dedup_by_key(|point| point.hash);
        Self { points: points.into_boxed_slice(), servers: servers.into_boxed_slice() }
    }

    /// Follows the ring from the key's point to the first server with a usable peer; several peers of that server take
    /// turns.
    pub(super) fn choose(&self, field: &mut Field<'_>, walk: &mut Walk, key: &[u8]) -> Option<usize> {
        if walk.is_over() || key.is_empty() || self.points.is_empty() {
            return None;
        }
        let mut at = walk.hash.unwrap_or_else(|| self.first_at_or_after(crc32fast::hash(key)));
        loop {
            let server = self.server_at(at)?;
            let peer = field.rotate(None, |_, index| self.servers.get(index).is_some_and(|&own| own == server));
            walk.hash = Some(at);
            if peer.is_some() {
                return peer;
            }
            at = at.wrapping_add(1);
            walk.hash = Some(at);
            if walk.gives_up() {
                return None;
            }
        }
    }

    fn first_at_or_after(&self, hash: u32) -> u32 {
        let index = self.points.partition_point(|point| point.hash < hash);
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    /// The server at a point; after the last point the ring starts again.
    fn server_at(&self, at: u32) -> Option<u32> {
        let index = (at as usize).checked_rem(self.points.len())?;
        self.points.get(index).map(|point| point.server)
    }
}

/// Gives peers with the same server text the same number.
fn number_servers(slots: &[Slot]) -> Vec<u32> {
    let mut known = std::collections::HashMap::new();
    slots
        .iter()
        .map(|slot| {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            *known.entry(slot.peer.server.as_str()).or_insert(next)
        })
        .collect()
}

fn points_of(server: &str, weight: u32, mut each: impl FnMut(u32)) {
    let (host, port) = split_port(server);
    let mut base = crc32fast::Hasher::new();
    base.update(host);
    base.update(&[0]);
    base.update(port);
    let mut previous: u32 = 0;
    for _ in 0..POINTS_PER_WEIGHT.saturating_mul(weight as usize) {
        let mut crc = base.clone();
        crc.update(&previous.to_le_bytes());
        previous = crc.finalize();
        each(previous);
    }
}

/// Splits `host:port`; a unix path, or a text that does not end in `:digits`, is only a host.
fn split_port(server: &str) -> (&[u8], &[u8]) {
    const UNIX: &[u8] = b"unix:";
    let text = server.as_bytes();
    if let Some((scheme, path)) = text.split_at_checked(UNIX.len())
        && scheme.eq_ignore_ascii_case(UNIX)
    {
        return (path, b"");
    }
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (head, port) = text.split_at(text.len() - digits);
    match head.split_last() {
        Some((b':', host)) => (host, port),
        _ => (text, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Peer;

    fn first_points(server: &str, count: usize) -> Vec<u32> {
        let mut points = Vec::new();
        points_of(server, 1, |hash| points.push(hash));
        points.truncate(count);
        points
    }

    /// Points computed with zlib's `crc32`, by the formula in the module doc.
    #[test]
    fn known_points() {
        let cases: [(&str, &[u32]); 4] = [
            ("127.0.0.1:18081", &[0x066c_01f9, 0xdceb_b37d, 0x6ace_8d29]),
            ("unix:/run/app.sock", &[0xad39_754f]),
            ("UNIX:/run/app.sock", &[0xad39_754f]),
            ("backend.example", &[0x7289_93d5]),
        ];
        for (server, expected) in cases {
            assert_eq!(first_points(server, expected.len()), expected, "{server}");
        }
    }

    #[test]
    fn port_is_trailing_digits_after_a_colon() {
        let cases: [(&str, &str, &str); 7] = [
            ("a:80", "a", "80"),
            ("a:", "a", ""),
            ("a", "a", ""),
            ("a80", "a80", ""),
            ("80", "80", ""),
            ("[::1]:80", "[::1]", "80"),
            ("unix:/a:80", "/a:80", ""),
        ];
        for (server, host, port) in cases {
            assert_eq!(split_port(server), (host.as_bytes(), port.as_bytes()), "{server}");
        }
    }

    #[test]
    fn points_are_sorted_unique_and_shared_by_a_server() {
        let named = |address: &str, server: &str| Slot::new(Peer { server: server.into(), ..Peer::new(address) });
        let ring = Ring::build(&[
            named("10.0.0.1:80", "app:80"),
            named("10.0.0.2:80", "app:80"),
            named("10.0.0.3:80", "other:80"),
        ]);
        assert_eq!(*ring.servers, [0, 0, 1]);
        assert_eq!(ring.points.len(), 2 * POINTS_PER_WEIGHT);
        assert!(ring.points.is_sorted_by(|a, b| a.hash < b.hash));
    }

    #[test]
    fn lookup_finds_the_point_itself_and_wraps() {
        let point = |hash, server| Point { hash, server };
        let ring = Ring { points: Box::new([point(10, 0), point(20, 1)]), servers: Box::new([0, 1]) };
        for (hash, server) in [(0, 0), (10, 0), (11, 1), (20, 1), (21, 0)] {
            let at = ring.first_at_or_after(hash);
            assert_eq!(ring.server_at(at), Some(server), "{hash}");
        }
        assert_eq!(Ring::default().server_at(0), None);
    }
}
