//! The command line of `weir doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use weir_doctor::Version;
use weir_words::Said;

const AFTER_HELP: &str = "\
CONF is an nginx.conf, a file that an nginx.conf includes, or the output of `nginx -T` (`-` reads standard input).
A file with the name of a symptom is ./502.
The doctor changes a file only with --write. With --fix it lets the nginx found here read a copy of the files (`nginx -t`).

Exit codes: 0 no finding is wrong or at risk; 1 a finding is; 2 the doctor could not read the configuration.";

/// `weir doctor`.
#[derive(Args, Clone)]
#[command(after_help = AFTER_HELP)]
pub struct DoctorArgs {
    /// What is wrong: 502, 504, 500, websocket, slow or limit. Shows what can cause it, the most likely first, and what the
    /// error log says
    #[arg(value_name = "SYMPTOM")]
    pub(super) symptom: Option<PathBuf>,
    /// The configuration file
    #[arg(value_name = "CONF")]
    pub(super) conf: Option<PathBuf>,
    /// With a symptom: nginx's error log [default: those of the configuration]; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "symptom")]
    pub(super) error_log: Option<PathBuf>,
    /// Process id of a running nginx or weir: read its limits, its children, and where its limits were set
    #[arg(long, value_name = "PID")]
    pub(super) pid: Option<u32>,
    /// The nginx that will read the file: gives its version, its modules and the path of its file
    #[arg(long, value_name = "PATH")]
    pub(super) nginx: Option<PathBuf>,
    /// The nginx version, if no binary is at hand
    #[arg(long, value_name = "VERSION", value_parser = version, conflicts_with = "nginx")]
    pub(super) nginx_version: Option<Version>,
    /// URL of a stub_status page; read twice, one second apart
    #[arg(long, value_name = "URL")]
    pub(super) live: Option<String>,
    /// Do not look at this machine: the file is for another one
    #[arg(long, conflicts_with_all = ["pid", "live"])]
    pub(super) no_host: bool,
    /// Clients at the same time, at the peak
    #[arg(long, value_name = "N")]
    pub(super) clients: Option<f64>,
    /// Requests (or sessions) a second, at the peak
    #[arg(long, value_name = "R")]
    pub(super) rate: Option<f64>,
    /// Seconds that one of them takes, or stays
    #[arg(long, value_name = "S", requires = "rate")]
    pub(super) seconds: Option<f64>,
    /// Print the values in force and where each comes from, of one directive or of all important ones
    #[arg(long, value_name = "DIRECTIVE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(super) explain: Option<String>,
    /// Print which changes between BEFORE and this file cannot make a difference
    #[arg(long, value_name = "BEFORE", conflicts_with_all = ["explain", "fix"])]
    pub(super) against: Option<PathBuf>,
    /// The program that will read the file; its defaults and rules apply [default: the program of --nginx or --pid,
    /// or weir if only weir can read the file, or nginx]
    #[arg(long = "for", value_name = "nginx|weir", value_enum)]
    pub(super) reader: Option<ReadingProgram>,
    /// Apply these rules only; a finding has the name of its rule in brackets
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Print one line for each finding: its level, its place, its rule, and what is wrong
    #[arg(long, conflicts_with_all = ["explain", "fix", "undo", "json"])]
    pub(super) brief: bool,
    /// Show the fixes as a diff
    #[arg(long)]
    pub(super) fix: bool,
    /// Write the fixes; the files as they were are kept for --undo
    #[arg(long, requires = "fix")]
    pub(super) write: bool,
    /// Take the last --write back
    #[arg(long, conflicts_with_all = ["symptom", "conf", "fix", "explain", "against", "json"])]
    pub(super) undo: bool,
    /// With --fix and --pid: raise the limit of open files at its source, in files of this machine
    #[arg(long, requires = "fix", conflicts_with_all = ["no_host", "json"])]
    pub(super) host: bool,
    /// With --host: files that the process must be able to open [default: by worker_connections]
    #[arg(long, value_name = "N", requires = "host")]
    pub(super) files: Option<u64>,
    /// With --pid: a folder that has the machine's files
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub(super) root: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print the page of all rules
    #[arg(long, hide = true)]
    pub(super) reference: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum ReadingProgram {
    Nginx,
    Weir,
}

fn version(text: &str) -> Result<Version, Said> {
    Version::read(text).ok_or_else(|| Said::of_both("write three numbers, as in 1.22.1", "1.22.1처럼 세 수를 쓰세요"))
}
