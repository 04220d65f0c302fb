//! Events for the thread that runs the load.

use crate::record::TakenWindow;

/// Events for the thread that runs the load.
#[derive(Debug)]
pub enum Event {
    /// A line to print.
    Line(String),
    /// The counts of a worker, complete up to a moment.
    Taken {
        /// Number of the worker.
        worker: usize,
        /// The counts.
        taken: TakenWindow,
        /// The moment, ms since 1970.
        before_ms: u64,
    },
    /// A worker has finished its share.
    Ended {
        /// Number of the worker.
        worker: usize,
    },
    /// A worker could not begin.
    Failed(String),
    /// A line that `DEBUG` asks for.
    Debug(String),
    /// A processor set `artillery.suggestedExitCode`.
    ExitCode(i32),
    /// The run must end.
    Stop,
}
