//! The command line of `weir ci`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use weir_ci::judge::CiOutcome;
use weir_ci::plan::PAIRS_LEAST;
use weir_doctor::{FindingLevel, Version};
use weir_words::{Said, said};

use crate::lab::flags::{SentArgs, time};
use crate::lang::wrong::within;

const AB_HELP: &str = "\
Examples:
  weir ci ab --before origin/main --conf deploy/nginx.conf --origin 'node server.js' /api
  weir ci ab --before HEAD~1 --conf nginx.conf --build 'npm ci' --origin 'node server.js' --markdown comment.md /
  weir ci ab --before v1.2 --after v1.3 --conf nginx.conf --budget 20m --fail-on worse,undecided /

It unpacks both revisions with git archive into a directory of its own, builds each, and compares them in alternating
blocks: the configuration of each revision, with the application of the same revision. The working tree stays as it is.
As root each block has network namespaces of its own; otherwise it starts plain processes on loopback.

Exit codes: 0 passed; 1 worse; 2 it could not run, for example because a build failed; 3 undecided, with --fail-on
undecided; 130 interrupted. With --codes: 0 no difference, 1 worse, 3 undecided, 4 better.";

const CHECK_HELP: &str = "\
Examples:
  weir ci check --conf deploy/nginx.conf --sarif weir.sarif
  weir ci check --conf deploy/nginx.conf --before origin/main --markdown comment.md

It reads the files as weir doctor and weir edge -t do, and starts nothing. It does not look at this machine, because the
files are for another one.

Exit codes: 0 passed; 1 a finding of the level of --fail-on, or above; 2 a file could not be read.";

/// `weir ci`.
#[derive(Args)]
pub struct CiArgs {
    #[command(subcommand)]
    pub what: CiCommand,
}

/// The commands of `weir ci`.
#[derive(Subcommand)]
pub enum CiCommand {
    /// Compare two revisions of a service, its configuration or both, within a budget of minutes
    Ab(Box<CiAbArgs>),
    /// Check configurations: findings of the doctor and of edge -t, of all lines or only of those that a revision brought
    Check(Box<CiCheckArgs>),
}

/// Files with reports. `-` is stdout.
#[derive(Args)]
pub struct CiOutputs {
    /// Write the comment for a pull request; it begins with a hidden marker, by which a later run finds it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub markdown: Option<PathBuf>,
    /// Write JUnit's XML
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub junit: Option<PathBuf>,
    /// Write JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// The name in the marker of the comment, if a pipeline writes several
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub marker: Option<String>,
}

/// `weir ci ab`.
#[derive(Args)]
#[command(after_help = AB_HELP)]
pub struct CiAbArgs {
    /// The path that gets the load
    #[arg(default_value = "/")]
    pub path: String,
    /// The revision before the change: a name that git knows
    #[arg(long, value_name = "REV")]
    pub before: String,
    /// The revision with the change
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub after: String,
    /// The configuration; each revision has its own version of it
    #[arg(long, value_name = "FILE")]
    pub conf: PathBuf,
    /// A command that builds each revision, in its directory
    #[arg(long, value_name = "CMD")]
    pub build: Option<String>,
    /// A command that starts the application of each revision, in its directory; without it, weir origin answers
    #[arg(long, value_name = "CMD")]
    pub origin: Option<String>,
    /// The longest time of all: unpacking, building, measuring
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = budget)]
    pub budget: Duration,
    /// The directory in which the revisions get a directory [default: that of temporary files]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Outcomes that fail the pipeline: worse, undecided, or none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "worse", value_parser = fail_on)]
    pub fail_on: Vec<FailingOutcome>,
    /// Give each outcome its own exit code
    #[arg(long, conflicts_with = "fail_on")]
    pub codes: bool,

    #[command(flatten)]
    pub sent: SentArgs,
    /// Measured time of a block [default: as long as the budget allows, from 2s to 15s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Load")]
    pub block: Option<Duration>,
    /// Warm-up time before it, used up to three times
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time, help_heading = "Load")]
    pub warmup: Duration,
    /// The program that serves the configurations: weir, or the path of an nginx
    #[arg(long, value_name = "weir|PATH", default_value = "weir", help_heading = "Stack")]
    pub edge: String,
    /// The port that gets the load, if the configuration listens on several
    #[arg(long, value_name = "PORT", help_heading = "Stack")]
    pub port: Option<u16>,
    /// Start plain processes, even as root
    #[arg(long, help_heading = "Stack")]
    pub plain: bool,
    /// Metric that decides, beside errors, cpu and app_cpu: throughput, mean, p50, p95 or p99 [default: p50]
    #[arg(long, value_name = "NAME", help_heading = "Design")]
    pub metric: Option<String>,
    /// Smallest difference that matters: per cent; percentage points for errors [default: the metric's]
    #[arg(long, value_name = "PERCENT", help_heading = "Design")]
    pub threshold: Option<f64>,
    /// Most pairs of blocks
    #[arg(long, value_name = "N", value_parser = within::<u16>(PAIRS_LEAST as u16..=24), help_heading = "Design")]
    pub pairs: Option<u16>,
    /// Leave out blocks that other work disturbed, as weir lab ab does; on a shared machine, few may be left
    #[arg(long, help_heading = "Design")]
    pub strict: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", help_heading = "Design")]
    pub seed: Option<u64>,
    /// Write the run of the lab as an HTML page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub outputs: CiOutputs,
}

/// `weir ci check`.
#[derive(Args)]
#[command(after_help = CHECK_HELP)]
pub struct CiCheckArgs {
    /// A configuration; may be repeated
    #[arg(long, value_name = "FILE", required = true)]
    pub conf: Vec<PathBuf>,
    /// Leave out the findings that this revision has too
    #[arg(long, value_name = "REV")]
    pub before: Option<String>,
    /// Read the files of this revision [default: the files of the working tree]
    #[arg(long, value_name = "REV")]
    pub after: Option<String>,
    /// The program that will read the files [default: weir if only weir can read them, or nginx]
    #[arg(long = "for", value_name = "nginx|weir", value_enum)]
    pub reader: Option<CheckedProgram>,
    /// The version of the nginx that will read them
    #[arg(long, value_name = "VERSION", value_parser = version)]
    pub nginx_version: Option<Version>,
    /// Apply these rules only; edge_test is the rule of edge -t
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// The least level that fails the pipeline: wrong, risk, note, or none
    #[arg(long, value_name = "LEVEL", default_value = "risk", value_parser = fails_from)]
    pub fail_on: FailingLevel,
    /// The directory in which the revisions get a directory [default: that of temporary files]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Write SARIF, for code scanning
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub sarif: Option<PathBuf>,
    #[command(flatten)]
    pub outputs: CiOutputs,
}

/// A program that reads a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckedProgram {
    Nginx,
    Weir,
}

/// An outcome that fails the pipeline; `None`: the word `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailingOutcome(pub Option<CiOutcome>);

/// The least level that fails the pipeline. `None`: no level does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailingLevel(pub Option<FindingLevel>);

/// The longest budget.
const BUDGET_MAX: Duration = Duration::from_secs(6 * 3600);
/// The shortest budget.
const BUDGET_MIN: Duration = Duration::from_secs(30);

fn budget(text: &str) -> Result<Duration, Said> {
    let found = time(text)?;
    (BUDGET_MIN..=BUDGET_MAX)
        .contains(&found)
        .then_some(found)
        .ok_or_else(|| said!("write a time from 30s to 6h, as 10m", "10m처럼 30s부터 6h까지의 시간을 쓰세요"))
}

fn fail_on(text: &str) -> Result<FailingOutcome, Said> {
    match text {
        "none" => Ok(FailingOutcome(None)),
        "worse" | "undecided" => Ok(FailingOutcome(CiOutcome::of(text))),
        _ => Err(said!(
            "write worse, undecided, both with a comma, or none",
            "worse, undecided, 쉼표로 이은 둘, none 중 하나를 쓰세요"
        )),
    }
}

fn fails_from(text: &str) -> Result<FailingLevel, Said> {
    weir_ci::check::fails_from(text)
        .map(FailingLevel)
        .ok_or_else(|| said!("write wrong, risk, note or none", "wrong, risk, note, none 중 하나를 쓰세요"))
}

fn version(text: &str) -> Result<Version, Said> {
    Version::read(text).ok_or_else(|| said!("write three numbers, as in 1.22.1", "1.22.1처럼 세 수를 쓰세요"))
}
