//! The command line of `weir lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use weir_lab::store;

const EXAMPLES: &str = "\
Examples:
  weir lab ab before.conf after.conf --rate 500 /1k         at a rate, by the 95th percentile
  weir lab ab before.conf after.conf --connections 32 /1k   as fast as 32 connections go, by throughput
  weir lab ab before.conf after.conf --load checkout.yml    an Artillery script
  weir lab ab --edge /usr/sbin/nginx before.conf after.conf --rate 500 /   of a real nginx
  weir lab ab --aa nginx.conf --rate 500 /                  the noise of this machine: what can be seen at all
  weir lab report last --html report.html

Everything a block needs is started for it and ends with it: the edge, an origin (weir origin, or --origin CMD) at the
addresses that the configuration names, and the load. As root in network namespaces of its own; else as plain processes,
with everything on loopback. Load goes to nobody else.
Exit codes: 0 done, 1 worse or a trade-off, 2 it could not be done, 3 no verdict, 130 interrupted.";

/// `weir lab`.
#[derive(Args)]
pub struct LabArgs {
    #[command(subcommand)]
    pub what: What,
}

/// What a lab does.
#[derive(Subcommand)]
pub enum What {
    /// Before and after: two configurations in alternating blocks, and what may be said of them
    Ab(Box<AbArgs>),
    /// The largest rate at which a latency and the errors stay within limits
    Capacity(Box<CapacityArgs>),
    /// What limits: a bottleneck with its evidence, and with --prove by counter-experiment
    Why(Box<WhyArgs>),
    /// One recommended knob after another, each compared; what is shown to help becomes a diff
    Tune(Box<TuneArgs>),
    /// Write what a run of `tune` found to help
    Apply {
        /// Its id, the beginning of one, or `last`
        run: String,
        /// Where runs are kept
        #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
        store: PathBuf,
    },
    /// Take back what `apply` wrote
    Undo {
        /// Its id, the beginning of one, or `last`
        run: String,
        /// Where runs are kept
        #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
        store: PathBuf,
    },
    /// Experiments as data: labs/NAME/lab.yml, run by nginx and by weir, and what is expected of them
    Run(Box<RunArgs>),
    /// List the experiments
    List {
        /// Their folder
        #[arg(long, value_name = "DIR", default_value = LABS)]
        labs: PathBuf,
    },
    /// Show a stored run
    Report {
        /// Its id, the beginning of one, its file, or `last`
        run: String,
        /// Where runs are kept
        #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
        store: PathBuf,
        /// Write it as a page to read
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// List stored runs
    Runs {
        /// Where runs are kept
        #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
        store: PathBuf,
    },
    /// Print the vocabulary of verdicts
    Words,
    /// Keep one block; told what to do on standard input
    #[command(hide = true)]
    Block,
}

/// What a stack is made of, and how it is loaded.
#[derive(Args, Clone)]
pub struct StackArgs {
    /// What serves the configurations: weir, or an nginx by its path
    #[arg(long, value_name = "weir|PATH", default_value = "weir", help_heading = "Stack")]
    pub edge: String,
    /// The application: a shell command, instead of `weir origin` at the addresses that the configuration names
    #[arg(long, value_name = "CMD", help_heading = "Stack")]
    pub origin: Option<String>,
    /// CPUs of the edge, as 0-1,4
    #[arg(long, value_name = "LIST", value_parser = cpus, help_heading = "Stack")]
    pub edge_cpus: Option<CpuList>,
    /// CPUs of the load
    #[arg(long, value_name = "LIST", value_parser = cpus, help_heading = "Stack")]
    pub client_cpus: Option<CpuList>,
    /// CPUs of the origins
    #[arg(long, value_name = "LIST", value_parser = cpus, help_heading = "Stack")]
    pub origin_cpus: Option<CpuList>,
    /// How much CPU the edge may use up, 0.5 being half of one (a control group; needs root)
    #[arg(long, value_name = "CPUS", help_heading = "Stack")]
    pub edge_quota: Option<f64>,
    /// Plain processes, even as root
    #[arg(long, help_heading = "Stack")]
    pub plain: bool,
    /// The port that is loaded, where the configuration listens on several
    #[arg(long, value_name = "PORT", help_heading = "Stack")]
    pub port: Option<u16>,

    /// Use blocks although others worked on this machine or the load was late; the report says so
    #[arg(long, help_heading = "Design")]
    pub noisy: bool,
    /// What chance begins with
    #[arg(long, value_name = "N", help_heading = "Design")]
    pub seed: Option<u64>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = store::DEFAULT, help_heading = "Output")]
    pub store: PathBuf,
    /// Write the report as a page to read
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
}

/// Where experiments are, unless said.
pub const LABS: &str = "labs";

/// `weir lab run`.
#[derive(Args)]
pub struct RunArgs {
    /// Experiments: names of folders in --labs, or paths of folders
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// All there are; those that lack something that is not installed are named and left out
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// With --all: only those that CI runs, in about a minute and a half
    #[arg(long, requires = "all")]
    pub ci: bool,
    /// Only this edge; else each experiment's own, nginx and weir
    #[arg(long, value_name = "nginx|weir", value_parser = ["nginx", "weir"])]
    pub edge: Option<String>,
    /// The nginx
    #[arg(long, value_name = "PATH", default_value = "/usr/sbin/nginx")]
    pub nginx: PathBuf,
    /// Use compared blocks although others worked on this machine; the report says so
    #[arg(long)]
    pub noisy: bool,
    /// What chance begins with
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Their folder
    #[arg(long, value_name = "DIR", default_value = LABS)]
    pub labs: PathBuf,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
    pub store: PathBuf,
    /// Write the last report as a page to read
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `weir lab ab`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct AbArgs {
    /// BEFORE and AFTER, two configurations (one with --aa); then the path that is loaded [default: /]
    #[arg(value_name = "BEFORE AFTER [PATH]", required = true, num_args = 1..=3)]
    pub what: Vec<String>,
    /// The configuration beside itself: what this machine can tell apart
    #[arg(long)]
    pub aa: bool,
    /// What serves AFTER, if that is the one change
    #[arg(long, value_name = "weir|PATH", help_heading = "Stack")]
    pub edge_after: Option<String>,
    /// Directives that are one change, as keepalive,proxy_http_version; may be repeated
    #[arg(long, value_name = "NAMES")]
    pub together: Vec<String>,

    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub design: DesignArgs,
    #[command(flatten)]
    pub stack: StackArgs,
}

/// What is sent in a comparison.
#[derive(Args, Clone)]
pub struct LoadArgs {
    /// An Artillery script is the load
    #[arg(long = "load", value_name = "SCRIPT", conflicts_with_all = ["rate", "connections"], help_heading = "Load")]
    pub script: Option<PathBuf>,
    /// Requests a second, whatever happens (open model)
    #[arg(short = 'R', long, value_name = "N", help_heading = "Load")]
    pub rate: Option<f64>,
    /// Connections; without --rate each asks as soon as it is answered (closed loop) [default: 32]
    #[arg(short, long, value_name = "N", help_heading = "Load")]
    pub connections: Option<usize>,
    /// How long a block measures
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time, help_heading = "Load")]
    pub block: Duration,
    /// How long it warms up first, up to three times; 0 not at all
    #[arg(long, value_name = "TIME", default_value = "6s", value_parser = time, help_heading = "Load")]
    pub warmup: Duration,
    /// A script that warms up; its figures are nobody's
    #[arg(long, value_name = "SCRIPT", help_heading = "Load")]
    pub warmup_load: Option<PathBuf>,
}

/// How two configurations are compared.
#[derive(Args, Clone)]
pub struct DesignArgs {
    /// What is compared: throughput, p50, p95, p99, errors, cpu [default: throughput of a closed loop, else p95]
    #[arg(long, value_name = "NAME", help_heading = "Design")]
    pub metric: Option<String>,
    /// What is smaller matters to nobody: per cent, of errors percentage points [default: the metric's]
    #[arg(long, value_name = "PERCENT", help_heading = "Design")]
    pub threshold: Option<f64>,
    /// Exactly so many pairs and one look, instead of looks after 8, 16 and 24
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=24), help_heading = "Design")]
    pub pairs: Option<u16>,
}

/// `weir lab tune`.
#[derive(Args)]
pub struct TuneArgs {
    /// The configuration; drafts of it stand beside it while they are compared
    pub conf: PathBuf,
    /// The path that is loaded
    #[arg(default_value = "/")]
    pub path: String,
    /// A knob of your own, tried first: ADDRESS=VALUE, as http/upstream[app]/keepalive=64; may be repeated
    #[arg(long = "knob", value_name = "ADDRESS=VALUE")]
    pub knobs: Vec<String>,
    /// No knobs but those
    #[arg(long, requires = "knobs")]
    pub only_knobs: bool,
    /// What these rules of the doctor recommend, and nothing else
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Knobs tried at most
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub tries: usize,

    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub design: DesignArgs,
    #[command(flatten)]
    pub stack: StackArgs,
}

/// `weir lab capacity`.
#[derive(Args)]
pub struct CapacityArgs {
    /// The configuration
    pub conf: PathBuf,
    /// The path that is loaded
    #[arg(default_value = "/")]
    pub path: String,
    /// The limit of a quantile: p50, p95 or p99, as p95=50ms
    #[arg(long, value_name = "QUANTILE=TIME", default_value = "p95=50ms", value_parser = slo)]
    pub slo: (&'static str, Duration),
    /// Requests that may fail, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1)]
    pub errors: f64,
    /// The first rate
    #[arg(long, value_name = "N", default_value_t = 200.0)]
    pub from: f64,
    /// Connections at most
    #[arg(short, long, value_name = "N", default_value_t = 256)]
    pub connections: usize,
    /// How long each rate is measured
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub block: Duration,
    /// How long each rate warms up
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = time)]
    pub warmup: Duration,

    #[command(flatten)]
    pub stack: StackArgs,
}

/// `weir lab why`.
#[derive(Args)]
pub struct WhyArgs {
    /// The configuration
    pub conf: PathBuf,
    /// The path that is loaded
    #[arg(default_value = "/")]
    pub path: String,
    /// The limit of a quantile beyond which it counts as full: p50, p95 or p99, as p95=50ms
    #[arg(long, value_name = "QUANTILE=TIME", value_parser = slo)]
    pub slo: Option<(&'static str, Duration)>,
    /// Squeeze each suspect by a fifth, in turns with blocks as they are, and say what the answers shrink with (needs root)
    #[arg(long)]
    pub prove: bool,
    /// Rounds of squeezing; fewer than 6 have no interval
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(6..=24), help_heading = "Design")]
    pub rounds: u16,
    /// What a test gives a block: members of its spec, as JSON
    #[arg(long, value_name = "FILE", hide = true)]
    pub inject: Option<PathBuf>,

    /// An Artillery script is the load
    #[arg(long = "load", value_name = "SCRIPT", conflicts_with_all = ["rate", "connections"], help_heading = "Load")]
    pub script: Option<PathBuf>,
    /// Requests a second, whatever happens (open model)
    #[arg(short = 'R', long, value_name = "N", help_heading = "Load")]
    pub rate: Option<f64>,
    /// Connections; without --rate each asks as soon as it is answered (closed loop) [default: 32]
    #[arg(short, long, value_name = "N", help_heading = "Load")]
    pub connections: Option<usize>,
    /// How long a block measures
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = time, help_heading = "Load")]
    pub block: Duration,
    /// How long it warms up first; 0 not at all
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time, help_heading = "Load")]
    pub warmup: Duration,

    #[command(flatten)]
    pub stack: StackArgs,
}

fn slo(text: &str) -> Result<(&'static str, Duration), String> {
    let wrong = || "as p95=50ms; p50, p95 or p99".to_owned();
    let (name, limit) = text.split_once('=').ok_or_else(wrong)?;
    let quantile = ["p50", "p95", "p99"].into_iter().find(|known| *known == name).ok_or_else(wrong)?;
    Ok((quantile, time(limit)?))
}

/// CPUs by number.
pub type CpuList = std::sync::Arc<[usize]>;

/// More CPUs than a list may name.
const CPUS_MAX: usize = 1024;

fn cpus(text: &str) -> Result<CpuList, String> {
    let wrong = || "CPUs by number, as 0-1,4".to_owned();
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().map_err(|_| wrong())?, last.parse::<usize>().map_err(|_| wrong())?);
        if first > last || last >= CPUS_MAX {
            return Err(wrong());
        }
        list.extend(first..=last);
    }
    Ok(list.into())
}

fn time(text: &str) -> Result<Duration, String> {
    // No phase lasts nothing; a warm-up may.
    if matches!(text, "0" | "0s" | "0ms") {
        return Ok(Duration::ZERO);
    }
    weir_load::duration::phase(&text.into()).map(|time| time.time).ok_or_else(|| "a time, as 20s or 5m".to_owned())
}
