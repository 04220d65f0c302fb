//! May what is stored answer this request, now, later, or when the origin cannot (RFC 9111 §4, RFC 5861).

use crate::policy::{Policy, UseStale};
use crate::reason::Reason;
use crate::request::RequestFacts;
use crate::validity::{Marks, Validity};

/// What to do with what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Serve it: nginx's `HIT`.
    Serve,
    /// Serve it stale and have it refreshed behind the client's back: `STALE`, or `UPDATING` when somebody already does.
    ServeAndRefresh,
    /// Ask the origin, conditionally if it can be: `EXPIRED`, `REVALIDATED`.
    Ask,
    /// Ask the origin and keep the answer apart: `BYPASS`.
    Bypass,
    /// Answer by 504: the request wanted nothing else (RFC 9111 §5.2.1.7).
    Refuse,
}

/// How long an answer may be too old and still stand in for an origin that cannot be reached, where neither the file nor
/// the answer says so: a day.
pub const UNASKED_STALE_S_MAX: u32 = 24 * 60 * 60;

/// What went wrong at the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Connecting, sending or reading failed.
    Error,
    /// It took too long.
    Timeout,
    /// Its answer could not be understood.
    InvalidHeader,
    /// It answered by this status.
    Status(u16),
}

/// Decides about a stored answer that was selected for the request (key and `Vary` match).
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

/// Whether the request is somebody's, so that what others fetch is not for it unless that says so.
///
/// Such a request neither waits for another's fetch nor has others wait for its own: it would hold them up for an answer
/// that is most likely not for them. What it fetches may still be stored, if it says that it is for everybody.
pub fn is_guarded(request: &RequestFacts, policy: &Policy<'_>) -> bool {
    (policy.guards_credentials && request.is_authorized) || (policy.guards_sessions && request.has_session)
}

/// What to do when nothing is stored.
pub fn nothing_stored(request: &RequestFacts, policy: &Policy<'_>) -> (Use, Reason) {
    match ask_or_refuse(request, policy) {
        Use::Refuse => (Use::Refuse, Reason::OnlyIfCached),
        other => (other, Reason::Absent),
    }
}

/// Whether a stale answer may be served while somebody fetches a new one (RFC 5861 §3, `proxy_cache_use_stale updating`).
pub fn while_updating(stored: &Validity, policy: &Policy<'_>, now_ms: i64) -> bool {
    if stored.marks.has(Marks::ASK_ALWAYS) {
        return false;
    }
    let is_directed = policy.use_stale.is_some_and(|set| set.contains(UseStale::UPDATING));
    let is_granted = !stored.marks.has(Marks::ASK_WHEN_STALE) && stored.is_within(stored.while_revalidate_s, now_ms);
    is_directed || is_granted
}

/// Whether a stale answer may stand in for an origin in trouble, and the reason to give.
///
/// `proxy_cache_use_stale` decides when the file has it, with nginx's meaning. `stale-if-error` grants its time
/// besides (RFC 5861 §4). Without either, an origin that cannot be reached is stood in for, for as long as
/// [`UNASKED_STALE_S_MAX`], unless the stored answer forbids it (RFC 9111 §4.2.4). One that is slow or answers nonsense
/// is not: nginx's 504 and 502 tell of a fault that somebody has to see.
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

/// What the request's own directives come to (RFC 9111 §5.2.1).
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
