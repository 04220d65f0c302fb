//! The requests of access logs, in the order of their time.

use std::collections::HashMap;
use std::io::Read;

use weir_conf::log_format::{Entry, Format};
use weir_load::traffic::{LINE_BYTES_MAX, each_line};
use weir_words::{Said, said};

use super::plan::{Logged, Planner, bare};
use super::{NotReplayed, SAFE, Traffic, urls};
use crate::doors::Door;
use crate::request::SwapRequest;

/// Most requests that are kept of all logs.
const REQUESTS_MAX: usize = 2_000_000;
/// Fields that a format may have, and that a new request has of its own.
const NOT_SENT: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];
/// Lines from which the format is found.
const GUESS_LINES: usize = 200;

/// The lines that become requests.
#[derive(Clone, Debug, Default)]
pub struct LogWish {
    /// The format of the lines. `None`: it is found.
    pub format: Option<Format>,
    /// Requests are sent that announce an action.
    pub wants_actions: bool,
    /// Requests with other methods are sent. A log has no bodies, so only those without one can be.
    pub wants_all_methods: bool,
}

/// Makes requests of lines.
pub struct TrafficLogs<'p> {
    wish: &'p LogWish,
    planner: Option<&'p Planner<'p>>,
    doors: &'p [Door],
    /// The host of lines without one.
    host: &'p str,
    servers: Vec<usize>,
    clients: HashMap<Vec<u8>, u64>,
    traffic: Traffic,
}

impl<'p> TrafficLogs<'p> {
    /// Requests go to these doors. Without a planner, each goes to the first door of its scheme.
    pub fn new(
        wish: &'p LogWish,
        planner: Option<&'p Planner<'p>>,
        doors: &'p [Door],
        host: &'p str,
    ) -> TrafficLogs<'p> {
        let servers = (0..planner.map_or(0, Planner::servers)).collect();
        TrafficLogs { wish, planner, doors, host, servers, clients: HashMap::new(), traffic: Traffic::default() }
    }

    /// Reads a log; `name` is for messages.
    ///
    /// # Errors
    /// A sentence for the user: the log cannot be read, or its format is not known.
    pub fn log(&mut self, name: &str, bytes: Box<dyn Read>) -> Result<(), Said> {
        let mut first: Vec<Vec<u8>> = Vec::new();
        let mut format = self.wish.format.clone();
        let before = self.traffic.requests.len();
        let read = each_line(bytes, &mut |line| {
            match &format {
                Some(format) => self.line(format, line),
                None => {
                    first.push(line.to_vec());
                    if first.len() == GUESS_LINES {
                        format = guess(&first);
                        self.lines(format.as_ref(), &mut first);
                    }
                }
            }
            format.is_some() || first.len() < GUESS_LINES
        });
        read.map_err(|error| Said::from(format!("{name}: {error}")))?;
        if format.is_none() {
            format = guess(&first);
            self.lines(format.as_ref(), &mut first);
        }
        if format.is_none() {
            return Err(said!(
                "{name}: no known format reads its lines; name it with --format",
                "{name}: 알려진 형식으로 읽을 수 없습니다. --format으로 형식을 지정하세요"
            ));
        }
        let count = self.traffic.requests.len() - before;
        self.traffic.sources.push(said!("{name}: access log, {count} requests", "{name}: 액세스 로그, 요청 {count}건"));
        Ok(())
    }

    /// The requests of all logs.
    pub fn finish(self) -> Traffic {
        self.traffic
    }

    fn lines(&mut self, format: Option<&Format>, lines: &mut Vec<Vec<u8>>) {
        if let Some(format) = format {
            std::mem::take(lines).iter().for_each(|line| self.line(format, line));
        }
    }

    fn line(&mut self, format: &Format, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        match format.entry(line).filter(|_| line.len() < LINE_BYTES_MAX) {
            None => self.traffic.leave_out(NotReplayed::Unread),
            // The lines of an earlier run.
            Some(entry) if urls::is_own(&entry.agent) => {}
            Some(_) if self.traffic.requests.len() >= REQUESTS_MAX => self.traffic.leave_out(NotReplayed::Beyond),
            Some(entry) => match self.request(&entry) {
                Ok(request) => self.traffic.requests.push(request),
                Err(why) => self.traffic.leave_out(why),
            },
        }
    }

    fn request(&mut self, entry: &Entry) -> Result<SwapRequest, NotReplayed> {
        let method = String::from_utf8_lossy(&entry.method).into_owned();
        if method == "CONNECT" {
            return Err(NotReplayed::Tunnel);
        }
        let is_bodiless = SAFE.contains(&method.as_str()) || (method == "DELETE" && self.wish.wants_all_methods);
        if !is_bodiless {
            return Err(match self.wish.wants_all_methods {
                true => NotReplayed::NoBody,
                false => NotReplayed::Method(method),
            });
        }
        if !self.wish.wants_actions && urls::is_action(&entry.target) {
            return Err(NotReplayed::Action);
        }
        let mut request = match self.planner {
            Some(planner) => planner.request_of(Logged { entry, servers: &self.servers }),
            None => self.bare(entry, method),
        }
        .ok_or(NotReplayed::NoDoor)?;
        match entry.agent.as_slice() {
            // The client sent none: a configuration may refuse such requests.
            b"-" => {}
            b"" => request.set("User-Agent", urls::AGENT.as_bytes()),
            agent => request.set("User-Agent", agent),
        }
        request.set("Accept", b"*/*");
        request.set("Accept-Encoding", b"gzip");
        let of_request = entry.fields.iter().filter(|(name, _)| !NOT_SENT.contains(&name.as_str()));
        for (name, value) in of_request {
            match value.is_empty() {
                true => request.fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name.as_bytes())),
                false => request.set(name, value),
            }
        }
        let mut key = entry.client.clone();
        key.push(0);
        key.extend_from_slice(&entry.agent);
        let next = self.clients.len() as u64;
        request.client = *self.clients.entry(key).or_insert(next);
        let took = entry.took_ms.unwrap_or(0);
        // Lines without a time keep the order of the log.
        request.at_us = match entry.at_ms {
            Some(at) => at.saturating_sub(took).saturating_mul(1000),
            None => self.traffic.requests.len() as u64,
        };
        request.takes_cookies = true;
        Ok(request)
    }

    /// A request for a server whose configuration is not known.
    fn bare(&self, entry: &Entry, method: String) -> Option<SwapRequest> {
        let mut doors = self.doors.iter().enumerate().filter(|(_, door)| door.is_open());
        let (number, door) = doors.find(|(_, door)| entry.is_tls.is_none_or(|tls| tls == door.tls))?;
        let host = match entry.host.as_deref().map(bare).filter(|host| !host.is_empty() && *host != "_") {
            Some(host) if door.is_default() => host.to_owned(),
            Some(host) => format!("{host}:{}", door.port()),
            None => self.host.to_owned(),
        };
        Some(SwapRequest { door: number, method, host, target: entry.target.clone(), ..SwapRequest::default() })
    }
}

fn guess(lines: &[Vec<u8>]) -> Option<Format> {
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    Format::guess(&lines).map(|(_, format)| format)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_net::Address;

    fn door() -> Door {
        let at = "127.0.0.1:80".parse().unwrap();
        Door { address: Address::Tcp(at), tls: false, proxy_protocol: false, at: [Some(at); 3] }
    }

    fn read(text: &str, wish: &LogWish) -> Result<Traffic, Said> {
        let doors = [door()];
        let mut reader = TrafficLogs::new(wish, None, &doors, "own");
        reader.log("x.log", Box::new(std::io::Cursor::new(text.as_bytes().to_vec())))?;
        Ok(reader.finish())
    }

    const LINES: &str = r#"10.0.0.1 - - [26/Nov/2026:04:00:02 +0000] "GET /b HTTP/1.1" 200 5 "-" "curl"
10.0.0.2 - - [26/Nov/2026:04:00:01 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl"
10.0.0.1 - - [26/Nov/2026:04:00:03 +0000] "POST /c HTTP/1.1" 200 5 "-" "curl"
10.0.0.1 - - [26/Nov/2026:04:00:03 +0000] "GET /logout HTTP/1.1" 200 5 "-" "curl"
nonsense
"#;

    #[test]
    fn a_field_of_the_format_is_a_field_of_the_request() {
        let text = r#"$remote_addr [$time_iso8601] "$request" "$http_range" "$http_accept_encoding" "$http_cookie" "$http_connection""#;
        let wish = LogWish { format: Format::read(&[text]), ..LogWish::default() };
        let line = r#"10.0.0.1 [2026-11-26T04:00:02+00:00] "GET /b HTTP/1.1" "bytes=0-9" "-" "a=\x22b\x22" "close""#;
        let traffic = read(&format!("{line}\n"), &wish).unwrap();
        let field = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
        let expected = [field("Accept", b"*/*"), field("range", b"bytes=0-9"), field("cookie", b"a=\"b\"")];
        let own = traffic.requests[0].fields.iter().filter(|(name, _)| name != b"User-Agent");
        assert_eq!(own.cloned().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_client_without_a_program_has_none_here_either() {
        for (logged, sent) in
            [(r#" "-" "-""#, None), (r#" "-" "a \x22b\x22""#, Some("a \"b\"")), ("", Some(urls::AGENT))]
        {
            let line = format!("10.0.0.1 - - [26/Nov/2026:04:00:02 +0000] \"GET /b HTTP/1.1\" 200 5{logged}\n");
            let traffic = read(&line, &LogWish::default()).unwrap();
            assert_eq!(traffic.requests[0].field("user-agent"), sent.map(str::as_bytes), "{line}");
        }
    }

    #[test]
    fn lines_become_requests_and_the_others_are_counted() {
        let mut traffic = read(LINES, &LogWish::default()).unwrap();
        traffic.order(100, 0);
        let seen: Vec<(&[u8], u64, u64)> =
            traffic.requests.iter().map(|one| (one.target.as_slice(), one.client, one.at_us)).collect();
        assert_eq!(seen, [(b"/a".as_slice(), 1, 0), (b"/b".as_slice(), 0, 1_000_000)]);
        let why: Vec<(NotReplayed, u64)> = traffic.not_replayed.into_iter().collect();
        let all = [(NotReplayed::Method("POST".to_owned()), 1), (NotReplayed::Action, 1), (NotReplayed::Unread, 1)];
        assert_eq!(why, all);
        assert!(read("a\nb\n", &LogWish::default()).unwrap_err().contains("--format"));
    }
}
