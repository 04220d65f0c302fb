//! Checks a password against an entry of an htpasswd file.
//!
//! `{PLAIN}`, `{SHA}`, `{SSHA}`, `$apr1$` and `$1$` (MD5), `$2a$`… (bcrypt), `$5$`, `$6$` (SHA-2), and the traditional
//! DES hash of 13 letters, `$y$` (yescrypt) and `$7$` (scrypt). A costly hash is computed on a thread of its own
//! (`is_slow`). The file sets the cost, and a client cannot raise it: weir rejects a password longer than any that was
//! hashed, without a computation.

mod des;
mod scrypt;

use md5::{Digest, Md5};
use sha_crypt::{PasswordVerifier, ShaCrypt};
use sha1::Sha1;
use weir_http::text::base64;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordVerdict {
    /// The password is right.
    Right,
    /// The password is wrong.
    Wrong,
    /// The file uses an unknown hash method.
    Unknown,
}

/// The longest password, in bytes, that a hash with many rounds takes: `crypt()` takes no more (libxcrypt:
/// CRYPT_MAX_PASSPHRASE_SIZE), htpasswd 255. The work of a SHA-2 hash grows with the square of the length.
const CRYPT_BYTES_MAX: usize = 512;

/// Checks `secret` against the entry of the file.
pub fn verify(secret: &[u8], stored: &[u8]) -> PasswordVerdict {
    // C strings end at a zero byte; so do passwords in nginx.
    let secret = secret.split(|byte| *byte == 0).next().unwrap_or_default();
    if secret.len() > CRYPT_BYTES_MAX && stored.starts_with(b"$") {
        return PasswordVerdict::Wrong;
    }
    let right = if let Some(plain) = stored.strip_prefix(b"{PLAIN}") {
        same(secret, plain)
    } else if let Some(coded) = stored.strip_prefix(b"{SHA}") {
        same(base64::encode(&Sha1::digest(secret)).as_bytes(), coded)
    } else if let Some(coded) = stored.strip_prefix(b"{SSHA}") {
        salted_sha1(secret, coded)
    } else if stored.starts_with(b"$apr1$") {
        same(&md5_crypt(secret, stored, b"$apr1$"), stored)
    } else if stored.starts_with(b"$1$") {
        same(&md5_crypt(secret, stored, b"$1$"), stored)
    } else if let Ok(text) = std::str::from_utf8(stored) {
        match text.as_bytes() {
            [b'$', b'2', ..] => bcrypt::verify(secret, text).unwrap_or(false),
            [b'$', b'5' | b'6', b'$', ..] => sha2_crypt(secret, text),
            [b'$', b'y' | b'7', b'$', ..] => match scrypt::verify(secret, text) {
                Some(right) => right,
                None => return PasswordVerdict::Unknown,
            },
            [b'$' | b'{', ..] => return PasswordVerdict::Unknown,
            // nginx: no password fits an empty entry, or one that is no hash, such as "*".
            hash => des::crypt(secret, hash).is_some_and(|computed| same(&computed, hash)),
        }
    } else {
        return PasswordVerdict::Unknown;
    };
    if right { PasswordVerdict::Right } else { PasswordVerdict::Wrong }
}

/// Whether the check takes so long that other clients of the worker would wait for it: milliseconds, and as many as the
/// file asks for.
pub fn is_slow(stored: &[u8]) -> bool {
    matches!(stored, [b'$', b'2' | b'5' | b'6' | b'7' | b'y', ..])
}

/// Compares in constant time: so the duration does not reveal where the texts differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// `{SSHA}`: the base64 of two parts: SHA-1 of password and salt, then the salt.
fn salted_sha1(secret: &[u8], coded: &[u8]) -> bool {
    const DIGEST_BYTES: usize = 20;
    let Some(decoded) = base64::decode(coded) else { return false };
    let Some((digest, salt)) = decoded.split_at_checked(DIGEST_BYTES) else { return false };
    same(&Sha1::new().chain_update(secret).chain_update(salt).finalize(), digest)
}

fn sha2_crypt(secret: &[u8], text: &str) -> bool {
    sha_crypt::PasswordHash::new(text).is_ok_and(|hash| ShaCrypt::default().verify_password(secret, &hash).is_ok())
}

const ITOA64: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends the low `count` groups of six bits, the lowest first.
fn push64(mut value: u32, count: usize, out: &mut Vec<u8>) {
    for _ in 0..count {
        out.extend(ITOA64.get(value as usize & 63));
        value >>= 6;
    }
}

/// Poul-Henning Kamp's MD5 crypt, from its published description; `magic` is `$1$` or Apache's `$apr1$`.
fn md5_crypt(secret: &[u8], setting: &[u8], magic: &[u8]) -> Vec<u8> {
    const SALT_BYTES_MAX: usize = 8;
    const ROUNDS: usize = 1000;
    let salt = setting.get(magic.len()..).unwrap_or_default().split(|byte| *byte == b'$').next().unwrap_or_default();
    let salt = salt.get(..SALT_BYTES_MAX).unwrap_or(salt);

    let inner = Md5::new().chain_update(secret).chain_update(salt).chain_update(secret).finalize();
    let mut outer = Md5::new().chain_update(secret).chain_update(magic).chain_update(salt);
    for part in secret.chunks(inner.len()) {
        outer.update(inner.get(..part.len()).unwrap_or_default());
    }
    let mut bits = secret.len();
    while bits > 0 {
        outer.update(if bits & 1 == 1 { &[0][..] } else { secret.get(..1).unwrap_or_default() });
        bits >>= 1;
    }
    let mut digest = outer.finalize();

    for round in 0..ROUNDS {
        let mut next = Md5::new();
        next.update(if round & 1 == 1 { secret } else { &digest[..] });
        if !round.is_multiple_of(3) {
            next.update(salt);
        }
        if !round.is_multiple_of(7) {
            next.update(secret);
        }
        next.update(if round & 1 == 1 { &digest[..] } else { secret });
        digest = next.finalize();
    }

    let mut out = [magic, salt, b"$"].concat();
    let byte = |at: usize| u32::from(digest.get(at).copied().unwrap_or_default());
    for [high, middle, low] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        push64(byte(high) << 16 | byte(middle) << 8 | byte(low), 4, &mut out);
    }
    push64(byte(11), 2, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_nobody_hashed_costs_nothing() {
        for (length, verdict) in
            [(CRYPT_BYTES_MAX, PasswordVerdict::Right), (CRYPT_BYTES_MAX + 1, PasswordVerdict::Wrong)]
        {
            let secret = vec![b'a'; length];
            assert_eq!(verify(&secret, &md5_crypt(&secret, b"$apr1$salt$", b"$apr1$")), verdict, "{length}");
        }
        // The highest number of rounds: computing this hash would take hours.
        let stored = [&b"$6$rounds=999999999$salt$"[..], &[b'.'; 86]].concat();
        assert_eq!(verify(&[b'a'; 8000], &stored), PasswordVerdict::Wrong);
        let plain = [b'a'; 2 * CRYPT_BYTES_MAX];
        assert_eq!(verify(&plain, &[b"{PLAIN}", &plain[..]].concat()), PasswordVerdict::Right);
    }

    #[test]
    fn costly_hashes_are_left_to_a_thread() {
        for (stored, slow) in [
            ("$2y$10$x", true),
            ("$5$x", true),
            ("$6$rounds=5000$x", true),
            ("$y$j9T$x", true),
            ("$7$C6", true),
            ("$apr1$x", false),
            ("$1$x", false),
            ("{SHA}x", false),
            ("sa3tHJ3/KuYvI", false),
            ("", false),
        ] {
            assert_eq!(is_slow(stored.as_bytes()), slow, "{stored}");
        }
    }

    #[test]
    fn every_way_of_hashing_is_checked() {
        // Made with Apache's htpasswd, openssl passwd and Python's hashlib for "password" (bcrypt: cost 4).
        for stored in [
            "{PLAIN}password",
            "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
            "$apr1$salt$Xxd1irWT9ycqoYxGFn4cb.",
            "$1$salt$qJH7.N4xYta3aEG/dfqo/0",
            "$5$salt$Gcm6FsVtF/Qa77ZKD.iwsJlCVPY0XSMgLJL0Hnww/c1",
            "$6$salt$IxDD3jeSOb5eB1CX5LBsqZFVkJdido3OUILO5Ifz5iwMuTS4XMS130MTSuDDl3aCI6WouIL9AjRbLCelDCy.g.",
            "sa3tHJ3/KuYvI",
        ] {
            assert_eq!(verify(b"password", stored.as_bytes()), PasswordVerdict::Right, "{stored}");
            assert_eq!(verify(b"passwore", stored.as_bytes()), PasswordVerdict::Wrong, "{stored}");
        }
    }

    #[test]
    fn broken_hashes_are_wrong_and_strange_ones_unknown() {
        for (stored, verdict) in [
            ("{SHA}_____Mm5Pz8GgiULbPgzG37mj9g=", PasswordVerdict::Wrong),
            ("{SSHA}_____wQadOA1e+/f+T+H3eCQQhRzYWx0", PasswordVerdict::Wrong),
            ("{SSHA}Zm9vCg==", PasswordVerdict::Wrong),
            ("$apr1$", PasswordVerdict::Wrong),
            ("$1$", PasswordVerdict::Wrong),
            ("$2y$broken", PasswordVerdict::Wrong),
            ("$argon2id$x", PasswordVerdict::Unknown),
            ("$y$broken", PasswordVerdict::Wrong),
            ("$7$broken", PasswordVerdict::Wrong),
            ("$gy$j75$salt$x", PasswordVerdict::Unknown),
            ("{SMD5}x", PasswordVerdict::Unknown),
            ("*", PasswordVerdict::Wrong),
            ("", PasswordVerdict::Wrong),
        ] {
            assert_eq!(verify(b"password", stored.as_bytes()), verdict, "{stored}");
        }
    }
}
