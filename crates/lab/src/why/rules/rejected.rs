//! Answers of an upstream that no client gets whole: the edge rejects their head or the certificate, or they end too
//! early.

use super::upstream::FAILED;
use crate::said::{Said, say};
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Tier, of};
use crate::why::signals::Signals;

/// A failure belongs to a cause if the log names it for at least this part of the failures.
const NAMED: f64 = 0.5;

/// The log's name of a failure, the finding's subject and its remedy.
type Way = (&'static str, fn() -> Said, fn() -> Said);
/// The ways in which the edge rejects what it got.
const WAYS: [Way; 4] = [
    ("too_big_header", || say!(HEAD_TOO_BIG), || say!(PROXY_BUFFER_SIZE)),
    ("invalid_header", || say!(HEAD_NOT_VALID), || say!(SEND_VALID_FIELDS)),
    ("certificate", || say!(CERTIFICATE_NOT_ACCEPTED), || say!(CORRECT_CERTIFICATE)),
    ("tls_handshake", || say!(HANDSHAKE_FAILS), || say!(CORRECT_HANDSHAKE)),
];

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B67",
        says: texts::EDGE_REJECTS_ANSWERS,
        tier: Tier::Limit,
        check: rejected,
        fires: |s| {
            s.said.insert("too_big_header".into(), 300);
            s.load.errors.insert("502".into(), 300);
        },
        // Another server answered these requests.
        silent: |s| {
            s.said.insert("too_big_header".into(), 300);
        },
    },
    Rule {
        id: "B68",
        says: texts::ANSWERS_END_IN_BODY,
        tier: Tier::Limit,
        check: cut_off,
        fires: |s| {
            cut(s, 200);
            s.said.insert("closed".into(), 200);
        },
        // The edge's log does not say that the upstream ended them.
        silent: |s| cut(s, 200),
    },
];

/// The client got the head of `count` answers, and not the whole body.
fn cut(s: &mut Signals, count: u64) {
    s.load.statuses = [(200, s.load.sent)].into();
    s.load.well = s.load.sent - count;
    s.load.errors.insert("ECONNRESET".into(), count);
}

/// Tries whose answer, or whose server, the edge rejected.
pub(super) fn count(s: &Signals) -> u64 {
    WAYS.iter().map(|(way, ..)| s.tries_failed(way)).sum()
}

/// The edge does not accept what the upstream sends: a head, or a certificate.
fn rejected(s: &Signals) -> Option<FiredRule> {
    let (way, reason, knob) = WAYS.iter().max_by_key(|(way, ..)| s.tries_failed(way))?;
    let (count, failed) = (s.tries_failed(way), s.errors_of(&["502"]));
    if failed as f64 <= FAILED * s.load.sent as f64 || (count as f64) < NAMED * failed as f64 {
        return None;
    }
    let found = FiredRule::new(reason(), s.failed_share().max(0.5))
        .with(texts::LABEL_FAILED, of(failed, s.load.sent))
        .with(texts::LABEL_LOG, say!(LOG_NAMES_TRIES, count, way));
    Some(found.knob(knob(), say!(EVERY_REQUEST_ANSWERED)))
}

/// The upstream ends its answers before their last byte.
fn cut_off(s: &Signals) -> Option<FiredRule> {
    let (count, closed) = (s.load.cut_off(), s.tries_failed("closed") + s.tries_failed("reset"));
    if count as f64 <= FAILED * s.load.sent as f64 || (closed as f64) < NAMED * count as f64 {
        return None;
    }
    let found = FiredRule::new(say!(UPSTREAM_CUTS_ANSWERS), s.failed_share().max(0.5))
        .with(texts::LABEL_FAILED, of(count, s.load.sent))
        .with(texts::LABEL_LOG, say!(LOG_NAMES_TRIES, closed, "closed"));
    Some(found.knob(say!(READ_WHY_ANSWERS_END), say!(EVERY_ANSWER_WHOLE)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::why::rules::find;

    #[test]
    fn each_way_of_rejecting_has_its_remedy() {
        for (way, remedy) in [
            ("too_big_header", "proxy_buffer_size 32k; proxy_buffers 8 32k;"),
            ("invalid_header", "let the application send valid fields"),
            ("certificate", "proxy_ssl_trusted_certificate"),
            ("tls_handshake", "proxy_ssl_protocols"),
        ] {
            let mut s = Signals::quiet();
            s.said.insert(way.into(), 300);
            s.load.errors.insert("502".into(), 310);
            let found = find(&s, None).remove(0);
            assert!(found.rule.id == "B67" && found.found.knob.contains(remedy), "{way}: {:?}", found.found.knob);
        }
    }

    /// Most failures have another cause: the application answers 502 itself.
    #[test]
    fn a_few_rejected_heads_do_not_explain_all_failures() {
        let mut s = Signals::quiet();
        s.said.insert("invalid_header".into(), 20);
        s.load.errors.insert("502".into(), 400);
        assert_eq!(rejected(&s), None);
    }

    /// The status came before the end: such an answer is none.
    #[test]
    fn an_answer_that_ends_in_its_body_is_no_kept_connection_that_was_closed() {
        let mut s = Signals::quiet();
        cut(&mut s, 200);
        s.said.insert("closed".into(), 190);
        let ids: Vec<&str> = find(&s, None).iter().map(|finding| finding.rule.id).collect();
        assert_eq!(ids, ["B68"]);
    }
}
