use proptest::prelude::*;
use weir_wire::fields::FieldRef;
use weir_wire::{Known, date};

use super::*;
use crate::policy::Valid;

/// The time when answers arrive, in seconds since 1970.
const NOW_S: i64 = 1_800_000_000;
const NOW_MS: i64 = NOW_S * 1000;

fn fields<'a>(lines: &'a [(&'a str, String)]) -> impl Iterator<Item = FieldRef<'a>> + Clone {
    lines.iter().map(|(name, value)| FieldRef {
        name: name.as_bytes(),
        value: value.as_bytes(),
        known: Known::of(name.as_bytes()),
    })
}

/// `Name: value` lines; `{+n}` stands for the date n seconds from now.
fn lines(text: &str) -> Vec<(&str, String)> {
    text.split('|')
        .filter(|line| !line.is_empty())
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| {
            let value = match value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
                Some(offset) => {
                    let at = NOW_S + offset.parse::<i64>().unwrap();
                    String::from_utf8(date::http_date(at).to_vec()).unwrap()
                }
                None => value.to_string(),
            };
            (name, value)
        })
        .collect()
}

fn judged(status: u16, request: &str, response: &str, policy: &Policy<'_>) -> Result<(Validity, Reason), Reason> {
    let (request, response) = (lines(request), lines(response));
    let request = RequestFacts::read(fields(&request));
    let response = ResponseFacts::read(status, fields(&response));
    judge(&request, &response, policy, NOW_MS, 0)
}

/// Seconds of freshness and the reason, or the reason for not storing.
fn lifetime(status: u16, response: &str, policy: &Policy<'_>) -> Result<(i64, Reason), Reason> {
    judged(status, "", response, policy).map(|(validity, reason)| ((validity.fresh_until_ms - NOW_MS) / 1000, reason))
}

#[test]
fn lifetimes_come_from_the_most_specific_that_speaks() {
    let policy = Policy::default();
    for (response, expected) in [
        ("Cache-Control: max-age=3600", Ok((3600, Reason::MaxAge))),
        ("Cache-Control: max-age=2147483647", Ok((2_147_483_647, Reason::MaxAge))),
        ("Cache-Control: max-age=99999999999", Ok((2_147_483_648, Reason::MaxAge))),
        ("Cache-Control: max-age=3600|Expires: {-7200}", Ok((3600, Reason::MaxAge))),
        ("Expires: 0|Cache-Control: max-age=3600", Ok((3600, Reason::MaxAge))),
        ("Cache-Control: max-age=1, s-maxage=3600|Expires: {-10}", Ok((3600, Reason::SharedMaxAge))),
        ("Cache-Control: max-age=3600|Cache-Control: s-maxage=1", Ok((1, Reason::SharedMaxAge))),
        ("Expires: {+300}|Date: {+0}", Ok((300, Reason::Expires))),
        ("Expires: {+300}", Ok((300, Reason::Expires))),
        ("Expires: {+10}|Date: foo", Ok((10, Reason::Expires))),
        ("X-Accel-Expires: 60|Expires: {-9}|Cache-Control: no-cache", Ok((60, Reason::AccelExpires))),
        ("X-Accel-Expires: 60|Cache-Control: no-store, private", Ok((60, Reason::AccelExpires))),
        ("X-Accel-Expires: @60", Ok((60 - NOW_S, Reason::AccelExpires))),
        ("CDN-Cache-Control: max-age=60|Cache-Control: no-store|Expires: 0", Ok((60, Reason::CdnMaxAge))),
        ("CDN-Cache-Control: max-age=60|Cache-Control: max-age=1", Ok((60, Reason::CdnMaxAge))),
        ("CDN-Cache-Control: max-age=60, &&|Cache-Control: max-age=1", Ok((1, Reason::MaxAge))),
        ("", Err(Reason::NoLifetime)),
        ("Cache-Control: public", Err(Reason::NoLifetime)),
        ("ETag: \"a\"", Err(Reason::NoLifetime)),
        ("Last-Modified: {-86400}", Err(Reason::NoLifetime)),
        ("Cache-Control: max-age=0", Err(Reason::LifetimeZero)),
        ("Cache-Control: max-age=0|Expires: {+3600}", Err(Reason::LifetimeZero)),
        ("Cache-Control: max-age=-3600", Err(Reason::LifetimeInvalid)),
        ("Cache-Control: max-age='3600'", Err(Reason::LifetimeInvalid)),
        ("Expires: {-300}|Date: {+0}", Err(Reason::LifetimeZero)),
        ("Expires: {+300}|Date: {+400}", Err(Reason::LifetimeZero)),
        ("Expires: 0", Err(Reason::LifetimeInvalid)),
        ("Expires: Thu, 18 Aug 2050 02:01:18 UTC", Err(Reason::LifetimeInvalid)),
        ("X-Accel-Expires: 0|Cache-Control: max-age=60", Err(Reason::AccelZero)),
        ("CDN-Cache-Control: max-age=0|Expires: {+1000}", Err(Reason::LifetimeZero)),
        ("CDN-Cache-Control: foo|Cache-Control: max-age=10", Err(Reason::NoLifetime)),
    ] {
        assert_eq!(lifetime(200, response, &policy), expected, "{response}");
    }
}

#[test]
fn age_shortens_what_the_answer_says_and_not_what_directives_say() {
    let valid = [Valid { status: None, seconds: 10 }];
    let policy = Policy { valid: &valid, ..Policy::default() };
    for (response, expected) in [
        ("Cache-Control: max-age=3600|Age: 600", Ok((3000, Reason::MaxAge))),
        ("Cache-Control: max-age=3600|Age: 7200", Err(Reason::LifetimeZero)),
        ("Cache-Control: max-age=3600|Age: 2147483649", Err(Reason::LifetimeZero)),
        ("Date: {-10}|Expires: {+10}|Age: 25", Err(Reason::LifetimeZero)),
        ("Date: {+10}|Expires: {+20}|Age: 15", Err(Reason::LifetimeZero)),
        ("Date: {-7200}|Cache-Control: max-age=3600", Ok((3600, Reason::MaxAge))),
        ("CDN-Cache-Control: max-age=3600|Age: 7200", Err(Reason::LifetimeZero)),
        ("X-Accel-Expires: 60|Age: 100", Ok((60, Reason::AccelExpires))),
        ("Age: 100", Ok((10, Reason::Valid))),
    ] {
        assert_eq!(lifetime(200, response, &policy), expected, "{response}");
    }
    let response = |text: &str, took_ms| {
        let lines = lines(text);
        let response = ResponseFacts::read(200, fields(&lines));
        judge(&RequestFacts::default(), &response, &Policy::default(), NOW_MS, took_ms)
            .map(|(validity, _)| validity.age_s)
    };
    assert_eq!(response("Cache-Control: max-age=60|Age: 3", 2500), Ok(5), "another cache's answer ages on its way");
    assert_eq!(response("Cache-Control: max-age=1", 2500), Ok(0), "the origin's begins when it comes");
}

#[test]
fn proxy_cache_valid_is_for_answers_that_say_nothing() {
    let valid = [Valid { status: Some(200), seconds: 10 }, Valid { status: Some(404), seconds: 0 }];
    let policy = Policy { valid: &valid, ..Policy::default() };
    for (status, response, expected) in [
        (200, "", Ok((10, Reason::Valid))),
        (200, "Cache-Control: public", Ok((10, Reason::Valid))),
        (200, "Cache-Control: max-age=5", Ok((5, Reason::MaxAge))),
        (200, "Cache-Control: no-store", Err(Reason::NoStore)),
        (200, "Cache-Control: max-age=0", Err(Reason::LifetimeZero)),
        (200, "Expires: {-5}", Err(Reason::LifetimeZero)),
        (404, "", Err(Reason::NoLifetime)),
        (301, "", Err(Reason::NoLifetime)),
    ] {
        assert_eq!(lifetime(status, response, &policy), expected, "{status} {response}");
    }
}

#[test]
fn ignored_fields_are_not_looked_at() {
    let of = |ignored| Policy { ignored, ..Policy::default() };
    let all = "X-Accel-Expires: 60|Cache-Control: no-store, max-age=5|Expires: {+7}|CDN-Cache-Control: private";
    for (ignored, response, expected) in [
        (Ignored::ACCEL_EXPIRES.with(Ignored::CACHE_CONTROL), all, Ok((7, Reason::Expires))),
        (Ignored::ACCEL_EXPIRES.with(Ignored::CACHE_CONTROL).with(Ignored::EXPIRES), all, Err(Reason::NoLifetime)),
        (Ignored::ACCEL_EXPIRES, all, Err(Reason::Private)),
        (Ignored::SET_COOKIE, "Set-Cookie: lang=de|Cache-Control: max-age=5", Ok((5, Reason::MaxAge))),
        (Ignored::SET_COOKIE, "Set-Cookie: sid=1|Cache-Control: max-age=5", Err(Reason::SetsSession)),
        (Ignored::VARY, "Vary: *|Cache-Control: max-age=5", Ok((5, Reason::MaxAge))),
    ] {
        assert_eq!(lifetime(200, response, &of(ignored)), expected, "{response}");
    }
    let unguarded = Policy { guards_sessions: false, ..of(Ignored::SET_COOKIE) };
    assert_eq!(lifetime(200, "Set-Cookie: sid=1|Cache-Control: max-age=5", &unguarded), Ok((5, Reason::MaxAge)));
}

#[test]
fn some_answers_are_never_stored() {
    let policy = Policy::default();
    let long = format!("Vary: {}|Cache-Control: max-age=5", "x".repeat(vary::NAMES_BYTES_MAX));
    for (status, response, expected) in [
        (200, "Cache-Control: no-store", Reason::NoStore),
        (200, "Cache-Control: No-StOrE, max-age=5|Expires: {+9}", Reason::NoStore),
        (200, "Cache-Control: private, max-age=5", Reason::Private),
        (200, "CDN-Cache-Control: private|Cache-Control: max-age=5", Reason::Private),
        (200, "CDN-Cache-Control: no-store|Cache-Control: max-age=5", Reason::NoStore),
        (200, "Cache-Control: no-cache, max-age=5", Reason::NoCache),
        (200, "CDN-Cache-Control: no-cache|Cache-Control: max-age=5", Reason::NoCache),
        (200, "Set-Cookie: a=b|Cache-Control: max-age=5", Reason::SetCookie),
        (200, "Vary: *|Cache-Control: max-age=5", Reason::VaryStar),
        (200, "Vary: Foo|Vary: ,*|Cache-Control: max-age=5", Reason::VaryStar),
        (200, &long, Reason::VaryLong),
        (103, "Cache-Control: max-age=5", Reason::Interim),
        (304, "Cache-Control: max-age=5", Reason::NotModified),
        (206, "Content-Range: bytes 0-4/10|Cache-Control: max-age=5", Reason::Partial),
        (599, "Cache-Control: max-age=5, no-store, must-understand", Reason::NotUnderstood),
        (599, "Cache-Control: max-age=5, must-understand", Reason::NotUnderstood),
    ] {
        assert_eq!(lifetime(status, response, &policy), Err(expected), "{status} {response}");
    }
    let understood = "Cache-Control: max-age=5, no-store, must-understand";
    assert_eq!(lifetime(200, understood, &policy), Ok((5, Reason::MaxAge)));
    let parts = Policy { keeps_parts: true, ..policy };
    assert_eq!(lifetime(206, "Content-Range: bytes 0-4/10|Cache-Control: max-age=5", &parts), Ok((5, Reason::MaxAge)));
    assert_eq!(lifetime(206, "Content-Range: x|Cache-Control: max-age=5", &parts), Err(Reason::Partial));
}

#[test]
fn any_final_status_may_have_a_lifetime_of_its_own() {
    for status in [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599] {
        let policy = Policy::default();
        assert_eq!(lifetime(status, "Cache-Control: max-age=5", &policy), Ok((5, Reason::MaxAge)), "{status}");
        let past = "Expires: {-5000}|Last-Modified: {-100000}|Date: {+0}";
        assert_eq!(lifetime(status, past, &policy), Err(Reason::LifetimeZero), "{status}");
    }
}

#[test]
fn stale_answers_are_kept_for_what_they_are_good_for() {
    let revalidates = Policy { revalidates: true, ..Policy::default() };
    for (policy, response, expected, marks) in [
        (&revalidates, "Cache-Control: no-cache|ETag: \"a\"", Ok(Reason::ToRevalidate), Marks::ASK_ALWAYS),
        (&revalidates, "Cache-Control: max-age=9, no-cache|ETag: \"a\"", Ok(Reason::ToRevalidate), Marks::ASK_ALWAYS),
        (&revalidates, "Cache-Control: max-age=9, no-cache", Err(Reason::NoCache), Marks::default()),
        (&revalidates, "Cache-Control: max-age=0|Last-Modified: {-9}", Ok(Reason::ToRevalidate), Marks::default()),
        (&revalidates, "Cache-Control: max-age=0", Err(Reason::LifetimeZero), Marks::default()),
        (&revalidates, "ETag: \"a\"", Err(Reason::NoLifetime), Marks::default()),
        (&Policy::default(), "Cache-Control: no-cache|ETag: \"a\"", Err(Reason::NoCache), Marks::default()),
        (
            &Policy::default(),
            "Cache-Control: max-age=0, stale-while-revalidate=5",
            Ok(Reason::ToServeStale),
            Marks::default(),
        ),
        (
            &Policy::default(),
            "Cache-Control: max-age=0, must-revalidate, stale-if-error=5",
            Err(Reason::LifetimeZero),
            Marks::default(),
        ),
    ] {
        let judged = judged(200, "", response, policy);
        assert_eq!(judged.map(|(_, reason)| reason), expected, "{response}");
        assert!(judged.is_err() || judged.is_ok_and(|(validity, _)| validity.marks.has(marks)), "{response}");
        assert!(judged.is_err() || judged.is_ok_and(|(validity, _)| !validity.is_fresh(NOW_MS)), "{response}");
    }
}

#[test]
fn only_what_a_304_can_be_about_is_kept_to_be_revalidated() {
    let policy = Policy { revalidates: true, ..Policy::default() };
    for (status, expected) in
        [(200, Ok(Reason::ToRevalidate)), (203, Ok(Reason::ToRevalidate)), (404, Err(Reason::NoCache))]
    {
        let judged = judged(status, "", "Cache-Control: no-cache|ETag: \"a\"", &policy);
        assert_eq!(judged.map(|(_, reason)| reason), expected, "{status}");
    }
}

#[test]
fn windows_of_staleness_are_kept_even_beside_x_accel_expires() {
    let windows = |response: &str| {
        judged(200, "", response, &Policy::default())
            .map(|(validity, _)| (validity.while_revalidate_s, validity.if_error_s))
    };
    for (response, expected) in [
        ("Cache-Control: max-age=1, stale-while-revalidate=4", (4, 4)),
        ("Cache-Control: max-age=1, stale-if-error=5", (0, 5)),
        ("Cache-Control: max-age=1, stale-while-revalidate=4, stale-if-error=9", (4, 9)),
        ("X-Accel-Expires: @1|Cache-Control: stale-while-revalidate=2145902155", (2_145_902_155, 2_145_902_155)),
        ("CDN-Cache-Control: max-age=1|Cache-Control: stale-if-error=5", (0, 0)),
    ] {
        assert_eq!(windows(response), Ok(expected), "{response}");
    }
}

#[test]
fn what_is_somebody_s_is_not_everybody_s() {
    let guarded = Policy::default();
    for (request, response, expected) in [
        ("Authorization: x", "Cache-Control: max-age=5", Err(Reason::RequestAuthorization)),
        ("Authorization: x", "Cache-Control: max-age=5, public", Ok(Reason::MaxAge)),
        ("Authorization: x", "Cache-Control: max-age=5, must-revalidate", Ok(Reason::MaxAge)),
        ("Authorization: x", "Cache-Control: max-age=5, proxy-revalidate", Err(Reason::RequestAuthorization)),
        ("Authorization: x", "Cache-Control: s-maxage=5", Ok(Reason::SharedMaxAge)),
        ("Authorization: x", "X-Accel-Expires: 5", Err(Reason::RequestAuthorization)),
        ("Cookie: PHPSESSID=1", "Cache-Control: max-age=5", Err(Reason::RequestSession)),
        ("Cookie: PHPSESSID=1", "Cache-Control: max-age=5, must-revalidate", Err(Reason::RequestSession)),
        ("Cookie: PHPSESSID=1", "Cache-Control: max-age=5, public", Ok(Reason::MaxAge)),
        ("Cookie: a=b", "Cache-Control: max-age=5", Ok(Reason::MaxAge)),
    ] {
        let reason = judged(200, request, response, &guarded).map(|(_, reason)| reason);
        assert_eq!(reason, expected, "{request} {response}");
        let open = Policy { guards_credentials: false, guards_sessions: false, ..guarded };
        assert!(judged(200, request, response, &open).is_ok(), "{request} {response}");
    }
}

#[test]
fn lifetimes_are_guessed_only_when_asked() {
    let guesses = Policy { guesses: true, ..Policy::default() };
    for (status, response, expected) in [
        (200, "Last-Modified: {-1000}|Date: {+0}", Ok((100, Reason::Heuristic))),
        (200, "Last-Modified: {-1000}", Ok((100, Reason::Heuristic))),
        (200, "Last-Modified: {-100000000}", Ok((GUESS_S_MAX, Reason::Heuristic))),
        (200, "Last-Modified: {-5}", Err(Reason::LifetimeZero)),
        (200, "Last-Modified: {+500}", Err(Reason::LifetimeZero)),
        (200, "ETag: \"a\"", Err(Reason::NoLifetime)),
        (200, "Last-Modified: {-1000}|Cache-Control: no-cache", Err(Reason::NoCache)),
        (404, "Last-Modified: {-1000}", Ok((100, Reason::Heuristic))),
        (201, "Last-Modified: {-1000}", Err(Reason::NoLifetime)),
        (503, "Last-Modified: {-1000}", Err(Reason::NoLifetime)),
        (599, "Last-Modified: {-1000}|Cache-Control: public", Ok((100, Reason::Heuristic))),
    ] {
        assert_eq!(lifetime(status, response, &guesses), expected, "{status} {response}");
    }
}

#[test]
fn requests_are_obeyed_only_when_asked() {
    let obeys = Policy { obeys_requests: true, ..Policy::default() };
    let (request, response) = ("Cache-Control: no-store", "Cache-Control: max-age=5");
    assert_eq!(judged(200, request, response, &obeys).map(|(_, reason)| reason), Err(Reason::RequestNoStore));
    assert!(judged(200, request, response, &Policy::default()).is_ok());
}

proptest! {
    #[test]
    fn whatever_comes_is_judged(
        status: u16,
        values: [String; 6],
        flags: [bool; 6],
        received_ms: i64,
        took_ms: i64,
    ) {
        let names = ["Cache-Control", "CDN-Cache-Control", "Expires", "Age", "X-Accel-Expires", "Date"];
        let lines: Vec<_> = names.into_iter().zip(values).collect();
        let response = ResponseFacts::read(status, fields(&lines));
        let [revalidates, guesses, obeys_requests, guards_credentials, keeps_parts, is_authorized] = flags;
        let policy = Policy { revalidates, guesses, obeys_requests, guards_credentials, keeps_parts, ..Policy::default() };
        let request = RequestFacts { is_authorized, ..RequestFacts::default() };
        if let Ok((validity, reason)) = judge(&request, &response, &policy, received_ms, took_ms) {
            prop_assert_eq!(reason.decision(), crate::reason::Decision::Stored);
            prop_assert_eq!(validity.received_ms, received_ms);
        }
    }

    #[test]
    fn numbers_at_the_edge_are_judged(control in "(s-maxage|max-age)=[0-9]{1,12}", age in "[0-9]{1,12}", accel in "@[0-9]{1,20}") {
        let lines = [("Cache-Control", control), ("Age", age), ("X-Accel-Expires", accel)];
        let response = ResponseFacts::read(200, fields(&lines));
        for ignored in [Ignored::NOTHING, Ignored::ACCEL_EXPIRES] {
            let policy = Policy { ignored, ..Policy::default() };
            let _ = judge(&RequestFacts::default(), &response, &policy, i64::MAX, i64::MAX);
        }
    }
}
