//! Requests that find no server: all servers of the upstream are out of use, or none of them takes a connection.

use crate::said::{Said, say};
use crate::texts;
use crate::why::policies::Policy;
use crate::why::rule::{FiredRule, Rule, Tier, of};
use crate::why::signals::Signals;

use super::{policy, upstream};

/// A part of the requests that is not chance.
const SOME: f64 = 0.005;
/// If more of the tries than this fail, the servers are at fault, and not the statement that takes them out of use.
const FAILING: f64 = 0.5;
/// The ways in which a server takes no connection, as the log names them.
const NO_CONNECTION: [&str; 4] = ["refused", "unreachable", "no_socket", "not_allowed"];
/// The ways in which the edge cannot begin a try, as the log names them: no local port, no descriptor, no slot.
const OWN_LIMITS: [&str; 3] = ["no_port", "no_file", "connections"];
/// The ways in which a try fails.
const WAYS: [&str; 9] = [
    "refused",
    "closed",
    "reset",
    "connect_timeout",
    "read_timeout",
    "invalid_header",
    "too_big_header",
    "certificate",
    "tls_handshake",
];

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "P10",
        says: texts::SERVERS_TAKEN_OUT,
        tier: Tier::Policy,
        check: taken_out,
        fires: |s| {
            unserved(s, 80);
            s.conf.outages.push(made_up("max_fails", "server app:3000 max_fails=1 fail_timeout=10s"));
            s.edge.peers.values_mut().for_each(|peer| peer.bad = 5);
            s.said.insert("closed".into(), 5);
        },
        // Every try fails: whoever takes these servers out of use is right.
        silent: |s| {
            unserved(s, 80);
            s.conf.outages.push(made_up("max_fails", "server app:3000 max_fails=1 fail_timeout=10s"));
            s.edge.peers.values_mut().for_each(|peer| peer.bad = peer.requests);
        },
    },
    Rule {
        id: "B64",
        says: texts::NO_SERVER_TAKES_CONNECTION,
        tier: Tier::Limit,
        check: nobody_listens,
        fires: |s| {
            unserved(s, 1500);
            s.said.insert("refused".into(), 500);
            s.edge.peers.values_mut().for_each(|peer| (peer.requests, peer.bad) = (500, 500));
            (s.edge.tries, s.edge.exchanges) = (500, 500);
        },
        // A second server takes connections.
        silent: |s| {
            unserved(s, 80);
            s.said.insert("refused".into(), 3);
        },
    },
];

/// A statement for the case of a rule.
fn made_up(directive: &str, text: &str) -> Policy {
    let (directive, text, of) = (directive.to_owned(), text.to_owned(), "app".to_owned());
    Policy { directive, text, of, status: 502, at: "nginx.conf:9".to_owned(), ..Policy::default() }
}

/// `count` requests of the block found no server.
fn unserved(s: &mut Signals, count: u64) {
    s.edge.no_server = count;
    s.said.insert("no_live".into(), count);
    s.load.statuses = [(200, s.load.sent - count), (502, count)].into();
    s.load.well = s.load.sent - count;
    s.load.errors.insert("502".into(), count);
}

/// Failed tries of all servers.
fn failed_tries(s: &Signals) -> u64 {
    s.edge.peers.values().map(|peer| peer.bad).sum()
}

/// `max_fails` or a health check takes servers out of use that answer most of their requests.
fn taken_out(s: &Signals) -> Option<FiredRule> {
    let (none, bad) = (s.edge.no_server.max(s.said("no_live")), failed_tries(s));
    let is_others = policy::servers(s).is_some() || policy::queue(s).is_some();
    // The edge counts a try that it could not begin against the server, too. Then the edge's own limit takes servers out.
    let not_begun: u64 = OWN_LIMITS.iter().map(|way| s.tries_failed(way)).sum();
    if is_others
        || bad as f64 > FAILING * s.edge.tries as f64
        || not_begun > 0 && not_begun as f64 >= FAILING * bad as f64
    {
        return None;
    }
    // A health check sends its own requests: it takes servers out of use although no try fails.
    let has = |directive: &str| s.conf.outages.iter().find(|statement| statement.directive == directive);
    let (first, second) = if bad == 0 { ("health_check", "max_fails") } else { ("max_fails", "health_check") };
    let statement = has(first).or_else(|| has(second))?;
    let unserved = policy::seen(s, statement, none);
    let share = unserved as f64 / s.load.sent.max(1) as f64;
    if share < SOME {
        return None;
    }
    let subject = say!(LEAVES_NO_SERVER, &statement.text, &statement.at, of(unserved, s.load.sent));
    let failed = if bad > 0 { say!(TRIES_FAILED_WAYS, of(bad, s.edge.tries), ways(s)) } else { Said::default() };
    let found = FiredRule::new(subject, share)
        .with(texts::LABEL_SERVER, say!(TIMES_NO_SERVER_AVAILABLE, none, bad))
        .with(texts::LABEL_TRIES, failed);
    let found = policy::clients(s, found);
    Some(match statement.directive.as_str() {
        "health_check" => found.knob(say!(CHECK_HEALTH_CHECK), say!(SERVERS_STAY_IN_USE)),
        _ => found.knob(say!(RAISE_MAX_FAILS), say!(SERVERS_STAY_IN_USE)),
    })
}

/// No server takes connections.
fn nobody_listens(s: &Signals) -> Option<FiredRule> {
    let count = |way: &&str| s.tries_failed(way);
    let way = NO_CONNECTION.iter().max_by_key(|way| count(way))?;
    let (refused, bad) = (count(way), failed_tries(s));
    let failed = s.errors_of(&["502"]);
    let is_others = upstream::one_bad(s).is_some() || upstream::dual(s).is_some();
    // A process that the kernel killed is another rule's case.
    if is_others
        || s.processes.iter().any(|process| process.memory_killed > 0)
        || (failed as f64) < SOME * s.load.sent as f64
        || (refused.max(bad) as f64) < FAILING * s.edge.tries as f64
        || refused * 2 < bad
        || refused == 0
    {
        return None;
    }
    let found = FiredRule::new(say!(UPSTREAM_NO_SERVER_TAKES), s.failed_share().max(0.5))
        .with(texts::LABEL_TRIES, say!(TRIES_FAILED_WAYS, of(refused, s.edge.tries), ways(s)))
        .with(texts::LABEL_CLIENTS, say!(THEIR_REQUESTS_FAILED_TIMES, of(s.failed(), s.load.sent), s.said("no_live")));
    Some(found.knob(say!(START_SERVERS), say!(NO_TRY_REFUSED)))
}

/// `refused × 12, 503 × 3`: the log's names of failures, and the statuses of servers.
fn ways(s: &Signals) -> Said {
    let logged = WAYS.iter().chain(NO_CONNECTION.iter().skip(1)).map(|way| ((*way).to_owned(), s.tries_failed(way)));
    let given = s.edge.given.iter().filter(|(status, _)| **status >= 500);
    let mut counts: Vec<(String, u64)> =
        logged.chain(given.map(|(status, count)| (status.to_string(), *count))).collect();
    counts.retain(|(_, count)| *count > 0);
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let list: Vec<String> = counts.iter().map(|(way, count)| format!("{way} × {count}")).collect();
    if list.is_empty() { say!(LOG_NAMES_NO_WAY) } else { Said::from(list.join(", ")) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::why::rules::{find, is_policy};

    /// Five failed tries are not worth telling; that their statement refused 800 requests is.
    #[test]
    fn servers_that_answer_and_are_out_of_use_are_a_policy() {
        let mut s = Signals::quiet();
        unserved(&mut s, 800);
        s.conf.outages.push(made_up("max_fails", "server app:3000 max_fails=1 fail_timeout=10s"));
        s.conf.outages.push(made_up("health_check", "health_check uri=/up interval=1s"));
        s.edge.peers.values_mut().for_each(|peer| peer.bad = 5);
        let findings = find(&s, None);
        assert!(is_policy(&findings), "{:?}", findings.iter().map(|one| one.rule.id).collect::<Vec<_>>());
        let text = "server app:3000 max_fails=1 fail_timeout=10s at nginx.conf:9 left no server for 800 of 2000 (40 %) requests";
        assert_eq!(findings[0].found.subject, text);
        s.edge.given.insert(503, 5);
        let evidence = taken_out(&s).unwrap().evidence;
        assert!(evidence[1].1.ends_with("tries failed: 503 × 5"), "{evidence:?}");
        // No try fails: the health check takes them out of use.
        s.edge.peers.values_mut().for_each(|peer| peer.bad = 0);
        let found = find(&s, None).remove(0).found;
        assert!(found.subject.starts_with("health_check uri=/up") && found.knob.contains("curl"), "{found:?}");
    }

    /// Four connects without a local port took the servers out for ten seconds: the ports are the cause.
    #[test]
    fn servers_that_the_edge_could_not_ask_are_not_the_cause() {
        let mut s = Signals::quiet();
        unserved(&mut s, 350);
        s.conf.outages.push(made_up("max_fails", "server app:3000 max_fails=1 fail_timeout=10s"));
        s.edge.peers.values_mut().for_each(|peer| (peer.requests, peer.bad) = (228, 4));
        s.edge.tries = 228;
        s.hosts.iter_mut().for_each(|host| {
            host.ports = 100;
            host.held = [("10.0.0.2:3000".to_owned(), (100, 100))].into();
        });
        assert_eq!(find(&s, None)[0].rule.id, "P10");
        s.said.insert("no_port".into(), 4);
        let ids: Vec<&str> = find(&s, None).iter().map(|finding| finding.rule.id).collect();
        assert_eq!(ids, ["B01"]);
    }

    /// With a time limit that runs out in every try, that time limit is the cause.
    #[test]
    fn servers_that_fail_are_not_blamed_on_the_statement() {
        let mut s = Signals::quiet();
        unserved(&mut s, 50);
        s.conf.outages.push(made_up("max_fails", "server app:3000"));
        s.edge.peers.values_mut().for_each(|peer| (peer.requests, peer.bad) = (10, 10));
        (s.edge.tries, s.edge.exchanges) = (10, 10);
        s.said.insert("read_timeout".into(), 10);
        s.load.errors.insert("504".into(), 10);
        let ids: Vec<&str> = find(&s, None).iter().map(|finding| finding.rule.id).collect();
        assert_eq!(ids, ["B42"]);
    }
}
