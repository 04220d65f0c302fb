//! Stores answers of the upstream: decides by the head, then stores the body while it arrives.

use weir_cache::policy::{Ignored, Policy};
use weir_cache::reason::Reason;
use weir_cache::request::RequestFacts;
use weir_cache::response::ResponseFacts;
use weir_cache::serving::{self, Trouble};
use weir_cache::store::{Draft, Object, Status, StoreRefusal, StoredHead, Tag, Variant};
use weir_cache::validity::Validity;
use weir_cache::{storing, update, vary};
use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::exchange::phase::Outcome;
use weir_http::text::template::any_set;
use weir_net::clock;
use weir_net::log::Level;
use weir_wire::fields::FieldRef;
use weir_wire::{BodyLength, Known, Version, encode};

use super::facts::{OWN_ERROR, origin_fields, policy, request_fields, select, times, validity};
use super::watch::Watch;
use super::{hit, purge};
use crate::family::proxy::response;
use crate::family::upstream::answer::Answer;

/// Judges the upstream's answer before weir uses any part of it: begins to store the answer, or replaces it by a stored
/// one.
pub fn judge(exchange: &mut Exchange<'_>, origin: &mut Box<Origin>, length: BodyLength) -> Option<Answer> {
    if exchange.cache.zone.is_none() {
        purge::after_unsafe(exchange, origin);
        return None;
    }
    if let Some(answer) = confirmed(exchange, origin) {
        return Some(answer);
    }
    if let Some(answer) = instead_of(exchange, Trouble::Status(origin.head.status)) {
        return Some(answer);
    }
    match storable(exchange, origin, length) {
        Ok((draft, reason)) => begin(exchange, draft, reason),
        Err(reason) => exchange.cache.pass(reason),
    }
    None
}

/// A stored answer, if the upstream failed to answer, there is one, and the rules allow it.
pub fn instead_of(exchange: &mut Exchange<'_>, trouble: Trouble) -> Option<Answer> {
    let old = exchange.cache.old.as_ref()?;
    let values = crate::values(exchange.location);
    let reason = serving::instead_of(trouble, &validity(&old.times), &policy(values), clock::unix_ms() as i64)?;
    let old = exchange.cache.old.take()?;
    // The waiting requests ask the upstream in turn.
    exchange.cache.leader = None;
    Some(hit::serve(exchange, old, Status::Stale, reason))
}

/// Keeps weir's own error under the key, where `proxy_cache_valid` names it (nginx: 502 and 504).
pub fn own_error(exchange: &mut Exchange<'_>, status: u16) {
    let Some(leader) = exchange.cache.leader.take() else { return };
    let seconds = policy(crate::values(exchange.location)).valid_s(status).unwrap_or(0);
    // As in nginx, a request past the cache leaves no error there: it may have asked for what others do not get.
    let is_beside = exchange.cache.status == Some(Status::Bypass);
    if seconds == 0 || !matches!(status, 502 | 504) || is_beside || exchange.cache.may_not_keep.is_some() {
        return;
    }
    let now_ms = clock::unix_ms() as i64;
    let validity = Validity {
        received_ms: now_ms,
        fresh_until_ms: now_ms.saturating_add(i64::from(seconds) * 1000),
        age_s: 0,
        while_revalidate_s: 0,
        if_error_s: 0,
        marks: weir_cache::validity::Marks::default(),
    };
    let fields = [FieldRef { name: OWN_ERROR, value: b"1", known: None }];
    let draft = Draft {
        head: head_of(status, b"", fields.into_iter()),
        times: times(&validity),
        length: Some(0),
        // As nginx, which has no file for it: a restart forgets the error, and an outage writes no file for each key.
        stays_in_memory: true,
        ..Draft::default()
    };
    if let Ok(fill) = leader.fill(draft, clock::now()) {
        exchange.cache.begin(fill);
        exchange.cache.keep(b"", true);
    }
}

/// A 304 for the stored object: the object stays valid and answers the request.
fn confirmed(exchange: &mut Exchange<'_>, origin: &Origin) -> Option<Answer> {
    if origin.head.status != 304 || !exchange.cache.revalidates {
        return None;
    }
    let old = exchange.cache.old.take()?;
    let stored = stored_origin(exchange, &old)?;
    let values = crate::values(exchange.location);
    let policy = policy(values);
    let fresh_tag = origin.field(Known::Etag);
    if !update::freshens(stored.field(Known::Etag), fresh_tag) {
        exchange.log(
            Level::Warn,
            format_args!("upstream sent 304 with an entity tag other than the one that weir asked about"),
        );
        exchange.worker.return_origin(stored);
        exchange.cache.leader = None;
        exchange.cache.distrusts = true;
        return Some(Answer::Outcome(Outcome::Forward));
    }
    let merged = update::merged(origin_fields(&stored), origin_fields(origin));
    let facts = ResponseFacts::read(old.head.status, merged.clone());
    let request = RequestFacts::read(request_fields(exchange.request));
    let (now_ms, took_ms) = (clock::unix_ms() as i64, took_ms(exchange));
    let verdict = storing::judge(&request, &facts, &policy, now_ms, took_ms);
    let reason = stored.head.reason.of(&stored.bytes);
    let head = head_of(old.head.status, reason, merged);
    let leader = exchange.cache.leader.take();
    let object = match (verdict, leader) {
        (Ok((validity, _)), Some(leader)) => leader.confirm(&old, head, times(&validity), clock::now()).unwrap_or(old),
        (Err(_), Some(leader)) => {
            leader.pass();
            old
        }
        (_, None) => old,
    };
    exchange.worker.return_origin(stored);
    Some(hit::serve(exchange, object, Status::Revalidated, Reason::Revalidated))
}

/// The stored head, parsed.
fn stored_origin(exchange: &Exchange<'_>, object: &Object) -> Option<Box<Origin>> {
    let mut origin = exchange.worker.lease_origin();
    hit::read_head(object, &mut origin).then_some(origin)
}

/// Whether the answer may be stored, and in which form.
fn storable(
    exchange: &mut Exchange<'_>,
    origin: &mut Box<Origin>,
    length: BodyLength,
) -> Result<(Draft, Reason), Reason> {
    if let Some(reason) = exchange.cache.may_not_keep {
        return Err(reason);
    }
    let location = exchange.location;
    // Of an answer that `error_page` replaces the cache keeps the status alone, so nothing is relayed.
    let is_replaced = response::is_intercepted(exchange, origin.head.status);
    if !is_replaced && !response::buffers(crate::values(location), origin) {
        return Err(Reason::Unbuffered);
    }
    let redirects =
        origin.field(Known::XAccelRedirect).is_some() && !crate::values(location).proxy.ignore.has("X-Accel-Redirect");
    if redirects && !is_replaced {
        return Err(Reason::AccelRedirect);
    }
    let cache = &crate::values(location).cache;
    if !cache.convert_head && !cache.told_apart.methods && exchange.request.is_head() {
        // GET has the same key: it would get the answer without its body.
        return Err(Reason::BypassMethod);
    }
    let opened = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.opened(number));
    if opened.is_some_and(|opened| opened.is_personal(&exchange.cache.key.0)) {
        return Err(Reason::Divergent);
    }
    let conditions = &crate::values(location).cache.no_cache;
    if !conditions.is_empty() && exchange.reading(origin, |exchange| any_set(exchange, conditions)) {
        return Err(Reason::NoCacheDirective);
    }
    let policy = policy(crate::values(location));
    let facts = ResponseFacts::read(origin.head.status, origin_fields(origin));
    let request = RequestFacts::read(request_fields(exchange.request));
    let (now_ms, took_ms) = (clock::unix_ms() as i64, took_ms(exchange));
    let names_parts = || policy.valid.iter().any(|row| row.status == Some(206));
    let policy = Policy { keeps_parts: crate::values(location).slice.size > 0 || names_parts(), ..policy };
    let (validity, reason) = storing::judge(&request, &facts, &policy, now_ms, took_ms)?;
    let fields = update::stored_fields(origin_fields(origin), &policy);
    let phrase = match origin.head.reason.of(&origin.bytes) {
        // An answer of CGI need not have a phrase, and one over HTTP/2 has none: the stored head gets the one that the client got.
        b"" if origin.head.status_line.is_empty() || origin.head.version == Version::Http2 => {
            weir_wire::status::reason(origin.head.status).unwrap_or_default().as_bytes()
        }
        phrase => phrase,
    };
    Ok((
        Draft {
            head: head_of(origin.head.status, phrase, fields),
            times: times(&validity),
            vary: variant(exchange, origin, &policy),
            tags: tags(origin),
            length: match length {
                _ if is_replaced => Some(0),
                BodyLength::Exact(length) => Some(length),
                BodyLength::None => Some(0),
                BodyLength::Chunked | BodyLength::UntilClose => None,
            },
            stays_in_memory: is_replaced,
        },
        reason,
    ))
}

fn took_ms(exchange: &mut Exchange<'_>) -> i64 {
    exchange.last_try().map_or(0, |attempt| i64::try_from(attempt.elapsed_us() / 1000).unwrap_or(i64::MAX))
}

fn begin(exchange: &mut Exchange<'_>, draft: Draft, reason: Reason) {
    let Some(leader) = exchange.cache.leader.take() else { return };
    exchange.cache.reason = Some(reason);
    let is_empty = draft.length == Some(0);
    match leader.fill(draft, clock::now()) {
        Ok(fill) => {
            exchange.cache.watch = Watch::begin(exchange);
            exchange.cache.begin(fill);
            if is_empty {
                exchange.cache.keep(b"", true);
            }
        }
        Err(StoreRefusal::TooLarge) => exchange.cache.reason = Some(Reason::TooLarge),
        Err(StoreRefusal::TooManyNames) => exchange.cache.reason = Some(Reason::VaryLong),
        Err(StoreRefusal::Purged) => exchange.cache.reason = Some(Reason::NoRoom),
    }
}

/// The field names of `Vary` and the variant they select for this request; `None` without `Vary`.
fn variant(exchange: &Exchange<'_>, origin: &Origin, policy: &Policy<'_>) -> Option<(Box<[u8]>, Variant)> {
    if policy.ignored.contains(Ignored::VARY) {
        return None;
    }
    let lines = origin_fields(origin).filter(|field| field.known == Some(Known::Vary)).map(|field| field.value);
    let mut names = Vec::new();
    vary::names(lines, &mut names);
    (!names.is_empty()).then(|| {
        let variant = select(exchange.request, &names);
        (names.into(), variant)
    })
}

/// `Surrogate-Key` separates its tags by spaces, `Cache-Tag` by commas.
fn tags(origin: &Origin) -> Vec<Tag> {
    let mut tags = Vec::new();
    for field in origin_fields(origin) {
        let by_space = field.name.eq_ignore_ascii_case(b"Surrogate-Key");
        if by_space || field.name.eq_ignore_ascii_case(b"Cache-Tag") {
            let parts = field.value.split(|byte| *byte == b',' || (by_space && *byte == b' '));
            tags.extend(parts.map(<[u8]>::trim_ascii).filter(|tag| !tag.is_empty()).map(Tag::of));
        }
    }
    tags
}

/// A head in stored form: a status line and fields, as an upstream would send them.
fn head_of<'f>(status: u16, phrase: &[u8], fields: impl Iterator<Item = FieldRef<'f>>) -> StoredHead {
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(b"HTTP/1.1 ");
    encode::push_decimal(&mut bytes, u64::from(status));
    bytes.push(b' ');
    bytes.extend_from_slice(phrase);
    bytes.extend_from_slice(b"\r\n");
    let (mut etag, mut last_modified) = (0..0, None);
    for field in fields {
        encode::push_field(&mut bytes, field.name, field.value);
        match field.known {
            Some(Known::Etag) => {
                let end = bytes.len() - 2;
                etag = (end - field.value.len()) as u32..end as u32;
            }
            Some(Known::LastModified) => last_modified = weir_wire::date::parse_http_date(field.value),
            _ => {}
        }
    }
    bytes.extend_from_slice(b"\r\n");
    // nginx revalidates only whole answers and parts.
    if !matches!(status, 200 | 206) {
        (etag, last_modified) = (0..0, None);
    }
    StoredHead { status, hidden_from: bytes.len() as u32, bytes: bytes.into(), etag, last_modified }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_stored_head_knows_its_validators_if_it_may_be_asked_about() {
        let fields = || {
            [(&b"ETag"[..], &b"\"a\""[..]), (b"X", b"y"), (b"Last-Modified", b"Sun, 06 Nov 1994 08:49:37 GMT")]
                .into_iter()
                .map(|(name, value)| FieldRef { name, value, known: Known::of(name) })
        };
        let head = head_of(200, b"OK", fields());
        assert_eq!((head.etag(), head.last_modified), (&b"\"a\""[..], Some(784_111_777)));
        assert!(head.shown().starts_with(b"HTTP/1.1 200 OK\r\n") && head.shown().ends_with(b"\r\n\r\n"));
        let head = head_of(404, b"", fields());
        assert_eq!((head.etag(), head.last_modified), (&b""[..], None));
    }
}
