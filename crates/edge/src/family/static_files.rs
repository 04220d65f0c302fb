//! Static files: the handler of locations without another handler.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#root>. `root`, `alias` and
//! `types` are in `files`. Each request opens its file again, if `open_file_cache` does not keep it open.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use weir_http::exchange::Exchange;
use weir_http::exchange::file_path::{errno, path};
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::response_body::{Body, Part, Whole};
use weir_http::exchange::{content_type, special};
use weir_http::family::open_file_cache::{self, OpenFailed};
use weir_http::family::variables::find_argument;
use weir_http::hold::open_files::OpenFile;
use weir_http::read::directive::{Arity, Directive, HSL};
use weir_http::read::families::Family;
use weir_http::text::value;
use weir_net::log::{Level, Os};
use weir_wire::Known;

use super::dav;

weir_http::settings! {
    /// `etag`.
    etag: bool = true,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "static_files",
    &[Directive::new("etag", HSL, Arity::Flag, "Gives files an ETag made of modification time and size.", |b, s| {
        crate::settings(b).static_files.etag = Some(value::flag(s)?);
        Ok(())
    })
    .default("on")],
)
.phase(Phase::Content, |_| true, answer);

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let method = exchange.request.method();
    let is_post = method == b"POST";
    if !is_post && method != b"GET" && method != b"HEAD" {
        return not_allowed(exchange);
    }
    let Some((path, _)) = path(exchange) else { return Next::Status(500) };
    let shown = String::from_utf8_lossy(&path);
    if exchange.uri.ends_with(b"/") {
        exchange.log(Level::Error, format_args!("directory index of \"{shown}\" is forbidden"));
        return Next::Status(403);
    }
    let OpenFile { file, facts } = match open_file_cache::open(exchange, &path) {
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
        return not_allowed(exchange);
    }
    serve(exchange, file, facts.len(), facts.mtime());
    Next::Respond
}

fn not_allowed(exchange: &mut Exchange<'_>) -> Next {
    let methods = special::READS.to_owned() + &dav::further_methods(exchange.location);
    special::not_allowed(exchange, &methods)
}

/// Opens the file of the URI for `flv` and `mp4`, which leave everything but files to other handlers.
/// Returns it and its name.
pub fn open_media(exchange: &mut Exchange<'_>) -> Result<(OpenFile, Vec<u8>), Next> {
    if !matches!(exchange.request.method(), b"GET" | b"HEAD") {
        return Err(not_allowed(exchange));
    }
    if exchange.uri.ends_with(b"/") {
        return Err(Next::Continue);
    }
    let Some((path, _)) = path(exchange) else { return Err(Next::Status(500)) };
    match open_file_cache::open(exchange, &path) {
        Ok(opened) if opened.facts.is_file() => Ok((opened, path)),
        Ok(_) => Err(Next::Continue),
        Err(error) => Err(failed(exchange, &String::from_utf8_lossy(&path), &error)),
    }
}

/// An argument of the query string.
pub fn argument(exchange: &Exchange<'_>, name: &[u8]) -> Option<Vec<u8>> {
    find_argument(exchange.args, name).map(<[u8]>::to_vec)
}

/// Logs a file that cannot be opened; returns the status.
fn failed(exchange: &mut Exchange<'_>, path: &str, OpenFailed { call, error }: &OpenFailed) -> Next {
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
    weir_wire::escape::escape_uri(exchange.uri, &mut location);
    location.push(b'/');
    if !exchange.args.is_empty() {
        location.push(b'?');
        location.extend_from_slice(exchange.args);
    }
    exchange.response.fields.replace(b"Location", &location, Known::Location);
    exchange.response.own_location = true;
    Next::Status(301)
}

/// Answers with a file of that length and modification time.
pub fn serve(exchange: &mut Exchange<'_>, file: Rc<File>, length: u64, modified: i64) {
    let response = &mut exchange.response;
    response.status.answer(200);
    response.status_line.clear();
    response.content_length = Some(length);
    response.last_modified = Some(modified);
    if crate::values(exchange.location).static_files.etag {
        response.fields.remove(Known::Etag);
        response.fields.push_with(b"ETag", Some(Known::Etag), |out| {
            use std::io::Write;
            let written = write!(out, "\"{modified:x}-{length:x}\"");
            debug_assert!(written.is_ok());
        });
    }
    response.allows_ranges = true;
    response.body = Body::File { file, offset: 0, length };
    content_type::set(exchange);
}

/// Answers with a head of weir's own and a range of a file behind it, of that modification time.
pub fn serve_rest(exchange: &mut Exchange<'_>, file: Rc<File>, modified: i64, head: Vec<u8>, range: Range<u64>) {
    let length = range.end - range.start;
    serve(exchange, file, head.len() as u64 + length, modified);
    if let Body::File { file, .. } = std::mem::take(&mut exchange.response.body) {
        let part = Part { head, offset: range.start, length };
        exchange.response.body = Body::Parts { whole: Whole::File(file), parts: vec![part], end: Vec::new() };
    }
}
