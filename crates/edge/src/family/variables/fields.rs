//! Variables that read fields: `$http_…`, `$cookie_…`, `$sent_http_…`.

use weir_wire::Version;

use crate::exchange::Exchange;
use crate::family::otel;
use crate::variable::Argument;

use super::{decimal, text};

/// `$http_NAME`: the values of all such fields, joined by `, `.
pub fn http(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    match otel::told(exchange, &argument.name, out) {
        Some(is_told) => is_told,
        None => request_fields(exchange, &argument.name, b", ", out),
    }
}

/// `$http_cookie`: joined by `; `.
pub fn cookies(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    request_fields(exchange, "cookie", b"; ", out)
}

/// `$content_type`.
pub fn content_type(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    request_fields(exchange, "content_type", b", ", out)
}

/// `$cookie_NAME`.
pub fn request_cookie(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let request = &exchange.request;
    let mut lines = request.fields().iter().filter(|field| field.known == Some(weir_wire::Known::Cookie));
    lines
        .find_map(|field| cookie(request.text(field.value), argument.name.as_bytes()))
        .map(|value| out.extend_from_slice(value))
        .is_some()
}

/// `$sent_http_NAME` for a field that is in the response's list.
pub fn sent(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let name = argument.name.strip_prefix("sent_http_").unwrap_or(&argument.name);
    joined(exchange.response.fields.iter().map(|field| (field.name, field.value)), name, b", ", out)
}

/// `$sent_trailer_NAME`.
pub fn sent_trailer(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    joined(exchange.response.trailers.iter().map(|field| (field.name, field.value)), &argument.name, b", ", out)
}

/// `$sent_http_content_type`.
pub fn sent_content_type(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let value = &exchange.response.content_type;
    !value.is_empty() && text(out, value)
}

/// `$sent_http_content_length`.
pub fn sent_content_length(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    exchange.response.content_length.is_some_and(|length| decimal(out, length))
}

/// `$sent_http_last_modified`.
pub fn sent_last_modified(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    if sent(exchange, argument, out) {
        return true;
    }
    exchange.response.last_modified.is_some_and(|seconds| text(out, &weir_wire::date::http_date(seconds)))
}

/// `$sent_http_connection`.
pub fn sent_connection(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let value: &[u8] = match (exchange.response.status, exchange.keeps_alive) {
        (101, _) => b"upgrade",
        (_, true) => b"keep-alive",
        (_, false) => b"close",
    };
    text(out, value)
}

/// `$sent_http_keep_alive`.
pub fn sent_keep_alive(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match exchange.location.values.core.keepalive_timeout {
        (_, Some(told)) if exchange.keeps_alive => text(out, b"timeout=") && decimal(out, told.as_secs()),
        _ => false,
    }
}

/// `$sent_http_transfer_encoding`.
pub fn sent_transfer_encoding(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let response = &exchange.response;
    let has_body =
        !(response.header_only || exchange.request.is_head() || matches!(response.status, 0 | 100..=199 | 204 | 304));
    let is_chunked = has_body
        && response.content_length.is_none()
        && exchange.request.version() == Version::Http11
        && exchange.location.values.core.chunked;
    is_chunked && text(out, b"chunked")
}

fn request_fields(exchange: &Exchange<'_>, name: &str, separator: &[u8], out: &mut Vec<u8>) -> bool {
    let request = &exchange.request;
    let fields = request.fields().iter().map(|field| (request.text(field.name), request.text(field.value)));
    joined(fields, name, separator, out)
}

/// Appends the values of all fields with a variable's name: lower case, `_` for `-`.
pub(crate) fn joined<'f>(
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
pub(crate) fn cookie<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    line.split(|byte| *byte == b';').find_map(|pair| value_of(pair, name))
}

/// The value in one `Set-Cookie` field, if it sets this cookie.
pub(crate) fn set_cookie<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
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
    use super::*;

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
}
