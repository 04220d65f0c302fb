//! The changes between two configurations, and any mixture of both.
//!
//! Pure. Both trees have their includes in place, so a change in an included file is a change like any other, and it
//! keeps its place in that file. A mixture is one text without includes: with no change it means A, with all changes
//! it means B.

use std::collections::{BTreeSet, HashMap};

use weir_conf::{At, Statement, Tree};

use super::alike::{self, Aligned};
use super::place;
use super::{CauseSide, CausingLine};

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// Only B has the statement.
    Added,
    /// Only A has the statement.
    Removed,
    /// B has other words there.
    Changed,
    /// B has the statement at another place of the block.
    Moved,
}

/// A change from A to B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfChange {
    /// Its kind.
    pub kind: ChangeKind,
    /// The line that makes it: A's if B lacks the statement, otherwise B's.
    pub cause: CausingLine,
    /// The change that it is a part of: that of the added block around it. It has an effect only with that change.
    pub parent: Option<usize>,
}

/// All changes between two configurations.
#[derive(Debug)]
pub struct ConfChanges {
    /// The changes, in the order of the files. A part follows its whole.
    pub all: Vec<ConfChange>,
    merged: Vec<MergedStatement>,
}

/// A statement of A, of B, or of both.
#[derive(Debug)]
struct MergedStatement {
    /// The words in A, without the block. `None`: A lacks the statement.
    a: Option<Statement>,
    /// The words in B, without the block. `None`: B lacks the statement.
    b: Option<Statement>,
    /// The change from `a` to `b`. `None`: they are equal, or the change of a block around them decides.
    change: Option<usize>,
    /// The statements of the block. `None`: there is no block.
    block: Option<Vec<MergedStatement>>,
}

impl ConfChanges {
    /// The changes that make B of A.
    pub fn between(a: &Tree, b: &Tree) -> ConfChanges {
        let mut finder = Finder { a, b, all: Vec::new(), known: HashMap::new() };
        let merged = finder.block(&a.root, &b.root);
        ConfChanges { all: finder.all, merged }
    }

    /// The direct parts of a change; with `None` the changes that are no part of another one.
    pub fn parts(&self, parent: Option<usize>) -> Vec<usize> {
        let is_part = |(_, change): &(usize, &ConfChange)| change.parent == parent;
        self.all.iter().enumerate().filter(is_part).map(|(number, _)| number).collect()
    }

    /// These changes and all their parts.
    pub fn with_parts(&self, changes: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut found: BTreeSet<usize> = changes.into_iter().collect();
        for (number, change) in self.all.iter().enumerate() {
            if change.parent.is_some_and(|parent| found.contains(&parent)) {
                found.insert(number);
            }
        }
        found
    }

    /// The text of A with these changes.
    pub fn mixture(&self, made: &BTreeSet<usize>) -> Vec<u8> {
        weir_conf::lay_out(&mixed(&self.merged, made))
    }
}

fn mixed(merged: &[MergedStatement], made: &BTreeSet<usize>) -> Vec<Statement> {
    let of = |one: &MergedStatement| {
        let is_made = one.change.is_some_and(|change| made.contains(&change));
        let mut statement = if is_made { one.b.clone()? } else { one.a.clone()? };
        statement.block = one.block.as_ref().map(|block| mixed(block, made));
        Some(statement)
    };
    merged.iter().filter_map(of).collect()
}

struct Finder<'t> {
    a: &'t Tree,
    b: &'t Tree,
    all: Vec<ConfChange>,
    /// A file that is included twice has each change twice.
    known: HashMap<ChangeKey, usize>,
}

/// The kind, the places in A and in B, and the change around it.
type ChangeKey = (ChangeKind, Option<At>, Option<At>, Option<usize>);

impl Finder<'_> {
    fn block(&mut self, a: &[Statement], b: &[Statement]) -> Vec<MergedStatement> {
        let pairs = alike::align(a, b);
        let moves = moves(a, b, &pairs);
        let mut merged = Vec::new();
        for pair in pairs {
            merged.extend(match pair {
                Aligned::Both(at, other) => a.get(at).zip(b.get(other)).map(|(one, other)| self.both(one, other)),
                Aligned::A(at) => a.get(at).map(|one| {
                    let to = moves.iter().find(|(from, _)| *from == at).and_then(|(_, to)| b.get(*to));
                    let kind = if to.is_some() { ChangeKind::Moved } else { ChangeKind::Removed };
                    let change = self.change(kind, Some(one), to, None);
                    MergedStatement { a: Some(head(one)), b: None, change: Some(change), block: unchanged(one) }
                }),
                Aligned::B(at) => b.get(at).map(|one| {
                    match moves.iter().find(|(_, to)| *to == at).and_then(|(from, _)| a.get(*from)) {
                        Some(from) => {
                            let change = self.change(ChangeKind::Moved, Some(from), Some(one), None);
                            MergedStatement { a: None, b: Some(head(one)), change: Some(change), block: unchanged(one) }
                        }
                        None => self.added(one, None),
                    }
                }),
            });
        }
        merged
    }

    fn both(&mut self, a: &Statement, b: &Statement) -> MergedStatement {
        let is_same = alike::has_same_words(a, b);
        let change = (!is_same).then(|| self.change(ChangeKind::Changed, Some(a), Some(b), None));
        let block = a.block.as_ref().zip(b.block.as_ref()).map(|(a, b)| self.block(a, b));
        MergedStatement { a: Some(head(a)), b: Some(head(b)), change, block }
    }

    fn added(&mut self, statement: &Statement, parent: Option<usize>) -> MergedStatement {
        let change = self.change(ChangeKind::Added, None, Some(statement), parent);
        let inside = |block: &Vec<Statement>| block.iter().map(|one| self.added(one, Some(change))).collect();
        MergedStatement {
            a: None,
            b: Some(head(statement)),
            change: Some(change),
            block: statement.block.as_ref().map(inside),
        }
    }

    fn change(
        &mut self,
        kind: ChangeKind,
        a: Option<&Statement>,
        b: Option<&Statement>,
        parent: Option<usize>,
    ) -> usize {
        let key = (kind, a.map(|one| one.at), b.map(|one| one.at), parent);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let cause = match (a, b) {
            (before, Some(after)) => place::cause(CauseSide::B, self.b, after, before),
            (Some(before), None) => place::cause(CauseSide::A, self.a, before, None),
            (None, None) => CausingLine::default(),
        };
        self.all.push(ConfChange { kind, cause, parent });
        self.known.insert(key, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Statements that only changed their places: the index in A, and the index in B.
fn moves(a: &[Statement], b: &[Statement], pairs: &[Aligned]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let alone = |pair: &Aligned| match pair {
        Aligned::A(at) => Some(*at),
        _ => None,
    };
    for from in pairs.iter().filter_map(alone) {
        let fits = |pair: &Aligned| match pair {
            Aligned::B(to) if found.iter().all(|(_, taken)| taken != to) => {
                let (one, other) = (a.get(from)?, b.get(*to)?);
                alike::is_equal(one, other).then_some(*to)
            }
            _ => None,
        };
        if let Some(to) = pairs.iter().find_map(fits) {
            found.push((from, to));
        }
    }
    found
}

/// A statement without the content of its block.
fn head(statement: &Statement) -> Statement {
    Statement { block: statement.block.as_ref().map(|_| Vec::new()), ..shallow(statement) }
}

fn shallow(statement: &Statement) -> Statement {
    let Statement { name, args, at, end, .. } = statement;
    Statement { name: name.clone(), args: args.clone(), block: None, at: *at, end: *end }
}

/// The block of a statement that is there as a whole or not at all.
fn unchanged(statement: &Statement) -> Option<Vec<MergedStatement>> {
    let one =
        |inner: &Statement| MergedStatement { a: Some(head(inner)), b: None, change: None, block: unchanged(inner) };
    statement.block.as_ref().map(|block| block.iter().map(one).collect())
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;
    use proptest::prelude::*;
    use weir_conf::MemoryFiles;

    /// The tree of a text.
    pub fn tree(text: &str) -> Tree {
        tree_of(MemoryFiles::new().with("/f", text))
    }

    fn tree_of(files: MemoryFiles) -> Tree {
        let (tree, problems) = weir_conf::load(&files, "/f", "/", &|_| false);
        assert!(problems.is_empty(), "{problems:?}");
        tree
    }

    fn text(tree: &Tree) -> String {
        String::from_utf8(weir_conf::lay_out(&tree.root)).unwrap()
    }

    fn found(a: &str, b: &str) -> Vec<(ChangeKind, u32, String)> {
        let changes = ConfChanges::between(&tree(a), &tree(b));
        changes.all.into_iter().map(|one| (one.kind, one.cause.line, one.cause.text)).collect()
    }

    #[test]
    fn each_change_has_its_kind_and_its_line() {
        let a = "http {\n  gzip on;\n  gone 1;\n  server {\n    listen 80;\n  }\n}\n";
        let b = "http {\n  gzip off; # x\n  server {\n    listen\n      81;\n    new;\n  }\n}\n";
        let of = |kind, line, text: &str| (kind, line, text.to_owned());
        assert_eq!(
            found(a, b),
            [
                of(ChangeKind::Changed, 2, "gzip off;"),
                of(ChangeKind::Removed, 3, "gone 1;"),
                of(ChangeKind::Changed, 5, "listen 81;"),
                of(ChangeKind::Added, 6, "new;"),
            ]
        );
        let moved = found("l /a { x; } l /b { y; } z;", "l /b { y; } l /a { x; } z;");
        assert_eq!(moved, [of(ChangeKind::Moved, 1, "l /a {")]);
        assert_eq!(found(a, a), []);
        assert_eq!(found("a { } # x", "a {\n}"), []);
    }

    #[test]
    fn an_added_block_has_parts() {
        let changes = ConfChanges::between(&tree("a;"), &tree("a;\nl /x {\n  p 1;\n  i {\n    q 2;\n  }\n}"));
        let lines: Vec<_> = changes.all.iter().map(|one| (one.cause.line, one.parent)).collect();
        assert_eq!(lines, [(2, None), (3, Some(0)), (4, Some(0)), (5, Some(2))]);
        assert_eq!(changes.parts(None), [0]);
        assert_eq!(changes.parts(Some(0)), [1, 2]);
        assert_eq!(changes.with_parts([2]), BTreeSet::from([2, 3]));
        let mixture = |made: &[usize]| {
            let text = changes.mixture(&made.iter().copied().collect());
            String::from_utf8(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(mixture(&[]), "a;");
        assert_eq!(mixture(&[1]), "a;");
        assert_eq!(mixture(&[0, 2, 3]), "a; l /x { i { q 2; } }");
    }

    #[test]
    fn a_change_in_a_file_that_is_included_twice_is_one_change() {
        let main = "s { include i; } s { n 2; include i; }";
        let with = |text: &str| tree_of(MemoryFiles::new().with("/f", main).with("/i", text));
        let (a, b) = (with("x 1;\ny 1;\n"), with("x 1;\ny 2;\n"));
        let changes = ConfChanges::between(&a, &b);
        assert_eq!(changes.all.len(), 1);
        let cause = &changes.all[0].cause;
        assert_eq!((cause.file.as_str(), cause.line), ("/i", 2));
        assert_eq!(changes.mixture(&BTreeSet::from([0])), weir_conf::lay_out(&b.root));
    }

    fn statements() -> impl Strategy<Value = String> {
        let words = prop::sample::select(vec!["a 1", "a 2", "b x 1", "b x 2", "b y 1", "c", "\"q;\" '{'"]);
        let leaf = words.prop_map(|words| format!("{words};\n"));
        let heads = prop::sample::select(vec!["s", "l /a", "l /b"]);
        leaf.prop_recursive(3, 24, 5, move |inner| {
            (heads.clone(), prop::collection::vec(inner, 0..5))
                .prop_map(|(head, inner)| format!("{head} {{\n{}}}\n", inner.concat()))
        })
    }

    fn texts() -> impl Strategy<Value = String> {
        prop::collection::vec(statements(), 0..6).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn no_change_is_a_and_all_changes_are_b(a in texts(), b in texts(), some in any::<u64>()) {
            let (a, b) = (tree(&a), tree(&b));
            let changes = ConfChanges::between(&a, &b);
            let all: BTreeSet<usize> = (0..changes.all.len()).collect();
            let mixture = |made: &BTreeSet<usize>| String::from_utf8(changes.mixture(made)).unwrap();
            prop_assert_eq!(mixture(&BTreeSet::new()), text(&a));
            prop_assert_eq!(mixture(&all), text(&b));
            prop_assert_eq!(changes.with_parts(changes.parts(None)), all);
            // Any mixture can be read.
            let made = (0..changes.all.len()).filter(|number| some >> (number % 64) & 1 == 1).collect();
            tree(&mixture(&made));
            prop_assert_eq!(changes.all.is_empty(), text(&a) == text(&b));
        }
    }
}
