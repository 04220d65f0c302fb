//! The writer of a worker: what it pushes comes back, without secrets.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

use weir_recording::block::{BLOCK_BYTES, LIVE_BYTES_MAX};
use weir_recording::frame::{UNPACKED_BYTES_MAX, file_head};
use weir_recording::model::{
    Beginning, RecordedBody, RecordedExchange, RecordedField, RecordedText, RecordedTry, RecordedVersion, RecordingPart,
};
use weir_recording::read::Reader;
use weir_recording::write::Writer;
use weir_recording::{
    BlockRefusal, BlockWriter, LiveAnswer, LiveBody, LiveExchange, LiveMessage, LiveTry, Secrets, seal,
};

fn secrets() -> Secrets {
    Secrets::new([9; 16])
}

/// The parts of blocks behind a beginning.
fn read(blocks: &[Vec<u8>]) -> Vec<RecordingPart> {
    let beginning = Beginning { unix_us: 0, program: String::new(), share_ppm: 0, key_id: 0, has_bodies: true };
    let mut file = Writer::new(Vec::new(), &beginning).unwrap().finish().unwrap();
    assert!(file.starts_with(&file_head()));
    blocks.iter().for_each(|block| file.extend(seal(block).unwrap()));
    Reader::new(&file[..]).unwrap().skip(1).map(Result::unwrap).collect()
}

type Fields<'f> = [(&'f [u8], &'f [u8])];

const EMPTY: [(&[u8], &[u8]); 0] = [];

/// An exchange of a client, and the part that it becomes.
fn exchange<'x>(number: u64, target: &'x [u8], fields: &'x [(&'x [u8], &'x [u8]); 3]) -> LiveExchange<'x> {
    LiveExchange {
        at_us: number,
        client: 5,
        connection: 6,
        version: RecordedVersion::Http2,
        is_tls: true,
        port: 443,
        method: b"POST",
        target,
        fields,
        body: LiveBody {
            length: 9,
            hash: Some(1),
            content_type: b"application/json",
            kept: Some(br#"{"pin":"1234"}"#),
        },
        answer: Some(LiveAnswer { status: 200, fields, body: LiveBody::default() }),
        is_cut: false,
        took_us: 7,
        tries: &[LiveTry { peer: "127.0.0.1:80", status: 200, took_us: None }],
        cache: Some("MISS"),
        generation: 1,
        location: 2,
        tunnel: 0,
    }
}

fn recorded(live: &LiveExchange<'_>, fields: &Fields<'_>) -> RecordedExchange {
    let fields: Vec<RecordedField> = fields
        .iter()
        .map(|(name, value)| RecordedField { name: name.to_ascii_lowercase(), value: secrets().field(name, value) })
        .collect();
    let body = RecordedBody {
        length: live.body.length,
        hash: live.body.hash,
        kept: live.body.kept.map(|kept| secrets().body(live.body.content_type, kept)),
    };
    RecordedExchange {
        at_us: live.at_us,
        client: live.client,
        connection: live.connection,
        version: live.version,
        is_tls: live.is_tls,
        port: live.port,
        method: live.method.to_vec(),
        target: secrets().target(live.target),
        fields: fields.clone().into(),
        body,
        answer: live.answer.map(|answer| weir_recording::model::RecordedAnswer {
            status: answer.status,
            fields: fields.into(),
            body: RecordedBody::default(),
        }),
        is_cut: live.is_cut,
        took_us: live.took_us,
        tries: live
            .tries
            .iter()
            .map(|one| RecordedTry { peer: one.peer.to_owned(), status: one.status, took_us: one.took_us })
            .collect(),
        cache: live.cache.map(str::to_owned),
        generation: live.generation,
        location: live.location,
        tunnel: live.tunnel,
    }
}

#[test]
fn exchanges_come_back_without_secrets() {
    let mut writer = BlockWriter::new(secrets());
    let mut expected = Vec::new();
    let mut blocks = Vec::new();
    for number in 0..20_000 {
        let cookie = format!("sid=planted{}", number % 50);
        let target = format!("/a?token=planted{}", number % 7);
        let id = format!("{number}");
        let fields: [(&[u8], &[u8]); 3] =
            [(b"Cookie", cookie.as_bytes()), (b"Host", b"a.example"), (b"X-Id", id.as_bytes())];
        // Some lists are equal, some have one field twice, and some have a part of the fields of another list.
        let fields = match number % 3 {
            0 => fields,
            1 => [fields[0], fields[0], fields[1]],
            _ => [fields[1], fields[1], fields[1]],
        };
        let live = exchange(number, target.as_bytes(), &fields);
        if writer.push(&live) == Err(BlockRefusal::Full) {
            assert!(writer.len() >= BLOCK_BYTES && writer.len() < UNPACKED_BYTES_MAX);
            blocks.push(writer.take(Vec::new()));
            assert!(writer.is_empty());
            writer.push(&live).unwrap();
        }
        expected.push(RecordingPart::Exchange(Box::new(recorded(&live, &fields))));
    }
    blocks.push(writer.take(Vec::new()));
    assert!(blocks.len() > 2, "{}", blocks.len());
    let found = read(&blocks);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    for block in &blocks {
        assert!(!block.windows(7).any(|bytes| bytes == b"planted"));
    }
}

#[test]
fn messages_and_losses_of_size() {
    let mut writer = BlockWriter::new(secrets());
    let content = LiveBody { length: 12, kept: Some(b"a@b.example!"), ..LiveBody::default() };
    let message = LiveMessage { at_us: 1, tunnel: 2, is_of_client: true, is_binary: false, content };
    writer.push_message(&message).unwrap();
    let large = vec![b'1'; LIVE_BYTES_MAX + 1];
    let too_large = LiveBody { kept: Some(&large), ..content };
    assert_eq!(writer.push_message(&LiveMessage { content: too_large, ..message }), Err(BlockRefusal::Large));
    let mut live = exchange(1, &large, &[(b"a", b"b"); 3]);
    assert_eq!(writer.push(&live), Err(BlockRefusal::Large));
    live.target = b"/";
    live.fields = &EMPTY;
    writer.push(&live).unwrap();
    let parts = read(&[writer.take(Vec::new())]);
    let [RecordingPart::Message(message), RecordingPart::Exchange(exchange)] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!(message.content.kept.as_ref().unwrap().hidden, [(0, 11)]);
    assert_eq!((exchange.at_us, exchange.fields.len()), (1, 0));
    assert_eq!(exchange.target, RecordedText::plain(*b"/"));
}

#[test]
fn the_largest_exchange_of_secrets_fits_in_a_frame() {
    // Each second byte is a secret of its own: the most hidden places that a text can have.
    let cookies = "a=1;".repeat(LIVE_BYTES_MAX / 4 - 100);
    let mut writer = BlockWriter::new(secrets());
    let fields: [(&[u8], &[u8]); 1] = [(b"cookie", cookies.as_bytes())];
    let live = LiveExchange { fields: &fields, answer: None, ..exchange(1, b"/", &[(b"a", b"b"); 3]) };
    writer.push(&live).unwrap();
    let parts = read(&[writer.take(Vec::new())]);
    let [RecordingPart::Exchange(exchange)] = &parts[..] else { panic!("{}", parts.len()) };
    assert!(exchange.fields[0].value.hidden.len() > 60_000);
}
