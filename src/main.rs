//! weir: one binary, one verb at a time. Wiring and printing only; the work is in the crates.
#![forbid(unsafe_code)]

// This module is first: its macros replace the standard ones in all modules after it.
#[macro_use]
mod say;

mod adopt;
mod demo;
mod doctor;
mod edge;
mod files;
mod flags;
mod lab;
mod load;
mod purge;
mod status;
mod stop;
mod tables;
mod top;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

/// A front door for web services that runs your nginx.conf, shows what it does and proves what limits it.
#[derive(Parser)]
#[command(name = "weir", version, disable_help_subcommand = true)]
struct Cli {
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
    /// Purge the caches of an edge, or of all edges that share a purge log
    Purge(purge::PurgeArgs),
    /// Show the state of a running edge: limits beside their use, zones, upstreams, caches, errors
    Status(status::StatusArgs),
    /// Show an edge's dashboard on a terminal
    Top(top::TopArgs),
    /// Run a dummy application; the request sets its size, delay, status, failure
    Origin(demo::OriginArgs),
    /// Compare configurations by experiment, and report only the conclusions that the data supports
    Lab(Box<lab::LabArgs>),
    /// Start origin and edge on loopback, run a short load, print addresses to open
    Demo(demo::DemoArgs),
    /// Print the commands and flags as JSON
    #[command(hide = true)]
    Tables,
}

/// Each exchange allocates and frees a few kilobytes, more than glibc's fast path holds. docs/why/dependencies.md has
/// the measurement against glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    weir_doctor::weirs::give(&weir_edge::family::ALL.known);
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    // Called as `nginx`, weir behaves as nginx: service files, scripts and test suites need no change.
    if Path::new(&name).file_name().is_some_and(|name| name == "nginx") {
        return say::ended(edge::main(args.collect(), true));
    }
    let code = match parse().verb {
        Some(Verb::Edge { args }) => edge::main(args, false),
        Some(Verb::Load(args)) => load::main(*args),
        Some(Verb::Agent(args)) => load::agents::main(&args),
        Some(Verb::Doctor(args)) => doctor::main(&args),
        Some(Verb::Adopt(args)) => adopt::main(&args),
        Some(Verb::Purge(args)) => purge::main(&args),
        Some(Verb::Status(args)) => status::main(&args),
        Some(Verb::Top(args)) => top::main(&args),
        Some(Verb::Origin(args)) => demo::origin(&args),
        Some(Verb::Lab(args)) => lab::main(*args),
        Some(Verb::Demo(args)) => demo::demo(&args),
        Some(Verb::Tables) => {
            println!("{}", tables::of(&Cli::command()));
            ExitCode::SUCCESS
        }
        None => demo::demo(&demo::DemoArgs::default()),
    };
    say::ended(code)
}

/// Parses the command line. For an unknown flag, removes clap's tip to pass it as a value after `--`.
fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|mut error| {
        let is_unknown = error.kind() == ErrorKind::UnknownArgument;
        if is_unknown && let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
            let tips: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().contains("as a value")).collect();
            if !tips.is_empty() {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
            }
        }
        error.exit()
    })
}
