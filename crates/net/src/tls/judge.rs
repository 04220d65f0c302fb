//! Checks the server's certificate: by webpki's rules, and by Node's rules where they are milder.
//!
//! They are milder in two cases, which are common with self-made certificates: a self-signed certificate that is
//! itself among the trusted ones (webpki refuses it if it is a CA, and `openssl req -x509` makes it one), and a
//! certificate that names its host only in its CN.

use super::error::{Failure, certificate};
use super::why;
use super::x509::X509;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use std::sync::Arc;

/// Judges servers' certificates.
#[derive(Debug)]
pub(super) struct Judge {
    /// `None` trusts no chain.
    pub(super) webpki: Option<Arc<WebPkiServerVerifier>>,
    /// Trusted certificates; a self-signed one among them may be the server's own.
    pub(super) trusted: Vec<CertificateDer<'static>>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

/// Accepts every server certificate; Node's `rejectUnauthorized: false`.
#[derive(Debug)]
pub(super) struct Anyone(pub(super) WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let judged = match &self.webpki {
            _ if self.is_own(leaf) => own(leaf, server, seconds),
            None => Err(CertificateError::UnknownIssuer),
            Some(webpki) => match webpki.verify_server_cert(leaf, others, server, ocsp, now) {
                Ok(verified) => return Ok(verified),
                Err(Error::InvalidCertificate(fault)) => Err(fault),
                Err(error) => return Err(error),
            },
        };
        let refused = match judged {
            Ok(()) => return Ok(ServerCertVerified::assertion()),
            Err(fault) if certificate(&fault) == "ERR_TLS_CERT_ALTNAME_INVALID" => {
                // The chain is valid: webpki checks the name last.
                if is_common_name(leaf, server) {
                    return Ok(ServerCertVerified::assertion());
                }
                Failure::new("ERR_TLS_CERT_ALTNAME_INVALID", fault.to_string())
            }
            Err(fault) => why::refused(leaf, others, &fault, seconds),
        };
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(refused)))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl Judge {
    /// Whether the server's certificate is self-signed and itself trusted.
    fn is_own(&self, leaf: &CertificateDer<'_>) -> bool {
        self.trusted.iter().any(|trusted| trusted == leaf) && X509::read(leaf).is_ok_and(|leaf| leaf.is_self_issued())
    }
}

/// Judges a certificate that is itself trusted: its times and its name.
fn own(leaf: &CertificateDer<'_>, server: &ServerName<'_>, now: i64) -> Result<(), CertificateError> {
    let read = X509::read(leaf).map_err(|_| CertificateError::BadEncoding)?;
    match why::outside(&read, now) {
        Some("CERT_HAS_EXPIRED") => return Err(CertificateError::Expired),
        Some(_) => return Err(CertificateError::NotValidYet),
        None => {}
    }
    let named = ParsedCertificate::try_from(leaf).and_then(|parsed| verify_server_name(&parsed, server));
    match named {
        Ok(()) => Ok(()),
        Err(Error::InvalidCertificate(fault)) => Err(fault),
        Err(_) => Err(CertificateError::BadEncoding),
    }
}

/// Whether a certificate without host names in subjectAltName has this host as its CN, as Node still allows.
pub(super) fn is_common_name(leaf: &CertificateDer<'_>, server: &ServerName<'_>) -> bool {
    let (Ok(leaf), ServerName::DnsName(host)) = (X509::read(leaf), server) else {
        return false;
    };
    if leaf.extensions.has_dns_names {
        return false;
    }
    let (host, Some(name)) = (host.as_ref(), leaf.common_name()) else {
        return false;
    };
    match name.strip_prefix("*.") {
        Some(parent) => host.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent)),
        None => host.eq_ignore_ascii_case(&name),
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    // Any signer is accepted, so the signature proves nothing. webpki would refuse to read certificates of version 1,
    // which people accept by exactly this option.
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
