//! Decides whether another attempt follows a failed one on the next peer: by the conditions of `proxy_next_upstream`
//! and its limits, then by the group's retry budget.
//!
//! It neither chooses the next peer nor repeats an attempt on a stale pooled connection: such an attempt never counts
//! (see `pool_policy`).

use std::ops::BitOr;

use crate::budget::Budget;
use crate::group::Outcome;

/// A set of `proxy_next_upstream` words (nginx.org `ngx_http_proxy_module`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions(u16);

impl Conditions {
    /// No condition: the result of `off`.
    pub const NONE: Self = Self(0);
    /// `error`: connecting, sending or reading failed.
    pub const ERROR: Self = Self(1 << 0);
    /// `timeout`: connecting, sending or reading took too long.
    pub const TIMEOUT: Self = Self(1 << 1);
    /// `invalid_header`: an empty or unreadable response.
    pub const INVALID_HEADER: Self = Self(1 << 2);
    /// `http_500`.
    pub const HTTP_500: Self = Self(1 << 3);
    /// `http_502`.
    pub const HTTP_502: Self = Self(1 << 4);
    /// `http_503`.
    pub const HTTP_503: Self = Self(1 << 5);
    /// `http_504`.
    pub const HTTP_504: Self = Self(1 << 6);
    /// `http_403`.
    pub const HTTP_403: Self = Self(1 << 7);
    /// `http_404`.
    pub const HTTP_404: Self = Self(1 << 8);
    /// `http_429`.
    pub const HTTP_429: Self = Self(1 << 9);
    /// `non_idempotent`: also if a POST, LOCK or PATCH was already sent.
    pub const NON_IDEMPOTENT: Self = Self(1 << 10);
    /// `updating`: the directive accepts it, only the cache uses it.
    pub const UPDATING: Self = Self(1 << 11);
    /// `denied`: connecting to the peer's address is not allowed.
    pub const DENIED: Self = Self(1 << 12);
    /// `off`; with it every other word has no effect.
    pub const OFF: Self = Self(1 << 15);

    const WORDS: [(&'static str, Self); 14] = [
        ("error", Self::ERROR),
        ("timeout", Self::TIMEOUT),
        ("denied", Self::DENIED),
        ("invalid_header", Self::INVALID_HEADER),
        ("non_idempotent", Self::NON_IDEMPOTENT),
        ("http_500", Self::HTTP_500),
        ("http_502", Self::HTTP_502),
        ("http_503", Self::HTTP_503),
        ("http_504", Self::HTTP_504),
        ("http_403", Self::HTTP_403),
        ("http_404", Self::HTTP_404),
        ("http_429", Self::HTTP_429),
        ("updating", Self::UPDATING),
        ("off", Self::OFF),
    ];

    /// The condition of one word of the directive.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find_map(|&(name, condition)| name.eq_ignore_ascii_case(word).then_some(condition))
    }

    /// Whether every condition of `other` is in force.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        let in_force = if self.0 & Self::OFF.0 != 0 { 0 } else { self.0 };
        in_force & other.0 == other.0
    }
}

impl Default for Conditions {
    /// `error timeout`.
    fn default() -> Self {
        Self::ERROR | Self::TIMEOUT
    }
}

impl BitOr for Conditions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The failure of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Connecting, sending or reading failed.
    Error,
    /// Connecting, sending or reading took too long.
    Timeout,
    /// The configuration forbids connecting to the peer's address.
    Denied,
    /// The response was empty or unreadable.
    InvalidHeader,
    /// A whole response with a status that `proxy_next_upstream` can name.
    Status(NextStatus),
}

/// The statuses that `proxy_next_upstream` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStatus {
    /// 403 Forbidden.
    Forbidden,
    /// 404 Not Found.
    NotFound,
    /// 429 Too Many Requests.
    TooManyRequests,
    /// 500 Internal Server Error.
    Internal,
    /// 502 Bad Gateway.
    BadGateway,
    /// 503 Service Unavailable.
    Unavailable,
    /// 504 Gateway Timeout.
    GatewayTimeout,
}

impl Failure {
    /// The failure for a response status; `None` for a status that is always passed on.
    #[must_use]
    pub fn of_status(status: u16) -> Option<Self> {
        Some(Self::Status(match status {
            403 => NextStatus::Forbidden,
            404 => NextStatus::NotFound,
            429 => NextStatus::TooManyRequests,
            500 => NextStatus::Internal,
            502 => NextStatus::BadGateway,
            503 => NextStatus::Unavailable,
            504 => NextStatus::GatewayTimeout,
            _ => return None,
        }))
    }

    /// The client's status if no attempt follows and there is no response to pass on; also the attempt's
    /// `$upstream_status`.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Error | Self::Denied | Self::InvalidHeader | Self::Status(NextStatus::BadGateway) => 502,
            Self::Timeout | Self::Status(NextStatus::GatewayTimeout) => 504,
            Self::Status(NextStatus::Forbidden) => 403,
            Self::Status(NextStatus::NotFound) => 404,
            Self::Status(NextStatus::TooManyRequests) => 429,
            Self::Status(NextStatus::Internal) => 500,
            Self::Status(NextStatus::Unavailable) => 503,
        }
    }

    /// The condition that allows another attempt after this failure.
    #[must_use]
    pub fn condition(self) -> Conditions {
        match self {
            Self::Error => Conditions::ERROR,
            Self::Timeout => Conditions::TIMEOUT,
            Self::Denied => Conditions::DENIED,
            Self::InvalidHeader => Conditions::INVALID_HEADER,
            Self::Status(NextStatus::Forbidden) => Conditions::HTTP_403,
            Self::Status(NextStatus::NotFound) => Conditions::HTTP_404,
            Self::Status(NextStatus::TooManyRequests) => Conditions::HTTP_429,
            Self::Status(NextStatus::Internal) => Conditions::HTTP_500,
            Self::Status(NextStatus::BadGateway) => Conditions::HTTP_502,
            Self::Status(NextStatus::Unavailable) => Conditions::HTTP_503,
            Self::Status(NextStatus::GatewayTimeout) => Conditions::HTTP_504,
        }
    }

    /// The outcome for the peer after `decision`.
    ///
    /// A status counts as the peer's failure only if another attempt follows because of it, or would follow if the
    /// budget allowed it. A status that is passed on is a normal answer. 403 and 404 never count against a peer.
    #[must_use]
    pub fn outcome(self, decision: Result<(), Refusal>) -> Outcome {
        let moves_on = matches!(decision, Ok(()) | Err(Refusal::Budget));
        match self {
            Self::Status(_) if !moves_on => Outcome::Ok,
            Self::Status(NextStatus::Forbidden | NextStatus::NotFound) => Outcome::Next,
            _ => Outcome::Failed,
        }
    }
}

/// Why no other attempt follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Every peer that could serve was tried, or `proxy_next_upstream_tries` is reached.
    NoTries,
    /// `proxy_next_upstream` does not name the failure.
    NotListed,
    /// The request was sent, is not idempotent, and `non_idempotent` is not set.
    NonIdempotent,
    /// The request was sent and its body was not kept.
    BodyGone,
    /// `proxy_next_upstream_timeout` has passed.
    TooLate,
    /// The group's retry budget is spent.
    Budget,
}

/// The `proxy_next_upstream` settings of one location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryPolicy {
    /// `proxy_next_upstream`.
    pub conditions: Conditions,
    /// `proxy_next_upstream_tries`, for `Group::begin`; 0 is no limit.
    pub tries: u32,
    /// `proxy_next_upstream_timeout` in milliseconds; 0 is no limit.
    pub timeout_ms: u64,
}

/// The facts about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The failure.
    pub failure: Failure,
    /// A part of the request had been written.
    pub request_sent: bool,
    /// See [`is_idempotent`].
    pub idempotent: bool,
    /// The whole request body is still available, or there is none; false if the body passes through unbuffered.
    pub body_at_hand: bool,
    /// The tries left after this attempt is released: `Group::tries_after`.
    pub tries_left: u32,
    /// Milliseconds since the exchange's first attempt began.
    pub elapsed_ms: u64,
}

impl RetryPolicy {
    /// Decides whether another attempt follows; `Ok` has paid for it from `budget`.
    ///
    /// # Errors
    ///
    /// The first [`Refusal`] that applies; the budget is checked last, and only if everything else allows the retry.
    pub fn decide(&self, attempt: &Attempt, budget: &Budget, now_s: u64) -> Result<(), Refusal> {
        self.allows(attempt)?;
        if budget.spend(now_s) { Ok(()) } else { Err(Refusal::Budget) }
    }

    fn allows(&self, attempt: &Attempt) -> Result<(), Refusal> {
        let risky = attempt.request_sent && !attempt.idempotent;
        if attempt.tries_left == 0 {
            Err(Refusal::NoTries)
        } else if !self.conditions.contains(attempt.failure.condition()) {
            Err(Refusal::NotListed)
        } else if risky && !self.conditions.contains(Conditions::NON_IDEMPOTENT) {
            Err(Refusal::NonIdempotent)
        } else if attempt.request_sent && !attempt.body_at_hand {
            Err(Refusal::BodyGone)
        } else if self.timeout_ms != 0 && attempt.elapsed_ms >= self.timeout_ms {
            Err(Refusal::TooLate)
        } else {
            Ok(())
        }
    }
}

/// Whether nginx repeats a method by default: all but POST, LOCK and PATCH. Methods are compared byte by byte (RFC
/// 9110 section 9.1).
#[must_use]
pub fn is_idempotent(method: &[u8]) -> bool {
    !matches!(method, b"POST" | b"LOCK" | b"PATCH")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    const GET: Attempt = Attempt {
        failure: Failure::Error,
        request_sent: true,
        idempotent: true,
        body_at_hand: true,
        tries_left: 1,
        elapsed_ms: 0,
    };
    const POST: Attempt = Attempt { idempotent: false, ..GET };

    fn conditions(words: &str) -> Conditions {
        words.split_whitespace().filter_map(Conditions::of_word).fold(Conditions::NONE, BitOr::bitor)
    }

    fn check(words: &str, timeout_ms: u64, cases: &[(Attempt, Result<(), Refusal>)]) {
        let policy = RetryPolicy { conditions: conditions(words), tries: 0, timeout_ms };
        for (attempt, expected) in cases {
            let decided = policy.decide(attempt, &Budget::default(), 1);
            assert_eq!(decided, *expected, "{words}: {attempt:?}");
        }
    }

    fn failed(failure: Failure) -> Attempt {
        Attempt { failure, ..GET }
    }

    fn answered(status: u16) -> Attempt {
        match Failure::of_status(status) {
            Some(failure) => failed(failure),
            None => panic!("{status} is never a failure"),
        }
    }

    #[test]
    fn default_conditions_are_error_and_timeout() {
        assert_eq!(Conditions::default(), conditions("error timeout"));
        check(
            "error timeout",
            0,
            &[
                (GET, Ok(())),
                (failed(Failure::Timeout), Ok(())),
                (failed(Failure::InvalidHeader), Err(Refusal::NotListed)),
                (failed(Failure::Denied), Err(Refusal::NotListed)),
                (answered(500), Err(Refusal::NotListed)),
                (Attempt { tries_left: 0, ..GET }, Err(Refusal::NoTries)),
            ],
        );
    }

    #[test]
    fn each_status_has_its_own_word() {
        for status in [403, 404, 429, 500, 502, 503, 504] {
            for named in [403, 404, 429, 500, 502, 503, 504] {
                let expected = if status == named { Ok(()) } else { Err(Refusal::NotListed) };
                check(&format!("http_{named}"), 0, &[(answered(status), expected)]);
            }
            let failure = Failure::of_status(status).map(Failure::status);
            assert_eq!(failure, Some(status));
        }
        for status in [200, 302, 400, 401, 501, 505] {
            assert_eq!(Failure::of_status(status), None);
        }
    }

    #[test]
    fn unsafe_requests_go_out_once() {
        let unsent = Attempt { request_sent: false, ..POST };
        check("error", 0, &[(POST, Err(Refusal::NonIdempotent)), (unsent, Ok(()))]);
        check("error non_idempotent", 0, &[(POST, Ok(()))]);
        check("non_idempotent", 0, &[(POST, Err(Refusal::NotListed))]);
    }

    #[test]
    fn unbuffered_body_goes_out_once() {
        let streamed = Attempt { body_at_hand: false, ..GET };
        let unsent = Attempt { request_sent: false, ..streamed };
        check("error", 0, &[(streamed, Err(Refusal::BodyGone)), (unsent, Ok(()))]);
    }

    #[test]
    fn time_limit_includes_its_last_millisecond() {
        check(
            "error",
            3800,
            &[
                (Attempt { elapsed_ms: 3799, ..GET }, Ok(())),
                (Attempt { elapsed_ms: 3800, ..GET }, Err(Refusal::TooLate)),
            ],
        );
        check("error", 0, &[(Attempt { elapsed_ms: u64::MAX, ..GET }, Ok(()))]);
    }

    #[test]
    fn off_voids_every_other_word() {
        check("off", 0, &[(GET, Err(Refusal::NotListed))]);
        check("error off timeout", 0, &[(GET, Err(Refusal::NotListed))]);
        assert_eq!(Conditions::of_word("http_501"), None);
    }

    #[test]
    fn budget_is_asked_last_and_reports_itself() {
        let policy = RetryPolicy::default();
        let budget = Budget::default();
        let unlisted = answered(404);
        for _ in 0..1000 {
            assert_eq!(policy.decide(&unlisted, &budget, 1), Err(Refusal::NotListed));
        }
        let granted = (0..1000).take_while(|_| policy.decide(&GET, &budget, 1).is_ok()).count();
        assert_eq!(granted, 110);
        assert_eq!(policy.decide(&GET, &budget, 1), Err(Refusal::Budget));
    }

    #[test]
    fn what_the_peer_is_released_with() {
        let status = |code| Failure::of_status(code).unwrap_or(Failure::Error);
        let cases = [
            (Failure::Error, Ok(()), Outcome::Failed),
            (Failure::Error, Err(Refusal::NoTries), Outcome::Failed),
            (Failure::Timeout, Err(Refusal::NotListed), Outcome::Failed),
            (status(500), Ok(()), Outcome::Failed),
            (status(500), Err(Refusal::NoTries), Outcome::Ok),
            (status(500), Err(Refusal::Budget), Outcome::Failed),
            (status(404), Ok(()), Outcome::Next),
            (status(404), Err(Refusal::NotListed), Outcome::Ok),
            (status(403), Err(Refusal::Budget), Outcome::Next),
            (status(429), Ok(()), Outcome::Failed),
        ];
        for (failure, decision, expected) in cases {
            assert_eq!(failure.outcome(decision), expected, "{failure:?} {decision:?}");
        }
    }

    #[test]
    fn methods_sent_once() {
        for (method, expected) in [
            (&b"GET"[..], true),
            (b"PUT", true),
            (b"DELETE", true),
            (b"POST", false),
            (b"LOCK", false),
            (b"PATCH", false),
            (b"post", true),
        ] {
            assert_eq!(is_idempotent(method), expected, "{method:?}");
        }
    }
}
