//! Reads the lines of an access log back, by their `log_format`.
//!
//! <https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format>

mod json;
mod moment;

use crate::Statement;

/// nginx's predefined format.
pub const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
/// nginx.org's `main`: `combined` with the addresses that a proxy has passed on.
pub const MAIN: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \"$http_x_forwarded_for\"";
/// Apache's `common`.
pub const COMMON: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent";
/// Apache's `vhost_combined`: the virtual host and its port come first.
pub const VHOST_COMBINED: &str = "$host $remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
/// The beginnings of variables that say what became of a request: at the upstream, at a limit, with TLS.
pub const KEPT: [&str; 4] = ["upstream_", "limit_", "ssl_", "connection_requests"];
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

/// Why a line gives no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is no JSON object.
    NotJson,
    /// The text of the format is not where the format has it.
    Text(String),
    /// The value of this variable has another form.
    Value(String),
    /// A client cannot send this target again.
    Target(String),
}

/// A request from a log. A field that the format does not have is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The method.
    pub method: Vec<u8>,
    /// Path and query, as the client sent them.
    pub target: Vec<u8>,
    /// The host, in lower case. That of a target in absolute form counts before others (RFC 9112 §3.2.2).
    pub host: Option<String>,
    /// True for `https`.
    pub is_tls: Option<bool>,
    /// Whether the target had the host and the scheme.
    pub is_absolute: bool,
    /// Bytes of the answer.
    pub body_bytes: Option<u64>,
    /// The client's `User-Agent`; `-` if it sent none.
    pub agent: Vec<u8>,
    /// The address of the client; before a proxy, the first address of `X-Forwarded-For`.
    pub client: Vec<u8>,
    /// When the line was written, in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// `$request_time`, in milliseconds.
    pub took_ms: Option<u64>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// Fields of the request, by their variables `$http_NAME`. Those that the client did not send are empty.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Values of the variables that begin with one of [`KEPT`], by their names, as the log has them.
    pub values: Vec<(String, String)>,
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
        let known = [("vhost_combined", VHOST_COMBINED), ("main", MAIN), ("combined", COMBINED), ("common", COMMON)];
        let known = known.into_iter().filter_map(|(name, text)| Some((name, Format::read(&[text])?)));
        let counted = known.chain([("JSON", Format::json())]).map(|(name, format)| {
            // A space in the address: another field stands before it. The last field of `main` has addresses.
            let is_client = |client: &[u8]| match name {
                "main" => std::str::from_utf8(client).is_ok_and(|text| text.parse::<std::net::IpAddr>().is_ok()),
                _ => !client.contains(&b' '),
            };
            let fits = |entry: Entry| entry.at_ms.is_some() && is_client(&entry.client);
            let read = lines.iter().filter(|line| format.entry(line).is_some_and(fits));
            (read.count(), name, format)
        });
        // Of equals the first: it reads more of a line.
        let best = counted.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        (best.0 > 0).then_some((best.1, best.2))
    }

    /// Whether the lines have this variable. Not known for JSON without a `log_format`: false.
    pub fn has(&self, variable: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Variable(name) if name == variable))
    }

    /// True if the lines have the time of the request.
    pub fn has_time(&self) -> bool {
        self.parts.is_empty() || self.time().is_some()
    }

    /// The variable with the time of the request. `None` for JSON without a `log_format`.
    pub fn time(&self) -> Option<&str> {
        self.parts.iter().find_map(|part| match part {
            Part::Variable(name) => matches!(name.as_str(), "time_local" | "time_iso8601" | "msec").then_some(&**name),
            Part::Text(_) => None,
        })
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
        self.fit(line).ok()
    }

    /// Reads a line.
    ///
    /// # Errors
    /// The first part of the line that does not fit.
    pub fn fit(&self, line: &[u8]) -> Result<Entry, Unfit> {
        let mut entry = Entry { method: b"GET".to_vec(), ..Entry::default() };
        if self.parts.is_empty() {
            let value = |name: &str| Unfit::Value(name.to_owned());
            json::fields(line, Unfit::NotJson, |name, text| {
                self.take(&mut entry, name, text).ok_or_else(|| value(name))
            })?;
            return sendable(entry);
        }
        let mut rest = line;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Text(text) => {
                    let missing = || Unfit::Text(String::from_utf8_lossy(text).into_owned());
                    rest = rest.strip_prefix(text.as_slice()).ok_or_else(missing)?;
                }
                Part::Variable(name) => {
                    let value = || Unfit::Value(name.clone());
                    let end = match parts.peek() {
                        Some(Part::Text(next)) => self
                            .end(name, rest, next)
                            .ok_or_else(|| Unfit::Text(String::from_utf8_lossy(next).into_owned()))?,
                        // Two variables side by side have no border.
                        Some(Part::Variable(_)) => return Err(value()),
                        None => rest.len(),
                    };
                    let (text, after) = rest.split_at(end);
                    self.take(&mut entry, name, text).ok_or_else(value)?;
                    rest = after;
                }
            }
        }
        sendable(entry)
    }

    /// The place of the next text. A quote inside a value is escaped and ends nothing: JSON and Apache write `\"`, and
    /// nginx writes `\x22`, never a backslash before a quote.
    fn end(&self, name: &str, rest: &[u8], next: &[u8]) -> Option<usize> {
        memchr::memmem::find_iter(rest, next).find(|at| {
            // Values of several tries stand in one list, `a, b : c`: its spaces end nothing.
            // nginx: ngx_http_upstream_addr_variable().
            let is_list = name.starts_with("upstream_") && next.first() == Some(&b' ');
            let before = rest.get(..*at).unwrap_or_default();
            if is_list
                && (before.ends_with(b",")
                    || before.ends_with(b" :")
                    || rest.get(*at..).is_some_and(|rest| rest.starts_with(b" : ")))
            {
                return false;
            }
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
                entry.method = method.to_vec();
                entry.aim(target.to_vec());
            }
            "request_uri" if entry.target.is_empty() => entry.aim(self.unescaped(value)),
            // JSON of programs that log the path and the query apart.
            "args" if self.parts.is_empty() && text().is_some() && !entry.target.contains(&b'?') => {
                let query = self.unescaped(value);
                entry.target.push(b'?');
                entry.target.extend_from_slice(query.strip_prefix(b"?").unwrap_or(&query));
            }
            "request_method" => entry.method = value.to_vec(),
            "host" | "http_host" | "server_name" if entry.host.is_none() && !entry.is_absolute => {
                entry.host = text().map(|host| host.to_ascii_lowercase());
            }
            "scheme" if !entry.is_absolute => entry.is_tls = Some(value == b"https"),
            "remote_addr" | "realip_remote_addr" if entry.client.is_empty() => entry.client = value.to_vec(),
            "http_x_forwarded_for" => {
                let first = value.split(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
                if !first.is_empty() && first != b"-" {
                    entry.client = first.to_vec();
                }
            }
            "time_local" => entry.at_ms = moment::local(value),
            "time_iso8601" => entry.at_ms = moment::iso8601(value),
            "msec" if self.parts.is_empty() => entry.at_ms = moment::number(value),
            "msec" => entry.at_ms = moment::seconds(value),
            "request_time" => entry.took_ms = moment::seconds(value),
            "status" => entry.status = text().and_then(|text| text.parse().ok()),
            "body_bytes_sent" | "bytes_sent" => entry.body_bytes = text().and_then(|text| text.parse().ok()),
            "http_user_agent" => entry.agent = self.unescaped(value),
            name if KEPT.iter().any(|first| name.starts_with(first)) => {
                entry.values.push((name.to_owned(), String::from_utf8_lossy(&self.unescaped(value)).into_owned()));
            }
            _ => {}
        }
        if let Some(field) = name.strip_prefix("http_").filter(|_| !self.parts.is_empty()) {
            let value = if value == b"-" { Vec::new() } else { self.unescaped(value) };
            entry.fields.push((field.replace('_', "-"), value));
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

impl Entry {
    /// A request that was not read from a line.
    ///
    /// # Errors
    /// A client cannot send the target again.
    pub fn of_request(method: &[u8], target: &[u8]) -> Result<Entry, Unfit> {
        let mut entry = Entry { method: method.to_vec(), ..Entry::default() };
        entry.aim(target.to_vec());
        sendable(entry)
    }

    /// Takes a target. One in absolute form has the scheme and the host of the request (RFC 9112 §3.2.2).
    fn aim(&mut self, target: Vec<u8>) {
        let Some((is_tls, host, rest)) = absolute(&target) else {
            self.target = target;
            return;
        };
        (self.is_absolute, self.is_tls, self.host) = (true, Some(is_tls), Some(host));
        self.target = rest;
    }
}

/// TLS or not, the host with its port, and the path and query of `http://host:port/path`.
fn absolute(target: &[u8]) -> Option<(bool, String, Vec<u8>)> {
    let text = std::str::from_utf8(target).ok()?;
    let (scheme, rest) = text.split_once("://")?;
    let is_tls = match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => true,
        "http" | "ws" => false,
        _ => return None,
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let default = if is_tls { ":443" } else { ":80" };
    let host = host.strip_suffix(default).unwrap_or(host).to_ascii_lowercase();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    (!host.is_empty()).then(|| (is_tls, host, path.into_bytes()))
}

fn sendable(entry: Entry) -> Result<Entry, Unfit> {
    if is_sendable(&entry.target) {
        return Ok(entry);
    }
    Err(Unfit::Target(String::from_utf8_lossy(&entry.target).into_owned()))
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
    fn the_values_of_several_tries_are_one_list() {
        let format = ["$status $upstream_addr $upstream_status $request_time \"$request\""];
        let line = b"200 10.0.0.1:80, app : 10.0.0.2:80 502, 502 : 200 0.020 \"GET /a HTTP/1.1\"";
        let format = Format::read(&format).unwrap();
        let entry = format.entry(line).unwrap();
        let value = |name: &str| entry.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("upstream_addr"), Some("10.0.0.1:80, app : 10.0.0.2:80"));
        assert_eq!((value("upstream_status"), entry.took_ms), (Some("502, 502 : 200"), Some(20)));
        assert!(format.has("upstream_addr") && !format.has("upstream_header_time"));
    }

    #[test]
    fn the_predefined_formats_are_told_apart_by_their_lines() {
        let combined = r#"10.0.0.1 - - [26/Nov/2026:03:00:00 +0900] "GET /a HTTP/1.1" 200 6 "-" "a \"b\" c" "1.2.3.4""#;
        let common = r#"10.0.0.1 - - [26/Nov/2026:03:00:00 +0000] "GET /a HTTP/1.1" 304 -"#;
        let json = r#"{"time":"2026-11-26T03:00:00.250+09:00","remote_addr":"::1","request":"PUT /a?b=1 HTTP/1.1","status":"201","request_time":0.25,"user_agent":"x"}"#;
        let guess = |line: &str| Format::guess(&[b"garbage", line.as_bytes()]).map(|(name, _)| name);
        assert_eq!((guess(combined), guess(common), guess(json)), (Some("main"), Some("common"), Some("JSON")));
        let with_id = combined.replace("1.2.3.4", "6f1e0a");
        assert_eq!(guess(&with_id), Some("combined"));
        assert_eq!(guess(&format!("a.test:443 {combined}")), Some("vhost_combined"));
        assert_eq!(guess("x"), None);
        let entry = Format::read(&[COMBINED]).unwrap().entry(combined.as_bytes()).unwrap();
        assert_eq!((entry.client.as_slice(), entry.status), (&b"10.0.0.1"[..], Some(200)));
        assert_eq!((entry.agent.as_slice(), entry.at_ms), (&br#"a "b" c"#[..], Some(1_795_629_600_000)));
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
        assert_eq!(target(&[COMBINED], "1 - - [t] \"\\x16\\x03\\x01\" 400 0 \"-\" \"-\""), None);
        assert!(Format::read(&["$status $uri"]).is_none());
        // Two variables side by side have no border.
        assert_eq!(target(&["$status$request"], "200GET / HTTP/1.1"), None);
    }

    #[test]
    fn a_target_in_absolute_form_has_the_host() {
        let of = |target: &str| {
            let line = format!("h.test \"GET {target} HTTP/1.1\" http");
            let entry = Format::read(&["$host \"$request\" $scheme"]).unwrap().entry(line.as_bytes())?;
            Some((String::from_utf8(entry.target).unwrap(), entry.host.unwrap(), entry.is_tls.unwrap()))
        };
        let found = |target: &str, host: &str, is_tls| Some((target.to_owned(), host.to_owned(), is_tls));
        assert_eq!(of("https://www.Ex.test:443/p?a=1"), found("/p?a=1", "www.ex.test", true));
        assert_eq!(of("http://ex.test:8080"), found("/", "ex.test:8080", false));
        assert_eq!(of("HTTP://u@ex.test?q"), found("/?q", "ex.test", false));
        assert_eq!(of("/p?u=http://x/"), found("/p?u=http://x/", "h.test", false));
        assert_eq!((of("ftp://x/"), of("http:///a"), of("*")), (None, None, None));
    }

    #[test]
    fn the_first_part_that_does_not_fit_is_named() {
        let combined = Format::read(&[COMBINED]).unwrap();
        let unfit = |line: &str| combined.fit(line.as_bytes()).unwrap_err();
        assert_eq!(unfit("1 x"), Unfit::Text(" - ".to_owned()));
        assert_eq!(unfit("1 - - [t] \"\" 400 0 \"-\" \"-\""), Unfit::Value("request".to_owned()));
        assert_eq!(unfit("1 - - [t] \"OPTIONS * HTTP/1.1\" 200 0 \"-\" \"-\""), Unfit::Target("*".to_owned()));
        assert_eq!(Format::json().fit(b"x"), Err(Unfit::NotJson));
    }

    #[test]
    fn json_of_other_programs_is_read() {
        let rows = [
            // line, target, client
            (r#"{"msec":"1","uri":"/u","args":"a=1","remote_addr":"c"}"#, "/u?a=1", "c"),
            (r#"{"msec":"1","uri":"/u","is_args":"?","query_string":"a=1","clientip":"c"}"#, "/u?a=1", "c"),
            (r#"{"msec":"1","path":"/u","query":"?a=1","clientIp":"c"}"#, "/u?a=1", "c"),
            (r#"{"msec":"1","uri":"/u","args":"","remote_host":"c"}"#, "/u", "c"),
            (r#"{"msec":"1","uri":"/u","args":"-","source_ip":"c"}"#, "/u", "c"),
            (r#"{"msec":"1","request_uri":"/u?b=2","args":"b=2","client_address":"c"}"#, "/u?b=2", "c"),
            (r#"{"msec":"1","request":"GET /u?b=2 HTTP/1.1","args":"b=2","c-ip":"c"}"#, "/u?b=2", "c"),
            (
                r#"{"time":1000,"req":{"method":"GET","url":"/u?x","remoteAddress":"c"},"res":{"statusCode":200}}"#,
                "/u?x",
                "c",
            ),
            (
                r#"{"@timestamp":"1970-01-01T00:00:01Z","url":{"path":"/u","query":"a=1"},"source":{"ip":"c"},"host":{"ip":"d"}}"#,
                "/u?a=1",
                "c",
            ),
        ];
        for (line, target, client) in rows {
            let entry = Format::json().entry(line.as_bytes()).unwrap();
            let found = (String::from_utf8(entry.target).unwrap(), String::from_utf8(entry.client).unwrap());
            assert_eq!((found.0.as_str(), found.1.as_str()), (target, client), "{line}");
        }
        for time in ["1709251201", "1709251201.0", "1709251201000", "1709251201000000", "1709251201000000000"] {
            let line = format!("{{\"time\":{time},\"url\":\"/\"}}");
            assert_eq!(Format::json().entry(line.as_bytes()).unwrap().at_ms, Some(1_709_251_201_000), "{time}");
        }
    }

    #[test]
    fn variables_of_fields_are_fields_of_the_request() {
        let format = Format::read(&["\"$request\" $http_range \"$http_if_none_match\" $http_x_forwarded_for"]).unwrap();
        let entry = format.entry(b"\"GET / HTTP/1.1\" bytes=0-9 \"\\x22a\\x22\" -").unwrap();
        let field = |name: &str, value: &[u8]| (name.to_owned(), value.to_vec());
        let expected = [field("range", b"bytes=0-9"), field("if-none-match", b"\"a\""), field("x-forwarded-for", b"")];
        assert_eq!(entry.fields, expected);
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
