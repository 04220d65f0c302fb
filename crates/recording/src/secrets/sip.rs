//! SipHash-2-4 with 128 bits of output: a keyed pseudorandom function, made for short inputs.
//!
//! Without the key, nobody can find the hash of a guessed value: that is what hides a phone number, of which there are few.
//! HMAC-SHA-256 does the same, and takes 10 times as long for a value of 20 bytes.

/// A key.
#[derive(Clone, Copy)]
pub(super) struct SipKey(u64, u64);

impl SipKey {
    pub(super) fn new(bytes: [u8; 16]) -> SipKey {
        let all = u128::from_le_bytes(bytes);
        SipKey(all as u64, (all >> 64) as u64)
    }
}

/// A hash of bytes that come in pieces.
#[derive(Clone)]
pub(super) struct Sip {
    v: [u64; 4],
    /// The bytes that do not yet fill a word, and their number.
    tail: u64,
    tail_bytes: u32,
    length: u64,
}

impl Sip {
    pub(super) fn new(SipKey(k0, k1): SipKey) -> Sip {
        let v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        Sip { v, tail: 0, tail_bytes: 0, length: 0 }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u64);
        let fill = (8 - self.tail_bytes as usize) % 8;
        let (head, rest) = bytes.split_at(fill.min(bytes.len()));
        self.add_tail(head);
        let (words, tail) = rest.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        self.add_tail(tail);
    }

    pub(super) fn finish(mut self) -> u128 {
        let last = self.tail | self.length << 56;
        self.word(last);
        self.v[2] ^= 0xee;
        (0..4).for_each(|_| self.round());
        let low = self.v.iter().fold(0, |all, v| all ^ v);
        self.v[1] ^= 0xdd;
        (0..4).for_each(|_| self.round());
        let high = self.v.iter().fold(0, |all, v| all ^ v);
        u128::from(low) | u128::from(high) << 64
    }

    fn add_tail(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.tail |= u64::from(*byte) << (8 * self.tail_bytes);
            self.tail_bytes += 1;
            if self.tail_bytes == 8 {
                let word = std::mem::take(&mut self.tail);
                self.tail_bytes = 0;
                self.word(word);
            }
        }
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.round();
        self.v[0] ^= word;
    }

    #[inline]
    fn round(&mut self) {
        let [a, b, c, d] = &mut self.v;
        *a = a.wrapping_add(*b);
        *b = b.rotate_left(13) ^ *a;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*d);
        *d = d.rotate_left(16) ^ *c;
        *a = a.wrapping_add(*d);
        *d = d.rotate_left(21) ^ *a;
        *c = c.wrapping_add(*b);
        *b = b.rotate_left(17) ^ *c;
        *c = c.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `vectors_sip128` of the reference implementation: the key 00…0f, and the inputs 00, 00 01 and so on.
    #[test]
    fn hashes_are_those_of_the_reference() {
        let key = SipKey::new(std::array::from_fn(|at| at as u8));
        let expected = [
            (0, "a3817f04ba25a8e66df67214c7550293"),
            (1, "da87c1d86b99af44347659119b22fc45"),
            (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
            (8, "3b62a9ba6258f5610f83e264f31497b4"),
            (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
            (63, "5150d1772f50834a503e069a973fbd7c"),
        ];
        let input: Vec<u8> = (0..64).collect();
        let hash = |length: usize| {
            let mut sip = Sip::new(key);
            sip.update(&input[..length]);
            sip.finish()
        };
        for (length, expected) in expected {
            let bytes = hash(length).to_le_bytes();
            assert_eq!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), expected);
        }
        for length in 0..64 {
            for cut in 0..=length {
                let mut sip = Sip::new(key);
                sip.update(&input[..cut]);
                sip.update(&input[cut..length]);
                assert_eq!(sip.finish(), hash(length), "{cut} of {length}");
            }
        }
    }
}
