//! A small seeded source of random numbers for [`super::Policy::Random`].
//!
//! Not for secrets: with splitmix64 the last number determines the next one.

/// A source that gives the same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct Prng(u64);

impl Prng {
    /// Starts at `seed`; any value will do.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, uniform except for a bias of `bound` in 2^32; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        let high = self.next_u64() >> 32;
        // The product of two 32-bit numbers, so its upper half is below `bound`.
        ((high * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's first numbers for seed 1234567.
    #[test]
    fn gives_the_published_sequence() {
        let mut prng = Prng::new(1_234_567);
        assert_eq!(prng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(prng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn stays_below_the_bound() {
        let mut prng = Prng::new(7);
        assert_eq!(prng.below(0), 0);
        for bound in [1, 2, 3, 1000, u32::MAX] {
            for _ in 0..200 {
                assert!(prng.below(bound) < bound);
            }
        }
    }
}
