use proptest::prelude::*;

use super::*;
use crate::cache_control::RequestControl;

/// Fresh for ten seconds, without any stale time.
fn bare() -> Validity {
    Validity {
        received_ms: 100_000,
        fresh_until_ms: 110_000,
        age_s: 0,
        while_revalidate_s: 0,
        if_error_s: 0,
        marks: Marks::default(),
    }
}

/// Fresh for ten seconds, then five for refreshing and twenty for errors.
fn lenient() -> Validity {
    Validity { while_revalidate_s: 5, if_error_s: 20, ..bare() }
}

fn marked(validity: Validity, marks: Marks) -> Validity {
    Validity { marks: validity.marks.with_if(marks, true), ..validity }
}

fn anybody() -> RequestFacts {
    RequestFacts::default()
}

#[test]
fn time_decides_for_anybody() {
    let policy = Policy::default();
    for (stored, now_ms, expected) in [
        (bare(), 100_000, (Use::Serve, Reason::Fresh)),
        (bare(), 109_999, (Use::Serve, Reason::Fresh)),
        (bare(), 110_000, (Use::Ask, Reason::Expired)),
        (lenient(), 110_000, (Use::ServeAndRefresh, Reason::StaleRefreshing)),
        (lenient(), 114_999, (Use::ServeAndRefresh, Reason::StaleRefreshing)),
        (lenient(), 115_000, (Use::Ask, Reason::Expired)),
        (lenient(), 50_000, (Use::Ask, Reason::ClockWentBack)),
        (marked(lenient(), Marks::ASK_ALWAYS), 100_000, (Use::Ask, Reason::MustAsk)),
        (marked(lenient(), Marks::ASK_ALWAYS), 110_000, (Use::Ask, Reason::MustAsk)),
        (marked(lenient(), Marks::ASK_WHEN_STALE), 105_000, (Use::Serve, Reason::Fresh)),
        (marked(lenient(), Marks::ASK_WHEN_STALE), 110_000, (Use::Ask, Reason::Expired)),
        // s-maxage forbids stale answers (RFC 9111 §5.2.2.10), except those that the same answer allows.
        (marked(lenient(), Marks::SHARED_LIFETIME), 110_000, (Use::ServeAndRefresh, Reason::StaleRefreshing)),
    ] {
        assert_eq!(judge(&stored, &anybody(), &policy, now_ms), expected, "{stored:?} at {now_ms}");
    }
    let foreground = Policy { refreshes_behind: false, ..policy };
    assert_eq!(judge(&lenient(), &anybody(), &foreground, 110_000), (Use::Ask, Reason::Expired));
}

#[test]
fn persons_get_only_what_is_for_everybody() {
    let policy = Policy::default();
    let authorized = RequestFacts { is_authorized: true, ..anybody() };
    let session = RequestFacts { has_session: true, ..anybody() };
    for (stored, request, expected) in [
        (bare(), authorized, (Use::Bypass, Reason::BypassAuthorization)),
        (bare(), session, (Use::Bypass, Reason::BypassSession)),
        (marked(bare(), Marks::FOR_AUTHORIZED), authorized, (Use::Serve, Reason::Fresh)),
        (marked(bare(), Marks::FOR_AUTHORIZED), session, (Use::Bypass, Reason::BypassSession)),
        (marked(bare(), Marks::FOR_EVERYBODY), session, (Use::Serve, Reason::Fresh)),
    ] {
        assert_eq!(judge(&stored, &request, &policy, 100_000), expected, "{stored:?} {request:?}");
        let open = Policy { guards_credentials: false, guards_sessions: false, ..policy };
        assert_eq!(judge(&stored, &request, &open, 100_000), (Use::Serve, Reason::Fresh));
        assert!(is_guarded(&request, &policy) && !is_guarded(&request, &open) && !is_guarded(&anybody(), &policy));
    }
}

#[test]
fn requests_are_obeyed_only_when_asked() {
    let obeys = Policy { obeys_requests: true, ..Policy::default() };
    let none = RequestControl::default();
    let aged = Validity { age_s: 1800, ..bare() };
    for (stored, control, now_ms, expected) in [
        (bare(), RequestControl { no_cache: true, ..none }, 100_000, (Use::Ask, Reason::AskedNoCache)),
        (bare(), RequestControl { max_age: Some(0), ..none }, 100_000, (Use::Ask, Reason::AskedMaxAge)),
        (bare(), RequestControl { max_age: Some(2), ..none }, 101_000, (Use::Serve, Reason::Fresh)),
        (bare(), RequestControl { max_age: Some(2), ..none }, 102_000, (Use::Ask, Reason::AskedMaxAge)),
        (aged, RequestControl { max_age: Some(600), ..none }, 100_000, (Use::Ask, Reason::AskedMaxAge)),
        (bare(), RequestControl { min_fresh: Some(9), ..none }, 100_000, (Use::Serve, Reason::Fresh)),
        (bare(), RequestControl { min_fresh: Some(10), ..none }, 100_000, (Use::Ask, Reason::AskedMinFresh)),
        (bare(), RequestControl { max_stale: Some(3), ..none }, 112_000, (Use::Serve, Reason::StaleAsked)),
        (bare(), RequestControl { max_stale: Some(3), ..none }, 113_000, (Use::Ask, Reason::Expired)),
        (bare(), RequestControl { only_if_cached: true, ..none }, 100_000, (Use::Serve, Reason::Fresh)),
        (bare(), RequestControl { only_if_cached: true, ..none }, 110_000, (Use::Refuse, Reason::Expired)),
    ] {
        let request = RequestFacts { control, ..anybody() };
        assert_eq!(judge(&stored, &request, &obeys, now_ms), expected, "{control:?} at {now_ms}");
        let (nginx, _) = judge(&stored, &request, &Policy::default(), now_ms);
        assert_eq!(nginx, if now_ms < 110_000 { Use::Serve } else { Use::Ask }, "{control:?} at {now_ms}");
    }
    for marks in [Marks::ASK_WHEN_STALE, Marks::SHARED_LIFETIME] {
        let request = RequestFacts { control: RequestControl { max_stale: Some(99), ..none }, ..anybody() };
        assert_eq!(judge(&marked(bare(), marks), &request, &obeys, 111_000), (Use::Ask, Reason::Expired), "{marks:?}");
    }
    let only = RequestFacts { control: RequestControl { only_if_cached: true, ..none }, ..anybody() };
    assert_eq!(nothing_stored(&only, &obeys), (Use::Refuse, Reason::OnlyIfCached));
    assert_eq!(nothing_stored(&only, &Policy::default()), (Use::Ask, Reason::Absent));
}

#[test]
fn a_written_proxy_cache_use_stale_decides_as_in_nginx() {
    let of = |set| Policy { use_stale: Some(set), ..Policy::default() };
    let must = marked(bare(), Marks::ASK_WHEN_STALE);
    for (set, trouble, stored, expected) in [
        (UseStale::ERROR, Trouble::Error, bare(), Some(Reason::StaleError)),
        (UseStale::ERROR, Trouble::Error, must, Some(Reason::StaleError)),
        (UseStale::ERROR, Trouble::Timeout, bare(), None),
        (UseStale::TIMEOUT, Trouble::Timeout, bare(), Some(Reason::StaleTimeout)),
        (UseStale::INVALID_HEADER, Trouble::InvalidHeader, bare(), Some(Reason::StaleInvalid)),
        (UseStale::HTTP_503, Trouble::Status(503), bare(), Some(Reason::StaleStatus)),
        (UseStale::HTTP_503, Trouble::Status(500), bare(), None),
        (UseStale::HTTP_404, Trouble::Status(404), bare(), Some(Reason::StaleStatus)),
        (UseStale::HTTP_404, Trouble::Status(418), bare(), None),
        (UseStale::NOTHING, Trouble::Error, bare(), None),
        (UseStale::NOTHING, Trouble::Error, lenient(), Some(Reason::StaleError)),
        (UseStale::ERROR, Trouble::Error, marked(bare(), Marks::ASK_ALWAYS), None),
    ] {
        assert_eq!(instead_of(trouble, &stored, &of(set), 115_000), expected, "{set:?} {trouble:?} {stored:?}");
    }
    let updating = of(UseStale::UPDATING);
    assert!(while_updating(&bare(), &updating, 900_000) && while_updating(&must, &updating, 900_000));
    assert!(!while_updating(&marked(bare(), Marks::ASK_ALWAYS), &updating, 900_000));
    assert_eq!(judge(&bare(), &anybody(), &updating, 900_000), (Use::ServeAndRefresh, Reason::StaleRefreshing));
}

const DAY_MS: i64 = UNASKED_STALE_S_MAX as i64 * 1000;

#[test]
fn without_the_directive_the_rfc_decides() {
    let policy = Policy::default();
    let rfc5861 = Policy { errors_are_statuses: true, ..policy };
    for (policy, trouble, stored, now_ms, expected) in [
        (&policy, Trouble::Error, bare(), 900_000, Some(Reason::StaleError)),
        (&policy, Trouble::Error, bare(), 110_000 + DAY_MS - 1, Some(Reason::StaleError)),
        (&policy, Trouble::Error, bare(), 110_000 + DAY_MS, None),
        (&policy, Trouble::Timeout, bare(), 111_000, None),
        (&policy, Trouble::InvalidHeader, bare(), 111_000, None),
        (&policy, Trouble::Timeout, lenient(), 129_999, Some(Reason::StaleTimeout)),
        (&policy, Trouble::InvalidHeader, lenient(), 129_999, Some(Reason::StaleInvalid)),
        (&policy, Trouble::Error, marked(bare(), Marks::ASK_WHEN_STALE), 111_000, None),
        (&policy, Trouble::Error, marked(lenient(), Marks::ASK_WHEN_STALE), 111_000, None),
        (&policy, Trouble::Error, marked(bare(), Marks::SHARED_LIFETIME), 111_000, None),
        (&policy, Trouble::Error, marked(lenient(), Marks::SHARED_LIFETIME), 129_999, Some(Reason::StaleError)),
        (&policy, Trouble::Error, marked(lenient(), Marks::SHARED_LIFETIME), 130_000, None),
        (&policy, Trouble::Error, marked(bare(), Marks::ASK_ALWAYS), 111_000, None),
        (&policy, Trouble::Error, bare(), 50_000, None),
        (&policy, Trouble::Status(503), lenient(), 111_000, None),
        (&rfc5861, Trouble::Status(503), lenient(), 111_000, Some(Reason::StaleStatus)),
        (&rfc5861, Trouble::Status(503), lenient(), 130_000, None),
        (&rfc5861, Trouble::Status(404), lenient(), 111_000, None),
        (&rfc5861, Trouble::Status(503), bare(), 111_000, None),
    ] {
        assert_eq!(instead_of(trouble, &stored, policy, now_ms), expected, "{trouble:?} {stored:?} at {now_ms}");
    }
}

proptest! {
    #[test]
    fn whatever_is_stored_is_judged(bytes: [u8; 25], now_ms: i64, flags: [bool; 5], status: u16) {
        let mut encoded = [0; crate::validity::ENCODED_BYTES];
        for (to, from) in encoded.iter_mut().zip(&bytes[..24]) {
            *to = *from;
        }
        let Some(stored) = Validity::decode(&encoded) else { return Ok(()) };
        let [is_authorized, obeys_requests, no_cache, guards_credentials, refreshes_behind] = flags;
        let control = RequestControl { no_cache, max_stale: Some(u32::MAX), min_fresh: Some(u32::MAX), ..Default::default() };
        let request = RequestFacts { is_authorized, control, ..anybody() };
        let policy = Policy { obeys_requests, guards_credentials, refreshes_behind, ..Policy::default() };
        let (_, reason) = judge(&stored, &request, &policy, now_ms);
        prop_assert!(reason != Reason::Fresh || stored.is_fresh(now_ms));
        instead_of(Trouble::Status(status), &stored, &policy, now_ms);
    }
}
