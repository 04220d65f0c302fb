//! HTTP/2 (RFC 9113): frames, compressed fields, streams. No socket, no clock.

pub mod composed;
pub mod connection;
pub mod frame;
pub mod hpack;
pub mod message;

use std::fmt;

/// Why a stream or a connection ends (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Code {
    /// Nothing is wrong.
    NoError = 0,
    /// What was sent must not be.
    Protocol = 1,
    /// Its sender's fault.
    Internal = 2,
    /// More was sent than the window allowed.
    FlowControl = 3,
    /// SETTINGS were not acknowledged in time.
    SettingsTimeout = 4,
    /// The stream was over on that side.
    StreamClosed = 5,
    /// A frame's length is wrong.
    FrameSize = 6,
    /// Nothing was done: it may be asked for again.
    RefusedStream = 7,
    /// It is not wanted any more.
    Cancel = 8,
    /// The tables of compression may differ.
    Compression = 9,
    /// A CONNECT's connection failed.
    Connect = 10,
    /// Too much of something.
    EnhanceYourCalm = 11,
    /// TLS is too weak.
    InadequateSecurity = 12,
    /// HTTP/1.1 is needed.
    Http11Required = 13,
}

impl Code {
    /// The RFC's name of a code, as a peer sent it.
    pub fn name(code: u32) -> &'static str {
        match code {
            0 => "NO_ERROR",
            1 => "PROTOCOL_ERROR",
            2 => "INTERNAL_ERROR",
            3 => "FLOW_CONTROL_ERROR",
            4 => "SETTINGS_TIMEOUT",
            5 => "STREAM_CLOSED",
            6 => "FRAME_SIZE_ERROR",
            7 => "REFUSED_STREAM",
            8 => "CANCEL",
            9 => "COMPRESSION_ERROR",
            10 => "CONNECT_ERROR",
            11 => "ENHANCE_YOUR_CALM",
            12 => "INADEQUATE_SECURITY",
            13 => "HTTP_1_1_REQUIRED",
            _ => "UNKNOWN",
        }
    }
}

/// What a peer did that it must not: the end of a stream, or of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whose; `None` is the connection's.
    pub stream: Option<u32>,
    /// What the peer is told.
    pub code: Code,
    /// What the log is told.
    pub what: &'static str,
}

impl Fault {
    /// One that ends the connection.
    pub const fn connection(code: Code, what: &'static str) -> Fault {
        Fault { stream: None, code, what }
    }

    /// One that ends a stream.
    pub const fn stream(stream: u32, code: Code, what: &'static str) -> Fault {
        Fault { stream: Some(stream), code, what }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl std::error::Error for Fault {}
