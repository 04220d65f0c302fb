//! Frames (RFC 9113 §4 and §6): reads and writes the heads and payloads of the known kinds.

use super::priority::Priority;
use super::{ErrorCode, H2Fault};

/// Bytes before each payload.
pub const HEAD_BYTES: usize = 9;
/// The largest payload unless SETTINGS change it; our SETTINGS have the same value (RFC 9113 §6.5.2).
pub const PAYLOAD_BYTES_DEFAULT: usize = 16_384;
/// The largest payload that SETTINGS can allow.
pub const PAYLOAD_BYTES_MAX: usize = (1 << 24) - 1;
/// The largest window, and the largest increment of one (RFC 9113 §6.9.1).
pub const WINDOW_MAX: u32 = (1 << 31) - 1;
/// The largest number of a stream (RFC 9113 §5.1.1).
pub const STREAM_MAX: u32 = (1 << 31) - 1;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameType {
    /// A piece of a body.
    Data = 0,
    /// The beginning of a field section.
    Headers = 1,
    /// The priority of a stream; RFC 9113 §5.3.2 deprecates it.
    Priority = 2,
    /// The end of a stream, at once.
    RstStream = 3,
    /// The limits of its sender.
    Settings = 4,
    /// A request that the server makes itself.
    PushPromise = 5,
    /// A request for a sign of life, answered at once.
    Ping = 6,
    /// No new streams may begin.
    GoAway = 7,
    /// More bytes may be sent.
    WindowUpdate = 8,
    /// More of a field section.
    Continuation = 9,
}

impl FrameType {
    fn of(number: u8) -> Option<FrameType> {
        Some(match number {
            0 => FrameType::Data,
            1 => FrameType::Headers,
            2 => FrameType::Priority,
            3 => FrameType::RstStream,
            4 => FrameType::Settings,
            5 => FrameType::PushPromise,
            6 => FrameType::Ping,
            7 => FrameType::GoAway,
            8 => FrameType::WindowUpdate,
            9 => FrameType::Continuation,
            _ => return None,
        })
    }
}

/// Flags of a frame.
pub mod flag {
    /// In SETTINGS and PING: an answer.
    pub const ACK: u8 = 0x1;
    /// In DATA and HEADERS: the last frame of this side of the stream.
    pub const END_STREAM: u8 = 0x1;
    /// In HEADERS and CONTINUATION: the section is complete.
    pub const END_HEADERS: u8 = 0x4;
    /// In DATA and HEADERS: padding follows.
    pub const PADDED: u8 = 0x8;
    /// In HEADERS: a priority comes before the fields.
    pub const PRIORITY: u8 = 0x20;
}

/// The nine bytes before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The length of the payload, in bytes.
    pub length: usize,
    /// `None` for an unknown kind, which is ignored (RFC 9113 §4.1).
    pub kind: Option<FrameType>,
    /// See [`flag`].
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Reads the head at the beginning of a buffer; `None` while it is not complete.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<FrameHeader> {
        let &[a, b, c, kind, flags, s1, s2, s3, s4] = bytes.first_chunk::<HEAD_BYTES>()?;
        Some(FrameHeader {
            length: usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c),
            kind: FrameType::of(kind),
            flags,
            stream: u32::from_be_bytes([s1 & 0x7f, s2, s3, s4]),
        })
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// DATA; `counted` is its part of the windows, including padding.
    Data {
        /// The stream.
        stream: u32,
        /// The data without padding.
        data: &'a [u8],
        /// Bytes of the whole payload.
        counted: usize,
        /// Nothing follows on this side of the stream.
        ends: bool,
    },
    /// HEADERS, without padding.
    Headers {
        /// The stream.
        stream: u32,
        /// Its priority, if there is one.
        priority: Option<Priority>,
        /// The first piece of the section.
        block: &'a [u8],
        /// The section ends with it.
        is_whole: bool,
        /// No body follows.
        ends: bool,
    },
    /// CONTINUATION.
    Continuation {
        /// The stream.
        stream: u32,
        /// The next piece of the section.
        block: &'a [u8],
        /// The section ends with it.
        is_whole: bool,
    },
    /// PRIORITY.
    Priority {
        /// The stream.
        stream: u32,
        /// Its content.
        priority: Priority,
    },
    /// RST_STREAM.
    Reset {
        /// The stream.
        stream: u32,
        /// The reason, as a number: see [`ErrorCode`].
        code: u32,
    },
    /// SETTINGS: identifiers and values.
    Settings(Settings<'a>),
    /// SETTINGS that acknowledge ours.
    SettingsAck,
    /// PING.
    Ping([u8; 8]),
    /// PING that answers ours.
    Pong([u8; 8]),
    /// GOAWAY.
    GoAway {
        /// The last stream that its sender may process.
        last: u32,
        /// The reason, as a number: see [`ErrorCode`].
        code: u32,
    },
    /// WINDOW_UPDATE.
    Window {
        /// The stream; 0 is the connection.
        stream: u32,
        /// The increment, 1 or more.
        more: u32,
    },
    /// A frame of an unknown kind.
    Other {
        /// The stream.
        stream: u32,
    },
}

impl<'a> Frame<'a> {
    /// Makes a frame from a head and its payload, which must have the length in the head. It refuses errors that the
    /// RFC finds in the frame alone; the connection checks errors that depend on the stream's state.
    pub fn read(head: FrameHeader, payload: &'a [u8]) -> Result<Frame<'a>, H2Fault> {
        let FrameHeader { stream, .. } = head;
        let Some(kind) = head.kind else { return Ok(Frame::Other { stream }) };
        match kind {
            FrameType::Data => data(head, payload),
            FrameType::Headers => headers(head, payload),
            FrameType::Continuation => {
                on_stream(stream, "CONTINUATION on stream 0")?;
                Ok(Frame::Continuation { stream, block: payload, is_whole: head.has(flag::END_HEADERS) })
            }
            FrameType::Priority => {
                on_stream(stream, "PRIORITY on stream 0")?;
                let payload = payload
                    .try_into()
                    .map_err(|_| H2Fault::stream(stream, ErrorCode::FrameSize, "PRIORITY that is not 5 bytes"))?;
                Ok(Frame::Priority { stream, priority: priority(stream, payload)? })
            }
            FrameType::RstStream => {
                on_stream(stream, "RST_STREAM on stream 0")?;
                let code = number(payload)
                    .ok_or(H2Fault::connection(ErrorCode::FrameSize, "RST_STREAM that is not 4 bytes"))?;
                Ok(Frame::Reset { stream, code })
            }
            FrameType::Settings => settings(head, payload),
            FrameType::PushPromise => {
                Err(H2Fault::connection(ErrorCode::Protocol, "PUSH_PROMISE from a peer that may not push"))
            }
            FrameType::Ping => {
                on_connection(stream, "PING on a stream")?;
                let opaque = payload
                    .try_into()
                    .map_err(|_| H2Fault::connection(ErrorCode::FrameSize, "PING that is not 8 bytes"))?;
                Ok(if head.has(flag::ACK) { Frame::Pong(opaque) } else { Frame::Ping(opaque) })
            }
            FrameType::GoAway => {
                on_connection(stream, "GOAWAY on a stream")?;
                let numbers = payload.split_at_checked(4).zip(payload.get(4..8));
                let Some(((last, _), code)) = numbers else {
                    return Err(H2Fault::connection(ErrorCode::FrameSize, "GOAWAY below 8 bytes"));
                };
                let last = number(last).unwrap_or_default() & STREAM_MAX;
                Ok(Frame::GoAway { last, code: number(code).unwrap_or_default() })
            }
            FrameType::WindowUpdate => window(stream, payload),
        }
    }
}

/// The pairs of a SETTINGS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings<'a>(&'a [u8]);

impl Settings<'_> {
    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.0.len() / SETTING_BYTES
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Identifiers and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u32)> {
        self.0
            .as_chunks::<SETTING_BYTES>()
            .0
            .iter()
            .map(|&[a, b, c, d, e, f]| (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f])))
    }
}

const SETTING_BYTES: usize = 6;

fn data(head: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, H2Fault> {
    on_stream(head.stream, "DATA on stream 0")?;
    let data = unpadded(head, payload)?;
    Ok(Frame::Data { stream: head.stream, data, counted: payload.len(), ends: head.has(flag::END_STREAM) })
}

fn headers(head: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, H2Fault> {
    let stream = head.stream;
    on_stream(stream, "HEADERS on stream 0")?;
    let mut block = unpadded(head, payload)?;
    let mut said = None;
    if head.has(flag::PRIORITY) {
        let Some((first, rest)) = block.split_first_chunk() else {
            return Err(H2Fault::connection(ErrorCode::FrameSize, "HEADERS too short for its priority"));
        };
        said = Some(priority(stream, first)?);
        block = rest;
    }
    Ok(Frame::Headers {
        stream,
        priority: said,
        block,
        is_whole: head.has(flag::END_HEADERS),
        ends: head.has(flag::END_STREAM),
    })
}

/// RFC 7540 §5.3.1 calls this an error of the stream; nginx ends the connection for it.
fn priority(stream: u32, bytes: &[u8; 5]) -> Result<Priority, H2Fault> {
    let priority = Priority::read(bytes);
    if priority.on == stream {
        return Err(H2Fault::connection(ErrorCode::Protocol, "a stream that depends on itself"));
    }
    Ok(priority)
}

fn settings(head: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, H2Fault> {
    on_connection(head.stream, "SETTINGS on a stream")?;
    if head.has(flag::ACK) {
        return match payload {
            [] => Ok(Frame::SettingsAck),
            _ => Err(H2Fault::connection(ErrorCode::FrameSize, "SETTINGS that acknowledge with a payload")),
        };
    }
    if !payload.len().is_multiple_of(SETTING_BYTES) {
        return Err(H2Fault::connection(ErrorCode::FrameSize, "SETTINGS cut off within a pair"));
    }
    Ok(Frame::Settings(Settings(payload)))
}

fn window<'a>(stream: u32, payload: &[u8]) -> Result<Frame<'a>, H2Fault> {
    let Some(more) = number(payload) else {
        return Err(H2Fault::connection(ErrorCode::FrameSize, "WINDOW_UPDATE that is not 4 bytes"));
    };
    match (more & WINDOW_MAX, stream) {
        (0, 0) => Err(H2Fault::connection(ErrorCode::Protocol, "WINDOW_UPDATE by nothing")),
        (0, _) => Err(H2Fault::stream(stream, ErrorCode::Protocol, "WINDOW_UPDATE by nothing")),
        (more, _) => Ok(Frame::Window { stream, more }),
    }
}

/// A payload without its padding (RFC 9113 §6.1).
fn unpadded(head: FrameHeader, payload: &[u8]) -> Result<&[u8], H2Fault> {
    if !head.has(flag::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload
        .split_first()
        .ok_or(H2Fault::connection(ErrorCode::FrameSize, "a padded frame without its pad length"))?;
    rest.len()
        .checked_sub(usize::from(padding))
        .and_then(|length| rest.get(..length))
        .ok_or(H2Fault::connection(ErrorCode::Protocol, "more padding than payload"))
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

fn on_stream(stream: u32, otherwise: &'static str) -> Result<(), H2Fault> {
    if stream == 0 { Err(H2Fault::connection(ErrorCode::Protocol, otherwise)) } else { Ok(()) }
}

fn on_connection(stream: u32, otherwise: &'static str) -> Result<(), H2Fault> {
    if stream == 0 { Ok(()) } else { Err(H2Fault::connection(ErrorCode::Protocol, otherwise)) }
}

/// Appends a frame's head.
#[inline]
pub fn push_head(out: &mut Vec<u8>, length: usize, kind: FrameType, flags: u8, stream: u32) {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [s1, s2, s3, s4] = stream.to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind as u8, flags, s1, s2, s3, s4]);
}

/// Appends SETTINGS of these pairs.
pub fn push_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    push_head(out, settings.len() * SETTING_BYTES, FrameType::Settings, 0, 0);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the answer to SETTINGS.
pub fn push_settings_ack(out: &mut Vec<u8>) {
    push_head(out, 0, FrameType::Settings, flag::ACK, 0);
}

/// Appends PING.
pub fn push_ping(out: &mut Vec<u8>, opaque: [u8; 8]) {
    push_head(out, opaque.len(), FrameType::Ping, 0, 0);
    out.extend_from_slice(&opaque);
}

/// Appends the answer to a PING.
pub fn push_pong(out: &mut Vec<u8>, opaque: [u8; 8]) {
    push_head(out, opaque.len(), FrameType::Ping, flag::ACK, 0);
    out.extend_from_slice(&opaque);
}

/// Appends RST_STREAM.
pub fn push_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    push_head(out, 4, FrameType::RstStream, 0, stream);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

/// Appends GOAWAY.
pub fn push_goaway(out: &mut Vec<u8>, last: u32, code: ErrorCode) {
    push_head(out, 8, FrameType::GoAway, 0, 0);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

/// Appends WINDOW_UPDATE.
pub fn push_window(out: &mut Vec<u8>, stream: u32, more: u32) {
    push_head(out, 4, FrameType::WindowUpdate, 0, stream);
    out.extend_from_slice(&more.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<Frame<'_>, H2Fault> {
        Frame::read(FrameHeader { length: payload.len(), kind: FrameType::of(kind), flags, stream }, payload)
    }

    #[test]
    fn heads_come_back() {
        let mut out = Vec::new();
        push_head(&mut out, 0x01_02_03, FrameType::Headers, flag::END_HEADERS, 0x7fff_ffff);
        let head = FrameHeader { length: 0x01_02_03, kind: Some(FrameType::Headers), flags: 4, stream: 0x7fff_ffff };
        assert_eq!(FrameHeader::read(&out), Some(head));
        // The reserved bit has no meaning.
        out[5] |= 0x80;
        assert_eq!(FrameHeader::read(&out), Some(head));
        assert_eq!(FrameHeader::read(&out[..8]), None);
    }

    #[test]
    fn padding_and_priority_are_taken_off() {
        let data = Frame::Data { stream: 1, data: b"ab", counted: 5, ends: true };
        assert_eq!(frame(0, flag::PADDED | flag::END_STREAM, 1, b"\x02ab\0\0"), Ok(data));
        let priority = Some(Priority { on: 0, is_exclusive: false, weight: 17 });
        let headers = Frame::Headers { stream: 3, priority, block: b"xy", is_whole: true, ends: false };
        let payload = b"\x01\0\0\0\0\x10xy\0";
        assert_eq!(frame(1, flag::PADDED | flag::PRIORITY | flag::END_HEADERS, 3, payload), Ok(headers));
    }

    #[test]
    fn what_a_frame_must_not_be() {
        type Row = (u8, u8, u32, &'static [u8], ErrorCode, bool);
        let rows: [Row; 16] = [
            (0, 0, 0, b"", ErrorCode::Protocol, true),
            (0, flag::PADDED, 1, b"", ErrorCode::FrameSize, true),
            (0, flag::PADDED, 1, b"\x05abcd", ErrorCode::Protocol, true),
            (1, flag::PRIORITY, 1, b"\0\0\0\0", ErrorCode::FrameSize, true),
            (1, flag::PRIORITY, 1, b"\0\0\0\x01\0", ErrorCode::Protocol, true),
            (2, 0, 1, b"\0\0\0\x01\0", ErrorCode::Protocol, true),
            (2, 0, 1, b"\0\0\0\0", ErrorCode::FrameSize, false),
            (3, 0, 1, b"\0\0\0", ErrorCode::FrameSize, true),
            (4, 0, 1, b"", ErrorCode::Protocol, true),
            (4, flag::ACK, 0, b"\0", ErrorCode::FrameSize, true),
            (4, 0, 0, b"\0\0\0\0\0", ErrorCode::FrameSize, true),
            (5, 0, 1, b"\0\0\0\x02", ErrorCode::Protocol, true),
            (6, 0, 0, b"1234567", ErrorCode::FrameSize, true),
            (7, 0, 0, b"\0\0\0\0", ErrorCode::FrameSize, true),
            (8, 0, 0, b"\0\0\0\0", ErrorCode::Protocol, true),
            (8, 0, 1, b"\x80\0\0\0", ErrorCode::Protocol, false),
        ];
        for (kind, flags, stream, payload, code, ends_all) in rows {
            let fault = frame(kind, flags, stream, payload).err();
            let found = fault.map(|fault| (fault.code, fault.stream.is_none()));
            assert_eq!(found, Some((code, ends_all)), "{kind} {flags} {stream} {payload:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = |push: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            push(&mut out);
            out
        };
        let read = |bytes: &[u8]| {
            let head = FrameHeader::read(bytes);
            assert_eq!(head.map(|head| head.length), Some(bytes.len() - HEAD_BYTES));
            head.map(|head| format!("{:?}", Frame::read(head, &bytes[HEAD_BYTES..])))
        };
        let rows: [(Vec<u8>, Frame<'_>); 5] = [
            (written(&push_settings_ack), Frame::SettingsAck),
            (written(&|out| push_pong(out, *b"12345678")), Frame::Pong(*b"12345678")),
            (written(&|out| push_reset(out, 5, ErrorCode::Cancel)), Frame::Reset { stream: 5, code: 8 }),
            (written(&|out| push_goaway(out, 7, ErrorCode::NoError)), Frame::GoAway { last: 7, code: 0 }),
            (written(&|out| push_window(out, 9, 10)), Frame::Window { stream: 9, more: 10 }),
        ];
        for (bytes, expected) in rows {
            assert_eq!(read(&bytes), Some(format!("{:?}", Ok::<_, H2Fault>(expected))));
        }
        let bytes = written(&|out| push_settings(out, &[(3, 128), (4, 65536)]));
        match FrameHeader::read(&bytes).map(|head| Frame::read(head, &bytes[HEAD_BYTES..])) {
            Some(Ok(Frame::Settings(settings))) => {
                assert_eq!(settings.iter().collect::<Vec<_>>(), [(3, 128), (4, 65536)])
            }
            other => panic!("{other:?}"),
        }
    }
}
