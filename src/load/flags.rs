//! The command line of `weir load`: Artillery's flags for scripts; flags like those of wrk, ab and oha for a URL.

use std::path::PathBuf;
use weir_words::Said;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  weir load checkout.yml                          an Artillery script, unchanged
  weir load -t http://127.0.0.1:8080 -o run.json --html run.html checkout.yml
  weir load --check checkout.yml                  checks the script and prints the plan; sends nothing
  weir load http://127.0.0.1:8080/ -c 64 -d 30s   as fast as 64 connections allow (closed loop)
  weir load https://127.0.0.1:8443/ --http2 -c 16 -m 32 -k   16 connections with 32 streams each, like h2load
  weir load https://127.0.0.1:8443/ --http3 -c 32 -m 8 -k    the same over HTTP/3
  weir load http://127.0.0.1:8080/ -R 500         500 requests a second, independent of the answers (open model)
  weir load --agents redis://10.0.0.1 -n 4 test.yml   one run from four machines, each with `weir agent redis://10.0.0.1`
  weir load from access.log -o mix.yml            a script with the mix of requests of an access log or a recording
  weir load compare before.json after.json        compares two single runs
  weir load report run.json                       writes the page run.json.html

The load goes only to the target that you name. Phases, -d and -n limit it. Ctrl-C ends it with a report.
Exit codes: 0 done, 1 a script problem or a failed check, 2 an invalid command line, 3 the generator was the limit
(with --fail-if-limited), 11 a worker could not run, 21 a failed expectation, 130 interrupted.";

/// `weir load`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct LoadArgs {
    #[command(subcommand)]
    pub what: Option<LoadCommand>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// The other commands of `weir load`.
#[derive(Subcommand)]
pub enum LoadCommand {
    /// Run a script; the word `run` may be left out
    Run(Box<RunArgs>),
    /// Compare two reports, and print only the conclusions that they support
    Compare {
        /// Report of the run before (-o)
        before: PathBuf,
        /// Report of the run after
        after: PathBuf,
    },
    /// Load one URL with a few virtual users, as `artillery quick` does
    Quick(QuickArgs),
    /// Refused: weir starts no machines of a cloud
    #[command(name = "run-fargate", alias = "run-lambda", alias = "run-aci", hide = true, disable_help_flag = true)]
    RunFargate {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
        rest: Vec<std::ffi::OsString>,
    },
    /// Make an Artillery script from recordings or access logs, with the mix of requests that they have
    From(FromArgs),
    /// Make an HTML page from a JSON report
    Report {
        /// The report (-o)
        report: PathBuf,
        /// File of the page [default: the report's name with .html]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// `weir load quick`.
#[derive(Args)]
pub struct QuickArgs {
    /// The URL: http, https, ws or wss
    #[arg(value_name = "URL")]
    pub url: String,
    /// Number of virtual users
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    pub count: u64,
    /// Number of requests or messages of each virtual user
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    pub num: u64,
    /// Write the report as JSON
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do not verify certificates
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Print only the log lines of the script and the verdicts
    #[arg(short, long)]
    pub quiet: bool,
}

/// `weir load from`.
#[derive(Args)]
pub struct FromArgs {
    /// Recordings of weir, or access logs of nginx or Apache, also compressed by gzip; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub logs: Vec<PathBuf>,
    /// Write the script to this file, and the values of its parameters to files beside it [default: all to stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The target of the script
    #[arg(short, long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub target: String,
    /// The form of the lines: a log_format of --conf by its name, or the format itself [default: found by the lines]
    #[arg(long, value_name = "NAME|FORMAT")]
    pub format: Option<String>,
    /// The nginx.conf that has the log_format
    #[arg(long, value_name = "FILE")]
    pub conf: Option<PathBuf>,
    /// Only requests for this host, if a log has hosts [default: the host with most requests]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Leave out style sheets, scripts, images and fonts
    #[arg(long)]
    pub without_assets: bool,
    /// All of it in this many minutes, at its own rates [default: the busiest hour as it is]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(weir_load::traffic::MINUTES_MAX)))]
    pub minutes: Option<u32>,
    /// So many times as fast: more arrivals a second, shorter pauses
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
    /// As many arrivals as all clients had, if a recording has a share of them [default: as many as are recorded]
    #[arg(long)]
    pub all_clients: bool,
}

fn speed(text: &str) -> Result<f64, Said> {
    let (least, most) = weir_load::traffic::SPEEDS;
    let speed = text.parse::<f64>().ok().filter(|speed| (least..=most).contains(speed));
    speed.ok_or_else(|| {
        Said::of_both(format!("a number from {least} to {most}"), format!("{least}부터 {most}까지의 수를 쓰세요"))
    })
}

/// A run of scripts, or of one URL.
#[derive(Args, Clone, Default)]
pub struct RunArgs {
    /// Script files, merged in order; or one URL
    #[arg(value_name = "SCRIPT|URL")]
    pub what: Vec<String>,

    /// Target; wins over the script's
    #[arg(short, long, value_name = "URL", help_heading = "Scripts")]
    pub target: Option<String>,
    /// Script: a file with more configuration, merged last. URL: connections
    #[arg(short, long, value_name = "FILE|N")]
    pub config: Option<String>,
    /// Name of one of config.environments
    #[arg(short, long, value_name = "NAME", help_heading = "Scripts")]
    pub environment: Option<String>,
    /// Run only scenarios whose name matches this regular expression
    #[arg(long, value_name = "NAME", help_heading = "Scripts")]
    pub scenario_name: Option<String>,
    /// A file of NAME=value lines; read into the environment before the script
    #[arg(long, alias = "env-file", value_name = "FILE", help_heading = "Scripts")]
    pub dotenv: Option<PathBuf>,
    /// Variables, as a JSON object
    #[arg(short, long, value_name = "JSON", help_heading = "Scripts")]
    pub variables: Option<String>,
    /// A JSON object that is merged over the script
    #[arg(long, value_name = "JSON", help_heading = "Scripts")]
    pub overrides: Option<String>,
    /// CSV file, if the script has one payload
    #[arg(short, long, value_name = "FILE", help_heading = "Scripts")]
    pub payload: Option<PathBuf>,
    /// Run one virtual user only
    #[arg(short, long, help_heading = "Scripts")]
    pub solo: bool,
    /// One more script file
    #[arg(short, long, value_name = "FILE", hide = true)]
    pub input: Vec<String>,
    /// Read the script, print its problems and its plan; send nothing
    #[arg(long, help_heading = "Scripts")]
    pub check: bool,
    /// Seed of all random choices: the same seed gives the same arrivals
    #[arg(long, value_name = "N", help_heading = "Scripts")]
    pub seed: Option<u64>,

    /// Duration of the load
    #[arg(short, long, value_name = "TIME", default_value = "10s", help_heading = "URL")]
    pub duration: String,
    /// Requests a second, on schedule even if answers are late; without it each connection sends after each answer
    #[arg(short = 'R', long, value_name = "N", help_heading = "URL")]
    pub rate: Option<f64>,
    /// Spread the requests of -R at random instead of evenly
    #[arg(long, requires = "rate", help_heading = "URL")]
    pub poisson: bool,
    /// Number of requests; with --agents, number of agents
    #[arg(short = 'n', long, value_name = "N", help_heading = "URL")]
    pub requests: Option<u64>,
    /// Method
    #[arg(short = 'X', long, value_name = "NAME", help_heading = "URL")]
    pub method: Option<String>,
    /// A header field of the request: "Name: value"; may be repeated
    #[arg(short = 'H', long, value_name = "FIELD", help_heading = "URL")]
    pub header: Vec<String>,
    /// Body, or @FILE
    #[arg(long, value_name = "TEXT", help_heading = "URL")]
    pub body: Option<String>,
    /// HTTP/2: by ALPN over https://, with prior knowledge over http://
    #[arg(long, group = "many", help_heading = "URL")]
    pub http2: bool,
    /// HTTP/3 over QUIC, for https:// only
    #[arg(long, group = "many", help_heading = "URL")]
    pub http3: bool,
    /// With --http2 or --http3, requests at the same time on each connection [default: 1]
    #[arg(
        short = 'm',
        long,
        value_name = "N",
        requires = "many",
        alias = "max-concurrent-streams",
        help_heading = "URL"
    )]
    pub streams: Option<usize>,
    /// Requests after which a connection is closed and another one opened [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "URL")]
    pub per_connection: Option<u64>,
    /// With --http3, a new connection resumes the session before and sends its first requests as early data (0-RTT)
    #[arg(long, requires = "http3", aliases = ["tls-earlydata", "0rtt"], help_heading = "URL")]
    pub early_data: bool,
    /// With --http3, each connection moves to another UDP port each time after this
    #[arg(long, value_name = "TIME", requires = "http3", help_heading = "URL")]
    pub migrate: Option<String>,
    /// Longest time to wait for an answer
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "URL")]
    pub timeout: String,

    /// Threads [default: one per CPU this process may use; 1 for scripts with a processor]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Run on agents (weir agent) at this Redis server (or env:NAME, file:PATH with its URL); -n is their number
    #[arg(long, value_name = "URL", requires = "requests", help_heading = "Agents")]
    pub agents: Option<String>,
    /// Longest time to wait for the agents
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Agents")]
    pub agents_wait: String,
    /// An environment variable to send to the agents; others stay here. May be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Agents")]
    pub env_pass: Vec<String>,
    /// One more file for the agents, which the script does not name. May be repeated
    #[arg(long = "with", value_name = "FILE", help_heading = "Agents")]
    pub with_files: Vec<PathBuf>,
    /// Do not verify certificates
    #[arg(short = 'k', long)]
    pub insecure: bool,

    /// Write the report as JSON
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Time that one point of the report's charts covers, 100ms to 60s
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Output", value_parser = interval)]
    pub interval: std::time::Duration,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Print only the log lines of the script and the verdicts
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// v1: print the summary as Artillery 1 did
    #[arg(long, value_name = "FORM", default_value = "v2", value_parser = ["v1", "v2"], help_heading = "Output")]
    pub summary: String,
    /// Serve the metrics of the run for Prometheus while it lasts
    #[arg(long, value_name = "ADDR", help_heading = "Output")]
    pub prometheus: Option<std::net::SocketAddr>,
    /// Refused: weir sends nothing to Artillery Cloud
    #[arg(long, hide = true)]
    pub record: bool,
    /// Artillery Cloud's key, for --record
    #[arg(long, hide = true, value_name = "KEY")]
    pub key: Option<String>,
    /// Exit with 3 if the load generator, not the target, was the limit
    #[arg(long, help_heading = "Output")]
    pub fail_if_limited: bool,
}

/// The shortest and the longest time that a point may cover.
const INTERVAL: (std::time::Duration, std::time::Duration) =
    (std::time::Duration::from_millis(100), std::time::Duration::from_secs(60));

fn interval(text: &str) -> Result<std::time::Duration, Said> {
    let time = weir_load::duration::phase(&text.into()).map(|time| time.time);
    time.filter(|time| (INTERVAL.0..=INTERVAL.1).contains(time))
        .ok_or_else(|| Said::of_both("100ms to 60s", "100ms부터 60s까지입니다"))
}

impl RunArgs {
    /// The channel of a run, with the interval from the flags.
    pub fn channel(&self) -> weir_load::run::Channel {
        let ms = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        let mut channel = weir_load::run::Channel::new();
        channel.point_ms = (ms > 0).then_some(ms);
        channel
    }
}
