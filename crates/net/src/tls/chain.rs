//! Checks whether a chain of certificates leads to a trusted authority, by OpenSSL's rules and in its words.
//!
//! nginx completes the handshake with every verdict, and shows the verdict: `FAILED:certificate has expired`. Its users
//! compare these words, use certificates of version 1, and limit the depth of chains; webpki supports none of this.
//! Accepting chains that webpki refuses does not weaken security. Signatures use the algorithms of rustls' provider
//! (nothing with SHA-1, no RSA below 2048 bits). This module does not evaluate name constraints: an authority that has
//! them makes the whole chain below it invalid. Later complaints replace earlier ones in the order of OpenSSL 3.0's
//! `X509_verify_cert`, because its callback in nginx continues after each complaint.

use super::der::{Flaw, Opaque, Raw, Time, bits};
use super::x509::{CRL_SIGN, DIGITAL_SIGNATURE, KEY_AGREEMENT, KEY_CERT_SIGN, X509};
use ::der::asn1::{BitStringRef, IntRef};
use ::der::{Decode, DecodeValue, Sequence};
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs};
use std::collections::HashSet;

/// The longest chain that weir follows, also if a larger depth is allowed.
const CHAIN_MAX: usize = 20;

/// The purpose of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A client sends it to a server.
    Client,
    /// A server sends it to a client.
    Server,
}

/// An error of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// OpenSSL's `X509_V_ERR_…` as a number.
    pub code: u32,
    /// OpenSSL's sentence for it.
    pub text: &'static str,
}

macro_rules! complaints {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        $( $(#[$doc])* pub const $name: Complaint = Complaint { code: $code, text: $text }; )*
    };
}

impl Complaint {
    complaints! {
        /// A trusted certificate's own issuer is missing.
        NO_ISSUER = 2, "unable to get issuer certificate";
        /// There are revocation lists, but none of this certificate's issuer.
        NO_CRL = 3, "unable to get certificate CRL";
        /// The signature is wrong, or of an insecure kind.
        SIGNATURE = 7, "certificate signature failure";
        /// The signature of a revocation list is wrong.
        CRL_SIGNATURE = 8, "CRL signature failure";
        /// The certificate is not valid yet.
        NOT_YET = 9, "certificate is not yet valid";
        /// The certificate has expired.
        EXPIRED = 10, "certificate has expired";
        /// A revocation list is out of date.
        CRL_EXPIRED = 12, "CRL has expired";
        /// The certificate is self-signed.
        SELF_SIGNED = 18, "self-signed certificate";
        /// The chain ends with a self-signed certificate.
        SELF_SIGNED_IN_CHAIN = 19, "self-signed certificate in certificate chain";
        /// The issuer of the last certificate is unknown.
        NO_LOCAL_ISSUER = 20, "unable to get local issuer certificate";
        /// The issuer of the only certificate is unknown.
        FIRST = 21, "unable to verify the first certificate";
        /// The certificate is on a revocation list.
        REVOKED = 23, "certificate revoked";
        /// An authority allows fewer authorities below it.
        PATH_LENGTH = 25, "path length constraint exceeded";
        /// The certificate is not for this purpose.
        PURPOSE = 26, "unsuitable certificate purpose";
        /// The certificate has a critical extension that this module does not know.
        CRITICAL = 34, "unhandled critical extension";
        /// An authority has name constraints, which this module does not evaluate.
        NAMES = 47, "permitted subtree violation";
        /// A certificate issued another one without being an authority.
        NO_AUTHORITY = 79, "invalid CA certificate";
        /// The status (revoked or not) could not be requested (nginx's words, OpenSSL's number).
        STATUS = 74, "certificate status request failed";
        /// The certificate cannot be read.
        UNREADABLE = 4, "unable to decrypt certificate's signature";
    }

    /// Whether the only complaint is that no trusted authority stands behind the chain: `optional_no_ca` accepts this.
    pub fn is_about_trust_alone(self) -> bool {
        let about_trust = [Self::SELF_SIGNED, Self::SELF_SIGNED_IN_CHAIN, Self::NO_LOCAL_ISSUER, Self::FIRST];
        about_trust.contains(&self)
    }
}

/// The trusted authorities and the revocation lists.
#[derive(Debug, Default)]
pub struct Trust {
    authorities: Vec<Vec<u8>>,
    lists: Vec<RevocationList>,
    checks_revocation: bool,
}

/// A list of revoked certificates (RFC 5280 §5).
#[derive(Debug)]
struct RevocationList {
    issuer: Vec<u8>,
    body: Vec<u8>,
    algorithm: Vec<u8>,
    signature: Vec<u8>,
    expires: Option<i64>,
    serials: HashSet<Vec<u8>>,
}

impl Trust {
    /// Trusts these certificates in DER. Duplicates count once. `Err` says why one of them cannot be read.
    pub fn new(authorities: impl IntoIterator<Item = Vec<u8>>) -> Result<Trust, Flaw> {
        let mut trust = Trust::default();
        for der in authorities {
            X509::read(&der)?;
            if !trust.authorities.contains(&der) {
                trust.authorities.push(der);
            }
        }
        Ok(trust)
    }

    /// Adds a revocation list in DER; `Err` says why it cannot be read. From then on, each certificate of a chain
    /// needs a list of its issuer.
    pub fn add_list(&mut self, der: &[u8]) -> Result<(), Flaw> {
        self.checks_revocation = true;
        self.lists.push(RevocationList::read(der)?);
        Ok(())
    }

    /// Judges a chain in DER, the peer's own certificate first, at `now` seconds since 1970.
    ///
    /// `depth` is the number of certificates that may stand between the first one and the authority.
    pub fn judge(&self, chain: &[&[u8]], purpose: Purpose, depth: usize, now: i64) -> Result<(), Complaint> {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        let given: Vec<X509<'_>> = chain.iter().take(CHAIN_MAX).filter_map(|der| X509::read(der).ok()).collect();
        let Some(leaf) = chain.first().and_then(|der| X509::read(der).ok()) else { return Err(Complaint::UNREADABLE) };
        let trusted: Vec<X509<'_>> = self.authorities.iter().filter_map(|der| X509::read(der).ok()).collect();
        let mut verdict = Ok(());
        let mut complain = |complaint: Complaint| verdict = Err(complaint);
        let built = build(leaf, &given, &trusted, depth);
        if let Some(complaint) = built.complaint {
            complain(complaint);
        }
        for (index, certificate) in built.chain.iter().enumerate() {
            if let Some(complaint) = fitness(certificate, index, &built.chain, purpose) {
                complain(complaint);
            }
        }
        if self.checks_revocation {
            for index in 0..built.chain.len() {
                if let Some(complaint) = self.revocation(&built.chain, index, &algorithms, now) {
                    complain(complaint);
                }
            }
        }
        for (index, certificate) in built.chain.iter().enumerate().rev() {
            match built.chain.get(index + 1) {
                // Its issuer is not in the chain.
                None if index == 0 && !certificate.is_self_issued() => complain(Complaint::FIRST),
                Some(issuer) if !issuer.has_issued(certificate, &algorithms) => complain(Complaint::SIGNATURE),
                None | Some(_) => {}
            }
            if now < certificate.not_before.seconds {
                complain(Complaint::NOT_YET);
            } else if now > certificate.not_after.seconds {
                complain(Complaint::EXPIRED);
            }
        }
        verdict
    }

    /// The chain that is judged, in DER, up to the authority.
    pub fn chain(&self, chain: &[&[u8]], depth: usize) -> Vec<Vec<u8>> {
        let given: Vec<X509<'_>> = chain.iter().take(CHAIN_MAX).filter_map(|der| X509::read(der).ok()).collect();
        let trusted: Vec<X509<'_>> = self.authorities.iter().filter_map(|der| X509::read(der).ok()).collect();
        let built = given.first().map(|leaf| build(*leaf, &given, &trusted, depth).chain);
        built.unwrap_or_default().iter().map(|certificate| certificate.der.to_vec()).collect()
    }

    /// Whether a certificate in DER is a trusted authority, or is below one, and all of them are valid at `now`.
    pub fn vouches_for(&self, der: &[u8], now: i64) -> bool {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        let trusted: Vec<X509<'_>> = self.authorities.iter().filter_map(|der| X509::read(der).ok()).collect();
        let Ok(mut top) = X509::read(der) else { return false };
        for _ in 0..CHAIN_MAX {
            if !top.is_valid(now) {
                return false;
            }
            if top.is_self_issued() {
                return trusted.iter().any(|own| own.der == top.der);
            }
            let above = trusted.iter().find(|own| top.may_be_issued_by(own) && own.has_issued(&top, &algorithms));
            let Some(above) = above else { return false };
            top = *above;
        }
        false
    }

    /// The result of the revocation lists for one certificate of a chain.
    fn revocation(
        &self,
        chain: &[X509<'_>],
        index: usize,
        algorithms: &WebPkiSupportedAlgorithms,
        now: i64,
    ) -> Option<Complaint> {
        let certificate = chain.get(index)?;
        let issuer = chain.get(index + 1).unwrap_or(certificate);
        let mut found = Some(Complaint::NO_CRL);
        for list in self.lists.iter().filter(|list| list.issuer == certificate.issuer) {
            let may_sign = issuer.extensions.key_usage.is_none_or(|usage| usage & CRL_SIGN != 0);
            if !may_sign || !issuer.key.has_signed(&list.body, &list.algorithm, &list.signature, algorithms) {
                found = Some(Complaint::CRL_SIGNATURE);
                continue;
            }
            if list.serials.contains(certificate.serial) {
                return Some(Complaint::REVOKED);
            }
            found = list.expires.filter(|expires| now > *expires).map(|_| Complaint::CRL_EXPIRED);
            found?;
        }
        found
    }
}

struct Built<'a> {
    chain: Vec<X509<'a>>,
    complaint: Option<Complaint>,
}

/// Follows the issuers upwards, and prefers trusted ones.
fn build<'a>(leaf: X509<'a>, given: &[X509<'a>], trusted: &[X509<'a>], depth: usize) -> Built<'a> {
    let is_trusted = |certificate: &X509<'_>| trusted.iter().any(|other| other.der == certificate.der);
    let mut chain = vec![leaf];
    let mut top = leaf;
    let mut has_trusted = is_trusted(&leaf);
    loop {
        if top.is_self_issued() && top.may_be_issued_by(&top) {
            if is_trusted(&top) {
                return Built { chain, complaint: None };
            }
            let alone = chain.len() == 1;
            let complaint = if alone { Complaint::SELF_SIGNED } else { Complaint::SELF_SIGNED_IN_CHAIN };
            return Built { chain, complaint: Some(complaint) };
        }
        let mut issuers = trusted.iter().chain(if has_trusted { &[] } else { given });
        let is_new = |other: &&X509<'_>| chain.iter().all(|known| known.der != other.der);
        // Does not look for an issuer beyond the depth.
        let may_go_on = chain.len() <= depth.saturating_add(1).min(CHAIN_MAX);
        let issuer = issuers.find(|other| top.may_be_issued_by(other) && is_new(other)).filter(|_| may_go_on);
        let Some(issuer) = issuer else {
            let complaint = if has_trusted { Complaint::NO_ISSUER } else { Complaint::NO_LOCAL_ISSUER };
            return Built { chain, complaint: Some(complaint) };
        };
        has_trusted |= is_trusted(issuer);
        top = *issuer;
        chain.push(top);
    }
}

/// The reason why a certificate may not be at its place in the chain; `None` if it may.
fn fitness(certificate: &X509<'_>, index: usize, chain: &[X509<'_>], purpose: Purpose) -> Option<Complaint> {
    let says = &certificate.extensions;
    if says.has_unknown_critical {
        return Some(Complaint::CRITICAL);
    }
    let is_issuer = index > 0;
    if is_issuer {
        let is_old_root = certificate.version == 0 && certificate.is_self_issued();
        let may_issue =
            if says.has_basic_constraints { says.is_authority } else { is_old_root || says.key_usage.is_some() };
        let may_sign = says.key_usage.is_none_or(|usage| usage & KEY_CERT_SIGN != 0);
        if !may_issue || !may_sign {
            return Some(Complaint::NO_AUTHORITY);
        }
        if says.has_name_constraints {
            return Some(Complaint::NAMES);
        }
        // The certificates below it that are not self-issued, without the first one.
        let below = chain.iter().take(index).skip(1).filter(|other| !other.is_self_issued()).count();
        if says.path_len.is_some_and(|len| below as u64 > len) {
            return Some(Complaint::PATH_LENGTH);
        }
    } else if says.key_usage.is_some_and(|usage| usage & (DIGITAL_SIGNATURE | KEY_AGREEMENT) == 0) {
        return Some(Complaint::PURPOSE);
    }
    let is_meant = says.extended.is_none_or(|purposes| match purpose {
        Purpose::Client => purposes.client,
        Purpose::Server => purposes.server,
    });
    (!is_meant).then_some(Complaint::PURPOSE)
}

/// The bytes of a revocation list by RFC 5280 §5.1.
#[derive(DecodeValue)]
struct List<'a> {
    body: Raw<'a, Body<'a>>,
    algorithm: Opaque<'a>,
    signature: BitStringRef<'a>,
}

impl<'a> Sequence<'a> for List<'a> {}

#[derive(DecodeValue)]
struct Body<'a> {
    _version: Option<u8>,
    algorithm: Opaque<'a>,
    issuer: Raw<'a, Opaque<'a>>,
    _from: Time,
    to: Option<Time>,
    revoked: Option<Vec<Revoked<'a>>>,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    _extensions: Option<Opaque<'a>>,
}

impl<'a> Sequence<'a> for Body<'a> {}

#[derive(DecodeValue)]
struct Revoked<'a> {
    serial: IntRef<'a>,
    _at: Time,
    _extensions: Option<Opaque<'a>>,
}

impl<'a> Sequence<'a> for Revoked<'a> {}

impl RevocationList {
    fn read(der: &[u8]) -> Result<RevocationList, Flaw> {
        let outer = List::from_der(der)?;
        let body = outer.body.value;
        if body.algorithm != outer.algorithm {
            return Err(Flaw::Field);
        }
        Ok(RevocationList {
            issuer: body.issuer.bytes.to_vec(),
            body: outer.body.bytes.to_vec(),
            algorithm: outer.algorithm.as_bytes().to_vec(),
            signature: bits(outer.signature)?.to_vec(),
            expires: body.to.map(|time| time.seconds),
            serials: body.revoked.iter().flatten().map(|revoked| revoked.serial.as_bytes().to_vec()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::describe::tests::der;
    use super::*;
    use ::der::asn1::AnyRef;
    use ::der::{Encode, Tag};
    use proptest::prelude::*;

    /// A time at which the certificate is valid.
    const NOW: i64 = 1_800_000_000;

    #[test]
    fn one_that_is_trusted_itself() {
        let der = der();
        let trust = Trust::new([der.clone(), der.clone()]).unwrap();
        let judge = |trust: &Trust, purpose, now| trust.judge(&[&der], purpose, 0, now);
        assert_eq!(judge(&trust, Purpose::Client, NOW), Ok(()));
        assert_eq!(judge(&trust, Purpose::Server, NOW), Err(Complaint::PURPOSE));
        assert_eq!(judge(&trust, Purpose::Client, 1_700_000_000), Err(Complaint::NOT_YET));
        assert_eq!(judge(&trust, Purpose::Client, 2_600_000_000), Err(Complaint::EXPIRED));
        assert_eq!(judge(&Trust::default(), Purpose::Client, NOW), Err(Complaint::SELF_SIGNED));
        assert_eq!(trust.authorities.len(), 1);
        assert_eq!(trust.judge(&[], Purpose::Client, 0, NOW), Err(Complaint::UNREADABLE));
        assert!(Trust::new([b"nothing".to_vec()]).is_err() && Trust::default().add_list(b"nothing").is_err());
        assert!(Complaint::SELF_SIGNED.is_about_trust_alone() && !Complaint::EXPIRED.is_about_trust_alone());
    }

    #[test]
    fn an_authority_is_vouched_for_in_its_time() {
        let der = der();
        let trust = Trust::new([der.clone()]).unwrap();
        assert!(trust.vouches_for(&der, NOW) && !trust.vouches_for(&der, 2_600_000_000));
        assert!(!Trust::default().vouches_for(&der, NOW) && !trust.vouches_for(b"nothing", NOW));
    }

    #[test]
    fn another_under_its_name_is_not_trusted() {
        let der = der();
        let mut forged = der.clone();
        // A bit of the serial number: the same names, another certificate.
        let at = forged.windows(4).position(|window| window == [0xc0, 0xff, 0xee, 0x01]).unwrap();
        forged[at] ^= 1;
        let trust = Trust::new([der]).unwrap();
        assert!(trust.judge(&[&forged], Purpose::Client, 5, NOW).is_err());
    }

    fn element(tag: Tag, parts: &[&[u8]]) -> Vec<u8> {
        AnyRef::new(tag, &parts.concat()).unwrap().to_der().unwrap()
    }

    /// A revocation list with these fields between its version and its extensions.
    fn list(version: &[u8], fields: &[&[u8]]) -> Vec<u8> {
        let algorithm = element(Tag::Sequence, &[&[6, 1, 42]]);
        let name = element(Tag::Sequence, &[]);
        let body = element(Tag::Sequence, &[&[version, &algorithm, &name], fields].concat());
        element(Tag::Sequence, &[&body, &algorithm, &[3, 2, 0, 7]])
    }

    #[test]
    fn revocation_lists_of_both_versions() {
        let (from, to) = (b"\x17\x0d261122110139Z", b"\x17\x0d261123110139Z");
        let entry = element(Tag::Sequence, &[&[2, 1, 0xff], from]);
        let long = element(Tag::Sequence, &[&[&[2, 40, 1][..], &[7; 39]].concat(), from]);
        let revoked = element(Tag::Sequence, &[&entry, &long]);
        for version in [&[][..], &[2, 1, 1]] {
            let read = RevocationList::read(&list(version, &[from, to, &revoked])).unwrap();
            assert_eq!((read.expires, read.serials.len()), (Some(1_795_431_699), 2));
            assert!(read.serials.contains(&[0xff][..]));
            let read = RevocationList::read(&list(version, &[from, &[0xa0, 2, 0x30, 0]])).unwrap();
            assert_eq!((read.expires, read.serials.len()), (None, 0));
        }
        // If weir cannot read an entry, it does not treat the entry's certificate as good.
        let broken = element(Tag::Sequence, &[&element(Tag::Sequence, &[&[2, 2, 0, 1], from])]);
        assert_eq!(RevocationList::read(&list(&[], &[from, to, &broken])).unwrap_err(), Flaw::Form);
        assert_eq!(RevocationList::read(&list(&[], &[from, to, &[5, 0]])).unwrap_err(), Flaw::Trailing);
        assert_eq!(RevocationList::read(&list(&[], &[b"\x17\x0d261322110139Z"])).unwrap_err(), Flaw::Time);
    }

    proptest! {
        #[test]
        fn damage_never_panics_and_never_helps(at in any::<prop::sample::Index>(), to in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let der = der();
            let trust = Trust::new([der.clone()]).unwrap();
            let mut damaged = der.clone();
            let at = at.index(damaged.len());
            damaged[at] = to;
            let verdict = trust.judge(&[&damaged], Purpose::Client, 5, NOW);
            prop_assert_eq!(verdict.is_ok(), damaged == der);
            damaged.truncate(cut.index(der.len()));
            prop_assert!(trust.judge(&[&damaged, &der], Purpose::Client, 5, NOW).is_err());
            let _ = RevocationList::read(&damaged);
        }
    }
}
