//! Reads the lines of an access log back, by their `log_format`.
//!
//! <https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format>

mod json;
mod moment;

use crate::Statement;

/// nginx's predefined format.
pub const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
/// Apache's `common`.
pub const COMMON: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent";
/// Apache's `vhost_combined`: the virtual host and its port come first.
pub const VHOST_COMBINED: &str = "$host $remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
/// Most parts of a format.
const PARTS_MAX: usize = 200;

/// How a format escapes values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    /// `\x22`.
    Default,
    /// As in JSON strings.
    Json,
    /// Not at all.
    None,
}

/// A format, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    parts: Vec<Part>,
    escape: Escape,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Variable(String),
}

/// A request from a log. A field that the format does not have is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The method.
    pub method: Vec<u8>,
    /// Path and query, as the client sent them.
    pub target: Vec<u8>,
    /// The host, in lower case.
    pub host: Option<String>,
    /// True for `https`.
    pub is_tls: Option<bool>,
    /// Bytes of the answer.
    pub body_bytes: Option<u64>,
    /// The client's `User-Agent`.
    pub agent: Vec<u8>,
    /// The address of the client; before a proxy, the first address of `X-Forwarded-For`.
    pub client: Vec<u8>,
    /// When the line was written, in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// `$request_time`, in milliseconds.
    pub took_ms: Option<u64>,
    /// The status of the answer.
    pub status: Option<u16>,
}

impl Format {
    /// Lines of JSON whose keys have the usual names, such as `request_uri` or `uri`.
    pub fn json() -> Format {
        Format { parts: Vec::new(), escape: Escape::Json }
    }

    /// The `log_format` of that name in an `http` block. `None`: there is none, or its lines do not have the request.
    pub fn named(http: &Statement, name: &str) -> Option<Format> {
        let texts = |statement: &Statement| -> Vec<String> {
            statement.args.iter().skip(1).map(|word| word.text.clone()).collect()
        };
        let written = http.named("log_format").find(|statement| statement.text(0) == name).map(texts);
        let texts = written.or_else(|| (name == "combined").then(|| vec![COMBINED.to_owned()]))?;
        Format::read(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The predefined format that reads most of these lines. `None`: none of them reads a line.
    pub fn guess(lines: &[&[u8]]) -> Option<(&'static str, Format)> {
        let known = [("combined", COMBINED), ("vhost_combined", VHOST_COMBINED), ("common", COMMON)];
        let known = known.into_iter().filter_map(|(name, text)| Some((name, Format::read(&[text])?)));
        let counted = known.chain([("JSON", Format::json())]).map(|(name, format)| {
            // A space in the address: another field stands before it.
            let fits = |entry: Entry| entry.at_ms.is_some() && !entry.client.contains(&b' ');
            let read = lines.iter().filter(|line| format.entry(line).is_some_and(fits));
            (read.count(), name, format)
        });
        // Of equals the first: it reads more of a line.
        let best = counted.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        (best.0 > 0).then_some((best.1, best.2))
    }

    /// True if the lines have the time of the request, and the client.
    pub fn has_time(&self) -> bool {
        let is_time = |part: &Part| match part {
            Part::Variable(name) => matches!(name.as_str(), "time_local" | "time_iso8601" | "msec"),
            Part::Text(_) => false,
        };
        self.parts.is_empty() || self.parts.iter().any(is_time)
    }

    /// Takes the texts of a `log_format` apart. `None`: its lines do not have the request.
    pub fn read(texts: &[&str]) -> Option<Format> {
        let (escape, texts) = match texts.split_first() {
            Some((&"escape=json", rest)) => (Escape::Json, rest),
            Some((&"escape=none", rest)) => (Escape::None, rest),
            Some((&"escape=default", rest)) => (Escape::Default, rest),
            _ => (Escape::Default, texts),
        };
        let parts = parts(&texts.concat());
        let has = |name: &str| parts.contains(&Part::Variable(name.to_owned()));
        (parts.len() <= PARTS_MAX && (has("request") || has("request_uri"))).then_some(Format { parts, escape })
    }

    /// Reads a line. `None`: it is not of this format, or its request is not one that can be sent again.
    pub fn entry(&self, line: &[u8]) -> Option<Entry> {
        let mut entry = Entry { method: b"GET".to_vec(), ..Entry::default() };
        if self.parts.is_empty() {
            json::fields(line, |name, value| self.take(&mut entry, name, value))?;
            return is_sendable(&entry.target).then_some(entry);
        }
        let mut rest = line;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Text(text) => rest = rest.strip_prefix(text.as_slice())?,
                Part::Variable(name) => {
                    let end = match parts.peek() {
                        Some(Part::Text(next)) => self.end(rest, next)?,
                        Some(Part::Variable(_)) => return None,
                        None => rest.len(),
                    };
                    let (value, after) = rest.split_at(end);
                    self.take(&mut entry, name, value)?;
                    rest = after;
                }
            }
        }
        is_sendable(&entry.target).then_some(entry)
    }

    /// The place of the next text. A quote inside a value is escaped and ends nothing: JSON and Apache write `\"`, and
    /// nginx writes `\x22`, never a backslash before a quote.
    fn end(&self, rest: &[u8], next: &[u8]) -> Option<usize> {
        memchr::memmem::find_iter(rest, next).find(|at| {
            let escapes = rest.get(..*at).unwrap_or_default().iter().rev().take_while(|byte| **byte == b'\\').count();
            self.escape == Escape::None || next.first() != Some(&b'"') || escapes % 2 == 0
        })
    }

    fn take(&self, entry: &mut Entry, name: &str, value: &[u8]) -> Option<()> {
        let text = || String::from_utf8(value.to_vec()).ok().filter(|text| !text.is_empty() && text != "-");
        match name {
            "request" => {
                let request = self.unescaped(value);
                let mut words = request.split(|byte| *byte == b' ');
                let (method, target, version) = (words.next()?, words.next()?, words.next()?);
                if words.next().is_some() || !version.starts_with(b"HTTP/") {
                    return None;
                }
                (entry.method, entry.target) = (method.to_vec(), target.to_vec());
            }
            "request_uri" if entry.target.is_empty() => entry.target = self.unescaped(value),
            "request_method" => entry.method = value.to_vec(),
            "host" | "http_host" | "server_name" if entry.host.is_none() => {
                entry.host = text().map(|host| host.to_ascii_lowercase());
            }
            "scheme" => entry.is_tls = Some(value == b"https"),
            "remote_addr" | "realip_remote_addr" if entry.client.is_empty() => entry.client = value.to_vec(),
            "http_x_forwarded_for" => {
                let first = value.split(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
                if !first.is_empty() && first != b"-" {
                    entry.client = first.to_vec();
                }
            }
            "time_local" => entry.at_ms = moment::local(value),
            "time_iso8601" => entry.at_ms = moment::iso8601(value),
            "msec" => entry.at_ms = moment::seconds(value),
            "request_time" => entry.took_ms = moment::seconds(value),
            "status" => entry.status = text().and_then(|text| text.parse().ok()),
            "body_bytes_sent" | "bytes_sent" => entry.body_bytes = text().and_then(|text| text.parse().ok()),
            "http_user_agent" => entry.agent = value.to_vec(),
            _ => {}
        }
        Some(())
    }

    /// The value before it was escaped.
    fn unescaped(&self, value: &[u8]) -> Vec<u8> {
        if self.escape == Escape::None || !value.contains(&b'\\') {
            return value.to_vec();
        }
        let mut out = Vec::with_capacity(value.len());
        let mut rest = value;
        while let Some((first, after)) = rest.split_first() {
            let hex = |digits: Option<&[u8]>| {
                let digits = std::str::from_utf8(digits?).ok()?;
                u8::from_str_radix(digits, 16).ok()
            };
            let (byte, used) = match (first, after.first()) {
                (b'\\', Some(b'x')) => hex(after.get(1..3)).map_or((b'\\', 1), |byte| (byte, 4)),
                (b'\\', Some(b'u')) => hex(after.get(3..5)).map_or((b'\\', 1), |byte| (byte, 6)),
                (b'\\', Some(escaped @ (b'"' | b'\\' | b'/'))) => (*escaped, 2),
                _ => (*first, 1),
            };
            out.push(byte);
            rest = rest.get(used..).unwrap_or_default();
        }
        out
    }
}

/// True if a client can send this target again.
fn is_sendable(target: &[u8]) -> bool {
    let is_path = target.first() == Some(&b'/');
    is_path && target.iter().all(|byte| (b'!'..=b'~').contains(byte) || *byte >= 0x80)
}

/// Texts and variables: `$name` and `${name}`.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(rest.get(..at).unwrap_or_default());
        let after = rest.get(at + 1..).unwrap_or_default();
        let (name, left) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, left)) => (name, left),
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                after.split_at(end)
            }
        };
        if name.is_empty() {
            plain.push('$');
        } else {
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain).into_bytes()));
            }
            parts.push(Part::Variable(name.to_owned()));
        }
        rest = left;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Text(plain.into_bytes()));
    }
    parts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn target(format: &[&str], line: &str) -> Option<String> {
        let entry = Format::read(format)?.entry(line.as_bytes())?;
        Some(String::from_utf8_lossy(&entry.target).into_owned())
    }

    #[test]
    fn lines_of_several_formats_are_read() {
        let combined =
            "127.0.0.1 - - [26/Nov/2026:03:00:00 +0000] \"GET /a?b=\\x22 HTTP/1.1\" 200 612 \"-\" \"curl/7\"";
        let entry = Format::read(&[COMBINED]).unwrap().entry(combined.as_bytes()).unwrap();
        assert_eq!((entry.method.as_slice(), entry.target.as_slice()), (&b"GET"[..], &b"/a?b=\""[..]));
        assert_eq!((entry.body_bytes, entry.agent.as_slice(), entry.host), (Some(612), &b"curl/7"[..], None));
        let json = ["escape=json", "{\"host\":\"$host\",", "\"uri\":\"$request_uri\",\"s\":$status}"];
        assert_eq!(target(&json, r#"{"host":"A.b","uri":"\/x\"y","s":200}"#).as_deref(), Some("/x\"y"));
        let line = r#"{"host":"A.b","uri":"/x","s":200}"#;
        assert_eq!(Format::read(&json).unwrap().entry(line.as_bytes()).unwrap().host.as_deref(), Some("a.b"));
        assert_eq!(target(&["${scheme} $host \"$request\""], "https h \"HEAD /z HTTP/2.0\"").as_deref(), Some("/z"));
    }

    #[test]
    fn the_predefined_formats_are_told_apart_by_their_lines() {
        let combined = r#"10.0.0.1 - - [26/Nov/2026:03:00:00 +0900] "GET /a HTTP/1.1" 200 6 "-" "a \"b\" c" "1.2.3.4""#;
        let common = r#"10.0.0.1 - - [26/Nov/2026:03:00:00 +0000] "GET /a HTTP/1.1" 304 -"#;
        let json = r#"{"time":"2026-11-26T03:00:00.250+09:00","remote_addr":"::1","request":"PUT /a?b=1 HTTP/1.1","status":"201","request_time":0.25,"user_agent":"x"}"#;
        let guess = |line: &str| Format::guess(&[b"garbage", line.as_bytes()]).map(|(name, _)| name);
        assert_eq!((guess(combined), guess(common), guess(json)), (Some("combined"), Some("common"), Some("JSON")));
        assert_eq!(guess(&format!("a.test:443 {combined}")), Some("vhost_combined"));
        assert_eq!(guess("x"), None);
        let entry = Format::read(&[COMBINED]).unwrap().entry(combined.as_bytes()).unwrap();
        assert_eq!((entry.client.as_slice(), entry.status), (&b"10.0.0.1"[..], Some(200)));
        assert_eq!((entry.agent.as_slice(), entry.at_ms), (&br#"a \"b\" c"#[..], Some(1_795_629_600_000)));
        let entry = Format::json().entry(json.as_bytes()).unwrap();
        assert_eq!((entry.method.as_slice(), entry.target.as_slice()), (&b"PUT"[..], &b"/a?b=1"[..]));
        assert_eq!((entry.at_ms, entry.took_ms, entry.status), (Some(1_795_629_600_250), Some(250), Some(201)));
        let main = ["$remote_addr [$time_iso8601] $request_method \"$request_uri\" \"$http_x_forwarded_for\""];
        let entry = Format::read(&main).unwrap();
        let entry = entry.entry(b"10.0.0.9 [2026-11-25T18:00:00Z] POST \"/z\" \"1.2.3.4, 10.0.0.9\"").unwrap();
        assert_eq!((entry.client.as_slice(), entry.at_ms), (&b"1.2.3.4"[..], Some(1_795_629_600_000)));
    }

    #[test]
    fn lines_that_are_something_else_are_left_out() {
        for line in [
            "",
            "garbage",
            "\u{0}\u{1}\u{ff}",
            "1 - - [t] \"\" 400 0 \"-\" \"-\"",
            "1 - - [t] \"GET /a\" 400 0 \"-\" \"-\"",
        ] {
            assert_eq!(target(&[COMBINED], line), None, "{line}");
        }
        assert_eq!(target(&[COMBINED], "1 - - [t] \"GET http://x/ HTTP/1.1\" 200 0 \"-\" \"-\""), None);
        assert_eq!(target(&[COMBINED], "1 - - [t] \"\\x16\\x03\\x01\" 400 0 \"-\" \"-\""), None);
        assert!(Format::read(&["$status $uri"]).is_none());
        // Two variables side by side have no border.
        assert_eq!(target(&["$status$request"], "200GET / HTTP/1.1"), None);
    }

    mod mutate {
        use super::*;
        /// A line of a log: the parts are parts of the line, and the target can be sent in a request line.
        #[test]
        fn lines() {
            let seeds = [
                "127.0.0.1 - - [26/Nov/2026:03:00:00 +0000] \"GET /a?b=\\x22 HTTP/1.1\" 200 612 \"-\" \"curl/7\"",
                "a.b:80 10.0.0.1 - x [26/Nov/2026:03:00:00 -0530] \"POST /\\xe4 HTTP/1.0\" 404 0 \"-\" \"\\\"\"",
                "{\"time_iso8601\":\"2026-11-26T00:00:01+00:00\",\"remote_addr\":\"a\",\"request\":\"GET / HTTP/1.1\",\"a\":{\"status\":200}}",
            ];
            let words = [
                "\"",
                "\\x",
                "\\u00",
                "\\",
                " ",
                "[",
                "]",
                "GET ",
                " HTTP/1.1",
                "-",
                "+9999",
                "99/Feb/0000",
                "{",
                "}",
                ":",
                "\0",
                "é",
                "18446744073709551616",
            ];
            let formats = [
                Format::read(&[COMBINED]),
                Format::read(&[VHOST_COMBINED]),
                Format::read(&[COMMON]),
                Some(Format::json()),
            ];
            weir_mutate::mutate(&seeds, &words, |line| {
                for format in formats.iter().flatten() {
                    let Some(entry) = format.entry(line) else { continue };
                    assert!(
                        entry.target.first() == Some(&b'/')
                            && !entry.target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
                    );
                    let parts = entry.target.len() + entry.client.len() + entry.agent.len();
                    assert!(parts <= 3 * line.len(), "{parts} of {}", line.len());
                }
                let _ = Format::guess(&[line]);
                let _ = Format::read(&[&String::from_utf8_lossy(line)]);
            });
        }
    }
}
