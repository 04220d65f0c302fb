//! Compares two configurations: the differences, and the differences that cannot have an effect. The lab runs this
//! before an A/B, so that no useless change is measured.

use std::collections::BTreeMap;

use weir_conf::{At, Tree};

use crate::facts::Facts;
use crate::rule::{Finding, FindingLevel};
use crate::target::Target;
use crate::view::{Spot, View};
use weir_words::{Said, said};

/// The rule name of these findings: see [`compare`].
pub const RULE: &str = "no_op_change";

/// Rules with findings that say that a statement has no effect.
const IDLE_RULES: [&str; 3] = ["use_epoll", "multi_accept", "keepalive_timeout_websocket"];

/// The rule with findings that say that a group's connections are not kept.
const INERT_POOL: &str = "inert_upstream_keepalive";

/// One difference between two configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its line in the later configuration. `None` if the change removes a line.
    pub at: Option<At>,
    /// Whether it can have an effect.
    pub acts: bool,
    /// The change, and its possible effect, or why it has none.
    pub what: Said,
}

/// Every difference between two configurations, and whether it can have an effect on this target. Removed lines come
/// last.
pub fn changes(before: &Tree, after: &Tree, target: impl Into<Target>) -> Vec<Change> {
    compared(before, after, target.into())
}

/// The changes without effect on this target, each at its line of `after`; a removed line has no place. If no
/// difference has an effect, a last finding without a place says so.
pub fn compare(before: &Tree, after: &Tree, target: impl Into<Target>) -> Vec<Finding> {
    let changes = compared(before, after, target.into());
    let mut findings: Vec<Finding> = idle_of(&changes).map(|change| finding(change.at, change.what.clone())).collect();
    findings.extend(summary(&changes).map(|what| finding(None, what)));
    findings
}

/// The summary, if none of the changes has an effect.
pub fn summary(changes: &[Change]) -> Option<Said> {
    if changes.iter().any(|change| change.acts) {
        return None;
    }
    Some(match changes.len() {
        0 => said!(
            "the two files differ only in layout and comments: comparing them would be an A/A",
            "두 파일은 배치와 주석만 다릅니다. 비교하면 A/A가 됩니다"
        ),
        1 => said!(
            "the one change has no effect: comparing the two files would measure only noise (an A/A)",
            "하나뿐인 변경에 효과가 없습니다. 두 파일을 비교하면 잡음만 측정합니다(A/A)"
        ),
        count => said!(
            "none of the {} changes has an effect: comparing the two files would measure only noise (an A/A)",
            "변경 {}건 모두 효과가 없습니다. 두 파일을 비교하면 잡음만 측정합니다(A/A)",
            count
        ),
    })
}

fn idle_of(changes: &[Change]) -> impl Iterator<Item = &Change> {
    changes.iter().filter(|change| !change.acts)
}

/// Why no difference has an effect, a sentence for each change. Empty if any difference has one.
pub fn without_effect(before: &Tree, after: &Tree, target: impl Into<Target>) -> Vec<Said> {
    let changes = compared(before, after, target.into());
    let acts = changes.iter().any(|change| change.acts);
    if acts { Vec::new() } else { changes.into_iter().map(|change| change.what).collect() }
}

fn compared(before: &Tree, after: &Tree, target: Target) -> Vec<Change> {
    let (old, new) = (View::new(before), View::new(after));
    let (old_lines, new_lines) = (lines(&old), lines(&new));
    let idle = idle(&new, target);
    let means_same = |key: &Key| {
        let (one, other) = (effective(&old_lines, key, target), effective(&new_lines, key, target));
        one.zip(other).is_some_and(|(one, other)| target.is_same(&key.1, &key.0, &one, &other))
    };
    let mut changes = Vec::new();
    let idly = |at, what| Change { at, acts: false, what };
    for (key, spots) in &new_lines {
        let was = old_lines.get(key).map_or(&[][..], Vec::as_slice);
        if texts(was) == texts(spots) {
            continue;
        }
        let Some(spot) = spots.first() else { continue };
        // The same meaning already applies: from this block, from an outer block, or as the program's default.
        if means_same(key) {
            let what = said!(
                "\"{}\" is already in force without this change",
                "\"{}\": 이 변경이 없어도 이미 적용되어 있습니다",
                spot.line()
            );
            changes.push(idly(Some(spot.at()), what));
        } else if let Some(why) = target.idle(&key.1, &key.0) {
            let what =
                said!("\"{}\" has no effect in {}: {}", "\"{}\": {}에서 효과가 없습니다. {}", spot.line(), target, why);
            changes.push(idly(Some(spot.at()), what));
        } else if idle.contains(&spot.at()) {
            let what =
                said!("\"{}\" cannot have an effect here", "\"{}\": 여기서는 효과가 있을 수 없습니다", spot.line());
            changes.push(idly(Some(spot.at()), what));
        } else {
            let old = effective(&old_lines, key, target).filter(|_| !spot.is_block());
            changes.push(Change { at: Some(spot.at()), acts: true, what: acting(*spot, old) });
        }
    }
    for (key, spots) in old_lines.iter().filter(|(key, _)| !new_lines.contains_key(key)) {
        let line = spots.first().map_or(String::new(), |spot| spot.line());
        if means_same(key) {
            let what = said!("\"{}\" was removed, and is still in force", "\"{}\": 지웠지만 여전히 적용됩니다", line);
            changes.push(idly(None, what));
        } else if target.idle(&key.1, &key.0).is_some() {
            let what = said!(
                "\"{}\" was removed, and had no effect in {}",
                "\"{}\": 지웠습니다. {}에서는 원래 효과가 없었습니다",
                line,
                target
            );
            changes.push(idly(None, what));
        } else {
            let what = said!(
                "\"{}\" was removed: this change can have an effect",
                "\"{}\": 지웠습니다. 효과가 있을 수 있습니다",
                line
            );
            changes.push(Change { at: None, acts: true, what });
        }
    }
    changes
}

/// A change that can have an effect, with the previous value. For a limit, also when the limit matters.
fn acting(spot: Spot<'_>, old: Option<String>) -> Said {
    let (line, name) = (spot.line(), spot.name());
    let limit = old.as_deref().and_then(|old| old.parse::<u64>().ok()).zip(spot.arg(0).parse::<u64>().ok());
    match (old, limit) {
        (Some(old), Some((was, is))) if name == "worker_connections" => {
            let bound = was.min(is);
            said!(
                "\"{}\" (before: {}) can have an effect only if a worker has more than {} connections at once, to clients and to origins together",
                "\"{}\" (이전: {}): 워커 하나의 동시 연결이 양쪽을 합쳐 {}개를 넘을 때만 효과가 있습니다",
                line,
                old,
                bound
            )
        }
        (Some(old), _) => {
            said!(
                "\"{}\" (before: {}) can have an effect",
                "\"{}\" (이전: {}): 효과가 있을 수 있습니다",
                line,
                old.replace('\n', ", ")
            )
        }
        (None, _) => {
            said!("\"{}\" is new and can have an effect", "\"{}\": 새로 생긴 줄입니다. 효과가 있을 수 있습니다", line)
        }
    }
}

/// Statements that rules report as without effect, unless the reason is elsewhere in the file.
fn idle(view: &View<'_>, target: Target) -> Vec<At> {
    let facts = Facts { version_is_told: Some(target.version()), ..Facts::default() };
    let found = crate::examine(view.tree(), target, &facts);
    let at =
        |rule: &str| found.iter().filter(|finding| finding.rule == rule).filter_map(|finding| finding.at).collect();
    let mut idle: Vec<At> = IDLE_RULES.iter().flat_map(|rule| -> Vec<At> { at(rule) }).collect();
    // A pool that no request can use. The findings are at the proxy_pass statements, but the useless statement is in
    // the upstream.
    let inert = found.iter().filter(|finding| finding.rule == INERT_POOL && finding.level == FindingLevel::Wrong);
    let inert: Vec<At> = inert.filter_map(|finding| finding.at).collect();
    for upstream in view.named("upstream") {
        let asks = |spot: &Spot<'_>| spot.arg(0).split('/').nth(2) == Some(upstream.arg(0));
        let mut passes = view.named("proxy_pass").filter(asks).peekable();
        if passes.peek().is_some() && passes.all(|pass| inert.contains(&pass.at())) {
            idle.extend(upstream.inside().named("keepalive").map(|spot| spot.at()));
        }
    }
    idle
}

fn finding(at: Option<At>, what: Said) -> Finding {
    Finding { rule: RULE, level: FindingLevel::Note, at, ..Finding::nowhere(what) }
}

/// The blocks around a statement, each as one text, and the statement's name.
type Key = (Vec<String>, String);

type Lines<'v> = BTreeMap<Key, Vec<Spot<'v>>>;

/// Statements by block and name. Blocks with the same words are numbered.
fn lines<'v>(view: &'v View<'v>) -> Lines<'v> {
    let mut lines: Lines<'v> = BTreeMap::new();
    for spot in view.all() {
        let mut path: Vec<String> = spot.around().map(block).collect();
        path.reverse();
        // A block is a statement too: a new upstream is a change, whatever it contains.
        lines.entry((path, spot.name().to_owned())).or_default().push(spot);
    }
    lines
}

/// `location /a`; for servers, the texts that identify them.
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

/// The effective value of a directive in a block: from the block, from an outer block, or the target's default.
fn effective(lines: &Lines<'_>, key: &Key, target: Target) -> Option<String> {
    let known = target.known(&key.1, &key.0);
    let mut path = key.0.clone();
    loop {
        if let Some(spots) = lines.get(&(path.clone(), key.1.clone())) {
            return Some(spots.iter().map(|spot| spot.text()).collect::<Vec<_>>().join("\n"));
        }
        // Only directives that are known to be inherited are searched in outer blocks.
        if !known?.goes_inwards || path.pop().is_none() {
            break;
        }
    }
    known.and_then(|known| known.default).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::version::Version;

    fn found_by(target: impl Into<Target>, before: &str, after: &str) -> Vec<String> {
        let tree = |text: &str| crate::load(&weir_conf::MemoryFiles::new().with("/n", text), "/n", "/").0;
        compare(&tree(before), &tree(after), target).into_iter().map(|finding| finding.what.en().to_owned()).collect()
    }

    fn found(before: &str, after: &str) -> Vec<String> {
        found_by(Version(1, 22, 1), before, after)
    }

    /// S2's keepalive has an effect in an nginx of its time. In weir it only repeats the default; so does `sendfile
    /// on`.
    #[test]
    fn what_acts_depends_on_who_reads_it() {
        let before = "http { upstream a { server b; } server { location / { proxy_pass http://a; } } }";
        for (place, line, says) in [
            ("location / {", "proxy_http_version 1.1;", "already in force"),
            ("http {", "sendfile on;", "already in force"),
            ("server b;", "keepalive 1024;", "already in force"),
            ("http {", "directio 4m;", "has no effect in weir"),
        ] {
            let after = before.replacen(place, &format!("{place} {line}"), 1);
            // A pool has an effect where HTTP/1.1 is the default.
            let nginx = if line.starts_with("keepalive") { Version(1, 29, 7) } else { Version(1, 22, 1) };
            assert_eq!(found_by(nginx, before, &after), Vec::<String>::new(), "{line}");
            let weirs = found_by(Target::Weir, before, &after);
            assert!(weirs.len() == 2 && weirs[0].contains(says), "{line}: {weirs:?}");
            let back = found_by(Target::Weir, &after, before);
            assert!(back.len() == 2 && back[0].contains("was removed"), "{line}: {back:?}");
        }
        let fewer = before.replacen("server b;", "server b; keepalive 2;", 1);
        assert_eq!(found_by(Target::Weir, before, &fewer), Vec::<String>::new());
        let one = format!("worker_processes 1; {before}");
        assert_eq!(found(before, &one).len(), 2, "nginx has one worker anyway");
        assert_eq!(found_by(Target::Weir, before, &one), Vec::<String>::new());
    }

    /// The article S2: before nginx 1.29.7, the pool alone has no effect; with its two further lines it has.
    #[test]
    fn a_pool_that_nothing_may_use_is_no_change() {
        let conf = |pool: &str, lines: &str| {
            format!(
                "http {{ upstream was {{ server a:1; {pool} }} server {{ location / {{ proxy_pass http://was/; {lines} }} }} }}"
            )
        };
        let (before, pool) = (conf("", ""), conf("keepalive 64;", ""));
        let found = |target: Target, after: &str| found_by(target, &before, after);
        let said = found(Target::Nginx(Version(1, 22, 1)), &pool);
        assert!(said.len() == 2 && said[0].contains("\"keepalive 64\" cannot have an effect here"), "{said:?}");
        assert_eq!(found(Target::Nginx(Version(1, 29, 7)), &pool), Vec::<String>::new());
        assert_eq!(found(Target::Weir, &pool), Vec::<String>::new());
        let whole = conf("keepalive 64;", "proxy_http_version 1.1; proxy_set_header Connection '';");
        assert_eq!(found(Target::Nginx(Version(1, 22, 1)), &whole), Vec::<String>::new());
    }

    #[test]
    fn a_groups_keepalive_timeout_is_not_the_clients() {
        let before = "http { keepalive_timeout 65s; upstream a { server b; } }";
        let same = "http { keepalive_timeout 65s; upstream a { server b; keepalive_timeout 60s; } }";
        let other = "http { keepalive_timeout 65s; upstream a { server b; keepalive_timeout 65s; } }";
        assert_eq!(found(before, same).len(), 2);
        assert_eq!(found(before, other), Vec::<String>::new());
    }

    #[test]
    fn s0_was_an_a_a() {
        let before = "events { worker_connections 768; } http { server { listen 80; } }";
        let after = "events { worker_connections 768; use epoll; multi_accept on; }
            http { proxy_connect_timeout 60s; proxy_read_timeout 60s; proxy_send_timeout 60s; keepalive_timeout 75s; server { listen 80; } }";
        let found = found(before, after);
        assert_eq!(found.len(), 7, "{found:?}");
        assert_eq!(
            found.last().map(String::as_str),
            Some("none of the 6 changes has an effect: comparing the two files would measure only noise (an A/A)")
        );
    }

    #[test]
    fn every_change_is_listed_with_whether_it_acts() {
        let tree = |text: &str| crate::load(&weir_conf::MemoryFiles::new().with("/n", text), "/n", "/").0;
        let before = tree("events { worker_connections 768; } http { gzip on; tcp_nodelay on; }");
        let after = tree("events { worker_connections 1024; use epoll; } http { tcp_nodelay on; }");
        let listed = changes(&before, &after, Version(1, 22, 1));
        let said: Vec<(bool, &str)> = listed.iter().map(|change| (change.acts, &*change.what)).collect();
        let limit = "\"worker_connections 1024\" (before: 768) can have an effect only if a worker has more than 768 connections at once, to clients and to origins together";
        assert_eq!(
            said,
            [
                (false, "\"use epoll\" cannot have an effect here"),
                (true, limit),
                (true, "\"gzip on\" was removed: this change can have an effect")
            ]
        );
        assert_eq!(summary(&listed), None);
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
        assert_eq!(
            found("a 1;  # x", "a 1;"),
            ["the two files differ only in layout and comments: comparing them would be an A/A"]
        );
        assert_eq!(found("http { }", "http { upstream a { server b; } }"), Vec::<String>::new());
    }
}
