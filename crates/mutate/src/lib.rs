//! Drives the checks of weir's parsers: valid inputs, changes to them, rounds.
//!
//! Only tests depend on this crate. A target is a test whose path has the module `mutate`; `cargo xtask fuzz` finds it by
//! that name. It has seeds, words, and a check that panics if a rule does not hold (`fuzz/README.md` lists all targets).
//!
//! | variable | meaning |
//! |---|---|
//! | `WEIR_FUZZ_ROUNDS` | rounds of each target |
//! | `WEIR_FUZZ_SECONDS` | seconds of each target, in place of rounds |
//! | `WEIR_FUZZ_SEED` | another seed: a round's input depends on the seed and on the round's number alone |
//! | `WEIR_FUZZ_ROUND` | this one round |
//! | `WEIR_FUZZ_TRACE` | each input is printed before it is checked: for a check that aborts the process |
#![forbid(unsafe_code)]
// The bans are for weir: its clock is that of `net`. A check speaks by panics.
#![allow(clippy::disallowed_methods, clippy::panic)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Rounds of a target unless a variable says otherwise; a second or so in a debug build.
pub const ROUNDS: u64 = 2_000;

/// The seed unless `WEIR_FUZZ_SEED` says otherwise.
const SEED: u64 = 0x5eed;

/// Longest piece that is cut or repeated.
const CUT_BYTES_MAX: usize = 24;

/// Longest piece taken from a seed.
const PIECE_BYTES_MAX: usize = 64;

/// Changes to an input, at most.
const CHANGES_MAX: usize = 6;

/// Bytes with a meaning in formats that hold lengths and numbers.
const BYTES: [u8; 12] = [0, 1, 2, 4, 0x0f, 0x20, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff];

/// Checks the seeds unchanged, then changed ones. `words` are texts with a meaning for the checked code.
///
/// # Panics
/// If the check panics; the message has the seed, the round and the input.
pub fn mutate<Seed: AsRef<[u8]>, Word: AsRef<[u8]>>(seeds: &[Seed], words: &[Word], check: impl Fn(&[u8])) {
    for (number, seed) in seeds.iter().enumerate() {
        checked(&format!("valid input {number}"), seed.as_ref(), &check);
    }
    generate(|random| changed(random, seeds, words), check);
}

/// Checks inputs that `make` makes.
///
/// # Panics
/// As [`mutate`].
pub fn generate(make: impl Fn(&mut Random) -> Vec<u8>, check: impl Fn(&[u8])) {
    let seed = number("WEIR_FUZZ_SEED").unwrap_or(SEED);
    let (first, plan) = match number("WEIR_FUZZ_ROUND") {
        Some(round) => (round, Plan::Rounds(round.saturating_add(1))),
        None => (0, Plan::of_environment()),
    };
    let is_traced = std::env::var_os("WEIR_FUZZ_TRACE").is_some();
    let began = Instant::now();
    let mut round = first;
    while plan.goes_on(round, began) {
        let input = make(&mut Random::of_round(seed, round));
        if is_traced {
            eprintln!("{round}: {}", input.escape_ascii());
        }
        checked(&format!("WEIR_FUZZ_SEED={seed} WEIR_FUZZ_ROUND={round}"), &input, &check);
        round += 1;
    }
    let thread = std::thread::current();
    println!("{}: {} rounds, seed {seed}", thread.name().unwrap_or("target"), round - first);
}

/// The end of a run.
enum Plan {
    Rounds(u64),
    Time(Duration),
}

impl Plan {
    fn of_environment() -> Plan {
        let seconds = std::env::var("WEIR_FUZZ_SECONDS").ok().and_then(|text| text.parse::<f64>().ok());
        match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            Some(time) => Plan::Time(time),
            None => Plan::Rounds(number("WEIR_FUZZ_ROUNDS").unwrap_or(ROUNDS)),
        }
    }

    fn goes_on(&self, round: u64, began: Instant) -> bool {
        match self {
            Plan::Rounds(rounds) => round < *rounds,
            Plan::Time(time) => began.elapsed() < *time,
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn checked(which: &str, input: &[u8], check: impl Fn(&[u8])) {
    if catch_unwind(AssertUnwindSafe(|| check(input))).is_err() {
        panic!("{which}: {} bytes: {}", input.len(), input.escape_ascii());
    }
}

/// One of the seeds with a few changes. It is at most twice as long as the longest seed, and a little longer.
fn changed<Seed: AsRef<[u8]>, Word: AsRef<[u8]>>(random: &mut Random, seeds: &[Seed], words: &[Word]) -> Vec<u8> {
    let longest = seeds.iter().map(|seed| seed.as_ref().len()).max().unwrap_or_default();
    let mut input = random.pick(seeds).map(|seed| seed.as_ref().to_vec()).unwrap_or_default();
    for _ in 0..=random.below(CHANGES_MAX) {
        change(random, seeds, words, &mut input);
    }
    input.truncate(2 * longest + 256);
    input
}

/// One change: a bit, a byte, a word, a cut, a repetition, or a piece of a seed.
fn change<Seed: AsRef<[u8]>, Word: AsRef<[u8]>>(
    random: &mut Random,
    seeds: &[Seed],
    words: &[Word],
    input: &mut Vec<u8>,
) {
    let from = random.below(input.len() + 1);
    let to = (from + random.below(CUT_BYTES_MAX)).min(input.len());
    let word = |random: &mut Random| random.pick(words).map(|word| word.as_ref().to_vec()).unwrap_or_default();
    match random.below(10) {
        0 => input.iter_mut().skip(from).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        1 => input.iter_mut().skip(from).take(1).for_each(|byte| *byte = BYTES[random.below(BYTES.len())]),
        2 => input
            .iter_mut()
            .skip(from)
            .take(1)
            .for_each(|byte| *byte = byte.wrapping_add(random.next() as u8 % 5).wrapping_sub(2)),
        3 | 4 => drop(input.splice(from..from, word(random))),
        5 => drop(input.splice(from..to, word(random))),
        6 => drop(input.drain(from..to)),
        7 => {
            let piece = input.get(from..to).unwrap_or_default().to_vec();
            drop(input.splice(to..to, piece));
        }
        8 => {
            let seed = random.pick(seeds).map(AsRef::as_ref).unwrap_or_default();
            let start = random.below(seed.len());
            let end = (start + random.below(PIECE_BYTES_MAX)).min(seed.len());
            drop(input.splice(from..from, seed.get(start..end).unwrap_or_default().to_vec()));
        }
        _ => {
            // The beginning of this input and the end of another.
            let seed = random.pick(seeds).map(AsRef::as_ref).unwrap_or_default();
            input.truncate(from);
            input.extend_from_slice(seed.get(random.below(seed.len() + 1)..).unwrap_or_default());
        }
    }
}

/// SplitMix64: the same numbers on every machine.
pub struct Random(u64);

impl Random {
    fn of_round(seed: u64, round: u64) -> Random {
        let mut mixed = Random(round);
        Random(seed ^ mixed.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of these; `None` of none.
    pub fn pick<'p, Item>(&mut self, from: &'p [Item]) -> Option<&'p Item> {
        from.get(self.below(from.len()))
    }
}

/// Places where a check may split an input: each place up to 96 bytes, and 16 places of a longer input.
pub fn splits(length: usize) -> impl Iterator<Item = usize> {
    let step = if length <= 96 { 1 } else { length / 16 };
    (0..length).step_by(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_round_depends_on_its_seed_and_its_number_alone() {
        let numbers = |seed, round| {
            let mut random = Random::of_round(seed, round);
            [random.next(), random.next()]
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert!(numbers(1, 2) != numbers(1, 3) && numbers(1, 2) != numbers(2, 2));
    }

    #[test]
    fn seeds_come_first_and_changes_stay_in_bounds() {
        let seen = RefCell::new(Vec::new());
        mutate(&["abc", "12345"], &["word"], |input| seen.borrow_mut().push(input.to_vec()));
        let seen = seen.into_inner();
        assert!(seen.starts_with(&[b"abc".to_vec(), b"12345".to_vec()]));
        assert!(seen.iter().all(|input| input.len() <= 2 * 5 + 256));
        assert!(seen.iter().any(|input| input.windows(4).any(|part| part == b"word")));
        let mut different = seen.clone();
        different.sort();
        different.dedup();
        assert!(different.len() > seen.len() / 2, "{} of {}", different.len(), seen.len());
    }

    #[test]
    fn a_failure_names_round_seed_and_input() {
        let failed = catch_unwind(|| mutate(&[&b"a\0"[..]], &[""], |input| assert!(input.len() < 3)));
        let why = failed.expect_err("the check fails");
        let why = why.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
        assert!(
            why.contains("WEIR_FUZZ_SEED=") && why.contains("WEIR_FUZZ_ROUND=") && why.contains(" bytes: "),
            "{why}"
        );
    }

    #[test]
    fn splits_are_bounded() {
        assert_eq!(splits(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(splits(0).count(), 0);
        assert!((17..=18).contains(&splits(1_000).count()), "{}", splits(1_000).count());
    }
}
