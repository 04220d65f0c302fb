//! Requests that the edge holds because of a second request: the check of `auth_request`, the copy of `mirror`.

use crate::metric::digits;
use crate::said::say;
use crate::texts;
use crate::why::policies::Policy;
use crate::why::rule::{FiredRule, Rule, Segment, Tier, percent};
use crate::why::signals::Signals;

/// Least part of a request's time: less than a fifth is no limit of anybody, as for a policy that delays.
const PART: f64 = 0.2;

/// Least part of the time of mirrors that is in the time of requests.
const MISSING: f64 = 0.5;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B70",
        says: texts::CHECK_OF_AUTH_REQUEST_SLOW,
        tier: Tier::Rest,
        check: auth,
        fires: |s| held(s, "auth_request", "auth_request /check", ("auth", 180)),
        // The application takes longer than the check.
        silent: |s| {
            held(s, "auth_request", "auth_request /check", ("auth", 70));
            s.edge.steps.insert("wait".into(), (2000, 260_000_000));
        },
    },
    Rule {
        id: "B71",
        says: texts::MIRROR_HOLDS_CONNECTIONS,
        tier: Tier::Rest,
        check: mirror,
        fires: |s| held(s, "mirror", "mirror /copy", ("mirror", 190)),
        // The mirror is as slow, but no client sends its next request on a connection that waits for it.
        silent: |s| {
            held(s, "mirror", "mirror /copy", ("mirror", 190));
            s.load.ms[0] = 3.0;
        },
    },
];

/// A block of 200 ms a request, of which a step takes so many.
fn held(s: &mut Signals, directive: &str, text: &str, (step, ms): (&str, u64)) {
    let (directive, text, at) = (directive.to_owned(), text.to_owned(), "nginx.conf:14".to_owned());
    s.conf.subrequests.push(Policy { directive, text, at, ..Policy::default() });
    s.load.ms = [200.0, 195.0, 230.0, 240.0, 250.0];
    s.edge.steps.insert(step.into(), (2000, ms * 2_000_000));
}

fn statement<'a>(s: &'a Signals, directive: &str) -> Option<&'a Policy> {
    s.conf.subrequests.iter().find(|one| one.directive == directive)
}

/// The check takes a large part of the time, and longer than the application's own answer.
fn auth(s: &Signals) -> Option<FiredRule> {
    let policy = statement(s, "auth_request")?;
    let (check, wait, all) = (Segment::Auth.ms(s), Segment::Wait.ms(s), s.load.ms[0].max(1e-9));
    if check < PART * all || check < wait {
        return None;
    }
    let found = FiredRule::new(say!(REQUESTS_WAIT_FOR_CHECK, &policy.text, &policy.at), check / all)
        .with(texts::LABEL_CHECK_TIME, say!(MS_REQUESTS_MEAN_MS, digits(check), digits(all)))
        .with(texts::LABEL_APPLICATION, say!(MS_REQUESTS_MS_SPENT, digits(wait), digits(all)))
        .slows(&[Segment::Auth]);
    Some(found.knob(say!(CACHE_THE_CHECK), say!(CHECK_IS_ASKED_LESS)))
}

/// The next request of a connection waits until the upstream of the mirror has answered.
fn mirror(s: &Signals) -> Option<FiredRule> {
    let policy = statement(s, "mirror")?;
    let (held, all) = (Segment::Mirror.ms(s), s.load.ms[0].max(1e-9));
    // Most of the mirror's time has to be missing elsewhere: other time may be the client's own.
    if held < PART * all || held < MISSING * s.step_ms("mirror") {
        return None;
    }
    let found = FiredRule::new(say!(CONNECTIONS_WAIT_FOR_MIRROR, &policy.text, &policy.at), held / all)
        .with(texts::LABEL_WAITED, say!(MS_REQUESTS_MEAN_MS, digits(held), digits(all)))
        .with(texts::LABEL_SERVER, say!(MIRRORS_UPSTREAM_TAKES, digits(s.step_ms("mirror")), percent(held / all)))
        .slows(&[Segment::Mirror, Segment::Outside]);
    Some(found.knob(say!(SHORTER_TIME_FOR_MIRROR), say!(NEXT_REQUEST_IS_READ)))
}
