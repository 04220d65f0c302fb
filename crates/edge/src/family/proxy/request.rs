//! Composes the request that goes upstream: line, fields, and how its body is framed.

use weir_wire::{Known, KnownSet, Version, encode, escape};

use super::Pass;
use crate::exchange::Exchange;
use crate::family::otel;
use weir_wire::fields::make_safe;
use crate::trace::context::Trace;
use crate::variable::{Names, Template};

/// What a location sends, compiled once: fields it sets, and the client's fields it leaves out.
#[derive(Default)]
pub struct Plan {
    /// `proxy_set_header`s, nginx's defaults first where they are not overridden.
    set: Vec<Set>,
    /// The host of the default `Host`, when no `proxy_set_header Host` is written.
    default_host: bool,
    /// Names of the client's fields that are not passed: those set above, and those of one hop.
    skipped: KnownSet,
    skipped_names: Vec<Box<[u8]>>,
    /// A client's `TE: trailers` is passed on.
    passes_te: bool,
    /// `Connection` and `Upgrade` were not written: a WebSocket may be passed through by weir's own doing.
    upgrades: bool,
}

/// Of what is set, a piece that is sent as it stands, or a field whose value is to be found.
enum Set {
    /// Whole lines.
    Lines(Vec<u8>),
    /// The name with the colon and space behind it, and what makes the value.
    Field(Box<[u8]>, Template),
}

/// How the request's body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body, no field.
    None,
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// What nginx drops of a client's request unless told otherwise (1.31): fields of one hop.
const ONE_HOP: [Known; 7] = [
    Known::Connection,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::Te,
    Known::TransferEncoding,
    Known::Upgrade,
    Known::Expect,
];

/// What a client's request says about the answer it has already, or about a part of it: the cache asks for the whole.
const CONDITIONS: [Known; 6] = [
    Known::Range,
    Known::IfRange,
    Known::IfMatch,
    Known::IfNoneMatch,
    Known::IfModifiedSince,
    Known::IfUnmodifiedSince,
];

impl Plan {
    /// Compiles the `proxy_set_header`s of one block; `passes_te` where trailers are passed on unasked (gRPC).
    pub fn compile(written: &[(String, Template)], _names: &mut Names, passes_te: bool) -> Plan {
        let mut plan = Plan::default();
        for known in ONE_HOP {
            plan.skipped.insert(known);
        }
        plan.skipped.insert(Known::Host);
        plan.skipped.insert(Known::ContentLength);
        let named = |known: Known| written.iter().any(|(name, _)| Known::of(name.as_bytes()) == Some(known));
        plan.default_host = !named(Known::Host);
        plan.passes_te = passes_te && !named(Known::Te);
        plan.upgrades = !named(Known::Upgrade) && !named(Known::Connection);
        for (name, template) in written {
            match Known::of(name.as_bytes()) {
                Some(known) => plan.skipped.insert(known),
                None => plan.skipped_names.push(name.as_bytes().into()),
            }
            plan.set(name, template);
        }
        plan
    }

    fn set(&mut self, name: &str, template: &Template) {
        let name = [name.as_bytes(), b": "].concat();
        let value = match template.literal() {
            // nginx: a field whose value is empty is not sent at all.
            Some(b"") => return,
            Some(value) => value,
            None => return self.set.push(Set::Field(name.into(), template.clone())),
        };
        let line = [&name, value, b"\r\n"].concat();
        match self.set.last_mut() {
            Some(Set::Lines(lines)) => lines.extend_from_slice(&line),
            Some(Set::Field(..)) | None => self.set.push(Set::Lines(line)),
        }
    }

    fn skips(&self, known: Option<Known>, name: &[u8]) -> bool {
        match known {
            Some(known) => self.skipped.contains(known),
            None => self.skipped_names.iter().any(|skipped| skipped.eq_ignore_ascii_case(name)),
        }
    }
}

/// What `proxy_pass` with variables came to.
pub struct Target {
    /// Host and port as `$proxy_host` shows them.
    pub host: Vec<u8>,
    /// The URI to ask for, where the text named one.
    pub uri: Option<Vec<u8>>,
    /// The upstream is asked over TLS.
    pub is_tls: bool,
}

/// Whether the client asks for a WebSocket that weir passes on without being told to.
pub fn passes_upgrade(exchange: &Exchange<'_>) -> bool {
    let request = &exchange.request;
    exchange.location.values.proxy.plan.upgrades
        && exchange.location.values.proxy.version == Version::Http11
        && request.tokens.upgrade
        && request.version() >= Version::Http11
        && request.method() == b"GET"
        && request.field(Known::Upgrade).is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"))
}

/// Composes line and fields into `out`.
pub fn compose(
    exchange: &mut Exchange<'_>,
    pass: &Pass,
    target: Option<&Target>,
    framing: BodyFraming,
    out: &mut Vec<u8>,
) {
    let location = exchange.location;
    let proxy = &location.values.proxy;
    let plan = &proxy.plan;
    out.clear();
    match &proxy.method {
        Some(template) => {
            template.eval(exchange, out);
            make_safe(out);
        }
        None => out.extend_from_slice(exchange.upstream_method()),
    }
    out.push(b' ');
    push_target(exchange, Some(pass), target, out);
    // HTTP/2 is made of what HTTP/1.1 would say (`h2::Stream::send_request`).
    out.extend_from_slice(if proxy.version < Version::Http11 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });

    if plan.default_host {
        let host = target.map_or(pass.host.as_bytes(), |target| target.host.as_slice());
        encode::push_field(out, b"Host", host);
    }
    if proxy.version < Version::Http11 && plan.upgrades {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    push_set(exchange, plan, out);
    if plan.passes_te && takes_trailers(exchange) {
        out.extend_from_slice(b"TE: trailers\r\n");
    }
    if passes_upgrade(exchange) {
        out.extend_from_slice(b"Connection: upgrade\r\nUpgrade: websocket\r\n");
    }
    match framing {
        BodyFraming::None => {}
        BodyFraming::Length(length) => encode::push_field_decimal(out, b"Content-Length", length),
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    push_validators(exchange, plan, out);
    if proxy.pass_headers {
        let request = &exchange.request;
        let holds_back = exchange.cache.holds_conditions_back();
        let told = otel::injected(exchange);
        for field in request.fields() {
            let name = request.text(field.name);
            if plan.skips(field.known, name)
                || (told.is_some() && field.known.is_none() && otel::is_told(name))
                || (holds_back && field.known.is_some_and(|known| CONDITIONS.contains(&known)))
            {
                continue;
            }
            encode::push_field(out, name, request.text(field.value));
        }
        if let Some(trace) = told {
            push_trace(trace, plan, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// What `proxy_set_header` says.
fn push_set(exchange: &mut Exchange<'_>, plan: &Plan, out: &mut Vec<u8>) {
    for set in &plan.set {
        let (name, template) = match set {
            Set::Lines(lines) => {
                out.extend_from_slice(lines);
                continue;
            }
            Set::Field(name, template) => (name, template),
        };
        let start = out.len();
        out.extend_from_slice(name);
        let value = out.len();
        template.eval(exchange, out);
        make_safe(out.get_mut(value..).unwrap_or_default());
        // As above: what is empty is not sent.
        if out.len() == value { out.truncate(start) } else { out.extend_from_slice(b"\r\n") }
    }
}

/// Whether this try's request asked its upstream for another protocol (RFC 9110 §7.8: `Upgrade`, and a `Connection` that names
/// it). For the rare 101: it evaluates the fields again that may have said so.
pub fn asks_for_upgrade(exchange: &mut Exchange<'_>) -> bool {
    if passes_upgrade(exchange) {
        return true;
    }
    let mut lines = Vec::new();
    let location = exchange.location;
    push_set(exchange, &location.values.proxy.plan, &mut lines);
    let (mut names_protocol, mut is_named) = (false, false);
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
        names_protocol |= name.eq_ignore_ascii_case(b"upgrade") && !value.trim_ascii().is_empty();
        is_named |= name.eq_ignore_ascii_case(b"connection")
            && value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
    }
    names_protocol && is_named
}

/// The trace, where `proxy_set_header` does not say something else.
fn push_trace(trace: &Trace, plan: &Plan, out: &mut Vec<u8>) {
    if !plan.skips(None, b"traceparent") {
        encode::push_field(out, b"traceparent", &trace.current.text());
    }
    if !trace.state.is_empty() && !plan.skips(None, b"tracestate") {
        encode::push_field(out, b"tracestate", &trace.state);
    }
}

/// Whether the client takes trailers, as it says (nginx: `$grpc_internal_trailers`).
pub fn takes_trailers(exchange: &Exchange<'_>) -> bool {
    let te = exchange.request.field(Known::Te).unwrap_or_default();
    te.windows(b"trailers".len()).any(|part| part.eq_ignore_ascii_case(b"trailers"))
}

/// What a stored answer is asked about with, where `proxy_set_header` does not say something else.
fn push_validators(exchange: &Exchange<'_>, plan: &Plan, out: &mut Vec<u8>) {
    let Some((last_modified, etag)) = exchange.cache.validators() else { return };
    if let Some(seconds) = last_modified
        && !plan.skipped.contains(Known::IfModifiedSince)
    {
        encode::push_field(out, b"If-Modified-Since", &weir_wire::date::http_date(seconds));
    }
    if !etag.is_empty() && !plan.skipped.contains(Known::IfNoneMatch) {
        encode::push_field(out, b"If-None-Match", etag);
    }
}

/// Appends the target as the upstream is sent it; the error log shows it too.
pub(crate) fn push_target(exchange: &Exchange<'_>, pass: Option<&Pass>, target: Option<&Target>, out: &mut Vec<u8>) {
    let is_replaced = match (target, pass) {
        (Some(target), _) => target.uri.is_some(),
        (None, Some(pass)) => pass.uri.is_some() && !exchange.uri_changed,
        (None, None) => false,
    };
    if exchange.target_is_valid && !is_replaced {
        // As the client wrote it: nothing decoded, nothing encoded again.
        return out.extend_from_slice(exchange.request.text(exchange.request.head.path));
    }
    let start = out.len();
    match (target.and_then(|target| target.uri.as_ref()), pass.and_then(|pass| pass.uri.as_ref())) {
        (Some(uri), _) => out.extend_from_slice(uri),
        // nginx: the part of the path that matched the location is replaced by the URI. A path that `rewrite …
        // break` made matched no location and goes as it is.
        (None, Some(uri)) if is_replaced => {
            out.extend_from_slice(uri.as_bytes());
            let replaces = pass.map_or(0, |pass| pass.replaces);
            push_path(exchange, exchange.uri.get(replaces..).unwrap_or_default(), out);
            push_args(exchange, out);
        }
        (None, _) => {
            push_path(exchange, &exchange.uri, out);
            push_args(exchange, out);
        }
    }
    escape_breaks(out, start);
}

/// Bytes that would end the target, or its line, are escaped: a variable that a client fills makes no second request.
fn escape_breaks(out: &mut Vec<u8>, start: usize) {
    let breaks = |byte: &u8| matches!(byte, 0..=b' ' | 0x7f);
    if !out.get(start..).unwrap_or_default().iter().any(breaks) {
        return;
    }
    let raw = out.split_off(start);
    for byte in raw {
        if breaks(&byte) { out.extend_from_slice(format!("%{byte:02X}").as_bytes()) } else { out.push(byte) }
    }
}

fn push_path(exchange: &Exchange<'_>, path: &[u8], out: &mut Vec<u8>) {
    if exchange.uri_was_quoted || exchange.internal {
        escape::escape_uri(path, out);
    } else {
        out.extend_from_slice(path);
    }
}

fn push_args(exchange: &Exchange<'_>, out: &mut Vec<u8>) {
    if !exchange.args.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&exchange.args);
    }
}
