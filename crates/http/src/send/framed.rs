//! An exchange's answer as frames: interim answers, the head, and the end.

use std::io;

use weir_net::clock;
use weir_wire::Known;

use crate::exchange::Exchange;
use crate::exchange::response_body::Framing;
use crate::exchange::special;
use crate::family::headers;
use crate::hold::conn::Gone;
use crate::hold::frames::Frames;

/// Sends the head, in nginx's order of fields.
pub fn head(exchange: &mut Exchange<'_>, stream: &dyn Frames, framing: Framing) -> Result<(), Gone> {
    let response = &exchange.response;
    let length = match (framing, response.content_length) {
        (Framing::Length | Framing::Stream, length) => length,
        // RFC 9110 §9.3.2 and §8.6, as for HTTP/1.1.
        (Framing::Bodiless, length) if !matches!(response.status.get(), 100..=199 | 204 | 304) => length,
        _ => None,
    };
    // A WebSocket begins with any 2xx (RFC 8441 §5); its bytes follow.
    let is_switch = response.status.get() == 101;
    let status = if is_switch { 200 } else { response.status.get() };
    let ends = !is_switch && (framing == Framing::Bodiless || framing == Framing::Length && length == Some(0));
    let body = if framing == Framing::Length { length } else { None };
    let core = &exchange.location.values.core;
    let content_type = response.told_type();
    let sent = stream.send_head(ends, body, &mut |block| {
        block.status(status);
        if !response.fields.has(Known::Server) && !response.without_own.server {
            block.field(b"server", core.server_tokens.product().as_bytes(), Some(Known::Server));
        }
        if !response.fields.has(Known::Date) && !response.without_own.date {
            block.field(b"date", &clock::http_date(), Some(Known::Date));
        }
        if !content_type.is_empty() {
            block.field(b"content-type", content_type, Some(Known::ContentType));
        }
        if let Some(length) = length {
            let mut digits = Vec::new();
            weir_wire::encode::push_decimal(&mut digits, length);
            block.field(b"content-length", &digits, Some(Known::ContentLength));
        }
        if let Some(seconds) = response.told_last_modified() {
            block.field(b"last-modified", &weir_wire::date::http_date(seconds), Some(Known::LastModified));
        }
        if response.own_location
            && let Some(location) = response.fields.get(Known::Location)
        {
            let mut whole = Vec::new();
            special::absolute(exchange, location, &mut whole);
            block.field(b"location", &whole, Some(Known::Location));
        }
        for field in response.plain_fields() {
            // Fields about an HTTP/1.1 connection are not allowed here (RFC 9113 §8.2.2); Trailer is about the message.
            let is_hop = field.known.is_some_and(|known| known.is_hop_by_hop() && known != Known::Trailer);
            let is_proof = is_switch && field.name.eq_ignore_ascii_case(b"sec-websocket-accept");
            if !is_hop && !is_proof {
                block.field(field.name, field.value, field.known);
            }
        }
    });
    let sent = sent.map_err(Gone::Closed)? as u64;
    exchange.bytes.sent += sent;
    // Interim answers came before: no block of fields is a part of `$body_bytes_sent`.
    exchange.bytes.head_sent = exchange.bytes.sent;
    Ok(())
}

/// Ends an answer whose body has been sent: with trailers if there are any; nothing is sent if the declared length
/// already ended it.
pub fn finish(exchange: &mut Exchange<'_>, stream: &dyn Frames, framing: Framing) -> Result<(), Gone> {
    if exchange.response.status.get() == 101 {
        return Ok(());
    }
    if framing != Framing::Stream {
        return stream.send_end().map_err(Gone::Closed);
    }
    headers::trailers(exchange);
    let trailers = &exchange.response.trailers;
    if trailers.iter().next().is_none() {
        return stream.send_end().map_err(Gone::Closed);
    }
    let sent = stream.send_head(true, None, &mut |block| {
        for field in trailers.iter() {
            block.field(field.name, field.value, field.known);
        }
    });
    let sent = sent.map_err(Gone::Closed)? as u64;
    exchange.bytes.sent += sent;
    exchange.bytes.head_sent += sent;
    Ok(())
}

/// Sends an interim answer (1xx); returns its length on the wire.
pub fn interim<'o>(
    stream: &dyn Frames,
    status: u16,
    mut fields: impl Iterator<Item = (&'o [u8], &'o [u8], Option<Known>)>,
) -> io::Result<usize> {
    stream.send_head(false, None, &mut |block| {
        block.status(status);
        for (name, value, known) in &mut fields {
            block.field(name, value, known);
        }
    })
}
