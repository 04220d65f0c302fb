//! The log files of a configuration: `error_log`, `access_log` and `record` open them.

use std::sync::Arc;

use weir_conf::{Problem, Statement, Tree};
use weir_http::exchange::conf::Conf;
use weir_net::log::file::{self, LogFile};
use weir_net::log::{self, Level};

/// Opens every log file of a configuration that is not open yet; the error is nginx's message.
///
/// A failure undoes nothing: when a configuration is dropped, the files opened for it close.
pub fn open_all(conf: &Conf) -> Result<(), String> {
    all_files(conf).try_for_each(|(_, file)| file.open())
}

/// The first log file that cannot be opened, as a problem of the configuration: nginx's words, the line that names
/// the file if there is one, and the remedy if its directory is missing.
pub fn first_unopened(conf: &Conf, tree: &Tree) -> Option<Problem> {
    all_files(conf).find_map(|(directive, file)| {
        let what = file.open().err()?;
        let names_it = |statement: &Statement| {
            let name = statement.text(0);
            let path = if name.starts_with('/') { name.to_owned() } else { format!("{}{name}", conf.paths.prefix) };
            statement.name.text == directive && path == file.path()
        };
        let problem = Problem::nowhere(weir_conf::Level::Emerg, what).at(tree.first(&names_it).map(|found| found.at));
        let Some(directory) = file.missing_directory() else { return Some(problem) };
        let otherwise = match directive {
            "error_log" => "error_log stderr;",
            "access_log" => "access_log off;",
            _ => "record off;",
        };
        Some(problem.todo(&format!("create the directory with mkdir -p {directory}, or write: {otherwise}")))
    })
}

/// The log files of a configuration.
pub fn of(conf: &Conf) -> impl Iterator<Item = &Arc<LogFile>> {
    all_files(conf).map(|(_, file)| file)
}

fn all_files(conf: &Conf) -> impl Iterator<Item = (&'static str, &Arc<LogFile>)> {
    let errors = conf.declared.error_log.files.iter().map(|file| ("error_log", file));
    let declared = crate::declared(conf);
    let recordings = declared.record.recorders.iter().map(|recorder| ("record", recorder.file()));
    errors.chain(declared.log.files.iter().map(|file| ("access_log", file))).chain(recordings)
}

/// USR1: opens every log file again by its name. If a file cannot be opened, weir keeps the old one and logs the error.
pub fn reopen() {
    for what in file::reopen_all() {
        log::global(Level::Emerg, format_args!("{what}"));
    }
}
