//! Where things stand in the files of a script, and the one way to show a problem with them.

use std::fmt::Write as _;

/// A place: file, line and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    /// Which of the [`Sources`].
    pub file: u16,
    /// From 1; 0 when no line is known.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// The texts that were read.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    name: String,
    text: String,
}

/// Something the script cannot be run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where; `None` when no file says it.
    pub at: Option<At>,
    /// What is wrong, and what to do.
    pub what: String,
    /// The words are Artillery's: they stand first and alone on their line, so that what greps for them works.
    pub is_artillery: bool,
}

impl Problem {
    /// A problem in weir's words.
    pub fn new(at: At, what: impl Into<String>) -> Problem {
        Problem { at: Some(at), what: what.into(), is_artillery: false }
    }

    /// A problem in Artillery's words.
    pub fn artillery(at: Option<At>, what: impl Into<String>) -> Problem {
        Problem { at, what: what.into(), is_artillery: true }
    }
}

impl Sources {
    /// Keeps a text; the number goes into every [`At`] of it.
    pub fn add(&mut self, name: &str, text: &str) -> u16 {
        self.files.push(Source { name: name.to_owned(), text: text.to_owned() });
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    /// `file:line:column`, or the file alone.
    pub fn place(&self, at: At) -> String {
        let name = self.files.get(usize::from(at.file)).map_or("script", |source| source.name.as_str());
        if at.line == 0 { name.to_owned() } else { format!("{name}:{}:{}", at.line, at.column) }
    }

    /// The text for a terminal; every line ends in `\n`.
    pub fn render(&self, problem: &Problem) -> String {
        let Some(at) = problem.at else {
            return format!("{}\n", problem.what);
        };
        let place = self.place(at);
        let mut text = match problem.is_artillery {
            true => format!("{}\n  at {place}\n", problem.what),
            false => format!("{place}: {}\n", problem.what),
        };
        let source = self.files.get(usize::from(at.file));
        let line = source.and_then(|source| source.text.lines().nth((at.line as usize).checked_sub(1)?));
        if let Some(line) = line {
            excerpt(&mut text, line, at);
        }
        text
    }
}

/// Columns the line number of an excerpt takes.
const GUTTER: usize = 5;

/// Characters of a source line an excerpt shows.
const EXCERPT_CHARS_MAX: usize = 160;

/// Characters kept before the caret when a line is cut.
const EXCERPT_CHARS_BEFORE: usize = 60;

/// The line, and a caret below the place.
fn excerpt(text: &mut String, line: &str, at: At) {
    let column = (at.column as usize).saturating_sub(1);
    let cut = if column > EXCERPT_CHARS_MAX / 2 { column - EXCERPT_CHARS_BEFORE } else { 0 };
    // Control bytes of a script do not reach the terminal.
    let safe = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let shown: String = line.chars().skip(cut).take(EXCERPT_CHARS_MAX).map(safe).collect();
    let lead: String = line.chars().skip(cut).take(column - cut).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let _ = writeln!(text, "{:GUTTER$} | {shown}", at.line);
    let _ = writeln!(text, "{:GUTTER$} | {lead}^", "");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_its_line() {
        let mut sources = Sources::default();
        let file = sources.add("a.yml", "config:\n\tx: 1\n");
        let at = At { file, line: 2, column: 2 };
        let seen = sources.render(&Problem::new(at, "no x here"));
        assert_eq!(seen, "a.yml:2:2: no x here\n    2 | \tx: 1\n      | \t^\n");
        let seen = sources.render(&Problem::artillery(Some(at), "Artillery says no"));
        assert_eq!(seen, "Artillery says no\n  at a.yml:2:2\n    2 | \tx: 1\n      | \t^\n");
        assert_eq!(sources.render(&Problem::artillery(None, "alone")), "alone\n");
    }

    #[test]
    fn a_place_outside_and_a_long_line_are_shown_without_panic() {
        let mut sources = Sources::default();
        let file = sources.add("a", &"x\u{1b}".repeat(500));
        let seen = sources.render(&Problem::new(At { file, line: 1, column: 900 }, "far"));
        assert!(!seen.contains('\u{1b}') && seen.lines().all(|line| line.chars().count() < 200), "{seen}");
        for at in [At { file: 9, line: 1, column: 1 }, At { file, line: 7, column: 0 }, At::default()] {
            assert!(sources.render(&Problem::new(at, "x")).ends_with("x\n") || at.line == 1 || at.line == 0);
        }
    }
}
