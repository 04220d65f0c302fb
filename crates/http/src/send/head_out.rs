//! Composes the head of an answer.

use std::cell::RefCell;

use weir_net::clock;
use weir_wire::fields::make_safe;
use weir_wire::{Known, Version, encode};

use crate::exchange::response_body::Framing;
use crate::exchange::special;
use crate::exchange::{Exchange, Plain};
use crate::hold::conn::{Conn, Gone};
use crate::send::framed;

/// Composes the head: into `out`, or as frames of the stream.
pub fn begin(exchange: &mut Exchange<'_>, conn: &Conn, framing: Framing, out: &mut Vec<u8>) -> Result<(), Gone> {
    // Every head of an answer passes here, whichever code set its fields.
    let response = &mut exchange.response;
    response.fields.make_safe();
    make_safe(&mut response.content_type);
    make_safe(&mut response.status_line);
    match &conn.carried {
        None => {
            head(exchange, framing, out);
            if let Plain::Wanted(note) = exchange.plain {
                exchange.plain = Plain::No;
                note(exchange, framing, out);
            }
            exchange.bytes.head_sent = out.len() as u64;
        }
        Some(stream) => framed::head(exchange, stream.as_ref(), framing)?,
    }
    exchange.facts.step = weir_meter::Step::SendResponse;
    Ok(())
}

/// Composes the head in nginx's order of fields.
fn head(exchange: &mut Exchange<'_>, framing: Framing, out: &mut Vec<u8>) {
    out.clear();
    if exchange.request.version() == Version::Http09 {
        exchange.flags.keeps_alive = false;
        return;
    }
    let core = &exchange.location.values.core;
    let response = &exchange.response;
    out.extend_from_slice(b"HTTP/1.1 ");
    if response.status_line.is_empty() {
        special::status_line(response.status.get(), out);
    } else {
        out.extend_from_slice(&response.status_line);
    }
    out.extend_from_slice(b"\r\n");
    let has_server = response.fields.has(Known::Server) || response.without_own.server;
    let has_date = response.fields.has(Known::Date) || response.without_own.date;
    own_fields(core.server_tokens.product(), (!has_server, !has_date), out);
    let content_type = response.told_type();
    if !content_type.is_empty() {
        encode::push_field(out, b"Content-Type", content_type);
    }
    match (framing, response.content_length) {
        (Framing::Length, Some(length)) => encode::push_field_decimal(out, b"Content-Length", length),
        // RFC 9110 §9.3.2: an answer to HEAD may have the length of the answer to GET; 204 and 1xx must not (§8.6).
        (Framing::Bodiless, Some(length)) if !matches!(response.status.get(), 100..=199 | 204 | 304) => {
            encode::push_field_decimal(out, b"Content-Length", length);
        }
        _ => {}
    }
    if let Some(seconds) = response.told_last_modified() {
        encode::push_field(out, b"Last-Modified", &weir_wire::date::http_date(seconds));
    }
    // nginx: only a `Location` that it makes absolute stands here.
    let location = response.fields.get(Known::Location).filter(|location| location.starts_with(b"/"));
    let location = location.filter(|_| response.own_location && core.absolute_redirect);
    if let Some(location) = location {
        out.extend_from_slice(b"Location: ");
        special::absolute(exchange, location, out);
        out.extend_from_slice(b"\r\n");
    }
    if framing == Framing::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    connection_fields(exchange, out);
    let response = &exchange.response;
    let left_out = location.and_then(|_| response.fields.first(Known::Location));
    response.fields.write(left_out, out);
    out.extend_from_slice(b"\r\n");
}

/// The head of an answer that was sent over HTTP/1.1, if it is still in the memory of the exchange.
pub fn sent<'x>(exchange: &'x Exchange<'_>) -> Option<&'x [u8]> {
    let head = exchange.head.get(..usize::try_from(exchange.bytes.head_sent).ok()?)?;
    let is_head = head.starts_with(b"HTTP/1.1 ") && head.ends_with(b"\r\n\r\n");
    (is_head && !exchange.request.version().is_framed()).then_some(head)
}

/// Composes the head of an answer that was sent once more, in the form of HTTP/1.1: for a recording.
pub fn again(exchange: &mut Exchange<'_>, out: &mut Vec<u8>) {
    let response = &exchange.response;
    let is_bodiless =
        response.header_only || exchange.request.is_head() || matches!(response.status.get(), 100..=199 | 204 | 304);
    // Sending has set the length of a body whose end the client finds by it.
    let framing = match response.content_length {
        _ if is_bodiless => Framing::Bodiless,
        Some(_) => Framing::Length,
        None if exchange.request.version() == Version::Http11 && exchange.location.values.core.chunked => {
            Framing::Chunked
        }
        None => Framing::Close,
    };
    let keeps_alive = exchange.flags.keeps_alive;
    head(exchange, framing, out);
    exchange.flags.keeps_alive = keeps_alive;
}

/// Appends weir's own `Server` and `Date`, those that are wanted.
fn own_fields(product: &'static str, wants: (bool, bool), out: &mut Vec<u8>) {
    /// Both lines, with the second and the product that they are for: they are made once a second.
    struct Lines {
        second: u64,
        product: &'static str,
        text: Vec<u8>,
    }
    thread_local! {
        static LINES: RefCell<Lines> = const { RefCell::new(Lines { second: u64::MAX, product: "", text: Vec::new() }) };
    }
    let second = clock::unix_seconds();
    LINES.with_borrow_mut(|lines| {
        if lines.second != second || !std::ptr::eq(lines.product, product) {
            (lines.second, lines.product) = (second, product);
            lines.text.clear();
            encode::push_field(&mut lines.text, b"Server", product.as_bytes());
            encode::push_field(&mut lines.text, b"Date", &clock::http_date());
        }
        let (server, date) = lines.text.split_at(lines.text.len().min(product.len() + SERVER_BYTES));
        match wants {
            (true, true) => out.extend_from_slice(&lines.text),
            (true, false) => out.extend_from_slice(server),
            (false, true) => out.extend_from_slice(date),
            (false, false) => {}
        }
    });
}

/// The bytes of the line of `Server` around its value.
const SERVER_BYTES: usize = "Server: \r\n".len();

/// `Connection` and `Keep-Alive`.
fn connection_fields(exchange: &Exchange<'_>, out: &mut Vec<u8>) {
    if exchange.response.status.get() == 101 {
        out.extend_from_slice(b"Connection: upgrade\r\n");
    } else if exchange.flags.keeps_alive {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
        let told = exchange.location.values.core.keepalive_header;
        if !told.is_zero() {
            out.extend_from_slice(b"Keep-Alive: timeout=");
            encode::push_decimal(out, told.as_secs());
            out.extend_from_slice(b"\r\n");
        }
    } else {
        out.extend_from_slice(b"Connection: close\r\n");
    }
}
