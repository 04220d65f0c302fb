//! The surroundings that a configuration expects: the addresses it listens on, its peers, its caches.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_conf::{Statement, Tree};

/// Most listen addresses, and most peers, that are kept.
const ADDRESSES_MAX: usize = 1_000;

/// The parts that a stack has to provide for a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The addresses that servers listen on. A wildcard is 0.0.0.0.
    pub listens: Vec<SocketAddr>,
    /// The listen addresses with TLS.
    pub secure: Vec<SocketAddr>,
    /// The peers: host and port, as written.
    pub peers: Vec<(String, u16)>,
    /// Directories that hold a cache.
    pub caches: Vec<String>,
    /// Top-level directives about the process: `daemon`, `pid`, `master_process`.
    pub process: Vec<(String, String)>,
    /// A `limit_req` limits how many requests a second are answered.
    pub limits_rate: bool,
}

/// Collects these parts from a configuration.
pub fn survey(tree: &Tree) -> Survey {
    let mut found = Survey::default();
    for statement in &tree.root {
        if matches!(statement.name.text.as_str(), "daemon" | "pid" | "master_process") {
            found.process.push((statement.name.text.clone(), statement.text(0).to_owned()));
        }
    }
    let https: Vec<&Statement> = tree.named("http").collect();
    let upstreams: Vec<&str> =
        https.iter().flat_map(|http| http.named("upstream")).map(|upstream| upstream.text(0)).collect();
    let mut open: Vec<&Statement> = https.clone();
    while let Some(block) = open.pop() {
        let is_server = block.name == "server" && block.is_block();
        if is_server && block.named("listen").next().is_none() {
            found.listens.push(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80)));
        }
        for statement in block.children() {
            match statement.name.text.as_str() {
                "listen" => {
                    let says = |word: &str| statement.args.iter().any(|argument| argument.text == word);
                    // A load cannot use UDP.
                    let at = listen(statement.text(0)).filter(|_| !says("quic"));
                    found.secure.extend(at.filter(|_| says("ssl")));
                    found.listens.extend(at);
                }
                "server" if block.name == "upstream" => found.peers.extend(host_and_port(statement.text(0), 80)),
                "proxy_pass" => found.peers.extend(passed(statement.text(0), &upstreams)),
                "limit_req" => found.limits_rate = true,
                "proxy_cache_path" => found.caches.push(statement.text(0).to_owned()),
                _ => {}
            }
            if statement.is_block() {
                open.push(statement);
            }
        }
    }
    found.listens.sort();
    found.listens.dedup();
    found.listens.truncate(ADDRESSES_MAX);
    found.peers.sort();
    found.peers.dedup();
    found.peers.truncate(ADDRESSES_MAX);
    found
}

/// Parses `80`, `*:80`, `127.0.0.1:80`, `[::1]:80`, `localhost`. `None` for a unix socket.
fn listen(text: &str) -> Option<SocketAddr> {
    if text.starts_with("unix:") {
        return None;
    }
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    if let Ok(port) = text.parse::<u16>() {
        return Some(SocketAddr::new(any, port));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address);
    }
    let (host, port) = host_and_port(text, 80)?;
    let address = match host.as_str() {
        "*" => any,
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => host.parse().ok()?,
    };
    Some(SocketAddr::new(address, port))
}

/// The peer of a `proxy_pass`. `None` if that is an upstream group, or known only at run time.
fn passed(url: &str, upstreams: &[&str]) -> Option<(String, u16)> {
    let (port, rest) = [("http://", 80), ("https://", 443)]
        .into_iter()
        .find_map(|(scheme, port)| Some((port, url.strip_prefix(scheme)?)))?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('$') || upstreams.contains(&authority) {
        return None;
    }
    host_and_port(authority, port)
}

fn host_and_port(text: &str, default: u16) -> Option<(String, u16)> {
    if text.is_empty() || text.starts_with("unix:") || text.contains('$') {
        return None;
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => Some((host.to_owned(), port.parse().ok()?)),
        _ => Some((text.to_owned(), default)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;

    #[test]
    fn a_configuration_names_its_neighbours() {
        let text = "daemon off; pid /run/x.pid; http {
            proxy_cache_path /var/cache/x keys_zone=one:1m;
            upstream app { server 127.0.0.1:3000; server express weight=2; server unix:/run/app.sock; }
            server { listen 8080; listen 127.0.0.1:81 ssl; listen [::]:82; listen unix:/x; listen 443 quic;
                location / { proxy_pass http://app; }
                location /a { proxy_pass http://10.0.0.2:9000/x; }
                location /b { proxy_pass http://$host; } }
            server { location / { if ($x) { proxy_pass https://secure; } } } }";
        let files = MemoryFiles::new().with("/nginx.conf", text);
        let (tree, _) = weir_conf::load(&files, "/nginx.conf", "/", &|_| false);
        let found = survey(&tree);
        let listens: Vec<String> = found.listens.iter().map(ToString::to_string).collect();
        assert_eq!(listens, ["0.0.0.0:80", "0.0.0.0:8080", "127.0.0.1:81", "[::]:82"]);
        assert_eq!(found.secure, ["127.0.0.1:81".parse().unwrap()]);
        let peers: Vec<String> = found.peers.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        assert_eq!(peers, ["10.0.0.2:9000", "127.0.0.1:3000", "express:80", "secure:443"]);
        assert_eq!(found.caches, ["/var/cache/x"]);
        assert_eq!(found.process[0], ("daemon".to_owned(), "off".to_owned()));
    }
}
