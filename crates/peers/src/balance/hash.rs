//! `hash key`: the CRC of the key, mapped to the weights.
//!
//! Compatible with Cache::Memcached: the next try salts the key with the round and adds to the hash so far.

use super::field::Field;
use crate::selection::Walk;

/// The bits that Cache::Memcached keeps of a CRC's upper half.
const HALF_MASK: u32 = 0x7fff;

pub(super) fn choose(field: &Field<'_>, walk: &mut Walk, key: &[u8]) -> Option<usize> {
    if walk.is_over() || field.slots.len() < 2 || key.is_empty() {
        return None;
    }
    loop {
        let hash = next_hash(walk, key);
        let owner = field.owner_of(hash % field.total_weight.max(1));
        if let Some(peer) = owner.filter(|&peer| field.usable(peer)) {
            return Some(peer);
        }
        if walk.gives_up() {
            return None;
        }
    }
}

fn next_hash(walk: &mut Walk, key: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    if walk.rounds > 0 {
        crc.update(walk.rounds.to_string().as_bytes());
    }
    crc.update(key);
    let folded = (crc.finalize() >> 16) & HALF_MASK;
    let hash = walk.hash.unwrap_or(0).wrapping_add(folded);
    walk.hash = Some(hash);
    walk.rounds += 1;
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-32 of "123456789" is cbf43926, the check value of the polynomial;
    /// the second round hashes "1" before the key.
    #[test]
    fn rounds_are_salted_and_summed() {
        let mut walk = Walk::default();
        assert_eq!(next_hash(&mut walk, b"123456789"), 0xcbf4 & HALF_MASK);
        let salted = (crc32fast::hash(b"1123456789") >> 16) & HALF_MASK;
        assert_eq!(next_hash(&mut walk, b"123456789"), (0xcbf4 & HALF_MASK) + salted);
    }
}
