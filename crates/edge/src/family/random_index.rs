//! `random_index`: a random file of a directory answers for the directory.
//!
//! <https://nginx.org/en/docs/http/ngx_http_random_index_module.html>. Names that begin with a dot are never chosen. weir
//! requests the chosen file by an internal redirect, as `index` does.

use std::fs;
use std::io;

use weir_http::exchange::Exchange;
use weir_http::exchange::file_path::{errno, path};
use weir_http::exchange::phase::{Next, Phase};
use weir_http::read::directive::{Arity, Directive, LOCATION};
use weir_http::read::families::Family;
use weir_http::text::value;
use weir_net::log::{Level, Os};
use weir_net::opening;
use weir_net::path::as_path;

weir_http::settings! {
    /// `random_index`.
    is_on: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "random_index",
    &[Directive::new(
        "random_index",
        LOCATION,
        Arity::Flag,
        "Answers for a directory with a random file in it.",
        |b, s| {
            crate::settings(b).random_index.is_on = Some(value::flag(s)?);
            Ok(())
        },
    )
    .default("off")],
)
.phase(Phase::Content, |location| crate::values(location).random_index.is_on, answer);

/// The most entries of a directory that weir looks at: more would block the worker.
const ENTRIES_MAX: usize = 100_000;

fn answer(exchange: &mut Exchange<'_>) -> Next {
    if !exchange.uri.ends_with(b"/") || !matches!(exchange.request.method(), b"GET" | b"HEAD" | b"POST") {
        return Next::Continue;
    }
    let Some((mut directory, _)) = path(exchange) else { return Next::Status(500) };
    if directory.len() > 1 {
        directory.pop();
    }
    let shown = String::from_utf8_lossy(&directory);
    let names = match opening::names(&directory) {
        Ok(names) => names,
        Err(error) => return failed(exchange, &shown, &error),
    };
    match choose(exchange, &directory, names) {
        Ok(Some(name)) => Next::Redirect { uri: [exchange.uri, name.as_slice()].concat(), args: None },
        Ok(None) => Next::Continue,
        Err(error) => {
            exchange.log(Level::Crit, format_args!("readdir() \"{shown}\" failed {}", Os(&error)));
            Next::Status(500)
        }
    }
}

/// One of the regular files, each with the same chance; `None` if there is none. The names need no memory: the file
/// with number N replaces the choice so far with a chance of one in N.
fn choose(
    exchange: &Exchange<'_>,
    directory: &[u8],
    names: impl Iterator<Item = io::Result<Vec<u8>>>,
) -> io::Result<Option<Vec<u8>>> {
    let (mut chosen, mut count) = (None, 0);
    for name in names.take(ENTRIES_MAX) {
        let name = name?;
        if name.starts_with(b".") {
            continue;
        }
        // A link without a target is no file.
        if fs::metadata(as_path(directory).join(as_path(&name))).is_ok_and(|facts| facts.is_file()) {
            count += 1;
            if exchange.worker.random(count) == 0 {
                chosen = Some(name);
            }
        }
    }
    Ok(chosen)
}

fn failed(exchange: &mut Exchange<'_>, directory: &str, error: &io::Error) -> Next {
    let (level, status) = match error.raw_os_error() {
        Some(errno::ENOENT | errno::ENOTDIR | errno::ENAMETOOLONG) => (Level::Error, 404),
        Some(errno::EACCES) => (Level::Error, 403),
        Some(_) | None => (Level::Crit, 500),
    };
    exchange.log(level, format_args!("opendir() \"{directory}\" failed {}", Os(error)));
    Next::Status(status)
}
