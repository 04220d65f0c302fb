//! Writes an exchange as a span, in protobuf (opentelemetry-proto 1, `trace.proto`), with the attributes of nginx's
//! module: those of OpenTelemetry's conventions for HTTP as of 1.16.

use weir_cache::store::Refreshed;
use weir_net::clock;
use weir_wire::framing::BodyLength;
use weir_wire::protobuf::{bytes, fixed, message, number};

use crate::exchange::Exchange;
use crate::exchange::message::Try;
use crate::exchange::trace::context::{self, STATE_BYTES_MAX, Trace};
use crate::text::texts::push_address;

/// The longest value of an attribute in bytes; the rest is cut off.
const VALUE_BYTES_MAX: usize = 4096;
/// The most tries in a span; a request with more tries says how many.
const TRIES_MAX: usize = 32;
/// Room for a span before it grows.
const SPAN_BYTES: usize = 1024;

/// Fields of a `Span`.
const ATTRIBUTES: u64 = 9;
const EVENTS: u64 = 11;
const STATUS: u64 = 15;
/// The field of an `Event`'s attributes.
const EVENT_ATTRIBUTES: u64 = 3;
/// Kinds of spans.
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// The status code of a failed span.
const ERROR: u64 = 2;

/// The subject of a span.
#[derive(Clone, Copy)]
pub enum Told {
    /// A client's request.
    Request,
    /// A background refresh of the cache, and its result.
    Refresh(Refreshed),
}

/// Writes the exchange's span, and spans of its tries if they have their own. `give` takes each span as a field of
/// `ScopeSpans`.
pub fn write(exchange: &mut Exchange<'_>, trace: &Trace, told: Told, mut give: impl FnMut(Box<[u8]>)) {
    let times = Times::of(exchange);
    let settings = &exchange.location.values.otel;
    let (name, own) = (name(exchange), own_attributes(exchange));
    let mut out = Vec::with_capacity(SPAN_BYTES);
    message(2, &mut out, |out| {
        let parent = trace.parent.map(|parent| parent.span);
        head(trace, trace.current.span, parent, out);
        bytes(5, &name, out);
        number(6, if matches!(told, Told::Request) { SERVER } else { INTERNAL }, out);
        fixed(7, times.start_ns, out);
        fixed(8, times.now_ns, out);
        attributes(exchange, out);
        if let Told::Refresh(how) = told {
            text(ATTRIBUTES, "weir.cache.refresh", how.as_str().as_bytes(), out);
        }
        for (name, value) in &own {
            // nginx: the semantic conventions define a list for fields, and nginx writes one value.
            let is_list = name.starts_with("http.request.header.") || name.starts_with("http.response.header.");
            if is_list { list(name, value, out) } else { text(ATTRIBUTES, name, value, out) }
        }
        if !settings.upstream_spans {
            for attempt in exchange.tries.iter().take(TRIES_MAX) {
                message(EVENTS, out, |out| event(attempt, &times, out));
            }
        }
        if exchange.response.status.get() >= 500 {
            message(STATUS, out, |out| number(3, ERROR, out));
        }
    });
    give(out.into_boxed_slice());
    if settings.upstream_spans {
        for (index, attempt) in exchange.tries.iter().take(TRIES_MAX).enumerate() {
            let mut out = Vec::with_capacity(SPAN_BYTES);
            message(2, &mut out, |out| child(exchange, trace, attempt, (index as u64, &times), out));
            give(out.into_boxed_slice());
        }
    }
}

/// Wall clock times: an exchange's times are relative to its start.
struct Times {
    start_ns: u64,
    now_ns: u64,
    started: weir_net::Instant,
}

impl Times {
    fn of(exchange: &Exchange<'_>) -> Times {
        let start_ns = exchange.facts.started_wall_ms * 1_000_000;
        let took = clock::now().us_since(exchange.facts.started) * 1000;
        Times { start_ns, now_ns: start_ns + took, started: exchange.facts.started }
    }

    /// The start of a try.
    fn begun(&self, attempt: &Try) -> u64 {
        attempt.started.map_or(self.now_ns, |at| self.start_ns + at.us_since(self.started) * 1000)
    }
}

/// The ids of the trace and the span.
fn head(trace: &Trace, span: [u8; 8], parent: Option<[u8; 8]>, out: &mut Vec<u8>) {
    bytes(1, &trace.current.trace, out);
    bytes(2, &span, out);
    if !trace.state.is_empty() {
        clipped(3, &trace.state, STATE_BYTES_MAX, out);
    }
    if let Some(parent) = parent {
        bytes(4, &parent, out);
    }
}

/// The value of `otel_span_name`, else the location as written; without a location name, the method.
fn name(exchange: &mut Exchange<'_>) -> Vec<u8> {
    let location = exchange.location;
    let name = match &location.values.otel.span_name {
        Some(template) => template.text(exchange),
        None if location.name.is_empty() => exchange.request.method().to_vec(),
        None => location.name.as_bytes().to_vec(),
    };
    String::from_utf8_lossy(name.get(..name.len().min(VALUE_BYTES_MAX)).unwrap_or_default()).into_owned().into_bytes()
}

/// `otel_span_attr`s.
fn own_attributes<'c>(exchange: &mut Exchange<'c>) -> Vec<(&'c str, Vec<u8>)> {
    let location = exchange.location;
    let all = location.values.otel.attributes.iter();
    all.map(|(name, template)| (name.as_str(), template.text(exchange))).collect()
}

fn attributes(exchange: &Exchange<'_>, out: &mut Vec<u8>) {
    let request = &exchange.request;
    text(ATTRIBUTES, "http.method", request.method(), out);
    text(ATTRIBUTES, "http.target", request.target(), out);
    let scheme = exchange.client.scheme();
    text(ATTRIBUTES, "http.scheme", scheme, out);
    if !exchange.location.name.is_empty() {
        text(ATTRIBUTES, "http.route", exchange.location.name.as_bytes(), out);
    }
    if let Some(version) = request.text(request.head.protocol).strip_prefix(b"HTTP/") {
        text(ATTRIBUTES, "http.flavor", version, out);
    }
    if let Some(agent) = request.field(weir_wire::Known::UserAgent) {
        text(ATTRIBUTES, "http.user_agent", agent, out);
    }
    let received = if let Some(BodyLength::Exact(length)) = request.length { length } else { 0 };
    integer(ATTRIBUTES, "http.request_content_length", received, out);
    let host = &exchange.server.name;
    text(ATTRIBUTES, "net.host.name", if host.is_empty() { &request.host } else { host.as_bytes() }, out);
    let mut address = Vec::new();
    push_address(exchange.remote(), &mut address);
    text(ATTRIBUTES, "net.sock.peer.addr", &address, out);
    if let Some(remote) = exchange.remote().tcp() {
        integer(ATTRIBUTES, "net.sock.peer.port", u64::from(remote.port()), out);
    }
    if let Some(local) = exchange.client.local().tcp() {
        let default = if scheme == b"https" { 443 } else { 80 };
        if local.port() != default {
            integer(ATTRIBUTES, "net.host.port", u64::from(local.port()), out);
        }
    }
    integer(ATTRIBUTES, "http.response_content_length", exchange.bytes.body_sent, out);
    if exchange.response.status.get() > 0 {
        integer(ATTRIBUTES, "http.status_code", u64::from(exchange.response.status.get()), out);
    }
    if let Some(status) = exchange.cache.status {
        text(ATTRIBUTES, "weir.cache.status", status.as_str().as_bytes(), out);
    }
    if exchange.tries.len() > TRIES_MAX {
        integer(ATTRIBUTES, "weir.upstream.tries", exchange.tries.len() as u64, out);
    }
}

/// A try as an event of the request's span, with the durations of its steps.
fn event(attempt: &Try, times: &Times, out: &mut Vec<u8>) {
    fixed(1, times.begun(attempt), out);
    bytes(2, b"upstream", out);
    peer(EVENT_ATTRIBUTES, attempt, out);
    let steps = [
        ("weir.upstream.connect_us", attempt.connect_us.map(u64::from)),
        ("weir.upstream.header_us", attempt.header_us),
        ("weir.upstream.response_us", attempt.response_us),
    ];
    for (name, took) in steps {
        if let Some(took) = took {
            integer(EVENT_ATTRIBUTES, name, took, out);
        }
    }
}

/// The attributes of a try, for an event or a span.
fn peer(field: u64, attempt: &Try, out: &mut Vec<u8>) {
    text(field, "server.address", attempt.peer.as_bytes(), out);
    if attempt.status > 0 {
        integer(field, "http.response.status_code", u64::from(attempt.status), out);
    }
    if let Some(why) = attempt.why {
        text(field, "error.type", why.as_str().as_bytes(), out);
    }
    if attempt.connect_us.is_some() {
        boolean(field, "weir.upstream.reused", attempt.reused, out);
    }
    integer(field, "weir.upstream.received", attempt.bytes_received, out);
}

/// A try as a span of its own: a client span below the request's span. Its steps are events.
fn child(exchange: &Exchange<'_>, trace: &Trace, attempt: &Try, (index, times): (u64, &Times), out: &mut Vec<u8>) {
    let begun = times.begun(attempt);
    let at = |us: u64| begun + us * 1000;
    head(trace, context::span_id(), Some(trace.current.span), out);
    bytes(5, exchange.upstream_method(), out);
    number(6, CLIENT, out);
    fixed(7, begun, out);
    fixed(8, attempt.response_us.map_or(times.now_ns.max(begun), at), out);
    text(ATTRIBUTES, "http.request.method", exchange.upstream_method(), out);
    peer(ATTRIBUTES, attempt, out);
    if index > 0 {
        integer(ATTRIBUTES, "http.request.resend_count", index, out);
    }
    let connected = attempt.connect_us.filter(|_| !attempt.reused).map(u64::from);
    for (name, us) in [("connected", connected), ("head", attempt.header_us)] {
        if let Some(us) = us {
            message(EVENTS, out, |out| {
                fixed(1, at(us), out);
                bytes(2, name.as_bytes(), out);
            });
        }
    }
    if attempt.why.is_some() || attempt.status >= 500 {
        message(STATUS, out, |out| number(3, ERROR, out));
    }
}

/// A text attribute; invalid UTF-8 is replaced, because one bad text makes a collector refuse the whole export.
fn text(field: u64, name: &str, value: &[u8], out: &mut Vec<u8>) {
    message(field, out, |out| {
        bytes(1, name.as_bytes(), out);
        message(2, out, |out| clipped(1, value, VALUE_BYTES_MAX, out));
    });
}

fn list(name: &str, value: &[u8], out: &mut Vec<u8>) {
    message(ATTRIBUTES, out, |out| {
        bytes(1, name.as_bytes(), out);
        // An `ArrayValue` of one `AnyValue`.
        message(2, out, |out| {
            message(5, out, |out| message(1, out, |out| clipped(1, value, VALUE_BYTES_MAX, out)));
        });
    });
}

fn clipped(field: u64, value: &[u8], bytes_max: usize, out: &mut Vec<u8>) {
    let value = value.get(..value.len().min(bytes_max)).unwrap_or_default();
    bytes(field, String::from_utf8_lossy(value).as_bytes(), out);
}

fn integer(field: u64, name: &str, value: u64, out: &mut Vec<u8>) {
    message(field, out, |out| {
        bytes(1, name.as_bytes(), out);
        message(2, out, |out| number(3, value, out));
    });
}

fn boolean(field: u64, name: &str, value: bool, out: &mut Vec<u8>) {
    message(field, out, |out| {
        bytes(1, name.as_bytes(), out);
        message(2, out, |out| number(2, u64::from(value), out));
    });
}
