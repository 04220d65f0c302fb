//! Control messages of a datagram (cmsg(3)), as the bytes that the kernel reads and writes.
//!
//! Each begins with its length, its level and its type, and ends at a multiple of eight bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Room for all messages of one datagram: an address, a traffic class, and a size of segments take 88 bytes.
pub(crate) const CONTROL_BYTES: usize = 128;
/// The length, the level and the type.
const HEAD_BYTES: usize = size_of::<usize>() + 2 * size_of::<i32>();
/// The two bits of explicit congestion notification in a traffic class (RFC 3168).
const ECN_BITS: u8 = 3;

/// The control messages of one datagram; aligned as the kernel wants them.
#[derive(Clone)]
#[repr(C, align(8))]
pub(crate) struct Control {
    pub(crate) bytes: [u8; CONTROL_BYTES],
    pub(crate) length: usize,
}

/// The facts about a datagram in the control messages of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The address that it was sent to.
    pub(crate) to: Option<IpAddr>,
    /// Its ECN bits.
    pub(crate) ecn: u8,
    /// The kernel has joined datagrams of this many bytes; the last one may be shorter.
    pub(crate) segment_bytes: Option<usize>,
}

impl Control {
    /// No messages, and all room.
    pub(crate) const fn new() -> Control {
        Control { bytes: [0; CONTROL_BYTES], length: 0 }
    }

    /// The messages of a datagram to send: the address that it leaves from, its ECN bits, and the size of the segments that
    /// the kernel makes of it. `is_v4` says which protocol carries it; a v4-mapped address is one of IPv4.
    pub(crate) fn of(from: Option<IpAddr>, is_v4: bool, ecn: u8, segment_bytes: Option<u16>) -> Control {
        let mut control = Control::new();
        match from {
            Some(IpAddr::V4(ip)) => {
                // `in_pktinfo`: an interface, the source, and an address that the kernel ignores here.
                let info = [[0; 4], ip.octets(), [0; 4]];
                control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info.as_flattened());
            }
            Some(IpAddr::V6(ip)) => {
                // `in6_pktinfo`: the source, and an interface.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        if ecn & ECN_BITS != 0 {
            let class = i32::from(ecn & ECN_BITS).to_ne_bytes();
            match is_v4 {
                true => control.push(libc::IPPROTO_IP, libc::IP_TOS, &class),
                false => control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class),
            }
        }
        if let Some(bytes) = segment_bytes {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes());
        }
        control
    }

    /// Adds a message; one without room is left out.
    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let length = HEAD_BYTES + data.len();
        let Some(place) = self.bytes.get_mut(self.length..self.length + length.next_multiple_of(8)) else { return };
        let parts = [&length.to_ne_bytes()[..], &level.to_ne_bytes(), &kind.to_ne_bytes(), data];
        for (into, byte) in place.iter_mut().zip(parts.into_iter().flatten()) {
            *into = *byte;
        }
        self.length += place.len();
    }
}

/// Reads the control messages of a datagram that arrived.
pub(crate) fn told(mut rest: &[u8]) -> Told {
    let mut told = Told::default();
    while let Some((level, kind, data, after)) = next(rest) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // `in_pktinfo`: an interface, the address of the route back, and the one that the datagram names.
                let ip = data.get(8..12).and_then(|octets| <[u8; 4]>::try_from(octets).ok());
                told.to = ip.map(|octets| Ipv4Addr::from(octets).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let ip = data.get(..16).and_then(|octets| <[u8; 16]>::try_from(octets).ok());
                told.to = ip.map(|octets| Ipv6Addr::from(octets).into());
            }
            // The kernel writes one byte for IPv4 and an integer for IPv6.
            (libc::IPPROTO_IP, libc::IP_TOS) => told.ecn = data.first().map_or(0, |class| class & ECN_BITS),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                told.ecn = integer(data).map_or(0, |class| class.to_le_bytes()[0] & ECN_BITS);
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let bytes = integer(data).and_then(|bytes| usize::try_from(bytes).ok());
                told.segment_bytes = bytes.filter(|bytes| *bytes > 0);
            }
            _ => {}
        }
        rest = after;
    }
    told
}

/// The level, the type and the data of the first message, and all bytes after it.
fn next(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let (length, after) = bytes.split_first_chunk()?;
    let (level, after) = after.split_first_chunk()?;
    let (kind, _) = after.split_first_chunk()?;
    let length = usize::from_ne_bytes(*length);
    let data = bytes.get(HEAD_BYTES..length)?;
    let after = bytes.get(length.next_multiple_of(8)..).unwrap_or_default();
    Some((i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind), data, after))
}

fn integer(data: &[u8]) -> Option<i32> {
    data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_a_datagram_fill_the_room_at_most() {
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let all = Control::of(Some(v6), false, 2, Some(1200));
        assert_eq!(all.length, 40 + 24 + 24);
        assert_eq!(told(&all.bytes[..all.length]), Told { to: Some(v6), ecn: 2, segment_bytes: None });
        assert_eq!(Control::of(None, true, 0, None).length, 0);
        let mut full = Control::new();
        (0..100).for_each(|_| full.push(1, 2, &[0; 9]));
        assert_eq!(full.length, CONTROL_BYTES);
        full.push(1, 2, &[]);
        assert_eq!(full.length, CONTROL_BYTES);
    }

    #[test]
    fn messages_of_the_kernel() {
        let mut control = Control::new();
        control.push(libc::SOL_SOCKET, 0, &[7; 3]);
        control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &[1, 0, 0, 0, 9, 9, 9, 9, 127, 0, 0, 2]);
        control.push(libc::IPPROTO_IP, libc::IP_TOS, &[0xff]);
        control.push(libc::SOL_UDP, libc::UDP_GRO, &1200i32.to_ne_bytes());
        let to = Some("127.0.0.2".parse().unwrap());
        assert_eq!(told(&control.bytes[..control.length]), Told { to, ecn: 3, segment_bytes: Some(1200) });
        for end in 0..control.length {
            told(&control.bytes[..end]);
        }
    }

    mod mutate {
        use super::*;

        #[test]
        fn control_messages() {
            let seed = Control::of(Some(IpAddr::V6(Ipv6Addr::LOCALHOST)), false, 1, Some(1200));
            weir_mutate::mutate(&[&seed.bytes[..seed.length]], &["\0", "\x10\0\0\0\0\0\0\0"], |bytes| {
                assert!(told(bytes).ecn <= ECN_BITS);
            });
        }
    }
}
