//! Answers as a client gets them, over HTTP/1 and over a stream: the head, the framing, and the connection afterwards.

use std::rc::Rc;

use weir_wire::Known;

use super::*;
use crate::exchange::response_body::BodyFilter;
use crate::send::altered;
use crate::tests::{Noted, Pieces, Site, answered, finish, on_worker, send as answer, taken, whole};

fn server(text: &str) -> String {
    format!("server {{ listen 127.0.0.1:8080; server_name a.test; {text} }}")
}

#[test]
fn a_head_has_nginx_s_fields_in_nginx_s_order() {
    let http = server(
        "add_header X-Late 1; add_header X-Always 2 always; default_type text/plain;
         location / { return 200 body; } location /empty { return 200; } location /none { return 204; }
         location /to { return 301 /x?y; } location /away { return 302 http://b.test/z; } location /bad { return 404 own; }
         location /a.html { types { text/html html; } return 200 h; }
         location /code { return 599; } location /told { keepalive_timeout 75s 20s; return 200 told; }",
    );
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
    let late = "X-Late: 1\r\nX-Always: 2\r\n\r\n";
    for (request, expected) in [
        ("GET /", format!("{ok}Content-Length: 4\r\nConnection: keep-alive\r\n{late}body")),
        ("HEAD /", format!("{ok}Content-Length: 4\r\nConnection: keep-alive\r\n{late}")),
        ("GET /empty", format!("{ok}Content-Length: 0\r\nConnection: keep-alive\r\n{late}")),
        ("GET /none", format!("HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n{late}")),
        (
            "GET /bad",
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\
                      Connection: keep-alive\r\nX-Always: 2\r\n\r\nown"
                .to_owned(),
        ),
        (
            "GET /told",
            format!("{ok}Content-Length: 4\r\nConnection: keep-alive\r\nKeep-Alive: timeout=20\r\n{late}told"),
        ),
        ("GET / HTTP/1.0", format!("{ok}Content-Length: 4\r\nConnection: close\r\n{late}body")),
        (
            "GET / HTTP/1.0|Connection: keep-alive",
            format!("{ok}Content-Length: 4\r\nConnection: keep-alive\r\n{late}body"),
        ),
        ("GET /|Connection: close", format!("{ok}Content-Length: 4\r\nConnection: close\r\n{late}body")),
        ("GET /code", "HTTP/1.1 599 \r\nContent-Length: 0\r\nConnection: keep-alive\r\nX-Always: 2\r\n\r\n".to_owned()),
    ] {
        assert_eq!(answered(&http, request).0, expected, "{request}");
    }
    for (request, line) in [
        ("GET /to", "\r\nLocation: http://a.test/x?y\r\n"),
        ("GET /to|Host: B.test:99", "\r\nLocation: http://b.test/x?y\r\n"),
        ("GET /away", "\r\nLocation: http://b.test/z\r\n"),
        ("GET /a.html", "\r\nContent-Type: text/html\r\n"),
    ] {
        let found = answered(&http, request).0;
        assert!(found.contains(line), "{request}: {found}");
    }
}

#[test]
fn an_unsafe_byte_never_leaves_in_a_head() {
    let http = server("location / { add_header X-A $arg_a; return 302 http://b.test/$arg_a; }");
    let head = answered(&http, "GET /?a=%0d%0aSet-Cookie:x").0;
    assert!(!head.contains("\r\nSet-Cookie"), "{head}");
    let inside = on_worker(async move {
        let (site, mut conn, client) = Site::open(&server("location / { return 200; }"));
        let mut exchange = site.exchange(&whole("GET /"));
        finish(&mut exchange);
        exchange.response.fields.push_known(b"X-A", b"a\r\nX-B: b", None);
        exchange.response.content_type = b"text/a\nX-C: c".to_vec();
        answer(&mut exchange, &mut conn, None).await.unwrap();
        taken(&client)
    });
    assert_eq!(inside.lines().filter(|line| line.starts_with("X-B") || line.starts_with("X-C")).count(), 0, "{inside}");
}

/// Sends a response that `prepare` changes; returns the bytes, and whether the connection goes on.
fn changed(
    http: &str,
    request: &str,
    source: Option<Vec<&'static str>>,
    prepare: impl FnOnce(&mut Exchange<'_>) + 'static,
) -> (String, bool) {
    let (http, request) = (server(http), whole(request));
    on_worker(async move {
        let (site, mut conn, client) = Site::open(&http);
        let mut exchange = site.exchange(&request);
        finish(&mut exchange);
        if source.is_some() {
            exchange.response.body = Body::Origin;
            exchange.response.content_length = None;
        }
        prepare(&mut exchange);
        answer(&mut exchange, &mut conn, source.map(Pieces)).await.unwrap();
        (taken(&client), exchange.flags.keeps_alive)
    })
}

fn after_head(text: &str) -> (&str, &str) {
    text.split_once("\r\n\r\n").unwrap()
}

#[test]
fn the_client_finds_the_end_of_a_body_of_unknown_length() {
    let http = "location / { return 200; } location /old { chunked_transfer_encoding off; return 200; }";
    for (request, framing, body, goes_on) in [
        ("GET /", "Transfer-Encoding: chunked", "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", true),
        ("GET /old", "Connection: close", "abcde", false),
        ("GET / HTTP/1.0|Connection: keep-alive", "Connection: close", "abcde", false),
        ("HEAD /", "Connection: keep-alive", "", true),
    ] {
        let (text, keeps) = changed(http, request, Some(vec!["ab", "cde"]), |_| {});
        let (head, found) = after_head(&text);
        assert!(head.contains(framing) && !head.contains("Content-Length"), "{request}: {head}");
        assert_eq!((found, keeps), (body, goes_on), "{request}");
    }
}

#[test]
fn a_known_length_is_told_and_needs_no_other_framing() {
    let (text, keeps) = changed("location / { return 200; }", "GET /", Some(vec!["ab", "cde"]), |exchange| {
        exchange.response.content_length = Some(5);
    });
    let (head, body) = after_head(&text);
    assert!(head.contains("Content-Length: 5") && !head.contains("chunked") && keeps, "{head}");
    assert_eq!(body, "abcde");
}

#[test]
fn statuses_without_a_body_have_none_whatever_the_handler_gave() {
    for (status, tells_length) in [(204, false), (304, false), (200, true)] {
        let (text, _) = changed("location / { return 200 body; }", "GET /", None, move |exchange| {
            exchange.response.status.turn(status);
        });
        let (head, body) = after_head(&text);
        let expected = if tells_length { "body" } else { "" };
        assert_eq!((body, head.contains("Content-Length")), (expected, tells_length), "{status}");
    }
    let (text, _) = changed("location / { return 200 body; }", "GET /", None, |exchange| {
        exchange.response.header_only = true;
    });
    assert!(text.contains("Content-Length: 4\r\n") && after_head(&text).1.is_empty(), "{text}");
}

#[test]
fn trailers_follow_the_chunks_and_take_the_length_away() {
    let http = "location / { add_trailer X-End $status; return 200 body; }";
    let (text, _) = changed(http, "GET /", None, |_| {});
    let (head, body) = after_head(&text);
    assert!(head.contains("Transfer-Encoding: chunked") && !head.contains("Content-Length"), "{head}");
    assert_eq!(body, "4\r\nbody\r\n0\r\nX-End: 200\r\n\r\n");
    let (text, _) = changed(http, "GET / HTTP/1.0", None, |_| {});
    assert_eq!(after_head(&text).1, "body", "a client of HTTP/1.0 knows no trailers");
}

/// Gives each byte twice.
struct Twice;

impl BodyFilter for Twice {
    fn write(&mut self, input: &[u8], _: bool, _: bool, out: &mut Vec<u8>) {
        out.extend(input.iter().flat_map(|byte| [*byte; 2]));
    }
}

#[test]
fn a_filter_changes_a_body_wherever_it_comes_from() {
    fn filtered(exchange: &mut Exchange<'_>) {
        altered::forget_length(exchange.response);
        exchange.response.body_filters.push(Box::new(Twice));
    }
    let http = "location / { return 200 ab; } location /empty { return 200; }";
    for (request, source, body) in [
        ("GET /", None, "4\r\naabb\r\n0\r\n\r\n"),
        ("GET /", Some(vec!["a", "", "b"]), "2\r\naa\r\n2\r\nbb\r\n0\r\n\r\n"),
        ("GET / HTTP/1.0", Some(vec!["a", "b"]), "aabb"),
        ("GET /empty", None, "0\r\n\r\n"),
        ("HEAD /", None, ""),
    ] {
        let (text, _) = changed(http, request, source, filtered);
        assert_eq!(after_head(&text).1, body, "{request}");
    }
}

#[test]
fn a_response_that_a_filter_refuses_is_not_sent() {
    let found = on_worker(async {
        let (site, mut conn, client) = Site::open(&server("location / { add_header A b; return 200 body; }"));
        let mut exchange = site.exchange(&whole("GET /"));
        finish(&mut exchange);
        exchange.response.refused = Some(416);
        let verdict = answer(&mut exchange, &mut conn, Some(Pieces(vec!["body"]))).await.unwrap();
        (verdict, taken(&client), exchange.bytes.sent)
    });
    assert_eq!(found, (Some(416), String::new(), 0));
}

#[test]
fn the_bytes_of_a_response_are_counted_once() {
    let found = on_worker(async {
        let (site, mut conn, client) = Site::open(&server("location / { return 200; }"));
        let mut exchange = site.exchange(&whole("GET /"));
        finish(&mut exchange);
        (exchange.response.body, exchange.response.content_length) = (Body::Origin, None);
        answer(&mut exchange, &mut conn, Some(Pieces(vec!["ab", "cde"]))).await.unwrap();
        let mut all = Vec::new();
        let _ = std::io::Read::read_to_end(&mut &client, &mut all);
        let head = all.windows(4).position(|window| window == b"\r\n\r\n").unwrap() as u64 + 4;
        let bytes = exchange.bytes;
        (bytes.head_sent == head, bytes.body_sent, bytes.sent == all.len() as u64, exchange.flags.complete)
    });
    assert_eq!(found, (true, 5, true, true));
}

#[test]
fn whether_a_connection_goes_on_is_the_client_s_and_the_location_s_choice() {
    let http = server(
        "location / { return 200; } location /never { keepalive_timeout 0; return 200; }
         location /once { keepalive_requests 1; return 200; } location /more { keepalive_requests 2; return 200; }
         location /old { keepalive_time 0; return 200; } location /e400 { return 400; } location /e404 { return 404; }
         location /e500 { return 500; } location /e413 { return 413; } location /e501 { return 501; }
         location /page { keepalive_timeout 0; error_page 404 /; return 404; }
         location /safari { keepalive_disable safari; return 200; }",
    );
    for (request, goes_on) in [
        ("GET /", true),
        ("GET / HTTP/1.0", false),
        ("GET /|Connection: close", false),
        ("GET /|Connection: x, Close", false),
        ("GET /never", false),
        ("GET /once", false),
        ("GET /more", true),
        ("GET /old", false),
        ("GET /e404", true),
        ("GET /e400", false),
        ("GET /e413", false),
        ("GET /e500", false),
        ("GET /e501", false),
        ("GET /page", false),
        ("POST /|User-Agent: MSIE 5.0", false),
        ("GET /|User-Agent: MSIE 5.0", true),
        ("GET /safari|User-Agent: Mac OS X Safari/7", false),
        ("GET /|User-Agent: Mac OS X Safari/7", true),
    ] {
        let (text, found) = answered(&http, request);
        let told = if goes_on { "Connection: keep-alive" } else { "Connection: close" };
        assert!(found == goes_on && text.contains(told), "{request}: {text}");
    }
}

/// The same over a stream: what was sent on it.
fn carried(
    http: &str,
    request: &str,
    source: Option<Vec<&'static str>>,
    prepare: impl FnOnce(&mut Exchange<'_>) + 'static,
) -> String {
    let (http, request) = (server(http), whole(request));
    on_worker(async move {
        let (site, mut conn, _client) = Site::open(&http);
        let noted = Rc::new(Noted::default());
        let mut stream = conn.of_stream(noted.clone());
        let mut exchange = site.exchange(&request);
        finish(&mut exchange);
        if source.is_some() {
            (exchange.response.body, exchange.response.content_length) = (Body::Origin, None);
        }
        prepare(&mut exchange);
        answer(&mut exchange, &mut stream, source.map(Pieces)).await.unwrap();
        noted.log.take()
    })
}

#[test]
fn a_stream_carries_the_same_answer_as_frames() {
    let http = "default_type text/plain; location / { return 200 body; } location /empty { return 200; }
                location /none { return 204; } location /to { return 301 /x; }
                location /end { add_trailer X-End $status; return 200 body; }";
    for (request, source, expected) in [
        ("GET /", None, "200\ncontent-type: text/plain\ncontent-length: 4\nbody 4\n[body]\nEND\n"),
        ("HEAD /", None, "200\ncontent-type: text/plain\ncontent-length: 4\nEND\nEND\n"),
        ("GET /empty", None, "200\ncontent-type: text/plain\ncontent-length: 0\nbody 0\nEND\nEND\n"),
        ("GET /none", None, "204\nEND\nEND\n"),
        ("GET /", Some(vec!["ab", "cde"]), "200\ncontent-type: text/plain\n[ab]\n[cde]\nEND\n"),
        ("GET /end", None, "200\ncontent-type: text/plain\ncontent-length: 4\n[body]\nx-end: 200\nEND\n"),
    ] {
        let found = carried(http, request, source, |_| {}).replace("X-End", "x-end");
        assert_eq!(found, expected, "{request}");
    }
    let moved = carried(http, "GET /to", None, |_| {});
    assert!(
        moved.starts_with("301\ncontent-type: text/html\n") && moved.contains("\nlocation: http://a.test/x\n"),
        "{moved}"
    );
}

#[test]
fn fields_about_a_connection_stay_off_a_stream() {
    let found = carried("location / { return 200; }", "GET /", None, |exchange| {
        for (name, value, known) in [
            (&b"Connection"[..], &b"close"[..], Known::Connection),
            (b"Keep-Alive", b"timeout=1", Known::KeepAlive),
            (b"Upgrade", b"x", Known::Upgrade),
            (b"Transfer-Encoding", b"chunked", Known::TransferEncoding),
            (b"Trailer", b"X-End", Known::Trailer),
        ] {
            exchange.response.fields.push_known(name, value, Some(known));
        }
    });
    let names: Vec<&str> = found.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
    assert_eq!(names, ["content-type", "content-length", "Trailer"]);
}
