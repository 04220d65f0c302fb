//! OCSP (RFC 6960): the question about one certificate, and the content of an answer.
//!
//! Bytes in, bytes out; the caller sends the question and keeps the answer. Reading trusts only signatures: an answer
//! counts only if it is about this certificate, is valid at this time, and has the signature of an allowed signer.

use super::chain::Trust;
use super::der::{Algorithm, Flaw, Oid, Opaque, Raw, Time, bits};
use super::x509::X509;
use ::aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use der::asn1::{AnyRef, BitStringRef, IntRef, OctetStringRef};
use der::{Decode, DecodeValue, Encode, Sequence, Tag, TagNumber, Tagged};
use rustls::crypto::aws_lc_rs;
use std::fmt;

/// CertStatus is a choice: `[0]` good, `[1]` revoked, `[2]` unknown.
const STATUSES: [(Tag, Status); 3] = [
    (Tag::ContextSpecific { constructed: false, number: TagNumber(0) }, Status::Good),
    (Tag::ContextSpecific { constructed: true, number: TagNumber(1) }, Status::Revoked),
    (Tag::ContextSpecific { constructed: false, number: TagNumber(2) }, Status::Unknown),
];
/// uniformResourceIdentifier of GeneralName, `[6]`.
const URI: Tag = Tag::ContextSpecific { constructed: false, number: TagNumber(6) };
/// 1.3.14.3.2.26, which every responder knows.
const SHA1: &[u8] = &[0x2b, 14, 3, 2, 26];
/// 1.3.6.1.5.5.7.48.1.1
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1, 1];
/// 1.3.6.1.5.5.7.48.1
const OCSP: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1];

/// Certificates of an answer that are checked, at most.
const SIGNERS_MAX: usize = 8;

/// The allowed difference between clocks; seconds (nginx: 300).
const SLACK_S: i64 = 300;

/// A question about one certificate.
#[derive(Clone)]
pub struct Question {
    issuer: Vec<u8>,
    /// The CertID.
    id: Vec<u8>,
    request: Vec<u8>,
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ocsp::Question")
    }
}

/// The status of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is good.
    Good,
    /// It was revoked.
    Revoked,
    /// The responder does not know it.
    Unknown,
}

impl Status {
    /// OpenSSL's word.
    pub fn word(self) -> &'static str {
        match self {
            Status::Good => "good",
            Status::Revoked => "revoked",
            Status::Unknown => "unknown",
        }
    }
}

/// A valid answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OcspAnswer {
    /// The status of the certificate.
    pub status: Status,
    /// The time until which it is valid, if the answer says so; seconds since 1970.
    pub until: Option<i64>,
}

/// The signers that are allowed for an answer.
#[derive(Clone, Copy)]
pub enum Signer<'t> {
    /// Any signer whose certificate is in the answer (nginx without `ssl_stapling_verify`): the reader of the answer
    /// must judge it.
    Anybody,
    /// The issuer, or a signer that it appointed, if the issuer is trusted.
    Appointed(&'t Trust),
}

/// Why an answer is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspFault {
    /// It is not an OCSP response in DER.
    Unreadable(Flaw),
    /// It claims success and has no answer of the basic kind.
    Empty,
    /// The responder could not answer: its number for the reason (RFC 6960 §4.2.1).
    Refused(u8),
    /// No allowed signer has signed it.
    Signature,
    /// It is about other certificates.
    Foreign,
    /// It has expired, or is not valid yet.
    OutOfTime,
}

impl fmt::Display for OcspFault {
    /// The words of nginx and OpenSSL, if they have this error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OcspFault::Unreadable(flaw) => write!(f, "d2i_OCSP_RESPONSE() failed ({flaw})"),
            OcspFault::Empty => f.write_str("OCSP_response_get1_basic() failed (no basic response in it)"),
            OcspFault::Refused(number) => {
                let words = match number {
                    1 => "malformedrequest",
                    2 => "internalerror",
                    3 => "trylater",
                    5 => "sigrequired",
                    6 => "unauthorized",
                    _ => "(UNKNOWN)",
                };
                write!(f, "OCSP response not successful ({number}: {words})")
            }
            OcspFault::Signature => f.write_str("OCSP_basic_verify() failed (no allowed signer signed it)"),
            OcspFault::Foreign => f.write_str("certificate status not found in the OCSP response"),
            OcspFault::OutOfTime => f.write_str("OCSP_check_validity() failed"),
        }
    }
}

impl From<der::Error> for OcspFault {
    fn from(error: der::Error) -> OcspFault {
        OcspFault::Unreadable(error.into())
    }
}

/// The bytes of an answer by RFC 6960 §4.2.1.
#[derive(DecodeValue)]
struct Response<'a> {
    status: AnyRef<'a>,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    typed: Option<Typed<'a>>,
}

impl<'a> Sequence<'a> for Response<'a> {}

#[derive(DecodeValue)]
struct Typed<'a> {
    id: Oid<'a>,
    response: &'a OctetStringRef,
}

impl<'a> Sequence<'a> for Typed<'a> {}

#[derive(DecodeValue)]
struct Basic<'a> {
    body: Raw<'a, Body<'a>>,
    algorithm: Opaque<'a>,
    signature: BitStringRef<'a>,
    /// If weir cannot read one certificate, it can still read the others.
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    certificates: Option<Vec<Raw<'a, Opaque<'a>>>>,
}

impl<'a> Sequence<'a> for Basic<'a> {}

#[derive(DecodeValue)]
struct Body<'a> {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    _version: Option<u8>,
    _responder: AnyRef<'a>,
    _produced: Time,
    answers: Vec<Single<'a>>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    _extensions: Option<Opaque<'a>>,
}

impl<'a> Sequence<'a> for Body<'a> {}

#[derive(DecodeValue)]
struct Single<'a> {
    id: CertId<'a>,
    status: AnyRef<'a>,
    from: Time,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    until: Option<Time>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    _extensions: Option<Opaque<'a>>,
}

impl<'a> Sequence<'a> for Single<'a> {}

/// CertID (RFC 6960 §4.1.1).
#[derive(Sequence)]
struct CertId<'a> {
    algorithm: Algorithm<'a>,
    name: &'a OctetStringRef,
    key: &'a OctetStringRef,
    serial: IntRef<'a>,
}

/// AccessDescription (RFC 5280 §4.2.2.1).
#[derive(DecodeValue)]
struct Access<'a> {
    method: Oid<'a>,
    location: AnyRef<'a>,
}

impl<'a> Sequence<'a> for Access<'a> {}

impl CertId<'_> {
    /// Responders may leave out the NULL after the algorithm.
    fn is(&self, other: &CertId<'_>) -> bool {
        let parts = (self.algorithm.id, self.name, self.key, self.serial);
        parts == (other.algorithm.id, other.name, other.key, other.serial)
    }
}

impl Question {
    /// A question about `leaf`, issued by `issuer`, both in DER; `None` if one cannot be read or they do not belong
    /// together.
    pub fn new(leaf: &[u8], issuer: &[u8]) -> Option<Question> {
        let (leaf, above) = (X509::read(leaf).ok()?, X509::read(issuer).ok()?);
        if !leaf.may_be_issued_by(&above) {
            return None;
        }
        let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
        let (name, key) = (sha1(above.subject), sha1(above.key.bits));
        let id = CertId {
            algorithm: Algorithm { id: Oid(SHA1), parameters: Some(AnyRef::NULL) },
            name: OctetStringRef::new(name.as_ref()).ok()?,
            key: OctetStringRef::new(key.as_ref()).ok()?,
            serial: IntRef::new(leaf.serial).ok()?,
        };
        let own = id.to_der().ok()?;
        // OCSPRequest, TBSRequest, requestList and Request have no other fields.
        let request = vec![vec![vec![vec![id]]]].to_der().ok()?;
        Some(Question { issuer: issuer.to_vec(), id: own, request })
    }

    /// The OCSPRequest in DER.
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// The bytes that identify the certificate.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// Reads an OCSPResponse at `now` seconds since 1970.
    pub fn read(&self, response: &[u8], signer: Signer<'_>, now: i64) -> Result<OcspAnswer, OcspFault> {
        let outer = Response::from_der(response)?;
        match (outer.status.tag(), outer.status.value()) {
            (Tag::Enumerated, [0]) => {}
            (Tag::Enumerated, [number]) => return Err(OcspFault::Refused(*number)),
            _ => return Err(OcspFault::Unreadable(Flaw::Field)),
        }
        let typed = outer.typed.filter(|typed| typed.id.0 == BASIC).ok_or(OcspFault::Empty)?;
        let basic = Basic::from_der(typed.response.as_bytes())?;
        if !self.is_signed(&basic, signer, now)? {
            return Err(OcspFault::Signature);
        }
        let own = CertId::from_der(&self.id)?;
        let mut fault = OcspFault::Foreign;
        for single in basic.body.value.answers.iter().filter(|single| own.is(&single.id)) {
            match single.answer(now) {
                Ok(answer) => return Ok(answer),
                Err(other) => fault = other,
            }
        }
        Err(fault)
    }

    fn is_signed(&self, basic: &Basic<'_>, signer: Signer<'_>, now: i64) -> Result<bool, OcspFault> {
        let known = aws_lc_rs::default_provider().signature_verification_algorithms;
        let (algorithm, signature) = (basic.algorithm.as_bytes(), bits(basic.signature)?);
        let has_signed = |who: &X509<'_>| who.key.has_signed(basic.body.bytes, algorithm, signature, &known);
        let issuer = X509::read(&self.issuer).map_err(OcspFault::Unreadable)?;
        let given = basic.certificates.iter().flatten().take(SIGNERS_MAX);
        let given = given.filter_map(|certificate| X509::read(certificate.bytes).ok());
        Ok(match signer {
            Signer::Anybody => has_signed(&issuer) || given.into_iter().any(|who| has_signed(&who)),
            Signer::Appointed(trust) => {
                let is_appointed = |who: &X509<'_>| {
                    who.may_be_issued_by(&issuer)
                        && issuer.has_issued(who, &known)
                        && who.is_valid(now)
                        && who.extensions.extended.is_some_and(|purposes| purposes.ocsp)
                };
                let is_signed =
                    has_signed(&issuer) || given.into_iter().any(|who| is_appointed(&who) && has_signed(&who));
                is_signed && trust.vouches_for(&self.issuer, now)
            }
        })
    }
}

impl Single<'_> {
    fn answer(&self, now: i64) -> Result<OcspAnswer, OcspFault> {
        let known = STATUSES.iter().find(|(tag, _)| *tag == self.status.tag());
        let (_, status) = *known.ok_or(OcspFault::Unreadable(Flaw::Field))?;
        let until = self.until.map(|time| time.seconds);
        if now + SLACK_S < self.from.seconds || until.is_some_and(|until| until.saturating_add(SLACK_S) < now) {
            return Err(OcspFault::OutOfTime);
        }
        Ok(OcspAnswer { status, until })
    }
}

/// The URL of the responder in a certificate in DER.
pub fn responder(leaf: &[u8]) -> Option<String> {
    let access = X509::read(leaf).ok()?.extensions.access?;
    Vec::<Access<'_>>::from_der(access).ok()?.into_iter().find_map(|way| {
        let is_uri = way.method.0 == OCSP && way.location.tag() == URI;
        is_uri.then(|| String::from_utf8(way.location.value().to_vec()).ok())?
    })
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::describe::tests::der;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_responder_that_could_not_answer_is_told_apart() {
        let question = Question::new(&der(), &der()).unwrap();
        let read = |bytes: &[u8]| question.read(bytes, Signer::Anybody, 0);
        assert_eq!(read(&[0x30, 3, 0x0a, 1, 6]), Err(OcspFault::Refused(6)));
        assert_eq!(read(&[0x30, 3, 0x0a, 1, 0]), Err(OcspFault::Empty));
        assert_eq!(read(b"<html>"), Err(OcspFault::Unreadable(Flaw::Field)));
        assert!(Question::new(&der(), b"").is_none());
        assert_eq!(responder(&der()), None);
    }

    fn element(tag: Tag, parts: &[&[u8]]) -> Vec<u8> {
        AnyRef::new(tag, &parts.concat()).unwrap().to_der().unwrap()
    }

    /// An answer of which the signed part, the algorithm and so on are `parts`.
    pub fn response(parts: &[&[u8]]) -> Vec<u8> {
        let content = element(Tag::OctetString, &[&element(Tag::Sequence, parts)]);
        let typed = element(Tag::Sequence, &[&element(Tag::ObjectIdentifier, &[BASIC]), &content]);
        let first = Tag::ContextSpecific { constructed: true, number: TagNumber(0) };
        element(Tag::Sequence, &[&[0x0a, 1, 0], &element(first, &[&typed])])
    }

    #[test]
    fn the_question_is_as_openssl_writes_it() {
        let question = Question::new(&der(), &der()).unwrap();
        // `openssl ocsp -issuer a.pem -cert a.pem -no_nonce -reqout`
        let wanted = "3046304430423040303e300906052b0e03021a05000414732750b4ead6415fc8a927701a6d53\
            ec3bd8baee0414bc4e9e0ac420c7a955339bdad77c9bc4cee06ca5020500c0ffee01";
        let written: String = question.request().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, wanted);
    }

    #[test]
    fn an_answer_in_another_encoding_than_der_is_refused_by_name() {
        let question = Question::new(&der(), &der()).unwrap();
        let read = |bytes: &[u8]| question.read(bytes, Signer::Anybody, 0).unwrap_err();
        let deep = (0..100_000).fold(Vec::new(), |mut deep, _| {
            deep.extend([0x30, 0x84, 0, 0xff, 0xff, 0xff]);
            deep
        });
        let long = element(Tag::Sequence, &[&[0x0a, 1, 0], &vec![0; 16 << 20]]);
        for (bytes, flaw) in [
            (&[][..], Flaw::Truncated),
            (&[0x30], Flaw::Truncated),
            (&[0x30, 0x82, 1], Flaw::Truncated),
            (&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x0a, 1, 6], Flaw::Length),
            (&[0x30, 0x84, 0x7f, 0xff, 0xff, 0xff, 0x0a, 1, 6], Flaw::Truncated),
            (&[0x30, 0x85, 1, 0, 0, 0, 0, 0x0a, 1, 6], Flaw::Length),
            (&[0x30, 0x81, 3, 0x0a, 1, 6], Flaw::Length),
            (&[0x30, 0x80, 0x0a, 1, 6, 0, 0], Flaw::Indefinite),
            (&[0x30, 3, 0x0a, 1, 6, 0], Flaw::Trailing),
            (&[0x30, 4, 0x0a, 2, 0, 6], Flaw::Field),
            (&[0x30, 3, 0x02, 1, 0], Flaw::Field),
            (&deep, Flaw::Length),
            (&long, Flaw::Field),
            (&long[..long.len() - 1], Flaw::Truncated),
        ] {
            let head = &bytes[..bytes.len().min(12)];
            assert_eq!(read(bytes), OcspFault::Unreadable(flaw), "{head:x?}");
        }
        let words = read(&[0x30, 0x80]).to_string();
        assert_eq!(words, "d2i_OCSP_RESPONSE() failed (a length is indefinite)");
        assert_eq!(read(&response(&[])), OcspFault::Unreadable(Flaw::Truncated));
    }

    #[test]
    fn a_single_answer_in_the_encodings_that_responders_use() {
        let question = Question::new(&der(), &der()).unwrap();
        let own = CertId::from_der(&question.id).unwrap();
        // Without the NULL, with a reason of revocation, a fraction of a second, and extensions.
        let name = element(Tag::OctetString, &[own.name.as_bytes()]);
        let key = element(Tag::OctetString, &[own.key.as_bytes()]);
        let algorithm = element(Tag::Sequence, &[&element(Tag::ObjectIdentifier, &[SHA1])]);
        let serial = element(Tag::Integer, &[own.serial.as_bytes()]);
        let id = element(Tag::Sequence, &[&algorithm, &name, &key, &serial]);
        let context = |number| Tag::ContextSpecific { constructed: true, number: TagNumber(number) };
        let from = element(Tag::GeneralizedTime, &[b"20261122110139.5Z"]);
        let until = element(context(0), &[&element(Tag::GeneralizedTime, &[b"20261123110139Z"])]);
        let revoked = element(context(1), &[&from, &element(context(0), &[&[0x0a, 1, 1]])]);
        let extensions = element(context(1), &[&element(Tag::Sequence, &[])]);
        let now = 1_795_345_299;
        let answer = |status: &[u8], rest: &[&[u8]]| {
            let single = element(Tag::Sequence, &[&[&id, status, &from], rest].concat());
            let read = Single::from_der(&single)?;
            assert!(own.is(&read.id));
            read.answer(now)
        };
        let until_s = Some(now + 86_400);
        assert_eq!(
            answer(&revoked, &[&until, &extensions]),
            Ok(OcspAnswer { status: Status::Revoked, until: until_s })
        );
        assert_eq!(answer(&[0x80, 0], &[]), Ok(OcspAnswer { status: Status::Good, until: None }));
        assert_eq!(answer(&[0x82, 0], &[&extensions]), Ok(OcspAnswer { status: Status::Unknown, until: None }));
        assert_eq!(answer(&[0x83, 0], &[]), Err(OcspFault::Unreadable(Flaw::Field)));
        assert_eq!(answer(&[0x80, 0], &[&extensions, &until]), Err(OcspFault::Unreadable(Flaw::Trailing)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let question = Question::new(&der(), &der()).unwrap();
            prop_assert!(question.read(&bytes, Signer::Anybody, 0).is_err());
            prop_assert!(question.read(&response(&[&bytes]), Signer::Anybody, 0).is_err());
        }
    }
}
