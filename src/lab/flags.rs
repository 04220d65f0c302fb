//! The command line of `weir lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use weir_lab::store;

use crate::doctor::Lang;

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
    /// Language of what is said [default: en; of a stored run of `why`, the one that it was made in]
    #[arg(long, value_enum, global = true)]
    pub lang: Option<Lang>,
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
    /// Compare runs that were made elsewhere: reports of `weir load` or Artillery, at least six of each
    Compare(CompareArgs),
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
    /// Pass frames between the two interfaces of this network namespace, late; a block starts it where a link has a delay
    #[command(hide = true)]
    Wan {
        /// How late towards the host, µs
        there: u64,
        /// How late from it, µs
        back: u64,
    },
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
    /// None is begun after this time; those that are not are named. Each block of each has a limit of its own
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub within: Option<Duration>,
    /// Only this variant; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub variant: Vec<String>,
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
    /// Write each report as a page to read: NAME.html in a folder, or a file, which then has the last
    #[arg(long, value_name = "DIR|FILE")]
    pub html: Option<PathBuf>,
    /// Write a page of tables: what was expected beside what each edge showed
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
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
    /// Two or three changes at once, told apart: all their combinations, main effects and interactions; --pairs are rounds
    #[arg(long, conflicts_with_all = ["aa", "edge_after"])]
    pub factorial: bool,
    /// Reload the edge between the blocks of a quartet instead of starting it anew: where what a cache holds is the subject
    #[arg(long, conflicts_with_all = ["aa", "edge_after", "factorial"])]
    pub keep_warm: bool,
    /// Both at once, each with the same share of CPU, to compare what a request costs the edge and nothing else (needs root)
    #[arg(long, conflicts_with_all = ["aa", "factorial", "keep_warm"])]
    pub duet: bool,
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

/// What is sent.
#[derive(Args, Clone, Default)]
pub struct SentArgs {
    /// An Artillery script is the load
    #[arg(long = "load", value_name = "SCRIPT", conflicts_with_all = ["rate", "connections"], help_heading = "Load")]
    pub script: Option<PathBuf>,
    /// Requests a second, whatever happens (open model)
    #[arg(short = 'R', long, value_name = "N", help_heading = "Load")]
    pub rate: Option<f64>,
    /// Connections; without --rate each asks as soon as it is answered (closed loop) [default: 32]
    #[arg(short, long, value_name = "N", help_heading = "Load")]
    pub connections: Option<usize>,
    /// A field of each request, "Name: value"; may be repeated
    #[arg(short = 'H', long = "header", value_name = "FIELD", conflicts_with = "script", help_heading = "Load")]
    pub headers: Vec<String>,
}

impl SentArgs {
    /// Whether anything is said of it.
    pub fn is_said(&self) -> bool {
        self.script.is_some() || self.rate.is_some() || self.connections.is_some()
    }
}

/// What is sent in a comparison, and for how long.
#[derive(Args, Clone)]
pub struct LoadArgs {
    #[command(flatten)]
    pub sent: SentArgs,
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

/// `weir lab compare`.
#[derive(Args)]
pub struct CompareArgs {
    /// Reports before: a directory of .json files, or one
    pub before: PathBuf,
    /// Reports after
    pub after: PathBuf,
    /// What is compared: throughput, p50, p95, p99, errors
    #[arg(long, value_name = "NAME", default_value = "p95")]
    pub metric: String,
    /// What is smaller matters to nobody: per cent, of errors percentage points [default: the metric's]
    #[arg(long, value_name = "PERCENT")]
    pub threshold: Option<f64>,
    /// What chance begins with
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
    pub store: PathBuf,
    /// Write the report as a page to read
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
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
    /// The configuration, and the path that is loaded [default: /]; with --stack the path alone, if any
    #[arg(value_name = "CONF [PATH]", num_args = 0..=2)]
    pub what: Vec<String>,
    /// The stack of an experiment is loaded and watched: its folder, its hosts, processes, configuration, and its load unless
    /// another is said (needs root)
    #[arg(long = "stack", value_name = "labs/NAME", help_heading = "Stack")]
    pub lab: Option<PathBuf>,
    /// Which of its variants; the first if not said
    #[arg(long, value_name = "NAME", requires = "lab", help_heading = "Stack")]
    pub variant: Option<String>,
    /// A program that is asked while it is loaded: apache, jvm, spring, mysql, redis with its place, as
    /// redis=:password@127.0.0.1:6379; or node. Those that listen in the stack are found by themselves; may be repeated
    #[arg(long = "probe", value_name = "KIND=WHERE", value_parser = weir_lab::watch::probe::Wanted::of, help_heading = "Stack")]
    pub probes: Vec<weir_lab::watch::probe::Wanted>,
    /// Where the threads of applications and of what they ask wait: for which lock, which peer, a disk, a CPU. By programs in the
    /// kernel (root, BTF, x86-64); by /proc where it takes none, or with --inside=proc. What was used is said
    #[arg(long, value_name = "WAY", num_args = 0..=1, require_equals = true, default_missing_value = "auto", value_parser = inside, help_heading = "Stack")]
    pub inside: Option<weir_lab::watch::inside::Way>,
    /// A pool of the application that an environment variable says the size of: it is set, and --prove squeezes it; may be repeated
    #[arg(long = "pool", value_name = "[PROCESS:]VARIABLE=SIZE", value_parser = pool, help_heading = "Stack")]
    pub pools: Vec<weir_lab::why::signals::Pool>,
    /// The limit of a quantile beyond which it counts as full: p50, p95 or p99, as p95=50ms
    #[arg(long, value_name = "QUANTILE=TIME", value_parser = slo)]
    pub slo: Option<(&'static str, Duration)>,
    /// Which answers are good, by class or by status; every other answer failed, as 429 and what the edge refuses
    #[arg(long, value_name = "LIST", default_value = "2xx,3xx", value_parser = <weir_lab::why::good::Good as std::str::FromStr>::from_str)]
    pub good: weir_lab::why::good::Good,
    /// Squeeze each suspect by a fifth, in turns with blocks as they are, and give more of those that the answers shrink with
    /// (needs root)
    #[arg(long)]
    pub prove: bool,
    /// Try the recommended line in a copy of the configuration, in turns with the original, however long that takes
    #[arg(long = "try")]
    pub tries: bool,
    /// Without --try, the line is tried where that takes no longer than this; 0 never
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = time)]
    pub try_budget: Duration,
    /// Rounds of squeezing; fewer than 6 have no interval
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(6..=24), help_heading = "Design")]
    pub rounds: u16,
    /// What a test gives a block: members of its spec, as JSON
    #[arg(long, value_name = "FILE", hide = true)]
    pub inject: Option<PathBuf>,

    #[command(flatten)]
    pub sent: SentArgs,
    /// How long a block measures
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = time, help_heading = "Load")]
    pub block: Duration,
    /// How long it warms up first; 0 not at all
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time, help_heading = "Load")]
    pub warmup: Duration,

    #[command(flatten)]
    pub stack: StackArgs,
}

/// The process that an `--origin` is.
const ORIGIN: &str = "origin0";

fn pool(text: &str) -> Result<weir_lab::why::signals::Pool, String> {
    let wrong = || "as POOL_SIZE=10, or PROCESS:POOL_SIZE=10; at least 2".to_owned();
    let (name, size) = text.split_once('=').ok_or_else(wrong)?;
    let (process, variable) = name.split_once(':').unwrap_or((ORIGIN, name));
    let size = size.parse().ok().filter(|size| (2..=1_000_000).contains(size)).ok_or_else(wrong)?;
    if variable.is_empty() || !variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)) {
        return Err(wrong());
    }
    Ok(weir_lab::why::signals::Pool { process: process.to_owned(), variable: variable.to_owned(), size })
}

fn inside(text: &str) -> Result<weir_lab::watch::inside::Way, String> {
    match text {
        "auto" => Ok(weir_lab::watch::inside::Way::Auto),
        "proc" => Ok(weir_lab::watch::inside::Way::Proc),
        _ => Err("--inside alone, --inside=auto or --inside=proc".to_owned()),
    }
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
