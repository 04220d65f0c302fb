//! `HTTP/x.y SP NNN [SP reason]`, one line without its end.
//!
//! It follows nginx's ngx_http_parse_status_line: spaces repeated before the code, `403.1` for old IIS, a reason of
//! any bytes except CR, or no reason. Stricter than nginx: the major version is 1 (RFC 9112 §2.3), the code at least
//! 100 (RFC 9110 §15), and the reason has no NUL.

use crate::head::{ResponseHead, Version};
use crate::span::Span;
use crate::word;

/// Fills `out` from the line at the start of the buffer; `None` if it is not a status line.
pub(super) fn parse(line: &[u8], out: &mut ResponseHead) -> Option<()> {
    let Seen::Code { version, start, code } = prefix(line) else {
        return None;
    };
    let reason = match line.get(start + 3) {
        None => start + 3,
        Some(b' ' | b'.') => start + 4,
        Some(_) => return None,
    };
    // Nearly every line has no byte that could be one of the two.
    if !word::none_below(line, b'\r' + 1) && memchr::memchr2(b'\r', 0, line.get(reason..)?).is_some() {
        return None;
    }
    out.version = version;
    out.status = code;
    out.status_line = Span::new(start, line.len());
    out.reason = Span::new(reason, line.len());
    Some(())
}

/// Whether these first bytes may still become a status line.
pub(super) fn may_become_one(bytes: &[u8]) -> bool {
    match prefix(bytes) {
        Seen::Never => false,
        Seen::Short => true,
        Seen::Code { start, .. } => {
            matches!(bytes.get(start + 3), None | Some(b' ' | b'.' | b'\r'))
        }
    }
}

enum Seen {
    /// Not a status line, with any further bytes.
    Never,
    /// No error so far, but the code is not complete.
    Short,
    Code {
        version: Version,
        start: usize,
        code: u16,
    },
}

/// nginx refuses versions with more digits.
const VERSION_DIGITS_MAX: usize = 3;

fn prefix(line: &[u8]) -> Seen {
    const NAME: &[u8] = b"HTTP/";
    const USUAL: &[u8] = b"HTTP/1.1 ";
    if let Some([a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ..]) = line.strip_prefix(USUAL) {
        let code = [a, b, c].iter().fold(0, |code, digit| code * 10 + u16::from(**digit - b'0'));
        return Seen::Code { version: Version::Http11, start: USUAL.len(), code };
    }
    if line.len() < NAME.len() {
        return if NAME.starts_with(line) { Seen::Short } else { Seen::Never };
    }
    if !line.starts_with(NAME) {
        return Seen::Never;
    }
    let mut at = NAME.len();
    let minor = match (number(line, &mut at, b'.'), number(line, &mut at, b' ')) {
        (Digits::Never, _) | (_, Digits::Never) => return Seen::Never,
        (Digits::Value(1), Digits::Value(minor)) => minor,
        (Digits::Value(1), Digits::Short) => return Seen::Short,
        (Digits::Value(_), _) => return Seen::Never,
        (Digits::Short, _) => return Seen::Short,
    };
    if line.get(NAME.len()) == Some(&b'0') {
        return Seen::Never;
    }
    let version = if minor > 0 { Version::Http11 } else { Version::Http10 };
    let rest = line.get(at..).unwrap_or_default();
    let start = at + rest.iter().take_while(|&&b| b == b' ').count();
    let mut code = 0;
    for position in start..start + 3 {
        match line.get(position) {
            Some(b'0') if position == start => return Seen::Never,
            Some(digit @ b'0'..=b'9') => code = code * 10 + u16::from(digit - b'0'),
            Some(_) => return Seen::Never,
            None => return Seen::Short,
        }
    }
    Seen::Code { version, start, code }
}

enum Digits {
    Never,
    Short,
    Value(u32),
}

/// One to three digits and the byte that must follow them.
fn number(line: &[u8], at: &mut usize, end: u8) -> Digits {
    let mut value = 0;
    for count in 0..=VERSION_DIGITS_MAX {
        match line.get(*at) {
            None => return Digits::Short,
            Some(&byte) if byte == end && count > 0 => {
                *at += 1;
                return Digits::Value(value);
            }
            Some(digit @ b'0'..=b'9') => value = value * 10 + u32::from(digit - b'0'),
            Some(_) => return Digits::Never,
        }
        *at += 1;
    }
    Digits::Never
}
