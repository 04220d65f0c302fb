//! The words of OpenSSL's `SSL_CONF_cmd` that can have no effect in weir, for both sides of a connection.
//!
//! <https://docs.openssl.org/3.0/man3/SSL_CONF_cmd/>. weir accepts and names them, because a file that a distribution
//! or a guide wrote has them. A word that protects a server, such as `VerifyMode`, is not among them.

/// Options of `Options`.
const OPTIONS: &[&str] = &[
    "AllowNoDHEKEX",
    "AntiReplay",
    "Bugs",
    "CANames",
    "CipherServerPreference",
    "Compression",
    "DHSingle",
    "ECDHSingle",
    "EncryptThenMac",
    "ExtendedMasterSecret",
    "KTLS",
    "KTLSTxZerocopySendfile",
    "MiddleboxCompat",
    "NoRenegotiation",
    "NoResumptionOnRenegotiation",
    "PrioritizeChaCha",
    "RxCertificateCompression",
    "StrictCertCheck",
    "TxCertificateCompression",
    "UnsafeLegacyRenegotiation",
    "UnsafeLegacyServerConnect",
];

/// Cipher suites of TLS 1.3 that OpenSSL has and weir does not.
const OTHER_SUITES: &[&str] = &["TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"];

/// Whether weir behaves the same with and without an option of `Options`.
pub fn is_idle_option(option: &str) -> bool {
    OPTIONS.contains(&option)
}

/// Whether weir ignores the command; `None` for another command, `Some(false)` if OpenSSL refuses the value too.
pub fn is_idle(name: &str, value: &str) -> Option<bool> {
    match name.to_ascii_lowercase().as_str() {
        "numtickets" | "recordpadding" => Some(true),
        "signaturealgorithms" | "clientsignaturealgorithms" => Some(value.split(':').all(is_signature)),
        _ => None,
    }
}

/// `RSA+SHA256`, or a name of RFC 8446 §4.2.3.
fn is_signature(word: &str) -> bool {
    match word.split_once('+') {
        Some((key, hash)) => {
            matches!(key, "RSA" | "RSA-PSS" | "PSS" | "ECDSA" | "DSA")
                && matches!(hash, "SHA1" | "SHA224" | "SHA256" | "SHA384" | "SHA512")
        }
        None => {
            ["rsa_pkcs1_", "rsa_pss_rsae_", "rsa_pss_pss_", "ecdsa_"].iter().any(|known| word.starts_with(known))
                || matches!(word, "ed25519" | "ed448")
        }
    }
}

/// The suites of a list without those that OpenSSL has and weir does not; the whole list if no other is in it.
pub fn own_suites(list: &str) -> String {
    let own: Vec<&str> = list.split(':').filter(|suite| !OTHER_SUITES.contains(suite)).collect();
    if own.is_empty() { list.to_owned() } else { own.join(":") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_effect_are_known_by_name() {
        for (name, value, is_ignored) in [
            ("NumTickets", "1", Some(true)),
            ("numtickets", "x", Some(true)),
            ("RecordPadding", "512", Some(true)),
            ("SignatureAlgorithms", "RSA+SHA256:ecdsa_secp256r1_sha256", Some(true)),
            ("SignatureAlgorithms", "what", Some(false)),
            ("VerifyMode", "Peer", None),
        ] {
            assert_eq!(is_idle(name, value), is_ignored, "{name} {value}");
        }
        assert!(is_idle_option("KTLS") && !is_idle_option("ServerPreference") && !is_idle_option("what"));
        assert_eq!(own_suites("TLS_AES_128_CCM_SHA256:TLS_AES_128_GCM_SHA256"), "TLS_AES_128_GCM_SHA256");
        assert_eq!(own_suites("TLS_AES_128_CCM_SHA256"), "TLS_AES_128_CCM_SHA256");
    }
}
