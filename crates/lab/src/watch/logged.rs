//! Sums the lines of an access log of the user, which has fewer fields than the private log of a block.

use super::account::{Account, UpstreamPeer};
use super::sink::{PEERS_MAX, POLL_MS, POLL_NEAR_MS, acted, is_server, list, micros, step};

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
}

/// Adds one request. A figure that needs a field which the log does not have stays as it is.
pub fn sum(sums: &mut Account, line: &Logged<'_>) {
    let (status, cache) = (line.status, line.cache.unwrap_or(""));
    let [addresses, statuses, connects, headers, responses] =
        [line.addresses, line.statuses, line.connects, line.headers, line.responses]
            .map(|field| field.map_or(Vec::new(), list));
    sums.lines = Some(sums.lines.unwrap_or(0) + 1);
    // The first request of a TLS connection follows a handshake. A handshake without a request is not visible here.
    let is_first = line.number == Some("1");
    let is_shaken = line.protocol.is_some_and(|protocol| is_first && !protocol.is_empty() && protocol != "-");
    sums.handshakes += u64::from(is_shaken);
    sums.resumed += u64::from(is_shaken && line.reused == Some("r"));
    if let Some(time) = line.time_us {
        step(sums, "total", time);
    }
    // If no server is live, nginx logs the name of the upstream in place of an address. nginx:
    // ngx_http_upstream_connect(), `u->state->peer = u->peer.name` on NGX_BUSY.
    let tries = addresses.iter().filter(|address| is_server(address)).count() as u64;
    sums.exchanges += u64::from(tries > 0);
    sums.tries += tries;
    sums.no_server += u64::from(addresses.iter().any(|address| !is_server(address)));
    let (mut upstream_us, mut is_given) = (0, false);
    for (at, address) in addresses.iter().enumerate().filter(|(_, address)| is_server(address)) {
        let is_known = sums.peers.contains_key(*address);
        let answered = statuses.get(at).and_then(|status| status.parse::<u16>().ok());
        let of = |list: &[&str]| list.get(at).and_then(|text| micros(text));
        let (connect, response) = (of(&connects), of(&responses));
        // The whole answer is all that some logs have.
        let header = if line.headers.is_some() { of(&headers) } else { response };
        is_given |= answered == Some(status) && (header.is_some() || line.headers.or(line.responses).is_none());
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
        if let Some(header) = header {
            step(sums, "wait", header.saturating_sub(connect.unwrap_or(0)));
        }
        if let Some((header, response)) = header.zip(response) {
            step(sums, "body", response.saturating_sub(header));
        }
        upstream_us += response.unwrap_or(0);
    }
    kept(sums, line, cache, tries, upstream_us);
    // Without the addresses, nobody knows who made an answer.
    if status >= 400 && is_given {
        *sums.given.entry(status).or_default() += 1;
    } else if status >= 400 && line.addresses.is_some() && addresses.is_empty() && matches!(cache, "" | "-") {
        *sums.own.entry(status).or_default() += 1;
    }
    let (requests, connections) = (line.limits.0.unwrap_or("-"), line.limits.1.unwrap_or("-"));
    let rest = line.time_us.map_or(0, |time| time.saturating_sub(upstream_us));
    if line.time_us.is_some() && (line.responses.is_some() || line.addresses.is_some() && tries == 0) {
        // A delay by a limit is not time spent on writing.
        step(sums, if requests == "DELAYED" { "delay" } else { "write" }, rest);
    }
    acted(sums, requests, connections, rest);
    if status >= 500 || status == 499 {
        *sums.errors.entry(status.to_string()).or_default() += 1;
    }
}

/// Counts the effect of the cache on a request.
fn kept(sums: &mut Account, line: &Logged<'_>, cache: &str, tries: u64, upstream_us: u64) {
    if cache.is_empty() || cache == "-" {
        return;
    }
    *sums.cache.said.entry(cache.to_owned()).or_default() += 1;
    let is_fetch = tries > 0 || line.addresses.is_none() && matches!(cache, "MISS" | "EXPIRED" | "BYPASS");
    sums.cache.fetches += u64::from(is_fetch);
    let Some(time) = line.time_us else { return };
    let (ms, waited_us) = (time / 1000, time.saturating_sub(upstream_us));
    let near = ms % POLL_MS;
    let is_near = near <= POLL_NEAR_MS || POLL_MS - near <= POLL_NEAR_MS;
    // The origin added no time: the request waited for a cache lock, which nginx polls.
    let is_alone = line.addresses.is_some_and(|text| list(text).is_empty());
    sums.cache.polled += u64::from(is_alone && waited_us / 1000 >= POLL_MS - POLL_NEAR_MS && is_near);
}
