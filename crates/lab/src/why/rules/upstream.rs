//! Between the edge and its upstreams: connections that are not kept, servers that fail, timeouts.

use super::cache::stampede;
use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::watch::account::UpstreamPeer;
use crate::why::rule::{FiredRule, MINOR, Rule, Segment, Tier, of, percent};
use crate::why::signals::Signals;

/// With more new connections for each try than this, connection reuse does not work.
const INERT: f64 = 0.9;
/// With more than this, the pool is too small.
const SMALL: f64 = 0.1;
/// With more tries for each request than this, retries matter.
const AMPLIFIED: f64 = 1.05;
/// If at least this part of a script's sessions fails, and as many end at one time limit, the limit ends them.
const SESSIONS_CUT: f64 = 0.2;
/// nginx's default of `keepalive_requests`: ngx_http_upstream_keepalive_create_conf(), since 1.19.10.
pub(super) const LASTING_REQUESTS: u64 = 1000;
/// A share of failed requests that is not chance.
pub(super) const FAILED: f64 = 0.005;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B02",
        says: texts::KEEPALIVE_UPSTREAM_SET_BUT,
        tier: Tier::Waste,
        check: inert,
        fires: |s| {
            s.conf.can_keep = false;
            s.edge.opened = Some(2000);
        },
        silent: |s| s.edge.opened = Some(20),
    },
    Rule {
        id: "B03",
        says: texts::POOL_KEPT_CONNECTIONS_SMALLER,
        tier: Tier::Waste,
        check: small,
        fires: |s| {
            s.conf.keepalive = Some(1);
            s.edge.opened = Some(900);
        },
        silent: |s| {
            s.conf.keepalive = Some(64);
            s.edge.opened = Some(900);
        },
    },
    Rule {
        id: "B27",
        says: texts::ONE_SERVER_UPSTREAM_FAILS,
        tier: Tier::Limit,
        check: one_bad,
        fires: |s| {
            let mut other = s.edge.peers["127.0.0.1:3000"].clone();
            other.bad = 300;
            other.requests = 300;
            s.edge.peers.insert("127.0.0.1:3001".into(), other);
            s.said.insert("refused".into(), 300);
        },
        silent: |s| {
            let other = s.edge.peers["127.0.0.1:3000"].clone();
            s.edge.peers.insert("127.0.0.1:3001".into(), other);
        },
    },
    Rule {
        id: "B28",
        says: texts::EDGE_SENDS_FAILING_REQUEST,
        tier: Tier::Waste,
        check: amplified,
        fires: |s| {
            s.edge.tries = 5200;
            s.edge.peers.values_mut().for_each(|peer| peer.bad = 3000);
        },
        silent: |s| s.edge.tries = 2020,
    },
    Rule {
        id: "B39",
        says: texts::ANSWERS_SESSIONS_END_CONFIGURED,
        tier: Tier::Limit,
        check: cut,
        fires: |s| {
            s.conf.timeouts.insert("proxy_read_timeout".into(), 3000);
            s.load.shape.push((3050.0, 400));
        },
        silent: |s| {
            s.conf.timeouts.insert("proxy_read_timeout".into(), 3000);
            s.load.shape.push((2000.0, 400));
        },
    },
    Rule {
        id: "B42",
        says: texts::EDGE_GAVE_UP_UPSTREAM,
        tier: Tier::Limit,
        check: timed_out,
        fires: |s| {
            s.said.insert("read_timeout".into(), 200);
            s.load.errors.insert("504".into(), 200);
        },
        silent: |s| {
            s.load.errors.insert("503".into(), 200);
        },
    },
    Rule {
        id: "B45",
        says: texts::HALF_CONNECTIONS_GO_ADDRESS,
        tier: Tier::Limit,
        check: dual,
        fires: |s| {
            s.conf.names_localhost = true;
            let mut other = s.edge.peers["127.0.0.1:3000"].clone();
            other.bad = 100;
            other.requests = 100;
            s.edge.peers.insert("[::1]:3000".into(), other);
        },
        silent: |s| s.conf.names_localhost = true,
    },
];

fn inert(s: &Signals) -> Option<FiredRule> {
    short_lived(s).or_else(|| never_kept(s))
}

/// `keepalive_requests` of the upstream ends its connections so soon that they are hardly kept.
fn short_lived(s: &Signals) -> Option<FiredRule> {
    let (share, requests) = (s.opened_share()?, ended_after(s)?);
    if share < SMALL || s.edge.tries < 50 || !s.conf.can_keep {
        return None;
    }
    let found = FiredRule::new(say!(EDGE_UPSTREAM_CONNECTIONS_KEPT), share * weight_of_connecting(s))
        .with(
            texts::LABEL_CONNECTIONS,
            say!(OPENED_REQUESTS_UPSTREAM, s.edge.opened.unwrap_or(0), &s.edge.tries, digits(share)),
        )
        .with(texts::LABEL_CONFIGURATION, say!(KEEPALIVE_REQUESTS_ENDS, requests))
        .slows(&[Segment::Connect, Segment::Outside, Segment::Wait]);
    Some(found.knob(say!(UPSTREAM_KEEPALIVE_REQUESTS, LASTING_REQUESTS), say!(NEW_CONNECTIONS_REQUEST_BELOW_0_05)))
}

/// The `keepalive_requests` of the upstream, if about so many requests pass over each connection.
pub(super) fn ended_after(s: &Signals) -> Option<u64> {
    let requests = s.conf.upstream_requests.filter(|requests| *requests < LASTING_REQUESTS)?;
    let share = s.opened_share()? * requests as f64;
    (0.5..=2.0).contains(&share).then_some(requests)
}

fn never_kept(s: &Signals) -> Option<FiredRule> {
    let (share, size) = (s.opened_share()?, s.conf.keepalive?);
    if share < INERT || size == 0 || s.edge.tries < 50 || s.conf.can_keep {
        return None;
    }
    let found = FiredRule::new(say!(EDGE_UPSTREAM_CONNECTIONS_KEPT), share * weight_of_connecting(s))
        .with(
            texts::LABEL_CONNECTIONS,
            say!(OPENED_REQUESTS_UPSTREAM, s.edge.opened.unwrap_or(0), &s.edge.tries, digits(share)),
        )
        .with(texts::LABEL_CONFIGURATION, say!(KEEPALIVE_HTTP_1_0, size))
        .slows(&[Segment::Connect, Segment::Outside, Segment::Wait]);
    Some(found.knob(say!(PROXY_HTTP_VERSION_1_1), say!(NEW_CONNECTIONS_REQUEST_BELOW_0)))
}

fn small(s: &Signals) -> Option<FiredRule> {
    let share = s.opened_share()?;
    if !(SMALL..=1.0).contains(&share) || !s.conf.can_keep || s.edge.tries < 50 {
        return None;
    }
    // Without a setting, weir keeps connections, and nginx has no pool.
    let size = s.conf.keepalive.or((!s.conf.is_weir).then_some(0))?;
    // Failed requests were in flight as well.
    let in_flight = s.load.ms[0] / 1000.0 * s.load.sent as f64 / s.seconds.max(1e-9);
    let open = s.hub().and_then(|hub| hub.held.values().map(|(held, resting)| held.saturating_sub(*resting)).max());
    // If the pool has a place for each of them, it is not too small: the upstream closes the connections itself.
    let is_enough = size as f64 >= (2.0 * in_flight).max(open.unwrap_or(0) as f64).max(2.0);
    // When an object expires, a stampede needs more connections for a moment. Then the stampede is the problem.
    if s.said("no_port") > 0 || is_enough || stampede(s).is_some() {
        return None;
    }
    let wanted = (s.load.connections.max(in_flight.ceil() as u64) as f64 * 1.2).ceil();
    let found = FiredRule::new(say!(EDGE_UPSTREAM_POOL_KEPT), share * weight_of_connecting(s))
        .with(
            texts::LABEL_CONNECTIONS,
            say!(OPENED_REQUESTS_UPSTREAM, s.edge.opened.unwrap_or(0), &s.edge.tries, digits(share)),
        )
        .with(texts::LABEL_POOL, say!(KEEPALIVE_WORKER_ABOUT_REQUESTS, size, digits(in_flight)))
        .slows(&[Segment::Connect, Segment::Outside, Segment::Wait]);
    let knob = match s.conf.keepalive {
        Some(_) => say!(KEEPALIVE_REQUESTS_FLIGHT_ONCE, wanted),
        None => pool(s, wanted as u64),
    };
    Some(found.knob(knob, say!(NEW_CONNECTIONS_REQUEST_BELOW_0_05)))
}

/// Connecting has to take at least this part of a request's time, or of its CPU, before it may limit a load.
const CONNECT_SHARE: f64 = 0.1;

/// A new connection without TLS costs the edge less CPU than this, ms: nginx's worker used 76 µs for a request with one and
/// 40 µs for a request without (9000 requests each, 1 kB).
const CONNECT_CPU_MS: f64 = 0.1;

/// The weight of an edge's wasted connections. It is lower if connecting is a small part of what is used up: of the CPU of
/// an edge that has no room, and of the time otherwise, or if an application is full. Then the waste costs something but
/// does not limit.
fn weight_of_connecting(s: &Signals) -> f64 {
    let is_full = |app: &crate::why::signals::ProcessSignals| app.usage() >= 0.9 || app.wanted() >= 0.95;
    let is_minor = match s.edge_process() {
        // The time for connecting is then also the time in which the connection waited for the worker.
        Some(edge) if edge.usage() >= 0.7 || edge.wanted() >= 0.95 => {
            let request_ms = edge.cpu * s.seconds * 1000.0 / s.load.answered.max(1) as f64;
            !s.conf.passes_tls && CONNECT_CPU_MS < CONNECT_SHARE * request_ms
        }
        Some(_) => s.apps().any(is_full) || s.step_ms("connect") < CONNECT_SHARE * s.load.ms[0],
        None => false,
    };
    if is_minor { MINOR } else { 1.0 }
}

/// The lines that give the edge a pool of `size` connections. Only an `upstream` block has a pool: a `proxy_pass` to
/// an address keeps no connection.
pub(super) fn pool(s: &Signals, size: u64) -> Said {
    match (s.conf.has_upstream, &s.conf.passed, s.conf.can_keep) {
        (true, _, true) => say!(UPSTREAM_KEEPALIVE, size),
        (true, _, false) => say!(UPSTREAM_KEEPALIVE_HTTP, size),
        (false, Some(server), true) => say!(UPSTREAM_ORIGIN, server, size),
        (false, Some(server), false) => say!(UPSTREAM_ORIGIN_HTTP, server, size),
        (false, None, _) => say!(WRITE_UPSTREAM_BLOCK_SERVERS, size),
    }
}

/// Whether `proxy_next_upstream` has a condition. Its default is `error timeout`.
pub(super) fn passes_on(s: &Signals, condition: &str) -> bool {
    match &s.conf.next_upstream {
        Some(conditions) => conditions.iter().any(|known| known == condition),
        None => matches!(condition, "error" | "timeout"),
    }
}

/// The servers of each upstream that was asked, and those that belong to none. Servers are compared within their
/// upstream: another one does other work.
fn by_upstream(s: &Signals) -> Vec<Vec<(&str, &UpstreamPeer)>> {
    let peers = || s.edge.peers.iter().map(|(name, peer)| (name.as_str(), peer));
    let is_known = |name: &str| s.conf.groups.iter().any(|group| group.contains(name));
    let mut groups: Vec<Vec<_>> =
        s.conf.groups.iter().map(|group| peers().filter(|(name, _)| group.contains(*name)).collect()).collect();
    groups.push(peers().filter(|(name, _)| !is_known(name)).collect());
    groups
}

pub(super) fn one_bad(s: &Signals) -> Option<FiredRule> {
    if dual(s).is_some() {
        return None;
    }
    by_upstream(s)
        .iter()
        .filter(|servers| servers.len() >= 2)
        .find_map(|servers| dead(s, servers).or_else(|| slow(servers)))
}

/// One server has almost all failed tries of its upstream.
fn dead(s: &Signals, servers: &[(&str, &UpstreamPeer)]) -> Option<FiredRule> {
    let all: u64 = servers.iter().map(|(_, peer)| peer.bad).sum();
    let (name, worst) = servers.iter().max_by_key(|(_, peer)| peer.bad)?;
    let (bad, others) = (worst.bad, all - worst.bad);
    // If the edge lacks a resource, tries fail at whichever server comes next.
    let own = s.tries_failed("no_file") + s.tries_failed("no_port");
    if bad < 3 || bad <= others * 4 || own * 2 >= bad {
        return None;
    }
    let failed = of(s.failed(), s.load.sent);
    let found = FiredRule::new(say!(UPSTREAM_SERVER, *name), 0.9)
        .with(texts::LABEL_SERVER, say!(TRIES_FAILED_TRIES_ALL, of(bad, worst.requests), others))
        .with(texts::LABEL_CLIENTS, say!(THEIR_REQUESTS_FAILED_TIMES, failed, s.said("no_live")));
    Some(match passing_on(s, bad) {
        Some(line) => found.knob(line, say!(OTHER_SERVERS_ANSWER, *name)),
        None => found.knob(say!(REPAIR_REMOVE_UNTIL_THEN, *name), say!(EDGE_SENDS_NO_REQUEST)),
    })
}

/// One server answers much later than the others of its upstream.
fn slow(servers: &[(&str, &UpstreamPeer)]) -> Option<FiredRule> {
    let header = |peer: &UpstreamPeer| peer.header.1 as f64 / 1000.0 / peer.header.0.max(1) as f64;
    let mut times: Vec<(&str, f64)> =
        servers.iter().filter(|(_, peer)| peer.header.0 >= 20).map(|(name, peer)| (*name, header(peer))).collect();
    times.sort_by(|one, other| other.1.total_cmp(&one.1));
    let [(name, ms), (_, rest), ..] = times[..] else { return None };
    if rest <= 0.0 || ms <= 4.0 * rest || ms <= rest + 20.0 {
        return None;
    }
    let found = FiredRule::new(say!(UPSTREAM_SERVER, name), 0.85)
        .with(texts::LABEL_SERVER, say!(MS_ANSWER_SLOWEST_OTHERS, digits(ms), digits(rest)))
        .slows(&[Segment::Wait]);
    Some(found.knob(say!(UPSTREAM_LEAST_CONN_UNTIL), say!(SLOWEST_ANSWERS_TAKE_LONG)).for_the_tail())
}

/// The line that makes other servers answer the requests that one server fails. `None` if clients do not see these
/// failures, or if the edge passes them on already.
fn passing_on(s: &Signals, bad: u64) -> Option<Said> {
    if s.failed() * 4 < bad {
        return None;
    }
    // The server's own answers, and tries without an answer.
    let status = s.edge.given.iter().filter(|(status, _)| **status >= 500).max_by_key(|(_, count)| **count);
    let given = status.filter(|(_, count)| **count * 2 >= bad).map(|(status, _)| format!("http_{status}"));
    let timeouts = (s.said("connect_timeout") + s.said("read_timeout")).max(s.tries_failed("timeout"));
    let missing = given.as_deref().unwrap_or(if timeouts * 2 >= bad { "timeout" } else { "error" });
    // nginx knows only these statuses as conditions.
    let is_known = ["error", "timeout", "http_500", "http_502", "http_503", "http_504"].contains(&missing);
    let mut conditions: Vec<&str> = match &s.conf.next_upstream {
        Some(own) => own.iter().map(String::as_str).filter(|own| *own != "off").collect(),
        None => Vec::new(),
    };
    let lacks = is_known && !passes_on(s, missing);
    for more in ["error", "timeout", missing] {
        if !conditions.contains(&more) {
            conditions.push(more);
        }
    }
    lacks.then(|| say!(PROXY_NEXT_UPSTREAM_CONDITIONS, conditions.join(" ")))
}

fn amplified(s: &Signals) -> Option<FiredRule> {
    let asked = s.edge.exchanges.max(1);
    let factor = s.edge.tries as f64 / asked as f64;
    let bad: u64 = s.edge.peers.values().map(|peer| peer.bad).sum();
    if factor < AMPLIFIED
        || s.edge.exchanges < 20
        || bad * 2 < s.edge.tries.saturating_sub(asked)
        || one_bad(s).is_some()
        || dual(s).is_some()
    {
        return None;
    }
    let found = FiredRule::new(say!(UPSTREAM_REQUESTS_TRIED_AGAIN), (1.0 - 1.0 / factor).max(0.5))
        .with(texts::LABEL_TRIES, say!(TRIES_REQUESTS, &s.edge.tries, &s.edge.exchanges, digits(factor)))
        .with(texts::LABEL_FAILED, say!(TRIES_FAILED_REQUESTS, of(bad, s.edge.tries), of(s.failed(), s.load.sent)))
        .slows(&[Segment::Wait, Segment::Connect]);
    Some(found.knob(say!(PROXY_NEXT_UPSTREAM_TRIES), say!(DURING_FAILURES_MOST_1)))
}

fn cut(s: &Signals) -> Option<FiredRule> {
    let tunnels = s.said("tunnel_timeout");
    let spike = s
        .conf
        .timeouts
        .iter()
        .map(|(name, ms)| (name.as_str(), *ms, s.share_near(*ms as f64)))
        .max_by(|one, other| one.2.total_cmp(&other.2));
    // If many requests take almost that long anyway, the share at the timeout is no spike.
    let near = |ms: u64| s.share_between(ms as f64 * 0.6, ms as f64 * 0.95);
    let spike = spike.filter(|(_, ms, share)| *share >= 0.03 && *share >= 3.0 * near(*ms));
    // A silent tunnel ends by the time limit for reading, whatever limits are near other answers.
    let read = "proxy_read_timeout";
    let read_ms = s.conf.timeouts.get(read).copied().unwrap_or(60_000);
    let of_tunnels = (tunnels > 0).then(|| (read, read_ms, s.share_near(read_ms as f64)));
    let (name, ms, share) = of_tunnels.or(spike).or_else(|| sessions(s))?;
    let around = near(ms);
    let (of_answers, ended) = (s.share_near(ms as f64), s.sessions_near(ms as f64));
    let lived = s.lives_near(ms as f64);
    let found = FiredRule::new(say!(TIMEOUT_OF, name, ms), share.clamp(0.5, 1.0))
        .with(
            texts::LABEL_SPIKE,
            if of_answers > 0.0 {
                say!(ANSWERS_TOOK_MS_WITHIN, percent(of_answers), ms, percent(around))
            } else {
                Said::default()
            },
        )
        .with(
            texts::LABEL_TUNNELS,
            match () {
                () if tunnels > 0 => say!(TIMEOUT_ENDED_UPGRADED_CONNECTIONS, tunnels),
                () if lived > 0.0 => say!(TUNNELS_LIVED, percent(lived), s.edge.lives.values().sum::<u64>(), ms),
                () => Said::default(),
            },
        )
        .with(
            texts::LABEL_SESSIONS,
            if ended > 0.0 { say!(SESSIONS_ENDED_AT, percent(ended), ms) } else { Said::default() },
        )
        .slows(&[Segment::Wait]);
    Some(found.knob(say!(MESSAGES_PINGS_MORE_OFTEN, ms, name), say!(SPIKE_MOVES_TIMEOUT)))
}

/// The time limit at which sessions of messages end. A script may also end its sessions itself after this time: so its users have to fail.
fn sessions(s: &Signals) -> Option<(&str, u64, f64)> {
    let is_cut = s.load.messages.sent > 0 && s.load.users.failed as f64 >= SESSIONS_CUT * s.load.users.created as f64;
    let share = |ms: f64| s.sessions_near(ms).max(s.lives_near(ms));
    let near = s.conf.timeouts.iter().map(|(name, ms)| (name.as_str(), *ms, share(*ms as f64)));
    let most = near.max_by(|one, other| one.2.total_cmp(&other.2))?;
    (is_cut && s.load.users.failed > 0 && most.2 >= SESSIONS_CUT).then_some(most)
}

fn timed_out(s: &Signals) -> Option<FiredRule> {
    let (connect, read) = (s.said("connect_timeout"), s.said("read_timeout") + s.said("send_timeout"));
    let count = (connect + read).max(s.tries_failed("timeout")).max(s.errors_of(&["504"]));
    if s.errors_of(&["504"]) == 0 || (count as f64) < FAILED * s.load.sent as f64 {
        return None;
    }
    let which = if connect > read { "proxy_connect_timeout" } else { "proxy_read_timeout" };
    let ms = s.conf.timeouts.get(which).copied().unwrap_or(60_000);
    let share = of(s.errors_of(&["504"]), s.load.sent);
    let failed = if connect > read { say!(WITH_504_NOT_ACCEPTED, share) } else { say!(WITH_504_NOT_ANSWERED, share) };
    let found = FiredRule::new(say!(UPSTREAM_MS, which, ms), s.failed_share().max(0.6))
        .with(texts::LABEL_FAILED, failed)
        .with(texts::LABEL_LOG, say!(TIMED_OUT_WHILE_CONNECTING, connect, read))
        .with(texts::LABEL_NEAR, say!(ANSWERS_TOOK_MS, percent(s.share_near(ms as f64)), ms));
    let knob = if connect > read { say!(FIND_OUT_WHY_NO) } else { say!(FIND_RESOURCE_APPLICATION_WAITS, which) };
    Some(found.knob(knob, say!(NO_504)))
}

pub(super) fn dual(s: &Signals) -> Option<FiredRule> {
    if !s.conf.names_localhost {
        return None;
    }
    let is_six = |name: &str| name.starts_with("[::1]") || name.starts_with("::1");
    let bad: u64 = s.edge.peers.iter().filter(|(name, _)| is_six(name)).map(|(_, peer)| peer.bad).sum();
    let tries: u64 = s.edge.peers.iter().filter(|(name, _)| is_six(name)).map(|(_, peer)| peer.requests).sum();
    if bad == 0 || bad * 2 < tries {
        return None;
    }
    let found = FiredRule::new(say!(UPSTREAM_LOCALHOST_127_0), 0.9)
        .with(texts::LABEL_SERVER, say!(TRIES_1_FAILED_APPLICATION, of(bad, tries)))
        .with(texts::LABEL_CLIENTS, say!(THEIR_REQUESTS_FAILED, of(s.failed(), s.load.sent)));
    Some(found.knob(say!(SERVER_127_0_0), say!(NO_TRY_REFUSED)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::why::rules;

    /// An nginx without a pool in front of an application with a full CPU: the connections are waste, not the limit.
    /// Tunnels of which half ends after three seconds, and whose users then fail.
    #[test]
    fn sessions_that_end_at_a_time_limit_are_cut() {
        let mut s = Signals::quiet();
        s.conf.timeouts.insert("proxy_read_timeout".into(), 3000);
        s.load.messages.sent = 80;
        s.load.sessions = [(0.0, 400.0), (0.5, 3010.0), (0.9, 3040.0), (0.99, 3060.0), (1.0, 3100.0)].into();
        (s.load.users.created, s.load.users.failed) = (80, 44);
        let found = cut(&s).unwrap_or_default();
        assert_eq!(found.subject, "proxy_read_timeout 3000 ms");
        assert!(
            found
                .evidence
                .iter()
                .any(|(_, text)| text.contains("at least 50 % of the users' sessions took about 3000 ms")),
            "{:?}",
            found.evidence
        );
        // nginx logs how long each tunnel lived. Its client notices the end when it sends again.
        s.load.sessions = [(0.0, 5000.0), (1.0, 5100.0)].into();
        s.edge.lives = [(1200, 10), (3000, 30)].into();
        let found = cut(&s).unwrap_or_default();
        assert!(
            found.evidence.iter().any(|(_, text)| text == "75 % of 40 tunnels lived for about 3000 ms"),
            "{:?}",
            found.evidence
        );
        // The script itself ends its sessions after three seconds.
        s.load.users.failed = 0;
        assert_eq!(cut(&s), None);
    }

    #[test]
    fn waste_beside_an_application_that_is_full_comes_second() {
        let mut s = Signals::quiet();
        (rule("B03").fires)(&mut s);
        assert_eq!(rules::find(&s, None)[0].rule.id, "B03");
        (rule("B20").fires)(&mut s);
        let found: Vec<&str> = rules::find(&s, None).iter().map(|finding| finding.rule.id).collect();
        assert!(found[0] == "B20" && found.contains(&"B03"), "{found:?}");
    }

    /// A new connection for each request costs little if the application takes most of the time.
    #[test]
    fn waste_limits_nothing_where_connecting_takes_no_time() {
        let mut s = Signals::quiet();
        (rule("B03").fires)(&mut s);
        assert!(!rules::find(&s, None)[0].may_limit());
        s.edge.steps.insert("connect".into(), (2000, 2_000_000));
        assert!(rules::find(&s, None)[0].may_limit());
    }

    /// One worker computes 3.8 ms for each request, and its connections wait for it while they are opened.
    #[test]
    fn waste_limits_nothing_where_a_full_edge_does_other_work() {
        let mut s = Signals::quiet();
        (rule("B03").fires)(&mut s);
        s.edge.steps.insert("connect".into(), (2000, 50_000_000));
        (s.processes[0].cpus, s.processes[0].cpu) = (2.0, 0.77);
        s.processes[0].threads = vec![(0.77, 0.22)];
        let limits = |s: &Signals| (rule("B03").check)(s).unwrap().degree > MINOR;
        assert!(!limits(&s));
        // A handshake for each request may be the work.
        s.conf.passes_tls = true;
        assert!(limits(&s));
        // So may connecting, if the edge does little else.
        s.conf.passes_tls = false;
        s.load.answered = 20_000;
        assert!(limits(&s));
    }

    /// `proxy_connect_timeout` ends no session, however many answers take about as long.
    #[test]
    fn a_tunnel_ends_by_the_time_limit_for_reading() {
        let mut s = Signals::quiet();
        s.said.insert("tunnel_timeout".into(), 30);
        assert_eq!(cut(&s).unwrap().subject, "proxy_read_timeout 60000 ms");
        s.conf.timeouts = [("proxy_connect_timeout".to_owned(), 3), ("proxy_read_timeout".to_owned(), 20_000)].into();
        assert_eq!(cut(&s).unwrap().subject, "proxy_read_timeout 20000 ms");
    }

    /// An edge without descriptors fails at whichever server it tries. That server is not at fault.
    #[test]
    fn a_server_is_not_blamed_for_what_the_edge_lacks() {
        let mut s = Signals::quiet();
        let peer = |bad| UpstreamPeer { requests: 1000, bad, ..UpstreamPeer::default() };
        s.edge.peers = [("a:1".to_owned(), peer(900)), ("b:1".to_owned(), peer(3))].into();
        assert!((rule("B27").check)(&s).is_some());
        s.said.insert("no_file".into(), 880);
        assert_eq!((rule("B27").check)(&s), None);
    }

    /// A server of another upstream does other work: it is neither slow nor at fault beside this one.
    #[test]
    fn servers_are_compared_within_their_upstream() {
        let mut s = Signals::quiet();
        let peer =
            |ms: u64, bad| UpstreamPeer { requests: 200, bad, header: (200, ms * 200_000), ..UpstreamPeer::default() };
        s.edge.peers = [("a:1".to_owned(), peer(2, 0)), ("b:1".to_owned(), peer(90, 90))].into();
        let group = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        s.conf.groups = vec![group(&["a:1"]), group(&["b:1"])];
        assert_eq!(one_bad(&s), None);
        // Of one upstream, or of none, they are compared.
        s.conf.groups = vec![group(&["a:1", "b:1"])];
        assert_eq!(one_bad(&s).unwrap().subject, "upstream: its server b:1");
        s.conf.groups.clear();
        assert!(one_bad(&s).is_some());
        s.edge.peers.values_mut().for_each(|peer| peer.bad = 0);
        assert!(one_bad(&s).unwrap().evidence[0].1.contains("90"));
    }

    #[test]
    fn a_server_that_fails_for_clients_is_passed_by() {
        let mut s = Signals::quiet();
        let mut other = s.edge.peers["127.0.0.1:3000"].clone();
        (other.bad, other.requests) = (900, 1000);
        s.edge.peers.insert("127.0.0.1:3001".into(), other);
        s.load.errors.insert("503".into(), 900);
        s.edge.given.insert(503, 900);
        let knob = |s: &Signals| one_bad(s).unwrap().knob;
        assert!(knob(&s).starts_with("proxy_next_upstream error timeout http_503;"), "{}", knob(&s));
        // The edge passes them on already.
        s.conf.next_upstream = Some(vec!["error".into(), "http_503".into()]);
        assert!(knob(&s).starts_with("repair or remove"), "{}", knob(&s));
        // No client saw a failure.
        s.conf.next_upstream = None;
        s.load.errors.clear();
        assert!(knob(&s).starts_with("repair or remove"), "{}", knob(&s));
        // Nothing is passed on.
        s.load.errors.insert("502".into(), 900);
        s.edge.given.clear();
        s.said.insert("refused".into(), 900);
        s.conf.next_upstream = Some(vec!["off".into()]);
        assert!(knob(&s).starts_with("proxy_next_upstream error timeout;"), "{}", knob(&s));
    }

    #[test]
    fn connections_that_end_after_few_requests_are_no_small_pool() {
        let mut s = churned(64);
        assert_eq!(inert(&s), None);
        s.conf.upstream_requests = Some(2);
        assert!(inert(&s).unwrap().knob.starts_with("upstream … { keepalive_requests 1000; }"));
        // After a thousand requests, it is not the cause.
        s.conf.upstream_requests = Some(1000);
        assert!(inert(&s).is_none_or(|found| !found.knob.contains("keepalive_requests")));
    }

    fn rule(id: &str) -> &'static Rule {
        rules::all().find(|rule| rule.id == id).unwrap()
    }

    /// `keepalive` is allowed only in an `upstream` block.
    #[test]
    fn a_pool_needs_an_upstream_block() {
        let mut s = Signals::quiet();
        s.conf.keepalive = None;
        s.conf.can_keep = false;
        assert!(pool(&s, 64).starts_with("write an upstream block with the servers and keepalive 64"));
        s.conf.passed = Some("127.0.0.1:3000".into());
        let http = "proxy_http_version 1.1; proxy_set_header Connection \"\";";
        let whole = "upstream origin { server 127.0.0.1:3000; keepalive 64; } proxy_pass http://origin;";
        assert_eq!(pool(&s, 64), format!("{whole} {http}"));
        s.conf.has_upstream = true;
        assert_eq!(pool(&s, 64), format!("upstream … {{ keepalive 64; }} {http}"));
        s.conf.can_keep = true;
        assert_eq!(pool(&s, 64), "upstream … { keepalive 64; }");
    }

    /// A block with a pool of this size in which almost no connection is reused.
    fn churned(size: u64) -> Signals {
        let mut s = Signals::quiet();
        s.conf.keepalive = Some(size);
        s.edge.opened = Some(900);
        s
    }

    #[test]
    fn a_pool_is_small_beside_what_is_open_at_once() {
        assert!(small(&churned(4)).is_some());
        let mut s = churned(64);
        assert_eq!(small(&s), None);
        // With 90 in use at once, some have no place in the pool. With 80 of 90 in TIME_WAIT, all have.
        s.hosts[0].held.insert("127.0.0.1:3000".into(), (90, 0));
        assert!(small(&s).is_some());
        s.hosts[0].held.insert("127.0.0.1:3000".into(), (90, 80));
        assert_eq!(small(&s), None);
    }

    #[test]
    fn a_pool_is_not_small_for_what_a_stampede_opens() {
        let mut s = churned(4);
        s.conf.has_cache = true;
        s.conf.has_lock = true;
        s.edge.cache.said = [("HIT".to_owned(), 1700), ("EXPIRED".to_owned(), 220)].into();
        assert!(stampede(&s).is_some());
        assert_eq!(small(&s), None);
        s.edge.cache.said.clear();
        assert!(small(&s).is_some());
    }
}
