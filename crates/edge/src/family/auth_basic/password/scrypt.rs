//! `$y$` (yescrypt) and `$7$` (scrypt): hashes that need memory.
//!
//! Their forms are those of libxcrypt (crypt(5)). yescrypt without its additions is scrypt (RFC 7914).

use std::sync::{Mutex, PoisonError};

use yescrypt::{Mode, Params, PasswordVerifier, Yescrypt};

use super::{ITOA64, push64, same};

/// The most memory, in bytes, that one hash may need; `mkpasswd` makes hashes of 16 MiB. weir does not compute others.
const MEMORY_MAX: u64 = 256 << 20;

/// The most blocks that one hash may compute: a bound of its time. It is 64 times that of `mkpasswd`.
const BLOCKS_MAX: u64 = 64 * 4096 * 32;

/// One such hash at a time: so their memory is bounded, however many clients send passwords.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The bytes of a hash of `$7$`.
const SCRYPT_BYTES: usize = 32;

/// Whether the password is right; `None` if the hash needs more memory or time than weir spends.
pub fn verify(secret: &[u8], text: &str) -> Option<bool> {
    let (id, rest) = text.strip_prefix('$')?.split_once('$')?;
    match id {
        "y" => {
            let Some(params) = rest.split('$').next().and_then(|params| params.parse::<Params>().ok()) else {
                return Some(false);
            };
            is_bounded(&params).then(|| {
                let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
                Yescrypt::default().verify_password(secret, text).is_ok()
            })
        }
        _ => {
            let Some((params, salt, hash)) = scrypt_parts(rest) else { return Some(false) };
            is_bounded(&params).then(|| {
                let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
                let mut bytes = [0; SCRYPT_BYTES];
                yescrypt::yescrypt(secret, salt, &params, &mut bytes).is_ok() && same(&encode(&bytes), hash)
            })
        }
    }
}

fn is_bounded(params: &Params) -> bool {
    const BLOCK_BYTES: u64 = 128;
    let blocks = params.n().checked_mul(u64::from(params.r()));
    let memory = blocks.and_then(|blocks| blocks.checked_mul(BLOCK_BYTES));
    let work = blocks.and_then(|blocks| blocks.checked_mul(u64::from(params.p())));
    memory.is_some_and(|bytes| bytes <= MEMORY_MAX) && work.is_some_and(|blocks| blocks <= BLOCKS_MAX)
}

/// The parts of a `$7$` entry: one letter for log2 N, five each for r and p, the salt, and after `$` the hash.
fn scrypt_parts(rest: &str) -> Option<(Params, &[u8], &[u8])> {
    let (setting, hash) = rest.split_once('$')?;
    let setting = setting.as_bytes();
    let (n, r, p) = (digits(setting.get(..1)?)?, digits(setting.get(1..6)?)?, digits(setting.get(6..11)?)?);
    let n = 1u64.checked_shl(n)?;
    if r == 0 || p == 0 || n < 2 {
        return None;
    }
    Some((Params::new(Mode::Classic, n, r, p).ok()?, setting.get(11..)?, hash.as_bytes()))
}

/// Letters for six bits each, the lowest first.
fn digits(letters: &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for (place, letter) in letters.iter().enumerate() {
        let digit = ITOA64.iter().position(|known| known == letter)? as u32;
        value |= digit.checked_shl(6 * place as u32)?;
    }
    Some(value)
}

/// Three bytes become four letters, the lowest bits first.
fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in bytes.chunks(3) {
        let value = part.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        push64(value, part.len() + 1, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_libxcrypt_are_checked() {
        // Made by libxcrypt's crypt() for "password".
        for stored in [
            "$y$j9T$saltsaltsaltsalt$Uxvkjnhdr/2B6SINV1mXACdXVbd5kc899ms5aqhxMQD",
            "$y$j75$abcdefgh$hycRI05iyPwUdPZDaw/SJaABdj2h8B1Bgxi1Z/4Xke0",
            "$7$C6..../....SodiumChloride$6OIeehEnzbyu949sLkdyNyp6EorTTZ52ToM3ucR5RK7",
            "$7$92....1....salt$D2jAJn6L6uO1ry96hksPVcqJCgVFGdUFkoOuPZoYZDC",
        ] {
            assert_eq!(verify(b"password", stored), Some(true), "{stored}");
            assert_eq!(verify(b"passwore", stored), Some(false), "{stored}");
        }
    }

    #[test]
    fn a_hash_that_needs_too_much_is_not_computed() {
        // N is 2^30, at r = 8 and at r = 32.
        assert_eq!(verify(b"password", "$7$S6..../....salt$x"), None);
        assert_eq!(verify(b"password", "$y$jRT$saltsaltsaltsalt$x"), None);
    }
}
