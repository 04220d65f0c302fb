//! Networks in CIDR form, the addresses in them, and the client address that a trusted proxy reports.
//!
//! As in nginx, an IPv4 address mapped into IPv6 counts as IPv4, and unix sockets are an address family of their own.

use std::net::{IpAddr, SocketAddr};

use weir_net::SocketAddress;

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cidr {
    /// IPv4: an address whose low bits are zero, and the length of the prefix (0 to 32).
    V4(u32, u8),
    /// IPv6: the same (0 to 128).
    V6(u128, u8),
    /// `unix:`: every unix socket.
    Unix,
}

/// An address without its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// IPv4.
    V4(u32),
    /// IPv6.
    V6(u128),
    /// A unix socket.
    Unix,
}

impl Cidr {
    /// Reads `ADDRESS` or `ADDRESS/BITS`; the flag is true if low bits were set and have been dropped.
    pub fn parse(text: &str) -> Option<(Cidr, bool)> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(crate::text::value::number(bits)?)),
            None => (text, None),
        };
        match address.parse::<IpAddr>().ok()? {
            IpAddr::V4(v4) => {
                let address = u32::from(v4);
                let bits = u8::try_from(bits.unwrap_or(32)).ok().filter(|bits| *bits <= 32)?;
                let low = address & !mask4(bits);
                Some((Cidr::V4(address & mask4(bits), bits), low != 0))
            }
            IpAddr::V6(v6) => {
                let address = u128::from(v6);
                let bits = u8::try_from(bits.unwrap_or(128)).ok().filter(|bits| *bits <= 128)?;
                let low = address & !mask6(bits);
                Some((Cidr::V6(address & mask6(bits), bits), low != 0))
            }
        }
    }

    /// The network of one address.
    pub fn of(ip: IpAddr) -> Cidr {
        match ip {
            IpAddr::V4(v4) => Cidr::V4(v4.into(), 32),
            IpAddr::V6(v6) => Cidr::V6(v6.into(), 128),
        }
    }

    /// Whether the address belongs to it.
    pub fn has(&self, peer: Peer) -> bool {
        match (*self, peer) {
            (Cidr::V4(network, bits), Peer::V4(address)) => address & mask4(bits) == network,
            (Cidr::V6(network, bits), Peer::V6(address)) => address & mask6(bits) == network,
            (Cidr::Unix, Peer::Unix) => true,
            (Cidr::V4(..) | Cidr::V6(..) | Cidr::Unix, Peer::V4(_) | Peer::V6(_) | Peer::Unix) => false,
        }
    }
}

impl Peer {
    /// The address of an end of a connection.
    pub fn of(address: &SocketAddress) -> Peer {
        match address {
            SocketAddress::Tcp(tcp) => Peer::of_ip(tcp.ip()),
            SocketAddress::Unix(_) => Peer::Unix,
        }
    }

    /// The address; IPv4 mapped into IPv6 counts as IPv4.
    pub fn of_ip(ip: IpAddr) -> Peer {
        match ip.to_canonical() {
            IpAddr::V4(v4) => Peer::V4(v4.into()),
            IpAddr::V6(v6) => Peer::V6(v6.into()),
        }
    }
}

/// The first `bits` bits.
pub fn mask4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0)
}

/// The first `bits` bits.
pub fn mask6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0)
}

/// Reads lists of forwarded addresses backwards, the last list first, as long as the current address belongs to
/// `trusted`. `None` when the first address is not trusted, or its list is unreadable.
///
/// Not `recursive`: one step only. nginx: `ngx_http_get_forwarded_addr`.
pub fn forwarded<'l>(
    from: Peer,
    lists: impl Iterator<Item = &'l [u8]>,
    trusted: &[Cidr],
    recursive: bool,
) -> Option<SocketAddr> {
    let mut in_hand = from;
    let mut found = None;
    for mut list in lists {
        loop {
            if !trusted.iter().any(|network| network.has(in_hand)) {
                return found;
            }
            let trimmed = list.len() - list.iter().rev().take_while(|byte| is_separator(**byte)).count();
            let rest = list.get(..trimmed).unwrap_or_default();
            let start = rest.iter().rposition(|byte| is_separator(*byte)).map_or(0, |at| at + 1);
            let Some(address) = rest.get(start..).and_then(address_of) else { return found };
            found = Some(address);
            in_hand = Peer::of_ip(address.ip());
            if !recursive {
                return found;
            }
            if start == 0 {
                break;
            }
            list = rest.get(..start).unwrap_or_default();
        }
    }
    found
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b',')
}

/// An IP address, with a port or without (then the port is 0).
pub fn address_of(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, 0));
    }
    text.parse::<SocketAddr>().ok().filter(|address| address.port() != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn networks_are_read_as_nginx_reads_them() {
        for (text, expected) in [
            ("10.0.0.0/8", Some((Cidr::V4(0x0a00_0000, 8), false))),
            ("10.1.0.0/8", Some((Cidr::V4(0x0a00_0000, 8), true))),
            ("127.0.0.1", Some((Cidr::V4(0x7f00_0001, 32), false))),
            ("0.0.0.0/0", Some((Cidr::V4(0, 0), false))),
            ("::/0", Some((Cidr::V6(0, 0), false))),
            ("::1", Some((Cidr::V6(1, 128), false))),
            ("10.0.0.0/33", None),
            ("10.0.0.0/", None),
            ("host", None),
            ("", None),
        ] {
            assert_eq!(Cidr::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        let mapped = Peer::of_ip("::ffff:10.1.2.3".parse().unwrap());
        assert!(Cidr::parse("10.0.0.0/8").unwrap().0.has(mapped));
        assert!(!Cidr::parse("::/0").unwrap().0.has(mapped));
    }

    #[test]
    fn forwarded_addresses_are_walked_back_through_trusted_ones() {
        let trusted = [Cidr::parse("10.0.0.0/8").unwrap().0, Cidr::parse("127.0.0.1").unwrap().0];
        let walk = |lists: &[&str], recursive| {
            let found =
                forwarded(Peer::V4(0x7f00_0001), lists.iter().rev().map(|list| list.as_bytes()), &trusted, recursive);
            found.map(|address| address.to_string())
        };
        for (lists, recursive, expected) in [
            (&["1.2.3.4, 10.0.0.1"][..], false, Some("10.0.0.1:0")),
            (&["1.2.3.4, 10.0.0.1"], true, Some("1.2.3.4:0")),
            (&["1.1.1.1, 2.2.2.2, 10.0.0.1"], true, Some("2.2.2.2:0")),
            (&["1.1.1.1", "10.0.0.1"], true, Some("1.1.1.1:0")),
            (&["1.1.1.1:8080, ,"], false, Some("1.1.1.1:8080")),
            (&["[::1]:90"], false, Some("[::1]:90")),
            (&["unknown, 10.0.0.1"], true, Some("10.0.0.1:0")),
            (&["unknown"], true, None),
            (&[""], true, None),
        ] {
            assert_eq!(walk(lists, recursive).as_deref(), expected, "{lists:?} {recursive}");
        }
        assert_eq!(forwarded(Peer::V4(1), [&b"1.1.1.1"[..]].into_iter(), &trusted, false), None);
    }

    mod mutate {
        use super::*;
        /// A list of addresses: only a trusted neighbour's word counts, and each address is one of the list.
        #[test]
        fn lists() {
            let seeds = ["192.0.2.1, 10.0.0.1", "[::1]:80,10.0.0.2:8080", "::ffff:10.0.0.1 10.0.0.3", "unknown, _x"];
            let words = [",", " ", "10.0.0.1", "::1", "[", "]:", "%eth0", "0x7f.1", "256.1.1.1", "é", "\0", ":0"];
            let peer = |text: &str| Peer::of_ip(text.parse().unwrap());
            let trusted: Vec<Cidr> = ["10.0.0.0/8", "::1"].iter().map(|text| Cidr::parse(text).unwrap().0).collect();
            weir_mutate::mutate(&seeds, &words, |bytes| {
                for recursive in [false, true] {
                    assert_eq!(forwarded(peer("192.0.2.9"), [bytes].into_iter(), &trusted, recursive), None);
                    if let Some(found) = forwarded(peer("10.0.0.9"), [bytes].into_iter(), &trusted, recursive) {
                        let mut parts = bytes.split(|byte| is_separator(*byte));
                        assert!(parts.any(|part| address_of(part) == Some(found)));
                    }
                }
                let _ = Cidr::parse(&String::from_utf8_lossy(bytes));
            });
        }
    }
}
