//! The changes that findings propose, as new files.

use weir_conf::edit::{self, Edit};
use weir_conf::{MemoryFiles, Statement, Tree};

use crate::rule::Finding;

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

/// Every file that the findings' changes touch. A change is left out if another one touches the same bytes: see
/// [`together`].
pub fn mend(tree: &Tree, findings: &[Finding]) -> Vec<Mended> {
    let mut edits: Vec<&Edit> = Vec::new();
    for finding in together(tree, findings) {
        // Two findings may propose the same change. It is made once.
        let new: Vec<&Edit> = finding.fix.iter().filter(|edit| !edits.contains(edit)).collect();
        edits.extend(new);
    }
    let mut mended = Vec::new();
    for (index, source) in tree.files.iter().enumerate().filter(|(_, source)| !source.is_command_line) {
        let own: Vec<&Edit> = edits.iter().copied().filter(|edit| edit.file as usize == index).collect();
        if let Ok(after) = edit::apply(&source.bytes, &own)
            && !own.is_empty()
        {
            mended.push(Mended { name: source.name.clone(), before: source.bytes.clone(), after });
        }
    }
    mended
}

/// The findings whose changes can be made at the same time: none touches bytes that an earlier one touches, or writes a
/// line into a block that an earlier one writes there.
pub fn together<'f>(tree: &Tree, findings: &'f [Finding]) -> Vec<&'f Finding> {
    let mut taken: Vec<&Edit> = Vec::new();
    let mut made = Vec::new();
    for finding in findings.iter().filter(|finding| !finding.fix.is_empty()) {
        let clashes = |edit: &Edit| taken.iter().any(|other| *other != edit && do_clash(tree, edit, other));
        if !finding.fix.iter().any(clashes) {
            taken.extend(&finding.fix);
            made.push(finding);
        }
    }
    made
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

/// The files of a tree that have another content in a later tree of the same files.
pub fn changed(before: &Tree, after: &Tree) -> Vec<Mended> {
    let now = |name: &str| after.files.iter().find(|source| source.name == name && !source.is_command_line);
    let files = before.files.iter().filter(|source| !source.is_command_line);
    let changed = files.filter_map(|source| Some((source, now(&source.name)?)));
    let changed = changed.filter(|(source, now)| source.bytes != now.bytes).map(|(source, now)| Mended {
        name: source.name.clone(),
        before: source.bytes.clone(),
        after: now.bytes.clone(),
    });
    changed.collect()
}

/// Whether two edits change the same bytes, one edit inserts inside the other's range, or both insert the same line into
/// one block.
fn do_clash(tree: &Tree, one: &Edit, other: &Edit) -> bool {
    let inserts = |edit: &Edit| edit.span.start == edit.span.end;
    if one.file != other.file {
        return false;
    }
    if inserts(one) && inserts(other) {
        return lines(one).any(|line| lines(other).any(|same| same == line))
            && innermost(&tree.root, one) == innermost(&tree.root, other);
    }
    one.span.start <= other.span.end && other.span.start <= one.span.end
}

/// The lines that an edit writes.
fn lines(edit: &Edit) -> impl Iterator<Item = &[u8]> {
    edit.with.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

/// Where the innermost block around an edit begins; `None` outside of all blocks of its file.
fn innermost(statements: &[Statement], edit: &Edit) -> Option<u32> {
    let blocks = statements.iter().filter(|statement| statement.is_block());
    blocks.rev().find_map(|block| {
        let is_around = block.at.file == edit.file
            && block.at.span.end <= edit.span.start
            && block.end.file == edit.file
            && edit.span.start <= block.end.span.start;
        innermost(block.children(), edit).or(is_around.then_some(block.at.span.start))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::facts::Facts;

    #[test]
    fn findings_become_a_diff() {
        let text = "http {\n    server {\n        listen 80;\n        error_log off; # quiet\n        location /a {\n            alias /b/;\n        }\n    }\n}\n";
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/n.conf", text), "/n.conf", "/");
        let findings = crate::examine(&tree, crate::NEWEST, &Facts::default());
        let mended = mend(&tree, &findings);
        let after = String::from_utf8(mended[0].after.clone()).unwrap();
        assert!(
            after.contains("error_log /var/log/nginx/error.log crit; # quiet") && after.contains("location /a/ {"),
            "{after}"
        );
        let shown = crate::diff::diff(&mended[0]);
        assert!(
            shown.contains("--- a/n.conf\n+++ b/n.conf\n") && shown.contains("-        error_log off; # quiet\n"),
            "{shown}"
        );
    }
}
