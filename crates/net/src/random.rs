//! Random numbers that nobody can guess, from the kernel: the TLS library's take 20 ms of CPU to begin.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes, at most 256; fails only if the system provides no randomness.
///
/// # Errors
/// The kernel's.
pub fn bytes<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    // No signal cuts a read of this length (getrandom(2)).
    const { assert!(COUNT <= 256) };
    let mut bytes = [0; COUNT];
    let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if count == COUNT { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// 16 random bits.
///
/// # Errors
/// As [`bytes`].
pub fn word() -> io::Result<u16> {
    bytes().map(u16::from_be_bytes)
}
