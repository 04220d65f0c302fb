//! The changes of a file as a unified diff.

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffableStr, group_diff_ops};
use std::fmt::Write;

use crate::mend::Mended;

/// Unchanged lines around each change in a diff.
const CONTEXT_LINES: usize = 3;

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

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_diff_is_as_similar_itself_writes_it(before in "([ab]{0,2}(\n|\r\n|\r)){0,200}[ab]?", after in "([ab]{0,2}(\n|\r\n|\r)){0,200}[ab]?") {
            let diff = diff(&Mended { name: "/n.conf".into(), before: before.clone().into(), after: after.clone().into() });
            let whole = similar::TextDiff::from_lines(&before, &after);
            let expected = whole.unified_diff().context_radius(3).header("a/n.conf", "b/n.conf").to_string();
            proptest::prop_assert_eq!(diff, expected);
        }
    }
}
