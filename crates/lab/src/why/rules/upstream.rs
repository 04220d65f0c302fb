//! Between the edge and its upstreams: connections that are not kept, servers that fail, timeouts.

use super::MINOR;
use super::cache::stampede;
use crate::metric::digits;
use crate::why::rule::{Found, Rule, Segment, Tier, of, percent};
use crate::why::signals::Signals;

/// With more new connections for each try than this, connection reuse does not work.
const INERT: f64 = 0.9;
/// With more than this, the pool is too small.
const SMALL: f64 = 0.1;
/// With more tries for each request than this, retries matter.
const AMPLIFIED: f64 = 1.05;
/// A share of failed requests that is not chance.
const FAILED: f64 = 0.005;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B02",
        says: "keepalive to the upstream is set, but does nothing",
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
        says: "the pool of kept connections is smaller than the number of connections in use at once",
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
        id: "B04",
        says: "the upstream closes kept connections before the edge does",
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
        id: "B27",
        says: "one server of the upstream fails or is slow, and the others do not",
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
        says: "the edge sends a failing request again and again",
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
        says: "answers or sessions end at a configured time",
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
        says: "the edge gave up on an upstream: its time to connect or to answer ran out",
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
        says: "half of the connections go to an address where no process listens",
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

fn inert(s: &Signals) -> Option<Found> {
    let (share, size) = (s.opened_share()?, s.conf.keepalive?);
    if share < INERT || size == 0 || s.edge.tries < 50 || s.conf.can_keep {
        return None;
    }
    let found = Found::new("edge → upstream: connections are not kept", share * weight_of_connecting(s))
        .with(
            "connections",
            format!(
                "{} opened for {} requests to the upstream: {} each",
                s.edge.opened.unwrap_or(0),
                s.edge.tries,
                digits(share)
            ),
        )
        .with(
            "configuration",
            format!("keepalive {size} is there; HTTP/1.0 and Connection: close, nginx's default, end each connection"),
        )
        .slows(&[Segment::Connect, Segment::Outside, Segment::Wait]);
    Some(found.knob(
        "proxy_http_version 1.1; proxy_set_header Connection \"\";",
        "new connections a request → below 0.05; the edge's CPU in the kernel falls by a fifth or more",
    ))
}

fn small(s: &Signals) -> Option<Found> {
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
    let found = Found::new("edge → upstream: the pool of kept connections", share * weight_of_connecting(s))
        .with(
            "connections",
            format!(
                "{} opened for {} requests to the upstream: {} each",
                s.edge.opened.unwrap_or(0),
                s.edge.tries,
                digits(share)
            ),
        )
        .with("pool", format!("keepalive {size} a worker; about {} requests in flight", digits(in_flight)))
        .slows(&[Segment::Connect, Segment::Outside, Segment::Wait]);
    let knob = match s.conf.keepalive {
        Some(_) => format!("keepalive {wanted};   (the requests in flight at once, plus a fifth)"),
        None => pool(s, wanted as u64),
    };
    Some(found.knob(knob, "new connections a request → below 0.05"))
}

/// Connecting has to take at least this part of a request's time before it may limit a load.
const CONNECT_SHARE: f64 = 0.1;

/// The weight of an edge's wasted connections. It is lower if the edge has room, and an application is full or
/// connecting takes almost no time. Then the waste costs something but does not limit.
fn weight_of_connecting(s: &Signals) -> f64 {
    let is_full = |app: &crate::why::signals::Process| app.usage() >= 0.9 || app.wanted() >= 0.95;
    let has_room = s.edge_process().is_some_and(|edge| edge.usage() < 0.7);
    let takes_time = s.step_ms("connect") >= CONNECT_SHARE * s.load.ms[0];
    if has_room && (s.apps().any(is_full) || !takes_time) { MINOR } else { 1.0 }
}

/// The lines that give the edge a pool of `size` connections. Only an `upstream` block has a pool: a `proxy_pass` to
/// an address keeps no connection.
pub(super) fn pool(s: &Signals, size: u64) -> String {
    let http = if s.conf.can_keep { "" } else { " proxy_http_version 1.1; proxy_set_header Connection \"\";" };
    match (s.conf.has_upstream, &s.conf.passed) {
        (true, _) => format!("upstream … {{ keepalive {size}; }}{http}"),
        (false, Some(server)) => {
            format!("upstream origin {{ server {server}; keepalive {size}; }} proxy_pass http://origin;{http}")
        }
        (false, None) => {
            format!(
                "write an upstream block with the servers and keepalive {size}, and its name in proxy_pass: with an address, nginx keeps no connection"
            )
        }
    }
}

fn closed(s: &Signals) -> Option<Found> {
    let count = s.said("closed") + s.said("reset") + s.edge_errors("closed") + s.edge_errors("reset");
    let failed = s.errors_of(&["502"]);
    // A process that the kernel killed did not close its connections itself.
    if count == 0
        || s.processes.iter().any(|process| process.memory_killed > 0)
        || (failed as f64) < FAILED * s.load.sent as f64
        || s.said("no_port") + s.said("refused") + s.said("no_file") > count / 2
    {
        return None;
    }
    let found = Found::new("upstream: it closes connections that were kept", s.failed_share().max(0.5))
        .with(
            "failed",
            format!("{} with 502; {count} connections ended before their answer began", of(failed, s.load.sent)),
        )
        .with("kept", format!("{} connections opened for {} requests", s.edge.opened.unwrap_or(0), s.edge.tries));
    Some(found.knob(
        "the upstream's keep-alive timeout above the edge's: keepalive_timeout 4s; in upstream … (Node.js closes after 5 s)",
        "no 502 of this kind; otherwise the application itself closes connections, and its log has the reason",
    ))
}

/// The server with the most failed tries: its name, its failed tries, its tries, and the failed tries of the other
/// servers.
fn worst(s: &Signals) -> Option<(&str, u64, u64, u64)> {
    let all: u64 = s.edge.peers.values().map(|peer| peer.bad).sum();
    let (name, peer) = s.edge.peers.iter().max_by_key(|(_, peer)| peer.bad)?;
    Some((name, peer.bad, peer.requests, all - peer.bad))
}

fn one_bad(s: &Signals) -> Option<Found> {
    if s.edge.peers.len() < 2 || dual(s).is_some() {
        return None;
    }
    let (name, bad, tries, others) = worst(s)?;
    let no_live = s.said("no_live");
    // If the edge lacks a resource, tries fail at whichever server comes next.
    let own = ["no_file", "no_port"].iter().map(|what| s.said(what).max(s.edge_errors(what))).sum::<u64>();
    let dead = bad >= 3 && bad > others * 4 && own * 2 < bad;
    let header = |peer: &crate::watch::edge::Peer| peer.header.1 as f64 / 1000.0 / peer.header.0.max(1) as f64;
    let slow = s
        .edge
        .peers
        .iter()
        .filter(|(_, peer)| peer.header.0 >= 20)
        .max_by(|one, other| header(one.1).total_cmp(&header(other.1)));
    let (slow_name, slow_ms) = slow.map_or(("", 0.0), |(name, peer)| (name.as_str(), header(peer)));
    let rest = s
        .edge
        .peers
        .iter()
        .filter(|(name, peer)| *name != slow_name && peer.header.0 >= 20)
        .map(|(_, peer)| header(peer))
        .fold(0.0, f64::max);
    let is_slow = rest > 0.0 && slow_ms > 4.0 * rest && slow_ms > rest + 20.0;
    if !dead && !is_slow {
        return None;
    }
    if dead {
        let failed = of(s.failed(), s.load.sent);
        let found = Found::new(format!("upstream: its server {name}"), 0.9)
            .with(
                "server",
                format!("{} of its tries failed; {others} tries of all other servers failed", of(bad, tries)),
            )
            .with("clients", format!("{failed} of their requests failed; {no_live} times no server was left"));
        return Some(found.knob(
            format!(
                "repair or remove {name}; until then use max_fails=1 fail_timeout=30s, and proxy_next_upstream_tries 2"
            ),
            "the edge sends no request to a failing server",
        ));
    }
    let found = Found::new(format!("upstream: its server {slow_name}"), 0.85)
        .with("server", format!("{} ms to its answer; the slowest of the others {} ms", digits(slow_ms), digits(rest)))
        .slows(&[Segment::Wait]);
    Some(found.knob(
        "upstream … { least_conn; }   (until that server is as fast as the others)",
        "the slowest answers take as long as those of the other servers",
    ))
}

fn amplified(s: &Signals) -> Option<Found> {
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
    let found = Found::new("upstream: requests that are tried again", (1.0 - 1.0 / factor).max(0.5))
        .with("tries", format!("{} tries for {} requests: {} each", s.edge.tries, s.edge.exchanges, digits(factor)))
        .with(
            "failed",
            format!("{} of the tries failed, and {} requests", of(bad, s.edge.tries), of(s.failed(), s.load.sent)),
        )
        .slows(&[Segment::Wait, Segment::Connect]);
    Some(found.knob(
        "proxy_next_upstream_tries 2;   (and no http_503 in proxy_next_upstream)",
        "during failures, at most 1.1 tries per request",
    ))
}

fn cut(s: &Signals) -> Option<Found> {
    let tunnels = s.said("tunnel_timeout");
    let spike = s
        .conf
        .timeouts
        .iter()
        .map(|(name, ms)| (name, *ms, s.share_near(*ms as f64)))
        .max_by(|one, other| one.2.total_cmp(&other.2));
    let (name, ms, share) = spike?;
    // If many requests take almost that long anyway, the share at the timeout is no spike.
    let around = s.share_between(ms as f64 * 0.6, ms as f64 * 0.95);
    if (share < 0.03 || share < 3.0 * around) && tunnels == 0 {
        return None;
    }
    let found = Found::new(format!("{name} {ms} ms"), share.clamp(0.5, 1.0))
        .with(
            "spike",
            format!(
                "{} of answers took {ms} ms, within a few per cent; {} took a little less",
                percent(share),
                percent(around)
            ),
        )
        .with("tunnels", format!("this timeout ended {tunnels} upgraded connections"))
        .slows(&[Segment::Wait]);
    Some(found.knob(
        format!("messages or pings more often than {ms} ms; or a longer {name}"),
        "the spike moves with the timeout",
    ))
}

fn timed_out(s: &Signals) -> Option<Found> {
    let (connect, read) = (s.said("connect_timeout"), s.said("read_timeout") + s.said("send_timeout"));
    let count = (connect + read).max(s.edge_errors("timeout")).max(s.errors_of(&["504"]));
    if s.errors_of(&["504"]) == 0 || (count as f64) < FAILED * s.load.sent as f64 {
        return None;
    }
    let which = if connect > read { "proxy_connect_timeout" } else { "proxy_read_timeout" };
    let ms = s.conf.timeouts.get(which).copied().unwrap_or(60_000);
    let how = if connect > read {
        "the application did not accept the connection"
    } else {
        "the application received the request and did not answer"
    };
    let found = Found::new(format!("upstream: {which} {ms} ms"), s.failed_share().max(0.6))
        .with("failed", format!("{} with 504: {how}", of(s.errors_of(&["504"]), s.load.sent)))
        .with("log", format!("{connect} timed out while connecting, {read} while waiting for an answer"))
        .with("near", format!("{} of answers took {ms} ms", percent(s.share_near(ms as f64))));
    let knob = if connect > read {
        "find out why no server answers at that address (firewall, host down, full queue)".to_owned()
    } else {
        format!("find the resource that the application waits for; {which} only decides when the edge gives up")
    };
    Some(found.knob(knob, "504 → 0"))
}

fn dual(s: &Signals) -> Option<Found> {
    if !s.conf.names_localhost {
        return None;
    }
    let is_six = |name: &str| name.starts_with("[::1]") || name.starts_with("::1");
    let bad: u64 = s.edge.peers.iter().filter(|(name, _)| is_six(name)).map(|(_, peer)| peer.bad).sum();
    let tries: u64 = s.edge.peers.iter().filter(|(name, _)| is_six(name)).map(|(_, peer)| peer.requests).sum();
    if bad == 0 || bad * 2 < tries {
        return None;
    }
    let found = Found::new("upstream: localhost is 127.0.0.1 and ::1", 0.9)
        .with(
            "server",
            format!("{} of the tries at [::1] failed: the application listens on 127.0.0.1 alone", of(bad, tries)),
        )
        .with("clients", format!("{} of their requests failed", of(s.failed(), s.load.sent)));
    Some(found.knob("server 127.0.0.1:…;   (instead of localhost)", "no try is refused"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::watch::edge::Peer;
    use crate::why::rules;

    /// An nginx without a pool in front of an application with a full CPU: the connections are waste, not the limit.
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

    /// An edge without descriptors fails at whichever server it tries. That server is not at fault.
    #[test]
    fn a_server_is_not_blamed_for_what_the_edge_lacks() {
        let mut s = Signals::quiet();
        let peer = |bad| Peer { requests: 1000, bad, ..Peer::default() };
        s.edge.peers = [("a:1".to_owned(), peer(900)), ("b:1".to_owned(), peer(3))].into();
        assert!((rule("B27").check)(&s).is_some());
        s.said.insert("no_file".into(), 880);
        assert_eq!((rule("B27").check)(&s), None);
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
