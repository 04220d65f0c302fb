//! `weir mcp`: a server of the Model Context Protocol. Flags and exit codes; the work is in `weir_mcp`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use weir_mcp::settings::{DIRS_MAX, TARGETS_MAX, authority};
use weir_mcp::{ServerSettings, call, tools};
use weir_words::{Language, Said, say};

use crate::lab::flags::time;
use crate::texts;

const AFTER_HELP: &str = "\
An agent starts this command and speaks JSON over its standard input and output. Its tools: check, doctor, explain, diff,
load_check, logs_to_script, status; with --experiments why, ab and capacity; with --running why for an edge that runs.

Without flags it reads files below the current directory, and starts and sends nothing. It never writes a file of yours. No
tool takes a command line, a flag or a host: only what these flags name is started or reached. Text of files, logs and
servers is marked as data in each answer.

  {\"mcpServers\": {\"weir\": {\"command\": \"weir\", \"args\": [\"mcp\", \"--dir\", \"/etc/nginx\"]}}}

Exit codes: 0 the client closed the input, 2 the command line is invalid.";

/// `weir mcp`.
#[derive(Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    #[command(subcommand)]
    what: Option<McpCommand>,
    /// A directory whose files the tools may read; may be repeated [default: the current directory]
    #[arg(long = "dir", value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// A host beside this machine that `status` and scripts may name, as HOST:PORT; may be repeated
    #[arg(long = "target", value_name = "HOST:PORT")]
    targets: Vec<String>,
    /// Allow experiments: the lab may start the configurations that tools name, in its namespaces or on loopback
    #[arg(long)]
    experiments: bool,
    /// Allow `why` to watch the edges that run on this machine, and to read their configurations and logs
    #[arg(long)]
    running: bool,
    /// The file whose first line is the token of weir's dashboard
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// Print the tools with the schemas of their arguments and answers, as JSON
    #[arg(long)]
    schemas: bool,

    /// The application: a shell command that replaces `weir origin` at the addresses in the configuration
    #[arg(long, value_name = "CMD", requires = "experiments", help_heading = "Experiments")]
    origin: Option<String>,
    /// The program that serves the configurations: weir, or the path of an nginx [default: weir]
    #[arg(long, value_name = "weir|PATH", requires = "experiments", help_heading = "Experiments")]
    edge: Option<String>,
    /// The port that gets the load, if a configuration listens on several
    #[arg(long, value_name = "PORT", requires = "experiments", help_heading = "Experiments")]
    port: Option<u16>,
    /// CPUs that the edge may use up; 0.5 is half a CPU (needs root)
    #[arg(long, value_name = "CPUS", requires = "experiments", help_heading = "Experiments")]
    edge_quota: Option<f64>,
    /// A program that `why` queries under load, as redis=127.0.0.1:6379; may be repeated
    #[arg(long = "probe", value_name = "KIND=WHERE", requires = "experiments", help_heading = "Experiments")]
    probes: Vec<String>,
    /// The size of an application's pool, by its environment variable; may be repeated
    #[arg(
        long = "pool",
        value_name = "[PROCESS:]VARIABLE=SIZE",
        requires = "experiments",
        help_heading = "Experiments"
    )]
    pools: Vec<String>,
    /// Start plain processes, even as root
    #[arg(long, requires = "experiments", help_heading = "Experiments")]
    plain: bool,
    /// Use blocks even if other programs used this machine
    #[arg(long, requires = "experiments", help_heading = "Experiments")]
    noisy: bool,
    /// The longest time of one experiment
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = time, help_heading = "Experiments")]
    longest: Duration,
    /// Keep the runs of experiments in this directory [default: they end with the server]
    #[arg(long, value_name = "DIR", requires = "experiments", help_heading = "Experiments")]
    store: Option<PathBuf>,
    /// A further word of `weir lab why`, for a test
    #[arg(long = "why-word", value_name = "WORD", allow_hyphen_values = true, requires = "experiments", hide = true)]
    why_words: Vec<String>,
}

/// The commands that the server starts itself.
#[derive(Subcommand)]
enum McpCommand {
    /// Do the part of a call that reads files; the call comes on standard input
    #[command(hide = true)]
    Call,
    /// Run a command until it ends or standard input closes
    #[command(hide = true)]
    Run {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, num_args = 1..)]
        words: Vec<OsString>,
    },
}

/// Runs the verb. `verb` runs another command of weir in this process.
pub fn main(args: &McpArgs, language: Language, verb: &dyn Fn(Vec<OsString>) -> ExitCode) -> ExitCode {
    let result = match &args.what {
        Some(McpCommand::Call) => return ExitCode::from(call::serve()),
        Some(McpCommand::Run { words }) => {
            let program = std::env::args_os().next().unwrap_or_default();
            let ends = call::end_with_parent().map_err(|error| say!(texts::SIGNALS, error.to_string()));
            ends.map(|()| verb([program].into_iter().chain(words.iter().cloned()).collect()))
        }
        None if args.schemas => {
            print!("{}", tools::page());
            return ExitCode::SUCCESS;
        }
        None => serve(args, language).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|message| {
        eprintln!("weir mcp: {}", message.say(language));
        ExitCode::from(2)
    })
}

fn serve(args: &McpArgs, language: Language) -> Result<(), Said> {
    let settings = settings(args, language)?;
    if std::io::stdin().is_terminal() {
        eprintln!("weir mcp: {}", say!(texts::MCP_TERMINAL).say(language));
    }
    weir_mcp::serve(settings)
}

fn settings(args: &McpArgs, language: Language) -> Result<ServerSettings, Said> {
    let here = [PathBuf::from(".")];
    let dirs = if args.dirs.is_empty() { &here[..] } else { args.dirs.as_slice() };
    if dirs.len() > DIRS_MAX || args.targets.len() > TARGETS_MAX {
        return Err(say!(texts::MCP_MANY, DIRS_MAX, TARGETS_MAX));
    }
    let of = |path: &Path, error: std::io::Error| say!(texts::OF_FILE, path.display().to_string(), error.to_string());
    let dirs = dirs.iter().map(|dir| {
        let real = dir.canonicalize().map_err(|error| of(dir, error))?;
        if real.is_dir() { Ok(real) } else { Err(say!(texts::MCP_NO_DIR, dir.display().to_string())) }
    });
    let wrong = args
        .targets
        .iter()
        .find(|target| target.contains('/') || authority(target).as_deref() != Some(target.as_str()));
    if let Some(wrong) = wrong {
        return Err(say!(texts::MCP_TARGET, wrong));
    }
    let absolute = |path: &Option<PathBuf>| {
        path.as_ref().map(|path| std::path::absolute(path).map_err(|error| of(path, error))).transpose()
    };
    Ok(ServerSettings {
        program: std::env::current_exe().map_err(|error| say!(texts::SIGNALS, error.to_string()))?,
        dirs: dirs.collect::<Result<_, _>>()?,
        targets: args.targets.clone(),
        allows_experiments: args.experiments,
        watches_running: args.running,
        lab_flags: lab_flags(args),
        why_flags: why_flags(args),
        token: absolute(&args.token)?,
        store: absolute(&args.store)?,
        experiment_max: args.longest,
        language,
    })
}

/// The flags of every experiment.
fn lab_flags(args: &McpArgs) -> Vec<String> {
    let values = [
        args.origin.as_ref().map(|command| format!("--origin={command}")),
        args.edge.as_ref().map(|edge| format!("--edge={edge}")),
        args.port.map(|port| format!("--port={port}")),
        args.edge_quota.map(|quota| format!("--edge-quota={quota}")),
        args.plain.then(|| "--plain".to_owned()),
        args.noisy.then(|| "--noisy".to_owned()),
    ];
    values.into_iter().flatten().collect()
}

/// The flags of `why` alone.
fn why_flags(args: &McpArgs) -> Vec<String> {
    let probes = args.probes.iter().map(|probe| format!("--probe={probe}"));
    let pools = args.pools.iter().map(|pool| format!("--pool={pool}"));
    probes.chain(pools).chain(args.why_words.iter().cloned()).collect()
}
