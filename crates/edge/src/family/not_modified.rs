//! Conditional requests: 304 if the client has the current version, 412 if a precondition fails (RFC 9110 §13).
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#if_modified_since>. An upstream's answer passes
//! unchanged: the upstream saw the conditions itself, unless the cache held them back to keep the whole answer.

use weir_cache::condition::{self, Since, Validators, is_modified, matches};
use weir_http::exchange::Exchange;
use weir_http::exchange::response_body::Body;
use weir_http::read::directive::{Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::text::value;
use weir_proxy::family::cache::facts;
use weir_wire::{Known, date};

weir_http::settings! {
    /// `if_modified_since`.
    since: Option<Since> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "not_modified",
    &[Directive::new(
        "if_modified_since",
        HSL,
        ONE,
        "How weir compares the time of a response with If-Modified-Since.",
        |b, s| {
            let since = value::choice(s, &[("off", Since::Off), ("exact", Since::Exact), ("before", Since::Before)])?;
            crate::settings(b).not_modified.since = Some(Some(since));
            Ok(())
        },
    )
    .default("exact")],
)
.filter(|_| true, filter)
.fixed(|_, _| true);

const CONDITIONS: [Known; 4] = [Known::IfModifiedSince, Known::IfUnmodifiedSince, Known::IfMatch, Known::IfNoneMatch];

fn filter(exchange: &mut Exchange<'_>) {
    let saw_it = matches!(exchange.response.body, Body::Origin) && !exchange.cache.holds_conditions_back();
    if exchange.response.status.get() != 200 || saw_it {
        return;
    }
    let names = exchange.request.head.known();
    if !CONDITIONS.iter().any(|name| names.contains(*name)) {
        return;
    }
    let since = crate::values(exchange.location).not_modified.since;
    let verdict = if exchange.cache.is_concerned() { of_cache(exchange, since) } else { judge(exchange) };
    match verdict {
        Verdict::Send => {}
        // RFC 9110 §15.4.5: 304 answers GET and HEAD alone. Another method has been carried out by now, and its answer is passed on.
        Verdict::NotModified if !matches!(exchange.request.method(), b"GET" | b"HEAD") => {}
        Verdict::Failed => {
            exchange.response.clear();
            exchange.response.refused = Some(412);
        }
        Verdict::NotModified => {
            let response = &mut exchange.response;
            response.status.turn(304);
            response.status_line.clear();
            response.content_type.clear();
            response.content_length = None;
            response.allows_ranges = false;
            for cleared in [Known::ContentLength, Known::AcceptRanges, Known::ContentEncoding] {
                response.fields.remove(cleared);
            }
        }
    }
}

/// Judges by RFC 9110 §13.2.2: cached answers follow it unless the file sets `if_modified_since`.
fn of_cache(exchange: &Exchange<'_>, since: Option<Since>) -> Verdict {
    let response = &exchange.response;
    let stored = Validators { etag: response.fields.get(Known::Etag), last_modified: response.last_modified };
    let fields = facts::request_fields(exchange.request);
    match condition::judge(fields, stored, since.unwrap_or(Since::Before)) {
        condition::Verdict::Send => Verdict::Send,
        condition::Verdict::NotModified => Verdict::NotModified,
        condition::Verdict::Failed => Verdict::Failed,
    }
}

enum Verdict {
    Send,
    NotModified,
    Failed,
}

/// nginx's order of the four conditions, which differs from RFC 9110 §13.2.2.
fn judge(exchange: &Exchange<'_>) -> Verdict {
    let (request, response) = (&exchange.request, &exchange.response);
    let (modified, etag) = (response.last_modified, response.fields.get(Known::Etag));
    if let Some(text) = request.field(Known::IfUnmodifiedSince)
        && modified.is_none_or(|modified| date::parse_http_date(text).is_none_or(|since| since < modified))
    {
        return Verdict::Failed;
    }
    if let Some(list) = request.field(Known::IfMatch)
        && !matches(list, etag, false)
    {
        return Verdict::Failed;
    }
    let (since, none_match) = (request.field(Known::IfModifiedSince), request.field(Known::IfNoneMatch));
    if since.is_none() && none_match.is_none() {
        return Verdict::Send;
    }
    if since.is_some_and(|text| {
        is_modified(crate::values(exchange.location).not_modified.since.unwrap_or(Since::Exact), text, modified)
    }) {
        return Verdict::Send;
    }
    if none_match.is_some_and(|list| !matches(list, etag, true)) {
        return Verdict::Send;
    }
    Verdict::NotModified
}
