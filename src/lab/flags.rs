//! The command line of `weir lab`.

use std::path::PathBuf;
use std::time::Duration;
use weir_words::{Said, say};

use clap::{Args, Subcommand};
use weir_lab::wan::{DELAY_MAX, SHARE_MAX};
use weir_lab::{store, texts};

use crate::lang::wrong::within;

const EXAMPLES: &str = "\
Examples:
  weir lab ab before.conf after.conf --rate 500 /1k         at a rate; compares the 95th percentile
  weir lab ab before.conf after.conf --connections 32 /1k   as fast as 32 connections allow; compares throughput
  weir lab ab before.conf after.conf --load checkout.yml    an Artillery script
  weir lab ab --edge /usr/sbin/nginx before.conf after.conf --rate 500 /   with a real nginx
  weir lab ab nginx.conf --protocol http2 --protocol-after http3 --delay 20ms --loss 1% --rate 200 /   over a bad path
  weir lab ab --aa nginx.conf --rate 500 /                  the noise of this machine: the smallest visible difference
  weir lab report last --html report.html

For each block the lab starts the edge, an origin (weir origin, or --origin CMD) at the addresses that the configuration
names, and the load. It ends them with the block. As root it uses its own network namespaces; otherwise it starts plain
processes on loopback. The load goes only to these processes.
Exit codes: 0 done, 1 worse or a trade-off, 2 the lab could not run, 3 no verdict, 130 interrupted.";

/// `weir lab`.
#[derive(Args)]
pub struct LabArgs {
    #[command(subcommand)]
    pub what: LabCommand,
}

/// The commands of `weir lab`.
#[derive(Subcommand)]
pub enum LabCommand {
    /// Compare two configurations in alternating blocks, and report only the conclusions that the data supports
    Ab(Box<AbArgs>),
    /// Find the largest rate at which a latency and the errors stay within limits
    Capacity(Box<CapacityArgs>),
    /// Find the bottleneck and show the evidence; --prove tests it by counter-experiment
    Why(Box<WhyArgs>),
    /// Compare one recommended knob after another; the changes that help become a diff
    Tune(Box<TuneArgs>),
    /// Write the changes that a run of `tune` found to help
    Apply {
        /// Id of the run, the beginning of the id, or `last`
        run: String,
        /// Where runs are kept
        #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
        store: PathBuf,
    },
    /// Undo the changes that `apply` wrote
    Undo {
        /// Id of the run, the beginning of the id, or `last`
        run: String,
        /// Where runs are kept
        #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
        store: PathBuf,
    },
    /// Compare runs from elsewhere: reports of `weir load` or Artillery, at least six of each side
    Compare(CompareArgs),
    /// Run experiments from labs/NAME/lab.yml on nginx and weir, and compare with the expected results
    Run(Box<LabRunArgs>),
    /// List the experiments
    List {
        /// The folder of the experiments [default: ./labs, or the folder of the installation]
        #[arg(long, value_name = "DIR")]
        labs: Option<PathBuf>,
    },
    /// Show a stored run
    Report {
        /// Id of the run, the beginning of the id, its file, or `last`
        run: String,
        /// Where runs are kept
        #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
        store: PathBuf,
        /// Write it as an HTML page
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// List stored runs
    Runs {
        /// Where runs are kept
        #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
        store: PathBuf,
    },
    /// Print the vocabulary of verdicts
    Words,
    /// Keep one block; the orders come on standard input
    #[command(hide = true)]
    Block,
    /// Pass frames between this network namespace's two interfaces as a bad path does; a block starts it for a link
    #[command(hide = true)]
    Wan {
        /// The faults of the link, as JSON
        link: String,
    },
}

/// The parts of a stack, and its load.
#[derive(Args, Clone)]
pub struct StackArgs {
    /// The program that serves the configurations: weir, or the path of an nginx
    #[arg(long, value_name = "weir|PATH", default_value = "weir", help_heading = "Stack")]
    pub edge: String,
    /// The application: a shell command that replaces `weir origin` at the addresses in the configuration
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
    /// CPUs that the edge may use up; 0.5 is half a CPU (a control group; needs root)
    #[arg(long, value_name = "CPUS", help_heading = "Stack")]
    pub edge_quota: Option<f64>,
    /// Start plain processes, even as root
    #[arg(long, help_heading = "Stack")]
    pub plain: bool,
    /// The port that gets the load, if the configuration listens on several
    #[arg(long, value_name = "PORT", help_heading = "Stack")]
    pub port: Option<u16>,

    /// Use blocks even if other programs used this machine or the load was late; the report says so
    #[arg(long, help_heading = "Design")]
    pub noisy: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", help_heading = "Design")]
    pub seed: Option<u64>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = store::DEFAULT, help_heading = "Output")]
    pub store: PathBuf,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Print the run as JSON instead of the report
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// `weir lab run`.
#[derive(Args)]
pub struct LabRunArgs {
    /// Experiments: names of folders in --labs, or paths of folders
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// Run all experiments; an experiment that needs something not installed is named and left out
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// With --all: only the experiments that CI runs, in about a minute and a half
    #[arg(long, requires = "all")]
    pub ci: bool,
    /// Start no experiment after this time; those left out are named. Each block of each experiment has its own limit
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub within: Option<Duration>,
    /// Only this variant; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub variant: Vec<String>,
    /// Run only this edge [default: the experiment's edges, nginx and weir]
    #[arg(long, value_name = "nginx|weir", value_parser = ["nginx", "weir"])]
    pub edge: Option<String>,
    /// Path of the nginx
    #[arg(long, value_name = "PATH", default_value = "/usr/sbin/nginx")]
    pub nginx: PathBuf,
    /// Use compared blocks even if other programs used this machine. weir then judges no expectation that the lab marks
    /// as `timed`. The report says so
    #[arg(long)]
    pub noisy: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The folder of the experiments [default: ./labs, or the folder of the installation]
    #[arg(long, value_name = "DIR")]
    pub labs: Option<PathBuf>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
    pub store: PathBuf,
    /// Write each report as an HTML page: NAME.html in a folder; a single file keeps only the last report
    #[arg(long, value_name = "DIR|FILE")]
    pub html: Option<PathBuf>,
    /// Write a page of tables: the expected results beside the results of each edge
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
}

/// `weir lab ab`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct AbArgs {
    /// BEFORE and AFTER, two configurations (one with --aa, or if --edge-after or --protocol-after is the change); then the path that gets the load [default: /]
    #[arg(value_name = "BEFORE AFTER [PATH]", required = true, num_args = 1..=3)]
    pub what: Vec<String>,
    /// Compare the configuration with itself: shows the smallest difference that this machine can detect
    #[arg(long)]
    pub aa: bool,
    /// The program that serves AFTER, if the program is the one change
    #[arg(long, value_name = "weir|PATH", help_heading = "Stack")]
    pub edge_after: Option<String>,
    /// The protocol of the requests; http3 needs `listen … quic` [default: http1]
    #[arg(long, value_name = "http1|http2|http3", value_parser = ["http1", "http2", "http3"], help_heading = "Load")]
    pub protocol: Option<String>,
    /// The protocol of the requests to AFTER, if the protocol is the one change
    #[arg(long, value_name = "http1|http2|http3", value_parser = ["http1", "http2", "http3"], conflicts_with = "aa", help_heading = "Load")]
    pub protocol_after: Option<String>,
    /// Separate the effects of two or three changes by all their combinations; --pairs is the number of rounds
    #[arg(long, conflicts_with_all = ["aa", "edge_after", "protocol_after"])]
    pub factorial: bool,
    /// Reload the edge between the blocks of a quartet instead of restarting it, to compare with a filled cache
    #[arg(long, conflicts_with_all = ["aa", "edge_after", "protocol_after", "factorial"])]
    pub keep_warm: bool,
    /// Run both at once with the same CPU share; compares only the edge's CPU cost of a request (needs root)
    #[arg(long, conflicts_with_all = ["aa", "factorial", "keep_warm", "delay", "jitter", "loss", "reorder"])]
    pub duet: bool,
    /// Directives that count as one change, as keepalive,proxy_http_version; may be repeated
    #[arg(long, value_name = "NAMES")]
    pub together: Vec<String>,

    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub load: ComparisonLoadArgs,
    #[command(flatten)]
    pub design: DesignArgs,
    #[command(flatten)]
    pub stack: StackArgs,
}

/// The faults of the client's link, in both directions.
#[derive(Args, Clone, Default)]
pub struct LinkArgs {
    /// The time that each packet between client and edge takes, as 20ms (needs root)
    #[arg(long, value_name = "TIME", value_parser = delay, help_heading = "Link of the client")]
    pub delay: Option<Duration>,
    /// Up to this time more for each packet
    #[arg(long, value_name = "TIME", value_parser = delay, help_heading = "Link of the client")]
    pub jitter: Option<Duration>,
    /// The share of packets that are lost, by the seed of the block
    #[arg(long, value_name = "PERCENT%", value_parser = share, help_heading = "Link of the client")]
    pub loss: Option<u16>,
    /// The share of packets that are late by 5 ms, so that others overtake them
    #[arg(long, value_name = "PERCENT%", value_parser = share, help_heading = "Link of the client")]
    pub reorder: Option<u16>,
}

/// The load to send.
#[derive(Args, Clone, Default)]
pub struct SentArgs {
    /// Use an Artillery script as the load
    #[arg(long = "load", value_name = "SCRIPT", conflicts_with_all = ["rate", "connections"], help_heading = "Load")]
    pub script: Option<PathBuf>,
    /// Requests a second, sent on schedule even if answers are late (open model)
    #[arg(short = 'R', long, value_name = "N", help_heading = "Load")]
    pub rate: Option<f64>,
    /// Connections; without --rate each sends its next request after its answer (closed loop) [default: 32]
    #[arg(short, long, value_name = "N", help_heading = "Load")]
    pub connections: Option<usize>,
    /// A header field of each request, "Name: value"; may be repeated
    #[arg(short = 'H', long = "header", value_name = "FIELD", conflicts_with = "script", help_heading = "Load")]
    pub headers: Vec<String>,
}

impl SentArgs {
    /// True if the user set any of these flags.
    pub fn is_said(&self) -> bool {
        self.script.is_some() || self.rate.is_some() || self.connections.is_some()
    }
}

/// The load of a comparison, and its duration.
#[derive(Args, Clone)]
pub struct ComparisonLoadArgs {
    #[command(flatten)]
    pub sent: SentArgs,
    /// Measured time of a block
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time, help_heading = "Load")]
    pub block: Duration,
    /// Warm-up time before it, used up to three times; 0: no warm-up
    #[arg(long, value_name = "TIME", default_value = "6s", value_parser = time, help_heading = "Load")]
    pub warmup: Duration,
    /// A script that warms up; its figures are not reported
    #[arg(long, value_name = "SCRIPT", help_heading = "Load")]
    pub warmup_load: Option<PathBuf>,
}

/// How to compare two configurations.
#[derive(Args, Clone)]
pub struct DesignArgs {
    /// Metric to compare: throughput, mean, p50, p95, p99, errors, cpu, and with --origin app_cpu [default: throughput for a
    /// closed loop, else p95; mean if a block has too few requests for p95]
    #[arg(long, value_name = "NAME", help_heading = "Design")]
    pub metric: Option<String>,
    /// Smallest difference that matters: per cent; percentage points for errors [default: the metric's]
    #[arg(long, value_name = "PERCENT", help_heading = "Design")]
    pub threshold: Option<f64>,
    /// Measure exactly N pairs and test once, instead of testing after 8, 16 and 24
    #[arg(long, value_name = "N", value_parser = within::<u16>(1..=24), help_heading = "Design")]
    pub pairs: Option<u16>,
}

/// `weir lab compare`.
#[derive(Args)]
pub struct CompareArgs {
    /// Reports of the runs before: a directory of .json files, or one file
    pub before: PathBuf,
    /// Reports of the runs after
    pub after: PathBuf,
    /// Metric to compare: throughput, mean, p50, p95, p99, errors
    #[arg(long, value_name = "NAME", default_value = "p95")]
    pub metric: String,
    /// Smallest difference that matters: per cent; percentage points for errors [default: the metric's]
    #[arg(long, value_name = "PERCENT")]
    pub threshold: Option<f64>,
    /// Seed of all random choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = store::DEFAULT)]
    pub store: PathBuf,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the run as JSON instead of the report
    #[arg(long)]
    pub json: bool,
}

/// `weir lab tune`.
#[derive(Args)]
pub struct TuneArgs {
    /// The configuration file; drafts of it are written beside it during the comparison
    pub conf: PathBuf,
    /// The path that gets the load
    #[arg(default_value = "/")]
    pub path: String,
    /// A knob of your own, tried first: ADDRESS=VALUE, as http/upstream[app]/keepalive=64; may be repeated
    #[arg(long = "knob", value_name = "ADDRESS=VALUE")]
    pub knobs: Vec<String>,
    /// Try only the knobs of --knob
    #[arg(long, requires = "knobs")]
    pub only_knobs: bool,
    /// Try only the recommendations of these rules of the doctor
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Largest number of knobs to try
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub tries: usize,

    #[command(flatten)]
    pub load: ComparisonLoadArgs,
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
    /// The path that gets the load
    #[arg(default_value = "/")]
    pub path: String,
    /// Latency limit of a quantile: p50, p95 or p99, as p95=50ms
    #[arg(long, value_name = "QUANTILE=TIME", default_value = "p95=50ms", value_parser = slo)]
    pub slo: (&'static str, Duration),
    /// Per cent of requests that may fail
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1)]
    pub errors: f64,
    /// Search with an Artillery script instead of a path: at a rate, all its phases have as many times their arrivals
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["users", "connections"])]
    pub load: Option<PathBuf>,
    /// The first rate
    #[arg(long, value_name = "N", default_value_t = 200.0)]
    pub from: f64,
    /// Search the largest number of virtual users instead of a rate: the first number, and the largest. Each user asks,
    /// waits for the answer, thinks, and asks again
    #[arg(long, value_name = "FROM..TO", value_parser = users, conflicts_with_all = ["from", "connections"])]
    pub users: Option<(u32, u32)>,
    /// With --users: the time between an answer and the user's next request
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time, requires = "users")]
    pub think: Duration,
    /// Connections at most
    #[arg(short, long, value_name = "N", default_value_t = 256)]
    pub connections: usize,
    /// Measured time of each rate
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub block: Duration,
    /// Warm-up time of each rate
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = time)]
    pub warmup: Duration,

    #[command(flatten)]
    pub stack: StackArgs,
}

/// `weir lab why`.
#[derive(Args)]
pub struct WhyArgs {
    /// The configuration, and the path that gets the load [default: /]; with --stack only the path, if any
    #[arg(value_name = "CONF [PATH]", num_args = 0..=2)]
    pub what: Vec<String>,
    /// Load and watch the stack of an experiment: its folder, hosts, processes and configuration, and its load unless
    /// the flags set another (needs root)
    #[arg(long = "stack", value_name = "labs/NAME", help_heading = "Stack")]
    pub lab: Option<PathBuf>,
    /// The folder of the experiments [default: ./labs, or the folder of the installation]
    #[arg(long, value_name = "DIR", requires = "lab", help_heading = "Stack")]
    pub labs: Option<PathBuf>,
    /// Variant of the experiment [default: the first]
    #[arg(long, value_name = "NAME", requires = "lab", help_heading = "Stack")]
    pub variant: Option<String>,
    /// A program to query under load: apache, jvm, spring, mysql, redis with its address, as
    /// redis=:password@127.0.0.1:6379; or node. weir finds those that listen in the stack without this flag; may be
    /// repeated
    #[arg(long = "probe", value_name = "KIND=WHERE", value_parser = probe, help_heading = "Stack")]
    pub probes: Vec<weir_lab::watch::probe::WantedProbe>,
    /// Show on which lock, peer, disk or CPU the threads of applications and of their servers wait. Uses programs in
    /// the kernel (root, BTF, x86-64); uses /proc if the kernel accepts none, or with --inside=proc. The report names
    /// the way used
    #[arg(long, value_name = "WAY", num_args = 0..=1, require_equals = true, default_missing_value = "auto", value_parser = inside, help_heading = "Stack")]
    pub inside: Option<weir_lab::watch::inside::Way>,
    /// Set an application pool's size by its environment variable; --prove squeezes it; may be repeated
    #[arg(long = "pool", value_name = "[PROCESS:]VARIABLE=SIZE", value_parser = pool, help_heading = "Stack")]
    pub pools: Vec<weir_lab::why::signals::Pool>,
    /// Send the load for this time first, to see what is rare or comes every few seconds; half of the load follows only
    /// if this load fails
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with = "script", help_heading = "Load")]
    pub long: Option<Duration>,
    /// Latency limit of a quantile above which the stack counts as full: p50, p95 or p99, as p95=50ms
    #[arg(long, value_name = "QUANTILE=TIME", value_parser = slo)]
    pub slo: Option<(&'static str, Duration)>,
    /// Answers that are good, by class or by status; all others count as failed, also 429 and the edge's refusals
    #[arg(long, value_name = "LIST", default_value = "2xx,3xx", value_parser = good)]
    pub good: weir_lab::why::good::GoodStatuses,
    /// Squeeze each suspect by a fifth, in turns with unchanged blocks; then give more of each suspect that lowered
    /// the number of answers (needs root)
    #[arg(long)]
    pub prove: bool,
    /// Try the recommended line in a copy of the configuration, in turns with the original, whatever time it takes
    #[arg(long = "try")]
    pub tries: bool,
    /// Without --try, try the line only if that takes at most this time; 0: never
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = time)]
    pub try_budget: Duration,
    /// Rounds of squeezing; fewer than 6 give no interval
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = within::<u16>(6..=24), help_heading = "Design")]
    pub rounds: u16,
    /// Extra fields of a block's spec for a test, as JSON
    #[arg(long, value_name = "FILE", hide = true)]
    pub inject: Option<PathBuf>,

    #[command(flatten)]
    pub sent: SentArgs,
    /// Measured time of a block
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = time, help_heading = "Load")]
    pub block: Duration,
    /// Warm-up time before it; 0: no warm-up
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time, help_heading = "Load")]
    pub warmup: Duration,

    #[command(flatten)]
    pub stack: StackArgs,
}

/// Name of the process that `--origin` starts.
const ORIGIN: &str = "origin0";

fn pool(text: &str) -> Result<weir_lab::why::signals::Pool, Said> {
    let wrong = || {
        Said::of_both(
            "write POOL_SIZE=10, or PROCESS:POOL_SIZE=10; at least 2",
            "POOL_SIZE=10 또는 PROCESS:POOL_SIZE=10처럼 쓰세요. 크기는 2 이상입니다",
        )
    };
    let (name, size) = text.split_once('=').ok_or_else(wrong)?;
    let (process, variable) = name.split_once(':').unwrap_or((ORIGIN, name));
    let size = size.parse().ok().filter(|size| (2..=1_000_000).contains(size)).ok_or_else(wrong)?;
    if variable.is_empty() || !variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)) {
        return Err(wrong());
    }
    Ok(weir_lab::why::signals::Pool { process: process.to_owned(), variable: variable.to_owned(), size })
}

pub(crate) fn inside(text: &str) -> Result<weir_lab::watch::inside::Way, Said> {
    match text {
        "auto" => Ok(weir_lab::watch::inside::Way::Auto),
        "proc" => Ok(weir_lab::watch::inside::Way::Proc),
        _ => Err(Said::of_both(
            "write --inside, --inside=auto or --inside=proc",
            "--inside, --inside=auto, --inside=proc 중 하나를 쓰세요",
        )),
    }
}

/// Reads a probe: `redis=127.0.0.1:6379`.
fn probe(text: &str) -> Result<weir_lab::watch::probe::WantedProbe, Said> {
    weir_lab::watch::probe::WantedProbe::of(text)
}

/// Reads a list of classes and statuses: `2xx,404`.
pub(crate) fn good(text: &str) -> Result<weir_lab::why::good::GoodStatuses, Said> {
    text.parse()
}

/// Most virtual users of a search.
const USERS_MAX: u32 = 50_000;

fn users(text: &str) -> Result<(u32, u32), Said> {
    let wrong = || {
        Said::of_both(
            format!("write the first and the largest number of users, as 10..2000; at most {USERS_MAX}"),
            format!("10..2000처럼 첫 사용자 수와 가장 큰 사용자 수를 쓰세요. 최대 {USERS_MAX}입니다"),
        )
    };
    let (from, to) = text.split_once("..").unwrap_or((text, ""));
    let number = |text: &str| text.parse().ok().filter(|number| (1..=USERS_MAX).contains(number)).ok_or_else(wrong);
    let (from, to) = (number(from)?, if to.is_empty() { USERS_MAX } else { number(to)? });
    if from <= to { Ok((from, to)) } else { Err(wrong()) }
}

pub(crate) fn slo(text: &str) -> Result<(&'static str, Duration), Said> {
    let wrong =
        || Said::of_both("write p50, p95 or p99, as p95=50ms", "p95=50ms처럼 p50, p95, p99 중 하나와 시간을 쓰세요");
    let (name, limit) = text.split_once('=').ok_or_else(wrong)?;
    let quantile = ["p50", "p95", "p99"].into_iter().find(|known| *known == name).ok_or_else(wrong)?;
    Ok((quantile, time(limit)?))
}

/// CPU numbers.
pub type CpuList = std::sync::Arc<[usize]>;

/// Every CPU number in a list is below this.
const CPUS_MAX: usize = 1024;

fn cpus(text: &str) -> Result<CpuList, Said> {
    let wrong = || Said::of_both("write the numbers of CPUs, as 0-1,4", "0-1,4처럼 CPU 번호를 쓰세요");
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

fn delay(text: &str) -> Result<Duration, Said> {
    let found = time(text).ok().filter(|time| *time <= DELAY_MAX);
    found.ok_or_else(|| say!(texts::ERR_DELAY_FLAG, DELAY_MAX.as_secs()))
}

fn share(text: &str) -> Result<u16, Said> {
    let found = weir_lab::experiment::link::per_mille(text).filter(|share| *share <= SHARE_MAX);
    found.ok_or_else(|| say!(texts::ERR_SHARE_FLAG, SHARE_MAX / 10))
}

pub(crate) fn time(text: &str) -> Result<Duration, Said> {
    // A warm-up may last no time; `weir load` refuses a phase of no length.
    if matches!(text, "0" | "0s" | "0ms") {
        return Ok(Duration::ZERO);
    }
    weir_load::duration::phase(&text.into())
        .map(|time| time.time)
        .ok_or_else(|| Said::of_both("write a time, as 20s or 5m", "20s, 5m처럼 시간을 쓰세요"))
}
