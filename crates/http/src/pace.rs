//! `limit_rate`: how many bytes may go to a client at this moment. nginx's formula, one second at a time.

use std::time::Duration;

use weir_net::{Instant, clock};

use crate::conn::{Conn, Gone};
use crate::exchange::Exchange;
use crate::value;

/// The rate of one response.
pub struct Pace {
    rate: u64,
    after: u64,
    sent: u64,
    started: Instant,
}

impl Pace {
    /// The limit in force; `None` if there is no limit: this usual case costs two comparisons.
    pub fn of(exchange: &mut Exchange<'_>) -> Option<Pace> {
        let location = exchange.location;
        let core = &location.values.core;
        let rate = match (exchange.facts.limit_rate, &core.limit_rate) {
            (Some(rate), _) => rate,
            (None, Some(template)) => number(&template.text(exchange)),
            (None, None) => 0,
        };
        if rate == 0 {
            return None;
        }
        let after = core.limit_rate_after.as_ref().map_or(0, |template| number(&template.text(exchange)));
        Some(Pace { rate, after, sent: 0, started: clock::now() })
    }

    /// A pace of `rate` bytes per second that starts at this moment; `None` for 0.
    pub fn new(rate: u64) -> Option<Pace> {
        (rate > 0).then(|| Pace { rate, after: 0, sent: 0, started: clock::now() })
    }

    /// How many of `wanted` bytes may go now, or how long to wait.
    pub fn ask(&self, wanted: usize) -> Result<usize, Duration> {
        // nginx: rate * (seconds since the start + 1) - (sent - limit_rate_after).
        let seconds = clock::now().saturating_duration_since(self.started).as_secs() + 1;
        let budget = self.rate.saturating_mul(seconds).saturating_add(self.after);
        match budget.checked_sub(self.sent) {
            Some(left) if left > 0 => Ok(usize::try_from(left).unwrap_or(wanted).min(wanted).max(1)),
            Some(_) | None => {
                let over = self.sent.saturating_sub(budget);
                Err(Duration::from_millis((over.saturating_mul(1000) / self.rate).saturating_add(1)))
            }
        }
    }

    /// Waits until some bytes may go; returns how many.
    pub async fn allowed(&self, conn: &mut Conn, wanted: usize) -> Result<usize, Gone> {
        loop {
            match self.ask(wanted) {
                Ok(count) => return Ok(count),
                Err(wait) => {
                    if let Some(gone) = conn.pause(wait).await {
                        return Err(gone);
                    }
                }
            }
        }
    }

    /// Notes the bytes that were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }
}

fn number(text: &[u8]) -> u64 {
    std::str::from_utf8(text).ok().and_then(value::size_of).unwrap_or(0)
}
