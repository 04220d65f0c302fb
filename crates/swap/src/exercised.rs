//! The statements of a configuration that the requests ran through, and those that none did.

use std::collections::HashMap;

use weir_conf::{Statement, Tree};
use weir_http::text::regex::Regex;

use crate::doors;
use crate::judge::JudgedRequest;
use crate::request::{SwapRequest, field};
use crate::traffic::plan::{PlacedRequest, bare};

/// Statements that hold others together, or that only say where requests arrive.
const STRUCTURE: &[&str] = &[
    "access_log",
    "error_log",
    "events",
    "geo",
    "http",
    "include",
    "limit_req_zone",
    "limit_conn_zone",
    "listen",
    "location",
    "log_format",
    "map",
    "proxy_cache_path",
    "server",
    "server_name",
    "split_clients",
    "ssl_certificate",
    "ssl_certificate_key",
    "types",
    "upstream",
];
/// Most statements of the report.
const STATEMENTS_MAX: usize = 20_000;

/// A statement, and the requests that ran through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExercisedStatement {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The statement, without its block.
    pub text: String,
    /// The requests.
    pub requests: u64,
}

/// Counts the requests of each statement, in the order of the files. The file's own location of each request decides; a
/// `rewrite` counts if its pattern matches the path, an `if` if its condition holds or cannot be known.
pub fn statements(tree: &Tree, places: &[PlacedRequest], requests: &[JudgedRequest]) -> Vec<ExercisedStatement> {
    let mut counts = Counts { tree, all: Vec::new(), numbers: HashMap::new(), patterns: HashMap::new() };
    for http in tree.named("http") {
        counts.list(http);
    }
    for judged in requests {
        let place = judged.routed.place.and_then(|place| places.get(place));
        let Some(place) = place else { continue };
        let Some(server) = doors::servers(tree).nth(place.server) else { continue };
        for http in tree.named("http") {
            counts.block(http, &judged.routed.request);
        }
        let mut path = Vec::new();
        counts.block(server, &judged.routed.request);
        if place.location.is_some() && trace(server, place, &mut path) {
            path.into_iter().for_each(|location| counts.block(location, &judged.routed.request));
        }
    }
    counts.all
}

/// The locations around a place, the outermost first. False: it is not in this block.
fn trace<'t>(block: &'t Statement, place: &PlacedRequest, path: &mut Vec<&'t Statement>) -> bool {
    for location in block.named("location") {
        path.push(location);
        if Some(location.at) == place.at || trace(location, place, path) {
            return true;
        }
        path.pop();
    }
    false
}

struct Counts<'t> {
    tree: &'t Tree,
    all: Vec<ExercisedStatement>,
    /// By file and place in it.
    numbers: HashMap<(u32, u32), usize>,
    /// Compiled patterns. `None`: weir cannot compile it.
    patterns: HashMap<(String, bool), Option<Regex>>,
}

impl Counts<'_> {
    /// Adds all statements of a block and of the blocks in it, without requests.
    fn list(&mut self, block: &Statement) {
        for statement in block.children() {
            let name = statement.name.text.as_str();
            let key = (statement.at.file, statement.at.span.start);
            if !STRUCTURE.contains(&name) && self.all.len() < STATEMENTS_MAX && !self.numbers.contains_key(&key) {
                self.numbers.insert(key, self.all.len());
                let words: Vec<&str> = statement.words().map(|word| word.text.as_str()).collect();
                let end = if statement.is_block() { " {" } else { ";" };
                self.all.push(ExercisedStatement {
                    file: self.tree.source(&statement.at).map(|source| source.name.clone()).unwrap_or_default(),
                    line: statement.at.line,
                    text: words.join(" ") + end,
                    requests: 0,
                });
            }
            if ["server", "location", "if", "limit_except"].contains(&name) {
                self.list(statement);
            }
        }
    }

    /// Counts a request for the statements of a block.
    fn block(&mut self, block: &Statement, request: &SwapRequest) {
        for statement in block.children() {
            let runs = match statement.name.text.as_str() {
                "rewrite" => self.matches(statement.text(0), false, path(request)).unwrap_or(true),
                "if" => self.holds(statement, request).unwrap_or(true),
                _ => true,
            };
            let number = self.numbers.get(&(statement.at.file, statement.at.span.start));
            if let Some(one) = number.filter(|_| runs).and_then(|number| self.all.get_mut(*number)) {
                one.requests += 1;
            }
            if statement.name.text == "if" && runs {
                self.block(statement, request);
            }
        }
    }

    /// Whether a pattern matches. `None`: weir cannot compile it.
    fn matches(&mut self, pattern: &str, caseless: bool, subject: &[u8]) -> Option<bool> {
        let key = (pattern.to_owned(), caseless);
        let compiled = self.patterns.entry(key).or_insert_with(|| {
            let mut names = 0;
            let number = |_: &str| {
                names += 1;
                weir_http::text::slots::VariableId(names)
            };
            Regex::new(pattern, caseless, false, number).ok()
        });
        compiled.as_ref()?.is_match(subject).ok()
    }

    /// Whether the condition of an `if` holds. `None`: the request alone does not say.
    fn holds(&mut self, statement: &Statement, request: &SwapRequest) -> Option<bool> {
        let words: Vec<&str> = statement.args.iter().map(|word| word.text.as_str()).collect();
        let text = words.join(" ");
        let text = text.trim().strip_prefix('(')?.strip_suffix(')')?.trim();
        let mut words = text.splitn(3, ' ');
        let value = variable(words.next()?.strip_prefix('$')?, request)?;
        let (operator, other) = (words.next(), words.next().unwrap_or_default().trim().trim_matches(['"', '\'']));
        Some(match operator {
            None => !value.is_empty() && value != b"0",
            Some("=") => value == other.as_bytes(),
            Some("!=") => value != other.as_bytes(),
            Some("~") => self.matches(other, false, &value)?,
            Some("~*") => self.matches(other, true, &value)?,
            Some("!~") => !self.matches(other, false, &value)?,
            Some("!~*") => !self.matches(other, true, &value)?,
            Some(_) => return None,
        })
    }
}

/// The path of a request, as the client wrote it.
fn path(request: &SwapRequest) -> &[u8] {
    let end = request.target.iter().position(|byte| *byte == b'?').unwrap_or(request.target.len());
    request.target.get(..end).unwrap_or_default()
}

/// The value of a variable that the request alone decides.
fn variable(name: &str, request: &SwapRequest) -> Option<Vec<u8>> {
    let query = || request.target.iter().position(|byte| *byte == b'?').and_then(|at| request.target.get(at + 1..));
    Some(match name {
        "request_method" => request.method.clone().into_bytes(),
        "host" => bare(&request.host).as_bytes().to_vec(),
        "http_host" => request.host.clone().into_bytes(),
        "request_uri" => request.target.clone(),
        "uri" | "document_uri" => path(request).to_vec(),
        "args" | "query_string" => query().unwrap_or_default().to_vec(),
        _ => match (name.strip_prefix("http_"), name.strip_prefix("arg_")) {
            // The client's cookies differ from arm to arm.
            (Some("cookie"), _) => return None,
            (Some(name), _) => field(&request.fields, &name.replace('_', "-")).unwrap_or_default().to_vec(),
            (_, Some(name)) => {
                let mut pairs = query().unwrap_or_default().split(|byte| *byte == b'&');
                let value = pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
                value.unwrap_or_default().to_vec()
            }
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::judge::RoutedRequest;
    use weir_conf::MemoryFiles;

    #[test]
    fn statements_of_the_request_s_own_location_count() {
        let text = "http { gzip on; server { listen 80; rewrite ^/old/(.*)$ /$1;
            location / { add_header A b; if ($request_method = POST) { return 405; } if ($cookie_x) { return 403; } }
            location /api { proxy_cache c; location /api/v1 { proxy_pass http://o; } } } }";
        let tree = weir_conf::load(&MemoryFiles::new().with("/f", text), "/f", "/", &|_| false).0;
        let server = doors::servers(&tree).next().unwrap();
        let locations: Vec<&Statement> = server.named("location").collect();
        let inner = locations[1].named("location").next().unwrap();
        let placed = |at| PlacedRequest { server: 0, location: Some(1), shown: String::new(), at: Some(at) };
        let places = [placed(locations[0].at), placed(inner.at)];
        let judged = |place, target: &str| {
            let request = SwapRequest { method: "GET".to_owned(), target: target.into(), ..SwapRequest::default() };
            JudgedRequest {
                routed: RoutedRequest { request, route: String::new(), place: Some(place) },
                route: String::new(),
                status: 200,
                cache: None,
                is_comparable: true,
                differences: Vec::new(),
                noise: Default::default(),
                explained: Default::default(),
                changing: Vec::new(),
            }
        };
        let found = statements(&tree, &places, &[judged(0, "/a"), judged(1, "/api/v1/x"), judged(0, "/old/x?y")]);
        let counts: Vec<(&str, u64)> = found.iter().map(|one| (one.text.as_str(), one.requests)).collect();
        assert_eq!(
            counts,
            [
                ("gzip on;", 3),
                ("rewrite ^/old/(.*)$ /$1;", 1),
                ("add_header A b;", 2),
                ("if ($request_method = POST) {", 0),
                ("return 405;", 0),
                ("if ($cookie_x) {", 2),
                ("return 403;", 2),
                ("proxy_cache c;", 1),
                ("proxy_pass http://o;", 1),
            ]
        );
    }
}
