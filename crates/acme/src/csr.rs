//! The request for a certificate (RFC 2986), and the certificate of the challenge `tls-alpn-01` (RFC 8737).

use std::net::IpAddr;

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, SanType};
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256};
use weir_net::tls;

use crate::identifier::Identifier;
use crate::issuer::CertificateOrder;

/// The protocol by which an authority asks for the certificate of a challenge.
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// The request in DER for the hosts of an order, signed by the key in PEM.
///
/// # Errors
/// The reason, for the log.
pub fn request(order: &CertificateOrder, key: &str, names_subject: bool) -> Result<Vec<u8>, String> {
    let failed = |error: rcgen::Error| format!("csr generation failed ({error})");
    let mut params = params(&order.identifiers).map_err(failed)?;
    if names_subject {
        params.distinguished_name.push(DnType::CommonName, order.first_name());
    }
    let request = params.serialize_request(&key_pair(key).map_err(failed)?).map_err(failed)?;
    Ok(request.der().to_vec())
}

/// A certificate in PEM that proves a host to an authority; it is for the key in PEM.
///
/// # Errors
/// The reason, for the log.
pub fn proof(identifier: &Identifier, authorization: &str, key: &str) -> Result<String, String> {
    let failed = |error: rcgen::Error| format!("make_challenge_cert({identifier}) failed: {error}");
    let mut params = params(std::slice::from_ref(identifier)).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "ACME Challenge Certificate");
    let sum = digest(&SHA256, authorization.as_bytes());
    params.custom_extensions.push(CustomExtension::new_acme_identifier(sum.as_ref()));
    let made = params.self_signed(&key_pair(key).map_err(failed)?).map_err(failed)?;
    Ok(tls::section("CERTIFICATE", made.der()))
}

fn params(identifiers: &[Identifier]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for identifier in identifiers {
        params.subject_alt_names.push(match identifier {
            Identifier::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
            Identifier::Ip(address) => {
                SanType::IpAddress(address.parse::<IpAddr>().map_err(|_| rcgen::Error::InvalidIpAddressOctetLength(0))?)
            }
        });
    }
    Ok(params)
}

/// A key in PEM, for signing.
pub(crate) fn key_pair(key: &str) -> Result<KeyPair, rcgen::Error> {
    let der = tls::key_der(key.as_bytes()).map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    let der = der.as_slice().into();
    for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ECDSA_P521_SHA512, &PKCS_RSA_SHA256] {
        if let Ok(pair) = KeyPair::from_pkcs8_der_and_sign_algo(&der, algorithm) {
            return Ok(pair);
        }
    }
    Err(rcgen::Error::CouldNotParseKeyPair)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::KeyKind;

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn a_request_names_its_hosts_for_every_kind_of_key() {
        let identifiers = vec![Identifier::Dns("a.test".into()), Identifier::Ip("192.0.2.1".into())];
        for kind in [KeyKind::Ecdsa(256), KeyKind::Ecdsa(384), KeyKind::Ecdsa(521), KeyKind::Rsa(2048)] {
            let order = CertificateOrder { identifiers: identifiers.clone(), key: kind };
            let key = kind.generate().unwrap();
            let plain = request(&order, &key, false).unwrap();
            // dNSName and iPAddress.
            assert!(contains(&plain, b"\x82\x06a.test") && contains(&plain, &[0x87, 4, 192, 0, 2, 1]));
            let named = request(&order, &key, true).unwrap();
            // The common name, as a UTF8String.
            assert!(!contains(&plain, b"\x0c\x06a.test") && contains(&named, b"\x0c\x06a.test"));
        }
        let order = CertificateOrder { identifiers, key: KeyKind::default() };
        assert!(request(&order, "no key", false).is_err());
    }

    #[test]
    fn a_proof_holds_the_digest_of_the_authorization() {
        let key = KeyKind::default().generate().unwrap();
        let proof = proof(&Identifier::Dns("a.test".into()), "token.thumbprint", &key).unwrap();
        let der = tls::certificates(proof.as_bytes()).unwrap().remove(0);
        let sum = digest(&SHA256, b"token.thumbprint");
        assert!(contains(&der, &[&[4, 34, 4, 32][..], sum.as_ref()].concat()));
        assert_eq!(tls::CertificateFacts::read(&der).unwrap().names, ["a.test"]);
    }
}
