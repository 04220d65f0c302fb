//! A configuration with some of its statements left out.

use std::collections::BTreeSet;

use weir_conf::{Statement, Tree};

use super::{CauseSide, CausingLine, place};

/// A statement of a configuration.
#[derive(Debug)]
pub struct ConfStatement {
    /// Its line in A's file.
    pub cause: CausingLine,
    /// The number of blocks around it.
    pub depth: usize,
    /// It has a block.
    pub is_block: bool,
    /// It is a `listen`, without which nobody asks.
    pub is_listen: bool,
    /// The statement around it.
    parent: Option<usize>,
}

/// The statements of a configuration, numbered in the order of the text.
#[derive(Debug)]
pub struct ConfStatements<'t> {
    /// All statements. A block is followed by its content.
    pub all: Vec<ConfStatement>,
    tree: &'t Tree,
}

impl<'t> ConfStatements<'t> {
    /// The statements of A's tree.
    pub fn of(tree: &'t Tree) -> ConfStatements<'t> {
        let mut all = Vec::new();
        list(tree, &tree.root, None, &mut all);
        ConfStatements { all, tree }
    }

    /// The statements in this number of blocks that are neither left out themselves nor with a block around them.
    pub fn level(&self, depth: usize, left_out: &BTreeSet<usize>) -> Vec<usize> {
        let all_out = self.inside(left_out);
        let is_there = |(number, part): &(usize, &ConfStatement)| part.depth == depth && !all_out.contains(number);
        self.all.iter().enumerate().filter(is_there).map(|(number, _)| number).collect()
    }

    /// The statement has a block in which nothing is left.
    pub fn is_empty(&self, number: usize, left_out: &BTreeSet<usize>) -> bool {
        let is_left =
            |(inner, part): (usize, &ConfStatement)| part.parent == Some(number) && !left_out.contains(&inner);
        !self.all.iter().enumerate().any(is_left)
    }

    /// The text without these statements and their blocks.
    pub fn text(&self, left_out: &BTreeSet<usize>) -> Vec<u8> {
        let mut number = 0;
        weir_conf::lay_out(&kept(&self.tree.root, left_out, &mut number))
    }

    fn inside(&self, left_out: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut all = left_out.clone();
        for (number, part) in self.all.iter().enumerate() {
            if part.parent.is_some_and(|parent| all.contains(&parent)) {
                all.insert(number);
            }
        }
        all
    }
}

fn list(tree: &Tree, statements: &[Statement], parent: Option<(usize, usize)>, all: &mut Vec<ConfStatement>) {
    let depth = parent.map_or(0, |(_, depth)| depth + 1);
    for statement in statements {
        let number = all.len();
        all.push(ConfStatement {
            cause: place::cause(CauseSide::A, tree, statement, None),
            depth,
            is_block: statement.is_block(),
            is_listen: statement.name == "listen",
            parent: parent.map(|(number, _)| number),
        });
        list(tree, statement.children(), Some((number, depth)), all);
    }
}

/// The statements that are not left out. `number` counts all of them, in the order of [`list`].
fn kept(statements: &[Statement], left_out: &BTreeSet<usize>, number: &mut usize) -> Vec<Statement> {
    let mut found = Vec::new();
    for statement in statements {
        let is_out = left_out.contains(number);
        *number += 1;
        let block = statement.block.as_ref().map(|block| kept(block, left_out, number));
        if !is_out {
            let Statement { name, args, at, end, .. } = statement;
            found.push(Statement { name: name.clone(), args: args.clone(), block, at: *at, end: *end });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cause::edits::tests::tree;

    #[test]
    fn statements_are_left_out_with_their_blocks() {
        let tree = tree("a; b { c; d { e; } } f;");
        let parts = ConfStatements::of(&tree);
        let text = |out: &[usize]| {
            let text = String::from_utf8(parts.text(&out.iter().copied().collect())).unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text(&[]), "a; b { c; d { e; } } f;");
        assert_eq!(text(&[2, 4]), "a; b { d { } } f;");
        assert_eq!(text(&[1]), "a; f;");
        assert_eq!(parts.level(1, &BTreeSet::new()), [2, 3]);
        assert_eq!(parts.level(1, &BTreeSet::from([1])), [0_usize; 0]);
        assert_eq!(parts.level(2, &BTreeSet::from([1])), [0_usize; 0]);
        assert!(parts.is_empty(3, &BTreeSet::from([4])) && !parts.is_empty(1, &BTreeSet::from([4])));
    }
}
