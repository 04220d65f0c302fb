//! Two configurations: what differs, and what of that cannot make a difference. Asked before an A/B, so that nobody
//! measures a change that is none.

use std::collections::BTreeMap;

use weir_conf::{At, Tree};

use crate::defaults;
use crate::facts::Facts;
use crate::rule::{Finding, Level};
use crate::version::Version;
use crate::view::{Spot, View};

/// The name of what is found: see [`compare`].
pub const RULE: &str = "no_op_change";

/// Rules whose findings say that a statement has no effect.
const IDLE_RULES: [&str; 3] = ["use_epoll", "multi_accept", "keepalive_timeout_websocket"];

/// Changes from one to the other that have no effect, each at its line of `after` (of none when a line went away); and,
/// last, one finding without a place if nothing that differs has any.
pub fn compare(before: &Tree, after: &Tree, version: Version) -> Vec<Finding> {
    let (mut findings, acts) = compared(before, after, version);
    if acts == 0 {
        let what = match findings.len() {
            0 => "nothing differs but layout and comments: an A/A".to_owned(),
            1 => "the one change has no effect: this would be an A/A".to_owned(),
            count => format!("none of the {count} changes has an effect: this would be an A/A"),
        };
        findings.push(finding(None, what));
    }
    findings
}

/// Why nothing that differs has an effect, a sentence for each change; none if anything has.
pub fn without_effect(before: &Tree, after: &Tree, version: Version) -> Vec<String> {
    let (findings, acts) = compared(before, after, version);
    if acts == 0 { findings.into_iter().map(|finding| finding.what).collect() } else { Vec::new() }
}

/// Changes without effect, and how many have one.
fn compared(before: &Tree, after: &Tree, version: Version) -> (Vec<Finding>, usize) {
    let (old, new) = (View::new(before), View::new(after));
    let (old_lines, new_lines) = (lines(&old), lines(&new));
    let idle: Vec<At> = crate::examine(after, version, &Facts::default())
        .into_iter()
        .filter(|finding| IDLE_RULES.contains(&finding.rule))
        .filter_map(|finding| finding.at)
        .collect();
    let mut findings = Vec::new();
    let mut acts = 0;
    let mut seen: Vec<&Key> = Vec::new();
    for (key, spots) in &new_lines {
        seen.push(key);
        let was = old_lines.get(key).map_or(&[][..], Vec::as_slice);
        if texts(was) == texts(spots) {
            continue;
        }
        let Some(spot) = spots.first() else { continue };
        // Said with the same meaning, here, further out, or by the program.
        let inherited = |view: &View<'_>, lines: &Lines<'_>| effective(view, lines, key, version);
        let (one, other) = (inherited(&old, &old_lines), inherited(&new, &new_lines));
        let means_same = match (&one, &other) {
            (Some(one), Some(other)) => is_same(&key.1, one, other),
            _ => false,
        };
        if means_same {
            let what = format!("\"{}\" is already in force without this change", spot.line());
            findings.push(finding(Some(spot.at()), what));
        } else if idle.contains(&spot.at()) {
            findings.push(finding(Some(spot.at()), format!("\"{}\" cannot have an effect here", spot.line())));
        } else {
            acts += 1;
        }
    }
    for (key, spots) in old_lines.iter().filter(|(key, _)| !seen.contains(key)) {
        let (one, other) = (effective(&old, &old_lines, key, version), effective(&new, &new_lines, key, version));
        let line = spots.first().map_or(String::new(), |spot| spot.line());
        match (one, other) {
            (Some(one), Some(other)) if is_same(&key.1, &one, &other) => {
                findings.push(finding(None, format!("\"{line}\" was taken out, and is still in force")));
            }
            _ => acts += 1,
        }
    }
    (findings, acts)
}

fn finding(at: Option<At>, what: String) -> Finding {
    Finding { rule: RULE, level: Level::Note, at, ..Finding::nowhere(what) }
}

/// The blocks around a statement, as one text each, and its name.
type Key = (Vec<String>, String);

type Lines<'v> = BTreeMap<Key, Vec<Spot<'v>>>;

/// Statements by block and name; blocks of the same words are told apart by their number.
fn lines<'v>(view: &'v View<'v>) -> Lines<'v> {
    let mut lines: Lines<'v> = BTreeMap::new();
    for spot in view.all() {
        let mut path: Vec<String> = spot.around().map(block).collect();
        path.reverse();
        // A block is a statement too: an upstream that is new is a change, whatever is in it.
        lines.entry((path, spot.name().to_owned())).or_default().push(spot);
    }
    lines
}

/// `location /a`, and for servers what tells them apart.
fn block(spot: Spot<'_>) -> String {
    if spot.name() != "server" {
        return spot.line();
    }
    let inside = spot.inside();
    let names: Vec<String> =
        inside.named("listen").chain(inside.named("server_name")).map(|spot| spot.text()).collect();
    format!("server {}", names.join(" "))
}

fn texts(spots: &[Spot<'_>]) -> Vec<String> {
    spots.iter().map(|spot| if spot.is_block() { block(*spot) } else { spot.line() }).collect()
}

/// What a directive is in a block: written there, or in a block around it, or nginx's default.
fn effective(_view: &View<'_>, lines: &Lines<'_>, key: &Key, version: Version) -> Option<String> {
    let default = defaults::lookup(&key.1);
    let mut path = key.0.clone();
    loop {
        if let Some(spots) = lines.get(&(path.clone(), key.1.clone())) {
            return Some(spots.iter().map(|spot| spot.text()).collect::<Vec<_>>().join("\n"));
        }
        // Only what is known to be inherited is looked for further out.
        default?;
        if path.pop().is_none() {
            break;
        }
    }
    default.and_then(|default| default.at(version)).map(str::to_owned)
}

fn is_same(name: &str, one: &str, other: &str) -> bool {
    one == other || defaults::lookup(name).is_some_and(|default| default.is_same(one, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(before: &str, after: &str) -> Vec<String> {
        let tree = |text: &str| crate::load(&weir_conf::MemoryFiles::new().with("/n", text), "/n", "/").0;
        compare(&tree(before), &tree(after), Version(1, 22, 1)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn s0_was_an_a_a() {
        let before = "events { worker_connections 768; } http { server { listen 80; } }";
        let after = "events { worker_connections 768; use epoll; multi_accept on; }
            http { proxy_connect_timeout 60s; proxy_read_timeout 60s; proxy_send_timeout 60s; keepalive_timeout 75s; server { listen 80; } }";
        let found = found(before, after);
        assert_eq!(found.len(), 7, "{found:?}");
        assert_eq!(found.last().map(String::as_str), Some("none of the 6 changes has an effect: this would be an A/A"));
    }

    #[test]
    fn a_change_that_acts_is_not_named() {
        assert_eq!(found("http { sendfile on; }", "http { sendfile off; }"), Vec::<String>::new());
        assert_eq!(found("http { }", "http { sendfile off; }").len(), 2);
        assert_eq!(found("http { sendfile off; }", "http { }").len(), 2);
        assert_eq!(
            found("http { gzip on; server { listen 1; } }", "http { gzip on; server { listen 1; gzip on; } }").len(),
            2
        );
        assert_eq!(
            found("http { gzip on; server { listen 1; } }", "http { gzip on; server { listen 1; gzip off; } }"),
            Vec::<String>::new()
        );
        assert_eq!(found("a 1;  # x", "a 1;"), ["nothing differs but layout and comments: an A/A"]);
        assert_eq!(found("http { }", "http { upstream a { server b; } }"), Vec::<String>::new());
    }
}
