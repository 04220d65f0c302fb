//! Addresses of clients: the network is hashed, the rest is cut.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::shape::Random;
use super::sip::SipKey;

/// Appends the replacement of an address. IPv4: a hash of the first three numbers, and 0, 10 or 100. IPv6: a hash of the first
/// three groups, and zeros. The signs and the length stay. Another text has a replacement of its shape.
pub(super) fn replace(key: SipKey, text: &[u8], out: &mut Vec<u8>) {
    let parsed = str::from_utf8(text).ok();
    if let Some(address) = parsed.and_then(|text| text.parse::<Ipv4Addr>().ok()) {
        let [a, b, c, _] = address.octets();
        v4(&mut Random::new(key, &[a, b, c]), text, out);
    } else if let Some(address) = parsed.and_then(|text| text.parse::<Ipv6Addr>().ok()) {
        v6(&mut Random::new(key, &address.octets()[..6]), text, out);
    } else {
        super::shape::replace(key, text, out);
    }
}

fn v4(random: &mut Random, text: &[u8], out: &mut Vec<u8>) {
    for (number, octet) in text.split(|byte| *byte == b'.').enumerate() {
        if number > 0 {
            out.push(b'.');
        }
        let value = match (number, octet.len()) {
            (3, 1) => 0,
            (3, 2) => 10,
            (3, _) => 100,
            (_, 1) => random.below(10),
            (_, 2) => 10 + random.below(90),
            _ => 100 + random.below(156),
        };
        out.extend_from_slice(value.to_string().as_bytes());
    }
}

fn v6(random: &mut Random, text: &[u8], out: &mut Vec<u8>) {
    let is_lower = !text.iter().any(u8::is_ascii_uppercase);
    // A `::` may stand for groups of the network; the groups behind it are not of the network then.
    let (mut groups, mut is_cut, mut last) = (0, false, 0);
    for byte in text {
        if *byte == b':' {
            groups += 1;
            is_cut |= last == b':';
        }
        let is_first = last == b':' || last == 0;
        last = *byte;
        out.push(match byte {
            byte if !byte.is_ascii_hexdigit() => *byte,
            _ if groups >= 3 || is_cut => b'0',
            _ => {
                let digit = if is_first { 1 + random.below(15) } else { random.below(16) };
                let digit = char::from_digit(digit, 16).unwrap_or('0') as u8;
                if is_lower { digit } else { digit.to_ascii_uppercase() }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> String {
        let mut out = Vec::new();
        replace(SipKey::new([3; 16]), text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn clients_of_one_network_have_one_replacement() {
        for (one, other) in
            [("192.0.2.7", "192.0.2.9"), ("2001:db8:7::1", "2001:db8:7::f"), ("10.20.30.40", "10.20.30.41")]
        {
            assert_eq!(replaced(one), replaced(other));
            assert_eq!(replaced(one).len(), one.len());
            assert!(replaced(one).parse::<std::net::IpAddr>().is_ok(), "{}", replaced(one));
        }
        assert!(replaced("203.0.113.200").ends_with(".100"));
        assert_ne!(replaced("192.0.2.7"), replaced("192.0.3.7"));
        assert_ne!(replaced("2001:db8:7::1"), replaced("2001:db8:8::1"));
        assert_eq!(replaced("fe80::dead:beef").split_at(4).1, "::0000:0000");
        assert_ne!(replaced("unknown-host"), "unknown-host");
    }
}
