//! The targets of this crate (`fuzz/README.md`): files of recordings, their blocks, and texts with secrets.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

#[path = "mutate/oracle.rs"]
mod oracle;

use std::sync::Arc;

use weir_mutate::mutate;
use weir_recording::frame::FILE_HEAD_BYTES;
use weir_recording::model::{
    Beginning, Ending, Losses, RecordedAnswer, RecordedBody, RecordedConfiguration, RecordedExchange, RecordedField,
    RecordedMessage, RecordedText, RecordedTry, RecordedVersion, RecordingPart,
};
use weir_recording::write::Writer;

/// A file with all kinds of parts.
fn file() -> Vec<u8> {
    let beginning =
        Beginning { unix_us: 1, program: "weir/0.1.0".to_owned(), share_ppm: 5, key_id: 7, has_bodies: true };
    let mut writer = Writer::new(Vec::new(), &beginning).unwrap();
    let field = |name: &str, value: &str, hidden: Vec<(u32, u32)>| RecordedField {
        name: name.into(),
        value: RecordedText { bytes: value.into(), hidden },
    };
    let fields: Arc<[RecordedField]> =
        [field("host", "a.example", Vec::new()), field("cookie", "a=1; b=22", vec![(2, 3), (7, 9)])].into();
    let body = RecordedBody { length: 3, hash: Some(1 << 40), kept: Some(RecordedText::plain(*b"abc")) };
    let exchange = RecordedExchange {
        at_us: 1_000,
        client: u64::MAX,
        connection: 300,
        version: RecordedVersion::Http2,
        is_tls: true,
        port: 443,
        method: b"GET".to_vec(),
        target: RecordedText::plain(*b"/path?x=1"),
        fields: fields.clone(),
        body: RecordedBody::default(),
        answer: Some(RecordedAnswer { status: 200, fields: fields.clone(), body: body.clone() }),
        is_cut: false,
        took_us: 70_000,
        tries: vec![RecordedTry { peer: "127.0.0.1:80".to_owned(), status: 200, took_us: Some(5) }],
        cache: Some("HIT".to_owned()),
        generation: 1,
        location: 2,
        tunnel: 0,
    };
    let lost = Losses { queue: 1, size: 2, writing: 3, large: 4 };
    for part in [
        RecordingPart::Configuration(RecordedConfiguration {
            generation: 1,
            path: "/etc/nginx/nginx.conf".to_owned(),
            locations: vec!["nginx.conf:1 location /".to_owned(), "nginx.conf:9 location /path".to_owned()],
        }),
        RecordingPart::Exchange(Box::new(exchange.clone())),
        RecordingPart::Exchange(Box::new(exchange)),
        RecordingPart::Message(RecordedMessage {
            at_us: 2,
            tunnel: 3,
            is_of_client: true,
            is_binary: false,
            content: body,
        }),
        RecordingPart::Lost(lost),
        RecordingPart::Ending(Ending { at_us: 9, exchanges: 2, recorded: 2, lost }),
    ] {
        writer.put(&part).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn files() {
    let one = file();
    let two = [one.clone(), one.clone()].concat();
    let words: [&[u8]; 5] =
        [b"weir-rec", b"weir-rec\x01\0\0\0", b"\xff\xff\xff\xff", b"\0\0\x20\0", b"\x28\xb5\x2f\xfd"];
    mutate(&[one, two], &words, oracle::file);
}

#[test]
fn blocks() {
    let file = file();
    let frame = &file[FILE_HEAD_BYTES + 12..];
    let mut block = Vec::with_capacity(1 << 20);
    zstd_safe::decompress(&mut block, frame).unwrap();
    // References, shared lists, counts, lengths.
    let words: [&[u8]; 12] = [
        b"\xd8\x19",
        b"\xd8\x19\0",
        b"\xd8\x1c",
        b"\xd8\x1d\0",
        b"\xd9\x01\0",
        b"\x9a\xff\xff\xff\xff",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x5a\x7f\xff\xff\xff",
        b"\xf6",
        b"\x82",
        b"\x83\0\xf6\xf6",
        b"\x9f",
    ];
    mutate(&[block], &words, oracle::block);
}

#[test]
fn texts() {
    let seeds = [
        "sid=abc; theme=dark",
        "Basic dXNlcjpwYXNz",
        "for=192.0.2.43;proto=http, for=\"[2001:db8::17]:47\"",
        "https://u:p%40@h.example/a?q=1&token=t%20x#id_token=z",
        "/login?next=%2Fa%3Femail%3Dx%2540y.example&c=4111-1111-1111-1111",
        r#"{"a":[1,{"name":"pin","value":"\u0041\n"}],"token":"V","s":"{\"t\":\"010-1234-5678\"}"}"#,
        "--XX\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nV\r\n--XX--\r\n",
        "<input name=\"csrf_token\" value='V'/><password>x</password> 900101-1234567",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
    ];
    let words = [
        "%",
        "%25",
        "%40",
        "\\u0041",
        "\\ud83d\\ude00",
        "\\",
        "\"",
        "{",
        "[",
        "=",
        ":",
        "&",
        ";",
        "@",
        "://",
        "<",
        ">",
        "+82",
        "-----BEGIN ",
        "token",
        "Bearer ",
        "비밀번호",
        "\u{1f600}",
        "DE89",
        "eyJ",
        ".",
        "\r\n\r\n",
        "--XX",
    ];
    mutate(&seeds, &words, oracle::text);
}
