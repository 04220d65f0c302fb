//! The reasons for which a stream or a connection ends (RFC 9114 §8, RFC 9204 §6).

use std::fmt;

use crate::calm::Restless;

/// Error codes of HTTP/3 and QPACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum H3Code {
    /// No error.
    NoError = 0x100,
    /// The peer broke the protocol, and no other code says how.
    GeneralProtocol = 0x101,
    /// An error of the sender.
    Internal = 0x102,
    /// The peer created a stream that it may not create.
    StreamCreation = 0x103,
    /// A stream ended that the connection needs.
    ClosedCriticalStream = 0x104,
    /// A frame is not allowed on this stream, or not now.
    FrameUnexpected = 0x105,
    /// A frame's layout or length is wrong.
    Frame = 0x106,
    /// Too much of something.
    ExcessiveLoad = 0x107,
    /// A stream or a push has a number that it may not have.
    Id = 0x108,
    /// The SETTINGS have an error.
    Settings = 0x109,
    /// The control stream does not begin with SETTINGS.
    MissingSettings = 0x10a,
    /// Nothing was processed: the request may be sent again.
    RequestRejected = 0x10b,
    /// The request or its answer is not wanted any more.
    RequestCancelled = 0x10c,
    /// The stream ended before its request did.
    RequestIncomplete = 0x10d,
    /// The message is malformed.
    Message = 0x10e,
    /// The connection of a CONNECT failed.
    Connect = 0x10f,
    /// The request must be sent again over HTTP/1.1.
    VersionFallback = 0x110,
    /// A field section cannot be decompressed.
    QpackDecompression = 0x200,
    /// An instruction of the encoder stream is wrong.
    QpackEncoderStream = 0x201,
    /// An instruction of the decoder stream is wrong.
    QpackDecoderStream = 0x202,
}

impl H3Code {
    /// The RFC's name of a code, as a peer sent it.
    pub fn name(code: u64) -> &'static str {
        match code {
            0x100 => "H3_NO_ERROR",
            0x101 => "H3_GENERAL_PROTOCOL_ERROR",
            0x102 => "H3_INTERNAL_ERROR",
            0x103 => "H3_STREAM_CREATION_ERROR",
            0x104 => "H3_CLOSED_CRITICAL_STREAM",
            0x105 => "H3_FRAME_UNEXPECTED",
            0x106 => "H3_FRAME_ERROR",
            0x107 => "H3_EXCESSIVE_LOAD",
            0x108 => "H3_ID_ERROR",
            0x109 => "H3_SETTINGS_ERROR",
            0x10a => "H3_MISSING_SETTINGS",
            0x10b => "H3_REQUEST_REJECTED",
            0x10c => "H3_REQUEST_CANCELLED",
            0x10d => "H3_REQUEST_INCOMPLETE",
            0x10e => "H3_MESSAGE_ERROR",
            0x10f => "H3_CONNECT_ERROR",
            0x110 => "H3_VERSION_FALLBACK",
            0x200 => "QPACK_DECOMPRESSION_FAILED",
            0x201 => "QPACK_ENCODER_STREAM_ERROR",
            0x202 => "QPACK_DECODER_STREAM_ERROR",
            _ => "UNKNOWN",
        }
    }
}

/// A violation by the peer: it ends a stream, or the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H3Fault {
    /// The stream that it ends, in both directions; `None` for the connection.
    pub stream: Option<u64>,
    /// The code for the peer.
    pub code: H3Code,
    /// The text for the log.
    pub what: &'static str,
}

impl H3Fault {
    /// A fault that ends the connection.
    pub const fn connection(code: H3Code, what: &'static str) -> H3Fault {
        H3Fault { stream: None, code, what }
    }

    /// A fault that ends a stream.
    pub const fn stream(stream: u64, code: H3Code, what: &'static str) -> H3Fault {
        H3Fault { stream: Some(stream), code, what }
    }
}

impl From<Restless> for H3Fault {
    fn from(_: Restless) -> H3Fault {
        H3Fault::connection(H3Code::ExcessiveLoad, Restless::WHAT)
    }
}

impl fmt::Display for H3Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl std::error::Error for H3Fault {}
