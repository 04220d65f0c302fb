//! `dav_methods`: clients change files with PUT, DELETE, MKCOL, COPY and MOVE.
//!
//! <https://nginx.org/en/docs/http/ngx_http_dav_module.html>, RFC 4918. A file gets its content under another name first,
//! and is then renamed: nobody sees a part of it. Work on trees and copies is done by a thread of its own (`files`), so
//! that other exchanges go on meanwhile. nginx does it in its worker.

mod files;

use std::fs::{self, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::file_path::{self, Alias, errno};
use weir_http::exchange::phase::{Chore, Next, Phase};
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::response_body::Body;
use weir_http::exchange::special;
use weir_http::family::disable_symlinks;
use weir_http::family::open_file_cache::{self, OpenFailed};
use weir_http::hold::own::Owned;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::read::found::Found;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::{Level, Os};
use weir_net::path::as_path;
use weir_wire::{BodyLength, Known, date, escape};

use files::{DavDone, Transfer};

weir_http::settings! {
    /// `dav_methods`: a bit for each method.
    methods: u8 = 0,
    /// `min_delete_depth`.
    min_delete_depth: u64 = 0,
    /// `dav_access`.
    access: u32 = 0o600,
    /// `create_full_put_path`.
    create_full_put_path: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "dav",
    &[
        Directive::new(
            "dav_methods",
            HSL,
            Arity::AtLeast(1),
            "The methods with which clients may change files: PUT, DELETE, MKCOL, COPY, MOVE; off for none.",
            methods,
        )
        .many()
        .default("off"),
        Directive::new(
            "create_full_put_path",
            HSL,
            Arity::Flag,
            "Makes missing directories for a file that a client puts.",
            |b, s| {
                crate::settings(b).dav.create_full_put_path = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new("min_delete_depth", HSL, ONE, "The fewest parts of a path that DELETE may remove.", |b, s| {
            crate::settings(b).dav.min_delete_depth = Some(value::first_number(s)?);
            Ok(())
        })
        .default("0"),
        Directive::new(
            "dav_access",
            HSL,
            Arity::Between(1, 3),
            "The permissions of new files and directories: user:rw group:r all:r.",
            |b, s| {
                crate::settings(b).dav.access = Some(value::access(s)?);
                Ok(())
            },
        )
        .default("user:rw"),
    ],
)
.phase(Phase::Content, |location| crate::values(location).dav.methods != 0, answer)
.check(check);

/// Clients write under the root.
fn check(b: &mut Build<'_>, found: &Found<'_>) {
    let writes = |location: &&Location| crate::values(location).dav.methods != 0;
    for root in found.locations.iter().filter(writes).filter_map(|location| location.values.files.root.as_ref()) {
        b.writes_under(root.directory.beginning(), root.at);
    }
}

/// A method that changes files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Put,
    Delete,
    Mkcol,
    Copy,
    Move,
}

const METHODS: [(&str, Method); 5] = [
    ("PUT", Method::Put),
    ("DELETE", Method::Delete),
    ("MKCOL", Method::Mkcol),
    ("COPY", Method::Copy),
    ("MOVE", Method::Move),
];

/// The methods that a location has besides those of files, each behind a comma.
pub fn further_methods(location: &Location) -> String {
    let bits = crate::values(location).dav.methods;
    let on = METHODS.iter().enumerate().filter(|(place, _)| bits & (1 << place) != 0);
    on.map(|(_, (name, _))| format!(", {name}")).collect()
}

fn methods(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut bits = crate::settings(b).dav.methods.unwrap_or(0);
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        let place = METHODS.iter().position(|(name, _)| word.eq_ignore_ascii_case(name));
        match place {
            Some(place) => bits |= 1 << place,
            None if word.eq_ignore_ascii_case("off") => {}
            None => {
                return Err(Refusal::whole(format!("invalid value \"{word}\""))
                    .todo("write off, or some of: PUT, DELETE, MKCOL, COPY, MOVE"));
            }
        }
    }
    crate::settings(b).dav.methods = Some(bits);
    Ok(())
}

impl Owned for DavDone {}

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let values = &crate::values(exchange.location).dav;
    let method = exchange.request.method();
    let found = METHODS.iter().enumerate().find(|(_, (name, _))| name.as_bytes() == method);
    let Some((_, (_, method))) = found.filter(|(place, _)| values.methods & (1 << place) != 0) else {
        return Next::Continue;
    };
    if let Some(done) = exchange.own.take::<DavDone>() {
        return end(exchange, *done, *method == Method::Put);
    }
    let has_body = match exchange.request.length {
        Some(BodyLength::Exact(length)) => length > 0,
        Some(BodyLength::Chunked | BodyLength::UntilClose) => true,
        Some(BodyLength::None) | None => false,
    };
    if *method != Method::Put && has_body {
        let words = match method {
            Method::Delete => "DELETE with body is unsupported",
            Method::Mkcol => "MKCOL with body is unsupported",
            Method::Put | Method::Copy | Method::Move => "COPY and MOVE with body are unsupported",
        };
        exchange.log(Level::Error, format_args!("{words}"));
        return Next::Status(415);
    }
    match method {
        Method::Put => put(exchange),
        Method::Delete => delete(exchange, values),
        Method::Mkcol => make_collection(exchange, values),
        Method::Copy => transfer(exchange, false),
        Method::Move => transfer(exchange, true),
    }
}

/// The answer once the thread has done its work.
fn end(exchange: &mut Exchange<'_>, done: DavDone, has_location: bool) -> Next {
    for (level, line) in done.lines {
        exchange.log(level, format_args!("{line}"));
    }
    match done.status {
        201 | 204 => respond(exchange, done.status, has_location && done.status == 201),
        status => Next::Status(status),
    }
}

/// An answer without a body.
fn respond(exchange: &mut Exchange<'_>, status: u16, has_location: bool) -> Next {
    if has_location {
        let mut location = Vec::with_capacity(exchange.uri.len());
        escape::escape_uri(exchange.uri, &mut location);
        exchange.response.fields.replace(b"Location", &location, Known::Location);
        exchange.response.own_location = true;
    }
    let response = &mut exchange.response;
    response.status.answer(status);
    response.status_line.clear();
    response.content_type.clear();
    response.content_length = None;
    response.body = Body::Empty;
    Next::Respond
}

fn put(exchange: &mut Exchange<'_>) -> Next {
    if exchange.uri.ends_with(b"/") {
        exchange.log(Level::Error, format_args!("cannot PUT to a collection"));
        return Next::Status(409);
    }
    if exchange.request.field(Known::ContentRange).is_some() {
        exchange.log(Level::Error, format_args!("PUT with range is unsupported"));
        return Next::Status(501);
    }
    match exchange.body {
        RequestBody::Unread | RequestBody::Memory(_) => Next::ReadBodyToFile,
        RequestBody::File(_) => name_body(exchange),
        RequestBody::Gone => {
            exchange.log(Level::Error, format_args!("PUT request body must be in a file"));
            Next::Status(500)
        }
    }
}

/// Gives the file of the body the name that the client asks for.
fn name_body(exchange: &mut Exchange<'_>) -> Next {
    let Some((path, _)) = file_path::path(exchange) else { return Next::Status(500) };
    if let Some(next) = refused(exchange, &path) {
        return next;
    }
    let values = &crate::values(exchange.location).dav;
    let target = as_path(&path).to_path_buf();
    let status = match fs::metadata(&target) {
        Ok(facts) if facts.is_dir() => {
            let error = io::Error::from_raw_os_error(EISDIR);
            exchange.log(Level::Error, format_args!("\"{}\" could not be created {}", target.display(), Os(&error)));
            return Next::Status(409);
        }
        Ok(_) => 204,
        Err(_) => 201,
    };
    let modified = exchange.request.field(Known::Date).and_then(date::parse_http_date);
    let modified = modified.and_then(|seconds| u64::try_from(seconds).ok());
    let modified = modified.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let RequestBody::File(body) = &mut exchange.body else { return Next::Status(500) };
    let (file, name) = (body.file(), body.path().to_owned());
    let marked = file.set_permissions(Permissions::from_mode(values.access)).map_err(|error| ("chmod()", error));
    let marked = marked.and_then(|()| match modified {
        Some(modified) => file.set_times(FileTimes::new().set_modified(modified)).map_err(|e| ("futimes()", e)),
        None => Ok(()),
    });
    // On an error the file stays a temporary one, and is removed with the exchange.
    body.is_kept = false;
    if let Err((call, error)) = marked {
        exchange.log(Level::Crit, format_args!("{call} \"{name}\" failed {}", Os(&error)));
        return Next::Status(500);
    }
    match files::rename(name.as_ref(), &target, None) {
        Ok(()) => {
            if let RequestBody::File(body) = &mut exchange.body {
                body.is_kept = true;
            }
            respond(exchange, status, status == 201)
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let keeps = files::Copied { mode: values.access, modified };
            chore(move || files::put(name.as_ref(), &target, status, &keeps))
        }
        // A path may have two thousand directories.
        Err(error) if error.kind() == io::ErrorKind::NotFound && values.create_full_put_path => {
            let keeps = files::Copied { mode: values.access, modified };
            chore(move || files::put_below_new(name.as_ref(), &target, status, &keeps))
        }
        Err(error) => {
            let to = target.display();
            exchange.log(Level::Crit, format_args!("rename() \"{name}\" to \"{to}\" failed {}", Os(&error)));
            Next::Status(500)
        }
    }
}

fn chore(work: impl FnOnce() -> DavDone + Send + 'static) -> Next {
    Next::Aside(Chore::new(work))
}

const EISDIR: i32 = 21;

fn delete(exchange: &mut Exchange<'_>, values: &Values) -> Next {
    if values.min_delete_depth > 0 {
        let depth = parts_of(exchange.uri);
        if depth < values.min_delete_depth {
            exchange.log(Level::Error, format_args!("insufficient URI depth:{depth} to DELETE"));
            return Next::Status(409);
        }
    }
    let Some((path, _)) = file_path::path(exchange) else { return Next::Status(500) };
    if let Some(next) = refused(exchange, &path) {
        return next;
    }
    let target = as_path(&path).to_path_buf();
    let facts = match fs::symlink_metadata(&target) {
        Ok(facts) => facts,
        Err(error) => {
            let not_found = if error.raw_os_error() == Some(errno::ENOTDIR) { 409 } else { 404 };
            let mut done = DavDone::new(204);
            done.fail(&error, not_found, "lstat()", &target);
            return end(exchange, done, false);
        }
    };
    if !facts.is_dir() {
        if !matches!(depth(exchange, Depth::Zero), Depth::Zero | Depth::Infinity) {
            exchange.log(Level::Error, format_args!("\"Depth\" header must be 0 or infinity"));
            return Next::Status(400);
        }
        let mut done = DavDone::new(204);
        files::delete(&target, false, &mut done);
        return end(exchange, done, false);
    }
    if !exchange.uri.ends_with(b"/") {
        let error = io::Error::from_raw_os_error(EISDIR);
        exchange.log(Level::Error, format_args!("DELETE \"{}\" failed {}", target.display(), Os(&error)));
        return Next::Status(409);
    }
    if depth(exchange, Depth::Infinity) != Depth::Infinity {
        exchange.log(Level::Error, format_args!("\"Depth\" header must be infinity"));
        return Next::Status(400);
    }
    let target = as_path(path.strip_suffix(b"/").unwrap_or(&path)).to_path_buf();
    chore(move || {
        let mut done = DavDone::new(204);
        files::delete(&target, true, &mut done);
        done
    })
}

/// The parts of a path; an empty one after the last slash does not count.
fn parts_of(uri: &[u8]) -> u64 {
    let slashes = uri.iter().filter(|byte| **byte == b'/').count() as u64;
    if uri.ends_with(b"/") { slashes.saturating_sub(1) } else { slashes }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    Zero,
    One,
    Infinity,
    Invalid,
}

/// The value of `Depth`, or its default.
fn depth(exchange: &mut Exchange<'_>, default: Depth) -> Depth {
    let Some(value) = exchange.request.field(Known::Depth) else { return default };
    match value {
        b"0" => Depth::Zero,
        b"1" => Depth::One,
        b"infinity" => Depth::Infinity,
        other => {
            let shown = String::from_utf8_lossy(other).into_owned();
            exchange.log(Level::Error, format_args!("client sent invalid \"Depth\" header: \"{shown}\""));
            Depth::Invalid
        }
    }
}

fn make_collection(exchange: &mut Exchange<'_>, values: &Values) -> Next {
    if !exchange.uri.ends_with(b"/") {
        exchange.log(Level::Error, format_args!("MKCOL can create a collection only"));
        return Next::Status(409);
    }
    let Some((path, _)) = file_path::path(exchange) else { return Next::Status(500) };
    if let Some(next) = refused(exchange, &path) {
        return next;
    }
    let target = as_path(path.strip_suffix(b"/").unwrap_or(&path));
    match fs::DirBuilder::new().mode(value::directory_access(values.access)).create(target) {
        Ok(()) => respond(exchange, 201, true),
        Err(error) => {
            let mut done = DavDone::new(201);
            done.fail(&error, 409, "mkdir()", target);
            end(exchange, done, false)
        }
    }
}

/// COPY and MOVE.
fn transfer(exchange: &mut Exchange<'_>, moves: bool) -> Next {
    match ordered(exchange, moves) {
        Ok(order) => chore(move || files::transfer(&order)),
        Err(status) => Next::Status(status),
    }
}

/// The transfer that the request asks for; an error is the status to answer with.
fn ordered(exchange: &mut Exchange<'_>, moves: bool) -> Result<Transfer, u16> {
    let (written, target_uri) = destination(exchange)?;
    let shown = String::from_utf8_lossy(&written).into_owned();
    if exchange.uri.ends_with(b"/") != written.ends_with(b"/") {
        let uri = String::from_utf8_lossy(exchange.uri).into_owned();
        exchange.log(
            Level::Error,
            format_args!(
                "both URI \"{uri}\" and \"Destination\" URI \"{shown}\" should be either collections or non-collections"
            ),
        );
        return Err(409);
    }
    // nginx: without the location's name in front, `alias` would cut off another part of the path.
    if let Alias::Prefix(length) = file_path::alias(exchange)
        && exchange.uri.get(..length) != target_uri.get(..length)
    {
        return Err(invalid_destination(exchange, &shown));
    }
    match (depth(exchange, Depth::Infinity), moves) {
        (Depth::Infinity, _) | (Depth::Zero, false) => {}
        (_, false) => {
            exchange.log(Level::Error, format_args!("\"Depth\" header must be 0 or infinity"));
            return Err(400);
        }
        (_, true) => {
            exchange.log(Level::Error, format_args!("\"Depth\" header must be infinity"));
            return Err(400);
        }
    }
    let overwrites = overwrites(exchange)?;
    let (source, _) = file_path::path(exchange).ok_or(500_u16)?;
    let uri = std::mem::replace(exchange.uri, target_uri);
    let target = file_path::path(exchange);
    *exchange.uri = uri;
    let (target, _) = target.ok_or(500_u16)?;
    for path in [&source, &target] {
        if let Some(Next::Status(status)) = refused(exchange, path) {
            return Err(status);
        }
    }
    let order = Transfer {
        moves,
        source: merge_slashes(&source),
        target: merge_slashes(&target),
        overwrites,
        access: crate::values(exchange.location).dav.access,
        uri: String::from_utf8_lossy(exchange.uri).into_owned(),
        destination: shown,
    };
    match order.conflict() {
        None => Ok(order),
        Some(line) => {
            exchange.log(Level::Error, format_args!("{line}"));
            Err(403)
        }
    }
}

/// `Destination` as written, and its path.
fn destination(exchange: &mut Exchange<'_>) -> Result<(Vec<u8>, Vec<u8>), u16> {
    let Some(written) = exchange.request.field(Known::Destination).map(<[u8]>::to_vec) else {
        exchange.log(Level::Error, format_args!("client sent no \"Destination\" header"));
        return Err(400);
    };
    let shown = String::from_utf8_lossy(&written).into_owned();
    let target = if written.starts_with(b"/") {
        written.as_slice()
    } else {
        if exchange.request.host.is_empty() {
            exchange.log(Level::Error, format_args!("client sent no \"Host\" header"));
            return Err(400);
        }
        let scheme = [exchange.client.scheme(), b"://"].concat();
        let Some(rest) = written.strip_prefix(scheme.as_slice()) else {
            return Err(invalid_destination(exchange, &shown));
        };
        let Some(rest) = rest.strip_prefix(exchange.request.host.as_slice()) else {
            exchange.log(
                Level::Error,
                format_args!("\"Destination\" URI \"{shown}\" is handled by different repository than the source URI"),
            );
            return Err(400);
        };
        let slash = rest.iter().position(|byte| *byte == b'/');
        match slash.and_then(|slash| rest.get(slash..)) {
            Some(path) => path,
            None => return Err(invalid_destination(exchange, &shown)),
        }
    };
    match special::inner_uri(exchange, target) {
        Some((path, _)) => Ok((written, path)),
        None => Err(invalid_destination(exchange, &shown)),
    }
}

fn invalid_destination(exchange: &mut Exchange<'_>, shown: &str) -> u16 {
    exchange.log(Level::Error, format_args!("client sent invalid \"Destination\" header: \"{shown}\""));
    400
}

/// The value of `Overwrite`.
fn overwrites(exchange: &mut Exchange<'_>) -> Result<bool, u16> {
    let name = b"Overwrite";
    let request = &exchange.request;
    let field = request.fields().iter().find(|field| request.text(field.name).eq_ignore_ascii_case(name));
    match field.map(|field| request.text(field.value)) {
        None | Some(b"T" | b"t") => Ok(true),
        Some(b"F" | b"f") => Ok(false),
        Some(other) => {
            let shown = String::from_utf8_lossy(other).into_owned();
            exchange.log(Level::Error, format_args!("client sent invalid \"Overwrite\" header: \"{shown}\""));
            Err(400)
        }
    }
}

fn merge_slashes(path: &[u8]) -> Vec<u8> {
    let mut merged = Vec::with_capacity(path.len());
    for byte in path {
        if *byte != b'/' || merged.last() != Some(&b'/') {
            merged.push(*byte);
        }
    }
    merged
}

/// The refusal of a change behind a link that `disable_symlinks` does not allow: the check that reading the same file
/// would meet, up to the nearest directory that exists. nginx does not check changes.
fn refused(exchange: &mut Exchange<'_>, path: &[u8]) -> Option<Next> {
    exchange.location.values.disable_symlinks.guard.as_ref()?;
    let mut way = path.strip_suffix(b"/").unwrap_or(path);
    loop {
        way = way.get(..way.iter().rposition(|byte| *byte == b'/')?)?;
        let directory = [way, b"/"].concat();
        let guard = disable_symlinks::guard(exchange, &directory);
        match open_file_cache::examine(&directory, guard) {
            Ok(_) => return None,
            Err(OpenFailed { error, .. }) if error.raw_os_error() == Some(errno::ENOENT) => {}
            Err(OpenFailed { call, error }) => {
                let shown = String::from_utf8_lossy(&directory);
                exchange.log(Level::Error, format_args!("{call} \"{shown}\" failed {}", Os(&error)));
                return Some(Next::Status(403));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_as_many_parts_as_names() {
        for (uri, parts) in [("/", 0), ("/a", 1), ("/a/", 1), ("/a/b", 2), ("/a/b/", 2)] {
            assert_eq!(parts_of(uri.as_bytes()), parts, "{uri}");
        }
        assert_eq!(merge_slashes(b"/a//b///c/"), b"/a/b/c/");
    }

    #[test]
    fn values_are_refused_in_nginx_words() {
        for (statement, problem) in [
            ("dav_methods put DELETE MKCOL COPY MOVE; dav_access group:rw all:r;", None),
            ("dav_methods off;", None),
            ("dav_methods POST;", Some("invalid value \"POST\"")),
            ("dav_access user:x;", Some("invalid value \"user:x\"")),
            ("min_delete_depth -1;", Some("\"min_delete_depth\" directive invalid number")),
        ] {
            let (_, problems) = crate::of_text(&format!("events {{}} http {{ {statement} server {{ }} }}"));
            assert_eq!(problems.first().map(String::as_str), problem, "{statement}");
        }
    }
}
