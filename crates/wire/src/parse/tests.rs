#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::head::FIELDS_MAX_DEFAULT;

fn request_with(policy: &HeadPolicy, text: &[u8]) -> Result<RequestHead, Violation> {
    let mut head = RequestHead::new();
    match Parser::new().request(text, policy, &mut head)? {
        Progress::Done => Ok(head),
        Progress::Partial { .. } => panic!("partial: {:?}", String::from_utf8_lossy(text)),
    }
}

fn request(text: &str) -> Result<RequestHead, Violation> {
    request_with(&HeadPolicy::default(), text.as_bytes())
}

fn response(text: &str) -> Result<ResponseHead, Violation> {
    let mut head = ResponseHead::new();
    match Parser::new().response(text.as_bytes(), &mut head)? {
        Progress::Done => Ok(head),
        Progress::Partial { .. } => panic!("partial: {text:?}"),
    }
}

/// The parts of a good request line: method, target, path, authority.
fn line(text: &str) -> Result<[String; 4], Violation> {
    let head = request(&format!("{text}\r\nHost: a\r\n\r\n"))?;
    let buf = text.as_bytes();
    let part = |span: Span| String::from_utf8(span.of(buf).to_vec()).unwrap();
    Ok([part(head.method), part(head.target), part(head.path), head.authority.map(part).unwrap_or_default()])
}

#[test]
fn request_lines() {
    for (text, expect) in [
        ("GET / HTTP/1.1", ["GET", "/", "/", ""]),
        ("GET /a?b#c HTTP/1.1", ["GET", "/a?b#c", "/a?b#c", ""]),
        ("GET   /a   HTTP/1.1   ", ["GET", "/a", "/a", ""]),
        ("M-SEARCH /\"<>\\^é HTTP/1.1", ["M-SEARCH", "/\"<>\\^é", "/\"<>\\^é", ""]),
        ("_ / HTTP/1.0", ["_", "/", "/", ""]),
        ("GET http://a:80/x?y HTTP/1.1", ["GET", "http://a:80/x?y", "/x?y", "a:80"]),
        ("GET http://a HTTP/1.1", ["GET", "http://a", "", "a"]),
        ("GET http://a?y HTTP/1.1", ["GET", "http://a?y", "?y", "a"]),
        ("GET x+1-.://[::1]:/y HTTP/1.1", ["GET", "x+1-.://[::1]:/y", "/y", "[::1]:"]),
        ("CONNECT a.b:443 HTTP/1.1", ["CONNECT", "a.b:443", "", "a.b:443"]),
        ("OPTIONS * HTTP/1.1", ["OPTIONS", "*", "*", ""]),
        ("CONNECT [::1]:443 HTTP/1.1", ["CONNECT", "[::1]:443", "", "[::1]:443"]),
    ] {
        assert_eq!(line(text).unwrap(), expect, "{text}");
    }
}

#[test]
fn refused_request_lines() {
    use Violation::*;
    for (text, expect) in [
        ("get / HTTP/1.1", InvalidMethod),
        (" GET / HTTP/1.1", InvalidMethod),
        ("G\u{1}T / HTTP/1.1", InvalidMethod),
        ("GET/ HTTP/1.1", InvalidMethod),
        ("GET", InvalidMethod),
        ("\u{16}\u{3}\u{1}", InvalidMethod),
        ("GET ", InvalidRequest),
        ("GET * HTTP/1.1", InvalidRequest),
        ("OPTIONS *", InvalidRequest),
        ("OPTIONS */ HTTP/1.1", InvalidRequest),
        ("GET a HTTP/1.1", InvalidRequest),
        ("GET \u{b}/ HTTP/1.1", InvalidRequest),
        ("GET /a\tb HTTP/1.1", InvalidRequest),
        ("GET /a\u{7f} HTTP/1.1", InvalidRequest),
        ("GET /\r HTTP/1.1", InvalidRequest),
        ("GET / HTTP/1.1\r", InvalidRequest),
        ("GET / HTTP/1.1 x", InvalidRequest),
        ("GET / http/1.1", InvalidRequest),
        ("GET / HTTP/", InvalidRequest),
        ("GET / HTTP/1", InvalidRequest),
        ("GET / HTTP/1.", InvalidRequest),
        ("GET / HTTP/1.x", InvalidRequest),
        ("GET / HTTP/1.10", InvalidRequest),
        ("GET / HTTP/1.00", InvalidRequest),
        ("GET / HTTP/0.9", InvalidRequest),
        ("GET / HTTP/01.1", InvalidRequest),
        ("GET / HTTP/2.0", InvalidVersion),
        ("GET / HTTP/10.1", InvalidVersion),
        ("PRI * HTTP/2.0", InvalidRequest),
        ("POST /", InvalidHttp09Method),
        ("GET http:/a/ HTTP/1.1", InvalidRequest),
        ("GET http://a@b/ HTTP/1.1", InvalidRequest),
        ("GET http://a:8x/ HTTP/1.1", InvalidRequest),
        ("GET http://a b/ HTTP/1.1", InvalidRequest),
        ("GET http://a:80 /c HTTP/1.1", InvalidRequest),
        ("GET http://[::1/ HTTP/1.1", InvalidRequest),
        ("GET http://a", InvalidRequest),
        ("CONNECT a HTTP/1.1", InvalidRequest),
        ("CONNECT a: HTTP/1.1", InvalidRequest),
        ("CONNECT /a HTTP/1.1", InvalidRequest),
        ("CONNECT http://a:80/ HTTP/1.1", InvalidRequest),
    ] {
        assert_eq!(line(text), Err(expect), "{text:?}");
    }
}

#[test]
fn versions() {
    for (text, expect) in [("HTTP/1.0", Version::Http10), ("HTTP/1.1", Version::Http11), ("HTTP/1.7", Version::Http11)]
    {
        assert_eq!(request(&format!("GET / {text}\n\n")).unwrap().version, expect, "{text}");
    }
}

#[test]
fn http_09_is_one_line() {
    for text in ["GET /x\r\nrest", "GET /x\nrest", "\r\n\nGET /x  \r\nrest"] {
        let head = request(text).unwrap();
        assert_eq!(head.version, Version::Http09);
        assert_eq!(head.path.of(text.as_bytes()), b"/x");
        assert_eq!(text.get(head.len..), Some("rest"));
    }
}

/// Fields of a good request, `name=value` joined with `|`.
fn fields(lines: &str) -> Result<String, Violation> {
    let text = format!("GET / HTTP/1.1\r\n{lines}\r\n\r\nbody");
    let head = request(&text)?;
    assert!(text.as_bytes()[head.len..].ends_with(b"body"));
    let part = |span: Span| std::str::from_utf8(span.of(text.as_bytes())).unwrap();
    let all = head.fields.iter().map(|f| format!("{}={}", part(f.name), part(f.value)));
    Ok(all.collect::<Vec<_>>().join("|"))
}

#[test]
fn field_lines() {
    for (lines, expect) in [
        ("Host: a", "Host=a"),
        ("Host:a\nX:\r\nY:   \r\nz:\t v w \t", "Host=a|X=|Y=|z=v w"),
        ("A: b: c", "A=b: c"),
        ("A: \u{80}é", "A=\u{80}é"),
        ("A: 1\r\nA: 2\r\na: 3", "A=1|A=2|a=3"),
        ("a_b: 1\r\nX: 2\r\na/b: 4", "X=2"),
    ] {
        assert_eq!(fields(lines).as_deref(), Ok(expect), "{lines:?}");
    }
}

#[test]
fn refused_field_lines() {
    use Violation::*;
    for (lines, expect) in [
        ("Host : a", InvalidField),
        ("Host\t: a", InvalidField),
        ("Bad Name: a", InvalidField),
        ("Bad\u{1}: a", InvalidField),
        ("Bad\u{7f}: a", InvalidField),
        ("B\u{e9}d: a", InvalidField),
        (": a", InvalidField),
        ("NoColon\r\nA: b", InvalidField),
        ("A: b\r\n c", InvalidField),
        (" A: b", InvalidField),
        ("A: b\r\n\tc", InvalidField),
        ("A: b\0", InvalidField),
        ("A\0: b", InvalidField),
        ("A: b\rc", InvalidField),
        ("A: b\r", InvalidField),
        ("A\rB: c", InvalidField),
        ("A: b\r\n\rX: y", InvalidField),
        ("Host: a\r\nhost: a", DuplicateHost),
        ("Content-Length: 1\r\nCONTENT-LENGTH: 1", DuplicateField),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", DuplicateField),
        ("Expect: x\r\nExpect: x", DuplicateField),
        ("If-Range: x\r\nIf-Range: x", DuplicateField),
        ("Authorization: x\r\nAuthorization: x", DuplicateField),
        ("If-Modified-Since: x\r\nIf-Modified-Since: x", DuplicateField),
    ] {
        assert_eq!(fields(lines), Err(expect), "{lines:?}");
    }
}

#[test]
fn policies() {
    let text = b"GET / HTTP/1.1\r\na_b: 1\r\nc/d: 2\r\ne: 3\r\n\r\n";
    let names = |policy: &HeadPolicy| {
        let head = request_with(policy, text)?;
        let names = head.fields.iter().map(|f| f.name.of(text).to_vec());
        Ok((names.collect::<Vec<_>>().concat(), head.ignored.len()))
    };
    let policy = |invalid_fields, underscores| HeadPolicy { invalid_fields, underscores, ..HeadPolicy::default() };
    assert_eq!(names(&policy(InvalidFields::Drop, false)), Ok((b"e".to_vec(), 2)));
    assert_eq!(names(&policy(InvalidFields::Drop, true)), Ok((b"a_be".to_vec(), 1)));
    assert_eq!(names(&policy(InvalidFields::Keep, false)), Ok((b"a_bc/de".to_vec(), 0)));
    assert_eq!(names(&policy(InvalidFields::Refuse, true)), Err(Violation::InvalidField));
}

#[test]
fn the_number_of_fields_is_bounded() {
    let text = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert_eq!(request(&text(FIELDS_MAX_DEFAULT)).unwrap().fields.len(), FIELDS_MAX_DEFAULT);
    assert_eq!(request(&text(FIELDS_MAX_DEFAULT + 1)), Err(Violation::TooManyFields));
    let text = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert_eq!(response(&text(RESPONSE_FIELDS_MAX)).unwrap().fields.len(), RESPONSE_FIELDS_MAX);
    let more = response(&text(RESPONSE_FIELDS_MAX + 1));
    assert_eq!(more, Err(Violation::UpstreamHeadTooLarge));
    let ignored = format!("GET / HTTP/1.1\n{}\n", "a_b: c\n".repeat(IGNORED_KEPT + 1));
    assert_eq!(request(&ignored).unwrap().ignored.len(), IGNORED_KEPT);
}

#[test]
fn status_lines() {
    for (text, version, status, line, reason) in [
        ("HTTP/1.1 200 OK", Version::Http11, 200, "200 OK", "OK"),
        ("HTTP/1.0 404 Not  Found ", Version::Http10, 404, "404 Not  Found ", "Not  Found "),
        ("HTTP/1.1 204", Version::Http11, 204, "204", ""),
        ("HTTP/1.1 204 ", Version::Http11, 204, "204 ", ""),
        ("HTTP/1.1   403.1 IIS", Version::Http11, 403, "403.1 IIS", "1 IIS"),
        ("HTTP/1.000 999 \u{1}", Version::Http10, 999, "999 \u{1}", "\u{1}"),
        ("HTTP/1.2 100", Version::Http11, 100, "100", ""),
    ] {
        for end in ["\r\n", "\n"] {
            let text = format!("{text}{end}A: b{end}{end}");
            let head = response(&text).unwrap();
            assert_eq!((head.version, head.status), (version, status), "{text:?}");
            assert_eq!(head.status_line.of(text.as_bytes()), line.as_bytes(), "{text:?}");
            assert_eq!(head.reason.of(text.as_bytes()), reason.as_bytes(), "{text:?}");
            assert_eq!((head.fields.len(), head.len), (1, text.len()));
        }
    }
}

#[test]
fn refused_status_lines() {
    for text in [
        "",
        "HTTP",
        "HTTP/",
        "HTTP/1",
        "HTTP/1.",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.0 099 OK",
        "HTTP/2.0 200 OK",
        "HTTP/10.0 200 OK",
        "HTTP/1.1 2000",
        "HTTP/1.1 20x",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1 200OK",
        "HTTP/1.1 200 O\rK",
        "HTTP/1.1 200 O\0K",
        "HTTP/0.9 200 OK",
        "HTTP/01.1 200 OK",
        "HTTP/.1 200",
        "HTTP/1x 200",
        "HTTP/1000.1 200",
        "HTTP/1.1000 200",
        "http/1.1 200 OK",
        " HTTP/1.1 200 OK",
        "ICY 200 OK",
        "<html>",
    ] {
        let whole = response(&format!("{text}\r\nA: b\r\n\r\n"));
        assert_eq!(whole, Err(Violation::NoStatusLine), "{text:?}");
    }
}

#[test]
fn an_origin_that_speaks_no_http_is_seen_at_once() {
    for (text, early) in
        [("SEE", true), ("HT", false), ("HTTP/1.1 2", false), ("HTTP/1.1 2x", true), ("HTTP/1.1 200x", true)]
    {
        let got = Parser::new().response(text.as_bytes(), &mut ResponseHead::new());
        assert_eq!(got.is_err(), early, "{text:?}");
    }
}

#[test]
fn origins_are_forgiven_two_things() {
    let head = response("HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nA_b: c\r\r\n\r\n").unwrap();
    assert_eq!(head.fields.len(), 1);
    for text in ["A: b\r\n c", "A : b", "A: \0", "\r\r", "A: b\r\r\rc"] {
        let got = response(&format!("HTTP/1.1 200 OK\r\n{text}\r\n\r\n"));
        assert_eq!(got, Err(Violation::UpstreamInvalidField), "{text:?}");
    }
}

#[test]
fn progress_tells_where_the_unfinished_line_begins() {
    let mut parser = Parser::new();
    let mut head = RequestHead::new();
    let mut feed = |text: &str| parser.request(text.as_bytes(), &HeadPolicy::default(), &mut head);
    let partial = |line_done, offset| Ok(Progress::Partial { line_done, offset });
    assert_eq!(feed(""), partial(false, 0));
    assert_eq!(feed("\r\n"), partial(false, 2));
    assert_eq!(feed("\r\nGET /"), partial(false, 2));
    assert_eq!(feed("\r\nGET / HTTP/1.1\r\n"), partial(true, 18));
    assert_eq!(feed("\r\nGET / HTTP/1.1\r\nA: b"), partial(true, 18));
    assert_eq!(feed("\r\nGET / HTTP/1.1\r\nA: b\r\n"), partial(true, 24));
    assert_eq!(feed("\r\nGET / HTTP/1.1\r\nA: b\r\n\r\n"), Ok(Progress::Done));
    assert_eq!(feed("\r\nGET / HTTP/1.1\r\nA: b\r\n\r\nmore"), Ok(Progress::Done));
    assert_eq!(head.len, 26);
}

#[test]
fn a_bad_method_is_refused_before_its_line_ends() {
    let mut parser = Parser::new();
    let mut head = RequestHead::new();
    let policy = HeadPolicy::default();
    assert!(parser.request(b"GE", &policy, &mut head).is_ok());
    assert_eq!(parser.request(b"GEt", &policy, &mut head), Err(Violation::InvalidMethod));
    assert_eq!(parser.fault(), Span::new(0, 3));
}

#[test]
fn the_fault_is_what_nginx_quotes() {
    for (text, fault) in [
        ("GET / HTTP/1.1\r\nA: b\r\nBad Name: c\r\n\r\n", "Bad "),
        ("GET / HTTP/1.1\r\nA: b\r\nHost: a\r\nHost: b\r\n\r\n", "Host: b"),
        ("GET / HTTP/3\r\n", "GET / HTTP/3"),
    ] {
        let mut parser = Parser::new();
        let got = parser.request(text.as_bytes(), &HeadPolicy::default(), &mut RequestHead::new());
        assert!(got.is_err(), "{text:?}");
        assert_eq!(parser.fault().of(text.as_bytes()), fault.as_bytes(), "{text:?}");
    }
}

#[test]
fn a_used_head_and_parser_are_as_good_as_new() {
    let policy = HeadPolicy::default();
    let (mut parser, mut head) = (Parser::new(), RequestHead::new());
    let first = b"GET http://x/ HTTP/1.0\r\nHost: a\r\na_b: c\r\n\r\n";
    assert_eq!(parser.request(first, &policy, &mut head), Ok(Progress::Done));
    let capacity = head.fields.capacity();
    parser.reset();
    let second = b"GET / HTTP/1.1\r\nHost: b\r\n\r\n";
    assert_eq!(parser.request(second, &policy, &mut head), Ok(Progress::Done));
    assert_eq!(head, request_with(&policy, second).unwrap());
    assert_eq!(head.fields.capacity(), capacity);
    assert_eq!(head.value(second, Known::Host), Some(b"b".as_slice()));
    assert_eq!(head.value(second, Known::Cookie), None);
}

#[test]
fn control_bytes_in_a_clients_values_are_refused_unless_invalid_fields_are_kept() {
    for byte in (0u8..=0x1f).chain([0x7f]).filter(|byte| !b"\0\t\r\n".contains(byte)) {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\nX: a{}b\r\n\r\n", char::from(byte));
        for (invalid_fields, expect) in [
            (InvalidFields::Drop, Err(Violation::InvalidField)),
            (InvalidFields::Refuse, Err(Violation::InvalidField)),
            (InvalidFields::Keep, Ok(Progress::Done)),
        ] {
            let policy = HeadPolicy { invalid_fields, ..HeadPolicy::default() };
            let got = Parser::new().request(text.as_bytes(), &policy, &mut RequestHead::default());
            assert_eq!(got, expect, "{byte:#x} {invalid_fields:?}");
        }
    }
    let tab = "GET / HTTP/1.1\r\nHost: h\r\nX: a\tb\u{e9}\r\n\r\n";
    assert_eq!(request(tab).unwrap().fields.len(), 2);
}
