//! The first message of a TLS client, for a proxy that does not decrypt: the host, the protocols and the version.
//!
//! As `ngx_stream_ssl_preread_module`: bytes that are not TLS are no error, the proxy then knows nothing about them.
//! Invariant: nothing waits for more bytes than a record announces; the caller limits them.

/// The progress in reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// More bytes are needed.
    Partial,
    /// Not a readable ClientHello.
    Foreign,
    /// A ClientHello.
    Hello(Preread),
}

/// The names and versions that a client offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preread {
    /// The requested host, as the client wrote it; empty without one.
    pub host: Vec<u8>,
    /// Its protocols, `,` between them.
    pub protocols: Vec<u8>,
    /// The version that it offers, as in the message.
    pub version: [u8; 2],
}

impl Preread {
    /// The version as OpenSSL writes it; empty for an unknown one.
    pub fn version_name(&self) -> &'static str {
        match self.version {
            [0, 2] => "SSLv2",
            [3, 0] => "SSLv3",
            [3, 1] => "TLSv1",
            [3, 2] => "TLSv1.1",
            [3, 3] => "TLSv1.2",
            [3, 4] => "TLSv1.3",
            _ => "",
        }
    }
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEAD_BYTES: usize = 5;
const MESSAGE_HEAD_BYTES: usize = 4;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

/// Reads a ClientHello from all bytes that have arrived.
pub fn read(bytes: &[u8]) -> Opening {
    // There is nearly always one record; its message is then in one piece.
    let mut joined = Vec::new();
    let mut rest = bytes;
    while let Some((head, after)) = rest.split_first_chunk::<RECORD_HEAD_BYTES>() {
        let [kind, major, third, high, low] = *head;
        if kind & 0x80 != 0 && third == CLIENT_HELLO && matches!(high, 0 | 3) {
            // The ClientHello of SSL 2.
            return Opening::Hello(Preread { version: [high, low], ..Preread::default() });
        }
        if kind != HANDSHAKE || major != 3 {
            return Opening::Foreign;
        }
        let Some((body, after)) = after.split_at_checked(usize::from(u16::from_be_bytes([high, low]))) else {
            return Opening::Partial;
        };
        let message = if joined.is_empty() {
            body
        } else {
            joined.extend_from_slice(body);
            &joined
        };
        match whole(message) {
            Some(Some(message)) => return parse(message).map_or(Opening::Foreign, Opening::Hello),
            Some(None) if joined.is_empty() => joined.extend_from_slice(body),
            Some(None) => {}
            None => return Opening::Foreign,
        }
        rest = after;
    }
    Opening::Partial
}

/// The body of the message, `Some(None)` if it is not complete, `None` if it is another message.
fn whole(bytes: &[u8]) -> Option<Option<&[u8]>> {
    if bytes.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return None;
    }
    let Some(([_, high, middle, low], rest)) = bytes.split_first_chunk::<MESSAGE_HEAD_BYTES>() else {
        return Some(None);
    };
    Some(rest.get(..u32::from_be_bytes([0, *high, *middle, *low]) as usize))
}

fn parse(message: &[u8]) -> Option<Preread> {
    let (version, rest) = message.split_first_chunk::<2>()?;
    let mut found = Preread { version: *version, ..Preread::default() };
    let (_random, rest) = rest.split_at_checked(32)?;
    let (_session, rest) = short(rest)?;
    let (_ciphers, rest) = long(rest)?;
    let (_compression, rest) = short(rest)?;
    if rest.is_empty() {
        return Some(found);
    }
    let (_length, mut rest) = rest.split_at_checked(2)?;
    while !rest.is_empty() {
        let (kind, after) = rest.split_first_chunk::<2>()?;
        let kind = u16::from_be_bytes(*kind);
        if kind == SUPPORTED_VERSIONS {
            found.version = [3, 4];
        }
        // As nginx: what stood before a cut list is known.
        let Some((data, after)) = long(after) else { break };
        match kind {
            SERVER_NAME if found.host.is_empty() => found.host = host(data)?,
            ALPN if found.protocols.is_empty() => found.protocols = protocols(data)?,
            _ => {}
        }
        rest = after;
    }
    Some(found)
}

/// The first name of the list; its type must be a host.
fn host(data: &[u8]) -> Option<Vec<u8>> {
    let (list, _) = long(data)?;
    let (kind, rest) = list.split_first()?;
    if *kind != 0 {
        return None;
    }
    Some(long(rest)?.0.to_vec())
}

fn protocols(data: &[u8]) -> Option<Vec<u8>> {
    let (mut list, _) = long(data)?;
    let mut joined = Vec::with_capacity(list.len());
    while !list.is_empty() {
        let (name, rest) = short(list)?;
        if name.is_empty() {
            return None;
        }
        if !joined.is_empty() {
            joined.push(b',');
        }
        joined.extend_from_slice(name);
        list = rest;
    }
    Some(joined)
}

/// A value after one byte of length, and the rest.
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// A value after two bytes of length, and the rest.
fn long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn with_length(bytes: &[u8]) -> Vec<u8> {
        let mut out = (bytes.len() as u16).to_be_bytes().to_vec();
        out.extend_from_slice(bytes);
        out
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        let mut out = kind.to_be_bytes().to_vec();
        out.extend(with_length(data));
        out
    }

    fn hello(version: [u8; 2], extensions: &[u8]) -> Vec<u8> {
        let mut body = version.to_vec();
        body.extend([7; 32]);
        body.push(0);
        body.extend(with_length(&[0x13, 1]));
        body.extend([1, 0]);
        if !extensions.is_empty() {
            body.extend(with_length(extensions));
        }
        let mut message = vec![CLIENT_HELLO, 0];
        message.extend(with_length(&body));
        message
    }

    fn record(bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![HANDSHAKE, 3, 1];
        out.extend(with_length(bytes));
        out
    }

    fn full() -> Vec<u8> {
        let mut name = vec![0];
        name.extend(with_length(b"a.example"));
        let mut all = extension(SERVER_NAME, &with_length(&name));
        all.extend(extension(ALPN, &with_length(b"\x02h2\x08http/1.1")));
        all.extend(extension(SUPPORTED_VERSIONS, &[2, 3, 4]));
        all
    }

    #[test]
    fn a_hello_says_host_protocols_and_version() {
        let Opening::Hello(found) = read(&record(&hello([3, 3], &full()))) else { panic!() };
        assert_eq!((found.host.as_slice(), found.protocols.as_slice()), (&b"a.example"[..], &b"h2,http/1.1"[..]));
        assert_eq!(found.version_name(), "TLSv1.3");
        let Opening::Hello(found) = read(&record(&hello([3, 2], &[]))) else { panic!() };
        assert_eq!((found.host.len(), found.version_name()), (0, "TLSv1.1"));
    }

    #[test]
    fn it_may_arrive_in_pieces_and_in_several_records() {
        let whole = hello([3, 3], &full());
        let (first, second) = whole.split_at(40);
        let bytes = [record(first), record(second)].concat();
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Opening::Partial, "{end}");
        }
        assert!(matches!(read(&bytes), Opening::Hello(found) if found.host == b"a.example"));
    }

    #[test]
    fn other_bytes_are_foreign() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], &[22, 2, 1, 0, 5], &[22, 3, 1, 0, 1, 2], &record(&[1, 0, 0, 1, 3])] {
            assert_eq!(read(bytes), Opening::Foreign, "{bytes:?}");
        }
        let cut = hello([3, 3], &extension(ALPN, &with_length(b"\x00")));
        assert_eq!(read(&record(&cut)), Opening::Foreign);
        assert!(matches!(read(&[0x80, 40, 1, 3, 1]), Opening::Hello(found) if found.version_name() == "TLSv1"));
    }
}
