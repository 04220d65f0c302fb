//! The inside of a block: which directives may stand there, in weir's words and in nginx's.

use weir_http::read::directive::{
    Contexts, Directive, EVENTS, HTTP, LIMIT_EXCEPT, LOCATION, LOCATION_IF, MAIN, MATCH, SERVER, SERVER_IF, STREAM,
    STREAM_MATCH, STREAM_SERVER, STREAM_UPSTREAM, UPSTREAM,
};
use weir_http::read::nginx_only::{self, NginxDirective};

/// The inside of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// nginx's name of the place, as in [`NginxDirective::contexts`]; empty for a block that holds no directives of nginx.
    pub nginx: &'static str,
    /// The block if it holds entries of its own kind (`map`, `types`); empty for others.
    pub data: &'static str,
    context: u16,
}

impl Inside {
    const fn of(nginx: &'static str, context: Contexts) -> Inside {
        Inside { nginx, data: "", context: context.0 }
    }

    const fn data(data: &'static str) -> Inside {
        Inside { nginx: "", data, context: 0 }
    }

    /// weir's set of contexts; empty for a block that holds entries.
    pub fn context(self) -> Contexts {
        Contexts(self.context)
    }

    /// Whether the place is in `stream`.
    pub fn is_stream(self) -> bool {
        self.context().meets(STREAM.or(STREAM_SERVER).or(STREAM_UPSTREAM).or(STREAM_MATCH))
    }
}

/// Blocks whose statements are entries, not directives of nginx.
pub const DATA_BLOCKS: [&str; 9] =
    ["types", "map", "geo", "split_clients", "charset_map", "geoip2", "otel_exporter", "acme_issuer", "oidc_provider"];

/// The inside of the innermost of these blocks, the outermost first. A part of a configuration may begin at any block.
pub fn inside(path: &[&str]) -> Inside {
    let mut place = Inside::of("main", MAIN);
    for block in path {
        place = within(place, block);
    }
    place
}

fn within(outer: Inside, block: &str) -> Inside {
    if let Some(data) = DATA_BLOCKS.iter().find(|data| **data == block) {
        return Inside::data(data);
    }
    let in_stream = outer.is_stream();
    match (block, outer.nginx) {
        ("events", _) => Inside::of("events", EVENTS),
        ("http", _) => Inside::of("http", HTTP),
        ("stream", _) => Inside::of("stream", STREAM),
        ("mail", _) => Inside { nginx: "mail", data: "", context: 0 },
        ("server", "mail") => Inside { nginx: "mail server", data: "", context: 0 },
        ("server", _) if in_stream => Inside::of("stream server", STREAM_SERVER),
        ("server", _) => Inside::of("server", SERVER),
        ("upstream", _) if in_stream => Inside::of("stream upstream", STREAM_UPSTREAM),
        ("upstream", _) => Inside::of("upstream", UPSTREAM),
        ("location", _) => Inside::of("location", LOCATION),
        ("if", "location" | "if in location") => Inside::of("if in location", LOCATION_IF),
        ("if", _) => Inside::of("if in server", SERVER_IF),
        ("limit_except", _) => Inside::of("limit_except", LIMIT_EXCEPT),
        ("match", _) if in_stream => Inside { nginx: "", data: "", context: STREAM_MATCH.0 },
        ("match", _) => Inside { nginx: "", data: "", context: MATCH.0 },
        _ => Inside { nginx: "", data: "", context: 0 },
    }
}

/// The directive of this name that weir has here; `None` if it has none of this name, or only elsewhere.
pub fn of_weir(name: &str, inside: Inside) -> Option<&'static Directive> {
    let known = &weir_edge::family::ALL.known;
    known.directive(name, inside.context()).filter(|directive| directive.contexts.meets(inside.context()))
}

/// The directive of this name that weir has, here or elsewhere.
pub fn of_weir_anywhere(name: &str, inside: Inside) -> Option<&'static Directive> {
    weir_edge::family::ALL.known.directive(name, inside.context())
}

/// The directive of this name that nginx has.
pub fn of_nginx(name: &str) -> Option<&'static NginxDirective> {
    nginx_only::lookup(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_blocks_leads_to_its_inside() {
        for (path, nginx, data) in [
            ("", "main", ""),
            ("http/server/location/if", "if in location", ""),
            ("server/if", "if in server", ""),
            ("stream/server", "stream server", ""),
            ("stream/upstream", "stream upstream", ""),
            ("mail/server", "mail server", ""),
            ("upstream", "upstream", ""),
            ("http/map", "", "map"),
            ("http/server/types", "", "types"),
        ] {
            let path: Vec<&str> = path.split('/').filter(|block| !block.is_empty()).collect();
            let found = inside(&path);
            assert_eq!((found.nginx, found.data), (nginx, data), "{path:?}");
        }
        assert!(of_weir("proxy_pass", inside(&["stream", "server"])).is_some());
        assert!(of_weir("proxy_pass", inside(&["http", "server"])).is_none());
        assert!(of_weir_anywhere("proxy_pass", inside(&["http", "server"])).is_some());
    }
}
