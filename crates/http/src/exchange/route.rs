//! Chooses the server and the location that answer: addresses, host names, URIs.
//!
//! nginx's rules: <https://nginx.org/en/docs/http/request_processing.html> and
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#location>. Pure lookups; no allocation.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use weir_conf::At;
use weir_net::{Address, ListenOptions};

use crate::text::regex::{MatchFailed, SharedRegex};
use crate::text::slots::SlotStore;

/// The number of a server in `Conf::servers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerId(pub u32);

/// The number of a location in `Conf::locations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationId(pub u32);

/// One name as written.
#[derive(Clone)]
pub struct Name {
    /// For `$server_name`.
    pub shown: String,
    /// The patterns of the name; `.example.com` has two.
    pub kinds: Vec<NameKind>,
}

/// One way a name matches.
#[derive(Clone)]
pub enum NameKind {
    /// The whole host, lower case.
    Exact(String),
    /// `*.example.com`, kept as `.example.com`.
    Suffix(String),
    /// `www.example.*`, kept as `www.example.`.
    Prefix(String),
    /// `~regex`.
    Regex(SharedRegex),
}

/// How a location matches.
#[derive(Clone)]
pub enum Pattern {
    /// `= /path`.
    Exact(String),
    /// `/path` or `^~ /path`.
    Prefix {
        /// The prefix of the URI.
        path: String,
        /// `^~`: regular expressions are not tried.
        stops_regex: bool,
    },
    /// `~ regex` or `~* regex`.
    Regex(SharedRegex),
    /// `@name`, without the `@`.
    Named(String),
}

impl Pattern {
    /// The location as the file writes it.
    pub fn label(&self) -> String {
        match self {
            Pattern::Exact(path) => format!("= {path}"),
            Pattern::Prefix { path, .. } => path.clone(),
            Pattern::Regex(_) => format!("~ {}", self.text()),
            Pattern::Named(_) => self.text(),
        }
    }

    /// The path, pattern or name.
    pub fn text(&self) -> String {
        match self {
            Pattern::Exact(path) | Pattern::Prefix { path, .. } => path.clone(),
            Pattern::Regex(regex) => regex.pattern().to_owned(),
            Pattern::Named(name) => format!("@{name}"),
        }
    }

    /// Whether `proxy_pass` here must not have a URI (nginx refuses it).
    pub fn forbids_uri(&self) -> bool {
        matches!(self, Pattern::Regex(_) | Pattern::Named(_))
    }
}

/// A set of request methods, for `limit_except`.
#[derive(Clone, Debug, Default)]
pub struct Methods(pub Vec<String>);

impl Methods {
    /// Whether the set holds the method.
    pub fn has(&self, method: &[u8]) -> bool {
        self.0.iter().any(|name| name.as_bytes() == method)
    }
}

/// A socket to listen on, and the `Listen` for each local address of its connections.
pub struct Socket {
    /// The address it is bound to.
    pub address: Address,
    /// Its options.
    pub options: ListenOptions,
    /// The listen for connections to any other address.
    pub fallback: usize,
    /// Listens for particular addresses behind a wildcard socket.
    pub by_address: Vec<(IpAddr, usize)>,
    /// The statement that names it.
    pub at: At,
}

/// The servers of one address and port.
pub struct Listen {
    /// As `$server_addr:$server_port` shows it, or `unix:path`.
    pub address: Address,
    /// Its servers by name.
    pub hosts: Hosts,
    /// Connections begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// TLS is spoken.
    pub ssl: bool,
    /// HTTP/2 is spoken, also if the servers do not ask for it.
    pub http2: bool,
    /// QUIC is spoken, over UDP.
    pub quic: bool,
}

/// Host names to servers, in nginx's order of precedence: exact, `*.x`, `x.*`, regex, default.
pub struct Hosts {
    pub(crate) default: ServerId,
    exact: HashMap<Box<[u8]>, ServerId>,
    suffixes: Vec<(Box<[u8]>, ServerId)>,
    prefixes: Vec<(Box<[u8]>, ServerId)>,
    regexes: Vec<(SharedRegex, ServerId)>,
    pub(crate) only_default: bool,
}

impl Hosts {
    /// Hosts that all belong to the default server.
    pub fn new(default: ServerId) -> Hosts {
        Hosts {
            default,
            exact: HashMap::new(),
            suffixes: Vec::new(),
            prefixes: Vec::new(),
            regexes: Vec::new(),
            only_default: true,
        }
    }

    /// The server that answers if no name matches.
    pub fn default_server(&self) -> ServerId {
        self.default
    }

    /// Adds one name; `false` when another server has it already (nginx warns and ignores the second).
    pub fn add(&mut self, name: &NameKind, server: ServerId) -> bool {
        self.only_default = self.only_default && server == self.default && !matches!(name, NameKind::Regex(_));
        let vacant = |list: &mut Vec<(Box<[u8]>, ServerId)>, key: &str| {
            if list.iter().any(|(known, _)| **known == *key.as_bytes()) {
                return false;
            }
            list.push((key.as_bytes().into(), server));
            list.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
            true
        };
        match name {
            NameKind::Exact(name) => {
                let key: Box<[u8]> = name.as_bytes().into();
                if self.exact.contains_key(&key) {
                    return false;
                }
                self.exact.insert(key, server);
                true
            }
            NameKind::Suffix(dotted) => vacant(&mut self.suffixes, dotted),
            NameKind::Prefix(dotted) => vacant(&mut self.prefixes, dotted),
            NameKind::Regex(regex) => {
                self.regexes.push((regex.clone(), server));
                true
            }
        }
    }

    /// The server for a lower-case host without port. A regex name leaves its named captures in `slots`.
    pub fn find(&self, host: &[u8], slots: &mut SlotStore) -> Result<ServerId, MatchFailed> {
        if self.only_default {
            return Ok(self.default);
        }
        if let Some(server) = self.exact.get(host) {
            return Ok(*server);
        }
        if let Some((_, server)) =
            self.suffixes.iter().find(|(dotted, _)| host.len() > dotted.len() && host.ends_with(dotted))
        {
            return Ok(*server);
        }
        if let Some((_, server)) =
            self.prefixes.iter().find(|(dotted, _)| host.len() > dotted.len() && host.starts_with(dotted))
        {
            return Ok(*server);
        }
        for (regex, server) in &self.regexes {
            if slots.capture(regex, host)? {
                return Ok(*server);
            }
        }
        Ok(self.default)
    }
}

/// The locations of one level.
#[derive(Default)]
pub struct Places {
    exact: HashMap<Box<[u8]>, LocationId>,
    /// Sorted by name, each with the longest other prefix that is a prefix of it.
    prefixes: Vec<Prefix>,
    /// Prefix locations that end in a slash and ask an origin: a URI without the slash is redirected.
    slashless: HashMap<Box<[u8]>, LocationId>,
    regexes: Vec<(SharedRegex, LocationId)>,
}

struct Prefix {
    name: Box<[u8]>,
    id: LocationId,
    stops_regex: bool,
    parent: Option<usize>,
}

/// The result of looking up a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This location answers.
    Here(LocationId),
    /// The URI lacks the final slash of this location's name: redirect there.
    AddSlash(LocationId),
    /// No location: the settings of the server level apply.
    Nowhere,
}

impl Places {
    /// Whether there are no locations.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && self.regexes.is_empty()
    }

    /// Adds `location = path`; `true` if it was already there.
    pub fn add_exact(&mut self, path: &str, id: LocationId) -> bool {
        self.exact.insert(path.as_bytes().into(), id).is_some()
    }

    /// Adds `location path` or `location ^~ path`; `true` if it was already there.
    pub fn add_prefix(&mut self, path: &str, id: LocationId, stops_regex: bool, redirects: bool) -> bool {
        let name: Box<[u8]> = path.as_bytes().into();
        if self.prefixes.iter().any(|prefix| prefix.name == name) {
            return true;
        }
        if redirects && path.len() > 1 {
            self.slashless.insert(path.as_bytes()[..path.len() - 1].into(), id);
        }
        self.prefixes.push(Prefix { name, id, stops_regex, parent: None });
        false
    }

    /// Adds `location ~ regex`.
    pub fn add_regex(&mut self, regex: SharedRegex, id: LocationId) {
        self.regexes.push((regex, id));
    }

    /// Sorts the prefixes and links each to its longest proper prefix.
    pub fn compile(&mut self) {
        self.prefixes.sort_by(|a, b| a.name.cmp(&b.name));
        for index in 0..self.prefixes.len() {
            let parent =
                (0..index).rev().find(|before| self.prefixes[index].name.starts_with(&self.prefixes[*before].name));
            self.prefixes[index].parent = parent;
        }
    }

    #[inline]
    fn longest_prefix(&self, uri: &[u8]) -> Option<&Prefix> {
        let after = self.prefixes.partition_point(|prefix| *prefix.name <= *uri);
        let mut candidate = after.checked_sub(1);
        while let Some(prefix) = candidate.and_then(|index| self.prefixes.get(index)) {
            if uri.starts_with(&prefix.name) {
                return Some(prefix);
            }
            candidate = prefix.parent;
        }
        None
    }

    /// Finds the location of a URI at this level, and inside the location it finds: `inner` gives the locations in a
    /// location. The flag means "decided, do not
    /// try regexes".
    pub fn find<'p>(
        &self,
        inner: &impl Fn(LocationId) -> &'p Places,
        uri: &[u8],
        slots: &mut SlotStore,
    ) -> Result<(Place, bool), MatchFailed> {
        if let Some(id) = self.exact.get(uri) {
            return Ok((Place::Here(*id), true));
        }
        let longest = self.longest_prefix(uri);
        // nginx: a location of exactly this name goes before the redirect to the one with a slash.
        if longest.is_none_or(|prefix| prefix.name.len() != uri.len())
            && let Some(id) = self.slashless.get(uri)
        {
            return Ok((Place::AddSlash(*id), true));
        }
        let mut found = Place::Nowhere;
        let mut stops_regex = false;
        if let Some(prefix) = longest {
            found = Place::Here(prefix.id);
            stops_regex = prefix.stops_regex;
            let inside = inner(prefix.id);
            if !inside.is_empty() {
                let (place, decided) = inside.find(inner, uri, slots)?;
                if place != Place::Nowhere {
                    found = place;
                }
                if decided {
                    return Ok((found, true));
                }
            }
        }
        if !stops_regex {
            for (regex, id) in &self.regexes {
                if slots.capture(regex, uri)? {
                    let inside = inner(*id);
                    let place = if inside.is_empty() { Place::Nowhere } else { inside.find(inner, uri, slots)?.0 };
                    return Ok((if place == Place::Nowhere { Place::Here(*id) } else { place }, true));
                }
            }
        }
        Ok((found, false))
    }
}

impl Socket {
    /// The listen for a connection to this local address.
    pub fn listen_for(&self, local: Option<&SocketAddr>) -> usize {
        let Some(local) = local else { return self.fallback };
        self.by_address.iter().find(|(ip, _)| *ip == local.ip()).map_or(self.fallback, |(_, index)| *index)
    }
}
