//! The keyed hash of a body: made for long inputs, as SipHash is for short ones.
//!
//! Blocks of 64 bytes go through NH (as in UMAC, RFC 4418), and the results through two polynomials modulo 2^61 - 1. Both have
//! secret keys, so two different bodies have equal results only by a chance of some 2^-60 for each block. SipHash of the result hides it.

use super::sip::{Sip, SipKey};

const BLOCK_BYTES: usize = 64;
/// 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;

/// The keys of [`BodyHash`].
#[derive(Clone)]
pub(super) struct DigestKeys {
    /// A key for each word of a block.
    pub(super) words: [u64; BLOCK_BYTES / 8],
    /// The points of both polynomials.
    pub(super) points: [u64; 2],
    pub(super) last: SipKey,
}

/// The keyed hash of a body.
#[derive(Clone)]
pub struct BodyHash {
    keys: DigestKeys,
    sums: [u64; 2],
    block: [u8; BLOCK_BYTES],
    /// Bytes of the block that is not yet full.
    filled: usize,
    length: u64,
}

impl BodyHash {
    pub(super) fn new(keys: DigestKeys) -> BodyHash {
        BodyHash { keys, sums: [0; 2], block: [0; BLOCK_BYTES], filled: 0, length: 0 }
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u64);
        let mut rest = bytes;
        if self.filled > 0 {
            let (head, tail) = rest.split_at(rest.len().min(BLOCK_BYTES - self.filled));
            self.block[self.filled..self.filled + head.len()].copy_from_slice(head);
            self.filled += head.len();
            rest = tail;
            if self.filled < BLOCK_BYTES {
                return;
            }
            let block = self.block;
            self.add(&block);
        }
        let (blocks, tail) = rest.as_chunks::<BLOCK_BYTES>();
        blocks.iter().for_each(|block| self.add(block));
        self.block[..tail.len()].copy_from_slice(tail);
        self.filled = tail.len();
    }

    /// The hash of all bytes.
    pub fn finish(mut self) -> u64 {
        if self.filled > 0 {
            // The length below tells these zeros from the body's own.
            let mut block = self.block;
            block[self.filled..].fill(0);
            self.add(&block);
        }
        let mut sip = Sip::new(self.keys.last);
        [self.sums[0], self.sums[1], self.length].iter().for_each(|word| sip.update(&word.to_le_bytes()));
        sip.finish() as u64
    }

    #[inline]
    fn add(&mut self, block: &[u8; BLOCK_BYTES]) {
        let pairs = block.as_chunks::<16>().0.iter().zip(self.keys.words.as_chunks::<2>().0);
        let sum = pairs.fold(0_u128, |sum, (bytes, [low_key, high_key])| {
            let both = u128::from_le_bytes(*bytes);
            let (low, high) = ((both as u64).wrapping_add(*low_key), ((both >> 64) as u64).wrapping_add(*high_key));
            sum.wrapping_add(u128::from(low) * u128::from(high))
        });
        let halves = [sum as u64, (sum >> 64) as u64];
        for ((total, point), half) in self.sums.iter_mut().zip(self.keys.points).zip(halves) {
            *total = modulo(u128::from(*total) * u128::from(point) + u128::from(half));
        }
        self.filled = 0;
    }
}

/// A number below 2^123 modulo 2^61 - 1.
fn modulo(number: u128) -> u64 {
    let once = (number as u64 & PRIME) + (number >> 61) as u64;
    let twice = (once & PRIME) + (once >> 61);
    if twice >= PRIME { twice - PRIME } else { twice }
}

#[cfg(test)]
mod tests {
    use super::super::keys::HashKeys;
    use super::*;

    fn hash(pieces: &[&[u8]]) -> u64 {
        let mut hash = BodyHash::new(HashKeys::new([2; 16]).0.body);
        pieces.iter().for_each(|piece| hash.update(piece));
        hash.finish()
    }

    #[test]
    fn pieces_make_no_difference_and_each_bit_does() {
        let bytes: Vec<u8> = (0..300_u32).map(|byte| byte as u8).collect();
        let mut all = std::collections::HashSet::new();
        for length in 0..bytes.len() {
            let whole = hash(&[&bytes[..length]]);
            assert!(all.insert(whole), "{length}");
            for cut in [1, 63, 64, 65, length / 2] {
                let (one, two) = bytes[..length].split_at(cut.min(length));
                assert_eq!(hash(&[one, two]), whole, "{cut} of {length}");
            }
        }
        for bit in 0..300 * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(all.insert(hash(&[&other])), "{bit}");
        }
        assert!(all.insert(hash(&[&[0; 64]])) && all.insert(hash(&[&[0; 65]])), "zeros count");
    }

    #[test]
    fn remainders_are_exact() {
        for number in
            [0, 1, u128::from(PRIME), u128::from(PRIME) + 1, 1 << 122, (1 << 123) - 1, u128::from(PRIME).pow(2)]
        {
            assert_eq!(u128::from(modulo(number)), number % u128::from(PRIME), "{number}");
        }
    }
}
