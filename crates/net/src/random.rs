//! Random numbers that nobody can guess, from the TLS library.

use aws_lc_rs::rand;
use std::io;

/// 16 random bits; fails only if the system provides no randomness.
pub fn word() -> io::Result<u16> {
    let mut bytes = [0; 2];
    rand::fill(&mut bytes).map_err(|_| io::Error::other("no randomness"))?;
    Ok(u16::from_be_bytes(bytes))
}
