//! The shared parts of our bounded fuzzers: numbers that are the same on every machine, changes to an input, and the
//! rounds. `weir-edge` includes it by its path.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The inputs and words of a fuzzer.
pub struct Material<Seed: 'static> {
    /// Valid inputs.
    pub seeds: &'static [Seed],
    /// A word with a meaning for the tested code.
    pub word: fn(&mut Random) -> &'static str,
    /// Longest input the mutations grow to.
    pub input_bytes_max: usize,
    /// Longest piece that is cut or repeated.
    pub cut_bytes_max: usize,
    /// Longest piece taken from a seed.
    pub piece_bytes_max: usize,
}

impl<Seed: AsRef<[u8]>> Material<Seed> {
    /// Checks the seeds unchanged, then `rounds` changed ones.
    pub fn fuzz(&self, rounds: u64, check: impl Fn(&[u8])) {
        for seed in self.seeds {
            check(seed.as_ref());
        }
        fuzz(rounds, |random| self.changed(random), check);
    }

    fn changed(&self, random: &mut Random) -> Vec<u8> {
        let mut input = self.seed(random).to_vec();
        for _ in 0..=random.below(6) {
            self.change(random, &mut input);
        }
        input.truncate(self.input_bytes_max);
        input
    }

    fn seed(&self, random: &mut Random) -> &'static [u8] {
        self.seeds.get(random.below(self.seeds.len())).map(AsRef::as_ref).unwrap_or_default()
    }

    /// One change: a bit, a word, a cut, a repetition, or a piece of a seed.
    fn change(&self, random: &mut Random, input: &mut Vec<u8>) {
        let from = random.below(input.len() + 1);
        let to = (from + random.below(self.cut_bytes_max)).min(input.len());
        match random.below(6) {
            0 => {
                if let Some(byte) = input.get_mut(from) {
                    *byte ^= 1 << random.below(8);
                }
            }
            1 => drop(input.splice(from..from, (self.word)(random).bytes())),
            2 => drop(input.splice(from..to, (self.word)(random).bytes())),
            3 => drop(input.drain(from..to)),
            4 => {
                let piece = input.get(from..to).unwrap_or_default().to_vec();
                drop(input.splice(to..to, piece));
            }
            _ => {
                let seed = self.seed(random);
                let start = random.below(seed.len());
                let end = (start + random.below(self.piece_bytes_max)).min(seed.len());
                let piece = seed.get(start..end).unwrap_or_default().to_vec();
                drop(input.splice(from..from, piece));
            }
        }
    }
}

/// Checks this many inputs; `WEIR_FUZZ_ROUNDS` sets another number, `WEIR_FUZZ_SEED` another start. A failure prints
/// its input.
pub fn fuzz(rounds: u64, make: impl Fn(&mut Random) -> Vec<u8>, check: impl Fn(&[u8])) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut random = Random(number("WEIR_FUZZ_SEED").unwrap_or(0x5eed));
    for round in 0..number("WEIR_FUZZ_ROUNDS").unwrap_or(rounds) {
        let input = make(&mut random);
        if catch_unwind(AssertUnwindSafe(|| check(&input))).is_err() {
            panic!("round {round}: {}", input.escape_ascii());
        }
    }
}

/// SplitMix64: the same numbers on every machine.
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of these.
    pub fn choose(&mut self, from: &[&'static str]) -> &'static str {
        let index = self.below(from.len());
        from.get(index).copied().unwrap_or_default()
    }
}
