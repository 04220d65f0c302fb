//! Options of socket.io-client: `config.socketio`, overridden by the scenario's options, rendered for a virtual user.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use crate::client::Resolver;
use crate::engine::dial::UrlAddress;
use crate::tls::Tls;
use crate::value::{Map, Value};

/// A transport for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Polling,
    WebSocket,
}

/// The options for connecting.
#[derive(Clone, Debug)]
pub(super) struct SocketioOptions {
    /// For `https` and `wss`.
    pub(super) tls: Rc<Tls>,
    /// The resolver of the run.
    pub(super) resolver: Resolver,
    pub(super) place: UrlAddress,
    /// Path and query up to the transport: `/socket.io/?a=b&EIO=4&transport=`.
    pub(super) begin: String,
    pub(super) headers: Vec<(String, String)>,
    /// Transports in order of attempts; never empty.
    pub(super) transports: Vec<Transport>,
    pub(super) tries_all: bool,
    pub(super) upgrades: bool,
    /// The name of the parameter that stops caches from answering a poll.
    pub(super) timestamp: Option<String>,
    /// JSON that is sent with each CONNECT packet.
    pub(super) auth: Option<String>,
    pub(super) reconnects: bool,
    pub(super) attempts_max: u64,
    pub(super) delay: Duration,
    pub(super) delay_max: Duration,
    pub(super) jitter: f64,
    /// Time limit for opening a connection.
    pub(super) timeout: Option<Duration>,
    /// True: all namespaces share one connection.
    pub(super) multiplexes: bool,
    /// The path of the target, without its last slash: the namespace that `''` means.
    pub(super) namespace: String,
}

impl SocketioOptions {
    /// The full name of a step's namespace: it is below the path of the target.
    pub fn full_name(&self, name: &str) -> Cow<'static, str> {
        if name.is_empty() && self.namespace.is_empty() {
            return Cow::Borrowed("/");
        }
        let slash = if name.is_empty() || name.starts_with('/') { "" } else { "/" };
        Cow::Owned(format!("{}{slash}{name}", self.namespace))
    }

    /// The name of the namespace as a step writes it.
    pub fn short_name(&self, full: &str) -> String {
        let name = full.strip_prefix(&*self.namespace).unwrap_or(full);
        if name == "/" { String::new() } else { name.to_owned() }
    }
}

/// Reads the merged options.
pub(super) fn read(target: &str, map: &Map) -> Result<SocketioOptions, String> {
    let place = UrlAddress::parse(target)?;
    let (path, query) = place.target.split_once('?').unwrap_or((&place.target, ""));
    let namespace = path.trim_end_matches('/').to_owned();
    let is = |name: &str, otherwise: bool| map.get(name).map_or(otherwise, |value| *value != Value::Bool(false));
    let is_true = |name: &str| map.get(name).is_some_and(Value::is_truthy);
    let ms = |name: &str, otherwise: u64| {
        let ms = map.get(name).map(Value::to_number).filter(|ms| *ms > 0.0 && *ms < 1e12);
        ms.map_or(Duration::from_millis(otherwise), |ms| Duration::from_secs_f64(ms / 1e3))
    };
    let headers = match map.get("extraHeaders") {
        Some(Value::Map(headers)) => {
            headers.iter().map(|(name, value)| (name.to_string(), value.to_text().into_owned())).collect()
        }
        _ => Vec::new(),
    };
    let timestamp = is("timestampRequests", true)
        .then(|| map.get("timestampParam").map_or_else(|| "t".to_owned(), |name| name.to_text().into_owned()));
    let timeout = match map.get("timeout") {
        Some(Value::Bool(false)) => None,
        _ => Some(ms("timeout", 20_000)),
    };
    Ok(SocketioOptions {
        tls: Rc::default(),
        resolver: Resolver::default(),
        begin: begin(map, query),
        headers,
        transports: transports(map.get("transports"))?,
        tries_all: is_true("tryAllTransports"),
        upgrades: is("upgrade", true),
        timestamp,
        auth: map.get("auth").and_then(Value::to_json),
        reconnects: is("reconnection", true),
        attempts_max: map.get("reconnectionAttempts").map(Value::to_number).map_or(u64::MAX, |max| max as u64),
        delay: ms("reconnectionDelay", 1000),
        delay_max: ms("reconnectionDelayMax", 5000),
        jitter: map.get("randomizationFactor").map_or(0.5, Value::to_number).clamp(0.0, 1.0),
        timeout,
        multiplexes: is("multiplex", true) && !is_true("forceNew") && !is_true("force new connection"),
        namespace,
        place,
    })
}

fn transports(value: Option<&Value>) -> Result<Vec<Transport>, String> {
    let Some(Value::List(names)) = value else {
        return Ok(vec![Transport::Polling, Transport::WebSocket]);
    };
    let known = names.iter().filter_map(|name| match &*name.to_text() {
        "polling" => Some(Transport::Polling),
        "websocket" => Some(Transport::WebSocket),
        _ => None,
    });
    let known: Vec<Transport> = known.collect();
    if known.is_empty() {
        return Err("No transports available".to_owned());
    }
    Ok(known)
}

/// Path and query as engine.io-client builds them, with the script's own parameters first.
fn begin(map: &Map, query_of_target: &str) -> String {
    let path = map.get("path").map_or("/socket.io".into(), Value::to_text);
    let path = path.strip_suffix('/').unwrap_or(&path);
    let slash = if map.get("addTrailingSlash") == Some(&Value::Bool(false)) { "" } else { "/" };
    let mut begin = format!("{path}{slash}?");
    let mut push = |name: &str, value: &str| begin.push_str(&format!("{}={}&", component(name), component(value)));
    match map.get("query") {
        Some(Value::Map(query)) => query.iter().for_each(|(name, value)| push(name, &value.to_text())),
        other => {
            let text = match other {
                Some(Value::Text(text)) => text,
                _ => query_of_target,
            };
            for pair in text.split('&').filter(|pair| !pair.is_empty()) {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                push(&decoded(name), &decoded(value));
            }
        }
    }
    begin + "EIO=4&transport="
}

/// `encodeURIComponent`.
fn component(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// `decodeURIComponent`; a part that it would refuse stays unchanged.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) if byte == b'%' => {
                out.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::value::parse_json;

    fn options(target: &str, json: &str) -> SocketioOptions {
        match parse_json(json.as_bytes()).unwrap() {
            Value::Map(map) => read(target, &map).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_url() {
        for (target, json, begin, namespace) in [
            ("http://a", "{}", "/socket.io/?EIO=4&transport=", ""),
            ("http://a/", r#"{"path":"/x/"}"#, "/x/?EIO=4&transport=", ""),
            ("http://a/chat/?q=1%202", "{}", "/socket.io/?q=1%202&EIO=4&transport=", "/chat"),
            ("http://a?q=1", r#"{"query":{"b c":"d&"}}"#, "/socket.io/?b%20c=d%26&EIO=4&transport=", ""),
            ("http://a", r#"{"query":"x=1&y","addTrailingSlash":false}"#, "/socket.io?x=1&y=&EIO=4&transport=", ""),
        ] {
            let options = options(target, json);
            assert_eq!((&*options.begin, &*options.namespace), (begin, namespace), "{target} {json}");
        }
    }

    #[test]
    fn defaults_are_the_clients() {
        let plain = options("http://a", "{}");
        assert_eq!(plain.transports, [Transport::Polling, Transport::WebSocket]);
        assert!(plain.upgrades && plain.reconnects && plain.multiplexes && plain.auth.is_none());
        assert_eq!(plain.timeout, Some(Duration::from_secs(20)));
        assert_eq!((plain.delay, plain.delay_max), (Duration::from_secs(1), Duration::from_secs(5)));
        let changed = options(
            "http://a",
            r#"{"transports":["websocket"],"upgrade":false,"reconnection":false,"forceNew":true,"timeout":500,
                "auth":{"token":"x"},"extraHeaders":{"a":1}}"#,
        );
        assert_eq!(changed.transports, [Transport::WebSocket]);
        assert!(!changed.upgrades && !changed.reconnects && !changed.multiplexes);
        assert_eq!(changed.timeout, Some(Duration::from_millis(500)));
        assert_eq!(changed.auth.as_deref(), Some(r#"{"token":"x"}"#));
        assert_eq!(changed.headers, [("a".to_owned(), "1".to_owned())]);
    }
}
