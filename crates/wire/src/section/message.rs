//! Turns field sections into requests, answers and trailers (RFC 9113 §8, RFC 9114 §4).
//!
//! A request becomes the same kind of head as in HTTP/1.1, in the same buffer: its request line is written after the
//! fields, the authority becomes its Host field, and the pieces of a cookie are joined. Messages that §8.1.1 calls
//! malformed are refused here.
//!
//! The rules of both versions are the same, but for the Host field: HTTP/3 demands that a request has it or `:authority`
//! (RFC 9114 §4.3.1). RFC numbers below are those of HTTP/2.

use crate::framing::content_length;
use crate::head::{RequestHead, ResponseHead, Version};
use crate::known::Known;
use crate::span::{Field, Span};

use super::block::Block;

/// Why a section is malformed: a stream error (RFC 9113 §8.1.1, RFC 9114 §4.1.2).
pub type Malformed = &'static str;

/// The facts of a request outside its head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extended {
    /// `:protocol` of an extended CONNECT (RFC 8441 §4, RFC 9220 §3).
    pub protocol: Option<Span>,
}

/// Makes the head of a request from a block. From then on, the head refers to the block's buffer. Takes the block's
/// fields.
///
/// `is_connect_extended` is true if our SETTINGS allow `:protocol`.
pub fn request(
    block: &mut Block,
    version: Version,
    is_connect_extended: bool,
    head: &mut RequestHead,
) -> Result<Extended, Malformed> {
    head.clear();
    let pseudo = Pseudo::take(block, head)?;
    let method = pseudo.method.ok_or("a request without :method")?;
    if !method.of(&block.bytes).iter().all(|&byte| matches!(byte, b'A'..=b'Z' | b'_' | b'-')) || method.is_empty() {
        return Err("a :method that is none");
    }
    let is_connect = method.of(&block.bytes) == b"CONNECT";
    let extended = Extended { protocol: pseudo.protocol };
    match (is_connect, pseudo.protocol) {
        (false, Some(_)) => return Err(":protocol without CONNECT"),
        (true, Some(_)) if !is_connect_extended => return Err(":protocol without leave"),
        (true, None) if pseudo.scheme.is_some() || pseudo.path.is_some() => {
            return Err("CONNECT with :scheme or :path");
        }
        (true, None) => {
            head.target = pseudo.authority.ok_or("CONNECT without :authority")?;
            head.authority = Some(head.target);
        }
        _ => {
            let scheme = pseudo.scheme.ok_or("a request without :scheme")?;
            check_scheme(scheme.of(&block.bytes))?;
            head.target = pseudo.path.ok_or("a request without :path")?;
            head.path = head.target;
            check_path(method.of(&block.bytes), head.target.of(&block.bytes))?;
        }
    }
    name_host(block, head, pseudo.authority)?;
    if version == Version::Http3 && head.value(&block.bytes, Known::Host).is_none_or(<[u8]>::is_empty) {
        return Err("a request without :authority and Host");
    }
    join_cookies(block, head);
    head.method = method;
    head.version = version;
    write_line(block, head);
    head.len = block.bytes.len();
    Ok(extended)
}

/// Makes the head of an answer from a block, as [`request`].
pub fn response(block: &mut Block, version: Version, head: &mut ResponseHead) -> Result<(), Malformed> {
    head.clear();
    let mut status = None;
    for field in block.fields.drain(..) {
        let (name, value) = (field.name.of(&block.bytes), field.value.of(&block.bytes));
        if name.first() == Some(&b':') {
            if name != b":status" || status.is_some() || !head.fields.is_empty() {
                return Err("a pseudo-header field that is not :status, or not first");
            }
            status = Some((field.value, three_digits(value).ok_or("a :status that is not three digits")?));
            continue;
        }
        check_field(name, value, field.known)?;
        if let Some(known) = field.known {
            head.seen.insert(known);
        }
        head.fields.push(field);
    }
    let (line, code) = status.ok_or("an answer without :status")?;
    head.version = version;
    head.status = code;
    head.status_line = line;
    head.reason = Span::new(line.end as usize, line.end as usize);
    head.len = block.bytes.len();
    Ok(())
}

/// The declared length of an answer's body, if it matters: it does not if there is no body, as after a HEAD.
///
/// The head's ranges refer to `bytes`; `ends` is true if nothing follows the head.
pub fn declared(head: &ResponseHead, bytes: &[u8], is_to_head: bool, ends: bool) -> Result<Option<u64>, Malformed> {
    match head.status {
        // RFC 9113 §8.6, RFC 9114 §4.5.
        101 => return Err("101, which only HTTP/1.1 has"),
        100..=199 if ends => return Err("an interim answer that ends its stream"),
        100..=199 | 204 | 304 => return Ok(None),
        _ if is_to_head => return Ok(None),
        _ => {}
    }
    match head.value(bytes, Known::ContentLength).map(content_length) {
        Some(Some(length)) if ends && length > 0 => Err("a body shorter than its content-length"),
        Some(length) => Ok(length),
        None => Ok(None),
    }
}

/// Whether a value holds a control byte other than a tab. RFC 9113 §8.2.1 calls only NUL, CR and LF malformed, and
/// [`request`] refuses these; RFC 9110 §5.5 allows no control byte in a value.
pub fn has_control(value: &[u8]) -> bool {
    crate::field::has_control(value)
}

/// Checks that a block is a trailer section: no pseudo-header fields (RFC 9113 §8.1).
pub fn check_trailers(block: &Block) -> Result<(), Malformed> {
    for field in &block.fields {
        let (name, value) = (field.name.of(&block.bytes), field.value.of(&block.bytes));
        if name.first() == Some(&b':') {
            return Err("a pseudo-header field in trailers");
        }
        check_field(name, value, field.known)?;
    }
    Ok(())
}

#[derive(Default)]
struct Pseudo {
    method: Option<Span>,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Option<Span>,
    protocol: Option<Span>,
}

impl Pseudo {
    /// Takes the fields of a block: returns those with a colon, and puts the others into the head.
    fn take(block: &mut Block, head: &mut RequestHead) -> Result<Pseudo, Malformed> {
        let mut pseudo = Pseudo::default();
        for field in block.fields.drain(..) {
            let (name, value) = (field.name.of(&block.bytes), field.value.of(&block.bytes));
            if name.first() != Some(&b':') {
                check_field(name, value, field.known)?;
                if let Some(known) = field.known {
                    if known.is_single_in_request() && head.seen.contains(known) {
                        return Err("a field twice that may stand once");
                    }
                    head.seen.insert(known);
                }
                head.fields.push(field);
                continue;
            }
            if !head.fields.is_empty() {
                return Err("a pseudo-header field behind others");
            }
            let place = match name {
                b":method" => &mut pseudo.method,
                b":scheme" => &mut pseudo.scheme,
                b":authority" => &mut pseudo.authority,
                b":path" => &mut pseudo.path,
                b":protocol" => &mut pseudo.protocol,
                _ => return Err("a pseudo-header field that does not exist"),
            };
            check_value(value)?;
            if place.replace(field.value).is_some() {
                return Err("a pseudo-header field twice");
            }
        }
        Ok(pseudo)
    }
}

/// RFC 9113 §8.2.1 and §8.2.2.
fn check_field(name: &[u8], value: &[u8], known: Option<Known>) -> Result<(), Malformed> {
    if name.is_empty() || name.iter().any(|&byte| matches!(byte, 0..=0x20 | b'A'..=b'Z' | b':' | 0x7f..)) {
        return Err("a field name that is none");
    }
    match known {
        Some(
            Known::Connection | Known::ProxyConnection | Known::KeepAlive | Known::TransferEncoding | Known::Upgrade,
        ) => return Err("a field that belongs to an HTTP/1.1 connection"),
        Some(Known::Te) if !value.eq_ignore_ascii_case(b"trailers") => return Err("TE that is not \"trailers\""),
        _ => {}
    }
    check_value(value)
}

fn check_value(value: &[u8]) -> Result<(), Malformed> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if memchr::memchr3(0, b'\r', b'\n', value).is_some() || is_space(value.first()) || is_space(value.last()) {
        return Err("a field value with a forbidden byte, or with spaces around it");
    }
    Ok(())
}

/// RFC 3986 §3.1.
fn check_scheme(scheme: &[u8]) -> Result<(), Malformed> {
    let is_right = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    match scheme.first() {
        Some(first) if first.is_ascii_alphabetic() && scheme.iter().all(is_right) => Ok(()),
        _ => Err("a :scheme that is none"),
    }
}

/// A path begins with a slash; `*` is for OPTIONS alone (RFC 9113 §8.3.1).
fn check_path(method: &[u8], path: &[u8]) -> Result<(), Malformed> {
    if path == b"*" && method == b"OPTIONS" {
        return Ok(());
    }
    if path.first() != Some(&b'/') || path.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
        return Err("a :path that is none");
    }
    Ok(())
}

/// Gives the head its Host field, which is `:authority` if there is one (RFC 9113 §8.3.1).
fn name_host(block: &mut Block, head: &mut RequestHead, authority: Option<Span>) -> Result<(), Malformed> {
    let Some(authority) = authority else { return Ok(()) };
    if authority.is_empty() {
        return Err("an empty :authority");
    }
    if let Some(host) = head.value(&block.bytes, Known::Host) {
        let is_same = host.eq_ignore_ascii_case(authority.of(&block.bytes));
        return if is_same { Ok(()) } else { Err(":authority and Host that differ") };
    }
    let start = block.bytes.len();
    block.bytes.extend_from_slice(b"host");
    let name = Span::new(start, block.bytes.len());
    head.fields.push(Field { name, value: authority, known: Some(Known::Host) });
    head.seen.insert(Known::Host);
    Ok(())
}

/// Joins the pieces of a cookie into one field (RFC 9113 §8.2.3).
fn join_cookies(block: &mut Block, head: &mut RequestHead) {
    let is_cookie = |field: &Field| field.known == Some(Known::Cookie);
    if head.fields.iter().filter(|field| is_cookie(field)).count() < 2 {
        return;
    }
    let start = block.bytes.len();
    for field in head.fields.iter().filter(|field| is_cookie(field)) {
        if block.bytes.len() > start {
            block.bytes.extend_from_slice(b"; ");
        }
        block.bytes.extend_from_within(field.value.start as usize..field.value.end as usize);
    }
    let whole = Span::new(start, block.bytes.len());
    let mut is_first = true;
    head.fields.retain_mut(|field| {
        if !is_cookie(field) {
            return true;
        }
        field.value = whole;
        std::mem::take(&mut is_first)
    });
}

/// Writes `GET / HTTP/2.0`, or `HTTP/3.0`, which logs and variables show.
fn write_line(block: &mut Block, head: &mut RequestHead) {
    let start = block.bytes.len();
    for part in [head.method, head.target] {
        block.bytes.extend_from_within(part.start as usize..part.end as usize);
        block.bytes.push(b' ');
    }
    let protocol = block.bytes.len();
    block.bytes.extend_from_slice(if head.version == Version::Http3 { b"HTTP/3.0" } else { b"HTTP/2.0" });
    head.protocol = Span::new(protocol, block.bytes.len());
    head.line = Span::new(start, block.bytes.len());
}

fn three_digits(value: &[u8]) -> Option<u16> {
    let &[a, b, c] = value else { return None };
    let digits = [a, b, c].map(|byte| byte.wrapping_sub(b'0'));
    let is_right = digits.iter().all(|&digit| digit < 10) && digits.first() > Some(&0);
    is_right.then(|| digits.iter().fold(0, |sum, &digit| sum * 10 + u16::from(digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/x?y")];

    /// A block of these fields, as the decoder returns it.
    fn block(fields: &[(&str, &str)]) -> Block {
        let mut block = Block::default();
        for (name, value) in fields {
            block.push(name.as_bytes(), value.as_bytes(), Known::of(name.as_bytes()), 1 << 16);
        }
        block
    }

    fn read(fields: &[(&str, &str)]) -> Result<(Block, RequestHead), Malformed> {
        let (mut block, mut head) = (block(fields), RequestHead::default());
        request(&mut block, Version::Http2, false, &mut head)?;
        Ok((block, head))
    }

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        GET.iter().chain(more).copied().collect()
    }

    #[test]
    fn a_request_is_a_head_like_any_other() -> Result<(), Malformed> {
        let (block, head) = read(&with(&[("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2")]))?;
        let text = |span: Span| String::from_utf8_lossy(span.of(&block.bytes)).into_owned();
        assert_eq!(text(head.line), "GET /x?y HTTP/2.0");
        assert_eq!(
            (text(head.method), text(head.path), text(head.protocol)),
            ("GET".into(), "/x?y".into(), "HTTP/2.0".into())
        );
        let fields: Vec<_> =
            head.fields.iter().map(|field| format!("{}: {}", text(field.name), text(field.value))).collect();
        assert_eq!(fields, ["cookie: a=1; b=2", "accept: */*", "host: a.test"]);
        assert_eq!((head.version, head.known().contains(Known::Host)), (Version::Http2, true));
        Ok(())
    }

    #[test]
    fn what_is_malformed() {
        let rows: [&[(&str, &str)]; 22] = [
            &with(&[("Upper", "x")]),
            &with(&[("connection", "close")]),
            &with(&[("te", "gzip")]),
            &with(&[("x", "a\nb")]),
            &with(&[("x", " a")]),
            &with(&[("x", "a\t")]),
            &with(&[("", "a")]),
            &with(&[("x y", "a")]),
            &with(&[(":path", "/again")]),
            &with(&[("x", "a"), (":path", "/late")]),
            &with(&[(":unknown", "a")]),
            &with(&[(":status", "200")]),
            &with(&[("host", "b.test")]),
            &with(&[("host", "a.test"), ("host", "a.test")]),
            &with(&[(":protocol", "websocket")]),
            &GET[1..],
            &GET[..3],
            &[GET[0], GET[2], GET[3]],
            &[GET[0], GET[1], GET[2], (":path", "")],
            &[GET[0], GET[1], GET[2], (":path", "x")],
            &[GET[0], GET[1], GET[2], (":path", "*")],
            &[(":method", "CONNECT"), (":authority", "a.test:1"), (":path", "/")],
        ];
        for fields in rows {
            assert!(read(fields).is_err(), "{fields:?}");
        }
        assert!(read(&with(&[("te", "trailers"), ("host", "A.test")])).is_ok());
        for (at, name, value, is_right) in [
            (1, ":scheme", "coap+ws", true),
            (1, ":scheme", "", false),
            (1, ":scheme", "1http", false),
            (1, ":scheme", "http\u{1}://x", false),
            (2, ":path", "*", true),
            (2, ":path", "**", false),
        ] {
            let mut fields = with(&[]);
            fields[0] = (":method", "OPTIONS");
            let place = fields.iter().position(|field| field.0 == name).unwrap_or(at);
            fields[place] = (name, value);
            assert_eq!(read(&fields).is_ok(), is_right, "{name} {value:?}");
        }
    }

    #[test]
    fn connect_has_only_an_authority() -> Result<(), Malformed> {
        let (block, head) = read(&[(":method", "CONNECT"), (":authority", "a.test:1")])?;
        assert_eq!(head.line.of(&block.bytes), b"CONNECT a.test:1 HTTP/2.0");
        let mut fields = with(&[]);
        fields[0] = (":method", "CONNECT");
        fields.insert(1, (":protocol", "websocket"));
        let mut extended = self::block(&fields);
        let said = request(&mut extended, Version::Http2, true, &mut RequestHead::default())?;
        assert_eq!(said.protocol.map(|span| span.of(&extended.bytes).to_vec()), Some(b"websocket".to_vec()));
        Ok(())
    }

    #[test]
    fn an_answer_has_a_status_of_three_digits() {
        let mut head = ResponseHead::default();
        assert_eq!(response(&mut block(&[(":status", "204"), ("server", "x")]), Version::Http2, &mut head), Ok(()));
        assert_eq!((head.status, head.fields.len(), head.version), (204, 1, Version::Http2));
        for fields in
            [&[("server", "x")][..], &[(":status", "20")], &[(":status", "+20")], &[("a", "b"), (":status", "200")]]
        {
            assert!(response(&mut block(fields), Version::Http2, &mut head).is_err(), "{fields:?}");
        }
    }

    #[test]
    fn trailers_have_no_pseudo_header() {
        assert_eq!(check_trailers(&block(&[("grpc-status", "0")])), Ok(()));
        assert!(check_trailers(&block(&[(":status", "200")])).is_err());
    }
}
