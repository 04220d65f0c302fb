//! Decides whether a stored answer may be served for a request: at once, during a refresh, or instead of an error (RFC
//! 9111 §4, RFC 5861).

use crate::policy::{Policy, UseStale};
use crate::reason::Reason;
use crate::request::RequestFacts;
use crate::validity::{Marks, Validity};

/// The action for a stored answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Serve it: nginx's `HIT`.
    Serve,
    /// Serve it stale and refresh it in the background: `STALE`, or `UPDATING` if a refresh is in progress.
    ServeAndRefresh,
    /// Ask the origin, with a conditional request if possible: `EXPIRED`, `REVALIDATED`.
    Ask,
    /// Ask the origin and do not use the cache: `BYPASS`.
    Bypass,
    /// Answer 504: the request allows only a cached answer (RFC 9111 §5.2.1.7).
    Refuse,
}

/// How long a stale answer may replace an answer of an unreachable origin if neither the file nor the answer sets a
/// time: a day, in seconds.
pub const UNASKED_STALE_S_MAX: u32 = 24 * 60 * 60;

/// The failure of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Connecting, sending or reading failed.
    Error,
    /// The origin took too long.
    Timeout,
    /// The answer was invalid.
    InvalidHeader,
    /// The origin answered with this status.
    Status(u16),
}

/// Decides about a stored answer that the request selects (key and `Vary` match).
pub fn judge(stored: &Validity, request: &RequestFacts, policy: &Policy<'_>, now_ms: i64) -> (Use, Reason) {
    if let Err(reason) = persons(stored, request, policy) {
        return (Use::Bypass, reason);
    }
    let asked = if policy.obeys_requests { obey(stored, request, now_ms) } else { Asked::Nothing };
    if let Asked::Fresher(reason) = asked {
        return (ask_or_refuse(request, policy), reason);
    }
    if stored.is_fresh(now_ms) {
        return (Use::Serve, Reason::Fresh);
    }
    if stored.clock_went_back(now_ms) {
        return (ask_or_refuse(request, policy), Reason::ClockWentBack);
    }
    if stored.marks.has(Marks::ASK_ALWAYS) {
        return (ask_or_refuse(request, policy), Reason::MustAsk);
    }
    if asked == Asked::Stale {
        return (Use::Serve, Reason::StaleAsked);
    }
    if policy.refreshes_behind && while_updating(stored, policy, now_ms) {
        return (Use::ServeAndRefresh, Reason::StaleRefreshing);
    }
    (ask_or_refuse(request, policy), Reason::Expired)
}

/// Whether the request is personal: it may get an answer that was fetched for another client only if that answer allows
/// it.
///
/// Such a request neither waits for another's fetch nor lets others wait for its own: they would wait for an answer
/// that is most likely not for them. Its answer may still be stored, if the answer says that it is for everybody.
pub fn is_guarded(request: &RequestFacts, policy: &Policy<'_>) -> bool {
    (policy.guards_credentials && request.is_authorized) || (policy.guards_sessions && request.has_session)
}

/// The action if nothing is stored.
pub fn nothing_stored(request: &RequestFacts, policy: &Policy<'_>) -> (Use, Reason) {
    match ask_or_refuse(request, policy) {
        Use::Refuse => (Use::Refuse, Reason::OnlyIfCached),
        other => (other, Reason::Absent),
    }
}

/// Whether a stale answer may be served while a new one is fetched (RFC 5861 §3, `proxy_cache_use_stale updating`).
pub fn while_updating(stored: &Validity, policy: &Policy<'_>, now_ms: i64) -> bool {
    if stored.marks.has(Marks::ASK_ALWAYS) {
        return false;
    }
    let is_directed = policy.use_stale.is_some_and(|set| set.contains(UseStale::UPDATING));
    let is_granted = !stored.marks.has(Marks::ASK_WHEN_STALE) && stored.is_within(stored.while_revalidate_s, now_ms);
    is_directed || is_granted
}

/// Whether a stale answer may be served when the origin fails, and the reason.
///
/// If the file has `proxy_cache_use_stale`, it decides, with nginx's meaning. In addition, `stale-if-error` allows its
/// time (RFC 5861 §4). Without either, a stale answer replaces the answer of an unreachable origin for up to
/// [`UNASKED_STALE_S_MAX`], unless the stored answer forbids it (RFC 9111 §4.2.4). It does not do so for a slow origin
/// or an invalid answer: somebody has to see nginx's 504 and 502.
pub fn instead_of(trouble: Trouble, stored: &Validity, policy: &Policy<'_>, now_ms: i64) -> Option<Reason> {
    if stored.marks.has(Marks::ASK_ALWAYS) || stored.clock_went_back(now_ms) {
        return None;
    }
    let (member, reason) = match trouble {
        Trouble::Error => (Some(UseStale::ERROR), Reason::StaleError),
        Trouble::Timeout => (Some(UseStale::TIMEOUT), Reason::StaleTimeout),
        Trouble::InvalidHeader => (Some(UseStale::INVALID_HEADER), Reason::StaleInvalid),
        Trouble::Status(status) => (UseStale::status(status), Reason::StaleStatus),
    };
    let is_answer = matches!(trouble, Trouble::Status(_));
    let is_error_status = matches!(trouble, Trouble::Status(500 | 502 | 503 | 504)) && policy.errors_are_statuses;
    let is_directed = policy.use_stale.is_some_and(|set| member.is_some_and(|member| set.contains(member)));
    let must_ask = stored.marks.has(Marks::ASK_WHEN_STALE);
    let is_granted = !must_ask && (!is_answer || is_error_status) && stored.is_within(stored.if_error_s, now_ms);
    let is_cut_off = policy.use_stale.is_none()
        && trouble == Trouble::Error
        && !must_ask
        && !stored.marks.has(Marks::SHARED_LIFETIME)
        && stored.is_within(UNASKED_STALE_S_MAX, now_ms);
    (is_directed || is_granted || is_cut_off).then_some(reason)
}

fn ask_or_refuse(request: &RequestFacts, policy: &Policy<'_>) -> Use {
    if policy.obeys_requests && request.control.only_if_cached { Use::Refuse } else { Use::Ask }
}

fn persons(stored: &Validity, request: &RequestFacts, policy: &Policy<'_>) -> Result<(), Reason> {
    if policy.guards_credentials && request.is_authorized && !stored.marks.has(Marks::FOR_AUTHORIZED) {
        return Err(Reason::BypassAuthorization);
    }
    if policy.guards_sessions && request.has_session && !stored.marks.has(Marks::FOR_EVERYBODY) {
        return Err(Reason::BypassSession);
    }
    Ok(())
}

/// The effect of the request's own directives (RFC 9111 §5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Fresher(Reason),
    Stale,
}

fn obey(stored: &Validity, request: &RequestFacts, now_ms: i64) -> Asked {
    let control = &request.control;
    if control.no_cache {
        return Asked::Fresher(Reason::AskedNoCache);
    }
    if control.max_age.is_some_and(|max_age| stored.current_age_s(now_ms) >= max_age) {
        return Asked::Fresher(Reason::AskedMaxAge);
    }
    let later_ms = now_ms.saturating_add(i64::from(control.min_fresh.unwrap_or(0)).saturating_mul(1000));
    if control.min_fresh.is_some() && later_ms >= stored.fresh_until_ms {
        return Asked::Fresher(Reason::AskedMinFresh);
    }
    let forbids = stored.marks.has(Marks::ASK_WHEN_STALE) || stored.marks.has(Marks::SHARED_LIFETIME);
    if !forbids && stored.is_within(control.max_stale.unwrap_or(0), now_ms) { Asked::Stale } else { Asked::Nothing }
}

#[cfg(test)]
#[path = "serving_tests.rs"]
mod tests;
