use super::super::frame::{FrameType, flag, push_head};
use super::*;
use crate::Version;
use crate::head::RequestHead;
use crate::known::Known;
use crate::section::{SectionEncoder, message};

/// A server that has received the client's SETTINGS and whose own SETTINGS the client has acknowledged.
fn server(limits: Limits) -> Connection {
    let mut server = Connection::new(Role::Server, limits);
    let mut settings = Vec::new();
    frame::push_settings(&mut settings, &[]);
    frame::push_settings_ack(&mut settings);
    assert_eq!(feed(&mut server, &settings), Ok(vec![H2Event::Nothing; 2]));
    server.output().clear();
    server
}

/// All events of some frames.
fn feed<'b>(connection: &mut Connection, mut bytes: &'b [u8]) -> Result<Vec<H2Event<'b>>, H2Fault> {
    let mut events = Vec::new();
    while !bytes.is_empty() {
        match connection.next(bytes)? {
            Step::Need(_) => return Ok(events),
            Step::Took { used, event } => {
                events.push(event);
                bytes = &bytes[used..];
            }
        }
    }
    Ok(events)
}

fn made(kind: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_head(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

/// GET http / of a.test, and one more field without indexing.
fn get(more: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x84, 0x01, 6];
    block.extend_from_slice(b"a.test");
    for (name, value) in more {
        block.extend([0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

const WHOLE: u8 = flag::END_HEADERS | flag::END_STREAM;

/// The frames that we sent, as this crate's reader sees them.
fn sent(connection: &mut Connection) -> Vec<String> {
    let output = std::mem::take(connection.output());
    let mut rest = output.as_slice();
    let mut frames = Vec::new();
    while let Some(head) = FrameHeader::read(rest) {
        let payload = &rest[HEAD_BYTES..HEAD_BYTES + head.length];
        frames.push(match Frame::read(head, payload) {
            Ok(frame) => format!("{frame:?}"),
            Err(fault) => fault.what.into(),
        });
        rest = &rest[HEAD_BYTES + head.length..];
    }
    frames
}

#[test]
fn a_request_and_its_answer() {
    let mut server = server(Limits::default());
    let bytes = made(FrameType::Headers, WHOLE, 1, &get(&[]));
    assert_eq!(feed(&mut server, &bytes), Ok(vec![H2Event::Head { stream: 1, ends: true, malformed: None }]));
    let mut head = RequestHead::default();
    assert_eq!(message::request(server.block(), Version::Http2, false, &mut head).map(|said| said.protocol), Ok(None));
    assert_eq!(head.line.of(&server.block().bytes), b"GET / HTTP/2.0");

    server.head(1, false, |encoder, out| encoder.status(200, out));
    assert_eq!(server.sendable(1), PAYLOAD_BYTES_DEFAULT);
    assert_eq!(server.data(1, 2, true), [0, 0, 2, 0, 1, 0, 0, 0, 1]);
    assert_eq!((server.open_streams(), server.sendable(1)), (0, 0));
}

#[test]
fn a_client_opens_one_stream_until_it_knows_how_many_it_may() {
    let mut client = Connection::new(Role::Client, Limits::default());
    assert_eq!((client.allowed(), client.room(), client.open(), client.open()), (None, 1, Some(1), None));
    let mut settings = Vec::new();
    frame::push_settings(&mut settings, &[(setting::STREAMS, 3)]);
    assert_eq!(feed(&mut client, &settings), Ok(vec![H2Event::Nothing]));
    assert_eq!((client.allowed(), client.room()), (Some(3), 2));
    assert_eq!((client.open(), client.open(), client.open()), (Some(3), Some(5), None));
    client.reset(3, ErrorCode::Cancel);
    assert_eq!(client.open(), Some(7));
    client.goaway(ErrorCode::NoError);
    client.reset(5, ErrorCode::Cancel);
    assert_eq!((client.room(), client.open()), (0, None));
}

#[test]
fn one_ping_at_a_time_is_asked_and_only_its_answer_is_one() {
    let mut client = Connection::new(Role::Client, Limits::default());
    client.output().clear();
    client.ping();
    client.ping();
    assert_eq!(sent(&mut client).len(), 1);
    let mut pong = Vec::new();
    frame::push_pong(&mut pong, *b"weirping");
    let twice = [pong.clone(), pong].concat();
    assert_eq!(feed(&mut client, &twice), Ok(vec![H2Event::Pong, H2Event::Nothing]));
}

#[test]
fn two_sides_understand_each_other() {
    let (mut client, mut server) =
        (Connection::new(Role::Client, Limits::default()), Connection::new(Role::Server, Limits::default()));
    let id = client.open();
    assert_eq!(id, Some(1));
    client.head(1, false, |encoder, out| {
        for (name, value) in [(":method", "POST"), (":scheme", "https"), (":authority", "a.test"), (":path", "/x")] {
            encoder.pseudo(name, value.as_bytes(), out);
        }
        encoder.field(b"Content-Length", b"3", Some(Known::ContentLength), out);
    });
    let mut bytes = std::mem::take(client.output());
    bytes.extend(client.data(1, 3, true));
    bytes.extend_from_slice(b"abc");
    let bytes = bytes.strip_prefix(PREFACE).unwrap_or_default();
    let events = feed(&mut server, bytes);
    let data = H2Event::Data { stream: 1, data: b"abc", counted: 3, ends: true };
    assert_eq!(
        events.map(|all| all[all.len() - 2..].to_vec()),
        Ok(vec![H2Event::Head { stream: 1, ends: false, malformed: None }, data])
    );
    server.consumed(1, 3);
    server.head(1, false, |encoder, out| encoder.status(103, out));
    server.head(1, true, |encoder, out| encoder.status(204, out));
    let bytes = std::mem::take(server.output());
    let events = feed(&mut client, &bytes).map(|all| all[all.len() - 2..].to_vec());
    assert_eq!(
        events,
        Ok(vec![
            H2Event::Head { stream: 1, ends: false, malformed: None },
            H2Event::Head { stream: 1, ends: true, malformed: None }
        ])
    );
    assert_eq!((client.open_streams(), server.open_streams()), (0, 0));
}

#[test]
fn sections_may_come_in_pieces_and_nothing_between_them() {
    let block = get(&[("x", "y")]);
    let (first, second) = block.split_at(4);
    let mut server = server(Limits::default());
    let mut bytes = made(FrameType::Headers, flag::END_STREAM, 1, first);
    bytes.extend(made(FrameType::Continuation, flag::END_HEADERS, 1, second));
    assert_eq!(
        feed(&mut server, &bytes),
        Ok(vec![H2Event::Nothing, H2Event::Head { stream: 1, ends: true, malformed: None }])
    );

    let mut bytes = made(FrameType::Headers, flag::END_STREAM, 3, first);
    bytes.extend(made(FrameType::Ping, 0, 0, b"12345678"));
    assert_eq!(feed(&mut server, &bytes).map_err(|fault| fault.code), Err(ErrorCode::Protocol));
}

#[test]
fn what_ends_the_connection() {
    let open = made(FrameType::Headers, flag::END_HEADERS, 1, &get(&[]));
    let after = |first: &[u8], second: Vec<u8>| [first, &second].concat();
    let setting = |id: u16, value: u32| {
        let mut out = Vec::new();
        frame::push_settings(&mut out, &[(id, value)]);
        out
    };
    let rows: [(&str, Vec<u8>, ErrorCode); 16] = [
        ("DATA on idle", made(FrameType::Data, 0, 1, b"x"), ErrorCode::Protocol),
        ("RST_STREAM on idle", made(FrameType::RstStream, 0, 1, &[0; 4]), ErrorCode::Protocol),
        ("WINDOW_UPDATE on idle", made(FrameType::WindowUpdate, 0, 1, &[0, 0, 0, 1]), ErrorCode::Protocol),
        ("CONTINUATION of nothing", made(FrameType::Continuation, flag::END_HEADERS, 1, b""), ErrorCode::Protocol),
        ("an even stream", made(FrameType::Headers, WHOLE, 2, &get(&[])), ErrorCode::Protocol),
        ("a broken block", made(FrameType::Headers, WHOLE, 1, &[0xff]), ErrorCode::Compression),
        (
            "a stream number that falls",
            after(&made(FrameType::Headers, WHOLE, 5, &get(&[])), made(FrameType::Headers, WHOLE, 3, &get(&[]))),
            ErrorCode::StreamClosed,
        ),
        ("PUSH_PROMISE", after(&open, made(FrameType::PushPromise, 0, 1, &[0; 4])), ErrorCode::Protocol),
        (
            "a window above 2^31-1",
            made(FrameType::WindowUpdate, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            ErrorCode::FlowControl,
        ),
        ("ENABLE_PUSH 2", setting(2, 2), ErrorCode::Protocol),
        ("INITIAL_WINDOW_SIZE 2^31", setting(4, 1 << 31), ErrorCode::FlowControl),
        ("MAX_FRAME_SIZE too small", setting(5, 16_383), ErrorCode::Protocol),
        ("MAX_FRAME_SIZE too large", setting(5, 1 << 24), ErrorCode::Protocol),
        (
            "windows that become too large",
            after(&after(&open, made(FrameType::WindowUpdate, 0, 1, &[0x7f, 0xff, 0, 0])), setting(4, 0x7fff_ffff)),
            ErrorCode::FlowControl,
        ),
        ("a frame too large", made(FrameType::Data, 0, 1, &[0; PAYLOAD_BYTES_DEFAULT + 1]), ErrorCode::FrameSize),
        (
            "many CONTINUATIONs",
            after(&made(FrameType::Headers, 0, 1, b""), made(FrameType::Continuation, 0, 1, b"").repeat(80)),
            ErrorCode::EnhanceYourCalm,
        ),
    ];
    for (what, bytes, code) in rows {
        let mut server = server(Limits::default());
        assert_eq!(feed(&mut server, &bytes).map_err(|fault| (fault.stream, fault.code)), Err((None, code)), "{what}");
    }
}

#[test]
fn what_may_be_answered_and_is_then_reset() {
    let head = |flags: u8, length: &str| {
        made(FrameType::Headers, flag::END_HEADERS | flags, 1, &get(&[("content-length", length)]))
    };
    let data = |flags: u8, bytes: &[u8]| made(FrameType::Data, flags, 1, bytes);
    for (what, frames) in [
        ("a body too long", vec![head(0, "1"), data(0, b"ab")]),
        ("a body too short", vec![head(0, "3"), data(flag::END_STREAM, b"ab")]),
        ("no body where one was said", vec![head(flag::END_STREAM, "3")]),
        ("a length that is none", vec![head(flag::END_STREAM, "+0")]),
    ] {
        let mut server = server(Limits::default());
        let bytes = frames.concat();
        let last = feed(&mut server, &bytes).map(|events| events.last().copied());
        let is_told = matches!(
            last,
            Ok(Some(H2Event::Malformed { stream: 1, .. } | H2Event::Head { stream: 1, malformed: Some(_), .. }))
        );
        assert!(is_told, "{what}: {last:?}");
        server.output().clear();
        server.head(1, true, |encoder, out| encoder.status(400, out));
        server.reset(1, ErrorCode::Protocol);
        assert_eq!(sent(&mut server).last().map(String::as_str), Some("Reset { stream: 1, code: 1 }"), "{what}");
    }
}

#[test]
fn a_body_waits_for_settings_that_allow_little() {
    let bytes = made(FrameType::Headers, flag::END_HEADERS, 1, &get(&[]));
    let mut hasty = Connection::new(Role::Server, Limits { window: 10, ..Limits::default() });
    let refused = feed(&mut hasty, &bytes);
    assert!(
        matches!(refused.as_deref(), Ok([H2Event::Reset { code, .. }]) if *code == ErrorCode::RefusedStream as u32),
        "{refused:?}"
    );
    let mut patient = server(Limits { window: 10, ..Limits::default() });
    let begun = feed(&mut patient, &bytes).map(|events| events.last().copied());
    assert!(matches!(begun, Ok(Some(H2Event::Head { stream: 1, .. }))), "{begun:?}");
    patient.widen(1, 100);
    assert_eq!(sent(&mut patient).last().map(String::as_str), Some("Window { stream: 1, more: 100 }"));
}

#[test]
fn what_ends_a_stream() {
    let head = |flags: u8, more: &[(&str, &str)]| made(FrameType::Headers, flag::END_HEADERS | flags, 1, &get(more));
    let data = |flags: u8, bytes: &[u8]| made(FrameType::Data, flags, 1, bytes);
    let rows: [(&str, Vec<Vec<u8>>, ErrorCode); 4] = [
        ("DATA after the end", vec![head(flag::END_STREAM, &[]), data(0, b"a")], ErrorCode::StreamClosed),
        (
            "HEADERS after the end",
            vec![head(flag::END_STREAM, &[]), head(flag::END_STREAM, &[])],
            ErrorCode::StreamClosed,
        ),
        ("trailers that do not end it", vec![head(0, &[]), head(0, &[])], ErrorCode::Protocol),
        (
            "a window above 2^31-1",
            vec![head(0, &[]), made(FrameType::WindowUpdate, 0, 1, &[0x7f, 0xff, 0xff, 0xff])],
            ErrorCode::FlowControl,
        ),
    ];
    for (what, frames, code) in rows {
        let mut server = server(Limits::default());
        let bytes = frames.concat();
        let last = feed(&mut server, &bytes).map(|events| events.last().copied());
        assert!(
            matches!(last, Ok(Some(H2Event::Reset { stream: 1, code: found, fault: Some(_) })) if found == code as u32),
            "{what}: {last:?}"
        );
        assert!(sent(&mut server).contains(&format!("{:?}", Frame::Reset { stream: 1, code: code as u32 })), "{what}");
        // Frames that were on their way are not a fault; they still count for the tables and the window.
        assert_eq!(feed(&mut server, &data(0, b"late")), Ok(vec![H2Event::Nothing]), "{what}");
    }
}

#[test]
fn a_second_reset_is_an_error_of_the_stream() {
    let mut server = server(Limits::default());
    let reset = |id: u32| made(FrameType::RstStream, 0, id, &0_u32.to_be_bytes());
    let bytes = [made(FrameType::Headers, WHOLE, 1, &get(&[])), reset(1), reset(1)].concat();
    let events = feed(&mut server, &bytes).unwrap();
    assert!(
        matches!(events[1..], [H2Event::Reset { code: 0, .. }, H2Event::Reset { stream: 1, code: 5, .. }]),
        "{events:?}"
    );
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let mut server = server(Limits { streams: 1, ..Limits::default() });
    let bytes = [made(FrameType::Headers, WHOLE, 1, &get(&[])), made(FrameType::Headers, WHOLE, 3, &get(&[]))].concat();
    let events = feed(&mut server, &bytes);
    let refused = |event: &H2Event<'_>| matches!(event, H2Event::Reset { stream: 3, code: 7, .. });
    assert!(events.is_ok_and(|all| all.last().is_some_and(refused)));
    server.goaway(ErrorCode::NoError);
    server.reset(1, ErrorCode::Cancel);
    let bytes = made(FrameType::Headers, WHOLE, 5, &get(&[]));
    assert!(feed(&mut server, &bytes).is_ok_and(|all| matches!(all[..], [H2Event::Reset { stream: 5, code: 7, .. }])));
}

#[test]
fn windows_bound_what_goes_out() {
    let mut server = server(Limits::default());
    let mut narrow = Vec::new();
    frame::push_settings(&mut narrow, &[(4, 10)]);
    let bytes = [narrow, made(FrameType::Headers, WHOLE, 1, &get(&[]))].concat();
    assert!(feed(&mut server, &bytes).is_ok());
    server.head(1, false, |encoder, out| encoder.status(200, out));
    assert_eq!(server.sendable(1), 10);
    server.data(1, 10, false);
    assert_eq!(server.sendable(1), 0);
    // RFC 9113 §6.9.2: a window may become negative.
    let mut narrower = Vec::new();
    frame::push_settings(&mut narrower, &[(4, 5)]);
    assert!(feed(&mut server, &narrower).is_ok());
    let more = made(FrameType::WindowUpdate, 0, 1, &[0, 0, 0, 6]);
    assert_eq!(feed(&mut server, &more), Ok(vec![H2Event::Writable { stream: Some(1) }]));
    assert_eq!(server.sendable(1), 1);
}

#[test]
fn what_was_consumed_is_given_back_by_halves() {
    let mut server = server(Limits { window: 100, ..Limits::default() });
    assert!(feed(&mut server, &made(FrameType::Headers, flag::END_HEADERS, 1, &get(&[]))).is_ok());
    assert!(feed(&mut server, &made(FrameType::Data, 0, 1, &[0; 60])).is_ok());
    server.consumed(1, 30);
    assert!(sent(&mut server).is_empty());
    server.consumed(1, 30);
    assert_eq!(sent(&mut server), [format!("{:?}", Frame::Window { stream: 1, more: 60 })]);
    assert!(feed(&mut server, &made(FrameType::Data, 0, 1, &[0; 100])).is_ok());
    let beyond = made(FrameType::Data, 0, 1, &[0; 1]);
    assert!(feed(&mut server, &beyond).is_ok_and(|all| matches!(all[..], [H2Event::Reset { code: 3, .. }])));
}

#[test]
fn floods_are_told_to_calm_down() {
    let flood = |frame: Vec<u8>| frame.repeat(3000);
    let mut resets = Vec::new();
    for stream in (1..2000).step_by(2) {
        resets.extend(made(FrameType::Headers, WHOLE, stream, &get(&[])));
        resets.extend(made(FrameType::RstStream, 0, stream, &[0; 4]));
    }
    let open = made(FrameType::Headers, flag::END_HEADERS, 1, &get(&[]));
    let empty = [open, flood(made(FrameType::Data, 0, 1, b""))].concat();
    for (what, bytes) in [
        ("PING", flood(made(FrameType::Ping, 0, 0, b"12345678"))),
        ("SETTINGS", flood(made(FrameType::Settings, 0, 0, b""))),
        ("PRIORITY", flood(made(FrameType::Priority, 0, 1, b"\0\0\0\x03\0"))),
        ("unknown", [0, 0, 0, 0xfa, 0, 0, 0, 0, 0].repeat(3000)),
        ("empty DATA", empty),
        ("rapid reset", resets),
    ] {
        let mut server = server(Limits::default());
        assert_eq!(feed(&mut server, &bytes).map_err(|fault| fault.code), Err(ErrorCode::EnhanceYourCalm), "{what}");
    }
}

#[test]
fn a_long_life_owes_nothing() {
    let mut server = server(Limits::default());
    for stream in (1..20_001).step_by(2) {
        assert!(feed(&mut server, &made(FrameType::Headers, WHOLE, stream, &get(&[]))).is_ok(), "{stream}");
        server.head(stream, false, |encoder, out| encoder.status(200, out));
        server.data(stream, 1, true);
        let window = made(FrameType::WindowUpdate, 0, 0, &[0, 0, 0, 1]);
        assert!(feed(&mut server, &window).is_ok(), "{stream}");
        server.output().clear();
    }
    assert_eq!(server.open_streams(), 0);
}

proptest::proptest! {
    #[test]
    fn any_frames_end_well(frames in proptest::collection::vec(
        (0u8..11, proptest::num::u8::ANY, 0u32..6, proptest::collection::vec(proptest::num::u8::ANY, 0..40)), 0..60,
    )) {
        let mut server = server(Limits { streams: 3, section: 100, window: 50, ..Limits::default() });
        for (kind, flags, stream, payload) in frames {
            let mut bytes = vec![0, 0, payload.len() as u8, kind, flags];
            bytes.extend(stream.to_be_bytes());
            bytes.extend(payload);
            if feed(&mut server, &bytes).is_err() {
                break;
            }
            assert!(server.open_streams() <= 3);
        }
    }
}
