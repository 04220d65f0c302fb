//! The changes that findings propose, as new files and as diffs.

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffableStr, group_diff_ops};
use std::collections::BTreeMap;
use std::fmt::Write;
use weir_conf::edit::{self, Edit};
use weir_conf::{MemoryFiles, Tree};

use crate::rule::{Finding, Level};

/// Most rounds of changes and checks. One change may require another, as `keepalive` needs HTTP/1.1.
pub const ROUNDS_MAX: usize = 8;

/// Unchanged lines around each change in a diff.
const CONTEXT_LINES: usize = 3;

/// A file with changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// Its path.
    pub name: String,
    /// The present content.
    pub before: Vec<u8>,
    /// The proposed content.
    pub after: Vec<u8>,
}

/// Every file that the findings' changes touch. Also the number of findings that were left out because another change
/// touches the same bytes; [`mend_whole`] checks again for these.
pub fn mend(tree: &Tree, findings: &[Finding]) -> (Vec<Mended>, usize) {
    let mut taken: Vec<&Edit> = Vec::new();
    let mut left_out = 0;
    for finding in findings.iter().filter(|finding| !finding.fix.is_empty()) {
        let is_new = finding.fix.iter().any(|edit| !taken.contains(&edit));
        // Two findings may propose the same change. It is made once.
        let clashes = finding.fix.iter().any(|edit| taken.iter().any(|other| *other != edit && touch(edit, other)));
        if clashes {
            left_out += 1;
        } else if is_new {
            taken.extend(finding.fix.iter().filter(|edit| !taken.contains(edit)).collect::<Vec<_>>());
        }
    }
    let mut mended = Vec::new();
    for (index, source) in tree.files.iter().enumerate().filter(|(_, source)| !source.is_command_line) {
        let edits: Vec<&Edit> = taken.iter().copied().filter(|edit| edit.file as usize == index).collect();
        if edits.is_empty() {
            continue;
        }
        if let Ok(after) = edit::apply(&source.bytes, &edits) {
            mended.push(Mended { name: source.name.clone(), before: source.bytes.clone(), after });
        }
    }
    (mended, left_out)
}

/// The result of repeated changes and checks, until the rules propose no more changes.
pub struct Whole {
    /// Every changed file: its first and its last content.
    pub files: Vec<Mended>,
    /// Findings of the last check whose change was not made. More than 0 only after [`ROUNDS_MAX`] rounds.
    pub left: usize,
}

/// The findings of the rules that the user asked for, and the findings that a change has brought. A change may need
/// another one: a connection pool needs HTTP/1.1. The doctor then makes both. A change has brought a finding if its rule
/// had fewer findings of at least this level before.
pub fn those_of(mut now: Vec<Finding>, before: &[Finding], is_asked: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let counted = counts(&now);
    let known = counts(before);
    let count = |all: &Counts, finding: &Finding| {
        all.iter()
            .filter(|((rule, level), _)| *rule == finding.rule && *level <= finding.level)
            .map(|(_, count)| count)
            .sum::<usize>()
    };
    let is_old = |finding: &Finding| before.iter().any(|old| old.rule == finding.rule && old.what == finding.what);
    now.retain(|finding| {
        is_asked(finding.rule) || count(&counted, finding) > count(&known, finding) && !is_old(finding)
    });
    now
}

/// The number of findings of each rule and level.
type Counts = BTreeMap<(&'static str, Level), usize>;

fn counts(all: &[Finding]) -> Counts {
    let mut counts = Counts::new();
    for finding in all {
        *counts.entry((finding.rule, finding.level)).or_default() += 1;
    }
    counts
}

/// Changes a tree, checks the result, and changes it again. `look` returns the findings for a tree.
pub fn mend_whole(tree: &Tree, look: &dyn Fn(&Tree) -> Vec<Finding>) -> Whole {
    let mut whole = Whole { files: Vec::new(), left: 0 };
    let mut changed: Option<Tree> = None;
    for _ in 0..ROUNDS_MAX {
        let now = changed.as_ref().unwrap_or(tree);
        let findings = look(now);
        whole.left = findings.iter().filter(|finding| !finding.fix.is_empty()).count();
        let (mended, _) = mend(now, &findings);
        if mended.is_empty() {
            break;
        }
        let next = with(now, &mended);
        for file in mended {
            match whole.files.iter_mut().find(|old| old.name == file.name) {
                Some(old) => old.after = file.after,
                None => whole.files.push(file),
            }
        }
        changed = Some(next);
    }
    if let Some(last) = &changed {
        whole.left = look(last).iter().filter(|finding| !finding.fix.is_empty()).count();
    }
    whole.files.retain(|file| file.before != file.after);
    whole
}

/// The tree of the same files with these changes. Reads nothing from the disk.
pub fn with(tree: &Tree, mended: &[Mended]) -> Tree {
    let mut files = MemoryFiles::new();
    for source in tree.files.iter().filter(|source| !source.is_command_line) {
        let changed = mended.iter().find(|file| file.name == source.name);
        files = files.with(&source.name, changed.map_or(&source.bytes, |file| &file.after));
    }
    let main = tree.files.iter().find(|source| !source.is_command_line).map_or("", |source| source.name.as_str());
    let directory = main.rsplit_once('/').map_or("", |(directory, _)| directory);
    crate::load(&files, main, &format!("{directory}/")).0
}

/// Whether two edits change the same bytes, or one edit inserts inside the other's range.
fn touch(one: &Edit, other: &Edit) -> bool {
    let inserts = |edit: &Edit| edit.span.start == edit.span.end;
    if inserts(one) && inserts(other) {
        return false;
    }
    one.file == other.file && one.span.start <= other.span.end && other.span.start <= one.span.end
}

/// The change of one file as a unified diff.
pub fn diff(mended: &Mended) -> String {
    let (before, after) = (String::from_utf8_lossy(&mended.before), String::from_utf8_lossy(&mended.after));
    let (before, after) = (before.tokenize_lines(), after.tokenize_lines());
    let name = mended.name.trim_start_matches('/');
    let mut text = String::new();
    for hunk in group_diff_ops(changes(&before, &after), CONTEXT_LINES) {
        if text.is_empty() {
            let _ = write!(text, "--- a/{name}\n+++ b/{name}\n");
        }
        let _ = writeln!(text, "{}", UnifiedHunkHeader::new(&hunk));
        for change in hunk.iter().flat_map(|op| op.iter_changes(&before, &after)) {
            let _ = write!(text, "{}{}", change.tag(), change.value());
            if change.missing_newline() {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

/// The steps from one list of lines to the other. `TextDiff` finds the same steps, but it chooses its algorithm while
/// it runs: then the binary contains all six algorithms, 500 kB more.
fn changes(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    let mut steps = Compact::new(Replace::new(Capture::new()), before, after);
    let Ok(()) = myers::diff(&mut steps, before, 0..before.len(), after, 0..after.len());
    steps.into_inner().into_inner().into_ops()
}

/// The diff that reverts every change. It is written beside a file before the file is changed.
pub fn undo(mended: &Mended) -> String {
    let back = Mended { name: mended.name.clone(), before: mended.after.clone(), after: mended.before.clone() };
    diff(&back)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::facts::Facts;

    proptest::proptest! {
        #[test]
        fn a_diff_is_as_similar_itself_writes_it(before in "([ab]{0,2}(\n|\r\n|\r)){0,200}[ab]?", after in "([ab]{0,2}(\n|\r\n|\r)){0,200}[ab]?") {
            let diff = diff(&Mended { name: "/n.conf".into(), before: before.clone().into(), after: after.clone().into() });
            let whole = similar::TextDiff::from_lines(&before, &after);
            let expected = whole.unified_diff().context_radius(3).header("a/n.conf", "b/n.conf").to_string();
            proptest::prop_assert_eq!(diff, expected);
        }
    }

    #[test]
    fn findings_become_a_diff_and_its_undo() {
        let text = "http {\n    server {\n        listen 80;\n        error_log off; # quiet\n        location /a {\n            alias /b/;\n        }\n    }\n}\n";
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/n.conf", text), "/n.conf", "/");
        let findings = crate::examine(&tree, crate::NEWEST, &Facts::default());
        let (mended, _) = mend(&tree, &findings);
        let after = String::from_utf8(mended[0].after.clone()).unwrap();
        assert!(
            after.contains("error_log /var/log/nginx/error.log crit; # quiet") && after.contains("location /a/ {"),
            "{after}"
        );
        let shown = diff(&mended[0]);
        assert!(
            shown.contains("--- a/n.conf\n+++ b/n.conf\n") && shown.contains("-        error_log off; # quiet\n"),
            "{shown}"
        );
        assert!(undo(&mended[0]).contains("+        error_log off; # quiet\n"));
    }
}
