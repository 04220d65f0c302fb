//! Recordings as another program reads them: `recording_format.py` knows only `docs/reference/recording.md`.
//!
//! It needs the packages of `recording_format.txt`, which `cargo xtask ci` installs in `target/python`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;

use std::path::Path;
use std::process::{Command, ExitCode};

use needs::{Need, cases};
use serde_json::Value;
use weir_recording::model::{
    Beginning, Ending, Losses, RecordedAnswer, RecordedBody, RecordedConfiguration, RecordedExchange, RecordedField,
    RecordedMessage, RecordedText, RecordedTry, RecordedVersion, RecordingPart,
};
use weir_recording::read::Reader;
use weir_recording::to_json;
use weir_recording::write::Writer;

/// The Python of `cargo xtask ci`.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/python/bin/python");

fn main() -> ExitCode {
    needs::run(cases![[Need::Program(PYTHON)] => another_reader_reads_the_same_parts])
}

fn another_reader_reads_the_same_parts() {
    let beginning = Beginning {
        unix_us: 1_800_000_000_000_000,
        program: "weir/0.1.0".to_owned(),
        share_ppm: 250_000,
        key_id: u64::MAX,
        has_bodies: true,
    };
    let mut file = written(&beginning, 3_000);
    // A recorder that started again.
    file.extend(written(&beginning, 3));
    let path = std::env::temp_dir().join(format!("weir-recording-{}", std::process::id()));
    std::fs::write(&path, &file).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(PYTHON).arg(root.join("tests/recording_format.py")).arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs = String::from_utf8(output.stdout).unwrap();
    let theirs = theirs.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ours: Vec<Value> = Reader::new(&file[..]).unwrap().map(|part| to_json(&part.unwrap())).collect();
    assert_eq!(ours.len(), 3_000 + 3 + 2 * 5);
    assert!(ours.into_iter().eq(theirs));
}

/// All kinds of parts, with so many exchanges.
fn written(beginning: &Beginning, exchanges: u32) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), beginning).unwrap();
    let locations = vec!["/etc/nginx/nginx.conf:12 location /".to_owned(), "위치".to_owned()];
    let path = "/etc/nginx/nginx.conf".to_owned();
    writer.put(&RecordingPart::Configuration(RecordedConfiguration { generation: 1, path, locations })).unwrap();
    for number in 0..exchanges {
        writer.put(&RecordingPart::Exchange(Box::new(exchange(number)))).unwrap();
    }
    let content = RecordedBody { length: 2, hash: None, kept: Some(RecordedText::plain(*b"\xff\0")) };
    let message = RecordedMessage { at_us: 9, tunnel: 2, is_of_client: true, is_binary: true, content };
    writer.put(&RecordingPart::Message(message)).unwrap();
    let lost = Losses { queue: 1, size: 2, writing: 3, large: 4 };
    writer.put(&RecordingPart::Lost(lost)).unwrap();
    writer.put(&RecordingPart::Ending(Ending { at_us: 10, exchanges: 11, recorded: 1, lost })).unwrap();
    writer.finish().unwrap()
}

/// Exchanges with strings of all lengths, so that numbers of strings pass each bound.
fn exchange(number: u32) -> RecordedExchange {
    let field =
        |name: &str, value: String| RecordedField { name: name.into(), value: RecordedText::plain(value.into_bytes()) };
    let hidden = RecordedText { bytes: format!("sid={number:04}").into_bytes(), hidden: vec![(4, 8)] };
    let cookie = RecordedField { name: b"cookie".to_vec(), value: hidden };
    let fields = vec![
        field("host", "example.com".to_owned()),
        field("x", "y".repeat(number as usize % 9)),
        field("x-request-id", format!("{number:x}")),
        cookie,
    ];
    let same = vec![field("content-type", "text/html".to_owned()), field("server", "weir".to_owned())];
    RecordedExchange {
        at_us: u64::from(number) << (number % 40),
        client: 1 << (number % 64),
        connection: 3,
        version: [RecordedVersion::Http10, RecordedVersion::Http11, RecordedVersion::Http2, RecordedVersion::Http3]
            [number as usize % 4],
        is_tls: number.is_multiple_of(2),
        port: 443,
        method: b"GET".to_vec(),
        target: RecordedText { bytes: format!("/?token={number:05}").into_bytes(), hidden: vec![(8, 13)] },
        fields: fields.into(),
        body: RecordedBody::default(),
        answer: (!number.is_multiple_of(7)).then(|| RecordedAnswer {
            status: 200,
            fields: same.into(),
            body: RecordedBody { length: 5, hash: Some(u64::from(number)), kept: Some(RecordedText::plain(*b"hello")) },
        }),
        is_cut: number.is_multiple_of(7),
        took_us: 1_000,
        tries: vec![RecordedTry { peer: "127.0.0.1:8080".to_owned(), status: 200, took_us: Some(900) }],
        cache: (number.is_multiple_of(3)).then(|| "MISS".to_owned()),
        generation: 1,
        location: 1,
        tunnel: 0,
    }
}
