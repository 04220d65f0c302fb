//! What a handshake agreed on: the facts that variables and the judge of certificates read.

use super::server::Noted;
use rustls::{CommonState, HandshakeKind, ProtocolVersion};

/// The result of a handshake with a client, over TCP or in QUIC.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// The version, as OpenSSL writes it; empty without one.
    pub version: &'static str,
    /// The number of the cipher suite; [`ciphers::suite_name`](super::ciphers::suite_name) names it. 0 without one.
    pub cipher: u16,
    /// The number of the group for the key exchange; [`ciphers::group_name`](super::ciphers::group_name) names it. 0
    /// also if no key exchange was needed.
    pub group: u16,
    /// The protocol above TLS (RFC 7301); empty without one.
    pub alpn: Vec<u8>,
    /// The handshake resumed an earlier session.
    pub is_resumed: bool,
    /// The signature schemes that were used.
    pub noted: Noted,
    /// The client's certificates in DER, its own first.
    pub certificates: Vec<Box<[u8]>>,
}

impl Agreement {
    pub(super) fn of(common: &CommonState, noted: Noted) -> Agreement {
        let certificates = common.peer_certificates().unwrap_or_default();
        let is_resumed = common.handshake_kind() == Some(HandshakeKind::Resumed);
        // rustls chooses a certificate before it knows whether it needs one.
        let signature = noted.signature.filter(|_| !is_resumed);
        Agreement {
            version: match common.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
                _ => "",
            },
            cipher: common.negotiated_cipher_suite().map_or(0, |suite| u16::from(suite.suite())),
            group: common.negotiated_key_exchange_group().map_or(0, |group| u16::from(group.name())),
            alpn: common.alpn_protocol().map(<[u8]>::to_vec).unwrap_or_default(),
            is_resumed,
            noted: Noted { signature, ..noted },
            certificates: certificates.iter().map(|der| Box::from(der.as_ref())).collect(),
        }
    }
}
