use super::connection::{H3Connection, H3News, OurStream};
use super::frame::{GREASE, H3FrameHead, H3Kind};
use super::settings::H3Limits;
use super::stream::{H3Event, RequestStream};
use super::{H3Code, H3Fault, varint, write};
use crate::Version;
use crate::head::RequestHead;
use crate::known::Known;
use crate::role::Role;
use crate::section::{SectionEncoder, Urgency, message};

mod whole;

/// The peer's streams: control, encoder, decoder.
const CONTROL: u64 = 2;
const ENCODER: u64 = 6;
const DECODER: u64 = 10;

fn made(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::push(kind, &mut out);
    varint::push(payload.len() as u64, &mut out);
    out.extend_from_slice(payload);
    out
}

fn number(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint::push(value, &mut out);
    out
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    write::section(&mut out, |encoder, out| {
        for (name, value) in fields {
            match name.starts_with(':') {
                true => encoder.pseudo(name, value.as_bytes(), out),
                false => encoder.field(name.as_bytes(), value.as_bytes(), Known::of(name.as_bytes()), out),
            }
        }
    });
    out
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/")];

fn get(more: &[(&'static str, &'static str)]) -> Vec<u8> {
    headers(&GET.iter().chain(more).copied().collect::<Vec<_>>())
}

fn connection(role: Role) -> H3Connection {
    let mut connection = H3Connection::new(role, H3Limits::default());
    assert_eq!(news(&mut connection, CONTROL, &[&[0][..], &made(4, &[])].concat()), Ok(vec![H3News::Settings]));
    connection.output(OurStream::Control).clear();
    connection
}

fn news(connection: &mut H3Connection, id: u64, mut bytes: &[u8]) -> Result<Vec<H3News>, H3Fault> {
    let mut all = Vec::new();
    loop {
        let (used, found) = connection.uni(id, bytes, false)?;
        bytes = &bytes[used..];
        match found {
            Some(H3News::Unwanted) | None => {
                all.extend(found);
                return Ok(all);
            }
            Some(found) => all.push(found),
        }
    }
}

/// All events of a stream whose bytes come at once, and then its end if `is_last`.
fn events(
    connection: &mut H3Connection,
    stream: &mut RequestStream,
    bytes: &[u8],
    is_last: bool,
) -> Result<Vec<H3Event>, H3Fault> {
    let (mut all, mut used) = (Vec::new(), 0);
    loop {
        let step = stream.next(connection, &bytes[used..], is_last)?;
        let before = used;
        used += step.used;
        match step.event {
            Some(H3Event::Data { range, ends }) => {
                all.push(H3Event::Data { range: range.start + before..range.end + before, ends });
            }
            Some(H3Event::Blocked) => return Ok([all, vec![H3Event::Blocked]].concat()),
            Some(event) => all.push(event),
            None => {
                assert_eq!(used, bytes.len());
                return Ok(all);
            }
        }
    }
}

/// The events of one request on a new connection, which ends with the bytes.
fn request(bytes: &[u8]) -> Result<Vec<H3Event>, H3Fault> {
    let mut server = connection(Role::Server);
    let mut stream = RequestStream::begin(&mut server, 0)?;
    events(&mut server, &mut stream, bytes, true)
}

fn code(fault: &H3Fault) -> (Option<u64>, H3Code) {
    (fault.stream, fault.code)
}

const HEAD: H3Event = H3Event::Head { ends: false, malformed: None };

#[test]
fn our_control_stream_begins_with_settings() {
    let mut ours = H3Connection::new(Role::Server, H3Limits { is_connect_extended: true, ..H3Limits::default() });
    let bytes = std::mem::take(ours.output(OurStream::Control));
    assert_eq!(bytes.first(), Some(&0));
    let head = H3FrameHead::read(&bytes[1..]).map(|(head, _)| head.kind);
    assert_eq!(head, Some(H3Kind::Settings));
    let mut peer = H3Connection::new(Role::Client, H3Limits::default());
    assert_eq!(news(&mut peer, 3, &bytes), Ok(vec![H3News::Settings]));
    assert_eq!(peer.peer().map(|peer| (peer.section, peer.is_connect_extended)), Some((Some(32 * 1024), true)));
    assert!(ours.output(OurStream::Decoder).is_empty());
}

#[test]
fn a_request_and_its_answer() {
    let mut server = connection(Role::Server);
    let mut stream = RequestStream::begin(&mut server, 0).unwrap();
    let bytes = get(&[("priority", "u=1, i")]);
    let expected = vec![H3Event::Head { ends: true, malformed: None }];
    assert_eq!(events(&mut server, &mut stream, &bytes, true), Ok(expected));
    assert_eq!((stream.is_done(), stream.urgency()), (true, Urgency { level: 1, is_incremental: true }));
    let mut head = RequestHead::default();
    assert_eq!(message::request(server.block(), Version::Http3, false, &mut head).map(|said| said.protocol), Ok(None));
    assert_eq!(head.line.of(&server.block().bytes), b"GET / HTTP/3.0");

    let mut out = Vec::new();
    write::section(&mut out, |encoder, out| encoder.status(200, out));
    write::data_head(2, &mut out);
    assert_eq!(out, [1, 3, 0, 0, 0xd9, 0, 2]);
    let mut client = connection(Role::Client);
    let mut answer = RequestStream::begin(&mut client, 0).unwrap();
    out.extend_from_slice(b"ok");
    let expected = vec![HEAD, H3Event::Data { range: 7..9, ends: true }];
    assert_eq!(events(&mut client, &mut answer, &out, true), Ok(expected));
}

#[test]
fn a_request_needs_its_host() {
    let fields = [GET[0], GET[1], GET[3]];
    for (more, is_right) in [(None, false), (Some(("host", "")), false), (Some(("host", "a.test")), true)] {
        let mut server = connection(Role::Server);
        let mut stream = RequestStream::begin(&mut server, 0).unwrap();
        let all: Vec<_> = fields.iter().copied().chain(more).collect();
        assert!(events(&mut server, &mut stream, &headers(&all), true).is_ok());
        let said = message::request(server.block(), Version::Http3, false, &mut RequestHead::default());
        assert_eq!(said.is_ok(), is_right, "{more:?}");
    }
}

#[test]
fn frames_of_a_request_have_an_order() {
    let (head, data, trailers) = (get(&[]), made(0, b"abc"), headers(&[("x", "y")]));
    let unknown = made(GREASE, b"what");
    let whole = [&unknown[..], &head, &unknown, &data, &made(0, b""), &data, &unknown, &trailers, &unknown].concat();
    let start = head.len() + 2 * unknown.len() + 2;
    let expected = vec![
        HEAD,
        H3Event::Data { range: start..start + 3, ends: false },
        H3Event::Data { range: start + 7..start + 10, ends: false },
        H3Event::Trailers { ends: false },
        H3Event::End,
    ];
    assert_eq!(request(&whole), Ok(expected));

    let connect = headers(&[(":method", "CONNECT"), (":authority", "a.test:1")]);
    assert!(request(&[&connect[..], &data].concat()).is_ok());
    let rows = [
        data.clone(),
        [&head[..], &trailers, &data].concat(),
        [&head[..], &trailers, &trailers].concat(),
        [&connect[..], &trailers].concat(),
        made(4, &[]),
        [&head[..], &made(7, &[0])].concat(),
        [&head[..], &made(3, &[0])].concat(),
        [&head[..], &made(0xd, &[0])].concat(),
        [&head[..], &made(5, &[0])].concat(),
        [&head[..], &made(0xf0700, &[0])].concat(),
        made(2, &[]),
        [&head[..], &made(6, &[])].concat(),
        [&head[..], &made(8, &[])].concat(),
        [&head[..], &made(9, &[])].concat(),
    ];
    for bytes in rows {
        let fault = request(&bytes).err();
        assert_eq!(fault.as_ref().map(code), Some((None, H3Code::FrameUnexpected)), "{bytes:x?}");
    }
}

#[test]
fn a_stream_that_ends_early_is_a_fault_of_the_stream_or_of_its_frame() {
    for bytes in [vec![], made(GREASE, b"x")] {
        assert_eq!(request(&bytes).err().as_ref().map(code), Some((Some(0), H3Code::RequestIncomplete)));
    }
    let whole = [get(&[]), made(0, b"abc"), made(GREASE, b"abc"), headers(&[("x", "y")])].concat();
    let ends = [0, get(&[]).len()].map(|end| [end, end + 5, end + 5 + 6]);
    for short in 1..whole.len() {
        let fault = request(&whole[..short]).err();
        let is_between = ends[1].contains(&short);
        assert_eq!(fault.as_ref().map(code), (!is_between).then_some((None, H3Code::Frame)), "{short}");
    }
}

#[test]
fn a_body_has_its_declared_length() {
    let with = |length| get(&[("content-length", length)]);
    let data = made(0, b"abc");
    let longer = Err("a body longer than its content-length");
    let shorter = Err("a body shorter than its content-length");
    let rows = [
        ([with("3"), data.clone()].concat(), Ok(())),
        ([with("6"), data.clone(), data.clone(), headers(&[])].concat(), Ok(())),
        ([with("2"), data.clone()].concat(), longer),
        ([with("4"), data.clone()].concat(), shorter),
        ([with("4"), data.clone(), made(GREASE, b"")].concat(), shorter),
        ([with("4"), data.clone(), headers(&[])].concat(), shorter),
        (with("4"), shorter),
        (with("x"), Err("a content-length that is none")),
    ];
    for (bytes, expected) in rows {
        let all = request(&bytes).unwrap();
        let found = all.iter().find_map(|event| match event {
            H3Event::Malformed(what) | H3Event::Head { malformed: Some(what), .. } => Some(*what),
            _ => None,
        });
        assert_eq!(found, expected.err(), "{all:?}");
    }
    // After a broken message the rest has no meaning, and the peer is told to forget its references. A client ends the stream.
    let mut server = connection(Role::Server);
    let mut stream = RequestStream::begin(&mut server, 4).unwrap();
    let bytes = [with("2"), data.clone(), vec![9, 9, 9]].concat();
    let expected = vec![HEAD, H3Event::Malformed("a body longer than its content-length")];
    assert_eq!(events(&mut server, &mut stream, &bytes, true), Ok(expected));
    assert_eq!(std::mem::take(server.output(OurStream::Decoder)), [3, 0x44]);
    let mut client = connection(Role::Client);
    let mut answer = RequestStream::begin(&mut client, 0).unwrap();
    assert_eq!(events(&mut client, &mut answer, &headers(&[(":status", "200")]), false), Ok(vec![HEAD]));
    answer.answered(Some(2));
    let fault = events(&mut client, &mut answer, &data, true).err();
    assert_eq!(fault.as_ref().map(code), Some((Some(0), H3Code::Message)));
}

#[test]
fn interim_answers_come_before_the_final_one() {
    let mut client = connection(Role::Client);
    let mut answer = RequestStream::begin(&mut client, 0).unwrap();
    let bytes = [headers(&[(":status", "103")]), headers(&[(":status", "200")]), headers(&[("x", "y")])].concat();
    assert_eq!(events(&mut client, &mut answer, &bytes, true), Ok(vec![HEAD, HEAD, H3Event::Trailers { ends: true }]));
    let mut answer = RequestStream::begin(&mut client, 4).unwrap();
    let bytes = [headers(&[(":status", "100")]), made(0, b"a")].concat();
    let fault = events(&mut client, &mut answer, &bytes, true).err();
    assert_eq!(fault.as_ref().map(code), Some((None, H3Code::FrameUnexpected)));
    let mut answer = RequestStream::begin(&mut client, 12).unwrap();
    let fault = events(&mut client, &mut answer, &headers(&[(":status", "100")]), true).err();
    assert_eq!(fault.as_ref().map(code), Some((Some(12), H3Code::RequestIncomplete)));
    let mut answer = RequestStream::begin(&mut client, 8).unwrap();
    let fault = events(&mut client, &mut answer, &made(5, &[0, 0, 0]), true).err();
    assert_eq!(fault.as_ref().map(code), Some((None, H3Code::Id)));
}

#[test]
fn a_section_beyond_the_limit_is_left_out() {
    let mut server = H3Connection::new(Role::Server, H3Limits { section: 100, ..H3Limits::default() });
    let mut stream = RequestStream::begin(&mut server, 4).unwrap();
    // Less than the limit in Huffman's code.
    let bytes = headers(&[GET[0], GET[1], GET[2], GET[3], ("y", &"1".repeat(60))]);
    let bytes = [bytes, made(1, &[0xff; 101]), made(1, &[])].concat();
    let mut used = 0;
    for _ in 0..2 {
        let step = stream.next(&mut server, &bytes[used..], false).unwrap();
        used += step.used;
        assert!(server.block().is_too_large);
        assert!(matches!(step.event, Some(H3Event::Head { .. } | H3Event::Trailers { .. })));
    }
    // The trailers were not decoded, so the peer is told to forget their references.
    assert_eq!(std::mem::take(server.output(OurStream::Decoder)), [3, 0x44]);
    assert!(stream.next(&mut server, &bytes[used..], false).is_err());
}

#[test]
fn a_blocked_section_goes_on_when_its_insertions_arrive() {
    let mut server = connection(Role::Server);
    let mut streams = [0, 4].map(|id| RequestStream::begin(&mut server, id).unwrap());
    // :method, :scheme, :path; the dynamic entry 0 is :authority.
    let section = [&[2, 0, 0xd1, 0xd7, 0xc1, 0x80][..]].concat();
    let bytes = [made(1, &section), made(0, b"abc")].concat();
    let mut used = [0, 0];
    for (at, stream) in streams.iter_mut().enumerate() {
        // The first comes byte by byte.
        if at == 0 {
            for byte in &bytes[..7] {
                assert_eq!(stream.next(&mut server, &[*byte], false).unwrap().used, 1);
                used[at] += 1;
            }
        }
        let step = stream.next(&mut server, &bytes[used[at]..], true).unwrap();
        used[at] += step.used;
        assert_eq!((step.event, used[at]), (Some(H3Event::Blocked), 8));
        assert_eq!(
            stream.next(&mut server, &bytes[8..], true).map(|step| (step.used, step.event)),
            Ok((0, Some(H3Event::Blocked)))
        );
    }
    assert_eq!(news(&mut server, ENCODER, &[2, 0x3f, 0xe1, 0x1f]), Ok(vec![]));
    assert_eq!(server.take_ready(), None);
    assert_eq!(news(&mut server, ENCODER, b"\xc0\x06a.test"), Ok(vec![H3News::Ready]));
    let mut ready = [server.take_ready(), server.take_ready()];
    ready.sort();
    assert_eq!((ready, server.take_ready()), ([Some(0), Some(4)], None));
    for stream in &mut streams {
        let expected = vec![HEAD, H3Event::Data { range: 2..5, ends: true }];
        assert_eq!(events(&mut server, stream, &bytes[8..], true), Ok(expected));
    }
    assert_eq!(server.block().iter().last(), Some((&b":authority"[..], &b"a.test"[..])));
    // The stream's type, an increment, two sections.
    assert_eq!(std::mem::take(server.output(OurStream::Decoder)), [3, 1, 0x80, 0x84]);
    server.cancel(8);
    assert_eq!(std::mem::take(server.output(OurStream::Decoder)), [0x48]);
}

#[test]
fn a_section_of_any_length_has_the_shortest_form_of_its_length() {
    for length in [0, 1, 58, 59, 60, 61, 100, 16_376, 16_377, 16_378, 16_379, 16_380, 20_000] {
        let mut out = vec![7];
        write::section(&mut out, |encoder, out| encoder.field(b"x", &vec![1; length], None, out));
        let (head, used) = H3FrameHead::read(&out[1..]).unwrap();
        assert_eq!((head.kind, head.length as usize + used), (H3Kind::Headers, out.len() - 1), "{length}");
        assert_eq!(used, 1 + varint::length(head.length), "{length}");
    }
}

#[test]
fn an_idle_connection_is_small() {
    let mut server = connection(Role::Server);
    drop(std::mem::take(server.output(OurStream::Control)));
    assert!(size_of::<H3Connection>() <= 600, "{}", size_of::<H3Connection>());
    assert!(size_of::<RequestStream>() <= 112, "{}", size_of::<RequestStream>());
}
