//! A key that weir shares with a DNS server (TSIG, RFC 8945).

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A key with its name and algorithm.
#[derive(Clone)]
pub struct SharedKey {
    /// Its name.
    pub name: String,
    /// The name of its algorithm.
    pub algorithm: &'static str,
    key: hmac::Key,
}

impl fmt::Debug for SharedKey {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKey({} {})", self.name, self.algorithm)
    }
}

impl SharedKey {
    /// A key of `hmac-sha256`, `hmac-sha384` or `hmac-sha512`, with its secret in base64.
    ///
    /// # Errors
    /// The reason, without the secret.
    pub fn new(name: &str, algorithm: &str, secret: &str) -> Result<SharedKey, &'static str> {
        let (algorithm, kind) = match algorithm {
            "hmac-sha256" => ("hmac-sha256", hmac::HMAC_SHA256),
            "hmac-sha384" => ("hmac-sha384", hmac::HMAC_SHA384),
            "hmac-sha512" => ("hmac-sha512", hmac::HMAC_SHA512),
            _ => return Err("the algorithm is hmac-sha256, hmac-sha384 or hmac-sha512"),
        };
        let secret = STANDARD.decode(secret.trim()).map_err(|_| "the secret is not base64")?;
        if secret.is_empty() {
            return Err("the secret is empty");
        }
        Ok(SharedKey { name: name.to_owned(), algorithm, key: hmac::Key::new(kind, &secret) })
    }

    /// The signature of a message.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        hmac::sign(&self.key, message).as_ref().to_vec()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn keys_are_read_and_sign() {
        // RFC 4231 §4.3: the key "Jefe".
        let key = SharedKey::new("k", "hmac-sha256", "SmVmZQ==").unwrap();
        let signed = key.sign(b"what do ya want for nothing?");
        assert_eq!(signed.get(..4), Some(&[0x5b, 0xdc, 0xc1, 0x46][..]));
        assert!(SharedKey::new("k", "hmac-md5", "SmVmZQ==").is_err());
        assert!(SharedKey::new("k", "hmac-sha256", "*").is_err() && SharedKey::new("k", "hmac-sha256", "").is_err());
        assert!(!format!("{key:?}").contains("SmVmZQ"));
    }
}
