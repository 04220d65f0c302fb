//! Lines of JSON without a `log_format`: the fields have the names of nginx's variables, or usual other names.

use serde_json::Value;

/// Deepest object that is searched: some servers put the request into an object of its own.
const DEPTH_MAX: usize = 3;

/// Usual names of a field, and nginx's variable with this meaning.
const NAMES: [(&str, &[&str]); 10] = [
    ("request", &["request", "request_line"]),
    ("request_uri", &["request_uri", "uri", "url", "path", "RequestPath"]),
    ("request_method", &["request_method", "method", "verb", "RequestMethod"]),
    ("host", &["host", "http_host", "server_name", "RequestHost"]),
    ("remote_addr", &["remote_addr", "remote_ip", "client_ip", "client", "ip", "ClientHost"]),
    ("http_x_forwarded_for", &["http_x_forwarded_for", "x_forwarded_for"]),
    ("http_user_agent", &["http_user_agent", "user_agent", "agent", "request_User-Agent"]),
    ("status", &["status", "status_code", "DownstreamStatus"]),
    ("request_time", &["request_time"]),
    ("body_bytes_sent", &["body_bytes_sent", "bytes_sent", "size"]),
];
/// Names of the time, whose form differs.
const TIMES: [&str; 9] =
    ["time_iso8601", "time_local", "msec", "time", "timestamp", "@timestamp", "ts", "date", "StartUTC"];

/// Gives each known field of a line by nginx's name. `None`: the line is no object, or a value has another meaning.
pub(super) fn fields(line: &[u8], mut take: impl FnMut(&str, &[u8]) -> Option<()>) -> Option<()> {
    let whole: Value = serde_json::from_slice(line).ok()?;
    whole.as_object()?;
    if let Some(time) = TIMES.iter().find_map(|name| find(&whole, name, DEPTH_MAX)) {
        let name = match () {
            () if time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => "msec",
            () if time.contains('/') => "time_local",
            () => "time_iso8601",
        };
        take(name, time.as_bytes())?;
    }
    for (variable, names) in NAMES {
        if let Some(value) = names.iter().find_map(|name| find(&whole, name, DEPTH_MAX)) {
            // An object named `request` holds the fields; a text is the request line.
            take(variable, value.as_bytes())?;
        }
    }
    Some(())
}

/// The text or the number with this name, in the object or in one inside it.
fn find(value: &Value, name: &str, depth: usize) -> Option<String> {
    let object = value.as_object().filter(|_| depth > 0)?;
    let plain = match object.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    plain.or_else(|| object.values().find_map(|inner| find(inner, name, depth - 1)))
}
