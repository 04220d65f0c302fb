#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use weir_meter::live::{ErrorClass, ErrorKind, Limit, Peer, PeerTimes, ServerZone, Upstream};

use super::*;
use crate::Dashboard;

/// An edge that answers 400 requests a second, with all limits far away.
fn quiet() -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.nginx.timestamp.0 = 1_795_363_200_000;
    snapshot.http.server_zones.insert("shop".into(), ServerZone::default());
    for (kind, of, limit) in
        [("connections", "worker 0", 1024.0), ("fds", "", 1024.0), ("ports", "10.0.0.1:3000", 28_232.0)]
    {
        let limit = Limit { kind: kind.into(), of: of.into(), unit: "count".into(), limit, ..Limit::default() };
        snapshot.weir.limits.push(limit);
    }
    snapshot
}

/// One second later.
fn later(snapshot: &mut Snapshot, failed: u64) {
    snapshot.nginx.timestamp.0 += 1000;
    snapshot.http.requests.total += 400;
    let zone = snapshot.http.server_zones.get_mut("shop").unwrap();
    zone.requests += 400;
    zone.responses.add(200, 400 - failed);
    zone.responses.add(502, failed);
    snapshot.weir.server_zones.entry("shop".into()).or_default().failed += failed;
}

fn use_of<'s>(snapshot: &'s mut Snapshot, kind: &str) -> &'s mut Limit {
    snapshot.weir.limits.iter_mut().find(|limit| limit.kind == kind).unwrap()
}

/// Raises a limit's use by `growth` a second until it is reached; returns the verdicts of each second before the
/// first error.
fn fill(kind: &str, growth: f64, prepare: impl Fn(&mut Snapshot)) -> Vec<Verdict> {
    let mut snapshot = quiet();
    prepare(&mut snapshot);
    let mut dashboard = Dashboard::default();
    let mut verdicts = Vec::new();
    loop {
        later(&mut snapshot, 0);
        let limit = use_of(&mut snapshot, kind);
        if limit.used + growth > limit.limit {
            return verdicts;
        }
        limit.used += growth;
        limit.max = limit.used;
        verdicts.push(dashboard.observe(Arc::new(snapshot.clone())).verdict.clone());
    }
}

/// Seconds between the first lasting warning about the limit and the end.
fn warned(verdicts: &[Verdict], kind: &str) -> usize {
    let is_named = |verdict: &&Verdict| {
        matches!(verdict.state, State::Near | State::Limited)
            && verdict.limit.as_ref().is_some_and(|limit| limit.kind == kind)
    };
    verdicts.iter().rev().take_while(is_named).count()
}

#[test]
fn s2_ports_are_named_before_they_run_out() {
    // 470 new connections a second and no keepalive: 28 232 ports last a minute.
    let verdicts = fill("ports", 470.5, |snapshot| {
        let peer = PeerTimes { server: "10.0.0.1:3000".into(), opened: 9_000, reused: 0, ..PeerTimes::default() };
        snapshot.weir.upstreams.insert("was".into(), vec![peer]);
    });
    assert!(warned(&verdicts, "ports") >= 30, "{}", warned(&verdicts, "ports"));
    let last = verdicts.last().unwrap();
    assert!(last.words.en.contains("Ports to 10.0.0.1:3000"), "{last:?}");
    assert!(last.words.ko.contains("업스트림 포트 10.0.0.1:3000"), "{last:?}");
    assert!(last.evidence.iter().any(|said| said.en.starts_with("No request to it uses a kept")), "{last:?}");
    assert!(last.remedy.as_ref().unwrap().en.contains("keepalive 64"));
}

#[test]
fn s1_files_are_named_before_they_run_out() {
    for growth in [1.0, 12.0, 80.0] {
        let verdicts = fill("fds", growth, |_| ());
        assert!(warned(&verdicts, "fds") >= 3, "{growth}: {}", warned(&verdicts, "fds"));
        assert!(verdicts.last().unwrap().remedy.as_ref().unwrap().en.contains("LimitNOFILE"));
    }
}

#[test]
fn s0_a_full_table_is_named_before_it_is_full() {
    // Five users a second, each with a connection on each side.
    let verdicts = fill("connections", 10.0, |_| ());
    assert!(warned(&verdicts, "connections") >= 20, "{}", warned(&verdicts, "connections"));
    let last = verdicts.last().unwrap();
    assert_eq!(last.state, State::Limited);
    assert!(last.words.en.contains("limited by Connections worker 0"), "{last:?}");
}

#[test]
fn errors_come_first() {
    let mut snapshot = quiet();
    let mut dashboard = Dashboard::default();
    use_of(&mut snapshot, "fds").used = 850.0;
    dashboard.observe(Arc::new(snapshot.clone()));
    later(&mut snapshot, 0);
    assert_eq!(dashboard.observe(Arc::new(snapshot.clone())).verdict.clone().state, State::Near);
    later(&mut snapshot, 40);
    let class = "504 while reading response header from upstream";
    snapshot.weir.errors.push(ErrorClass {
        class: "499".into(),
        kind: ErrorKind::Client,
        count: 900,
        ..ErrorClass::default()
    });
    snapshot.weir.errors.push(ErrorClass { class: class.into(), count: 40, ..ErrorClass::default() });
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert_eq!(
        (verdict.state, verdict.words.en.as_str()),
        (State::Failing, format!("5.0\u{202f}% of requests fail: upstream ({class})").as_str())
    );
    // The limit is still reported beside the failures.
    assert_eq!(verdict.limit.unwrap().kind, "fds");
    // A limit that refused is reported as the reason, instead of its effects.
    later(&mut snapshot, 40);
    use_of(&mut snapshot, "connections").hits = 7;
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert_eq!((verdict.state, verdict.limit.unwrap().kind), (State::Limited, "connections".to_owned()));
}

#[test]
fn a_limit_that_refuses_comes_before_one_that_delays() {
    let mut snapshot = quiet();
    let mut dashboard = Dashboard::default();
    let cores = Limit { kind: "cpu_quota".into(), unit: "cores".into(), used: 1.0, limit: 1.0, ..Limit::default() };
    snapshot.weir.limits.push(cores);
    dashboard.observe(Arc::new(snapshot.clone()));
    later(&mut snapshot, 0);
    use_of(&mut snapshot, "cpu_quota").hits = 9;
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert_eq!((verdict.state, verdict.limit.unwrap().kind), (State::Limited, "cpu_quota".to_owned()));
    later(&mut snapshot, 0);
    use_of(&mut snapshot, "fds").hits = 1;
    let verdict = dashboard.observe(Arc::new(snapshot)).verdict.clone();
    assert_eq!((verdict.state, verdict.limit.unwrap().kind), (State::Limited, "fds".to_owned()));
}

#[test]
fn a_few_failures_are_no_failing() {
    let mut snapshot = quiet();
    let mut dashboard = Dashboard::default();
    dashboard.observe(Arc::new(snapshot.clone()));
    later(&mut snapshot, 3);
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert_eq!(verdict.state, State::Healthy);
    assert!(verdict.evidence.iter().any(|said| said.en.contains("3 of 400 requests")), "{verdict:?}");
}

#[test]
fn what_limits_refuse_is_no_failure() {
    let mut snapshot = quiet();
    let mut dashboard = Dashboard::default();
    dashboard.observe(Arc::new(snapshot.clone()));
    for failed in [0, 20] {
        later(&mut snapshot, failed);
        snapshot.http.server_zones.get_mut("shop").unwrap().responses.add(503, 90);
        snapshot.weir.server_zones.entry("shop".into()).or_default().refused += 90;
        let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
        let expected = if failed == 0 { State::Healthy } else { State::Failing };
        assert_eq!(verdict.state, expected, "{verdict:?}");
        assert!(verdict.evidence.iter().any(|said| said.en.contains("limit_req or limit_conn refused")), "{verdict:?}");
    }
}

#[test]
fn nothing_near_is_an_answer() {
    let mut snapshot = quiet();
    let mut dashboard = Dashboard::default();
    assert_eq!(dashboard.observe(Arc::new(snapshot.clone())).verdict.clone().state, State::Waiting);
    later(&mut snapshot, 0);
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert!(verdict.words.en.starts_with("no resource is near its limit"), "{verdict:?}");
    use_of(&mut snapshot, "fds").used = 717.0;
    later(&mut snapshot, 0);
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert_eq!(verdict.words.en, "limited by Open files (0.70) · headroom ×1.4 · next: Connections worker 0 (0)");
    snapshot.weir.limits.clear();
    later(&mut snapshot, 0);
    assert_eq!(dashboard.observe(Arc::new(snapshot)).verdict.clone().words.en, "weir knows no limit here");
}

#[test]
fn a_full_cache_limits_nothing() {
    let mut snapshot = quiet();
    let limit = Limit {
        kind: "cache_size".into(),
        unit: "bytes".into(),
        used: 100.0,
        limit: 100.0,
        hits: 3,
        ..Limit::default()
    };
    snapshot.weir.limits = vec![limit];
    let mut dashboard = Dashboard::default();
    dashboard.observe(Arc::new(snapshot.clone()));
    later(&mut snapshot, 0);
    snapshot.weir.limits[0].hits = 900;
    assert_eq!(dashboard.observe(Arc::new(snapshot)).verdict.clone().state, State::Healthy);
}

#[test]
fn a_group_without_servers_is_failing() {
    let mut snapshot = quiet();
    let peer = |state| Peer { server: "10.0.0.1:3000".into(), state, ..Peer::default() };
    let group = Upstream { peers: vec![peer(PeerState::Unavail), peer(PeerState::Down)], ..Upstream::default() };
    snapshot.http.upstreams.insert("was".into(), group);
    let mut dashboard = Dashboard::default();
    dashboard.observe(Arc::new(snapshot.clone()));
    later(&mut snapshot, 0);
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert_eq!((verdict.state, verdict.words.en.as_str()), (State::Failing, "no server of upstream was is up"));
    snapshot.http.upstreams.get_mut("was").unwrap().peers.push(peer(PeerState::Up));
    later(&mut snapshot, 0);
    let verdict = dashboard.observe(Arc::new(snapshot)).verdict.clone();
    assert_eq!(verdict.state, State::Healthy);
    assert!(verdict.evidence.iter().any(|said| said.en.contains("unavailable after failures")), "{verdict:?}");
}

#[test]
fn no_number_rounds_to_nothing() {
    let shown = |text: String| text.replace('\u{202f}', " ");
    for (share, wanted) in [
        (0.0, "0 %"),
        (0.0002, "<0.1 %"),
        (0.0006, "0.1 %"),
        (0.031, "3.1 %"),
        (0.42, "42 %"),
        (0.9999, "99.9 %"),
        (1.0, "100 %"),
    ] {
        assert_eq!(shown(percent(share)), wanted);
    }
    for (ratio, wanted) in [(0.0, "0"), (0.001, "<0.01"), (0.005, "0.01"), (0.714, "0.71"), (1.0, "1.00")] {
        assert_eq!(two(ratio), wanted);
    }
    assert_eq!((told(0.01, 1), told(-1.0, 2)), ("<0.1".to_owned(), "0".to_owned()));
    // A table with one of thousands of places in use.
    let (mut dashboard, mut snapshot) = (Dashboard::default(), quiet());
    snapshot.weir.limits.iter_mut().for_each(|limit| limit.used = limit.limit * 0.001);
    dashboard.observe(Arc::new(snapshot.clone()));
    later(&mut snapshot, 0);
    let words = dashboard.observe(Arc::new(snapshot)).verdict.words.clone();
    assert!(words.en.contains("(<0.01)") && words.ko.contains("(<0.01)"), "{words:?}");
}
