//! Percent escaping, with nginx's sets of bytes (`ngx_escape_uri` types).
//!
//! The sets are nginx's, not the RFC's: variables, redirects and rewritten URIs must be byte for byte the same as
//! nginx's.

/// The bytes that one kind of text must escape.
#[derive(Clone, Copy, Debug)]
pub struct EscapeSet([bool; 256]);

/// A path in a URI (`NGX_ESCAPE_URI`).
pub const URI: EscapeSet = EscapeSet::of(b" \"#%<>?\\^`{|}");
/// A value in the query part (`NGX_ESCAPE_ARGS`).
pub const ARGS: EscapeSet = EscapeSet::of(b" \"#%&+;<>?\\^`{|}");
/// A component: all but letters, digits and `-._~` (`NGX_ESCAPE_URI_COMPONENT`).
pub const URI_COMPONENT: EscapeSet = EscapeSet::of(b" !\"#$%&'()*+,/:;<=>?@[\\]^`{|}");
/// A URI inside an HTML attribute (`NGX_ESCAPE_HTML`).
pub const HTML: EscapeSet = EscapeSet::of(b" \"#%'<>\\^`{|}");
/// A URI inside a Refresh field (`NGX_ESCAPE_REFRESH`; the odd `~` is nginx's).
pub const REFRESH: EscapeSet = EscapeSet::of(b" \"'<>\\^`{|~");

impl EscapeSet {
    /// The given bytes, all control bytes, DEL, and everything beyond ASCII.
    const fn of(bytes: &[u8]) -> EscapeSet {
        let mut set = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            set[byte] = byte < 0x20 || byte >= 0x7f;
            byte += 1;
        }
        let mut index = 0;
        while index < bytes.len() {
            set[bytes[index] as usize] = true;
            index += 1;
        }
        EscapeSet(set)
    }

    /// Whether the byte is escaped.
    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.0.get(byte as usize).copied().unwrap_or(true)
    }
}

/// Appends `text`, the bytes of the set as `%XX`.
pub fn escape(text: &[u8], set: &EscapeSet, out: &mut Vec<u8>) {
    out.reserve(text.len());
    for &byte in text {
        if set.contains(byte) {
            out.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
        } else {
            out.push(byte);
        }
    }
}

/// [`escape`] for a path: [`URI`].
pub fn escape_uri(path: &[u8], out: &mut Vec<u8>) {
    escape(path, &URI, out);
}

/// [`escape`] for a query value: [`ARGS`].
pub fn escape_args(text: &[u8], out: &mut Vec<u8>) {
    escape(text, &ARGS, out);
}

/// [`escape`] for a component: [`URI_COMPONENT`].
pub fn escape_uri_component(text: &[u8], out: &mut Vec<u8>) {
    escape(text, &URI_COMPONENT, out);
}

/// Appends `text` with `<`, `>`, `&` and `"` as character references
/// (`ngx_escape_html`).
pub fn escape_html(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            _ => out.push(byte),
        }
    }
}

/// Appends `text` as the inside of a string in JSON (RFC 8259 §7). Bytes that are not UTF-8 stay as they are.
pub fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..=0x1f => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
            _ => out.push(byte),
        }
    }
}

/// Which bytes [`unescape_uri`] decodes (`ngx_unescape_uri` types).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unescape {
    /// Every `%xx`.
    All,
    /// Every `%xx` up to the first `?`, raw or decoded. That `?` is kept; the text after it is not consumed.
    Uri,
    /// As `Uri`, but only bytes that need no escape in a redirect are decoded; other bytes keep their escapes.
    Redirect,
}

/// Appends `text` decoded and returns how many bytes of it were consumed. A
/// broken escape loses its `%`, as in nginx.
pub fn unescape_uri(text: &[u8], how: Unescape, out: &mut Vec<u8>) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        if byte == b'?' && how != Unescape::All {
            out.push(byte);
            return at;
        }
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let Some(&first) = text.get(at) else { break };
        at += 1;
        let Some(high) = hex_value(first) else {
            out.push(first);
            continue;
        };
        let Some(&second) = text.get(at) else { break };
        at += 1;
        let Some(low) = hex_value(second) else {
            continue;
        };
        let decoded = high << 4 | low;
        match how {
            Unescape::All => out.push(decoded),
            Unescape::Uri | Unescape::Redirect if decoded == b'?' => {
                out.push(decoded);
                return at;
            }
            Unescape::Uri => out.push(decoded),
            Unescape::Redirect if decoded > b'%' && decoded < 0x7f => out.push(decoded),
            Unescape::Redirect => out.extend_from_slice(&[b'%', first, second]),
        }
    }
    at
}

/// The value of a hexadecimal digit.
#[inline]
pub(crate) fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn hex_digit(value: u8) -> u8 {
    match value & 15 {
        digit @ 0..=9 => b'0' + digit,
        letter => b'A' + letter - 10,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn escaped(set: &EscapeSet) -> Vec<u8> {
        (0x20..0x7f).filter(|&byte| set.contains(byte)).collect()
    }

    #[test]
    fn sets_are_those_of_nginx() {
        let bits = |words: [u32; 3]| -> Vec<u8> {
            (0x20..0x7fu8).filter(|&b| words[(b >> 5) as usize - 1] & (1 << (b & 31)) != 0).collect()
        };
        assert_eq!(escaped(&URI), bits([0xd000_002d, 0x5000_0000, 0xb800_0001]));
        assert_eq!(escaped(&ARGS), bits([0xd800_086d, 0x5000_0000, 0xb800_0001]));
        assert_eq!(escaped(&URI_COMPONENT), bits([0xfc00_9fff, 0x7800_0001, 0xb800_0001]));
        assert_eq!(escaped(&HTML), bits([0x5000_00ad, 0x5000_0000, 0xb800_0001]));
        assert_eq!(escaped(&REFRESH), bits([0x5000_0085, 0x5000_0000, 0xd800_0001]));
        for set in [URI, ARGS, URI_COMPONENT, HTML, REFRESH] {
            assert!((0..0x20).chain(0x7f..=0xff).all(|b| set.contains(b)));
        }
    }

    #[test]
    fn escaping() {
        let mut out = Vec::new();
        escape_uri("/a b?é%".as_bytes(), &mut out);
        assert_eq!(out, b"/a%20b%3F%C3%A9%25");
        out.clear();
        escape_html(b"<a href=\"x\">&</a>", &mut out);
        assert_eq!(out, b"&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;");
        out.clear();
        escape_json(b"\"\\\n\r\t\x08\x0c\x01\x1f/\x7f", &mut out);
        assert_eq!(out, b"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u001F/\x7f");
    }

    #[test]
    fn unescaping() {
        let check = |text: &str, how, expect: &str, left: &str| {
            let mut out = Vec::new();
            let consumed = unescape_uri(text.as_bytes(), how, &mut out);
            assert_eq!(out, expect.as_bytes(), "{text}");
            assert_eq!(text.get(consumed..), Some(left), "{text}");
        };
        check("a%20b%3fc?d%3Fe", Unescape::All, "a b?c?d?e", "");
        check("a%20b?c%20", Unescape::Uri, "a b?", "c%20");
        check("a%3fc%20", Unescape::Uri, "a?", "c%20");
        check("a%20%41%2f%25", Unescape::Redirect, "a%20A/%25", "");
        check("%zz%4z%4", Unescape::All, "zz", "");
    }
}
