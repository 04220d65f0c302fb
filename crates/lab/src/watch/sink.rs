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

use super::account::Account;
use super::logged::{self, Logged, micros};
use super::way::RequestTime;

/// The longest line that is read. nginx cuts its lines at 2048.
const LINE_MAX: usize = 4096;
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
    let (status, time) = (next()?.parse().ok()?, micros(next()?)?);
    let mut line = Logged { status, time_us: Some(time), ..Logged::default() };
    (line.addresses, line.statuses) = (Some(next()?), Some(next()?));
    (line.connects, line.headers, line.responses) = (Some(next()?), Some(next()?), Some(next()?));
    (line.cache, line.reused) = (Some(next()?), Some(next()?));
    (line.number, line.protocol) = (next(), next());
    (line.limits, line.forbids) = ((next(), next()), next().unwrap_or(""));
    let mut way = RequestTime { head: next().and_then(micros), end: next().and_then(micros), ..RequestTime::default() };
    way.rate = next().and_then(|rate| rate.parse().ok()).unwrap_or(0);
    line.field_rate = next().and_then(|rate| rate.parse().ok());
    way.sent = next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    way.has_body = next().and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > 0);
    way.mirrored = next().and_then(|request| mirrors.remove(request));
    way.auth = next().and_then(micros).unwrap_or(0);
    line.way = Some(way);
    logged::sum(sums, &line);
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::account::Acted;
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
