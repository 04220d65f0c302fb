//! The keyed hash of a body: made for long inputs, as SipHash is for short ones.

use std::fmt;

use highway::{HighwayHash, HighwayHasher, Key};

/// The key of [`BodyHash`].
pub(super) type DigestKey = [u64; 4];

/// The keyed hash of a body: HighwayHash with 64 bits of output.
#[derive(Clone)]
pub struct BodyHash(HighwayHasher);

impl BodyHash {
    pub(super) fn new(key: DigestKey) -> BodyHash {
        BodyHash(HighwayHasher::new(Key(key)))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.append(bytes);
    }

    /// The hash of all bytes.
    pub fn finish(self) -> u64 {
        self.0.finalize64()
    }
}

impl fmt::Debug for BodyHash {
    /// Shows nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyHash")
    }
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
}
