//! Receives nginx's private log as datagrams on a socket of the block, and sums the lines as they arrive.
//!
//! If the socket's queue is full, the datagram is lost and nginx goes on. So these sums give only shares and means.
//! The client and `stub_status` count all requests; the difference is the number of lost lines.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use weir_net::worker;

use super::account::{Account, Acted, UpstreamPeer};
use super::way::RequestTime;

/// The status of an upgraded connection (RFC 9110, 15.2.2).
const UPGRADED: u16 = 101;
/// The longest line that is read. nginx cuts its lines at 2048.
const LINE_MAX: usize = 4096;
/// Most servers that are counted separately.
pub(super) const PEERS_MAX: usize = 1024;
/// The first characters of a line of the private log, after syslog's header.
pub const MARK: &str = "weirwhy|";
/// The first characters of a line of a subrequest of `mirror`.
pub const MIRROR_MARK: &str = "weirmirror|";
/// The fields after that mark: the request that it belongs to, and the moment of its end.
pub const MIRROR_FIELDS: &str = "$connection.$connection_requests|$msec";
/// Most mirrored requests whose own line has not come yet. Further ones are counted without their mirror.
const MIRRORS_MAX: usize = 4096;
/// The fields after the mark, as nginx variables.
pub const FIELDS: &str = "$status|$request_time|$upstream_addr|$upstream_status|$upstream_connect_time|$upstream_header_time|$upstream_response_time|$upstream_cache_status|$ssl_session_reused|$connection_requests|$ssl_protocol";
/// Further fields, if the configuration limits requests or connections (nginx 1.17.6 and later).
pub const LIMITS: &str = "|$limit_req_status|$limit_conn_status";
/// The place of [`LIMITS`], if nothing is limited.
pub const NO_LIMITS: &str = "|-|-";
/// A further field, if the configuration has a cache: the fields of the answer that forbid to store it, as words.
pub const CACHES: &str = "|$weirwhy_cookie$weirwhy_control$weirwhy_accel$weirwhy_expires$weirwhy_vary";
/// The place of [`CACHES`], if the configuration has no cache.
pub const NO_CACHES: &str = "|";
/// The words of that field. They are weir's names for these reasons (`$weir_cache_reason`).
pub const CACHE_MAPS: [&str; 5] = [
    "map $upstream_http_set_cookie $weirwhy_cookie { '' ''; default 'set-cookie '; }",
    "map $upstream_http_cache_control $weirwhy_control { default ''; '~*no-store' 'no-store '; '~*no-cache' 'no-cache '; '~*private' 'private '; '~*(max-age|s-maxage)=0' 'lifetime-zero '; }",
    "map $upstream_http_x_accel_expires $weirwhy_accel { default ''; '0' 'x-accel-expires-0 '; }",
    "map $upstream_http_expires $weirwhy_expires { default ''; '0' 'lifetime-zero '; '-1' 'lifetime-zero '; }",
    "map $upstream_http_vary $weirwhy_vary { default ''; '*' 'vary-star '; }",
];
/// The words that these maps have.
const REASONS: [&str; 7] =
    ["set-cookie", "no-store", "no-cache", "private", "lifetime-zero", "x-accel-expires-0", "vary-star"];
/// nginx checks every 500 ms whether the fetch of another request has ended.
// nginx: ngx_http_file_cache_lock(), `ngx_add_timer(&c->wait_event, (timer > 500) ? 500 : timer)`.
pub(super) const POLL_MS: u64 = 500;
/// How close to a multiple of that a time has to be.
pub(super) const POLL_NEAR_MS: u64 = 25;
/// A request that was this long in the cache waited for another one's fetch, µs: a tenth of the time between two checks. A hit takes no
/// time that nginx's clock shows, and a disk some milliseconds.
const WAITED_US: u64 = POLL_MS * 1000 / 10;

/// A socket that is read until the process ends.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    sums: Arc<Mutex<Account>>,
}

impl Sink {
    /// Binds the socket and begins to read.
    pub fn open(path: &Path) -> std::io::Result<Sink> {
        let socket = UnixDatagram::bind(path)?;
        // nginx's workers run as another user.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
        let sink = Sink::default();
        let sums = sink.sums.clone();
        worker::block_aside("log sink", move || {
            let mut line = vec![0; LINE_MAX];
            let mut mirrors = Mirrors::new();
            while let Ok(length) = socket.recv(&mut line) {
                let text = String::from_utf8_lossy(line.get(..length).unwrap_or_default()).into_owned();
                add(&mut sums.lock().unwrap_or_else(PoisonError::into_inner), &mut mirrors, &text);
            }
        })?;
        Ok(sink)
    }

    /// Counts a read of the account. nginx counts it as a request but does not log it.
    pub fn asks(&self) {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).asked += 1;
    }

    /// The sums so far.
    pub fn account(&self) -> Account {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The moments at which the mirrors of requests had answered, by connection and request. nginx logs the subrequest first.
type Mirrors = BTreeMap<String, u64>;

/// Adds one line.
fn add(sums: &mut Account, mirrors: &mut Mirrors, text: &str) -> Option<()> {
    if let Some((_, fields)) = text.split_once(MIRROR_MARK) {
        let (request, end) = fields.trim_end().split_once('|')?;
        if mirrors.len() < MIRRORS_MAX {
            mirrors.insert(request.to_owned(), micros(end)?);
        }
        return Some(());
    }
    let (_, fields) = text.split_once(MARK)?;
    let mut fields = fields.trim_end().split('|');
    let mut next = || fields.next();
    let (status, time) = (next()?.parse::<u16>().ok()?, micros(next()?)?);
    let (addresses, statuses) = (list(next()?), list(next()?));
    let (connects, headers, responses) = (list(next()?), list(next()?), list(next()?));
    let cache = next()?;
    let is_resumed = next()? == "r";
    // The first request of a TLS connection follows a handshake. A handshake without a request is not visible here.
    let is_first = next().is_some_and(|number| number == "1");
    let is_shaken = next().is_some_and(|protocol| is_first && !protocol.is_empty() && protocol != "-");
    let (requests, connections) = (next().unwrap_or("-"), next().unwrap_or("-"));
    let forbids = next().unwrap_or("");
    let is_cached = !matches!(cache, "" | "-");
    let mut it = RequestTime {
        total: time,
        head: next().and_then(micros),
        end: next().and_then(micros),
        rate: next().and_then(|rate| rate.parse().ok()).unwrap_or(0),
        is_delayed: requests == "DELAYED",
        is_cached: is_cached && cache != "BYPASS",
        is_tunnel: status == UPGRADED,
        ..RequestTime::default()
    };
    let field_rate = next().and_then(|rate| rate.parse::<u64>().ok());
    it.sent = next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    it.has_body = next().and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > 0);
    it.mirrored = next().and_then(|request| mirrors.remove(request));
    it.auth = next().and_then(micros).unwrap_or(0);
    sums.lines = Some(sums.lines.unwrap_or(0) + 1);
    sums.handshakes += u64::from(is_shaken);
    sums.resumed += u64::from(is_shaken && is_resumed);
    step(sums, "total", time);
    if status == UPGRADED {
        *sums.lives.entry(rounded(time / 1000)).or_default() += 1;
    }
    // If no server is live, nginx logs the name of the upstream in place of an address. nginx:
    // ngx_http_upstream_connect(), `u->state->peer = u->peer.name` on NGX_BUSY.
    let tries = addresses.iter().filter(|address| is_server(address)).count() as u64;
    sums.exchanges += u64::from(tries > 0);
    sums.tries += tries;
    sums.no_server += u64::from(addresses.iter().any(|address| !is_server(address)));
    let is_given = tried(sums, &mut it, status, [addresses.as_slice(), &statuses, &connects, &headers, &responses]);
    if is_cached {
        *sums.cache.said.entry(cache.to_owned()).or_default() += 1;
        sums.cache.fetches += u64::from(tries > 0);
        forbidden(sums, if tries > 0 { forbids } else { "" });
        let (ms, waited_us) = (time / 1000, time.saturating_sub(it.upstream.0 + it.upstream.1));
        let near = ms % POLL_MS;
        let is_near = near <= POLL_NEAR_MS || POLL_MS - near <= POLL_NEAR_MS;
        // The origin added no time: the request waited for a cache lock, which nginx polls.
        sums.cache.polled += u64::from(addresses.is_empty() && waited_us / 1000 >= POLL_MS - POLL_NEAR_MS && is_near);
    }
    if status >= 400 && is_given {
        *sums.given.entry(status).or_default() += 1;
    } else if status >= 400 && addresses.is_empty() && !is_cached {
        *sums.own.entry(status).or_default() += 1;
    }
    divided(sums, &it, field_rate);
    acted(sums, requests, connections, it.before().1);
    if status >= 500 || status == 499 {
        *sums.errors.entry(status.to_string()).or_default() += 1;
    }
    Some(())
}

/// Adds the tries at upstreams, and whether the client got the answer of one. The lists have a value for each try: address, status, and
/// the times to the connection, the head and the end.
fn tried(
    sums: &mut Account,
    it: &mut RequestTime,
    status: u16,
    [addresses, statuses, connects, headers, responses]: [&[&str]; 5],
) -> bool {
    let mut is_given = false;
    for (at, address) in addresses.iter().enumerate().filter(|(_, address)| is_server(address)) {
        let is_known = sums.peers.contains_key(*address);
        let answered = statuses.get(at).and_then(|status| status.parse::<u16>().ok());
        let of = |list: &[&str]| list.get(at).and_then(|text| micros(text));
        let (connect, header, response) = (of(connects), of(headers), of(responses));
        is_given |= header.is_some() && answered == Some(status);
        if is_known || sums.peers.len() < PEERS_MAX {
            let peer: &mut UpstreamPeer = sums.peers.entry((*address).to_owned()).or_default();
            peer.requests += 1;
            peer.bad += u64::from(answered.is_none_or(|status| status >= 500));
            if let Some(header) = header {
                peer.header.0 += 1;
                peer.header.1 += header;
            }
        }
        if let Some(connect) = connect {
            step(sums, "connect", connect);
        }
        match header {
            Some(header) => step(sums, "wait", header.saturating_sub(connect.unwrap_or(0))),
            None => step(sums, "failed", response.unwrap_or(0).saturating_sub(connect.unwrap_or(0))),
        }
        // The body of an answer that the next try replaces comes before the head of the client's answer.
        it.upstream.0 += it.upstream.1 + header.or(response).unwrap_or(0);
        it.upstream.1 = header.zip(response).map_or(0, |(header, response)| response.saturating_sub(header));
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
pub(super) fn acted(sums: &mut Account, requests: &str, connections: &str, rest: u64) {
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
pub(super) fn is_server(address: &str) -> bool {
    address.starts_with("unix:") || address.parse::<std::net::SocketAddr>().is_ok()
}

pub(super) fn step(sums: &mut Account, name: &str, micros: u64) {
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
pub(super) fn list(text: &str) -> Vec<&str> {
    if text.is_empty() || text == "-" {
        Vec::new()
    } else {
        text.split(", ").flat_map(|part| part.split(" : ")).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_are_summed() {
        let mut sums = Account::default();
        let head = "<190>Nov 22 19:00:00 nginx: ";
        let lines = [
            "weirwhy|200|0.020|10.0.0.1:80|200|0.001|0.018|0.019|-|.|1|TLSv1.3",
            "weirwhy|200|0.030|10.0.0.1:80, 10.0.0.2:80|502, 200|-, 0.000|-, 0.020|0.001, 0.028||r|1|TLSv1.2",
            "weirwhy|200|0.000|-|-|-|-|-||r|2|TLSv1.2",
            "weirwhy|502|0.001|10.0.0.1:80|502|-|-|0.001||",
            "weirwhy|200|0.503|-|-|-|-|-|HIT|",
            "weirwhy|200|0.000|-|-|-|-|-|HIT|",
            "weirwhy|200|0.300|10.0.0.1:80|200|0.000|0.300|0.300|MISS|",
        ];
        for line in lines {
            add(&mut sums, &mut Mirrors::new(), &format!("{head}{line}")).unwrap();
        }
        assert_eq!((sums.exchanges, sums.tries, sums.handshakes, sums.resumed), (4, 5, 2, 1));
        let one = &sums.peers["10.0.0.1:80"];
        assert_eq!((one.requests, one.bad, one.header), (4, 2, (2, 318_000)));
        assert_eq!(sums.steps["connect"], (3, 1_000));
        assert_eq!(sums.steps["total"], (7, 854_000));
        assert_eq!((sums.cache.said["HIT"], sums.cache.fetches, sums.cache.polled), (2, 1, 1));
        assert_eq!(sums.errors, [("502".to_owned(), 1)].into());
        assert_eq!(add(&mut sums, &mut Mirrors::new(), "something else"), None);
        assert_eq!(add(&mut sums, &mut Mirrors::new(), "weirwhy|2"), None);
    }

    #[test]
    fn a_tunnel_has_a_life_and_no_body() {
        let mut sums = Account::default();
        for time in ["2.004", "2.031", "0.512"] {
            add(
                &mut sums,
                &mut Mirrors::new(),
                &format!("weirwhy|101|{time}|10.0.0.1:80|101|0.000|0.003|{time}|-|.|1|-"),
            )
            .unwrap();
        }
        assert_eq!(sums.lives, [(510, 1), (2000, 2)].into());
        assert_eq!((sums.steps.get("body"), sums.steps["wait"].0), (None, 3));
        assert_eq!([7, 99, 104, 59_999].map(rounded), [7, 99, 100, 59_000]);
    }

    /// The upstream's name stands in the log if no server was tried: it is not a failing server.
    #[test]
    fn a_group_without_a_server_is_no_server() {
        let mut sums = Account::default();
        for line in [
            "weirwhy|502|0.000|app|502|-|-|0.000|-|.|1|-",
            "weirwhy|200|0.020|10.0.0.1:80, app : 10.0.0.2:80|502, 502, 200|0.001, -, 0.002|-, -, 0.018|0.001, 0.000, 0.019|-|.|1|-",
            "weirwhy|200|0.020|unix:/run/a.sock|200|0.001|0.018|0.019|-|.|1|-",
        ] {
            add(&mut sums, &mut Mirrors::new(), line).unwrap();
        }
        assert_eq!(sums.peers.keys().collect::<Vec<_>>(), ["10.0.0.1:80", "10.0.0.2:80", "unix:/run/a.sock"]);
        assert_eq!((sums.exchanges, sums.tries, sums.no_server, sums.lines), (2, 3, 2, Some(3)));
        // The times of the second server are its own, not those of the group before it.
        assert_eq!(sums.peers["10.0.0.2:80"].header, (1, 18_000));
        assert!(sums.own.is_empty(), "a group without a server is not the edge's own answer: {:?}", sums.own);
    }

    #[test]
    fn what_limits_do_is_booked_to_them() {
        let mut sums = Account::default();
        for line in [
            "weirwhy|503|0.000|-|-|-|-|-|-|.|1|-|REJECTED|-",
            "weirwhy|503|0.000|-|-|-|-|-|-|.|1|-|PASSED|REJECTED",
            "weirwhy|200|0.480|10.0.0.1:80|200|0.000|0.020|0.020|-|.|1|-|DELAYED|PASSED",
            "weirwhy|200|0.020|10.0.0.1:80|200|0.000|0.020|0.020|-|.|1|-|REJECTED_DRY_RUN|PASSED",
            "weirwhy|403|0.000|-|-|-|-|-|-|.|1|-||",
            "weirwhy|404|0.010|10.0.0.1:80|404|0.000|0.010|0.010|-|.|1|-||",
        ] {
            add(&mut sums, &mut Mirrors::new(), line).unwrap();
        }
        let acted = |refused, delayed, delay_us| Acted { refused, delayed, delay_us: Some(delay_us) };
        assert_eq!(sums.policies["limit_req"], acted(1, 1, 460_000));
        assert_eq!(sums.policies["limit_conn"], acted(1, 0, 0));
        assert_eq!(sums.steps["delay"], (1, 460_000));
        assert_eq!(sums.steps.get("write"), None, "a delay is no writing");
        assert_eq!((&sums.own, &sums.given), (&[(403, 1), (503, 2)].into(), &[(404, 1)].into()));
    }

    /// Lines that nginx 1.22.1 and 1.31.5 wrote (bytes and names made shorter).
    #[test]
    fn each_part_of_a_requests_time_has_its_step() {
        let mut sums = Account::default();
        let mut mirrors = Mirrors::new();
        for line in [
            // auth_request for 201 ms; limit_rate by the field; a mirror of 500 ms; a wait for the lock; a body of 300 kB.
            "weirwhy|200|0.309|10.0.0.1:80|200|0.000|0.108|0.108|-|.|1|-|-|-||1796060547.711|1796060547.711|0|-|300|-|3.1|0.201",
            "weirwhy|200|4.006|10.0.0.1:80|200|0.000|0.001|0.001|-|.|1|-|-|-||1796060547.725|1796060551.730|10000|10000|40300|-|6.1|-",
            "weirmirror|8.1|1796060552.241",
            "weirwhy|200|0.501|10.0.0.1:80|200|0.000|0.102|0.102|-|.|1|-|-|-||1796060551.841|1796060552.241|0|-|300|-|8.1|-",
            "weirwhy|200|0.500|-|-|-|-|-|HIT|.|1|-|-|-||1796060552.503|1796060552.503|0|-|300|-|16.1|-",
            "weirwhy|200|1.412|10.0.0.1:80|200|0.000|0.101|0.101|-|.|1|-|-|-||1796060555.619|1796060555.619|0|-|300|300000|26.1|-",
            "weirwhy|504|0.400|10.0.0.1:80|504|0.001|-|0.400|-|.|1|-|-|-||1796060555.619|1796060555.619|0|-|300|-|27.1|-",
        ] {
            add(&mut sums, &mut mirrors, line).unwrap();
        }
        let us = |name: &str| sums.steps.get(name).map_or(0, |step| step.1);
        assert_eq!(
            (us("auth"), us("rate"), us("mirror"), us("cache"), us("read")),
            (201_000, 4_005_000, 400_000, 500_000, 1_311_000)
        );
        assert_eq!((us("failed"), us("write"), us("held")), (399_000, 0, 0));
        let parts: u64 = sums.steps.iter().filter(|(name, _)| *name != "total").map(|(_, (_, us))| us).sum();
        // Each of nginx's times may be rounded by one millisecond.
        assert!(parts.abs_diff(us("total")) <= 6_000, "{parts}: {:?}", sums.steps);
        assert_eq!((sums.paced.answers, sums.paced.by_field, sums.paced.rates), (1, 1, 10_000));
        assert_eq!((sums.cache.waited, mirrors.len()), (Some(1), 0));
    }

    #[test]
    fn what_forbids_to_store_is_counted_once_an_answer() {
        let mut sums = Account::default();
        for line in [
            "weirwhy|200|0.010|10.0.0.1:80|200|0.000|0.010|0.010|MISS|.|1|-|-|-|set-cookie no-store ",
            "weirwhy|200|0.010|10.0.0.1:80|200|0.000|0.010|0.010|MISS|.|1|-|PASSED|-|lifetime-zero lifetime-zero ",
            "weirwhy|200|0.010|10.0.0.1:80|200|0.000|0.010|0.010|MISS|.|1|-|-|-|",
            "weirwhy|200|0.000|-|-|-|-|-|HIT|.|1|-|-|-|set-cookie ",
        ] {
            add(&mut sums, &mut Mirrors::new(), line).unwrap();
        }
        let of = |word: &str| (word.to_owned(), 1);
        assert_eq!(sums.cache.reasons, [of("set-cookie"), of("no-store"), of("lifetime-zero")].into());
    }

    #[test]
    fn a_socket_takes_lines_from_anybody() {
        let path = std::env::temp_dir().join(format!("weir-lab-sink-{}", std::process::id()));
        let sink = Sink::open(&path).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.send_to(b"<190>x nginx: weirwhy|200|0.001|-|-|-|-|-||", &path).unwrap();
        for _ in 0..30_000 {
            if sink.account().steps.contains_key("total") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(sink.account().steps["total"], (1, 1_000));
        std::fs::remove_file(path).unwrap();
    }
}
