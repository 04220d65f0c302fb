//! The `response` argument of hooks: the members of Node's message and of got, Artillery's client.

use std::time::{Duration, UNIX_EPOCH};

use weir_net::{Instant, clock};

use super::asked::CurrentRequest;
use super::headers::headers;
use super::phrase;
use crate::client::{Answer, Timings};
use crate::processor::member;
use crate::url::Url;
use crate::value::{Map, Value};

/// The response; `params` are `requestParams`.
///
/// `request` has the members that both request.js and got have (`method`, `uri`, `headers`): old Artillery scripts
/// read them.
pub(super) fn of(asked: &CurrentRequest<'_>, answer: &Answer, body: &[u8], params: &Value) -> Value {
    let url = asked.url();
    let parsed = Url::parse(&url).ok();
    let param = |name: &str| member(params, name).cloned().unwrap_or_default();
    let method = text(asked.method());
    let options = map([("url", text(&url)), ("method", method.clone()), ("headers", param("headers"))]);
    let request = map([
        ("uri", parsed.as_ref().map_or(Value::Undefined, |parsed| uri(&url, parsed))),
        ("method", method.clone()),
        ("headers", param("headers")),
        ("options", options),
    ]);
    let node_request = parsed.as_ref().map_or(Value::Undefined, |parsed| {
        map([
            ("method", method),
            ("path", text(&parsed.target)),
            ("host", text(&parsed.host)),
            ("protocol", text(&format!("{}:", parsed.scheme.name()))),
        ])
    });
    let status = answer.status();
    // As got's `response.ok`: a redirect that is not followed is no failure.
    let is_ok = (200..=if asked.follows() { 299 } else { 399 }).contains(&status) || status == 304;
    let redirects = asked.urls.iter().skip(1).chain(asked.urls.first().map(|_| &url));
    let reason = match answer.reason() {
        b"" => phrase::of(status).map_or(Value::Undefined, text),
        reason => lossy(reason),
    };
    map([
        ("url", text(&url)),
        ("requestUrl", text(&asked.first_url())),
        ("redirectUrls", list(redirects.map(|url| text(url)))),
        ("request", request),
        ("req", node_request),
        ("statusCode", Value::Number(f64::from(status))),
        ("statusMessage", reason),
        ("httpVersion", text(answer.version())),
        ("headers", Value::from(headers(answer))),
        ("rawHeaders", list(answer.fields().flat_map(|(name, value)| [name, value]).map(lossy))),
        ("trailers", map([])),
        ("rawTrailers", list([])),
        ("body", lossy(body)),
        ("ip", asked.target().and_then(|(origin, _)| origin.ip()).map_or(Value::Undefined, |ip| text(&ip.to_string()))),
        ("ok", Value::Bool(is_ok)),
        ("isFromCache", Value::Bool(false)),
        ("retryCount", Value::Number(0.0)),
        ("complete", Value::Bool(true)),
        ("aborted", Value::Bool(false)),
        ("timings", timings(&answer.timings)),
    ])
}

/// Times since 1970 and phases in whole milliseconds, as `@szmarczak/http-timer` has them.
fn timings(timings: &Timings) -> Value {
    let ms = |time: Duration| Value::Number(time.as_millis() as f64);
    let (now, wall) = (clock::precise(), clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default());
    let at = |instant: Instant| ms(wall.saturating_sub(now.saturating_duration_since(instant)));
    // The socket of a reused connection was there at once.
    let opening = |time: Duration| if timings.is_fresh { time } else { Duration::ZERO };
    let lookup = timings.started + opening(timings.dns);
    let connect = lookup + opening(timings.tcp);
    let secure = timings.tls.map(|tls| connect + opening(tls));
    let phases = map([
        ("wait", Value::Number(0.0)),
        ("dns", ms(timings.dns)),
        ("tcp", ms(timings.tcp)),
        ("tls", timings.tls.map_or(Value::Undefined, ms)),
        ("request", Value::Number(0.0)),
        ("firstByte", ms(timings.first_byte())),
        ("download", ms(timings.end - timings.head)),
        ("total", ms(timings.total())),
    ]);
    map([
        ("start", at(timings.started)),
        ("socket", at(timings.started)),
        ("lookup", at(lookup)),
        ("connect", at(connect)),
        ("secureConnect", secure.map_or(Value::Undefined, at)),
        ("upload", at(timings.sent)),
        ("response", at(timings.head)),
        ("end", at(timings.end)),
        ("error", Value::Undefined),
        ("abort", Value::Undefined),
        ("phases", phases),
    ])
}

/// The members of Node's `url.parse` that scripts read.
fn uri(url: &str, parsed: &Url) -> Value {
    let (path, query) = parsed.target.split_once('?').unwrap_or((&parsed.target, ""));
    map([
        ("href", text(url)),
        ("protocol", text(&format!("{}:", parsed.scheme.name()))),
        ("host", text(&parsed.authority)),
        ("hostname", text(&parsed.host)),
        ("port", text(&parsed.port.to_string())),
        ("path", text(&parsed.target)),
        ("pathname", text(path)),
        ("query", text(query)),
    ])
}

fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::from(members.into_iter().map(|(name, value)| (name.into(), value)).collect::<Map>())
}

fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::List(values.into_iter().collect::<Vec<_>>().into())
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn lossy(bytes: &[u8]) -> Value {
    Value::from(&*String::from_utf8_lossy(bytes))
}
