//! A server's certificates and keys, from PEM: keys may be encrypted.
//!
//! PKCS #8 with PBES2 (PBKDF2 and AES-CBC, the output of `openssl genpkey -aes128` and `genrsa`) and the older kind
//! with `DEK-Info` and AES (the output of `-traditional`). Other kinds are refused by name, with the command that
//! makes a supported one.

use super::der::{Algorithm, Oid, Opaque};
use super::pem::{self, SEQUENCE};
use super::x509::X509;
use crate::clock;
use aws_lc_rs::cipher::{
    self, AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2::{self, PBKDF2_HMAC_SHA1, PBKDF2_HMAC_SHA256, PBKDF2_HMAC_SHA384, PBKDF2_HMAC_SHA512};
use der::asn1::OctetStringRef;
use der::{Decode, DecodeValue, Sequence};
use md5::{Digest, Md5};
use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// TLS has no scheme for the curve secp256k1 that clients offer, and the TLS library none for keys that are for RSA-PSS alone.
const OTHER_TYPE: &str = "weir does not support this type of key; it has RSA, ECDSA on P-256, P-384 and P-521, and Ed25519. Make a key \
                          and get a certificate for it: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out KEY";

/// A certificate with its chain, and its key; clones share it.
#[derive(Clone)]
pub struct KeyPair {
    pub(super) certified: Arc<CertifiedKey>,
    /// The OCSP response sent with it, if weir renews one.
    pub(super) staple: Option<Arc<Staple>>,
}

/// An OCSP response that is renewed while a server serves; sent until it expires.
#[derive(Default)]
pub struct Staple(Mutex<Option<Shown>>);

/// The current response.
#[derive(Clone)]
struct Shown {
    response: Vec<u8>,
    until: i64,
    /// Made for the first handshake that sends it.
    certified: Option<Arc<CertifiedKey>>,
}

impl fmt::Debug for Staple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Staple")
    }
}

impl Staple {
    /// Makes handshakes send this response in DER, until `until` seconds since 1970.
    pub fn set(&self, response: Vec<u8>, until: i64) {
        *self.lock() = Some(Shown { response, until, certified: None });
    }

    /// Takes over the response of another staple.
    pub fn adopt(&self, old: &Staple) {
        let shown = old.lock().clone();
        *self.lock() = shown.map(|shown| Shown { certified: None, ..shown });
    }

    /// The time until which there is a response to send.
    pub fn until(&self) -> Option<i64> {
        self.lock().as_ref().map(|shown| shown.until)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Shown>> {
        // The response is replaced whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beside(&self, plain: &Arc<CertifiedKey>, now: i64) -> Option<Arc<CertifiedKey>> {
        let mut shown = self.lock();
        let shown = shown.as_mut().filter(|shown| now < shown.until)?;
        let certified = shown
            .certified
            .get_or_insert_with(|| Arc::new(CertifiedKey { ocsp: Some(shown.response.clone()), ..(**plain).clone() }));
        Some(certified.clone())
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair")
    }
}

/// Why there is no key pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The certificates cannot be read: the reason.
    Certificate(String),
    /// The key cannot be read: the reason.
    Key(String),
    /// The certificate and the key do not belong together.
    Mismatch,
}

/// Rounds of PBKDF2, at most: they take some seconds.
const ROUNDS_MAX: u32 = 10_000_000;

impl KeyPair {
    /// Reads certificates (the server's own first) and its key; `passwords` are tried in turn on an encrypted one.
    pub fn read(certificates: &[u8], key: &[u8], passwords: &[Vec<u8>]) -> Result<KeyPair, KeyError> {
        let chain = pem::certificates(certificates).map_err(KeyError::Certificate)?;
        let Some(leaf) = chain.first() else {
            return Err(KeyError::Certificate("the file contains no certificate".to_owned()));
        };
        let leaf = X509::read(leaf)
            .map_err(|flaw| KeyError::Certificate(format!("weir cannot read its first certificate: {flaw}")))?;
        let key = private_key(key, passwords).map_err(KeyError::Key)?;
        let key = any_supported_type(&key).map_err(|_| KeyError::Key(OTHER_TYPE.to_owned()))?;
        if key.public_key().is_some_and(|public| public.as_ref() != leaf.key.info) {
            return Err(KeyError::Mismatch);
        }
        let chain = chain.into_iter().map(CertificateDer::from).collect();
        Ok(KeyPair { certified: Arc::new(CertifiedKey { cert: chain, key, ocsp: None }), staple: None })
    }

    /// The same key pair with an OCSP response in DER, to be sent with it.
    pub fn with_staple(&self, response: Vec<u8>) -> KeyPair {
        let certified = CertifiedKey { ocsp: Some(response), ..(*self.certified).clone() };
        KeyPair { certified: Arc::new(certified), staple: None }
    }

    /// The same key pair with a response that weir renews.
    pub fn with_renewed(&self, staple: Arc<Staple>) -> KeyPair {
        KeyPair { certified: self.certified.clone(), staple: Some(staple) }
    }

    /// The certificates and the response that a handshake sends at this moment.
    pub(super) fn shown(&self) -> Arc<CertifiedKey> {
        let stapled =
            self.staple.as_ref().and_then(|staple| staple.beside(&self.certified, clock::unix_seconds() as i64));
        stapled.unwrap_or_else(|| self.certified.clone())
    }

    /// SHA-256 of the server's own certificate.
    pub fn digest(&self) -> [u8; 32] {
        let mut sum = [0; 32];
        if let Some(certificate) = self.certified.cert.first() {
            sum.copy_from_slice(digest::digest(&SHA256, certificate).as_ref());
        }
        sum
    }

    /// The chain in DER, the server's own certificate first.
    pub fn chain(&self) -> Vec<&[u8]> {
        self.certified.cert.iter().map(AsRef::as_ref).collect()
    }

    /// Whether a client without ECDSA can use it.
    pub(super) fn is_rsa(&self) -> bool {
        self.certified.key.algorithm() == SignatureAlgorithm::RSA
    }
}

/// The certificates of a PEM text in DER.
pub fn certificates(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    pem::certificates(text)
}

/// The lists of revoked certificates of a PEM text in DER.
pub fn revocation_lists(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let sections = pem::sections(text)?;
    Ok(sections.into_iter().filter(|section| section.label == "X509 CRL").map(|section| section.der).collect())
}

/// The private key of a PEM text that is not encrypted, in DER: PKCS #8, PKCS #1 or SEC 1.
///
/// # Errors
/// The reason why there is none.
pub fn key_der(text: &[u8]) -> Result<Vec<u8>, String> {
    private_key(text, &[]).map(|key| key.secret_der().to_vec())
}

fn private_key(text: &[u8], passwords: &[Vec<u8>]) -> Result<PrivateKeyDer<'static>, String> {
    if text.first() == Some(&SEQUENCE) {
        return PrivateKeyDer::try_from(text.to_vec()).map_err(str::to_owned);
    }
    for section in pem::sections(text)? {
        let der = match section.label {
            "PRIVATE KEY" => return Ok(PrivateKeyDer::Pkcs8(section.der.into())),
            "ENCRYPTED PRIVATE KEY" => {
                let plain = decrypt_with(passwords, |password| pkcs8(&section.der, password))?;
                return Ok(PrivateKeyDer::Pkcs8(plain.into()));
            }
            "RSA PRIVATE KEY" | "EC PRIVATE KEY" => {
                let header = |name| section.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
                match header("DEK-Info") {
                    Some(info) => decrypt_with(passwords, |password| traditional(&section.der, info, password))?,
                    None => section.der,
                }
            }
            _ => continue,
        };
        return Ok(match section.label {
            "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(der.into()),
            _ => PrivateKeyDer::Sec1(der.into()),
        });
    }
    Err("the file contains no private key".to_owned())
}

/// Why a password did not open the key.
enum Locked {
    /// The password is wrong.
    Wrong,
    /// No password would: weir does not support the key's encryption.
    Unknown(String),
}

fn decrypt_with(passwords: &[Vec<u8>], decrypt: impl Fn(&[u8]) -> Result<Vec<u8>, Locked>) -> Result<Vec<u8>, String> {
    if passwords.is_empty() {
        // Reports an unsupported encryption before it asks for a password.
        if let Err(Locked::Unknown(why)) = decrypt(b"") {
            return Err(why);
        }
        return Err("the key is encrypted, and no password is given".to_owned());
    }
    for password in passwords {
        match decrypt(password) {
            Ok(plain) => return Ok(plain),
            Err(Locked::Wrong) => {}
            Err(Locked::Unknown(why)) => return Err(why),
        }
    }
    Err("none of the passwords decrypts the key".to_owned())
}

fn unknown(what: &str) -> Locked {
    Locked::Unknown(format!(
        "weir does not support the key's encryption ({what}); convert the key with: openssl pkey -aes128 -in KEY -out \
         NEW"
    ))
}

/// EncryptedPrivateKeyInfo (RFC 5958 §3).
#[derive(DecodeValue)]
struct Encrypted<'a> {
    scheme: Algorithm<'a>,
    data: &'a OctetStringRef,
}

impl<'a> Sequence<'a> for Encrypted<'a> {}

/// PBES2-params (RFC 8018 §A.4).
#[derive(DecodeValue)]
struct Pbes2<'a> {
    derivation: Algorithm<'a>,
    cipher: Algorithm<'a>,
}

impl<'a> Sequence<'a> for Pbes2<'a> {}

/// PBKDF2-params (RFC 8018 §A.2).
#[derive(DecodeValue)]
struct Pbkdf2<'a> {
    salt: &'a OctetStringRef,
    rounds: u64,
    _key_bytes: Option<u64>,
    function: Option<Algorithm<'a>>,
}

impl<'a> Sequence<'a> for Pbkdf2<'a> {}

/// EncryptedPrivateKeyInfo with PBES2 (RFC 8018 §6.2).
fn pkcs8(der: &[u8], password: &[u8]) -> Result<Vec<u8>, Locked> {
    const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
    const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
    const HMAC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2];
    const AES: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1];
    let outer = Encrypted::from_der(der).ok();
    let scheme = outer.as_ref().filter(|outer| outer.scheme.id == Oid(PBES2)).and_then(|outer| outer.scheme.parameters);
    let (Some(outer), Some(Ok(scheme))) = (&outer, scheme.map(|read| read.decode_as::<Pbes2<'_>>())) else {
        return Err(unknown("not PBES2"));
    };
    let (Oid(PBKDF2), Some(parameters)) = (scheme.derivation.id, scheme.derivation.parameters) else {
        return Err(unknown("key derivation other than PBKDF2"));
    };
    let Ok(parameters) = parameters.decode_as::<Pbkdf2<'_>>() else {
        return Err(unknown("unreadable parameters"));
    };
    let rounds = u32::try_from(parameters.rounds).ok().filter(|rounds| *rounds <= ROUNDS_MAX);
    let Some(rounds) = rounds.and_then(NonZeroU32::new) else {
        return Err(unknown("the number of rounds is zero or too large"));
    };
    let hmac = match parameters.function.map(|function| function.id.0.strip_prefix(HMAC)) {
        None | Some(Some([7])) => PBKDF2_HMAC_SHA1,
        Some(Some([9])) => PBKDF2_HMAC_SHA256,
        Some(Some([10])) => PBKDF2_HMAC_SHA384,
        Some(Some([11])) => PBKDF2_HMAC_SHA512,
        Some(_) => return Err(unknown("unknown hash")),
    };
    let algorithm = match scheme.cipher.id.0.strip_prefix(AES) {
        Some([2]) => &AES_128,
        Some([22]) => &AES_192,
        Some([42]) => &AES_256,
        _ => return Err(unknown("cipher other than AES in CBC mode")),
    };
    let iv = scheme.cipher.parameters.and_then(|iv| iv.decode_as::<&OctetStringRef>().ok());
    let iv = iv.map(OctetStringRef::as_bytes).unwrap_or_default();
    let mut key = vec![0; key_bytes(algorithm)];
    pbkdf2::derive(hmac, rounds, parameters.salt.as_bytes(), password, &mut key);
    decrypt(algorithm, &key, iv, outer.data.as_bytes())
}

/// RFC 1421's headers as OpenSSL writes them: MD5 makes the key from password and IV.
fn traditional(der: &[u8], info: &str, password: &[u8]) -> Result<Vec<u8>, Locked> {
    let (name, iv) = info.split_once(',').unwrap_or((info, ""));
    let algorithm = match name {
        "AES-128-CBC" => &AES_128,
        "AES-192-CBC" => &AES_192,
        "AES-256-CBC" => &AES_256,
        other => return Err(unknown(other)),
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let iv: Option<Vec<u8>> =
        iv.as_bytes().chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(*pair.get(1)?)?) as u8)).collect();
    let iv = iv.unwrap_or_default();
    let salt = iv.get(..8).unwrap_or_default();
    let (mut key, mut block) = (Vec::new(), Vec::new());
    while key.len() < key_bytes(algorithm) {
        block = Md5::new().chain_update(&block).chain_update(password).chain_update(salt).finalize().to_vec();
        key.extend_from_slice(&block);
    }
    key.truncate(key_bytes(algorithm));
    decrypt(algorithm, &key, &iv, der)
}

fn key_bytes(algorithm: &cipher::Algorithm) -> usize {
    match algorithm {
        algorithm if *algorithm == AES_128 => 16,
        algorithm if *algorithm == AES_192 => 24,
        _ => 32,
    }
}

fn decrypt(algorithm: &'static cipher::Algorithm, key: &[u8], iv: &[u8], encrypted: &[u8]) -> Result<Vec<u8>, Locked> {
    let iv: [u8; 16] = iv.try_into().map_err(|_| unknown("wrong size of the IV"))?;
    let key = UnboundCipherKey::new(algorithm, key).and_then(PaddedBlockDecryptingKey::cbc_pkcs7);
    let key = key.map_err(|_| unknown("unsupported cipher"))?;
    let mut buffer = encrypted.to_vec();
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let plain = key.decrypt(&mut buffer, context).map_err(|_| Locked::Wrong)?;
    // A wrong password can leave valid padding by chance, but no sequence of that length.
    <Opaque<'_>>::from_der(plain).map(|_| plain.to_vec()).map_err(|_| Locked::Wrong)
}
