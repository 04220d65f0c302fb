//! Reads an upstream's head into the response: the fields to pass on, to obey and to hide.

use weir_net::log::Level;
use weir_wire::escape::{Unescape, unescape_uri};
use weir_wire::fields::Fields;
use weir_wire::{BodyLength, ConnectionTokens, Known, KnownSet, ResponseHead, Version};

use super::rewrite;
use crate::exchange::{Exchange, Origin, WithoutOwn};
use crate::phase::{self, From, Outcome};
use crate::respond::Body;
use crate::special::split_args;
use crate::value;

/// The fields of an answer that weir does not pass on, compiled once.
#[derive(Default)]
pub struct Hidden {
    known: KnownSet,
    names: Vec<Box<[u8]>>,
}

/// Never passed on: these fields belong to the connection to the upstream, not to the answer (RFC 9110 §7.6.1).
const ONE_HOP: [Known; 5] =
    [Known::Connection, Known::KeepAlive, Known::TransferEncoding, Known::ContentLength, Known::ContentType];

/// Not passed on unless `proxy_pass_header` names them.
const HIDDEN: [Known; 8] = [
    Known::Date,
    Known::Server,
    Known::XPad,
    Known::XAccelExpires,
    Known::XAccelRedirect,
    Known::XAccelLimitRate,
    Known::XAccelBuffering,
    Known::XAccelCharset,
];

impl Hidden {
    /// Compiles `proxy_hide_header` and `proxy_pass_header`.
    pub fn compile(hide: &[String], show: &[String]) -> Hidden {
        let mut hidden = Hidden::default();
        let shown = |name: &str| show.iter().any(|show| show.eq_ignore_ascii_case(name));
        for known in ONE_HOP {
            hidden.known.insert(known);
        }
        for known in HIDDEN {
            if !shown(known.name()) {
                hidden.known.insert(known);
            }
        }
        for name in hide.iter().filter(|name| !shown(name)) {
            match Known::of(name.as_bytes()) {
                Some(known) => hidden.known.insert(known),
                None => hidden.names.push(name.as_bytes().into()),
            }
        }
        hidden
    }

    /// Whether weir hides a field of this name.
    pub fn hides(&self, known: Option<Known>, name: &[u8]) -> bool {
        match known {
            Some(known) => self.known.contains(known),
            None => !self.names.is_empty() && self.names.iter().any(|hidden| hidden.eq_ignore_ascii_case(name)),
        }
    }
}

/// The further fields that an upstream's Connection field names: weir does not pass them on (RFC 9110 §7.6.1).
pub struct Named<'h> {
    head: &'h ResponseHead,
    bytes: &'h [u8],
    any: bool,
}

impl<'h> Named<'h> {
    /// The fields that this head names.
    pub fn of(head: &'h ResponseHead, bytes: &'h [u8]) -> Named<'h> {
        Named { head, bytes, any: head.tokens(bytes).names }
    }

    /// Whether the head names this field. Upgrade is exempt: an answer with Upgrade is meant for the client.
    pub fn has(&self, known: Option<Known>, name: &[u8]) -> bool {
        self.any && known != Some(Known::Upgrade) && ConnectionTokens::lists(self.bytes, &self.head.fields, name)
    }
}

/// The target of `X-Accel-Redirect`.
pub enum Elsewhere {
    /// A path, normalised, and its arguments.
    Uri(Vec<u8>, Vec<u8>),
    /// A named location, without `@`.
    Named(String),
    /// No target: the path is unsafe.
    Nowhere,
}

impl Elsewhere {
    /// Sends the exchange there.
    pub fn enter(self, exchange: &mut Exchange<'_>) -> Outcome {
        match self {
            Elsewhere::Uri(path, args) => phase::redirect(exchange, path, Some(args)),
            Elsewhere::Named(name) => phase::walk(exchange, From::Named(name)),
            Elsewhere::Nowhere => Outcome::Status(404),
        }
    }
}

/// Fills the response from the upstream's head; `Some` if the head redirects to another location.
pub fn accept(exchange: &mut Exchange<'_>, origin: &Origin, length: BodyLength) -> Option<Elsewhere> {
    let location = exchange.location;
    let proxy = &location.values.proxy;
    if let Some(elsewhere) = accel_redirect(exchange, origin) {
        return Some(elsewhere);
    }
    exchange.response.status = origin.head.status;
    exchange.response.status_line.clear();
    // HTTP/2 has no reason phrase: weir uses its own.
    if origin.head.version != Version::Http2 {
        exchange.response.status_line.extend_from_slice(origin.head.status_line.of(&origin.bytes));
    }
    exchange.response.content_length = match length {
        BodyLength::Exact(length) => Some(length),
        // RFC 9110 §8.6: in an answer to HEAD or in a 304, the length describes a body that does not follow.
        BodyLength::None => origin.field(Known::ContentLength).and_then(weir_wire::framing::content_length),
        BodyLength::Chunked | BodyLength::UntilClose => None,
    };
    let mut seen = KnownSet::default();
    let named = Named::of(&origin.head, &origin.bytes);
    for field in &origin.head.fields {
        let (name, value) = (field.name.of(&origin.bytes), field.value.of(&origin.bytes));
        if let Some(known) = field.known.filter(|known| known.is_first_in_response()) {
            if seen.contains(known) {
                let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
                exchange.log(
                    Level::Warn,
                    format_args!("upstream sent duplicate header line: \"{name}: {value}\", ignored"),
                );
                continue;
            }
            seen.insert(known);
        }
        match field.known {
            Some(Known::ContentType) => {
                exchange.response.content_type.clear();
                exchange.response.content_type.extend_from_slice(value);
            }
            Some(Known::LastModified) => exchange.response.last_modified = weir_wire::date::parse_http_date(value),
            Some(Known::XAccelLimitRate) if !proxy.ignore.has("X-Accel-Limit-Rate") => {
                exchange.limit_rate = std::str::from_utf8(value).ok().and_then(value::number);
            }
            Some(_) | None => {}
        }
        if proxy.hidden.hides(field.known, name) || named.has(field.known, name) {
            continue;
        }
        let changed = match field.known {
            Some(Known::Location | Known::Refresh) => rewrite::location(exchange, field.known, value),
            Some(Known::SetCookie) => rewrite::cookie(exchange, value),
            Some(_) | None => None,
        };
        let response = &mut exchange.response;
        response.fields.push_known(name, changed.as_deref().unwrap_or(value), field.known);
    }

    let passed = |known: Known| !proxy.hidden.known.contains(known) && !seen.contains(known);
    exchange.response.without_own = WithoutOwn { date: passed(Known::Date), server: passed(Known::Server) };
    exchange.response.allows_ranges = proxy.force_ranges || exchange.cache.holds_conditions_back();
    exchange.response.body = Body::Origin;
    None
}

/// Passes on the fields after the body if `proxy_pass_trailers` is on, except fields that are not allowed in trailers
/// (RFC 9110 §6.5.1).
pub fn pass_trailers(exchange: &mut Exchange<'_>, trailers: Fields) {
    let proxy = &exchange.location.values.proxy;
    if !proxy.pass_trailers {
        return;
    }
    for field in trailers.iter() {
        let may_trail = field.known.is_none_or(|known| !known.is_forbidden_in_trailer());
        if may_trail && !proxy.hidden.hides(field.known, field.name) {
            exchange.response.trailers.push_known(field.name, field.value, field.known);
        }
    }
}

/// X-Accel-Redirect: the upstream names a location of this server that answers instead.
fn accel_redirect(exchange: &mut Exchange<'_>, origin: &Origin) -> Option<Elsewhere> {
    if exchange.location.values.proxy.ignore.has("X-Accel-Redirect") {
        return None;
    }
    let to = origin.field(Known::XAccelRedirect)?.to_vec();
    // nginx keeps these few fields of the upstream's answer; all others come from the new location.
    for field in &origin.head.fields {
        let (name, value) = (field.name.of(&origin.bytes), field.value.of(&origin.bytes));
        match field.known {
            Some(Known::SetCookie | Known::CacheControl | Known::Expires | Known::AcceptRanges) => {
                exchange.response.fields.push_known(name, value, field.known);
            }
            Some(Known::XAccelLimitRate) if !exchange.location.values.proxy.ignore.has("X-Accel-Limit-Rate") => {
                exchange.limit_rate = std::str::from_utf8(value).ok().and_then(value::number);
            }
            Some(_) | None => {
                if name.eq_ignore_ascii_case(b"Content-Disposition") {
                    exchange.response.fields.push(name, value);
                }
            }
        }
        if field.known == Some(Known::ContentType) {
            exchange.response.content_type = value.to_vec();
        }
    }
    if exchange.request.method() != b"HEAD" {
        exchange.request.method_override = Some(b"GET");
    }
    if let Some(name) = to.strip_prefix(b"@") {
        return Some(Elsewhere::Named(String::from_utf8_lossy(name).into_owned()));
    }
    let (path, args) = split_args(&to);
    let mut decoded = Vec::new();
    unescape_uri(path, Unescape::All, &mut decoded);
    if is_unsafe(path) || is_unsafe(&decoded) {
        let shown = String::from_utf8_lossy(&to);
        exchange.log(Level::Error, format_args!("unsafe URI \"{shown}\" was detected"));
        return Some(Elsewhere::Nowhere);
    }
    Some(Elsewhere::Uri(decoded, args.to_vec()))
}

/// Whether a path from an upstream is empty, leaves the root or contains a NUL (nginx: parse_unsafe_uri).
fn is_unsafe(path: &[u8]) -> bool {
    path.is_empty() || path.contains(&0) || path.split(|byte| *byte == b'/').any(|part| part == b"..")
}
