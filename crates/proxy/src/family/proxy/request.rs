//! Composes the upstream request: the request line, the fields, and the framing of the body.

use weir_http::exchange::Exchange;
use weir_http::exchange::trace::context::Trace;
use weir_http::family::otel;
use weir_http::text::template::Template;
use weir_net::log;
use weir_wire::encode::FieldWriter;
use weir_wire::fields::make_safe;
use weir_wire::{Known, KnownSet, Version, encode, escape};

use super::pass::{Pass, Scheme};
use crate::family::Values;

/// The fields that a location sends, compiled once: fields it sets, and client fields it leaves out.
#[derive(Default)]
pub struct Plan {
    /// `proxy_set_header`s, nginx's defaults first where they are not overridden. `Host` is not among them unless its
    /// value is fixed: then it is the first line.
    set: Vec<Set>,
    host: Host,
    /// Names of client fields that are not passed on: fields set above, and hop-by-hop fields.
    skipped: KnownSet,
    skipped_names: Vec<Box<[u8]>>,
    /// Passes a client's `TE: trailers` on.
    passes_te: bool,
    /// `Connection` and `Upgrade` are not set: weir may pass a WebSocket through on its own.
    upgrades: bool,
    /// A field declares a body.
    frames: bool,
}

/// A fixed piece of the fields, or a field with a value to evaluate.
enum Set {
    /// Whole lines.
    Lines(Vec<u8>),
    /// The name with `: `, and the template of the value.
    Field(Box<[u8]>, Template),
}

/// The `Host` of the request. It comes first, as RFC 9112 §3.2 asks and as nginx 1.31 does.
#[derive(Default)]
enum Host {
    /// That of the upstream.
    #[default]
    Upstream,
    /// A fixed value: a line of `Plan::set`, or none for an empty value to an upstream of HTTP/1.0.
    Fixed,
    /// A value to evaluate.
    Computed(Template),
    /// The empty value: none for HTTP/1.0, that of the upstream for HTTP/1.1.
    Empty,
}

/// How the request declares its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body, no field.
    None,
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// FastCGI's records.
    Records,
}

/// Client fields that nginx (1.31) drops by default: hop-by-hop fields.
const ONE_HOP: [Known; 7] = [
    Known::Connection,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::Te,
    Known::TransferEncoding,
    Known::Upgrade,
    Known::Expect,
];

/// Client fields about a version it has, or about a range: the cache drops them to get the whole answer.
const CONDITIONS: [Known; 6] = [
    Known::Range,
    Known::IfRange,
    Known::IfMatch,
    Known::IfNoneMatch,
    Known::IfModifiedSince,
    Known::IfUnmodifiedSince,
];

impl Plan {
    /// Compiles the `proxy_set_header`s of one block; `passes_te` if trailers are always passed on (gRPC).
    pub fn compile(written: &[(String, Template)], passes_te: bool) -> Plan {
        let mut plan = Plan::default();
        for known in ONE_HOP {
            plan.skipped.insert(known);
        }
        plan.skipped.insert(Known::Host);
        plan.skipped.insert(Known::ContentLength);
        let named = |known: Known| written.iter().any(|(name, _)| Known::of(name.as_bytes()) == Some(known));
        // nginx: of several, the last one.
        let is_host = |(name, _): &&(String, Template)| Known::of(name.as_bytes()) == Some(Known::Host);
        if let Some((name, template)) = written.iter().rfind(is_host) {
            plan.host = match template.literal() {
                Some(b"") => Host::Empty,
                Some(_) => Host::Fixed,
                None => Host::Computed(template.clone()),
            };
            if matches!(plan.host, Host::Fixed) {
                plan.set(name, template);
            }
        }
        plan.passes_te = passes_te && !named(Known::Te);
        plan.upgrades = !named(Known::Upgrade) && !named(Known::Connection);
        plan.frames = written.iter().any(|(name, template)| {
            matches!(Known::of(name.as_bytes()), Some(Known::ContentLength | Known::TransferEncoding))
                && template.literal() != Some(b"")
        });
        for (name, template) in written {
            match Known::of(name.as_bytes()) {
                Some(Known::Host) => continue,
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
            // nginx does not send a field with an empty value.
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

    #[inline]
    fn skips<'n>(&self, known: Option<Known>, name: impl FnOnce() -> &'n [u8]) -> bool {
        match known {
            Some(known) => self.skipped.contains(known),
            None => !self.skipped_names.is_empty() && self.skips_name(name()),
        }
    }

    fn skips_name(&self, name: &[u8]) -> bool {
        self.skipped_names.iter().any(|skipped| skipped.eq_ignore_ascii_case(name))
    }
}

/// The value of a `proxy_pass` with variables.
pub struct Target {
    /// Host and port as `$proxy_host` shows them.
    pub host: Vec<u8>,
    /// The URI to request, if the text has one.
    pub uri: Option<Vec<u8>>,
    /// weir uses TLS to the upstream.
    pub is_tls: bool,
}

/// Whether the client asks for a WebSocket that weir passes on by default. Where a cache may keep the answer, only
/// `proxy_set_header` makes the origin see the field: any client could choose the answer that all clients get.
pub fn passes_upgrade(exchange: &Exchange<'_>, values: &Values) -> bool {
    let (request, proxy) = (&exchange.request, &values.proxy);
    proxy.plan.upgrades
        && proxy.version == Version::Http11
        && request.wants_upgrade()
        && request.version() >= Version::Http11
        && request.method() == b"GET"
        && exchange.cache.zone.is_none()
        && request.field(Known::Upgrade).is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"))
}

/// Composes the request line and the fields into `out`.
pub fn compose(
    exchange: &mut Exchange<'_>,
    (values, pass): (&Values, &Pass),
    target: Option<&Target>,
    framing: BodyFraming,
    out: &mut Vec<u8>,
) {
    let proxy = &values.proxy;
    let plan = &proxy.plan;
    out.clear();
    // As in nginx, a HEAD that the cache makes a GET stays one, whatever `proxy_method` says.
    match proxy.method.as_ref().filter(|_| !exchange.cache.asks_with_get()) {
        Some(template) => {
            template.eval(exchange, out);
            make_safe(out);
        }
        None => out.extend_from_slice(exchange.upstream_method()),
    }
    out.push(b' ');
    push_target(exchange, Some(pass), target, out);
    // For HTTP/2, `h2::stream::Stream::send_request` converts the HTTP/1.1 head.
    out.extend_from_slice(if proxy.version < Version::Http11 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });

    push_host(exchange, proxy.version, (plan, pass), target, out);
    let start = out.len();
    push_set(exchange, plan, out);
    if exchange.request.is_copy {
        leave_out(out, start, |line| upgrade_line(line) != (false, false));
    }
    if plan.frames {
        leave_out(out, start, |line| is_other_framing(line, framing));
    }
    if plan.passes_te && takes_trailers(exchange) {
        out.extend_from_slice(b"TE: trailers\r\n");
    }
    if passes_upgrade(exchange, values) {
        out.extend_from_slice(b"Connection: upgrade\r\nUpgrade: websocket\r\n");
    }
    match framing {
        BodyFraming::None | BodyFraming::Records => {}
        BodyFraming::Length(length) => encode::push_field_decimal(out, b"Content-Length", length),
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    push_validators(exchange, plan, out);
    if proxy.pass_headers {
        let request = &exchange.request;
        let holds_back = exchange.cache.holds_conditions_back();
        let told = otel::injected(exchange);
        let mut lines = FieldWriter::of(&request.bytes);
        for field in request.fields() {
            let name = || request.text(field.name);
            if plan.skips(field.known, name)
                || (told.is_some() && field.known.is_none() && otel::is_told(name()))
                || (holds_back && field.known.is_some_and(|known| CONDITIONS.contains(&known)))
            {
                continue;
            }
            lines.push(field.name, field.value, out);
        }
        lines.finish(out);
        if let Some(trace) = told {
            push_trace(trace, plan, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends `Host`, unless it is a line of the fixed fields. nginx: HTTP/1.1 needs the field, so an empty value there
/// becomes the upstream's host.
fn push_host(
    exchange: &mut Exchange<'_>,
    version: Version,
    (plan, pass): (&Plan, &Pass),
    target: Option<&Target>,
    out: &mut Vec<u8>,
) {
    match &plan.host {
        Host::Fixed => return,
        Host::Empty if version != Version::Http11 => return,
        Host::Upstream | Host::Empty => {}
        Host::Computed(template) => {
            let start = out.len();
            out.extend_from_slice(b"Host: ");
            let value = out.len();
            template.eval(exchange, out);
            make_safe(out.get_mut(value..).unwrap_or_default());
            if out.len() > value {
                return out.extend_from_slice(b"\r\n");
            }
            out.truncate(start);
            if version != Version::Http11 {
                return;
            }
        }
    }
    encode::push_field(out, b"Host", target.map_or(pass.host.as_bytes(), |target| target.host.as_slice()));
}

/// Appends the fields of `proxy_set_header`.
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
        // As above: an empty field is not sent.
        if out.len() == value { out.truncate(start) } else { out.extend_from_slice(b"\r\n") }
    }
}

/// Removes lines from `start` on: those that ask for another protocol, because nobody would use a tunnel of a request that weir
/// makes for another one; and those that declare a body.
fn leave_out(out: &mut Vec<u8>, start: usize, is_out: impl Fn(&[u8]) -> bool) {
    let lines = out.split_off(start);
    lines
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !is_out(line))
        .for_each(|line| out.extend_from_slice(line));
}

/// Whether a line of the file declares a body other than the one that weir sends: with two lengths, or with a wrong one, an origin
/// could take a part of the body for the next request (RFC 9112 §11.2). Without a body, the length may be 0.
fn is_other_framing(line: &[u8], framing: BodyFraming) -> bool {
    let Some((name, value)) = memchr::memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) else {
        return false;
    };
    let says_none = value.get(1..).is_some_and(|value| value.trim_ascii() == b"0");
    name.eq_ignore_ascii_case(b"transfer-encoding")
        || name.eq_ignore_ascii_case(b"content-length") && !(framing == BodyFraming::None && says_none)
}

/// Whether a line is an `Upgrade`, and whether it is a `Connection` that names it.
fn upgrade_line(line: &[u8]) -> (bool, bool) {
    let Some((name, value)) = memchr::memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) else {
        return (false, false);
    };
    let value = value.get(1..).unwrap_or_default();
    let is_upgrade = name.eq_ignore_ascii_case(b"upgrade") && !value.trim_ascii().is_empty();
    let mut options = value.split(|byte| *byte == b',');
    let names_it = name.eq_ignore_ascii_case(b"connection")
        && options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
    (is_upgrade, names_it)
}

/// Whether the request of this try asked the upstream for another protocol (RFC 9110 §7.8: `Upgrade`, and a
/// `Connection` that names it). Used for the rare 101: it evaluates the fields again.
pub fn asks_for_upgrade(exchange: &mut Exchange<'_>) -> bool {
    let values = crate::values(exchange.location);
    if passes_upgrade(exchange, values) {
        return true;
    }
    let mut lines = Vec::new();
    push_set(exchange, &values.proxy.plan, &mut lines);
    let (mut names_protocol, mut is_named) = (false, false);
    for line in lines.split(|byte| *byte == b'\n') {
        let (is_upgrade, names_it) = upgrade_line(line);
        (names_protocol, is_named) = (names_protocol || is_upgrade, is_named || names_it);
    }
    names_protocol && is_named
}

/// Appends the trace context, unless `proxy_set_header` sets it.
fn push_trace(trace: &Trace, plan: &Plan, out: &mut Vec<u8>) {
    if !plan.skips(None, || b"traceparent") {
        encode::push_field(out, b"traceparent", &trace.current.text());
    }
    if !trace.state.is_empty() && !plan.skips(None, || b"tracestate") {
        encode::push_field(out, b"tracestate", &trace.state);
    }
}

/// Whether the client says that it accepts trailers (nginx: `$grpc_internal_trailers`).
pub fn takes_trailers(exchange: &Exchange<'_>) -> bool {
    let te = exchange.request.field(Known::Te).unwrap_or_default();
    te.windows(b"trailers".len()).any(|part| part.eq_ignore_ascii_case(b"trailers"))
}

/// Appends the validators of the stored answer, unless `proxy_set_header` sets those fields.
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

/// Appends the target of the upstream request; the error log shows it too.
pub fn push_target(exchange: &Exchange<'_>, pass: Option<&Pass>, target: Option<&Target>, out: &mut Vec<u8>) {
    let is_replaced = match (target, pass) {
        (Some(target), _) => target.uri.is_some(),
        (None, Some(pass)) => pass.uri.is_some() && !exchange.flags.uri_changed,
        (None, None) => false,
    };
    if exchange.flags.target_is_valid && !is_replaced {
        // As the client wrote it: not decoded and not encoded again.
        return out.extend_from_slice(exchange.request.text(exchange.request.head.path));
    }
    let start = out.len();
    match (target.and_then(|target| target.uri.as_ref()), pass.and_then(|pass| pass.uri.as_ref())) {
        (Some(uri), _) => out.extend_from_slice(uri),
        // nginx: the URI replaces the part of the path that matched the location. A path from `rewrite … break`
        // matched no location and is sent unchanged.
        (None, Some(uri)) if is_replaced => {
            out.extend_from_slice(uri.as_bytes());
            let replaces = pass.map_or(0, |pass| pass.replaces);
            push_path(exchange, exchange.uri.get(replaces..).unwrap_or_default(), out);
            push_args(exchange, out);
        }
        (None, _) => {
            push_path(exchange, exchange.uri, out);
            push_args(exchange, out);
        }
    }
    escape_breaks(out, start);
}

/// Escapes bytes that would end the target or its line, so a variable with client data cannot insert a second request.
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
    if exchange.flags.uri_was_quoted || exchange.flags.internal {
        escape::escape_uri(path, out);
    } else {
        out.extend_from_slice(path);
    }
}

fn push_args(exchange: &Exchange<'_>, out: &mut Vec<u8>) {
    if !exchange.args.is_empty() {
        out.push(b'?');
        out.extend_from_slice(exchange.args);
    }
}

/// `, upstream: "http://ADDRESS/URI"`, if there was an attempt in this location.
pub(super) fn context(exchange: &Exchange<'_>, line: &mut Vec<u8>) {
    let Some(last) = exchange.tries.last() else {
        return;
    };
    let pass = crate::values(exchange.location).proxy.pass.as_deref();
    let scheme = pass.map_or(Scheme::Http, |pass| pass.scheme);
    log::push(line, format_args!(", upstream: \"{}{}", scheme.text(last.is_tls), last.peer));
    if last.peer.starts_with("unix:") {
        line.push(b':');
    }
    if scheme.has_uri() {
        push_target(exchange, pass, None, line);
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Site, on_worker, proxied, whole};

    /// The head that a location composes for a request, or its part from this place on.
    fn composed(settings: &str, request: &str, framing: BodyFraming) -> String {
        let (http, request) = (proxied(settings), whole(request));
        on_worker(async move {
            let (site, _conn, _client) = Site::open(&http);
            let mut exchange = site.exchange(&request);
            let values = crate::values(exchange.location);
            let pass = values.proxy.pass.as_deref().unwrap();
            let mut out = Vec::new();
            compose(&mut exchange, (values, pass), None, framing, &mut out);
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn a_request_has_the_upstream_s_host_and_none_of_the_fields_for_one_hop() {
        let request = "GET /a?b|X-A: 1|Connection: X-Drop, keep-alive|X-Drop: 2|Keep-Alive: 3|Proxy-Connection: x|TE: trailers\
                       |Upgrade: h2c|Expect: x|Cookie: c=d";
        assert_eq!(
            composed("", request, BodyFraming::None),
            "GET /a?b HTTP/1.1\r\nHost: u\r\nX-A: 1\r\nCookie: c=d\r\n\r\n"
        );
        let old = composed("proxy_http_version 1.0;", "GET /", BodyFraming::None);
        assert!(old.starts_with("GET / HTTP/1.0\r\nHost: u\r\n") && !old.contains("keep-alive"), "{old}");
        assert_eq!(
            composed("proxy_pass_request_headers off;", "GET /|X-A: 1", BodyFraming::None),
            "GET / HTTP/1.1\r\nHost: u\r\n\r\n"
        );
    }

    #[test]
    fn the_framing_of_the_body_is_weirs_own() {
        for (framing, line) in [
            (BodyFraming::None, ""),
            (BodyFraming::Records, ""),
            (BodyFraming::Length(0), "Content-Length: 0\r\n"),
            (BodyFraming::Length(7), "Content-Length: 7\r\n"),
            (BodyFraming::Chunked, "Transfer-Encoding: chunked\r\n"),
        ] {
            for settings in ["", "proxy_set_header Content-Length 9; proxy_set_header Transfer-Encoding x;"] {
                let found = composed(settings, "POST /|Content-Length: 3", framing);
                assert_eq!(found, format!("POST / HTTP/1.1\r\nHost: u\r\n{line}\r\n"), "{settings}");
            }
        }
        let told = composed("proxy_set_header Content-Length 0;", "GET /", BodyFraming::None);
        assert_eq!(
            told, "GET / HTTP/1.1\r\nHost: u\r\nContent-Length: 0\r\n\r\n",
            "a length of 0 is true without a body"
        );
    }

    #[test]
    fn fields_of_the_file_replace_those_of_the_client() {
        for (settings, expected) in [
            ("proxy_set_header X-A new;", "Host: u\r\nX-A: new\r\nX-B: b\r\n"),
            ("proxy_set_header x-a \"\";", "Host: u\r\nX-B: b\r\n"),
            ("proxy_set_header X-A $arg_none;", "Host: u\r\nX-B: b\r\n"),
            ("proxy_set_header X-C $http_x_a$http_x_b;", "Host: u\r\nX-C: ab\r\nX-A: a\r\nX-B: b\r\n"),
            ("proxy_set_header Host fixed;", "Host: fixed\r\nX-A: a\r\nX-B: b\r\n"),
            ("proxy_set_header Host $host;", "Host: a.test\r\nX-A: a\r\nX-B: b\r\n"),
            ("proxy_set_header Host $http_host; proxy_set_header X-B 1;", "Host: a.test\r\nX-B: 1\r\nX-A: a\r\n"),
            // HTTP/1.1 needs the field.
            ("proxy_set_header Host \"\";", "Host: u\r\nX-A: a\r\nX-B: b\r\n"),
            ("proxy_set_header Host $arg_none;", "Host: u\r\nX-A: a\r\nX-B: b\r\n"),
            ("proxy_set_header Host one; proxy_set_header Host two;", "Host: two\r\nX-A: a\r\nX-B: b\r\n"),
        ] {
            let found = composed(settings, "GET /|X-A: a|X-B: b", BodyFraming::None);
            assert_eq!(found, format!("GET / HTTP/1.1\r\n{expected}\r\n"), "{settings}");
        }
    }

    #[test]
    fn no_value_ends_its_line() {
        let settings = "set $evil $arg_a; proxy_set_header X-A $evil; proxy_method $arg_m;";
        let found = composed(settings, "GET /?a=b%0d%0aX-B:%20c&m=GET", BodyFraming::None);
        assert_eq!(found.matches("\r\n").count(), 4, "{found}");
        assert!(found.starts_with("GET /?a=b%0d%0aX-B:%20c&m=GET HTTP/1.1\r\n"), "{found}");
    }

    #[test]
    fn the_target_is_the_clients_unless_something_changed_it() {
        let http = |pass: &str, rules: &str| {
            format!(
                "upstream u {{ server 127.0.0.1:81; }} \
                 server {{ listen 127.0.0.1:8080; location /in/ {{ {rules} proxy_pass http://u{pass}; }} }}"
            )
        };
        for (pass, rules, target, expected) in [
            ("", "", "/in/a%20b//c?d=%20e", "/in/a%20b//c?d=%20e"),
            ("", "", "/in/../in/x", "/in/../in/x"),
            ("/", "", "/in/a?b", "/a?b"),
            ("/out", "", "/in/a?b", "/outa?b"),
            ("/out/", "", "/in/a%20b/%2Fc?d", "/out/a%20b/c?d"),
            ("/out/", "", "/in//a/./b", "/out/a/b"),
            ("", "rewrite ^/in/(.*) /re/$1 break;", "/in/a?b", "/re/a?b"),
            ("/out/", "rewrite ^/in/(.*) /re/$1 break;", "/in/a?b", "/re/a?b"),
            ("", "rewrite ^ /x%20y? break;", "/in/a?b", "/x%2520y"),
            ("", "set $args c=d;", "/in/a?b", "/in/a?c=d"),
        ] {
            let (http, request) = (http(pass, rules), whole(&format!("GET {target}")));
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&http);
                let exchange = site.exchange(&request);
                let mut out = Vec::new();
                push_target(&exchange, crate::values(exchange.location).proxy.pass.as_deref(), None, &mut out);
                String::from_utf8(out).unwrap()
            });
            assert_eq!(found, expected, "{target} to {pass} with {rules}");
        }
    }

    #[test]
    fn a_target_of_a_variable_cannot_hold_a_second_request() {
        for (uri, expected) in
            [("/a b", "/a%20b"), ("/a\r\nX: y", "/a%0D%0AX:%20y"), ("/\x7f\t", "/%7F%09"), ("/%20", "/%20")]
        {
            let mut out = b"GET ".to_vec();
            out.extend_from_slice(uri.as_bytes());
            escape_breaks(&mut out, 4);
            assert_eq!(String::from_utf8(out).unwrap(), format!("GET {expected}"), "{uri:?}");
        }
    }

    #[test]
    fn a_websocket_passes_and_no_other_upgrade() {
        let socket = "GET /|Connection: upgrade|Upgrade: websocket";
        let lines = "Connection: upgrade\r\nUpgrade: websocket\r\n";
        for (settings, request, passes) in [
            ("", socket, true),
            ("", "GET /|Connection: upgrade|Upgrade: WebSocket", true),
            ("", "GET /|Connection: upgrade|Upgrade: h2c", false),
            ("", "GET /|Upgrade: websocket", false),
            ("", "POST /|Connection: upgrade|Upgrade: websocket", false),
            ("", "GET / HTTP/1.0|Connection: upgrade|Upgrade: websocket", false),
            ("proxy_http_version 1.0;", socket, false),
            ("proxy_set_header Upgrade \"\";", socket, false),
            ("proxy_set_header Connection close;", socket, false),
        ] {
            let found = composed(settings, request, BodyFraming::None);
            assert_eq!(found.contains(lines), passes, "{settings} {request}: {found}");
        }
    }

    #[test]
    fn lines_that_ask_for_another_protocol_are_known() {
        for (line, expected) in [
            (&b"Upgrade: x\r\n"[..], (true, false)),
            (b"upgrade:\r\n", (false, false)),
            (b"Connection: keep-alive, Upgrade\r\n", (false, true)),
            (b"connection: upgrades\r\n", (false, false)),
            (b"X-Connection: upgrade\r\n", (false, false)),
            (b"no colon", (false, false)),
        ] {
            assert_eq!(upgrade_line(line), expected, "{}", line.escape_ascii());
        }
    }
}
