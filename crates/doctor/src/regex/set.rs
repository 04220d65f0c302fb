//! A set of bytes.

/// Any set of the 256 byte values, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// No byte.
    pub const NONE: ByteSet = ByteSet([0; 4]);
    /// Every byte.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// Only this byte.
    pub fn one(byte: u8) -> ByteSet {
        ByteSet::range(byte, byte)
    }

    /// The bytes from the first to the last, both included.
    pub fn range(first: u8, last: u8) -> ByteSet {
        let mut set = ByteSet::NONE;
        for byte in first..=last {
            set.insert(byte);
        }
        set
    }

    /// These bytes.
    pub fn of(bytes: &[u8]) -> ByteSet {
        let mut set = ByteSet::NONE;
        for byte in bytes {
            set.insert(*byte);
        }
        set
    }

    /// Adds a byte.
    pub fn insert(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    /// Whether it has the byte.
    pub fn has(self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 6)).is_some_and(|word| word & (1 << (byte & 63)) != 0)
    }

    /// The union.
    pub fn or(self, other: ByteSet) -> ByteSet {
        self.with(other, |a, b| a | b)
    }

    /// The intersection.
    pub fn and(self, other: ByteSet) -> ByteSet {
        self.with(other, |a, b| a & b)
    }

    /// The complement.
    pub fn others(self) -> ByteSet {
        self.with(ByteSet::NONE, |a, _| !a)
    }

    /// Whether the sets have a byte in common.
    pub fn meets(self, other: ByteSet) -> bool {
        self.and(other) != ByteSet::NONE
    }

    /// Whether it has no byte.
    pub fn is_empty(self) -> bool {
        self == ByteSet::NONE
    }

    /// How many bytes it has.
    pub fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The bytes in ascending order.
    pub fn bytes(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |byte| self.has(*byte))
    }

    /// The set with each letter in both cases.
    pub fn caseless(self) -> ByteSet {
        let mut set = self;
        for byte in self.bytes() {
            set.insert(byte.to_ascii_lowercase());
            set.insert(byte.to_ascii_uppercase());
        }
        set
    }

    fn with(self, other: ByteSet, combine: fn(u64, u64) -> u64) -> ByteSet {
        let mut words = [0; 4];
        for ((word, a), b) in words.iter_mut().zip(self.0).zip(other.0) {
            *word = combine(a, b);
        }
        ByteSet(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sets() {
        let digits = ByteSet::range(b'0', b'9');
        assert!(digits.has(b'5') && !digits.has(b'a') && digits.len() == 10);
        assert!(!digits.others().meets(digits) && digits.others().or(digits) == ByteSet::ALL);
        assert_eq!(ByteSet::of(b"aZ").caseless(), ByteSet::of(b"aAzZ"));
        assert_eq!(ByteSet::of(b"ca").bytes().collect::<Vec<_>>(), b"ac");
        assert!(ByteSet::NONE.is_empty() && ByteSet::ALL.has(255));
    }
}
