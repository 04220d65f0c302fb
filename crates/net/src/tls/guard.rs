//! Judges records while they are decrypted: records that rustls wrongly accepts, or refuses without the alert that
//! the RFC names.
//!
//! rustls closes without an alert if a record has no content type, or stands inside a handshake message. In other
//! cases it sends `decode_error`, `decrypt_error` or `bad_record_mac` where RFC 8446 names another alert. rustls has
//! no call to send an alert, but it sends one for each error of a decrypter. So weir wraps every decrypter in one
//! that checks these rules and fails with the error that leads to the right alert.
//!
//! A record of application data outside a handshake message costs two comparisons.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape, MessageDecrypter, MessageEncrypter,
    Tls12AeadAlgorithm, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::{CipherSuiteCommon, aws_lc_rs};
use rustls::{
    CipherSuite, ConnectionTrafficSecrets, ContentType, Error, InvalidMessage, PeerMisbehaved, SupportedCipherSuite,
    Tls12CipherSuite, Tls13CipherSuite,
};
use std::sync::LazyLock;

/// The suites of rustls, with guarded decrypters.
static SUITES: LazyLock<Vec<SupportedCipherSuite>> =
    LazyLock::new(|| aws_lc_rs::ALL_CIPHER_SUITES.iter().map(guarded).collect());

/// RFC 8446 §5.2: the most that a record may hold, in bytes, once encrypted.
const CIPHERTEXT_BYTES_MAX: usize = (1 << 14) + 256;
/// Records without content in a row, at most: as many as rustls accepts.
const EMPTY_RECORDS_MAX: u8 = 10;
/// RFC 8446 §4: the head of a handshake message, in bytes: its type and its length.
const HANDSHAKE_HEAD_BYTES: usize = 4;
/// The type of a Finished message.
const FINISHED: u8 = 20;
/// RFC 5246 §7.4.9, in bytes.
const FINISHED_BYTES_TLS12: usize = 12;
/// The error for which rustls sends `unexpected_message`, the only one that a decrypter may return.
const UNEXPECTED: Error = Error::PeerMisbehaved(PeerMisbehaved::IllegalMiddleboxChangeCipherSpec);

/// The suite with this number, with guarded decrypters.
pub(super) fn suite(id: CipherSuite) -> Option<SupportedCipherSuite> {
    SUITES.iter().find(|suite| suite.suite() == id).copied()
}

/// Each is made once and stays for good: rustls needs suites that live as long as the process.
fn guarded(suite: &SupportedCipherSuite) -> SupportedCipherSuite {
    match *suite {
        SupportedCipherSuite::Tls12(suite) => SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
            common: common(&suite.common),
            prf_provider: suite.prf_provider,
            kx: suite.kx,
            sign: suite.sign,
            aead_alg: Box::leak(Box::new(Guarded12(suite.aead_alg))),
        }))),
        SupportedCipherSuite::Tls13(suite) => SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
            common: common(&suite.common),
            hkdf_provider: suite.hkdf_provider,
            aead_alg: Box::leak(Box::new(Guarded13 {
                inner: suite.aead_alg,
                finished_bytes: suite.common.hash_provider.output_len(),
            })),
            quic: suite.quic,
        }))),
    }
}

fn common(of: &CipherSuiteCommon) -> CipherSuiteCommon {
    CipherSuiteCommon {
        suite: of.suite,
        hash_provider: of.hash_provider,
        confidentiality_limit: of.confidentiality_limit,
    }
}

struct Guarded12(&'static dyn Tls12AeadAlgorithm);

impl Tls12AeadAlgorithm for Guarded12 {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        self.0.encrypter(key, iv, extra)
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        Box::new(Guard { inner: self.0.decrypter(key, iv), follower: Follower::new(false, FINISHED_BYTES_TLS12) })
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        self.0.key_block_shape()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv, explicit)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

struct Guarded13 {
    inner: &'static dyn Tls13AeadAlgorithm,
    finished_bytes: usize,
}

impl Tls13AeadAlgorithm for Guarded13 {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        self.inner.encrypter(key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Guard { inner: self.inner.decrypter(key, iv), follower: Follower::new(true, self.finished_bytes) })
    }

    fn key_len(&self) -> usize {
        self.inner.key_len()
    }

    fn extract_keys(&self, key: AeadKey, iv: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.inner.extract_keys(key, iv)
    }

    fn fips(&self) -> bool {
        self.inner.fips()
    }
}

/// A decrypter that judges its input and its output.
struct Guard {
    inner: Box<dyn MessageDecrypter>,
    follower: Follower,
}

impl MessageDecrypter for Guard {
    fn decrypt<'a>(&mut self, record: InboundOpaqueMessage<'a>, seq: u64) -> Result<InboundPlainMessage<'a>, Error> {
        self.follower.may_decrypt(record.typ, record.payload.len())?;
        match self.inner.decrypt(record, seq) {
            Ok(record) => {
                self.follower.judge(record.typ, record.payload)?;
                Ok(record)
            }
            // RFC 8446 §5.4.
            Err(Error::PeerMisbehaved(PeerMisbehaved::IllegalTlsInnerPlaintext)) => Err(UNEXPECTED),
            Err(error) => Err(error),
        }
    }
}

/// Follows the handshake messages through their records.
#[derive(Clone, Copy)]
struct Follower {
    is_tls13: bool,
    finished_bytes: usize,
    /// The head of the current message, and how much of it has arrived; empty between messages.
    head: [u8; HANDSHAKE_HEAD_BYTES],
    head_bytes: usize,
    /// Bytes that the current message still lacks after its head.
    left: usize,
    empty_records: u8,
}

impl Follower {
    fn new(is_tls13: bool, finished_bytes: usize) -> Follower {
        Follower { is_tls13, finished_bytes, head: [0; HANDSHAKE_HEAD_BYTES], head_bytes: 0, left: 0, empty_records: 0 }
    }

    /// Judges a record of `len` bytes by the fields that are visible before decryption.
    fn may_decrypt(&self, typ: ContentType, len: usize) -> Result<(), Error> {
        match typ {
            // In TLS 1.2, the record's type is the type of its content.
            _ if !self.is_tls13 => Ok(()),
            ContentType::ApplicationData if len > CIPHERTEXT_BYTES_MAX => Err(Error::PeerSentOversizedRecord),
            ContentType::ApplicationData => Ok(()),
            // RFC 8446 §5: once there are keys, every record is encrypted and has the type application data.
            _ => Err(UNEXPECTED),
        }
    }

    fn judge(&mut self, typ: ContentType, content: &[u8]) -> Result<(), Error> {
        if typ == ContentType::Handshake {
            self.empty_records = 0;
            return self.follow(content);
        }
        // RFC 8446 §5.1: no other record may stand between the pieces of a handshake message.
        if self.head_bytes > 0 {
            return Err(UNEXPECTED);
        }
        match typ {
            ContentType::ApplicationData if !content.is_empty() => self.empty_records = 0,
            ContentType::ApplicationData if self.empty_records < EMPTY_RECORDS_MAX => self.empty_records += 1,
            ContentType::ApplicationData => return Err(UNEXPECTED),
            // RFC 8446 §5.1 forbids an alert without content, and also an unknown type.
            ContentType::Alert if !content.is_empty() => {}
            ContentType::ChangeCipherSpec => {}
            _ => return Err(UNEXPECTED),
        }
        Ok(())
    }

    fn follow(&mut self, mut content: &[u8]) -> Result<(), Error> {
        // RFC 8446 §5.1.
        if content.is_empty() {
            return Err(UNEXPECTED);
        }
        while let Some((&first, rest)) = content.split_first() {
            match self.head.get_mut(self.head_bytes) {
                Some(byte) => {
                    *byte = first;
                    self.head_bytes += 1;
                    content = rest;
                    if self.head_bytes == HANDSHAKE_HEAD_BYTES {
                        self.left = self.announced()?;
                    }
                }
                None => {
                    let some = self.left.min(content.len());
                    self.left -= some;
                    content = content.get(some..).unwrap_or_default();
                }
            }
            if self.head_bytes == HANDSHAKE_HEAD_BYTES && self.left == 0 {
                self.head_bytes = 0;
            }
        }
        Ok(())
    }

    /// The length that the head announces. A Finished of the wrong length counts as no Finished message, not as a
    /// wrong one.
    fn announced(&self) -> Result<usize, Error> {
        let [typ, high, middle, low] = self.head;
        let len = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        if typ == FINISHED && len != self.finished_bytes {
            return Err(Error::InvalidMessage(InvalidMessage::TrailingData("Finished")));
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The verdict of a TLS 1.3 follower on the last of these records.
    fn last(records: &[(ContentType, &[u8])]) -> Result<(), Error> {
        let mut follower = Follower::new(true, 32);
        let mut said = Ok(());
        for (typ, content) in records {
            assert_eq!(said, Ok(()), "before the last record");
            said = follower.judge(*typ, content);
        }
        said
    }

    #[test]
    fn records_that_may_not_stand_there() {
        use ContentType::{Alert, ApplicationData, Handshake, Heartbeat, Unknown};
        let update: &[u8] = &[24, 0, 0, 1, 0];
        for (records, wanted) in [
            (&[(ApplicationData, &b"x"[..]), (Handshake, update), (ApplicationData, b"y")][..], Ok(())),
            (&[(Handshake, &update[..2]), (Handshake, &update[2..]), (ApplicationData, b"")], Ok(())),
            (&[(Handshake, &[24, 0, 0, 1, 0, 24, 0][..]), (Handshake, &[0, 1, 0]), (Alert, &[1, 0])], Ok(())),
            (&[(Handshake, &update[..2]), (ApplicationData, b"")], Err(UNEXPECTED)),
            (&[(Handshake, &update[..4]), (Alert, &[1, 0])], Err(UNEXPECTED)),
            (&[(Handshake, b"")], Err(UNEXPECTED)),
            (&[(Alert, b"")], Err(UNEXPECTED)),
            (&[(Heartbeat, b"x")], Err(UNEXPECTED)),
            (&[(Unknown(99), b"x")], Err(UNEXPECTED)),
        ] {
            assert_eq!(last(records), wanted, "{records:?}");
        }
        let mut empty = vec![(ApplicationData, &b""[..]); usize::from(EMPTY_RECORDS_MAX)];
        assert_eq!(last(&empty), Ok(()));
        empty.push((ApplicationData, b""));
        assert_eq!(last(&empty), Err(UNEXPECTED));
    }

    #[test]
    fn a_finished_is_as_long_as_its_hash() {
        let finished = |len: usize| [&[FINISHED, 0, (len >> 8) as u8, len as u8][..], &vec![7; len]].concat();
        assert_eq!(last(&[(ContentType::Handshake, &finished(32))]), Ok(()));
        for len in [0, 31, 33, 500] {
            let said = last(&[(ContentType::Handshake, &finished(len))]);
            assert!(matches!(said, Err(Error::InvalidMessage(_))), "{len}");
        }
    }

    #[test]
    fn what_is_seen_before_it_is_decrypted() {
        let (tls12, tls13) = (Follower::new(false, 12), Follower::new(true, 32));
        assert_eq!(tls12.may_decrypt(ContentType::Handshake, 40), Ok(()));
        assert_eq!(tls13.may_decrypt(ContentType::Handshake, 40), Err(UNEXPECTED));
        assert_eq!(tls13.may_decrypt(ContentType::ApplicationData, CIPHERTEXT_BYTES_MAX), Ok(()));
        let long = tls13.may_decrypt(ContentType::ApplicationData, CIPHERTEXT_BYTES_MAX + 1);
        assert_eq!(long, Err(Error::PeerSentOversizedRecord));
    }

    #[test]
    fn every_suite_is_there() {
        for suite in aws_lc_rs::ALL_CIPHER_SUITES {
            assert_eq!(super::suite(suite.suite()), Some(*suite));
        }
    }

    proptest! {
        #[test]
        fn cuts_between_records_change_nothing(
            messages in proptest::collection::vec((0u8..30, 0usize..300), 0..6),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let whole: Vec<u8> = messages
                .iter()
                .flat_map(|(typ, len)| [&[*typ, 0, (len >> 8) as u8, *len as u8][..], &vec![7; *len]].concat())
                .collect();
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).chain([whole.len()]).collect();
            ends.sort_unstable();
            ends.dedup();
            let mut follower = Follower::new(true, 32);
            let (mut from, mut said) = (0, Ok(()));
            for to in ends {
                if to > from && said.is_ok() {
                    said = follower.judge(ContentType::Handshake, &whole[from..to]);
                }
                from = to;
            }
            let has_wrong_finished = messages.iter().any(|(typ, len)| *typ == FINISHED && *len != 32);
            prop_assert_eq!(said.is_err(), has_wrong_finished);
            prop_assert!(said.is_err() || follower.head_bytes == 0);
        }
    }
}
