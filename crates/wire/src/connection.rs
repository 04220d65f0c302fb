//! The Connection field: its options for this connection, and the other fields it names (RFC 9110 §7.6.1).

pub(crate) mod tokens;

use crate::field::trim;
use crate::head::{ResponseHead, Version};
use crate::known::Known;
pub use tokens::ConnectionTokens;

/// Whether the connection may carry another message (RFC 9112 §9.3).
pub fn keeps_alive(version: Version, tokens: ConnectionTokens) -> bool {
    match version {
        Version::Http09 => false,
        Version::Http10 => tokens.keep_alive && !tokens.close,
        Version::Http11 => !tokens.close,
        Version::Http2 | Version::Http3 => true,
    }
}

/// Whether the connection to an origin may carry another exchange after this answer (RFC 9112 §9.3).
///
/// Chunks in HTTP/1.0 are faulty framing (§6.1): the bytes after such an answer cannot be trusted.
pub fn answer_keeps_alive(buf: &[u8], head: &ResponseHead) -> bool {
    let is_faulty = head.version < Version::Http11 && head.known().contains(Known::TransferEncoding);
    !is_faulty && keeps_alive(head.version, head.tokens(buf))
}

/// The seconds for which the origin keeps an idle connection, if its Keep-Alive field gives them: `timeout=5, max=100` (RFC
/// 2068 §19.7.1.1, which RFC 9112 no longer defines; Node.js and Apache send it). More than 2^32 seconds count as 2^32 - 1.
pub fn idle_seconds(buf: &[u8], head: &ResponseHead) -> Option<u32> {
    if !head.known().contains(Known::KeepAlive) {
        return None;
    }
    let fields = head.fields.iter().filter(|field| field.known == Some(Known::KeepAlive));
    let mut parameters = fields.flat_map(|field| field.value.of(buf).split(|byte| *byte == b','));
    parameters.find_map(|parameter| {
        let (name, value) = parameter.split_at_checked(parameter.iter().position(|byte| *byte == b'=')?)?;
        let digits = trim(value.get(1..)?);
        let is_timeout = trim(name).eq_ignore_ascii_case(b"timeout") && !digits.is_empty();
        let add = |sum: u32, digit: &u8| {
            digit.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
        };
        is_timeout.then(|| digits.iter().try_fold(0, add)).flatten()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{HeadPolicy, Parser, RequestHead};

    fn tokens(fields: &str) -> (ConnectionTokens, bool) {
        let text = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        let mut head = RequestHead::new();
        Parser::new().request(text.as_bytes(), &HeadPolicy::default(), &mut head).unwrap();
        let lists = ConnectionTokens::lists(text.as_bytes(), &head.fields, b"X-Hop");
        (ConnectionTokens::of(text.as_bytes(), &head.fields), lists)
    }

    #[test]
    fn tokens_are_whole_and_case_insensitive() {
        assert_eq!(tokens("A: close\r\n").0, ConnectionTokens::default());
        assert!(tokens("Connection: Close\r\n").0.close);
        assert!(tokens("Connection: a, ,\tKEEP-alive ,\r\n").0.keep_alive);
        let (both, _) = tokens("Connection: upgrade\r\nConnection: close\r\n");
        assert!(both.upgrade && both.close && !both.names);
        let (other, lists) = tokens("Connection: not-close, x-hop\r\n");
        assert!(!other.close && other.names && lists);
        assert!(!tokens("Connection: x-hop2\r\n").1);
    }

    #[test]
    fn a_request_loses_only_what_may_be_named() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nX-Hop: 1\r\nConnection: x-hop, host, Cookie, X-Forwarded-Port, TE, trailer\r\n\
            Cookie: a\r\nX-Forwarded-Port: 1\r\nTE: trailers\r\nTrailer: x\r\nX-End: 2\r\nx-hop: 3\r\n\r\n";
        let mut head = RequestHead::new();
        Parser::new().request(text, &HeadPolicy::default(), &mut head).unwrap();
        head.leave_out_named(text);
        let names: Vec<&[u8]> = head.fields.iter().map(|field| field.name.of(text)).collect();
        assert_eq!(names, [&b"Host"[..], b"Connection", b"Cookie", b"X-Forwarded-Port", b"TE", b"X-End"]);
        assert!(head.field(Known::Trailer).is_none() && !head.known().contains(Known::Trailer));
        assert!(head.known().contains(Known::Cookie));
    }

    #[test]
    fn an_origin_tells_how_long_it_keeps_a_connection() {
        for (fields, seconds) in [
            ("Keep-Alive: timeout=5\r\n", Some(5)),
            ("keep-alive: max=100, Timeout = 65\r\n", Some(65)),
            ("Keep-Alive: 300\r\nKeep-Alive: timeout=7\r\n", Some(7)),
            ("Keep-Alive: timeout=99999999999\r\n", Some(u32::MAX)),
            ("Keep-Alive: timeout=\r\n", None),
            ("Keep-Alive: timeout=5s, max=3\r\n", None),
            ("Connection: keep-alive\r\n", None),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
            let mut head = ResponseHead::new();
            Parser::new().response(text.as_bytes(), &mut head).unwrap();
            assert_eq!(idle_seconds(text.as_bytes(), &head), seconds, "{fields}");
        }
    }

    #[test]
    fn close_outranks_keep_alive() {
        let with = |close, keep_alive| ConnectionTokens { close, keep_alive, ..Default::default() };
        for (version, close, keep_alive, expect) in [
            (Version::Http11, false, false, true),
            (Version::Http11, true, false, false),
            (Version::Http11, true, true, false),
            (Version::Http10, false, false, false),
            (Version::Http10, false, true, true),
            (Version::Http10, true, true, false),
            (Version::Http09, false, true, false),
        ] {
            assert_eq!(keeps_alive(version, with(close, keep_alive)), expect, "{version:?}");
        }
    }

    #[test]
    fn an_answer_of_http_1_0_in_chunks_ends_its_connection() {
        for (line, fields, keeps) in [
            ("HTTP/1.1", "Transfer-Encoding: chunked\r\n", true),
            ("HTTP/1.0", "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n", false),
            ("HTTP/1.0", "Content-Length: 1\r\nConnection: keep-alive\r\n", true),
            ("HTTP/1.0", "Content-Length: 1\r\n", false),
            ("HTTP/1.1", "Connection: close\r\n", false),
        ] {
            let text = format!("{line} 200 OK\r\n{fields}\r\n");
            let mut head = ResponseHead::new();
            Parser::new().response(text.as_bytes(), &mut head).unwrap();
            assert_eq!(answer_keeps_alive(text.as_bytes(), &head), keeps, "{text}");
        }
    }
}
