//! Finds the server and the location of requests, and requests for all of them.

use std::collections::{HashMap, HashSet};

use weir_conf::log_format::Entry;
use weir_conf::{At, Statement, Tree};
use weir_http::exchange::conf::{Conf, Server};
use weir_http::exchange::route::{Listen, LocationId, NameKind, Pattern, Place, ServerId};
use weir_http::text::slots::SlotStore;
use weir_wire::target;

use super::example;
use crate::doors::{self, Door};
use crate::request::SwapRequest;

/// A body of this length or more is not fetched: the request becomes HEAD.
pub const BODY_BYTES_MAX: u64 = 8 << 20;
/// The host of a server without a name that a client could send.
const NO_NAME: &str = "localhost";

/// A URL from a log, with the servers that write this log.
#[derive(Clone, Copy)]
pub struct Logged<'l> {
    /// The line.
    pub entry: &'l Entry,
    /// The servers' numbers.
    pub servers: &'l [usize],
}

/// The server and the location that answer a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedRequest {
    /// The server's number.
    pub server: usize,
    /// The location's number; `None`: the server has no location for it.
    pub location: Option<u32>,
    /// `FILE:LINE location /x`, or the line of the server.
    pub shown: String,
    /// The block in the file.
    pub at: Option<At>,
}

/// A server at a door, with a host that leads to it.
struct Way<'c> {
    door: usize,
    listen: &'c Listen,
    server: &'c Server,
    host: String,
}

/// Finds ways to the servers and requests for them.
pub struct Planner<'c> {
    conf: &'c Conf,
    tree: &'c Tree,
    doors: &'c [Door],
    ways: Vec<Way<'c>>,
}

impl<'c> Planner<'c> {
    /// Finds the ways to all servers of a configuration.
    pub fn new(conf: &'c Conf, tree: &'c Tree, doors: &'c [Door]) -> Planner<'c> {
        let mut ways = Vec::new();
        for (number, door) in doors.iter().enumerate().filter(|(_, door)| door.is_open()) {
            let Some(listen) = listen_of(conf, door) else { continue };
            let leads = |host: &str, id: ServerId| {
                listen.hosts.find(host.as_bytes(), &mut SlotStore::default()).ok() == Some(id)
            };
            for server in &conf.servers {
                if let Some(host) = hosts(server).into_iter().find(|host| leads(host, server.id)) {
                    ways.push(Way { door: number, listen, server, host });
                }
            }
        }
        Planner { conf, tree, doors, ways }
    }

    /// The number of servers.
    pub fn servers(&self) -> usize {
        self.conf.servers.len()
    }

    /// Servers that no request can reach: all their names are patterns, or their address takes no TCP.
    pub fn unreached(&self) -> Vec<String> {
        let is_reached = |server: &&Server| self.ways.iter().any(|way| way.server.id == server.id);
        let missed = self.conf.servers.iter().filter(|server| !is_reached(server));
        missed.map(|server| self.placed(server, None).shown).collect()
    }

    /// Requests of a log, at most `most`, so that each location has its turn. Equal requests are asked once.
    pub fn requests(&self, logged: &[Logged<'_>], most: usize) -> Vec<SwapRequest> {
        let mut groups: Vec<Vec<SwapRequest>> = Vec::new();
        let mut numbers: HashMap<(usize, u32, Option<u32>), usize> = HashMap::new();
        let mut known = HashSet::new();
        for one in logged {
            for way in self.ways.iter().filter(|way| self.takes(way, one)) {
                let Some((request, location)) = self.request(way, one.entry) else { continue };
                if !known.insert((request.door, request.host.clone(), request.target.clone())) {
                    continue;
                }
                let key = (way.door, way.server.id.0, location.map(|id| id.0));
                let next = groups.len();
                let number = *numbers.entry(key).or_insert(next);
                if number == next {
                    groups.push(Vec::new());
                }
                if let Some(group) = groups.get_mut(number).filter(|group| group.len() < most) {
                    group.push(request);
                }
            }
        }
        take_turns(groups, most)
    }

    /// The request of one line. `None`: no door takes it.
    pub fn request_of(&self, one: Logged<'_>) -> Option<SwapRequest> {
        let mut ways = self.ways.iter().filter(|way| self.takes(way, &one));
        ways.find_map(|way| self.request(way, one.entry)).map(|(request, _)| request)
    }

    /// Without a log: the locations of the file that name a path, and an example for those that are patterns.
    pub fn of_file(&self, most: usize) -> Vec<SwapRequest> {
        let patterns = self.conf.locations.iter().filter_map(|location| location.pattern.as_ref());
        let paths = patterns.flat_map(|pattern| match pattern {
            Pattern::Regex(_) => example::of(&pattern.text()),
            Pattern::Named(_) => Vec::new(),
            Pattern::Exact(_) | Pattern::Prefix { .. } => vec![pattern.text()],
        });
        let entry = |path: String| Entry { method: b"GET".to_vec(), target: path.into_bytes(), ..Entry::default() };
        let paths = std::iter::once("/".to_owned()).chain(paths).filter(|path| path.starts_with('/'));
        let entries: Vec<Entry> = paths.map(entry).collect();
        let all: Vec<usize> = (0..self.conf.servers.len()).collect();
        let logged: Vec<Logged<'_>> = entries.iter().map(|entry| Logged { entry, servers: &all }).collect();
        self.requests(&logged, most)
    }

    /// The server and the location that answer a request. `None`: none do.
    pub fn place(&self, request: &SwapRequest) -> Option<PlacedRequest> {
        let door = self.doors.get(request.door)?;
        let listen = listen_of(self.conf, door)?;
        let id = listen.hosts.find(bare(&request.host).as_bytes(), &mut SlotStore::default()).ok()?;
        let server = self.conf.servers.get(id.0 as usize)?;
        Some(self.placed(server, self.location(server, &request.target)?))
    }

    /// True if the request may have come this way.
    fn takes(&self, way: &Way<'_>, one: &Logged<'_>) -> bool {
        let writes = one.servers.contains(&(way.server.id.0 as usize));
        let is_scheme = one.entry.is_tls.is_none_or(|tls| self.doors.get(way.door).is_some_and(|door| door.tls == tls));
        writes && is_scheme && host_of(way, one.entry).is_some()
    }

    /// The location of a target. `None`: the server refuses the target.
    fn location(&self, server: &Server, target: &[u8]) -> Option<Option<LocationId>> {
        let mut out = Vec::new();
        let normal = target::normalise(target, true, &mut out).ok()?;
        let path = normal.path(target, &out);
        match self.conf.place(server, path, &mut SlotStore::default()).ok()? {
            Place::Here(id) | Place::AddSlash(id) => Some(Some(id)),
            Place::Nowhere => Some(None),
        }
    }

    fn request(&self, way: &Way<'_>, entry: &Entry) -> Option<(SwapRequest, Option<LocationId>)> {
        let location = self.location(way.server, &entry.target)?;
        let door = self.doors.get(way.door)?;
        let host = host_of(way, entry)?;
        let host = if door.is_default() { host } else { format!("{host}:{}", door.port()) };
        let is_head = entry.method == b"HEAD" || entry.body_bytes.is_some_and(|bytes| bytes >= BODY_BYTES_MAX);
        let method = if is_head { "HEAD".to_owned() } else { String::from_utf8(entry.method.clone()).ok()? };
        let target = entry.target.clone();
        Some((SwapRequest { door: way.door, method, host, target, ..SwapRequest::default() }, location))
    }

    fn placed(&self, server: &Server, location: Option<LocationId>) -> PlacedRequest {
        let number = server.id.0 as usize;
        let block = doors::servers(self.tree).nth(number);
        let pattern = location.and_then(|id| self.conf.location(id).pattern.as_ref());
        let label = pattern.map(Pattern::text);
        let found = block.and_then(|block| find(block, label.as_ref()?));
        let (at, shown) = match (found, block) {
            (Some(statement), _) => {
                let words: Vec<&str> = statement.words().map(|word| word.text.as_str()).collect();
                (Some(statement.at), words.join(" "))
            }
            (None, block) => (block.map(|block| block.at), format!("server {}", server.name).trim_end().to_owned()),
        };
        let place = at.map(|at| weir_conf::places(&[at], self.tree) + " ").unwrap_or_default();
        PlacedRequest { server: number, location: location.map(|id| id.0), shown: place + &shown, at }
    }
}

/// The listener of a door; for a door of another configuration, that of the same port.
fn listen_of<'c>(conf: &'c Conf, door: &Door) -> Option<&'c Listen> {
    let mut all = conf.listens.iter().filter(|listen| !listen.quic && listen.ssl == door.tls);
    let port = |listen: &&Listen| listen.address.tcp().is_some_and(|address| address.port() == door.port());
    all.clone().find(|listen| listen.address == door.address).or_else(|| all.find(port))
}

/// The host for this way: that of the log if it leads to this server.
fn host_of(way: &Way<'_>, entry: &Entry) -> Option<String> {
    let Some(logged) = &entry.host else { return Some(way.host.clone()) };
    let bare = bare(logged);
    // `$server_name` may be a pattern or nothing, which no client sends.
    let is_name = bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    if !is_name || bare.is_empty() || bare == "_" {
        return Some(way.host.clone());
    }
    let found = way.listen.hosts.find(bare.as_bytes(), &mut SlotStore::default()).ok()?;
    (found == way.server.id).then(|| bare.to_owned())
}

/// The host without its port.
pub(crate) fn bare(host: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host)
}

/// The location whose last word is this text.
fn find<'t>(block: &'t Statement, label: &str) -> Option<&'t Statement> {
    block.named("location").find_map(|location| {
        let is_it = location.args.last().is_some_and(|word| {
            word.text == label
                || (location.args.len() == 1 && word.text.trim_start_matches(['=', '~', '*', '^']) == label)
        });
        if is_it { Some(location) } else { find(location, label) }
    })
}

/// Hosts that a client of this server might send.
fn hosts(server: &Server) -> Vec<String> {
    let of_kind = |kind: &NameKind| match kind {
        NameKind::Exact(name) => Some(name.clone()),
        NameKind::Suffix(dotted) => Some(format!("www{dotted}")),
        NameKind::Prefix(dotted) => Some(format!("{dotted}test")),
        NameKind::Regex(_) => None,
    };
    let named = server.names.iter().flat_map(|name| name.kinds.iter().filter_map(of_kind));
    // `_` and names without letters are for requests that no other server takes.
    let usual = named.filter(|name| name.bytes().any(|byte| byte.is_ascii_alphanumeric()));
    usual.chain([NO_NAME.to_owned()]).collect()
}

/// One of each group, then another of each, up to `most`.
fn take_turns(groups: Vec<Vec<SwapRequest>>, most: usize) -> Vec<SwapRequest> {
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| groups.iter().filter_map(move |group| group.get(turn)));
    turns.take(most).cloned().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;
    use weir_edge::load::{self, ConfOrigin};
    use weir_http::hold::paths::Paths;

    const TEXT: &str = "events { }
http {
    server { listen 8080; server_name a.test; location / { return 200; } location = /x { return 200; }
        location ~ \\.php$ { return 200; } }
    server { listen 8080; server_name *.b.test; location /deep/ { location /deep/er { return 200; } } }
    server { listen unix:/x; }
}";

    #[test]
    fn every_location_has_its_turn_at_the_server_of_its_host() {
        let files = MemoryFiles::new().with("/e/nginx.conf", TEXT);
        let paths =
            Paths { prefix: "/p/".to_owned(), conf_prefix: "/e/".to_owned(), access_log: None, temporary: None };
        let loaded =
            load::load(&ConfOrigin { file: "/e/nginx.conf".to_owned(), paths, ..ConfOrigin::default() }, &files, 1);
        let conf = loaded.conf.unwrap();
        let mut doors = doors::of(&loaded.tree).unwrap();
        doors.iter_mut().filter(|door| door.address.tcp().is_some()).for_each(|door| door.at = [door.address.tcp(); 3]);
        let planner = Planner::new(&conf, &loaded.tree, &doors);
        assert_eq!(planner.unreached(), ["/e/nginx.conf:6 server"]);
        let entry = |host: Option<&str>, target: &str| Entry {
            method: b"GET".to_vec(),
            target: target.into(),
            host: host.map(str::to_owned),
            ..Entry::default()
        };
        let entries = [
            entry(Some("a.test"), "/1"),
            entry(Some("a.test"), "/2"),
            entry(None, "/x"),
            entry(Some("c.b.test:8080"), "/deep/er/y"),
            entry(Some("a.test"), "/%2"),
        ];
        let logged: Vec<Logged<'_>> = entries.iter().map(|entry| Logged { entry, servers: &[0, 1] }).collect();
        let seen: Vec<String> = planner
            .requests(&logged, 10)
            .iter()
            .map(|one| {
                let (target, place) = (String::from_utf8_lossy(&one.target), planner.place(one).unwrap().shown);
                format!("{}{target} {place}", one.host)
            })
            .collect();
        assert_eq!(
            seen,
            [
                "a.test:8080/1 /e/nginx.conf:3 location /",
                "a.test:8080/x /e/nginx.conf:3 location = /x",
                "www.b.test:8080/x /e/nginx.conf:5 server *.b.test",
                "c.b.test:8080/deep/er/y /e/nginx.conf:5 location /deep/er",
                "a.test:8080/2 /e/nginx.conf:3 location /",
            ]
        );
        assert_eq!(planner.requests(&logged, 2).len(), 2);
        let of_file = planner.of_file(100);
        let has = |target: &str| of_file.iter().any(|one| one.target == target.as_bytes());
        assert!(has("/deep/er") && has("/x.php"), "{of_file:?}");
    }
}
