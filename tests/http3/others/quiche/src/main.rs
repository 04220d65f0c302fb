//! A client of HTTP/3 with quiche, and the cases of h3spec by h3i: a line for each case, `NAME ok`, or `NAME failed` with the reason.
//!
//! `client PORT BODY FILE`: BODY is the file to send, FILE the one that `/big.txt` is.

#![forbid(unsafe_code)]

use std::net::UdpSocket;
use std::time::{Duration, Instant};
use std::{env, error, fs};

use h3i::actions::h3::{Action, StreamEvent, StreamEventType, WaitType, send_headers_frame_literal};
use h3i::client::sync_client;
use h3i::config::Config;
use h3i::frame::H3iFrame;
use h3i::quiche::h3::{self, Header, NameValue, frame::Frame};
use h3i::quiche::{self, ConnectionId, RecvInfo};

type Outcome<T> = Result<T, Box<dyn error::Error>>;

const PATIENCE: Duration = Duration::from_secs(60);
/// Codes of RFC 9114 §8.1 and RFC 9204 §6.
const FRAME_UNEXPECTED: u64 = 0x105;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const MISSING_SETTINGS: u64 = 0x10a;
const MESSAGE_ERROR: u64 = 0x10e;
const DECOMPRESSION_FAILED: u64 = 0x200;
const ENCODER_STREAM_ERROR: u64 = 0x201;
const DECODER_STREAM_ERROR: u64 = 0x202;

fn main() -> Outcome<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let port: u16 = words[0].parse()?;
    let (body, big) = (fs::read(&words[1])?, fs::read(&words[2])?);
    tell("get", ask(port, "GET", "/big.txt?quiche-get", b"").and_then(|said| is(said == big, "other bytes")));
    let length = format!("\"length\": {}", body.len());
    let posted = ask(port, "POST", "/echo?quiche-post", &body);
    tell(
        "post",
        posted.and_then(|said| is(String::from_utf8_lossy(&said).contains(&length), "the origin saw other bytes")),
    );
    for case in cases() {
        tell(case.name, case.play(port));
    }
    Ok(())
}

fn tell(name: &str, outcome: Outcome<()>) {
    match outcome {
        Ok(()) => println!("{name} ok"),
        Err(why) => println!("{name} failed {why}"),
    }
}

fn is(is_so: bool, otherwise: &str) -> Outcome<()> {
    if is_so { Ok(()) } else { Err(otherwise.into()) }
}

fn request(method: &str, path: &str) -> Vec<Header> {
    let fields = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)];
    fields.map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())).to_vec()
}

/// Makes one request on a connection of its own: the answer's body.
fn ask(port: u16, method: &str, path: &str, mut body: &[u8]) -> Outcome<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let (here, there) = (socket.local_addr()?, ([127, 0, 0, 1], port).into());
    let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(h3::APPLICATION_PROTOCOL)?;
    config.verify_peer(false);
    config.set_initial_max_data(10 << 20);
    config.set_initial_max_stream_data_bidi_local(1 << 20);
    config.set_initial_max_stream_data_uni(1 << 20);
    config.set_initial_max_streams_uni(10);
    let mut conn = quiche::connect(Some("localhost"), &ConnectionId::from_ref(&[7; 16]), here, there, &mut config)?;
    let (mut http, mut stream, mut said, mut status) = (None, None, Vec::new(), Vec::new());
    let (mut room, begun) = (vec![0; 65535], Instant::now());
    while begun.elapsed() < PATIENCE && !conn.is_closed() {
        if conn.is_established() && http.is_none() {
            let mut made = h3::Connection::with_transport(&mut conn, &h3::Config::new()?)?;
            stream = Some(made.send_request(&mut conn, &request(method, path), body.is_empty())?);
            http = Some(made);
        }
        if let (Some(http), Some(stream)) = (&mut http, stream) {
            while !body.is_empty() {
                match http.send_body(&mut conn, stream, body, true) {
                    Ok(count) => body = &body[count..],
                    Err(h3::Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            loop {
                match http.poll(&mut conn) {
                    Ok((_, h3::Event::Headers { list, .. })) => status = list[0].value().to_vec(),
                    Ok((id, h3::Event::Data)) => {
                        while let Ok(count) = http.recv_body(&mut conn, id, &mut room) {
                            said.extend_from_slice(&room[..count]);
                        }
                    }
                    Ok((_, h3::Event::Finished)) if status == b"200" => return Ok(said),
                    Ok((_, h3::Event::Finished)) => {
                        return Err(format!("status {}", String::from_utf8_lossy(&status)).into());
                    }
                    Ok((_, h3::Event::Reset(code))) => return Err(format!("reset {code:#x}").into()),
                    Ok(_) => {}
                    Err(h3::Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        while let Ok((count, info)) = conn.send(&mut room) {
            socket.send_to(&room[..count], info.to)?;
        }
        let wait = conn.timeout().unwrap_or(PATIENCE).clamp(Duration::from_millis(1), PATIENCE);
        socket.set_read_timeout(Some(wait))?;
        match socket.recv_from(&mut room) {
            // A datagram that quiche refuses is lost.
            Ok((count, from)) => drop(conn.recv(&mut room[..count], RecvInfo { from, to: here })),
            Err(_) => conn.on_timeout(),
        }
    }
    Err(format!("no answer; closed: {:?}", conn.peer_error()).into())
}

/// A rule that a client breaks, and the code that ends its connection or its stream.
struct Case {
    name: &'static str,
    actions: Vec<Action>,
    codes: &'static [u64],
}

fn uni(stream_id: u64, stream_type: u64) -> Action {
    Action::OpenUniStream { stream_id, fin_stream: false, stream_type, expected_result: Default::default() }
}

fn frame(stream_id: u64, frame: Frame) -> Action {
    Action::SendFrame { stream_id, fin_stream: false, frame, expected_result: Default::default() }
}

fn bytes(stream_id: u64, bytes: &[u8]) -> Action {
    Action::StreamBytes { stream_id, fin_stream: false, bytes: bytes.to_vec(), expected_result: Default::default() }
}

fn end(stream_id: u64) -> Action {
    Action::StreamBytes { stream_id, fin_stream: true, bytes: Vec::new(), expected_result: Default::default() }
}

fn no_settings() -> Frame {
    Frame::Settings {
        max_field_section_size: None,
        qpack_max_table_capacity: None,
        qpack_blocked_streams: None,
        connect_protocol_enabled: None,
        h3_datagram: None,
        grease: None,
        additional_settings: None,
        raw: None,
    }
}

/// The client's control stream with its SETTINGS.
fn control() -> Vec<Action> {
    vec![uni(2, 0), frame(2, no_settings())]
}

fn malformed(fields: &[(&str, &str)]) -> Vec<Action> {
    let fields = fields.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())).collect();
    [control(), vec![send_headers_frame_literal(0, true, fields)]].concat()
}

fn on_control(wrong: Frame) -> Vec<Action> {
    [control(), vec![frame(2, wrong)]].concat()
}

/// A reset of a stream whose type the server has: one that is reset before that is any stream (RFC 9114 §6.2).
fn control_reset() -> Vec<Action> {
    let wait = WaitType::WaitDuration(Duration::from_millis(200)).into();
    [control(), vec![Action::FlushPackets, wait, Action::ResetStream { stream_id: 2, error_code: 0 }]].concat()
}

/// The cases of h3spec about HTTP/3 and QPACK.
fn cases() -> Vec<Case> {
    let case = |name, actions, codes| Case { name, actions, codes };
    let (method, scheme, authority, path) =
        ((":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/"));
    vec![
        case(
            "data-before-headers",
            [control(), vec![frame(0, Frame::Data { payload: b"x".to_vec() })]].concat(),
            &[FRAME_UNEXPECTED],
        ),
        case("pseudo-field-twice", malformed(&[method, method, scheme, authority, path]), &[MESSAGE_ERROR]),
        case("pseudo-field-absent", malformed(&[scheme, authority, path]), &[MESSAGE_ERROR]),
        case(
            "pseudo-field-prohibited",
            malformed(&[method, scheme, authority, path, (":status", "200")]),
            &[MESSAGE_ERROR],
        ),
        case("pseudo-field-after-fields", malformed(&[method, scheme, authority, ("x", "y"), path]), &[MESSAGE_ERROR]),
        case("no-settings", vec![uni(2, 0), frame(2, Frame::MaxPushId { push_id: 1 })], &[MISSING_SETTINGS]),
        case("data-on-control", on_control(Frame::Data { payload: b"x".to_vec() }), &[FRAME_UNEXPECTED]),
        case("headers-on-control", on_control(Frame::Headers { header_block: vec![0, 0, 0xd1] }), &[FRAME_UNEXPECTED]),
        case("settings-twice", on_control(no_settings()), &[FRAME_UNEXPECTED]),
        case(
            "cancel-push-on-request",
            [control(), vec![frame(0, Frame::CancelPush { push_id: 0 })]].concat(),
            &[FRAME_UNEXPECTED],
        ),
        case(
            "static-index-99",
            [control(), vec![bytes(0, &[1, 4, 0, 0, 0xff, 0x24])]].concat(),
            &[DECOMPRESSION_FAILED],
        ),
        case(
            "capacity-above-limit",
            [control(), vec![uni(6, 2), bytes(6, &[0x3f, 0xff, 0xff, 0x7f])]].concat(),
            &[ENCODER_STREAM_ERROR],
        ),
        case("increment-0", [control(), vec![uni(6, 3), bytes(6, &[0])]].concat(), &[DECODER_STREAM_ERROR]),
        case("control-ends", [control(), vec![end(2)]].concat(), &[CLOSED_CRITICAL_STREAM]),
        case("control-is-reset", control_reset(), &[CLOSED_CRITICAL_STREAM]),
    ]
}

impl Case {
    fn play(mut self, port: u16) -> Outcome<()> {
        let finished = StreamEvent { stream_id: 0, event_type: StreamEventType::Finished };
        self.actions.push(Action::FlushPackets);
        // An answer or a reset ends the wait; the end of the connection ends all.
        self.actions.push(WaitType::StreamEvent(finished).into());
        let close = quiche::ConnectionError { is_app: true, error_code: 0x100, reason: Vec::new() };
        self.actions.push(Action::ConnectionClose { error: close });
        let config = Config::new()
            .with_host_port("localhost".into())
            .with_connect_to(format!("127.0.0.1:{port}"))
            .with_idle_timeout(5000);
        let summary = sync_client::connect(config.verify_peer(false).build()?, self.actions, None)
            .map_err(|error| format!("{error:?}"))?;
        let closed = summary.conn_close_details.peer_error().map(|end| end.error_code);
        let mut seen = format!("closed {closed:x?}");
        for came in summary.stream_map.stream(0) {
            match came {
                H3iFrame::ResetStream(reset) if self.codes.contains(&reset.error_code) => return Ok(()),
                // weir answers a request that it could read, and says what is wrong with it (RFC 9114 §4.1.2).
                H3iFrame::Headers(head)
                    if self.codes == [MESSAGE_ERROR] && head.status_code().is_some_and(|status| status == b"400") =>
                {
                    return Ok(());
                }
                other => seen += &format!(", {other:?}"),
            }
        }
        is(closed.is_some_and(|code| self.codes.contains(&code)), &seen)
    }
}
