//! A client's first message, read before there is a session: the server it names decides the TLS settings.
//!
//! RFC 8446 §4.1.2, §5.1; RFC 6066 §3. It reads only the fields that choose a server; rustls refuses a wrong hello,
//! with the right alert. Invariant: pure, and weir waits for at most [`HELLO_BYTES_MAX`].

/// The longest ClientHello that weir waits for, including the heads of its records.
pub const HELLO_BYTES_MAX: usize = 64 << 10;

/// The offers of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The requested host, as written. It is safe as part of a file name. `None` without one.
    pub server_name: Option<String>,
    /// Cipher suites by number, in its order.
    pub ciphers: Vec<u16>,
    /// Groups by number, in its order.
    pub groups: Vec<u16>,
    /// Signature schemes by number, in its order.
    pub signatures: Vec<u16>,
    /// Protocols (RFC 7301), in its order.
    pub alpn: Vec<Vec<u8>>,
    /// Its random bytes: no two hellos have the same.
    pub random: [u8; 32],
}

/// The result of reading the beginning of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelloOpening {
    /// More bytes are needed.
    Partial,
    /// Its first byte is not TLS.
    NotTls,
    /// It is TLS, but not a readable ClientHello: rustls will report the error.
    Broken,
    /// A complete ClientHello.
    Hello(Box<ClientHello>),
}

/// The type of a record that holds handshake messages.
const HANDSHAKE: u8 = 22;
/// A length of two bytes with its highest bit set: the beginning of a ClientHello of SSL 2.
const SSL2: u8 = 0x80;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEAD_BYTES: usize = 5;
/// The type of a message and its length.
const MESSAGE_HEAD_BYTES: usize = 4;
/// RFC 8446 §5.1, with the bytes that a sender may add.
const RECORD_BYTES_MAX: usize = (16 << 10) + 256;

/// Records of one ClientHello, at most; a real one takes one record.
const RECORDS_MAX: usize = 16;

const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const SIGNATURE_ALGORITHMS: u16 = 13;
const ALPN: u16 = 16;
/// The only type of name there is.
const HOST_NAME: u8 = 0;

/// Reads a ClientHello from `bytes`, which are all bytes that have arrived.
pub fn open(bytes: &[u8]) -> HelloOpening {
    match bytes.first() {
        None => return HelloOpening::Partial,
        Some(&HANDSHAKE) => {}
        Some(first) if first & SSL2 != 0 => return HelloOpening::Broken,
        Some(_) => return HelloOpening::NotTls,
    }
    // There is nearly always one record; its message is then in one piece.
    let mut joined = Vec::new();
    let mut rest = bytes;
    for _ in 0..RECORDS_MAX {
        let Some((head, after)) = rest.split_at_checked(RECORD_HEAD_BYTES) else { return HelloOpening::Partial };
        let [kind, major, _, high, low] = *head else { return HelloOpening::Broken };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if kind != HANDSHAKE || major != 3 || len == 0 || len > RECORD_BYTES_MAX {
            return HelloOpening::Broken;
        }
        let Some((body, after)) = after.split_at_checked(len) else {
            return if bytes.len() >= HELLO_BYTES_MAX { HelloOpening::Broken } else { HelloOpening::Partial };
        };
        if joined.is_empty()
            && let Some(message) = message(body)
        {
            return read(message);
        }
        joined.extend_from_slice(body);
        if joined.first() != Some(&CLIENT_HELLO) {
            return HelloOpening::Broken;
        }
        if let Some(message) = message(&joined) {
            return read(message);
        }
        if joined.len() >= HELLO_BYTES_MAX {
            return HelloOpening::Broken;
        }
        rest = after;
    }
    HelloOpening::Broken
}

/// As [`open`], for handshake messages without records (RFC 9001 §4.1.3). A message that would be longer than
/// [`HELLO_BYTES_MAX`] is broken as soon as its length is there.
pub fn open_message(bytes: &[u8]) -> HelloOpening {
    match bytes {
        [] => return HelloOpening::Partial,
        [CLIENT_HELLO, ..] => {}
        _ => return HelloOpening::NotTls,
    }
    match message_len(bytes) {
        Some(len) if len > HELLO_BYTES_MAX => HelloOpening::Broken,
        _ => message(bytes).map_or(HelloOpening::Partial, read),
    }
}

/// The body of the ClientHello at the beginning, if it is complete.
fn message(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(MESSAGE_HEAD_BYTES..message_len(bytes)?)
}

/// The length of the ClientHello at the beginning, with its head.
fn message_len(bytes: &[u8]) -> Option<usize> {
    let [CLIENT_HELLO, high, middle, low, ..] = bytes else { return None };
    Some(MESSAGE_HEAD_BYTES + usize::try_from(u32::from_be_bytes([0, *high, *middle, *low])).ok()?)
}

fn read(message: &[u8]) -> HelloOpening {
    match parse(message) {
        Some(hello) => HelloOpening::Hello(Box::new(hello)),
        None => HelloOpening::Broken,
    }
}

fn parse(message: &[u8]) -> Option<ClientHello> {
    let mut hello = ClientHello::default();
    let mut reader = Reader(message);
    reader.take(2)?;
    hello.random.copy_from_slice(reader.take(32)?);
    reader.list8()?;
    hello.ciphers = numbers(reader.list16()?);
    reader.list8()?;
    if reader.0.is_empty() {
        return Some(hello);
    }
    let mut extensions = Reader(reader.list16()?);
    while !extensions.0.is_empty() {
        let (kind, body) = (extensions.number()?, Reader(extensions.list16()?));
        match kind {
            SERVER_NAME => hello.server_name = server_name(body)?,
            SUPPORTED_GROUPS => hello.groups = numbers(Reader(body.0).list16()?),
            SIGNATURE_ALGORITHMS => hello.signatures = numbers(Reader(body.0).list16()?),
            ALPN => hello.alpn = protocols(body)?,
            _ => {}
        }
    }
    Some(hello)
}

fn server_name(mut body: Reader<'_>) -> Option<Option<String>> {
    let mut names = Reader(body.list16()?);
    while !names.0.is_empty() {
        let ([kind], name) = (names.take(1)?, names.list16()?) else { return None };
        if *kind == HOST_NAME {
            let name = std::str::from_utf8(name).ok().filter(|name| is_host(name))?;
            return Some(Some(name.to_owned()).filter(|name| !name.is_empty()));
        }
    }
    Some(None)
}

/// Whether it is safe in file names: no path, no invisible characters (nginx: `ngx_http_validate_host`).
fn is_host(name: &str) -> bool {
    !name.starts_with('.')
        && !name.contains("..")
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\'))
}

fn protocols(mut body: Reader<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = Reader(body.list16()?);
    let mut protocols = Vec::new();
    while !list.0.is_empty() {
        protocols.push(list.list8()?.to_vec());
    }
    Some(protocols)
}

fn numbers(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let [high, low] = self.take(2)? else { return None };
        Some(u16::from_be_bytes([*high, *low]))
    }

    /// The bytes after a length of one byte.
    fn list8(&mut self) -> Option<&'b [u8]> {
        let [len] = self.take(1)? else { return None };
        self.take(usize::from(*len))
    }

    /// The bytes after a length of two bytes.
    fn list16(&mut self) -> Option<&'b [u8]> {
        let len = self.number()?;
        self.take(usize::from(len))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn list16(bytes: &[u8]) -> Vec<u8> {
        let mut list = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
        list.extend_from_slice(bytes);
        list
    }

    /// A ClientHello in records of at most `piece` bytes.
    fn written(hello: &ClientHello, piece: usize) -> Vec<u8> {
        let message = composed(hello);
        message.chunks(piece).flat_map(|piece| [&[HANDSHAKE, 3, 1][..], &list16(piece)].concat()).collect()
    }

    /// The message without records.
    fn composed(hello: &ClientHello) -> Vec<u8> {
        let words = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
        let mut body = vec![3, 3];
        body.extend_from_slice(&hello.random);
        body.push(0);
        body.extend(list16(&words(&hello.ciphers)));
        body.extend([1, 0]);
        let mut extensions = Vec::new();
        let mut extension = |kind: u16, body: Vec<u8>| {
            extensions.extend(kind.to_be_bytes());
            extensions.extend(list16(&body));
        };
        extension(43, vec![2, 3, 4]);
        if let Some(name) = &hello.server_name {
            let mut entry = vec![HOST_NAME];
            entry.extend(list16(name.as_bytes()));
            extension(SERVER_NAME, list16(&entry));
        }
        extension(SUPPORTED_GROUPS, list16(&words(&hello.groups)));
        extension(SIGNATURE_ALGORITHMS, list16(&words(&hello.signatures)));
        if !hello.alpn.is_empty() {
            let names: Vec<u8> = hello.alpn.iter().flat_map(|name| [&[name.len() as u8][..], name].concat()).collect();
            extension(ALPN, list16(&names));
        }
        body.extend(list16(&extensions));
        let mut message = vec![CLIENT_HELLO];
        message.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes()[1..]);
        message.extend(body);
        message
    }

    prop_compose! {
        fn hellos()(
            name in proptest::option::of("[a-z0-9]{1,9}(\\.[a-z0-9-]{1,20}){0,3}"),
            ciphers in vec(any::<u16>(), 1..40),
            groups in vec(any::<u16>(), 0..20),
            signatures in vec(any::<u16>(), 0..20),
            alpn in vec(vec(any::<u8>(), 1..20), 0..6),
            random in any::<[u8; 32]>(),
        ) -> ClientHello {
            ClientHello { server_name: name, ciphers, groups, signatures, alpn, random }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(hello in hellos(), piece in 200usize..2000) {
            prop_assert_eq!(open(&written(&hello, piece)), HelloOpening::Hello(Box::new(hello)));
        }

        #[test]
        fn records_do_not_change_what_is_read(hello in hellos(), cut in any::<prop::sample::Index>()) {
            let whole = composed(&hello);
            prop_assert_eq!(open_message(&whole), HelloOpening::Hello(Box::new(hello)));
            prop_assert_eq!(open_message(&whole[..cut.index(whole.len())]), HelloOpening::Partial);
        }

        #[test]
        fn a_beginning_is_partial(hello in hellos(), piece in 200usize..2000, cut in any::<prop::sample::Index>()) {
            let whole = written(&hello, piece);
            let cut = cut.index(whole.len());
            prop_assert_eq!(open(&whole[..cut]), HelloOpening::Partial);
        }

        #[test]
        fn no_bytes_panic(bytes in vec(any::<u8>(), 0..600)) {
            let _ = open(&bytes);
            let _ = open_message(&bytes);
            let mut record = vec![HANDSHAKE, 3, 1];
            record.extend(list16(&bytes));
            let _ = open(&record);
            let mut message = vec![HANDSHAKE, 3, 1];
            let mut hello = vec![CLIENT_HELLO, 0, (bytes.len() >> 8) as u8, bytes.len() as u8];
            hello.extend(&bytes);
            message.extend(list16(&hello));
            let _ = open(&message);
        }
    }

    #[test]
    fn first_bytes() {
        assert_eq!(open(b""), HelloOpening::Partial);
        assert_eq!(open(b"GET / HTTP/1.1\r\n"), HelloOpening::NotTls);
        assert_eq!(open(&[0x80, 0x2e, 1, 0, 2]), HelloOpening::Broken);
        assert_eq!(open(&[22, 3, 1, 0xff, 0xff]), HelloOpening::Broken);
        assert_eq!(open(&[22, 3, 1, 0, 0]), HelloOpening::Broken);
        assert_eq!(open(&[22, 3, 1, 0, 4, 2, 0, 0, 0]), HelloOpening::Broken);
        assert_eq!(open_message(&[2, 0, 0, 0]), HelloOpening::NotTls);
        assert_eq!(open_message(&[CLIENT_HELLO, 0, 0, 1, 0]), HelloOpening::Broken);
    }

    #[test]
    fn names_that_lead_elsewhere_and_crumbs_are_broken() {
        let hello = |name: &str| ClientHello { server_name: Some(name.to_owned()), ..ClientHello::default() };
        assert!(matches!(open(&written(&hello("a.example"), 2000)), HelloOpening::Hello(_)));
        for name in ["../a", "a/b", "a..b", ".a", "a b", "a\\b", "\u{e4}"] {
            assert_eq!(open(&written(&hello(name), 2000)), HelloOpening::Broken, "{name}");
        }
        assert_eq!(open(&written(&hello("a.example"), 1)), HelloOpening::Broken);
    }

    #[test]
    fn a_hello_without_end_is_broken() {
        let mut bytes = Vec::new();
        let mut first = vec![CLIENT_HELLO, 0xff, 0xff, 0xff];
        first.resize(16 << 10, 0);
        while bytes.len() < HELLO_BYTES_MAX {
            bytes.extend([HANDSHAKE, 3, 1]);
            bytes.extend(list16(&first));
        }
        assert_eq!(open(&bytes), HelloOpening::Broken);
        bytes.truncate(HELLO_BYTES_MAX);
        assert_eq!(open(&bytes), HelloOpening::Broken);
        assert_eq!(open_message(&first[..4]), HelloOpening::Broken);
        assert_eq!(open_message(&first[..3]), HelloOpening::Partial);
        assert_eq!(open_message(&[CLIENT_HELLO, 0, 0xff, 0xfc]), HelloOpening::Partial);
    }
}
