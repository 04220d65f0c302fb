//! `weir adopt`: looks at the nginx of this machine. Flags and exit codes; the work is in `weir_adopt`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::Args;
use weir_adopt::{Wish, elsewhere, page};
use weir_swap::run::SwapAsked;
use weir_words::{Language, Said, say};

use crate::files::Disk;
use crate::lang::wrong::within;
use crate::{stop, texts};

const AFTER_HELP: &str = "\
weir adopt finds the nginx that runs here, reads its configuration and shows on one page what differs under weir and
what weir refuses. Then it runs weir beside nginx on other loopback ports, asks both for URLs from the access logs, and
compares the answers. It changes nothing and it never switches: it prints the commands. Requests are GET and HEAD; they
reach nginx, its logs (as weir-adopt) and the origins. Run it as root: logs and keys are root's.

An nginx in a container is looked at from inside: run weir adopt on the machine, as root, with --pid of its master.

Exit codes: 0 ready; 1 weir refuses something, or an answer differs; 2 wrong usage, or no nginx found; 130 interrupted.";

/// Most URLs of one run.
const REQUESTS_MAX: u64 = 10_000;
/// Highest rate, requests a second.
const RATE_MAX: u64 = 1_000;

/// `weir adopt`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct AdoptArgs {
    /// The master process, if several nginx run here
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// The nginx program [default: that of the running process, or the installed one]
    #[arg(long, value_name = "PATH")]
    nginx: Option<PathBuf>,
    /// The configuration [default: the one that nginx reads]
    #[arg(short = 'c', long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// An access log with URLs, instead of those of the configuration; may be repeated
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// A recording (weir record) whose requests are asked, instead of URLs of logs; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    traffic: Vec<PathBuf>,
    /// Most URLs to ask for; each goes to nginx twice and to weir once or twice
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = within(1..=REQUESTS_MAX))]
    urls: u64,
    /// Requests a second, to nginx and weir together
    #[arg(long, value_name = "R", default_value_t = 20, value_parser = within(1..=RATE_MAX))]
    rate: u64,
    /// Do not ask for URLs whose path begins so; may be repeated
    #[arg(long, value_name = "PREFIX")]
    skip: Vec<String>,
    /// Ask also for URLs with a word that announces an action, such as logout or delete
    #[arg(long)]
    ask_all: bool,
    /// Read only: start nothing and send nothing
    #[arg(long)]
    no_compare: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The words of the command line without the verb and the process.
fn own_words() -> Vec<OsString> {
    let (mut words, mut is_verb_gone) = (Vec::new(), false);
    let mut all = std::env::args_os().skip(1);
    while let Some(word) = all.next() {
        match word.to_str() {
            Some("adopt") if !is_verb_gone => is_verb_gone = true,
            Some("--pid") => drop(all.next()),
            Some(text) if text.starts_with("--pid=") => {}
            _ => words.push(word),
        }
    }
    words
}

/// Runs the verb.
pub fn main(args: &AdoptArgs, language: Language) -> ExitCode {
    let result = run(args, language);
    ExitCode::from(result.unwrap_or_else(|message| {
        eprintln!("weir adopt: {message}");
        2
    }))
}

fn run(args: &AdoptArgs, language: Language) -> Result<u8, String> {
    let told = |said: Said| said.say(language).to_owned();
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    let wish = Wish {
        pid: args.pid,
        nginx: args.nginx.as_ref().map(absolute).transpose()?,
        conf: args.conf.as_ref().map(absolute).transpose()?,
        logs: args.log.clone(),
        recordings: args.traffic.clone(),
        requests: usize::try_from(args.urls).unwrap_or(usize::MAX),
        rate: args.rate as f64,
        skip: args.skip.clone(),
        wants_actions: args.ask_all,
        compares: !args.no_compare,
    };
    if let Some(pid) = weir_adopt::container(&wish).map_err(told)? {
        return elsewhere::look(pid, &own_words()).map_err(told);
    }
    let weir = elsewhere::own_command().map_err(|error| told(say!(texts::OWN_PATH, error.to_string())))?;
    let stop = stop::on_signal().map_err(told)?;
    let tell = |said: Said| eprintln!("{}", said.say(language));
    let asked = SwapAsked { weir: &weir, files: &Disk, stop: &stop, tell: &tell };
    let report = weir_adopt::run(&wish, &asked).map_err(told)?;
    match args.json {
        true => println!("{:#}", page::json(&report)),
        false => print!("{}", page::text(&report, language)),
    }
    Ok(match stop.load(Ordering::Relaxed) {
        true => stop::INTERRUPTED,
        false => u8::from(!report.is_ready()),
    })
}
