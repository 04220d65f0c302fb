//! `least_time` and `slow_start`: the choice when time counts.

use super::*;

const LAST_BYTE: Policy = Policy::LeastTime { until: Until::LastByte, inflight: false };

/// Runs one exchange whose head takes `header_ms` and whose answer takes `response_ms` in all; returns its peer.
fn timed(world: &mut World, times: impl Fn(usize) -> (u64, u64)) -> usize {
    let mut selection = world.group.begin(0);
    let picked = world.pick(&mut selection, &Affinity::default()).unwrap();
    let (header_ms, response_ms) = times(picked.peer);
    world.wait(header_ms);
    world.group.note_head(&mut selection, world.now_ms());
    world.wait(response_ms - header_ms);
    world.release(&mut selection, Outcome::Ok);
    picked.peer
}

#[test]
fn the_time_that_the_policy_names_counts() {
    // Peer 0 sends its head at once and its body late; peer 1 the other way round, in less time altogether.
    let times = |peer: usize| if peer == 0 { (1, 900) } else { (300, 310) };
    for (policy, best) in [
        (Policy::LeastTime { until: Until::Header, inflight: false }, 0),
        (LAST_BYTE, 1),
        (Policy::LeastTime { until: Until::Header, inflight: true }, 0),
        (Policy::LeastTime { until: Until::LastByte, inflight: true }, 1),
        (Policy::Random { two: Some(Better::LeastTime(Until::Header)) }, 0),
        (Policy::Random { two: Some(Better::LeastTime(Until::LastByte)) }, 1),
    ] {
        let mut world = World::new(policy, weighted(&[1, 1]));
        let picks: Vec<_> = (0..8).map(|_| timed(&mut world, times)).collect();
        // At first no time is known, so both are asked.
        assert!(picks.contains(&0) && picks.contains(&1), "{policy:?} {picks:?}");
        assert!(picks[3..].iter().all(|&peer| peer == best), "{policy:?} {picks:?}");
    }
}

#[test]
fn close_times_take_turns_and_weights_count() {
    let mut world = World::new(LAST_BYTE, weighted(&[1, 1]));
    let picks: Vec<_> = (0..20).map(|_| timed(&mut world, |peer| (1, 41 + peer as u64 * 10))).collect();
    assert_eq!(counts(&picks, 2), [10, 10]);
    // Three times the weight is worth three times the time.
    let mut world = World::new(LAST_BYTE, weighted(&[3, 1]));
    let picks: Vec<_> = (0..20).map(|_| timed(&mut world, |peer| (1, if peer == 0 { 150 } else { 100 }))).collect();
    assert!(counts(&picks, 2)[0] >= 18, "{picks:?}");
}

#[test]
fn a_busy_peer_is_passed_over_and_a_slow_one_gets_another_chance() {
    let mut world = World::new(LAST_BYTE, weighted(&[1, 1]));
    for _ in 0..4 {
        timed(&mut world, |peer| (1, if peer == 0 { 100 } else { 250 }));
    }
    // 120 ms for each exchange against 260: the third exchange in progress makes the fast peer the slower one.
    assert_eq!(world.hold(4, &Affinity::default()), [Some(0), Some(0), Some(1), Some(0)]);
    let mut world = World::new(LAST_BYTE, weighted(&[1, 1]));
    for _ in 0..4 {
        timed(&mut world, |peer| (1, if peer == 0 { 100 } else { 250 }));
    }
    world.wait(60_000);
    // Both averages have halved for long enough to be equal.
    let picks: Vec<_> = (0..2).map(|_| timed(&mut world, |_| (1, 10))).collect();
    assert_eq!(counts(&picks, 2), [1, 1]);
}

#[test]
fn exchanges_without_an_answer_make_a_peer_slow() {
    let mut worlds = [false, true]
        .map(|inflight| World::new(Policy::LeastTime { until: Until::LastByte, inflight }, weighted(&[1, 1])));
    for (world, hangs_known) in worlds.iter_mut().zip([false, true]) {
        let mut hanging = world.group.begin(0);
        let stuck = world.pick(&mut hanging, &Affinity::default()).unwrap().peer;
        let mut last = None;
        for _ in 0..40 {
            last = Some(timed(world, |peer| if peer == stuck { (1, 2) } else { (1, 90) }));
        }
        // Without `inflight`, two exchanges of 20 ms look better than one of 100.
        assert_eq!(last == Some(stuck), !hangs_known);
        // The end of the waiting leaves no count behind.
        world.release(&mut hanging, Outcome::Abandoned);
    }
}

#[test]
fn a_fast_failure_is_no_fast_answer() {
    let mut world = World::new(LAST_BYTE, {
        let mut peers = weighted(&[1, 1]);
        peers.iter_mut().for_each(|peer| peer.max_fails = 0);
        peers
    });
    for _ in 0..6 {
        let mut selection = world.group.begin(0);
        let peer = world.pick(&mut selection, &Affinity::default()).unwrap().peer;
        world.wait(if peer == 0 { 1 } else { 50 });
        if peer == 1 {
            world.group.note_head(&mut selection, world.now_ms());
        }
        world.release(&mut selection, if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    }
    let view = world.group.view(world.now_ms());
    assert_eq!(view.iter().map(|peer| peer.conns).collect::<Vec<_>>(), [0, 0]);
}

fn slow(weight: u32) -> Peer {
    peer(18081, |peer| {
        peer.weight = weight;
        peer.slow_start_ms = 10_000;
    })
}

/// The answers of peer 0 among 100.
fn part(world: &mut World) -> usize {
    counts(&world.answers(100), 2)[0]
}

#[test]
fn a_recovered_peer_gets_its_share_step_by_step() {
    for policy in [Policy::RoundRobin, Policy::LeastConn, LAST_BYTE] {
        let mut world = World::new(policy, vec![slow(1), peer(18082, |_| {})]);
        assert_eq!(part(&mut world), 50, "{policy:?}: a group begins with whole shares");
        // It fails, and the first exchange after fail_timeout succeeds.
        world.exchange(&Affinity::default(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
        world.exchange(&Affinity::default(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
        assert!(world.group.view(world.now_ms())[0].ejected);
        world.wait(11_000);
        world.answers(2);
        assert!(!world.group.view(world.now_ms())[0].ejected);
        let mut parts = Vec::new();
        for _ in 0..5 {
            parts.push(part(&mut world));
            world.wait(2500);
        }
        assert!(parts[0] <= 2 && parts[1..].is_sorted() && parts[4] >= 49, "{policy:?} {parts:?}");
        // Idle peers of different weights do not take turns by `least_time`: the heavier one is always first.
        let is_even = policy != LAST_BYTE;
        assert!(!is_even || (15..=25).contains(&parts[1]) && (28..=38).contains(&parts[2]), "{policy:?} {parts:?}");
    }
}

#[test]
fn a_peer_that_returns_from_down_starts_slowly() {
    let world = World::new(Policy::RoundRobin, down(vec![slow(5), peer(18082, |_| {})], 0));
    let mut next = World::new(Policy::RoundRobin, vec![slow(5), peer(18082, |_| {})]);
    next.group.adopt(&world.group, world.now_ms());
    assert!(part(&mut next) <= 2);
    next.wait(10_000);
    assert!(part(&mut next) >= 80);
}

#[test]
fn waiting_helps_only_if_a_peer_may_become_free() {
    let full = |address| peer(address, |peer| peer.max_conns = 1);
    let mut world = World::new(Policy::RoundRobin, vec![full(18081), full(18082)]);
    let mut held = world.group.begin(0);
    world.pick(&mut held, &Affinity::default()).unwrap();
    world.hold(1, &Affinity::default());
    let mut fresh = world.group.begin(0);
    assert!(world.pick(&mut fresh, &Affinity::default()).is_err());
    assert!(world.group.may_wait(&fresh));
    // The first exchange failed at one peer, and the other one is full.
    world.release(&mut held, Outcome::Failed);
    assert!(world.pick(&mut held, &Affinity::default()).is_err());
    assert!(world.group.may_wait(&held));
    // One try only: no other peer may be asked.
    let mut last = world.group.begin(1);
    let ejected_is_asked = world.pick(&mut last, &Affinity::default());
    assert!(ejected_is_asked.is_err() || world.release(&mut last, Outcome::Failed));
    let none = World::new(Policy::RoundRobin, down(vec![full(18081)], 0));
    assert!(!none.group.may_wait(&none.group.begin(0)));
}
