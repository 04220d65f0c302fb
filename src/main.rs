//! weir: one binary, one verb at a time. Wiring and printing only; the work is in the crates.
#![forbid(unsafe_code)]

// First: its macros stand in place of the standard ones in all that follows.
#[macro_use]
mod say;

mod demo;
mod doctor;
mod edge;
mod files;
mod flags;
mod lab;
mod load;
mod purge;
mod status;
mod top;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

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
    /// Wait for runs of `weir load --agents`, and serve a share of each
    Agent(load::agents::AgentArgs),
    /// Say what a configuration, its host and its counters already tell, and the one line to change
    Doctor(Box<doctor::DoctorArgs>),
    /// Purge the caches of an edge, or of all edges that share a purge log
    Purge(purge::PurgeArgs),
    /// Say what a running edge says of itself: limits beside their use, zones, upstreams, caches, errors
    Status(status::StatusArgs),
    /// Show what an edge's dashboard shows, on a terminal
    Top(top::TopArgs),
    /// Answer as the request asks: size, delay, status, failure
    Origin(demo::OriginArgs),
    /// Compare configurations by experiment, and say what may be said
    Lab(Box<lab::LabArgs>),
    /// Start origin and edge on loopback, load them shortly, print what to look at
    Demo(demo::DemoArgs),
}

/// Exchanges take and give back a few kilobytes each, more than glibc's fast path holds.
/// Measured against it in docs/why/dependencies.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    // Called as `nginx`, we are nginx: service files, scripts and test suites need not know.
    if Path::new(&name).file_name().is_some_and(|name| name == "nginx") {
        return say::ended(edge::main(args.collect(), true));
    }
    let code = match parse().verb {
        Some(Verb::Edge { args }) => edge::main(args, false),
        Some(Verb::Load(args)) => load::main(*args),
        Some(Verb::Agent(args)) => load::agents::main(&args),
        Some(Verb::Doctor(args)) => doctor::main(&args),
        Some(Verb::Purge(args)) => purge::main(&args),
        Some(Verb::Status(args)) => status::main(&args),
        Some(Verb::Top(args)) => top::main(&args),
        Some(Verb::Origin(args)) => demo::origin(&args),
        Some(Verb::Lab(args)) => lab::main(*args),
        Some(Verb::Demo(args)) => demo::demo(&args),
        None => demo::demo(&demo::DemoArgs::default()),
    };
    say::ended(code)
}

/// The command line. Of a flag that is none, clap's tip is to write it behind `--`, as a value: nobody means that.
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
