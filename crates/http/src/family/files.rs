//! `root`, `alias`, `types`: the file that a URI names, and its media type.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#root>. `crate::exchange::file_path` makes the path of a request,
//! `crate::exchange::content_type` finds the type.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, LazyLock};

use weir_conf::Statement;
use weir_net::log::{Level, Os};
use weir_net::path::as_path;

use crate::exchange::Exchange;
use crate::exchange::file_path::{Alias, Root, directory, path};
use crate::exchange::route::Pattern;
use crate::exchange::variable::Variable;
use crate::read::build::{Build, Kind, Scope};
use crate::read::directive::{Directive, HSL, LOCATION, LOCATION_IF, NONE, ONE};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::template::{Argument, Template};

crate::settings! {
    /// `root` or `alias`; `finish` sets it at the outermost level, so every request has one.
    root: Option<Root> = None,
    /// `default_type`.
    default_type: Arc<str> = Arc::from("text/plain"),
    /// `types`: lower-case extension to type.
    types: Types = DEFAULT_TYPES.clone(),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// File name extensions, lower case and without the dot, and their types.
pub type Types = Arc<HashMap<String, Arc<str>>>;

static DEFAULT_TYPES: LazyLock<Types> = LazyLock::new(|| {
    let rows = [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")];
    Arc::new(rows.into_iter().map(|(extension, kind)| (extension.to_owned(), Arc::from(kind))).collect())
});

/// The family.
pub static FAMILY: Family = Family::new(
    "files",
    &[
        Directive::new(
            "root",
            HSL.or(LOCATION_IF),
            ONE,
            "The directory in which weir looks for the file of a URI.",
            |b, s| root(b, s, false),
        )
        .default("html"),
        Directive::new(
            "alias",
            LOCATION,
            ONE,
            "The directory or file that replaces the location's part of the URI.",
            |b, s| root(b, s, true),
        ),
        Directive::new("types", HSL, NONE, "Maps file name extensions to media types.", types).block().many(),
        Directive::new("default_type", HSL, ONE, "The media type of files whose extension is not in types.", |b, s| {
            b.settings().files.default_type = Some(Arc::from(s.text(0)));
            Ok(())
        })
        .default("text/plain"),
    ],
)
.variables(&[
    Variable::without_answer("document_root", document_root),
    Variable::without_answer("realpath_root", realpath_root),
    Variable::without_answer("request_filename", request_filename),
])
.finish(finish);

fn root(b: &mut Build<'_>, statement: &Statement, is_alias: bool) -> Result<(), Refusal> {
    let name = statement.name.text.as_str();
    if let Some(Some(earlier)) = &b.settings().files.root {
        let other = if earlier.alias == Alias::Off { "root" } else { "alias" };
        return Err(Refusal::whole(format!(
            "\"{name}\" directive is duplicate, \"{other}\" directive was specified earlier"
        )));
    }
    let text = statement.text(0);
    for variable in ["document_root", "realpath_root"] {
        if text.contains(&format!("${variable}")) || text.contains(&format!("${{{variable}}}")) {
            return Err(Refusal::whole(format!("the ${variable} variable cannot be used in the \"{name}\" directive")));
        }
    }
    let alias = match &b.scope().kind {
        _ if !is_alias => Alias::Off,
        Kind::Location(Pattern::Named(_)) => {
            return Err(Refusal::whole("the \"alias\" directive cannot be used inside the named location"));
        }
        Kind::Location(Pattern::Regex(_)) => Alias::Whole,
        Kind::Location(Pattern::Exact(path) | Pattern::Prefix { path, .. }) => Alias::Prefix(path.len()),
        Kind::Plain | Kind::Server(_) | Kind::If | Kind::LimitExcept(_) | Kind::Other(_) => Alias::Off,
    };
    // nginx: the final slash of a root is the first byte of the URI.
    let text = if is_alias { text } else { text.strip_suffix('/').unwrap_or(text) };
    let full = if text.starts_with('$') { text.to_owned() } else { b.path_of_root(text) };
    let directory = b.template(&full)?;
    if b.reach.read_named(directory.beginning(), &b.paths.prefix) {
        b.opens_all("reading");
    }
    b.settings().files.root = Some(Some(Root { directory, alias, at: b.at() }));
    Ok(())
}

impl Build<'_> {
    /// Like `path`, but the empty text from `root /` means the top of the file system.
    fn path_of_root(&self, text: &str) -> String {
        if text.is_empty() { String::new() } else { self.path(text) }
    }
}

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut map: HashMap<String, Arc<str>> = match &b.settings().files.types {
        Some(earlier) => HashMap::clone(earlier),
        None => HashMap::new(),
    };
    for row in statement.children() {
        let kind: Arc<str> = Arc::from(row.name.text.as_str());
        for word in &row.args {
            let extension = word.text.to_ascii_lowercase();
            if let Some(previous) = map.insert(extension.clone(), kind.clone()) {
                b.warn(
                    format!("duplicate extension \"{extension}\", content type: \"{kind}\", previous content type: \"{previous}\""),
                    None,
                );
            }
        }
    }
    b.settings().files.types = Some(Arc::new(map));
    Ok(())
}

/// Gives the outermost level nginx's default root, which depends on the prefix.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let root = &mut scope.settings.files.root;
    if root.is_none() {
        let directory = b.path("html");
        b.reach.read(&directory);
        *root = Some(Some(Root { directory: Template::fixed(directory), alias: Alias::Off, at: scope.at }));
    }
}

fn document_root(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    directory(exchange, out);
    true
}

fn realpath_root(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let mut path = Vec::new();
    directory(exchange, &mut path);
    match std::fs::canonicalize(as_path(&path)) {
        Ok(real) => {
            out.extend_from_slice(real.as_os_str().as_bytes());
            true
        }
        Err(error) => {
            let shown = String::from_utf8_lossy(&path);
            exchange.log(Level::Crit, format_args!("realpath() \"{shown}\" failed {}", Os(&error)));
            false
        }
    }
}

fn request_filename(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match path(exchange) {
        Some((path, _)) => {
            out.extend_from_slice(&path);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::of_text;

    #[test]
    fn three_types_are_compiled_in() {
        assert_eq!(DEFAULT_TYPES.get("jpg").map(|kind| &**kind), Some("image/jpeg"));
        assert_eq!(DEFAULT_TYPES.len(), 3);
    }

    #[test]
    fn roots_are_inherited_and_count_from_the_prefix() {
        let (conf, problems) = of_text(
            "events {} http { server { location /default { } }
             server { listen 81; root www/; location /in { } location /al { alias /srv/; location /al/x { } }
                      location ~ ^/re { alias /srv/$1; } } }",
        );
        assert_eq!(problems, [""; 0]);
        let conf = conf.unwrap();
        let root = |name: &str| {
            let location = conf.locations.iter().find(|location| location.name == name).unwrap();
            let root = location.values.files.root.as_ref().unwrap();
            (root.directory.literal().map(|text| String::from_utf8_lossy(text).into_owned()), root.alias)
        };
        assert_eq!(root("/default"), (Some("/p/html".to_owned()), Alias::Off));
        assert_eq!(root("/in"), (Some("/p/www".to_owned()), Alias::Off));
        assert_eq!(root("/al"), (Some("/srv/".to_owned()), Alias::Prefix(3)));
        assert_eq!(root("/al/x"), (Some("/srv/".to_owned()), Alias::Prefix(3)));
        assert_eq!(root("^/re"), (None, Alias::Whole));
    }

    #[test]
    fn refusals_are_nginx_words() {
        for (statements, expected) in [
            ("root /a; root /b;", "\"root\" directive is duplicate"),
            ("root /a; alias /b;", "\"alias\" directive is duplicate, \"root\" directive was specified earlier"),
            ("root $document_root/x;", "the $document_root variable cannot be used in the \"root\" directive"),
            ("alias ${realpath_root};", "the $realpath_root variable cannot be used in the \"alias\" directive"),
        ] {
            let (_, problems) = of_text(&format!("events {{}} http {{ server {{ location / {{ {statements} }} }} }}"));
            assert_eq!(problems.first().map(String::as_str), Some(expected), "{statements}");
        }
        let (_, problems) = of_text("events {} http { server { location @n { alias /a; } } }");
        assert_eq!(problems, ["the \"alias\" directive cannot be used inside the named location"]);
    }

    #[test]
    fn types_of_one_block_add_up_and_replace_those_around() {
        let (conf, problems) = of_text(
            "events {} http { types { text/a A; } types { text/b b c; } server { location / { types { text/z a; } } } }",
        );
        assert_eq!(problems, [""; 0]);
        let conf = conf.unwrap();
        let server = &conf.location(conf.servers[0].root).values.files.types;
        assert_eq!(server.get("a").map(|kind| &**kind), Some("text/a"));
        assert_eq!(server.get("c").map(|kind| &**kind), Some("text/b"));
        assert_eq!(server.len(), 3);
        let inner = &conf.locations.iter().find(|location| location.name == "/").unwrap().values.files.types;
        assert_eq!(inner.get("a").map(|kind| &**kind), Some("text/z"));
        assert_eq!(inner.len(), 1);
    }
}
