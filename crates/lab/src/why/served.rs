//! Which processes are applications: those that listen on an address that the configuration uses as an upstream.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_conf::{Statement, Tree};

use super::written::every;
use crate::stack::{HUB, Spec};
use crate::survey::survey;

/// The addresses of a configuration's upstreams in a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstreams {
    addresses: BTreeSet<SocketAddr>,
    /// Paths of Unix sockets.
    paths: BTreeSet<String>,
}

/// The upstream addresses of a configuration. Names are resolved as the stack resolves them.
pub fn upstreams(tree: &Tree, spec: &Spec) -> Upstreams {
    let mut found = Upstreams { paths: paths(tree), ..Upstreams::default() };
    for (host, port) in survey(tree).peers {
        found.addresses.extend(addresses(&host, port, spec));
    }
    found
}

/// The addresses of a server, as the stack resolves its name.
fn addresses(host: &str, port: u16, spec: &Spec) -> Vec<SocketAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return vec![SocketAddr::new(ip, port)];
    }
    let named = spec.names.iter().filter(|(name, _)| name == bare).map(|(_, ip)| *ip);
    let own = spec.address_of(bare);
    let local = (bare == "localhost").then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    named.chain(own).chain(local).map(|ip| SocketAddr::new(ip, port)).collect()
}

/// The servers of each `upstream` block, by the names that the edge's account gives them.
pub fn groups(tree: &Tree, spec: &Spec) -> Vec<BTreeSet<String>> {
    let of_server = |server: &Statement| -> Vec<String> {
        let word = server.text(0);
        if word.starts_with("unix:") {
            return vec![word.to_owned()];
        }
        let (host, port) = match word.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(80)),
            _ => (word, 80),
        };
        addresses(host, port, spec).iter().map(ToString::to_string).collect()
    };
    let blocks = every(tree).filter(|one| one.name == *"upstream" && one.is_block());
    blocks.map(|block| block.named("server").flat_map(of_server).collect()).collect()
}

/// `server unix:/path;`, `proxy_pass http://unix:/path:/uri;`.
pub(super) fn paths(tree: &Tree) -> BTreeSet<String> {
    let mut open: Vec<&Statement> = tree.root.iter().collect();
    let mut found = BTreeSet::new();
    while let Some(statement) = open.pop() {
        open.extend(statement.children());
        if matches!(statement.name.text.as_str(), "server" | "proxy_pass")
            && let Some((_, path)) = statement.text(0).split_once("unix:")
        {
            found.insert(path.split(':').next().unwrap_or_default().to_owned());
        }
    }
    found
}

/// Whether a process on a host that listens at these addresses is one of the upstreams.
pub fn is_one(listens: &[String], host: &str, upstreams: &Upstreams, spec: &Spec) -> bool {
    listens.iter().any(|at| {
        if let Some(path) = at.strip_prefix("unix:") {
            return upstreams.paths.contains(path);
        }
        let Ok(at) = at.parse::<SocketAddr>() else { return false };
        upstreams.addresses.iter().any(|peer| {
            let is_there = peer.ip() == at.ip() || (at.ip().is_unspecified() && is_of(host, peer.ip(), spec));
            peer.port() == at.port() && is_there && (!peer.ip().is_loopback() || host == HUB)
        })
    })
}

/// Whether an address belongs to a host.
fn is_of(host: &str, ip: IpAddr, spec: &Spec) -> bool {
    let own = spec.hosts.iter().filter(|known| known.name == host).flat_map(|known| known.addresses.iter().copied());
    (ip.is_loopback() && host == HUB) || spec.address_of(host).into_iter().chain(own).any(|known| known == ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Host;
    use weir_conf::MemoryFiles;

    #[test]
    fn an_application_listens_where_the_edge_asks() {
        let text = "http { upstream app { server app:3000; server 127.0.0.1:4000; server unix:/run/a.sock; }
            server { listen 80; location / { proxy_pass http://app; } } }";
        let (tree, _) = weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false);
        let far = IpAddr::V4(Ipv4Addr::new(10, 99, 255, 10));
        let spec = Spec {
            hosts: vec![Host { addresses: vec![far], ..Host::named("origin") }, Host::named("db")],
            names: vec![("app".to_owned(), far)],
            ..Spec::default()
        };
        let known = upstreams(&tree, &spec);
        let of = |at: &str, host: &str| is_one(&[at.to_owned()], host, &known, &spec);
        assert!(of("0.0.0.0:3000", "origin") && of("[::]:3000", "origin") && of("10.99.255.10:3000", "origin"));
        assert!(of("127.0.0.1:4000", HUB) && of("0.0.0.0:4000", HUB) && of("unix:/run/a.sock", HUB));
        let more = "http { upstream a { server app:3000; server [::1]:4000 down; } upstream b { server unix:/b; server 10.0.0.9; } }";
        let (tree, _) = weir_conf::load(&MemoryFiles::new().with("/n.conf", more), "/n.conf", "/", &|_| false);
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        assert_eq!(
            groups(&tree, &spec),
            [named(&["10.99.255.10:3000", "[::1]:4000"]), named(&["unix:/b", "10.0.0.9:80"])]
        );
        // None of these is an upstream: another port, another host, the loopback of another host, a process without a
        // listening socket.
        assert!(!of("0.0.0.0:3306", "origin") && !of("0.0.0.0:3000", "db") && !of("127.0.0.1:4000", "db"));
        assert!(!of("unix:/run/b.sock", HUB) && !is_one(&[], HUB, &known, &spec));
    }
}
