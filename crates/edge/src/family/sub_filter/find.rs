//! Finds the first of several texts, whatever the case of ASCII letters.
//!
//! All texts are sought at once by their first bytes, 16 or 32 places at a time (`aho_corasick::packed`, the algorithm
//! "Teddy"), and compared in full where these bytes stand. Too many different beginnings need an automaton, and so does a
//! body in which many places nearly are one of several texts. A text that is alone is compared by Knuth, Morris and Pratt's
//! algorithm. So the time does not grow with the length of the texts.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, Input, MatchKind, Span, packed};

/// The texts that a search may find, in the order in which they apply.
pub struct Patterns {
    all: Vec<Pattern>,
    search: Search,
    /// Made when the search by beginnings compares too much.
    automaton: OnceLock<Option<AhoCorasick>>,
}

/// A text, and its place in the file.
struct Pattern {
    /// In lower case.
    text: Box<[u8]>,
    number: usize,
    /// For each length of a beginning: the length of its longest end that is a shorter beginning.
    borders: Box<[u32]>,
}

impl Pattern {
    fn new(number: usize, text: &[u8]) -> Pattern {
        let text = text.to_ascii_lowercase().into_boxed_slice();
        let mut borders = vec![0; text.len()];
        let mut have = 0;
        for at in 1..text.len() {
            have = step(&text, &borders, have, text.get(at).copied());
            if let Some(border) = borders.get_mut(at) {
                *border = have as u32;
            }
        }
        Pattern { text, number, borders: borders.into_boxed_slice() }
    }

    /// How much of the text begins here.
    fn common(&self, here: &[u8]) -> usize {
        self.text.iter().zip(here).take_while(|(own, byte)| **own == byte.to_ascii_lowercase()).count()
    }

    /// The length of the longest end of `text` that is a beginning of this one, but not all of it.
    fn begun(&self, text: &[u8]) -> usize {
        let start = (text.len() + 1).saturating_sub(self.text.len());
        text.get(start..)
            .unwrap_or_default()
            .iter()
            .fold(0, |have, byte| step(&self.text, &self.borders, have, Some(byte.to_ascii_lowercase())))
    }
}

/// How much of a text is there after one more byte, if `have` bytes of it were there.
fn step(text: &[u8], borders: &[u32], mut have: usize, byte: Option<u8>) -> usize {
    loop {
        if text.get(have).copied() == byte {
            return have + 1;
        }
        match have.checked_sub(1) {
            None => return 0,
            Some(last) => have = borders.get(last).map_or(0, |border| *border as usize),
        }
    }
}

enum Search {
    /// Seeks beginnings; each has the patterns that begin with it.
    Beginnings(packed::Searcher, Vec<Vec<usize>>),
    /// Seeks whole patterns.
    Automaton(AhoCorasick),
}

/// A text that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundText {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Which pattern it is.
    pub pattern: usize,
}

/// The bytes of a beginning: with three, few places of a usual text look like a pattern.
const BEGINNING_MAX: usize = 3;

/// Bytes that the search by beginnings compares in vain for each byte of a body, before the automaton takes over.
const VAIN_MAX: usize = 8;

/// The most beginnings, in all cases of their letters, that the search by beginnings takes.
const BEGINNINGS_MAX: usize = 64;

impl Patterns {
    /// A search for these texts; empty texts are left out. `None` if no text is left, or if the automaton would have
    /// more states than it can number.
    pub fn new<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Option<Patterns> {
        let pattern = |(number, text): (usize, &[u8])| Pattern::new(number, text);
        let all: Vec<Pattern> = texts.enumerate().filter(|(_, text)| !text.is_empty()).map(pattern).collect();
        if all.is_empty() {
            return None;
        }
        let search = by_beginnings(&all).or_else(|| by_automaton(&all).map(Search::Automaton))?;
        Some(Patterns { all, search, automaton: OnceLock::new() })
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
    pub fn find(&self, text: &[u8], from: usize, may: impl Fn(usize) -> bool) -> Option<FoundText> {
        match (&self.search, self.all.as_slice()) {
            (Search::Beginnings(searcher, _), [only]) => {
                if may(0) {
                    find_only(searcher, only, text, from)
                } else {
                    None
                }
            }
            (Search::Beginnings(searcher, starting), _) => self.find_by_beginnings(searcher, starting, text, from, may),
            (Search::Automaton(automaton), _) => self.find_by_automaton(automaton, text, from, may),
        }
    }

    fn find_by_beginnings(
        &self,
        searcher: &packed::Searcher,
        starting: &[Vec<usize>],
        text: &[u8],
        from: usize,
        may: impl Fn(usize) -> bool,
    ) -> Option<FoundText> {
        let (mut at, mut vain) = (from, 0);
        loop {
            let place = searcher.find_in(text, Span::from(at..text.len()))?;
            let start = place.start();
            for pattern in starting.get(place.pattern().as_usize())?.iter().filter(|pattern| may(**pattern)) {
                let wanted = self.all.get(*pattern)?;
                let common = wanted.common(text.get(start..)?);
                if common == wanted.text.len() {
                    return Some(FoundText { start, end: start + common, pattern: *pattern });
                }
                vain += common;
            }
            at = start + 1;
            if vain > VAIN_MAX * text.len()
                && let Some(automaton) = self.automaton.get_or_init(|| by_automaton(&self.all))
            {
                return self.find_by_automaton(automaton, text, at, may);
            }
        }
    }

    fn find_by_automaton(
        &self,
        automaton: &AhoCorasick,
        text: &[u8],
        mut from: usize,
        may: impl Fn(usize) -> bool,
    ) -> Option<FoundText> {
        loop {
            let place = automaton.find(Input::new(text).span(from..text.len()))?;
            let (start, first) = (place.start(), place.pattern().as_usize());
            let rest = text.get(start..)?;
            let found = (first..self.all.len()).filter(|pattern| may(*pattern)).find_map(|pattern| {
                let wanted = self.all.get(pattern)?;
                let end = start + wanted.text.len();
                (wanted.common(rest) == wanted.text.len()).then_some(FoundText { start, end, pattern })
            });
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
        found: Option<FoundText>,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let rest = text.get(from..).unwrap_or_default();
        let begun = |(number, pattern): (usize, &Pattern)| {
            let length = if may(number) { pattern.begun(rest) } else { 0 };
            let start = text.len() - length;
            let counts = found.is_none_or(|found| (start, number) < (found.start, found.pattern));
            (length > 0 && counts).then_some(start)
        };
        self.all.iter().enumerate().filter_map(begun).min()
    }
}

/// As `find`, for a text that is alone: no byte is compared more than twice.
fn find_only(searcher: &packed::Searcher, only: &Pattern, text: &[u8], from: usize) -> Option<FoundText> {
    let next = |from: usize| Some(searcher.find_in(text, Span::from(from..text.len()))?.start());
    let (mut start, mut have) = (next(from)?, 0);
    loop {
        let same = |(own, byte): &(&u8, &u8)| **own == byte.to_ascii_lowercase();
        let (wanted, here) = (only.text.get(have..)?, text.get(start + have..)?);
        have += wanted.iter().zip(here).take_while(same).count();
        if have == only.text.len() {
            return Some(FoundText { start, end: start + have, pattern: 0 });
        }
        if start + have == text.len() {
            return None;
        }
        let border = have.checked_sub(1).map_or(0, |last| only.borders.get(last).map_or(0, |border| *border as usize));
        start += (have - border).max(1);
        have = border;
        if have == 0 {
            start = next(start)?;
        }
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

fn by_automaton(all: &[Pattern]) -> Option<AhoCorasick> {
    let mut builder = AhoCorasickBuilder::new();
    builder.match_kind(MatchKind::LeftmostFirst).ascii_case_insensitive(true);
    builder.build(all.iter().map(|pattern| &pattern.text)).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// All ways to search for these texts.
    fn searches(texts: &[&str]) -> Vec<Patterns> {
        let patterns = || Patterns::new(texts.iter().map(|text| text.as_bytes())).unwrap();
        let (usual, mut automaton) = (patterns(), patterns());
        automaton.search = Search::Automaton(by_automaton(&automaton.all).unwrap());
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
    fn a_body_that_is_nearly_the_text_everywhere_is_found_all_the_same() {
        let (length, body) = (2_000, 20_000);
        let wanted = "a".repeat(length) + "b";
        for other in [None, Some("zzz"), Some("aaab")] {
            let texts: Vec<&str> = [wanted.as_str()].into_iter().chain(other).collect();
            let mut text = "A".repeat(body) + "c" + &"a".repeat(length + 5) + "b";
            for patterns in searches(&texts) {
                let found = patterns.find(text.as_bytes(), 0, |_| true).unwrap();
                assert_eq!((found.start, found.end), (body + 6, text.len()), "{other:?}");
            }
            text.pop();
            for patterns in searches(&texts) {
                assert_eq!(patterns.find(text.as_bytes(), 0, |_| true), None);
                let held = patterns.undecided(text.as_bytes(), 0, None, |_| true);
                assert_eq!(held, Some(text.len() - length), "no more than the text may begin");
            }
        }
        let patterns = Patterns::new([b"ababac".as_slice()].into_iter()).unwrap();
        assert_eq!(patterns.find(b"abababac", 0, |_| true).map(|found| found.start), Some(2));
        assert_eq!(patterns.undecided(b"xababa", 0, None, |_| true), Some(1));
        assert_eq!(patterns.undecided(b"xababa", 2, None, |_| true), Some(3), "the bytes before are done");
    }

    #[test]
    fn many_beginnings_need_an_automaton() {
        let texts: Vec<String> = (0..200).map(|n| format!("{n:03}x")).collect();
        let patterns = Patterns::new(texts.iter().map(String::as_bytes)).unwrap();
        assert!(matches!(patterns.search, Search::Automaton(_)));
        assert_eq!(patterns.find(b"..137X", 0, |_| true).map(|found| found.pattern), Some(137));
    }
}
