//! Why HTTP/3 lost an exchange, by the codes of RFC 9114 §8.1 and RFC 9000 §20.1.

use weir_meter::Step;
use weir_net::tls::{Failure, HandshakeFault};
use weir_quic::connection::QuicEnd;
use weir_wire::h3::{H3Code, H3Fault};

use super::super::error::{Error, NOT_AGREED};
use super::super::streams::{Lost, coded};

/// Codes of QUIC from this one on are alerts of TLS (RFC 9001 §4.8).
const ALERTS: u64 = 0x100;
/// The alert `no_application_protocol` (RFC 7301 §3.2).
const NO_PROTOCOL: u64 = ALERTS + 120;

/// The server reset the stream.
pub(super) fn reset(code: u64) -> Lost {
    let error = coded("RESET_STREAM_", H3Code::name(code));
    if code == H3Code::RequestRejected as u64 { Lost::refused(error) } else { Lost::for_good(error) }
}

/// The server closes the connection, and has not begun with the stream.
pub(super) fn unbegun() -> Lost {
    Lost::refused(Error::named(Step::AwaitHead, "GOAWAY"))
}

/// The server did not take early data, and has done nothing (RFC 9001 §4.6.2).
pub(super) fn early() -> Lost {
    Lost::refused(Error::named(Step::AwaitHead, "ERR_EARLY_DATA_REJECTED"))
}

/// The server broke a rule.
pub(super) fn fault(fault: H3Fault) -> Lost {
    let name = H3Code::name(fault.code as u64);
    Lost::for_good(coded("ERR_HTTP3_", name.strip_prefix("H3_").unwrap_or(name)))
}

/// The connection has ended; the error's step is [`Step::Connect`] or [`Step::TlsOrigin`] if that was before its first request.
pub(super) fn ended(end: QuicEnd, tls: Option<&Failure>) -> Error {
    if let Some(failure) = tls {
        let is_strange = failure.fault == HandshakeFault::NoCommonProtocol;
        return Error::named(Step::TlsOrigin, if is_strange { NOT_AGREED } else { failure.code });
    }
    let refused = |kind, code| match code {
        NO_PROTOCOL => Error::named(Step::TlsOrigin, NOT_AGREED),
        ALERTS..0x200 => Error { step: Step::TlsOrigin, ..coded(kind, &format!("CRYPTO_ERROR_{}", code - ALERTS)) },
        _ => coded(kind, quic_name(code)),
    };
    match end {
        QuicEnd::Closed(code, _) => coded("CONNECTION_CLOSE_", H3Code::name(code)),
        QuicEnd::Refused(code, _) => refused("CONNECTION_CLOSE_", code),
        QuicEnd::Fault(code, _) => refused("ERR_QUIC_", code),
        QuicEnd::Idle => Error::named(Step::AwaitHead, "ERR_QUIC_IDLE_TIMEOUT"),
        QuicEnd::Reset => Error::named(Step::AwaitHead, "ERR_QUIC_STATELESS_RESET"),
        QuicEnd::Ours => Error::closed(Step::AwaitHead),
    }
}

/// The name of a code of QUIC (RFC 9000 §20.1).
fn quic_name(code: u64) -> &'static str {
    match code {
        0x0 => "NO_ERROR",
        0x1 => "INTERNAL_ERROR",
        0x2 => "CONNECTION_REFUSED",
        0x3 => "FLOW_CONTROL_ERROR",
        0x4 => "STREAM_LIMIT_ERROR",
        0x5 => "STREAM_STATE_ERROR",
        0x6 => "FINAL_SIZE_ERROR",
        0x7 => "FRAME_ENCODING_ERROR",
        0x8 => "TRANSPORT_PARAMETER_ERROR",
        0x9 => "CONNECTION_ID_LIMIT_ERROR",
        0xa => "PROTOCOL_VIOLATION",
        0xb => "INVALID_TOKEN",
        0xc => "APPLICATION_ERROR",
        0xd => "CRYPTO_BUFFER_EXCEEDED",
        0xe => "KEY_UPDATE_ERROR",
        0xf => "AEAD_LIMIT_REACHED",
        0x10 => "NO_VIABLE_PATH",
        _ => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_a_plain_name() {
        let text = String::new;
        for (end, name) in [
            (QuicEnd::Closed(0x100, text()), "CONNECTION_CLOSE_H3_NO_ERROR"),
            (QuicEnd::Refused(2, text()), "CONNECTION_CLOSE_CONNECTION_REFUSED"),
            (QuicEnd::Refused(0x178, text()), NOT_AGREED),
            (QuicEnd::Refused(0x12a, text()), "CONNECTION_CLOSE_CRYPTO_ERROR_42"),
            (QuicEnd::Fault(0xa, text()), "ERR_QUIC_PROTOCOL_VIOLATION"),
            (QuicEnd::Fault(0x99, text()), "ERR_QUIC_UNKNOWN"),
            (QuicEnd::Idle, "ERR_QUIC_IDLE_TIMEOUT"),
            (QuicEnd::Reset, "ERR_QUIC_STATELESS_RESET"),
            (QuicEnd::Ours, "ECONNRESET"),
        ] {
            assert_eq!(ended(end, None).name, name);
        }
        assert_eq!(fault(H3Fault::connection(H3Code::Frame, "")).error.name, "ERR_HTTP3_FRAME_ERROR");
        assert_eq!(reset(0x10b).error.name, "RESET_STREAM_H3_REQUEST_REJECTED");
    }
}
