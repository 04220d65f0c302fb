//! The child process: serves the configuration of a directory, or runs the program that does, until standard input
//! closes.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use serde_json::Value;
use weir_conf::Files;
use weir_edge::keeper::here::Here;
use weir_edge::keeper::{Keeper, load_recorded};
use weir_edge::load::{ConfOrigin, Dashboard};
use weir_edge::log_files;
use weir_http::hold::paths::Paths;
use weir_net::process::{self, Signal};
use weir_net::{log, worker};

use super::room::ORDERS;

/// Serves as the files of a directory say, until standard input closes.
///
/// # Errors
/// A sentence for the parent's report.
pub fn serve(room: &Path) -> Result<(), String> {
    let place = room.join(ORDERS);
    let text = fs::read_to_string(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let orders: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", place.display()))?;
    let text = |name: &str| orders[name].as_str().unwrap_or_default().to_owned();
    if let Some(other) = orders["other"].as_str() {
        return run(other, &text("conf"), &text("prefix"), &text("globals"));
    }
    let origin = ConfOrigin {
        file: text("file"),
        globals: text("globals"),
        paths: Paths {
            prefix: text("prefix"),
            conf_prefix: text("conf_prefix"),
            access_log: None,
            temporary: Some(text("temporary")),
        },
        pid: text("pid"),
        error_log: text("error_log"),
        dashboard: Dashboard::Decided(None),
    };
    let held = orders["files"].as_object().into_iter().flatten();
    let held = held.filter_map(|(name, number)| Some((name.clone(), room.join(number.as_str()?)))).collect();
    log::open_default(Path::new(&origin.error_log));
    let files = Held(held);
    let (loaded, answers) = load_recorded(&origin, &files, 1);
    let said = |problem: &weir_conf::Problem| problem.sentence(&loaded.tree);
    let Some(conf) = loaded.conf else {
        let all: Vec<String> = loaded.problems.iter().map(said).collect();
        return Err(all.join("; "));
    };
    if let Some(problem) = log_files::first_unopened(&conf, &loaded.tree) {
        return Err(said(&problem));
    }
    let signals = process::signals().map_err(|error| format!("signal handlers failed {}", log::Os(&error)))?;
    let keeper = Keeper::start(origin, (conf, loaded.tree, answers), None, Here::new)?;
    keeper.write_pid()?;
    when_closed(|| std::process::exit(0))?;
    keeper.serve(signals, &files);
    Ok(())
}

/// Runs another program, which ends with this process.
fn run(program: &str, conf: &str, prefix: &str, globals: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("{program}: {error}");
    let mut command = Command::new(program);
    // weir takes nginx's flags if its `argv[0]` is `nginx`.
    command.arg0("nginx").args(["-p", prefix, "-c", conf, "-g", globals]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let pid = child.id();
    // nginx ends at once with this signal. It may have ended by itself before.
    when_closed(move || drop(process::send_signal(pid, Signal::Term)))?;
    let ended = child.wait().map_err(failed)?;
    if ended.success() { Ok(()) } else { Err(format!("{program}: {ended}")) }
}

/// Does something when standard input closes: the parent has ended, or wants this process to end.
fn when_closed(end: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let until_closed = || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        end();
    };
    worker::block_aside("parent", until_closed).map_err(|error| error.to_string())
}

/// The changed files, in the place of those on the disk.
struct Held(BTreeMap<String, PathBuf>);

impl Files for Held {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.get(path).map_or(Path::new(path), PathBuf::as_path))
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let list = |directory: &str| -> io::Result<Vec<String>> {
            Ok(fs::read_dir(directory)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        };
        Ok(weir_conf::glob::expand(pattern, &list, &|path| Path::new(path).exists()))
    }
}
