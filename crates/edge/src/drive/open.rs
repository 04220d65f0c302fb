//! Opens a request: finds host, server, body length and path from its head, and begins its phases.

use weir_http::exchange::Exchange;
use weir_http::exchange::conf::{Conf, Server};
use weir_http::exchange::phase::{From, Outcome};
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::route::Listen;
use weir_http::exchange::walk;
use weir_http::family::core::{StrictTargets, Values as Core};
use weir_http::hold::conn::Gone;
use weir_http::receive::head::{Refused, default_values};
use weir_http::text::slots::SlotStore;
use weir_meter::Step;
use weir_net::log::Level;
use weir_wire::{BodyLength, Known, Span, Version, Violation};

use super::secure;

/// Checks the head and finds the server; a refusal becomes a status.
pub fn open(exchange: &mut Exchange<'_>, refusal: Option<Refused>) -> Result<Outcome, Gone> {
    exchange.facts.step = Step::ReadHead;
    let verdict = match refusal {
        Some(Refused::Violation(violation)) => {
            if exchange.request.head.line.is_empty() || violation == Violation::TargetTooLong {
                exchange.facts.step = Step::ReadLine;
            }
            Err(violation)
        }
        Some(Refused::TimedOut) => {
            // nginx logs 408, and sends nothing to a client that sends nothing.
            exchange.response.status.answer(408);
            return Err(Gone::TimedOut);
        }
        Some(Refused::ClosedInHead) => {
            exchange.log(Level::Info, format_args!("client prematurely closed connection"));
            exchange.response.status.answer(400);
            return Err(Gone::Cut);
        }
        None => understand(exchange),
    };
    if let Err(violation) = verdict {
        exchange.flags.keeps_alive = false;
        stand_in(exchange, violation);
        let told = refusal_text(exchange, violation);
        exchange.log(Level::Info, format_args!("{told}"));
        return Ok(Outcome::Status(violation.status()));
    }
    if let Some((status, told)) = secure::objection(exchange) {
        exchange.log(Level::Info, format_args!("{told}"));
        return Ok(Outcome::Status(status));
    }
    if is_unwanted(exchange) {
        exchange
            .log(Level::Info, format_args!("client attempted to request the server name for which HTTP/2 is disabled"));
        return Ok(Outcome::Status(MISDIRECTED));
    }
    note_ignored(exchange);
    if let Some(status) = exchange.response.refused.take() {
        return Ok(Outcome::Status(status));
    }
    if exchange.uri == ASTERISK {
        // The server as a whole answers, and no location: a client only learns that it is there (RFC 9110 §9.3.7).
        exchange.response.status.answer(204);
        return Ok(Outcome::Respond);
    }
    exchange.facts.step = Step::AwaitRequest; // between steps nginx names none
    Ok(walk::walk(exchange, From::Server))
}

/// Finds the server whose settings and error pages a refused request gets: that of the host, as far as weir read the
/// head, else that of the TLS handshake, else the default one (nginx: `r->main_conf` of the connection, until
/// `ngx_http_process_host`).
///
/// A request line that weir does not accept has no target and no version: nothing of the answer may depend on them.
fn stand_in(exchange: &mut Exchange<'_>, violation: Violation) {
    let request = &mut exchange.request;
    let is_unread =
        !request.version().is_framed() && (request.head.line.is_empty() || violation == Violation::TargetTooLong);
    let is_of_line = is_unread
        || matches!(violation, Violation::InvalidTarget | Violation::TargetByte | Violation::InvalidTargetHost);
    let mut name = None;
    if is_of_line {
        request.head.target = Span::default();
        request.head.path = Span::default();
    } else {
        let written = request.head.authority.or_else(|| request.head.field(Known::Host).map(|field| field.value));
        name = written.and_then(|span| weir_wire::host::normal(span.of(&request.bytes)));
    }
    if is_unread {
        request.head.version = Version::Http10;
    }
    // The client reads no body after a HEAD (RFC 9110 §9.3.2), also if weir has refused the rest of its line.
    let line = if request.line().is_empty() { request.bytes.trim_ascii_start() } else { request.line() };
    if request.method().is_empty() && line.starts_with(b"HEAD ") {
        request.method_override = Some(b"HEAD");
    }
    let asked = || Some(exchange.client.facts()?.server_name.as_ref()?.trim_end_matches('.').to_ascii_lowercase());
    let name = name.or_else(|| asked().map(String::into_bytes));
    if is_of_line || name.is_some() {
        place(exchange, name.as_deref());
    }
    if !is_of_line && exchange.uri.is_empty() {
        // A line that stands before a refused field: the log has its path, as in nginx. What is wrong with the path was refused before.
        let _ = read_target(exchange, exchange.request.head.path);
    }
}

/// Enters the server of this name, the default one without a name.
fn place(exchange: &mut Exchange<'_>, name: Option<&[u8]>) {
    let Some(listen) = exchange.conf.listens.get(exchange.client.listen.get()) else { return };
    let found = name.map(|name| listen.hosts.find(name, exchange.slots));
    let id = match found {
        Some(Ok(id)) => id,
        Some(Err(failed)) => {
            exchange.match_failed(&failed);
            listen.hosts.default_server()
        }
        None => listen.hosts.default_server(),
    };
    exchange.server = exchange.conf.server(id);
    exchange.enter(exchange.server.root);
}

/// `strict_targets on`.
fn check_target(core: &Core, raw: &[u8]) -> Result<(), Violation> {
    let is_refused = core.strict_targets == StrictTargets::On && !weir_wire::target::has_only_uri_bytes(raw);
    if is_refused { Err(Violation::TargetByte) } else { Ok(()) }
}

/// The reason, as text for the log, why weir must not pass the request to an origin, although it may answer the request
/// itself.
///
/// First, a target with a fragment (RFC 9112 §3.2 allows none): an origin may read the fragment as part of the path,
/// while weir's location did not. Second, a control byte in a value (RFC 9110 §5.5 allows none); over HTTP/1.1 it was
/// refused before (`HeadPolicy`). nginx's own suite requires both to work where nginx itself answers. An error page
/// is a different request, so this does not apply to it.
pub fn withheld(exchange: &Exchange<'_>) -> Option<&'static str> {
    if exchange.response.status.is_fixed() {
        return None;
    }
    let request = &exchange.request;
    let core = &exchange.location.values.core;
    let target = request.text(request.head.path);
    let may_have_fragment = request.may_have_fragment && core.strict_targets != StrictTargets::Off;
    if may_have_fragment && memchr::memchr(b'#', target).is_some() {
        return Some("client sent invalid request: a target with a fragment");
    }
    let has_control = |field: &weir_wire::Field| weir_wire::section::message::has_control(request.text(field.value));
    let is_judged = request.version().is_framed() && core.ignore_invalid_headers;
    (is_judged && request.fields().iter().any(has_control))
        .then_some("client sent invalid header line: a value with a control byte")
}

/// Logs the reason; returns the status for the client.
pub fn withhold(exchange: &mut Exchange<'_>, why: &str) -> u16 {
    exchange.flags.keeps_alive = false;
    exchange.log(Level::Info, format_args!("{why}"));
    Violation::TargetByte.status()
}

/// The target of `OPTIONS *`; the path of every other target begins with a slash.
const ASTERISK: &[u8] = b"*";

/// RFC 9110 §15.5.20.
const MISDIRECTED: u16 = 421;

/// nginx's message for a refused head, with the offending line if nginx quotes it.
fn refusal_text(exchange: &Exchange<'_>, violation: Violation) -> String {
    let request = &exchange.request;
    let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let message = violation.message();
    if violation == Violation::HeadTooLarge {
        let line_max = exchange.location.values.core.large_headers.1 as usize;
        let mut lines = request.bytes.split(|byte| *byte == b'\n').skip(1);
        return match lines.find(|line| line.len() >= line_max) {
            Some(line) => {
                let start = line.get(..LINE_SHOWN_MAX.min(line.len())).unwrap_or_default();
                format!("client sent too long header line: \"{}...\"", shown(start))
            }
            None => message.to_owned(),
        };
    }
    let fault = request.text(request.parser.fault());
    let is_quoted = message.ends_with("header line") || message.ends_with("host header");
    if !is_quoted || fault.is_empty() {
        return message.to_owned();
    }
    let name = fault.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_name = |field: &&weir_wire::Field| request.text(field.name).eq_ignore_ascii_case(name);
    match request.fields().iter().find(is_name) {
        Some(before) if message.contains("duplicate") => {
            let (name, value) = (shown(request.text(before.name)), shown(request.text(before.value)));
            format!("{message}: \"{}\", previous value: \"{name}: {value}\"", shown(fault))
        }
        Some(_) | None => format!("{message}: \"{}\"", shown(fault)),
    }
}

/// A line of the error log is cut at 2048 bytes; this cut of an over-long field leaves room for the rest of the line.
const LINE_SHOWN_MAX: usize = 1024;

/// Logs the field lines that `ignore_invalid_headers` left out, as nginx does.
fn note_ignored(exchange: &mut Exchange<'_>) {
    if exchange.request.head.ignored.is_empty() || !exchange.logs(Level::Info) {
        return;
    }
    let lines = std::mem::take(&mut exchange.request.head.ignored);
    for line in &lines {
        let text = String::from_utf8_lossy(exchange.request.text(*line)).into_owned();
        exchange.log(Level::Info, format_args!("client sent invalid header line: \"{text}\""));
    }
}

/// Fills the exchange from the head.
fn understand(exchange: &mut Exchange<'_>) -> Result<(), Violation> {
    let request = &mut exchange.request;
    let bytes = std::mem::take(&mut request.bytes);
    let head = &request.head;
    let host = weir_wire::request_host(&bytes, head, &mut request.last_host);
    let tokens = head.tokens(&bytes);
    let length = weir_wire::request_body(&bytes, head);
    let path = head.path;
    exchange.bytes.request = if request.sent > 0 { request.sent } else { head.len } as u64;
    exchange.request.tokens = tokens;
    exchange.request.bytes = bytes;
    exchange.request.leave_out_named();

    if let Some(host) = host? {
        let request = &mut exchange.request;
        request.host.extend_from_slice(host.name.of(&request.bytes));
        if host.has_upper {
            request.host.make_ascii_lowercase();
        }
        request.port = host.port;
    }
    // A request without a host is for the server with the empty name.
    if let Some(listen) = exchange.conf.listens.get(exchange.client.listen.get()) {
        let asked = exchange.client.facts().and_then(|facts| facts.server_name.as_ref());
        let id = match asked {
            // A request without a host is for the server name of the TLS handshake.
            Some(name) if exchange.request.host.is_empty() => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                listen.hosts.find(name.as_bytes(), exchange.slots)
            }
            _ => listen.hosts.find(&exchange.request.host, exchange.slots),
        };
        let id = match id {
            Ok(id) => id,
            Err(failed) => {
                exchange.match_failed(&failed);
                listen.hosts.default_server()
            }
        };
        exchange.server = exchange.conf.server(id);
        exchange.enter(exchange.server.root);
    }
    // The log of a request that is refused for another reason has its path, as in nginx.
    let target = read_target(exchange, path);
    let length = length?;
    let request = &exchange.request;
    weir_wire::request_method(&request.bytes, &request.head, length, exchange.server.answers_connect)?;
    target?;
    let length = match length {
        BodyLength::None if exchange.request.is_open_ended => BodyLength::UntilClose,
        length => length,
    };
    exchange.request.length = Some(length);
    if length == BodyLength::None {
        exchange.body = RequestBody::Gone;
    }
    exchange.flags.keeps_alive = weir_wire::keeps_alive(exchange.request.version(), exchange.request.tokens);
    Ok(())
}

/// Fills path and arguments from the target.
fn read_target(exchange: &mut Exchange<'_>, path: Span) -> Result<(), Violation> {
    let core = &exchange.location.values.core;
    let raw = path.of(&exchange.request.bytes);
    if raw == ASTERISK {
        exchange.uri.extend_from_slice(raw);
        return Ok(());
    }
    check_target(core, raw)?;
    let merges_slashes = merges_slashes(exchange);
    let target =
        weir_wire::target::normalise(raw, merges_slashes, exchange.uri).inspect_err(|_| exchange.uri.clear())?;
    // RFC 9112 §3.2.2: a target in absolute form may lack a path, which is `/` then.
    exchange.flags.target_is_valid = raw.starts_with(b"/");
    exchange.flags.uri_was_quoted = target.quoted;
    // A target that needs no normalising has none.
    exchange.request.may_have_fragment = target.complex;
    if !target.complex {
        exchange.uri.clear();
        exchange.uri.extend_from_slice(target.path(raw, &[]));
    }
    exchange.args.extend_from_slice(target.args(raw));
    Ok(())
}

/// `merge_slashes` of the server that is known before the host: the one that the client named in the TLS handshake, else the default one. nginx
/// reads the path before it reads Host.
fn merges_slashes(exchange: &Exchange<'_>) -> bool {
    let conf = exchange.conf;
    let Some(listen) = conf.listens.get(exchange.client.listen.get()) else {
        return exchange.location.values.core.merge_slashes;
    };
    let named = exchange.client.facts().and_then(|facts| facts.server_name.as_deref());
    let is_of_host = |name: &str| name.trim_end_matches('.').as_bytes().eq_ignore_ascii_case(&exchange.request.host);
    let server = if named.is_some_and(is_of_host) { exchange.server } else { server_of_handshake(conf, listen, named) };
    conf.location(server.root).values.core.merge_slashes
}

/// The server that a client named in its TLS handshake, else the default one.
pub fn server_of_handshake<'c>(conf: &'c Conf, listen: &Listen, named: Option<&str>) -> &'c Server {
    let found = named.map(|name| {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        listen.hosts.find(name.as_bytes(), &mut SlotStore::default())
    });
    conf.server(found.and_then(Result::ok).unwrap_or_else(|| listen.hosts.default_server()))
}

/// Whether clients of a listen may begin with HTTP/2's preface: `http2 on` in its default server, or `listen … http2`.
pub fn speaks_http2(conf: &Conf, listen: usize) -> bool {
    conf.listens.get(listen).is_some_and(|listen| listen.http2) || default_values(conf, listen).http2.is_on
}

/// Whether the request came over HTTP/2 or HTTP/3 to a server that does not speak it, on a connection of another server.
fn is_unwanted(exchange: &Exchange<'_>) -> bool {
    let values = &exchange.conf.location(exchange.server.root).values;
    match exchange.request.version() {
        Version::Http2 => {
            let listen = exchange.conf.listens.get(exchange.client.listen.get());
            !values.http2.is_on && !listen.is_some_and(|listen| listen.http2)
        }
        Version::Http3 if exchange.client.speaks_hq() => !values.http3.is_hq,
        Version::Http3 => !values.http3.is_on,
        Version::Http09 | Version::Http10 | Version::Http11 => false,
    }
}
