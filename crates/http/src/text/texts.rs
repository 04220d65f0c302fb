//! Texts that variables, log lines and heads are made of: numbers, times, addresses, values of fields and cookies.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use weir_net::SocketAddress;

/// Appends a text; every value that is found uses this function or `decimal`.
pub fn text(out: &mut Vec<u8>, value: &[u8]) -> bool {
    out.extend_from_slice(value);
    true
}

/// Appends a number.
pub fn decimal(out: &mut Vec<u8>, number: u64) -> bool {
    weir_wire::encode::push_decimal(out, number);
    true
}

/// Appends `SECONDS.MILLISECONDS`.
pub fn seconds(out: &mut Vec<u8>, time: Duration) -> bool {
    decimal(out, time.as_secs());
    out.push(b'.');
    three_digits(out, time.subsec_millis());
    true
}

fn three_digits(out: &mut Vec<u8>, millis: u32) {
    let digit = |n: u32| b'0' + (n % 10) as u8;
    out.extend_from_slice(&[digit(millis / 100), digit(millis / 10), digit(millis)]);
}

/// Appends an address without its port: `127.0.0.1`, `::1`, `unix:` and the path if there is one.
pub fn push_address(address: &SocketAddress, out: &mut Vec<u8>) {
    use std::os::unix::ffi::OsStrExt;
    match address {
        SocketAddress::Tcp(tcp) => push_ip(tcp.ip(), out),
        SocketAddress::Unix(path) => {
            out.extend_from_slice(b"unix:");
            out.extend_from_slice(path.as_os_str().as_bytes());
        }
    }
}

/// Appends an IP address; IPv4 avoids the formatting code, because proxies write it for every request.
pub fn push_ip(ip: IpAddr, out: &mut Vec<u8>) {
    match ip {
        IpAddr::V4(v4) => push_v4(v4, out),
        // Writing to memory does not fail.
        IpAddr::V6(v6) => drop(write!(out, "{v6}")),
    }
}

fn push_v4(ip: Ipv4Addr, out: &mut Vec<u8>) {
    for (index, octet) in ip.octets().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        if octet >= 100 {
            out.push(b'0' + octet / 100);
        }
        if octet >= 10 {
            out.push(b'0' + octet / 10 % 10);
        }
        out.push(b'0' + octet % 10);
    }
}

/// Appends the values of all fields with a variable's name: lower case, `_` for `-`.
pub fn joined<'f>(
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    name: &str,
    separator: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    let mut found = false;
    for (_, value) in fields.filter(|(field, _)| is_named(field, name.as_bytes())) {
        if found {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(value);
        found = true;
    }
    found
}

fn is_named(field: &[u8], name: &[u8]) -> bool {
    let plain = |byte: u8| {
        if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() }
    };
    field.len() == name.len() && field.iter().zip(name).all(|(byte, wanted)| plain(*byte) == *wanted)
}

/// The value of a cookie in one `Cookie` field; names are compared without regard to case, as in nginx.
pub fn cookie<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    line.split(|byte| *byte == b';').find_map(|pair| value_of(pair, name))
}

/// The value in one `Set-Cookie` field, if it sets this cookie.
pub fn set_cookie<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    value_of(line.split(|byte| *byte == b';').next()?, name)
}

/// The value in `NAME=VALUE`; each part may begin with spaces.
fn value_of<'l>(pair: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let pair = after_spaces(pair);
    let value = after_spaces(pair.get(name.len()..)?).strip_prefix(b"=")?;
    pair.get(..name.len())?.eq_ignore_ascii_case(name).then(|| after_spaces(value))
}

fn after_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| *byte != b' ').unwrap_or(text.len());
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_written_as_nginx_writes_them() {
        for (address, shown) in [
            (SocketAddress::Tcp("127.0.0.1:80".parse().unwrap()), "127.0.0.1"),
            (SocketAddress::Tcp("10.200.99.100:80".parse().unwrap()), "10.200.99.100"),
            (SocketAddress::Tcp("[::1]:80".parse().unwrap()), "::1"),
            (SocketAddress::Tcp("[2001:db8::5]:80".parse().unwrap()), "2001:db8::5"),
            (SocketAddress::Unix("".into()), "unix:"),
            (SocketAddress::Unix("/run/s".into()), "unix:/run/s"),
        ] {
            let mut out = Vec::new();
            push_address(&address, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), shown);
        }
    }

    #[test]
    fn times_have_three_decimals() {
        for (millis, shown) in [(0, "0.000"), (7, "0.007"), (1_234, "1.234"), (60_050, "60.050")] {
            let mut out = Vec::new();
            seconds(&mut out, Duration::from_millis(millis));
            assert_eq!(String::from_utf8_lossy(&out), shown);
        }
    }

    #[test]
    fn fields_of_a_name_are_joined() {
        let fields: [(&[u8], &[u8]); 4] = [(b"X-Fwd", b"a"), (b"Other", b"b"), (b"x_fwd", b"c"), (b"X-Fwd-For", b"d")];
        let read = |name: &str| {
            let mut out = Vec::new();
            joined(fields.into_iter(), name, b", ", &mut out).then(|| String::from_utf8_lossy(&out).into_owned())
        };
        assert_eq!(read("x_fwd").as_deref(), Some("a, c"));
        assert_eq!(read("x_fwd_for").as_deref(), Some("d"));
        assert_eq!(read("x_fwd_"), None);
    }

    #[test]
    fn cookies_are_found_by_name() {
        let line = b"a=1; bc = 2, x=3;d=;e";
        for (name, value) in [
            ("a", Some(&b"1"[..])),
            ("A", Some(b"1")),
            ("bc", Some(b"2, x=3")),
            ("b", None),
            ("x", None),
            ("d", Some(b"")),
            ("e", None),
        ] {
            assert_eq!(cookie(line, name.as_bytes()), value, "{name}");
        }
        assert_eq!(set_cookie(b"sid=x; Path=/; a=1", b"sid"), Some(&b"x"[..]));
        assert_eq!(set_cookie(b"sid=x; Path=/; a=1", b"a"), None);
    }

    mod mutate {
        use super::*;
        /// A cookie's value is a part of its line and holds no other cookie.
        #[test]
        fn cookies() {
            let seeds = ["a=1; b=2;c", "name=x; Path=/; Secure", " uid = AAAA ; uid=B"];
            weir_mutate::mutate(&seeds, &[";", "=", " ", "uid", "a", "\t", "\"", "é"], |line| {
                for name in [&b"uid"[..], b"a", b""] {
                    for value in [cookie(line, name), set_cookie(line, name)].into_iter().flatten() {
                        assert!(!value.contains(&b';') && value.len() < line.len());
                    }
                }
            });
        }
    }
}
