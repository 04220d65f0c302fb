//! TLS handshakes in NGINX Plus' form: of all servers, of a server zone, with a peer.

use serde::{Deserialize, Serialize};

/// TLS handshakes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ssl {
    /// Completed handshakes.
    pub handshakes: u64,
    /// Failed handshakes, for any reason.
    pub handshakes_failed: u64,
    /// Completed handshakes that resumed a session.
    pub session_reuses: u64,
    /// Failed: no common TLS version.
    pub no_common_protocol: u64,
    /// Failed: no common cipher.
    pub no_common_cipher: u64,
    /// Failed: timeout.
    pub handshake_timeout: u64,
    /// Failed: the other side rejected the certificate.
    pub peer_rejected_cert: u64,
    /// Rejected certificates, by reason.
    pub verify_failures: VerifyFailures,
}

/// Rejected certificates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyFailures {
    /// No certificate was sent although one is required.
    pub no_cert: u64,
    /// Not valid yet, or expired.
    pub expired_cert: u64,
    /// Revoked.
    pub revoked_cert: u64,
    /// For another host.
    pub hostname_mismatch: u64,
    /// Any other reason.
    pub other: u64,
}

/// [`Ssl`] of a server zone: certificates are those of clients, which have no host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, from = "Ssl")]
pub struct ZoneSsl {
    /// As in [`Ssl`].
    pub handshakes: u64,
    /// As in [`Ssl`].
    pub handshakes_failed: u64,
    /// As in [`Ssl`].
    pub session_reuses: u64,
    /// As in [`Ssl`].
    pub no_common_protocol: u64,
    /// As in [`Ssl`].
    pub no_common_cipher: u64,
    /// As in [`Ssl`].
    pub handshake_timeout: u64,
    /// As in [`Ssl`].
    pub peer_rejected_cert: u64,
    /// Rejected certificates, by reason.
    pub verify_failures: ZoneVerifyFailures,
}

/// [`VerifyFailures`] of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ZoneVerifyFailures {
    /// No certificate was sent although one is required.
    pub no_cert: u64,
    /// Not valid yet, or expired.
    pub expired_cert: u64,
    /// Revoked.
    pub revoked_cert: u64,
    /// Any other reason.
    pub other: u64,
}

impl From<Ssl> for ZoneSsl {
    fn from(ssl: Ssl) -> ZoneSsl {
        let VerifyFailures { no_cert, expired_cert, revoked_cert, hostname_mismatch, other } = ssl.verify_failures;
        ZoneSsl {
            handshakes: ssl.handshakes,
            handshakes_failed: ssl.handshakes_failed,
            session_reuses: ssl.session_reuses,
            no_common_protocol: ssl.no_common_protocol,
            no_common_cipher: ssl.no_common_cipher,
            handshake_timeout: ssl.handshake_timeout,
            peer_rejected_cert: ssl.peer_rejected_cert,
            verify_failures: ZoneVerifyFailures {
                no_cert,
                expired_cert,
                revoked_cert,
                other: other + hostname_mismatch,
            },
        }
    }
}

/// [`Ssl`] of a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, from = "Ssl")]
pub struct PeerSsl {
    /// Completed handshakes with a trusted peer.
    pub handshakes: u64,
    /// Failed handshakes, for any reason, including peers whose certificate is not trusted.
    pub handshakes_failed: u64,
    /// As in [`Ssl`].
    pub session_reuses: u64,
    /// As in [`Ssl`].
    pub no_common_protocol: u64,
    /// As in [`Ssl`].
    pub handshake_timeout: u64,
    /// As in [`Ssl`].
    pub peer_rejected_cert: u64,
    /// Rejected certificates, by reason.
    pub verify_failures: PeerVerifyFailures,
}

/// [`VerifyFailures`] of peers, which always send a certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerVerifyFailures {
    /// Not valid yet, or expired.
    pub expired_cert: u64,
    /// Revoked.
    pub revoked_cert: u64,
    /// For another host.
    pub hostname_mismatch: u64,
    /// Any other reason.
    pub other: u64,
}

impl From<Ssl> for PeerSsl {
    fn from(ssl: Ssl) -> PeerSsl {
        let VerifyFailures { no_cert, expired_cert, revoked_cert, hostname_mismatch, other } = ssl.verify_failures;
        PeerSsl {
            handshakes: ssl.handshakes,
            handshakes_failed: ssl.handshakes_failed,
            session_reuses: ssl.session_reuses,
            no_common_protocol: ssl.no_common_protocol,
            handshake_timeout: ssl.handshake_timeout,
            peer_rejected_cert: ssl.peer_rejected_cert,
            verify_failures: PeerVerifyFailures {
                expired_cert,
                revoked_cert,
                hostname_mismatch,
                other: other + no_cert,
            },
        }
    }
}
