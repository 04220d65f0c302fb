//! The command line of `weir why`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weir_lab::watch::inside::Way;
use weir_lab::why::good::GoodStatuses;
use weir_lab::why::running::settings::GOOD;

use crate::lab::flags::{good, inside, slo, time};

const AFTER_HELP: &str = "\
weir why starts nothing and changes nothing. It sends requests to nothing but the edge's own account: the dashboard or API
of a weir, the stub_status page of an nginx. As root it sees the processes of all users.

Examples:
  sudo weir why                          the only edge of this machine
  sudo weir why --for 60s --inside       longer, and where the applications' threads wait
  sudo weir why --edge 4711              one of several edges
  weir why --edge http://127.0.0.1:9144/ a weir, by its dashboard

Exit codes: 0 there is a verdict, 2 weir could not watch, 3 no verdict, 130 interrupted.";

/// `weir why`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct NowArgs {
    /// The configuration file of the edge [default: the file that its process reads]
    #[arg(value_name = "CONF")]
    pub(super) conf: Option<PathBuf>,
    /// The edge: the process id of an nginx or a weir, or the URL of a weir's dashboard or API [default: the only edge
    /// that runs on this machine]
    #[arg(long, value_name = "PID|URL")]
    pub(super) edge: Option<String>,
    /// How long to watch
    #[arg(long = "for", value_name = "TIME", default_value = "20s", value_parser = time)]
    pub(super) length: Duration,
    /// Show on which lock, peer, disk or CPU the threads of applications and of their servers wait. Uses programs in
    /// the kernel (root, BTF, x86-64); uses /proc if the kernel accepts none, or with --inside=proc
    #[arg(long, value_name = "WAY", num_args = 0..=1, require_equals = true, default_missing_value = "auto", value_parser = inside)]
    pub(super) inside: Option<Way>,
    /// Answers that are good, by class or by status; all others count as failed
    #[arg(long, value_name = "LIST", default_value = GOOD, value_parser = good)]
    pub(super) good: GoodStatuses,
    /// Latency of a quantile from which on answers are slow: p50, p95 or p99
    #[arg(long, value_name = "QUANTILE=TIME", default_value = "p95=1s", value_parser = slo)]
    pub(super) slo: (&'static str, Duration),
    /// The file whose first line is the token of weir's dashboard
    #[arg(long, value_name = "FILE")]
    pub(super) token: Option<PathBuf>,
    /// Accept any certificate of weir's dashboard
    #[arg(long)]
    pub(super) insecure: bool,
    /// Print the verdict and all figures as JSON
    #[arg(long)]
    pub(super) json: bool,
}
