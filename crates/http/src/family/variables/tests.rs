//! The values of the engine's variables, through a configuration that reads them.

use crate::tests::{Site, answered, finish, on_worker, send, walked, whole};

/// The value of a text in a request.
fn value(text: &str, request: &str) -> String {
    let http =
        format!("server {{ listen 127.0.0.1:8080; server_name a.test; location / {{ return 200 \"{text}\"; }} }}");
    let found = walked(&http, request).outcome;
    found
        .strip_prefix("200")
        .unwrap_or_else(|| panic!("{text} of {request}: {found}"))
        .trim_start_matches(' ')
        .to_owned()
}

#[test]
fn variables_of_a_request_are_as_the_client_wrote_it_or_as_weir_reads_it() {
    let request = "POST /a%20b//c/../d?x=1&Y=%32&x=2&z|Host: A.Test:81|X-Two: a|X-Two: b|Cookie: k=v; l=w|Cookie: m=x\
                   |Content-Length: 3|Content-Type: text/x";
    for (text, expected) in [
        ("$uri", "/a b/d"),
        ("$document_uri", "/a b/d"),
        ("$request_uri", "/a%20b//c/../d?x=1&Y=%32&x=2&z"),
        ("$args", "x=1&Y=%32&x=2&z"),
        ("$query_string", "x=1&Y=%32&x=2&z"),
        ("$is_args", "?"),
        ("$arg_x", "1"),
        ("$arg_y", "%32"),
        ("[$arg_z]", "[]"),
        ("$host", "a.test"),
        ("$http_host", "A.Test:81"),
        ("$request_method", "POST"),
        ("$server_protocol", "HTTP/1.1"),
        ("$scheme$https", "http"),
        ("$http_x_two", "a, b"),
        ("$http_cookie", "k=v; l=w; m=x"),
        ("$cookie_l", "w"),
        ("$cookie_m", "x"),
        ("[$cookie_n]", "[]"),
        ("$content_length", "3"),
        ("$content_type", "text/x"),
        ("$server_name", "a.test"),
        ("$connection_requests", "1"),
        ("$pipe", "."),
        ("[$request_completion]", "[]"),
        ("$request", "POST /a%20b//c/../d?x=1&Y=%32&x=2&z HTTP/1.1"),
        ("$nginx_version", crate::send::respond::VERSION),
    ] {
        assert_eq!(value(text, request), expected, "{text}");
    }
    for (text, request, expected) in [
        ("$is_args$args", "GET /", ""),
        ("[$http_nothing]", "GET /", "[]"),
        ("$request_uri $uri", "GET http://a.test/x?y", "/x?y /x"),
        ("$request_uri $uri", "GET http://a.test", "/ /"),
        ("[$content_length]", "POST /|Transfer-Encoding: chunked", "[]"),
        ("$status", "GET /", "200"),
    ] {
        assert_eq!(value(text, request), expected, "{text} of {request}");
    }
}

#[test]
fn a_request_has_one_id_and_another_request_another() {
    let http = "server { listen 127.0.0.1:8080; location / { return 200 $request_id; } }";
    let ids: Vec<String> = on_worker(async move {
        let (site, _conn, _client) = Site::open(http);
        let mut ids = Vec::new();
        for number in [1, 1, 2] {
            let mut exchange = site.exchange(&whole("GET /"));
            exchange.facts.number_on_connection = number;
            let outcome = finish(&mut exchange);
            ids.push(crate::tests::shown(&exchange, &outcome).outcome);
        }
        ids
    });
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
    assert!(ids[0].len() == 36 && ids[0][4..].bytes().all(|byte| byte.is_ascii_hexdigit()), "{ids:?}");
}

#[test]
fn set_changes_the_variables_that_may_be_changed() {
    let http = "server { listen 127.0.0.1:8080; location / { set $args a=2; set $mine $arg_a; set $mine \"$mine$mine\";
                return 200 \"$args $mine $request_uri\"; } }";
    assert_eq!(walked(http, "GET /?a=1").outcome, "200 a=2 22 /?a=1");
    for (name, told) in [("limit_rate", None), ("uri", Some("the duplicate \"uri\" variable"))] {
        let text = format!("events {{}} http {{ server {{ set ${name} 1; }} }}");
        assert_eq!(crate::of_text(&text).1, told.into_iter().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn variables_of_the_answer_show_what_the_client_got() {
    let http = "server { listen 127.0.0.1:8080; add_header X-A a; add_header X-A b; location / { return 200 body; }
                location /to { return 301 /x; } location /none { return 204; } }";
    let texts = "[$status][$sent_http_content_type][$sent_http_content_length][$sent_http_connection][$sent_http_x_a]\
                 [$sent_http_location][$body_bytes_sent][$request_completion]";
    for (request, before, after) in [
        ("GET /", "[200][text/plain][4][keep-alive][][][0][]", "[200][text/plain][4][keep-alive][a, b][][4][OK]"),
        ("GET /to|Connection: close", "[301][text/html][", "[301][text/html]["),
        ("GET /none", "[204][][][keep-alive][][][0][]", "[204][][][keep-alive][a, b][][0][OK]"),
    ] {
        let http = format!("{http} server {{ listen 127.0.0.1:9; return 200 \"{texts}\"; }}");
        let found = on_worker(async move {
            let (site, mut conn, _client) = Site::open(&http);
            let mut exchange = site.exchange(&whole(request));
            finish(&mut exchange);
            let crate::exchange::conf::Rule::Return(_, text) = &exchange.conf.servers[1].rules[0] else {
                panic!("it returns")
            };
            let first = text.text(&mut exchange);
            send(&mut exchange, &mut conn, None).await.unwrap();
            [first, text.text(&mut exchange)].map(|text| String::from_utf8(text).unwrap())
        });
        assert!(found[0].starts_with(before) && found[1].starts_with(after), "{request}: {found:?}");
        let told = "[http://a.test/x]";
        assert_eq!(found[1].contains(told), request.contains("/to"), "a Location is shown as it was sent: {found:?}");
    }
    let (text, _) =
        answered("server { listen 127.0.0.1:8080; add_trailer X-Len $body_bytes_sent; return 200 body; }", "GET /");
    // The framing of chunks counts, as in nginx.
    assert!(text.ends_with("\r\nX-Len: 0\r\n\r\n") || text.ends_with("\r\nX-Len: 4\r\n\r\n"), "{text}");
}
