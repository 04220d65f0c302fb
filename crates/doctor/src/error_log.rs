//! The end of an error log: nginx's lines about upstreams and limits, counted by what they report, with the servers and
//! the locations that they name.
//!
//! The caller reads the files. A client chooses a part of each line, so only the words of nginx before the client's
//! address decide what a line reports.

pub mod causes;
mod places;

use std::collections::BTreeMap;

use weir_meter::Message;

use crate::view::View;
use causes::Cause;
use places::Places;

/// Most bytes at the end of a log that are read.
pub const TAIL_BYTES_MAX: usize = 256 << 10;
/// Most logs that are read.
pub const LOGS_MAX: usize = 8;
/// Most servers, and most locations, that are counted for one message.
const NAMES_MAX: usize = 64;
/// Longest name of a server or of a location.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of a line in which its time is looked for: a journal puts words of its own before it.
const TIME_WITHIN: usize = 120;
/// `2026/01/31 23:59:59`.
const TIME_BYTES: usize = 19;

/// How often each name was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameCounts(BTreeMap<String, u64>);

impl NameCounts {
    /// Counts a name. Names beyond the bound are not counted.
    fn add(&mut self, name: &str) {
        if self.0.len() < NAMES_MAX || self.0.contains_key(name) {
            *self.0.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// The names with their numbers, the most frequent first.
    pub fn sorted(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<(&str, u64)> = self.0.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}

/// The lines with one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The message.
    pub message: Message,
    /// How many lines report it.
    pub count: u64,
    /// The time of the first and of the last of these lines, in nginx's form. Empty if they have none.
    pub times: (String, String),
    /// The servers that they name, `ADDRESS:PORT`, `unix:PATH`, or a group.
    pub peers: NameCounts,
    /// The locations of their requests.
    pub places: NameCounts,
}

/// The messages at the ends of the logs, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedLogs {
    seen: BTreeMap<Message, Seen>,
    /// Lines that were read.
    pub lines: u64,
    /// The time of the first and of the last line that has one.
    pub times: (String, String),
}

/// Reads ends of logs.
pub struct LogReader<'v> {
    places: Places<'v>,
    log: CountedLogs,
}

impl<'v> LogReader<'v> {
    /// A reader that looks up the locations of requests in this configuration.
    pub fn new(view: &'v View<'v>) -> LogReader<'v> {
        LogReader { places: Places::new(view), log: CountedLogs::default() }
    }

    /// Reads the end of a log. If it is cut, its first line is only a part and counts for nothing.
    pub fn read(&mut self, bytes: &[u8], is_cut: bool) {
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines().skip(usize::from(is_cut)) {
            self.log.lines += 1;
            let time = time(line).unwrap_or_default();
            note(&mut self.log.times, time);
            let Some(cause) = Message::of(line).and_then(causes::of) else { continue };
            let told = Told::of(line);
            if cause.needs_upstream && told.peer.is_none() {
                continue;
            }
            let place = told.path.and_then(|path| self.places.of(told.server.unwrap_or_default(), path));
            let new = || Seen {
                message: cause.message,
                count: 0,
                times: Default::default(),
                peers: NameCounts::default(),
                places: NameCounts::default(),
            };
            let seen = self.log.seen.entry(cause.message).or_insert_with(new);
            seen.count += 1;
            note(&mut seen.times, time);
            told.peer.into_iter().for_each(|peer| seen.peers.add(peer));
            place.into_iter().for_each(|place| seen.places.add(&place));
        }
    }

    /// Everything that was read.
    pub fn finish(self) -> CountedLogs {
        self.log
    }
}

impl CountedLogs {
    /// The messages that this filter accepts, each with its cause: the most frequent first, and effects of other
    /// messages last.
    pub fn seen(&self, accepts: impl Fn(&Cause) -> bool) -> Vec<(&Seen, &'static Cause)> {
        let known = self.seen.values().filter_map(|seen| Some((seen, causes::of(seen.message)?)));
        let mut all: Vec<_> = known.filter(|(_, cause)| accepts(cause)).collect();
        all.sort_by_key(|(seen, cause)| {
            let row = causes::CAUSES.iter().position(|it| it.message == cause.message);
            (seen.message == Message::NoLive, std::cmp::Reverse(seen.count), row)
        });
        all
    }

    /// How many lines report a cause that this rule is about.
    pub fn speaks_for(&self, rule: &str) -> u64 {
        let about = self.seen(|cause| cause.rules.contains(&rule));
        about.iter().map(|(seen, _)| seen.count).fold(0, u64::saturating_add)
    }
}

/// Keeps the first and the last time.
fn note(times: &mut (String, String), time: &str) {
    if !time.is_empty() {
        if times.0.is_empty() {
            times.0 = time.to_owned();
        }
        times.1 = time.to_owned();
    }
}

/// The time of a line, as nginx writes it.
fn time(line: &str) -> Option<&str> {
    const FORM: &[u8; TIME_BYTES] = b"0000/00/00 00:00:00";
    let fits = |part: &[u8]| {
        part.iter().zip(FORM).all(|(byte, form)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form })
    };
    let begin = line.as_bytes().get(..line.len().min(TIME_WITHIN))?;
    let at = begin.windows(TIME_BYTES).position(fits)?;
    line.get(at..at + TIME_BYTES)
}

/// The parts of a line that describe its request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told<'l> {
    server: Option<&'l str>,
    path: Option<&'l str>,
    peer: Option<&'l str>,
}

impl<'l> Told<'l> {
    fn of(line: &'l str) -> Told<'l> {
        let Some((_, rest)) = line.split_once(", client: ") else { return Told::default() };
        let server = rest.split_once(", server: ").map(|(_, rest)| rest.split(',').next().unwrap_or_default());
        let request = rest.split_once(", request: \"").map(|(_, rest)| rest);
        let target = request.and_then(|request| request.split(' ').nth(1));
        let path = target.map(|target| target.split(['?', '"']).next().unwrap_or_default());
        let after = request.unwrap_or(rest);
        let url = after.split_once("upstream: \"").and_then(|(_, rest)| rest.split('"').next());
        Told {
            server: server.filter(|name| is_plain(name)),
            path: path.filter(|path| path.starts_with('/')),
            peer: url.and_then(peer).filter(|peer| is_plain(peer)),
        }
    }
}

/// The server of an upstream's URL.
fn peer(url: &str) -> Option<&str> {
    // A request of `stream` names the address alone.
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = match rest.strip_prefix("unix:") {
        Some(path) => path.find(':').map_or(rest.len(), |at| at + "unix:".len()),
        None => rest.find('/').unwrap_or(rest.len()),
    };
    rest.get(..end).filter(|peer| !peer.is_empty())
}

/// Whether a name may be shown: a client may have written it, and a terminal obeys control characters.
fn is_plain(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX && name.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CONF: &str = "http { server { listen 80; server_name shop.test; location / { return 404; }
        location /api/ { proxy_pass http://a; } location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; } } }";

    fn read(text: &str, is_cut: bool) -> CountedLogs {
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/n", CONF), "/n", "/");
        let view = View::new(&tree);
        let mut reader = LogReader::new(&view);
        reader.read(text.as_bytes(), is_cut);
        reader.finish()
    }

    fn refused(second: u32, path: &str) -> String {
        format!(
            "2026/01/01 10:00:{second:02} [error] 7#7: *{second} connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.9, server: shop.test, request: \"GET {path} HTTP/1.1\", upstream: \"http://127.0.0.1:3000{path}\", host: \"shop.test\"\n"
        )
    }

    #[test]
    fn lines_are_counted_with_their_servers_and_locations() {
        let text = refused(1, "/api/a?b=1")
            + &refused(3, "/api/c")
            + "2026/01/01 10:00:04 [error] 7#7: *9 no live upstreams while connecting to upstream, client: ::1, server: shop.test, request: \"GET / HTTP/1.1\", upstream: \"http://group/\", host: \"x\"\n"
            + "2026/01/01 10:00:05 [crit] 7#7: *9 connect() to unix:/run/php.sock failed (2: No such file or directory) while connecting to upstream, client: ::1, server: shop.test, request: \"GET /i.php HTTP/1.1\", upstream: \"fastcgi://unix:/run/php.sock:\", host: \"x\"\n";
        let log = read(&text, false);
        let seen = log.seen(|cause| cause.symptoms.contains(&crate::symptom::Symptom::BadGateway));
        let names: Vec<&str> = seen.iter().map(|(seen, _)| seen.message.name()).collect();
        assert_eq!(names, ["refused", "no_socket", "no_live"], "the effect is last");
        let first = seen[0].0;
        assert_eq!((first.count, first.peers.sorted()), (2, vec![("127.0.0.1:3000", 2)]));
        assert_eq!(first.places.sorted(), [("location /api/ (/n:2)", 2)]);
        assert_eq!(first.times, ("2026/01/01 10:00:01".to_owned(), "2026/01/01 10:00:03".to_owned()));
        assert_eq!(seen[1].0.peers.sorted(), [("unix:/run/php.sock", 1)]);
        assert_eq!(seen[1].0.places.sorted(), [("location ~ \\.php$ (/n:2)", 1)]);
        assert_eq!((log.lines, log.times.1.as_str()), (4, "2026/01/01 10:00:05"));
        assert_eq!((log.speaks_for("localhost_dual_stack"), log.speaks_for("passive_ejection")), (2, 1));
    }

    #[test]
    fn a_cut_line_counts_for_nothing() {
        assert_eq!(read(&refused(1, "/api/"), true), CountedLogs::default());
    }

    /// The words of a client, and words about clients, count for nothing.
    #[test]
    fn only_nginxs_own_words_count() {
        for line in [
            "2026/01/01 10:00:01 [error] 7#7: *1 open() \"/x\" failed (2: No such file or directory), client: ::1, server: a, request: \"GET /no%20live%20upstreams HTTP/1.1\", upstream: \"http://a/\"",
            "2026/01/01 10:00:01 [error] 7#7: *1 recv() failed (104: Connection reset by peer) while reading client request line, client: ::1, server: a",
            "2026/01/01 10:00:01 [error] 7#7: recv() failed (111: Connection refused) while resolving, resolver: 127.0.0.53:53",
        ] {
            assert!(read(line, false).seen(|_| true).is_empty(), "{line}");
        }
        let escape = refused(1, "/api/").replace("127.0.0.1:3000/api/", "\u{1b}[2J/");
        let log = read(&escape, false);
        assert!(log.seen(|_| true).is_empty(), "a name with control characters is no name");
    }

    #[test]
    fn names_are_bounded() {
        let lines: String = (0..200).map(|port| refused(1, "/api/").replace(":3000/", &format!(":{port}/"))).collect();
        let log = read(&lines, false);
        let (seen, _) = log.seen(|_| true)[0];
        assert_eq!((seen.count, seen.peers.sorted().len()), (200, NAMES_MAX));
    }

    #[test]
    fn a_journals_lines_have_their_time() {
        let line = format!("Jan 01 10:00:01 host nginx[7]: {}", refused(2, "/api/"));
        assert_eq!(read(&line, false).times.0, "2026/01/01 10:00:02");
        assert_eq!(time("no time"), None);
        assert_eq!(time("é2026/01/01 10:00:00"), Some("2026/01/01 10:00:00"));
    }

    #[test]
    fn the_servers_of_upstreams_are_read() {
        for (url, expected) in [
            ("http://127.0.0.1:3000/a", Some("127.0.0.1:3000")),
            ("https://[::1]:8443/", Some("[::1]:8443")),
            ("fastcgi://unix:/run/php.sock:", Some("unix:/run/php.sock")),
            ("http://unix:/run/a.sock:/b", Some("unix:/run/a.sock")),
            ("10.0.0.1:5432", Some("10.0.0.1:5432")),
            ("", None),
        ] {
            assert_eq!(peer(url), expected, "{url}");
        }
    }
}
