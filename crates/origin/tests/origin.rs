//! Tests the dummy origin over loopback. The peer is the standard library, not weir's parser.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use weir_net::Address;
use weir_origin::{self as origin, Origin};

/// The longest wait of a test before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

fn origin() -> Origin {
    let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
    origin::start(&[any], 1).unwrap()
}

fn connect(origin: &Origin) -> TcpStream {
    let stream = TcpStream::connect(origin.tcp_address().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// All bytes that the origin sends until it closes.
fn talk(request: &str) -> String {
    let origin = origin();
    let mut stream = connect(&origin);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// As [`talk`], for one GET that asks the origin to close the connection after it.
fn get(target: &str) -> String {
    talk(&format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
}

fn split(answer: &str) -> (&str, &str) {
    answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no whole head: {answer:.200}"))
}

#[test]
fn the_request_says_the_size() {
    for (target, size) in [("/", 1024), ("/64k", 65_536), ("/1m", 1 << 20), ("/x?size=3", 3), ("/?size=0", 0)] {
        let answer = get(target);
        let (head, body) = split(&answer);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{target}: {head}");
        assert!(head.contains(&format!("Content-Length: {size}\r\n")), "{target}: {head}");
        assert_eq!(body.len(), size, "{target}");
        assert!(body.bytes().skip(64).zip(body.bytes()).all(|(a, b)| a == b), "{target}: period of 64 bytes");
    }
}

#[test]
fn status_and_fields() {
    let answer = get("/?status=503&cache=no-store&header=Retry-After:%2010&header=Content-Type:x/y");
    let (head, _) = split(&answer);
    assert!(head.starts_with("HTTP/1.1 503 Service Temporarily Unavailable\r\n"));
    for field in ["Cache-Control: no-store", "Retry-After: 10", "Content-Type: x/y", "Connection: close"] {
        assert_eq!(head.matches(field).count(), 1, "{field} in {head}");
    }
    assert_eq!(head.matches("Content-Type").count(), 1);
    let (head, body) = (get("/?status=204"), "");
    assert!(!head.contains("Content-Length") && head.ends_with("\r\n\r\n"), "{head}{body}");
}

#[test]
fn chunked_with_and_without_trailers() {
    let size = 40_000;
    let answer = get(&format!("/?size={size}&trailers=1"));
    let (head, body) = split(&answer);
    assert!(head.contains("Transfer-Encoding: chunked") && head.contains("Trailer: X-Origin-Bytes"), "{head}");
    assert!(body.starts_with("4000\r\n"), "16 KiB first");
    assert!(body.ends_with(&format!("\r\n0\r\nX-Origin-Bytes: {size}\r\n\r\n")));
    assert!(get("/?size=5&chunked=1").ends_with("5\r\nweir \r\n0\r\n\r\n"));
    assert!(get("/?size=0&chunked=1").ends_with("\r\n\r\n0\r\n\r\n"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let mut requests = String::new();
    for size in [1, 2, 3] {
        requests.push_str(&format!("GET /?size={size}&header=X-N:{size} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    requests.push_str("HEAD /?size=77 HTTP/1.1\r\nHost: a\r\n\r\n");
    requests.push_str("GET /?size=4&keepalive=off HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = talk(&requests);
    let places: Vec<usize> = ["X-N: 1", "X-N: 2", "X-N: 3", "Length: 77", "Length: 4"]
        .iter()
        .map(|text| answer.find(text).unwrap())
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(answer.ends_with("Connection: close\r\n\r\nweir"));
}

#[test]
fn http_1_0_closes_unless_told_otherwise() {
    let answer = talk("GET /?size=1 HTTP/1.0\r\n\r\n");
    assert!(split(&answer).0.contains("Connection: close"));
    let both = "GET /?size=1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /?size=2&chunked=1 HTTP/1.0\r\n\r\n";
    let answer = talk(both);
    assert!(answer.contains("Connection: keep-alive\r\n\r\nw"));
    assert!(!answer.contains("chunked") && answer.ends_with("\r\n\r\nwe"), "{answer}");
}

#[test]
fn bodies_are_echoed() {
    let answer =
        talk("POST /echo HTTP/1.1\r\nHost: a\r\nX-Y: z\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    let (_, body) = split(&answer);
    assert!(body.starts_with("POST /echo HTTP/1.1\nHost: a\nX-Y: z\n") && body.ends_with("\n\nhello"), "{body}");
    let answer = talk(
        "PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    );
    assert!(answer.ends_with("\n\nabcde"), "{answer}");
}

#[test]
fn a_body_elsewhere_is_read_and_forgotten() {
    let answer = talk(
        "POST /?size=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /?size=2&keepalive=off HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    let origin = origin();
    let mut stream = connect(&origin);
    stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n").unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn nonsense_is_refused_by_name() {
    for (request, status, why) in [
        ("GET /?size=x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "size=x"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "version"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400, "1*DIGIT"),
        ("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", 413, "1048576"),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", 400, "RFC 9112"),
    ] {
        let answer = talk(request);
        let (head, body) = split(&answer);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {head}");
        assert!(body.contains(why), "{request}: {body}");
    }
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    assert!(talk(&long).starts_with("HTTP/1.1 431 "));
}

#[test]
fn failures_are_what_they_say() {
    assert_eq!(get("/?fail=close"), "");
    let whole = get("/?size=100").len();
    let half_head = get("/?size=100&fail=half");
    assert!(half_head.starts_with("HTTP/1.1 200 OK") && !half_head.contains("\r\n\r\n"));
    let truncated = get("/?size=100&fail=truncate");
    assert!(truncated.contains("Content-Length: 100") && truncated.len() == whole - 50, "{truncated}");
    assert!(get("/?size=100&chunked=1&fail=truncate").contains("\r\n\r\n64\r\nweir"));
    let lie = get("/?size=100&fail=lying-length");
    assert!(lie.contains("Content-Length: 100") && lie.len() == whole + 32, "{lie}");
    assert!(!get("/?fail=garbage").starts_with("HTTP"));
}

#[test]
fn a_reset_is_a_reset() {
    let origin = origin();
    let mut stream = connect(&origin);
    stream.write_all(b"GET /?fail=reset HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(origin.totals().failures, 1);
}

#[test]
fn a_head_without_end_goes_on() {
    let origin = origin();
    let mut stream = connect(&origin);
    stream.write_all(b"GET /?fail=endless-head HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut some = vec![0; 1 << 20];
    stream.read_exact(&mut some).unwrap();
    assert!(!some.windows(4).any(|four| four == b"\r\n\r\n"));
}

#[test]
fn a_stalled_answer_ends_when_the_client_goes() {
    let origin = origin();
    let mut stream = connect(&origin);
    stream.write_all(b"GET /?size=10&fail=stall HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\nweir ") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_websocket_echoes_and_says_goodbye() {
    let origin = origin();
    let mut stream = connect(&origin);
    let handshake = "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                     Sec-WebSocket-Protocol: chat, other\r\n\r\n";
    stream.write_all(handshake.as_bytes()).unwrap();
    // "Hello" masked as in RFC 6455 §5.7, then a close with status 1000.
    stream.write_all(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58").unwrap();
    stream.write_all(b"\x88\x82\x00\x00\x00\x00\x03\xe8").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.1 101 "), "{text}");
    assert!(text.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{text}");
    assert!(text.contains("Sec-WebSocket-Protocol: chat\r\n"), "{text}");
    assert!(answer.ends_with(b"\r\n\r\n\x81\x05Hello\x88\x02\x03\xe8"), "{text}");
    assert_eq!((origin.totals().websockets, origin.totals().frames), (1, 1));
}

#[test]
fn a_faulty_handshake_is_refused() {
    let handshake = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Version: 8\r\n\r\n";
    assert!(talk(handshake).starts_with("HTTP/1.1 426 "));
    let other = "GET /?size=1&keepalive=off HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n";
    assert!(talk(other).starts_with("HTTP/1.1 200 "));
}

#[test]
fn several_workers_share_an_address_and_stop_together() {
    let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
    let origin = origin::start(&[any], 3).unwrap();
    for _ in 0..8 {
        let mut stream = connect(&origin);
        stream.write_all(b"GET /?size=1&keepalive=off HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("\r\n\r\nw"));
    }
    let totals = origin.totals();
    assert_eq!((totals.connections, totals.requests, totals.refused), (8, 8, 0));
    assert!(origin::start(origin.addresses(), 2).is_err(), "the address is taken");
    let mut idle = connect(&origin);
    let address = origin.tcp_address().unwrap();
    drop(origin);
    assert!(matches!(idle.read(&mut [0; 1]), Ok(0) | Err(_)));
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}
