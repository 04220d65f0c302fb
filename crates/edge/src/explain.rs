//! The output of `-T --explain`: where weir's defaults differ from nginx's and whether the file decides instead, and
//! which statements have no effect.

use std::fmt::Write;

use weir_conf::{Statement, Tree};
use weir_http::read::directive::{
    Contexts, Directive, EVENTS, HTTP, LIMIT_EXCEPT, LOCATION, LOCATION_IF, MAIN, SERVER, SERVER_IF, UPSTREAM,
};

use crate::family::ALL;

/// If a file sets a directive more often than this, the text names the first places and counts the others.
const PLACES_SHOWN: usize = 3;

/// A default that differs from nginx's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// The directive.
    pub name: &'static str,
    /// weir's default.
    pub ours: &'static str,
    /// nginx's default.
    pub theirs: &'static str,
    /// The places where the file sets it, which decide instead. `None`: the default is in force.
    pub set_in: Option<String>,
}

/// The defaults that differ from nginx's.
pub fn differing(tree: &Tree) -> Vec<Differing> {
    let mut found = Vec::new();
    collect(&tree.root, MAIN, &mut found);
    let all = ALL.all.iter().flat_map(|family| family.directives);
    let of = |directive: &'static Directive| {
        let (ours, theirs) = directive.default.split_once(" (nginx: ")?;
        let set_in = places(tree, &found, directive, |_| true);
        Some(Differing { name: directive.name, ours, theirs: theirs.trim_end_matches(')'), set_in })
    };
    all.filter_map(of).collect()
}

/// Makes the text; each line is a comment.
pub fn explain(tree: &Tree) -> String {
    let mut found = Vec::new();
    collect(&tree.root, MAIN, &mut found);
    let mut text =
        String::from("# defaults that differ from nginx's; a directive that the file sets has nginx's meaning\n");
    for one in differing(tree) {
        let decided = one.set_in.map_or("not set in the file".to_owned(), |places| format!("set in {places}"));
        line(&mut text, format_args!("{}: {} (nginx: {}); {decided}", one.name, one.ours, one.theirs));
    }
    let mut begun = false;
    for directive in ALL.all.iter().flat_map(|family| family.directives).filter(|directive| directive.idle) {
        if let Some(places) = places(tree, &found, directive, |statement| directive.is_idle_in(statement)) {
            if !begun {
                line(&mut text, format_args!("directives in the file that have no effect"));
                begun = true;
            }
            line(&mut text, format_args!("{} in {places}: {}", directive.name, directive.doc));
        }
    }
    text
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    let written = writeln!(text, "# {words}");
    debug_assert!(written.is_ok()); // a String takes everything
}

/// Every statement with its directive.
fn collect<'t>(statements: &'t [Statement], context: Contexts, found: &mut Vec<(&'t Statement, &'static Directive)>) {
    for statement in statements {
        if let Some(directive) = ALL.known.directive(&statement.name.text, context) {
            found.push((statement, directive));
        }
        if let Some(inside) = inside(&statement.name.text, context) {
            collect(statement.children(), inside, found);
        }
    }
}

/// The contexts inside a block of this name; `None` for blocks that hold no directives (`types`, `map`).
fn inside(name: &str, context: Contexts) -> Option<Contexts> {
    Some(match name {
        "events" => EVENTS,
        "http" => HTTP,
        "server" if context == HTTP => SERVER,
        "upstream" => UPSTREAM,
        "location" => LOCATION,
        "if" if context == SERVER => SERVER_IF,
        "if" => LOCATION_IF,
        "limit_except" => LIMIT_EXCEPT,
        _ => return None,
    })
}

/// `FILE:LINE, FILE:LINE and 5 more`; `None` when the file has no such statement.
fn places(
    tree: &Tree,
    found: &[(&Statement, &'static Directive)],
    directive: &'static Directive,
    counts: impl Fn(&Statement) -> bool,
) -> Option<String> {
    let of_it =
        |(statement, its): &&(&Statement, &'static Directive)| std::ptr::eq(*its, directive) && counts(statement);
    let places: Vec<String> = found
        .iter()
        .filter(of_it)
        .map(|(statement, _)| match tree.source(&statement.at) {
            Some(source) if !source.is_command_line => format!("{}:{}", source.name, statement.at.line),
            Some(_) | None => "command line".to_owned(),
        })
        .collect();
    let more = places.len().saturating_sub(PLACES_SHOWN);
    let shown = places.get(..PLACES_SHOWN).unwrap_or(&places).join(", ");
    match (places.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str) -> String {
        let files = weir_conf::MemoryFiles::new().with("/p/nginx.conf", text);
        let (tree, _) = weir_conf::load_with_globals(&files, "/p/nginx.conf", "/p/", &|_| false, "worker_processes 3;");
        explain(&tree)
    }

    #[test]
    fn a_differing_default_is_compared_with_the_file() {
        let text = of_text("events {}\nhttp { sendfile off;\n upstream u { keepalive 4; } server { sendfile on; } }");
        for expected in [
            "# worker_processes: auto (nginx: 1); set in command line\n",
            "# sendfile: on (nginx: off); set in /p/nginx.conf:2, /p/nginx.conf:3\n",
            "# proxy_buffer_size: 16k (nginx: 4k|8k); not set in the file\n",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("no effect"), "{text}");
    }

    #[test]
    fn statements_without_effect_are_named_with_the_reason() {
        let text = of_text(
            "events { multi_accept on; accept_mutex on; }
             http { aio off; directio 9m;
             server { directio 1m;
             location / { directio 2m;
             if ($args) { }
             location /a { directio 3m; } } } }",
        );
        assert!(!text.contains("# aio in") && !text.contains("# multi_accept in"), "{text}");
        assert!(text.contains("# accept_mutex in /p/nginx.conf:1: the kernel"), "{text}");
        let places = "# directio in /p/nginx.conf:2, /p/nginx.conf:3, /p/nginx.conf:4 and 1 more: weir reads";
        assert!(text.contains(places), "{text}");
    }
}
