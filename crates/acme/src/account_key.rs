//! The key of an account: signs requests as JSON Web Signatures (RFC 7515, RFC 8555 §6.2).

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsBigEndian, EcPublicKeyUncompressedBin};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use der::asn1::UintRef;
use der::{Decode, Sequence};
use serde_json::{Value, json};
use weir_net::tls;

use crate::key;

/// The account's key.
pub struct AccountKey {
    key: Key,
    jwk: Value,
    thumbprint: String,
}

enum Key {
    Ecdsa(EcdsaKeyPair, u32),
    Rsa(RsaKeyPair),
}

/// PKCS #1's public key.
#[derive(Sequence)]
struct RsaPublic<'a> {
    modulus: UintRef<'a>,
    exponent: UintRef<'a>,
}

/// A request's protected header names the account by its key or by its URL.
#[derive(Clone, Copy, Debug)]
pub enum Signer<'s> {
    /// By the key itself: only for new accounts.
    Key,
    /// By the URL of the account.
    Account(&'s str),
}

/// base64url without padding, as all of ACME writes bytes.
pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl AccountKey {
    /// Reads a PEM text: an elliptic curve, or RSA of 2048 to 4096 bits.
    ///
    /// # Errors
    /// The reason, without the key.
    pub fn read(pem: &[u8]) -> Result<AccountKey, String> {
        let der = tls::key_der(pem)?;
        for bits in [256, 384, 521] {
            if let Ok(pair) = EcdsaKeyPair::from_private_key_der(key::curve(bits), &der) {
                let point: EcPublicKeyUncompressedBin<'_> =
                    pair.public_key().as_be_bytes().map_err(|_| "unreadable public key".to_owned())?;
                // The first byte tells that both coordinates follow.
                let point = point.as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                let jwk = json!({"crv": format!("P-{bits}"), "kty": "EC", "x": base64url(x), "y": base64url(y)});
                return Ok(AccountKey::new(Key::Ecdsa(pair, bits), jwk));
            }
        }
        let pair = RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der));
        let pair = pair.map_err(|_| "unsupported key".to_owned())?;
        let public = RsaPublic::from_der(pair.public_key().as_ref()).map_err(|_| "unreadable public key".to_owned())?;
        let (modulus, exponent) = (base64url(public.modulus.as_bytes()), base64url(public.exponent.as_bytes()));
        let jwk = json!({"e": exponent, "kty": "RSA", "n": modulus});
        Ok(AccountKey::new(Key::Rsa(pair), jwk))
    }

    fn new(key: Key, jwk: Value) -> AccountKey {
        // RFC 7638: the members in the order of their names, without white space.
        let thumbprint = base64url(digest(&SHA256, jwk.to_string().as_bytes()));
        AccountKey { key, jwk, thumbprint }
    }

    /// The thumbprint of the public key (RFC 7638).
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// The answer to a challenge with this token (RFC 8555 §8.1).
    pub fn authorizes(&self, token: &str) -> String {
        format!("{token}.{}", self.thumbprint)
    }

    /// The body of a request: a payload that is empty asks for the resource ("POST-as-GET").
    ///
    /// # Errors
    /// The library could not sign.
    pub fn sign(&self, signer: Signer<'_>, url: &str, nonce: &str, payload: &str) -> Result<String, String> {
        let algorithm = match &self.key {
            Key::Ecdsa(_, 384) => "ES384",
            Key::Ecdsa(_, 521) => "ES512",
            Key::Ecdsa(..) => "ES256",
            Key::Rsa(_) => "RS256",
        };
        let mut header = json!({"alg": algorithm, "nonce": nonce, "url": url});
        match signer {
            Signer::Key => header["jwk"] = self.jwk.clone(),
            Signer::Account(account) => header["kid"] = account.into(),
        }
        signed(&header, payload, |message| self.signature(message))
    }

    /// The proof that the account belongs to a customer of the authority (RFC 8555 §7.3.4).
    ///
    /// # Errors
    /// As for `sign`.
    pub fn bind(&self, key_id: &str, key: &[u8], url: &str) -> Result<Value, String> {
        let header = json!({"alg": "HS256", "kid": key_id, "url": url});
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let bound = signed(&header, &self.jwk.to_string(), |message| Ok(hmac::sign(&key, message).as_ref().to_vec()))?;
        serde_json::from_str(&bound).map_err(|error| error.to_string())
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let (random, failed) = (SystemRandom::new(), |_| "cannot sign request body".to_owned());
        match &self.key {
            Key::Ecdsa(pair, _) => Ok(pair.sign(&random, message).map_err(failed)?.as_ref().to_vec()),
            Key::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

/// The flattened form of RFC 7515 §7.2.2.
fn signed(
    header: &Value,
    payload: &str,
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<String, String> {
    let (protected, payload) = (base64url(header.to_string()), base64url(payload));
    let signature = base64url(sign(format!("{protected}.{payload}").as_bytes())?);
    Ok(json!({"protected": protected, "payload": payload, "signature": signature}).to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::KeyKind;
    use aws_lc_rs::signature::{self, UnparsedPublicKey};

    fn decoded(message: &Value, name: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(message[name].as_str().unwrap()).unwrap()
    }

    #[test]
    fn every_kind_signs_what_its_public_key_verifies() {
        for (kind, algorithm) in [
            (KeyKind::Ecdsa(256), "ES256"),
            (KeyKind::Ecdsa(384), "ES384"),
            (KeyKind::Ecdsa(521), "ES512"),
            (KeyKind::Rsa(2048), "RS256"),
        ] {
            let key = AccountKey::read(kind.generate().unwrap().as_bytes()).unwrap();
            let body = key.sign(Signer::Account("https://ca/1"), "https://ca/new", "n", "{}").unwrap();
            let message: Value = serde_json::from_str(&body).unwrap();
            let header: Value = serde_json::from_slice(&decoded(&message, "protected")).unwrap();
            assert_eq!(header, json!({"alg": algorithm, "kid": "https://ca/1", "nonce": "n", "url": "https://ca/new"}));
            let part = |name: &str| message[name].as_str().unwrap().to_owned();
            let text = format!("{}.{}", part("protected"), part("payload"));
            let verified = match &key.key {
                Key::Ecdsa(pair, bits) => {
                    let algorithm = match bits {
                        256 => &signature::ECDSA_P256_SHA256_FIXED,
                        384 => &signature::ECDSA_P384_SHA384_FIXED,
                        _ => &signature::ECDSA_P521_SHA512_FIXED,
                    };
                    UnparsedPublicKey::new(algorithm, pair.public_key().as_ref())
                        .verify(text.as_bytes(), &decoded(&message, "signature"))
                }
                Key::Rsa(pair) => {
                    UnparsedPublicKey::new(&signature::RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref())
                        .verify(text.as_bytes(), &decoded(&message, "signature"))
                }
            };
            assert!(verified.is_ok(), "{algorithm}");
        }
        assert!(AccountKey::read(b"no key").is_err());
    }

    #[test]
    fn the_thumbprint_is_that_of_rfc_7638() {
        let modulus = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZ\
            CiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb\
            9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1\
            jF44-csFCur-kEgU8awapJzKnqDKgw";
        let jwk = json!({"e": "AQAB", "kty": "RSA", "n": modulus});
        let pair = EcdsaKeyPair::generate(key::curve(256)).unwrap();
        let key = AccountKey::new(Key::Ecdsa(pair, 256), jwk);
        assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert_eq!(key.authorizes("t"), format!("t.{}", key.thumbprint()));
    }

    #[test]
    fn a_binding_holds_the_public_key() {
        let key = AccountKey::read(KeyKind::default().generate().unwrap().as_bytes()).unwrap();
        let bound = key.bind("customer", b"secret", "https://ca/new-account").unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&decoded(&bound, "payload")).unwrap(), key.jwk);
        let header: Value = serde_json::from_slice(&decoded(&bound, "protected")).unwrap();
        assert_eq!(header, json!({"alg": "HS256", "kid": "customer", "url": "https://ca/new-account"}));
    }
}
