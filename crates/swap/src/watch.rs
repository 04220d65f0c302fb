//! The traces of a request beside its answer: log lines, and requests to origins.

use std::sync::Arc;
use std::time::Duration;

use weir_net::timer;

use crate::logs::{LogPlace, LogReader};
use crate::request::Observed;
use crate::taps::Taps;

/// Longest wait for the log lines of a request: a server writes them after the answer.
const LINES_WAIT: Duration = Duration::from_millis(30);
/// More requests to origins than these, for one request of a client, are a loop: the request comes back to the server.
pub(crate) const LOOP_MIN: usize = 100;
/// The rounds of a loop end after the answer. They have ended if no line comes for the first time, or after the second.
const ROUNDS_QUIET: Duration = Duration::from_millis(200);
const ROUNDS_WAIT: Duration = Duration::from_secs(5);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// Shows what one server does beside answering. It may have one request at a time.
pub struct ServerWatch {
    logs: LogReader,
    taps: Option<Arc<Taps>>,
}

impl ServerWatch {
    /// Sees what happens from now on.
    pub fn new(logs: Vec<LogPlace>, taps: Option<Arc<Taps>>) -> ServerWatch {
        if let Some(taps) = &taps {
            taps.take();
        }
        ServerWatch { logs: LogReader::new(logs), taps }
    }

    /// Adds the log lines and the requests to origins that belong to the last answer.
    pub async fn complete(&mut self, seen: &mut Observed) {
        let mut waited = Duration::ZERO;
        loop {
            seen.log.extend(self.logs.take());
            if !seen.log.is_empty() || self.logs.is_empty() || waited >= LINES_WAIT {
                break;
            }
            timer::sleep(LOOK).await;
            waited += LOOK;
        }
        if let Some(taps) = &self.taps {
            seen.origin = taps.take();
            taps.restore(seen);
        }
        if seen.origin.len() > LOOP_MIN {
            self.let_rounds_end().await;
        }
    }

    /// Waits for the end of a loop, and forgets what it shows: the next request would have it.
    async fn let_rounds_end(&mut self) {
        let (mut waited, mut quiet) = (Duration::ZERO, Duration::ZERO);
        while waited < ROUNDS_WAIT && quiet < ROUNDS_QUIET {
            timer::sleep(LINES_WAIT).await;
            waited += LINES_WAIT;
            let requests = self.taps.as_ref().map_or(0, |taps| taps.take().len());
            quiet = if self.logs.take().is_empty() && requests == 0 { quiet + LINES_WAIT } else { Duration::ZERO };
        }
    }
}
