//! Connections that the upstream ends without an answer: kept ones, and others.

use super::rejected;
use super::upstream::{FAILED, passes_on};
use crate::said::{Said, say};
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Tier, of};
use crate::why::signals::Signals;

/// Tries that the log has and the edge's account has not, because the account begins a moment after the load.
const EARLY: u64 = 5;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B04",
        says: texts::UPSTREAM_CLOSES_KEPT_CONNECTIONS,
        tier: Tier::Limit,
        check: closed,
        fires: |s| {
            s.said.insert("closed".into(), 60);
            s.load.errors.insert("502".into(), 60);
        },
        silent: |s| {
            s.said.insert("closed".into(), 60);
        },
    },
    Rule {
        id: "B63",
        says: texts::UPSTREAM_TAKES_REQUESTS_ENDS,
        tier: Tier::Limit,
        check: ended,
        // As many connections ended, and none of them was kept.
        fires: |s| {
            s.said.insert("closed".into(), 60);
            s.load.errors.insert("502".into(), 60);
            s.edge.opened = Some(2000);
        },
        silent: |s| {
            s.said.insert("closed".into(), 60);
            s.load.errors.insert("502".into(), 60);
        },
    },
];

/// Connections that ended without an answer, and failed requests. `None` if these are not the cause of failures.
fn without_answer(s: &Signals) -> Option<(u64, u64)> {
    let count = s.tries_failed("closed") + s.tries_failed("reset");
    // A request that found no server failed without a connection, and an answer that the edge rejected came over one.
    let others = s.edge.no_server.max(s.said("no_live")) + rejected::count(s);
    let failed = s.errors_of(&["502"]).saturating_sub(others);
    // A process that the kernel killed did not close its connections itself.
    let is_cause = count > 0
        && !s.processes.iter().any(|process| process.memory_killed > 0)
        && (failed as f64) >= FAILED * s.load.sent as f64
        && s.said("no_port") + s.said("refused") + s.said("no_file") <= count / 2;
    is_cause.then_some((count, failed))
}

/// Whether `count` connections may have ended because the edge used them in the moment in which the upstream closed
/// them. Only a kept connection can be in this race. weir then sends a GET again on a new connection, and so does nginx
/// if `proxy_next_upstream` allows it: ngx_http_upstream_next(), `u->peer.cached`.
fn may_be_race(s: &Signals, count: u64) -> bool {
    let has_kept = s.kept_tries().is_none_or(|kept| 2 * kept >= count && kept + kept / 4 + EARLY >= count);
    let is_repeated = s.load.is_get == Some(true) && (s.conf.is_weir || passes_on(s, "error"));
    has_kept && !is_repeated
}

fn closed(s: &Signals) -> Option<FiredRule> {
    let (count, failed) = without_answer(s).filter(|(count, _)| may_be_race(s, *count))?;
    let found = FiredRule::new(say!(UPSTREAM_CLOSES_CONNECTIONS_KEPT), s.failed_share().max(0.5))
        .with(texts::LABEL_FAILED, say!(WITH_502_CONNECTIONS_ENDED, of(failed, s.load.sent), count))
        .with(texts::LABEL_KEPT, say!(CONNECTIONS_OPENED_REQUESTS, s.edge.opened.unwrap_or(0), &s.edge.tries));
    Some(found.knob(say!(UPSTREAMS_KEEP_ALIVE_TIMEOUT), say!(NO_502_KIND_OTHERWISE)))
}

fn ended(s: &Signals) -> Option<FiredRule> {
    let (count, failed) = without_answer(s).filter(|(count, _)| !may_be_race(s, *count))?;
    let found = FiredRule::new(say!(UPSTREAM_ENDS_CONNECTIONS), s.failed_share().max(0.5))
        .with(texts::LABEL_FAILED, say!(WITH_502_CONNECTIONS_ENDED, of(failed, s.load.sent), count))
        .with(texts::LABEL_KEPT, first_requests(s, count))
        .with(texts::LABEL_LOG, ended_processes(s));
    Some(found.knob(say!(READ_WHY_REQUESTS_END), say!(EVERY_REQUEST_ANSWERED)))
}

/// Why the ended connections are no kept ones.
fn first_requests(s: &Signals, count: u64) -> Said {
    match (s.edge.opened, s.kept_tries()) {
        (Some(opened), Some(kept)) if kept < count => {
            say!(ENDED_AT_FIRST_REQUEST, opened, &s.edge.tries, count.saturating_sub(kept))
        }
        _ => say!(KEPT_ONES_REPEATED),
    }
}

/// The processes that ended, by the lines of their parents.
fn ended_processes(s: &Signals) -> Said {
    let lines = s.wrote.iter().filter_map(|(process, kinds)| Some((process, *kinds.get("ended")?)));
    let most = lines.max_by_key(|(_, count)| *count);
    most.map_or_else(Said::default, |(process, count)| say!(TIMES_LOGGED_PROCESS_ENDED, count, process))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::why::rules;

    /// An application that ends connections: at their first request, or between two requests.
    #[test]
    fn only_a_kept_connection_can_be_in_a_race() {
        let found = |change: &dyn Fn(&mut Signals)| {
            let mut s = Signals::quiet();
            s.said.insert("closed".into(), 147);
            s.load.errors.insert("502".into(), 147);
            change(&mut s);
            rules::find(&s, None).first().map(|finding| (finding.rule.id, finding.found.clone()))
        };
        let id = |change: &dyn Fn(&mut Signals)| found(change).map(|(id, _)| id);
        assert_eq!(id(&|_| ()), Some("B04"));
        // 147 opened for 147 requests.
        let first = |s: &mut Signals| (s.edge.opened, s.edge.tries) = (Some(147), 147);
        assert_eq!(id(&first), Some("B63"));
        let evidence = found(&first).unwrap().1.evidence;
        assert!(evidence[1].1.starts_with("147 connections opened for 147 requests: at least 147 of"), "{evidence:?}");
        // Every second try is on a kept connection, and each of these ends.
        let second = |s: &mut Signals| (s.edge.opened, s.edge.tries) = (Some(140), 276);
        assert_eq!(id(&second), Some("B04"));
        // A GET on a kept connection that ends is sent again. With proxy_next_upstream off, it is not.
        let get = |s: &mut Signals| s.load.is_get = Some(true);
        assert_eq!(id(&get), Some("B63"));
        let off = |s: &mut Signals| (s.load.is_get, s.conf.next_upstream) = (Some(true), Some(vec!["off".into()]));
        assert_eq!(id(&off), Some("B04"));
        // PHP-FPM says which of its processes ended.
        let killed = |s: &mut Signals| {
            first(s);
            s.wrote.insert("php".into(), [("ended".to_owned(), 12)].into());
        };
        assert!(found(&killed).unwrap().1.evidence[2].1.starts_with("12 times php logged"));
    }

    /// weir counts a failed try in its log, in the class of the error and at the peer.
    #[test]
    fn a_failed_try_counts_once() {
        let mut s = Signals::quiet();
        s.said.insert("closed".into(), 60);
        s.edge.errors = [("502 closed".to_owned(), 60), ("upstream closed".to_owned(), 60)].into();
        s.load.errors.insert("502".into(), 60);
        assert!(closed(&s).unwrap().evidence[0].1.contains("60 connections ended"), "{:?}", closed(&s));
    }
}
