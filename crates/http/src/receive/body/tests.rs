//! How a body is read, whatever its framing and in whatever parts it arrives.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use weir_net::worker::yield_now;

use super::*;
use crate::exchange::phase::{From, Outcome};
use crate::exchange::walk;
use crate::tests::{Site, follow, on_worker, taken, whole};

fn server(text: &str) -> String {
    let files = std::env::temp_dir().join(format!("weir-bodies-{}", std::process::id()));
    format!(
        "server {{ listen 127.0.0.1:8080; client_body_temp_path {}; {text} location / {{ }} }}",
        files.to_str().unwrap()
    )
}

/// An exchange in its location, whose client sends `behind` with the head and then the parts.
fn reading<T: 'static>(
    http: &str,
    request: &str,
    (behind, parts): (&'static str, &'static [&'static str]),
    judge: impl AsyncFnOnce(&mut Exchange<'_>, &mut Conn, &UnixStream) -> T + 'static,
) -> T {
    let (http, request) = (server(http), whole(request) + behind);
    on_worker(async move {
        let (site, mut conn, client) = Site::open(&http);
        let mut exchange = site.exchange(&request);
        walk::walk(&mut exchange, From::Server);
        let mut judged = Box::pin(judge(&mut exchange, &mut conn, &client));
        // The client's parts arrive one by one, while the body is read.
        let mut parts = parts.iter();
        poll_fn(|context| {
            let polled = judged.as_mut().poll(context);
            if polled.is_pending() {
                match parts.next() {
                    Some(&"END") => client.shutdown(Shutdown::Write).unwrap(),
                    Some(part) => (&client).write_all(part.as_bytes()).unwrap(),
                    None => {}
                }
            }
            polled
        })
        .await
    })
}

/// The body, or why there is none.
fn body_of(exchange: &Exchange<'_>, read: &Result<(), BodyFailed>) -> String {
    match (read, &exchange.body) {
        (Ok(()), RequestBody::Memory(bytes)) => format!("memory {}", String::from_utf8_lossy(bytes)),
        (Ok(()), RequestBody::File(file)) => format!("file {}", std::fs::read_to_string(file.path()).unwrap()),
        (Ok(()), RequestBody::Gone) => "none".to_owned(),
        (Ok(()), RequestBody::Unread) => "unread".to_owned(),
        (Err(BodyFailed::Status(status)), _) => status.to_string(),
        (Err(BodyFailed::Gone(_)), _) => "gone".to_owned(),
    }
}

#[test]
fn a_body_ends_where_its_framing_says_and_the_next_request_stays() {
    let chunked = "POST /|Transfer-Encoding: chunked";
    // The request; the bytes with the head and later ones; the body, the bytes that are left, whether it is over.
    for (request, arriving, expected, left) in [
        ("GET /", ("next", &[][..]), "none", "next"),
        ("POST /|Content-Length: 0", ("next", &[]), "memory ", "next"),
        ("POST /|Content-Length: 4", ("bodynext", &[]), "memory body", "next"),
        ("POST /|Content-Length: 4", ("bo", &["d", "y"]), "memory body", ""),
        ("POST /|Content-Length: 4", ("", &["bodynext"]), "memory body", "next"),
        ("POST /|Content-Length: 4", ("bo", &["END"]), "gone", ""),
        (chunked, ("4\r\nbody\r\n0\r\n\r\nnext", &[]), "memory body", "next"),
        (chunked, ("2\r\nbo", &["\r\n2\r\ndy\r", "\n0\r\n", "\r\n"]), "memory body", ""),
        (chunked, ("0\r\n\r\n", &[]), "memory ", ""),
        (chunked, ("4;a=b\r\nbody\r\n0\r\nX-End: 1\r\n\r\n", &[]), "memory body", ""),
        (chunked, ("x\r\n", &[]), "400", "x\r\n"),
        (chunked, ("2\r\nbodyEND", &[]), "400", ""),
        (chunked, ("2\r\nbo\r\n", &["END"]), "gone", ""),
    ] {
        let (found, unread) = reading("", request, arriving, async |exchange, conn, _| {
            let read = read(exchange, conn).await;
            let unread = String::from_utf8_lossy(exchange.request.unread()).into_owned();
            (body_of(exchange, &read), if read.is_ok() { unread } else { String::new() })
        });
        let left = if expected.starts_with("memory") || expected == "none" { left } else { "" };
        assert_eq!((found.as_str(), unread.as_str()), (expected, left), "{request} {arriving:?}");
    }
}

#[test]
fn a_body_above_the_limit_is_refused_as_soon_as_that_is_known() {
    for (request, arriving, expected) in [
        ("POST /|Transfer-Encoding: chunked", ("5\r\nbody!\r\n0\r\n\r\n", &[][..]), "memory body!"),
        ("POST /|Transfer-Encoding: chunked", ("6\r\nbodies\r\n", &[]), "413"),
        ("POST /|Transfer-Encoding: chunked", ("3\r\nbod\r\n", &["3\r\nies\r\n"]), "413"),
    ] {
        let (found, keeps) = reading("client_max_body_size 5;", request, arriving, async |exchange, conn, _| {
            let read = read(exchange, conn).await;
            (body_of(exchange, &read), exchange.flags.keeps_alive)
        });
        assert_eq!((found.as_str(), keeps), (expected, expected != "413"), "{arriving:?}");
    }
}

#[test]
fn a_large_body_goes_to_a_file_that_ends_with_the_exchange() {
    let long = "POST /|Content-Length: 20";
    for (settings, request, arriving, kind) in [
        ("client_body_buffer_size 16;", long, ("", &["0123456789", "0123456789"][..]), "file"),
        // As in nginx, a body that fits the buffer of the head needs no other memory.
        ("client_body_buffer_size 16;", long, ("01234567890123456789", &[]), "memory"),
        ("client_body_buffer_size 20;", long, ("", &["0123456789", "0123456789"]), "memory"),
        ("client_body_in_file_only clean;", "POST /|Content-Length: 1", ("x", &[]), "file"),
        ("client_body_in_file_only clean;", "POST /|Content-Length: 0", ("", &[]), "file"),
        ("client_body_in_file_only clean;", "GET /", ("", &[]), "none"),
    ] {
        let (found, path) = reading(settings, request, arriving, async |exchange, conn, _| {
            let read = read(exchange, conn).await;
            let path = match &exchange.body {
                RequestBody::File(file) => file.path().to_owned(),
                _ => String::new(),
            };
            (body_of(exchange, &read), path)
        });
        assert_eq!(found.split(' ').next(), Some(kind), "{settings} {arriving:?}");
        assert!(path.is_empty() || !std::path::Path::new(&path).exists(), "{path} stays");
        let (_, expected) = (0, [arriving.0, &arriving.1.concat()].concat());
        assert!(kind == "none" || found.ends_with(&format!(" {expected}")), "{found}");
    }
}

#[test]
fn a_client_that_waits_is_told_once_to_go_on() {
    let told = "HTTP/1.1 100 Continue\r\n\r\n";
    for (request, behind, expected) in [
        ("POST /|Content-Length: 4|Expect: 100-continue", "", told),
        ("POST /|Content-Length: 4|Expect: 100-Continue", "", told),
        ("POST /|Content-Length: 4|Expect: 100-continue", "b", ""),
        ("POST /|Content-Length: 4|Expect: something", "", ""),
        ("POST /|Content-Length: 4", "", ""),
        ("POST / HTTP/1.0|Content-Length: 4|Expect: 100-continue", "", ""),
    ] {
        let (first, second) = reading("", request, (behind, &[]), async |exchange, conn, client| {
            welcome(exchange, conn).await.unwrap();
            let first = taken(client);
            welcome(exchange, conn).await.unwrap();
            (first, taken(client))
        });
        assert_eq!((first.as_str(), second.as_str()), (expected, ""), "{request} {behind}");
    }
}

#[test]
fn a_small_body_has_a_bound_of_its_own() {
    for (request, arriving, expected) in [
        ("POST /|Content-Length: 4", ("body", &[][..]), Ok("body")),
        ("POST /|Content-Length: 5", ("", &[]), Err(413)),
        ("POST /|Transfer-Encoding: chunked", ("4\r\nbody\r\n", &["0\r\n\r\n"]), Ok("body")),
        ("POST /|Transfer-Encoding: chunked", ("4\r\nbody\r\n", &["1\r\n!\r\n"]), Err(413)),
    ] {
        let found =
            reading("", request, arriving, async |exchange, conn, _| match read_small(exchange, conn, 4).await {
                Ok(bytes) => Ok(String::from_utf8(bytes).unwrap()),
                Err(BodyFailed::Status(status)) => Err(status),
                Err(BodyFailed::Gone(gone)) => panic!("{gone:?}"),
            });
        assert_eq!(found, expected.map(str::to_owned), "{request} {arriving:?}");
    }
}

#[test]
fn only_a_body_that_is_here_whole_is_taken_without_waiting() {
    for (request, arriving, expected) in [
        ("POST /|Content-Length: 4", "bo|dy", "memory body"),
        ("POST /|Content-Length: 5", "bo|dy", "unread"),
        ("POST /|Content-Length: 17", "01234567|890123456", "unread"),
        ("POST /|Transfer-Encoding: chunked", "2\r\nbo\r\n|0\r\n\r\n", "memory bo"),
        ("POST /|Transfer-Encoding: chunked", "2\r\nbo\r\n|0\r\n", "unread"),
        ("GET /", "|", "none"),
    ] {
        let (behind, later) = arriving.split_once('|').unwrap();
        let found = reading("client_body_buffer_size 16;", request, (behind, &[]), async |exchange, conn, client| {
            { client }.write_all(later.as_bytes()).unwrap();
            yield_now().await;
            yield_now().await;
            take_arrived(exchange, conn).unwrap();
            body_of(exchange, &Ok(()))
        });
        assert_eq!(found, expected, "{request} {arriving}");
    }
}

#[test]
fn a_body_that_nobody_reads_is_judged_and_dropped() {
    let chunked = "POST /|Transfer-Encoding: chunked";
    for (request, behind, expected) in [
        (chunked, "2\r\nbo\r\n0\r\n\r\n", None),
        (chunked, "2\r\nbo\r\n", None),
        (chunked, "zz\r\n", Some(400)),
        (chunked, "6\r\nbodies\r\n0\r\n\r\n", Some(413)),
        ("POST /|Content-Length: 3", "zzz", None),
        ("GET /", "zz\r\n", None),
    ] {
        let found = reading("client_max_body_size 5;", request, (behind, &[]), async |exchange, _, _| {
            exchange.response.status.turn(200);
            (skim(exchange), skim(exchange))
        });
        assert_eq!(found, (expected, None), "{request} {behind}: an error page is not refused again");
    }
}

#[test]
fn the_rest_of_a_body_is_dropped_so_that_the_connection_goes_on() {
    for (request, arriving, expected, left) in [
        ("GET /", ("next", &[][..]), true, "next"),
        ("POST /|Content-Length: 4", ("bo", &["dynext"]), true, "next"),
        ("POST /|Transfer-Encoding: chunked", ("2\r\nbo\r\n", &["0\r\n\r\nnext"]), true, "next"),
        ("POST /|Transfer-Encoding: chunked", ("6\r\nbodies\r\n", &["0\r\n\r\n"]), false, ""),
        ("POST /|Content-Length: 4", ("bo", &["END"]), false, ""),
        ("POST /|Transfer-Encoding: chunked", ("x\r\n", &[]), false, ""),
    ] {
        let found = reading("client_max_body_size 5;", request, arriving, async |exchange, conn, _| {
            let is_over = discard(exchange, conn).await.is_ok();
            (is_over && is_consumed(exchange), String::from_utf8_lossy(exchange.request.unread()).into_owned())
        });
        assert_eq!(found.0, expected, "{request} {arriving:?}");
        assert!(!expected || found.1 == left, "{request} {arriving:?}: {}", found.1);
    }
}

#[test]
fn a_body_that_was_too_large_for_one_location_is_not_refused_again() {
    let found = reading(
        "client_max_body_size 5; location /big { client_max_body_size 0; } location /page { return 200 page; } \
         error_page 413 /page;",
        "POST /|Content-Length: 6",
        ("", &[]),
        async |exchange, _, _| {
            follow(exchange, Outcome::Status(413));
            (exchange.response.status.get(), exchange.location.name.clone(), matches!(exchange.body, RequestBody::Gone))
        },
    );
    assert_eq!(found, (413, "/page".to_owned(), true));
}
