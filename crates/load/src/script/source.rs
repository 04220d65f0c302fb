//! Places in the files of a script, and the one way to show a problem with its place.

use std::fmt::Write as _;

use weir_words::{Language, Said, say};

use crate::texts::script as texts;

/// A place: file, line and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourcePlace {
    /// Index in the [`Sources`].
    pub file: u16,
    /// Counted from 1; 0 if the line is unknown.
    pub line: u32,
    /// Counted from 1, in characters.
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

/// A problem that makes the script invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The place; `None` if the problem is not in a file.
    pub at: Option<SourcePlace>,
    /// The problem and the remedy.
    pub what: Said,
    /// The wording is Artillery's: it is first and alone on its line, so that programs that grep for it still work.
    pub is_artillery: bool,
}

impl Problem {
    /// A problem in weir's words.
    pub fn new(at: SourcePlace, what: impl Into<Said>) -> Problem {
        Problem { at: Some(at), what: what.into(), is_artillery: false }
    }

    /// A problem in Artillery's words.
    pub fn artillery(at: Option<SourcePlace>, what: impl Into<Said>) -> Problem {
        Problem { at, what: what.into(), is_artillery: true }
    }
}

/// A problem that ends the run before it starts, with the exit code.
pub(crate) struct StartProblem {
    /// The problem.
    pub problem: Problem,
    /// Artillery's exit code.
    pub exit: i32,
}

impl From<Problem> for StartProblem {
    fn from(problem: Problem) -> StartProblem {
        StartProblem { problem, exit: 1 }
    }
}

impl Sources {
    /// Stores a text; returns its number for [`SourcePlace`].
    pub fn add(&mut self, name: &str, text: &str) -> u16 {
        self.files.push(Source { name: name.to_owned(), text: text.to_owned() });
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    /// `file:line:column`, or only the file.
    pub fn place(&self, at: SourcePlace) -> String {
        let name = self.files.get(usize::from(at.file)).map_or("script", |source| source.name.as_str());
        if at.line == 0 { name.to_owned() } else { format!("{name}:{}:{}", at.line, at.column) }
    }

    /// The text for a terminal; every line ends in `\n`.
    pub fn render(&self, problem: &Problem) -> Said {
        let of = |language| self.render_in(problem, language);
        Said::of_both(of(Language::English), of(Language::Korean))
    }

    fn render_in(&self, problem: &Problem, language: Language) -> String {
        let what = problem.what.say(language);
        let Some(at) = problem.at else {
            return format!("{what}\n");
        };
        let place = self.place(at);
        let mut text = match problem.is_artillery {
            true => format!("{what}\n{}\n", say!(texts::AT, place).say(language)),
            false => format!("{place}: {what}\n"),
        };
        let source = self.files.get(usize::from(at.file));
        let line = source.and_then(|source| source.text.lines().nth((at.line as usize).checked_sub(1)?));
        if let Some(line) = line {
            excerpt(&mut text, line, at);
        }
        text
    }
}

/// Columns for the line number of an excerpt.
const GUTTER: usize = 5;

/// Most characters of a source line in an excerpt.
const EXCERPT_CHARS_MAX: usize = 160;

/// Characters before the caret that are kept when a line is cut.
const EXCERPT_CHARS_BEFORE: usize = 60;

/// The line, and a caret under the place.
fn excerpt(text: &mut String, line: &str, at: SourcePlace) {
    let column = (at.column as usize).saturating_sub(1);
    let cut = if column > EXCERPT_CHARS_MAX / 2 { column - EXCERPT_CHARS_BEFORE } else { 0 };
    // Control characters of a script must not reach the terminal.
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
        let at = SourcePlace { file, line: 2, column: 2 };
        let seen = sources.render(&Problem::new(at, "no x here"));
        assert_eq!(seen.en(), "a.yml:2:2: no x here\n    2 | \tx: 1\n      | \t^\n");
        let seen = sources.render(&Problem::artillery(Some(at), "Artillery says no"));
        assert_eq!(seen.en(), "Artillery says no\n  at a.yml:2:2\n    2 | \tx: 1\n      | \t^\n");
        assert_eq!(sources.render(&Problem::artillery(None, "alone")), "alone\n");
    }

    #[test]
    fn a_place_outside_and_a_long_line_are_shown_without_panic() {
        let mut sources = Sources::default();
        let file = sources.add("a", &"x\u{1b}".repeat(500));
        let seen = sources.render(&Problem::new(SourcePlace { file, line: 1, column: 900 }, "far"));
        assert!(!seen.contains('\u{1b}') && seen.lines().all(|line| line.chars().count() < 200), "{seen}");
        for at in [
            SourcePlace { file: 9, line: 1, column: 1 },
            SourcePlace { file, line: 7, column: 0 },
            SourcePlace::default(),
        ] {
            assert!(sources.render(&Problem::new(at, "x")).ends_with("x\n") || at.line == 1 || at.line == 0);
        }
    }
}
