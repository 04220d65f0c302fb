#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::{HeadPolicy, LastHost, Parser};

fn request(line: &str, fields: &str) -> Result<BodyLength, Violation> {
    let text = format!("{line}\r\nHost: a\r\n{fields}\r\n");
    let mut head = RequestHead::new();
    Parser::new().request(text.as_bytes(), &HeadPolicy::default(), &mut head)?;
    request_body(text.as_bytes(), &head)
}

fn response(status: &str, fields: &str, method: &str) -> Result<BodyLength, Violation> {
    let text = format!("HTTP/1.1 {status}\r\n{fields}\r\n");
    let mut head = ResponseHead::new();
    Parser::new().response(text.as_bytes(), &mut head)?;
    response_body(text.as_bytes(), &head, method.as_bytes())
}

#[test]
fn lengths_of_requests() {
    for (fields, expect) in [
        ("", BodyLength::None),
        ("Content-Length: 0\r\n", BodyLength::Exact(0)),
        ("content-length:  17 \t\r\n", BodyLength::Exact(17)),
        ("Content-Length: 0042\r\n", BodyLength::Exact(42)),
        ("Content-Length: 9223372036854775807\r\n", BodyLength::Exact(CONTENT_LENGTH_MAX)),
        ("Transfer-Encoding: chunked\r\n", BodyLength::Chunked),
        ("TRANSFER-ENCODING:\tChUnKeD\n", BodyLength::Chunked),
        ("Content_Length: 5\r\n", BodyLength::None),
        ("X-Content-Length: 5\r\n", BodyLength::None),
    ] {
        for method in ["GET", "POST", "DELETE"] {
            assert_eq!(request(&format!("{method} / HTTP/1.1"), fields), Ok(expect), "{fields:?}");
        }
    }
    assert_eq!(request("POST / HTTP/1.0", "Content-Length: 5\r\n"), Ok(BodyLength::Exact(5)));
}

/// Messages with two possible lengths are refused: each of these has been an attack.
#[test]
fn ambiguous_requests_are_refused() {
    use Violation::*;
    for value in [
        "",
        "+1",
        "-1",
        "1 1",
        "1,1",
        "1, 1",
        "1;",
        "0x1",
        "1e0",
        "1.0",
        "١",
        "\"1\"",
        "_1",
        "9223372036854775808",
        "18446744073709551617",
        "99999999999999999999999",
    ] {
        let fields = format!("Content-Length: {value}\r\n");
        assert_eq!(request("POST / HTTP/1.1", &fields), Err(InvalidContentLength), "{value:?}");
    }
    for value in ["identity", "gzip", "gzip, chunked", "chunked, gzip", "xchunked", "chunkedx"] {
        let fields = format!("Transfer-Encoding: {value}\r\n");
        assert_eq!(request("POST / HTTP/1.1", &fields), Err(UnknownEncoding), "{value:?}");
    }
    for value in [
        "",
        "chunked,chunked",
        "chunked,",
        ",chunked",
        "gzip,,chunked",
        "\"chunked\"",
        "chunked;q=1",
        "chunked x",
        "chunked\u{a0}",
        "chun\u{212a}ed",
        "\t \t",
    ] {
        let fields = format!("Transfer-Encoding: {value}\r\n");
        assert_eq!(request("POST / HTTP/1.1", &fields), Err(InvalidEncoding), "{value:?}");
    }
    for (line, fields, expect) in [
        ("POST / HTTP/1.1", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", LengthAndEncoding),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", LengthAndEncoding),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked\nContent-Length: 4\n", LengthAndEncoding),
        ("POST / HTTP/1.1", "Transfer-Encoding: x\r\nContent-Length: 4\r\n", UnknownEncoding),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\nContent-Length: x\r\n", InvalidContentLength),
        ("POST / HTTP/1.0", "Transfer-Encoding: chunked\r\n", EncodingInHttp10),
        ("POST / HTTP/1.0", "Transfer-Encoding: identity\r\n", EncodingInHttp10),
        ("POST / HTTP/1.1", "Content-Length: 1\r\nContent-Length: 1\r\n", DuplicateField),
        ("POST / HTTP/1.1", "Content-Length: 1\r\nContent-Length: 2\r\n", DuplicateField),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", DuplicateField),
        ("POST / HTTP/1.1", "Content-Length:\r\n 5\r\n", InvalidField),
        ("POST / HTTP/1.1", "Content-Length : 5\r\n", InvalidField),
        ("POST / HTTP/1.1", "Transfer-Encoding : chunked\r\n", InvalidField),
        ("POST / HTTP/1.1", "Transfer-Encoding:\r\n chunked\r\n", InvalidField),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked\0\r\n", InvalidField),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\r\n", InvalidField),
        ("POST / HTTP/1.1", "X: y\rTransfer-Encoding: chunked\r\n", InvalidField),
        ("POST / HTTP/1.1", "Content-Length:\r\n", InvalidContentLength),
        ("POST / HTTP/1.1", "Content-Length: \u{b}1\r\n", InvalidField),
        ("POST / HTTP/1.1", "Transfer-Encoding: \u{b}chunked\r\n", InvalidField),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked\u{c}\r\n", InvalidField),
        ("POST / HTTP/1.1", "Transfer-Encoding:\r\n", InvalidEncoding),
    ] {
        assert_eq!(request(line, fields), Err(expect), "{line} {fields:?}");
    }
}

#[test]
fn the_framing_does_not_rely_on_the_parser_for_duplicates() {
    let text = b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n";
    let mut head = RequestHead::new();
    Parser::new().request(text, &HeadPolicy::default(), &mut head).unwrap();
    head.fields.push(head.fields[0]);
    assert_eq!(request_body(text, &head), Err(Violation::DuplicateField));
}

#[test]
fn http_09_has_no_body() {
    let mut head = RequestHead::new();
    Parser::new().request(b"GET /\r\n", &HeadPolicy::default(), &mut head).unwrap();
    assert_eq!(request_body(b"GET /\r\n", &head), Ok(BodyLength::None));
}

#[test]
fn lengths_of_responses() {
    use BodyLength::*;
    let length = "Content-Length: 5\r\n";
    let chunked = "Transfer-Encoding: Chunked\r\n";
    for (status, fields, method, expect) in [
        ("200 OK", "", "GET", UntilClose),
        ("200 OK", length, "GET", Exact(5)),
        ("200 OK", "Content-Length: 0\r\n", "GET", Exact(0)),
        ("200 OK", chunked, "GET", Chunked),
        ("200 OK", length, "HEAD", None),
        ("200 OK", chunked, "HEAD", None),
        ("200 OK", "", "HEAD", None),
        ("204 No Content", length, "GET", None),
        ("304 Not Modified", length, "GET", None),
        ("304 Not Modified", "", "GET", None),
        ("100 Continue", length, "POST", None),
        ("103 Early Hints", "Content-Length: x\r\n", "GET", None),
        ("101 Switching Protocols", "", "GET", None),
        ("200 OK", length, "CONNECT", None),
        ("403 Forbidden", length, "CONNECT", Exact(5)),
        ("205 Reset Content", "", "GET", UntilClose),
        ("404 Not Found", length, "head", Exact(5)),
    ] {
        assert_eq!(response(status, fields, method), Ok(expect), "{status} {fields:?} {method}");
    }
}

#[test]
fn ambiguous_responses_are_refused() {
    use Violation::*;
    for (fields, expect) in [
        ("Content-Length: 5\r\nContent-Length: 5\r\n", UpstreamDuplicateField),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", UpstreamDuplicateField),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", UpstreamLengthAndEncoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", UpstreamLengthAndEncoding),
        ("Content-Length: 5, 5\r\n", UpstreamContentLength),
        ("Content-Length:\r\n", UpstreamContentLength),
        ("Content-Length: -1\r\n", UpstreamContentLength),
        ("Transfer-Encoding: gzip, chunked\r\n", UpstreamUnknownEncoding),
        ("Transfer-Encoding: identity\r\n", UpstreamUnknownEncoding),
    ] {
        for (status, method) in [("200 OK", "GET"), ("204 No Content", "GET"), ("200 OK", "HEAD")] {
            assert_eq!(response(status, fields, method), Err(expect), "{fields:?}");
        }
    }
}

#[test]
fn methods_a_reverse_proxy_does_not_serve() {
    let check = |line: &str, body, allow_connect| {
        let text = format!("{line}\r\nHost: a\r\n\r\n");
        let mut head = RequestHead::new();
        Parser::new().request(text.as_bytes(), &HeadPolicy::default(), &mut head).unwrap();
        request_method(text.as_bytes(), &head, body, allow_connect)
    };
    assert_eq!(check("GET / HTTP/1.1", BodyLength::Chunked, false), Ok(()));
    assert_eq!(check("TRACE / HTTP/1.1", BodyLength::None, true), Err(Violation::TraceMethod));
    let connect = "CONNECT a:80 HTTP/1.1";
    assert_eq!(check(connect, BodyLength::None, false), Err(Violation::ConnectMethod));
    assert_eq!(check(connect, BodyLength::Exact(0), true), Ok(()));
    assert_eq!(check(connect, BodyLength::Exact(1), true), Err(Violation::ConnectWithBody));
    assert_eq!(check("CONNECT a:80 HTTP/1.0", BodyLength::None, true), Err(Violation::ConnectMethod));
}

#[test]
fn the_host_of_a_request() {
    let check = |line: &str, fields: &str, expect: Result<Option<(&str, Option<u16>)>, Violation>| {
        let text = format!("{line}\r\n{fields}\r\n");
        let mut head = RequestHead::new();
        Parser::new().request(text.as_bytes(), &HeadPolicy::default(), &mut head).unwrap();
        let got = request_host(text.as_bytes(), &head, &mut LastHost::default());
        let got = got.map(|host| host.map(|h| (h.name.of(text.as_bytes()), h.port)));
        let expect = expect.map(|host| host.map(|(name, port)| (name.as_bytes(), port)));
        assert_eq!(got, expect, "{text:?}");
    };
    check("GET / HTTP/1.1", "Host: a:81\r\n", Ok(Some(("a", Some(81)))));
    check("GET http://b:82/ HTTP/1.1", "Host: a:81\r\n", Ok(Some(("b", Some(82)))));
    check("GET http://b HTTP/1.0", "", Ok(Some(("b", None))));
    check("GET / HTTP/1.0", "", Ok(None));
    check("GET /", "", Ok(None));
    check("GET / HTTP/1.1", "", Err(Violation::MissingHost));
    check("GET http://b/ HTTP/1.1", "", Err(Violation::MissingHost));
    check("GET / HTTP/1.1", "Host:\r\n", Err(Violation::InvalidHost));
    check("GET / HTTP/1.0", "Host: a b\r\n", Err(Violation::InvalidHost));
    check("GET http://b/ HTTP/1.1", "Host: a/b\r\n", Err(Violation::InvalidHost));
    check("GET http:///x HTTP/1.1", "Host: a\r\n", Err(Violation::InvalidTargetHost));
    check("GET http://a..b/x HTTP/1.1", "Host: a\r\n", Err(Violation::InvalidTargetHost));
    check("CONNECT a:99999 HTTP/1.1", "Host: a\r\n", Err(Violation::InvalidTargetHost));
}
