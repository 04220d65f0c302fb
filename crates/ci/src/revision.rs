//! Revisions of a git repository: what a name means, and what a commit says of itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use weir_words::{Said, say};

use crate::texts;

/// Most characters of a commit's subject.
const SUBJECT_MAX: usize = 120;
/// Characters of a commit's name in a report.
const SHORT: usize = 10;

/// A git repository.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Its top directory.
    pub top: PathBuf,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRevision {
    /// The name that the user gave it.
    pub asked: String,
    /// Its full name.
    pub commit: String,
    /// Its subject, without control characters. A stranger may have written it.
    pub subject: String,
}

impl CodeRevision {
    /// The beginning of its name.
    pub fn short(&self) -> &str {
        self.commit.get(..SHORT).unwrap_or(&self.commit)
    }

    /// The revision, as a report stores it.
    pub fn to_json(&self) -> Value {
        json!({"revision": self.asked, "commit": self.commit, "subject": self.subject})
    }
}

impl Repository {
    /// The repository around a directory.
    ///
    /// # Errors
    /// git is not installed, or there is none.
    pub fn around(directory: &Path) -> Result<Repository, Said> {
        let shown = directory.display().to_string();
        let top =
            git(directory, &["rev-parse", "--show-toplevel"])?.ok_or_else(|| say!(texts::ERR_NO_REPOSITORY, shown))?;
        Ok(Repository { top: PathBuf::from(top) })
    }

    /// The commit of a name.
    ///
    /// # Errors
    /// The repository has none.
    pub fn revision(&self, asked: &str) -> Result<CodeRevision, Said> {
        let unknown = || say!(texts::ERR_NO_REVISION, asked);
        // A name cannot begin so; git would take it for an option.
        if asked.is_empty() || asked.starts_with('-') {
            return Err(unknown());
        }
        let commit = format!("{asked}^{{commit}}");
        let commit = git(&self.top, &["rev-parse", "--verify", "--quiet", &commit])?.ok_or_else(unknown)?;
        let subject = git(&self.top, &["log", "-1", "--format=%s", &commit])?.unwrap_or_default();
        Ok(CodeRevision { asked: asked.to_owned(), commit, subject: cut(&subject) })
    }

    /// The path of a file or directory below the top, for a name that is relative to `from`.
    ///
    /// # Errors
    /// It is elsewhere.
    pub fn inside(&self, from: &Path, name: &Path) -> Result<PathBuf, Said> {
        let outside = || say!(texts::ERR_OUTSIDE, name.display().to_string(), self.top.display().to_string());
        let whole = plain(&from.join(name));
        // git prints the top without links.
        let from = std::fs::canonicalize(from).unwrap_or_else(|_| from.to_owned());
        let linked = plain(&from.join(name));
        [linked, whole]
            .iter()
            .find_map(|path| path.strip_prefix(&self.top).ok())
            .map(Path::to_owned)
            .ok_or_else(outside)
    }
}

/// A path without `.` and `..`. The file need not exist in the working tree.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// A subject on one line, of a bounded length.
fn cut(subject: &str) -> String {
    let one: String = subject.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SUBJECT_MAX + 1).collect();
    match one.char_indices().nth(SUBJECT_MAX) {
        Some((at, _)) => format!("{}…", one.get(..at).unwrap_or_default()),
        None => one,
    }
}

/// The output of a git command without its last line feed. `None`: git refuses.
fn git(directory: &Path, words: &[&str]) -> Result<Option<String>, Said> {
    let output = command(directory).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map_err(|error| say!(texts::ERR_GIT_START, error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    Ok(Some(text).filter(|text| output.status.success() && !text.is_empty()))
}

/// git in a directory. It asks no questions.
pub(crate) fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).env("GIT_TERMINAL_PROMPT", "0");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_short_line() {
        assert_eq!(cut("a\u{1b}[31m\nb"), "a [31m b");
        let long = cut(&"한".repeat(500));
        assert_eq!((long.chars().count(), long.ends_with('…')), (SUBJECT_MAX + 1, true));
    }

    #[test]
    fn a_path_is_below_the_top_or_refused() {
        let repository = Repository { top: "/r".into() };
        let inside = |from: &str, name: &str| repository.inside(Path::new(from), Path::new(name)).ok();
        assert_eq!(inside("/r/a", "../deploy/./nginx.conf"), Some("deploy/nginx.conf".into()));
        assert_eq!(inside("/r", "/r/x"), Some("x".into()));
        assert_eq!(inside("/r", "../other"), None);
        assert_eq!(inside("/r", "/etc/passwd"), None);
    }
}
