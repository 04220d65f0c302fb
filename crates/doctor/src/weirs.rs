//! weir's own edge: its directives, and its reader of whole files. The program gives both once: this crate knows no
//! family.

use std::sync::OnceLock;

use weir_conf::{Problem, Tree};
use weir_http::read::known::Known;

/// Reads a tree as `weir edge -t` does, without a look at names of hosts, and returns its grave problems.
pub type ReadTree = fn(&Tree) -> Vec<Problem>;

struct Edge {
    known: &'static Known,
    read: ReadTree,
}

static EDGE: OnceLock<Edge> = OnceLock::new();

/// Gives the directives and the reader of weir's edge. Only the first call counts; before it, the edge has none.
pub fn give(known: &'static Known, read: ReadTree) {
    EDGE.get_or_init(|| Edge { known, read });
}

fn edge() -> &'static Edge {
    #[cfg(test)]
    give(&weir_edge::family::ALL.known, weir_edge::load::refused);
    let none = || Known::new(std::iter::empty(), std::iter::empty(), std::iter::empty());
    EDGE.get_or_init(|| Edge { known: Box::leak(Box::new(none())), read: |_| Vec::new() })
}

/// The directives that weir's edge has.
pub fn known() -> &'static Known {
    edge().known
}

/// The problems for which weir's edge refuses this tree.
pub fn refused(tree: &Tree) -> Vec<Problem> {
    (edge().read)(tree)
}
