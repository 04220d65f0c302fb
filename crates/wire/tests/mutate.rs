//! The targets of this crate (`fuzz/README.md`): seeds and words for `weir_mutate`, and the properties in `mutate/`.

#![allow(clippy::panic, clippy::expect_used)]

#[path = "mutate/framing.rs"]
mod framing;
#[path = "mutate/http3.rs"]
mod http3;
#[path = "mutate/http3_seeds.rs"]
mod http3_seeds;
#[path = "mutate/model.rs"]
mod model;
#[path = "mutate/network.rs"]
mod network;
#[path = "mutate/oracle.rs"]
mod oracle;

use model::{Sender, Treatment};
use proptest::prelude::*;
use weir_mutate::mutate;

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

/// Requests of one connection, one after the other.
const EXCHANGES: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /c HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /d HTTP/1.1\r\nHost: a\r\n\r\n",
    "PUT /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\na;b=c;d=\"e;\\\"f\"\r\n0123456789\r\n00\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /f HTTP/1.0\r\nConnection: keep-alive\r\n\r\nPOST /g HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
    "POST /h HTTP/1.1\r\nHost: a\r\nContent-Length: 42\r\nConnection: close\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\nOPTIONS * HTTP/1.1\nHost: a\n\nCONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a.test:80/?i HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\nGET /j\r\n",
];

/// Answers of one connection; the first byte chooses the methods of the requests.
const REPLIES: &[&str] = &[
    "\0HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    "\0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\nX: y\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    "\0HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil close",
    "\x01HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "\0HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabcHTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n",
    "\x03HTTP/1.1 200 Connection established\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "\0HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes",
    "\0HTTP/1.1 404\nno colon\nHTTP/1.1 200 OK\nContent-Length: 2\r\r\n\nab",
];

/// Frames of HTTP/2 clients and servers, without the preface.
fn frames_of_http2() -> Vec<Vec<u8>> {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let settings = || frame(4, 0, 0, b"");
    let get: &[u8] = b"\x82\x86\x84\x01\x06a.test";
    vec![
        [
            frame(4, 0, 0, b"\0\x03\0\0\0\x64"),
            frame(4, 1, 0, b""),
            frame(1, 5, 1, get),
            frame(6, 0, 0, b"abcdefgh"),
            frame(8, 0, 0, b"\0\0\0\x01"),
            frame(3, 0, 1, b"\0\0\0\x08"),
            frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0"),
        ]
        .concat(),
        // A body of 5 bytes in padding, and trailers.
        [
            settings(),
            frame(1, 4, 1, b"\x83\x86\x84\x01\x06a.test\x0f\x0d\x015"),
            frame(0, 8, 1, b"\x03hello\0\0\0"),
            frame(1, 5, 1, b"\0\x01x\x01y"),
        ]
        .concat(),
        // A section in three frames, with a priority.
        [
            settings(),
            frame(1, 0x21, 3, b"\0\0\0\0\x10\x82\x86\x84"),
            frame(9, 0, 3, b"\x01\x06a."),
            frame(9, 4, 3, b"test"),
            frame(2, 0, 5, b"\0\0\0\x03\xff"),
        ]
        .concat(),
        // An interim answer, an answer, its body.
        [settings(), frame(1, 4, 1, b"\x08\x03103"), frame(1, 4, 1, b"\x88\x0f\x0d\x012"), frame(0, 1, 1, b"ok")]
            .concat(),
        // An extended CONNECT.
        [settings(), frame(1, 4, 1, b"\x02\x07CONNECT\0\x09:protocol\x09websocket\x86\x84\x01\x06a.test")].concat(),
    ]
}

/// Field sections, each after its length: a request in plain literals, in Huffman codes, with the table, resized.
const SECTIONS: &[&[u8]] = &[
    b"\x0b\x82\x86\x84\x01\x06a.test",
    b"\x11\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff\x0c\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
    b"\x07\x20\x3f\xe1\x1f\x40\x01a\x01b\x01\xbe\x08\x10\x06cookie\x01a",
];

/// Answers and questions of DNS.
const DNS: &[&[u8]] = &[
    b"\0\x07\x81\x80\0\x01\0\x01\0\0\0\0\x01a\x04test\0\0\x01\0\x01\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01",
    b"\0\x07\x81\x80\0\x01\0\x02\0\0\0\0\x01a\x04test\0\0\x1c\0\x01\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01b\xc0\x0e\x01b\xc0\x0e\0\x1c\0\x01\0\0\0\x3c\0\x10aaaabbbbccccdddd",
    b"\0\x07\x81\x80\0\x01\0\x01\0\0\0\0\x01a\x04test\0\0\x21\0\x01\xc0\x0c\0\x21\0\x01\0\0\0\x3c\0\x09\0\x01\0\x02\0\x50\x01c\0",
    b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x0f_acme-challenge\x01a\x04test\0\0\x10\0\x01",
    b"\0\x07\xa8\x05\0\0\0\0\0\0\0\0",
    b"www.example.com",
];

/// Words of binary formats.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\0\0\0\x01",
    b"\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xc0\x0c",
    b"\xc0\x00",
    b"\x01a",
    b"\x3f",
    b"\x82\x86\x84",
    b"\xbe",
    b"\x0f\x0d",
    b"\0\0\0\x04\x01\0\0\0\0",
    b"\0\0\x04\x08\0\0\0\0\x01\x7f\xff\xff\xff",
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff",
    b"\0\0\x06\x04\0\0\0\0\0\0\x01\0\0\0\0",
    b"\0\0\x05\x02\0\0\0\0\x03\x80\0\0\x01\xff",
    b"\0\0\x03\x09\x04\0\0\0\x01\x82\x86\x84",
    b"\x01\x05\0\0\xd1\xd7\xc1",
    b"\x40\x21\x01x",
    b"\x80\x0f\x07\0\x03\x04u=",
    b"\xc0\0\0\0\0\0\0\x01",
    b"\x3f\xe1\x01",
    b"\xc0\x01x",
    b"\x02\0\x80",
    b"\x02\x80\x10",
];

/// Answers to a WebSocket's request, and a frame of gRPC.
const SMALL_ANSWERS: &[&[u8]] = &[
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: 2hNSyQFJWR0Kb6CVkoVZLPhGBfI=\r\nSec-WebSocket-Protocol: chat\r\nSec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=9\r\n\r\n",
    b"permessage-deflate; client_no_context_takeover; server_max_window_bits=\"12\"",
    b"\0\0\0\0\x02\x08\x01",
];

const TEXTS: &[&str] = &[
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "/a%2fb%?c=d%20e+f#<g>&\"h\"",
    "[::1]:8080",
    "Example.com.:443",
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
    "Content-Length: 0\r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: 18446744073709551621\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: chunked, chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer_Encoding: chunked\r\n",
    "Connection: keep-alive\r\n",
    "Expect: 100-continue\r\n",
    " \r\n",
    "\r\n ",
    "\r\n\t",
    "\r\r\n",
    ";a=\"b\"",
    "00000005",
    "GET / HTTP/1.1\r\n",
    "HEAD",
    "CONNECT",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 204",
    " 304 ",
    " 101 ",
    "/../..",
    "%00",
    "Nov",
    " 29 Feb ",
    "GMT",
];

#[test]
fn requests() {
    mutate(REQUESTS, WORDS, oracle::request_head);
}

#[test]
fn responses() {
    mutate(RESPONSES, WORDS, oracle::response_head);
}

#[test]
fn chunked_bodies() {
    mutate(BODIES, WORDS, oracle::chunked);
}

#[test]
fn targets() {
    mutate(TARGETS, WORDS, oracle::target);
}

#[test]
fn websockets() {
    mutate(FRAMES, WORDS, oracle::websocket);
}

#[test]
fn records() {
    mutate(RECORDS, WORDS, oracle::fastcgi);
}

#[test]
fn heads_of_applications() {
    mutate(CGI_HEADS, WORDS, oracle::cgi_head);
}

#[test]
fn values() {
    mutate(VALUES, WORDS, oracle::memcached);
}

#[test]
fn client_hellos() {
    mutate(HELLOS, WORDS, oracle::client_hello);
}

#[test]
fn proxy_headers() {
    mutate(PROXIED, WORDS, oracle::proxy_protocol);
}

#[test]
fn connections_of_clients() {
    mutate(EXCHANGES, WORDS, framing::requests);
}

#[test]
fn connections_of_origins() {
    mutate(REPLIES, WORDS, framing::answers);
}

#[test]
fn http2_frames() {
    mutate(&frames_of_http2(), PIECES, network::http2);
}

#[test]
fn http2_field_sections() {
    mutate(SECTIONS, PIECES, network::sections);
}

#[test]
fn h3_frames() {
    mutate(&http3_seeds::frames(), PIECES, http3::frames);
}

#[test]
fn qpack_sections() {
    mutate(http3_seeds::QPACK, PIECES, http3::sections);
}

#[test]
fn h3_connections() {
    mutate(&http3_seeds::connections(), PIECES, http3::connections);
}

#[test]
fn dns_messages() {
    mutate(DNS, PIECES, network::dns);
}

#[test]
fn frames_in_a_tunnel() {
    mutate(FRAMES, PIECES, network::passing);
}

#[test]
fn websocket_and_grpc_answers() {
    mutate(SMALL_ANSWERS, WORDS, network::small_answers);
}

#[test]
fn dates_escapes_and_hosts() {
    mutate(TEXTS, WORDS, network::texts);
}

/// Messages that every reader of a chain must read alike: the model and weir agree on each of them, and these are wrong.
#[test]
fn known_attacks_are_wrong_for_the_model_too() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5,6\r\n",
        "Content-Length: 0x5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "Host: b\r\n",
    ] {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n5\r\nhello\r\n0\r\n\r\n");
        let reading = model::request(text.as_bytes(), 0);
        assert!(
            matches!(reading, model::Reading::Wrong(section) if section.starts_with("9112")),
            "{fields:?}: {reading:?}"
        );
        framing::requests(text.as_bytes());
    }
    for body in ["5\nhello\r\n0\r\n\r\n", "5\r\nhello!0\r\n\r\n", "0x5\r\nhello\r\n", "-1\r\n", "\r\n", "5;a\nb\r\n"] {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        let reading = model::request(text.as_bytes(), 0);
        assert!(
            matches!(reading, model::Reading::Wrong(section) if section.starts_with("9112")),
            "{body:?}: {reading:?}"
        );
        framing::requests(text.as_bytes());
    }
}

/// A message of each form of which a recipient may decide: the model notes the form, and weir does as the list says.
#[test]
fn each_choice_is_seen() {
    use model::Choice::*;
    let after_host = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let chunks = |body: &str| after_host("Transfer-Encoding: chunked\r\n") + body;
    let requests = [
        (LeadingLineEnds, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (BareLineFeed, "GET / HTTP/1.1\nHost: a\r\n\r\n".to_owned()),
        (Spaces, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (OddMethod, "Get / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (OddTarget, "GET * HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (SimpleRequest, "GET /\r\n".to_owned()),
        (OddHost, "GET / HTTP/1.1\r\nHost: a_b\r\n\r\n".to_owned()),
        (OddName, after_host("a(b: c\r\n")),
        (NameNotAscii, after_host("\u{e9}: c\r\n")),
        (ControlInValue, after_host("X: \x01\r\n")),
        (RepeatedField, after_host("If-Match: a\r\nIf-Match: a\r\n")),
        (RepeatedLength, after_host("Content-Length: 0\r\nContent-Length: 0\r\n")),
        (LargeLength, after_host("Content-Length: 9223372036854775808\r\n")),
        (OtherCodings, after_host("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n"),
        (OddUseOfMethod, "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (PaddedChunkSize, chunks("0 \r\n\r\n")),
        (OddExtension, chunks("0;=\r\n\r\n")),
        (BareLineFeedInTrailer, chunks("0\r\nX: y\n\r\n")),
        (ManyTrailers, chunks(&format!("0\r\n{}\r\n", "X: y\r\n".repeat(65)))),
    ];
    for (choice, text) in requests {
        let reading = model::request(text.as_bytes(), 0);
        let model::Reading::Message(message) = reading else { panic!("{text:?}: {reading:?}") };
        assert!(message.choices.contains(&choice), "{text:?}: {:?}", message.choices);
        judged(choice, Sender::Client, framing::takes_request(text.as_bytes()), &text);
    }
    let answer = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    let chunks = |body: &str| answer("Transfer-Encoding: chunked\r\n") + body;
    let answers = [
        (BareLineFeed, "HTTP/1.1 200 OK\nContent-Length: 0\n\n".to_owned(), "GET"),
        (OddName, answer("a(b: c\r\n"), "GET"),
        (ControlInValue, answer("X: \x01\r\n"), "GET"),
        (RepeatedLength, answer("Content-Length: 0, 0\r\n"), "GET"),
        (LargeLength, chunks(&format!("{}\r\n\r\n", "0".repeat(33))), "GET"),
        (OtherCodings, answer("Transfer-Encoding: gzip\r\n"), "GET"),
        (CodingInHttp10, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), "GET"),
        (FaultyFieldsWithoutBody, answer("Content-Length: x\r\n"), "HEAD"),
        (PaddedChunkSize, chunks("0 \r\n\r\n"), "GET"),
        (OddExtension, chunks("0;=\r\n\r\n"), "GET"),
        (BareLineFeedInTrailer, chunks("0\r\nX: y\n\r\n"), "GET"),
        (OddStatusLine, "HTTP/1.1  200\r\n\r\n".to_owned(), "GET"),
        (StatusBelow100, "HTTP/1.1 099 OK\r\n\r\n".to_owned(), "GET"),
        (ExtraCr, answer("X: y\r\r\n"), "GET"),
        (LineWithoutName, answer("HTTP/1.1 200 OK\r\n"), "GET"),
        (SpaceBeforeColon, answer("X : y\r\n"), "GET"),
    ];
    for (choice, text, method) in answers {
        let reading = model::answer(text.as_bytes(), 0, method.as_bytes());
        let model::Reading::Message(message) = reading else { panic!("{text:?}: {reading:?}") };
        assert!(message.choices.contains(&choice), "{text:?}: {:?}", message.choices);
        judged(choice, Sender::Origin, framing::takes_answer(text.as_bytes(), method.as_bytes()), &text);
    }
}

fn judged(choice: model::Choice, sender: Sender, is_taken: bool, text: &str) {
    match choice.of(sender) {
        Treatment::Takes => assert!(is_taken, "{choice:?}: {text:?}"),
        Treatment::Refuses => assert!(!is_taken, "{choice:?}: {text:?}"),
        Treatment::Either => {}
    }
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
