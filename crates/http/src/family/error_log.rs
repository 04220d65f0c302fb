//! `error_log`: the destination of error messages, and the lowest level to log.
//!
//! <https://nginx.org/en/docs/ngx_core_module.html#error_log>

use std::sync::Arc;

use weir_conf::Statement;
use weir_net::log::Level;
use weir_net::log::file::LogFile;
use weir_net::log::sink::{LogTarget, Sink, Sinks};
use weir_net::log::syslog::Syslog;

use crate::read::build::{Build, Scope};
use crate::read::directive::{Arity, Directive, HSL, HTTP, MAIN, SS, STREAM};
use crate::read::families::Family;
use crate::text::refusal::Refusal;

crate::settings! {
    /// The main level's logs: for lines about the process.
    main: Arc<Sinks> = Arc::new(Sinks::standard()),
    /// The logs in force in one place of `http`.
    sinks: Arc<Sinks> = Arc::new(Sinks::standard()),
}

/// The files to open before the configuration is put in force.
#[derive(Default)]
pub struct Declared {
    /// Each file once, in the order of the file.
    pub files: Vec<Arc<LogFile>>,
}

/// The family.
pub static FAMILY: Family = Family::new(
    "error_log",
    &[Directive::new(
        "error_log",
        MAIN.or(HSL).or(SS),
        Arity::AtLeast(1),
        "Sets a log for errors: a file, stderr or a syslog server, and the lowest level that it logs.",
        error_log,
    )
    .many()
    .default("logs/error.log error")],
)
.finish(finish);

fn error_log(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let target = target(b, statement.text(0))?;
    let level = level(statement)?;
    let is_main = b.context() == MAIN;
    let settings = &mut b.settings().error_log;
    let slot = if is_main { &mut settings.main } else { &mut settings.sinks };
    Arc::make_mut(slot.get_or_insert_default()).add(Sink { target, level });
    Ok(())
}

fn target(b: &mut Build<'_>, word: &str) -> Result<LogTarget, Refusal> {
    if word == "stderr" {
        return Ok(LogTarget::Stderr);
    }
    if word.starts_with("memory:") {
        return Err(Refusal::whole("error_log to \"memory:\" is not supported: weir has no debug log")
            .weirs_own()
            .todo("name a file, stderr or syslog:server=ADDRESS"));
    }
    if let Some(text) = word.strip_prefix("syslog:") {
        return Syslog::read(text, b.resolve).map(LogTarget::Syslog).map_err(Refusal::whole);
    }
    let file = LogFile::shared(&b.path(word));
    declare(&mut b.declared.error_log.files, &file);
    Ok(LogTarget::File(file))
}

/// Adds a file to the list of files to open.
pub fn declare(files: &mut Vec<Arc<LogFile>>, file: &Arc<LogFile>) {
    if !files.iter().any(|known| Arc::ptr_eq(known, file)) {
        files.push(file.clone());
    }
}

/// `debug_http` and others select parts of nginx's debug log; alone they let every level through.
const DEBUG_PARTS: [&str; 7] =
    ["debug_core", "debug_alloc", "debug_mutex", "debug_event", "debug_http", "debug_mail", "debug_stream"];

fn level(statement: &Statement) -> Result<Level, Refusal> {
    let mut level = None;
    let mut has_parts = false;
    for word in statement.args.iter().skip(1).map(|word| word.text.as_str()) {
        match Level::of(word) {
            Some(_) if level.is_some() || has_parts => {
                return Err(Refusal::whole(format!("duplicate log level \"{word}\"")));
            }
            Some(known) => level = Some(known),
            None if DEBUG_PARTS.contains(&word) && level.is_none() => has_parts = true,
            None => {
                return Err(Refusal::whole(format!("invalid log level \"{word}\""))
                    .todo(format!("write one of: {}", Level::ALL.map(Level::name).join(", "))));
            }
        }
    }
    Ok(level.unwrap_or(if has_parts { Level::Debug } else { Level::Error }))
}

/// `http` and `stream` take the main level's logs if they have none; a main level without a file gets the default file.
fn finish(_: &mut Build<'_>, scope: &mut Scope) {
    if !scope.context.meets(HTTP.or(STREAM)) {
        return;
    }
    let settings = &mut scope.settings.error_log;
    let mut main = settings.main.clone().unwrap_or_default();
    if !main.has_file() {
        Arc::make_mut(&mut main).add(Sinks::default_file());
    }
    settings.sinks.get_or_insert(main);
}
