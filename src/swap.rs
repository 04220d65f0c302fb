//! `weir swap`: the same requests for two servers. Flags, files and exit codes; the work is in `weir_swap`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use weir_swap::ask;
use weir_swap::report::{self, SwapReport};
use weir_swap::run::{SideWish, SwapAsked, SwapWish};
use weir_swap::side::child;
use weir_swap::state::ApplicationState;
use weir_swap::traffic::logs::LogWish;
use weir_words::{Language, Said, say};

use crate::files::Disk;
use crate::lang::wrong::within;
use crate::load::from;
use crate::{stop, texts};

const AFTER_HELP: &str = "\
Each request is answered by A, by A again and by B. A difference between A and A is noise. weir reports the other differences.
A and B are files of nginx or weir, which weir swap starts on loopback ports of their own, or URLs of servers that run.
It changes nothing: access logs, caches and temporary files of the servers that it starts are in a directory of their
own, which goes with them. The origins get each request three times or more.

GET, HEAD and OPTIONS are asked; the report counts the others. Without --traffic, the requests are made of A's file:
each location, and variants such as HEAD, ranges and conditions.

Exit codes: 0 no difference; 1 differences; 2 wrong usage or bad input; 3 undecided, because nothing could be compared;
130 interrupted.";

/// Most requests of one run.
const REQUESTS_MAX: u64 = 1_000_000;
/// Highest rate, requests a second.
const RATE_MAX: u64 = 100_000;

/// `weir swap`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct SwapArgs {
    /// The configuration that serves today, or the URL of its server
    #[arg(value_name = "A", required_unless_present = "beside")]
    a: Option<String>,
    /// The configuration, or the URL of the server, that shall take its place
    #[arg(value_name = "B", required_unless_present = "beside")]
    b: Option<String>,
    /// The nginx or weir that runs A [default: this weir]
    #[arg(long, value_name = "PATH")]
    binary_a: Option<PathBuf>,
    /// The nginx or weir that runs B [default: this weir]
    #[arg(long, value_name = "PATH")]
    binary_b: Option<PathBuf>,
    /// The directory of relative names in both files, as nginx's -p [default: that of the nginx that runs one of them]
    #[arg(short = 'p', long, value_name = "DIR")]
    prefix: Option<String>,
    /// A recording or an access log with the requests, or - for stdin; may be repeated
    #[arg(long, value_name = "FILE")]
    traffic: Vec<PathBuf>,
    /// The log_format of the access logs: a name or the text itself [default: weir finds out]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The nginx.conf that has the log_format
    #[arg(long, value_name = "FILE", requires = "format")]
    conf: Option<PathBuf>,
    /// Most requests; of more, all requests of some clients
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = within(1..=REQUESTS_MAX))]
    requests: u64,
    /// Requests a second, to A and B together [default: 200, or 20 if one of them is a URL]
    #[arg(long, value_name = "R", value_parser = within(1..=RATE_MAX))]
    rate: Option<u64>,
    /// Wait so long for an answer; after two without an end, the others of their route are left out
    #[arg(long, value_name = "S", default_value_t = ask::TIMEOUT.as_secs() as u16, value_parser = within::<u16>(1..=600))]
    timeout: u16,
    /// Ask also for URLs with a word that announces an action, such as logout or delete
    #[arg(long)]
    ask_all: bool,
    /// Ask also with methods that change something
    #[arg(long, requires = "snapshot", requires = "restore")]
    all_methods: bool,
    /// The command that keeps the state of the application before A is asked
    #[arg(long, value_name = "CMD", requires = "all_methods")]
    snapshot: Option<String>,
    /// The command that brings this state back, after A, after A again and after B
    #[arg(long, value_name = "CMD", requires = "all_methods")]
    restore: Option<String>,
    /// Send requests also to addresses of other machines
    #[arg(long)]
    remote: bool,
    /// Do not search for the lines that make the differences
    #[arg(long)]
    no_cause: bool,
    /// Chooses which A is asked first, and the clients if there are too many requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the report as JSON; - is stdout
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Write the report as a page
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
    /// Serve the configuration in this directory until standard input closes
    #[arg(long, value_name = "DIR", hide = true, exclusive = true)]
    beside: Option<PathBuf>,
}

/// Runs the verb.
pub fn main(args: &SwapArgs, language: Language) -> ExitCode {
    let result = match &args.beside {
        Some(room) => child::serve(room).map(|()| 0).map_err(Said::from),
        None => run(args, language),
    };
    ExitCode::from(result.unwrap_or_else(|message| {
        eprintln!("weir swap: {}", message.say(language));
        2
    }))
}

fn run(args: &SwapArgs, language: Language) -> Result<u8, Said> {
    let wish = wish(args)?;
    let weir = std::env::current_exe().map_err(|error| say!(texts::OWN_PATH, error.to_string()))?;
    let stop = stop::on_signal()?;
    let tell = |said: Said| eprintln!("{}", said.say(language));
    let asked = SwapAsked { weir: &[weir.into()], files: &Disk, stop: &stop, tell: &tell };
    let report = weir_swap::run::run(&wish, &asked)?;
    give(args, &report, language)?;
    Ok(if report.is_stopped { stop::INTERRUPTED } else { report.exit_code() })
}

fn wish(args: &SwapArgs) -> Result<SwapWish, Said> {
    let word = |word: &Option<String>| word.clone().unwrap_or_default();
    let format = args.format.as_ref().map(|text| from::format(text, args.conf.as_deref())).transpose()?;
    let state = args.snapshot.clone().zip(args.restore.clone());
    Ok(SwapWish {
        sides: [
            SideWish::read(&word(&args.a), args.binary_a.clone()),
            SideWish::read(&word(&args.b), args.binary_b.clone()),
        ],
        prefix: args.prefix.as_ref().map(|prefix| {
            std::path::absolute(prefix).map_or_else(|_| prefix.clone(), |path| path.display().to_string())
        }),
        traffic: args.traffic.clone(),
        logs: LogWish { format, wants_actions: args.ask_all, wants_all_methods: args.all_methods },
        requests: usize::try_from(args.requests).unwrap_or(usize::MAX),
        rate: args.rate.map(|rate| rate as f64),
        timeout: Duration::from_secs(u64::from(args.timeout)),
        state: state.map(|(snapshot, restore)| ApplicationState { snapshot, restore }),
        is_remote_allowed: args.remote,
        finds_causes: !args.no_cause,
        seed: args.seed,
    })
}

/// Writes the report in the forms that the user wants.
fn give(args: &SwapArgs, report: &SwapReport, language: Language) -> Result<(), Said> {
    let write = |path: &PathBuf, text: String| {
        std::fs::write(path, text).map_err(|error| say!(texts::OF_FILE, path.display().to_string(), error.to_string()))
    };
    if let Some(path) = &args.html {
        write(path, report::html(report, language))?;
    }
    let json = || format!("{:#}\n", report::json(report));
    match &args.json {
        Some(path) if path.as_os_str() == "-" => {
            print!("{}", json());
            return Ok(());
        }
        Some(path) => write(path, json())?,
        None => {}
    }
    print!("{}", report::text(report, language));
    Ok(())
}
