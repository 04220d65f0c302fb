//! The settings of a watch, and the facts at its end.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use weir_conf::Tree;

use super::account::SnapshotReader;
use super::outside::Requests;
use super::past::Past;
use super::people::App;
use crate::capacity::Objective;
use crate::said::Said;
use crate::watch::Account;
use crate::watch::inside::Way;
use crate::why::good::GoodStatuses;
use crate::why::signals::Signals;

/// An edge that runs on this machine.
pub struct RunningEdge {
    /// Its first process: nginx's master process, weir's keeper.
    pub pid: u32,
    /// It is weir.
    pub is_weir: bool,
    /// Its program, as `--edge` of `weir lab why` takes it.
    pub program: String,
    /// The file that it reads.
    pub conf: PathBuf,
    /// The configuration in it.
    pub tree: Tree,
    /// The directory of relative paths of logs.
    pub prefix: PathBuf,
    /// The access log and the error log of a program whose configuration names none.
    pub default_logs: (Option<PathBuf>, Option<PathBuf>),
    /// Asks weir for its snapshot. `None`: it has no dashboard or API that answers.
    pub ask: Option<SnapshotReader>,
    /// The history of weir's dashboard: a point for each second.
    pub points: Value,
}

/// The settings of a watch.
pub struct WatchSettings {
    /// The edge.
    pub edge: RunningEdge,
    /// How long to watch.
    pub length: Duration,
    /// Whether and how the waits of threads are observed.
    pub inside: Way,
    /// The statuses of good answers.
    pub good: GoodStatuses,
    /// From this latency on, answers are slow.
    pub objective: Objective,
}

/// Statuses of good answers on a system that is not the lab's: visitors ask for pages that do not exist, or log in first.
pub const GOOD: &str = "2xx,3xx,401,403,404,405,410,416";

/// All facts of a watch.
pub(super) struct Facts {
    pub(super) signals: Signals,
    pub(super) requests: Requests,
    pub(super) past: Past,
    /// When the watch began, ms since 1970.
    pub(super) began_ms: u64,
    /// The mean of all requests since the edge started, before the watch. Of weir only.
    pub(super) before: Option<Account>,
    /// Why no conclusion is allowed.
    pub(super) spoiled: Option<Said>,
    pub(super) cautions: Vec<Said>,
    /// The applications.
    pub(super) apps: Vec<App>,
    /// All watched processes but the edge, by their parts.
    pub(super) others: Vec<String>,
    /// A log of nginx's lacks figures that would tell more: its path.
    pub(super) poor_log: Option<PathBuf>,
    pub(super) is_interrupted: bool,
}

/// The figures of a time before as a block: its latencies and its steps.
pub(super) fn block(count: u64, p95_ms: f64, mean_ms: f64, account: &Account) -> Signals {
    let mut signals = Signals::default();
    signals.load.sent = count;
    signals.load.ms = [mean_ms, 0.0, p95_ms, 0.0, 0.0];
    signals.edge.requests = count;
    signals.edge.steps = account.steps.clone();
    signals
}
