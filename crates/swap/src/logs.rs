//! The lines that a server writes into its access logs for a request, by the variables of their formats.
//!
//! Not here: the changes that put the logs into the server's own directory; `side` makes them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use weir_conf::log_format::COMBINED;
use weir_conf::{Statement, Tree};

/// Most bytes of one log that are read at a time. More wait for the next time.
const READ_MAX: usize = 64 << 10;
/// Most lines of one request that are kept.
pub const LINES_MAX: usize = 100;
/// Variables of a moment, a connection or a process: their values are not compared.
const UNCOMPARED: &[&str] = &[
    "bytes_received",
    "connection",
    "connection_time",
    "msec",
    "pid",
    "remote_port",
    "request_id",
    "request_time",
    "ssl_session_id",
    "time_iso8601",
    "time_local",
    "upstream_bytes_received",
    "upstream_bytes_sent",
    "upstream_connect_time",
    "upstream_first_byte_time",
    "upstream_header_time",
    "upstream_queue_time",
    "upstream_response_time",
    "upstream_session_time",
];

/// Variables whose values are numbers.
const NUMBERS: &[&str] =
    &["body_bytes_sent", "bytes_sent", "connection", "msec", "request_length", "request_time", "server_port", "status"];
/// Most attempts to read a line.
const STEPS_MAX: usize = 10_000;

/// A line of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedLine {
    /// The text of its format.
    pub format: String,
    /// The variables with their values, in the order of the line: `$status`. A line that does not fit its format is one
    /// value without a name. The value of a variable that is not compared is empty.
    pub values: Vec<(String, Vec<u8>)>,
}

/// Reads the new lines of the access logs of one server.
#[derive(Debug, Default)]
pub struct LogReader {
    logs: Vec<WatchedLog>,
}

/// An access log of a server.
#[derive(Clone, Debug)]
pub struct LogPlace {
    file: PathBuf,
    formats: Arc<[SplitFormat]>,
}

impl LogPlace {
    /// The log of a configuration: its path as the configuration says it, and the file that has its lines.
    pub fn of(tree: &Tree, named: &str, file: PathBuf) -> LogPlace {
        LogPlace { file, formats: formats(tree, named).iter().map(|format| SplitFormat::of(format)).collect() }
    }
}

#[derive(Debug)]
struct WatchedLog {
    place: LogPlace,
    open: Option<File>,
    /// The first byte that is not read yet.
    from: u64,
    /// The begin of a line without its end.
    begun: Vec<u8>,
}

impl LogReader {
    /// Reads these logs from their present ends on.
    pub fn new(places: Vec<LogPlace>) -> LogReader {
        let log = |place: LogPlace| {
            let from = place.file.metadata().map_or(0, |file| file.len());
            WatchedLog { place, open: None, from, begun: Vec::new() }
        };
        LogReader { logs: places.into_iter().map(log).collect() }
    }

    /// True if there is no log.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// The complete lines since the last call. A log that cannot be read has none.
    pub fn take(&mut self) -> Vec<LoggedLine> {
        let lines = self.logs.iter_mut().flat_map(|log| log.take().unwrap_or_default());
        lines.take(LINES_MAX).collect()
    }
}

impl WatchedLog {
    fn take(&mut self) -> io::Result<Vec<LoggedLine>> {
        let file = match &self.open {
            Some(file) => file,
            None => self.open.insert(File::open(&self.place.file)?),
        };
        let mut bytes = vec![0; READ_MAX];
        let count = file.read_at(&mut bytes, self.from)?;
        self.from += count as u64;
        self.begun.extend_from_slice(bytes.get(..count).unwrap_or_default());
        let end = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.begun.split_off(end);
        let whole = std::mem::replace(&mut self.begun, rest);
        let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.map(|line| self.line(line)).collect())
    }

    fn line(&self, line: &[u8]) -> LoggedLine {
        let fits =
            |format: &SplitFormat| Some(LoggedLine { format: format.text.clone(), values: format.values(line)? });
        let format = || self.place.formats.first().map(|format| format.text.clone()).unwrap_or_default();
        let unfit = || LoggedLine { format: format(), values: vec![(String::new(), line.to_vec())] };
        self.place.formats.iter().find_map(fits).unwrap_or_else(unfit)
    }
}

/// The texts of the formats in which a log is written.
fn formats(tree: &Tree, named: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for http in tree.named("http") {
        each(http.children(), &mut |statement| {
            if statement.name == "access_log" && statement.text(0) == named {
                let word = statement.text(1);
                let is_name = !word.is_empty() && !word.contains('=') && word != "gzip";
                names.push(if is_name { word } else { "combined" }.to_owned());
            }
        });
    }
    if names.is_empty() {
        names.push("combined".to_owned());
    }
    names.dedup();
    names.iter().map(|name| text(tree, name)).collect()
}

fn each(statements: &[Statement], see: &mut dyn FnMut(&Statement)) {
    for statement in statements {
        see(statement);
        each(statement.children(), see);
    }
}

/// The text of a format. That of a name that is not in the file is empty, but for nginx's own.
fn text(tree: &Tree, name: &str) -> String {
    let mut all = tree.named("http").flat_map(|http| http.named("log_format"));
    let written = all.find(|statement| statement.text(0) == name);
    let texts = |statement: &Statement| -> String {
        let words = statement.args.iter().skip(1).map(|word| word.text.as_str());
        words.filter(|word| !word.starts_with("escape=")).collect()
    };
    written.map(texts).unwrap_or_else(|| if name == "combined" { COMBINED.to_owned() } else { String::new() })
}

/// A format in pieces.
#[derive(Debug)]
struct SplitFormat {
    text: String,
    pieces: Vec<FormatPiece>,
}

#[derive(Debug)]
enum FormatPiece {
    Text(Vec<u8>),
    /// One variable, or several that stand side by side.
    Variables(Vec<String>),
}

impl SplitFormat {
    fn of(text: &str) -> SplitFormat {
        let mut pieces: Vec<FormatPiece> = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            let after = after.get(1..).unwrap_or_default();
            let (name, next) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some(braced) => braced,
                None => {
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len()))
                }
            };
            if !before.is_empty() {
                pieces.push(FormatPiece::Text(before.as_bytes().to_vec()));
            }
            match pieces.last_mut() {
                Some(FormatPiece::Variables(names)) => names.push(name.to_owned()),
                _ => pieces.push(FormatPiece::Variables(vec![name.to_owned()])),
            }
            rest = next;
        }
        if !rest.is_empty() {
            pieces.push(FormatPiece::Text(rest.as_bytes().to_vec()));
        }
        SplitFormat { text: text.to_owned(), pieces }
    }

    /// The values of a line. `None`: the line has another form.
    ///
    /// A text between two variables may also be in a value: `$request $status`. So numbers and request lines have to
    /// look like ones, if the line can be read in that way.
    fn values(&self, line: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
        let read = |is_strict: bool| {
            let mut ends = Vec::new();
            let mut steps = STEPS_MAX;
            ends_of(&self.pieces, line, is_strict, &mut ends, &mut steps).then_some(ends)
        };
        let ends = read(true).or_else(|| read(false))?;
        let names = self.pieces.iter().filter_map(|piece| match piece {
            FormatPiece::Variables(names) => Some(names),
            FormatPiece::Text(_) => None,
        });
        let value = |(names, value): (&Vec<String>, &[u8])| {
            let is_compared = !names.iter().any(|name| UNCOMPARED.contains(&name.as_str()));
            let name: String = names.iter().map(|name| format!("${name}")).collect();
            (name, if is_compared { value.to_vec() } else { Vec::new() })
        };
        Some(names.zip(ends).map(value).collect())
    }
}

/// Finds the values of a line, one for each piece with variables. False: there are none.
fn ends_of<'l>(
    pieces: &[FormatPiece],
    line: &'l [u8],
    is_strict: bool,
    found: &mut Vec<&'l [u8]>,
    steps: &mut usize,
) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return line.is_empty() };
    let names = match piece {
        FormatPiece::Text(text) => {
            return line.strip_prefix(text.as_slice()).is_some_and(|line| ends_of(rest, line, is_strict, found, steps));
        }
        FormatPiece::Variables(names) => names,
    };
    let mut end = match rest.first() {
        Some(FormatPiece::Text(text)) => memchr::memmem::find(line, text),
        _ => Some(line.len()),
    };
    while let Some(at) = end.filter(|_| *steps > 0) {
        *steps -= 1;
        let (value, after) = line.split_at_checked(at).unwrap_or((line, &[]));
        if !is_strict || looks_right(names, value) {
            found.push(value);
            if ends_of(rest, after, is_strict, found, steps) {
                return true;
            }
            found.pop();
        }
        let Some(FormatPiece::Text(text)) = rest.first() else { return false };
        let from = at + 1;
        end = memchr::memmem::find(line.get(from..).unwrap_or_default(), text).map(|next| from + next);
    }
    false
}

/// True if this may be the value of a variable, or of several side by side.
fn looks_right(names: &[String], value: &[u8]) -> bool {
    let [name] = names else { return true };
    match name.as_str() {
        "request" => value.iter().filter(|byte| **byte == b' ').count() == 2 || !value.contains(&b' '),
        name if NUMBERS.contains(&name) => value == b"-" || value.iter().all(|byte| b"0123456789.".contains(byte)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::cause::edits::tests::tree;

    fn values(format: &str, line: &str) -> Option<String> {
        let values = SplitFormat::of(format).values(line.as_bytes())?;
        let shown = |(name, value): (String, Vec<u8>)| format!("{name}={}", String::from_utf8(value).unwrap());
        Some(values.into_iter().map(shown).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_line_is_taken_apart_by_its_format() {
        let line = "127.0.0.1 - - [30/Nov/2026:08:00:00 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x y\"";
        let wanted = "$remote_addr=127.0.0.1 $remote_user=- $time_local= $request=GET /a HTTP/1.1 $status=200 $body_bytes_sent=5 $http_referer=- $http_user_agent=x y";
        assert_eq!(values(COMBINED, line).as_deref(), Some(wanted));
        assert_eq!(values("${status}x$a$b!", "200xyz!").as_deref(), Some("$status=200 $a$b=yz"));
        assert_eq!(values("$a$msec", "17.5").as_deref(), Some("$a$msec="));
        let wanted = "$request=GET /a b HTTP/1.1 $status=200 $bytes_sent=5";
        assert_eq!(
            values("$request $status $bytes_sent", "GET /a HTTP/1.1 200 5").as_deref(),
            Some(&*wanted.replace(" b", ""))
        );
        // A request line that a client made up: read as far as it goes.
        assert_eq!(values("$request $status", "a b c d 400").as_deref(), Some("$request=a $status=b c d 400"));
        assert_eq!(values(&("$a ".repeat(90) + "x"), &"b ".repeat(9_000)), None);
        assert_eq!(values("plain", "plain").as_deref(), Some(""));
        assert_eq!(values("$a;", "x"), None);
        assert_eq!(values("$a;", "x; "), None);
        assert_eq!(values("", "x"), None);
    }

    #[test]
    fn new_lines_are_read_when_they_are_complete() {
        let tree = tree(
            "http { log_format own escape=json '$status' ' $uri'; access_log /l own buffer=1k; server { access_log /m; access_log /l; } }",
        );
        assert_eq!(formats(&tree, "/l"), ["$status $uri", COMBINED]);
        assert_eq!(formats(&tree, "/m"), [COMBINED]);
        assert_eq!(formats(&tree, ""), [COMBINED]);
        let place = std::env::temp_dir().join(format!("weir-swap-log-{}", std::process::id()));
        let mut reader = LogReader::new(vec![LogPlace::of(&tree, "/l", place.clone())]);
        assert!(!reader.is_empty());
        assert_eq!(reader.take(), []);
        let mut file = File::create(&place).unwrap();
        file.write_all(b"200 /a\n404 /").unwrap();
        let line = |status: &str, uri: &str| LoggedLine {
            format: "$status $uri".to_owned(),
            values: vec![("$status".to_owned(), status.into()), ("$uri".to_owned(), uri.into())],
        };
        assert_eq!(reader.take(), [line("200", "/a")]);
        assert_eq!(reader.take(), []);
        file.write_all(b"b\nstrange\n").unwrap();
        let strange =
            LoggedLine { format: "$status $uri".to_owned(), values: vec![(String::new(), b"strange".to_vec())] };
        assert_eq!(reader.take(), [line("404", "/b"), strange]);
        fs::remove_file(place).unwrap();
    }
}
