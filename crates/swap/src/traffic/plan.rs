//! Chooses the requests: each location of each server first, then more of each.

use std::collections::{HashMap, HashSet};

use weir_conf::log_format::Entry;
use weir_conf::{Statement, Tree};
use weir_http::exchange::conf::{Conf, Location, Server};
use weir_http::exchange::route::{LocationId, NameKind, Place, ServerId};
use weir_http::text::slots::SlotStore;
use weir_wire::target;

use crate::doors::{self, Door};

/// A body of this length or more is not fetched: the request becomes HEAD.
pub const BODY_BYTES_MAX: u64 = 8 << 20;

/// A request for both edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRequest {
    /// The index of its door.
    pub door: usize,
    /// GET or HEAD.
    pub method: &'static str,
    /// The Host field, with the port that a client of nginx would send.
    pub host: String,
    /// Path and query.
    pub target: String,
    /// The location that answers: `FILE:LINE location /x`.
    pub place: String,
}

/// A URL from a log, with the servers that write this log.
pub struct Logged<'l> {
    /// The line.
    pub entry: &'l Entry,
    /// The servers' numbers.
    pub servers: &'l [usize],
}

/// A server at a door, with a host that leads to it.
struct Way<'c> {
    door: usize,
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
        for (door, one) in doors.iter().enumerate().filter(|(_, door)| door.nginx.is_some() && !door.proxy_protocol) {
            let Some(listen) = conf.listens.get(one.listen) else { continue };
            let leads = |host: &str, id: ServerId| {
                listen.hosts.find(host.as_bytes(), &mut SlotStore::default()).ok() == Some(id)
            };
            for server in &conf.servers {
                if let Some(host) = hosts(server).into_iter().find(|host| leads(host, server.id)) {
                    ways.push(Way { door, server, host });
                }
            }
        }
        Planner { conf, tree, doors, ways }
    }

    /// Servers that no request can reach: all their names are patterns, or their address takes no TCP.
    pub fn unreached(&self) -> Vec<String> {
        let is_reached = |server: &&Server| self.ways.iter().any(|way| way.server.id == server.id);
        let missed = self.conf.servers.iter().filter(|server| !is_reached(server));
        missed.map(|server| self.place(server, None)).collect()
    }

    /// Requests of a log, at most `most`, so that each location has its turn.
    pub fn requests(&self, logged: &[Logged<'_>], most: usize) -> Vec<PlannedRequest> {
        let mut groups: Vec<Vec<PlannedRequest>> = Vec::new();
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

    /// Without a log: the locations of the file that name a path.
    pub fn of_file(&self, most: usize) -> Vec<PlannedRequest> {
        let mut entries = vec![Entry { method: b"GET".to_vec(), target: b"/".to_vec(), ..Entry::default() }];
        let named = self.conf.locations.iter().filter_map(|location| location.pattern.as_ref());
        let paths = named.map(weir_http::exchange::route::Pattern::text).filter(|path| path.starts_with('/'));
        entries.extend(paths.map(|path| Entry {
            method: b"GET".to_vec(),
            target: path.into_bytes(),
            ..Entry::default()
        }));
        let all: Vec<usize> = (0..self.conf.servers.len()).collect();
        let logged: Vec<Logged<'_>> = entries.iter().map(|entry| Logged { entry, servers: &all }).collect();
        self.requests(&logged, most)
    }

    /// True if the request may have come this way.
    fn takes(&self, way: &Way<'_>, one: &Logged<'_>) -> bool {
        let writes = one.servers.contains(&(way.server.id.0 as usize));
        let is_scheme = one.entry.is_tls.is_none_or(|tls| self.doors.get(way.door).is_some_and(|door| door.tls == tls));
        writes && is_scheme && self.host_of(way, one.entry).is_some()
    }

    /// The host for this way: that of the log if it leads to this server.
    fn host_of(&self, way: &Way<'_>, entry: &Entry) -> Option<String> {
        let Some(logged) = &entry.host else { return Some(way.host.clone()) };
        let bare = logged
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
            .map_or(logged.as_str(), |(host, _)| host);
        // `$server_name` may be a pattern or nothing, which no client sends.
        let is_name = bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        if !is_name || bare.is_empty() || bare == "_" {
            return Some(way.host.clone());
        }
        let listen = self.conf.listens.get(self.doors.get(way.door)?.listen)?;
        let found = listen.hosts.find(bare.as_bytes(), &mut SlotStore::default()).ok()?;
        (found == way.server.id).then(|| bare.to_owned())
    }

    fn request(&self, way: &Way<'_>, entry: &Entry) -> Option<(PlannedRequest, Option<LocationId>)> {
        let target = String::from_utf8(entry.target.clone()).ok()?;
        let mut out = Vec::new();
        let normal = target::normalise(entry.target.as_slice(), true, &mut out).ok()?;
        let path = normal.path(&entry.target, &out);
        let location = match self.conf.place(way.server, path, &mut SlotStore::default()).ok()? {
            Place::Here(id) | Place::AddSlash(id) => Some(id),
            Place::Nowhere => None,
        };
        let door = self.doors.get(way.door)?;
        let host = self.host_of(way, entry)?;
        let default = if door.tls { 443 } else { 80 };
        let host = if door.port() == default { host } else { format!("{host}:{}", door.port()) };
        let is_head = entry.method == b"HEAD" || entry.body_bytes.is_some_and(|bytes| bytes >= BODY_BYTES_MAX);
        let place = self.place(way.server, location.map(|id| self.conf.location(id)));
        Some((
            PlannedRequest { door: way.door, method: if is_head { "HEAD" } else { "GET" }, host, target, place },
            location,
        ))
    }

    /// `FILE:LINE location /x`, or the line of the server.
    fn place(&self, server: &Server, location: Option<&Location>) -> String {
        let Some(block) = doors::servers(self.tree).nth(server.id.0 as usize) else { return String::new() };
        let label = location.and_then(|location| location.pattern.as_ref()).map(|pattern| pattern.text());
        let found = label.as_ref().and_then(|label| find(block, label));
        let (at, shown) = match found {
            Some(statement) => {
                let words: Vec<&str> = statement.words().map(|word| word.text.as_str()).collect();
                (statement.at, words.join(" "))
            }
            None => (block.at, format!("server {}", server.name).trim_end().to_owned()),
        };
        format!("{} {shown}", weir_conf::places(&[at], self.tree))
    }
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
    usual.chain(["localhost".to_owned()]).collect()
}

/// One of each group, then another of each, up to `most`.
fn take_turns(groups: Vec<Vec<PlannedRequest>>, most: usize) -> Vec<PlannedRequest> {
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
        let doors = doors::of(&conf).unwrap();
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
            .map(|one| format!("{}{} {}", one.host, one.target, one.place))
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
        assert!(planner.of_file(100).iter().any(|one| one.target == "/deep/er"));
    }
}
