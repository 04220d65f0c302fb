//! `doctor`: what a configuration, its host and its counters already say, before anybody loads anything.
//!
//! ```text
//!  Tree ── View ──┐
//!  Version ───────┼─► rules/* (one file a rule, pure) ─► Findings ─► text, JSON, a diff that mends them
//!  Facts (host) ──┘
//! ```
//! Not here: sockets, processes that are started, files that are written; whoever calls hands in what was read.
//!
//! Invariants: a rule is a pure function of a [`rule::Case`]; every rule has a case in which it speaks and one in which
//! it is silent, and both are tested; nothing a configuration holds can panic a rule.
#![forbid(unsafe_code)]

pub mod compare;
pub mod defaults;
pub mod dump;
pub mod explain;
pub mod facts;
pub mod mend;
pub mod reach;
pub mod reference;
pub mod regex;
pub mod report;
pub mod rule;
pub mod rules;
pub mod target;
pub mod version;
pub mod view;

pub use compare::{Change, changes, compare, without_effect};
pub use facts::Facts;
pub use rule::{Finding, Language, Level, Said};
pub use target::Target;
pub use version::{Build, NEWEST, Version};
pub use weir_conf::edit;

use rule::{Case, Found};
use view::View;
use weir_conf::Tree;

/// Everything the rules find where this program reads the file, the most important first: by level, then by what it is
/// about, then by place.
pub fn examine(tree: &Tree, target: impl Into<Target>, facts: &Facts) -> Vec<Finding> {
    let target = target.into();
    let view = View::new(tree);
    let case = Case { view: &view, version: target.version(), target, facts };
    let mut findings: Vec<(rule::Group, Finding)> = Vec::new();
    let is_asked = |rule: &&&rule::Rule| target != Target::Weir || !rules::NGINXS_ALONE.contains(&rule.id);
    for rule in rules::RULES.iter().filter(is_asked) {
        let mut found = Found::new(rule);
        (rule.check)(&case, &mut found);
        findings.extend(found.findings().into_iter().map(|finding| (rule.group, finding)));
    }
    // That a line says nothing new is no news where it also does harm.
    let harmed: Vec<_> = findings
        .iter()
        .filter(|(_, finding)| finding.level < Level::Note)
        .filter_map(|(_, finding)| finding.at)
        .collect();
    findings
        .retain(|(_, finding)| finding.rule != "equals_default" || finding.at.is_none_or(|at| !harmed.contains(&at)));
    findings.sort_by_key(|(group, finding)| {
        let place = finding.at.map(|at| (at.file, at.line, at.span.start));
        (finding.level, *group, place)
    });
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// The configuration of these files, raw texts of other languages left alone.
pub fn load(files: &dyn weir_conf::Files, main: &str, prefix: &str) -> (Tree, Vec<weir_conf::Problem>) {
    weir_conf::load(files, main, prefix, &|name| name.ends_with("_by_lua_block"))
}
