//! weir: one binary, one verb at a time. Wiring and printing only; the work is in the crates.
#![forbid(unsafe_code)]

// This module is first: its macros replace the standard ones in all modules after it.
#[macro_use]
mod say;

mod adopt;
mod canary;
mod ci;
mod demo;
mod doctor;
mod edge;
mod edges;
mod figures;
mod files;
mod flags;
mod lab;
mod lang;
mod load;
mod lsp;
mod mcp;
mod purge;
mod record;
mod schema;
mod status;
mod stop;
mod swap;
mod tables;
mod texts;
mod top;
mod why;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use weir_net::process::Role;
use weir_words::Language;

use lang::Lang;

/// A front door for web services that runs your nginx.conf, shows what it does and proves what limits it.
#[derive(Parser)]
#[command(name = "weir", version, disable_help_subcommand = true)]
struct Cli {
    /// Language of the output [default: WEIR_LANG, else LC_ALL, LC_MESSAGES, LANG]
    #[arg(long, value_enum, value_name = "en|ko", hide_possible_values = true, global = true)]
    lang: Option<Lang>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve an nginx.conf; takes nginx's own flags (also when called as `nginx`)
    #[command(disable_help_flag = true)]
    Edge {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
        args: Vec<OsString>,
    },
    /// Run an Artillery script, or load one URL as wrk does; compare and show reports
    Load(Box<load::flags::LoadArgs>),
    /// Wait for runs of `weir load --agents`, and run a share of each
    Agent(load::agents::AgentArgs),
    /// Read a configuration, its host and its counters, and show the problems and the lines to change
    Doctor(Box<doctor::DoctorArgs>),
    /// Look at the nginx that runs here: what differs under weir, do both give the same answers, how to switch and back
    Adopt(Box<adopt::AdoptArgs>),
    /// Ask two servers for the same requests, and show each difference of their answers with the line that makes it
    Swap(Box<swap::SwapArgs>),
    /// Purge the caches of an edge, or of all edges that share a purge log
    Purge(purge::PurgeArgs),
    /// Record requests and answers of a running edge: show the state, switch on and off, read a recording
    Record(record::RecordArgs),
    /// Give a share of the clients of a running edge a new configuration, until statistics decide about it
    Canary(Box<canary::CanaryArgs>),
    /// Show the state of a running edge: limits beside their use, zones, upstreams, caches, errors
    Status(status::StatusArgs),
    /// Show an edge's dashboard on a terminal
    Top(top::TopArgs),
    /// Find the limit of a system that runs: watch its edge, applications and neighbours, and name the cause with evidence
    Why(why::NowArgs),
    /// Answer the questions of an agent: a server of the Model Context Protocol on standard input and output
    Mcp(Box<mcp::McpArgs>),
    /// Serve an editor: problems, fixes, meanings and names of an nginx.conf while you write it
    Lsp(lsp::LspArgs),
    /// Run a dummy application; the request sets its size, delay, status, failure
    Origin(demo::OriginArgs),
    /// Compare configurations by experiment, and report only the conclusions that the data supports
    Lab(Box<lab::LabArgs>),
    /// Check and compare revisions in a pipeline: verdicts as exit codes, Markdown, JUnit, SARIF and JSON
    Ci(Box<ci::CiArgs>),
    /// Start origin and edge on loopback, run a short load, print addresses to open
    Demo(demo::DemoArgs),
    /// Print the JSON Schema of an output of weir
    Schema(schema::SchemaArgs),
    /// Print the help of a command, as --help does
    Help {
        /// The command, as in `weir help lab ab`
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Print the version
    Version,
    /// Print the commands and flags as JSON
    #[command(hide = true)]
    Tables,
}

/// Each exchange allocates and frees a few kilobytes, more than glibc's fast path holds. docs/why/dependencies.md has
/// the measurement against glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    weir_doctor::weirs::give(&weir_edge::family::ALL.known, weir_edge::load::refused);
    let args: Vec<OsString> = std::env::args_os().collect();
    match Role::find() {
        Role::Own => {}
        Role::Resolver => return ExitCode::SUCCESS,
        // A shell ends with this code if it cannot start a program.
        Role::Program => return ExitCode::from(127),
        Role::Server(channel) => return edge::serve_for(channel, served(&args)),
    }
    let name = args.first().cloned().unwrap_or_default();
    // Called as `nginx`, weir behaves as nginx: service files, scripts and test suites need no change.
    if Path::new(&name).file_name().is_some_and(|name| name == "nginx") {
        return say::ended(edge::main(args.into_iter().skip(1).collect(), true));
    }
    say::ended(verb(args))
}

/// Runs the verb of a command line.
fn verb(args: Vec<OsString>) -> ExitCode {
    let (language, args) = lang::taken(args, |name| std::env::var(name).ok());
    match parse(asked(args), language).verb {
        Some(Verb::Edge { args }) => edge::main(args, false),
        Some(Verb::Load(args)) => load::main(*args, language),
        Some(Verb::Agent(args)) => load::agents::main(&args, language),
        Some(Verb::Doctor(args)) => doctor::main(&args, language),
        Some(Verb::Adopt(args)) => adopt::main(&args, language),
        Some(Verb::Swap(args)) => swap::main(&args, language),
        Some(Verb::Purge(args)) => purge::main(&args, language),
        Some(Verb::Record(args)) => record::main(&args, language),
        Some(Verb::Canary(args)) => canary::main(*args, language),
        Some(Verb::Status(args)) => status::main(&args, language),
        Some(Verb::Top(args)) => top::main(&args, language),
        Some(Verb::Why(args)) => why::main(&args, language),
        Some(Verb::Mcp(args)) => mcp::main(&args, language, &verb),
        Some(Verb::Lsp(args)) => lsp::main(&args, language),
        Some(Verb::Origin(args)) => demo::origin(&args, language),
        Some(Verb::Lab(args)) => lab::main(*args, language),
        Some(Verb::Ci(args)) => ci::main(&args, language),
        Some(Verb::Schema(args)) => schema::main(&args, language),
        Some(Verb::Demo(args)) => demo::demo(&args, language),
        Some(Verb::Tables) => {
            println!("{}", tables::of(&Cli::command(), language));
            ExitCode::SUCCESS
        }
        // `asked` turned these words into flags; only `weir version WORD` and the like come here, and clap refused them.
        Some(Verb::Help { .. } | Verb::Version) => ExitCode::FAILURE,
        None => demo::demo(&demo::DemoArgs::default(), language),
    }
}

/// The arguments of nginx in those of a keeper: after the verb, or all if the keeper was called as `nginx`, which the title
/// of the process says.
fn served(args: &[OsString]) -> &[OsString] {
    let is_nginx = args.first().is_some_and(|title| title.to_string_lossy().starts_with("nginx"));
    let verb = if is_nginx { None } else { args.iter().position(|word| word == "edge") };
    args.get(verb.unwrap_or(0) + 1..).unwrap_or_default()
}

/// `weir help lab ab` as `weir lab ab --help`, and `weir version` as `weir --version`.
fn asked(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_plain = |args: &[OsString]| args.iter().all(|word| !word.to_string_lossy().starts_with('-'));
    let flag = match args.get(1).and_then(|verb| verb.to_str()) {
        Some("help") if is_plain(&args) => "--help",
        Some("version") if args.len() == 2 => "--version",
        _ => return args,
    };
    args.remove(1);
    args.push(flag.into());
    args
}

/// Parses the command line. For an unknown flag, removes clap's tip to pass it as a value after `--`.
fn parse(args: Vec<OsString>, language: Language) -> Cli {
    let command = match language {
        Language::English => Cli::command(),
        Language::Korean => lang::help::korean(Cli::command()),
    };
    let parsed = command.try_get_matches_from(args).and_then(|found| Cli::from_arg_matches(&found));
    parsed.unwrap_or_else(|mut error| {
        let is_unknown = error.kind() == ErrorKind::UnknownArgument;
        if is_unknown && let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
            let tips: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().contains("as a value")).collect();
            if !tips.is_empty() {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
            }
        }
        if language == Language::Korean
            && let Some(text) = lang::wrong::korean(&error)
        {
            eprint!("{text}");
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_every_verb_have_their_types() {
        for line in [
            "weir load u",
            "weir agent redis://h",
            "weir doctor",
            "weir adopt",
            "weir swap a b",
            "weir purge u --all",
            "weir record status",
            "weir record start r --for 10m --share 1%",
            "weir record stop",
            "weir record show r --json",
            "weir record check r",
            "weir canary new.conf --share 1%,10% --key cookie:sid --wait",
            "weir canary --split app=app_next --share 10%",
            "weir canary share 25% -c e.conf",
            "weir status",
            "weir top",
            "weir why n.conf --edge 4711 --for 5s --inside",
            "weir mcp --dir . --experiments",
            "weir mcp run -- lab why n.conf --rate 5",
            "weir lsp",
            "weir origin",
            "weir demo",
            "weir lab ab a b --pairs 8",
            "weir lab capacity a",
            "weir lab why a",
            "weir lab tune a",
            "weir lab run x",
            "weir lab list",
            "weir ci ab --before HEAD~1 --conf nginx.conf --fail-on worse,undecided",
            "weir ci check --conf a --conf b --fail-on none",
            "weir schema",
            "weir schema doctor",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_server_has_its_keepers_arguments() {
        for (line, expect) in [
            (&["weir: worker process", "edge", "-c", "edge"][..], &["-c", "edge"][..]),
            (&["weir: worker process", "--lang", "ko", "edge"], &[]),
            (&["nginx: worker process", "-c", "edge"], &["-c", "edge"]),
        ] {
            let args: Vec<OsString> = line.iter().map(OsString::from).collect();
            assert_eq!(served(&args), expect);
        }
    }

    #[test]
    fn help_and_version_may_be_words() {
        for (line, expect) in [
            ("weir help", "weir --help"),
            ("weir help lab ab", "weir lab ab --help"),
            ("weir help edge", "weir edge --help"),
            ("weir help --help", "weir help --help"),
            ("weir version", "weir --version"),
            ("weir lab help", "weir lab help"),
        ] {
            let args = asked(line.split(' ').map(OsString::from).collect());
            let said: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(said.join(" "), expect);
        }
    }
}
