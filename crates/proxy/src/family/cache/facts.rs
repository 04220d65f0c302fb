//! The facts about a location, a request and an answer, in the form that `weir_cache` reads.

use weir_cache::policy::{Ignored, Policy};
use weir_cache::store::{Object, Times, Variant};
use weir_cache::validity::Validity;
use weir_cache::vary;
use weir_http::exchange::message::{Origin, Request};
use weir_http::text::template::Template;
use weir_wire::fields::FieldRef;

/// A field in the kept head that marks weir's own 502 and 504, which `proxy_cache_valid` may name.
pub(super) const OWN_ERROR: &[u8] = b"X-Weir-Own-Error";

/// The zone in which a location keeps its answers.
#[derive(Clone, Debug)]
pub enum Use {
    /// None.
    Off,
    /// The zone of this name, with its number once all blocks are read.
    Zone(String, Option<usize>),
    /// The zone that this text names; none if the text is empty.
    Named(Template),
}

/// The policy that a location's directives give to the rules.
pub fn policy<'v>(values: &'v crate::family::Values) -> Policy<'v> {
    const IGNORED: [(&str, Ignored); 5] = [
        ("X-Accel-Expires", Ignored::ACCEL_EXPIRES),
        ("Expires", Ignored::EXPIRES),
        ("Cache-Control", Ignored::CACHE_CONTROL),
        ("Set-Cookie", Ignored::SET_COOKIE),
        ("Vary", Ignored::VARY),
    ];
    let (cache, mut ignored) = (&values.cache, Ignored::NOTHING);
    if !values.proxy.ignore.is_empty() {
        for (name, one) in IGNORED {
            if values.proxy.ignore.has(name) {
                ignored = ignored.with(one);
            }
        }
    }
    Policy {
        ignored,
        valid: &cache.valid,
        use_stale: cache.use_stale,
        revalidates: cache.revalidate,
        refreshes_behind: cache.background_update,
        guesses: cache.honor.guesses,
        obeys_requests: cache.honor.requests,
        errors_are_statuses: cache.honor.errors,
        guards_credentials: cache.guard && !cache.told_apart.credentials,
        guards_sessions: cache.guard && !cache.told_apart.sessions,
        ..Policy::default()
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

/// The variant that this request selects, for a key that varies by these fields.
pub fn select(request: &Request, names: &[u8]) -> Variant {
    let mut text = weir_net::buffer::lease(0);
    vary::selection(names, request_fields(request), &mut text);
    Variant::of(&text)
}

/// Whether the request selects the variant of the object.
pub fn fits(request: &Request, object: &Object) -> bool {
    object.label.vary.is_empty() || select(request, &object.label.vary) == object.label.variant
}

#[cfg(test)]
mod tests {
    use weir_cache::reason::Reason;
    use weir_cache::request::RequestFacts;
    use weir_cache::serving;
    use weir_cache::validity::Marks;

    use super::*;

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
}
