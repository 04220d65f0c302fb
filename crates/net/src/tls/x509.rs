//! Reads a whole certificate (RFC 5280), for judging a chain and describing a client.
//!
//! Unlike webpki it reads version 1, which self-made authorities and clients still have, and it names the errors it
//! finds. Reading trusts nothing: `chain` checks signatures and trust.

use super::der::{BIT_STRING, BOOLEAN, INTEGER, Item, Items, OBJECT_ID, OCTET_STRING, SEQUENCE, seconds};
use rustls::crypto::WebPkiSupportedAlgorithms;

/// `[0] EXPLICIT`, the version.
const VERSION: u8 = 0xa0;
/// `[3] EXPLICIT`, the extensions.
const EXTENSIONS: u8 = 0xa3;
/// 2.5.29.*
const CERTIFICATE_EXTENSION: [u8; 2] = [0x55, 29];
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

/// The fields of a certificate that are read; everything borrows from its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct X509<'a> {
    pub(super) der: &'a [u8],
    /// The signed part.
    pub(super) body: &'a [u8],
    /// 0 for version 1.
    pub(super) version: u8,
    /// The serial number's bytes, as written.
    pub(super) serial: &'a [u8],
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
    pub(super) not_before: i64,
    pub(super) not_after: i64,
    /// The times as written, with their tags.
    pub(super) times: (Tagged<'a>, Tagged<'a>),
    pub(super) key: Key<'a>,
    /// The signature's algorithm, and the signature.
    pub(super) algorithm: &'a [u8],
    pub(super) signature: &'a [u8],
    pub(super) extensions: Extensions<'a>,
}

/// A tag and a value.
pub(super) type Tagged<'a> = (u8, &'a [u8]);

/// A public key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
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
}

/// The purposes that extendedKeyUsage allows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Purposes {
    pub(super) server: bool,
    pub(super) client: bool,
}

/// Bits of keyUsage.
pub(super) const DIGITAL_SIGNATURE: u16 = 0x8000;
pub(super) const KEY_AGREEMENT: u16 = 0x0800;
pub(super) const KEY_CERT_SIGN: u16 = 0x0400;
pub(super) const CRL_SIGN: u16 = 0x0200;

impl<'a> X509<'a> {
    /// Reads a certificate; `None` if it is not one.
    pub(super) fn read(der: &'a [u8]) -> Option<X509<'a>> {
        let mut outer = Items(Items(der).want(SEQUENCE)?);
        let body = outer.next().filter(|item| item.tag == SEQUENCE)?;
        let algorithm = outer.want(SEQUENCE)?;
        let signature = bits(outer.want(BIT_STRING)?)?;
        let mut inner = Items(body.value);
        let mut serial = inner.next()?;
        let mut version = 0;
        if serial.tag == VERSION {
            version = *Items(serial.value).want(INTEGER)?.last()?;
            serial = inner.next()?;
        }
        let serial = Some(serial.value).filter(|_| serial.tag == INTEGER)?;
        if inner.want(SEQUENCE)? != algorithm {
            return None;
        }
        let issuer = inner.want(SEQUENCE)?;
        let mut validity = Items(inner.want(SEQUENCE)?);
        let (from, to) = (validity.next()?, validity.next()?);
        let subject = inner.want(SEQUENCE)?;
        let key = Key::read(inner.next().filter(|item| item.tag == SEQUENCE)?)?;
        let extensions = match inner.find(|item| item.tag == EXTENSIONS) {
            Some(item) => Extensions::read(Items(item.value).want(SEQUENCE)?)?,
            None => Extensions::default(),
        };
        Some(X509 {
            der,
            body: body.raw,
            version,
            serial,
            issuer,
            subject,
            not_before: seconds(from)?,
            not_after: seconds(to)?,
            times: ((from.tag, from.value), (to.tag, to.value)),
            key,
            algorithm,
            signature,
            extensions,
        })
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

impl<'a> Key<'a> {
    fn read(info: Item<'a>) -> Option<Key<'a>> {
        let mut parts = Items(info.value);
        Some(Key { info: info.raw, algorithm: parts.want(SEQUENCE)?, bits: bits(parts.want(BIT_STRING)?)? })
    }

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

/// The bytes of a BIT STRING without unused bits.
pub(super) fn bits(value: &[u8]) -> Option<&[u8]> {
    value.split_first().filter(|(unused, _)| **unused == 0).map(|(_, bytes)| bytes)
}

impl<'a> Extensions<'a> {
    fn read(list: &'a [u8]) -> Option<Extensions<'a>> {
        let mut read = Extensions::default();
        for extension in Items(list) {
            let mut parts = Items(extension.value);
            let id = parts.want(OBJECT_ID)?;
            let mut value = parts.next()?;
            let is_critical = value.tag == BOOLEAN && value.value.first().is_some_and(|byte| *byte != 0);
            if value.tag == BOOLEAN {
                value = parts.next()?;
            }
            if value.tag != OCTET_STRING {
                return None;
            }
            let is_known = match id.strip_prefix(&CERTIFICATE_EXTENSION) {
                Some([kind]) => read.note(*kind, value.value)?,
                _ => false,
            };
            read.has_unknown_critical |= is_critical && !is_known;
        }
        Some(read)
    }

    /// Notes an extension of 2.5.29; returns whether it is understood.
    fn note(&mut self, kind: u8, value: &'a [u8]) -> Option<bool> {
        match kind {
            BASIC_CONSTRAINTS => {
                let mut parts = Items(Items(value).want(SEQUENCE)?).peekable();
                self.has_basic_constraints = true;
                self.is_authority = parts
                    .next_if(|item| item.tag == BOOLEAN)
                    .is_some_and(|item| item.value.first().is_some_and(|byte| *byte != 0));
                if let Some(len) = parts.next_if(|item| item.tag == INTEGER) {
                    self.path_len = Some(len.value.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
                }
            }
            KEY_USAGE => {
                let bits = Items(value).want(BIT_STRING)?;
                let byte = |at: usize| u16::from(bits.get(at).copied().unwrap_or(0));
                self.key_usage = Some(byte(1) << 8 | byte(2));
            }
            EXTENDED_KEY_USAGE => {
                let mut purposes = Purposes::default();
                for purpose in Items(Items(value).want(SEQUENCE)?) {
                    purposes.server |= purpose.value == SERVER_AUTH;
                    purposes.client |= purpose.value == CLIENT_AUTH;
                }
                self.extended = Some(purposes);
            }
            SUBJECT_KEY_ID => self.key_id = Items(value).want(OCTET_STRING),
            // keyIdentifier is its `[0]`.
            AUTHORITY_KEY_ID => self.authority_key_id = Items(Items(value).want(SEQUENCE)?).want(0x80),
            NAME_CONSTRAINTS => self.has_name_constraints = true,
            SUBJECT_ALT_NAME | CERTIFICATE_POLICIES => {}
            _ => return Some(false),
        }
        Some(true)
    }
}
