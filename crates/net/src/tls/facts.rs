//! The facts of a certificate that a client of an authority compares and shows: names, validity, key, identifiers.

use super::der::{Attribute, Flaw, Opaque, sets};
use super::x509::X509;
use der::asn1::AnyRef;
use der::{Decode, DecodeValue, Sequence, Tag, TagNumber, Tagged};
use std::net::IpAddr;

/// The most names that weir reads from one certificate; an authority allows some hundred.
const NAMES_MAX: usize = 1024;

/// 2.5.29.17, subjectAltName.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 29, 17];
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// A GeneralName of this number, not constructed.
const fn general(number: u32) -> Tag {
    Tag::ContextSpecific { constructed: false, number: TagNumber(number) }
}

/// The facts of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The hosts of its subjectAltName: names in lower case, addresses as text.
    pub names: Vec<String>,
    /// The common names of its subject.
    pub subject_names: Vec<String>,
    /// The common names of its issuer.
    pub issuer_names: Vec<String>,
    /// The beginning of its validity; seconds since 1970.
    pub begins: i64,
    /// The end of its validity; seconds since 1970.
    pub ends: i64,
    /// Its whole SubjectPublicKeyInfo.
    pub key: Vec<u8>,
    /// The bytes of its serial number, as written.
    pub serial: Vec<u8>,
    /// keyIdentifier of its authorityKeyIdentifier.
    pub authority_key_id: Option<Vec<u8>>,
}

/// A certificate as far as its extensions are needed here.
#[derive(DecodeValue)]
struct Extension<'a> {
    id: super::der::Oid<'a>,
    _critical: Option<super::der::Flag>,
    value: &'a der::asn1::OctetStringRef,
}

impl<'a> Sequence<'a> for Extension<'a> {}

impl CertificateFacts {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn read(der: &[u8]) -> Result<CertificateFacts, Flaw> {
        let read = X509::read(der)?;
        Ok(CertificateFacts {
            names: names(read.body),
            subject_names: common_names(read.subject),
            issuer_names: common_names(read.issuer),
            begins: read.not_before.seconds,
            ends: read.not_after.seconds,
            key: read.key.info.to_vec(),
            serial: read.serial.to_vec(),
            authority_key_id: read.extensions.authority_key_id.map(<[u8]>::to_vec),
        })
    }
}

fn common_names(name: &[u8]) -> Vec<String> {
    let is_common = |attribute: &Attribute<'_>| attribute.id == COMMON_NAME;
    let all = sets(name).into_iter().flatten().filter(is_common);
    all.filter_map(|attribute| String::from_utf8(attribute.value().1).ok()).collect()
}

/// The hosts in the subjectAltName of a signed part. Its other names may have types that `der` does not know.
fn names(body: &[u8]) -> Vec<String> {
    let fields = <Opaque<'_>>::from_der(body).map(|body| fields(body.as_bytes())).unwrap_or_default();
    let extensions =
        fields.iter().rev().find(|field| matches!(field.tag(), Tag::ContextSpecific { number: TagNumber(3), .. }));
    let extensions =
        extensions.and_then(|field| Vec::<Extension<'_>>::from_der(field.value()).ok()).unwrap_or_default();
    let named = extensions.iter().find(|extension| extension.id.0 == SUBJECT_ALT_NAME);
    let all = named.and_then(|extension| Vec::<AnyRef<'_>>::from_der(extension.value.as_bytes()).ok());
    all.unwrap_or_default().iter().filter_map(name_of).take(NAMES_MAX).collect()
}

/// The elements of a sequence, without its tag and length.
fn fields(mut bytes: &[u8]) -> Vec<AnyRef<'_>> {
    let mut all = Vec::new();
    while let Ok(element) = super::der::first(bytes) {
        let Ok(read) = AnyRef::from_der(element) else { break };
        all.push(read);
        bytes = bytes.get(element.len()..).unwrap_or_default();
    }
    all
}

fn name_of(name: &AnyRef<'_>) -> Option<String> {
    let value = name.value();
    if name.tag() == general(2) {
        return std::str::from_utf8(value).ok().map(str::to_ascii_lowercase);
    }
    if name.tag() != general(7) {
        return None;
    }
    let address = match value.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(value).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(value).ok()?),
    };
    Some(address.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::describe::tests::der;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_certificate_tells_its_facts() {
        let facts = CertificateFacts::read(&der()).unwrap();
        assert_eq!(facts.serial, [0, 0xc0, 0xff, 0xee, 1]);
        assert!(facts.begins < facts.ends && facts.key.first() == Some(&0x30));
        assert_eq!(CertificateFacts::read(b"-----BEGIN").unwrap_err(), Flaw::Field);
    }

    #[test]
    fn hosts_are_names_and_addresses() {
        let name = |number: u32, value: &[u8]| name_of(&AnyRef::new(general(number), value).unwrap());
        assert_eq!(name(2, b"A.Example"), Some("a.example".to_owned()));
        assert_eq!(name(7, &[192, 0, 2, 1]), Some("192.0.2.1".to_owned()));
        assert_eq!(name(7, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), Some("::1".to_owned()));
        for (number, value) in [(7, &b"abc"[..]), (2, b"\xff"), (1, b"mail@a.example")] {
            assert_eq!(name(number, value), None);
        }
    }

    proptest! {
        #[test]
        fn damage_never_panics(at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let mut der = der();
            let at = at.index(der.len());
            der[at] = to;
            let _ = CertificateFacts::read(&der);
        }
    }
}
