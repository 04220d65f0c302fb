//! PCRE2, so that a pattern means what it means in nginx, and the captures of the last match.
//!
//! The only module that names the `pcre2` crate.

use pcre2::bytes::{CaptureLocations, RegexBuilder};

use crate::variable::VariableId;

/// A compiled pattern and the variables its named groups fill.
pub struct Regex {
    inner: pcre2::bytes::Regex,
    pattern: String,
    named: Vec<(usize, VariableId)>,
}

/// What the last successful match captured: `$0` to `$9`, owned so that rewriting the subject is safe.
#[derive(Clone, Default)]
pub struct Captures {
    subject: Vec<u8>,
    groups: Vec<Option<(usize, usize)>>,
}

impl Regex {
    /// Compiles `pattern`; `intern` gives each named group its variable. Errors are nginx's words.
    pub fn new(pattern: &str, caseless: bool, mut intern: impl FnMut(&str) -> VariableId) -> Result<Regex, String> {
        let inner =
            RegexBuilder::new().caseless(caseless).jit_if_available(true).build(pattern).map_err(
                |error| match error.offset() {
                    Some(offset) if offset < pattern.len() => {
                        let rest = pattern.get(offset..).unwrap_or_default();
                        format!("pcre2_compile() failed: {} in \"{pattern}\" at \"{rest}\"", error.kind_message())
                    }
                    Some(_) | None => format!("pcre2_compile() failed: {} in \"{pattern}\"", error.kind_message()),
                },
            )?;
        let named = inner
            .capture_names()
            .iter()
            .enumerate()
            .filter_map(|(group, name)| name.as_deref().map(|name| (group, intern(name))))
            .collect();
        Ok(Regex { inner, pattern: pattern.to_owned(), named })
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether `subject` matches, captures left alone.
    pub fn is_match(&self, subject: &[u8]) -> bool {
        self.inner.is_match(subject).unwrap_or(false)
    }

    /// Matches `subject`; on success `captures` holds the groups. A match error (nginx logs an alert) is no match.
    pub fn capture(&self, subject: &[u8], captures: &mut Captures) -> bool {
        let mut locations: CaptureLocations = self.inner.capture_locations();
        match self.inner.captures_read(&mut locations, subject) {
            Ok(Some(_)) => {
                captures.subject.clear();
                captures.subject.extend_from_slice(subject);
                captures.groups.clear();
                captures.groups.extend((0..locations.len()).map(|group| locations.get(group)));
                true
            }
            Ok(None) | Err(_) => false,
        }
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

impl Captures {
    /// The text of one group, if the group took part in the match.
    pub fn get(&self, group: usize) -> Option<&[u8]> {
        let (start, end) = (*self.groups.get(group)?)?;
        self.subject.get(start..end)
    }

    /// Whether nothing has matched.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Forgets the match.
    pub fn clear(&mut self) {
        self.groups.clear();
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
