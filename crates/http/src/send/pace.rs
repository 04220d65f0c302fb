//! `limit_rate`: how many bytes may go to a client at this moment. nginx's formula, one second at a time.

use std::time::Duration;

use weir_net::{Instant, clock};

use crate::exchange::Exchange;
use crate::hold::conn::{Conn, Gone};
use crate::text::value;

/// The rate of one response.
pub struct Pace {
    rate: u64,
    after: u64,
    sent: u64,
    started: Instant,
}

impl Pace {
    /// The limit in force; `None` if there is no limit: this usual case costs two comparisons. The time runs since the
    /// request, and the bytes of the head count (`ngx_http_write_filter`).
    pub fn of(exchange: &mut Exchange<'_>, head_bytes: usize) -> Option<Pace> {
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
        Some(Pace { rate, after, sent: head_bytes as u64, started: exchange.facts.started })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Site, finish, on_worker, whole};

    #[test]
    fn a_rate_is_the_variable_s_or_the_directive_s() {
        for (settings, expected) in [
            ("", None),
            ("limit_rate 0;", None),
            ("limit_rate 1k;", Some((1024, 0))),
            ("limit_rate $arg_r; limit_rate_after $arg_a;", Some((2048, 5))),
            ("limit_rate $arg_nothing;", None),
            ("limit_rate 1k; set $limit_rate 7; limit_rate_after 3;", Some((7, 3))),
            ("limit_rate 1k; set $limit_rate 0;", None),
        ] {
            on_worker(async move {
                let http = format!("server {{ listen 127.0.0.1:1; location / {{ {settings} }} }}");
                let (site, _conn, _client) = Site::open(&http);
                let mut exchange = site.exchange(&whole("GET /?r=2k&a=5"));
                finish(&mut exchange);
                let pace = Pace::of(&mut exchange, 150);
                let found = pace.as_ref().map(|pace| (pace.rate, pace.after));
                assert_eq!(found, expected, "{settings}");
                assert!(pace.is_none_or(|pace| pace.sent == 150 && pace.started == exchange.facts.started));
            });
        }
    }

    #[test]
    fn what_was_sent_beyond_the_budget_is_waited_for() {
        on_worker(async {
            let started = clock::now();
            let pace = |sent, after| Pace { rate: 1000, after, sent, started };
            for (sent, after, expected) in [
                (0, 0, Ok(1000)),
                (400, 0, Ok(600)),
                (999, 0, Ok(1)),
                (1000, 0, Err(1)),
                (1500, 0, Err(501)),
                (1500, 600, Ok(100)),
            ] {
                let asked = pace(sent, after).ask(5000).map_err(|wait| wait.as_millis());
                assert_eq!(asked, expected, "{sent} {after}");
            }
            assert_eq!(pace(0, 0).ask(10), Ok(10), "no more than is there");
            let mut long = pace(0, 0);
            long.sent(5000);
            assert_eq!(long.sent, 5000);
        });
    }
}
