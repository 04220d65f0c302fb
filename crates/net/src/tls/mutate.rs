//! The targets of what peers and authorities send in TLS (`fuzz/README.md`): certificates, revocation lists, answers of
//! responders, ClientHellos. That of tickets is beside their code.

#![allow(clippy::unwrap_used)]

use super::chain::{Purpose, Trust};
use super::describe::{Described, subject_der, tests::der};
use super::facts::CertificateFacts;
use super::hello::{HelloOpening, open};
use super::ocsp::{Question, Signer, responder, tests::response};
use super::{keys, pem};
use ::der::Encode;
use ::der::asn1::AnyRef;
use ::der::{Tag, TagNumber};
use weir_mutate::{mutate, splits};

/// Pieces of DER: tags with lengths, object identifiers of extensions, times.
const PIECES: &[&[u8]] = &[
    b"\x30\x80",
    b"\x30\x00",
    b"\x30\x82\x01\x00",
    b"\x30\x84\xff\xff\xff\xff",
    b"\x31\x00",
    b"\x02\x01\x00",
    b"\x02\x02\xff\x7f",
    b"\x02\x00",
    b"\x05\x00",
    b"\x01\x01\xff",
    b"\x03\x02\x07\x80",
    b"\x03\x00",
    b"\x04\x02\x30\x00",
    b"\x06\x03\x55\x1d\x13",
    b"\x06\x03\x55\x1d\x11",
    b"\x06\x03\x55\x1d\x23",
    b"\x06\x03\x55\x1d\x25",
    b"\x06\x03\x55\x04\x03",
    b"\x06\x09\x88\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x0c\x03abc",
    b"\x1e\x04\xd8\x00\x00\x41",
    b"\x1e\x03\x00\x41\x00",
    b"\x17\x0d500101000000Z",
    b"\x18\x0f99991231235959Z",
    b"\x18\x1320261122110139.55Z",
    b"\xa0\x03\x02\x01\x02",
    b"\xa3\x00",
    b"\x82\x01a",
    b"\x87\x04\x7f\0\0\x01",
    b"\x1f\x1f",
];

fn element(tag: Tag, parts: &[&[u8]]) -> Vec<u8> {
    AnyRef::new(tag, &parts.concat()).unwrap().to_der().unwrap()
}

/// A certificate is described in a bounded text without line ends, and a changed one is never trusted.
#[test]
fn certificates() {
    let own = der();
    let trust = Trust::new([own.clone()]).unwrap();
    mutate(std::slice::from_ref(&own), PIECES, |bytes| {
        let _ = CertificateFacts::read(bytes);
        let _ = (subject_der(bytes), responder(bytes));
        if let Ok(described) = Described::read(bytes) {
            for text in [described.subject(), described.issuer(), described.subject_line(), described.issuer_line()] {
                assert!(text.len() <= 32 * bytes.len(), "{} bytes of {}", text.len(), bytes.len());
                assert!(!text.contains(['\n', '\r', '\0']), "{text:?}");
            }
            assert!(described.serial().len() <= 2 * bytes.len() + 1);
            let _ = (described.starts(), described.ends(), described.days_left(0), described.fingerprint());
            assert_eq!(pem::certificates(described.pem().as_bytes()), Ok(vec![bytes.to_vec()]));
        }
        let now = 1_795_345_299;
        for chain in [&[bytes][..], &[bytes, &own], &[&own, bytes]] {
            let is_trusted = trust.judge(chain, Purpose::Client, 5, now).is_ok();
            assert!(!is_trusted || chain.first() == Some(&own.as_slice()), "a changed certificate is trusted");
        }
        if let Some(question) = Question::new(bytes, &own) {
            assert!(question.request().len() <= bytes.len() + 128);
        }
        if let Ok(mut trust) = Trust::new([bytes.to_vec()]) {
            let _ = trust.add_list(bytes);
            let _ = trust.judge(&[&own], Purpose::Server, 5, now);
        }
    });
}

/// A revocation list is read or refused; a list that cannot be read makes no certificate good.
#[test]
fn revocation_lists() {
    let algorithm = element(Tag::Sequence, &[&[6, 1, 42]]);
    let name = element(Tag::Sequence, &[]);
    let (from, to) = (b"\x17\x0d261122110139Z", b"\x17\x0d261123110139Z");
    let entry = element(Tag::Sequence, &[&[2, 1, 0xff], from]);
    let entries = element(Tag::Sequence, &[&entry, &entry]);
    let body = element(Tag::Sequence, &[&[2, 1, 1], &algorithm, &name, from, to, &entries]);
    let whole = element(Tag::Sequence, &[&body, &algorithm, &[3, 2, 0, 7]]);
    let own = der();
    mutate(&[whole], PIECES, |bytes| {
        let mut trust = Trust::new([own.clone()]).unwrap();
        let _ = trust.add_list(bytes);
        // No list of the certificate's issuer is signed, so with lists no certificate is good.
        assert!(trust.judge(&[&own], Purpose::Client, 5, 1_795_345_299).is_err());
    });
}

/// No answer that the issuer has not signed is taken.
#[test]
fn answers_of_responders() {
    let context = |number| Tag::ContextSpecific { constructed: true, number: TagNumber(number) };
    let question = Question::new(&der(), &der()).unwrap();
    let time = element(Tag::GeneralizedTime, &[b"20261122110139.5Z"]);
    let single = element(Tag::Sequence, &[question.id(), &[0x80, 0], &time, &element(context(0), &[&time])]);
    let key = element(Tag::OctetString, &[&[7; 20]]);
    let body = element(Tag::Sequence, &[&element(context(2), &[&key]), &time, &element(Tag::Sequence, &[&single])]);
    let algorithm = element(Tag::Sequence, &[&[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]]);
    let certificates = element(context(0), &[&element(Tag::Sequence, &[&der()])]);
    let signature = element(Tag::BitString, &[&[0; 65]]);
    let whole = response(&[&body, &algorithm, &signature, &certificates]);
    let trust = Trust::new([der()]).unwrap();
    mutate(&[whole, vec![0x30, 3, 0x0a, 1, 6]], PIECES, |bytes| {
        for signer in [Signer::Anybody, Signer::Appointed(&trust)] {
            let fault = question.read(bytes, signer, 1_795_345_299).unwrap_err();
            assert!(fault.to_string().len() < 200);
        }
    });
}

/// Texts in PEM and keys: sections are no longer than the text.
#[test]
fn pem_texts() {
    const SEEDS: &[&str] = &[
        "noise\n-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n",
        "-----BEGIN TRUSTED CERTIFICATE-----\r\nMAAwAA==\r\n-----END TRUSTED CERTIFICATE-----\r\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\nMAA=\n-----END RSA PRIVATE KEY-----\n",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n",
    ];
    const WORDS: &[&str] = &[
        "-----BEGIN ",
        "-----END ",
        "-----\n",
        "CERTIFICATE",
        "PRIVATE KEY",
        "\n",
        "\r\n",
        ":",
        "=",
        "MAA=",
        "DEK-Info: AES-256-CBC,",
        "é",
        "\0",
    ];
    mutate(SEEDS, WORDS, |bytes| {
        if let Ok(sections) = pem::sections(bytes) {
            let all: usize = sections.iter().map(|section| section.der.len() + section.label.len()).sum();
            assert!(all <= bytes.len());
        }
        let _ = (pem::certificates(bytes), keys::revocation_lists(bytes), keys::key_der(bytes));
        let _ = keys::KeyPair::read(bytes, bytes, &[]);
    });
}

/// A client's first message: more bytes do not change a verdict, and its parts are not longer than it.
#[test]
fn client_hellos() {
    const WHOLE: &[u8] = b"\x16\x03\x01\0\x63\x01\0\0\x5f\x03\x03aaaaaaaabbbbbbbbccccccccdddddddd\0\0\x04\x13\x01\x13\x02\x01\0\0\x32\0\0\0\x06\0\x04\0\0\x01a\0\x10\0\x0b\0\x09\x08http/1.1\0\x0a\0\x06\0\x04\0\x1d\0\x17\0\x0d\0\x04\0\x02\x04\x03\0\x2b\0\x03\x02\x03\x04";
    const CUT: &[u8] = b"\x16\x03\x01\0\x06\x01\0\0\x29\x03\x03\x16\x03\x01\0\x27aaaaaaaabbbbbbbbccccccccdddddddd\0\0\x02\x13\x01\x01\0";
    const WORDS: &[&[u8]] = &[
        b"\x16\x03\x01\0\x01",
        b"\x16\x03\x03\x40\x00",
        b"\0\0",
        b"\xff\xff",
        b"..",
        b"/",
        b"\0\x10\0\x02",
        b"a.test",
    ];
    mutate(&[WHOLE, CUT, b"\x80\x2e\x01"], WORDS, |bytes| {
        let whole = open(bytes);
        for split in splits(bytes.len()) {
            let early = open(bytes.get(..split).unwrap_or_default());
            assert!(early == HelloOpening::Partial || early == whole, "split at {split}");
        }
        if let HelloOpening::Hello(hello) = whole {
            let name = hello.server_name.unwrap_or_default();
            assert!(!name.contains(['/', '\\', ' ', '\n', '\0']) && !name.contains("..") && !name.starts_with('.'));
            let numbers = hello.ciphers.len() + hello.groups.len() + hello.signatures.len();
            let protocols: usize = hello.alpn.iter().map(|name| name.len() + 1).sum();
            assert!(2 * numbers + protocols + name.len() <= bytes.len());
        }
    });
}
