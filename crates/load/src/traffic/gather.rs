//! Gathers the requests of all logs: their calls, clients and hosts.

use std::net::IpAddr;

use foldhash::{HashMap, HashSet};
use weir_conf::log_format::Entry;

use super::account::RecordingSource;
use super::detail::{CallTraits, CallVersion, Details, RecordedTunnel};
use super::said;
use super::wish::Wish;

/// Most requests that are kept, of all logs together.
const REQUESTS_MAX: usize = 5_000_000;
/// Most different calls: a method, a host and a target.
const CALLS_MAX: usize = 500_000;
/// Most clients.
const CLIENTS_MAX: usize = 1_000_000;
/// Most hosts.
const HOSTS_MAX: usize = 1_000;
/// Most different methods.
const METHODS_MAX: usize = 100;
/// The longest method.
const METHOD_BYTES_MAX: usize = 32;
/// Ends of the names of static files.
const ASSETS: [&str; 20] = [
    "css", "js", "mjs", "map", "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "woff", "woff2", "ttf",
    "otf", "eot", "mp4", "webm", "wasm",
];

/// A request of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedRequest {
    /// When it began, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// How long it took; 0 if the log does not say.
    pub(super) took_ms: u32,
    pub(super) client: u32,
    /// Its index in [`AccessLogs::calls`].
    pub(super) call: u32,
    /// Its number in [`AccessLogs::details`].
    pub(super) detail: u32,
    pub(super) status: u16,
}

/// A method and a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LoggedCall {
    pub(super) method: Box<str>,
    pub(super) host: u16,
    pub(super) target: Box<str>,
    pub(super) traits: CallTraits,
}

/// A request on its way into [`AccessLogs`].
pub(super) struct SeenRequest<'e> {
    /// When it began, in milliseconds since 1970.
    pub(super) at_ms: u64,
    pub(super) entry: &'e Entry,
    pub(super) traits: CallTraits,
    /// Its number in [`AccessLogs::details`].
    pub(super) detail: u32,
}

/// Lines and requests that the script does not have, and why.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) unread: u64,
    pub(super) other_methods: u64,
    pub(super) other_hosts: u64,
    pub(super) assets: u64,
    pub(super) beyond: u64,
    /// Requests with hashes in the places of secrets.
    pub(super) hashed: u64,
    /// Requests whose body the recording does not have.
    pub(super) bodies_missing: u64,
    /// Requests whose body is no text.
    pub(super) bodies_unfit: u64,
    /// WebSockets whose messages the recording does not have.
    pub(super) silent_websockets: u64,
    /// Messages of clients that are no text, or that the recording has only in part.
    pub(super) messages_unfit: u64,
}

/// All logs and recordings together.
#[derive(Debug, Default)]
pub(super) struct AccessLogs {
    /// By their time.
    pub(super) requests: Vec<LoggedRequest>,
    pub(super) calls: Vec<LoggedCall>,
    pub(super) counts: Counts,
    /// The first unread lines, each with its place.
    pub(super) unread: Vec<String>,
    /// The logs with the name of their format.
    pub(super) formats: Vec<(String, String)>,
    /// The host of the requests, if the lines have hosts.
    pub(super) host: Option<String>,
    /// The address of all requests, if there is only one; empty if the lines have none.
    pub(super) only_client: Option<String>,
    /// False if every time is a whole second.
    pub(super) has_fractions: bool,
    /// The parts of requests beyond their lines.
    pub(super) details: Details,
    pub(super) tunnels: Vec<RecordedTunnel>,
    pub(super) recordings: Vec<RecordingSource>,
    /// Requests of recordings, by the version of HTTP: 1, 2 and 3.
    pub(super) versions: [u64; 3],
}

impl AccessLogs {
    /// False if everything comes from recordings.
    pub(super) fn has_lines(&self) -> bool {
        self.counts.lines > 0 || self.recordings.is_empty()
    }

    /// The version that most requests of a script use. `None`: HTTP/1.1, because no request has another one.
    pub(super) fn protocol(&self) -> Option<CallVersion> {
        let has = |version| self.calls.iter().any(|call| call.traits.version == Some(version));
        match (has(CallVersion::Http3), has(CallVersion::Http2)) {
            // A script with HTTP/3 cannot have WebSockets.
            (true, _) if self.tunnels.is_empty() => Some(CallVersion::Http3),
            (true, _) | (_, true) => Some(CallVersion::Http2),
            _ => None,
        }
    }

    /// How many clients there were for each recorded one.
    pub(super) fn clients_each(&self) -> f64 {
        let (mut recorded, mut all) = (0.0, 0.0);
        for (share, requests) in self.recordings.iter().flat_map(|source| &source.shares) {
            recorded += *requests as f64;
            all += *requests as f64 / share.max(1e-6);
        }
        // Logs have all clients.
        let lines = (self.requests.len() as f64 - recorded).max(0.0);
        if recorded > 0.0 { (all + lines) / (recorded + lines) } else { 1.0 }
    }

    /// The requests that began in this time.
    pub(super) fn within(&self, from_ms: u64, to_ms: u64) -> Vec<LoggedRequest> {
        let in_time = |request: &&LoggedRequest| (from_ms..to_ms).contains(&request.at_ms);
        self.requests.iter().filter(in_time).copied().collect()
    }
}

/// Reads logs, one after another, into one [`AccessLogs`].
pub(super) struct TrafficGatherer<'w> {
    pub(super) wish: &'w Wish,
    pub(super) log: AccessLogs,
    calls: HashMap<LoggedCall, u32>,
    clients: HashMap<Box<[u8]>, u32>,
    hosts: HashMap<String, u16>,
    methods: HashSet<Box<str>>,
    /// The address of the first request.
    first_client: Option<Vec<u8>>,
    has_other_client: bool,
    /// Messages of WebSockets so far.
    pub(super) messages: usize,
}

impl<'w> TrafficGatherer<'w> {
    pub(super) fn new(wish: &'w Wish) -> TrafficGatherer<'w> {
        TrafficGatherer {
            wish,
            log: AccessLogs::default(),
            calls: HashMap::default(),
            clients: HashMap::default(),
            hosts: HashMap::default(),
            methods: HashSet::default(),
            first_client: None,
            has_other_client: false,
            messages: 0,
        }
    }

    /// The method, if a step of a script can have it: the script writes it as the step's word.
    fn method(&mut self, method: &[u8]) -> Option<Box<str>> {
        let text = std::str::from_utf8(method).ok()?;
        if let Some(known) = self.methods.get(text) {
            return Some(known.clone());
        }
        let fits = (1..=METHOD_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_uppercase())
            && crate::script::is_method(&text.to_ascii_lowercase())
            && self.methods.len() < METHODS_MAX;
        fits.then(|| {
            self.methods.insert(text.into());
            text.into()
        })
    }

    /// Takes a request.
    pub(super) fn request(&mut self, seen: &SeenRequest<'_>) {
        let SeenRequest { at_ms, entry, traits, detail } = *seen;
        let Some(method) = self.method(&entry.method) else {
            self.log.counts.other_methods += 1;
            return;
        };
        let target = as_text(&entry.target);
        if self.wish.without_assets && is_asset(&target) {
            self.log.counts.assets += 1;
            return;
        }
        let Some(host) = self.host(entry.host.as_deref().unwrap_or_default()) else {
            self.log.counts.other_hosts += 1;
            return;
        };
        let call = LoggedCall { method, host, target: target.into(), traits };
        let next = self.log.calls.len();
        let call = match self.calls.get(&call) {
            Some(known) => Some(*known),
            None if next < CALLS_MAX => {
                self.log.calls.push(call.clone());
                self.calls.insert(call, next as u32);
                Some(next as u32)
            }
            None => None,
        };
        match &self.first_client {
            None => self.first_client = Some(entry.client.clone()),
            Some(first) => self.has_other_client |= *first != entry.client,
        }
        let client = self.client(entry);
        let took_ms = entry.took_ms.unwrap_or(0).min(u64::from(u32::MAX));
        match (call, client) {
            (Some(call), Some(client)) if self.log.requests.len() < REQUESTS_MAX => {
                self.log.has_fractions |= !at_ms.is_multiple_of(1000) || !took_ms.is_multiple_of(1000);
                self.log.requests.push(LoggedRequest {
                    at_ms,
                    took_ms: took_ms as u32,
                    client,
                    call,
                    detail,
                    status: entry.status.unwrap_or(0),
                });
            }
            _ => self.log.counts.beyond += 1,
        }
    }

    /// The number of a host. An address is no name: a scan of the network sends it.
    fn host(&mut self, text: &str) -> Option<u16> {
        let bare = text
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
            .map_or(text, |(host, _)| host);
        let next = self.hosts.len();
        match self.hosts.get(bare) {
            Some(known) => Some(*known),
            None if next < HOSTS_MAX => {
                self.hosts.insert(bare.to_owned(), next as u16);
                Some(next as u16)
            }
            None => None,
        }
    }

    /// The number of a client: an address with a program.
    fn client(&mut self, entry: &Entry) -> Option<u32> {
        let mut key = entry.client.clone();
        key.push(0);
        key.extend_from_slice(&entry.agent);
        let next = self.clients.len();
        match self.clients.get(key.as_slice()) {
            Some(known) => Some(*known),
            None if next < CLIENTS_MAX => {
                self.clients.insert(key.into(), next as u32);
                Some(next as u32)
            }
            None => None,
        }
    }

    /// The requests of one host, by their time.
    pub(super) fn finish(self) -> Result<AccessLogs, String> {
        let TrafficGatherer { wish, mut log, hosts, first_client, has_other_client, .. } = self;
        let only = first_client.filter(|_| !has_other_client);
        log.only_client = only.map(|client| String::from_utf8_lossy(&client).into_owned());
        let mut totals = vec![0_u64; hosts.len()];
        let host_of =
            |log: &AccessLogs, request: &LoggedRequest| log.calls.get(request.call as usize).map(|call| call.host);
        for request in &log.requests {
            if let Some(total) = host_of(&log, request).and_then(|host| totals.get_mut(usize::from(host))) {
                *total += 1;
            }
        }
        let total = |host: &u16| totals.get(usize::from(*host)).copied().unwrap_or(0);
        let is_name = |name: &str| !name.is_empty() && name.parse::<IpAddr>().is_err();
        let chosen = match &wish.host {
            Some(name) => hosts.get(name.as_str()).map(|host| (name.as_str(), *host)),
            None => {
                let all = hosts.iter().map(|(name, host)| (name.as_str(), *host));
                // The order of a map is random: equal totals are told apart by the name.
                all.max_by_key(|(name, host)| (is_name(name), total(host), std::cmp::Reverse(*name)))
            }
        };
        let Some((name, chosen)) = chosen else {
            let none = wish.host.clone().unwrap_or_default();
            return Err(if none.is_empty() {
                said::fill(said::LOAD_FROM_NO_REQUEST, wish.language, &[])
            } else {
                said::fill(said::LOAD_FROM_NO_HOST, wish.language, &[&none])
            });
        };
        log.host = (!name.is_empty()).then(|| name.to_owned());
        let all = log.requests.len();
        let calls = std::mem::take(&mut log.calls);
        log.requests.retain(|request| calls.get(request.call as usize).is_some_and(|call| call.host == chosen));
        log.calls = calls;
        log.counts.other_hosts += (all - log.requests.len()) as u64;
        log.requests.sort_by_key(|request| request.at_ms);
        match log.requests.is_empty() {
            true => Err(said::fill(said::LOAD_FROM_NO_REQUEST, wish.language, &[])),
            false => Ok(log),
        }
    }
}

/// The target as a script can have it: bytes beyond ASCII and the characters of templates are escaped.
fn as_text(target: &[u8]) -> String {
    let mut text = String::with_capacity(target.len());
    for byte in target {
        match byte {
            b'{' | b'}' | b'$' | b'"' | b'\\' | b'#' | b'`' | 0x80.. => text.push_str(&format!("%{byte:02X}")),
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

/// True if the path ends like a static file.
pub(super) fn is_asset(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(_, end)| ASSETS.iter().any(|asset| asset.eq_ignore_ascii_case(end)))
}
