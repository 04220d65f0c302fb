//! Decides whether an answer may be stored, and for how long (RFC 9111 §3, §4.2).

use crate::cache_control::Control;
use crate::policy::{Ignored, Policy};
use crate::reason::Reason;
use crate::request::RequestFacts;
use crate::response::{Accel, Expires, ResponseFacts};
use crate::validity::{Marks, Validity};
use crate::vary;

/// The longest guessed lifetime, in seconds: a day (RFC 9111 §4.2.2 asks for a warning beyond).
pub const GUESS_S_MAX: i64 = 86_400;

/// Decides about an answer that arrived at `received_ms` (since 1970), `took_ms` after its request.
///
/// The caller first checks `proxy_no_cache`, `proxy_cache_methods` and `proxy_cache_min_uses`. `Ok` has the reason for
/// the lifetime. The stored fields are the answer's [`stored_fields`](crate::update::stored_fields).
pub fn judge(
    request: &RequestFacts,
    response: &ResponseFacts,
    policy: &Policy<'_>,
    received_ms: i64,
    took_ms: i64,
) -> Result<(Validity, Reason), Reason> {
    let stated = Stated::of(response, policy);
    status(response, policy)?;
    if stated.accel == Accel::Never {
        return Err(Reason::AccelZero);
    }
    if policy.obeys_requests && request.control.no_store {
        return Err(Reason::RequestNoStore);
    }
    persons(request, response, policy, stated.control)?;
    variants(response, policy)?;
    if stated.accel == Accel::Absent {
        forbidden(response, stated.control)?;
    }
    let age_s = age_s(response, took_ms);
    let (fresh_until_ms, reason) = stated.lifetime(response, policy, received_ms, age_s).ok_or(Reason::NoLifetime)?;
    let control = stated.control;
    let validity = Validity {
        received_ms,
        fresh_until_ms,
        age_s,
        while_revalidate_s: control.while_revalidate.unwrap_or(0),
        // nginx: an answer that may be served during a refresh may also replace an error.
        if_error_s: control.if_error.or(control.while_revalidate).unwrap_or(0),
        marks: marks(control),
    };
    stated.use_of_stale(response, policy, validity, reason)
}

/// The statements of the answer, after `proxy_ignore_headers` and RFC 9213 are applied.
struct Stated {
    accel: Accel,
    control: Control,
    is_targeted: bool,
    expires: Expires,
}

impl Stated {
    fn of(response: &ResponseFacts, policy: &Policy<'_>) -> Stated {
        let targeted = response.targeted.filter(|_| !policy.ignored.contains(Ignored::CACHE_CONTROL));
        Stated {
            accel: if policy.ignored.contains(Ignored::ACCEL_EXPIRES) { Accel::Absent } else { response.accel },
            control: targeted.unwrap_or_else(|| policy.control(response.control)),
            is_targeted: targeted.is_some(),
            // RFC 9213 §2.2: the targeted field also replaces Expires.
            expires: match targeted {
                None if !policy.ignored.contains(Ignored::EXPIRES) => response.expires,
                _ => Expires::Absent,
            },
        }
    }

    /// The end of its freshness, in nginx's order of precedence: the RFC's order, with X-Accel-Expires above and
    /// `proxy_cache_valid` below.
    fn lifetime(
        &self,
        response: &ResponseFacts,
        policy: &Policy<'_>,
        received_ms: i64,
        age_s: u32,
    ) -> Option<(i64, Reason)> {
        let after = |seconds: i64| received_ms.saturating_add(seconds.saturating_mul(1000));
        let younger = |seconds: i64| after(seconds.saturating_sub(i64::from(age_s)));
        match self.accel {
            Accel::For(seconds) => return Some((after(i64::from(seconds)), Reason::AccelExpires)),
            Accel::At(seconds) => return Some((seconds.saturating_mul(1000), Reason::AccelExpires)),
            Accel::Absent | Accel::Never => {}
        }
        let control = &self.control;
        let shared = control.shared_max_age.map(|seconds| (seconds, Reason::SharedMaxAge));
        if let Some((seconds, reason)) = shared.or(control.max_age.map(|seconds| (seconds, Reason::MaxAge))) {
            return Some((younger(i64::from(seconds)), if self.is_targeted { Reason::CdnMaxAge } else { reason }));
        }
        let now_s = received_ms.div_euclid(1000);
        match self.expires {
            Expires::At(at) => {
                return Some((younger(at.saturating_sub(response.date.unwrap_or(now_s))), Reason::Expires));
            }
            Expires::Invalid => return Some((received_ms, Reason::LifetimeInvalid)),
            Expires::Absent => {}
        }
        if let Some(seconds) = policy.valid_s(response.status) {
            return (seconds > 0).then(|| (after(i64::from(seconds)), Reason::Valid));
        }
        if control.no_cache {
            return Some((received_ms, Reason::NoCache));
        }
        let guessed_s = guess_s(response, policy, control, now_s)?;
        Some((younger(guessed_s), Reason::Heuristic))
    }

    /// A stale answer may still be useful: weir may revalidate it, or serve it stale if it allows that.
    fn use_of_stale(
        &self,
        response: &ResponseFacts,
        policy: &Policy<'_>,
        mut validity: Validity,
        reason: Reason,
    ) -> Result<(Validity, Reason), Reason> {
        let has_accel = self.accel != Accel::Absent;
        let must_ask = self.control.no_cache && !has_accel;
        // nginx stores an answer with an X-Accel-Expires in the past: it is expired from the beginning.
        if !must_ask && (validity.fresh_until_ms > validity.received_ms || has_accel) {
            return Ok((validity, reason));
        }
        let may_ask = policy.revalidates && response.has_validator();
        if must_ask {
            validity.marks = validity.marks.with_if(Marks::ASK_ALWAYS, true);
            return if may_ask { Ok((validity, Reason::ToRevalidate)) } else { Err(Reason::NoCache) };
        }
        if validity.if_error_s > 0 && !validity.marks.has(Marks::ASK_WHEN_STALE) {
            return Ok((validity, Reason::ToServeStale));
        }
        if may_ask {
            return Ok((validity, Reason::ToRevalidate));
        }
        let is_invalid = self.control.is_invalid || reason == Reason::LifetimeInvalid;
        Err(if is_invalid { Reason::LifetimeInvalid } else { Reason::LifetimeZero })
    }
}

fn status(response: &ResponseFacts, policy: &Policy<'_>) -> Result<(), Reason> {
    match response.status {
        0..=199 => Err(Reason::Interim),
        304 => Err(Reason::NotModified),
        206 if !policy.keeps_parts || response.part.is_none() => Err(Reason::Partial),
        _ => Ok(()),
    }
}

fn persons(
    request: &RequestFacts,
    response: &ResponseFacts,
    policy: &Policy<'_>,
    control: Control,
) -> Result<(), Reason> {
    if response.sets_cookie && !policy.ignored.contains(Ignored::SET_COOKIE) {
        return Err(Reason::SetCookie);
    }
    if policy.guards_sessions && response.sets_session {
        return Err(Reason::SetsSession);
    }
    if policy.guards_credentials && request.is_authorized && !control.is_for_authorized() {
        return Err(Reason::RequestAuthorization);
    }
    if policy.guards_sessions && request.has_session && !control.is_for_everybody() {
        return Err(Reason::RequestSession);
    }
    Ok(())
}

fn variants(response: &ResponseFacts, policy: &Policy<'_>) -> Result<(), Reason> {
    if policy.ignored.contains(Ignored::VARY) {
        return Ok(());
    }
    if response.varies_by_all {
        return Err(Reason::VaryStar);
    }
    if response.vary_bytes > vary::NAMES_BYTES_MAX { Err(Reason::VaryLong) } else { Ok(()) }
}

fn forbidden(response: &ResponseFacts, control: Control) -> Result<(), Reason> {
    if control.must_understand && !is_understood(response.status) {
        return Err(Reason::NotUnderstood);
    }
    // RFC 9111 §5.2.2.3: a cache that understands the status ignores no-store.
    if control.no_store && !control.must_understand {
        return Err(Reason::NoStore);
    }
    if control.private { Err(Reason::Private) } else { Ok(()) }
}

/// The age of the answer at its arrival: `Age` plus its time in transit (RFC 9111 §4.2.3).
///
/// Without `Age` it came from the origin itself, and its life begins at its arrival, as in nginx. If the time that an
/// application needs to make it counted, nothing would be left of `max-age=1`. `Date` is not used: clocks differ.
fn age_s(response: &ResponseFacts, took_ms: i64) -> u32 {
    let on_its_way_s = u32::try_from(took_ms.max(0) / 1000).unwrap_or(u32::MAX);
    response.age_s.map_or(0, |age_s| age_s.saturating_add(on_its_way_s))
}

fn marks(control: Control) -> Marks {
    Marks::default()
        .with_if(Marks::ASK_WHEN_STALE, control.must_revalidate)
        .with_if(Marks::SHARED_LIFETIME, control.shared_max_age.is_some())
        .with_if(Marks::FOR_AUTHORIZED, control.is_for_authorized())
        .with_if(Marks::FOR_EVERYBODY, control.is_for_everybody())
}

/// A tenth of the time since the last modification, if guessing is on and the status allows it (RFC 9111 §4.2.2).
fn guess_s(response: &ResponseFacts, policy: &Policy<'_>, control: &Control, now_s: i64) -> Option<i64> {
    let may_guess = matches!(response.status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501);
    if !policy.guesses || !(may_guess || control.public) {
        return None;
    }
    let unchanged_s = response.date.unwrap_or(now_s).saturating_sub(response.last_modified?);
    Some((unchanged_s / 10).clamp(0, GUESS_S_MAX))
}

/// Statuses whose caching rules weir knows: those of RFC 9110 §15, RFC 6585 and RFC 7725, except 206 and 304.
fn is_understood(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451 | 500..=505 | 511)
}

#[cfg(test)]
#[path = "storing_tests.rs"]
mod tests;
