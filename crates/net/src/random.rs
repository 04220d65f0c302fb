//! Numbers that nobody can guess, from the library that has them for TLS.

use aws_lc_rs::rand;
use std::io;

/// 16 random bits; fails only where the system has no randomness to give.
pub fn word() -> io::Result<u16> {
    let mut bytes = [0; 2];
    rand::fill(&mut bytes).map_err(|_| io::Error::other("no randomness"))?;
    Ok(u16::from_be_bytes(bytes))
}
