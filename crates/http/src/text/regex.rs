//! PCRE2, so that patterns have the same meaning as in nginx, and the captures of the last match.
//!
//! The only module that names the `pcre2` crate.

use std::cell::RefCell;
use std::fmt;
use std::sync::OnceLock;

use pcre2::bytes::{CaptureLocations, RegexBuilder};

use crate::text::slots::{Captures, SlotStore, VariableId};

/// The stack of compiled code: 32 KiB at first, and at most this for each match that runs at the same time.
const JIT_STACK_BYTES_MAX: usize = 256 << 10;
/// The match block of a pattern with more groups is not kept for the next match.
const KEPT_GROUPS_MAX: usize = 32;
/// Bytes of the subject in the message about a failed match, at most.
const SHOWN_BYTES_MAX: usize = 1024;
/// `PCRE2_ERROR_JIT_STACKLIMIT`.
const OUT_OF_STACK: i32 = -46;

thread_local! {
    /// The thread's match blocks, by the number of groups: any pattern with as many groups can use the block. Compiled
    /// code has blocks of its own, with a stack.
    static BLOCKS: RefCell<[[Option<CaptureLocations>; KEPT_GROUPS_MAX + 1]; 2]> =
        const { RefCell::new([const { [const { None }; KEPT_GROUPS_MAX + 1] }; 2]) };
}

/// A compiled pattern and the variables its named groups fill.
pub struct Regex {
    inner: pcre2::bytes::Regex,
    /// `inner` may be compiled code.
    is_jit: bool,
    /// The same pattern without compiled code, for subjects that need more stack than compiled code may have.
    interpreted: OnceLock<Result<pcre2::bytes::Regex, i32>>,
    pattern: String,
    caseless: bool,
    named: Vec<(usize, VariableId)>,
}

/// A match that ended with an error of PCRE2. It does not mean "no match".
#[derive(Debug)]
pub struct MatchFailed {
    code: i32,
    subject: String,
    pattern: String,
}

/// nginx's words (`ngx_http_regex_exec`).
impl fmt::Display for MatchFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MatchFailed { code, subject, pattern } = self;
        write!(f, "pcre2_match() failed: {code} on \"{subject}\" using \"{pattern}\"")
    }
}

impl Regex {
    /// Compiles `pattern`, to machine code if `jit`. `intern` gives each named group its variable. Errors have nginx's
    /// wording.
    pub fn new(
        pattern: &str,
        caseless: bool,
        jit: bool,
        mut intern: impl FnMut(&str) -> VariableId,
    ) -> Result<Regex, String> {
        let inner = compile(pattern, caseless, jit).map_err(|error| match error.offset() {
            Some(offset) if offset < pattern.len() => {
                let rest = pattern.get(offset..).unwrap_or_default();
                format!("pcre2_compile() failed: {} in \"{pattern}\" at \"{rest}\"", error.kind_message())
            }
            Some(_) | None => format!("pcre2_compile() failed: {} in \"{pattern}\"", error.kind_message()),
        })?;
        let named = inner
            .capture_names()
            .iter()
            .enumerate()
            .filter_map(|(group, name)| name.as_deref().map(|name| (group, intern(name))))
            .collect();
        Ok(Regex { inner, is_jit: jit, interpreted: OnceLock::new(), pattern: pattern.to_owned(), caseless, named })
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether `subject` matches; does not change captures.
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, MatchFailed> {
        self.read(subject, |_| ())
    }

    /// Matches `subject`; on success `captures` holds the groups.
    pub fn capture(&self, subject: &[u8], captures: &mut Captures) -> Result<bool, MatchFailed> {
        self.read(subject, |block| captures.fill(subject, (0..block.len()).map(|group| block.get(group))))
    }

    /// Matches in a block of this thread; `use_block` sees it if the pattern matches.
    fn read(&self, subject: &[u8], mut use_block: impl FnMut(&CaptureLocations)) -> Result<bool, MatchFailed> {
        let mut read = |regex: &pcre2::bytes::Regex, block: &mut CaptureLocations| {
            let found = regex.captures_read(block, subject).map_err(|error| error.code())?.is_some();
            if found {
                use_block(block);
            }
            Ok(found)
        };
        let mut block = self.take_block().unwrap_or_else(|| self.inner.capture_locations());
        let outcome = match read(&self.inner, &mut block) {
            Err(OUT_OF_STACK) => self.interpreted().and_then(|regex| read(regex, &mut regex.capture_locations())),
            outcome => outcome,
        };
        self.keep_block(block);
        outcome.map_err(|code| self.failed(code, subject))
    }

    fn take_block(&self) -> Option<CaptureLocations> {
        BLOCKS.with_borrow_mut(|blocks| blocks[usize::from(self.is_jit)].get_mut(self.groups())?.take())
    }

    fn keep_block(&self, block: CaptureLocations) {
        BLOCKS.with_borrow_mut(|blocks| {
            if let Some(place) = blocks[usize::from(self.is_jit)].get_mut(self.groups()) {
                *place = Some(block);
            }
        });
    }

    fn interpreted(&self) -> Result<&pcre2::bytes::Regex, i32> {
        let made =
            self.interpreted.get_or_init(|| compile(&self.pattern, self.caseless, false).map_err(|error| error.code()));
        made.as_ref().map_err(|code| *code)
    }

    #[cold]
    fn failed(&self, code: i32, subject: &[u8]) -> MatchFailed {
        let shown = subject.get(..SHOWN_BYTES_MAX).unwrap_or(subject);
        MatchFailed { code, subject: String::from_utf8_lossy(shown).into_owned(), pattern: self.pattern.clone() }
    }

    /// The named groups and their variables.
    pub fn named(&self) -> &[(usize, VariableId)] {
        &self.named
    }

    /// How many groups the pattern has, the whole match not counted.
    pub fn groups(&self) -> usize {
        self.inner.captures_len().saturating_sub(1)
    }
}

impl SlotStore {
    /// Matches and keeps the captures, the named ones as variables.
    pub fn capture(&mut self, regex: &Regex, subject: &[u8]) -> Result<bool, MatchFailed> {
        if !regex.capture(subject, &mut self.captures)? {
            return Ok(false);
        }
        for (group, id) in regex.named() {
            let value = self.captures.get(*group).unwrap_or_default().to_vec();
            self.set(*id, &value);
        }
        Ok(true)
    }
}

impl SlotStore {
    /// As [`SlotStore::capture`], for a match inside another text: returns the captures before it, for
    /// [`SlotStore::restore`] once the part of the match is written. `None` if nothing matches.
    pub fn capture_within(&mut self, regex: &Regex, subject: &[u8]) -> Result<Option<Captures>, MatchFailed> {
        if self.captures.is_empty() {
            return Ok(self.capture(regex, subject)?.then(Captures::default));
        }
        let before = std::mem::take(&mut self.captures);
        match self.capture(regex, subject) {
            Ok(true) => Ok(Some(before)),
            failed => {
                self.captures = before;
                failed.map(|_| None)
            }
        }
    }
}

/// The message of a `pcre2` error without its position.
trait KindMessage {
    fn kind_message(&self) -> String;
}

impl KindMessage for pcre2::Error {
    fn kind_message(&self) -> String {
        let text = self.to_string();
        match text.rfind(": ") {
            Some(at) => text[at + 2..].to_owned(),
            None => text,
        }
    }
}

fn compile(pattern: &str, caseless: bool, jit: bool) -> Result<pcre2::bytes::Regex, pcre2::Error> {
    RegexBuilder::new()
        .caseless(caseless)
        .jit_if_available(jit)
        .max_jit_stack_size(Some(JIT_STACK_BYTES_MAX))
        .build(pattern)
}

/// A regular expression that more than one place may share.
pub type SharedRegex = std::sync::Arc<Regex>;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    fn regex(pattern: &str, jit: bool) -> Regex {
        Regex::new(pattern, false, jit, |_| VariableId(0)).expect("a pattern")
    }

    /// Patterns that need more stack the longer the subject is, each with a subject that it matches.
    fn deep() -> [(&'static str, Vec<u8>); 4] {
        let long = |first: &str, middle: &str, last: &str| [first, &middle.repeat(40_000), last].concat().into_bytes();
        [
            ("^(/[^/]+)*/wp-config\\.php$", long("", "/x", "/wp-config.php")),
            ("^/((?!public).)*\\.json$", long("/", "a", ".json")),
            ("^(?:/[a-z0-9_-]+)+/internal(?:/|$)", long("", "/ab", "/internal")),
            ("^/w/(?:[a-z]|-)*/secret$", long("/w/", "a-", "/secret")),
        ]
    }

    #[test]
    fn a_long_subject_matches_however_much_stack_that_takes() {
        for (pattern, subject) in deep() {
            for jit in [true, false] {
                let regex = regex(pattern, jit);
                let mut captures = Captures::default();
                assert!(regex.capture(&subject, &mut captures).unwrap(), "{pattern}, jit {jit}");
                assert_eq!(captures.get(0), Some(&*subject));
                assert!(regex.is_match(&subject).unwrap());
            }
        }
    }

    #[test]
    fn compiled_code_alone_would_run_out_of_stack() {
        let (pattern, subject) = &deep()[0];
        let code = compile(pattern, false, true).unwrap().is_match(subject).unwrap_err().code();
        assert_eq!(code, OUT_OF_STACK);
    }

    #[test]
    fn a_match_that_gives_up_is_no_answer() {
        let subject = [&b"/f/"[..], &[b'a'; 400], b"\nb"].concat();
        for jit in [true, false] {
            let regex = regex("^/f/(a+)+[bc]$", jit);
            let failed = regex.capture(&subject, &mut Captures::default()).unwrap_err().to_string();
            assert!(failed.starts_with("pcre2_match() failed: -47 on \"/f/aaa"), "{failed}");
            assert!(failed.ends_with("\" using \"^/f/(a+)+[bc]$\""), "{failed}");
            assert!(regex.is_match(&subject).is_err());
        }
    }

    #[test]
    fn patterns_share_blocks_with_others_of_as_many_groups() {
        let many = format!("^{}$", "(a)?".repeat(KEPT_GROUPS_MAX + 3));
        for jit in [true, false, true] {
            for (pattern, subject, last) in
                [("a(b)", "ab", "b"), ("(.)c", "xc", "x"), ("(a)(b)?", "a", ""), (&many, "aa", "")]
            {
                let (regex, mut captures) = (regex(pattern, jit), Captures::default());
                assert!(regex.capture(subject.as_bytes(), &mut captures).unwrap(), "{pattern}");
                assert_eq!(captures.get(regex.groups()).unwrap_or_default(), last.as_bytes(), "{pattern}");
                assert!(!regex.is_match(b"").unwrap() || pattern == many);
            }
        }
    }

    #[test]
    fn a_match_within_a_text_gives_back_the_captures_before_it() {
        let (digits, word) = (regex("([0-9]+)", true), regex("(b+)", true));
        let mut slots = SlotStore::default();
        // Nothing has matched before: the captures stay, as in nginx.
        let before = slots.capture_within(&word, b"abbc").unwrap().unwrap();
        slots.restore(before);
        assert_eq!(slots.captures.get(1), Some(&b"bb"[..]));
        assert!(slots.capture(&digits, b"a17").unwrap());
        let before = slots.capture_within(&word, b"abbc").unwrap().unwrap();
        assert_eq!(slots.captures.get(1), Some(&b"bb"[..]));
        slots.restore(before);
        assert_eq!(slots.captures.get(1), Some(&b"17"[..]));
        assert!(slots.capture_within(&word, b"x").unwrap().is_none());
        assert_eq!(slots.captures.get(1), Some(&b"17"[..]));
    }

    #[test]
    fn a_failed_match_leaves_the_captures_of_the_one_before() {
        let regex = regex("^/f/(a+)+[bc]$", true);
        let mut captures = Captures::default();
        assert!(regex.capture(b"/f/aab", &mut captures).unwrap());
        assert!(!regex.capture(b"/g", &mut captures).unwrap());
        assert_eq!(captures.get(0), Some(&b"/f/aab"[..]));
    }
}
