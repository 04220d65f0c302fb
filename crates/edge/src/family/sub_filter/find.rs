//! Finds the first of several texts, whatever the case of ASCII letters.
//!
//! All texts are sought at once by their first bytes, 16 or 32 places at a time (`aho_corasick::packed`, the algorithm
//! "Teddy"), and compared in full where these bytes stand. Too many different beginnings need an automaton.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, Input, MatchKind, Span, packed};

/// The texts that a search may find, in the order in which they apply.
pub struct Patterns {
    all: Vec<Pattern>,
    search: Search,
    longest: usize,
}

/// A text, and its place in the file.
struct Pattern {
    text: Box<[u8]>,
    number: usize,
}

enum Search {
    /// Seeks beginnings; each has the patterns that begin with it.
    Beginnings(packed::Searcher, Vec<Vec<usize>>),
    /// Seeks whole patterns.
    Automaton(AhoCorasick),
}

/// A text that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Which pattern it is.
    pub pattern: usize,
}

/// The bytes of a beginning: with three, few places of a usual text look like a pattern.
const BEGINNING_MAX: usize = 3;

/// The most beginnings, in all cases of their letters, that the search by beginnings takes.
const BEGINNINGS_MAX: usize = 64;

impl Patterns {
    /// A search for these texts; empty texts are left out. `None` if no text is left, or if the automaton would have
    /// more states than it can number.
    pub fn new<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Option<Patterns> {
        let pattern = |(number, text): (usize, &[u8])| Pattern { text: text.into(), number };
        let all: Vec<Pattern> = texts.enumerate().filter(|(_, text)| !text.is_empty()).map(pattern).collect();
        let longest = all.iter().map(|pattern| pattern.text.len()).max()?;
        let search = by_beginnings(&all).or_else(|| by_automaton(&all))?;
        Some(Patterns { all, search, longest })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The place of a pattern in the file.
    pub fn number(&self, pattern: usize) -> usize {
        self.all.get(pattern).map_or(0, |pattern| pattern.number)
    }

    /// The first occurrence at or after `from` of a pattern for which `may` is true. Of several patterns at one place,
    /// the first in the file counts.
    pub fn find(&self, text: &[u8], mut from: usize, may: impl Fn(usize) -> bool) -> Option<Found> {
        let here = |start: usize, pattern: usize| {
            let wanted = &self.all.get(pattern)?.text;
            let end = start + wanted.len();
            let is_here = may(pattern) && text.get(start..end)?.eq_ignore_ascii_case(wanted);
            is_here.then_some(Found { start, end, pattern })
        };
        loop {
            let (start, found) = match &self.search {
                Search::Beginnings(searcher, starting) => {
                    let place = searcher.find_in(text, Span::from(from..text.len()))?;
                    let candidates = starting.get(place.pattern().as_usize())?;
                    (place.start(), candidates.iter().find_map(|pattern| here(place.start(), *pattern)))
                }
                Search::Automaton(automaton) => {
                    let place = automaton.find(Input::new(text).span(from..text.len()))?;
                    let first = place.pattern().as_usize();
                    let found = (first..self.all.len()).find_map(|pattern| here(place.start(), pattern));
                    (place.start(), found)
                }
            };
            if found.is_some() {
                return found;
            }
            from = start + 1;
        }
    }

    /// The first place at or after `from` where a pattern may begin whose end is still to come, and that would count
    /// before `found`.
    pub fn undecided(
        &self,
        text: &[u8],
        from: usize,
        found: Option<Found>,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let last = found.map_or(text.len(), |found| found.start + 1);
        (from.max((text.len() + 1).saturating_sub(self.longest))..last).find(|start| {
            let rest = text.get(*start..).unwrap_or_default();
            let rivals = match found {
                Some(found) if found.start == *start => found.pattern,
                Some(_) | None => self.all.len(),
            };
            self.all.iter().take(rivals).enumerate().any(|(number, pattern)| {
                let begins = pattern.text.get(..rest.len()).is_some_and(|start| start.eq_ignore_ascii_case(rest));
                begins && pattern.text.len() > rest.len() && may(number)
            })
        })
    }
}

fn by_beginnings(all: &[Pattern]) -> Option<Search> {
    let length = all.iter().map(|pattern| pattern.text.len()).min()?.min(BEGINNING_MAX);
    let mut beginnings: Vec<Vec<u8>> = Vec::new();
    let mut starting: Vec<Vec<usize>> = Vec::new();
    for (number, pattern) in all.iter().enumerate() {
        for beginning in in_all_cases(pattern.text.get(..length)?) {
            if let Some(at) = beginnings.iter().position(|known| *known == beginning) {
                starting.get_mut(at)?.push(number);
            } else if beginnings.len() == BEGINNINGS_MAX {
                return None;
            } else {
                beginnings.push(beginning);
                starting.push(vec![number]);
            }
        }
    }
    let mut builder = packed::Config::new().match_kind(packed::MatchKind::LeftmostFirst).builder();
    Some(Search::Beginnings(builder.extend(&beginnings).build()?, starting))
}

/// The text with each of its ASCII letters in both cases.
fn in_all_cases(text: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for byte in text {
        let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
        let mut other = if lower == upper { Vec::new() } else { all.clone() };
        all.iter_mut().for_each(|text| text.push(lower));
        other.iter_mut().for_each(|text| text.push(upper));
        all.append(&mut other);
    }
    all
}

fn by_automaton(all: &[Pattern]) -> Option<Search> {
    let mut builder = AhoCorasickBuilder::new();
    builder.match_kind(MatchKind::LeftmostFirst).ascii_case_insensitive(true);
    builder.build(all.iter().map(|pattern| &pattern.text)).ok().map(Search::Automaton)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// All ways to search for these texts.
    fn searches(texts: &[&str]) -> Vec<Patterns> {
        let patterns = || Patterns::new(texts.iter().map(|text| text.as_bytes())).unwrap();
        let (usual, mut automaton) = (patterns(), patterns());
        automaton.search = by_automaton(&automaton.all).unwrap();
        vec![usual, automaton]
    }

    #[test]
    fn the_first_place_counts_and_there_the_first_text_of_the_file() {
        for (texts, text, expected) in [
            (&["b"][..], "aBb", Some((1, 2, 0))),
            (&["abcd", "abc"], "xABCd", Some((1, 5, 0))),
            (&["abc", "abcd"], "xabcd", Some((1, 4, 0))),
            (&["c", "abc"], "abc", Some((0, 3, 1))),
            (&["aab"], "aaab", Some((1, 4, 0))),
            (&["é"], "É é", Some((3, 5, 0))),
            (&["x"], "", None),
            (&["", "x"], "ax", Some((1, 2, 0))),
        ] {
            for patterns in searches(texts) {
                let found = patterns.find(text.as_bytes(), 0, |_| true);
                assert_eq!(found.map(|f| (f.start, f.end, f.pattern)), expected, "{texts:?} in {text:?}");
            }
        }
        assert!(Patterns::new([b"".as_slice()].into_iter()).is_none());
    }

    #[test]
    fn texts_that_may_not_be_found_hide_no_others() {
        for patterns in searches(&["ab", "abc", "b"]) {
            assert_eq!(patterns.find(b"abc", 0, |pattern| pattern > 0).map(|found| found.pattern), Some(1));
            assert_eq!(patterns.find(b"abc", 0, |pattern| pattern > 1).map(|found| found.start), Some(1));
            assert_eq!(patterns.find(b"abc", 0, |_| false), None);
        }
    }

    #[test]
    fn a_text_whose_end_is_missing_holds_the_later_ones_back() {
        let patterns = Patterns::new([b"abcd".as_slice(), b"bc"].into_iter()).unwrap();
        let found = patterns.find(b"xabc", 0, |_| true);
        assert_eq!(found.map(|found| found.start), Some(2));
        assert_eq!(patterns.undecided(b"xabc", 0, found, |_| true), Some(1));
        assert_eq!(patterns.undecided(b"xabc", 0, found, |pattern| pattern == 1), None);
        assert_eq!(patterns.undecided(b"xabx", 0, None, |_| true), None);
        let same_place = Patterns::new([b"ab".as_slice(), b"abc"].into_iter()).unwrap();
        let found = same_place.find(b"ab", 0, |_| true);
        assert_eq!(same_place.undecided(b"ab", 0, found, |_| true), None, "the first in the file is found already");
    }

    #[test]
    fn many_beginnings_need_an_automaton() {
        let texts: Vec<String> = (0..200).map(|n| format!("{n:03}x")).collect();
        let patterns = Patterns::new(texts.iter().map(String::as_bytes)).unwrap();
        assert!(matches!(patterns.search, Search::Automaton(_)));
        assert_eq!(patterns.find(b"..137X", 0, |_| true).map(|found| found.pattern), Some(137));
    }
}
