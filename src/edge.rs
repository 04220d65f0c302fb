//! `weir edge`, or weir called as `nginx`: turns the flags into one of nginx's actions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_conf::{Level, Problem, Tree};
use weir_edge::dash::place;
use weir_edge::keeper::apart::Apart;
use weir_edge::keeper::here::Here;
use weir_edge::keeper::{Bell, Keeper, KeptServer, load_with_dashboard};
use weir_edge::load::{self, ConfOrigin, Dashboard, Loaded};
use weir_edge::log_files;
use weir_edge::obey::obey;
use weir_edge::proof;
use weir_http::exchange::conf::Conf;
use weir_http::hold::paths::Paths;
use weir_net::answers::Answers;
use weir_net::process::{self, Channel, Daemon, Manager, Ready, Signal};
use weir_net::{Listening, log};

use crate::files::Disk;
use crate::flags::{self, Flags, SignalOrder};

/// Default paths: Debian's layout, so that weir finds an installed nginx.conf.
const DEFAULT_PREFIX: &str = "/usr/share/nginx/";
const DEFAULT_FILE: &str = "/etc/nginx/nginx.conf";
const DEFAULT_ERROR_LOG: &str = "/var/log/nginx/error.log";
const DEFAULT_ACCESS_LOG: &str = "/var/log/nginx/access.log";
const DEFAULT_TEMPORARY: &str = "/var/lib/nginx/";
const DEFAULT_PID: &str = "/run/nginx.pid";

/// Serves for the keeper that started this process, with the keeper's own arguments.
pub fn serve_for(channel: Channel, args: &[OsString]) -> ExitCode {
    let origin = match flags::parse(args) {
        Ok(flags) => origin(&flags),
        Err(message) => return refused(&message),
    };
    log::open_default(Path::new(&origin.error_log));
    let ignored = process::ignore_signals().map_err(|error| format!("signal handlers failed {}", log::Os(&error)));
    match ignored.and_then(|()| obey(origin, channel, &Disk)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            log::global(log::Level::Emerg, format_args!("{message}"));
            ExitCode::from(1)
        }
    }
}

fn refused(message: &str) -> ExitCode {
    eprintln!("nginx: {message}");
    ExitCode::from(1)
}

/// Runs the verb. If called as `nginx`, weir has nginx's features only, and no dashboard unless the file asks for
/// one.
pub fn main(args: Vec<OsString>, is_nginx: bool) -> ExitCode {
    let flags = match flags::parse(&args) {
        Ok(flags) => flags,
        Err(message) => return refused(&message),
    };
    if flags.reference_metrics {
        print!("{}", weir_edge::live::metrics::reference());
        return ExitCode::SUCCESS;
    }
    if flags.reference {
        print!("{}", weir_edge::modules::reference());
        return ExitCode::SUCCESS;
    }
    if flags.help || flags.version || flags.version_long {
        print_version(&flags);
        return ExitCode::SUCCESS;
    }
    let origin = origin(&flags);
    log::open_default(Path::new(&origin.error_log));
    let result = match flags.signal {
        Some(order) => signal(&origin, order),
        None if flags.test => return test(&origin, &flags),
        None => run(origin, is_nginx),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            log::global(log::Level::Emerg, format_args!("{message}"));
            ExitCode::from(1)
        }
    }
}

fn print_version(flags: &Flags) {
    eprintln!("nginx version: nginx/{} (weir/{})", weir_http::send::respond::VERSION, env!("CARGO_PKG_VERSION"));
    if flags.help {
        eprint!("{}", flags::HELP);
    }
    if flags.version_long {
        // certbot and nginx's suite read `built with OpenSSL X.Y.Z ` to learn which TLS features exist. rustls has
        // the features of that version. certbot freezes its options below 1.0.2l, or without this line.
        eprintln!(
            "built by rustc\nbuilt with OpenSSL 3.0.0 (compatible; TLS by rustls)\nTLS SNI support enabled\nconfigure arguments: {}",
            weir_edge::modules::configure_arguments()
        );
    }
}

/// Resolves `-p`, `-c`, `-e` as nginx does: with a prefix, relative names and nginx's own layout are under the
/// prefix.
pub fn origin(flags: &Flags) -> ConfOrigin {
    let current = std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default();
    let absolute = |path: &str| if path.starts_with('/') { path.to_owned() } else { format!("{current}/{path}") };
    let (prefix, file, error_log, pid) = match &flags.prefix {
        Some(prefix) => {
            let mut prefix = absolute(prefix);
            if !prefix.ends_with('/') {
                prefix.push('/');
            }
            (prefix, "conf/nginx.conf", "logs/error.log", "logs/nginx.pid")
        }
        None => (DEFAULT_PREFIX.to_owned(), DEFAULT_FILE, DEFAULT_ERROR_LOG, DEFAULT_PID),
    };
    let under = |path: &str| if path.starts_with('/') { path.to_owned() } else { format!("{prefix}{path}") };
    let file = under(flags.file.as_deref().unwrap_or(file));
    let conf_prefix = match file.rfind('/') {
        Some(at) => file[..=at].to_owned(),
        None => prefix.clone(),
    };
    let error_log = match flags.error_log.as_deref() {
        Some("stderr") => "stderr".to_owned(),
        other => under(other.unwrap_or(error_log)),
    };
    let access_log = flags.prefix.is_none().then(|| DEFAULT_ACCESS_LOG.to_owned());
    let temporary = flags.prefix.is_none().then(|| DEFAULT_TEMPORARY.to_owned());
    ConfOrigin {
        globals: flags.globals.clone().unwrap_or_default(),
        pid: under(pid),
        error_log,
        file,
        paths: Paths { prefix, conf_prefix, access_log, temporary },
        dashboard: Dashboard::default(),
    }
}

/// Prints the problems.
fn print_problems(loaded: &Loaded) {
    loaded.problems.iter().for_each(|problem| print_problem(problem, &loaded.tree));
}

/// Prints nginx's line first, then the place and the remedy. nginx's line also goes to the log of `-e`.
fn print_problem(problem: &Problem, tree: &Tree) {
    eprint!("{}", weir_conf::render(problem, tree, "nginx"));
    log::note(load::level_of(problem), format_args!("{}", problem.sentence(tree)));
}

/// `-t` and `-T`.
fn test(origin: &ConfOrigin, flags: &Flags) -> ExitCode {
    let loaded = load::load(origin, &Disk, 1);
    let file = &origin.file;
    if flags.crossplane {
        let opaque = |name: &str| name.ends_with("_by_lua_block");
        println!("{}", weir_conf::crossplane(&loaded.tree, &loaded.problems, &opaque));
    }
    print_problems(&loaded);
    if loaded.conf.is_some() && !flags.quiet {
        eprintln!("nginx: the configuration file {file} syntax is ok");
    }
    let obstacles = loaded.conf.as_ref().map(|conf| proof::obstacles(origin, conf, &loaded.tree)).unwrap_or_default();
    obstacles.iter().for_each(|problem| print_problem(problem, &loaded.tree));
    if loaded.conf.is_none() || obstacles.iter().any(load::is_grave) {
        eprintln!("nginx: configuration file {file} test failed");
        return ExitCode::from(1);
    }
    if !flags.quiet {
        eprintln!("nginx: configuration file {file} test is successful");
    }
    if flags.dump {
        dump(&loaded);
    }
    if flags.explain {
        print!("{}", weir_edge::explain::explain(&loaded.tree));
    }
    ExitCode::SUCCESS
}

/// Prints the files as weir read them, in nginx's form.
fn dump(loaded: &Loaded) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    for source in loaded.tree.files.iter().filter(|source| !source.is_command_line) {
        // It does not matter if the reader closes the pipe early.
        let _ = writeln!(out, "# configuration file {}:", source.name);
        let _ = out.write_all(&source.bytes);
        let _ = writeln!(out);
    }
}

/// The pid file of the edge that runs this configuration, and the process that it names.
pub fn running(origin: &ConfOrigin) -> Result<(PathBuf, u32), String> {
    let loaded = load::load(origin, &Disk, 1);
    let Some(conf) = &loaded.conf else {
        print_problems(&loaded);
        return Err("the configuration names no pid file to signal".to_owned());
    };
    let path = load::pid_file(origin, conf);
    let shown = path.display();
    let pid = process::read_pid_file(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => format!("invalid PID number \"\" in \"{shown}\""),
        _ => format!("open() \"{shown}\" failed {}", log::Os(&error)),
    })?;
    Ok((path, pid))
}

/// `-s`.
fn signal(origin: &ConfOrigin, order: SignalOrder) -> Result<(), String> {
    let (_, pid) = running(origin)?;
    let signal = match order {
        SignalOrder::Stop => Signal::Term,
        SignalOrder::Quit => Signal::Quit,
        SignalOrder::Reopen => Signal::Usr1,
        SignalOrder::Reload => Signal::Hup,
    };
    process::send_signal(pid, signal)
        .map_err(|error| format!("kill({pid}, {}) failed {}", signal.number(), log::Os(&error)))
}

/// Serves until a signal ends it.
fn run(mut origin: ConfOrigin, is_nginx: bool) -> Result<(), String> {
    let kept = place::kept();
    origin.dashboard = Dashboard::AsWritten { on: kept, unasked: !is_nginx };
    let (loaded, answers, claimed) = load_with_dashboard(&mut origin, &Disk, 1, &|address| kept == Some(address));
    // The daemon process reads the file again; the foreground process has printed the warnings already.
    if loaded.conf.is_none() || !process::is_background() {
        print_problems(&loaded);
    }
    let Some(conf) = loaded.conf else {
        // The printed problems are the error message.
        debug_assert!(loaded.problems.iter().any(|problem| matches!(problem.level, Level::Emerg)));
        std::process::exit(1);
    };
    if let Some(problem) = log_files::first_unopened(&conf, &loaded.tree) {
        print_problem(&problem, &loaded.tree);
        std::process::exit(1);
    }
    let daemonises = conf.main.process.daemon && !process::is_successor();
    // The process in the background claims the address itself.
    let claimed = claimed.filter(|_| !daemonises || process::is_background());
    let ready = if daemonises {
        match process::daemonise().map_err(|error| format!("daemon failed {}", log::Os(&error)))? {
            Daemon::Started(code) => std::process::exit(code),
            Daemon::Background(ready) => Some(ready),
        }
    } else {
        None
    };
    let start = Start { origin, answers, conf, tree: loaded.tree, claimed, is_nginx, ready };
    if start.conf.main.process.keeper {
        let title = if is_nginx { "nginx: worker process" } else { "weir: worker process" };
        start.keep(|bell, _| Apart::new(title, bell))
    } else {
        start.keep(Here::new)
    }
}

/// A configuration that is about to be served.
struct Start {
    origin: ConfOrigin,
    answers: Answers,
    conf: Conf,
    tree: Tree,
    claimed: Option<Listening>,
    is_nginx: bool,
    ready: Option<Ready>,
}

impl Start {
    /// Keeps a server running until a signal ends it.
    fn keep<S: KeptServer>(self, server: impl FnOnce(Bell, Option<Manager>) -> S) -> Result<(), String> {
        let signals = process::signals().map_err(|error| format!("signal handlers failed {}", log::Os(&error)))?;
        let dashboard = self.conf.dashboard;
        let keeper = Keeper::start(self.origin, (self.conf, self.tree, self.answers), self.claimed, server)?;
        if let Some(address) = dashboard.filter(|_| !self.is_nginx) {
            eprintln!("weir: dashboard on http://{address}/");
        }
        keeper.write_pid()?;
        if let Some(ready) = self.ready {
            ready.tell().map_err(|error| format!("daemon failed {}", log::Os(&error)))?;
            // As nginx does: close stderr for a program that waits for its end. The last messages still reach a file.
            if let Some(file) = log::last_words() {
                process::redirect_stderr(&file).map_err(|error| format!("dup2(STDERR) failed {}", log::Os(&error)))?;
            }
        }
        keeper.serve(signals, &Disk);
        Ok(())
    }
}
