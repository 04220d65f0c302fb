//! The words that stand under each other in neighbouring statements.

use std::collections::HashMap;

use super::read::{Item, ItemKind};

/// The columns of the statements above and below each statement of the same block.
pub(super) struct Neighbours {
    /// For each item: its columns, and whether a word there is wide.
    columns: Vec<HashMap<i64, bool>>,
    /// For each item: the statement above and the one below.
    beside: Vec<[Option<usize>; 2]>,
}

impl Neighbours {
    pub(super) fn of(items: &[Item]) -> Neighbours {
        let columns: Vec<HashMap<i64, bool>> = items.iter().map(columns_of).collect();
        let mut beside = vec![[None, None]; items.len()];
        let mut above: Option<usize> = None;
        for (index, item) in items.iter().enumerate() {
            match item.kind {
                ItemKind::Comment => continue,
                ItemKind::Plain => {
                    if let Some(above) = above {
                        if let Some([_, below]) = beside.get_mut(above) {
                            *below = Some(index);
                        }
                        if let Some([before, _]) = beside.get_mut(index) {
                            *before = Some(above);
                        }
                    }
                    above = Some(index);
                }
                ItemKind::Open | ItemKind::Empty | ItemKind::Raw(_) | ItemKind::Close => above = None,
            }
        }
        Neighbours { columns, beside }
    }

    /// Whether a word of this item in this column is aligned with a word of a neighbour: one of the two must be wide, or
    /// they stand there by chance.
    pub(super) fn aligns(&self, item: usize, rel: i64, is_wide: bool) -> bool {
        let beside = self.beside.get(item).into_iter().flatten().flatten();
        let mut theirs = beside.filter_map(|other| self.columns.get(*other)?.get(&rel));
        theirs.any(|other_is_wide| is_wide || *other_is_wide)
    }
}

fn columns_of(item: &Item) -> HashMap<i64, bool> {
    let mut columns = HashMap::new();
    if item.kind != ItemKind::Plain {
        return columns;
    }
    let trailing = item.trailing.iter().filter(|_| item.is_one_line);
    for part in item.parts.iter().skip(1).chain(trailing).filter(|part| part.is_placed && part.rel > 0) {
        *columns.entry(part.rel).or_insert(false) |= part.is_wide;
    }
    columns
}
