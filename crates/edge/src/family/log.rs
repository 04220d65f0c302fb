//! `access_log`, `log_format`: one line for each request, written at its end.
//!
//! <https://nginx.org/en/docs/http/ngx_http_log_module.html>
//!
//! weir holds lines to a file back until the end of the worker's turn, and writes them at once; with `buffer=` it
//! holds them longer. A name with variables is opened for each write.

pub mod buffer;
pub mod format;
pub mod handles;
pub mod pending;

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::file_path;
use weir_http::exchange::subject::Subject;
use weir_http::family::disable_symlinks::{self, Guarded};
use weir_http::family::error_log::declare;
use weir_http::family::open_file_cache;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, HTTP, LIMIT_EXCEPT, LOCATION_IF, SERVER, SS, STREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::log::file::LogFile;
use weir_net::log::syslog::Syslog;
use weir_net::log::{Level, Os};
use weir_net::open_files::Limits;
use weir_stream::part::Part;
use weir_stream::session::Session;

use self::buffer::{Buffer, Buffering};
use self::format::{Escape, Format};

weir_http::settings! {
    /// `access_log`.
    logs: Logs = Logs::default(),
    /// `open_log_file_cache`; `None` for off.
    cache: Option<Limits> = None,
}

/// The log formats by name, and the files to open before the configuration comes into force.
#[derive(Default)]
pub struct Declared {
    /// Each file once.
    pub files: Vec<Arc<LogFile>>,
    formats: Formats,
    /// The formats of `stream`: their variables are those of sessions.
    session_formats: Formats,
    buffers: Vec<Arc<Buffer>>,
}

type Formats = Vec<(String, Arc<Format>)>;

impl Declared {
    fn formats(&mut self, is_stream: bool) -> &mut Formats {
        if is_stream { &mut self.session_formats } else { &mut self.formats }
    }
}

/// All `access_log`s of one place.
#[derive(Clone, Default)]
pub struct Logs {
    /// `access_log off` was written; it overrides the others.
    off: bool,
    list: Vec<Arc<AccessLog>>,
}

/// One `access_log`.
pub struct AccessLog {
    target: Target,
    format: Arc<Format>,
    when: Option<Template>,
    buffer: Option<Arc<Buffer>>,
}

enum Target {
    File(Arc<LogFile>),
    /// A path with variables.
    Path(Template),
    Syslog(Arc<Syslog>),
}

/// The family.
pub static FAMILY: Family = Family::new(
    "log",
    &[
        Directive::new(
            "access_log",
            HSL.or(LOCATION_IF).or(LIMIT_EXCEPT).or(SS),
            Arity::AtLeast(1),
            "Sets a log for requests: a file, its format, its buffer, and a condition for the requests that it logs.",
            access_log,
        )
        .many()
        .default("logs/access.log combined"),
        Directive::new("log_format", HTTP.or(STREAM), Arity::AtLeast(2), "Sets a log format.", log_format)
            .many()
            .default("combined \"...\""),
        Directive::new(
            "open_log_file_cache",
            HSL.or(SS),
            Arity::Between(1, 4),
            "Keeps log files open whose names contain variables.",
            open_log_file_cache,
        )
        .default("off"),
    ],
)
.log(|_, location| !crate::values(location).log.logs.off, log)
.finish(finish);

const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
     \"$http_referer\" \"$http_user_agent\"";

const DEFAULT_PATH: &str = "logs/access.log";

/// The limits of `open_log_file_cache`, without `max`.
const LOG_FILES: Limits =
    Limits { max: 0, inactive: Duration::from_secs(10), min_uses: 1, valid: Duration::from_secs(60) };

/// The buffer of a log with `gzip` and no `buffer=`.
const GZIP_BUFFER: u64 = 64 << 10;

/// The largest buffer: each worker may hold that much (nginx has no limit).
const BUFFER_MAX: u64 = 64 << 20;

fn log_format(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0);
    let is_stream = b.is_in_stream();
    let is_combined = name == "combined" && !is_stream;
    if is_combined || crate::declaring(b).log.formats(is_stream).iter().any(|(known, _)| known == name) {
        return Err(Refusal::whole(format!("duplicate \"log_format\" name \"{name}\"")));
    }
    let mut words: Vec<&str> = statement.args.iter().skip(1).map(|word| word.text.as_str()).collect();
    let mut escape = Escape::Default;
    if let Some(kind) = words.first().and_then(|word| word.strip_prefix("escape=")) {
        escape = match kind {
            "default" => Escape::Default,
            "json" => Escape::Json,
            "none" => Escape::None,
            other => {
                return Err(Refusal::whole(format!("unknown log format escaping \"{other}\"")));
            }
        };
        words.remove(0);
    }
    let format = Format::compile(&words, escape, b.mentions())?;
    crate::declaring(b).log.formats(is_stream).push((name.to_owned(), Arc::new(format)));
    Ok(())
}

fn access_log(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    if statement.text(0) == "off" {
        if let Some(word) = statement.args.get(1) {
            return Err(Refusal::whole(format!("invalid parameter \"{}\"", word.text)));
        }
        crate::settings(b).log.logs.get_or_insert_default().off = true;
        return Ok(());
    }
    let target = target(b, statement.text(0))?;
    if b.is_in_stream() && statement.args.len() < 2 {
        return Err(Refusal::whole("log format is not specified").todo("name a format of log_format"));
    }
    let format = format_of(b, statement.args.get(1).map_or("combined", |word| word.text.as_str()))?;
    let (asked, when) = parameters(b, statement)?;
    let buffer = buffer_of(b, statement.text(0), &target, asked)?;
    let log = Arc::new(AccessLog { target, format, when, buffer });
    crate::settings(b).log.logs.get_or_insert_default().list.push(log);
    Ok(())
}

fn target(b: &mut Build<'_>, word: &str) -> Result<Target, Refusal> {
    if let Some(text) = word.strip_prefix("syslog:") {
        return Syslog::read(text, b.resolve).map(Target::Syslog).map_err(Refusal::whole);
    }
    let path = b.path(word);
    if word.contains('$') {
        let name = b.template(&path)?;
        if b.reach.write_named(name.beginning(), &b.paths.prefix) {
            b.opens_all("writing");
        }
        return Ok(Target::Path(name));
    }
    let file = LogFile::shared(&path);
    declare(&mut crate::declaring(b).log.files, &file);
    Ok(Target::File(file))
}

/// The format of that name; `combined` is compiled at its first use.
fn format_of(b: &mut Build<'_>, name: &str) -> Result<Arc<Format>, Refusal> {
    let is_stream = b.is_in_stream();
    let mut known = crate::declaring(b).log.formats(is_stream).iter();
    if let Some((_, format)) = known.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Ok(format.clone());
    }
    if is_stream || !name.eq_ignore_ascii_case("combined") {
        return Err(Refusal::whole(format!("unknown log format \"{name}\""))
            .todo("define the format with log_format above this line")
            .needs("log_format", name));
    }
    let format = Arc::new(Format::compile(&[COMBINED], Escape::Default, b.mentions())?);
    crate::declaring(b).log.formats.push(("combined".to_owned(), format.clone()));
    Ok(format)
}

fn parameters(b: &mut Build<'_>, statement: &Statement) -> Result<(Buffering, Option<Template>), Refusal> {
    let mut asked = Buffering { size: 0, flush: None, gzip: None };
    let mut when = None;
    for word in statement.args.iter().skip(2).map(|word| word.text.as_str()) {
        let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
        match (key, value) {
            ("buffer", Some(text)) => {
                let invalid = || Refusal::whole(format!("invalid buffer size \"{text}\""));
                asked.size = match value::size_of(text) {
                    Some(size @ 1..=BUFFER_MAX) => size as usize,
                    Some(1..) => return Err(invalid().weirs_own()),
                    Some(0) | None => return Err(invalid()),
                };
            }
            ("flush", Some(text)) => {
                let time = value::time_of(text).filter(|time| *time > Duration::ZERO);
                asked.flush = Some(time.ok_or_else(|| Refusal::whole(format!("invalid flush time \"{text}\"")))?);
            }
            ("gzip", level) => {
                if asked.size == 0 {
                    asked.size = GZIP_BUFFER as usize;
                }
                let level = level.map_or(Some(1), |text| value::number(text).filter(|n| (1..=9).contains(n)));
                let shown = value.unwrap_or_default();
                let level = level.ok_or_else(|| Refusal::whole(format!("invalid compression level \"{shown}\"")))?;
                asked.gzip = Some(level as u32);
            }
            ("if", Some(text)) => when = Some(b.template(text)?),
            _ => return Err(Refusal::whole(format!("invalid parameter \"{word}\""))),
        }
    }
    Ok((asked, when))
}

/// The buffer of the log; all logs to one file share it and must agree on its parameters.
fn buffer_of(b: &mut Build<'_>, name: &str, target: &Target, asked: Buffering) -> Result<Option<Arc<Buffer>>, Refusal> {
    if asked.size == 0 && asked.flush.is_some() {
        return Err(Refusal::whole(format!("no buffer is defined for access_log \"{name}\"")));
    }
    let file = match target {
        Target::File(file) => file,
        Target::Path(_) | Target::Syslog(_) if asked.size == 0 => return Ok(None),
        Target::Path(_) => {
            return Err(Refusal::whole("buffered logs cannot have variables in name"));
        }
        Target::Syslog(_) => return Err(Refusal::whole("logs to syslog cannot be buffered")),
    };
    let buffers = &mut crate::declaring(b).log.buffers;
    match buffers.iter().find(|known| Arc::ptr_eq(&known.file, file)) {
        Some(known) if asked.size > 0 && known.buffering != asked => {
            Err(Refusal::whole(format!("access_log \"{name}\" already defined with conflicting parameters")))
        }
        Some(known) => Ok(Some(known.clone())),
        None if asked.size == 0 => Ok(None),
        None => {
            let buffer = Buffer::new(file.clone(), asked);
            buffers.push(buffer.clone());
            Ok(Some(buffer))
        }
    }
}

fn open_log_file_cache(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut size = LOG_FILES;
    let mut off = false;
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        let invalid = || Refusal::whole(format!("invalid \"open_log_file_cache\" parameter \"{word}\""));
        match word.split_once('=') {
            Some(("max", text)) => size.max = value::number(text).ok_or_else(invalid)? as usize,
            Some(("inactive", text)) => size.inactive = value::whole_seconds_of(text).ok_or_else(invalid)?,
            Some(("min_uses", text)) => size.min_uses = value::number(text).ok_or_else(invalid)?,
            Some(("valid", text)) => size.valid = value::whole_seconds_of(text).ok_or_else(invalid)?,
            None if word == "off" => off = true,
            Some(_) | None => return Err(invalid()),
        }
    }
    if !off && size.max == 0 {
        return Err(Refusal::whole("\"open_log_file_cache\" must have \"max\" parameter"));
    }
    crate::settings(b).log.cache = Some((!off).then_some(size));
    Ok(())
}

/// A server without a log of its own or an inherited one gets the default log.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    if scope.context != SERVER || crate::written(scope).log.logs.is_some() {
        return;
    }
    let path = b.path(b.paths.access_log.as_deref().unwrap_or(DEFAULT_PATH));
    let file = LogFile::shared(&path);
    declare(&mut crate::declaring(b).log.files, &file);
    match format_of(b, "combined") {
        Ok(format) => {
            let target = Target::File(file);
            let log = AccessLog { target, format, when: None, buffer: None };
            crate::written_mut(scope).log.logs = Some(Logs { off: false, list: vec![Arc::new(log)] });
        }
        Err(refusal) => b.refuse("access_log", refusal),
    }
}

/// Writes the request's log lines.
pub fn log(exchange: &mut Exchange<'_>) {
    let location = exchange.location;
    let logs = &crate::values(location).log.logs;
    if logs.off {
        return;
    }
    for log in &logs.list {
        if log.when.as_ref().is_none_or(|when| is_true(&when.text(exchange))) {
            write(exchange, log, write_named);
        }
    }
    // A client that waits for the close finds its request in the log; closing costs far more than this write.
    if !exchange.flags.keeps_alive {
        pending::flush();
    }
}

/// nginx: neither empty nor `0`.
fn is_true(value: &[u8]) -> bool {
    !matches!(value, b"" | b"0")
}

/// The same for sessions of `stream`.
pub const PART: Part = Part { log: Some(log_session), ..Part::NOTHING };

fn log_session(session: &mut Session<'_>) {
    let logs = &crate::values(&session.server.place).log.logs;
    if logs.off {
        return;
    }
    for log in &logs.list {
        if log.when.as_ref().is_none_or(|when| is_true(&when.text(session))) {
            write(session, log, write_named_of_session);
        }
    }
    // A client that waits for the close finds its session in the log.
    pending::flush();
}

fn write_named_of_session(session: &mut Session<'_>, log: &AccessLog, path: &Template) {
    let path = path.text(session);
    append_named(session, log, &path, None);
}

/// `named` writes to a file whose name has variables.
fn write<'c, S: Subject<'c>>(subject: &mut S, log: &AccessLog, named: fn(&mut S, &AccessLog, &Template)) {
    match &log.target {
        Target::File(file) => {
            let compose = |line: &mut Vec<u8>| {
                log.format.write(subject, line);
                line.push(b'\n');
            };
            match &log.buffer {
                None => pending::append(file, compose),
                Some(buffer) => buffer.append(compose),
            }
        }
        Target::Path(path) => named(subject, log, path),
        Target::Syslog(syslog) => {
            let mut message = Vec::with_capacity(256);
            syslog.begin(&mut message);
            log.format.write(subject, &mut message);
            if !syslog.send(&message) {
                subject.note(Level::Warn, format_args!("send() to syslog failed"));
            }
        }
    }
}

/// Writes to a file whose name has variables.
fn write_named(exchange: &mut Exchange<'_>, log: &AccessLog, path: &Template) {
    if !root_exists(exchange) {
        return;
    }
    let path = path.text(exchange);
    let guard = disable_symlinks::guard(exchange, &path);
    append_named(exchange, log, &path, guard);
}

fn append_named<'c>(subject: &mut impl Subject<'c>, log: &AccessLog, path: &[u8], guard: Guarded) {
    let mut line = Vec::with_capacity(256);
    log.format.write(subject, &mut line);
    line.push(b'\n');
    let cache = crate::values(subject.place()).log.cache;
    if let Err(error) = handles::write(path, cache.as_ref(), guard, &line) {
        let shown = String::from_utf8_lossy(path);
        subject.note(Level::Crit, format_args!("open() \"{shown}\" failed {}", Os(&error)));
    }
}

/// nginx: a client may choose part of the name, so weir writes such a log only where the root directory exists.
fn root_exists(exchange: &mut Exchange<'_>) -> bool {
    let Some((mut root, length)) = file_path::path(exchange) else {
        return false;
    };
    root.truncate(length);
    let error = match open_file_cache::metadata(exchange, &root) {
        Ok(found) if found.is_dir() => return true,
        Ok(_) => std::io::ErrorKind::NotADirectory.into(),
        Err(failed) => failed.error,
    };
    let shown = String::from_utf8_lossy(&root);
    exchange.log(Level::Error, format_args!("testing \"{shown}\" existence failed {}", Os(&error)));
    false
}

#[cfg(test)]
mod tests;
