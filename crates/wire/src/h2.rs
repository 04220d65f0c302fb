//! HTTP/2 (RFC 9113): frames, compressed fields, streams. No socket, no clock.

pub mod connection;
pub mod frame;
pub mod hpack;
pub mod priority;

use std::fmt;

use crate::calm::Restless;

/// Why a stream or a connection ends (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ErrorCode {
    /// No error.
    NoError = 0,
    /// The peer broke the protocol.
    Protocol = 1,
    /// An error of the sender.
    Internal = 2,
    /// The peer sent more than the window allowed.
    FlowControl = 3,
    /// SETTINGS were not acknowledged in time.
    SettingsTimeout = 4,
    /// The stream had ended on that side.
    StreamClosed = 5,
    /// A frame's length is wrong.
    FrameSize = 6,
    /// Nothing was processed: the request may be sent again.
    RefusedStream = 7,
    /// The stream is not wanted any more.
    Cancel = 8,
    /// The compression tables may differ.
    Compression = 9,
    /// The connection of a CONNECT failed.
    Connect = 10,
    /// Too much of something.
    EnhanceYourCalm = 11,
    /// TLS is too weak.
    InadequateSecurity = 12,
    /// HTTP/1.1 is needed.
    Http11Required = 13,
}

impl ErrorCode {
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

/// A violation by the peer: it ends a stream, or the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H2Fault {
    /// The stream that it ends; `None` for the connection.
    pub stream: Option<u32>,
    /// The code for the peer.
    pub code: ErrorCode,
    /// The text for the log.
    pub what: &'static str,
}

impl H2Fault {
    /// A fault that ends the connection.
    pub const fn connection(code: ErrorCode, what: &'static str) -> H2Fault {
        H2Fault { stream: None, code, what }
    }

    /// A fault that ends a stream.
    pub const fn stream(stream: u32, code: ErrorCode, what: &'static str) -> H2Fault {
        H2Fault { stream: Some(stream), code, what }
    }
}

impl From<Restless> for H2Fault {
    fn from(_: Restless) -> H2Fault {
        H2Fault::connection(ErrorCode::EnhanceYourCalm, Restless::WHAT)
    }
}

impl fmt::Display for H2Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl std::error::Error for H2Fault {}
