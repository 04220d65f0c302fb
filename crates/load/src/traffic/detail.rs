//! The parts of a recorded request that a log does not have: fields, cookies, a body, the messages of a WebSocket.

use std::sync::Arc;

use foldhash::HashMap;
use weir_recording::model::{RecordedAnswer, RecordedBody, RecordedExchange, RecordedField};

/// Most different sets of such parts.
const DETAILS_MAX: usize = 1_000_000;
/// Most bytes of all their texts together.
const TEXTS_BYTES_MAX: usize = 256 << 20;
/// The longest value of a field or of a cookie.
const VALUE_BYTES_MAX: usize = 4096;
/// Most cookies of a request.
const COOKIES_MAX: usize = 30;

/// The fields that a script has; servers choose their answers by them. weir and Artillery write the others themselves,
/// or they name the client's network and the page before.
pub(super) const FIELDS: [&str; 20] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "authorization",
    "cache-control",
    "content-type",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "pragma",
    "range",
    "sec-websocket-protocol",
    "user-agent",
    "x-api-key",
    "x-auth-token",
    "x-csrf-token",
    "x-requested-with",
    "x-xsrf-token",
];
/// Those that belong to a client, and not to one of its requests.
pub(super) const OF_CLIENT: [&str; 5] = ["accept-language", "authorization", "user-agent", "x-api-key", "x-auth-token"];
/// Those of a condition.
const OF_CONDITION: [&str; 4] = ["if-match", "if-modified-since", "if-none-match", "if-unmodified-since"];

/// The number of a text in [`TrafficTexts`].
pub(super) type TextId = u32;

/// The parts of a request beyond its line. Equal details are one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RequestDetail {
    /// Numbers of [`FIELDS`], each with its value.
    fields: Vec<(u8, TextId)>,
    /// Names and values.
    pub(super) cookies: Vec<(TextId, TextId)>,
    /// The names of the cookies that the answer set.
    pub(super) set_cookies: Vec<TextId>,
    pub(super) body: Option<TextId>,
    /// Its index in [`super::gather::AccessLogs::tunnels`].
    pub(super) tunnel: Option<u32>,
}

/// A WebSocket as its client used it.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedTunnel {
    /// Pauses before the messages, in milliseconds, and the messages.
    pub(super) messages: Vec<(u64, TextId)>,
    /// The pause from the last message to the end, in milliseconds.
    pub(super) rest_ms: u64,
}

/// Whether the script has the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFate {
    /// The script has it, or there was none.
    Whole,
    /// The recording does not have it.
    Missing,
    /// It is no text that a script can have.
    Unfit,
}

/// Which parts of a request change what a server does, beside its URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallTraits {
    /// The version of HTTP, if the target can speak all of them.
    pub(super) version: Option<CallVersion>,
    pub(super) is_websocket: bool,
    pub(super) has_authorization: bool,
    pub(super) has_condition: bool,
    pub(super) has_range: bool,
}

/// A version of HTTP as a script can have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CallVersion {
    Http1,
    Http2,
    Http3,
}

impl CallTraits {
    pub(super) fn of(exchange: &RecordedExchange) -> CallTraits {
        let has = |names: &[&str]| exchange.fields.iter().any(|field| names.iter().any(|name| is_named(field, name)));
        CallTraits {
            version: None,
            is_websocket: false,
            has_authorization: has(&["authorization"]),
            has_condition: has(&OF_CONDITION),
            has_range: has(&["range"]),
        }
    }

    /// ` (HTTP/2, range)`, or nothing.
    pub(super) fn shown(self) -> String {
        let version = match self.version {
            Some(CallVersion::Http2) => "HTTP/2",
            Some(CallVersion::Http3) => "HTTP/3",
            Some(CallVersion::Http1) | None => "",
        };
        let flag = |is_set: bool, word| if is_set { word } else { "" };
        let words = [
            version,
            flag(self.is_websocket, "WebSocket"),
            flag(self.has_authorization, "authorization"),
            flag(self.has_condition, "condition"),
            flag(self.has_range, "range"),
        ];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
    }
}

impl RequestDetail {
    /// The value of a field.
    pub(super) fn field(&self, name: &str) -> Option<TextId> {
        self.fields.iter().find(|(number, _)| FIELDS.get(usize::from(*number)) == Some(&name)).map(|(_, text)| *text)
    }

    /// Takes the parts of an exchange that a script can have, and says what its body became.
    pub(super) fn of(exchange: &RecordedExchange, texts: &mut TrafficTexts) -> (RequestDetail, BodyFate) {
        let mut detail = RequestDetail::default();
        for (number, name) in (0..).zip(FIELDS) {
            let values = exchange.fields.iter().filter(|field| is_named(field, name));
            let values: Vec<&[u8]> = values.map(|field| field.value.bytes.as_slice()).collect();
            let value = values.join(&b", "[..]);
            let text = as_value(&value).filter(|_| !values.is_empty());
            detail.fields.extend(text.and_then(|text| texts.put(text)).map(|text| (number, text)));
        }
        for field in exchange.fields.iter().filter(|field| is_named(field, "cookie")) {
            for pair in field.value.bytes.split(|byte| *byte == b';') {
                detail
                    .cookies
                    .extend(cookie(pair).and_then(|(name, value)| Some((texts.put(name)?, texts.put(value)?))));
            }
        }
        detail.cookies.truncate(COOKIES_MAX);
        detail.set_cookies = exchange.answer.as_ref().map(|answer| set_cookies(answer, texts)).unwrap_or_default();
        let is_coded = exchange.fields.iter().any(|field| is_named(field, "content-encoding"));
        let fate = match body(&exchange.body, is_coded) {
            Ok(None) => BodyFate::Whole,
            Ok(Some(text)) => match texts.put(&text) {
                Some(text) => {
                    detail.body = Some(text);
                    BodyFate::Whole
                }
                None => BodyFate::Missing,
            },
            Err(fate) => fate,
        };
        (detail, fate)
    }
}

fn is_named(field: &RecordedField, name: &str) -> bool {
    field.name == name.as_bytes()
}

/// The names of the cookies that an answer sets, in rising order.
fn set_cookies(answer: &RecordedAnswer, texts: &mut TrafficTexts) -> Vec<TextId> {
    let fields = answer.fields.iter().filter(|field| is_named(field, "set-cookie"));
    let names = fields.filter_map(|field| texts.put(cookie(field.value.bytes.split(|byte| *byte == b';').next()?)?.0));
    let mut names: Vec<TextId> = names.take(COOKIES_MAX).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Name and value of a cookie.
fn cookie(pair: &[u8]) -> Option<(&str, &str)> {
    let (name, value) = as_value(pair.trim_ascii())?.split_once('=')?;
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}\"\\,".contains(&byte));
    (!name.is_empty() && is_name(name)).then_some((name, value))
}

/// The value of a field, if a script can have it: no control character, and no begin of a template.
fn as_value(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let fits = text.len() <= VALUE_BYTES_MAX && !text.contains("{{") && !text.chars().any(char::is_control);
    fits.then_some(text)
}

/// A body as a script can have it.
fn body(body: &RecordedBody, is_coded: bool) -> Result<Option<String>, BodyFate> {
    let Some(kept) = &body.kept else { return if body.length == 0 { Ok(None) } else { Err(BodyFate::Missing) } };
    if kept.bytes.is_empty() {
        return Ok(None);
    }
    text_of_body(&kept.bytes).filter(|_| !is_coded).map(Some).ok_or(BodyFate::Unfit)
}

/// The text of a body or of a message, without the begin of a template: in JSON a brace can be written in another way.
pub(super) fn text_of_body(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    if !text.contains("{{") {
        return Some(text.to_owned());
    }
    // Two opening braces side by side are always inside a string of JSON.
    serde_json::from_str::<serde_json::Value>(text).ok()?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '{' && out.ends_with('{') { out.push_str("\\u007b") } else { out.push(c) }
    }
    Some(out)
}

/// Texts, each once.
#[derive(Debug, Default)]
pub(super) struct TrafficTexts {
    all: Vec<Arc<str>>,
    known: HashMap<Arc<str>, TextId>,
    bytes: usize,
}

impl TrafficTexts {
    /// The number of a text. `None`: there are too many.
    pub(super) fn put(&mut self, text: &str) -> Option<TextId> {
        if let Some(known) = self.known.get(text) {
            return Some(*known);
        }
        let number = u32::try_from(self.all.len()).ok()?;
        self.bytes += text.len();
        if self.bytes > TEXTS_BYTES_MAX {
            return None;
        }
        let text: Arc<str> = text.into();
        self.all.push(text.clone());
        self.known.insert(text, number);
        Some(number)
    }

    pub(super) fn get(&self, text: TextId) -> &str {
        self.all.get(text as usize).map_or("", |text| text)
    }
}

/// All details. Number 0 is that of a request of a log: it has nothing.
#[derive(Debug)]
pub(super) struct Details {
    all: Vec<Arc<RequestDetail>>,
    known: HashMap<Arc<RequestDetail>, u32>,
    pub(super) texts: TrafficTexts,
}

impl Default for Details {
    fn default() -> Details {
        let none: Arc<RequestDetail> = Arc::default();
        let known = std::iter::once((none.clone(), 0)).collect();
        Details { all: vec![none], known, texts: TrafficTexts::default() }
    }
}

impl Details {
    /// The number of a detail. `None`: there are too many.
    pub(super) fn put(&mut self, detail: RequestDetail) -> Option<u32> {
        if let Some(known) = self.known.get(&detail) {
            return Some(*known);
        }
        let number = u32::try_from(self.all.len()).ok().filter(|_| self.all.len() < DETAILS_MAX)?;
        let detail = Arc::new(detail);
        self.all.push(detail.clone());
        self.known.insert(detail, number);
        Some(number)
    }

    pub(super) fn get(&self, number: u32) -> Option<&RequestDetail> {
        self.all.get(number as usize).map(|detail| &**detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_begins_a_template() {
        assert_eq!(as_value(b"text/html"), Some("text/html"));
        for value in [&b"{{ $env.HOME }}"[..], b"a\r\nb", b"\xff", &[b'a'; VALUE_BYTES_MAX + 1]] {
            assert_eq!(as_value(value), None);
        }
        assert_eq!(cookie(b" sid=a=b "), Some(("sid", "a=b")));
        assert_eq!((cookie(b"sid"), cookie(b"=x"), cookie(b"a b=c")), (None, None, None));
        assert_eq!(text_of_body(br#"{"a":{"b":{}}}"#).as_deref(), Some(r#"{"a":{"b":{}}}"#));
        let text = text_of_body(br#"{"a":"{{{ $env.X }}}"}"#);
        assert_eq!(text.as_deref(), Some(r#"{"a":"{\u007b{ $env.X }}}"}"#));
        for body in [&b"a={{ x }}"[..], b"\0", b"\xff\xfe"] {
            assert_eq!(text_of_body(body), None);
        }
    }
}
