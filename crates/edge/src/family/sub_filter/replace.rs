//! The filter that replaces the texts in a body.

use std::sync::Arc;

use weir_http::exchange::response_body::{BodyFilter, FilterState};

use super::find::{FoundText, Patterns};

/// After this much output for one piece, the rest of the piece waits until the output has left: a long replacement of
/// a short text would fill the memory.
const OUT_BYTES_MAX: usize = 256 << 10;

/// Replaces texts in one body.
pub struct Replace {
    patterns: Arc<Patterns>,
    /// By the place of their pattern in the file.
    replacements: Vec<Vec<u8>>,
    /// With `sub_filter_once`: which patterns were found already, and how many were not.
    spent: Option<(Vec<bool>, usize)>,
    /// The bytes that may be the start of a text, or the rest of a piece.
    held: Vec<u8>,
    is_full: bool,
}

impl Replace {
    /// A filter for one body.
    pub fn new(patterns: Arc<Patterns>, replacements: Vec<Vec<u8>>, once: bool) -> Replace {
        let spent = once.then(|| (vec![false; patterns.count()], patterns.count()));
        Replace { patterns, replacements, spent, held: Vec::new(), is_full: false }
    }

    /// Replaces in `text`; returns how much of it is done.
    fn run(&mut self, text: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let mut at = 0;
        while out.len() - start < OUT_BYTES_MAX {
            let found = match &self.spent {
                Some((_, 0)) => None,
                Some((spent, _)) => {
                    let may = |pattern: usize| spent.get(pattern) == Some(&false);
                    find(&self.patterns, text, at, last, may)
                }
                None => find(&self.patterns, text, at, last, |_| true),
            };
            let found = match found {
                None => Step::End(text.len()),
                Some(step) => step,
            };
            match found {
                Step::End(end) => {
                    out.extend_from_slice(text.get(at..end).unwrap_or_default());
                    return end;
                }
                Step::Found(found) => {
                    out.extend_from_slice(text.get(at..found.start).unwrap_or_default());
                    let number = self.patterns.number(found.pattern);
                    out.extend_from_slice(self.replacements.get(number).map_or(&[], Vec::as_slice));
                    at = found.end;
                    if let Some((spent, left)) = &mut self.spent
                        && let Some(spent) = spent.get_mut(found.pattern)
                    {
                        *spent = true;
                        *left -= 1;
                    }
                }
            }
        }
        self.is_full = at < text.len();
        at
    }
}

/// The next step in a text.
enum Step {
    /// Replace this.
    Found(FoundText),
    /// Nothing to replace up to here, and the rest is not decided.
    End(usize),
}

/// The next step; `None` if nothing is to replace in the rest.
fn find(patterns: &Patterns, text: &[u8], from: usize, last: bool, may: impl Fn(usize) -> bool) -> Option<Step> {
    let found = patterns.find(text, from, &may);
    if !last && let Some(end) = patterns.undecided(text, from, found, &may) {
        return Some(Step::End(end));
    }
    found.map(Step::Found)
}

impl BodyFilter for Replace {
    fn write(&mut self, input: &[u8], _flush: bool, last: bool, out: &mut Vec<u8>) {
        self.is_full = false;
        if self.held.is_empty() {
            let done = self.run(input, last, out);
            self.held.extend_from_slice(input.get(done..).unwrap_or_default());
        } else {
            let mut text = std::mem::take(&mut self.held);
            text.extend_from_slice(input);
            let done = self.run(&text, last, out);
            text.drain(..done);
            self.held = text;
        }
    }

    fn state(&self) -> FilterState<'_> {
        if self.is_full { FilterState::Full } else { FilterState::Done }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn filter(pairs: &[(&str, &str)], once: bool) -> Replace {
        let patterns = Patterns::new(pairs.iter().map(|(find, _)| find.as_bytes())).unwrap();
        Replace::new(Arc::new(patterns), pairs.iter().map(|(_, replace)| replace.as_bytes().to_vec()).collect(), once)
    }

    /// All output for pieces of a body.
    fn through<'p>(mut filter: Replace, pieces: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
        let mut all = Vec::new();
        let mut write = |input: &[u8], last| {
            let mut input = input;
            loop {
                filter.write(input, false, last, &mut all);
                input = b"";
                if filter.state() == FilterState::Done {
                    break;
                }
            }
        };
        pieces.for_each(|piece| write(piece, false));
        write(b"", true);
        all
    }

    /// The definition: the first place counts, there the first text of the file, each text once if so wanted.
    fn plain(pairs: &[(&str, &str)], once: bool, text: &[u8]) -> Vec<u8> {
        let (mut out, mut at, mut spent) = (Vec::new(), 0, vec![false; pairs.len()]);
        while at < text.len() {
            let here = |(number, (find, _)): &(usize, &(&str, &str))| {
                let part = text.get(at..at + find.len());
                !(once && spent[*number]) && part.is_some_and(|part| part.eq_ignore_ascii_case(find.as_bytes()))
            };
            match pairs.iter().enumerate().find(here) {
                Some((number, (find, replace))) => {
                    spent[number] = true;
                    out.extend_from_slice(replace.as_bytes());
                    at += find.len();
                }
                None => {
                    out.push(text[at]);
                    at += 1;
                }
            }
        }
        out
    }

    const PAIRS: &[&[(&str, &str)]] = &[
        &[("foo", "bar")],
        &[("aab", "+"), ("yyz", "-")],
        &[("aabb", "+"), ("aaabb", "-")],
        &[("abc", "1"), ("ab", "2"), ("b", "")],
        &[("ab", "1"), ("abc", "2"), ("bc", "3")],
        &[("abab", "x"), ("ba", "abab")],
        &[("a", "aa"), ("aaaaaaab", "-")],
    ];

    #[test]
    fn a_body_cut_anywhere_becomes_the_same() {
        for pairs in PAIRS {
            for text in ["foofofoFOOfo", "aabAyyzBaab", "aabbaaabbaabb", "ababcabcbab", "aaaaaaaaabaaab"] {
                for once in [false, true] {
                    let expected = plain(pairs, once, text.as_bytes());
                    for first in 0..=text.len() {
                        for second in first..=text.len() {
                            let (a, rest) = text.as_bytes().split_at(first);
                            let (b, c) = rest.split_at(second - first);
                            let out = through(filter(pairs, once), [a, b, c].into_iter());
                            assert_eq!(out, expected, "{pairs:?} once {once} in {text:?} at {first}, {second}");
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_body_in_any_pieces_becomes_the_same(
            pairs in 0..PAIRS.len(),
            once: bool,
            text in "[abcAByzfo]{0,200}",
            piece in 1..40usize,
        ) {
            let pairs = PAIRS[pairs];
            let out = through(filter(pairs, once), text.as_bytes().chunks(piece));
            prop_assert_eq!(out, plain(pairs, once, text.as_bytes()));
        }
    }

    #[test]
    fn only_a_possible_beginning_is_held_back() {
        let mut filter = filter(&[("za", "ZA")], true);
        let mut out = Vec::new();
        filter.write(b"xyz", true, false, &mut out);
        assert_eq!(out, b"xy");
        filter.write(b"b", true, false, &mut out);
        assert_eq!(out, b"xyzb");
    }

    #[test]
    fn long_replacements_come_in_portions() {
        let long = "x".repeat(1000);
        let mut filter = filter(&[("a", &long)], false);
        let input = vec![b'a'; 10_000];
        let mut out = Vec::new();
        filter.write(&input, false, true, &mut out);
        assert!(out.len() < 2 * OUT_BYTES_MAX && filter.state() == FilterState::Full);
        let mut total = out.len();
        while filter.state() == FilterState::Full {
            out.clear();
            filter.write(b"", false, true, &mut out);
            assert!(out.len() < 2 * OUT_BYTES_MAX);
            total += out.len();
        }
        assert_eq!(total, 10_000_000);
    }
}
