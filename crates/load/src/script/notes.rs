//! Messages about a script while it is read: warnings, and problems that make it invalid.

use super::source::{At, Problem, Sources};

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
    warnings: Vec<String>,
    unsaid: usize,
    has_fraction: bool,
    problems: Vec<Problem>,
}

impl Notes {
    /// Adds a warning about a place.
    pub fn warn(&mut self, at: At, what: &str) {
        let text = format!("{}: {what}", self.sources.place(at));
        self.say(&text);
    }

    /// Adds a warning without a place, or in Artillery's words. Equal warnings are printed once.
    pub fn say(&mut self, what: &str) {
        if self.warnings.iter().any(|said| said == what) {
            return;
        }
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(what.to_owned());
        } else {
            self.unsaid += 1;
        }
    }

    /// Warns about a fraction of a time without a unit, for the first one only.
    pub fn fraction(&mut self, at: At) {
        if !self.has_fraction {
            self.has_fraction = true;
            let what = "weir reads a fraction without a unit as seconds; Artillery 2 reads it as milliseconds or refuses it: write a unit (\"0.5s\"), so that both read the same";
            self.warn(at, what);
        }
    }

    /// Adds a problem that makes the script invalid.
    pub fn refuse(&mut self, at: At, what: impl Into<String>) {
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
    pub fn refusal(&self) -> Option<String> {
        if self.problems.is_empty() {
            return None;
        }
        Some(self.problems.iter().map(|problem| self.sources.render(problem)).collect())
    }

    /// The warnings.
    pub fn into_warnings(mut self) -> Vec<String> {
        if self.unsaid > 0 {
            self.warnings.push(format!("and {} more warnings", self.unsaid));
        }
        self.warnings
    }
}
