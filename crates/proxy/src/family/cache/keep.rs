//! Stores answers of the upstream: decides by the head, then stores the body while it arrives.

use weir_cache::policy::{Ignored, Policy};
use weir_cache::reason::Reason;
use weir_cache::request::RequestFacts;
use weir_cache::response::ResponseFacts;
use weir_cache::serving::{self, Trouble};
use weir_cache::store::{Draft, Head, Object, Refused, Status, Tag, Times, Variant};
use weir_cache::validity::Validity;
use weir_cache::{storing, update, vary};
use weir_http::exchange::Exchange;
use weir_http::message::{Origin, Request};
use weir_http::phase::Outcome;
use weir_http::template::any_set;
use weir_net::clock;
use weir_net::log::Level;
use weir_wire::fields::FieldRef;
use weir_wire::{BodyLength, Known, Version, encode};

use super::watch::Watch;
use super::{hit, policy, purge};
use crate::family::proxy::response;
use crate::family::upstream::answer::Answer;

/// A field in the kept head that marks weir's own 502 and 504, which `proxy_cache_valid` may name.
const OWN_ERROR: &[u8] = b"X-Weir-Own-Error";

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

/// Whether an object is an error of weir's own.
pub fn is_own_error(object: &Object) -> bool {
    matches!(object.head.status, 502 | 504) && memchr::memmem::find(object.head.shown(), OWN_ERROR).is_some()
}

/// Converts the times in the store to the validity that the rules use.
pub fn validity(times: &Times) -> Validity {
    let seconds =
        |until_ms: u64| u32::try_from(until_ms.saturating_sub(times.fresh_until_ms) / 1000).unwrap_or(u32::MAX);
    Validity {
        received_ms: i64::try_from(times.stored_ms).unwrap_or(i64::MAX),
        fresh_until_ms: i64::try_from(times.fresh_until_ms).unwrap_or(i64::MAX),
        age_s: u32::try_from(times.age_ms / 1000).unwrap_or(u32::MAX),
        while_revalidate_s: seconds(times.updating_until_ms),
        if_error_s: seconds(times.error_until_ms),
        marks: weir_cache::validity::Marks::from_bits(times.flags as u8),
    }
}

/// Converts the rules' validity back to the times in the store.
pub fn times(validity: &Validity) -> Times {
    let fresh_until_ms = u64::try_from(validity.fresh_until_ms).unwrap_or(0);
    let until = |seconds: u32| fresh_until_ms.saturating_add(u64::from(seconds) * 1000);
    Times {
        stored_ms: u64::try_from(validity.received_ms).unwrap_or(0),
        age_ms: u64::from(validity.age_s) * 1000,
        fresh_until_ms,
        updating_until_ms: until(validity.while_revalidate_s),
        error_until_ms: until(validity.if_error_s),
        flags: u32::from(validity.marks.bits()),
    }
}

/// The fields of the client's request, in the form the rules read.
pub fn request_fields(request: &Request) -> impl Iterator<Item = FieldRef<'_>> + Clone {
    request.fields().iter().map(|field| FieldRef {
        name: request.text(field.name),
        value: request.text(field.value),
        known: field.known,
    })
}

/// The fields of the upstream's answer, in the form the rules read.
pub fn origin_fields(origin: &Origin) -> impl Iterator<Item = FieldRef<'_>> + Clone {
    origin.head.fields.iter().map(|field| FieldRef {
        name: field.name.of(&origin.bytes),
        value: field.value.of(&origin.bytes),
        known: field.known,
    })
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
    let request = RequestFacts::read(request_fields(&exchange.request));
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
    let request = RequestFacts::read(request_fields(&exchange.request));
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
        Err(Refused::TooLarge) => exchange.cache.reason = Some(Reason::TooLarge),
        Err(Refused::TooManyNames) => exchange.cache.reason = Some(Reason::VaryLong),
        Err(Refused::Purged) => exchange.cache.reason = Some(Reason::NoRoom),
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
        let variant = select(&exchange.request, &names);
        (names.into(), variant)
    })
}

/// The variant that this request selects, for a key that varies by these fields.
pub fn select(request: &Request, names: &[u8]) -> Variant {
    let mut text = weir_net::buffer::lease(0);
    vary::selection(names, request_fields(request), &mut text);
    Variant::of(&text)
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
fn head_of<'f>(status: u16, phrase: &[u8], fields: impl Iterator<Item = FieldRef<'f>>) -> Head {
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
    Head { status, hidden_from: bytes.len() as u32, bytes: bytes.into(), etag, last_modified }
}

/// Whether the request selects the variant of the object.
pub fn fits(request: &Request, object: &Object) -> bool {
    object.label.vary.is_empty() || select(request, &object.label.vary) == object.label.variant
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_cache::validity::Marks;

    #[test]
    fn what_the_rules_said_comes_back_from_the_store() {
        for (fresh_until_ms, while_revalidate_s, if_error_s) in [(5_000, 0, 0), (0, 10, 600), (1 << 41, 3, u32::MAX)] {
            let said = Validity {
                received_ms: 1_000,
                fresh_until_ms,
                age_s: 7,
                while_revalidate_s,
                if_error_s,
                marks: Marks::default().with_if(Marks::ASK_WHEN_STALE, true).with_if(Marks::FOR_EVERYBODY, true),
            };
            assert_eq!(validity(&times(&said)), said);
        }
    }

    #[test]
    fn a_clock_that_jumps_makes_nothing_older_fresh_and_nothing_newer_old() {
        const HOUR_MS: i64 = 3_600_000;
        const YEAR_MS: i64 = 8766 * HOUR_MS;
        let stored_ms = 60 * YEAR_MS;
        let said = Validity {
            received_ms: stored_ms,
            fresh_until_ms: stored_ms + HOUR_MS,
            age_s: 0,
            while_revalidate_s: 0,
            if_error_s: 60,
            marks: Marks::FOR_EVERYBODY,
        };
        let (facts, policy) = (RequestFacts::default(), Policy::default());
        // The times as they come back from the disk.
        let stored = validity(&times(&said));
        for (now_ms, expected, stands_in) in [
            (stored_ms, Reason::Fresh, true),
            // Clocks of two machines may differ by a second.
            (stored_ms - 1000, Reason::Fresh, true),
            (stored_ms - HOUR_MS, Reason::ClockWentBack, false),
            (stored_ms - 59 * YEAR_MS, Reason::ClockWentBack, false),
            (0, Reason::ClockWentBack, false),
            (stored_ms + HOUR_MS, Reason::Expired, true),
            (stored_ms + YEAR_MS, Reason::Expired, false),
            (i64::MAX, Reason::Expired, false),
        ] {
            let (verdict, reason) = serving::judge(&stored, &facts, &policy, now_ms);
            assert_eq!(reason, expected, "{now_ms}");
            assert_eq!(verdict == serving::Use::Serve, expected == Reason::Fresh, "{now_ms}");
            let is_granted = stored.is_within(stored.if_error_s, now_ms);
            assert_eq!(is_granted, stands_in, "{now_ms}");
        }
        // A file with invalid dates is revalidated and never served, and no sum overflows.
        for (stored_ms, fresh_until_ms) in [(u64::MAX, u64::MAX), (0, 0), (u64::MAX, 0)] {
            let times = Times { stored_ms, fresh_until_ms, age_ms: u64::MAX, ..Times::default() };
            let (verdict, _) = serving::judge(&validity(&times), &facts, &policy, 60 * YEAR_MS);
            assert_eq!(verdict, serving::Use::Ask, "{stored_ms} {fresh_until_ms}");
        }
    }

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
