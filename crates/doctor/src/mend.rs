//! The changes that findings propose, as new files and as a diff.

use similar::TextDiff;
use weir_conf::Tree;
use weir_conf::edit::{self, Edit};

use crate::rule::Finding;

/// A file with changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// Its path.
    pub name: String,
    /// What it says now.
    pub before: Vec<u8>,
    /// What it would say.
    pub after: Vec<u8>,
}

/// Every file that the findings' changes touch, and how many findings were left out because their change touches bytes
/// that another one changes: once the first are written, looking again proposes them.
pub fn mend(tree: &Tree, findings: &[Finding]) -> (Vec<Mended>, usize) {
    let mut taken: Vec<&Edit> = Vec::new();
    let mut left_out = 0;
    for finding in findings.iter().filter(|finding| !finding.fix.is_empty()) {
        let is_new = finding.fix.iter().any(|edit| !taken.contains(&edit));
        // Two findings may ask for the same change; it is done once.
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

/// Whether two edits change the same bytes, or one inserts where the other changes.
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
    let name = mended.name.trim_start_matches('/');
    TextDiff::from_lines(before.as_ref(), after.as_ref())
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}

/// The diff that takes every change back: what is written beside a file before it is changed.
pub fn undo(mended: &Mended) -> String {
    let back = Mended { name: mended.name.clone(), before: mended.after.clone(), after: mended.before.clone() };
    diff(&back)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::facts::Facts;

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
