//! A problem of a configuration, and the one way to show it.
//!
//! The first line is nginx's own (`nginx: [emerg] WHAT in FILE:LINE`), so that people's greps still work. Then come
//! the place with a caret, and the remedy.

use crate::tree::{At, Source, Span, Tree};

/// The severity of a problem, in nginx's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The configuration cannot be used.
    Emerg,
    /// The configuration can be used, but has not all the effects it asks for.
    Warn,
}

impl Level {
    /// The word in brackets.
    pub fn name(self) -> &'static str {
        match self {
            Level::Emerg => "emerg",
            Level::Warn => "warn",
        }
    }
}

/// One problem found in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The severity.
    pub level: Level,
    /// nginx's message, without ` in FILE:LINE`.
    pub what: String,
    /// The place; `None` if nginx names none (the main file cannot be opened).
    pub at: Option<At>,
    /// Other places in the file with the same problem.
    pub also: Vec<At>,
    /// The remedies, one a line; a first line `did you mean …` is shown beside the caret.
    pub todo: Option<String>,
    /// Whether nginx may accept the statement: weir lacks a part of nginx there, or has a limit of its own.
    pub is_weirs_own: bool,
}

impl Problem {
    /// A problem without a place, or with a place that is not known yet.
    pub fn nowhere(level: Level, what: impl Into<String>) -> Problem {
        Problem { level, what: what.into(), at: None, also: Vec::new(), todo: None, is_weirs_own: false }
    }

    /// The same problem at this place.
    #[must_use]
    pub fn at(self, at: Option<At>) -> Problem {
        Problem { at, ..self }
    }

    /// A problem that makes the configuration unusable.
    pub fn emerg(what: String, at: At) -> Problem {
        Problem::nowhere(Level::Emerg, what).at(Some(at))
    }

    /// A problem that leaves the configuration usable.
    pub fn warn(what: String, at: At) -> Problem {
        Problem::nowhere(Level::Warn, what).at(Some(at))
    }

    /// The same problem with a remedy added.
    #[must_use]
    pub fn todo(mut self, remedy: &str) -> Problem {
        self.todo = Some(match self.todo.take() {
            Some(before) => format!("{before}\n{remedy}"),
            None => remedy.to_owned(),
        });
        self
    }

    /// The same problem, where nginx may accept the statement.
    #[must_use]
    pub fn weirs_own(self) -> Problem {
        Problem { is_weirs_own: true, ..self }
    }

    /// `WHAT in FILE:LINE`, as in line one of [`render`] and in an error log.
    pub fn sentence(&self, tree: &Tree) -> String {
        let Some((at, source)) = self.at.and_then(|at| Some((at, tree.source(&at)?))) else {
            return self.what.clone();
        };
        if source.is_command_line {
            return format!("{} in command line", self.what);
        }
        format!("{} in {}:{}", self.what, source.name, at.line)
    }
}

/// Most lines named in a list of places; the others are counted.
const PLACES_MAX: usize = 3;

/// `FILE:1, FILE:2, FILE:3 and 7 more`: the first places and the number of the others; empty without a place.
pub fn places(all: &[At], tree: &Tree) -> String {
    let mut lines: Vec<&At> = Vec::new();
    for at in all {
        if lines.last().is_none_or(|last| (last.file, last.line) != (at.file, at.line)) {
            lines.push(at);
        }
    }
    let name = |at: &&At| tree.source(at).map(|source| format!("{}:{}", source.name, at.line));
    let named: Vec<String> = lines.iter().take(PLACES_MAX).filter_map(name).collect();
    let rest = lines.len().saturating_sub(PLACES_MAX);
    if rest == 0 { named.join(", ") } else { format!("{} and {rest} more", named.join(", ")) }
}

/// The text for a terminal: nginx's line, the excerpt, the remedies; every line ends in `\n`.
pub fn render(problem: &Problem, tree: &Tree, prog: &str) -> String {
    let mut text = format!("{prog}: [{}] {}\n", problem.level.name(), problem.sentence(tree));
    let mut remedies: Vec<&str> = problem.todo.iter().flat_map(|todo| todo.lines()).collect();
    let source = problem.at.and_then(|at| Some((at.span, tree.source(&at)?)));
    if let Some((span, source)) = source {
        let beside = match remedies.first() {
            Some(first) if first.starts_with("did you mean") => remedies.remove(0),
            _ => "",
        };
        text.push_str(&excerpt(source, span, beside));
    }
    for remedy in remedies {
        text.push_str(&format!("{:GUTTER$} = {remedy}\n", ""));
    }
    text
}

/// Columns for the line numbers of an excerpt.
const GUTTER: usize = 5;

/// Most characters of a source line in an excerpt.
const EXCERPT_CHARS_MAX: usize = 160;

/// Characters before the caret that are kept when a line is cut.
const EXCERPT_CHARS_BEFORE: usize = 60;

/// The source line at the start of a span, and a caret line under it.
fn excerpt(source: &Source, span: Span, beside: &str) -> String {
    let start = (span.start as usize).min(source.bytes.len());
    let (before, after) = source.bytes.split_at(start);
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |lf| lf + 1);
    let line_rest = after.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let marked = line_rest.len().min((span.end.saturating_sub(span.start)) as usize);
    let (marked, rest) = line_rest.split_at(marked);

    let mut lead = printable(before.get(line_start..).unwrap_or_default());
    let mut marked = printable(marked);
    let mut rest = printable(rest);
    if lead.len() > EXCERPT_CHARS_BEFORE {
        lead.drain(..lead.len() - EXCERPT_CHARS_BEFORE);
        lead.insert(0, '…');
    }
    let room = EXCERPT_CHARS_MAX.saturating_sub(lead.len());
    marked.truncate(room);
    if rest.len() > room - marked.len() {
        rest.truncate(room - marked.len());
        rest.push('…');
    }

    let shown: String = lead.iter().chain(&marked).chain(&rest).collect();
    let indent: String = lead.iter().map(|c| if *c == '\t' { '\t' } else { ' ' }).collect();
    let carets = "^".repeat(marked.len().max(1));
    let number = source.line_of(span.start);
    let first = format!("{number:GUTTER$} | {}", shown);
    let second = format!("{:GUTTER$} | {indent}{carets} {beside}", "");
    format!("{}\n{}\n", first.trim_end(), second.trim_end())
}

/// Printable characters: control bytes other than a tab become U+FFFD.
fn printable(bytes: &[u8]) -> Vec<char> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_suffix('\r').unwrap_or(&text);
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Sorts problems in the order in which a reader of the files meets them: the problems of an included file come at
/// its `include`. Problems without a place come last.
pub fn sort_as_read(problems: &mut [Problem], tree: &Tree) {
    problems.sort_by_cached_key(|problem| match problem.at {
        Some(at) => (0, reading_path(&at, tree)),
        None => (1, Vec::new()),
    });
}

/// The lines of the includes that lead to a place, then the place's own line.
fn reading_path(at: &At, tree: &Tree) -> Vec<u32> {
    let mut path = vec![at.line];
    let mut file = at.file;
    // A file's first include is always in a file read before it, so this loop ends.
    while let Some(include) = tree.includes.iter().find(|include| include.files.contains(&file)) {
        if include.at.file >= file {
            break;
        }
        let place = include.files.iter().position(|found| *found == file).unwrap_or(0);
        path.push(u32::try_from(place).unwrap_or(u32::MAX));
        path.push(include.at.line);
        file = include.at.file;
    }
    path.push(file);
    path.reverse();
    path
}

/// The name that a mistyped one most likely means: the nearest by edits (insert, drop, change, swap), if it is near
/// enough to suggest: at most one edit per three letters.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > NAME_CHARS_MAX {
        return None;
    }
    let allowed = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= allowed && *edits < candidate.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Longer names are not typing errors; comparing them would take too long.
const NAME_CHARS_MAX: usize = 64;

/// Number of edits between two names; a swap of neighbours counts as one.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut older: Vec<usize> = Vec::new();
    let mut old: Vec<usize> = (0..=to.len()).collect();
    let mut previous = None;
    for (i, a) in from.chars().enumerate() {
        let mut new = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&old, j + 1) + 1).min(at(&new, j) + 1);
            best = best.min(at(&old, j) + usize::from(a != *b));
            let before = j.checked_sub(1).and_then(|index| to.get(index));
            if j > 0 && previous == Some(*b) && before == Some(&a) {
                best = best.min(at(&older, j - 1) + 1);
            }
            new.push(best);
        }
        older = std::mem::replace(&mut old, new);
        previous = Some(a);
    }
    old.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn only_a_near_name_is_meant() {
        let names = ["proxy_pass", "proxy_bind", "root", "return", "listen", "map"];
        let meant = |name| did_you_mean(name, names);
        assert_eq!(meant("proxy_pas"), Some("proxy_pass"));
        assert_eq!(meant("proxypass"), Some("proxy_pass"));
        assert_eq!(meant("porxy_pass"), Some("proxy_pass"));
        assert_eq!(meant("rot"), Some("root"));
        assert_eq!(meant("lsiten"), Some("listen"));
        assert_eq!(meant("mpa"), Some("map"));
        assert_eq!(meant("fastcgi_pass"), None);
        assert_eq!(meant("x"), None);
        assert_eq!(meant(&"proxy_pass".repeat(10)), None);
    }

    #[test]
    fn edits_are_counted() {
        let cases = [("", "", 0), ("a", "", 1), ("", "ab", 2), ("ab", "ba", 1), ("abc", "axc", 1)];
        for (from, to, expected) in cases {
            assert_eq!(edits(from, to), expected, "{from} {to}");
            assert_eq!(edits(to, from), expected, "{to} {from}");
        }
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn a_did_you_mean_stands_beside_the_caret_and_remedies_below() {
        let source = Source { name: "f".to_owned(), bytes: b"a;\n\tb c;".to_vec(), ..Source::default() };
        let tree = Tree { files: vec![source], ..Tree::default() };
        let at = At { file: 0, line: 7, span: Span { start: 4, end: 5 } };
        let problem = Problem::warn("no \"b\"".to_owned(), at);
        let problem = problem.todo("did you mean \"bb\"?").todo("or keep nginx");
        let expected =
            "weir: [warn] no \"b\" in f:7\n    2 | \tb c;\n      | \t^ did you mean \"bb\"?\n      = or keep nginx\n";
        assert_eq!(render(&problem, &tree, "weir"), expected);
    }

    #[test]
    fn the_first_places_are_named_and_the_others_counted() {
        let source = |name: &str| Source { name: name.to_owned(), ..Source::default() };
        let tree = Tree { files: vec![source("/a"), source("/b")], ..Tree::default() };
        let at = |file, line| At { file, line, ..At::default() };
        let all = [at(0, 1), at(0, 2), at(1, 3), at(1, 4), at(1, 4), at(1, 5)];
        assert_eq!(places(&all[..1], &tree), "/a:1");
        assert_eq!(places(&all[..3], &tree), "/a:1, /a:2, /b:3");
        assert_eq!(places(&all, &tree), "/a:1, /a:2, /b:3 and 2 more");
        assert_eq!(places(&[], &tree), "");
    }

    #[test]
    fn a_place_outside_the_source_is_shown_without_panic() {
        let tree = Tree { files: vec![Source::default()], ..Tree::default() };
        let far = At { file: 0, line: 1, span: Span { start: 90, end: 80 } };
        let shown = render(&Problem::emerg("x".to_owned(), far), &tree, "p");
        assert_eq!(shown, "p: [emerg] x in :1\n    1 |\n      | ^\n");
        let elsewhere = At { file: 9, ..far };
        assert_eq!(render(&Problem::emerg("x".to_owned(), elsewhere), &tree, "p"), "p: [emerg] x\n");
    }

    #[test]
    fn control_bytes_do_not_reach_the_terminal() {
        let source = Source { bytes: b"\x1b[2J\r\n".to_vec(), ..Source::default() };
        let tree = Tree { files: vec![source], ..Tree::default() };
        let at = At { file: 0, line: 1, span: Span { start: 1, end: 2 } };
        let shown = render(&Problem::emerg("x".to_owned(), at), &tree, "p");
        assert!(!shown.contains('\x1b') && shown.contains("\u{fffd}[2J\n"), "{shown:?}");
    }
}
