//! The parameters of a run, and the checked form of them that the threads get.

use std::time::Duration;

use weir_net::{Instant, clock};
use weir_words::{Said, say};

use crate::client::line::STREAMS_MAX;
use crate::client::{Protocol, Resolver, Tuning};
use crate::texts;
use crate::url::{Scheme, Url};

/// Most requests at the same time, on all connections.
pub const STREAMS_TOTAL_MAX: usize = 100_000;
/// Most connections of one run.
pub const CONNECTIONS_MAX: usize = 50_000;
/// Most threads of one run.
pub const THREADS_MAX: usize = 64;
/// The longest run.
pub const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// The longest wait for one answer.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// Most requests a second, on all threads.
pub const RATE_MAX: f64 = 10_000_000.0;

/// The request, the target, the rate, and the end.
#[derive(Clone, Debug)]
pub struct QuickRun {
    /// `http://host[:port]/path?query`, or `https://`.
    pub url: String,
    /// `GET` and so on.
    pub method: String,
    /// Additional header fields; `Host`, `User-Agent`, `Accept` and `Connection` replace weir's own.
    pub headers: Vec<(String, String)>,
    /// The body; sent with its length if it is not empty, or if the method is POST, PUT or PATCH.
    pub body: Vec<u8>,
    /// Number of connections, limited to 1 to [`CONNECTIONS_MAX`].
    pub connections: usize,
    /// Number of threads, at least 1, at most the number of connections and [`THREADS_MAX`].
    pub threads: usize,
    /// Time after which no request is sent; at most [`DURATION_MAX`]. weir waits for the answers to current requests.
    pub duration: Duration,
    /// Most requests in total.
    pub requests_max: Option<u64>,
    /// Time limit of one request, including its connect; at most [`TIMEOUT_MAX`].
    pub timeout: Duration,
    /// Requests at a fixed rate; `None` is a closed loop.
    pub rate: Option<Rate>,
    /// True: accept any certificate.
    pub insecure: bool,
    /// Use HTTP/2 or HTTP/3 with this many requests at the same time on each connection, at most [`STREAMS_MAX`].
    pub streams: Option<(Protocol, usize)>,
    /// How connections are used; without [`QuickRun::streams`], `exchanges_max` alone counts.
    pub tuning: Tuning,
}

/// A fixed rate: an open model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// This many a second, evenly spread.
    Constant(f64),
    /// This many a second on average, at random.
    Poisson(f64),
}

impl Default for QuickRun {
    fn default() -> QuickRun {
        QuickRun {
            url: String::new(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            connections: 64,
            threads: 1,
            duration: Duration::from_secs(5),
            requests_max: None,
            timeout: Duration::from_secs(10),
            rate: None,
            insecure: false,
            streams: None,
            tuning: Tuning::default(),
        }
    }
}

/// A prepared run.
#[derive(Clone)]
pub(super) struct QuickPlan {
    pub url: Url,
    pub method: Vec<u8>,
    pub head: Vec<u8>,
    pub body: Vec<u8>,
    pub timeout: Duration,
    pub rate: Option<Rate>,
    pub insecure: bool,
    pub streams: Option<(Protocol, usize)>,
    pub tuning: Tuning,
    pub resolver: Resolver,
    pub begin: Instant,
    pub end: Instant,
}

impl QuickPlan {
    /// Checks the parameters, and begins the clock of the run.
    pub fn of(quick: &QuickRun) -> Result<QuickPlan, Said> {
        let url = Url::parse(&quick.url)?;
        if url.scheme == Scheme::Http && matches!(quick.streams, Some((Protocol::Http3, _))) {
            return Err(say!(texts::HTTP3_NEEDS_HTTPS, &quick.url));
        }
        match quick.rate {
            Some(Rate::Constant(rate) | Rate::Poisson(rate)) if !(rate > 0.0 && rate <= RATE_MAX) => {
                return Err(say!(texts::BAD_LOAD_RATE, RATE_MAX));
            }
            _ => {}
        }
        let streams = quick.streams.map_or(1, |(_, streams)| streams);
        if quick.connections.saturating_mul(streams) > STREAMS_TOTAL_MAX || !(1..=STREAMS_MAX).contains(&streams) {
            return Err(say!(texts::BAD_STREAMS, STREAMS_MAX, STREAMS_TOTAL_MAX));
        }
        let head = head(quick, &url)?;
        let begin = clock::precise();
        Ok(QuickPlan {
            url,
            method: quick.method.clone().into_bytes(),
            head,
            body: quick.body.clone(),
            timeout: quick.timeout.min(TIMEOUT_MAX),
            rate: quick.rate,
            insecure: quick.insecure,
            streams: quick.streams,
            tuning: quick.tuning,
            resolver: Resolver::default(),
            begin,
            end: begin + quick.duration.min(DURATION_MAX),
        })
    }
}

/// Request line and fields. The error names the part that cannot be sent.
fn head(quick: &QuickRun, url: &Url) -> Result<Vec<u8>, Said> {
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if !is_token(&quick.method) {
        return Err(say!(texts::NO_METHOD, &quick.method));
    }
    let given = |name: &str| quick.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut out = format!("{} {} HTTP/1.1\r\n", quick.method, url.target);
    let agent = concat!("weir-load/", env!("CARGO_PKG_VERSION"));
    let basic = url.basic();
    let mut ours = vec![("Host", url.authority.as_str()), ("User-Agent", agent), ("Accept", "*/*")];
    ours.extend(basic.as_deref().map(|basic| ("Authorization", basic)));
    for (name, value) in ours.into_iter().filter(|(name, _)| !given(name)) {
        out += &format!("{name}: {value}\r\n");
    }
    for (name, value) in &quick.headers {
        if !is_token(name) || value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(say!(texts::NO_HEADER, name, value));
        }
        out += &format!("{name}: {value}\r\n");
    }
    let has_body = !quick.body.is_empty() || matches!(quick.method.as_str(), "POST" | "PUT" | "PATCH");
    if has_body && !given("Content-Length") && !given("Transfer-Encoding") {
        out += &format!("Content-Length: {}\r\n", quick.body.len());
    }
    out += "\r\n";
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn heads() {
        let quick = QuickRun {
            method: "POST".to_owned(),
            headers: vec![("host".to_owned(), "b".to_owned())],
            body: b"xyz".to_vec(),
            ..QuickRun::default()
        };
        let head = String::from_utf8(head(&quick, &Url::parse("http://a/x").unwrap()).unwrap()).unwrap();
        assert!(head.starts_with("POST /x HTTP/1.1\r\nUser-Agent: weir-load/"), "{head}");
        assert!(head.ends_with("\r\nAccept: */*\r\nhost: b\r\nContent-Length: 3\r\n\r\n"), "{head}");
    }
}
