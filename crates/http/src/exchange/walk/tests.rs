//! The laws of nginx's phases, for whole walks.

use std::time::Duration;

use super::*;
use crate::exchange::phase::BodyPlace;
use crate::tests::{Site, Trail, on_worker, shown, walked, whole};

/// A server with these statements.
fn server(text: &str) -> String {
    format!("server {{ listen 127.0.0.1:8080; server_name a.test; {text} }}")
}

/// Runs `judge` with an exchange of a request.
fn with<T: 'static>(http: &str, request: &str, judge: impl FnOnce(&mut Exchange<'_>) -> T + 'static) -> T {
    let (http, request) = (http.to_owned(), whole(request));
    on_worker(async move {
        let (site, _conn, _client) = Site::open(&http);
        judge(&mut site.exchange(&request))
    })
}

fn trail(exchange: &Exchange<'_>) -> String {
    exchange.own.get::<Trail>().map(|trail| trail.0.join(" ")).unwrap_or_default()
}

#[test]
fn phases_run_in_nginx_s_order_until_one_of_them_ends_the_request() {
    let all = "preaccess access second precontent content";
    for (request, outcome, entered) in [
        ("GET /", "403", all),
        ("GET /a", "404", all),
        ("GET /|X-Content: text x", "200 x", all),
        ("GET /|X-Preaccess: 503", "503", "preaccess"),
        ("GET /|X-Access: 403", "403", "preaccess access"),
        ("GET /|X-Second: 403|X-Access: allow", "403", "preaccess access second"),
        ("GET /|X-Precontent: 404|X-Second: allow", "404", "preaccess access second precontent"),
        ("GET /|X-Precontent: text early", "200 early", "preaccess access second precontent"),
        ("GET /|X-Content: forward", "Forward", all),
    ] {
        let found = walked(&server(""), request);
        assert_eq!((found.outcome.as_str(), found.trail.as_str()), (outcome, entered), "{request}");
    }
}

#[test]
fn under_satisfy_any_one_check_that_passes_is_enough() {
    let (none, first, both) = ("preaccess access second", "preaccess access", "preaccess access second");
    let rest = " precontent content";
    for (satisfy, access, second, outcome, entered) in [
        ("all", "go", "go", "200 ok", both),
        ("all", "allow", "403", "403", both),
        ("all", "403", "allow", "403", first),
        ("all", "401", "allow", "401", first),
        ("any", "go", "go", "200 ok", both),
        ("any", "allow", "403", "200 ok", first),
        ("any", "403", "allow", "200 ok", both),
        ("any", "401", "allow", "200 ok", both),
        ("any", "403", "go", "403", none),
        ("any", "403", "401", "401", none),
        ("any", "401", "403", "401", none),
        ("any", "407", "403", "407", none),
        ("any", "403", "503", "503", none),
    ] {
        let request = format!("GET /|X-Access: {access}|X-Second: {second}|X-Content: text ok");
        let found = walked(&server(&format!("satisfy {satisfy};")), &request);
        let entered = if outcome == "200 ok" { format!("{entered}{rest}") } else { entered.to_owned() };
        assert_eq!((found.outcome.as_str(), found.trail), (outcome, entered), "{satisfy}: {access}, {second}");
    }
}

#[test]
fn a_client_s_access_is_checked_once_and_not_again_for_its_subrequests() {
    let request = "GET /|X-Access: 403|X-Content: text ok";
    let found = with(&server(""), request, |exchange| {
        exchange.flags.is_subrequest = true;
        let outcome = walk(exchange, From::Server);
        (matches!(outcome, Outcome::Respond), trail(exchange))
    });
    assert_eq!(found, (true, "preaccess precontent content".to_owned()));
}

#[test]
fn a_walk_goes_on_where_it_stopped() {
    // The wish, the kind of stop, whether the same handler is entered again.
    for (request, stop, again) in [
        ("GET /|X-Preaccess: wait 7", "Wait(7ms, Handler(1, None))", false),
        ("GET /|X-Preaccess: background /b", "Background([[47, 98]], Handler(1, None))", false),
        ("GET /|X-Preaccess: body", "ReadBody(AsConfigured, Handler(0, None))", true),
        ("GET /|X-Preaccess: file", "ReadBody(File, Handler(0, None))", true),
        ("GET /|X-Preaccess: ask", "Ask(Handler(0, None))", true),
        ("GET /|X-Preaccess: aside", "Aside(Chore, Handler(0, None))", true),
    ] {
        let found = with(&server(""), &format!("{request}|X-Content: text ok"), |exchange| {
            let outcome = walk(exchange, From::Server);
            let shown = format!("{outcome:?}");
            let (Outcome::Wait(_, at)
            | Outcome::Background(_, at)
            | Outcome::ReadBody(_, at)
            | Outcome::Ask(at)
            | Outcome::Aside(_, at)) = outcome
            else {
                return (shown, false, trail(exchange));
            };
            (shown, matches!(resume(exchange, at), Outcome::Respond), trail(exchange))
        });
        let twice = if again { "preaccess preaccess" } else { "preaccess" };
        let rest = format!("{twice} access second precontent content");
        assert_eq!(found, (stop.to_owned(), true, rest), "{request}");
    }
}

#[test]
fn an_objection_is_kept_while_another_check_waits() {
    let request = "GET /|X-Access: 403|X-Second: ask";
    let found = with(&server("satisfy any;"), request, |exchange| {
        let Outcome::Ask(at) = walk(exchange, From::Server) else { return None };
        Some((at, format!("{:?}", resume(exchange, at)), trail(exchange)))
    });
    let end = "preaccess access second second".to_owned();
    assert_eq!(found, Some((Resume::Handler(2, Some(403)), "Status(403)".to_owned(), end)));
}

#[test]
fn a_content_handler_is_entered_again_after_the_body() {
    let found = with(&server(""), "GET /|X-Content: body; text ok", |exchange| {
        let Outcome::ReadBody(place, at) = walk(exchange, From::Server) else { return None };
        let end = matches!(resume(exchange, at), Outcome::Respond);
        Some((place, at, end, trail(exchange)))
    });
    let end = "preaccess access second precontent content content".to_owned();
    assert_eq!(found, Some((BodyPlace::AsConfigured, Resume::Handler(4, None), true, end)));
    let refused = walked(&server(""), "GET /|X-Content: wait 5");
    assert_eq!(refused.outcome, "500", "a handler that answers may not wait");
}

#[test]
fn auth_delay_slows_down_whoever_guesses_a_password_and_nobody_else() {
    for (satisfy, request, is_delayed, status) in [
        ("all", "GET /|X-Access: 401", true, 401),
        ("all", "GET /|X-Access: 407", true, 407),
        ("all", "GET /|X-Access: 403", false, 403),
        ("any", "GET /|X-Access: 403|X-Second: 401", true, 401),
        ("any", "GET /|X-Access: 403", false, 403),
        ("all", "GET /|X-Preaccess: 401", false, 401),
    ] {
        let outcome = with(&server(&format!("satisfy {satisfy}; auth_delay 3s;")), request, |exchange| {
            match walk(exchange, From::Server) {
                Outcome::Wait(pause, at) => (pause, format!("{:?}", resume(exchange, at))),
                other => (Duration::ZERO, format!("{other:?}")),
            }
        });
        let pause = if is_delayed { Duration::from_secs(3) } else { Duration::ZERO };
        assert_eq!(outcome, (pause, format!("Status({status})")), "{satisfy} {request}");
    }
}

#[test]
fn the_most_specific_location_wins() {
    let http = server(
        "location = /exact { return 200 exact; } location /exact { return 200 prefix; }
         location / { return 200 root; } location /dir/ { return 200 dir; } location /dir/deep { return 200 deep; }
         location ^~ /static/ { return 200 static; } location ~ \\.png$ { return 200 png; }
         location ~* \\.JPG$ { return 200 jpg; } location ~ ^/dir/.*\\.txt$ { return 200 first; }
         location ~ \\.txt$ { return 200 second; }
         location /outer/ { location ~ \\.in$ { return 200 inner; } location /outer/in { return 200 nested; }
                            return 200 outer; }",
    );
    for (target, expected) in [
        ("/", "root"),
        ("/other", "root"),
        ("/exact", "exact"),
        ("/exact/", "prefix"),
        ("/exactly", "prefix"),
        ("/dir", "root"),
        ("/dir/", "dir"),
        ("/dir/deeper", "deep"),
        ("/dir/a.png", "png"),
        ("/static/a.png", "static"),
        ("/a.PNG", "root"),
        ("/a.jpg", "jpg"),
        ("/dir/a.txt", "first"),
        ("/a.txt", "second"),
        ("/outer/x", "outer"),
        ("/outer/in", "nested"),
        ("/outer/x.in", "inner"),
        ("/outer/x.png", "png"),
        ("/dir/../exact", "exact"),
        ("//dir///deep", "deep"),
        ("/%64ir/", "dir"),
        ("/exact?x.png", "exact"),
    ] {
        assert_eq!(walked(&http, &format!("GET {target}")).outcome, format!("200 {expected}"), "{target}");
    }
}

#[test]
fn the_host_chooses_the_server() {
    let http = "server { listen 127.0.0.1:8080; return 200 default; }
         server { listen 127.0.0.1:8080; server_name a.test .dot.test; return 200 exact; }
         server { listen 127.0.0.1:8080; server_name *.a.test; return 200 star; }
         server { listen 127.0.0.1:8080; server_name www.*; return 200 tail; }
         server { listen 127.0.0.1:8080; server_name ~^(?<name>[a-z]+)\\.regex\\.test$; return 200 $name; }";
    for (host, expected) in [
        ("a.test", "exact"),
        ("A.TEST:81", "exact"),
        ("a.test.", "exact"),
        ("dot.test", "exact"),
        ("x.dot.test", "exact"),
        ("x.a.test", "star"),
        ("www.a.test", "star"),
        ("www.other", "tail"),
        ("foo.regex.test", "foo"),
        ("b.test", "default"),
    ] {
        let found = walked(http, &format!("GET /|Host: {host}")).outcome;
        assert_eq!(found, format!("200 {expected}"), "{host}");
    }
}

#[test]
fn only_an_internal_request_enters_an_internal_location() {
    let http = server(
        "location /in { internal; return 200 in; } location /rewritten { rewrite ^ /in last; }
         location /error { return 403; error_page 403 /in; } location /content { }",
    );
    for (request, expected) in [
        ("GET /in", "404"),
        ("GET /rewritten", "200 in"),
        ("GET /error", "403 in"),
        ("GET /content|X-Content: redirect /in", "200 in"),
    ] {
        assert_eq!(walked(&http, request).outcome, expected, "{request}");
    }
}

#[test]
fn a_method_outside_limit_except_uses_its_block() {
    // The rules of the location are not those of the block (nginx: rewrites are not inherited).
    let http = server(
        "location / { limit_except GET { } return 200 read; }
         location /post { limit_except POST DELETE { } return 200 post; }",
    );
    for (request, expected) in [
        ("GET /", "200 read"),
        ("HEAD /", "200 read"),
        ("POST /", "403"),
        ("OPTIONS /", "403"),
        ("POST /post", "200 post"),
        ("DELETE /post", "200 post"),
        ("GET /post", "404"),
    ] {
        assert_eq!(walked(&http, request).outcome, expected, "{request}");
    }
}

#[test]
fn ten_changes_of_the_uri_are_allowed_and_no_eleventh() {
    let redirects = |count: usize| format!("GET /|X-Content: {}text end", "redirect /a;".repeat(count));
    let named = |count: usize| format!("GET /|X-Content: {}text end", "named @n;".repeat(count));
    let http = server(
        "location @n { } location /loop { rewrite ^ /loop last; } location /break { rewrite ^ /loop break; }
         location /errors { error_page 404 /errors; recursive_error_pages on; return 404; }
         location /mutual { error_page 404 @one; recursive_error_pages on; return 404; }
         location @one { error_page 405 @two; return 405; } location @two { error_page 404 @one; return 404; }",
    );
    for (request, expected) in [
        (redirects(10), "200 end"),
        (redirects(11), "500"),
        (named(10), "200 end"),
        (named(11), "500"),
        (redirects(5) + "|X-Precontent: ;", "200 end"),
        ("GET /loop".to_owned(), "500"),
        ("GET /break".to_owned(), "404"),
        ("GET /errors".to_owned(), "500"),
    ] {
        assert_eq!(walked(&http, &request).outcome, expected, "{request}");
    }
    // A cycle has no error page, whatever the location says.
    let cycle =
        server("error_page 500 /page; location /loop { rewrite ^ /loop last; } location /page { return 200 page; }");
    assert_eq!(walked(&cycle, "GET /loop").outcome, "500");
}

#[test]
fn a_named_location_keeps_the_uri_and_its_phases_run_anew() {
    let http =
        server("location /a { } location @n { rewrite ^/a(.*) /b$1 break; } location @text { return 200 $uri; }");
    let found = walked(&http, "GET /a/x?y|X-Content: named @text");
    assert_eq!((found.outcome.as_str(), found.location.as_str(), found.uri.as_str()), ("200 /a/x", "@text", "/a/x?y"));
    let found = walked(&http, "GET /a/x|X-Content: named @n; text end");
    let twice = "preaccess access second precontent content preaccess access second precontent content";
    assert_eq!((found.outcome.as_str(), found.uri.as_str(), found.trail.as_str()), ("200 end", "/b/x", twice));
    assert_eq!(walked(&http, "GET /a|X-Content: named @nobody").outcome, "500");
}

#[test]
fn an_internal_redirect_starts_at_the_server_with_the_same_arguments() {
    let http = server("rewrite ^/old(.*) /new$1; location /new { return 200 $uri?$args; } location /a { }");
    let found = walked(&http, "GET /a?x=1|X-Content: redirect /old/b");
    assert_eq!(found.outcome, "200 /new/b?x=1");
    let found = with(&http, "GET /a?x=1", |exchange| {
        let outcome = redirect(exchange, b"/old".to_vec(), Some(b"y".to_vec()));
        (shown(exchange, &outcome).outcome, exchange.flags.internal, exchange.flags.target_is_valid)
    });
    assert_eq!(found, ("200 /new?y".to_owned(), true, false));
}

#[test]
fn a_declared_length_above_the_limit_is_refused_before_the_location_answers() {
    let http = server(
        "client_max_body_size 5; location / { return 200 small; } location /free { client_max_body_size 0; return 200 free; }
         location /more { client_max_body_size 9; return 200 more; } location /page { error_page 413 @big; }
         location @big { return 200 big; }",
    );
    for (request, expected) in [
        ("POST /|Content-Length: 5", "200 small"),
        ("POST /|Content-Length: 6", "413"),
        ("POST /free|Content-Length: 99", "200 free"),
        ("POST /more|Content-Length: 9", "200 more"),
        ("POST /more|Content-Length: 10", "413"),
        ("POST /|Transfer-Encoding: chunked", "200 small"),
        ("POST /page|Content-Length: 6", "413 big"),
    ] {
        assert_eq!(walked(&http, request).outcome, expected, "{request}");
    }
    let (is_met, is_dropped) = with(&http, "POST /|Content-Length: 6|Expect: 100-continue", |exchange| {
        walk(exchange, From::Server);
        (exchange.flags.expectation_met, exchange.flags.discards_body)
    });
    assert!(is_met && is_dropped, "the 413 is the answer to a client that waits for 100 Continue");
}

#[test]
fn an_error_page_answers_in_place_of_a_status() {
    let http = server(
        "error_page 404 /404.html; error_page 403 =200 @allowed; error_page 405 = /own; error_page 500 502 =503 /503;
         error_page 401 https://login.test/?$uri; error_page 402 =301 http://b.test/; error_page 410 =404 http://b.test/;
         error_page 400 $uri$args;
         location /404.html { return 200 page; } location @allowed { return 200 allowed; } location /own { return 202 own; }
         location /503 { return 200 $request_method; } location /s404 { return 404; } location /s403 { return 403; }
         location /s405 { return 405; } location /s500 { return 500; } location /s502 { return 502; }
         location /s401 { return 401; } location /s402 { return 402; } location /s410 { return 410; }
         location /s411 { return 411; } location /s400 { return 400; }
         location /inner { error_page 404 /404.html; error_page 403 /none; return 404; }
         location /empty { error_page 409 @nobody; return 409; }",
    );
    for (request, outcome, to) in [
        ("GET /s404", "404 page", ""),
        ("GET /s403", "200 allowed", ""),
        ("GET /s405", "202 own", ""),
        ("POST /s500", "503 GET", ""),
        ("POST /s502", "503 GET", ""),
        ("HEAD /s502", "503 HEAD", ""),
        ("GET /s401", "302", "https://login.test/?/s401"),
        ("GET /s402", "301", "http://b.test/"),
        ("GET /s410", "302", "http://b.test/"),
        ("GET /s411", "411", ""),
        ("GET /inner", "404 page", ""),
        ("GET /empty", "500", ""),
    ] {
        let found = walked(&http, request);
        assert_eq!((found.outcome.as_str(), found.to.as_str()), (outcome, to), "{request}");
    }
}

#[test]
fn an_error_in_an_error_page_has_a_page_only_if_that_is_wanted() {
    let chain = |recursive: &str| {
        server(&format!(
            "recursive_error_pages {recursive}; error_page 404 /first; error_page 403 @second; error_page 402 =200 /third;
             location / {{ return 404; }} location /first {{ return 403; }} location @second {{ return 402; }}
             location /third {{ return 201 third; }}"
        ))
    };
    for (recursive, outcome) in [("off", "403"), ("on", "200 third")] {
        assert_eq!(walked(&chain(recursive), "GET /").outcome, outcome, "{recursive}");
    }
}

#[test]
fn return_is_an_answer_a_redirect_or_an_error() {
    let http = |text: &str| {
        server(&format!(
            "location / {{ return {text}; error_page 404 418 =200 /page; }} location /page {{ return 203 page; }}"
        ))
    };
    for (text, outcome, to) in [
        ("200", "200", ""),
        ("200 $uri", "200 /", ""),
        ("204", "204", ""),
        ("404", "200 page", ""),
        ("404 own", "404 own", ""),
        ("418", "200 page", ""),
        ("301 /x", "301", "/x"),
        ("302 https://b.test$uri", "302", "https://b.test/"),
        ("307 $scheme://b.test/", "307", "http://b.test/"),
        ("308 /y?z", "308", "/y?z"),
        ("http://c.test/", "302", "http://c.test/"),
        ("$scheme://d.test/", "302", "http://d.test/"),
        ("599", "599", ""),
        ("999 x", "999 x", ""),
    ] {
        let found = walked(&http(text), "GET /");
        assert_eq!((found.outcome.as_str(), found.to.as_str()), (outcome, to), "return {text}");
    }
}

#[test]
fn a_rewrite_has_nginx_s_flags() {
    let http = |rules: &str| {
        server(&format!(
            "location /a {{ {rules} return 200 \"here $uri?$args\"; }} location /b {{ return 200 \"b $uri?$args\"; }}"
        ))
    };
    for (rules, outcome, to, uri) in [
        ("rewrite ^/none /b;", "200 here /a/x?q=1", "", "/a/x?q=1"),
        ("rewrite ^/a(.*) /b$1 last;", "200 b /b/x?q=1", "", "/b/x?q=1"),
        ("rewrite ^/a(.*) /b$1 break;", "404", "", "/b/x?q=1"),
        ("rewrite ^/a(.*) /b$1;", "200 here /b/x?q=1", "", "/b/x?q=1"),
        ("rewrite ^ /b?n=2 last;", "200 b /b?n=2&q=1", "", "/b?n=2&q=1"),
        ("rewrite ^ /b?n=2? last;", "200 b /b?n=2", "", "/b?n=2"),
        ("rewrite ^ /b? last;", "200 b /b?", "", "/b"),
        ("rewrite ^ /b redirect;", "302", "/b?q=1", "/a/x?q=1"),
        ("rewrite ^ /b permanent;", "301", "/b?q=1", "/a/x?q=1"),
        ("rewrite ^ /b?n permanent;", "301", "/b?n&q=1", "/a/x?q=1"),
        ("rewrite ^ /b? redirect;", "302", "/b", "/a/x?q=1"),
        ("rewrite ^/(a)/(x) http://$2.test/$1;", "302", "http://x.test/a?q=1", "/a/x?q=1"),
        ("rewrite ^ /c; rewrite ^/c /b last;", "200 b /b?q=1", "", "/b?q=1"),
        ("break; rewrite ^ /b last;", "404", "", "/a/x?q=1"),
        ("set $v 1; if ($v) { rewrite ^ /b last; }", "200 b /b?q=1", "", "/b?q=1"),
        ("rewrite ^/a/(?<tail>.*) /b/$tail/$1 last;", "200 b /b/x/x?q=1", "", "/b/x/x?q=1"),
    ] {
        let found = walked(&http(rules), "GET /a/x?q=1");
        assert_eq!((found.outcome.as_str(), found.to.as_str(), found.uri.as_str()), (outcome, to, uri), "{rules}");
    }
}

#[test]
fn captures_of_an_escaped_path_are_escaped_again_in_a_redirect() {
    let http = server("location / { rewrite ^/(.*) /new/$1 permanent; }");
    for (target, to) in [("/a%20b", "/new/a%20b"), ("/a%2Fb", "/new/a/b"), ("/a%3Fb", "/new/a?b"), ("/ab", "/new/ab")] {
        assert_eq!(walked(&http, &format!("GET {target}")).to, to, "{target}");
    }
}

#[test]
fn the_server_s_rules_run_before_a_location_is_found() {
    let http = server(
        "rewrite ^/one /two; rewrite ^/three /four break; rewrite ^/two /five; if ($arg_stop) { return 403; }
         location / { return 200 $uri; } location /four { rewrite ^ /five last; } location /five { return 200 five; }",
    );
    for (target, expected) in [("/one", "200 five"), ("/three", "200 five"), ("/x", "200 /x"), ("/x?stop=1", "403")] {
        assert_eq!(walked(&http, &format!("GET {target}")).outcome, expected, "{target}");
    }
}

#[test]
fn a_condition_holds_as_in_nginx() {
    for (condition, target, holds) in [
        ("$arg_x", "/?x=1", true),
        ("$arg_x", "/?x=0", false),
        ("$arg_x", "/?x=", false),
        ("$arg_x", "/", false),
        ("$arg_x", "/?x=00", true),
        ("$arg_x = a", "/?x=a", true),
        ("$arg_x = a", "/?x=A", false),
        ("$arg_x != a", "/", true),
        ("$arg_x = \"$arg_y\"", "/?x=1&y=1", true),
        ("$uri ~ ^/b", "/b", true),
        ("$uri ~ ^/B", "/b", false),
        ("$uri ~* ^/B", "/b", true),
        ("$uri !~ ^/b", "/b", false),
        ("$uri !~* ^/B", "/c", true),
        ("$request_method = POST", "/", false),
        ("-d /", "/", true),
        ("-f /", "/", false),
        ("!-f /", "/", true),
        ("-e /nowhere/at/all", "/", false),
        ("!-e /nowhere/at/all", "/", true),
        ("-x /", "/", true),
    ] {
        let http = server(&format!("location / {{ if ({condition}) {{ return 200 yes; }} return 200 no; }}"));
        let expected = if holds { "200 yes" } else { "200 no" };
        assert_eq!(walked(&http, &format!("GET {target}")).outcome, expected, "{condition} for {target}");
    }
}

#[test]
fn an_if_changes_settings_from_its_place_on() {
    let http = server(
        "location / { set $v first; error_page 404 =200 /out; if ($arg_a) { set $v second; error_page 404 =200 /in; }
                      if ($arg_b) { break; } if ($arg_c) { return 200 $v; } return 404; }
         location /in { return 200 \"in $v\"; } location /out { return 200 \"out $v\"; }",
    );
    for (target, expected) in [
        ("/", "200 out first"),
        ("/?a=1", "200 in second"),
        ("/?c=1", "200 first"),
        ("/?a=1&c=1", "200 second"),
        ("/?b=1", "403"),
        ("/?a=1&b=1&c=1", "403"),
    ] {
        assert_eq!(walked(&http, &format!("GET {target}")).outcome, expected, "{target}");
    }
}
