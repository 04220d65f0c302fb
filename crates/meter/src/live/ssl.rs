//! TLS handshakes as NGINX Plus tells them: all of them, those of a server zone, those with a peer.

use serde::{Deserialize, Serialize};

/// TLS handshakes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ssl {
    /// Done.
    pub handshakes: u64,
    /// Failed, for whatever reason.
    pub handshakes_failed: u64,
    /// Of those done, resumed.
    pub session_reuses: u64,
    /// Failed: no common version.
    pub no_common_protocol: u64,
    /// Failed: no common cipher.
    pub no_common_cipher: u64,
    /// Failed: took too long.
    pub handshake_timeout: u64,
    /// Failed: the other side did not like the certificate.
    pub peer_rejected_cert: u64,
    /// Certificates refused, by reason.
    pub verify_failures: VerifyFailures,
}

/// Certificates refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyFailures {
    /// None was shown and one is required.
    pub no_cert: u64,
    /// Not yet or no more valid.
    pub expired_cert: u64,
    /// Revoked.
    pub revoked_cert: u64,
    /// For another host.
    pub hostname_mismatch: u64,
    /// Anything else.
    pub other: u64,
}

/// [`Ssl`] of a server zone: whose certificates are clients', which have no host.
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
    /// Certificates refused, by reason.
    pub verify_failures: ZoneVerifyFailures,
}

/// [`VerifyFailures`] of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ZoneVerifyFailures {
    /// None was shown and one is required.
    pub no_cert: u64,
    /// Not yet or no more valid.
    pub expired_cert: u64,
    /// Revoked.
    pub revoked_cert: u64,
    /// Anything else.
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
    /// Done, and the peer is who it should be.
    pub handshakes: u64,
    /// Failed, for whatever reason; those whose certificate is not trusted among them.
    pub handshakes_failed: u64,
    /// As in [`Ssl`].
    pub session_reuses: u64,
    /// As in [`Ssl`].
    pub no_common_protocol: u64,
    /// As in [`Ssl`].
    pub handshake_timeout: u64,
    /// As in [`Ssl`].
    pub peer_rejected_cert: u64,
    /// Certificates refused, by reason.
    pub verify_failures: PeerVerifyFailures,
}

/// [`VerifyFailures`] of peers, who always show one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerVerifyFailures {
    /// Not yet or no more valid.
    pub expired_cert: u64,
    /// Revoked.
    pub revoked_cert: u64,
    /// For another host.
    pub hostname_mismatch: u64,
    /// Anything else.
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
