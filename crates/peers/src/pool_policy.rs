//! Decides whether an idle connection to a peer may be kept, and whether a broken attempt met a connection that was
//! already closed. The pool itself, with its sockets, is elsewhere.

/// `keepalive_requests`, `keepalive_time` and `keepalive_timeout` of an upstream
/// block (nginx.org `ngx_http_upstream_keepalive_module`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPolicy {
    /// The most idle connections that one worker keeps for the group; 0 keeps none.
    pub max_idle: usize,
    /// Exchanges after which a connection is closed.
    pub max_requests: u64,
    /// Milliseconds after which a connection is not kept again.
    pub max_age_ms: u64,
    /// The longest idle time of a connection, in milliseconds.
    pub idle_timeout_ms: u64,
    /// The file sets `keepalive`, so the peer does not have to show first that it is reliable.
    pub is_written: bool,
}

impl Default for PoolPolicy {
    /// The values of an upstream block without these directives, in nginx since 1.29.7.
    fn default() -> Self {
        Self { max_idle: 32, max_requests: 1000, max_age_ms: 3_600_000, idle_timeout_ms: 60_000, is_written: false }
    }
}

/// The facts about a connection at the end of its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Exchanges it has carried, this one included.
    pub requests: u64,
    /// Milliseconds since it was opened.
    pub age_ms: u64,
    /// The peer allows another exchange: version, `Connection`, and a response that was read to its end.
    pub reusable: bool,
    /// The whole request was sent.
    pub request_complete: bool,
    /// Nothing unexpected has arrived: no byte, no end, no error.
    pub quiet: bool,
}

/// How much earlier than the peer weir gives an idle connection up: a request that is sent meanwhile must still arrive.
const BEFORE_PEER_MS: u64 = 1000;

impl PoolPolicy {
    /// The milliseconds for which an idle connection may be used. The peer keeps it for `peer_s` seconds: weir stops a
    /// second earlier, and after half of the time if that is later.
    #[must_use]
    pub fn idle_ms(&self, peer_s: u32) -> u64 {
        let peer_ms = u64::from(peer_s) * 1000;
        peer_ms.saturating_sub(BEFORE_PEER_MS).max(peer_ms / 2).min(self.idle_timeout_ms)
    }

    /// Whether a connection returns to the pool. A full pool does not prevent this: it drops its oldest connection.
    #[must_use]
    pub fn may_keep(&self, finished: &Finished) -> bool {
        self.max_idle > 0
            && finished.requests < self.max_requests
            && finished.age_ms <= self.max_age_ms
            && finished.reusable
            && finished.request_complete
            && finished.quiet
    }
}

/// The facts about an attempt whose connection ended or broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenAttempt {
    /// The connection came from the pool.
    pub reused: bool,
    /// A response byte had arrived.
    pub response_begun: bool,
    /// Some of the request had been written.
    pub request_sent: bool,
    /// Sending the request twice has the same effect as sending it once (RFC 9110 section 9.2.2).
    pub idempotent: bool,
    /// The whole request body is still available, or there is none.
    pub body_at_hand: bool,
}

impl BrokenAttempt {
    /// Whether the attempt met a connection that the peer had already closed, and is repeated on a fresh connection to
    /// the same peer: this counts no failure and uses neither a try nor the retry budget.
    ///
    /// RFC 9112 section 9.3.1. The second attempt is not on a reused connection, so the rule applies at most once in a
    /// row.
    #[must_use]
    pub fn is_stale_connection(&self) -> bool {
        self.reused && !self.response_begun && self.is_replayable()
    }

    fn is_replayable(&self) -> bool {
        !self.request_sent || (self.idempotent && self.body_at_hand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_given_up_before_its_peer_does() {
        let policy = PoolPolicy::default();
        assert_eq!([0, 1, 5, 65, u32::MAX].map(|peer_s| policy.idle_ms(peer_s)), [0, 500, 4000, 60_000, 60_000]);
    }

    const FINISHED: Finished = Finished { requests: 1, age_ms: 0, reusable: true, request_complete: true, quiet: true };
    const BROKEN: BrokenAttempt =
        BrokenAttempt { reused: true, response_begun: false, request_sent: true, idempotent: true, body_at_hand: true };

    #[test]
    fn keeps_within_limits() {
        let policy = PoolPolicy::default();
        let cases = [
            (FINISHED, true),
            (Finished { requests: 999, ..FINISHED }, true),
            (Finished { requests: 1000, ..FINISHED }, false),
            (Finished { age_ms: 3_600_000, ..FINISHED }, true),
            (Finished { age_ms: 3_600_001, ..FINISHED }, false),
            (Finished { reusable: false, ..FINISHED }, false),
            (Finished { request_complete: false, ..FINISHED }, false),
            (Finished { quiet: false, ..FINISHED }, false),
        ];
        for (finished, expected) in cases {
            assert_eq!(policy.may_keep(&finished), expected, "{finished:?}");
        }
        let none = PoolPolicy { max_idle: 0, ..policy };
        assert!(!none.may_keep(&FINISHED));
    }

    #[test]
    fn stale_connection_rule() {
        let unsent = BrokenAttempt { request_sent: false, ..BROKEN };
        let cases = [
            (BROKEN, true),
            (BrokenAttempt { reused: false, ..BROKEN }, false),
            (BrokenAttempt { response_begun: true, ..BROKEN }, false),
            (BrokenAttempt { idempotent: false, ..BROKEN }, false),
            (BrokenAttempt { body_at_hand: false, ..BROKEN }, false),
            (BrokenAttempt { idempotent: false, body_at_hand: false, ..unsent }, true),
        ];
        for (attempt, expected) in cases {
            assert_eq!(attempt.is_stale_connection(), expected, "{attempt:?}");
        }
    }
}
