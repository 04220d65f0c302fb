//! Kinds of private keys, and new keys.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, RsaKeyPair,
};
use weir_net::tls;

/// A kind of key. The order of the variants is part of the names of files, see [`CertificateOrder::id`](crate::CertificateOrder::id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// An elliptic curve of this many bits: 256, 384 or 521.
    Ecdsa(u32),
    /// RSA of this many bits: 2048, 3072 or 4096.
    Rsa(u32),
}

impl Default for KeyKind {
    fn default() -> KeyKind {
        KeyKind::Ecdsa(256)
    }
}

impl KeyKind {
    /// Reads `ALG[:SIZE]`; `None` if the text names no algorithm.
    ///
    /// # Errors
    /// nginx's words.
    pub fn read(text: &str) -> Option<Result<KeyKind, &'static str>> {
        let (algorithm, size) = text.split_once(':').map_or((text, None), |(algorithm, size)| (algorithm, Some(size)));
        let kind = match (algorithm, size) {
            ("ecdsa", None | Some("256")) => Ok(KeyKind::Ecdsa(256)),
            ("ecdsa", Some("384")) => Ok(KeyKind::Ecdsa(384)),
            ("ecdsa", Some("521")) => Ok(KeyKind::Ecdsa(521)),
            ("ecdsa", Some(_)) => Err("unsupported curve"),
            ("rsa", None | Some("2048")) => Ok(KeyKind::Rsa(2048)),
            ("rsa", Some("3072")) => Ok(KeyKind::Rsa(3072)),
            ("rsa", Some("4096")) => Ok(KeyKind::Rsa(4096)),
            ("rsa", Some(_)) => Err("unsupported key size"),
            _ => return None,
        };
        Some(kind)
    }

    /// A new key, as PEM of PKCS #8. RSA takes up to some seconds.
    ///
    /// # Errors
    /// The library could not make one.
    pub fn generate(self) -> Result<String, String> {
        let failed = |_| "key generation error".to_owned();
        let document = match self {
            KeyKind::Ecdsa(bits) => EcdsaKeyPair::generate(curve(bits))
                .and_then(|pair| pair.to_pkcs8v1())
                .map_err(failed)?
                .as_ref()
                .to_vec(),
            KeyKind::Rsa(bits) => {
                let size = match bits {
                    3072 => KeySize::Rsa3072,
                    4096 => KeySize::Rsa4096,
                    _ => KeySize::Rsa2048,
                };
                let pair = RsaKeyPair::generate(size).map_err(failed)?;
                AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).map_err(failed)?.as_ref().to_vec()
            }
        };
        Ok(tls::section("PRIVATE KEY", &document))
    }
}

/// The curve of this many bits, with the form of signatures that JWS uses (RFC 7518 §3.4).
pub(crate) fn curve(bits: u32) -> &'static EcdsaSigningAlgorithm {
    match bits {
        384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
        521 => &ECDSA_P521_SHA512_FIXED_SIGNING,
        _ => &ECDSA_P256_SHA256_FIXED_SIGNING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_in_nginx_words() {
        for (text, wanted) in [
            ("ecdsa", Some(Ok(KeyKind::Ecdsa(256)))),
            ("ecdsa:521", Some(Ok(KeyKind::Ecdsa(521)))),
            ("ecdsa:234", Some(Err("unsupported curve"))),
            ("rsa", Some(Ok(KeyKind::Rsa(2048)))),
            ("rsa:4096", Some(Ok(KeyKind::Rsa(4096)))),
            ("rsa:1024", Some(Err("unsupported key size"))),
            ("rsa.key", None),
            ("", None),
        ] {
            assert_eq!(KeyKind::read(text), wanted, "{text}");
        }
    }
}
