//! A bounded fuzzer for every CI run: seeds, the driver of `mutate/driver.rs`, and the properties of
//! `mutate/oracle.rs`.

#![allow(clippy::panic)]

#[path = "mutate/driver.rs"]
mod driver;
#[path = "mutate/oracle.rs"]
mod oracle;

use proptest::prelude::*;

/// Rounds per target by default; a second or so in a debug build.
const ROUNDS: u64 = 6_000;

const REQUESTS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /a/b.c?d=e HTTP/1.1\r\nHost: example.com:8080\r\nContent-Length: 5\r\n\r\nhello",
    "PUT http://[::1]:80/x HTTP/1.1\nhost: b\nTransfer-Encoding: chunked\n\n0\r\n\r\n",
    "\r\nCONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nConnection: close, x\r\nX: y\r\n\r\n",
    "GET /x\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\na_b: c\r\n B: d\r\n\r\n",
];

const RESPONSES: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: x\r\n\r\nhello",
    "HTTP/1.0 404 Not Found\nDate: x\nSet-Cookie: a\nSet-Cookie: b\n\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204\r\n\r\n",
    "HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\r\n\r\n",
];

const BODIES: &[&str] = &[
    "5\r\nhello\r\n0\r\n\r\n",
    "1;a=b\r\nx\r\n00a\r\n0123456789\r\n0;z\r\nX: y\r\nHost: z\r\n\r\nrest",
    "7fffffffffffffff\r\nendless",
];

const TARGETS: &[&str] = &["/a/b/../c/./d.html?x=y#z", "//a%2f..%2e/%25/%3f%23+.tar.gz", "?x", "/a/../../%00"];

/// A server's frames, masked ones of a client, and compressed ones.
const FRAMES: &[&[u8]] = &[
    b"\x81\x05Hello\x89\x02hi\x88\x02\x03\xe8",
    b"\x01\x03Hel\x8a\x00\x00\x00\x80\x02lo\x82\x7e\x00\x7e",
    b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x02\x81abcd\x00\x80\x81abcd\x01",
    b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00",
];

/// Records of an application: standard error, output, its end, the end of the request.
const RECORDS: &[&[u8]] = &[
    b"\x01\x06\x00\x01\x00\x05\x03\x00helloppp\x01\x06\x00\x01\x00\x00\x00\x00\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\x01\x07\x00\x01\x00\x02\x00\x00no\x01\x06\x00\x01\x00\x01\x00\x00a\x01\x06\x00\x01\x00\x01\x07\x00bppppppp",
    b"\x01\x03\x00\x01\x00\x00\x02\x00ppmore",
];

const CGI_HEADS: &[&str] = &[
    "Status: 404 Not Here\nX: y\n\nbody",
    "Content-Type: text/html\r\nLocation: /x\r\n\r\nbody",
    "HTTP/1.1 200 OK\r\nStatus: 500\r\n\r\n",
    "Status: 200\nStatus: 101 x\n\n",
];

const VALUES: &[&str] = &["VALUE k 0 5\r\nvalue\r\nEND\r\n", "VALUE k 2 0\r\n\r\nEND\r\n", "END\r\n", "ERROR\r\n"];

/// A ClientHello with a name, protocols and versions, in one record and in two.
const HELLOS: &[&[u8]] = &[
    b"\x16\x03\x01\0\x51\x01\0\0\x4d\x03\x03aaaaaaaabbbbbbbbccccccccdddddddd\0\0\x02\x13\x01\x01\0\0\x22\0\0\0\x06\0\x04\0\0\x01a\0\x10\0\x0b\0\x09\x08http/1.1\0\x2b\0\x05\x04\x03\x04\x03\x03",
    b"\x16\x03\x01\0\x06\x01\0\0\x29\x03\x03\x16\x03\x01\0\x27aaaaaaaabbbbbbbbccccccccdddddddd\0\0\x02\x13\x01\x01\0",
    b"\x80\x2e\x01\x03\x01",
];

const PROXIED: &[&[u8]] = &[
    b"PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\nrest",
    b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n",
    b"PROXY UNKNOWN x\r\n",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x16\x7f\0\0\x01\x7f\0\0\x02\x01\x02\x03\x04\x20\0\x07\x01\0\0\0\x01\x22\0",
    b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0rest",
];

/// The texts that a mutation inserts: bytes and words with a meaning in these formats.
const WORDS: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "\t",
    ":",
    ";",
    ",",
    "/",
    ".",
    "..",
    "/../",
    "%2e",
    "%",
    "?",
    "#",
    "0",
    "5",
    "a",
    "ffffffffffffffff",
    "-",
    "_",
    "\u{7f}",
    "é",
    "HTTP/1.1",
    "HTTP/1.0",
    "Host: a\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Content-Length",
    "chunked",
    "Connection: close\r\n",
    "0\r\n\r\n",
    "\r\n\r\n",
];

#[test]
fn requests() {
    mutate(REQUESTS, oracle::request_head);
}

#[test]
fn responses() {
    mutate(RESPONSES, oracle::response_head);
}

#[test]
fn chunked_bodies() {
    mutate(BODIES, oracle::chunked);
}

#[test]
fn targets() {
    mutate(TARGETS, oracle::target);
}

#[test]
fn websockets() {
    mutate(FRAMES, oracle::websocket);
}

#[test]
fn records() {
    mutate(RECORDS, oracle::fastcgi);
}

#[test]
fn heads_of_applications() {
    mutate(CGI_HEADS, oracle::cgi_head);
}

#[test]
fn values() {
    mutate(VALUES, oracle::memcached);
}

#[test]
fn client_hellos() {
    mutate(HELLOS, oracle::client_hello);
}

#[test]
fn proxy_headers() {
    mutate(PROXIED, oracle::proxy_protocol);
}

/// Sequences of words reach deeper into the code than bytes do.
fn any_input() -> impl Strategy<Value = Vec<u8>> {
    let word = proptest::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec());
    let bytes = proptest::collection::vec(any::<u8>(), 0..8);
    proptest::collection::vec(prop_oneof![4 => word, 1 => bytes], 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn any_field_section(input in any_input()) {
        oracle::request_head(&[b"POST / HTTP/1.1\r\n", input.as_slice(), b"\r\n\r\n"].concat());
        oracle::response_head(&[b"HTTP/1.1 200 OK\r\n", input.as_slice(), b"\r\n\r\n"].concat());
    }

    #[test]
    fn any_first_line(input in any_input()) {
        oracle::request_head(&input);
        oracle::request_head(&[b"GET ", input.as_slice(), b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat());
        oracle::response_head(&input);
    }

    #[test]
    fn any_chunked_body(input in any_input()) {
        oracle::chunked(&input);
        oracle::chunked(&[b"5\r\nhello\r\n0\r\n", input.as_slice(), b"\r\n\r\n"].concat());
    }

    #[test]
    fn any_frames(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        oracle::websocket(&input);
        oracle::websocket(&[b"\x02\x01a", input.as_slice()].concat());
    }

    #[test]
    fn any_records(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        oracle::fastcgi(&input);
        oracle::fastcgi(&[b"\x01\x06\x00\x01\x00\x40\x01\x00", input.as_slice()].concat());
    }

    #[test]
    fn any_head_of_an_application(input in any_input()) {
        oracle::cgi_head(&input);
        oracle::cgi_head(&[b"Status: ", input.as_slice(), b"\n\n"].concat());
        oracle::memcached(&[b"VALUE k 0 5\r\n", input.as_slice()].concat());
    }

    #[test]
    fn any_target(input in any_input()) {
        oracle::target(&input);
        oracle::target(&[b"/", input.as_slice()].concat());
    }
}

fn mutate<Seed: AsRef<[u8]>>(seeds: &'static [Seed], check: fn(&[u8])) {
    let word = |random: &mut driver::Random| random.choose(WORDS);
    let material = driver::Material { seeds, word, input_bytes_max: 512, cut_bytes_max: 12, piece_bytes_max: 40 };
    material.fuzz(ROUNDS, check);
}
