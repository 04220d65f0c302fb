//! `METHOD SP target SP HTTP/1.x`, one line without its end.
//!
//! It follows nginx's ngx_http_parse_request_line: methods are `[A-Z_-]+`, spaces may be repeated between the parts
//! and follow the version, targets are in origin form, absolute form, or (CONNECT only) authority form. nginx has no
//! asterisk form; here OPTIONS has it.

use crate::head::{RequestHead, Version};
use crate::span::Span;
use crate::violation::Violation;
use crate::word;

/// The error, and the byte of the line where it is.
pub(super) struct Bad {
    pub(super) at: usize,
    pub(super) violation: Violation,
}

type Parsed<T> = Result<T, Bad>;

/// Fills `out` from the line; its spans are moved by `base`.
pub(super) fn parse(line: &[u8], base: usize, out: &mut RequestHead) -> Parsed<()> {
    if let Some((method_end, end)) = usual(line) {
        let span = |from: usize, to: usize| Span::new(base + from, base + to);
        out.method = span(0, method_end);
        out.target = span(method_end + 1, end);
        out.path = out.target;
        (out.scheme, out.authority) = (None, None);
        out.protocol = span(end + 1, line.len());
        out.version = Version::Http11;
        return Ok(());
    }
    let method_end = count(line, 0, is_method_byte);
    if method_end == 0 || line.get(method_end) != Some(&b' ') {
        return Err(Bad { at: method_end, violation: Violation::InvalidMethod });
    }
    let method = line.get(..method_end).unwrap_or_default();
    let start = count_spaces(line, method_end);
    let mut target = Target::default();
    let end = match line.get(start) {
        _ if method == b"CONNECT" => authority_form(line, start, &mut target)?,
        Some(b'/') => path(line, start, &mut target)?,
        Some(b'*') if method == b"OPTIONS" => asterisk_form(line, start, &mut target)?,
        Some(byte) if byte.is_ascii_alphabetic() => absolute_form(line, start, &mut target)?,
        _ => return Err(invalid(start)),
    };
    let protocol = count_spaces(line, end);
    let (version, protocol_end) = version(line, protocol)?;
    if version == Version::Http09 && method != b"GET" {
        return Err(Bad { at: line.len(), violation: Violation::InvalidHttp09Method });
    }
    let span = |(from, to): (usize, usize)| Span::new(base + from, base + to);
    out.method = span((0, method_end));
    out.target = span((start, end));
    out.path = span(target.path.unwrap_or((end, end)));
    out.scheme = target.scheme.map(span);
    out.authority = target.authority.map(span);
    out.protocol = span((protocol, protocol_end));
    out.version = version;
    Ok(())
}

/// Reads the form that nearly all lines have: `METHOD /path HTTP/1.1` with single spaces. Returns the ends of the
/// method and of the target.
fn usual(line: &[u8]) -> Option<(usize, usize)> {
    let rest = line.strip_suffix(b" HTTP/1.1")?;
    let method_end = rest.iter().position(|byte| !byte.is_ascii_uppercase())?;
    let target = rest.get(method_end..)?.strip_prefix(b" ")?;
    let plain = word::visible(target);
    let is_plain = target.get(plain..)?.iter().all(|&byte| is_target_byte(byte));
    let is_usual = method_end > 0 && is_plain && target.starts_with(b"/") && rest.get(..method_end)? != b"CONNECT";
    is_usual.then_some((method_end, rest.len()))
}

#[inline]
fn is_target_byte(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// Bytes of a method; lower case is refused, as in nginx.
#[inline]
pub(super) fn is_method_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte == b'_' || byte == b'-'
}

#[derive(Default)]
struct Target {
    scheme: Option<(usize, usize)>,
    authority: Option<(usize, usize)>,
    path: Option<(usize, usize)>,
}

/// From a `/` or `?` to the next space; returns the target's end.
fn path(line: &[u8], start: usize, target: &mut Target) -> Parsed<usize> {
    let end = count(line, start, is_target_byte);
    match line.get(end) {
        Some(b' ') | None => {
            target.path = Some((start, end));
            Ok(end)
        }
        Some(_) => Err(invalid(end)),
    }
}

/// `*` (RFC 9112 §3.2.4): the server as a whole.
fn asterisk_form(line: &[u8], start: usize, target: &mut Target) -> Parsed<usize> {
    match line.get(start + 1) {
        Some(b' ') => {
            target.path = Some((start, start + 1));
            Ok(start + 1)
        }
        _ => Err(invalid(start + 1)),
    }
}

/// `scheme "://" authority [ path ]` (RFC 9112 §3.2.2).
fn absolute_form(line: &[u8], start: usize, target: &mut Target) -> Parsed<usize> {
    let scheme_end = count(line, start, |b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    if line.get(scheme_end..scheme_end + 3) != Some(b"://") {
        return Err(invalid(scheme_end));
    }
    target.scheme = Some((start, scheme_end));
    let host = scheme_end + 3;
    let (end, _) = authority(line, host)?;
    target.authority = Some((host, end));
    match line.get(end) {
        Some(b'/' | b'?') => path(line, end, target),
        Some(b' ') => Ok(end),
        _ => Err(invalid(end)),
    }
}

/// `host ":" port` (RFC 9112 §3.2.3): the port is required.
fn authority_form(line: &[u8], start: usize, target: &mut Target) -> Parsed<usize> {
    let (end, port_digits) = authority(line, start)?;
    if port_digits == 0 || line.get(end) != Some(&b' ') {
        return Err(invalid(end));
    }
    target.authority = Some((start, end));
    Ok(end)
}

/// `host [ ":" port ]`: returns its end and the number of digits in its port. [`crate::request_host`] checks the
/// bytes again, more strictly.
fn authority(line: &[u8], start: usize) -> Parsed<(usize, usize)> {
    let mut at = start;
    if line.get(at) == Some(&b'[') {
        at = count(line, at + 1, is_ip_literal_byte);
        if line.get(at) != Some(&b']') {
            return Err(invalid(at));
        }
        at += 1;
    } else {
        at = count(line, at, |b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
    }
    if line.get(at) != Some(&b':') {
        return Ok((at, 0));
    }
    let end = count(line, at + 1, |b| b.is_ascii_digit());
    Ok((end, end - at - 1))
}

fn is_ip_literal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":-._~!$&'()*+,;=".contains(&byte)
}

/// `HTTP/1.x` and trailing spaces; an empty rest is HTTP/0.9.
fn version(line: &[u8], start: usize) -> Parsed<(Version, usize)> {
    let rest = line.get(start..).unwrap_or_default();
    if rest == b"HTTP/1.1" {
        return Ok((Version::Http11, start + 8));
    }
    if rest.is_empty() {
        return Ok((Version::Http09, start));
    }
    if !rest.starts_with(b"HTTP/") {
        return Err(invalid(start));
    }
    let minor_start = major(line, start + 5)?;
    let minor_end = count(line, minor_start, |b| b.is_ascii_digit());
    let end = count_spaces(line, minor_end);
    let version = match line.get(minor_start..minor_end) {
        _ if end != line.len() => return Err(invalid(end)),
        Some(b"0") => Version::Http10,
        // One digit (RFC 9112 §2.3); nginx accepts up to 999, but a recipient may read "1.10" as 1.1 or 1.0.
        Some([_]) => Version::Http11,
        _ => return Err(invalid(end)),
    };
    Ok((version, minor_end))
}

/// `1.`; another number is a version that weir does not speak; anything else is not a version.
fn major(line: &[u8], start: usize) -> Parsed<usize> {
    let another = |at| Err(Bad { at, violation: Violation::InvalidVersion });
    match (line.get(start), line.get(start + 1)) {
        (Some(b'1'), Some(b'.')) => Ok(start + 2),
        (Some(b'1'), Some(b'0'..=b'9')) => another(start + 1),
        (Some(b'2'..=b'9'), _) => another(start),
        _ => Err(invalid(start)),
    }
}

fn invalid(at: usize) -> Bad {
    Bad { at, violation: Violation::InvalidRequest }
}

/// The first position from `start` on with a byte that is not `wanted`.
#[inline]
fn count(line: &[u8], start: usize, wanted: impl Fn(u8) -> bool) -> usize {
    let rest = line.get(start..).unwrap_or_default();
    start + rest.iter().take_while(|&&b| wanted(b)).count()
}

#[inline]
fn count_spaces(line: &[u8], start: usize) -> usize {
    count(line, start, |b| b == b' ')
}
