//! The step after a failed try.

use std::io;

use super::*;
use crate::tests::{Site, asked, on_worker, whole};

/// A group of three peers that nobody can reach.
fn unreached(settings: &str) -> String {
    format!(
        "upstream u {{ server unix:/nowhere/a; server unix:/nowhere/b; server unix:/nowhere/c; }} \
         server {{ listen 127.0.0.1:8080; location / {{ proxy_pass http://u; {settings} }} }}"
    )
}

/// How far the failed try came.
#[derive(Clone, Copy, Default)]
struct Came {
    sent: bool,
    begun: bool,
    reused: bool,
    /// The body was passed on while it came, so it is not there any more.
    streamed: bool,
}

/// The step after a failure: the next peer and whether it is another one, or the status.
fn after(settings: &str, method: &str, failure: fn() -> Failure, came: Came) -> String {
    let (http, request) = (unreached(settings), whole(&format!("{method} /")));
    on_worker(async move {
        let (site, _conn, _client) = Site::open(&http);
        let mut exchange = site.exchange(&request);
        let values = crate::values(exchange.location);
        let framing = if came.streamed { BodyFraming::Length(5) } else { BodyFraming::None };
        let outgoing = Outgoing { head: b"", framing, text: None, values };
        let group = GroupRef::declared(site.generation.clone(), 0).unwrap();
        let upstream = group.get();
        let mut walk = Walk::begin(&exchange, group.clone(), upstream, None, &outgoing, None);
        let first = walk.next_peer(&mut exchange).unwrap();
        let progressed =
            Progressed { request_sent: came.sent, response_begun: came.begun, request_complete: came.sent };
        let failed = FailedTry { peer: first.peer, failure: failure(), progressed, reused: came.reused };
        match walk.after_failure(&mut exchange, failed) {
            ControlFlow::Break(Answer::Outcome(Outcome::Status(status))) => status.to_string(),
            ControlFlow::Break(_) => "other".to_owned(),
            ControlFlow::Continue(()) => {
                let next = walk.next_peer(&mut exchange).unwrap();
                let which = if next.peer == first.peer { "same" } else { "another" };
                format!("{which}, {}", if next.may_reuse { "kept or new" } else { "new" })
            }
        }
    })
}

fn broken() -> Failure {
    Failure::Receive(io::Error::from_raw_os_error(104))
}

#[test]
fn a_failure_allows_another_try_as_the_directive_says() {
    let (another, sent) = ("another, kept or new", Came { sent: true, ..Came::default() });
    let (unsent, streamed) = (Came::default(), Came { sent: true, streamed: true, ..Came::default() });
    let refused = || Failure::Connect(io::Error::from_raw_os_error(111));
    let all = "proxy_next_upstream error timeout invalid_header non_idempotent;";
    for (settings, method, failure, came, expected) in [
        ("", "GET", refused as fn() -> Failure, unsent, another),
        ("", "GET", broken, sent, another),
        ("", "GET", || Failure::TimedOut, sent, another),
        ("", "GET", || Failure::Head(super::super::failure::HeadFault::TooBig), sent, "502"),
        (all, "GET", || Failure::Head(super::super::failure::HeadFault::TooBig), sent, another),
        ("", "POST", broken, sent, "502"),
        ("", "POST", refused, unsent, another),
        ("", "PUT", broken, sent, another),
        ("", "PATCH", broken, sent, "502"),
        (all, "POST", broken, sent, another),
        ("proxy_next_upstream off;", "GET", broken, sent, "502"),
        ("proxy_next_upstream off;", "GET", || Failure::TimedOut, sent, "504"),
        ("proxy_next_upstream error;", "GET", || Failure::TimedOut, sent, "504"),
        ("proxy_next_upstream_tries 1;", "GET", broken, sent, "502"),
        ("proxy_next_upstream_tries 2;", "GET", broken, sent, another),
        (all, "PUT", broken, streamed, "502"),
        (all, "GET", || Failure::TableFull, sent, "500"),
    ] {
        assert_eq!(after(settings, method, failure, came), expected, "{settings} {method}: {}", failure());
    }
}

#[test]
fn a_kept_connection_that_was_dead_is_replaced_without_blame() {
    let dead = Came { sent: true, reused: true, ..Came::default() };
    for (method, failure, came, expected) in [
        ("GET", (|| Failure::Closed) as fn() -> Failure, dead, "same, new"),
        ("GET", broken, dead, "same, new"),
        ("GET", || Failure::Send(io::Error::from_raw_os_error(32)), Came { sent: false, ..dead }, "same, new"),
        ("POST", || Failure::Closed, Came { sent: false, ..dead }, "same, new"),
        ("POST", || Failure::Closed, dead, "502"),
        ("GET", || Failure::TimedOut, dead, "another, kept or new"),
        ("GET", || Failure::Closed, Came { reused: false, ..dead }, "another, kept or new"),
        ("GET", || Failure::Closed, Came { begun: true, ..dead }, "another, kept or new"),
    ] {
        assert_eq!(after("", method, failure, came), expected, "{method}: {}", failure());
    }
}

#[test]
fn tries_end_with_the_peers_and_each_is_recorded() {
    let found = on_worker(async {
        let (site, mut conn, _client) = Site::open(&unreached(""));
        let mut exchange = site.exchange(&whole("GET /"));
        let values = crate::values(exchange.location);
        let answer = super::super::forward::forward(&mut exchange, &mut conn, values, None, &mut None).await;
        let tries: Vec<_> = exchange.tries.iter().map(|attempt| (attempt.peer.to_string(), attempt.status)).collect();
        let status = match answer {
            Answer::Outcome(Outcome::Status(status)) => status,
            _ => 0,
        };
        (status, tries)
    });
    let expected = ["a", "b", "c"].map(|name| (format!("unix:/nowhere/{name}"), 502));
    assert_eq!(found, (502, expected.to_vec()));
}

#[test]
fn an_answer_with_a_status_of_the_directive_is_passed_over() {
    let http = |settings: &str| {
        format!(
            "upstream u {{ server unix:/nowhere/a; server unix:/nowhere/b; }} \
             server {{ listen 127.0.0.1:8080; location / {{ proxy_pass http://u; {settings} }} }}"
        )
    };
    let answer: &'static [&'static str] = &["HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"];
    for (settings, request, outcome, tries) in [
        ("", "GET /", "response", vec![503]),
        ("proxy_next_upstream http_503;", "GET /", "Status(502)", vec![503, 502]),
        ("proxy_next_upstream http_500;", "GET /", "response", vec![503]),
        ("proxy_next_upstream http_503;", "POST /|Content-Length: 0", "response", vec![503]),
        ("proxy_next_upstream http_503 non_idempotent;", "POST /|Content-Length: 4", "Status(502)", vec![503, 502]),
        // Stricter than after a failure: an empty body counts as one that is not there any more.
        ("proxy_next_upstream http_503 non_idempotent;", "POST /|Content-Length: 0", "response", vec![503]),
        ("proxy_next_upstream http_503; proxy_next_upstream_tries 1;", "GET /", "response", vec![503]),
    ] {
        let body = if request.ends_with('4') { "body" } else { "" };
        let found = asked(&http(settings), &(whole(request) + body), answer);
        assert_eq!((found.outcome.as_str(), found.tries), (outcome, tries), "{settings} {request}");
    }
}

#[test]
fn a_body_reaches_the_origin_whole() {
    let answer: &'static [&'static str] = &["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"];
    let head = |lines: &str| format!("POST / HTTP/1.1\r\nHost: u\r\n{lines}\r\n");
    for (settings, request, body, expected) in [
        ("", "POST /|Content-Length: 4", "body", head("Content-Length: 4\r\n") + "body"),
        ("", "POST /|Content-Length: 0", "", head("Content-Length: 0\r\n")),
        ("", "POST /|Transfer-Encoding: chunked", "4\r\nbody\r\n0\r\n\r\n", head("Content-Length: 4\r\n") + "body"),
        ("proxy_request_buffering off;", "POST /|Content-Length: 4", "body", head("Content-Length: 4\r\n") + "body"),
        ("proxy_set_body own;", "POST /|Content-Length: 4", "body", head("Content-Length: 3\r\n") + "own"),
        ("proxy_pass_request_body off;", "POST /|Content-Length: 4", "body", head("")),
    ] {
        let found = asked(&crate::tests::proxied(settings), &(whole(request) + body), answer);
        assert_eq!((found.seen, found.outcome.as_str()), (expected, "response"), "{settings} {request}");
    }
}
