//! `weir load`: Artillery scripts, or one URL. Flags, files, exit codes; the work is in `weir_load`.

pub mod agents;
mod brief;
pub mod flags;
mod from;
mod metrics;
mod quick;
mod report;
mod script;
mod teller;
mod texts;
mod view;

use std::process::ExitCode;

use weir_conf::language::Language;

use flags::{LoadArgs, RunArgs, What};

/// Exit codes of `weir load`. If Artillery has a code for the same end, weir uses that code.
mod exit {
    /// The script cannot be run, a check failed, or not one request to a URL was answered.
    pub const FAILED: u8 = 1;
    /// The command line is invalid.
    pub const USAGE: u8 = 2;
    /// The load generator was the limit, and the user passed `--fail-if-limited`.
    pub const LIMITED: u8 = 3;
    /// A worker could not run.
    pub const WORKER: u8 = 11;
    /// An expectation failed.
    pub const EXPECT: u8 = 21;
    /// Ended by SIGINT.
    pub const INTERRUPTED: u8 = 130;
}

/// Runs `weir load`.
pub fn main(args: LoadArgs) -> ExitCode {
    let code = match args.what {
        Some(What::Run(run)) => start(&run),
        Some(What::Compare { before, after }) => report::compare(&before, &after),
        Some(What::From(args)) => from::run(&args),
        Some(What::Quick(args)) => brief::run(&args),
        Some(What::RunFargate { .. }) => usage(texts::NO_CLOUD.say(language())),
        Some(What::Report { report, output }) => report::page(&report, output),
        None => start(&args.run),
    };
    ExitCode::from(code)
}

fn start(args: &RunArgs) -> u8 {
    // Every virtual user needs a socket. If the kernel refuses to raise the limit, the old limit stays; the
    // self-check reports that.
    let _ = weir_net::process::raise_nofile();
    if args.record || args.key.is_some() {
        return usage(texts::NO_RECORD.say(language()));
    }
    let mut what = args.what.iter().chain(&args.input);
    match (what.next(), what.next()) {
        (None, _) => usage("name a script (weir load test.yml) or a URL (weir load http://127.0.0.1:8080/)"),
        (Some(url), None) if is_url(url) && args.agents.is_some() => {
            usage("--agents needs a script; write a script with this URL")
        }
        (Some(url), None) if is_url(url) => quick::run(url, args),
        (Some(place), None) if is_place(place) => {
            usage(&format!("{place} is neither a script nor a URL; did you mean http://{place}?"))
        }
        _ if args.http2 => usage("--http2 is for a URL; in a script, write http2: true under config.http"),
        (Some(url), Some(_)) if is_url(url) => usage("name only one URL; for several targets, write a script"),
        _ => script::run(args),
    }
}

/// The language that the environment asks for, for sentences that know both.
fn language() -> Language {
    let wish = ["WEIR_LANG", "LC_ALL", "LC_MESSAGES", "LANG"].iter().filter_map(|name| std::env::var(name).ok());
    match wish.into_iter().find(|wish| !wish.is_empty()) {
        Some(wish) if wish.starts_with("ko") => Language::Korean,
        _ => Language::English,
    }
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme))
}

/// True if the text is `host:port` with or without a path, and not an existing file.
fn is_place(text: &str) -> bool {
    let authority = text.split(['/', '?']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    port.is_some_and(|port| port.parse::<u16>().is_ok()) && !std::path::Path::new(text).exists()
}

fn usage(message: &str) -> u8 {
    eprintln!("weir load: {message}");
    exit::USAGE
}

/// Writes a file that a user asked for.
fn write(path: &std::path::Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
