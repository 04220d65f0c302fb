//! The PROXY protocol: a load balancer's header about a client, sent before the client's first byte.
//!
//! Version 1 is a line of text, version 2 is binary with typed values after the addresses.
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>
//!
//! It does not decide whom to trust: `set_real_ip_from` does. Invariant: a header is read whole or not at all, and
//! never beyond [`V1_BYTES_MAX`] and [`V2_BYTES_MAX`].

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::encode;
use crate::span::Span;

/// The longest line of version 1, including its end (§2.1 of the specification).
pub const V1_BYTES_MAX: usize = 107;

/// The longest header of version 2 that is read (nginx: `NGX_PROXY_PROTOCOL_MAX_HEADER`).
pub const V2_BYTES_MAX: usize = 4096;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, two bytes of length.
const V2_FIXED_BYTES: usize = 16;

/// The progress in reading a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// The header is whole.
    Done {
        /// Its length: the client's bytes come after it.
        length: usize,
        /// Its addresses; `None` for a balancer's own connection (health checks) and for unknown families.
        ends: Option<Ends>,
    },
}

/// The two ends of the connection that the balancer accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The client.
    pub source: SocketAddr,
    /// The address that the client connected to.
    pub destination: SocketAddr,
    /// The typed values of version 2, for [`tlv`]; empty in version 1.
    pub tlvs: Span,
}

/// Why a header was refused: the connection is closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocolFault {
    /// Neither a line of version 1 nor the signature of version 2.
    Broken,
    /// An invalid address or port in version 1.
    Address,
    /// A line longer than [`V1_BYTES_MAX`].
    LineTooLong,
    /// Another version after the signature of version 2.
    Version(u8),
    /// A header longer than [`V2_BYTES_MAX`].
    TooLarge,
    /// A header of version 2 that is too short for the addresses it announces.
    AddressesCut,
}

impl fmt::Display for ProxyProtocolFault {
    /// nginx's words; if nginx also quotes the line, the caller does too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyProtocolFault::Broken | ProxyProtocolFault::Address | ProxyProtocolFault::LineTooLong => {
                f.write_str("broken header")
            }
            ProxyProtocolFault::Version(version) => write!(f, "unknown PROXY protocol version: {version}"),
            ProxyProtocolFault::TooLarge => f.write_str("header is too large"),
            ProxyProtocolFault::AddressesCut => f.write_str("header is too small for its addresses"),
        }
    }
}

/// Reads the header at the beginning of `bytes`; call it again with more bytes after `Partial`.
pub fn parse(bytes: &[u8]) -> Result<Parsed, ProxyProtocolFault> {
    if SIGNATURE.starts_with(bytes) || bytes.starts_with(SIGNATURE) {
        return binary(bytes);
    }
    text(bytes)
}

/// `PROXY TCP4 SOURCE DESTINATION PORT PORT` or `PROXY UNKNOWN …`, then CRLF.
fn text(bytes: &[u8]) -> Result<Parsed, ProxyProtocolFault> {
    const BEGINNING: &[u8] = b"PROXY ";
    // A line that cannot become a header is refused before its end: its client may wait for weir.
    const FAMILIES: [&[u8]; 3] = [b"TCP4 ", b"TCP6 ", b"UNKNOWN"];
    if !bytes.starts_with(BEGINNING) && !BEGINNING.starts_with(bytes) {
        return Err(ProxyProtocolFault::Broken);
    }
    let rest = bytes.get(BEGINNING.len()..).unwrap_or_default();
    if !FAMILIES.iter().any(|family| rest.starts_with(family) || family.starts_with(rest)) {
        return Err(ProxyProtocolFault::Broken);
    }
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return if bytes.len() < V1_BYTES_MAX { Ok(Parsed::Partial) } else { Err(ProxyProtocolFault::LineTooLong) };
    };
    let length = end + 1;
    if length > V1_BYTES_MAX {
        return Err(ProxyProtocolFault::LineTooLong);
    }
    let line =
        bytes.get(BEGINNING.len()..end).and_then(|line| line.strip_suffix(b"\r")).ok_or(ProxyProtocolFault::Broken)?;
    if line.starts_with(b"UNKNOWN") {
        return Ok(Parsed::Done { length, ends: None });
    }
    let line = std::str::from_utf8(line).map_err(|_| ProxyProtocolFault::Broken)?;
    let mut words = line.split(' ');
    let mut word = || words.next().ok_or(ProxyProtocolFault::Broken);
    // nginx does not compare the addresses with the family either.
    if !matches!(word()?, "TCP4" | "TCP6") {
        return Err(ProxyProtocolFault::Broken);
    }
    let (source, destination) = (address(word()?)?, address(word()?)?);
    let (source_port, destination_port) = (port(word()?)?, port(word()?)?);
    if words.next().is_some() {
        return Err(ProxyProtocolFault::Broken);
    }
    let ends = Ends {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
        tlvs: Span::default(),
    };
    Ok(Parsed::Done { length, ends: Some(ends) })
}

fn address(word: &str) -> Result<IpAddr, ProxyProtocolFault> {
    word.parse().map_err(|_| ProxyProtocolFault::Address)
}

fn port(word: &str) -> Result<u16, ProxyProtocolFault> {
    // `parse` alone would accept a sign.
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ProxyProtocolFault::Address);
    }
    word.parse().map_err(|_| ProxyProtocolFault::Address)
}

fn binary(bytes: &[u8]) -> Result<Parsed, ProxyProtocolFault> {
    let Some(fixed) = bytes.first_chunk::<V2_FIXED_BYTES>() else { return Ok(Parsed::Partial) };
    let [.., version_and_command, family_and_transport, high, low] = *fixed;
    if version_and_command >> 4 != 2 {
        return Err(ProxyProtocolFault::Version(version_and_command >> 4));
    }
    let length = V2_FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if length > V2_BYTES_MAX {
        return Err(ProxyProtocolFault::TooLarge);
    }
    let Some(rest) = bytes.get(V2_FIXED_BYTES..length) else { return Ok(Parsed::Partial) };
    const PROXY: u8 = 1;
    let ends = match (version_and_command & 15, family_and_transport) {
        (PROXY, 0x11) => Some(ends::<4>(rest, length).ok_or(ProxyProtocolFault::AddressesCut)?),
        (PROXY, 0x21) => Some(ends::<16>(rest, length).ok_or(ProxyProtocolFault::AddressesCut)?),
        // The balancer's own connection, a datagram, a unix socket: the header names no client.
        _ => None,
    };
    Ok(Parsed::Done { length, ends })
}

/// Two addresses of `N` bytes, two ports, and typed values up to `length`, the end of the header.
fn ends<const N: usize>(rest: &[u8], length: usize) -> Option<Ends>
where
    IpAddr: From<[u8; N]>,
{
    let (source, rest) = rest.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let (source_port, rest) = rest.split_first_chunk::<2>()?;
    let (destination_port, rest) = rest.split_first_chunk::<2>()?;
    Some(Ends {
        source: SocketAddr::new(IpAddr::from(*source), u16::from_be_bytes(*source_port)),
        destination: SocketAddr::new(IpAddr::from(*destination), u16::from_be_bytes(*destination_port)),
        tlvs: Span::new(length - rest.len(), length),
    })
}

/// Appends a header of version 1 about a connection between these two ends; `None` for a unix socket.
pub fn write_text(ends: Option<(SocketAddr, SocketAddr)>, out: &mut Vec<u8>) {
    let Some((source, destination)) = ends else {
        out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        return;
    };
    let family = if source.is_ipv4() { 4 } else { 6 };
    let (from, to) = (source.port(), destination.port());
    let line = format!("PROXY TCP{family} {} {} {from} {to}\r\n", source.ip(), destination.ip());
    out.extend_from_slice(line.as_bytes());
}

/// Appends a header of version 2 about a connection between these two ends; `None` for a unix socket, and for ends
/// of different families.
pub fn write_binary(ends: Option<(SocketAddr, SocketAddr)>, out: &mut Vec<u8>) {
    const VERSION_AND_PROXY: u8 = 0x21;
    const UNSPECIFIED: u8 = 0;
    const TCP4: u8 = 0x11;
    const TCP6: u8 = 0x21;
    out.extend_from_slice(SIGNATURE);
    out.push(VERSION_AND_PROXY);
    let mut addresses = Vec::with_capacity(36);
    let family = match ends {
        Some((SocketAddr::V4(source), SocketAddr::V4(destination))) => {
            addresses.extend_from_slice(&source.ip().octets());
            addresses.extend_from_slice(&destination.ip().octets());
            TCP4
        }
        Some((SocketAddr::V6(source), SocketAddr::V6(destination))) => {
            addresses.extend_from_slice(&source.ip().octets());
            addresses.extend_from_slice(&destination.ip().octets());
            TCP6
        }
        Some(_) | None => UNSPECIFIED,
    };
    if let (Some((source, destination)), true) = (ends, family != UNSPECIFIED) {
        addresses.extend_from_slice(&source.port().to_be_bytes());
        addresses.extend_from_slice(&destination.port().to_be_bytes());
    }
    out.push(family);
    out.extend_from_slice(&(addresses.len() as u16).to_be_bytes());
    out.extend_from_slice(&addresses);
}

/// The type for the balancer's TLS: its value has five bytes of its own, then typed values about TLS.
const TLV_SSL: u8 = 0x20;

/// Appends the typed value that nginx calls `name` (`$proxy_protocol_tlv_NAME`): `alpn`, `authority`, `unique_id`,
/// `ssl`, `netns`, `ssl_version`, `ssl_cn`, `ssl_cipher`, `ssl_sig_alg`, `ssl_key_alg`, `ssl_verify`, or a type as
/// `0xae` and `ssl_0x21`. `false` if there is none, or if the values are cut off before it.
pub fn tlv(tlvs: &[u8], name: &str, out: &mut Vec<u8>) -> bool {
    let found = match name.strip_prefix("ssl_") {
        None => type_of(name).and_then(|kind| find(tlvs, kind)),
        Some(name) => {
            let Some((fixed, rest)) = find(tlvs, TLV_SSL).and_then(<[u8]>::split_first_chunk::<5>) else {
                return false;
            };
            if name == "verify" {
                let [_client, verify @ ..] = *fixed;
                encode::push_decimal(out, u32::from_be_bytes(verify).into());
                return true;
            }
            ssl_type_of(name).and_then(|kind| find(rest, kind))
        }
    };
    found.map(|value| out.extend_from_slice(value)).is_some()
}

fn type_of(name: &str) -> Option<u8> {
    Some(match name {
        "alpn" => 0x01,
        "authority" => 0x02,
        "unique_id" => 0x05,
        "ssl" => TLV_SSL,
        "netns" => 0x30,
        _ => return hexadecimal(name),
    })
}

fn ssl_type_of(name: &str) -> Option<u8> {
    Some(match name {
        "version" => 0x21,
        "cn" => 0x22,
        "cipher" => 0x23,
        "sig_alg" => 0x24,
        "key_alg" => 0x25,
        _ => return hexadecimal(name),
    })
}

fn hexadecimal(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("0x").filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

/// The first value of this type.
fn find(mut tlvs: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        let ([kind, high, low], rest) = tlvs.split_first_chunk::<3>()?;
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (value, rest) = rest.split_at_checked(length)?;
        if *kind == wanted {
            return Some(value);
        }
        tlvs = rest;
    }
}

#[cfg(test)]
mod tests;
