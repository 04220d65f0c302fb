//! A file that is a part of a configuration: the blocks that belong around it.
//!
//! nginx includes such a file somewhere. Its first statements say where: `server` belongs in `http`, `proxy_pass` in a location.
//! weir reads the part inside of these blocks, so that its own lines and offsets stay as they are.

use weir_conf::Statement;
use weir_http::read::contexts::{
    Contexts, EVENTS, HTTP, LOCATION, LOCATION_IF, MAIN, SERVER, SERVER_IF, STREAM, STREAM_SERVER, STREAM_UPSTREAM,
    UPSTREAM,
};
use weir_http::read::nginx_only;

/// The name by which the file around a part includes the part.
pub const OWN_NAME: &str = "/weir-lsp:part";

/// The name of the file around a part.
pub const AROUND_NAME: &str = "/weir-lsp:around";

/// Most statements of a part that are looked at.
const STATEMENTS_MAX: usize = 2_000;

/// Deepest blocks of a part that are looked at.
const DEPTH_MAX: usize = 3;

/// A place for a part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PartLevel {
    /// The innermost block, as nginx's documentation names it.
    pub context: &'static str,
    bit: Contexts,
    /// The file before and after the `include` of the part.
    before: &'static str,
    after: &'static str,
}

const fn level(context: &'static str, bit: Contexts, before: &'static str, after: &'static str) -> PartLevel {
    PartLevel { context, bit, before, after }
}

/// Every place. If several fit equally, the first counts.
const LEVELS: [PartLevel; 9] = [
    level("http", HTTP, "events { } http { ", " }"),
    level("server", SERVER, "events { } http { server { ", " } }"),
    level("location", LOCATION, "events { } http { server { location / { ", " } } }"),
    level("upstream", UPSTREAM, "events { } http { upstream weir_part { ", " } }"),
    level("main", MAIN, "events { } ", ""),
    level("events", EVENTS, "events { ", " }"),
    level("stream", STREAM, "stream { ", " }"),
    level("stream server", STREAM_SERVER, "stream { server { ", " } }"),
    level("stream upstream", STREAM_UPSTREAM, "stream { upstream weir_part { ", " } }"),
];

impl PartLevel {
    /// The file around a part.
    pub fn around(self) -> String {
        format!("{}include {OWN_NAME};{}\n", self.before, self.after)
    }
}

/// The place of a part with these statements; `None` if none fits, as for lines of a `map`. A part without statements belongs in
/// `http`.
pub fn level_of(statements: &[Statement]) -> Option<PartLevel> {
    if statements.is_empty() {
        return LEVELS.first().copied();
    }
    let scored = LEVELS.iter().map(|level| (score(statements, level.context, level.bit, DEPTH_MAX), level));
    // `max_by_key` would take the last of the best.
    let best = scored.fold(None, |best: Option<(i64, &PartLevel)>, (score, level)| match best {
        Some((other, _)) if other >= score => best,
        _ => Some((score, level)),
    });
    best.filter(|(score, _)| *score > 0).map(|(_, level)| *level)
}

/// How well statements fit: one for each that is allowed, minus two for each that belongs elsewhere.
fn score(statements: &[Statement], context: &str, bit: Contexts, depth: usize) -> i64 {
    let one = |statement: &Statement| {
        let name = statement.name.text.as_str();
        if name == "include" {
            return 0;
        }
        let is_known = nginx_only::lookup(name).is_some() || weir_edge::family::ALL.known.has(name);
        let own = match (is_allowed(name, context, bit, statement.is_block()), is_known) {
            (true, _) => 1,
            (false, true) => -2,
            (false, false) => 0,
        };
        let inner = inside(name, context).filter(|_| own > 0 && depth > 0 && statement.is_block());
        own + inner.map_or(0, |(context, bit)| score(statement.children(), context, bit, depth - 1))
    };
    statements.iter().take(STATEMENTS_MAX).map(one).sum()
}

/// Whether a directive may stand in such a block.
fn is_allowed(name: &str, context: &str, bit: Contexts, is_block: bool) -> bool {
    // `server` is a block in http, and a line in an upstream.
    if name == "server" && is_block == context.ends_with("upstream") {
        return false;
    }
    nginx_only::lookup(name).is_some_and(|entry| entry.is_allowed_in(context))
        || weir_edge::family::ALL.known.directive(name, bit).is_some_and(|directive| directive.contexts.meets(bit))
}

/// The inside of a block.
fn inside(name: &str, context: &str) -> Option<(&'static str, Contexts)> {
    Some(match (name, context) {
        ("http", "main") => ("http", HTTP),
        ("events", "main") => ("events", EVENTS),
        ("stream", "main") => ("stream", STREAM),
        ("server", "http") => ("server", SERVER),
        ("upstream", "http") => ("upstream", UPSTREAM),
        ("location", "server" | "location") => ("location", LOCATION),
        ("if", "server") => ("if in server", SERVER_IF),
        ("if", "location") => ("if in location", LOCATION_IF),
        ("server", "stream") => ("stream server", STREAM_SERVER),
        ("upstream", "stream") => ("stream upstream", STREAM_UPSTREAM),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(text: &str) -> Option<&'static str> {
        level_of(&weir_conf::parse(text.as_bytes(), 0, &|_| false).statements).map(|level| level.context)
    }

    #[test]
    fn a_part_is_put_where_its_statements_belong() {
        for (text, expected) in [
            ("", Some("http")),
            ("server { listen 80; server_name a; location / { proxy_pass http://b; } }", Some("http")),
            ("upstream a { server 10.0.0.1; } server { listen 80; }", Some("http")),
            ("upstream a { server 10.0.0.1; }", Some("http")),
            ("gzip on; gzip_types text/css;", Some("http")),
            ("location /a { return 204; }", Some("server")),
            ("listen 443 ssl; ssl_certificate a;", Some("server")),
            ("proxy_set_header Host $host; proxy_pass http://a;", Some("location")),
            ("server 10.0.0.1; keepalive 8;", Some("upstream")),
            ("server { listen 1; proxy_pass a:1; }", Some("stream")),
            ("listen 1; proxy_pass a:1;", Some("stream server")),
            ("load_module a.so;", Some("main")),
            ("worker_connections 9;", Some("events")),
            ("~*bot 1; default 0;", None),
            ("include a; include b;", None),
        ] {
            assert_eq!(context(text), expected, "{text}");
        }
    }

    #[test]
    fn every_place_holds_its_include_and_nothing_else() {
        for level in LEVELS {
            let text = level.around();
            let parsed = weir_conf::parse(text.as_bytes(), 0, &|_| false);
            assert!(parsed.problems.is_empty() && text.matches("include").count() == 1, "{text}");
        }
    }
}
