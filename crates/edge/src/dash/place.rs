//! The dashboard's own address: a server in addition to the servers of the file.

use std::net::{Ipv4Addr, SocketAddr};

use weir_conf::{Source, Statement, Tree, Word};
use weir_net::{Address, ListenOptions, Listening, listener, process};

/// The first of the ports tried.
pub const PORT: u16 = 9144;
/// How many ports are tried.
pub const PORTS: u16 = 10;

/// Binds the first free port of loopback; `None` when none is.
pub fn claim() -> Option<Listening> {
    let address = |port| Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    (PORT..PORT + PORTS).find_map(|port| listener::bind(&address(port), &ListenOptions::default()).ok())
}

/// The variable in which a binary passes the address of the dashboard to its successor (USR2).
pub const ENV_ADDRESS: &str = "WEIR_DASHBOARD";

/// The address of the dashboard whose socket this process has from the one before it: from the binary that it replaces, or
/// from systemd's store.
pub fn kept() -> Option<SocketAddr> {
    if process::is_successor() {
        return std::env::var(ENV_ADDRESS).ok()?.parse().ok();
    }
    // The names are those of another process if a parent was started by systemd (sd_listen_fds(3)).
    let is_ours = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    named(&std::env::var("LISTEN_FDNAMES").ok().filter(|_| is_ours)?)
}

/// The first of our own addresses among the names of the sockets in systemd's store ([`process::Manager`]).
fn named(names: &str) -> Option<SocketAddr> {
    let addresses = names.split(':').filter_map(|name| name.replace('_', ":").parse().ok());
    addresses.into_iter().find(|address: &SocketAddr| {
        address.ip() == Ipv4Addr::LOCALHOST && (PORT..PORT + PORTS).contains(&address.port())
    })
}

/// The value of `dashboard` at the top of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// No `dashboard` directive: the command decides.
    Unsaid,
    /// `off`.
    Off,
    /// `on`: the first free one of our own ports.
    On,
    /// An address.
    At(SocketAddr),
}

/// The value in a tree. An invalid value is refused later, when its directive is read.
pub fn wanted(tree: &Tree) -> Wanted {
    match tree.root.iter().rfind(|statement| statement.name == *"dashboard").map(|statement| statement.text(0)) {
        None => Wanted::Unsaid,
        Some(text) => parse(text).unwrap_or(Wanted::Off),
    }
}

/// `on`, `off`, or ADDR:PORT.
pub fn parse(text: &str) -> Option<Wanted> {
    match text {
        "on" => Some(Wanted::On),
        "off" => Some(Wanted::Off),
        text => text.parse().ok().filter(|address: &SocketAddr| address.port() > 0).map(Wanted::At),
    }
}

/// The first of our own addresses: what `on` means where nothing is bound.
pub fn first() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))
}

/// Puts a server with the dashboard into the tree.
pub fn add(tree: &mut Tree, address: SocketAddr) {
    let text = format!("server {{ listen {address}; access_log off; record off; location / {{ dashboard; }} }}");
    let Ok(file) = u32::try_from(tree.files.len()) else { return };
    let servers = weir_conf::parse(text.as_bytes(), file, &|_| false).statements;
    tree.files.push(Source { name: "dashboard".to_owned(), bytes: text.into_bytes(), is_command_line: true });
    let http = tree.root.iter_mut().find(|statement| statement.name == *"http" && statement.is_block());
    match http.and_then(|http| http.block.as_mut()) {
        Some(block) => block.extend(servers),
        None => {
            let at = servers.first().map(|server| server.at).unwrap_or_default();
            let name = Word::new(b"http".to_vec(), at, None);
            tree.root.push(Statement { name, args: Vec::new(), block: Some(servers), at, end: at });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tree(text: &str) -> Tree {
        let files = weir_conf::MemoryFiles::new().with("/p/nginx.conf", text);
        weir_conf::load(&files, "/p/nginx.conf", "/p/", &|_| false).0
    }

    #[test]
    fn a_file_says_whether_and_where() {
        let at = |text: &str| Wanted::At(text.parse().unwrap());
        for (text, expected) in [
            ("events {} http {}", Wanted::Unsaid),
            ("events {} http { server { location / { dashboard; } } }", Wanted::Unsaid),
            ("dashboard off;", Wanted::Off),
            ("dashboard on;", Wanted::On),
            ("dashboard 127.0.0.1:9144;", at("127.0.0.1:9144")),
            ("dashboard 10.0.0.1:99;", at("10.0.0.1:99")),
            ("dashboard [::1]:99;", at("[::1]:99")),
            ("dashboard yes;", Wanted::Off),
        ] {
            assert_eq!(wanted(&tree(text)), expected, "{text}");
        }
    }

    #[test]
    fn systemds_store_has_the_address_of_the_process_before() {
        for (names, expected) in [
            ("0.0.0.0_80:127.0.0.1_9146", Some("127.0.0.1:9146")),
            ("127.0.0.1_80:[__1]_443:unknown", None),
            ("", None),
        ] {
            assert_eq!(named(names), expected.map(|address| address.parse().unwrap()), "{names}");
        }
    }

    #[test]
    fn a_server_is_added_to_what_is_there() {
        for text in ["events {}", "events {} http { server { listen 1; } }"] {
            let mut tree = tree(text);
            add(&mut tree, "127.0.0.1:9144".parse().unwrap());
            let http = tree.root.iter().find(|statement| statement.name == *"http").unwrap();
            let server = http.children().last().unwrap();
            assert_eq!(server.named("listen").next().unwrap().text(0), "127.0.0.1:9144");
        }
    }

    #[test]
    fn the_next_free_port_is_claimed() {
        let Some(first) = claim() else { return };
        let second = claim();
        assert!(second.is_none_or(|second| second.local_addr() != first.local_addr()));
    }
}
