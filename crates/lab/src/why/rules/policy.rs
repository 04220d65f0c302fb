//! Requests that the edge refuses or delays on purpose: its configuration says so, and the counts confirm it. Then no
//! resource is exhausted.

use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::watch::account::Acted;
use crate::why::policies::Policy;
use crate::why::rule::{FiredRule, Rule, Segment, Tier, of, percent};
use crate::why::signals::Signals;

/// A part of the requests that is not chance.
pub(super) const SOME: f64 = 0.005;
/// A large part: then no other finding counts.
pub const LARGE: f64 = 0.10;
/// A delay is reported if it is at least this part of the mean response time.
pub(super) const DELAY: f64 = 0.2;
/// The edge's count and the clients' count are the same event if the edge counted at least this part: the edge's
/// first account comes a moment late.
const NEARLY: f64 = 0.8;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "P01",
        says: texts::LIMIT_REQ_REFUSES_DELAYS,
        tier: Tier::Policy,
        check: requests,
        fires: |s| {
            s.conf.policies.push(made_up("limit_req", "limit_req zone=one burst=5 (10r/s)", "one", 503));
            s.edge.policies.insert("limit_req".into(), Acted { refused: 1400, delayed: 0, delay_us: Some(0) });
            s.said.insert("refused limit_req one".into(), 1400);
            refuse(s, 503, 1400);
        },
        silent: |s| {
            s.conf.policies.push(made_up("limit_req", "limit_req zone=one burst=5 (10r/s)", "one", 503));
            // The application answers 503 as well.
            refuse(s, 503, 1400);
            s.edge.own.clear();
        },
    },
    Rule {
        id: "P02",
        says: texts::LIMIT_CONN_REFUSES_REQUESTS,
        tier: Tier::Policy,
        check: connections,
        fires: |s| {
            s.conf.policies.push(made_up("limit_conn", "limit_conn addr 5", "addr", 503));
            s.edge.policies.insert("limit_conn addr".into(), Acted { refused: 1320, ..Acted::default() });
            refuse(s, 503, 1320);
        },
        silent: |s| s.conf.policies.push(made_up("limit_conn", "limit_conn addr 5", "addr", 503)),
    },
    Rule {
        id: "P04",
        says: texts::ALL_SERVERS_UPSTREAM_MAX,
        tier: Tier::Policy,
        check: servers,
        fires: |s| {
            s.conf.policies.push(made_up("max_conns", "server app:3000 max_conns=2", "app", 502));
            s.edge.no_server = 900;
            s.said.insert("no_live".into(), 900);
            refuse(s, 502, 900);
            s.edge.own.clear();
        },
        silent: |s| {
            s.conf.policies.push(made_up("max_conns", "server app:3000 max_conns=2", "app", 502));
            s.edge.no_server = 900;
            s.edge.peers.values_mut().for_each(|peer| peer.bad = 400);
            refuse(s, 502, 900);
            s.edge.own.clear();
        },
    },
    Rule {
        id: "P05",
        says: texts::CONFIGURATION_ANSWERS_ERROR_ITSELF,
        tier: Tier::Policy,
        check: answers,
        fires: |s| {
            s.conf.policies.push(made_up("deny", "deny all", "", 403));
            refuse(s, 403, 2000);
        },
        silent: |s| {
            // The application answers with that status.
            s.conf.policies.push(made_up("deny", "deny all", "", 403));
            refuse(s, 403, 2000);
            s.edge.given = std::mem::take(&mut s.edge.own);
        },
    },
    Rule {
        id: "P06",
        says: texts::PROXY_CACHE_LOCK_MAKES,
        tier: Tier::Policy,
        check: lock,
        fires: |s| {
            s.conf.is_weir = true;
            s.conf.has_cache = true;
            s.conf.policies.push(made_up("proxy_cache_lock", "proxy_cache_lock on", "", 0));
            s.edge.cache.waited = Some(900);
            s.edge.steps.insert("cache".into(), (900, 540_000_000));
            s.load.ms = [280.0, 290.0, 600.0, 610.0, 620.0];
        },
        silent: |s| {
            s.conf.is_weir = true;
            s.conf.has_cache = true;
            s.conf.policies.push(made_up("proxy_cache_lock", "proxy_cache_lock on", "", 0));
            s.edge.cache.waited = Some(9);
        },
    },
    Rule {
        id: "P07",
        says: texts::EDGE_ITSELF_ANSWERS_ERROR,
        tier: Tier::Limit,
        check: unasked,
        fires: |s| refuse(s, 404, 2000),
        silent: |s| {
            refuse(s, 404, 2000);
            s.edge.given = std::mem::take(&mut s.edge.own);
        },
    },
    Rule {
        id: "P08",
        says: texts::APPLICATION_ITSELF_ANSWERS_ERROR,
        tier: Tier::Rest,
        check: given,
        fires: |s| {
            refuse(s, 500, 400);
            s.edge.given = std::mem::take(&mut s.edge.own);
        },
        silent: |s| s.edge.given = [(404, 2)].into(),
    },
    Rule {
        id: "P09",
        says: texts::QUEUE_UPSTREAM_FULL_REQUESTS,
        tier: Tier::Policy,
        check: queue,
        fires: |s| {
            s.conf.is_weir = true;
            s.conf.policies.push(made_up("max_conns", "server app:3000 max_conns=2", "app", 502));
            s.conf.policies.push(made_up("queue", "queue 10 timeout=5s", "app", 502));
            s.edge.policies.insert("queue app".into(), Acted { refused: 900, delayed: 1100, delay_us: None });
            refuse(s, 502, 900);
            s.edge.own.clear();
        },
        silent: |s| {
            s.conf.is_weir = true;
            s.conf.policies.push(made_up("queue", "queue 10 timeout=5s", "app", 502));
            // A few requests waited for a moment, and all were served.
            s.edge.policies.insert("queue app".into(), Acted { refused: 0, delayed: 40, delay_us: None });
        },
    },
];

/// A statement for the case of a rule.
pub(super) fn made_up(directive: &str, text: &str, of: &str, status: u16) -> Policy {
    let (directive, text, of) = (directive.to_owned(), text.to_owned(), of.to_owned());
    Policy { directive, text, of, status, at: "nginx.conf:14".to_owned(), ..Policy::default() }
}

/// Gives `count` answers of the block this status, made by the edge itself.
fn refuse(s: &mut Signals, status: u16, count: u64) {
    s.load.statuses = [(200, s.load.sent - count), (status, count)].into();
    s.load.well = s.load.sent - count;
    s.load.errors.insert(status.to_string(), count);
    s.edge.own.insert(status, count);
}

/// The edge's count for a directive: by zone if the edge reports the zone, otherwise in total.
fn acted(s: &Signals, directive: &str, zone: &str) -> Acted {
    if let Some(acted) = s.edge.policies.get(&format!("{directive} {zone}")) {
        return acted.clone();
    }
    let all = s.edge.policies.get(directive).cloned().unwrap_or_default();
    let said = |what: &str, zone: &str| s.said(&format!("{what} {directive} {zone}"));
    let zones = || s.conf.policies.iter().filter(|policy| policy.directive == directive).map(|policy| &policy.of);
    let logged = |what: &str| {
        let mut zones: Vec<&String> = zones().collect();
        zones.sort_unstable();
        zones.dedup();
        zones.into_iter().map(|zone| said(what, zone)).sum::<u64>()
    };
    // The log names the zone, but its level may hide lines. The variables count every request, but name no zone.
    let share = |what: &str, all: u64| {
        let logged = logged(what);
        if logged == 0 || zones().all(|known| known == zone) {
            return all.max(said(what, zone));
        }
        let part = said(what, zone) as f64 / logged as f64;
        (all.max(logged) as f64 * part).round() as u64
    };
    let (refused, delayed) = (share("refused", all.refused), share("delayed", all.delayed));
    let delay_us = all.delay_us.map(|us| (us as f64 * delayed as f64 / all.delayed.max(1) as f64) as u64);
    Acted { refused, delayed, delay_us }
}

/// The count that clients saw, because the edge's account begins a moment after the load. If another policy answers
/// with the same status, only the edge's count separates them.
pub(super) fn seen(s: &Signals, policy: &Policy, counted: u64) -> u64 {
    let is_others = |other: &Policy| {
        other.status == policy.status && (&other.directive, &other.of) != (&policy.directive, &policy.of)
    };
    if s.conf.policies.iter().any(is_others) {
        return counted.min(s.load.sent);
    }
    seen_with(s, policy.status, counted)
}

fn seen_with(s: &Signals, status: u16, counted: u64) -> u64 {
    let seen = s.load.statuses.get(&status).copied().unwrap_or(0);
    match seen {
        0 => counted.min(s.load.sent),
        seen if counted as f64 >= NEARLY * seen as f64 => seen,
        _ => counted,
    }
}

/// The statement of a directive that refused or delayed most, with its counts.
fn of_directive<'a>(s: &'a Signals, directive: &str) -> Option<(&'a Policy, Acted)> {
    let own = s.conf.policies.iter().filter(|policy| policy.directive == directive);
    let done = own.map(|policy| (policy, acted(s, directive, &policy.of)));
    // If one zone has several statements, this takes the first: the count does not say which one acted.
    done.rev().max_by_key(|(_, acted)| acted.refused + acted.delayed)
}

/// The sentence for refused requests.
fn refuses(policy: &Policy, refused: &Said) -> Said {
    say!(REFUSED_REQUESTS, &policy.text, &policy.at, refused)
}

/// The sentence for delayed requests.
fn delays(policy: &Policy, delayed: &Said) -> Said {
    say!(DELAYED_REQUESTS, &policy.text, &policy.at, delayed)
}

/// Adds a line with the good answers that clients saw.
pub(super) fn clients(s: &Signals, found: FiredRule) -> FiredRule {
    let good = say!(GOOD_SENT, &s.load.well, digits(s.goodput()), digits(s.sent_rate()));
    found.with(texts::LABEL_CLIENTS, good)
}

fn requests(s: &Signals) -> Option<FiredRule> {
    let (policy, acted) = of_directive(s, "limit_req")?;
    let refused = seen(s, policy, acted.refused);
    let (share, delayed) = (refused as f64 / s.load.sent.max(1) as f64, acted.delayed.min(s.load.sent));
    // weir counts the delay in a step of its own.
    let delay_ms =
        acted.delay_us.map_or_else(|| s.step_ms("queue"), |us| us as f64 / 1000.0 / s.load.sent.max(1) as f64);
    let slowed = if s.load.ms[0] > 0.0 { delay_ms / s.load.ms[0] } else { 0.0 };
    let delayed_share = delayed as f64 / s.load.sent.max(1) as f64;
    if share < SOME && (delayed_share < SOME || slowed < DELAY) {
        return None;
    }
    if share >= delayed_share {
        let found = FiredRule::new(refuses(policy, &of(refused, s.load.sent)), share);
        let more = if delayed > 0 { say!(ALSO_DELAYED_REQUESTS, delayed) } else { Said::default() };
        return Some(
            clients(s, found)
                .with(texts::LABEL_DELAYED, more)
                .knob(say!(SEND_LESS_THAN_RATE), say!(EDGE_ANSWERS_REQUESTS_REFUSED)),
        );
    }
    let each = delay_ms * s.load.sent as f64 / delayed.max(1) as f64;
    let found = FiredRule::new(delays(policy, &of(delayed, s.load.sent)), delayed_share)
        .with(texts::LABEL_DELAY, say!(MS_REQUESTS_MEAN_TIME, digits(each), percent(slowed.min(1.0))))
        .slows(&[Segment::Edge, Segment::Undivided, Segment::Outside]);
    let more = if refused > 0 { say!(ALSO_REFUSED_REQUESTS, refused) } else { Said::default() };
    Some(
        clients(s, found)
            .with(texts::LABEL_REFUSED, more)
            .knob(say!(SEND_LESS_THAN_RATE_RATE), say!(NO_REQUEST_WAITS_LAB)),
    )
}

fn connections(s: &Signals) -> Option<FiredRule> {
    let (policy, acted) = of_directive(s, "limit_conn")?;
    let refused = seen(s, policy, acted.refused);
    let share = refused as f64 / s.load.sent.max(1) as f64;
    if share < SOME {
        return None;
    }
    let found = FiredRule::new(refuses(policy, &of(refused, s.load.sent)), share);
    let open = say!(CONNECTIONS_CLIENTS_OPEN_MOST, &s.edge.active_max);
    Some(
        clients(s, found.with(texts::LABEL_CONNECTIONS, open))
            .knob(say!(USE_FEWER_CONNECTIONS_C), say!(EDGE_ANSWERS_REQUESTS_REFUSED)),
    )
}

pub(super) fn servers(s: &Signals) -> Option<FiredRule> {
    let own: Vec<&Policy> = s.conf.policies.iter().filter(|policy| policy.directive == "max_conns").collect();
    let first = *own.first()?;
    let none = s.edge.no_server.max(s.said("no_live"));
    let bad: u64 = s.edge.peers.values().map(|peer| peer.bad).sum();
    // A server that fails is taken out as well, which leaves no server.
    if bad as f64 > 0.02 * none as f64 {
        return None;
    }
    let refused = seen(s, first, none);
    let share = refused as f64 / s.load.sent.max(1) as f64;
    if share < SOME {
        return None;
    }
    let found = FiredRule::new(refuses(first, &of(refused, s.load.sent)), share)
        .with(texts::LABEL_SERVER, say!(TIMES_NO_SERVER_AVAILABLE, none, bad))
        .with(
            texts::LABEL_CONNECTIONS,
            if own.len() > 1 { say!(SERVERS_SUCH_LIMIT, own.len()) } else { Said::default() },
        );
    Some(clients(s, found).knob(say!(USE_FEWER_CONNECTIONS_C_IF), say!(EDGE_ANSWERS_REQUESTS_REFUSED)))
}

/// Requests that found no free server. Only weir and NGINX Plus have such a queue, and only weir reports it.
pub(super) fn queue(s: &Signals) -> Option<FiredRule> {
    let (policy, acted) = of_directive(s, "queue")?;
    let refused = seen(s, policy, acted.refused);
    let (share, delayed) = (refused as f64 / s.load.sent.max(1) as f64, acted.delayed.min(s.load.sent));
    let (waits, delay_ms) = (delayed as f64 / s.load.sent.max(1) as f64, s.step_ms("queue"));
    let slowed = delay_ms / s.load.ms[0].max(1e-9);
    let knob = |found: FiredRule| clients(s, found).knob(say!(USE_FEWER_CONNECTIONS_C_IF), say!(NO_REQUEST_WAITS_LAB));
    if share >= SOME {
        let found = FiredRule::new(refuses(policy, &of(refused, s.load.sent)), share);
        return Some(knob(found.with(texts::LABEL_DELAYED, say!(ALSO_DELAYED_REQUESTS, delayed))));
    }
    if waits < SOME || slowed < DELAY {
        return None;
    }
    let each = delay_ms * s.load.sent as f64 / delayed.max(1) as f64;
    let found = FiredRule::new(delays(policy, &of(delayed, s.load.sent)), waits)
        .with(texts::LABEL_DELAY, say!(MS_REQUESTS_MEAN_TIME, digits(each), percent(slowed.min(1.0))))
        .slows(&[Segment::Edge]);
    Some(knob(found))
}

/// Answers that the edge made itself, with a status that a statement of the configuration sets.
fn answers(s: &Signals) -> Option<FiredRule> {
    let done = s.edge.own.iter().filter_map(|(status, count)| Some((statement(s, *status)?, *status, *count)));
    let (policy, status, count) = done.max_by_key(|(_, _, count)| *count)?;
    let refused = seen(s, policy, count);
    let share = refused as f64 / s.load.sent.max(1) as f64;
    if share < SOME || s.load.good.has(status) {
        return None;
    }
    let found =
        FiredRule::new(say!(ANSWERED_REQUESTS, &policy.text, &policy.at, of(refused, s.load.sent), status), share);
    Some(clients(s, found).knob(say!(SEND_LOAD_PATH_FIELDS), say!(REQUESTS_REACH_APPLICATION_LAB)))
}

/// The first statement that answers with this status. Statements that have a rule of their own are left out.
fn statement(s: &Signals, status: u16) -> Option<&Policy> {
    let own = |directives: &[&str]| {
        s.conf.policies.iter().find(|policy| policy.status == status && directives.contains(&policy.directive.as_str()))
    };
    let denied = own(&["deny"]).filter(|_| s.said("forbidden") > 0);
    denied
        .or_else(|| own(&["return"]))
        .or_else(|| own(&["deny", "auth_basic", "auth_jwt", "auth_request", "client_max_body_size"]))
}

fn lock(s: &Signals) -> Option<FiredRule> {
    let policy = s.conf.policies.iter().find(|policy| policy.directive == "proxy_cache_lock")?;
    let (waited, held) = (s.edge.cache.waited?, s.step_ms("cache"));
    let (share, slowed) = (waited as f64 / s.load.sent.max(1) as f64, held / s.load.ms[0].max(1e-9));
    if share < SOME || slowed < DELAY {
        return None;
    }
    let (waited, polled) = (waited.min(s.load.sent), s.edge.cache.polled);
    let found = FiredRule::new(delays(policy, &of(waited, s.load.sent)), share)
        .with(texts::LABEL_DELAY, say!(MS_REQUESTS_MEAN_MS, digits(held), digits(s.load.ms[0])))
        .with(texts::LABEL_WAITED, if polled > 0 { say!(ANSWERS_WITHOUT_FETCH_TOOK, polled) } else { Said::default() })
        .slows(&[Segment::Cache]);
    Some(clients(s, found).knob(say!(PROXY_CACHE_USE_STALE), say!(NO_REQUEST_WAITS_IF)))
}

fn unasked(s: &Signals) -> Option<FiredRule> {
    // An answer from weir's cache once came from a server. weir's account does not separate it from an answer that
    // weir made itself. If this load asked no cache, there are no such answers.
    let asks_cache = s.edge.cache.fetches > 0 || s.edge.cache.said.values().any(|count| *count > 0);
    if s.conf.is_weir && s.conf.has_cache && asks_cache {
        return None;
    }
    let known = |status: u16| {
        statement(s, status).is_some()
            || s.conf.policies.iter().any(|policy| policy.status == status && policy.directive.starts_with("limit_"))
    };
    let own = s.edge.own.iter().filter(|(status, _)| !known(**status) && !s.load.good.has(**status));
    let (status, count) = own.max_by_key(|(_, count)| **count)?;
    let made = seen_with(s, *status, *count);
    let share = made as f64 / s.load.sent.max(1) as f64;
    if share < SOME {
        return None;
    }
    let found = FiredRule::new(say!(EDGE_ANSWERED_REQUESTS_ITSELF, of(made, s.load.sent), status), share);
    Some(clients(s, found).knob(remedy_of(*status), say!(REQUESTS_REACH_APPLICATION_LAB)))
}

/// The remedy for a status that no statement sets.
fn remedy_of(status: u16) -> Said {
    match status {
        // nginx also answers 400 to plain HTTP at a TLS port (497), and to a field that is too long (494).
        400 | 494 | 497 => say!(CORRECT_REQUEST),
        405 => say!(USE_ALLOWED_METHOD),
        408 => say!(SEND_REQUEST_IN_TIME),
        413 => say!(CLIENT_MAX_BODY_SIZE),
        414 | 431 => say!(LARGE_CLIENT_HEADER_BUFFERS),
        421 => say!(USE_SERVERS_NAME),
        500..=599 => say!(READ_EDGES_LOG),
        _ => say!(SEND_LOAD_PATH_CONFIGURATION),
    }
}

fn given(s: &Signals) -> Option<FiredRule> {
    let own = s.edge.given.iter().filter(|(status, _)| !s.load.good.has(**status));
    let (status, count) = own.max_by_key(|(_, count)| **count)?;
    let share = *count as f64 / s.edge.tries.max(1) as f64;
    if share < SOME {
        return None;
    }
    let found = FiredRule::new(say!(UPSTREAM_ANSWERS_ITSELF, status), share)
        .with(texts::LABEL_ANSWERS, say!(OF_ITS_ANSWERS, of(*count, s.edge.tries)));
    Some(clients(s, found).knob(say!(READ_CAUSE_APPLICATIONS_LOG), say!(APPLICATIONS_ANSWERS_GOOD_LAB)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::why::rules::{find, is_policy};

    fn of_case(id: &str) -> (Signals, &'static Rule) {
        let rule = RULES.iter().find(|rule| rule.id == id).unwrap();
        let mut signals = Signals::quiet();
        (rule.fires)(&mut signals);
        (signals, rule)
    }

    #[test]
    fn a_policy_is_named_with_its_line_and_its_number() {
        let (s, rule) = of_case("P02");
        let found = (rule.check)(&s).unwrap();
        assert_eq!(found.subject, "limit_conn addr 5 at nginx.conf:14 refused 1320 of 2000 (66 %) requests");
    }

    /// A refused request never reaches another resource, however full that resource is.
    #[test]
    fn a_policy_that_refuses_many_is_before_all_else() {
        let (mut s, _) = of_case("P02");
        s.said.insert("no_port".into(), 4000);
        s.hosts[0].ports = 200;
        s.hosts[0].held.insert("127.0.0.1:3000".into(), (200, 190));
        s.processes.iter_mut().for_each(|process| process.cpu = 1.0);
        let findings = find(&s, None);
        assert_eq!(findings[0].rule.id, "P02");
        assert!(is_policy(&findings));
        // One in fifty: the policy is one finding among others.
        let mut some = Signals::quiet();
        some.conf.policies.push(made_up("limit_conn", "limit_conn addr 5", "addr", 503));
        some.edge.policies.insert("limit_conn addr".into(), Acted { refused: 40, ..Acted::default() });
        refuse(&mut some, 503, 40);
        assert!(!is_policy(&find(&some, None)));
    }

    /// nginx counts no wait. Its log shows the time before the head of an answer that came from the cache.
    #[test]
    fn the_cache_lock_of_nginx_is_a_policy_too() {
        let (mut s, rule) = of_case("P06");
        s.conf.is_weir = false;
        s.edge.cache.polled = 890;
        let found = (rule.check)(&s).unwrap();
        assert_eq!(found.subject, "proxy_cache_lock on at nginx.conf:14 delayed 900 of 2000 (45 %) requests");
        assert!(found.evidence.iter().any(|(_, text)| text.contains("890")), "{found:?}");
    }

    #[test]
    fn a_delay_is_the_policys_and_not_writing() {
        let mut s = Signals::quiet();
        s.conf.policies.push(made_up("limit_req", "limit_req zone=one burst=500 (100r/s)", "one", 503));
        s.edge.policies.insert("limit_req".into(), Acted { refused: 0, delayed: 1800, delay_us: Some(900_000_000) });
        s.edge.steps.insert("delay".into(), (1800, 900_000_000));
        s.load.ms = [455.0, 460.0, 900.0, 950.0, 990.0];
        let found = requests(&s).unwrap();
        assert_eq!(
            found.subject,
            "limit_req zone=one burst=500 (100r/s) at nginx.conf:14 delayed 1800 of 2000 (90 %) requests"
        );
        assert_eq!(
            (found.evidence[0].0, found.evidence[0].1.en()),
            (texts::LABEL_DELAY, "500 ms each: 99 % of a request's mean time")
        );
        assert!((Segment::Edge.ms(&s) - 450.0).abs() < 1e-9);
        assert!(Segment::Body.ms(&s) < 1e-9);
        // weir has a step for the delay, and it reports the zone.
        let mut weir = s.clone();
        weir.edge.policies = [("limit_req one".to_owned(), Acted { refused: 0, delayed: 1800, delay_us: None })].into();
        weir.edge.steps.remove("delay");
        weir.edge.steps.insert("queue".into(), (1800, 900_000_000));
        assert_eq!(requests(&weir).unwrap().evidence[0], found.evidence[0]);
        // A tiny delay does not count.
        s.edge.policies.insert("limit_req".into(), Acted { refused: 0, delayed: 1800, delay_us: Some(9_000) });
        assert_eq!(requests(&s), None);
    }

    /// nginx's variables count every request and name no zone. Its log names the zone.
    #[test]
    fn of_two_zones_the_one_that_acted_is_named() {
        let mut s = Signals::quiet();
        for (zone, line) in [("one", "nginx.conf:3"), ("two", "nginx.conf:9")] {
            let policy = made_up("limit_req", &format!("limit_req zone={zone}"), zone, 429);
            s.conf.policies.push(Policy { at: line.to_owned(), ..policy });
        }
        s.edge.policies.insert("limit_req".into(), Acted { refused: 1000, delayed: 0, delay_us: Some(0) });
        s.said.extend([("refused limit_req one".to_owned(), 10), ("refused limit_req two".to_owned(), 990)]);
        refuse(&mut s, 429, 1000);
        assert!(requests(&s).unwrap().subject.starts_with("limit_req zone=two at nginx.conf:9 refused 990 of 2000"));
    }

    #[test]
    fn an_upstream_without_a_server_is_max_conns_and_not_a_server_that_fails() {
        let (s, _) = of_case("P04");
        let ids: Vec<&str> = find(&s, None).iter().map(|finding| finding.rule.id).collect();
        assert_eq!(ids.first(), Some(&"P04"), "{ids:?}");
        assert!(!ids.contains(&"B27"), "{ids:?}");
    }

    #[test]
    fn a_full_queue_is_named_and_not_the_servers_behind_it() {
        let (s, rule) = of_case("P09");
        let found = (rule.check)(&s).unwrap();
        assert_eq!(found.subject, "queue 10 timeout=5s at nginx.conf:14 refused 900 of 2000 (45 %) requests");
        assert_eq!(find(&s, None)[0].rule.id, "P09");
        // All requests are served, and most of their time passes in the queue.
        let mut slow = Signals::quiet();
        slow.conf.policies.push(made_up("queue", "queue 100", "app", 502));
        slow.edge.policies.insert("queue app".into(), Acted { refused: 0, delayed: 1500, delay_us: None });
        slow.edge.steps.insert("queue".into(), (1500, 600_000_000));
        slow.load.ms = [400.0, 390.0, 700.0, 710.0, 720.0];
        let found = queue(&slow).unwrap();
        assert_eq!(found.subject, "queue 100 at nginx.conf:14 delayed 1500 of 2000 (75 %) requests");
        assert_eq!(
            (found.evidence[0].0, found.evidence[0].1.en()),
            (texts::LABEL_DELAY, "400 ms each: 75 % of a request's mean time")
        );
    }

    #[test]
    fn an_answer_of_a_cache_is_not_the_edges_own() {
        let (mut s, rule) = of_case("P07");
        (s.conf.is_weir, s.conf.has_cache) = (true, true);
        // Another location has a cache, and no request of this load asked it.
        assert!((rule.check)(&s).is_some());
        s.edge.cache.said.insert("HIT".into(), 3);
        assert_eq!((rule.check)(&s), None);
    }

    #[test]
    fn an_error_of_the_edge_has_the_remedy_of_its_status() {
        for (status, part) in
            [(400, "malformed"), (404, "to a path"), (413, "client_max_body_size"), (500, "error log")]
        {
            let mut s = Signals::quiet();
            refuse(&mut s, status, 900);
            let knob = unasked(&s).unwrap().knob;
            assert!(knob.contains(part), "{status}: {knob}");
        }
    }

    #[test]
    fn what_counts_as_good_is_no_refusal() {
        let (mut s, rule) = of_case("P05");
        s.load.good = "2xx,403".parse().unwrap();
        assert_eq!((rule.check)(&s), None);
    }
}
