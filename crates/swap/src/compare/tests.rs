#![allow(clippy::unwrap_used)]

use super::*;
use crate::request::WholeAnswer;

fn answer(status: u16, fields: &[(&str, &str)], body: &str) -> Observed {
    let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    let (body, body_bytes) = (body.as_bytes().to_vec(), body.len() as u64);
    Observed::of(SwapAnswer::Whole(WholeAnswer { status, fields, body, body_bytes }))
}

fn failed(name: &str) -> Observed {
    Observed::of(SwapAnswer::Failed(name.to_owned()))
}

const OF: u16 = 80;

/// nginx at its own port, and weir at another one.
fn rules() -> Rules {
    let port = |own| Port { own, of: OF, is_default: true };
    Rules {
        ports: [port(OF), port(OF), port(40001)],
        is_same_program: false,
        is_nginx_and_weir: false,
        is_head: false,
        was_guarded: false,
    }
}

fn compared(first: &Observed, again: &Observed, b: &Observed) -> Compared {
    compare([first, again, b], &rules(), &RouteMasks::default())
}

/// The places of differences, and those of noise.
fn found(first: &Observed, again: &Observed, b: &Observed) -> (Vec<String>, Vec<String>) {
    let Compared { differences, noise, .. } = compared(first, again, b);
    let noise = noise.into_iter().map(|one| one.place).collect::<BTreeSet<_>>();
    (differences.into_iter().map(|one| one.place).collect(), noise.into_iter().collect())
}

#[test]
fn the_server_s_name_its_port_and_the_moment_do_not_count() {
    let redirect = |date: &str, server: &str, location: &str, expires: &str, length: &str, body: &str| {
        let fields = [
            ("date", date),
            ("server", server),
            ("location", location),
            ("expires", expires),
            ("content-length", length),
        ];
        answer(301, &fields, body)
    };
    let (date, later) = ("Thu, 26 Nov 2026 04:00:00 GMT", "Thu, 26 Nov 2026 04:00:09 GMT");
    let of_nginx = "x<hr><center>nginx/1.22.1</center>";
    let one = redirect(date, "nginx/1.22.1", "http://h/a/", "Thu, 26 Nov 2026 05:00:00 GMT", "169", of_nginx);
    let ours = "x<hr><center>nginx</center>";
    let same = redirect(later, "nginx", "http://h:40001/a/", "Thu, 26 Nov 2026 05:00:09 GMT", "162", ours);
    assert_eq!(found(&one, &one, &same), (vec![], vec![]));
    let other = redirect(date, "nginx", "http://h:40001/a/", "Thu, 26 Nov 2026 06:00:00 GMT", "162", ours);
    assert_eq!(found(&one, &one, &other).0, ["field expires"]);
    let short = answer(200, &[("content-length", "4")], "p 80");
    let long = answer(200, &[("content-length", "7")], "p 40001");
    assert_eq!(found(&short, &short, &long).0, [""; 0]);
}

#[test]
fn noise_is_no_difference_but_an_absent_field_is() {
    let one = answer(200, &[("x-id", "1"), ("x-user", "a")], "token 1");
    let two = answer(200, &[("x-id", "2"), ("x-user", "b")], "token 2");
    let b = answer(200, &[("x-id", "3")], "token 3");
    let (differences, noise) = found(&one, &two, &b);
    assert_eq!(differences, ["field x-user"]);
    assert_eq!(noise, ["body", "field x-id", "field x-user"]);
}

#[test]
fn every_part_is_compared() {
    let one = answer(200, &[("etag", "\"a\""), ("vary", "x"), ("vary", "y")], "same then a");
    let body = answer(200, &[("etag", "\"b\""), ("vary", "x")], "same then b");
    assert_eq!(found(&one, &one, &body).0, ["body", "field etag", "field vary"]);
    // The status comes first, and hides the rest.
    assert_eq!(found(&one, &one, &answer(404, &[], "")).0, ["status"]);
    assert_eq!(found(&one, &one, &failed("ECONNRESET")).0, ["no answer", "status"]);
    // An answer of another kind at the second time: a limit, for example.
    let limited = compared(&one, &answer(503, &[], ""), &body);
    assert!(!limited.is_comparable && limited.differences.is_empty() && limited.noise.len() == 1);
    assert_eq!(found(&failed("ECONNRESET"), &failed("ECONNRESET"), &failed("ECONNRESET")).0, [""; 0]);
    assert!(!compared(&failed("ECONNREFUSED"), &failed("ECONNREFUSED"), &failed("ECONNREFUSED")).is_comparable);
    let shown = compared(&one, &one, &body).differences;
    assert_eq!((shown[0].a.as_str(), shown[0].b.as_str()), ("11 bytes, at 10: a", "11 bytes, at 10: b"));
}

#[test]
fn a_difference_has_a_kind() {
    let one = answer(200, &[("a", "1"), ("b", "x, y"), ("c", "1")], "");
    let other = answer(200, &[("c", "1"), ("b", "y, x"), ("d", "1")], "");
    let kinds: Vec<(String, DifferenceKind)> =
        compared(&one, &one, &other).differences.into_iter().map(|one| (one.part, one.kind)).collect();
    let own = |part: &str, kind| (part.to_owned(), kind);
    assert_eq!(
        kinds,
        [
            own("field a", DifferenceKind::Absent),
            own("field b", DifferenceKind::Order),
            own("field d", DifferenceKind::Extra),
            own("order of fields", DifferenceKind::Order),
        ]
    );
}

#[test]
fn a_cookie_whose_value_is_noise_still_has_attributes() {
    let cookie = |value: &str| answer(200, &[("set-cookie", value)], "");
    let (one, two) = (cookie("sid=1; Path=/; HttpOnly"), cookie("sid=2; Path=/; HttpOnly"));
    assert_eq!(found(&one, &two, &cookie("sid=3; Path=/; HttpOnly")).0, [""; 0]);
    let lost = compared(&one, &two, &cookie("sid=3; Path=/x")).differences;
    let places: Vec<&str> = lost.iter().map(|one| one.place.as_str()).collect();
    assert_eq!(places, ["field set-cookie sid; httponly", "field set-cookie sid; path"]);
    assert!(lost.iter().all(|one| one.part == "field set-cookie"));
}

#[test]
fn only_the_noisy_part_of_a_body_is_noise() {
    let json = |body: &str| answer(200, &[("content-type", "application/json")], body);
    let (one, two) = (json(r#"{"at":1,"list":[{"n":"a"}]}"#), json(r#"{"at":2,"list":[{"n":"a"}]}"#));
    assert_eq!(found(&one, &two, &json(r#"{"at":3,"list":[{"n":"b"}]}"#)).0, ["body $.list[0].n"]);
    assert_eq!(found(&one, &two, &json(r#"{"at":3,"list":[{"n":"a"}]}"#)).0, [""; 0]);
    // The same values in other bytes.
    assert_eq!(found(&one, &one, &json(r#"{"at": 1,"list":[{"n":"a"}]}"#)).0, ["body"]);
    let page = |token: &str, title: &str| {
        let body = format!("<title>{title}</title><input name=csrf value={token}><p>text</p>");
        answer(200, &[("content-type", "text/html")], &body)
    };
    assert_eq!(found(&page("1", "a"), &page("2", "a"), &page("3", "a")).0, [""; 0]);
    assert_eq!(found(&page("1", "a"), &page("2", "a"), &page("3", "b")).0, ["body <title> text #0"]);
    let many = |letter: &str| answer(200, &[("content-type", "text/html")], &format!("<p>{letter}</p>").repeat(30));
    assert_eq!(found(&many("a"), &many("a"), &many("b")).0, ["body parts"]);
}

#[test]
fn masks_of_the_route_count_too() {
    let with = |id: &str| answer(200, &[("x-id", id)], "");
    let mut noise = crate::noise::Noise::default();
    for number in ["2", "3"] {
        noise.learn("r", &compared(&with("1"), &with(number), &with("9")).noise);
    }
    let seen = [&with("7"), &with("7"), &with("8")];
    assert_eq!(compare(seen, &rules(), &RouteMasks::default()).differences.len(), 1);
    assert_eq!(compare(seen, &rules(), noise.route("r")).differences.len(), 0);
    let gone = [&with("7"), &with("7"), &answer(200, &[], "")];
    assert_eq!(compare(gone, &rules(), noise.route("r")).differences.len(), 1);
}

#[test]
fn deliberate_differences_are_set_apart() {
    let one = answer(404, &[("vary", "x"), ("vary", "y"), ("content-length", "153")], "");
    let fields = [("vary", "y, x"), ("content-length", "145"), ("age", "1"), ("accept-ranges", "bytes")];
    let other = answer(404, &fields, "");
    let rules = Rules { is_nginx_and_weir: true, ..rules() };
    let head = compare([&one, &one, &other], &Rules { is_head: true, ..rules }, &RouteMasks::default());
    let names: BTreeSet<&str> = head.explained.iter().map(|index| EXPLAINED[*index].name).collect();
    let all = BTreeSet::from(["ranges and conditions of a cache", "age", "length of a page", "order of Vary"]);
    assert_eq!((names, head.differences), (all, vec![]));
    // In a GET, the body shows the length.
    assert_eq!(compare([&one, &one, &other], &rules, &RouteMasks::default()).differences.len(), 1);
    let (whole, part) = (answer(200, &[], ""), answer(206, &[("age", "1")], ""));
    assert_eq!(compare([&whole, &whole, &part], &rules, &RouteMasks::default()).differences, []);
    let page = |name: &str, logged: &str| {
        let mut page = answer(404, &[], &format!("<hr><center>{name}</center>"));
        page.log = vec![crate::logs::LoggedLine {
            format: "own".to_owned(),
            values: vec![("$body_bytes_sent".to_owned(), logged.into())],
        }];
        page
    };
    let (theirs, ours) = (page("nginx/1.22.1", "153"), page("nginx", "145"));
    assert_eq!(compare([&theirs, &theirs, &ours], &rules, &RouteMasks::default()).differences, []);
    let unaged = answer(206, &[], "");
    assert_eq!(compare([&whole, &whole, &unaged], &rules, &RouteMasks::default()).differences.len(), 1);
}

#[test]
fn a_difference_has_to_last() {
    let (miss, hit) = (answer(200, &[("x-cache", "MISS")], ""), answer(200, &[("x-cache", "HIT")], ""));
    let first = compared(&hit, &hit, &miss);
    let mut lasting = first.clone();
    assert_eq!(confirm(&mut lasting, &compared(&hit, &hit, &hit)).len(), 1);
    assert_eq!(lasting.differences, []);
    let mut lasting = first.clone();
    assert_eq!((confirm(&mut lasting, &first).len(), lasting.differences.len()), (0, 1));
}

#[test]
fn a_part_that_changes_with_each_fill_is_not_compared() {
    let (nginx, ours) = (answer(200, &[], "a"), answer(200, &[], "b"));
    let first = compared(&nginx, &nginx, &ours);
    let left = |fresh: &Observed| {
        let mut compared = first.clone();
        let changing = unsteady(&mut compared, &ours, fresh, &rules());
        (compared.differences.len(), changing)
    };
    assert_eq!(left(&answer(200, &[], "b")), (1, vec![]));
    assert_eq!(left(&answer(200, &[], "c")), (0, vec!["body".to_owned()]));
    // A failure or another status shows nothing.
    assert_eq!(left(&failed("ECONNREFUSED")), (1, vec![]));
    assert_eq!(left(&answer(503, &[], "")), (1, vec![]));
}

#[test]
fn the_order_is_compared_of_fields_that_stand_equally_often() {
    let twice = answer(200, &[("vary", "x"), ("a", "1"), ("b", "1"), ("vary", "y")], "");
    let once = answer(200, &[("a", "1"), ("b", "1"), ("vary", "y")], "");
    assert_eq!(found(&twice, &twice, &once).0, ["field vary"]);
    let moved = answer(200, &[("vary", "x"), ("b", "1"), ("a", "1"), ("vary", "y")], "");
    assert_eq!(found(&twice, &twice, &moved).0, ["order of fields"]);
}

#[test]
fn the_place_of_weir_s_own_vary_does_not_count() {
    let nginx = answer(200, &[("vary", "Accept-Encoding"), ("a", "1"), ("b", "1"), ("vary", "Accept-Encoding")], "");
    let ours = |fields: &[(&str, &str)]| {
        let rules = Rules { is_nginx_and_weir: true, ..rules() };
        let compared = compare([&nginx, &nginx, &answer(200, fields, "")], &rules, &RouteMasks::default());
        compared.differences.into_iter().map(|one| one.place).collect::<Vec<_>>()
    };
    assert_eq!(ours(&[("a", "1"), ("b", "1"), ("vary", "Accept-Encoding")]), [""; 0]);
    assert_eq!(ours(&[("b", "1"), ("a", "1"), ("vary", "Accept-Encoding")]), ["order of fields"]);
    assert_eq!(ours(&[("a", "1"), ("b", "1"), ("vary", "Cookie")]), ["field vary"]);
    // Between two of the same kind, the place counts.
    let moved = answer(200, &[("a", "1"), ("vary", "x")], "");
    assert_eq!(found(&moved, &moved, &answer(200, &[("vary", "x"), ("a", "1")], "")).0, ["order of fields"]);
}

#[test]
fn the_length_of_a_noisy_body_is_noise() {
    let page = |token: &str, length: &str| {
        let fields = [("content-type", "application/json"), ("content-length", length)];
        let mut page = answer(200, &fields, &format!("{{\"token\":{token}}}"));
        let values = vec![("$body_bytes_sent".to_owned(), length.into()), ("$status".to_owned(), length.into())];
        page.log = vec![crate::logs::LoggedLine { format: "own".to_owned(), values }];
        page
    };
    let (one, two, longer) = (page("1", "11"), page("2", "11"), page("30", "12"));
    assert_eq!(found(&one, &two, &longer).0, ["log $status value"]);
    // The noise of an earlier request of the route counts too; without any, the length does.
    let mut noise = crate::noise::Noise::default();
    noise.learn("r", &compared(&one, &two, &one).noise);
    let of = |masks: &RouteMasks| compare([&one, &one, &longer], &rules(), masks).differences.len();
    assert_eq!((of(noise.route("r")), of(noise.route("other"))), (2, 4));
    let without = answer(200, &[("content-type", "application/json")], "{\"token\":3}");
    let kinds: Vec<_> = compared(&one, &two, &without).differences.into_iter().map(|one| one.part).collect();
    assert!(kinds.contains(&"field content-length".to_owned()), "{kinds:?}");
}

fn json(body: &str) -> Observed {
    answer(200, &[("content-type", "application/json")], body)
}

#[test]
fn noise_in_the_order_of_names_hides_no_other_page() {
    let page = |number: usize, is_turned: bool| {
        let item = |at: usize| match is_turned {
            true => format!("{{\"b\":{at},\"a\":{at}}}"),
            false => format!("{{\"a\":{at},\"b\":{at}}}"),
        };
        let items: Vec<String> = (0..20).map(|at| item(number * 100 + at)).collect();
        json(&format!("[{}]", items.join(",")))
    };
    let mut noise = crate::noise::Noise::default();
    for _ in 0..2 {
        noise.learn("r", &compared(&page(2, false), &page(2, true), &page(2, false)).noise);
    }
    let ours = page(1, true);
    let seen = [&page(2, false), &page(2, true), &ours];
    let mut wrong = compare(seen, &rules(), noise.route("r"));
    assert_eq!(wrong.differences.iter().map(|one| one.part.as_str()).collect::<Vec<_>>(), ["body"]);
    let difference = wrong.differences[0].clone();
    assert!(!difference.ways.iter().all(|kind| noise.seen("r", &mask_key(&difference.place), *kind)));
    // A fresh B with other bytes shows the same parts; one with other parts does not.
    assert_eq!(unsteady(&mut wrong, &ours, &page(1, false), &rules()), [""; 0]);
    assert_eq!(unsteady(&mut wrong, &ours, &page(3, false), &rules()), ["body"]);
}

#[test]
fn a_body_of_another_kind_is_one_difference() {
    let page = answer(200, &[("content-type", "text/html")], "<h1>Error</h1><p>Sorry</p>");
    let wrong = compared(&page, &page, &json(r#"{"error":"x","at":1}"#)).differences;
    let parts: Vec<_> = wrong.iter().map(|one| (one.part.as_str(), one.kind)).collect();
    assert_eq!(parts, [("body", DifferenceKind::Value), ("field content-type", DifferenceKind::Value)]);
    // A part that JSON alone has is a difference of its own.
    let places = found(&json(r#"{"a":1}"#), &json(r#"{"a":1}"#), &json(r#"{"b":1}"#)).0;
    assert_eq!(places, ["body $.a", "body $.b"]);
}

fn with_line(mut seen: Observed, values: &[(&str, &str)]) -> Observed {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    seen.log.push(crate::logs::LoggedLine { format: "own".to_owned(), values });
    seen
}

fn asking(mut seen: Observed, fields: &[(&str, &str)]) -> Observed {
    let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    seen.origin.push(OriginRequest { fields, ..OriginRequest::default() });
    seen
}

/// The deliberate differences from nginx to weir, and the other ones.
fn explained(nginx: &Observed, weir: &Observed) -> (Vec<&'static str>, Vec<String>) {
    let rules = Rules { is_nginx_and_weir: true, ..rules() };
    let compared = compare([nginx, nginx, weir], &rules, &RouteMasks::default());
    let names: BTreeSet<&str> = compared.explained.iter().map(|index| EXPLAINED[*index].name).collect();
    (names.into_iter().collect(), compared.differences.into_iter().map(|one| one.part).collect())
}

#[test]
fn the_bytes_of_chunks_and_the_length_of_a_stored_answer_are_deliberate() {
    let bytes = |seen, count| with_line(seen, &[("$body_bytes_sent", count)]);
    let chunked = || bytes(answer(200, &[("transfer-encoding", "chunked")], "abc"), "13");
    let ours = |fields: &[(&str, &str)]| bytes(answer(200, fields, "abc"), "3");
    assert_eq!(explained(&chunked(), &ours(&[("transfer-encoding", "chunked")])), (vec!["bytes of chunks"], vec![]));
    let stored = ours(&[("content-length", "3"), ("age", "1")]);
    assert_eq!(explained(&chunked(), &stored), (vec!["age", "bytes of chunks", "length of a stored answer"], vec![]));
    // Without a cache, nothing explains the length.
    let parts = ["field content-length", "field transfer-encoding"].map(str::to_owned).to_vec();
    assert_eq!(explained(&chunked(), &ours(&[("content-length", "3")])), (vec!["bytes of chunks"], parts));
    let whole = |count| bytes(answer(200, &[("content-length", "3")], "abc"), count);
    assert_eq!(explained(&whole("13"), &whole("3")), (vec![], vec!["log $body_bytes_sent".to_owned()]));
}

#[test]
fn an_empty_body_of_http2_has_a_length() {
    let (chunked, empty) =
        (answer(200, &[("transfer-encoding", "chunked")], ""), answer(200, &[("content-length", "0")], ""));
    assert_eq!(explained(&chunked, &empty), (vec!["no body over HTTP/2"], vec![]));
    assert_eq!(explained(&asking(chunked.clone(), &[]), &asking(empty.clone(), &[])).1.len(), 2);
    assert_eq!(explained(&answer(200, &[("transfer-encoding", "chunked")], "a"), &empty).1.len(), 3);
}

#[test]
fn a_range_that_weir_s_cache_answers_is_deliberate() {
    let nginx = with_line(asking(answer(200, &[], "abcdef"), &[]), &[("$status", "200"), ("$body_bytes_sent", "6")]);
    let ours = |body: &str, fields: &[(&str, &str)]| {
        let part = asking(answer(206, &[("content-range", "bytes 1-2/6")], body), fields);
        explained(&nginx, &with_line(part, &[("$status", "206"), ("$body_bytes_sent", "2")]))
    };
    assert_eq!(ours("bc", &[]), (vec!["ranges and conditions of a cache"], vec![]));
    let whole = asking(answer(200, &[("etag", "\"a\"")], "abcdef"), &[]);
    let unchanged =
        |tag: &str, fields: &[(&str, &str)]| explained(&whole, &asking(answer(304, &[("etag", tag)], ""), fields));
    assert_eq!(unchanged("\"a\"", &[]), (vec!["ranges and conditions of a cache"], vec![]));
    assert_eq!(unchanged("\"b\"", &[]).1, ["status"]);
    assert!(unchanged("\"a\"", &[("If-None-Match", "\"a\"")]).1.contains(&"status".to_owned()));
    // Bytes of another place, and a range that the origin was asked for.
    assert!(ours("cd", &[]).1.contains(&"status".to_owned()));
    assert!(ours("bc", &[("Range", "bytes=1-2")]).1.contains(&"status".to_owned()));
}

#[test]
fn an_answer_that_weir_s_guard_fetches_is_deliberate() {
    let seen = |is_personal: bool, word: &str, body: &str| {
        let answer = with_line(answer(200, &[("x-cache", word)], body), &[("$upstream_cache_status", word)]);
        Observed { is_personal, ..answer }
    };
    let nginx = seen(true, "HIT", "a");
    let ours = |is_personal, body| asking(seen(is_personal, "MISS", body), &[("cookie", "sid=1")]);
    assert_eq!(explained(&nginx, &ours(true, "a")), (vec!["guard of a cache"], vec![]));
    // The answer is compared as the client gets it.
    assert_eq!(explained(&nginx, &ours(true, "b")).1, ["body"]);
    assert_eq!(
        explained(&nginx, &ours(false, "a")).1,
        ["field x-cache", "log $upstream_cache_status", "origin request"]
    );
    assert_eq!(explained(&ours(true, "a"), &nginx).1.len(), 3);
    // The guard has kept the answer of a client before out of the cache.
    let rules = Rules { is_nginx_and_weir: true, was_guarded: true, ..rules() };
    let compared = compare([&nginx, &nginx, &ours(false, "a")], &rules, &RouteMasks::default());
    assert!(is_guarded(&compared) && compared.differences.is_empty(), "{compared:?}");
}

#[test]
fn the_comments_for_chrome_are_deliberate() {
    let page = |name: &str, more: &str| format!("<html><hr><center>{name}</center></html>\r\n{more}");
    let padded = page("nginx", &String::from_utf8(parts::PADDING.repeat(6)).unwrap());
    let fields = [("content-encoding", "gzip"), ("transfer-encoding", "chunked"), ("vary", "Accept-Encoding")];
    let bytes = |seen, count| with_line(seen, &[("$body_bytes_sent", count)]);
    let nginx = bytes(answer(404, &fields, &padded), "180");
    let ours = |status: &str, text: &str| {
        bytes(answer(404, &[("content-length", "40"), ("x-status", status)], &page("weir", text)), "40")
    };
    let (names, differences) = explained(&nginx, &ours("a", ""));
    assert_eq!((names, differences), (vec!["comments for Chrome"], vec!["field x-status".to_owned()]));
    assert!(explained(&nginx, &ours("a", "more")).1.contains(&"body".to_owned()));
    // A page of the application is no page of the server.
    let nginx = answer(404, &fields, "own page");
    assert_eq!(explained(&nginx, &answer(404, &[("content-length", "8")], "own page")).1.len(), 4);
}

#[test]
fn a_304_has_no_length() {
    let nginx = |status| answer(status, &[("content-length", "0")], "");
    assert_eq!(explained(&nginx(304), &answer(304, &[], "")), (vec!["length of 304"], vec![]));
    assert_eq!(explained(&nginx(200), &answer(200, &[], "")).1, ["field content-length"]);
    assert_eq!(explained(&nginx(304), &answer(304, &[("content-length", "1")], "")).1, ["field content-length"]);
}

#[test]
fn the_page_of_a_server_behind_the_server_has_its_name_too() {
    let seen = |inner: &str, status: &str| {
        let outer = with_line(answer(200, &[], ""), &[("$status", "200"), ("$body_bytes_sent", "0")]);
        with_line(outer, &[("$status", status), ("$body_bytes_sent", inner)])
    };
    assert_eq!(explained(&seen("157", "502"), &seen("150", "502")), (vec!["bytes with the server's name"], vec![]));
    assert_eq!(explained(&seen("157", "200"), &seen("150", "200")).1, ["log $body_bytes_sent"]);
    assert_eq!(explained(&seen("157", "502"), &seen("50", "502")).1, ["log $body_bytes_sent"]);
}

#[test]
fn the_log_lines_of_two_servers_have_no_order() {
    let seen = |lines: [(&str, &str); 2]| {
        let with = |seen, (host, port): (&str, &str)| with_line(seen, &[("$host", host), ("$server_port", port)]);
        lines.into_iter().fold(answer(200, &[], ""), with)
    };
    let nginx = seen([("outer", "80"), ("inner", "81")]);
    assert_eq!(found(&nginx, &nginx, &seen([("inner", "81"), ("outer", "40001")])).0, [""; 0]);
    // The line that differs belongs to the one that is left.
    let other = compared(&nginx, &nginx, &seen([("wrong", "81"), ("outer", "40001")])).differences;
    let shown: Vec<_> = other.iter().map(|one| (one.part.as_str(), one.a.as_str(), one.b.as_str())).collect();
    assert_eq!(shown, [("log $host", "inner", "wrong")]);
}

#[test]
fn a_server_without_an_answer_sets_no_cookie_of_sticky() {
    let with = |status, cookie: &[(&str, &str)]| answer(status, cookie, "");
    let sticky = [("set-cookie", "peer=6a93711a8c3f9c2641dfc71c359a1abe")];
    let (name, part) = ("cookie of a server that gave no answer", "field set-cookie".to_owned());
    assert_eq!(explained(&with(502, &sticky), &with(502, &[])), (vec![name], vec![]));
    assert_eq!(explained(&with(200, &sticky), &with(200, &[])).1, vec![part.clone()]);
    assert_eq!(explained(&with(502, &[("set-cookie", "peer=1")]), &with(502, &[])).1, [part]);
}

#[test]
fn the_log_has_the_status_that_the_client_gets() {
    let logged = |status, logged| with_line(answer(status, &[], ""), &[("$status", logged)]);
    assert_eq!(explained(&logged(206, "200"), &logged(206, "206")), (vec!["status in the log"], vec![]));
    assert_eq!(explained(&logged(206, "206"), &logged(206, "200")).1, ["log $status"]);
    assert_eq!(explained(&logged(404, "200"), &logged(404, "404")).1, ["log $status"]);
}

#[test]
fn a_line_of_the_log_belongs_to_the_one_that_it_is_most_like() {
    let line =
        |request: &str, bytes: &str| with_line(answer(200, &[], ""), &[("$request", request), ("$bytes", bytes)]);
    let lines = |all: [(&str, &str); 2]| {
        let mut seen = answer(200, &[], "");
        seen.log = all.into_iter().flat_map(|(request, bytes)| line(request, bytes).log).collect();
        seen
    };
    let theirs = lines([("GET /outer", "157"), ("GET /inner", "20")]);
    let ours = lines([("GET /inner", "20"), ("GET /outer", "150")]);
    assert_eq!(found(&theirs, &theirs, &ours).0, ["log $bytes value"]);
}

#[test]
fn the_bytes_of_an_answer_that_breaks_and_the_rounds_of_a_loop_show_nothing() {
    let broken = |count| with_line(failed("ECONNRESET"), &[("$body_bytes_sent", count)]);
    assert_eq!(explained(&broken("0"), &broken("9")), (vec!["bytes of a broken answer"], vec![]));
    let looping = |status, rounds| {
        let origin = vec![OriginRequest::default(); rounds];
        Observed { origin, ..answer(status, &[], "") }
    };
    let (theirs, ours) = (looping(500, LOOP_MIN + 1), looping(502, LOOP_MIN + 9));
    assert_eq!(compared(&theirs, &theirs, &ours), Compared::default());
    // If B alone asks again and again, this is a difference.
    assert!(compared(&looping(200, 1), &looping(200, 1), &ours).is_comparable);
}
