//! Tables of a block that is written: numbers by hash, and the bytes that prove equality.

/// A table of numbers, by hash. The caller compares: two things may have the same hash.
#[derive(Default)]
pub(crate) struct Numbers {
    /// The number and a half of its hash, or nothing. The length is a power of two.
    slots: Vec<Option<(u32, u32)>>,
    hashes: Vec<u64>,
}

impl Numbers {
    /// The number of a thing with this hash for which `is` is true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        // A quarter of the slots is free, so this ends.
        while let Some((number, half)) = self.slots[slot & mask] {
            if half == (hash >> 32) as u32 && is(number) {
                return Some(number);
            }
            slot += 1;
        }
        None
    }

    /// Gives the next number to a thing with this hash.
    pub(crate) fn add(&mut self, hash: u64) -> u32 {
        let number = self.hashes.len() as u32;
        self.hashes.push(hash);
        if self.hashes.len() * 4 > self.slots.len() * 3 {
            self.grow();
        } else {
            self.put(number, hash);
        }
        number
    }

    /// Forgets all. The memory stays.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(None);
        self.hashes.clear();
    }

    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(length, None);
        for number in 0..self.hashes.len() {
            self.put(number as u32, self.hashes[number]);
        }
    }

    fn put(&mut self, number: u32, hash: u64) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot & mask].is_some() {
            slot += 1;
        }
        self.slots[slot & mask] = Some((number, (hash >> 32) as u32));
    }
}

/// Whether two texts of one length are equal. Most of them are short: a call of `memcmp` takes longer than this.
#[inline]
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let length = one.len();
    if length != other.len() {
        return false;
    }
    if length >= 16 {
        let whole = one.as_chunks::<16>().0.iter().zip(other.as_chunks::<16>().0);
        return whole
            .fold(0, |differs, (one, other)| differs | u128::from_ne_bytes(*one) ^ u128::from_ne_bytes(*other))
            == 0
            && one.last_chunk::<16>() == other.last_chunk::<16>();
    }
    if length >= 8 {
        return one.first_chunk::<8>() == other.first_chunk::<8>() && one.last_chunk::<8>() == other.last_chunk::<8>();
    }
    if length >= 4 {
        return one.first_chunk::<4>() == other.first_chunk::<4>() && one.last_chunk::<4>() == other.last_chunk::<4>();
    }
    one.iter().zip(other).all(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_one_byte_differ() {
        for length in 0..70 {
            let one: Vec<u8> = (0..length).collect();
            assert!(is_same(&one, &one.clone()));
            for at in 0..usize::from(length) {
                let mut other = one.clone();
                other[at] ^= 1;
                assert!(!is_same(&one, &other), "{at} of {length}");
            }
            assert!(!is_same(&one, &[&one[..], b"x"].concat()));
        }
    }

    #[test]
    fn things_with_one_hash_keep_their_numbers() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.find(7, |_| true), None);
        for number in 0..1_000 {
            assert_eq!(numbers.add(number % 10), number as u32);
        }
        for number in 0..1_000 {
            assert_eq!(numbers.find(u64::from(number) % 10, |found| found == number), Some(number));
        }
        assert_eq!(numbers.find(1 << 40, |_| true), None, "another half of a hash");
        numbers.clear();
        assert_eq!(numbers.find(3, |_| true), None);
    }
}
