//! Which lines make a difference: by trials of configurations.
//!
//! Pure but for the trial, which the caller makes: it starts the servers and asks the request.

use std::collections::BTreeSet;

use super::CausingLine;
use super::edits::{ChangeKind, ConfChanges};
use super::smallest::{DeltaSearch, Trial};
use super::statements::ConfStatements;

/// Tries a configuration. `None` ends the search: the time is over.
pub type Try<'t> = &'t mut dyn FnMut(&[u8]) -> Option<Trial>;

/// The lines that make a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CausingLines {
    /// The lines. They are a smallest set: without one of them there is no difference. The innermost is first.
    pub causes: Vec<CausingLine>,
    /// The number of trials.
    pub trials: usize,
    /// No line is too many. False if the trials or the time were not enough.
    pub is_minimal: bool,
}

/// The changes from A's file to B's file that the difference needs. No change: B's program makes the difference with
/// A's file too.
pub fn changes(changes: &ConfChanges, trials_max: usize, test: Try) -> CausingLines {
    let whole = changes.parts(None);
    let mut made = changes.with_parts(whole.iter().copied());
    let mut lines = CausingLines { is_minimal: true, ..CausingLines::default() };
    let mut kept: Vec<usize> = Vec::new();
    // An added block is one change at first. If it is needed, its parts are searched too.
    let mut open = vec![whole];
    while let Some(parts) = open.pop() {
        let all = changes.with_parts(parts.iter().copied());
        let others: BTreeSet<usize> = made.difference(&all).copied().collect();
        let with = |items: &[usize]| {
            let chosen = items.iter().filter_map(|item| parts.get(*item).copied());
            others.union(&changes.with_parts(chosen)).copied().collect::<BTreeSet<usize>>()
        };
        let mut search = DeltaSearch::new(parts.len(), trials_max.saturating_sub(lines.trials));
        search.run(|items| test(&changes.mixture(&with(items))));
        let found = search.result();
        lines.trials += found.trials;
        lines.is_minimal &= found.is_minimal;
        made = with(&found.kept);
        for change in found.kept.iter().filter_map(|item| parts.get(*item).copied()) {
            kept.push(change);
            let inside = changes.parts(Some(change));
            let is_added = changes.all.get(change).is_some_and(|change| change.kind == ChangeKind::Added);
            if is_added && !inside.is_empty() {
                open.push(inside);
            }
        }
    }
    let depth = |change: usize| {
        std::iter::successors(Some(change), |change| changes.all.get(*change).and_then(|change| change.parent)).count()
    };
    kept.sort_by_key(|change| (std::cmp::Reverse(depth(*change)), *change));
    lines.causes = kept.into_iter().filter_map(|change| Some(changes.all.get(change)?.cause.clone())).collect();
    lines
}

/// The statements of one file without which two programs do not differ. No statement: the programs differ with any
/// file that answers the request.
pub fn statements(parts: &ConfStatements, trials_max: usize, test: Try) -> CausingLines {
    let mut left_out = BTreeSet::new();
    let mut needed = Vec::new();
    let mut lines = CausingLines { is_minimal: true, ..CausingLines::default() };
    let depth_max = parts.all.iter().map(|part| part.depth).max().unwrap_or(0);
    for depth in 0..=depth_max {
        let level = parts.level(depth, &left_out);
        let without = |items: &[usize]| {
            let chosen: BTreeSet<usize> = items.iter().filter_map(|item| level.get(*item).copied()).collect();
            let out = level.iter().copied().filter(|number| !chosen.contains(number));
            left_out.iter().copied().chain(out).collect::<BTreeSet<usize>>()
        };
        let mut search = DeltaSearch::new(level.len(), trials_max.saturating_sub(lines.trials));
        search.run(|items| test(&parts.text(&without(items))));
        let found = search.result();
        lines.trials += found.trials;
        lines.is_minimal &= found.is_minimal;
        // Where the programs refuse the rest, nothing is known about the difference.
        let ends_it = found.kept.iter().filter(|item| search.without(**item) == Some(Trial::Silent));
        needed.extend(ends_it.filter_map(|item| level.get(*item).copied()));
        left_out = without(&found.kept);
    }
    needed.retain(|number| parts.all.get(*number).is_some_and(|part| !part.is_listen));
    // A block around a needed statement says nothing more.
    let last = |number: &usize| {
        parts
            .all
            .get(*number)
            .is_some_and(|part| !part.is_block || part.depth >= 2 && parts.is_empty(*number, &left_out))
    };
    needed.retain(last);
    needed.sort_by_key(|number| (std::cmp::Reverse(parts.all.get(*number).map(|part| part.depth)), *number));
    lines.causes = needed.into_iter().filter_map(|number| Some(parts.all.get(number)?.cause.clone())).collect();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::edits::tests::tree;

    /// Shows the difference if the text has all of these words; refuses texts without `events`.
    fn has(words: &'static [&'static str]) -> impl FnMut(&[u8]) -> Option<Trial> {
        move |text| {
            let text = String::from_utf8_lossy(text).into_owned();
            Some(match (text.contains("events"), words.iter().all(|word| text.contains(word))) {
                (false, _) => Trial::Unresolved,
                (true, true) => Trial::Shows,
                (true, false) => Trial::Silent,
            })
        }
    }

    fn shown(lines: &CausingLines) -> Vec<(u32, &str)> {
        lines.causes.iter().map(|cause| (cause.line, cause.text.as_str())).collect()
    }

    const A: &str = "events { }\nhttp {\n  gzip on;\n  x 1;\n  server {\n    listen 80;\n    y 1;\n  }\n}\n";

    #[test]
    fn the_changed_line_is_found() {
        let b = tree(&A.replace("x 1", "x 2").replace("gzip on", "gzip off").replace("y 1", "y 2"));
        let found = changes(&ConfChanges::between(&tree(A), &b), 100, &mut has(&["x 2"]));
        assert_eq!((shown(&found), found.is_minimal), (vec![(4, "x 2;")], true));
        let found = changes(&ConfChanges::between(&tree(A), &b), 100, &mut has(&["x 2", "y 2"]));
        assert_eq!(shown(&found), [(4, "x 2;"), (7, "y 2;")]);
    }

    #[test]
    fn the_line_in_an_added_block_is_found_before_its_head() {
        let b = A.replace("    y 1;\n", "    y 1;\n    location /a {\n      p 1;\n      q 1;\n    }\n");
        let found = changes(&ConfChanges::between(&tree(A), &tree(&b)), 100, &mut has(&["location /a", "q 1"]));
        assert_eq!(shown(&found), [(10, "q 1;"), (8, "location /a {")]);
        let found = changes(&ConfChanges::between(&tree(A), &tree(&b)), 100, &mut has(&["location /a"]));
        assert_eq!(shown(&found), [(8, "location /a {")]);
    }

    #[test]
    fn a_removed_line_is_a_s() {
        let b = tree(&A.replace("  gzip on;\n", ""));
        let mut test = |text: &[u8]| {
            let is_there = String::from_utf8_lossy(text).contains("gzip on");
            Some(if is_there { Trial::Silent } else { Trial::Shows })
        };
        let found = changes(&ConfChanges::between(&tree(A), &b), 100, &mut test);
        assert_eq!(shown(&found), [(3, "gzip on;")]);
        assert_eq!(found.causes.first().map(|cause| cause.side), Some(crate::cause::CauseSide::A));
    }

    #[test]
    fn no_line_makes_a_difference_of_the_programs() {
        let b = tree(&A.replace("x 1", "x 2"));
        let found = changes(&ConfChanges::between(&tree(A), &b), 100, &mut has(&[]));
        assert_eq!((shown(&found), found.is_minimal, found.trials), (vec![], true, 1));
    }

    #[test]
    fn the_needed_statements_of_one_file_are_found() {
        let tree = tree(A);
        let parts = ConfStatements::of(&tree);
        let found = statements(&parts, 200, &mut has(&["http", "server", "listen", "y 1"]));
        assert_eq!((shown(&found), found.is_minimal), (vec![(7, "y 1;")], true));
        let found = statements(&parts, 200, &mut has(&["http", "server", "listen", "y 1", "gzip on"]));
        assert_eq!(shown(&found), [(7, "y 1;"), (3, "gzip on;")]);
        let found = statements(&parts, 200, &mut has(&["http", "server", "listen"]));
        assert_eq!((shown(&found), found.is_minimal), (vec![], true));
    }

    #[test]
    fn a_bound_and_the_end_of_time_are_said() {
        let b = tree(&A.replace("x 1", "x 2").replace("gzip on", "gzip off").replace("y 1", "y 2"));
        let between = ConfChanges::between(&tree(A), &b);
        let found = changes(&between, 1, &mut has(&["x 2"]));
        assert_eq!((found.trials, found.is_minimal, found.causes.len()), (1, false, 3));
        let found = changes(&between, 100, &mut |_| None);
        assert!(!found.is_minimal && found.causes.len() == 3);
    }
}
