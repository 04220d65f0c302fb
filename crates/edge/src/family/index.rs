//! `index`: the file that answers for a directory.
//!
//! <https://nginx.org/en/docs/http/ngx_http_index_module.html>. weir requests the file it finds by an internal
//! redirect, so another location may serve it.

use std::io;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::file_path::{errno, path};
use weir_http::exchange::phase::{Next, Phase};
use weir_http::family::open_file_cache::{self, OpenFailed};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_net::log::{Level, Os};

weir_http::settings! {
    /// The names tried, in order.
    names: Vec<Template> = vec![Template::fixed("index.html")],
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "index",
    &[Directive::new(
        "index",
        HSL,
        Arity::AtLeast(1),
        "Names the files that answer for a directory, in order of preference.",
        index,
    )
    .many()
    .default("index.html")],
)
.phase(Phase::Content, |_| true, answer);

fn index(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    for (position, word) in statement.args.iter().enumerate() {
        let name = word.text.as_str();
        if name.starts_with('/') && position + 1 != statement.args.len() {
            b.warn("only the last index in \"index\" directive should be absolute", None);
        }
        if name.is_empty() {
            return Err(Refusal::whole(format!("index \"{name}\" in \"index\" directive is invalid")));
        }
        let template = b.template(name)?;
        crate::settings(b).index.names.get_or_insert_default().push(template);
    }
    Ok(())
}

fn answer(exchange: &mut Exchange<'_>) -> Next {
    if !exchange.uri.ends_with(b"/") || !matches!(exchange.request.method(), b"GET" | b"HEAD" | b"POST") {
        return Next::Continue;
    }
    let location = exchange.location;
    let mut directory_is_known = false;
    let mut found = Vec::new();
    for name in &crate::values(location).index.names {
        let name = name.text(exchange);
        if name.first() == Some(&b'/') {
            return Next::Redirect { uri: name, args: None };
        }
        if found.is_empty() {
            let Some((directory, _)) = path(exchange) else { return Next::Status(500) };
            found = directory;
        }
        let directory = found.len();
        found.extend_from_slice(&name);
        match open_file_cache::metadata(exchange, &found) {
            Ok(_) => return Next::Redirect { uri: [exchange.uri, name.as_slice()].concat(), args: None },
            Err(error) => {
                if let Some(next) = missing(exchange, &found, directory, &error, &mut directory_is_known) {
                    return next;
                }
            }
        }
        found.truncate(directory);
    }
    Next::Continue
}

/// The answer if a file cannot be examined; `None` to try the next name.
fn missing(
    exchange: &mut Exchange<'_>,
    path: &[u8],
    directory: usize,
    OpenFailed { call, error }: &OpenFailed,
    directory_is_known: &mut bool,
) -> Option<Next> {
    let code = error.raw_os_error();
    match code {
        Some(errno::ELOOP | errno::EMLINK) => return Some(Next::Status(403)),
        Some(errno::ENOTDIR | errno::ENAMETOOLONG | errno::EACCES) => return Some(refused(exchange, path, error)),
        Some(_) | None => {}
    }
    if !*directory_is_known {
        if let Some(next) = directory_fails(exchange, path, directory) {
            return Some(next);
        }
        *directory_is_known = true;
    }
    if code == Some(errno::ENOENT) {
        return None;
    }
    let shown = String::from_utf8_lossy(path);
    exchange.log(Level::Crit, format_args!("{call} \"{shown}\" failed {}", Os(error)));
    Some(Next::Status(500))
}

/// Distinguishes a directory without an index from a directory that does not exist.
fn directory_fails(exchange: &mut Exchange<'_>, path: &[u8], directory: usize) -> Option<Next> {
    let name = path.get(..directory).unwrap_or_default();
    let name = if name.len() > 1 { name.strip_suffix(b"/").unwrap_or(name) } else { name };
    match open_file_cache::metadata(exchange, name) {
        Ok(facts) if facts.is_dir() => None,
        Ok(_) => {
            let shown = String::from_utf8_lossy(name);
            exchange.log(Level::Alert, format_args!("\"{shown}\" is not a directory"));
            Some(Next::Status(500))
        }
        Err(OpenFailed { call, error }) => match error.raw_os_error() {
            Some(errno::ENOENT) => Some(refused(exchange, path, &error)),
            // A name in the directory was looked up, so weir may search the directory.
            Some(errno::EACCES) => None,
            Some(_) | None => {
                let shown = String::from_utf8_lossy(name);
                exchange.log(Level::Crit, format_args!("{call} \"{shown}\" failed {}", Os(&error)));
                Some(Next::Status(500))
            }
        },
    }
}

fn refused(exchange: &mut Exchange<'_>, path: &[u8], error: &io::Error) -> Next {
    let shown = String::from_utf8_lossy(path);
    if error.raw_os_error() == Some(errno::EACCES) {
        exchange.log(Level::Error, format_args!("\"{shown}\" is forbidden {}", Os(error)));
        return Next::Status(403);
    }
    if exchange.location.values.core.log_not_found {
        exchange.log(Level::Error, format_args!("\"{shown}\" is not found {}", Os(error)));
    }
    Next::Status(404)
}
