//! Findings of files: the doctor's, and the problems of `weir edge -t`; and those that a revision brought.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use weir_conf::{At, ColumnUnit, Level, Problem, Span, TextRegion, Tree, TreeLines};
use weir_doctor::{Facts, Finding, FindingLevel, Target, rules};
use weir_words::{Said, Words, say};

use crate::texts;

/// Most findings of one run.
pub const FINDINGS_MAX: usize = 5_000;
/// The rule of a problem of `weir edge -t`.
pub const EDGE_TEST: &str = "edge_test";
/// The rule of a problem that depends on the machine: its files are elsewhere.
pub const EDGE_ABSENT: &str = "edge_absent_file";
/// The end of a message about a file that is not there.
const ABSENT: &str = "(2: No such file or directory)";

/// A range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckPlace {
    /// Its name: relative to the root, or absolute if it is elsewhere.
    pub file: String,
    /// Whether it is below the root.
    pub is_inside: bool,
    /// The range, in characters.
    pub region: TextRegion,
    /// The range, in units of UTF-16.
    pub utf16: TextRegion,
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckEdit {
    /// The bytes that it replaces.
    pub place: CheckPlace,
    /// The new text.
    pub with: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckFinding {
    /// The name of its rule.
    pub rule: String,
    /// Its level.
    pub level: FindingLevel,
    /// The sentence of its rule.
    pub says: Said,
    /// The finding in words.
    pub what: Said,
    /// The remedy.
    pub remedy: Option<Said>,
    /// The line to write.
    pub write: Option<String>,
    /// Where this knowledge is from.
    pub source: Option<&'static str>,
    /// Its place.
    pub place: Option<CheckPlace>,
    /// The change of the files.
    pub edits: Vec<CheckEdit>,
}

/// The files of one configuration, below a root.
#[derive(Clone, Copy)]
pub struct CheckedFiles<'c> {
    /// The configuration.
    pub tree: &'c Tree,
    /// The directory that names are relative to.
    pub root: &'c Path,
    /// The program that reads it.
    pub target: Target,
}

impl CheckedFiles<'_> {
    /// The findings of the doctor, without facts about a machine: the pipeline's machine is not the server's. `problems` are
    /// those of `weir edge -t`.
    pub fn findings(&self, facts: &Facts, problems: &[Problem]) -> Vec<CheckFinding> {
        let lines = TreeLines::new(self.tree);
        let doctors = weir_doctor::examine(self.tree, self.target, facts);
        let mut all: Vec<CheckFinding> = doctors.iter().map(|finding| self.doctors(&lines, finding)).collect();
        // The doctor may say the same about the line, and with a remedy.
        let is_told =
            |one: &CheckFinding| all.iter().any(|other| other.what.en() == one.what.en() && other.place == one.place);
        let problems = problems.iter().map(|problem| self.problem(&lines, problem));
        let problems: Vec<CheckFinding> = problems.filter(|one| !is_told(one)).collect();
        all.splice(0..0, problems);
        all.sort_by_key(|finding| finding.level);
        all.truncate(FINDINGS_MAX);
        all
    }

    fn doctors(&self, lines: &TreeLines<'_>, finding: &Finding) -> CheckFinding {
        let rule = rules::lookup(finding.rule);
        let said = |words: Words| Said::of_both(words.en, words.ko);
        let edit = |edit: &weir_conf::edit::Edit| {
            let place = self.place(lines, edit.file, edit.span)?;
            Some(CheckEdit { place, with: String::from_utf8_lossy(&edit.with).into_owned() })
        };
        CheckFinding {
            rule: finding.rule.to_owned(),
            level: finding.level,
            says: rule.map(|rule| said(rule.says)).unwrap_or_default(),
            what: finding.what.clone(),
            remedy: rule.map(|rule| said(rule.remedy)),
            write: finding.write.clone(),
            source: rule.map(|rule| rule.source),
            place: finding.at.and_then(|at| self.at(lines, at)),
            edits: finding.fix.iter().filter_map(edit).collect(),
        }
    }

    fn problem(&self, lines: &TreeLines<'_>, problem: &Problem) -> CheckFinding {
        let is_absent = problem.what.contains(ABSENT);
        let is_others = problem.is_weirs_own && self.target != Target::Weir;
        let (rule, level, says) = match problem.level {
            _ if is_absent => (EDGE_ABSENT, FindingLevel::Note, texts::EDGE_ABSENT),
            _ if is_others => (EDGE_TEST, FindingLevel::Note, texts::EDGE_ALONE),
            Level::Emerg => (EDGE_TEST, FindingLevel::Wrong, texts::EDGE_REFUSES),
            Level::Warn => (EDGE_TEST, FindingLevel::Note, texts::EDGE_WARNS),
        };
        CheckFinding {
            rule: rule.to_owned(),
            level,
            says: says.with(&[]),
            what: problem.what.as_str().into(),
            remedy: problem.todo.as_ref().map(|todo| todo.replace('\n', "; ").into()),
            write: None,
            source: None,
            place: problem.at.and_then(|at| self.at(lines, at)),
            edits: Vec::new(),
        }
    }

    fn at(&self, lines: &TreeLines<'_>, at: At) -> Option<CheckPlace> {
        self.place(lines, at.file, at.span)
    }

    fn place(&self, lines: &TreeLines<'_>, file: u32, span: Span) -> Option<CheckPlace> {
        let source = self.tree.files.get(file as usize).filter(|source| !source.is_command_line)?;
        let below = Path::new(&source.name).strip_prefix(self.root).ok().and_then(Path::to_str);
        Some(CheckPlace {
            file: below.unwrap_or(&source.name).to_owned(),
            is_inside: below.is_some(),
            region: lines.region(file, span, ColumnUnit::Character)?,
            utf16: lines.region(file, span, ColumnUnit::Utf16)?,
        })
    }
}

impl CheckFinding {
    /// The finding without its line, so that it stays the same if lines above it come and go. `root`: the directory of its
    /// files, which may stand in the sentence.
    fn key(&self, root: &Path) -> (String, String, String) {
        let root = format!("{}/", root.display());
        let file = self.place.as_ref().map(|place| place.file.clone()).unwrap_or_default();
        (self.rule.clone(), file, self.what.en().replace(&root, ""))
    }

    /// The line, for people.
    pub fn shown_place(&self) -> String {
        self.place.as_ref().map_or_else(|| "-".to_owned(), |place| format!("{}:{}", place.file, place.region.start.0))
    }

    /// A number that is the same for the same finding in each run: FNV-1a of its rule, its file and its sentence.
    pub fn fingerprint(&self, root: &Path) -> String {
        let (rule, file, what) = self.key(root);
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in [rule, file, what].join("\n").bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        format!("{hash:016x}")
    }

    /// The finding, as a report stores it.
    pub fn to_json(&self) -> Value {
        let region = |region: TextRegion| {
            json!({
                "start_line": region.start.0, "start_column": region.start.1,
                "end_line": region.end.0, "end_column": region.end.1,
            })
        };
        let edit =
            |edit: &CheckEdit| json!({"file": edit.place.file, "region": region(edit.place.region), "with": edit.with});
        let place = self.place.as_ref();
        json!({
            "rule": self.rule,
            "level": self.level.name(),
            "file": place.map(|place| place.file.as_str()),
            "line": place.map(|place| place.region.start.0),
            "region": place.map(|place| region(place.region)),
            "says": self.says.en(),
            "what": self.what.en(),
            "remedy": self.remedy.as_ref().map(Said::en),
            "write": self.write,
            "can_fix": !self.edits.is_empty(),
            "edits": self.edits.iter().map(edit).collect::<Vec<_>>(),
            "source": self.source,
        })
    }
}

/// The findings that a revision brought, and those that it took away.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineChange {
    /// Findings that the revision before does not have.
    pub brought: Vec<CheckFinding>,
    /// Findings that both have.
    pub known: usize,
    /// Findings that only the revision before has.
    pub gone: usize,
}

/// Compares findings of two revisions, each with the root of its files. A finding that stands twice before and three times
/// after was brought once.
pub fn brought(before: (&[CheckFinding], &Path), after: (Vec<CheckFinding>, &Path)) -> BaselineChange {
    let mut left: HashMap<(String, String, String), usize> = HashMap::new();
    for finding in before.0 {
        *left.entry(finding.key(before.1)).or_insert(0) += 1;
    }
    let (all, mut brought) = (after.0.len(), after.0);
    brought.retain(|finding| match left.get_mut(&finding.key(after.1)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    let known = all - brought.len();
    BaselineChange { brought, known, gone: before.0.len() - known }
}

/// The sentence of a rule of `weir edge -t`, which no table of the doctor has.
pub fn edge_rule(rule: &str) -> Option<Said> {
    match rule {
        EDGE_TEST => Some(say!(texts::EDGE_REFUSES)),
        EDGE_ABSENT => Some(say!(texts::EDGE_ABSENT)),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The findings of a configuration below `/r`.
    pub(crate) fn findings_of(text: &str) -> Vec<CheckFinding> {
        let (tree, _) = weir_doctor::load(&weir_conf::MemoryFiles::new().with("/r/n.conf", text), "/r/n.conf", "/r/");
        let files = CheckedFiles { tree: &tree, root: Path::new("/r"), target: weir_doctor::NEWEST.into() };
        files.findings(&Facts::default(), &[])
    }

    const TRAP: &str = "http { server { listen 80; location /a { alias /b/; } } }\n";

    #[test]
    fn a_finding_has_its_place_below_the_root() {
        let all = findings_of(TRAP);
        let trap = all.iter().find(|finding| finding.rule == "alias_traversal").cloned();
        let place = trap.as_ref().and_then(|trap| trap.place.clone());
        assert_eq!(
            place.map(|place| (place.file, place.is_inside, place.region.start.0)),
            Some(("n.conf".to_owned(), true, 1))
        );
        let json = trap.map(|trap| trap.to_json()).unwrap_or_default();
        assert_eq!((&json["level"], &json["line"]), (&json!("wrong"), &json!(1)));
    }

    #[test]
    fn lines_that_move_bring_nothing_and_a_second_trap_does() {
        let root = Path::new("/r");
        let compare = |before: &str, after: &str| brought((&findings_of(before), root), (findings_of(after), root));
        let moved = compare(TRAP, &format!("# a comment\n\n{TRAP}"));
        assert_eq!((moved.brought.len(), moved.gone), (0, 0), "{:?}", moved.brought);
        assert!(moved.known > 0);
        let second = TRAP.replace("} } }", "} location /c { alias /d/; } } }");
        let more = compare(TRAP, &second);
        assert!(more.brought.iter().any(|finding| finding.rule == "alias_traversal"));
        assert_eq!(more.brought.iter().filter(|finding| finding.what.contains("/b/")).count(), 0);
        let fewer = compare(&second, TRAP);
        assert!(fewer.brought.is_empty() && fewer.gone > 0);
        assert_eq!(compare("", TRAP).known, 0);
    }

    #[test]
    fn problems_are_weighed_by_the_program_that_reads_the_file() {
        let (tree, _) = weir_doctor::load(&weir_conf::MemoryFiles::new().with("/r/n", "a;\n"), "/r/n", "/r/");
        let problem = |what: &str| Problem::nowhere(Level::Emerg, what);
        let all = [
            problem("unknown directive \"a\""),
            problem("x is not supported").weirs_own(),
            problem("cannot load certificate \"/c\": BIO_new_file() failed (2: No such file or directory)"),
        ];
        let levels = |target: Target| {
            let files = CheckedFiles { tree: &tree, root: Path::new("/r"), target };
            let lines = TreeLines::new(&tree);
            all.iter().map(|one| files.problem(&lines, one).level).collect::<Vec<_>>()
        };
        use FindingLevel::{Note, Wrong};
        assert_eq!(levels(Target::Weir), [Wrong, Wrong, Note]);
        assert_eq!(levels(weir_doctor::NEWEST.into()), [Wrong, Note, Note]);
    }

    #[test]
    fn what_the_doctor_says_too_is_told_once() {
        let text = "events { }\nhttp { no_such_directive 1; }\n";
        let (tree, _) = weir_doctor::load(&weir_conf::MemoryFiles::new().with("/r/n", text), "/r/n", "/r/");
        let files = CheckedFiles { tree: &tree, root: Path::new("/r"), target: weir_doctor::NEWEST.into() };
        let told = files.findings(&Facts::default(), &[]);
        let unknown = told.iter().find(|one| one.rule == "unknown_directive").cloned();
        let unknown = unknown.unwrap_or_else(|| unreachable!("{told:?}"));
        let at = tree.root.get(1).and_then(|http| http.children().first()).map(|statement| statement.at);
        let same = Problem::nowhere(Level::Emerg, unknown.what.en()).at(at);
        let other = Problem::nowhere(Level::Emerg, "another").at(at);
        let all = files.findings(&Facts::default(), &[same, other]);
        assert_eq!(all.iter().filter(|one| one.rule == EDGE_TEST).count(), 1, "{all:?}");
    }

    #[test]
    fn a_fingerprint_is_the_same_at_another_line_and_below_another_root() {
        let (one, other) = (findings_of(TRAP), findings_of(&format!("\n{TRAP}")));
        let prints = |all: &[CheckFinding]| all.iter().map(|one| one.fingerprint(Path::new("/r"))).collect::<Vec<_>>();
        assert_eq!(prints(&one), prints(&other));
        assert!(prints(&one).iter().all(|print| print.len() == 16));
    }
}
