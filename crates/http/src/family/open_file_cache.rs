//! `open_file_cache`: files that stay open, and what weir knows of names. All files that answer requests are opened here.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#open_file_cache>. Each worker has a cache of its own for each
//! line, as in nginx. With a cache, weir opens a file even to check only its existence. If descriptors run out, the worker
//! closes its files first.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::time::Duration;

use weir_conf::Statement;
use weir_net::open_files::Limits;
use weir_net::opening::{self, Guard};
use weir_net::path::as_path;
use weir_net::{clock, is_out_of_files};

use crate::exchange::Exchange;
use crate::family::disable_symlinks::guard;
use crate::hold::open_files::{FileCaches, OpenFile, OpenOutcome};
use crate::read::build::Build;
use crate::read::directive::{Arity, Directive, HSL, ONE};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::value;

crate::settings! {
    /// `open_file_cache`; `None` for off.
    cache: Option<FileCache> = None,
    /// `open_file_cache_valid`.
    valid: Duration = Duration::from_secs(60),
    /// `open_file_cache_min_uses`.
    min_uses: u64 = 1,
    /// `open_file_cache_errors`.
    errors: bool = false,
}

/// How many lines `open_file_cache` there are.
pub type Declared = usize;

/// One `open_file_cache`.
#[derive(Clone, Copy, Debug)]
pub struct FileCache {
    number: usize,
    max: usize,
    inactive: Duration,
}

/// A file that weir could not open or examine.
pub struct OpenFailed {
    /// The call, as nginx names it: `openat()`.
    pub call: &'static str,
    /// The error of the call.
    pub error: io::Error,
}

/// How long a file stays open that nobody uses.
const INACTIVE: Duration = Duration::from_secs(60);

/// The family.
#[rustfmt::skip]
pub static FAMILY: Family = Family::new("open_file_cache", &[
    Directive::new("open_file_cache", HSL, Arity::Between(1, 2),
        "Keeps files open, at most this number in each worker; weir closes a file that nobody uses for the time of inactive (60s).", open_file_cache).default("off"),
    Directive::new("open_file_cache_valid", HSL, ONE, "After this time weir checks whether the name still belongs to the open file.",
        |b, s| { b.settings().open_file_cache.valid = Some(value::seconds(s)?); Ok(()) }).default("60s"),
    Directive::new("open_file_cache_min_uses", HSL, ONE, "So often a file is used within the time of inactive before it stays open.",
        |b, s| { b.settings().open_file_cache.min_uses = Some(value::first_number(s)?); Ok(()) }).default("1"),
    Directive::new("open_file_cache_errors", HSL, Arity::Flag, "Remembers files that cannot be opened, too.",
        |b, s| { b.settings().open_file_cache.errors = Some(value::flag(s)?); Ok(()) }).default("off"),
    Directive::idle("open_file_cache_events", HSL, Arity::Flag, "off",
        "only kqueue has these events", |_, s| value::flag(s).map(drop)),
]);

fn open_file_cache(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let number = b.declared.open_file_cache;
    let mut cache = FileCache { number, max: 0, inactive: INACTIVE };
    let mut is_off = false;
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        let invalid = || Refusal::whole(format!("invalid \"open_file_cache\" parameter \"{word}\""));
        match word.split_once('=') {
            Some(("max", number)) => {
                let max = value::number(number).filter(|max| *max > 0).ok_or_else(invalid)?;
                cache.max = usize::try_from(max).map_err(|_| invalid())?;
            }
            Some(("inactive", time)) => cache.inactive = value::whole_seconds_of(time).ok_or_else(invalid)?,
            None if word == "off" => is_off = true,
            Some(_) | None => return Err(invalid()),
        }
    }
    if !is_off && cache.max == 0 {
        return Err(Refusal::whole("\"open_file_cache\" must have the \"max\" parameter"));
    }
    b.settings().open_file_cache.cache = Some((!is_off).then_some(cache));
    b.declared.open_file_cache += 1;
    Ok(())
}

/// Opens a file or a directory for reading, or takes it from the location's cache. A FIFO without a writer does not block.
pub fn open(exchange: &mut Exchange<'_>, path: &[u8]) -> Result<OpenFile, OpenFailed> {
    let guard = guard(exchange, path);
    match exchange.location.values.open_file_cache.cache {
        Some(cache) => cached(exchange, &cache, path, guard),
        None => opened(path, guard),
    }
}

/// The metadata of a file, from the location's cache if possible; follows links as far as allowed.
pub fn metadata(exchange: &mut Exchange<'_>, path: &[u8]) -> Result<Metadata, OpenFailed> {
    let guard = guard(exchange, path);
    match exchange.location.values.open_file_cache.cache {
        Some(cache) => cached(exchange, &cache, path, guard).map(|open| open.facts),
        None => examine(path, guard),
    }
}

/// The metadata of a file as the disk has it now; follows links as far as allowed.
pub fn examine(path: &[u8], guard: Guard) -> Result<Metadata, OpenFailed> {
    match guard {
        Some(_) => opened(path, guard).map(|open| open.facts),
        None => std::fs::metadata(as_path(path)).map_err(OpenFailed::of("stat()")),
    }
}

fn cached(exchange: &Exchange<'_>, cache: &FileCache, path: &[u8], guard: Guard) -> Result<OpenFile, OpenFailed> {
    let values = &exchange.location.values.open_file_cache;
    let (min_uses, valid) = (values.min_uses, values.valid);
    let limits = Limits { max: cache.max, inactive: cache.inactive, min_uses, valid };
    let files = exchange.generation.own.of(FileCaches::default);
    let ask = || {
        files.get(cache.number, (path, guard), &limits, clock::now(), |held| match look(path, guard, held) {
            Err(OpenFailed { call, error }) if values.errors && !is_out_of_files(&error) => {
                error.raw_os_error().map(|number| OpenOutcome::Failed(call, number)).ok_or(OpenFailed { call, error })
            }
            looked => looked.map(OpenOutcome::Open),
        })
    };
    let outcome = match ask() {
        Err(failed) if is_out_of_files(&failed.error) && files.clear() => ask()?,
        asked => asked?,
    };
    match outcome {
        OpenOutcome::Open(opened) => Ok(opened),
        OpenOutcome::Failed(call, number) => Err(OpenFailed { call, error: io::Error::from_raw_os_error(number) }),
    }
}

/// Opens the file, unless the name still belongs to the file that weir holds.
fn look(path: &[u8], guard: Guard, held: Option<&OpenOutcome>) -> Result<OpenFile, OpenFailed> {
    if guard.is_none()
        && let Some(OpenOutcome::Open(held)) = held
        && let Ok(facts) = std::fs::metadata(as_path(path))
        && (facts.dev(), facts.ino()) == (held.facts.dev(), held.facts.ino())
    {
        return Ok(OpenFile { file: held.file.clone(), facts });
    }
    opened(path, guard)
}

fn opened(path: &[u8], guard: Guard) -> Result<OpenFile, OpenFailed> {
    let call = if guard.is_some() { "openat()" } else { "open()" };
    let file = opening::open(path, guard).map_err(OpenFailed::of(call))?;
    let facts = file.metadata().map_err(OpenFailed::of("fstat()"))?;
    Ok(OpenFile { file: Rc::new(file), facts })
}

impl OpenFailed {
    fn of(call: &'static str) -> impl Fn(io::Error) -> OpenFailed {
        move |error| OpenFailed { call, error }
    }
}
