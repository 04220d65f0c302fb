//! `doctor`: finds problems in a configuration, its host and its counters, without any load.
//!
//! ```text
//!  Tree ── View ──┐
//!  Version ───────┼─► rules/* (one file a rule, pure) ─► Findings ─► text, JSON, a diff that mends them
//!  Facts (host) ──┘
//! ```
//! This crate opens no sockets, starts no processes and writes no files. The caller passes in the data; only `guard` reads
//! files, for callers whose configurations strangers wrote.
//!
//! Invariants: a rule is a pure function of a [`rule::Case`]; every rule has a case in which it fires and one in
//! which it is silent, and both are tested; no content of a configuration can make a rule panic.
//!
//! - `rules/`: a rule is a file: its row (name, level, sentences in English and Korean, source), its check, one case
//!   that triggers the rule and one that does not
//! - `view`, `reach`, `possible`: statements with their surroundings; the possible values of a variable, followed to
//!   the client
//! - `regex/`: PCRE's syntax as a tree: which bytes a group may match, ambiguity, texts that get past a pattern
//! - `alt_svc`: the ports of HTTP/3 that a configuration tells clients
//! - `target`, `version`, `defaults`, `explain`, `compare`: which program reads the file and with which defaults, by
//!   version; values with their origin; changes that have no effect, for the lab before an A/B
//! - `facts`, `limits/`, `error_log/`: host, processes, load and `stub_status`; the source of a limit of open files;
//!   the end of an error log
//! - `symptom`, `asked`: `weir doctor 502`
//! - `mend`, `diff`, `lines`, `report`, `reference`: proposed edits as files; diffs; text and JSON; the page of all
//!   rules
//! - `guard`: the files of a configuration that may be read: regular ones in named folders, within bounds
//! - `fixes`, `ways`: the fixes that harm nothing: each is tried on the whole tree, and dropped if it brings a finding
//!   or closes the way of a WebSocket, a stream, a cached answer or HTTP/2
#![forbid(unsafe_code)]

pub mod alt_svc;
pub mod asked;
pub mod caches;
pub mod compare;
pub mod defaults;
pub mod diff;
pub mod dump;
pub mod error_log;
pub mod explain;
pub mod facts;
pub mod fixes;
pub mod guard;
pub mod limits;
pub mod lines;
pub mod mend;
pub mod possible;
pub mod reach;
pub mod reference;
pub mod regex;
pub mod report;
pub mod rule;
pub mod rules;
pub mod symptom;
pub mod target;
pub mod upgrade;
pub mod version;
pub mod view;
pub mod ways;
pub mod weirs;

pub use compare::{Change, changes, compare, without_effect};
pub use facts::Facts;
pub use rule::{Finding, FindingLevel};
pub use target::Target;
pub use version::{Build, NEWEST, Version};
pub use weir_conf::edit;

use rule::{Case, Findings};
use view::View;
use weir_conf::{Problem, Tree};

/// All findings for the program that reads the file, the most important first: sorted by level, then by group, then
/// by place.
pub fn examine(tree: &Tree, target: impl Into<Target>, facts: &Facts) -> Vec<Finding> {
    examine_read(tree, target, facts, None)
}

/// The same for a caller that may have read the tree with weir's edge already: `refused` are the problems for which the edge
/// refuses it.
pub fn examine_read(
    tree: &Tree,
    target: impl Into<Target>,
    facts: &Facts,
    refused: Option<&[Problem]>,
) -> Vec<Finding> {
    let target = target.into();
    let view = View::new(tree);
    let case = Case { view: &view, version: target.version(), target, facts, refused };
    let mut findings: Vec<(rule::Group, Finding)> = Vec::new();
    let is_asked = |rule: &&&rule::Rule| target != Target::Weir || !rules::NGINXS_ALONE.contains(&rule.id);
    for rule in rules::RULES.iter().filter(is_asked) {
        let mut found = Findings::new(rule);
        (rule.check)(&case, &mut found);
        findings.extend(found.findings().into_iter().map(|finding| (rule.group, finding)));
    }
    // If a line also does harm, do not report that it repeats a default.
    let harmed: Vec<_> = findings
        .iter()
        .filter(|(_, finding)| finding.level < FindingLevel::Note)
        .filter_map(|(_, finding)| finding.at)
        .collect();
    findings
        .retain(|(_, finding)| finding.rule != "equals_default" || finding.at.is_none_or(|at| !harmed.contains(&at)));
    let told: Vec<_> = findings.iter().filter_map(|(_, finding)| rules::told(finding)).collect();
    findings.retain(|(_, finding)| !rules::is_told(finding, &told));
    findings.sort_by_key(|(group, finding)| {
        let place = finding.at.map(|at| (at.file, at.line, at.span.start));
        (finding.level, *group, place)
    });
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// Number of files that a worker needs for its connections. `None` if the configuration does not say.
pub fn files_needed(tree: &Tree, target: impl Into<Target>, facts: &Facts) -> Option<u64> {
    let target = target.into();
    let view = View::new(tree);
    rules::files_needed(&Case { view: &view, version: target.version(), target, facts, refused: None })
}

/// Loads the configuration from these files. Blocks in other languages stay raw text.
pub fn load(files: &dyn weir_conf::Files, main: &str, prefix: &str) -> (Tree, Vec<Problem>) {
    weir_conf::load(files, main, prefix, &|name| name.ends_with("_by_lua_block"))
}
