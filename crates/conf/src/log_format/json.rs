//! Lines of JSON without a `log_format`: the fields have the names of nginx's variables, or usual other names.

use serde_json::Value;

/// Deepest object that is searched: some servers put the request into an object of its own.
const DEPTH_MAX: usize = 3;

/// nginx's variable, and the usual names of its field: lower-case letters and digits alone, because programs write
/// `client_ip`, `clientIp` and `client-ip`. A field of an object has also the name of both, as `ip` in `source`.
const NAMES: [(&str, &[&str]); 11] = [
    ("request", &["request", "requestline"]),
    (
        "request_uri",
        &["requesturi", "uri", "url", "path", "requestpath", "uripath", "csuristem", "urlpath", "urloriginal"],
    ),
    ("args", &["args", "querystring", "query", "uriquery", "csuriquery", "urlquery"]),
    ("request_method", &["requestmethod", "method", "verb", "httpmethod", "csmethod"]),
    ("host", &["host", "httphost", "servername", "requesthost", "cshost"]),
    (
        "remote_addr",
        &[
            "remoteaddr",
            "remoteip",
            "clientip",
            "client",
            "sourceip",
            "srcip",
            "cip",
            "remoteaddress",
            "clientaddress",
            "sourceaddress",
            "clientaddr",
            "remotehost",
            "clienthost",
            "ip",
        ],
    ),
    ("http_x_forwarded_for", &["httpxforwardedfor", "xforwardedfor"]),
    (
        "http_user_agent",
        &["httpuseragent", "useragent", "agent", "requestuseragent", "csuseragent", "useragentoriginal"],
    ),
    ("status", &["status", "statuscode", "downstreamstatus", "scstatus", "responsestatuscode"]),
    ("request_time", &["requesttime"]),
    ("body_bytes_sent", &["bodybytessent", "bytessent", "size", "scbytes"]),
];
/// Names of the time, whose form differs.
const TIMES: [&str; 8] = ["timeiso8601", "timelocal", "msec", "time", "timestamp", "ts", "date", "startutc"];

/// Gives each known field of a line by nginx's name.
///
/// # Errors
/// `not_json` if the line is no object; the error of `take`.
pub(super) fn fields<E: Clone>(
    line: &[u8],
    not_json: E,
    mut take: impl FnMut(&str, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let whole: Value = serde_json::from_slice(line).map_err(|_| not_json.clone())?;
    whole.as_object().ok_or(not_json)?;
    if let Some(time) = TIMES.iter().find_map(|name| find(&whole, "", name, DEPTH_MAX)) {
        let name = match () {
            () if time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => "msec",
            () if time.contains('/') => "time_local",
            () => "time_iso8601",
        };
        take(name, time.as_bytes())?;
    }
    for (variable, names) in NAMES {
        if let Some(value) = names.iter().find_map(|name| find(&whole, "", name, DEPTH_MAX)) {
            // An object named `request` holds the fields; a text is the request line.
            take(variable, value.as_bytes())?;
        }
    }
    Ok(())
}

/// The text or the number with this name, in the object or in one inside it. `outer` is the name of this object.
fn find(value: &Value, outer: &str, name: &str, depth: usize) -> Option<String> {
    let object = value.as_object().filter(|_| depth > 0)?;
    let is_it = |key: &str| {
        let key = plain(key);
        key == name || name.strip_prefix(outer).is_some_and(|rest| !outer.is_empty() && key == rest)
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let own = object.iter().filter(|(key, _)| is_it(key)).find_map(|(_, value)| text(value));
    own.or_else(|| {
        let mut objects = object.iter().filter(|(_, value)| value.is_object());
        objects.find_map(|(key, inner)| find(inner, &plain(key), name, depth - 1))
    })
}

/// A name without signs, in lower case.
fn plain(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
