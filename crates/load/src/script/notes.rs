//! Messages about a script while it is read: warnings, and problems that make it invalid.

use weir_words::{Said, say};

use super::source::{Problem, SourcePlace, Sources};
use crate::texts::script as texts;

/// Most warnings that are kept; the others are counted.
const WARNINGS_MAX: usize = 200;

/// Most problems that are shown.
const PROBLEMS_MAX: usize = 20;

/// Warnings and problems, in order of occurrence.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The texts that places refer to.
    pub sources: Sources,
    /// Files that were read besides the script's own.
    pub files: Vec<std::path::PathBuf>,
    warnings: Vec<Said>,
    unsaid: usize,
    has_fraction: bool,
    problems: Vec<Problem>,
}

impl Notes {
    /// Adds a warning about a place.
    pub fn warn(&mut self, at: SourcePlace, what: impl Into<Said>) {
        let parts = [self.sources.place(at).into(), what.into()];
        self.say(Said::list(&parts, ": "));
    }

    /// Adds a warning without a place, or in Artillery's words. Equal warnings are printed once.
    pub fn say(&mut self, what: impl Into<Said>) {
        let what = what.into();
        if self.warnings.contains(&what) {
            return;
        }
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(what);
        } else {
            self.unsaid += 1;
        }
    }

    /// Warns about a fraction of a time without a unit, for the first one only.
    pub fn fraction(&mut self, at: SourcePlace) {
        if !self.has_fraction {
            self.has_fraction = true;
            self.warn(at, texts::BARE_FRACTION);
        }
    }

    /// Adds a problem that makes the script invalid.
    pub fn refuse(&mut self, at: SourcePlace, what: impl Into<Said>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem::new(at, what));
        }
    }

    /// Adds problems besides the one that ends the reading.
    pub fn add(&mut self, problems: impl Iterator<Item = Problem>) {
        let room = PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.problems.extend(problems.take(room));
    }

    /// The problems as text; `None` if the script can be run.
    pub fn refusal(&self) -> Option<Said> {
        if self.problems.is_empty() {
            return None;
        }
        let all: Vec<Said> = self.problems.iter().map(|problem| self.sources.render(problem)).collect();
        Some(Said::list(&all, ""))
    }

    /// The warnings.
    pub fn into_warnings(mut self) -> Vec<Said> {
        if self.unsaid > 0 {
            self.warnings.push(say!(texts::MORE_WARNINGS, self.unsaid));
        }
        self.warnings
    }
}
