//! Properties of the binary formats and of the small texts, as functions that panic if one does not hold: HTTP/2, DNS,
//! gRPC, frames that pass a tunnel, answers to a WebSocket's request, dates, escapes, hosts.

use weir_mutate::splits;
use weir_wire::dns::{self, Kind, Message, Name, serve, update};
use weir_wire::escape::{self, EscapeSet, Unescape};
use weir_wire::h2::connection::{Connection, H2Event, Limits, Role, Step};
use weir_wire::h2::frame::{FrameHeader, HEAD_BYTES};
use weir_wire::h2::hpack::{Encoder, HpackDecoder};
use weir_wire::section::{Block, SectionEncoder, message};
use weir_wire::websocket::{DeflateOffer, HandshakeKey, Passing, Seen, check_answer};
use weir_wire::{Parser, Progress, RequestHead, ResponseHead, Version, date, grpc, host};

/// The limits of the connections in [`http2`].
const LIMITS: Limits =
    Limits { streams: 4, section: 512, window: 1_024, connection_window: 65_535, is_connect_extended: true };

/// Bytes that a peer can make weir hold for it, besides fixed parts: those of `connection::OUTPUT_MAX`, and one answer.
const OUTPUT_BYTES_MAX: usize = 64 * 1024 + 1_024;

/// Frames of a peer: the events do not depend on how the bytes arrive; streams, sections and answers are bounded; each
/// frame of weir's is whole; each head that weir takes could be written in HTTP/1.
pub fn http2(data: &[u8]) {
    for role in [Role::Server, Role::Client] {
        let whole = frames(&[data], role);
        for split in splits(data.len()) {
            let (head, tail) = data.split_at(split);
            assert_eq!(frames(&[head, tail], role), whole, "split at {split}");
        }
    }
}

/// The events of a connection whose input comes in pieces.
fn frames(pieces: &[&[u8]], role: Role) -> Vec<String> {
    let mut connection = Connection::new(role, LIMITS);
    if role == Role::Client {
        connection.open();
        connection.head(1, true, |encoder, out| encoder.pseudo(":method", b"GET", out));
    }
    connection.output().clear();
    let (mut events, mut input) = (Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            let (used, told) = match connection.next(&input) {
                Ok(Step::Need(count)) => {
                    assert!(count > input.len());
                    break;
                }
                Ok(Step::Took { used, event }) => (used, (format!("{event:?}"), again(event))),
                Err(fault) => {
                    events.push(format!("{fault:?}"));
                    return events;
                }
            };
            assert!(used >= HEAD_BYTES && used <= input.len());
            input.drain(..used);
            events.push(told.0);
            answer(&mut connection, role, told.1, &mut events);
            assert!(connection.open_streams() <= LIMITS.streams as usize);
            assert!(connection.output().len() <= OUTPUT_BYTES_MAX, "{} bytes wait", connection.output().len());
            whole_frames(connection.output());
        }
    }
    events
}

/// The parts of an event that the caller acts on.
enum Act {
    Head { stream: u32, ends: bool },
    Consumed { stream: u32, counted: usize },
    Trailers,
    Nothing,
}

fn again(event: H2Event<'_>) -> Act {
    match event {
        H2Event::Head { stream, ends, .. } => Act::Head { stream, ends },
        H2Event::Data { stream, counted, .. } => Act::Consumed { stream, counted },
        H2Event::Trailers { .. } => Act::Trailers,
        _ => Act::Nothing,
    }
}

/// Acts as the two callers do.
fn answer(connection: &mut Connection, role: Role, act: Act, events: &mut Vec<String>) {
    match (act, role) {
        (Act::Consumed { stream, counted }, _) => connection.consumed(stream, counted),
        (Act::Head { stream, ends }, Role::Server) => {
            let mut block = std::mem::take(connection.block());
            assert!(block.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= LIMITS.section);
            let mut head = RequestHead::new();
            match message::request(&mut block, Version::Http2, true, &mut head) {
                Ok(_) => {
                    for field in &head.fields {
                        one_line(field.name.of(&block.bytes));
                        one_line(field.value.of(&block.bytes));
                    }
                    one_line(head.line.of(&block.bytes));
                    events.push(head.line.of(&block.bytes).escape_ascii().to_string());
                    connection.head(stream, ends, |encoder, out| encoder.status(204, out));
                }
                Err(why) => events.push(why.to_owned()),
            }
        }
        (Act::Head { stream, ends }, Role::Client) => {
            let mut block = std::mem::take(connection.block());
            let mut head = ResponseHead::new();
            if message::response(&mut block, Version::Http2, &mut head).is_ok() {
                assert!(head.status <= 999);
                let declared = message::declared(&head, &block.bytes, false, ends);
                connection.answered(stream, declared.unwrap_or_default());
            }
        }
        (Act::Trailers, _) => {
            let checked = message::check_trailers(connection.block());
            events.push(format!("{checked:?}"));
        }
        (Act::Nothing, _) => {}
    }
}

fn one_line(text: &[u8]) {
    assert!(!text.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{}", text.escape_ascii());
}

fn whole_frames(mut output: &[u8]) {
    while let Some(head) = FrameHeader::read(output) {
        output = output.get(HEAD_BYTES + head.length..).expect("a frame is written whole");
    }
    assert!(output.is_empty(), "a frame's head is written whole");
}

/// Field sections: the sections of one connection are bounded, and the fields read the same after weir encodes them.
/// Each section begins with its length.
pub fn sections(data: &[u8]) {
    const LIMIT: usize = 400;
    let (mut decoder, mut encoder, mut peer) = (HpackDecoder::default(), Encoder::default(), HpackDecoder::default());
    let mut rest = data;
    while let Some((&length, after)) = rest.split_first() {
        let (section, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        let mut block = Block::default();
        if decoder.decode(section, LIMIT, &mut block).is_err() {
            return;
        }
        assert!(block.bytes.len() <= LIMIT);
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for field in &block.fields {
            encoder.field(field.name.of(&block.bytes), field.value.of(&block.bytes), field.known, &mut out);
        }
        // The longest code of a byte has 30 bits.
        assert!(out.len() <= 4 * block.bytes.len() + 12 * block.fields.len() + 12);
        let mut read = Block::default();
        peer.decode(&out, LIMIT, &mut read).expect("weir's own section is readable");
        let lower = |block: &Block| {
            block
                .iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim_ascii().to_vec()))
                .collect::<Vec<_>>()
        };
        assert_eq!(lower(&read), lower(&block));
    }
}

/// DNS messages: an answer is a part of the message, an answer of ours is bounded, and a question of ours is read as it
/// was asked.
pub fn dns(data: &[u8]) {
    let id = data.first_chunk().map_or(7, |bytes| u16::from_be_bytes(*bytes));
    let name = Name::of_text("a.test").expect("a name");
    for kind in [Kind::A, Kind::Aaaa, Kind::Srv] {
        if let Message::Reply(reply) = dns::read(data, id, &name, kind) {
            // The shortest record has a name of one byte, 10 bytes of its own, and 4 of data.
            assert!((reply.addresses.len() + reply.services.len()) * 15 <= data.len());
            let targets = reply.services.iter().map(|service| &service.target);
            for name in reply.alias.iter().chain(targets) {
                assert!(name.wire().len() <= dns::NAME_BYTES_MAX);
                assert!(name.to_string().bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
    let texts = || serve::Served::Texts(vec!["x".repeat(255); 20]);
    if let Some(answer) = serve::answer(data, 1, |_| texts()) {
        assert!(answer.len() <= data.len().max(12) + serve::TEXTS_MAX * (12 + 256));
        assert_eq!(answer.get(..2), data.get(..2));
    }
    let _ = update::verdict(data, id);
    let text = String::from_utf8_lossy(data);
    if let Ok(name) = Name::of_text(&text) {
        let mut asked = None;
        let answer = serve::answer(&dns::query(id, &name, Kind::A), 1, |name| {
            asked = Some(name.clone());
            serve::Served::Absent
        });
        assert_eq!(asked.as_ref(), Some(&name));
        let answer = answer.expect("a question has an answer");
        let Message::Reply(reply) = dns::read(&answer, id, &name, Kind::A) else { panic!("not a reply") };
        assert_eq!(reply.code, dns::Code::NAME_ERROR);
    }
}

/// Frames in a tunnel: the reports do not depend on how the bytes arrive, and there are at most half as many as bytes.
pub fn passing(data: &[u8]) {
    let seen = |pieces: &[&[u8]]| {
        let (mut passing, mut all) = (Passing::default(), Vec::<Seen>::new());
        pieces.iter().for_each(|piece| passing.take(piece, |seen| all.push(seen)));
        all
    };
    let whole = seen(&[data]);
    assert!(whole.len() <= data.len() / 2 + 1);
    for split in splits(data.len()) {
        let (head, tail) = data.split_at(split);
        assert_eq!(seen(&[head, tail]), whole, "split at {split}");
    }
    assert_eq!(seen(&data.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
}

/// An answer to a WebSocket's request, and a message in gRPC's frame.
pub fn small_answers(data: &[u8]) {
    let mut head = ResponseHead::new();
    if Parser::new().response(data, &mut head) == Ok(Progress::Done) {
        let protocols = ["chat".to_owned()];
        let key = HandshakeKey::new([7; 16]);
        let offer = DeflateOffer { server_max_window_bits: Some(10), ..DeflateOffer::default() };
        if let Ok(agreed) = check_answer(data, &head, &key, &protocols, Some(&offer)) {
            assert_eq!(agreed.protocol.as_deref(), Some("chat"));
        }
    }
    let _ = DeflateOffer::default().agreed(data);
    if let Some(message) = grpc::message(data) {
        assert!(message.len() + 5 <= data.len());
        let again = grpc::frame(message).expect("it is short");
        assert_eq!(data.get(..again.len()), Some(again.as_slice()));
    }
    assert_eq!(grpc::frame(data).as_deref().and_then(grpc::message), Some(data));
}

/// Dates, escapes and hosts: what weir writes, it reads.
pub fn texts(data: &[u8]) {
    if let Some(seconds) = date::parse_http_date(data)
        && (0..=date::SECONDS_MAX).contains(&seconds)
    {
        assert_eq!(date::parse_http_date(&date::http_date(seconds)), Some(seconds));
    }
    let sets: [(&str, &EscapeSet); 5] = [
        ("URI", &escape::URI),
        ("ARGS", &escape::ARGS),
        ("URI_COMPONENT", &escape::URI_COMPONENT),
        ("HTML", &escape::HTML),
        ("REFRESH", &escape::REFRESH),
    ];
    for (name, set) in sets {
        let mut out = Vec::new();
        escape::escape(data, set, &mut out);
        assert!(out.len() <= 3 * data.len());
        assert!(out.iter().all(|&byte| byte == b'%' || !set.contains(byte)), "{name}");
        let mut again = Vec::new();
        escape::unescape_uri(&out, Unescape::All, &mut again);
        assert!(!set.contains(b'%') || again == data, "{name}");
    }
    for how in [Unescape::All, Unescape::Uri, Unescape::Redirect] {
        let mut out = Vec::new();
        assert!(escape::unescape_uri(data, how, &mut out) <= data.len());
        assert!(out.len() <= data.len(), "{how:?}");
    }
    let mut out = Vec::new();
    escape::escape_html(data, &mut out);
    assert!(!out.iter().any(|byte| matches!(byte, b'<' | b'>' | b'"')) && out.len() <= 6 * data.len());
    if let Some(name) = host::normal(data) {
        assert!(!name.iter().any(|byte| byte.is_ascii_uppercase() || matches!(byte, 0..=b' ' | b'/' | b'@' | 0x7f..)));
        assert_eq!(host::normal(&name).as_ref(), Some(&name));
    }
}
