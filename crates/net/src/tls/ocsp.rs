//! OCSP (RFC 6960): the question about one certificate, and the content of an answer.
//!
//! Bytes in, bytes out; the caller sends the question and keeps the answer. Reading trusts only signatures: an answer
//! counts only if it is about this certificate, is valid at this time, and has the signature of an allowed signer.

use super::chain::Trust;
use super::der::{GENERALIZED_TIME, INTEGER, Item, Items, OBJECT_ID, OCTET_STRING, SEQUENCE, seconds};
use super::x509::{X509, bits};
use ::aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::crypto::aws_lc_rs;
use std::fmt;

const ENUMERATED: u8 = 0x0a;
const NULL: u8 = 0x05;
/// `[0] EXPLICIT` and `[0] IMPLICIT NULL`, which occur in several places.
const FIRST: u8 = 0xa0;
const GOOD: u8 = 0x80;
const REVOKED: u8 = 0xa1;
const UNKNOWN: u8 = 0x82;
/// 1.3.14.3.2.26, which every responder knows.
const SHA1: &[u8] = &[0x2b, 14, 3, 2, 26];
/// 1.3.6.1.5.5.7.48.1.1
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1, 1];
/// 1.3.6.1.5.5.7.1.1, authorityInfoAccess
const ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
/// 1.3.6.1.5.5.7.48.1
const OCSP: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1];
/// 2.5.29.37, extendedKeyUsage
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 29, 37];
/// 1.3.6.1.5.5.7.3.9
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
/// `[6]` of GeneralName.
const URI: u8 = 0x86;

/// Certificates of an answer that are checked, at most.
const SIGNERS_MAX: usize = 8;

/// The allowed difference between clocks; seconds (nginx: 300).
const SLACK_S: i64 = 300;

/// A question about one certificate.
#[derive(Clone)]
pub struct Question {
    issuer: Vec<u8>,
    /// The CertID's contents.
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

/// An answer that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
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

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not an OCSP response.
    Unreadable,
    /// The responder could not answer: its number for the reason (RFC 6960 §4.2.1).
    Refused(u8),
    /// No allowed signer has signed it.
    Signature,
    /// It is about other certificates.
    Foreign,
    /// It has expired, or is not valid yet.
    OutOfTime,
}

impl fmt::Display for Fault {
    /// The words of nginx and OpenSSL, if they have this error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable => f.write_str("d2i_OCSP_RESPONSE() failed"),
            Fault::Refused(number) => {
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
            Fault::Signature => f.write_str("OCSP_basic_verify() failed (signed by nobody who may)"),
            Fault::Foreign => f.write_str("certificate status not found in the OCSP response"),
            Fault::OutOfTime => f.write_str("OCSP_check_validity() failed"),
        }
    }
}

impl Question {
    /// A question about `leaf`, issued by `issuer`, both in DER; `None` if one cannot be read or they do not belong
    /// together.
    pub fn new(leaf: &[u8], issuer: &[u8]) -> Option<Question> {
        let (leaf, above) = (X509::read(leaf)?, X509::read(issuer)?);
        if !leaf.may_be_issued_by(&above) {
            return None;
        }
        let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec();
        let algorithm = element(SEQUENCE, &[element(OBJECT_ID, &[SHA1]).as_slice(), &[NULL, 0]]);
        let name = element(OCTET_STRING, &[sha1(&element(SEQUENCE, &[above.subject])).as_slice()]);
        let key = element(OCTET_STRING, &[sha1(above.key.bits).as_slice()]);
        let serial = element(INTEGER, &[leaf.serial]);
        let id = [algorithm, name, key, serial].concat();
        let request = element(SEQUENCE, &[element(SEQUENCE, &[id.as_slice()]).as_slice()]);
        let body = element(SEQUENCE, &[element(SEQUENCE, &[request.as_slice()]).as_slice()]);
        let request = element(SEQUENCE, &[body.as_slice()]);
        Some(Question { issuer: issuer.to_vec(), id, request })
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
    pub fn read(&self, response: &[u8], signer: Signer<'_>, now: i64) -> Result<Answer, Fault> {
        let mut outer = Items(Items(response).want(SEQUENCE).ok_or(Fault::Unreadable)?);
        match outer.want(ENUMERATED) {
            Some([0]) => {}
            Some([number]) => return Err(Fault::Refused(*number)),
            Some(_) | None => return Err(Fault::Unreadable),
        }
        let basic = Basic::read(outer.next()).ok_or(Fault::Unreadable)?;
        if !self.is_signed(&basic, signer, now) {
            return Err(Fault::Signature);
        }
        let mut fault = Fault::Foreign;
        for single in Items(basic.answers) {
            match self.single(single, now) {
                Ok(answer) => return Ok(answer),
                Err(Fault::Foreign) => {}
                Err(other) => fault = other,
            }
        }
        Err(fault)
    }

    fn single(&self, single: Item<'_>, now: i64) -> Result<Answer, Fault> {
        let mut parts = Items(single.value);
        if single.tag != SEQUENCE || parts.want(SEQUENCE).is_none_or(|id| !self.is_about(id)) {
            return Err(Fault::Foreign);
        }
        let status = match parts.next().map(|item| item.tag) {
            Some(GOOD) => Status::Good,
            Some(REVOKED) => Status::Revoked,
            Some(UNKNOWN) => Status::Unknown,
            Some(_) | None => return Err(Fault::Unreadable),
        };
        let from =
            parts.next().filter(|item| item.tag == GENERALIZED_TIME).and_then(seconds).ok_or(Fault::Unreadable)?;
        let until = match parts.next() {
            Some(item) if item.tag == FIRST => {
                Some(Items(item.value).next().and_then(seconds).ok_or(Fault::Unreadable)?)
            }
            Some(_) | None => None,
        };
        if now + SLACK_S < from || until.is_some_and(|until| until.saturating_add(SLACK_S) < now) {
            return Err(Fault::OutOfTime);
        }
        Ok(Answer { status, until })
    }

    /// Responders may leave out the NULL after the algorithm.
    fn is_about(&self, id: &[u8]) -> bool {
        let parts = |id| -> Option<[&[u8]; 4]> {
            let mut items = Items(id);
            let algorithm = Items(items.want(SEQUENCE)?).want(OBJECT_ID)?;
            Some([algorithm, items.want(OCTET_STRING)?, items.want(OCTET_STRING)?, items.want(INTEGER)?])
        };
        parts(id).is_some_and(|given| parts(&self.id) == Some(given))
    }

    fn is_signed(&self, basic: &Basic<'_>, signer: Signer<'_>, now: i64) -> bool {
        let known = aws_lc_rs::default_provider().signature_verification_algorithms;
        let has_signed = |who: &X509<'_>| who.key.has_signed(basic.body, basic.algorithm, basic.signature, &known);
        let Some(issuer) = X509::read(&self.issuer) else { return false };
        let given = Items(basic.certificates).take(SIGNERS_MAX).filter_map(|item| X509::read(item.raw));
        match signer {
            Signer::Anybody => has_signed(&issuer) || given.into_iter().any(|who| has_signed(&who)),
            Signer::Appointed(trust) => {
                let is_appointed = |who: &X509<'_>| {
                    who.may_be_issued_by(&issuer)
                        && issuer.has_issued(who, &known)
                        && (who.not_before..=who.not_after).contains(&now)
                        && may_sign(who.body)
                };
                let is_signed =
                    has_signed(&issuer) || given.into_iter().any(|who| is_appointed(&who) && has_signed(&who));
                is_signed && trust.vouches_for(&self.issuer, now)
            }
        }
    }
}

/// The fields of a BasicOCSPResponse that are read.
struct Basic<'a> {
    body: &'a [u8],
    answers: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
    certificates: &'a [u8],
}

impl<'a> Basic<'a> {
    fn read(bytes: Option<Item<'a>>) -> Option<Basic<'a>> {
        let mut typed = Items(Items(bytes.filter(|item| item.tag == FIRST)?.value).want(SEQUENCE)?);
        if typed.want(OBJECT_ID)? != BASIC {
            return None;
        }
        let mut outer = Items(Items(typed.want(OCTET_STRING)?).want(SEQUENCE)?);
        let body = outer.next().filter(|item| item.tag == SEQUENCE)?;
        let algorithm = outer.want(SEQUENCE)?;
        let signature = bits(outer.want(super::der::BIT_STRING)?)?;
        let certificates = match outer.next() {
            Some(item) if item.tag == FIRST => Items(item.value).want(SEQUENCE)?,
            Some(_) | None => &[],
        };
        // Before the answers: optionally a version, then the responder, and the time.
        let answers = Items(body.value).find(|item| item.tag == SEQUENCE)?.value;
        Some(Basic { body: body.raw, answers, algorithm, signature, certificates })
    }
}

/// The URL of the responder in a certificate in DER.
pub fn responder(leaf: &[u8]) -> Option<String> {
    let leaf = X509::read(leaf)?;
    let access = extension(leaf.body, ACCESS)?;
    Items(Items(access).want(SEQUENCE)?).find_map(|way| {
        let mut parts = Items(way.value);
        let uri = (parts.want(OBJECT_ID)? == OCSP).then(|| parts.want(URI))??;
        String::from_utf8(uri.to_vec()).ok()
    })
}

fn may_sign(body: &[u8]) -> bool {
    let purposes = extension(body, EXTENDED_KEY_USAGE).and_then(|value| Items(value).want(SEQUENCE));
    purposes.is_some_and(|purposes| Items(purposes).any(|purpose| purpose.value == OCSP_SIGNING))
}

/// The value of an extension in a certificate's body.
fn extension<'a>(body: &'a [u8], id: &[u8]) -> Option<&'a [u8]> {
    // `[3] EXPLICIT` contains the extensions.
    let list = Items(Items(body).want(SEQUENCE)?).find(|item| item.tag == 0xa3)?.value;
    Items(Items(list).want(SEQUENCE)?).find_map(|extension| {
        let mut parts = Items(extension.value);
        if parts.want(OBJECT_ID)? != id {
            return None;
        }
        parts.find(|item| item.tag == OCTET_STRING).map(|item| item.value)
    })
}

/// A DER element with these contents.
fn element(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
    let length: usize = contents.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let digits: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|digit| *digit == 0).collect();
        out.push(0x80 | digits.len() as u8);
        out.extend(digits);
    }
    contents.iter().for_each(|part| out.extend_from_slice(part));
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::describe::tests::der;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_written_as_short_as_they_go() {
        for (length, head) in
            [(0, vec![4, 0]), (127, vec![4, 127]), (128, vec![4, 0x81, 128]), (300, vec![4, 0x82, 1, 44])]
        {
            let content = vec![7; length];
            let written = element(4, &[&content]);
            assert_eq!(written[..head.len()], head[..]);
            assert_eq!(Items(&written).want(4), Some(&content[..]));
        }
    }

    #[test]
    fn a_responder_that_could_not_answer_is_told_apart() {
        let question = Question::new(&der(), &der()).unwrap();
        let read = |bytes: &[u8]| question.read(bytes, Signer::Anybody, 0);
        assert_eq!(read(&[0x30, 3, 0x0a, 1, 6]), Err(Fault::Refused(6)));
        assert_eq!(read(&[0x30, 3, 0x0a, 1, 0]), Err(Fault::Unreadable));
        assert_eq!(read(b"<html>"), Err(Fault::Unreadable));
        assert!(Question::new(&der(), b"").is_none());
        assert_eq!(responder(&der()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let question = Question::new(&der(), &der()).unwrap();
            prop_assert!(question.read(&bytes, Signer::Anybody, 0).is_err());
            let inner = element(SEQUENCE, &[&element(OBJECT_ID, &[BASIC]), &element(OCTET_STRING, &[&element(SEQUENCE, &[&bytes])])]);
            let outer = element(SEQUENCE, &[&[0x0a, 1, 0], &element(FIRST, &[&inner])]);
            prop_assert!(question.read(&outer, Signer::Anybody, 0).is_err());
        }
    }
}
