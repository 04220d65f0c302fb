//! The statements of a configuration that refuse or delay requests on purpose, and their places in its files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weir_conf::{Statement, Tree};

/// Most statements that are kept.
const POLICIES_MAX: usize = 256;
/// The default status of `limit_req` and `limit_conn`.
// nginx: limit_req_status, limit_conn_status, "Default: 503".
const REFUSED: u16 = 503;

/// A statement that refuses or delays requests on purpose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Its directive. For a server of an upstream, the parameter: `max_conns`.
    pub directive: String,
    /// The statement as it is written. For `limit_req`, with the rate of its zone.
    pub text: String,
    /// The file and the line.
    pub at: String,
    /// The zone that it counts in. For `max_conns` and `queue`, the upstream.
    pub of: String,
    /// The status that it answers with; 0 if it only delays.
    pub status: u16,
    /// Bytes a second of `limit_rate`; 0 if a variable sets it.
    pub rate: f64,
    /// Bytes that are sent before the rate applies (`limit_rate_after`).
    pub after: f64,
}

/// The settings that apply at one level of the configuration.
#[derive(Clone)]
struct Scope {
    requests: u16,
    connections: u16,
    after: f64,
    upstream: String,
}

/// All policies, in the order of the configuration.
pub fn policies(tree: &Tree) -> Vec<Policy> {
    let scope = Scope { requests: REFUSED, connections: REFUSED, after: 0.0, upstream: String::new() };
    let mut found = Vec::new();
    let mut rates = BTreeMap::new();
    zones(&tree.root, &mut rates);
    walk(tree, &tree.root, &scope, &rates, &mut found);
    found.truncate(POLICIES_MAX);
    found
}

/// The statements that take servers out of use: `health_check`, and `max_fails` with its defaults. nginx never takes the
/// only server of an upstream out of use.
pub fn outages(tree: &Tree) -> Vec<Policy> {
    let mut found = Vec::new();
    let mut open: Vec<&Statement> = tree.root.iter().rev().collect();
    while let Some(statement) = open.pop() {
        open.extend(statement.children().iter().rev());
        let outage = |directive: &str, text: String, of: &str, place: &Statement| Policy {
            directive: directive.to_owned(),
            text,
            of: of.to_owned(),
            status: 502,
            at: at(tree, place),
            ..Policy::default()
        };
        match statement.name.text.as_str() {
            "health_check" => found.push(outage("health_check", written(statement), "", statement)),
            "upstream" => {
                let own: Vec<&Statement> = statement.named("server").filter(|server| !server.is_block()).collect();
                let fails = |server: &&&Statement| word(server, "max_fails=") != Some("0");
                for server in own.iter().filter(fails).filter(|_| own.len() > 1) {
                    // nginx: "By default, the number of unsuccessful attempts is set to 1", "fail_timeout ... 10 seconds".
                    let (most, time) = (word(server, "max_fails="), word(server, "fail_timeout="));
                    let (most, time) = (most.unwrap_or("1"), time.unwrap_or("10s"));
                    let text = format!("server {} max_fails={most} fail_timeout={time}", server.text(0));
                    found.push(outage("max_fails", text, statement.text(0), server));
                }
            }
            _ => {}
        }
        found.truncate(POLICIES_MAX);
    }
    found
}

/// A statement as it is written, without its block.
fn written(statement: &Statement) -> String {
    statement.words().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The rates of `limit_req_zone`, keyed by zone.
fn zones(block: &[Statement], rates: &mut BTreeMap<String, String>) {
    for statement in block {
        zones(statement.children(), rates);
        if statement.name == "limit_req_zone"
            && let Some((zone, rate)) = word(statement, "zone=").zip(word(statement, "rate="))
        {
            rates.insert(zone.split(':').next().unwrap_or_default().to_owned(), rate.to_owned());
        }
    }
}

fn word<'a>(statement: &'a Statement, begins: &str) -> Option<&'a str> {
    statement.args.iter().find_map(|word| word.text.strip_prefix(begins))
}

fn walk(tree: &Tree, block: &[Statement], outer: &Scope, rates: &BTreeMap<String, String>, found: &mut Vec<Policy>) {
    let mut scope = outer.clone();
    // A setting holds for its whole level, wherever it stands in it.
    for statement in block {
        let status = || statement.text(0).parse().unwrap_or(REFUSED);
        match statement.name.text.as_str() {
            "limit_req_status" => scope.requests = status(),
            "limit_conn_status" => scope.connections = status(),
            "limit_rate_after" => scope.after = bytes(statement.text(0)),
            _ => {}
        }
    }
    for statement in block {
        let inner = match statement.name.text.as_str() {
            "upstream" => Scope { upstream: statement.text(0).to_owned(), ..scope.clone() },
            _ => scope.clone(),
        };
        found.extend(policy(statement, &scope, rates).map(|policy| Policy { at: at(tree, statement), ..policy }));
        walk(tree, statement.children(), &inner, rates, found);
    }
}

/// The policy that one statement sets, if any.
fn policy(statement: &Statement, scope: &Scope, rates: &BTreeMap<String, String>) -> Option<Policy> {
    let (name, first) = (statement.name.text.as_str(), statement.text(0));
    let written = written(statement);
    let plain = Policy { directive: name.to_owned(), text: written.clone(), ..Policy::default() };
    let answers = |status: u16| Some(Policy { status, ..plain.clone() });
    match name {
        "limit_req" => {
            let zone = word(statement, "zone=")?.to_owned();
            let rate = rates.get(&zone).map_or(String::new(), |rate| format!(" ({rate})"));
            Some(Policy { text: written + &rate, of: zone, status: scope.requests, ..plain })
        }
        "limit_conn" => Some(Policy { of: first.to_owned(), status: scope.connections, ..plain }),
        "limit_rate" | "proxy_limit_rate" if first != "0" => {
            let after = if name == "limit_rate" { scope.after } else { 0.0 };
            Some(Policy { rate: bytes(first), after, ..plain })
        }
        "set" if first == "$limit_rate" && statement.text(1) != "0" => {
            Some(Policy { rate: bytes(statement.text(1)), after: scope.after, ..plain })
        }
        "server" if !statement.is_block() && !scope.upstream.is_empty() => {
            let most = word(statement, "max_conns=").filter(|most| *most != "0")?;
            let text = format!("server {first} max_conns={most}");
            Some(Policy { directive: "max_conns".into(), text, of: scope.upstream.clone(), status: 502, ..plain })
        }
        "queue" if !scope.upstream.is_empty() => Some(Policy { of: scope.upstream.clone(), status: 502, ..plain }),
        "deny" => answers(403),
        "auth_basic" | "auth_jwt" | "auth_request" if first != "off" => answers(401),
        "client_max_body_size" if first != "0" => answers(413),
        "return" => answers(first.parse().ok().filter(|status| *status >= 400)?),
        "proxy_cache_lock" if first == "on" => answers(0),
        _ => None,
    }
}

/// The first `auth_request` and the first `mirror`, with their places: each makes a second request of each request.
pub fn subrequests(tree: &Tree) -> Vec<Policy> {
    let mut found: Vec<Policy> = Vec::new();
    let mut open: Vec<&Statement> = tree.root.iter().rev().collect();
    while let Some(statement) = open.pop() {
        open.extend(statement.children().iter().rev());
        let name = statement.name.text.as_str();
        let is_new = matches!(name, "auth_request" | "mirror") && !found.iter().any(|known| known.directive == name);
        if is_new && statement.text(0) != "off" {
            let (directive, text) = (name.to_owned(), written(statement));
            found.push(Policy { directive, text, at: at(tree, statement), ..Policy::default() });
        }
    }
    found
}

/// The first `proxy_no_cache` or `proxy_cache_bypass` of any module, with its place.
pub fn excluded(tree: &Tree) -> Option<Policy> {
    let mut open: Vec<&Statement> = tree.root.iter().rev().collect();
    while let Some(statement) = open.pop() {
        open.extend(statement.children().iter().rev());
        let name = statement.name.text.as_str();
        if name.ends_with("_no_cache") || name.ends_with("_cache_bypass") {
            let (directive, text) = (name.to_owned(), written(statement));
            return Some(Policy { directive, text, at: at(tree, statement), ..Policy::default() });
        }
    }
    None
}

/// The file, relative to the directory of the main configuration file, and the line.
fn at(tree: &Tree, statement: &Statement) -> String {
    let Some(source) = tree.source(&statement.at) else { return String::new() };
    let dir = tree.files.first().and_then(|main| Path::new(&main.name).parent());
    let name = dir
        .and_then(|dir| Path::new(&source.name).strip_prefix(dir).ok())
        .map_or_else(|| source.name.clone(), |name| name.display().to_string());
    format!("{name}:{}", source.line_of(statement.at.span.start))
}

/// nginx's sizes: `20k`, `1m`. 0 for a variable.
fn bytes(text: &str) -> f64 {
    let (number, factor) = match text.chars().last() {
        Some('k' | 'K') => (text.get(..text.len() - 1), 1024.0),
        Some('m' | 'M') => (text.get(..text.len() - 1), 1024.0 * 1024.0),
        Some('g' | 'G') => (text.get(..text.len() - 1), 1024.0 * 1024.0 * 1024.0),
        _ => (Some(text), 1.0),
    };
    number.and_then(|number| number.parse::<u64>().ok()).map_or(0.0, |number| number as f64 * factor)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;

    #[test]
    fn what_takes_servers_out_of_use_is_found_with_its_defaults() {
        let text = "http {\n upstream one { server a:1; }\n upstream two { server a:1 max_fails=0;\n server b:1;\n server c:1 max_fails=3 fail_timeout=5s; }\n\
            server { mirror off; location / { health_check uri=/up; proxy_no_cache $cookie_s; auth_request /check;\n mirror /copy; } } }";
        let files = MemoryFiles::new().with("/n.conf", text);
        let (tree, _) = weir_conf::load(&files, "/n.conf", "/", &|_| false);
        let found: Vec<String> = outages(&tree).iter().map(|one| format!("{} at {}", one.text, one.at)).collect();
        assert_eq!(
            found,
            [
                "server b:1 max_fails=1 fail_timeout=10s at n.conf:4",
                "server c:1 max_fails=3 fail_timeout=5s at n.conf:5",
                "health_check uri=/up at n.conf:6",
            ]
        );
        let second: Vec<String> = subrequests(&tree).iter().map(|one| format!("{} at {}", one.text, one.at)).collect();
        assert_eq!(second, ["auth_request /check at n.conf:6", "mirror /copy at n.conf:7"]);
        assert_eq!(excluded(&tree).map(|one| one.text).as_deref(), Some("proxy_no_cache $cookie_s"));
    }

    #[test]
    fn each_policy_is_found_with_its_line_and_its_number() {
        let text = "http {\n  limit_req_zone $binary_remote_addr zone=one:1m rate=10r/s;\n  limit_req_status 429;\n  include more.conf;\n\
            upstream app { server a:1 max_conns=5;\n server b:1; queue 9 timeout=5s; }\n  server {\n    limit_conn addr 5;\n    location /a {\n      \
            limit_conn_status 444; limit_req zone=one burst=5;\n limit_conn addr 9; return 403;\n return 301 /x; }\n \
            limit_rate 20k; set $limit_rate 4k; limit_rate_after 1m; deny all; auth_basic off; proxy_cache_lock on; } }";
        let files = MemoryFiles::new().with("/etc/n/nginx.conf", text).with("/etc/n/more.conf", "\n\ndeny 10.0.0.1;");
        let (tree, _) = weir_conf::load(&files, "/etc/n/nginx.conf", "/etc/n", &|_| false);
        let found = policies(&tree);
        let short: Vec<(String, String, u16)> =
            found.iter().map(|one| (one.text.clone(), one.at.clone(), one.status)).collect();
        let of = |text: &str, at: &str, status| (text.to_owned(), at.to_owned(), status);
        assert_eq!(
            short,
            [
                of("deny 10.0.0.1", "more.conf:3", 403),
                of("server a:1 max_conns=5", "nginx.conf:5", 502),
                of("queue 9 timeout=5s", "nginx.conf:6", 502),
                of("limit_conn addr 5", "nginx.conf:8", 503),
                of("limit_req zone=one burst=5 (10r/s)", "nginx.conf:10", 429),
                of("limit_conn addr 9", "nginx.conf:11", 444),
                of("return 403", "nginx.conf:11", 403),
                of("limit_rate 20k", "nginx.conf:13", 0),
                of("set $limit_rate 4k", "nginx.conf:13", 0),
                of("deny all", "nginx.conf:13", 403),
                of("proxy_cache_lock on", "nginx.conf:13", 0),
            ]
        );
        let rate = found.iter().find(|one| one.directive == "limit_rate").unwrap();
        assert_eq!((rate.rate, rate.after), (20_480.0, 1_048_576.0));
        let zones: Vec<&str> = found[1..5].iter().map(|one| one.of.as_str()).collect();
        assert_eq!(zones, ["app", "app", "addr", "one"]);
        assert_eq!(bytes("$rate"), 0.0);
    }
}
