//! Why HTTP/2 lost an exchange, by the codes of RFC 9113 §7.

use weir_wire::h2::{ErrorCode, H2Fault};

use super::super::streams::{Lost, coded};

/// The server reset the stream.
pub(super) fn reset(code: u32) -> Lost {
    let error = coded("RST_STREAM_", ErrorCode::name(code));
    if code == ErrorCode::RefusedStream as u32 { Lost::refused(error) } else { Lost::for_good(error) }
}

/// The server closes the connection, and has not begun with the stream.
pub(super) fn unbegun(code: u32) -> Lost {
    Lost::refused(coded("GOAWAY_", ErrorCode::name(code)))
}

/// The server broke a rule.
pub(super) fn fault(fault: H2Fault) -> Lost {
    Lost::for_good(coded("ERR_HTTP2_", ErrorCode::name(fault.code as u32)))
}
