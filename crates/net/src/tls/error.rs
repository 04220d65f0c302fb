//! Failures of TLS, with Node's codes.

use super::chain::Complaint;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible, PeerMisbehaved};
use std::fmt;
use std::io;

/// Why TLS failed; inside an [`io::Error`], see [`failure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Node's code: `CERT_HAS_EXPIRED`, `EPROTO`, `ECONNRESET` and so on.
    pub code: &'static str,
    /// A sentence about the failure.
    pub detail: String,
    /// The kind of a failed handshake, for counters.
    pub fault: HandshakeFault,
    /// OpenSSL's verdict on the peer's certificate, if a [`Trust`](super::Trust) judged it.
    pub distrust: Option<Complaint>,
}

/// Kinds of handshake failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandshakeFault {
    /// The two have no version in common.
    NoCommonVersion,
    /// They have no cipher in common.
    NoCommonCipher,
    /// They have no protocol in common (RFC 7301).
    NoCommonProtocol,
    /// The other side rejected our certificate.
    CertificateRejected,
    /// Anything else.
    #[default]
    Other,
}

impl HandshakeFault {
    fn of(error: &Error) -> HandshakeFault {
        use AlertDescription as Alert;
        match error {
            Error::PeerIncompatible(
                PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::Tls13RequiredForQuic
                | PeerIncompatible::SupportedVersionsExtensionRequired
                // The first extension that a client of TLS 1.1 lacks.
                | PeerIncompatible::SignatureAlgorithmsExtensionRequired
                | PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            )
            | Error::AlertReceived(Alert::ProtocolVersion) => HandshakeFault::NoCommonVersion,
            // OpenSSL reports each of these as "no shared cipher".
            Error::PeerIncompatible(
                PeerIncompatible::NoCipherSuitesInCommon
                | PeerIncompatible::NoKxGroupsInCommon
                | PeerIncompatible::NoSignatureSchemesInCommon,
            ) => HandshakeFault::NoCommonCipher,
            Error::AlertReceived(Alert::NoApplicationProtocol) => HandshakeFault::NoCommonProtocol,
            Error::AlertReceived(
                Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA,
            ) => HandshakeFault::CertificateRejected,
            _ => HandshakeFault::Other,
        }
    }
}

/// The TLS failure behind an error of a [`TlsStream`](super::TlsStream); `None` if the socket failed.
pub fn failure(error: &io::Error) -> Option<&Failure> {
    error.get_ref()?.downcast_ref()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        let kind = match failure.code {
            "ECONNRESET" => io::ErrorKind::ConnectionReset,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, failure)
    }
}

impl Failure {
    /// A failure with this code.
    pub(super) fn new(code: &'static str, detail: impl Into<String>) -> Failure {
        Failure { code, detail: detail.into(), fault: HandshakeFault::Other, distrust: None }
    }

    /// The peer closed before the handshake was done; Node's words.
    pub(super) fn cut() -> Failure {
        Failure::new("ECONNRESET", "Client network socket disconnected before secure TLS connection was established")
    }

    /// The failure for an error of rustls. Node has one code for all handshake failures except those of the
    /// certificate.
    pub(super) fn of(error: &Error, has_shaken_hands: bool) -> Failure {
        let code = match error {
            Error::InvalidCertificate(fault) => match fault {
                CertificateError::Other(other) => match other.0.downcast_ref::<Failure>() {
                    Some(refused) => return refused.clone(),
                    None => "EPROTO",
                },
                fault => certificate(fault),
            },
            Error::AlertReceived(alert) if has_shaken_hands => self::alert(*alert),
            _ => "EPROTO",
        };
        let detail = match error {
            // A sentence for all these cases; rustls's own words name only one of them.
            Error::PeerMisbehaved(PeerMisbehaved::IllegalMiddleboxChangeCipherSpec) => {
                "the server sent a record of a type that is not allowed at this point".to_owned()
            }
            // A server without TLS answers a ClientHello like this.
            Error::InvalidMessage(_) if !has_shaken_hands => format!("the server does not speak TLS: {error}"),
            _ => error.to_string(),
        };
        Failure { code, detail, fault: HandshakeFault::of(error), distrust: None }
    }
}

/// Node's code for a certificate that webpki refuses, if the chain itself gives no better reason.
pub(super) fn certificate(fault: &CertificateError) -> &'static str {
    use CertificateError as Fault;
    match fault {
        Fault::Expired | Fault::ExpiredContext { .. } => "CERT_HAS_EXPIRED",
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => "CERT_NOT_YET_VALID",
        Fault::Revoked => "CERT_REVOKED",
        Fault::BadSignature => "CERT_SIGNATURE_FAILURE",
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => "ERR_TLS_CERT_ALTNAME_INVALID",
        Fault::InvalidPurpose | Fault::InvalidPurposeContext { .. } => "INVALID_PURPOSE",
        Fault::UnhandledCriticalExtension => "UNHANDLED_CRITICAL_EXTENSION",
        Fault::UnknownIssuer => "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        _ => "CERT_REJECTED",
    }
}

/// An alert after the handshake: OpenSSL's names, with Node's prefix.
fn alert(alert: AlertDescription) -> &'static str {
    use AlertDescription as Alert;
    match alert {
        Alert::UnexpectedMessage => "ERR_SSL_SSLV3_ALERT_UNEXPECTED_MESSAGE",
        Alert::BadRecordMac => "ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC",
        Alert::HandshakeFailure => "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE",
        Alert::BadCertificate => "ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE",
        Alert::UnsupportedCertificate => "ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
        Alert::CertificateRevoked => "ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED",
        Alert::CertificateExpired => "ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED",
        Alert::CertificateUnknown => "ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        Alert::IllegalParameter => "ERR_SSL_SSLV3_ALERT_ILLEGAL_PARAMETER",
        Alert::UnknownCA => "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA",
        Alert::AccessDenied => "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED",
        Alert::DecodeError => "ERR_SSL_TLSV1_ALERT_DECODE_ERROR",
        Alert::DecryptError => "ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR",
        Alert::ProtocolVersion => "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
        Alert::InsufficientSecurity => "ERR_SSL_TLSV1_ALERT_INSUFFICIENT_SECURITY",
        Alert::InternalError => "ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR",
        Alert::CertificateRequired => "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED",
        Alert::NoApplicationProtocol => "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
        _ => "EPROTO",
    }
}
