//! Sums the lines of nginx's access logs: of the private log of a block ([`super::sink`]), and of a log of the user, which has
//! fewer fields.

use super::account::{Account, Acted, UpstreamPeer};
use super::way::RequestTime;

/// The status of an upgraded connection (RFC 9110, 15.2.2).
const UPGRADED: u16 = 101;
/// Most servers that are counted separately.
const PEERS_MAX: usize = 1024;
/// The words that these maps have.
const REASONS: [&str; 7] =
    ["set-cookie", "no-store", "no-cache", "private", "lifetime-zero", "x-accel-expires-0", "vary-star"];
/// nginx checks every 500 ms whether the fetch of another request has ended.
// nginx: ngx_http_file_cache_lock(), `ngx_add_timer(&c->wait_event, (timer > 500) ? 500 : timer)`.
const POLL_MS: u64 = 500;
/// How close to a multiple of that a time has to be.
const POLL_NEAR_MS: u64 = 25;
/// A request that was this long in the cache waited for another one's fetch, µs: a tenth of the time between two checks. A hit takes no
/// time that nginx's clock shows, and a disk some milliseconds.
const WAITED_US: u64 = POLL_MS * 1000 / 10;

/// The fields of a line about a request, as nginx writes them. `None`: the log does not have this field.
#[derive(Clone, Debug, Default)]
pub struct Logged<'a> {
    /// `$status`.
    pub status: u16,
    /// `$request_time`, µs.
    pub time_us: Option<u64>,
    /// `$upstream_addr`.
    pub addresses: Option<&'a str>,
    /// `$upstream_status`.
    pub statuses: Option<&'a str>,
    /// `$upstream_connect_time`.
    pub connects: Option<&'a str>,
    /// `$upstream_header_time`.
    pub headers: Option<&'a str>,
    /// `$upstream_response_time`.
    pub responses: Option<&'a str>,
    /// `$upstream_cache_status`.
    pub cache: Option<&'a str>,
    /// `$ssl_session_reused`.
    pub reused: Option<&'a str>,
    /// `$connection_requests`.
    pub number: Option<&'a str>,
    /// `$ssl_protocol`.
    pub protocol: Option<&'a str>,
    /// `$limit_req_status` and `$limit_conn_status`.
    pub limits: (Option<&'a str>, Option<&'a str>),
    /// The reasons that forbid to store the answer, as words of [`super::sink::CACHE_MAPS`].
    pub forbids: &'a str,
    /// `X-Accel-Limit-Rate` of the answer, bytes a second.
    pub field_rate: Option<u64>,
    /// The figures of the request's way that only the private log has.
    pub way: Option<RequestTime>,
}

/// Adds one request. A figure that needs a field which the log does not have stays as it is.
pub fn sum(sums: &mut Account, line: &Logged<'_>) {
    let cache = line.cache.unwrap_or("-");
    let (is_cached, is_private) = (!matches!(cache, "" | "-"), line.way.is_some());
    let (requests, connections) = (line.limits.0.unwrap_or("-"), line.limits.1.unwrap_or("-"));
    let mut way = RequestTime {
        total: line.time_us.unwrap_or(0),
        is_delayed: requests == "DELAYED",
        // Without the moment of the head, a cache and a slow client are not told apart.
        is_cached: is_private && is_cached && cache != "BYPASS",
        is_tunnel: line.status == UPGRADED,
        ..line.way.clone().unwrap_or_default()
    };
    sums.lines = Some(sums.lines.unwrap_or(0) + 1);
    // The first request of a TLS connection follows a handshake. A handshake without a request is not visible here.
    let is_first = line.number == Some("1");
    let is_shaken = line.protocol.is_some_and(|protocol| is_first && !protocol.is_empty() && protocol != "-");
    sums.handshakes += u64::from(is_shaken);
    sums.resumed += u64::from(is_shaken && line.reused == Some("r"));
    if let Some(time) = line.time_us {
        step(sums, "total", time);
        if way.is_tunnel {
            *sums.lives.entry(rounded(time / 1000)).or_default() += 1;
        }
    }
    // If no server is live, nginx logs the name of the upstream in place of an address. nginx:
    // ngx_http_upstream_connect(), `u->state->peer = u->peer.name` on NGX_BUSY.
    let addresses = line.addresses.map_or(Vec::new(), list);
    let tries = addresses.iter().filter(|address| is_server(address)).count() as u64;
    sums.exchanges += u64::from(tries > 0);
    sums.tries += tries;
    sums.no_server += u64::from(addresses.iter().any(|address| !is_server(address)));
    let is_given = tried(sums, line, &addresses, &mut way);
    if is_cached {
        kept(sums, line, tries, way.upstream.0 + way.upstream.1);
    }
    // Without the addresses, nobody knows who made an answer.
    if line.status >= 400 && is_given {
        *sums.given.entry(line.status).or_default() += 1;
    } else if line.status >= 400 && line.addresses.is_some() && addresses.is_empty() && !is_cached {
        *sums.own.entry(line.status).or_default() += 1;
    }
    // Without the times of upstreams, nobody knows how much of the time is left.
    if line.time_us.is_some() && (line.responses.is_some() || line.addresses.is_some() && tries == 0) {
        divided(sums, &way, line.field_rate);
    }
    acted(sums, requests, connections, way.before().1);
    if line.status >= 500 || line.status == 499 {
        *sums.errors.entry(line.status.to_string()).or_default() += 1;
    }
}

/// Adds the tries at upstreams, and whether the client got the answer of one. Each list has a value for each try.
fn tried(sums: &mut Account, line: &Logged<'_>, addresses: &[&str], way: &mut RequestTime) -> bool {
    let [statuses, connects, headers, responses] =
        [line.statuses, line.connects, line.headers, line.responses].map(|field| field.map_or(Vec::new(), list));
    let mut is_given = false;
    for (at, address) in addresses.iter().enumerate().filter(|(_, address)| is_server(address)) {
        let is_known = sums.peers.contains_key(*address);
        let answered = statuses.get(at).and_then(|status| status.parse::<u16>().ok());
        let of = |list: &[&str]| list.get(at).and_then(|text| micros(text));
        let (connect, response) = (of(&connects), of(&responses));
        // The whole answer is all that some logs have.
        let header = if line.headers.is_some() { of(&headers) } else { response };
        let is_timed = line.headers.or(line.responses).is_some();
        is_given |= answered == Some(line.status) && (header.is_some() || !is_timed);
        if is_known || sums.peers.len() < PEERS_MAX {
            let peer: &mut UpstreamPeer = sums.peers.entry((*address).to_owned()).or_default();
            peer.requests += 1;
            peer.bad += u64::from(line.statuses.is_some() && answered.is_none_or(|status| status >= 500));
            if let Some(header) = header {
                peer.header.0 += 1;
                peer.header.1 += header;
            }
        }
        if let Some(connect) = connect {
            step(sums, "connect", connect);
        }
        match (header, response) {
            (Some(header), _) => step(sums, "wait", header.saturating_sub(connect.unwrap_or(0))),
            (None, Some(response)) => step(sums, "failed", response.saturating_sub(connect.unwrap_or(0))),
            (None, None) => {}
        }
        // The body of an answer that the next try replaces comes before the head of the client's answer.
        way.upstream.0 += way.upstream.1 + header.or(response).unwrap_or(0);
        way.upstream.1 = header.zip(response).map_or(0, |(header, response)| response.saturating_sub(header));
    }
    is_given
}

/// Adds the parts of a request's time, but for those of its upstreams.
fn divided(sums: &mut Account, it: &RequestTime, field_rate: Option<u64>) {
    let before = it.before();
    let parts = [before, ("auth", it.auth)].into_iter().chain(it.behind());
    parts.filter(|(_, us)| *us > 0).for_each(|(name, us)| step(sums, name, us));
    if it.is_cached {
        let waited = before.0 == "cache" && before.1 >= WAITED_US;
        sums.cache.waited = Some(sums.cache.waited.unwrap_or(0) + u64::from(waited));
    }
    if it.is_paced() {
        sums.paced.answers += 1;
        sums.paced.by_field += u64::from(field_rate == Some(it.rate));
        sums.paced.rates += it.rate;
    }
}

/// Counts the effect of the cache on a request.
fn kept(sums: &mut Account, line: &Logged<'_>, tries: u64, upstream_us: u64) {
    let cache = line.cache.unwrap_or("-");
    *sums.cache.said.entry(cache.to_owned()).or_default() += 1;
    let is_fetch = tries > 0 || line.addresses.is_none() && matches!(cache, "MISS" | "EXPIRED" | "BYPASS");
    sums.cache.fetches += u64::from(is_fetch);
    forbidden(sums, if tries > 0 { line.forbids } else { "" });
    let Some(time) = line.time_us else { return };
    let (ms, waited_us) = (time / 1000, time.saturating_sub(upstream_us));
    let near = ms % POLL_MS;
    let is_near = near <= POLL_NEAR_MS || POLL_MS - near <= POLL_NEAR_MS;
    // The origin added no time: the request waited for a cache lock, which nginx polls.
    let is_alone = line.addresses.is_some_and(|text| list(text).is_empty());
    sums.cache.polled += u64::from(is_alone && waited_us / 1000 >= POLL_MS - POLL_NEAR_MS && is_near);
}

/// A number with its first two digits alone, so that there are few different ones.
fn rounded(ms: u64) -> u64 {
    let mut unit = 1;
    while ms / unit >= 100 {
        unit *= 10;
    }
    ms / unit * unit
}

/// Counts the reasons for which an answer may not be stored, each once.
fn forbidden(sums: &mut Account, words: &str) {
    for reason in REASONS {
        if words.split_ascii_whitespace().any(|word| word == reason) {
            *sums.cache.reasons.entry(reason.to_owned()).or_default() += 1;
        }
    }
}

/// Counts the effect of limits on a request, from `$limit_req_status` and `$limit_conn_status`.
fn acted(sums: &mut Account, requests: &str, connections: &str, rest: u64) {
    for (directive, word) in [("limit_req", requests), ("limit_conn", connections)] {
        if !matches!(word, "REJECTED" | "DELAYED") {
            continue;
        }
        let acted: &mut Acted = sums.policies.entry(directive.to_owned()).or_default();
        acted.refused += u64::from(word == "REJECTED");
        acted.delayed += u64::from(word == "DELAYED");
        let delay = if word == "DELAYED" { rest } else { 0 };
        acted.delay_us = Some(acted.delay_us.unwrap_or(0) + delay);
    }
}

/// Whether it is the address of a server, not the name of a group.
fn is_server(address: &str) -> bool {
    address.starts_with("unix:") || address.parse::<std::net::SocketAddr>().is_ok()
}

fn step(sums: &mut Account, name: &str, micros: u64) {
    let step = sums.steps.entry(name.to_owned()).or_default();
    step.0 += 1;
    step.1 += micros;
}

/// Seconds with milliseconds, as nginx writes them.
pub(super) fn micros(text: &str) -> Option<u64> {
    text.parse::<f64>().ok().filter(|seconds| *seconds >= 0.0).map(|seconds| (seconds * 1e6).round() as u64)
}

/// Values of several tries, separated by `,` between servers and by `:` between groups.
// nginx: ngx_http_upstream_addr_variable() and its neighbours.
fn list(text: &str) -> Vec<&str> {
    if text.is_empty() || text == "-" {
        Vec::new()
    } else {
        text.split(", ").flat_map(|part| part.split(" : ")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_digits() {
        assert_eq!([7, 99, 104, 59_999].map(rounded), [7, 99, 100, 59_000]);
    }

    /// A log that has no moment of the head: what is left of the time is not divided.
    #[test]
    fn a_log_of_the_user_divides_less() {
        let mut sums = Account::default();
        let line = Logged {
            status: 200,
            time_us: Some(500_000),
            addresses: Some("10.0.0.1:80"),
            responses: Some("0.100"),
            cache: Some("MISS"),
            ..Logged::default()
        };
        sum(&mut sums, &line);
        sum(&mut sums, &Logged { responses: None, ..line });
        assert_eq!((sums.steps["wait"], sums.steps["held"]), ((1, 100_000), (1, 400_000)));
        assert_eq!((sums.steps.get("cache"), sums.cache.waited), (None, None));
    }
}
