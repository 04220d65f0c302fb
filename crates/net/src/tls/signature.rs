//! Checks whether the holder of a certificate's key signed a handshake. Unlike webpki, it reads certificates of
//! version 1, which some clients and origins still have: only the key matters here.

use super::x509::X509;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved};

/// TLS 1.2 (RFC 5246 §7.4.8): any algorithm that was offered and fits the key.
pub(super) fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let read = X509::read(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let offered = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
    let (_, candidates) = offered.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
    let mut fitting = candidates.iter().filter(|one| one.public_key_alg_id().as_ref() == read.key.algorithm);
    match fitting.any(|one| one.verify_signature(read.key.bits, message, signed.signature()).is_ok()) {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(CertificateError::BadSignature.into()),
    }
}

/// TLS 1.3 (RFC 8446 §4.4.3): not every algorithm that may sign a certificate may sign a handshake.
pub(super) fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let read = X509::read(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let key = SubjectPublicKeyInfoDer::from(read.key.info);
    verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
}
