//! The access logs of a configuration: where they are, in which format, and the requests of their lines.

use std::path::{Path, PathBuf};

use weir_conf::log_format::{Entry, Format};
use weir_conf::{Statement, Tree};

use super::followed::FollowedFile;
use crate::said::{Said, say};
use crate::watch::logged::Logged;

/// Most logs that are read.
const LOGS_MAX: usize = 8;
/// The variables that tell where the time of a request went, in the order in which they help.
const TELLING: [&str; 5] =
    ["request_time", "upstream_addr", "upstream_status", "upstream_response_time", "upstream_header_time"];

/// An access log that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLog {
    /// The file.
    pub path: PathBuf,
    /// The formats in which lines are written to it. `None`: lines of this format cannot be read.
    pub formats: Vec<(String, Option<Format>)>,
    /// Only requests that meet a condition are logged (`if=`).
    pub is_partial: bool,
    /// Lines may wait in a buffer.
    pub is_buffered: bool,
}

/// The access logs of a tree. Of several logs of one level, which have the same requests, the one with the most figures.
/// A relative path is below `prefix`. `default`: the log of a program whose configuration names none.
pub fn logs(tree: &Tree, prefix: &Path, default: Option<&Path>) -> Vec<NamedLog> {
    let mut found: Vec<NamedLog> = Vec::new();
    let mut is_named = false;
    for http in tree.named("http") {
        let mut open: Vec<&Statement> = vec![http];
        while let Some(block) = open.pop() {
            open.extend(block.children().iter().filter(|child| child.is_block()));
            let own: Vec<&Statement> = block.named("access_log").collect();
            is_named |= block.name == "http" && !own.is_empty();
            let read = own.into_iter().filter_map(|statement| named(http, statement, prefix));
            let best = read.max_by_key(|log| log.formats.first().map_or(0, |(_, format)| telling(format.as_ref())));
            let Some(best) = best else { continue };
            let has_room = found.len() < LOGS_MAX;
            match found.iter_mut().find(|known| known.path == best.path) {
                Some(known) => known.add(best),
                None if has_room => found.push(best),
                None => {}
            }
        }
        if let Some(default) = default.filter(|_| !is_named) {
            let formats = vec![("combined".to_owned(), Format::named(http, "combined"))];
            found.push(NamedLog { path: default.to_owned(), formats, is_partial: false, is_buffered: false });
        }
    }
    found
}

fn telling(format: Option<&Format>) -> usize {
    format.map_or(0, |format| 1 + TELLING.iter().filter(|name| format.has(name)).count())
}

fn named(http: &Statement, statement: &Statement, prefix: &Path) -> Option<NamedLog> {
    let path = statement.text(0);
    if path == "off" || path.starts_with("syslog:") || path.contains('$') {
        return None;
    }
    let words: Vec<&str> = statement.words().skip(2).map(|word| word.text.as_str()).collect();
    let format = words.first().copied().filter(|word| !word.contains('=') && *word != "gzip").unwrap_or("combined");
    let has = |flag: &str| words.iter().any(|word| word.starts_with(flag));
    Some(NamedLog {
        path: prefix.join(path),
        formats: vec![(format.to_owned(), Format::named(http, format).filter(|format| format.has("status")))],
        is_partial: has("if="),
        is_buffered: has("buffer=") || has("gzip"),
    })
}

impl NamedLog {
    fn add(&mut self, other: NamedLog) {
        self.is_partial |= other.is_partial;
        self.is_buffered |= other.is_buffered;
        for format in other.formats {
            if !self.formats.contains(&format) {
                self.formats.push(format);
            }
        }
    }
}

/// A log that is followed.
#[derive(Debug)]
pub struct AccessLog {
    named: NamedLog,
    file: FollowedFile,
    /// Lines of no known form, and all lines.
    unfit: (u64, u64),
}

impl AccessLog {
    /// Opens a log; also gives its last lines. The error says why it cannot be read.
    pub fn open(named: NamedLog) -> Result<(AccessLog, Vec<u8>), Said> {
        let shown = named.path.display().to_string();
        if let Some((name, _)) = named.formats.iter().find(|(_, format)| format.is_none()) {
            return Err(say!(NOW_FORMAT_WITHOUT, shown, name));
        }
        let (file, past) = FollowedFile::open(&named.path).map_err(|error| say!(LOG, shown, error.to_string()))?;
        Ok((AccessLog { named, file, unfit: (0, 0) }, past))
    }

    /// The requests of these lines.
    pub fn each(&mut self, lines: &[u8], see: &mut dyn FnMut(&Entry)) {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let mut formats = self.named.formats.iter().filter_map(|(_, format)| format.as_ref());
            let entry = formats.find_map(|format| format.entry(line).filter(|entry| entry.status.is_some()));
            self.unfit.1 += 1;
            match entry {
                Some(entry) => see(&entry),
                None => self.unfit.0 += 1,
            }
        }
    }

    /// The requests of the lines that were added since the last call.
    pub fn take(&mut self, see: &mut dyn FnMut(&Entry)) {
        let added = self.file.take();
        self.each(&added, see);
    }

    /// The parts of this log that were not read, and the figures that it does not have, a sentence each.
    pub fn lacks(&self) -> Vec<Said> {
        let shown = self.named.path.display().to_string();
        let mut found = Vec::new();
        if self.unfit.0 > 0 {
            found.push(say!(NOW_LINES_UNFIT, &shown, self.unfit.0, self.unfit.1));
        }
        if self.file.is_cut {
            found.push(say!(NOW_LOG_CUT, &shown));
        }
        if self.file.was_rotated {
            found.push(say!(NOW_LOG_ROTATED, &shown));
        }
        if self.named.is_partial {
            found.push(say!(NOW_LOG_PARTIAL, &shown));
        }
        let formats = self.named.formats.iter().filter_map(|(_, format)| format.as_ref());
        let lacking: Vec<String> = TELLING
            .iter()
            .filter(|name| formats.clone().any(|format| !format.has(name)))
            .map(|name| format!("${name}"))
            .collect();
        if !lacking.is_empty() {
            found.push(say!(NOW_LOG_LACKS, &shown, lacking.join(" ")));
        }
        found
    }

    /// Forgets the lines that did not fit: those from before the watch may have another form.
    pub fn forget_unfit(&mut self) {
        self.unfit = (0, 0);
    }

    /// The path.
    pub fn path(&self) -> PathBuf {
        self.named.path.clone()
    }

    /// Lines may wait in nginx's buffer.
    pub fn is_buffered(&self) -> bool {
        self.named.is_buffered
    }

    /// Some lines lack a figure that tells where the time went.
    pub fn is_poor(&self) -> bool {
        let all = TELLING.len() + 1;
        self.named.formats.iter().any(|(_, format)| telling(format.as_ref()) < all)
    }
}

/// The fields of an entry, for the sums of the edge's account.
pub fn logged(entry: &Entry) -> Logged<'_> {
    let value = |name: &str| entry.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    Logged {
        status: entry.status.unwrap_or(0),
        time_us: entry.took_ms.map(|ms| ms * 1000),
        addresses: value("upstream_addr"),
        statuses: value("upstream_status"),
        connects: value("upstream_connect_time"),
        headers: value("upstream_header_time"),
        responses: value("upstream_response_time"),
        cache: value("upstream_cache_status"),
        reused: value("ssl_session_reused"),
        number: value("connection_requests"),
        protocol: value("ssl_protocol"),
        limits: (value("limit_req_status"), value("limit_conn_status")),
        ..Logged::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use weir_conf::MemoryFiles;

    use super::*;
    use crate::watch::Account;
    use crate::watch::logged as sums;

    fn of(text: &str) -> Vec<NamedLog> {
        let (tree, _) = weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false);
        logs(&tree, Path::new("/p"), Some(Path::new("/d")))
    }

    #[test]
    fn of_logs_with_the_same_requests_the_one_that_tells_most_is_read() {
        let found = of("http { log_format why '$request $status $request_time $upstream_addr'; log_format bare '$request';
            access_log a; access_log /b why buffer=4k; server { access_log off; } server { access_log syslog:server=x; } server { access_log c bare if=$x; } }");
        let told: Vec<(String, bool, bool, bool)> = found
            .iter()
            .map(|log| (log.path.display().to_string(), log.formats[0].1.is_some(), log.is_partial, log.is_buffered))
            .collect();
        let path = str::to_owned;
        assert_eq!(told, [(path("/b"), true, false, true), (path("/p/c"), false, true, false)]);
        assert!(AccessLog::open(found[1].clone()).unwrap_err().contains("$status"));
        assert_eq!(of("http { server { } }")[0].path, Path::new("/d"));
    }

    #[test]
    fn a_line_becomes_the_figures_that_it_has() {
        let format = ["$status $request_time $upstream_addr $upstream_status $upstream_response_time \"$request\""];
        let format = Format::read(&format).unwrap();
        let mut sums = Account::default();
        for line in [
            "200 0.120 10.0.0.1:80 200 0.100 \"GET / HTTP/1.1\"",
            "503 0.000 - - - \"GET / HTTP/1.1\"",
            "502 0.004 10.0.0.1:80, 10.0.0.2:80 502, 502 0.002, 0.002 \"GET / HTTP/1.1\"",
        ] {
            sums::sum(&mut sums, &logged(&format.entry(line.as_bytes()).unwrap()));
        }
        assert_eq!((sums.lines, sums.tries, sums.exchanges), (Some(3), 3, 2));
        assert_eq!((sums.steps["wait"], sums.steps["held"]), ((3, 104_000), (1, 20_000)));
        assert_eq!((sums.own.clone(), sums.peers["10.0.0.1:80"].bad), ([(503, 1)].into(), 1));
        // A log without the addresses does not say who made an answer, nor where the time went.
        let combined = Format::read(&[weir_conf::log_format::COMBINED]).unwrap();
        let line = "::1 - - [30/Nov/2026:17:00:00 +0000] \"GET / HTTP/1.1\" 503 5 \"-\" \"x\"";
        let mut sums = Account::default();
        sums::sum(&mut sums, &logged(&combined.entry(line.as_bytes()).unwrap()));
        assert!(sums.own.is_empty() && sums.given.is_empty() && sums.steps.is_empty(), "{sums:?}");
    }
}
