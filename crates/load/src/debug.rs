//! `DEBUG=http,http:response,…`: prints traffic to stderr, under Artillery's names (artillery.md §4.5).
//!
//! | name | says |
//! |---|---|
//! | `http:request` | the path of every request sent |
//! | `http` | every request: URL, method, fields, the first 512 characters of its body; captures; errors |
//! | `http:full_body` | whole bodies, in addition to `http` |
//! | `http:response` | fields and body of every answer |
//! | `http:capture` | captures alone |
//! | `ws` | messages sent and received |
//! | `socketio` | events sent and received, acknowledgements, and the comparison of each with the expected value |
//! | `plugin:ensure` | each check and its result |
//!
//! `*` in a name stands for any text, and a `-` before a name excludes it, as in npm's debug.

use serde_json::{Map, Value as Json, json};

/// Most characters of a body that `http` shows.
const BODY_CHARS_MAX: usize = 512;
/// Most bytes of a body that are ever shown.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The kinds of output that are switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debug {
    /// True if any of `http…` is switched on.
    pub speaks_http: bool,
    /// `ws`.
    pub ws: bool,
    /// `socketio`.
    pub socketio: bool,
    /// `plugin:ensure`.
    pub ensure: bool,
    http: bool,
    request: bool,
    full_body: bool,
    response: bool,
    capture: bool,
}

impl Debug {
    /// Reads the environment variable `DEBUG`.
    pub fn asked() -> Debug {
        std::env::var("DEBUG").map(|text| Debug::read(&text)).unwrap_or_default()
    }

    /// Parses the text of `DEBUG`.
    pub fn read(text: &str) -> Debug {
        let is = |name: &str| is_asked(text, name);
        let [http, request, response] = ["http", "http:request", "http:response"].map(is);
        let capture = http || is("http:capture");
        // As in Artillery: anywhere in the text.
        let full_body = text.contains("http:full_body");
        Debug {
            speaks_http: http || request || response || capture,
            ws: is("ws"),
            socketio: is("socketio"),
            ensure: is("plugin:ensure"),
            http,
            request,
            full_body,
            response,
            capture,
        }
    }

    /// The lines for a request that is being sent.
    pub fn request(&self, origin: &str, head: &[u8], body: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let text = String::from_utf8_lossy(head);
        let mut fields = text.lines();
        let mut words = fields.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if self.request {
            lines.push(format!("http:request request start: {target}"));
        }
        if self.http {
            let pairs = fields.filter_map(|field| field.split_once(": "));
            let headers: Map<String, Json> =
                pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect();
            let mut request = json!({ "url": format!("{origin}{target}"), "method": method, "headers": headers });
            if !body.is_empty() {
                request["body"] = self.shown(body).into();
            }
            lines.push(format!("http request: {request:#}"));
        }
        lines
    }

    /// The lines for an answer.
    pub fn response<'a>(
        &self,
        status: u16,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        body: &[u8],
    ) -> Vec<String> {
        if !self.response {
            return Vec::new();
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers: Map<String, Json> =
            fields.map(|(name, value)| (text(name).to_ascii_lowercase(), text(value).into())).collect();
        let body = text(body.get(..BODY_BYTES_MAX).unwrap_or(body));
        vec![format!("http:response {status} {:#}", Json::from(headers)), format!("http:response {}", Json::from(body))]
    }

    /// The line for captured values, `name: value`.
    pub fn captures(&self, captured: &[(String, String)]) -> Option<String> {
        if !self.capture || captured.is_empty() {
            return None;
        }
        let name = if self.http { "http" } else { "http:capture" };
        let all: Map<String, Json> =
            captured.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        Some(format!("{name} captures and matches: {:#}", Json::from(all)))
    }

    /// The line for a failed request.
    pub fn error(&self, name: &str) -> Option<String> {
        self.http.then(|| format!("http error: {name}"))
    }

    fn shown(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body.get(..BODY_BYTES_MAX).unwrap_or(body));
        match text.char_indices().nth(BODY_CHARS_MAX).filter(|_| !self.full_body) {
            Some((at, _)) => format!("{} ...", text.get(..at).unwrap_or_default()),
            None => text.into_owned(),
        }
    }
}

/// True if npm's debug would print this name.
fn is_asked(patterns: &str, name: &str) -> bool {
    let patterns = || patterns.split([',', ' ']).filter(|pattern| !pattern.is_empty());
    let is_out = patterns().filter_map(|pattern| pattern.strip_prefix('-')).any(|pattern| is_like(pattern, name));
    !is_out && patterns().any(|pattern| is_like(pattern, name))
}

/// True if the name matches; `*` stands for any text.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|left| {
            left.char_indices()
                .map(|(at, _)| at)
                .chain([left.len()])
                .any(|at| is_like(rest, left.get(at..).unwrap_or_default()))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_asked_for_as_npms_debug_reads_them() {
        for (text, http, request, response) in [
            ("", false, false, false),
            ("http", true, false, false),
            ("http*", true, true, true),
            ("http:*", false, true, true),
            ("*,-http:response", true, true, false),
            ("ws http:response", false, false, true),
            ("https", false, false, false),
        ] {
            let debug = Debug::read(text);
            assert_eq!((debug.http, debug.request, debug.response), (http, request, response), "{text}");
        }
        assert_eq!(Debug::read("nothing"), Debug::default());
        assert!(Debug::read("http:capture").speaks_http && Debug::read("*").ws);
        let debug = Debug::read("socketio plugin:*");
        assert!(debug.socketio && debug.ensure && !debug.ws && !Debug::read("*,-plugin:ensure").ensure);
    }

    #[test]
    fn long_bodies_are_cut_unless_asked_for() {
        let body = "ä".repeat(600);
        let head = b"POST /a?b HTTP/1.1\r\nX-A: 1\r\nHost: h\r\n\r\n";
        let line = |text: &str| Debug::read(text).request("http://h", head, body.as_bytes());
        let cut = line("http,http:request");
        assert_eq!(cut.first().map(String::as_str), Some("http:request request start: /a?b"));
        let cut = cut.get(1).map(String::as_str).unwrap_or_default();
        assert!(cut.contains("\"url\": \"http://h/a?b\"") && cut.contains("\"x-a\": \"1\""), "{cut}");
        assert!(cut.contains(&format!("\"{} ...\"", "ä".repeat(512))), "{cut}");
        assert!(line("http,http:full_body").concat().contains(&body));
    }

    #[test]
    fn answers_and_captures_have_their_names() {
        let fields = [(&b"Content-Type"[..], &b"text/plain"[..])];
        let lines = Debug::read("http:response").response(200, fields.into_iter(), b"a\"b");
        assert_eq!(lines, ["http:response 200 {\n  \"content-type\": \"text/plain\"\n}", "http:response \"a\\\"b\""]);
        let captured = [("id".to_owned(), "7".to_owned())];
        let line = |text: &str| Debug::read(text).captures(&captured);
        assert_eq!(line("http:capture").as_deref(), Some("http:capture captures and matches: {\n  \"id\": \"7\"\n}"));
        assert!(line("http").is_some_and(|line| line.starts_with("http captures")) && line("ws").is_none());
        assert_eq!(Debug::read("http").error("ETIMEDOUT").as_deref(), Some("http error: ETIMEDOUT"));
    }
}
