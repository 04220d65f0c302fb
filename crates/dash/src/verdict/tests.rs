#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use weir_meter::live::{
    Busiest, ErrorClass, ErrorKind, ErrorSample, Limit, LocationZone, Peer, PeerTimes, ServerZone, Upstream,
};

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
    assert!(last.words.en().contains("Ports to 10.0.0.1:3000"), "{last:?}");
    assert!(last.words.ko().contains("업스트림 포트 10.0.0.1:3000"), "{last:?}");
    assert!(last.evidence.iter().any(|said| said.en().starts_with("No request to it uses a kept")), "{last:?}");
    assert!(last.remedy.as_ref().unwrap().en().contains("keepalive 64"));
}

#[test]
fn s1_files_are_named_before_they_run_out() {
    for growth in [1.0, 12.0, 80.0] {
        let verdicts = fill("fds", growth, |_| ());
        assert!(warned(&verdicts, "fds") >= 3, "{growth}: {}", warned(&verdicts, "fds"));
        assert!(verdicts.last().unwrap().remedy.as_ref().unwrap().en().contains("LimitNOFILE"));
    }
}

#[test]
fn s0_a_full_table_is_named_before_it_is_full() {
    // Five users a second, each with a connection on each side.
    let verdicts = fill("connections", 10.0, |_| ());
    assert!(warned(&verdicts, "connections") >= 20, "{}", warned(&verdicts, "connections"));
    let last = verdicts.last().unwrap();
    assert_eq!(last.state, State::Limited);
    assert!(last.words.en().contains("limited by Connections worker 0"), "{last:?}");
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
        (verdict.state, verdict.words.en()),
        (State::Failing, "5.0\u{202f}% of requests failed in 2 s: shop 502 ×40 · upstream")
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
    assert!(verdict.evidence.iter().any(|said| said.en().contains("3 of 400 requests")), "{verdict:?}");
}

/// A quiet site: six of 60 requests fail in half a minute.
#[test]
fn a_tenth_of_few_requests_is_failing() {
    let state = |failed: u64| {
        let mut snapshot = quiet();
        let mut dashboard = Dashboard::default();
        dashboard.observe(Arc::new(snapshot.clone()));
        snapshot.nginx.timestamp.0 += 10_000;
        snapshot.http.requests.total += 20;
        let zone = snapshot.http.server_zones.get_mut("shop").unwrap();
        zone.requests += 20;
        zone.responses.add(200, 20 - failed);
        zone.responses.add(502, failed);
        snapshot.weir.server_zones.entry("shop".into()).or_default().failed += failed;
        dashboard.observe(Arc::new(snapshot)).verdict.state
    };
    assert_eq!((state(1), state(2)), (State::Healthy, State::Failing), "one failure may be chance");
}

#[test]
fn never_more_failures_than_requests() {
    let mut snapshot = quiet();
    let mut dashboard = Dashboard::default();
    dashboard.observe(Arc::new(snapshot.clone()));
    // One of them began before the window.
    later(&mut snapshot, 400);
    snapshot.weir.server_zones.entry("shop".into()).or_default().failed += 1;
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert!(verdict.evidence.iter().any(|said| said.en().contains("401 of 401 requests")), "{verdict:?}");
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
        assert!(
            verdict.evidence.iter().any(|said| said.en().contains("limit_req or limit_conn refused")),
            "{verdict:?}"
        );
    }
}

#[test]
fn nothing_near_is_an_answer() {
    let mut snapshot = quiet();
    let mut dashboard = Dashboard::default();
    assert_eq!(dashboard.observe(Arc::new(snapshot.clone())).verdict.clone().state, State::Waiting);
    later(&mut snapshot, 0);
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert!(verdict.words.en().starts_with("no resource is near its limit"), "{verdict:?}");
    use_of(&mut snapshot, "fds").used = 717.0;
    later(&mut snapshot, 0);
    let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    assert_eq!(verdict.words.en(), "limited by Open files (0.70) · headroom ×1.4 · next: Connections worker 0 (0)");
    snapshot.weir.limits.clear();
    later(&mut snapshot, 0);
    assert_eq!(dashboard.observe(Arc::new(snapshot)).verdict.clone().words.en(), "weir knows no limit here");
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
    assert_eq!((verdict.state, verdict.words.en()), (State::Failing, "no server of upstream was is up"));
    snapshot.http.upstreams.get_mut("was").unwrap().peers.push(peer(PeerState::Up));
    later(&mut snapshot, 0);
    let verdict = dashboard.observe(Arc::new(snapshot)).verdict.clone();
    assert_eq!(verdict.state, State::Healthy);
    assert!(verdict.evidence.iter().any(|said| said.en().contains("unavailable after failures")), "{verdict:?}");
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
    assert!(words.en().contains("(<0.01)") && words.ko().contains("(<0.01)"), "{words:?}");
}

/// A machine of two CPUs, whose use in each second and whose pressure are given; the last verdict.
fn on_cpus(used: &[f64], psi: Option<f64>, busiest: Option<Busiest>) -> Verdict {
    let (mut dashboard, mut snapshot) = (Dashboard::default(), quiet());
    let limit = Limit { kind: "machine_cpu".into(), unit: "cores".into(), limit: 2.0, ..Limit::default() };
    snapshot.weir.limits.push(limit);
    (snapshot.weir.host.psi_cpu, snapshot.weir.host.busiest) = (psi, busiest);
    let mut last = Verdict::default();
    for used in used {
        later(&mut snapshot, 0);
        use_of(&mut snapshot, "machine_cpu").used = *used;
        last = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
    }
    last
}

fn program(name: &str, cpus: f64, is_own: bool) -> Option<Busiest> {
    Some(Busiest { name: name.to_owned(), cpus, is_own })
}

#[test]
fn the_cpus_of_the_machine_limit_and_the_program_that_uses_them_is_named() {
    let full = [2.0; 12];
    let verdict = on_cpus(&full, Some(0.28), program("node app.js", 1.24, false));
    assert_eq!(
        (verdict.state, verdict.words.en(), verdict.words.ko()),
        (
            State::Limited,
            "limited by Machine CPU (1.00) · node app.js uses 1.2 of 2 CPUs",
            "머신 CPU (1.00) · node app.js: CPU 2개 중 1.2개 사용"
        )
    );
    assert!(verdict.remedy.unwrap().en().starts_with("give node app.js less CPU"));
    assert!(verdict.evidence.iter().any(|said| said.en().starts_with("In 28\u{202f}% of the last 10 s")));
    let verdict = on_cpus(&full, None, program("weir: worker process", 2.0, true));
    assert!(verdict.words.en().ends_with("· this edge uses 2 of 2 CPUs"), "{verdict:?}");
    assert!(verdict.remedy.unwrap().en().starts_with("more CPUs"));
    // A program that uses little does not explain it.
    let verdict = on_cpus(&full, None, program("cron", 0.1, false));
    assert_eq!(verdict.words.en(), "limited by Machine CPU (1.00)");
}

#[test]
fn cpus_that_nobody_waits_for_are_near_and_bursts_are_nothing() {
    // A backup that takes what is left delays nobody.
    assert_eq!(on_cpus(&[2.0; 12], Some(0.02), None).state, State::Near);
    let burst = |seconds: usize| {
        let used: Vec<f64> = (0..20).map(|second| if second >= 20 - seconds { 2.0 } else { 0.2 }).collect();
        on_cpus(&used, Some(0.9), None).state
    };
    assert_eq!((burst(9), burst(10)), (State::Healthy, State::Limited));
    // The first seconds of an edge are too few.
    assert_eq!(on_cpus(&[2.0; 9], Some(0.9), None).state, State::Healthy);
    // Waiting alone is no full CPU: many tasks may begin in the same instant.
    assert_eq!(on_cpus(&[1.0; 12], Some(0.9), None).state, State::Healthy);
}

#[test]
fn a_quota_names_programs_of_its_own_group_only() {
    let judged = |is_in_group: bool, hits| {
        let (mut dashboard, mut snapshot) = (Dashboard::default(), quiet());
        let limit = Limit { kind: "cpu_quota".into(), unit: "cores".into(), used: 0.5, limit: 0.5, ..Limit::default() };
        snapshot.weir.limits.push(limit);
        snapshot.weir.host.busiest = program("rustc", 1.2, false);
        snapshot.weir.host.busiest_of_group = program("node app.js", 0.4, false).filter(|_| is_in_group);
        (0..12).fold(Verdict::default(), |_, _| {
            later(&mut snapshot, 0);
            use_of(&mut snapshot, "cpu_quota").hits += hits;
            dashboard.observe(Arc::new(snapshot.clone())).verdict.clone()
        })
    };
    assert_eq!(judged(true, 0).words.en(), "limited by CPU quota (1.00) · node app.js uses 0.4 of 0.5 CPUs");
    assert_eq!(judged(false, 0).words.en(), "limited by CPU quota (1.00)");
    let throttled = "CPU quota: 0.50 of 0.50, reached 30 times in 10 s · node app.js uses 0.4 of 0.5 CPUs";
    assert_eq!(judged(true, 3).words.en(), throttled);
}

#[test]
fn a_second_without_credits_is_nothing() {
    let (mut dashboard, mut snapshot) = (Dashboard::default(), quiet());
    let credits = Limit { kind: "cpu_credits".into(), unit: "cores".into(), limit: 1.9, ..Limit::default() };
    snapshot.weir.limits.push(credits);
    let mut states = Vec::new();
    for second in 0..24 {
        later(&mut snapshot, 0);
        let is_full = second == 4 || second >= 12;
        let limit = use_of(&mut snapshot, "cpu_credits");
        (limit.used, limit.hits) = (if is_full { 1.9 } else { 0.1 }, limit.hits + u64::from(is_full));
        states.push(dashboard.observe(Arc::new(snapshot.clone())).verdict.state);
    }
    assert!(states[1..21].iter().all(|state| *state == State::Healthy), "{states:?}");
    assert_eq!(states[21], State::Limited, "{states:?}");
}

#[test]
fn failures_have_a_place_a_server_and_a_next_step() {
    for (class, status, en) in [
        ("500", 500, "read the log of the application behind 10.0.0.1:3000: it answered 500 itself"),
        ("502 connection refused", 502, "start the application behind 10.0.0.1:3000, or correct its address"),
        ("504 timeout", 504, "find what the application behind 10.0.0.1:3000 waits for"),
        ("502 closed", 502, "look for crashes and restarts of the application behind 10.0.0.1:3000"),
        ("502 no port", 502, "keep connections: upstream { keepalive 64; }"),
        ("502 bad head", 502, "read the line of the error log"),
    ] {
        let (mut dashboard, mut snapshot) = (Dashboard::default(), quiet());
        snapshot.http.location_zones.insert("shop/api/".into(), LocationZone::default());
        dashboard.observe(Arc::new(snapshot.clone()));
        later(&mut snapshot, 16);
        let zone = snapshot.http.location_zones.get_mut("shop/api/").unwrap();
        zone.requests += 120;
        zone.responses.add(status, 16);
        snapshot.weir.location_zones.entry("shop/api/".into()).or_default().failed += 16;
        let sample = ErrorSample {
            at: snapshot.nginx.timestamp,
            zone: "shop/api/".into(),
            upstream: "10.0.0.1:3000".into(),
            ..ErrorSample::default()
        };
        let samples = vec![sample];
        snapshot.weir.errors = vec![ErrorClass { class: class.into(), count: 16, samples, ..ErrorClass::default() }];
        let verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
        let reason = if status == 504 { "timeout" } else { "upstream" };
        let words = format!("4.0\u{202f}% of requests failed in 1 s: shop/api/ {status} ×16 · {reason} 10.0.0.1:3000");
        assert_eq!((verdict.state, verdict.words.en()), (State::Failing, words.as_str()));
        let told = format!("shop/api/: 16 of 120 requests failed ({class}, 10.0.0.1:3000)");
        assert!(verdict.evidence.iter().any(|said| said.en() == told), "{:?}", verdict.evidence);
        let remedy = verdict.remedy.unwrap();
        assert!(remedy.en().starts_with(en) && !remedy.ko().is_ascii(), "{class}: {remedy:?}");
    }
}

#[test]
fn full_cpus_explain_late_answers_and_no_refused_connections() {
    for (class, en) in [("504 timeout", "more CPUs"), ("502 connection refused", "start the application")] {
        let (mut dashboard, mut snapshot) = (Dashboard::default(), quiet());
        let full =
            Limit { kind: "machine_cpu".into(), unit: "cores".into(), used: 2.0, limit: 2.0, ..Limit::default() };
        snapshot.weir.limits.push(full);
        let mut verdict = Verdict::default();
        for second in 0..12 {
            later(&mut snapshot, 40);
            let failed = ErrorClass { class: class.into(), count: 40 * second, ..ErrorClass::default() };
            snapshot.weir.errors = vec![failed];
            verdict = dashboard.observe(Arc::new(snapshot.clone())).verdict.clone();
        }
        assert_eq!((verdict.state, verdict.limit.unwrap().kind.as_str()), (State::Failing, "machine_cpu"));
        assert!(verdict.remedy.unwrap().en().starts_with(en), "{class}");
    }
}

#[test]
fn what_soon_refuses_comes_before_full_cpus() {
    let verdicts = fill("ports", 470.5, |snapshot| {
        let full =
            Limit { kind: "machine_cpu".into(), unit: "cores".into(), used: 2.0, limit: 2.0, ..Limit::default() };
        snapshot.weir.limits.push(full);
    });
    assert!(warned(&verdicts, "ports") >= 30, "{}", warned(&verdicts, "ports"));
    let of_cpu = |verdict: &&Verdict| verdict.limit.as_ref().is_some_and(|limit| limit.kind == "machine_cpu");
    // The first seconds are too few to speak of CPU time.
    let states: Vec<State> = verdicts.iter().filter(of_cpu).map(|verdict| verdict.state).collect();
    assert!(!states.is_empty() && states.iter().all(|state| *state == State::Limited), "{states:?}");
    assert_eq!(verdicts.last().unwrap().next.as_ref().unwrap().kind, "machine_cpu");
    // A limit that is 80 % full and rises slowly has no hour of its end.
    let slow = fill("fds", 1.0, |snapshot| use_of(snapshot, "fds").used = 850.0);
    assert!(
        slow.iter()
            .filter(|verdict| verdict.state == State::Near)
            .any(|verdict| verdict.words.en().contains("headroom"))
    );
}
