//! Which statements of two blocks belong together.
//!
//! The order of a block matters, so pairs never cross. A statement that changed its place has no pair here.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use weir_conf::Statement;

/// A place in the merged order of two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aligned {
    /// These two belong together, by their indices in A's block and in B's block.
    Both(usize, usize),
    /// Only A has this statement.
    A(usize),
    /// Only B has this statement.
    B(usize),
}

/// Most pairs of statements that are compared with each other. In larger blocks only the equal beginning and the equal
/// end have pairs.
pub const PAIRS_MAX: usize = 4_000_000;

/// The score of equal statements. Scores of pairs that belong together are above zero.
const EQUAL: u32 = 1000;
/// The least likeness, in thousandths, of two blocks with different arguments that belong together.
const LIKENESS_MIN: u32 = 500;

/// The statements of two blocks in one order.
pub fn align(a: &[Statement], b: &[Statement]) -> Vec<Aligned> {
    let (a, b): (Vec<StatementPrint>, Vec<StatementPrint>) =
        (a.iter().map(StatementPrint::of).collect(), b.iter().map(StatementPrint::of).collect());
    let same = |(one, other): &(&StatementPrint, &StatementPrint)| one.whole == other.whole;
    let head = a.iter().zip(&b).take_while(same).count();
    let (a_rest, b_rest) = (a.get(head..).unwrap_or_default(), b.get(head..).unwrap_or_default());
    let tail = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(same).count();
    let a_middle = a_rest.get(..a_rest.len() - tail).unwrap_or_default();
    let b_middle = b_rest.get(..b_rest.len() - tail).unwrap_or_default();
    let mut pairs: Vec<Aligned> = (0..head).map(|at| Aligned::Both(at, at)).collect();
    pairs.extend(middle(a_middle, b_middle).into_iter().map(|pair| match pair {
        Aligned::Both(one, other) => Aligned::Both(head + one, head + other),
        Aligned::A(at) => Aligned::A(head + at),
        Aligned::B(at) => Aligned::B(head + at),
    }));
    pairs.extend((0..tail).rev().map(|from_end| Aligned::Both(a.len() - 1 - from_end, b.len() - 1 - from_end)));
    pairs
}

/// True if both have the same words, and blocks with the same statements.
pub fn is_equal(one: &Statement, other: &Statement) -> bool {
    let block = |statement: &Statement| statement.block.as_ref().map(Vec::len);
    has_same_words(one, other)
        && block(one) == block(other)
        && one.children().iter().zip(other.children()).all(|(one, other)| is_equal(one, other))
}

/// True if both have the same words before the `;` or `{`.
pub fn has_same_words(one: &Statement, other: &Statement) -> bool {
    one.words().map(|word| word.bytes()).eq(other.words().map(|word| word.bytes()))
}

/// The hashes by which two statements are compared.
struct StatementPrint<'a> {
    statement: &'a Statement,
    /// A hash of the words.
    own: u64,
    /// A hash of the words and of the block.
    whole: u64,
    /// The hashes of the words of all statements inside, sorted.
    inside: Vec<u64>,
}

impl<'a> StatementPrint<'a> {
    fn of(statement: &'a Statement) -> StatementPrint<'a> {
        let mut hasher = DefaultHasher::new();
        statement.words().for_each(|word| word.bytes().hash(&mut hasher));
        statement.is_block().hash(&mut hasher);
        let own = hasher.finish();
        let mut inside = Vec::new();
        for child in statement.children() {
            let child = StatementPrint::of(child);
            child.whole.hash(&mut hasher);
            inside.push(child.own);
            inside.extend(child.inside);
        }
        inside.sort_unstable();
        StatementPrint { statement, own, whole: hasher.finish(), inside }
    }

    /// How well two statements belong together; 0: not at all.
    fn score(&self, other: &StatementPrint) -> u32 {
        let (one, two) = (self.statement, other.statement);
        if self.whole == other.whole {
            return EQUAL;
        }
        if one.name.bytes() != two.name.bytes() || one.is_block() != two.is_block() {
            return 0;
        }
        if one.is_block() {
            let likeness = self.likeness(other);
            return match self.own == other.own {
                true => 500 + likeness * 4 / 10,
                false if likeness >= LIKENESS_MIN => likeness * 7 / 10,
                false => 0,
            };
        }
        let first = |statement: &Statement| statement.arg(0).map(|word| word.bytes().to_vec());
        match (one.args.len(), two.args.len()) {
            // `proxy_set_header NAME VALUE`: the first argument often is a name.
            (2.., 2..) if first(one) == first(two) => 600,
            (1, 1) => 400,
            _ => 200,
        }
    }

    /// The share of statements inside that both have, in thousandths.
    fn likeness(&self, other: &StatementPrint) -> u32 {
        let (mut ours, mut theirs) = (self.inside.iter().peekable(), other.inside.iter().peekable());
        let mut shared = 0;
        while let (Some(one), Some(two)) = (ours.peek(), theirs.peek()) {
            match one.cmp(two) {
                std::cmp::Ordering::Less => _ = ours.next(),
                std::cmp::Ordering::Greater => _ = theirs.next(),
                std::cmp::Ordering::Equal => {
                    shared += 1;
                    ours.next();
                    theirs.next();
                }
            }
        }
        let all = self.inside.len() + other.inside.len();
        u32::try_from((2000_usize * shared).checked_div(all).unwrap_or(0)).unwrap_or(0)
    }
}

/// The best pairs of two lists, by the sum of their scores.
fn middle(a: &[StatementPrint], b: &[StatementPrint]) -> Vec<Aligned> {
    let width = b.len() + 1;
    if a.is_empty() || b.is_empty() || a.len().saturating_mul(b.len()) > PAIRS_MAX {
        return (0..a.len()).map(Aligned::A).chain((0..b.len()).map(Aligned::B)).collect();
    }
    // The best sum for the statements from `i` and from `j` on.
    let mut best = vec![0_u32; (a.len() + 1) * width];
    let at = |best: &[u32], i: usize, j: usize| best.get(i * width + j).copied().unwrap_or(0);
    for (i, one) in a.iter().enumerate().rev() {
        for (j, other) in b.iter().enumerate().rev() {
            let score = one.score(other);
            let paired = if score > 0 { score + at(&best, i + 1, j + 1) } else { 0 };
            let value = paired.max(at(&best, i + 1, j)).max(at(&best, i, j + 1));
            if let Some(cell) = best.get_mut(i * width + j) {
                *cell = value;
            }
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while let (Some(one), Some(other)) = (a.get(i), b.get(j)) {
        let (here, score) = (at(&best, i, j), one.score(other));
        if score > 0 && here == score + at(&best, i + 1, j + 1) {
            pairs.push(Aligned::Both(i, j));
            (i, j) = (i + 1, j + 1);
        } else if here == at(&best, i + 1, j) {
            pairs.push(Aligned::A(i));
            i += 1;
        } else {
            pairs.push(Aligned::B(j));
            j += 1;
        }
    }
    pairs.extend((i..a.len()).map(Aligned::A));
    pairs.extend((j..b.len()).map(Aligned::B));
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::edits::tests::tree;

    fn aligned(a: &str, b: &str) -> Vec<Aligned> {
        align(&tree(a).root, &tree(b).root)
    }

    #[test]
    fn equal_statements_are_pairs_around_an_added_one() {
        let found = aligned("a; b; c;", "a; x; b; c;");
        assert_eq!(found, [Aligned::Both(0, 0), Aligned::B(1), Aligned::Both(1, 2), Aligned::Both(2, 3)]);
    }

    #[test]
    fn a_name_in_the_first_argument_decides() {
        let found = aligned("h A 1; h B 2;", "h B 3; h C 4;");
        assert_eq!(found, [Aligned::A(0), Aligned::Both(1, 0), Aligned::B(1)]);
    }

    #[test]
    fn a_block_with_another_argument_is_the_same_if_most_statements_are() {
        let found = aligned("l /a { x 1; y 2; z 3; }", "l /b { x 1; y 2; z 4; }");
        assert_eq!(found, [Aligned::Both(0, 0)]);
        let found = aligned("l /a { x 1; y 2; z 3; }", "l /b { x 5; y 6; z 4; }");
        assert_eq!(found, [Aligned::A(0), Aligned::B(0)]);
    }

    #[test]
    fn the_alikest_of_equal_heads_are_pairs() {
        let found = aligned("s { n a; p 1; }", "s { n b; p 2; } s { n a; p 3; }");
        assert_eq!(found, [Aligned::B(0), Aligned::Both(0, 1)]);
    }

    #[test]
    fn a_block_with_too_many_pairs_has_only_its_equal_ends() {
        let many = |name: &str| (0..2100).map(|number| format!("{name}{number};")).collect::<String>();
        let found = aligned(&format!("a; {} z;", many("x")), &format!("a; {} z;", many("y")));
        let both = found.iter().filter(|pair| matches!(pair, Aligned::Both(..))).count();
        assert_eq!((both, found.len()), (2, 4202));
    }
}
