//! Variables that read fields: `$http_…`, `$cookie_…`, `$sent_http_…`.

use crate::exchange::Exchange;
use crate::exchange::special;
use crate::family::otel;
use crate::text::template::Argument;
use crate::text::texts::{cookie, decimal, joined, text};
use weir_wire::{Version, date};

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

/// `$sent_http_location`: after the head was sent, as the client got it.
pub fn sent_location(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let own = exchange.response.fields.get(weir_wire::Known::Location).filter(|_| exchange.response.own_location);
    match own {
        Some(location) if exchange.bytes.head_sent > 0 => special::absolute(exchange, location, out),
        Some(location) => out.extend_from_slice(location),
        None => return sent(exchange, argument, out),
    }
    true
}

/// `$sent_trailer_NAME`.
pub fn sent_trailer(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    joined(exchange.response.trailers.iter().map(|field| (field.name, field.value)), &argument.name, b", ", out)
}

/// `$sent_http_content_type`.
pub fn sent_content_type(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let value = exchange.response.told_type();
    !value.is_empty() && text(out, value)
}

/// `$sent_http_content_length`.
pub fn sent_content_length(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    // RFC 9110 §8.6: these have no length.
    let has_one = !matches!(exchange.response.status.get(), 100..=199 | 204 | 304);
    has_one && exchange.response.content_length.is_some_and(|length| decimal(out, length))
}

/// `$sent_http_last_modified`.
pub fn sent_last_modified(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    // nginx: once the head was sent, only an answer with the resource itself has it, unless it is no date.
    let response = &exchange.response;
    let is_date =
        response.fields.get(weir_wire::Known::LastModified).is_none_or(|value| date::parse_http_date(value).is_some());
    if exchange.bytes.head_sent > 0 && !matches!(response.status.get(), 200 | 206 | 304) && is_date {
        return false;
    }
    if sent(exchange, argument, out) {
        return true;
    }
    exchange.response.last_modified.is_some_and(|seconds| text(out, &weir_wire::date::http_date(seconds)))
}

/// `$sent_http_connection`.
pub fn sent_connection(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let value: &[u8] = match (exchange.response.status.get(), exchange.flags.keeps_alive) {
        (101, _) => b"upgrade",
        (_, true) => b"keep-alive",
        (_, false) => b"close",
    };
    text(out, value)
}

/// `$sent_http_keep_alive`.
pub fn sent_keep_alive(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let told = exchange.location.values.core.keepalive_header;
    !told.is_zero() && exchange.flags.keeps_alive && text(out, b"timeout=") && decimal(out, told.as_secs())
}

/// `$sent_http_transfer_encoding`.
pub fn sent_transfer_encoding(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let response = &exchange.response;
    // nginx decides when it sends the head.
    let has_body = !(exchange.bytes.head_sent == 0
        || response.header_only
        || exchange.request.is_head()
        || matches!(response.status.get(), 0 | 100..=199 | 204 | 304));
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
