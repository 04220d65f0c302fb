//! Interprets a peer's head: a tunnel, an answer with a body, or a redirect to another location.

use weir_http::exchange::Exchange;
use weir_http::message::Origin;
use weir_http::phase::Outcome;
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, Version, Violation};

use super::answer::{Answer, Judge, Upgraded};
use super::attempt::Answered;
use super::failure::HeadFault;
use super::pool::Link;
use super::source::{Hold, Source};
use super::wrapped;
use crate::family::Values;
use crate::family::proxy::{request, response};
use crate::family::store;
use crate::protocol::Protocol;

/// The length of the body of an answer with this head, or the fault that makes the answer invalid. Nothing of the answer is
/// used yet, so another peer may be asked.
pub(super) fn measure(
    exchange: &mut Exchange<'_>,
    values: &Values,
    origin: &Origin,
    link: &Link,
) -> Result<BodyLength, HeadFault> {
    if origin.head.status == 101 {
        // The client's request for an upgrade does not show that weir asked this peer for one.
        let is_asked = exchange.request.wants_upgrade() && asks_for_upgrade(exchange, values);
        return if is_asked { Ok(BodyLength::None) } else { Err(HeadFault::Switched) };
    }
    let length = weir_wire::response_body(&origin.bytes, &origin.head, exchange.upstream_method());
    match length.and_then(|length| begins_well(origin, values, length)) {
        // nginx: an answer that ends with its head has an empty body.
        Ok(BodyLength::UntilClose) if ends_with_head(origin, link) => Ok(BodyLength::Exact(0)),
        length => length.map_err(HeadFault::Violation),
    }
}

/// Interprets the head of the final answer, whose body has this length, and puts the source of its body into `to`.
pub(super) fn take_answer(
    exchange: &mut Exchange<'_>,
    values: &Values,
    (Answered { mut origin, link, length }, hold): (Answered, Hold),
    judge: Option<Judge>,
    to: &mut Option<Source>,
) -> Answer {
    let status = origin.head.status;
    if status == 101 || matches!(values.proxy.protocol, Protocol::Tunnel) {
        // The tunnel belongs to its client: a request that waits for this answer asks for its own.
        exchange.cache.leave();
        exchange.origin = Some(origin);
        response::accept(exchange, values, BodyLength::None);
        return Answer::Tunnel(Box::new(Upgraded { link, hold }));
    }
    if exchange.cache.is_concerned()
        && let Some(judge) = judge
        && let Some(answer) = judge(exchange, &mut origin, length)
    {
        source(exchange, values, (link, hold), &origin, length).dismiss(exchange);
        exchange.worker.return_origin(origin);
        return answer;
    }
    let is_missing = values.proxy.intercept_errors && wrapped::is_not_found(values, status);
    if is_missing || response::is_intercepted(exchange, status) {
        // The cache keeps only the status of an intercepted answer.
        exchange.cache.keep(b"", true);
        source(exchange, values, (link, hold), &origin, length).dismiss(exchange);
        exchange.origin = Some(origin);
        response::pass_authentication(exchange);
        return Answer::Outcome(Outcome::Status(status));
    }
    let trails = values.proxy.pass_trailers && may_trail(&link);
    // HTTP/2 frames mark the end of the body; its length is checked as well.
    let to_read = if trails && length != BodyLength::None { BodyLength::UntilClose } else { length };
    let mut body = source(exchange, values, (link, hold), &origin, to_read);
    // From here on, texts and the other location may read `$upstream_http_…`.
    exchange.origin = Some(origin);
    match response::accept(exchange, values, length) {
        Some(elsewhere) => {
            exchange.cache.cut();
            body.finish(exchange);
            Answer::Outcome(elsewhere.enter(exchange))
        }
        None => {
            // HTTP/1.1 has trailers in chunks alone: for them, weir does not take the length away.
            exchange.response.expects_trailers |= trails && exchange.request.version() == Version::Http2;
            exchange.cache.saving = store::begin(exchange, values);
            *to = Some(body);
            Answer::Response
        }
    }
}

/// Whether this try asked the upstream for another protocol.
fn asks_for_upgrade(exchange: &mut Exchange<'_>, values: &Values) -> bool {
    match &values.proxy.protocol {
        Protocol::Http1 | Protocol::Http2 => request::asks_for_upgrade(exchange),
        // The client's fields are parameters.
        Protocol::Uwsgi(_) | Protocol::Scgi(_) => values.proxy.pass_headers,
        Protocol::FastCgi(_) | Protocol::Memcached(_) | Protocol::Tunnel => false,
    }
}

/// The body of the answer.
fn source(
    exchange: &mut Exchange<'_>,
    values: &Values,
    (link, hold): (Box<Link>, Hold),
    origin: &Origin,
    length: BodyLength,
) -> Source {
    match &values.proxy.protocol {
        Protocol::Http1 | Protocol::Http2 => Source::new(link, hold, origin, length, exchange.flags.request_complete),
        other => wrapped::source(exchange, other, (link, hold), origin, length),
    }
}

/// Refuses an answer if a chunk that came with the head is invalid: nothing is sent yet, so the client can still get a
/// 502.
fn begins_well(origin: &Origin, values: &Values, length: BodyLength) -> Result<BodyLength, Violation> {
    if length == BodyLength::Chunked {
        if !matches!(values.proxy.protocol, Protocol::Http1 | Protocol::Http2) {
            // Only HTTP has chunks: nginx passes the bytes on as they are.
            return Ok(BodyLength::UntilClose);
        }
        let (mut decoder, mut at) = (Decoder::new(), origin.head.len);
        while let ChunkEvent::Data { .. } = decoder.next(&origin.bytes, &mut at)? {}
    }
    Ok(length)
}

/// Whether trailers may follow: then the stream ends with them, not with the length.
fn may_trail(link: &Link) -> bool {
    link.h2.as_ref().is_some_and(|stream| stream.has_trailers() || !stream.is_read())
}

/// Whether a stream has ended after nothing but a head (HTTP/2).
fn ends_with_head(origin: &Origin, link: &Link) -> bool {
    link.h2.as_ref().is_some_and(|stream| stream.is_read() && !stream.has_trailers())
        && origin.bytes.len() == origin.head.len
}
