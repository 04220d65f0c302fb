//! The three ways to merge values: YAML's `<<`, lodash's `merge` of files, and `--overrides`.

use std::collections::HashSet;
use std::sync::Arc;

use super::node::{Member, Members, Node, NodeValue};
use super::source::Problem;
use crate::texts::script as texts;

/// How two lists are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lists {
    /// Element by element (files and environments): a shorter list changes only the first elements.
    ByIndex,
    /// The later list replaces the earlier one (`--overrides`).
    Replace,
}

/// Merges `over` into `base`: objects are merged, other values replaced. An undefined value changes nothing.
pub(crate) fn deep(base: &mut Node, over: &Node, lists: Lists) {
    match (&mut base.kind, &over.kind) {
        (_, NodeValue::Undefined) => {}
        (NodeValue::Map(base), NodeValue::Map(over)) => {
            for (key, member) in over {
                match base.get_mut(key) {
                    Some(mine) => deep(&mut mine.value, &member.value, lists),
                    None => {
                        base.insert(key.clone(), member.clone());
                    }
                }
            }
        }
        (NodeValue::List(base), NodeValue::List(over)) if lists == Lists::ByIndex => {
            for (index, node) in over.iter().enumerate() {
                match base.get_mut(index) {
                    Some(mine) => deep(mine, node, lists),
                    None => base.push(node.clone()),
                }
            }
        }
        _ => *base = over.clone(),
    }
}

/// YAML's `<<: *anchor` or `<<: [*a, *b]`: adds missing members, which later keys may replace.
pub(crate) fn into_members(members: &mut Members, merged: &mut HashSet<Arc<str>>, value: &Node) -> Result<(), Problem> {
    for source in value.one_or_more() {
        let Some(map) = source.map() else {
            return Err(Problem::new(source.at, texts::MERGE_SOURCE));
        };
        for (key, member) in map {
            if !members.contains_key(key) {
                members.insert(key.clone(), Member { at: member.at, value: member.value.clone() });
                merged.insert(key.clone());
            }
        }
    }
    Ok(())
}
