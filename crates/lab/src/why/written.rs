//! The settings of a configuration, as far as rules need them.

use weir_conf::{Statement, Tree};

use super::policies::{excluded, outages, policies, subrequests};
use super::signals::{CacheConf, Conf};

/// Most servers of an upstream that are kept.
const SERVERS_MAX: usize = 256;

/// The settings of a configuration, as far as rules need them. Of several values, the one that limits first.
pub fn conf(tree: &Tree, is_weir: bool) -> Conf {
    let mut found = Conf { is_weir, can_keep: is_weir, has_upgrade: is_weir, ..Conf::default() };
    (found.policies, found.outages) = (policies(tree), outages(tree));
    (found.cache, found.subrequests) = (cache(tree), subrequests(tree));
    (found.upstream_requests, found.client_requests) = keepalive_requests(tree);
    found.next_upstream = next_upstream(tree);
    let mut all: Vec<&Statement> = tree.root.iter().collect();
    let (mut speaks_11, mut clears) = (false, false);
    let (mut named, mut passed) = (Vec::new(), Vec::new());
    while let Some(statement) = all.pop() {
        all.extend(statement.children());
        let (first, number) = (statement.text(0), statement.text(0).parse::<u64>().ok());
        let has = |word: &str| statement.words().any(|given| given.text == word);
        match statement.name.text.as_str() {
            "worker_processes" => found.worker_processes = Some(first.to_owned()),
            "worker_connections" => found.worker_connections = number,
            "worker_rlimit_nofile" => found.worker_rlimit_nofile = number,
            "keepalive" => found.keepalive = found.keepalive.max(number),
            "proxy_http_version" => speaks_11 |= first == "1.1",
            "proxy_set_header" if first.eq_ignore_ascii_case("connection") => {
                clears |= statement.text(1).is_empty() || statement.text(1).starts_with('$')
            }
            "proxy_set_header" if first.eq_ignore_ascii_case("upgrade") => found.has_upgrade = true,
            name @ ("proxy_connect_timeout" | "proxy_read_timeout" | "proxy_send_timeout") => {
                if let Some(ms) = time_ms(first) {
                    let known = found.timeouts.entry(name.to_owned()).or_insert(ms);
                    *known = ms.min(*known);
                }
            }
            "listen" => {
                let backlog = statement.words().find_map(|word| word.text.strip_prefix("backlog=")?.parse().ok());
                found.backlog = backlog.or(found.backlog);
                found.has_tls |= has("ssl");
            }
            "proxy_cache" => found.has_cache |= first != "off",
            "proxy_cache_lock" => found.has_lock |= first == "on",
            "proxy_cache_use_stale" => found.has_stale_updating |= has("updating"),
            "proxy_cache_background_update" => found.has_background_update |= first == "on",
            "access_log" => {
                found.has_buffered_log |=
                    first == "off" || statement.words().any(|word| word.text.starts_with("buffer="))
            }
            "resolver" => found.has_resolver |= first != "off",
            "gzip" => found.has_gzip |= first == "on",
            "gzip_comp_level" => found.gzip_level = found.gzip_level.max(number.unwrap_or(0)),
            "upstream" => {
                found.has_upstream = true;
                named.push(first.to_owned());
                let is_used =
                    |server: &&Statement| !server.words().any(|word| matches!(word.text.as_str(), "down" | "backup"));
                let servers = statement.named("server").filter(is_used).map(|server| server.text(0).to_owned());
                let servers: Vec<String> = servers.take(SERVERS_MAX).collect();
                if servers.len() > found.servers.len() {
                    found.servers = servers;
                }
            }
            "server" if !statement.is_block() => {
                found.names_localhost |= first == "localhost" || first.starts_with("localhost:")
            }
            "proxy_pass" => {
                found.names_localhost |= first.contains("//localhost");
                found.passes_tls |= first.starts_with("https:");
                passed.extend(address(first));
            }
            _ => {}
        }
    }
    found.can_keep |= speaks_11 && clears;
    found.passed = passed.into_iter().find(|server| !named.contains(server));
    found
}

/// Every statement; a block comes before its content.
pub(super) fn every(tree: &Tree) -> impl Iterator<Item = &Statement> {
    let mut open: Vec<&Statement> = tree.root.iter().rev().collect();
    std::iter::from_fn(move || {
        let statement = open.pop()?;
        open.extend(statement.children().iter().rev());
        Some(statement)
    })
}

/// The smallest `keepalive_requests` of an upstream, and of clients.
fn keepalive_requests(tree: &Tree) -> (Option<u64>, Option<u64>) {
    let least = |of_upstreams: bool| {
        let blocks = every(tree).filter(|one| one.is_block() && (one.name == *"upstream") == of_upstreams);
        blocks.flat_map(|one| one.named("keepalive_requests")).filter_map(|one| one.text(0).parse().ok()).min()
    };
    (least(true), least(false))
}

/// The conditions of the last `proxy_next_upstream`.
fn next_upstream(tree: &Tree) -> Option<Vec<String>> {
    let last = every(tree).filter(|one| one.name == *"proxy_next_upstream").last()?;
    Some(last.args.iter().map(|word| word.text.clone()).collect())
}

/// The statements about a cache that decide what it stores. The modules of nginx use the same names after their prefix.
fn cache(tree: &Tree) -> CacheConf {
    let mut found = CacheConf { excluded: excluded(tree), ..CacheConf::default() };
    for statement in every(tree) {
        let name = statement.name.text.split_once('_').map_or("", |(_, name)| name);
        match name {
            "cache_key" => found.key = Some(statement.text(0).to_owned()),
            "cache_valid" => found.has_valid = true,
            "cache_min_uses" => found.min_uses = found.min_uses.max(statement.text(0).parse().unwrap_or(1)),
            "ignore_headers" => found.ignored.extend(statement.args.iter().map(|word| word.text.to_ascii_lowercase())),
            _ => {}
        }
    }
    found
}

/// The server that a `proxy_pass` over HTTP names itself. `None` if a variable sets it.
fn address(url: &str) -> Option<String> {
    let server = url.strip_prefix("http://")?.split('/').next()?;
    (!server.is_empty() && !server.contains('$') && !server.starts_with("unix:")).then(|| server.to_owned())
}

/// A time as nginx writes it, in ms, as far as timeouts use it.
fn time_ms(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().ok()?;
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;

    fn tree(text: &str) -> Tree {
        weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false).0
    }

    #[test]
    fn a_configuration_says_what_binds() {
        let text = "worker_processes 1; events { worker_connections 32; } http {
            upstream app { server localhost:3000; keepalive 64; keepalive_requests 5; } keepalive_requests 40;
            proxy_next_upstream error http_503; proxy_cache_path /c keys_zone=one:1m; proxy_read_timeout 2m;
            server { listen 80 backlog=8; listen 443 ssl; proxy_cache one; proxy_cache_lock on;
              location / { proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_read_timeout 500ms; } } }";
        let found = conf(&tree(text), false);
        assert_eq!((found.worker_connections, found.keepalive, found.backlog), (Some(32), Some(64), Some(8)));
        assert!(found.can_keep && found.has_cache && found.has_lock && found.names_localhost && found.has_tls);
        assert!(!found.has_stale_updating && !found.has_upgrade && found.has_upstream);
        let named =
            "http { gzip_comp_level 6; upstream app { server a:1; } server { location / { proxy_pass http://app; } ";
        let other = conf(&tree(&format!("{named} location /b {{ proxy_pass http://b:3000/x; }} }} }}")), false);
        assert_eq!((other.passed.as_deref(), other.gzip_level), (Some("b:3000"), 6));
        assert_eq!(conf(&tree(&format!("{named} }} }}")), false).passed, None);
        assert_eq!(
            (found.upstream_requests, found.client_requests, found.next_upstream.unwrap().join(" ")),
            (Some(5), Some(40), "error http_503".into())
        );
        assert_eq!(found.timeouts["proxy_read_timeout"], 500);
        let tls = "http { proxy_http_version 1.1; server { location / { proxy_pass https://app; } } }";
        assert!(!found.passes_tls && conf(&tree(tls), false).passes_tls && !conf(&tree(tls), false).can_keep);
    }
}
