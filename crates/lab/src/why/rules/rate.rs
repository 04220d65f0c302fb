//! Rates that hold answers back: `limit_rate`, `proxy_limit_rate`, `set $limit_rate`, and the field `X-Accel-Limit-Rate`.

use super::policy::{DELAY, SOME, clients, made_up};
use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::why::policies::Policy;
use crate::why::rule::{FiredRule, Rule, Segment, Tier, of, percent};
use crate::why::signals::Signals;

/// The rules.
pub const RULES: &[Rule] = &[Rule {
    id: "P03",
    says: texts::LIMIT_RATE_LIMITS_SPEED,
    tier: Tier::Policy,
    check: held_back,
    fires: |s| {
        let policy = made_up("limit_rate", "limit_rate 20k", "", 0);
        s.conf.policies.push(Policy { rate: 20_480.0, ..policy });
        s.load.bytes = 2000 * 65_536;
        s.load.ms = [2400.0, 2300.0, 3000.0, 3100.0, 3200.0];
    },
    silent: |s| {
        // The answers are smaller than the bytes that are sent in the first second.
        let policy = made_up("limit_rate", "limit_rate 20k", "", 0);
        s.conf.policies.push(Policy { rate: 20_480.0, ..policy });
        s.load.ms = [2400.0, 2300.0, 3000.0, 3100.0, 3200.0];
    },
}];

/// A rate holds answers back, and takes a large part of their time.
fn held_back(s: &Signals) -> Option<FiredRule> {
    written_rate(s).or_else(|| counted_rate(s))
}

/// A rate that no statement states as a number: the field of the upstream's answers, or the value of a variable. The edge counted the time.
fn counted_rate(s: &Signals) -> Option<FiredRule> {
    let (count, micros) = s.edge.steps.get("rate").copied().unwrap_or_default();
    let held = Segment::Rate.ms(s);
    let (share, slowed) = (count as f64 / s.load.sent.max(1) as f64, held / s.load.ms[0].max(1e-9));
    if share < SOME || slowed < DELAY {
        return None;
    }
    let count = count.min(s.load.sent);
    let names = ["limit_rate", "proxy_limit_rate", "set"];
    let policy = s.conf.policies.iter().find(|policy| names.contains(&policy.directive.as_str()));
    // The field of an answer replaces the rate of the statement.
    let is_by_field = s.edge.paced.by_field > 0 && s.edge.paced.by_field * 2 >= s.edge.paced.answers;
    let cause = match policy.filter(|_| !is_by_field) {
        Some(policy) => say!(STATEMENT_AT, &policy.text, &policy.at),
        None => say!(FIELD_LIMIT_RATE),
    };
    let each = micros as f64 / 1000.0 / count.max(1) as f64;
    let rates = s.edge.paced.rates.checked_div(s.edge.paced.answers);
    let found = FiredRule::new(say!(HELD_BACK_ANSWERS, cause, of(count, s.load.sent)), share.min(slowed))
        .with(texts::LABEL_DELAY, say!(MS_REQUESTS_MEAN_TIME, digits(each), percent(slowed.min(1.0))))
        .with(texts::LABEL_LIMIT, rates.map_or_else(Said::default, |rate| say!(BYTES_SECOND_MEAN, rate)))
        .slows(&[Segment::Rate]);
    Some(clients(s, found).knob(say!(FASTER_ANSWERS_RAISE_LIMIT), say!(ANSWER_TAKES_LONG_LINK)))
}

fn written_rate(s: &Signals) -> Option<FiredRule> {
    let each = s.load.bytes as f64 / s.load.answered.max(1) as f64;
    // nginx sends the bytes of the first second at once: ngx_http_write_filter(), `limit_rate * (ngx_time() -
    // start_sec + 1)`.
    let ms = |policy: &Policy| ((each - policy.after) / policy.rate.max(1.0) - 1.0) * 1000.0;
    let own = s.conf.policies.iter().filter(|policy| policy.rate > 0.0);
    let (policy, ms) = own.map(|policy| (policy, ms(policy))).max_by(|one, other| one.1.total_cmp(&other.1))?;
    let share = ms / s.load.ms[0].max(1e-9);
    // A much shorter time was not limited by this rate. A much longer time was limited by something else.
    if ms <= 0.0 || !(DELAY..=1.25).contains(&share) {
        return None;
    }
    let found = FiredRule::new(say!(SENDS_ANSWER_BYTES_MS, &policy.text, &policy.at, digits(each), digits(ms)), share)
        .with(texts::LABEL_ANSWERS, say!(MEAN_ANSWER_TOOK_MS, digits(s.load.ms[0]), percent(share.min(1.0))))
        .slows(&[Segment::Rate, Segment::Body, Segment::Outside]);
    Some(clients(s, found).knob(say!(FASTER_ANSWERS_RAISE_LIMIT), say!(ANSWER_TAKES_LONG_LINK)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::watch::account::Paced;

    #[test]
    fn a_rate_that_no_statement_states_is_the_fields_or_a_variables() {
        let mut s = Signals::quiet();
        s.load.ms = [3100.0, 3000.0, 3900.0, 4000.0, 4010.0];
        s.edge.steps.insert("rate".into(), (1900, 5_700_000_000));
        s.edge.paced = Paced { answers: 1900, by_field: 1900, rates: 19_000_000 };
        let found = held_back(&s).unwrap();
        assert_eq!(
            found.subject,
            "the field X-Accel-Limit-Rate of the upstream's answers held back 1900 of 2000 (95 %) answers"
        );
        assert!(found.evidence.iter().any(|(_, text)| text.contains("10000 bytes a second")), "{found:?}");
        s.conf.policies.push(made_up("limit_rate", "limit_rate $speed", "", 0));
        assert!(held_back(&s).unwrap().subject.starts_with("the field"));
        s.edge.paced.by_field = 0;
        assert!(held_back(&s).unwrap().subject.starts_with("limit_rate $speed at nginx.conf:14 held back"));
        // The rate holds back few, or for a short time.
        s.edge.steps.insert("rate".into(), (1900, 9_000_000));
        assert_eq!(held_back(&s), None);
    }
}
