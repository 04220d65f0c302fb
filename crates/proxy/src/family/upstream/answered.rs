//! Interprets a peer's head: a tunnel, an answer with a body, or a redirect to another location.

use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::exchange::phase::Outcome;
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, Violation};

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
    Answered { mut origin, link, length }: Answered,
    hold: Hold,
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
        source(exchange, values, link, hold, &origin, length).dismiss(exchange);
        exchange.worker.return_origin(origin);
        return answer;
    }
    let is_missing = values.proxy.intercept_errors && wrapped::is_not_found(values, status);
    if is_missing || response::is_intercepted(exchange, status) {
        // The cache keeps only the status of an intercepted answer.
        exchange.cache.keep(b"", true);
        source(exchange, values, link, hold, &origin, length).dismiss(exchange);
        exchange.origin = Some(origin);
        response::pass_authentication(exchange);
        return Answer::Outcome(Outcome::Status(status));
    }
    let trails = values.proxy.pass_trailers && may_trail(&link);
    // HTTP/2 frames mark the end of the body; its length is checked as well.
    let to_read = if trails && length != BodyLength::None { BodyLength::UntilClose } else { length };
    let body = to.insert(source(exchange, values, link, hold, &origin, to_read));
    // From here on, texts and the other location may read `$upstream_http_…`.
    exchange.origin = Some(origin);
    match response::accept(exchange, values, length) {
        Some(elsewhere) => {
            exchange.cache.cut();
            body.finish(exchange);
            *to = None;
            Answer::Outcome(elsewhere.enter(exchange))
        }
        None => {
            // HTTP/1.1 has trailers in chunks alone: for them, weir does not take the length away.
            exchange.response.expects_trailers |= trails && exchange.request.version().is_framed();
            exchange.cache.saving = store::begin(exchange, values);
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
    link: Box<Link>,
    hold: Hold,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Site, asked, link, on_worker, origin, proxied, whole};

    #[test]
    fn the_length_of_an_answer_depends_on_its_head_and_on_the_request() {
        let socket = "GET /|Connection: upgrade|Upgrade: websocket";
        for (request, answer, expected) in [
            ("GET /", "200 OK\r\nContent-Length: 5\r\n", "Ok(Exact(5))"),
            ("HEAD /", "200 OK\r\nContent-Length: 5\r\n", "Ok(None)"),
            ("GET /", "204 No Content\r\n", "Ok(None)"),
            ("GET /", "304 Not Modified\r\nContent-Length: 5\r\n", "Ok(None)"),
            ("GET /", "200 OK\r\nTransfer-Encoding: chunked\r\n", "Ok(Chunked)"),
            ("GET /", "200 OK\r\n", "Ok(UntilClose)"),
            ("GET /", "101 Switching\r\n", "Err(Switched)"),
            (socket, "101 Switching\r\n", "Ok(None)"),
        ] {
            let (head, request) = (format!("HTTP/1.1 {answer}\r\n"), whole(request));
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&proxied(""));
                let mut exchange = site.exchange(&request);
                let values = crate::values(exchange.location);
                format!("{:?}", measure(&mut exchange, values, &origin(&head), &link(0).0))
            });
            assert_eq!(found, expected, "{answer}");
        }
    }

    #[test]
    fn a_chunk_that_came_with_the_head_must_be_one() {
        for (body, is_well) in
            [("", true), ("2\r\nab\r\n", true), ("2\r", true), ("zz\r\n", false), ("2\r\nabc", false)]
        {
            let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&proxied(""));
                let values = crate::values(site.exchange(&whole("GET /")).location);
                begins_well(&origin(&head), values, BodyLength::Chunked).is_ok()
            });
            assert_eq!(found, is_well, "{body:?}");
        }
    }

    #[test]
    fn an_answer_reaches_the_client_with_its_own_framing() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n";
        let got = "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n";
        // The answer in parts; what the client gets behind the type; whether the connection to the origin is kept.
        for (request, parts, rest, kept) in [
            (
                "GET /",
                &["HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 4\r\n\r\nbody"][..],
                "Content-Length: 4\r\nConnection: keep-alive\r\n\r\nbody",
                1,
            ),
            (
                "GET /",
                &["HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Le", "ngth: 4\r\n\r", "\nbo", "dy"],
                "Content-Length: 4\r\nConnection: keep-alive\r\n\r\nbody",
                1,
            ),
            (
                "GET /",
                &[
                    "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbo",
                    "dy\r\n0\r\n",
                    "\r\n",
                ],
                "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n",
                1,
            ),
            (
                "GET / HTTP/1.0",
                &[
                    "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
                ],
                "Connection: close\r\n\r\nbody",
                1,
            ),
            (
                "GET /",
                &["HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"],
                "Content-Length: 4\r\nConnection: keep-alive\r\n\r\nbody",
                0,
            ),
            (
                "HEAD /",
                &["HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 4\r\n\r\n"],
                "Content-Length: 4\r\nConnection: keep-alive\r\n\r\n",
                1,
            ),
            (
                "GET /",
                &[
                    "HTTP/1.1 100 Continue\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 0\r\n\r\n",
                ],
                "Content-Length: 0\r\nConnection: keep-alive\r\n\r\n",
                1,
            ),
        ] {
            assert!(parts.concat().contains("200 OK") && head == got);
            let found = asked(&proxied(""), &whole(request), parts);
            assert_eq!(found.seen, format!("{} / HTTP/1.1\r\nHost: u\r\n\r\n", request.split(' ').next().unwrap()));
            assert_eq!(
                (found.outcome.as_str(), found.got),
                ("response", format!("{got}{rest}")),
                "{request} {parts:?}"
            );
            assert_eq!((found.tries, found.kept), (vec![200], kept), "{request} {parts:?}");
        }
    }

    #[test]
    fn an_answer_may_be_replaced_by_a_page_or_by_another_location() {
        for (settings, answer, outcome) in [
            ("", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "response"),
            ("proxy_intercept_errors on;", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "response"),
            (
                "proxy_intercept_errors on; error_page 404 /x;",
                "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
                "Status(404)",
            ),
            ("error_page 404 /x;", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "response"),
            ("", "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /other\r\nContent-Length: 0\r\n\r\n", "Respond"),
            ("", "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /../a\r\nContent-Length: 0\r\n\r\n", "Status(404)"),
        ] {
            let parts: &'static [&'static str] = Box::leak(Box::new([answer]));
            assert_eq!(asked(&proxied(settings), &whole("GET /"), parts).outcome, outcome, "{settings} {answer}");
        }
    }
}
