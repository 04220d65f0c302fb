//! Reads access logs, line by line, into requests.

use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;

use foldhash::{HashMap, HashSet};
use weir_conf::log_format::{Entry, Format, Unfit};

use super::said;
use super::wish::Wish;

/// The longest line that is read, in bytes; the rest of a longer line is skipped, and the line counts as unread.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Most requests that are kept, of all logs together.
const REQUESTS_MAX: usize = 5_000_000;
/// Most different calls: a method, a host and a target.
const CALLS_MAX: usize = 500_000;
/// Most clients.
const CLIENTS_MAX: usize = 1_000_000;
/// Most hosts.
const HOSTS_MAX: usize = 1_000;
/// Lines from which the format is found.
const GUESS_LINES: usize = 200;
/// Unread lines that are shown.
const SHOWN_MAX: usize = 3;
/// Characters of an unread line that are shown.
const SHOWN_CHARS: usize = 100;
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
    pub(super) status: u16,
}

/// A method and a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LoggedCall {
    pub(super) method: Box<str>,
    pub(super) host: u16,
    pub(super) target: Box<str>,
}

/// Why a line is left out.
enum Why {
    Long,
    Time,
    Unfit(Unfit),
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
}

/// All logs together.
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
}

impl AccessLogs {
    /// The requests that began in this time.
    pub(super) fn within(&self, from_ms: u64, to_ms: u64) -> Vec<LoggedRequest> {
        let in_time = |request: &&LoggedRequest| (from_ms..to_ms).contains(&request.at_ms);
        self.requests.iter().filter(in_time).copied().collect()
    }
}

pub(super) struct AccessLogReader<'w> {
    wish: &'w Wish,
    log: AccessLogs,
    calls: HashMap<LoggedCall, u32>,
    clients: HashMap<Box<[u8]>, u32>,
    hosts: HashMap<String, u16>,
    methods: HashSet<Box<str>>,
    /// The address of the first request.
    first_client: Option<Vec<u8>>,
    has_other_client: bool,
}

impl<'w> AccessLogReader<'w> {
    pub(super) fn new(wish: &'w Wish) -> AccessLogReader<'w> {
        AccessLogReader {
            wish,
            log: AccessLogs::default(),
            calls: HashMap::default(),
            clients: HashMap::default(),
            hosts: HashMap::default(),
            methods: HashSet::default(),
            first_client: None,
            has_other_client: false,
        }
    }

    /// Reads a log, also one that gzip compressed.
    pub(super) fn log(&mut self, name: &str, bytes: Box<dyn Read>) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let mut source = plain(bytes).map_err(failed)?;
        let mut first: Vec<Vec<u8>> = Vec::new();
        let mut format = self.wish.format.clone();
        let mut number = 0;
        let mut line = Vec::new();
        while next_line(&mut source, &mut line).map_err(failed)? {
            if let Some(format) = &format {
                number += 1;
                self.line(format, name, number, &line);
                continue;
            }
            first.push(line.clone());
            if first.len() == GUESS_LINES {
                format = Some(self.guess(name, &first)?);
                number = self.lines(format.as_ref(), name, &mut first);
            }
        }
        if !first.is_empty() {
            let format = self.guess(name, &first)?;
            self.lines(Some(&format), name, &mut first);
        }
        Ok(())
    }

    fn guess(&mut self, name: &str, first: &[Vec<u8>]) -> Result<Format, String> {
        let lines: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
        let Some((known, format)) = Format::guess(&lines) else {
            return Err(said::fill(said::LOAD_FROM_NO_FORMAT, self.wish.language, &[name]));
        };
        self.log.formats.push((name.to_owned(), known.to_owned()));
        Ok(format)
    }

    /// Reads the lines that were kept to find the format; returns their number.
    fn lines(&mut self, format: Option<&Format>, name: &str, first: &mut Vec<Vec<u8>>) -> u64 {
        let mut number = 0;
        for line in std::mem::take(first) {
            number += 1;
            if let Some(format) = format {
                self.line(format, name, number, &line);
            }
        }
        number
    }

    fn line(&mut self, format: &Format, name: &str, number: u64, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        self.log.counts.lines += 1;
        let read = if line.len() < LINE_BYTES_MAX { format.fit(line).map_err(Why::Unfit) } else { Err(Why::Long) };
        match read.and_then(|entry| Ok((entry.at_ms.ok_or(Why::Time)?, entry))) {
            Ok((at_ms, entry)) => self.entry(at_ms, &entry),
            Err(why) => {
                self.log.counts.unread += 1;
                if self.log.unread.len() < SHOWN_MAX {
                    let shown: String = String::from_utf8_lossy(line).chars().take(SHOWN_CHARS).collect();
                    let why = self.why(&why, format);
                    self.log.unread.push(format!("{name}:{number}: {} ({why})", shown.escape_debug()));
                }
            }
        }
    }

    /// The reason in words.
    fn why(&self, why: &Why, format: &Format) -> String {
        let fill = |text, value: &str| {
            let shown: String = value.chars().take(SHOWN_CHARS).collect();
            said::fill(text, self.wish.language, &[&shown.escape_debug().to_string()])
        };
        match why {
            Why::Long => fill(said::LOAD_FROM_WHY_LONG, &LINE_BYTES_MAX.to_string()),
            Why::Time => match format.time() {
                Some(name) => fill(said::LOAD_FROM_WHY_VALUE, &format!("${name}")),
                None => fill(said::LOAD_FROM_WHY_TIME, ""),
            },
            Why::Unfit(Unfit::NotJson) => fill(said::LOAD_FROM_WHY_JSON, ""),
            Why::Unfit(Unfit::Text(text)) => fill(said::LOAD_FROM_WHY_TEXT, text),
            Why::Unfit(Unfit::Value(name)) => fill(said::LOAD_FROM_WHY_VALUE, &format!("${name}")),
            Why::Unfit(Unfit::Target(target)) if target.is_empty() => fill(said::LOAD_FROM_WHY_NO_TARGET, ""),
            Why::Unfit(Unfit::Target(target)) => fill(said::LOAD_FROM_WHY_TARGET, target),
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

    fn entry(&mut self, at_ms: u64, entry: &Entry) {
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
        let call = LoggedCall { method, host, target: target.into() };
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
                    at_ms: at_ms.saturating_sub(took_ms),
                    took_ms: took_ms as u32,
                    client,
                    call,
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
        let AccessLogReader { wish, mut log, hosts, first_client, has_other_client, .. } = self;
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

/// The bytes of a log, without the compression of gzip.
fn plain(bytes: Box<dyn Read>) -> std::io::Result<Box<dyn BufRead>> {
    let mut plain = BufReader::new(bytes);
    let is_gzip = plain.fill_buf()?.starts_with(b"\x1f\x8b");
    Ok(match is_gzip {
        true => Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(plain))),
        false => Box::new(plain),
    })
}

/// Calls `see` for each line of a log, also of one that gzip compressed, until `see` returns false. Of a longer line it
/// sees [`LINE_BYTES_MAX`] bytes.
///
/// # Errors
/// The error of the reader.
pub fn each_line(bytes: Box<dyn Read>, see: &mut dyn FnMut(&[u8]) -> bool) -> std::io::Result<()> {
    let (mut source, mut line) = (plain(bytes)?, Vec::new());
    while next_line(&mut source, &mut line)? && see(&line) {}
    Ok(())
}

/// Reads a line without its end. False: there are no more. Of a longer line it keeps [`LINE_BYTES_MAX`] bytes.
fn next_line(source: &mut dyn BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let mut is_any = false;
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        let end = memchr::memchr(b'\n', bytes);
        let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let used = end.map_or(bytes.len(), |end| end + 1);
        source.consume(used);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(true);
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
