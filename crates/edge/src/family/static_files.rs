//! Files: `root`, `alias`, `types`, and the handler of locations without another handler.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#root>. `index`, `try_files`, ranges, conditions and gzip
//! are not here. Each request opens its file again: weir serves the current file on disk, and no cache of open files
//! can be stale.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use weir_conf::Statement;
use weir_net::log::{Level, Os};
use weir_net::path::as_path;
use weir_wire::Known;

use crate::build::{Build, Kind, Scope};
use crate::content_type;
use crate::directive::{Arity, Directive, HSL, LOCATION, LOCATION_IF, NONE, ONE};
use crate::exchange::Exchange;
use crate::family::Family;
use crate::family::disable_symlinks::{self, Failed};
use crate::file_path::{Alias, Root, directory, errno, path};
use crate::phase::{Next, Phase};
use crate::refusal::Refusal;
use crate::response_body::Body;
use crate::route::Pattern;
use crate::value;
use crate::variable::{Argument, Template, Variable};

crate::settings! {
    /// `root` or `alias`; `finish` sets it at the outermost level, so every request has one.
    root: Option<Root> = None,
    /// `default_type`.
    default_type: Arc<str> = Arc::from("text/plain"),
    /// `types`: lower-case extension to type.
    types: Types = DEFAULT_TYPES.clone(),
    /// `etag`.
    etag: bool = true,
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
    "static_files",
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
            b.settings().static_files.default_type = Some(Arc::from(s.text(0)));
            Ok(())
        })
        .default("text/plain"),
        Directive::new("etag", HSL, Arity::Flag, "Gives files an ETag made of modification time and size.", |b, s| {
            b.settings().static_files.etag = Some(value::flag(s)?);
            Ok(())
        })
        .default("on"),
    ],
)
.variables(&[
    Variable::without_answer("document_root", document_root),
    Variable::without_answer("realpath_root", realpath_root),
    Variable::without_answer("request_filename", request_filename),
])
.phase(Phase::Content, |_| true, answer)
.finish(finish);

fn root(b: &mut Build<'_>, statement: &Statement, is_alias: bool) -> Result<(), Refusal> {
    let name = statement.name.text.as_str();
    if let Some(Some(earlier)) = &b.settings().static_files.root {
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
        Kind::Plain | Kind::Server(_) | Kind::If | Kind::LimitExcept(_) => Alias::Off,
    };
    // nginx: the final slash of a root is the first byte of the URI.
    let text = if is_alias { text } else { text.strip_suffix('/').unwrap_or(text) };
    let full = if text.starts_with('$') { text.to_owned() } else { b.path_of_root(text) };
    let directory = b.template(&full)?;
    b.settings().static_files.root = Some(Some(Root { directory, alias }));
    Ok(())
}

impl Build<'_> {
    /// Like `path`, but the empty text from `root /` means the top of the file system.
    fn path_of_root(&self, text: &str) -> String {
        if text.is_empty() { String::new() } else { self.path(text) }
    }
}

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut map: HashMap<String, Arc<str>> = match &b.settings().static_files.types {
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
    b.settings().static_files.types = Some(Arc::new(map));
    Ok(())
}

/// Gives the outermost level nginx's default root, which depends on the prefix.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let root = &mut scope.settings.static_files.root;
    if root.is_none() {
        *root = Some(Some(Root { directory: Template::fixed(b.path("html")), alias: Alias::Off }));
    }
}

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let method = exchange.request.method();
    let is_post = method == b"POST";
    if !is_post && method != b"GET" && method != b"HEAD" {
        return Next::Status(405);
    }
    let Some((path, _)) = path(exchange) else { return Next::Status(500) };
    let shown = String::from_utf8_lossy(&path);
    if exchange.uri.ends_with(b"/") {
        exchange.log(Level::Error, format_args!("directory index of \"{shown}\" is forbidden"));
        return Next::Status(403);
    }
    let opened = disable_symlinks::open(exchange, &path).and_then(|file| match file.metadata() {
        Ok(facts) => Ok((file, facts)),
        Err(error) => Err(Failed { call: "fstat()", error }),
    });
    let (file, facts) = match opened {
        Ok(opened) => opened,
        Err(error) => return failed(exchange, &shown, &error),
    };
    if facts.is_dir() {
        return add_slash(exchange);
    }
    if !facts.is_file() {
        exchange.log(Level::Crit, format_args!("\"{shown}\" is not a regular file"));
        return Next::Status(404);
    }
    if is_post {
        return Next::Status(405);
    }
    serve(exchange, file, facts.len(), facts.mtime());
    Next::Respond
}

/// Logs a file that cannot be opened; returns the status.
fn failed(exchange: &mut Exchange<'_>, path: &str, Failed { call, error }: &Failed) -> Next {
    let (level, status) = match error.raw_os_error() {
        Some(errno::ENOENT | errno::ENOTDIR | errno::ENAMETOOLONG) => (Level::Error, 404),
        Some(errno::EACCES | errno::EMLINK | errno::ELOOP) => (Level::Error, 403),
        Some(_) | None => (Level::Crit, 500),
    };
    if status != 404 || exchange.location.values.core.log_not_found {
        exchange.log(level, format_args!("{call} \"{path}\" failed {}", Os(error)));
    }
    Next::Status(status)
}

/// The URI names a directory without the final slash: redirects to the URI with the slash.
fn add_slash(exchange: &mut Exchange<'_>) -> Next {
    let mut location = Vec::with_capacity(exchange.uri.len() + exchange.args.len() + 2);
    weir_wire::escape::escape_uri(&exchange.uri, &mut location);
    location.push(b'/');
    if !exchange.args.is_empty() {
        location.push(b'?');
        location.extend_from_slice(&exchange.args);
    }
    exchange.response.fields.replace(b"Location", &location, Known::Location);
    exchange.response.own_location = true;
    Next::Status(301)
}

/// Answers with a file of that length and modification time.
pub fn serve(exchange: &mut Exchange<'_>, file: File, length: u64, modified: i64) {
    let response = &mut exchange.response;
    response.status = 200;
    response.status_line.clear();
    response.content_length = Some(length);
    response.last_modified = Some(modified);
    if exchange.location.values.static_files.etag {
        response.fields.remove(Known::Etag);
        response.fields.push_with(b"ETag", Some(Known::Etag), |out| {
            use std::io::Write;
            let written = write!(out, "\"{modified:x}-{length:x}\"");
            debug_assert!(written.is_ok());
        });
    }
    response.allows_ranges = true;
    response.body = Body::File { file: Rc::new(file), offset: 0, length };
    content_type::set(exchange);
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
    use crate::compile::of_text;

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
            let root = location.values.static_files.root.as_ref().unwrap();
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
        let server = &conf.location(conf.servers[0].root).values.static_files.types;
        assert_eq!(server.get("a").map(|kind| &**kind), Some("text/a"));
        assert_eq!(server.get("c").map(|kind| &**kind), Some("text/b"));
        assert_eq!(server.len(), 3);
        let inner = &conf.locations.iter().find(|location| location.name == "/").unwrap().values.static_files.types;
        assert_eq!(inner.get("a").map(|kind| &**kind), Some("text/z"));
        assert_eq!(inner.len(), 1);
    }
}
