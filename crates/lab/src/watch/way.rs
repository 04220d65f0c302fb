//! Divides the time of one request of nginx into the parts of its way, by what nginx's private log says of it.
//!
//! nginx has no variable for the moment at which it sends the head of an answer. [`HEAD_MAPS`] make one: a `map` keeps its value from
//! the first time that somebody reads it, and the copy of the configuration reads it in an `add_header` whose value is empty. nginx
//! adds no field without a value.

/// The fields of a line behind those of [`super::sink`], as nginx variables. The last is a stand-in for [`AUTH`].
pub const FIELDS: &str = "|$weirwhy_head|$msec|$limit_rate|$upstream_http_x_accel_limit_rate|$bytes_sent|$content_length|$connection.$connection_requests";
/// The field for the time of the check, if the configuration has `auth_request`.
pub const AUTH: &str = "|$weirwhy_auth";
/// Sets [`AUTH`]: nginx reads the value in the check's subrequest, whose time begins with the check.
pub const AUTH_SET: &str = "auth_request_set $weirwhy_auth $request_time";
/// The variables of the moment at which nginx sends the head.
pub const HEAD_MAPS: [&str; 2] =
    ["map $msec $weirwhy_head { default $msec; }", "map $weirwhy_head $weirwhy_none { default ''; }"];
/// Reads them when nginx makes the head of an answer.
pub const HEAD: &str = "add_header X-Weirwhy $weirwhy_none always";
/// Two times of nginx's clock that are this near to one another are the same moment, µs: the clock has steps of 1 ms, and each time may be
/// rounded by one.
const SAME_US: u64 = 2_000;

/// The known parts of the time of one request, µs.
#[derive(Clone, Debug, Default)]
pub struct RequestTime {
    /// From its first byte to its line in the log.
    pub total: u64,
    /// The moments of its answer's head and of its end.
    pub head: Option<u64>,
    /// See `head`.
    pub end: Option<u64>,
    /// Its upstreams, until the head of the last answer and after it.
    pub upstream: (u64, u64),
    /// The check of `auth_request`.
    pub auth: u64,
    /// `limit_req` delayed it.
    pub is_delayed: bool,
    /// A cache was asked for its answer.
    pub is_cached: bool,
    /// It has a body.
    pub has_body: bool,
    /// It became a tunnel, which lives as long as its sides want.
    pub is_tunnel: bool,
    /// The rate of its answer, bytes a second, and the bytes that nginx sent.
    pub rate: u64,
    /// See `rate`.
    pub sent: u64,
    /// The moment at which the upstream of its `mirror` had answered.
    pub mirrored: Option<u64>,
}

/// A part of a request's way: a step of the account, and µs.
pub type WayPart = (&'static str, u64);

impl RequestTime {
    /// nginx sends the bytes of the first second at once.
    // nginx: ngx_http_write_filter(), `limit_rate * (ngx_time() - start_sec + 1)`.
    pub fn is_paced(&self) -> bool {
        self.rate > 0 && self.sent > self.rate
    }

    /// The time before the head in which no upstream and no check was asked, under the name of the only thing that it can be. With several
    /// such things it is not divided.
    pub fn before(&self) -> WayPart {
        let rest = self.total.saturating_sub(self.after().unwrap_or(self.upstream.1) + self.upstream.0 + self.auth);
        let name = match (self.is_delayed, self.is_cached, self.has_body) {
            (true, false, false) => "delay",
            (false, true, false) => "cache",
            (false, false, true) => "read",
            _ => "held",
        };
        (name, rest)
    }

    /// The parts behind the head: the mirror, the rate, the body of the upstream, and the rest of writing.
    pub fn behind(&self) -> [WayPart; 4] {
        let all = if self.is_tunnel { 0 } else { self.after().unwrap_or(self.upstream.1) };
        let last = self.mirrored.zip(self.end).filter(|(mirrored, end)| mirrored + SAME_US >= *end);
        // The answer may have been sent long before: nothing in nginx tells when.
        let mirror = if last.is_some() { all } else { 0 };
        let rest = all - mirror;
        let rate = if self.is_paced() { rest } else { 0 };
        let body = self.upstream.1.min(rest - rate);
        [("mirror", mirror), ("rate", rate), ("body", body), ("write", rest - rate - body)]
    }

    /// From the head to the end. `None`: no head was sent.
    fn after(&self) -> Option<u64> {
        let (head, end) = self.head.zip(self.end)?;
        Some(end.checked_sub(head)?.min(self.total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a second, of which the head came after 300 ms.
    fn time() -> RequestTime {
        RequestTime { total: 500_000, head: Some(1_300_000), end: Some(1_500_000), ..RequestTime::default() }
    }

    #[test]
    fn time_before_the_head_has_the_name_of_the_only_thing_it_can_be() {
        type Change = fn(&mut RequestTime);
        let cases: [(WayPart, Change); 7] = [
            (("held", 300_000), |_| ()),
            (("delay", 300_000), |it| it.is_delayed = true),
            (("cache", 300_000), |it| it.is_cached = true),
            (("read", 300_000), |it| it.has_body = true),
            (("held", 300_000), |it| (it.is_delayed, it.has_body) = (true, true)),
            (("read", 190_000), |it| (it.has_body, it.upstream, it.auth) = (true, (100_000, 50_000), 10_000)),
            // No head was sent.
            (("held", 350_000), |it| (it.head, it.upstream) = (None, (100_000, 50_000))),
        ];
        for (wanted, change) in cases {
            let mut it = time();
            change(&mut it);
            assert_eq!(it.before(), wanted, "{it:?}");
        }
    }

    #[test]
    fn time_behind_the_head_is_the_rates_the_mirrors_or_the_bodies() {
        let of = |change: fn(&mut RequestTime)| {
            let mut it = time();
            change(&mut it);
            it.behind().map(|(_, us)| us)
        };
        assert_eq!(of(|it| it.upstream = (0, 150_000)), [0, 0, 150_000, 50_000]);
        assert_eq!(of(|it| (it.rate, it.sent) = (1000, 1500)), [0, 200_000, 0, 0]);
        // All bytes are those of the first second.
        assert_eq!(of(|it| (it.rate, it.sent) = (1000, 900)), [0, 0, 0, 200_000]);
        assert_eq!(of(|it| it.mirrored = Some(1_499_000)), [200_000, 0, 0, 0]);
        // Its mirror had answered before the answer was written.
        assert_eq!(of(|it| it.mirrored = Some(1_350_000)), [0, 0, 0, 200_000]);
        assert_eq!(of(|it| (it.head, it.upstream) = (None, (0, 7))), [0, 0, 7, 0]);
        assert_eq!(of(|it| it.is_tunnel = true), [0; 4]);
    }
}
