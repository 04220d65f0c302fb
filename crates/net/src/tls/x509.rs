//! Reads a whole certificate (RFC 5280), for judging a chain and describing a client.
//!
//! Unlike webpki it reads version 1, which self-made authorities and clients still have, and it names the errors it
//! finds. Reading trusts nothing: `chain` checks signatures and trust.

use super::der::{Attribute, Flag, Flaw, Oid, Opaque, Raw, Time, bits, sets};
use der::asn1::{AnyRef, BitStringRef, IntRef, OctetStringRef};
use der::{Decode, DecodeValue, Sequence, Tag, TagNumber, Tagged};
use rustls::crypto::WebPkiSupportedAlgorithms;

/// Extensions by the last number of 2.5.29.*
const SUBJECT_KEY_ID: u8 = 14;
const KEY_USAGE: u8 = 15;
const SUBJECT_ALT_NAME: u8 = 17;
const BASIC_CONSTRAINTS: u8 = 19;
const NAME_CONSTRAINTS: u8 = 30;
const CERTIFICATE_POLICIES: u8 = 32;
const AUTHORITY_KEY_ID: u8 = 35;
const EXTENDED_KEY_USAGE: u8 = 37;
/// 1.3.6.1.5.5.7.3.1 and .2
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
/// 1.3.6.1.5.5.7.3.9
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
/// 1.3.6.1.5.5.7.1.1, authorityInfoAccess
const ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
/// keyIdentifier of AuthorityKeyIdentifier, `[0]`.
const KEY_ID: Tag = Tag::ContextSpecific { constructed: false, number: TagNumber(0) };
/// dNSName of GeneralName, `[2]`.
const DNS_NAME: Tag = Tag::ContextSpecific { constructed: false, number: TagNumber(2) };

/// The fields of a certificate that are read; everything borrows from its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct X509<'a> {
    pub(super) der: &'a [u8],
    /// The signed part.
    pub(super) body: &'a [u8],
    /// 0 for version 1.
    pub(super) version: u8,
    /// The serial number's bytes, as written: the first bit is its sign.
    pub(super) serial: &'a [u8],
    /// The issuer's name, with its tag and length.
    pub(super) issuer: &'a [u8],
    /// The subject's name, with its tag and length.
    pub(super) subject: &'a [u8],
    pub(super) not_before: Time,
    pub(super) not_after: Time,
    pub(super) key: CertificateKey<'a>,
    /// The signature's algorithm, and the signature.
    pub(super) algorithm: &'a [u8],
    pub(super) signature: &'a [u8],
    pub(super) extensions: Extensions<'a>,
}

/// A public key.
#[derive(Clone, Copy, Debug)]
pub(super) struct CertificateKey<'a> {
    /// The whole SubjectPublicKeyInfo.
    pub(super) info: &'a [u8],
    /// Its AlgorithmIdentifier's contents.
    pub(super) algorithm: &'a [u8],
    pub(super) bits: &'a [u8],
}

/// The values of extensions; an absent extension has the default value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extensions<'a> {
    pub(super) has_basic_constraints: bool,
    pub(super) is_authority: bool,
    pub(super) path_len: Option<u64>,
    /// The bits of keyUsage, the first highest; `None` without it.
    pub(super) key_usage: Option<u16>,
    /// The purposes that extendedKeyUsage allows; `None` without it.
    pub(super) extended: Option<Purposes>,
    pub(super) has_unknown_critical: bool,
    pub(super) has_name_constraints: bool,
    pub(super) key_id: Option<&'a [u8]>,
    pub(super) authority_key_id: Option<&'a [u8]>,
    /// Whether its subjectAltName names hosts.
    pub(super) has_dns_names: bool,
    /// The value of authorityInfoAccess.
    pub(super) access: Option<&'a [u8]>,
}

/// The purposes that extendedKeyUsage allows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Purposes {
    pub(super) server: bool,
    pub(super) client: bool,
    pub(super) ocsp: bool,
}

/// Bits of keyUsage.
pub(super) const DIGITAL_SIGNATURE: u16 = 0x8000;
pub(super) const KEY_AGREEMENT: u16 = 0x0800;
pub(super) const KEY_CERT_SIGN: u16 = 0x0400;
pub(super) const CRL_SIGN: u16 = 0x0200;

/// The bytes of a certificate by RFC 5280 §4.1.
#[derive(DecodeValue)]
struct Certificate<'a> {
    body: Raw<'a, Body<'a>>,
    algorithm: Opaque<'a>,
    signature: BitStringRef<'a>,
}

impl<'a> Sequence<'a> for Certificate<'a> {}

#[derive(DecodeValue)]
struct Body<'a> {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    version: Option<u8>,
    serial: IntRef<'a>,
    algorithm: Opaque<'a>,
    issuer: Raw<'a, Opaque<'a>>,
    validity: Validity,
    subject: Raw<'a, Opaque<'a>>,
    key: Raw<'a, PublicKey<'a>>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    _issuer_id: Option<BitStringRef<'a>>,
    #[asn1(context_specific = "2", tag_mode = "IMPLICIT", optional = "true")]
    _subject_id: Option<BitStringRef<'a>>,
    #[asn1(context_specific = "3", tag_mode = "EXPLICIT", optional = "true")]
    extensions: Option<Vec<Extension<'a>>>,
}

impl<'a> Sequence<'a> for Body<'a> {}

#[derive(DecodeValue)]
struct Validity {
    from: Time,
    to: Time,
}

impl<'a> Sequence<'a> for Validity {}

#[derive(Clone, Copy, DecodeValue)]
struct PublicKey<'a> {
    algorithm: Opaque<'a>,
    bits: BitStringRef<'a>,
}

impl<'a> Sequence<'a> for PublicKey<'a> {}

#[derive(DecodeValue)]
struct Extension<'a> {
    id: Oid<'a>,
    critical: Option<Flag>,
    value: &'a OctetStringRef,
}

impl<'a> Sequence<'a> for Extension<'a> {}

#[derive(DecodeValue)]
struct BasicConstraints {
    is_authority: Option<Flag>,
    path_len: Option<u64>,
}

impl<'a> Sequence<'a> for BasicConstraints {}

impl<'a> X509<'a> {
    /// Reads a certificate.
    pub(super) fn read(der: &'a [u8]) -> Result<X509<'a>, Flaw> {
        let outer = Certificate::from_der(der)?;
        let body = outer.body.value;
        if body.algorithm != outer.algorithm {
            return Err(Flaw::Field);
        }
        let key = body.key.value;
        Ok(X509 {
            der,
            body: outer.body.bytes,
            version: body.version.unwrap_or(0),
            serial: body.serial.as_bytes(),
            issuer: body.issuer.bytes,
            subject: body.subject.bytes,
            not_before: body.validity.from,
            not_after: body.validity.to,
            key: CertificateKey { info: body.key.bytes, algorithm: key.algorithm.as_bytes(), bits: bits(key.bits)? },
            algorithm: outer.algorithm.as_bytes(),
            signature: bits(outer.signature)?,
            extensions: Extensions::read(&body.extensions.unwrap_or_default())?,
        })
    }

    /// The last CN of the subject.
    pub(super) fn common_name(&self) -> Option<String> {
        let last =
            sets(self.subject).into_iter().flatten().rfind(|attribute: &Attribute<'_>| attribute.id == COMMON_NAME)?;
        String::from_utf8(last.value().1).ok()
    }

    /// Whether `now`, in seconds since 1970, is within its validity.
    pub(super) fn is_valid(&self, now: i64) -> bool {
        (self.not_before.seconds..=self.not_after.seconds).contains(&now)
    }

    /// Whether its subject is also its issuer.
    pub(super) fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    /// Whether the key of this certificate signed `other`.
    pub(super) fn has_issued(&self, other: &X509<'_>, known: &WebPkiSupportedAlgorithms) -> bool {
        self.key.has_signed(other.body, other.algorithm, other.signature, known)
    }

    /// Whether `issuer` may have issued this certificate, by names and key identifiers.
    pub(super) fn may_be_issued_by(&self, issuer: &X509<'_>) -> bool {
        let ids = (self.extensions.authority_key_id, issuer.extensions.key_id);
        self.issuer == issuer.subject && !matches!(ids, (Some(wanted), Some(id)) if wanted != id)
    }
}

impl CertificateKey<'_> {
    /// Whether this key signed `message`.
    pub(super) fn has_signed(
        &self,
        message: &[u8],
        algorithm: &[u8],
        signature: &[u8],
        known: &WebPkiSupportedAlgorithms,
    ) -> bool {
        known.all.iter().any(|verifier| {
            verifier.signature_alg_id().as_ref() == algorithm
                && verifier.public_key_alg_id().as_ref() == self.algorithm
                && verifier.verify_signature(self.bits, message, signature).is_ok()
        })
    }
}

impl<'a> Extensions<'a> {
    fn read(list: &[Extension<'a>]) -> Result<Extensions<'a>, Flaw> {
        let mut read = Extensions::default();
        for extension in list {
            let value = extension.value.as_bytes();
            let is_known = match extension.id.0 {
                [0x55, 29, kind] => read.note(*kind, value)?,
                id => {
                    read.access = read.access.or((id == ACCESS).then_some(value));
                    false
                }
            };
            read.has_unknown_critical |= extension.critical.is_some_and(|flag| flag.0) && !is_known;
        }
        Ok(read)
    }

    /// Notes an extension of 2.5.29; returns whether it is understood.
    fn note(&mut self, kind: u8, value: &'a [u8]) -> Result<bool, Flaw> {
        match kind {
            BASIC_CONSTRAINTS => {
                let read = BasicConstraints::from_der(value)?;
                self.has_basic_constraints = true;
                self.is_authority = read.is_authority.is_some_and(|flag| flag.0);
                self.path_len = read.path_len;
            }
            KEY_USAGE => {
                let bits = BitStringRef::from_der(value)?.raw_bytes();
                let byte = |at: usize| u16::from(bits.get(at).copied().unwrap_or(0));
                self.key_usage = Some(byte(0) << 8 | byte(1));
            }
            EXTENDED_KEY_USAGE => {
                let mut purposes = Purposes::default();
                for purpose in Vec::<Oid<'a>>::from_der(value)? {
                    purposes.server |= purpose.0 == SERVER_AUTH;
                    purposes.client |= purpose.0 == CLIENT_AUTH;
                    purposes.ocsp |= purpose.0 == OCSP_SIGNING;
                }
                self.extended = Some(purposes);
            }
            SUBJECT_KEY_ID => self.key_id = Some(<&OctetStringRef>::from_der(value)?.as_bytes()),
            AUTHORITY_KEY_ID => {
                let parts = Vec::<AnyRef<'a>>::from_der(value)?;
                self.authority_key_id = parts.iter().find(|part| part.tag() == KEY_ID).map(|part| part.value());
            }
            // Its other names may have types that `der` does not know, and no judgement needs them.
            SUBJECT_ALT_NAME => {
                let names = Vec::<AnyRef<'a>>::from_der(value).unwrap_or_default();
                self.has_dns_names = names.iter().any(|name| name.tag() == DNS_NAME);
            }
            NAME_CONSTRAINTS => self.has_name_constraints = true,
            CERTIFICATE_POLICIES => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::describe::tests::der;
    use super::*;
    use ::der::Encode;

    /// The certificate with `to` in place of `from`, and the right lengths around it.
    fn with(from: &[u8], to: &[u8]) -> Vec<u8> {
        let der = der();
        let outer = Certificate::from_der(&der).unwrap();
        let body = outer.body.bytes;
        let body = <&der::asn1::SequenceRef>::from_der(body).unwrap().as_bytes();
        let at = body.windows(from.len()).position(|window| window == from).unwrap();
        let body = [&body[..at], to, &body[at + from.len()..]].concat();
        let sequence = |content: &[u8]| AnyRef::new(Tag::Sequence, content).unwrap().to_der().unwrap();
        let algorithm = sequence(outer.algorithm.as_bytes());
        sequence(&[sequence(&body), algorithm, outer.signature.to_der().unwrap()].concat())
    }

    #[test]
    fn serial_numbers() {
        const SERIAL: &[u8] = &[2, 5, 0, 0xc0, 0xff, 0xee, 1];
        let long = [&[2, 40, 1][..], &[7; 39]].concat();
        for (serial, wanted) in [
            (SERIAL, Ok(&SERIAL[2..])),
            (&[2, 1, 0], Ok(&[0][..])),
            (&[2, 1, 0xff], Ok(&[0xff])),
            (&[2, 2, 0xff, 0x7f], Ok(&[0xff, 0x7f])),
            (&long, Ok(&long[2..])),
            (&[2, 0], Err(Flaw::Form)),
            (&[2, 2, 0, 1], Err(Flaw::Form)),
            (&[2, 2, 0xff, 0xff], Err(Flaw::Form)),
            (&[4, 1, 0], Err(Flaw::Field)),
        ] {
            let der = with(SERIAL, serial);
            assert_eq!(X509::read(&der).map(|read| read.serial.to_vec()), wanted.map(<[u8]>::to_vec), "{serial:x?}");
        }
    }

    #[test]
    fn fields_that_only_ber_allows() {
        // TRUE of the first critical extension, and its keyUsage.
        let read = |from: &[u8], to: &[u8]| X509::read(&with(from, to)).map(|read| read.extensions.is_authority);
        assert_eq!(read(&[1, 1, 0xff, 4, 8], &[1, 1, 1, 4, 8]), Ok(true));
        assert_eq!(read(&[1, 1, 0xff, 4, 8], &[1, 1, 0, 4, 8]), Ok(true));
        assert_eq!(read(&[0x30, 6, 1, 1, 0xff, 2, 1, 2], &[0x30, 6, 1, 1, 7, 2, 1, 2]), Ok(true));
        assert_eq!(read(&[0x30, 6, 1, 1, 0xff, 2, 1, 2], &[0x30, 6, 2, 1, 2, 2, 1, 2]), Err(Flaw::Trailing));
        assert_eq!(read(b"\x18\x0f2051", b"\x18\x0f205x"), Err(Flaw::Time));
        assert_eq!(read(&[0xa0, 3, 2, 1, 2], &[0xa0, 3, 2, 1, 2]), Ok(true));
        assert_eq!(read(&[0xa0, 3, 2, 1, 2], &[0xa0, 4, 2, 2, 0, 2]), Err(Flaw::Form));
    }

    #[test]
    fn bytes_that_are_no_certificate() {
        let der = der();
        let deep = (0..100_000).fold(Vec::new(), |deep: Vec<u8>, _| [&[0x30, 0x80][..], &deep[..]].concat());
        let huge = AnyRef::new(Tag::Sequence, &vec![0x30; 16 << 20]).unwrap().to_der().unwrap();
        for (bytes, flaw) in [
            (&b""[..], Flaw::Truncated),
            (b"\x30", Flaw::Truncated),
            (b"\x30\x80", Flaw::Indefinite),
            (b"\x30\x84\xff\xff\xff\xff", Flaw::Length),
            (b"\x30\x84\x7f\xff\xff\xff", Flaw::Truncated),
            (b"\x30\x82\x00\x02\x30\x00", Flaw::Length),
            (b"\x30\x02\x30\x00", Flaw::Truncated),
            (b"-----BEGIN", Flaw::Field),
            (&deep, Flaw::Indefinite),
            (&huge, Flaw::Field),
            (&[&der[..], &[0]].concat(), Flaw::Trailing),
            (&der[..der.len() - 1], Flaw::Truncated),
        ] {
            assert_eq!(X509::read(bytes).unwrap_err(), flaw, "{:x?}", &bytes[..bytes.len().min(12)]);
        }
    }
}
