//! Explains in OpenSSL's terms why a chain of certificates is not trusted.
//!
//! webpki says `UnknownIssuer`; OpenSSL, and so Node and its users, distinguish four kinds of it. An expired
//! certificate takes precedence, because Node reports the last complaint (seen with Node 20 and 24).

use super::error::{Failure, certificate};
use super::x509::X509;
use rustls::CertificateError;
use rustls::pki_types::CertificateDer;

/// The longest chain that is followed: OpenSSL's default depth.
const CHAIN_MAX: usize = 100;

/// The failure for a chain that webpki refused with `fault`, at `now` seconds since 1970.
pub(super) fn refused(
    leaf: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    fault: &CertificateError,
    now: i64,
) -> Failure {
    let leaf = match X509::read(leaf) {
        Ok(leaf) => leaf,
        Err(flaw) => return Failure::new("EPROTO", format!("the client cannot read the server's certificate: {flaw}")),
    };
    let others: Vec<X509<'_>> = others.iter().filter_map(|other| X509::read(other).ok()).collect();
    let (code, chain) = match fault {
        CertificateError::UnknownIssuer => untrusted(leaf, &others),
        // webpki checks other faults first, for example whether a server's certificate is an authority's.
        _ if leaf.is_self_issued() => untrusted(leaf, &others),
        fault => (certificate(fault), vec![leaf]),
    };
    // OpenSSL goes from the root down, and its last complaint counts: the complaint nearest to the leaf.
    let code = chain.iter().find_map(|one| outside(one, now)).unwrap_or(code);
    Failure::new(code, detail(code, fault))
}

/// Whether the time is outside its validity, and on which side.
pub(super) fn outside(certificate: &X509<'_>, now: i64) -> Option<&'static str> {
    if now > certificate.not_after.seconds {
        return Some("CERT_HAS_EXPIRED");
    }
    (now < certificate.not_before.seconds).then_some("CERT_NOT_YET_VALID")
}

/// Follows the issuers as far as the server sent them.
fn untrusted<'a>(leaf: X509<'a>, others: &[X509<'a>]) -> (&'static str, Vec<X509<'a>>) {
    let mut chain = vec![leaf];
    let mut top = leaf;
    while !top.is_self_issued() && chain.len() < CHAIN_MAX {
        let Some(issuer) = others.iter().find(|other| other.subject == top.issuer) else {
            break;
        };
        top = *issuer;
        chain.push(top);
    }
    let code = match (top.is_self_issued(), chain.len()) {
        (true, 1) => "DEPTH_ZERO_SELF_SIGNED_CERT",
        (true, _) => "SELF_SIGNED_CERT_IN_CHAIN",
        (false, 1) => "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        (false, _) => "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    };
    (code, chain)
}

/// OpenSSL's sentence, if it has one.
pub(super) fn detail(code: &str, fault: &CertificateError) -> String {
    match code {
        "DEPTH_ZERO_SELF_SIGNED_CERT" => "self-signed certificate".to_owned(),
        "SELF_SIGNED_CERT_IN_CHAIN" => "self-signed certificate in certificate chain".to_owned(),
        "UNABLE_TO_VERIFY_LEAF_SIGNATURE" => "unable to verify the first certificate".to_owned(),
        "UNABLE_TO_GET_ISSUER_CERT_LOCALLY" => "unable to get local issuer certificate".to_owned(),
        "CERT_HAS_EXPIRED" => "certificate has expired".to_owned(),
        "CERT_NOT_YET_VALID" => "certificate is not yet valid".to_owned(),
        _ => fault.to_string(),
    }
}
