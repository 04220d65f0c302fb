//! One connection: its streams, windows and settings, and the frames that must be sent to the peer.
//!
//! ```text
//!  input ─ next ─► Event (head, data, trailers, reset, writable, goaway)
//!  head / data / reset / consumed / goaway ─► output
//! ```
//!
//! The caller sends the bodies: `data` returns the nine bytes before a piece, and `sendable` says how many bytes may
//! follow.
//!
//! Invariants: [`Limits`] bounds the memory for all input; every field section is decoded, wanted or not, because
//! later sections depend on it; a frame that the RFC forbids ends its stream or the connection with the RFC's code.

mod order;
mod send;
mod streams;
#[cfg(test)]
mod tests;

use crate::calm::Calm;
pub use crate::role::Role;
use crate::section::{Block, BodyCount};

use super::frame::{
    self, Frame, FrameHeader, HEAD_BYTES, PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX, Settings, WINDOW_MAX,
};
use super::hpack::{Encoder, HpackDecoder, TABLE_BYTES_DEFAULT};
use super::{ErrorCode, H2Fault};

use order::PriorityTree;
pub use order::Turn;
use streams::{H2Stream, Incoming, Streams};

/// The first bytes of a client (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The size of both windows before a peer changes it.
const WINDOW_DEFAULT: u32 = 65_535;
/// Streams that a client opens before it knows the server's limit. The RFC sets no limit, but some servers (gRPC's)
/// reset streams above their own limit, with codes that do not allow another try.
const STREAMS_UNTOLD: usize = 1;
/// CONTINUATION frames of one section, at most.
const CONTINUATIONS_MAX: usize = 64;
/// Answers to PING and SETTINGS that wait because the peer does not read, in bytes.
const OUTPUT_MAX: usize = 64 * 1024;

/// SETTINGS, by their numbers (RFC 9113 §6.5.2, RFC 8441 §3).
mod setting {
    pub const TABLE: u16 = 1;
    pub const PUSH: u16 = 2;
    pub const STREAMS: u16 = 3;
    pub const WINDOW: u16 = 4;
    pub const PAYLOAD: u16 = 5;
    pub const SECTION: u16 = 6;
    pub const CONNECT: u16 = 8;
}

/// Limits on the memory that a peer may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams that the peer may have open at the same time.
    pub streams: u32,
    /// Bytes of a field section, both compressed and uncompressed.
    pub section: usize,
    /// The window of each stream: bytes that the peer may send before they are consumed.
    pub window: u32,
    /// The window of the connection, not below the RFC's 65,535.
    pub connection_window: u32,
    /// Extended CONNECT (RFC 8441) is allowed.
    pub is_connect_extended: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            streams: 128,
            section: 32 * 1024,
            window: 65_536,
            connection_window: 1 << 20,
            is_connect_extended: false,
        }
    }
}

/// The meaning of a frame for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum H2Event<'b> {
    /// Nothing for the caller.
    Nothing,
    /// A request (on a server), an answer or interim answer (on a client): its fields are in [`Connection::block`].
    Head {
        /// The stream.
        stream: u32,
        /// There is no body.
        ends: bool,
        /// On a server: how its length breaks the rules of a message. The server may answer it, and must then call
        /// [`Connection::reset`] (RFC 9113 §8.1.1).
        malformed: Option<&'static str>,
    },
    /// A piece of a body. Call [`Connection::consumed`] after handling it; `data` may be empty.
    Data {
        /// The stream.
        stream: u32,
        /// The piece.
        data: &'b [u8],
        /// Bytes to be returned to the windows: padding counts.
        counted: usize,
        /// It is the last piece.
        ends: bool,
    },
    /// Trailers, in [`Connection::block`]; they also end the stream.
    Trailers {
        /// The stream.
        stream: u32,
    },
    /// On a server: a body does not have its declared length. As with a malformed head, the server may answer it.
    Malformed {
        /// The stream.
        stream: u32,
        /// The error.
        what: &'static str,
    },
    /// A stream has ended early: forget it.
    Reset {
        /// The stream.
        stream: u32,
        /// The peer's code, or the code sent to the peer.
        code: u32,
        /// The peer's violation; `None` if the peer reset the stream.
        fault: Option<H2Fault>,
    },
    /// More bytes may be sent: on this stream, or on any.
    Writable {
        /// `None` for all streams.
        stream: Option<u32>,
    },
    /// The answer to [`Connection::ping`] arrived.
    Pong,
    /// The peer processes no stream of ours above `last`.
    GoAway {
        /// The last stream that it may have processed.
        last: u32,
        /// Its code.
        code: u32,
    },
}

/// The result of reading the input once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'b> {
    /// No frame is complete before this many bytes have arrived.
    Need(usize),
    /// A frame.
    Took {
        /// Its length: the caller drops these bytes from the input.
        used: usize,
        /// The frame's meaning.
        event: H2Event<'b>,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Limits,
    decoder: HpackDecoder,
    encoder: Encoder,
    streams: Streams,
    peer: Peer,
    /// The incomplete section.
    section: Option<Section>,
    /// Its bytes so far.
    fragments: Vec<u8>,
    block: Block,
    output: Vec<u8>,
    scratch: Vec<u8>,
    calm: Calm,
    /// The stream that the peer reset last.
    reset_last: u32,
    order: PriorityTree,
    send_window: i64,
    receive_window: i64,
    unreturned: u32,
    /// The peer has acknowledged our SETTINGS.
    is_settled: bool,
    /// The peer's SETTINGS arrived.
    is_greeted: bool,
    /// Our PINGs without an answer.
    pings: u32,
    is_going: bool,
}

/// The values of the peer's SETTINGS.
#[derive(Clone, Copy, Debug)]
struct Peer {
    window: u32,
    payload: usize,
    streams: u32,
    is_connect_extended: bool,
}

#[derive(Clone, Copy, Debug)]
struct Section {
    stream: u32,
    ends: bool,
    continuations: usize,
}

impl Connection {
    /// A new connection. Its SETTINGS wait to be sent; on a client, its preface comes before them.
    pub fn new(role: Role, limits: Limits) -> Connection {
        let mut output = Vec::new();
        if role == Role::Client {
            output.extend_from_slice(PREFACE);
        }
        let section = u32::try_from(limits.section).unwrap_or(u32::MAX);
        let mut settings =
            vec![(setting::STREAMS, limits.streams), (setting::WINDOW, limits.window), (setting::SECTION, section)];
        match role {
            Role::Client => settings.push((setting::PUSH, 0)),
            Role::Server if limits.is_connect_extended => settings.push((setting::CONNECT, 1)),
            Role::Server => {}
        }
        frame::push_settings(&mut output, &settings);
        let connection_window = limits.connection_window.clamp(WINDOW_DEFAULT, WINDOW_MAX);
        if connection_window > WINDOW_DEFAULT {
            frame::push_window(&mut output, 0, connection_window - WINDOW_DEFAULT);
        }
        Connection {
            role,
            limits: Limits { connection_window, ..limits },
            decoder: HpackDecoder::new(TABLE_BYTES_DEFAULT),
            encoder: Encoder::default(),
            streams: Streams::new(role),
            peer: Peer {
                window: WINDOW_DEFAULT,
                payload: PAYLOAD_BYTES_DEFAULT,
                streams: u32::MAX,
                is_connect_extended: false,
            },
            section: None,
            fragments: Vec::new(),
            block: Block::default(),
            output,
            scratch: Vec::new(),
            calm: Calm::default(),
            reset_last: 0,
            order: PriorityTree::default(),
            send_window: i64::from(WINDOW_DEFAULT),
            receive_window: i64::from(connection_window),
            unreturned: 0,
            is_settled: false,
            is_greeted: false,
            pings: 0,
            is_going: false,
        }
    }

    /// The limits that it was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The bytes to send before anything else; the caller takes all of them.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// The fields of the last [`H2Event::Head`] or [`H2Event::Trailers`]; to keep them, swap the block for another.
    pub fn block(&mut self) -> &mut Block {
        &mut self.block
    }

    /// Streams that are open.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether a field section has begun but not ended.
    pub fn is_in_section(&self) -> bool {
        self.section.is_some()
    }

    /// Whether weir has sent GOAWAY, so that the peer may begin no more streams.
    pub fn is_going(&self) -> bool {
        self.is_going
    }

    /// Whether the peer allows `:protocol` (RFC 8441 §3).
    pub fn is_connect_extended(&self) -> bool {
        self.peer.is_connect_extended
    }

    /// Reads the frame at the beginning of the input. A fault ends the connection: send [`Connection::fail`]'s output.
    pub fn next<'b>(&mut self, input: &'b [u8]) -> Result<Step<'b>, H2Fault> {
        let Some(head) = FrameHeader::read(input) else { return Ok(Step::Need(HEAD_BYTES)) };
        if head.length > PAYLOAD_BYTES_DEFAULT {
            return Err(H2Fault::connection(ErrorCode::FrameSize, "a frame larger than SETTINGS allow"));
        }
        let used = HEAD_BYTES + head.length;
        let Some(payload) = input.get(HEAD_BYTES..used) else { return Ok(Step::Need(used)) };
        self.calm.frame()?;
        let event = match Frame::read(head, payload) {
            Ok(frame) => self.take(frame),
            Err(fault) => Err(fault),
        };
        let event = match event {
            Ok(event) => event,
            Err(H2Fault { stream: Some(_), .. }) if self.section.is_some() => {
                return Err(H2Fault::connection(ErrorCode::Protocol, "a frame within a field section"));
            }
            Err(fault) => self.end_stream_by(fault)?,
        };
        if self.output.len() > OUTPUT_MAX {
            return Err(H2Fault::connection(ErrorCode::EnhanceYourCalm, "a peer that asks and does not read"));
        }
        Ok(Step::Took { used, event })
    }

    /// Writes the frame that reports a fault to the peer and ends the connection.
    pub fn fail(&mut self, fault: H2Fault) {
        frame::push_goaway(&mut self.output, self.streams.last_of_peer(), fault.code);
    }

    fn take<'b>(&mut self, frame: Frame<'b>) -> Result<H2Event<'b>, H2Fault> {
        if self.section.is_some() && !matches!(frame, Frame::Continuation { .. }) {
            return Err(H2Fault::connection(ErrorCode::Protocol, "a frame within a field section"));
        }
        match frame {
            Frame::Data { stream, data, counted, ends } => self.data_came(stream, data, counted, ends),
            Frame::Headers { stream, priority, block, is_whole, ends } => {
                match priority {
                    // A server cannot set the priority of streams.
                    _ if self.role == Role::Client => {}
                    Some(priority) => self.order.set(stream, priority),
                    None => self.order.begin(stream),
                }
                self.headers_came(stream, block, is_whole, ends)
            }
            Frame::Priority { .. } if self.role == Role::Client => Ok(H2Event::Nothing),
            Frame::Priority { stream, priority } => {
                self.order.set(stream, priority);
                Ok(H2Event::Nothing)
            }
            Frame::Continuation { stream, block, is_whole } => self.continuation_came(stream, block, is_whole),
            Frame::Reset { stream, code } => self.reset_came(stream, code),
            Frame::Settings(settings) => self.settings_came(settings),
            Frame::Ping(opaque) => {
                frame::push_pong(&mut self.output, opaque);
                Ok(H2Event::Nothing)
            }
            Frame::GoAway { last, code } => Ok(H2Event::GoAway { last, code }),
            Frame::Window { stream, more } => self.window_came(stream, more),
            Frame::SettingsAck => {
                self.is_settled = true;
                Ok(H2Event::Nothing)
            }
            Frame::Pong(_) => {
                let is_ours = self.pings > 0;
                self.pings = self.pings.saturating_sub(1);
                Ok(if is_ours { H2Event::Pong } else { H2Event::Nothing })
            }
            Frame::Other { .. } => Ok(H2Event::Nothing),
        }
    }

    /// A fault of one stream: the stream is reset, and the connection goes on.
    fn end_stream_by(&mut self, fault: H2Fault) -> Result<H2Event<'static>, H2Fault> {
        let Some(stream) = fault.stream else { return Err(fault) };
        if self.streams.is_idle(stream) {
            // There is no stream yet that could be reset.
            return Err(H2Fault { stream: None, ..fault });
        }
        self.calm.reset()?;
        self.reset(stream, fault.code);
        Ok(H2Event::Reset { stream, code: fault.code as u32, fault: Some(fault) })
    }

    fn data_came<'b>(&mut self, id: u32, data: &'b [u8], counted: usize, ends: bool) -> Result<H2Event<'b>, H2Fault> {
        if self.streams.is_idle(id) {
            return Err(H2Fault::connection(ErrorCode::Protocol, "DATA on an idle stream"));
        }
        self.receive_window -= counted as i64;
        if self.receive_window < 0 {
            return Err(H2Fault::connection(ErrorCode::FlowControl, "more than the connection's window"));
        }
        self.calm.data(data.len(), ends);
        let Some(stream) = self.streams.get(id) else {
            self.return_window(counted);
            if self.streams.was_reset(id) {
                return Ok(H2Event::Nothing);
            }
            return Err(H2Fault::stream(id, ErrorCode::StreamClosed, "DATA on a closed stream"));
        };
        if stream.incoming == Incoming::Broken {
            self.return_window(counted);
            return Ok(H2Event::Nothing);
        }
        let was_body = stream.incoming == Incoming::Body;
        if let Err(fault) = stream.take_data(id, data.len(), counted, ends) {
            self.return_window(counted);
            return if was_body { self.misshapen(fault) } else { Err(fault) };
        }
        if ends {
            self.streams.forget_if_over(id);
        }
        Ok(H2Event::Data { stream: id, data, counted, ends })
    }

    /// A message without its declared length. A server may still answer it.
    fn misshapen(&mut self, fault: H2Fault) -> Result<H2Event<'static>, H2Fault> {
        match (self.role, fault) {
            (Role::Server, H2Fault { stream: Some(stream), code: ErrorCode::Protocol, what }) => {
                if let Some(known) = self.streams.get(stream) {
                    known.incoming = Incoming::Broken;
                }
                self.calm.reset()?;
                Ok(H2Event::Malformed { stream, what })
            }
            _ => Err(fault),
        }
    }

    fn headers_came(&mut self, id: u32, block: &[u8], is_whole: bool, ends: bool) -> Result<H2Event<'static>, H2Fault> {
        let section = Section { stream: id, ends, continuations: 0 };
        if is_whole {
            return self.section_came(section, block);
        }
        self.fragments.clear();
        self.section = Some(section);
        self.keep_fragment(block)
    }

    fn continuation_came(&mut self, id: u32, block: &[u8], is_whole: bool) -> Result<H2Event<'static>, H2Fault> {
        let Some(section) = self.section.as_mut().filter(|section| section.stream == id) else {
            return Err(H2Fault::connection(ErrorCode::Protocol, "CONTINUATION of nothing"));
        };
        section.continuations += 1;
        if section.continuations > CONTINUATIONS_MAX {
            return Err(H2Fault::connection(ErrorCode::EnhanceYourCalm, "too many CONTINUATION frames"));
        }
        self.keep_fragment(block)?;
        let Some(section) = self.section.take_if(|_| is_whole) else { return Ok(H2Event::Nothing) };
        let fragments = std::mem::take(&mut self.fragments);
        let event = self.section_came(section, &fragments);
        self.fragments = fragments;
        event
    }

    fn keep_fragment(&mut self, block: &[u8]) -> Result<H2Event<'static>, H2Fault> {
        if self.fragments.len() + block.len() > self.limits.section {
            return Err(H2Fault::connection(ErrorCode::EnhanceYourCalm, "a field section larger than SETTINGS allow"));
        }
        self.fragments.extend_from_slice(block);
        Ok(H2Event::Nothing)
    }

    /// A whole section: decoded first, whatever its purpose.
    fn section_came(&mut self, section: Section, bytes: &[u8]) -> Result<H2Event<'static>, H2Fault> {
        let Section { stream: id, ends, .. } = section;
        let is_new = self.role == Role::Server && !id.is_multiple_of(2) && self.streams.is_idle(id);
        if is_new {
            self.streams.note(id);
        }
        self.block.clear();
        self.block.sent = bytes.len();
        self.decoder
            .decode(bytes, self.limits.section, &mut self.block)
            .map_err(|_| H2Fault::connection(ErrorCode::Compression, "a field section that cannot be decompressed"))?;
        if self.streams.get(id).is_some() {
            return self.further_section(id, ends);
        }
        if self.streams.was_reset(id) {
            return Ok(H2Event::Nothing);
        }
        match self.role {
            Role::Server if id.is_multiple_of(2) => {
                Err(H2Fault::connection(ErrorCode::Protocol, "a stream of the client with an even number"))
            }
            Role::Server if is_new => self.request_came(id, ends),
            _ if self.streams.is_idle(id) => Err(H2Fault::connection(ErrorCode::Protocol, "HEADERS on an idle stream")),
            _ => Err(H2Fault::connection(ErrorCode::StreamClosed, "HEADERS on a closed stream")),
        }
    }

    fn request_came(&mut self, id: u32, ends: bool) -> Result<H2Event<'static>, H2Fault> {
        let is_too_many = self.streams.len() >= self.limits.streams as usize;
        if self.is_going || is_too_many {
            return Err(H2Fault::stream(
                id,
                ErrorCode::RefusedStream,
                "more streams than SETTINGS allow, or after GOAWAY",
            ));
        }
        if !ends && !self.is_settled && self.limits.window < WINDOW_DEFAULT {
            // nginx: the client cannot know yet that it may send so little.
            return Err(H2Fault::stream(id, ErrorCode::RefusedStream, "a body before SETTINGS were acknowledged"));
        }
        let mut stream = H2Stream::new(self.peer.window, self.limits.window);
        let mut malformed = None;
        match BodyCount::of(&self.block) {
            Ok(body) => stream.body = body,
            Err(what) => malformed = Some(what),
        }
        if !ends {
            stream.incoming = Incoming::Body;
        } else if let Err(fault) = stream.end_incoming(id) {
            malformed = Some(fault.what);
        }
        self.streams.add(id, stream);
        self.calm.request();
        Ok(H2Event::Head { stream: id, ends, malformed })
    }

    /// A section on an open stream: an answer, or trailers.
    fn further_section(&mut self, id: u32, ends: bool) -> Result<H2Event<'static>, H2Fault> {
        let Some(stream) = self.streams.get(id) else { return Ok(H2Event::Nothing) };
        match stream.incoming {
            Incoming::Done => Err(H2Fault::stream(id, ErrorCode::StreamClosed, "HEADERS after END_STREAM")),
            Incoming::Broken => Ok(H2Event::Nothing),
            Incoming::Head => {
                // Whether this is the final answer depends on its status: the caller reports that with `answered`.
                if ends {
                    stream.incoming = Incoming::Done;
                    self.streams.forget_if_over(id);
                }
                Ok(H2Event::Head { stream: id, ends, malformed: None })
            }
            Incoming::Body if !ends => Err(H2Fault::stream(id, ErrorCode::Protocol, "trailers without END_STREAM")),
            Incoming::Body => {
                if let Err(fault) = stream.end_incoming(id) {
                    return self.misshapen(fault);
                }
                self.streams.forget_if_over(id);
                Ok(H2Event::Trailers { stream: id })
            }
        }
    }

    fn reset_came(&mut self, id: u32, code: u32) -> Result<H2Event<'static>, H2Fault> {
        if self.streams.is_idle(id) {
            return Err(H2Fault::connection(ErrorCode::Protocol, "RST_STREAM on an idle stream"));
        }
        if !self.streams.remove(id) {
            // RFC 9113 §5.1: a frame after RST_STREAM is an error of the stream. No reset answers a reset (§5.4.2).
            let again = H2Event::Reset { stream: id, code: ErrorCode::StreamClosed as u32, fault: None };
            return Ok(if id == self.reset_last { again } else { H2Event::Nothing });
        }
        self.calm.reset()?;
        self.reset_last = id;
        Ok(H2Event::Reset { stream: id, code, fault: None })
    }

    fn window_came(&mut self, id: u32, more: u32) -> Result<H2Event<'static>, H2Fault> {
        if id == 0 {
            self.send_window += i64::from(more);
            if self.send_window > i64::from(WINDOW_MAX) {
                return Err(H2Fault::connection(ErrorCode::FlowControl, "a window above 2^31-1"));
            }
            return Ok(H2Event::Writable { stream: None });
        }
        if self.streams.is_idle(id) {
            return Err(H2Fault::connection(ErrorCode::Protocol, "WINDOW_UPDATE on an idle stream"));
        }
        let Some(stream) = self.streams.get(id) else { return Ok(H2Event::Nothing) };
        stream.send_window += i64::from(more);
        if stream.send_window > i64::from(WINDOW_MAX) {
            return Err(H2Fault::stream(id, ErrorCode::FlowControl, "a window above 2^31-1"));
        }
        Ok(H2Event::Writable { stream: Some(id) })
    }

    fn settings_came(&mut self, settings: Settings<'_>) -> Result<H2Event<'static>, H2Fault> {
        let mut is_wider = false;
        self.is_greeted = true;
        for (id, value) in settings.iter() {
            match id {
                setting::TABLE => self.encoder.allow(value as usize),
                setting::PUSH if value > 1 || value == 1 && self.role == Role::Client => {
                    return Err(H2Fault::connection(
                        ErrorCode::Protocol,
                        "ENABLE_PUSH that is neither 0 nor the client's 1",
                    ));
                }
                setting::STREAMS => self.peer.streams = value,
                setting::WINDOW if value > WINDOW_MAX => {
                    return Err(H2Fault::connection(ErrorCode::FlowControl, "INITIAL_WINDOW_SIZE above 2^31-1"));
                }
                setting::WINDOW => {
                    let delta = i64::from(value) - i64::from(self.peer.window);
                    is_wider |= delta > 0;
                    self.peer.window = value;
                    if !self.streams.widen(delta) {
                        return Err(H2Fault::connection(ErrorCode::FlowControl, "a window above 2^31-1"));
                    }
                }
                setting::PAYLOAD => {
                    self.peer.payload = value as usize;
                    if !(PAYLOAD_BYTES_DEFAULT..=PAYLOAD_BYTES_MAX).contains(&self.peer.payload) {
                        return Err(H2Fault::connection(ErrorCode::Protocol, "MAX_FRAME_SIZE out of its range"));
                    }
                }
                setting::CONNECT if value > 1 => {
                    return Err(H2Fault::connection(
                        ErrorCode::Protocol,
                        "ENABLE_CONNECT_PROTOCOL that is neither 0 nor 1",
                    ));
                }
                setting::CONNECT => self.peer.is_connect_extended = value == 1,
                _ => {}
            }
        }
        frame::push_settings_ack(&mut self.output);
        Ok(if is_wider { H2Event::Writable { stream: None } } else { H2Event::Nothing })
    }
}
