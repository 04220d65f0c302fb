//! The parts of an exchange that differ in another protocol than HTTP: the framing of the request's body, the body of the
//! answer, and the head of an answer that has none.

use weir_http::exchange::Exchange;
use weir_http::exchange::content_type;
use weir_http::exchange::message::Origin;
use weir_http::exchange::request_body::RequestBody;
use weir_net::buffer;
use weir_wire::{BodyLength, Known, fastcgi, framing, memcached};

use super::heads::Rest;
use super::pool::Link;
use super::records::Records;
use super::source::{Hold, Left, Source};
use crate::family::Values;
use crate::family::proxy::request::BodyFraming;
use crate::protocol::Protocol;

/// How the body of a request is sent: FastCGI has records, and the end of the body is one of them too.
pub(super) fn framing(
    exchange: &Exchange<'_>,
    protocol: &Protocol,
    framing: BodyFraming,
    head: &mut Vec<u8>,
) -> BodyFraming {
    if !matches!(protocol, Protocol::FastCgi(_)) {
        return framing;
    }
    // A stream may declare a length of 0 and not end yet: then the client's end of the body ends the request.
    let is_unread = matches!(exchange.body, RequestBody::Unread);
    match framing {
        BodyFraming::None => {}
        BodyFraming::Length(0) if !is_unread => {}
        BodyFraming::Length(_) | BodyFraming::Chunked | BodyFraming::Records => return BodyFraming::Records,
    }
    head.extend_from_slice(&fastcgi::END_OF_STDIN);
    framing
}

/// Whether the answer says that there is no such value: memcached has no page for this (nginx: `intercept_404`).
pub(super) fn is_not_found(values: &Values, status: u16) -> bool {
    status == 404 && matches!(values.proxy.protocol, Protocol::Memcached(_))
}

/// The body of an answer with this head.
pub(super) fn source(
    exchange: &mut Exchange<'_>,
    protocol: &Protocol,
    (link, hold): (Box<Link>, Hold),
    origin: &Origin,
    length: BodyLength,
) -> Source {
    let is_sent = exchange.flags.request_complete;
    match protocol {
        Protocol::FastCgi(fastcgi) => {
            let decoder = exchange.own.take::<Rest>().map(|rest| rest.0).unwrap_or_default();
            let rest = match length {
                BodyLength::Exact(length) => Some(length),
                BodyLength::None => Some(0),
                BodyLength::Chunked | BodyLength::UntilClose => None,
            };
            let left = Left::Records(Box::new(Records::new(decoder, rest)));
            Source::wrapped(link, hold, origin, left, fastcgi.keeps && is_sent)
        }
        Protocol::Memcached(_) if origin.head.status == 200 => {
            content_type::set(exchange);
            let length = origin.field(Known::ContentLength).and_then(framing::content_length).unwrap_or(0);
            Source::wrapped(link, hold, origin, Left::Value(Box::new(memcached::Value::new(length))), is_sent)
        }
        Protocol::Memcached(_) | Protocol::Http1 | Protocol::Http2 => Source::new(link, hold, origin, length, is_sent),
        // The peer closes after its answer.
        Protocol::Uwsgi(_) | Protocol::Scgi(_) | Protocol::Tunnel => Source::new(link, hold, origin, length, false),
    }
}

/// The answer of a tunnel, whose connection is made.
pub(super) fn accepted(exchange: &mut Exchange<'_>) -> Box<Origin> {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    let mut answer = exchange.worker.lease_origin();
    answer.bytes = buffer::lease(HEAD.len());
    answer.bytes.extend_from_slice(HEAD);
    let parsed = answer.parser.response(&answer.bytes, &mut answer.head);
    debug_assert!(parsed.is_ok());
    exchange.flags.request_complete = true;
    if let Some(attempt) = exchange.last_try() {
        attempt.header_us = Some(attempt.elapsed_us());
        attempt.status = answer.head.status;
    }
    answer
}
