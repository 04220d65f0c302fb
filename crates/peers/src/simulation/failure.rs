//! The effects of failures, limits and reloads on the choice.

use super::*;
use crate::group::{GroupError, MAX_PEERS, MAX_TOTAL_WEIGHT};

fn none() -> Affinity<'static> {
    Affinity::default()
}

fn two_peers(change: impl Fn(&mut Peer)) -> Vec<Peer> {
    vec![peer(18081, &change), peer(18082, &change)]
}

/// One peer drops every third exchange it gets; three drops eject it after its third drop, when it has answered six.
#[test]
fn every_third_failure_ends_in_6_and_24() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|p| p.max_fails = 3));
    assert_eq!(counts(&world.answers(30), 2), [15, 15]);
    let mut asked_first = 0;
    let mut answers = [0, 0];
    for _ in 0..30 {
        let (asked, answered) = world.exchange(&none(), |peer| {
            asked_first += usize::from(peer == 0);
            if peer == 0 && asked_first.is_multiple_of(3) { Outcome::Failed } else { Outcome::Ok }
        });
        assert!(answered);
        answers[asked[asked.len() - 1]] += 1;
    }
    assert_eq!(answers, [6, 24]);
}

/// The peers that forty exchanges ask, observed: the first peer drops every second request, the second every third.
#[test]
fn failures_observed() {
    let hash = |consistent| Policy::Hash { consistent };
    let cases = [
        (
            Policy::RoundRobin,
            "0 1 02 0 1 02 2 0 102 0 01 1 2 12 1 2 1 12 2 1 1 2 12 1 2 1 12 2 1 1 2 12 1 2 1 12 2 1 1 2",
        ),
        (
            Policy::LeastConn,
            "0 1 02 0 1 02 2 0 102 0 01 1 2 12 1 2 1 12 2 1 1 2 12 1 2 1 12 2 1 1 2 12 1 2 1 12 2 1 1 2",
        ),
        (Policy::IpHash, "0 02 0 02 1 1 2 0 02 0 02 2 12 1 2 2 2 1 12 1 1 12 2 1 1 2 12 2 1 1 2 12 1 1 12 1 1 12 2 2"),
        (hash(false), "0 1 01 10 01 0 2 01 2 10 01 1 12 1 2 1 2 12 2 1 2 1 2 12 1 1 12 1 1 12 1 1 12 1 2 1 2 12 2 1"),
        (hash(true), "2 1 0 01 0 02 0 012 1 0 01 12 2 1 1 12 2 1 2 1 12 1 1 12 1 2 1 12 1 1 12 1 1 12 2 1 1 12 1 1"),
    ];
    for (policy, expected) in cases {
        let mut peers = weighted(&[5, 2, 1]);
        peers[0].max_fails = 4;
        peers[1].max_fails = 0;
        peers[2].max_fails = 9;
        assert_eq!(asked_under_drops(policy, peers), expected, "{policy:?}");
    }
    let mut peers = weighted(&[5, 2, 1]);
    peers[0].max_fails = 4;
    peers[1].max_fails = 3;
    peers[2].backup = true;
    let expected = "0 1 01 0 012 1 0 01 10 01 1 12 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2";
    assert_eq!(asked_under_drops(Policy::RoundRobin, peers), expected);
}

fn asked_under_drops(policy: Policy, peers: Vec<Peer>) -> String {
    let mut world = World::new(policy, peers);
    let mut requests = [0u32; 3];
    let exchanges: Vec<String> = (1..=40u8)
        .map(|number| {
            let key = number.to_string();
            let affinity = Affinity {
                key: key.as_bytes(),
                client: Some(IpAddr::from([127, 0, number, 2])),
                ..Affinity::default()
            };
            let (asked, answered) = world.exchange(&affinity, |peer| {
                requests[peer] += 1;
                let drops = peer < 2 && requests[peer].is_multiple_of(peer as u32 + 2);
                if drops { Outcome::Failed } else { Outcome::Ok }
            });
            assert!(answered);
            asked.iter().map(ToString::to_string).collect()
        })
        .collect();
    exchanges.join(" ")
}

/// Only the ejecting failure reports the ejection; the peer stays out for `fail_timeout` whole seconds and returns in
/// the second after.
#[test]
fn ejection_lasts_fail_timeout() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|p| p.max_fails = 2));
    for expected in [false, true] {
        let mut selection = world.group.begin(0);
        while world.pick(&mut selection, &none()).unwrap().peer != 0 {
            selection = world.group.begin(0);
        }
        assert_eq!(world.release(&mut selection, Outcome::Failed), expected);
    }
    assert!(world.group.view(world.now_ms())[0].ejected);
    world.now_s += 10;
    assert_eq!(counts(&world.answers(20), 2), [0, 20]);
    world.now_s += 1;
    assert!(world.answers(4).contains(&0));
    assert_eq!(world.group.view(world.now_ms())[0].fails, 0);
}

/// A session of `stream` that is connected ends the trial, although the session goes on.
#[test]
fn a_connection_forgives_failures_before_the_session_ends() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    world.now_s += 11;
    let mut trial = world.group.begin(0);
    while world.pick(&mut trial, &none()).unwrap().peer != 0 {
        trial = world.group.begin(0);
    }
    assert_eq!(counts(&world.answers(4), 2), [0, 4]);
    world.group.note_connected(&trial, world.now_ms());
    assert_eq!(counts(&world.answers(4), 2), [2, 2]);
}

/// The first exchange after `fail_timeout` is a trial: until it succeeds the peer gets no other exchange. If it fails,
/// the peer is out again at once.
#[test]
fn a_returning_peer_is_tried_one_exchange_at_a_time() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    world.now_s += 11;
    let held: Vec<_> = world.hold(6, &none()).into_iter().flatten().collect();
    assert_eq!(counts(&held, 2), [1, 5]);

    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    world.now_s += 11;
    let mut trials = 0;
    for _ in 0..10 {
        world.exchange(&none(), |peer| {
            trials += u32::from(peer == 0);
            if peer == 0 { Outcome::Failed } else { Outcome::Ok }
        });
    }
    assert_eq!(trials, 1);
}

/// A success of an exchange that began before the failure forgives nothing.
#[test]
fn an_older_success_does_not_forgive() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|p| p.max_fails = 3));
    let mut early = world.group.begin(0);
    assert_eq!(world.pick(&mut early, &none()).unwrap().peer, 0);
    world.now_s += 1;
    world.answers(1);
    let mut late = world.group.begin(0);
    assert_eq!(world.pick(&mut late, &none()).unwrap().peer, 0);
    world.release(&mut late, Outcome::Failed);
    world.now_s += 1;
    world.release(&mut early, Outcome::Ok);
    assert_eq!(world.group.view(world.now_ms())[0].fails, 1);
}

#[test]
fn failures_lower_the_weight_and_picks_restore_it() {
    let mut peers = weighted(&[6, 6]);
    peers[0].max_fails = 3;
    let mut world = World::new(Policy::RoundRobin, peers);
    let weight = |world: &World| world.group.effective_weights(&world.part)[0];
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    // The next turn pays for the failure, and gives one back.
    world.answers(1);
    assert_eq!(weight(&world), 6 - 2 + 1);
    world.answers(5);
    assert_eq!(weight(&world), 6);
}

#[test]
fn without_max_fails_nobody_is_ejected() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|p| p.max_fails = 0));
    let mut asked_first = 0;
    for _ in 0..20 {
        let (_, answered) = world.exchange(&none(), |peer| {
            asked_first += u32::from(peer == 0);
            if peer == 0 { Outcome::Failed } else { Outcome::Ok }
        });
        assert!(answered);
    }
    assert_eq!(asked_first, 10);
}

/// Answers that lead to another attempt without blame reach every peer once, and leave all of them in service.
#[test]
fn next_without_blame_asks_everybody_once() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    for _ in 0..5 {
        let (mut asked, answered) = world.exchange(&none(), |_| Outcome::Next);
        asked.sort_unstable();
        assert_eq!((asked, answered), (vec![0, 1], false));
    }
    assert!(world.group.view(world.now_ms()).iter().all(|v| v.fails == 0));
}

#[test]
fn tries_are_the_peers_not_down() {
    let cases = [
        (down(weighted(&[1, 1]), 1), 0, 1),
        (weighted(&[1, 1, 1]), 0, 3),
        (weighted(&[1, 1, 1]), 2, 2),
        (
            vec![
                peer(18081, |_| {}),
                peer(18082, |p| p.backup = true),
                peer(18083, |p| {
                    p.backup = true;
                    p.down = true;
                }),
            ],
            0,
            2,
        ),
    ];
    for (peers, limit, expected) in cases {
        let group = Group::new("g", peers, Policy::RoundRobin).unwrap();
        assert_eq!(group.begin(limit).tries(), expected);
    }
}

/// A single peer is never ejected, and its exchange has no second try.
#[test]
fn a_single_peer_keeps_serving() {
    for policy in [
        Policy::RoundRobin,
        Policy::LeastConn,
        Policy::IpHash,
        Policy::Hash { consistent: true },
        Policy::Random { two: Some(Better::LeastConn) },
    ] {
        let mut world = World::new(policy, weighted(&[1]));
        for _ in 0..5 {
            let (asked, answered) = world.exchange(&none(), |_| Outcome::Failed);
            assert_eq!((asked, answered), (vec![0], false), "{policy:?}");
        }
        let view = world.group.view(world.now_ms());
        assert!(!view[0].ejected && view[0].conns == 0);
    }
    let mut world = World::new(Policy::RoundRobin, down(weighted(&[1]), 0));
    assert_eq!(world.exchange(&none(), |_| Outcome::Ok), (vec![], false));
}

#[test]
fn backups_serve_while_the_primaries_cannot() {
    let peers = vec![
        peer(18081, |_| {}),
        peer(18083, |p| p.backup = true),
        peer(18082, |_| {}),
        peer(18084, |p| p.backup = true),
    ];
    let mut world = World::new(Policy::RoundRobin, peers);
    let addresses: Vec<_> = world.group.peers().map(|p| p.address.clone()).collect();
    assert_eq!(addresses[1], "127.0.0.1:18082", "primaries come first");
    let (asked, answered) = world.exchange(&none(), |peer| if peer < 2 { Outcome::Failed } else { Outcome::Ok });
    assert_eq!((asked, answered), (vec![0, 1, 2], true));
    assert_eq!(world.answers(4), [3, 2, 3, 2]);
    world.now_s += 11;
    assert!(world.answers(4).iter().all(|&peer| peer < 2));
}

/// The peers that get exchanges which never end, by policy and `max_conns`.
#[test]
fn max_conns_holds_under_every_policy() {
    let limits = |limits: &[u32]| -> Vec<Peer> {
        limits.iter().zip(18081..).map(|(&limit, port)| peer(port, |p| p.max_conns = limit)).collect()
    };
    let backup = |mut peers: Vec<Peer>| {
        if let Some(last) = peers.last_mut() {
            last.backup = true;
        }
        peers
    };
    let mut heavy = limits(&[1, 0]);
    heavy[0].weight = 2;
    let hash = |consistent| Policy::Hash { consistent };
    let cases: [(Policy, Vec<Peer>, usize, &[usize]); 14] = [
        (Policy::RoundRobin, limits(&[0, 0]), 4, &[2, 2]),
        (Policy::RoundRobin, limits(&[3]), 4, &[3]),
        (Policy::RoundRobin, backup(limits(&[2, 0])), 6, &[2, 4]),
        (Policy::RoundRobin, backup(limits(&[2, 3])), 6, &[2, 3]),
        (Policy::RoundRobin, limits(&[1, 1]), 4, &[1, 1]),
        (Policy::RoundRobin, limits(&[1, 0]), 4, &[1, 3]),
        (Policy::RoundRobin, heavy, 4, &[1, 3]),
        (Policy::RoundRobin, limits(&[1, 1, 0]), 6, &[1, 1, 4]),
        (Policy::LeastConn, limits(&[1, 0]), 4, &[1, 3]),
        (Policy::LeastConn, backup(limits(&[2, 0])), 6, &[2, 4]),
        (Policy::LeastConn, backup(limits(&[2, 3])), 6, &[2, 3]),
        (Policy::IpHash, limits(&[1, 2]), 4, &[1, 2]),
        (hash(false), limits(&[1, 2]), 4, &[1, 2]),
        (hash(true), limits(&[1, 2]), 4, &[1, 2]),
    ];
    let affinity = Affinity { key: b"127.0.0.1", client: Some(IpAddr::from([127, 0, 0, 1])), ..Affinity::default() };
    for (policy, peers, exchanges, expected) in cases {
        let mut world = World::new(policy, peers.clone());
        let held = world.hold(exchanges, &affinity);
        let held: Vec<_> = held.into_iter().flatten().collect();
        assert_eq!(counts(&held, peers.len()), expected, "{policy:?} {peers:?}");
    }
}

#[test]
fn max_conns_of_random() {
    for seed in 0..50 {
        for two in [None, Some(Better::LeastConn)] {
            let mut peers = weighted(&[1, 1]);
            peers[0].max_conns = 2;
            peers[1].max_conns = 1;
            let mut world = World::new(Policy::Random { two }, peers);
            world.prng = Prng::new(seed);
            let held: Vec<_> = world.hold(4, &none()).into_iter().flatten().collect();
            assert_eq!(counts(&held, 2), [2, 1], "seed {seed} two {two:?}");
        }
    }
}

/// If all peers are ejected, a new exchange still reaches the peer whose failure is oldest, and an answer brings that
/// peer back at once.
#[test]
fn ejection_never_blacks_out_a_group() {
    for policy in [
        Policy::RoundRobin,
        Policy::LeastConn,
        Policy::IpHash,
        Policy::Hash { consistent: false },
        Policy::Hash { consistent: true },
        Policy::Random { two: Some(Better::LeastConn) },
    ] {
        let mut peers = weighted(&[1, 1, 1, 1]);
        peers[2].down = true;
        peers[3].backup = true;
        let mut world = World::new(policy, peers);
        let affinity = Affinity { key: b"key", client: None, ..Affinity::default() };
        let (asked, _) = world.exchange(&affinity, |_| Outcome::Failed);
        assert_eq!(asked.len(), 3, "{policy:?}");
        for _ in 0..3 {
            world.now_s += 1;
            let (asked_now, answered) = world.exchange(&affinity, |_| Outcome::Failed);
            assert_eq!((asked_now.len(), answered), (1, false), "{policy:?}");
        }
        world.now_s += 1;
        let oldest = world.exchange(&affinity, |_| Outcome::Failed).0[0];
        world.now_s += 1;
        let mut selection = world.group.begin(0);
        let picked = world.pick(&mut selection, &affinity).unwrap();
        assert!(picked.last_resort && picked.peer != oldest, "{policy:?}");
        world.release(&mut selection, Outcome::Ok);
        assert!(!world.group.view(world.now_ms())[picked.peer].ejected);
        let mut selection = world.group.begin(0);
        let again = world.pick(&mut selection, &affinity).unwrap();
        assert_eq!((again.peer, again.last_resort), (picked.peer, false));
    }
}

/// Failures of one second are told apart: the last resort goes from peer to peer, so a dead peer does not hide a live one.
#[test]
fn the_last_resort_takes_turns_within_a_second() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    world.exchange(&none(), |_| Outcome::Failed);
    let mut ask = || {
        world.wait(100);
        world.exchange(&none(), |_| Outcome::Failed).0[0]
    };
    assert_eq!([ask(), ask(), ask(), ask()], [0, 1, 0, 1]);
}

/// The last resort is only for exchanges that have asked no peer; an exchange whose peer has just failed gets
/// `NoLivePeers`.
#[test]
fn a_second_attempt_has_no_last_resort() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    let (asked, answered) = world.exchange(&none(), |_| Outcome::Failed);
    assert_eq!((asked, answered), (vec![1], false));
}

/// If a live peer is at its `max_conns`, load refuses the exchange, not ejection.
#[test]
fn a_full_group_is_busy_not_blacked_out() {
    let mut peers = weighted(&[1, 1]);
    peers[1].max_conns = 1;
    let mut world = World::new(Policy::RoundRobin, peers);
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    assert_eq!(world.hold(2, &none()), [Some(1), None]);
}

/// A client that leaves says nothing about the peer: a trial remains undecided, and so does a last resort.
#[test]
fn an_abandoned_exchange_is_no_verdict() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    world.exchange(&none(), |_| Outcome::Failed);
    let mut selection = world.group.begin(0);
    assert!(world.pick(&mut selection, &none()).unwrap().last_resort);
    assert!(!world.release(&mut selection, Outcome::Abandoned));
    world.now_s += 11;
    let mut selection = world.group.begin(0);
    assert!(!world.pick(&mut selection, &none()).unwrap().last_resort);
    world.release(&mut selection, Outcome::Abandoned);
    let view = world.group.view(world.now_ms());
    assert_eq!((view[0].fails, view[1].fails), (1, 1));
    assert!(view[0].ejected != view[1].ejected, "one had its trial");
}

#[test]
fn releasing_twice_counts_once() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    let mut selection = world.group.begin(0);
    world.pick(&mut selection, &none()).unwrap();
    assert_eq!(world.group.tries_after(&selection), 1);
    world.release(&mut selection, Outcome::Ok);
    world.release(&mut selection, Outcome::Failed);
    assert_eq!(selection.tries(), 1);
    assert!(world.group.view(world.now_ms()).iter().all(|v| v.conns == 0 && v.fails == 0));
}

#[test]
fn picking_again_gives_the_held_peer_back() {
    let mut world = World::new(Policy::RoundRobin, two_peers(|_| {}));
    let mut selection = world.group.begin(0);
    world.pick(&mut selection, &none()).unwrap();
    world.pick(&mut selection, &none()).unwrap();
    let conns: Vec<_> = world.group.view(world.now_ms()).iter().map(|v| v.conns).collect();
    assert_eq!(conns, [0, 1]);
}

/// After a reload the state follows the address, even at another position and with another weight; exchanges from
/// before the reload still leave the count.
#[test]
fn a_new_group_adopts_the_old_ones_state() {
    let mut world = World::with_zone(Policy::RoundRobin, weighted(&[1, 1, 1]));
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    let mut held = world.group.begin(0);
    assert_eq!(world.pick(&mut held, &none()).unwrap().peer, 2);

    let mut peers = weighted(&[1, 1, 4]);
    peers.remove(1);
    peers.reverse();
    let mut next = Group::new("group", peers, Policy::RoundRobin).unwrap();
    next.share();
    next.adopt(&world.group, world.now_ms());
    let view = next.view(world.now_ms());
    assert_eq!((view[0].conns, view[0].ejected), (1, false));
    assert_eq!((view[1].conns, view[1].ejected), (0, true));
    assert_eq!(next.effective_weights(&next.part())[0], 1, "regained pick by pick");
    world.release(&mut held, Outcome::Ok);
    assert_eq!(next.view(world.now_ms())[0].conns, 0);
}

#[test]
fn groups_that_continue_each_other_know_of_the_same_failures() {
    let mut world = World::new(Policy::RoundRobin, weighted(&[1, 1]));
    let mut next = Group::new("group", weighted(&[1, 1]), Policy::RoundRobin).unwrap();
    next.adopt(&world.group, world.now_ms());
    let ejected = |group: &Group, now_ms| group.view(now_ms).iter().map(|view| view.ejected).collect::<Vec<_>>();
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    assert_eq!(ejected(&next, world.now_ms()), [true, false], "a failure that the older one met");
    std::mem::swap(&mut world.group, &mut next);
    world.part = world.group.part();
    world.exchange(&none(), |peer| if peer == 1 { Outcome::Failed } else { Outcome::Ok });
    assert_eq!(ejected(&next, world.now_ms()), [true, true], "and one that the newer one met");
}

#[test]
fn each_worker_has_its_own_turn_and_all_know_of_failures() {
    let mut one = World::new(Policy::RoundRobin, weighted(&[1, 1, 1]));
    assert_eq!(one.answers(2), [0, 1]);
    // Another worker begins its own round.
    let first = std::mem::replace(&mut one.part, one.group.part());
    assert_eq!(one.answers(1), [0]);
    let held = one.hold(1, &none());
    assert_eq!(held, [Some(1)]);
    assert_eq!(one.group.view(one.now_ms()).iter().map(|view| view.conns).collect::<Vec<_>>(), [0, 1, 0]);
    for _ in 0..3 {
        one.exchange(&none(), |peer| if peer == 1 { Outcome::Failed } else { Outcome::Ok });
    }
    let second = std::mem::replace(&mut one.part, first);
    assert!(!one.answers(4).contains(&1));
    drop(second);
    assert_eq!(one.group.view(one.now_ms())[1].conns, 0, "the worker has ended");
}

#[test]
fn a_plain_group_shows_exchanges_from_before_a_reload_if_its_servers_are_the_same() {
    let (mut same, mut other) = (
        Group::new("group", weighted(&[1, 1]), Policy::RoundRobin).unwrap(),
        Group::new("group", weighted(&[2, 1]), Policy::RoundRobin).unwrap(),
    );
    let mut world = World::new(Policy::RoundRobin, weighted(&[1, 1]));
    world.hold(1, &none());
    same.adopt(&world.group, world.now_ms());
    other.adopt(&world.group, world.now_ms());
    let conns = |group: &Group| group.view(START_S).iter().map(|view| view.conns).collect::<Vec<_>>();
    assert_eq!((conns(&same), conns(&other)), (vec![1, 0], vec![0, 0]));
}

#[test]
fn the_same_list_keeps_its_turn() {
    let mut world = World::with_zone(Policy::RoundRobin, weighted(&[5, 1, 1]));
    let mut picks = world.answers(3);
    let mut next = Group::new("group", weighted(&[5, 1, 1]), Policy::RoundRobin).unwrap();
    next.share();
    next.adopt(&world.group, world.now_ms());
    world.group = next;
    picks.extend(world.answers(4));
    assert_eq!(picks, [0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn an_address_listed_twice_is_adopted_in_order() {
    let twice = || vec![peer(18081, |_| {}), peer(18081, |_| {})];
    let mut world = World::new(Policy::RoundRobin, twice());
    world.exchange(&none(), |peer| if peer == 0 { Outcome::Failed } else { Outcome::Ok });
    let mut next = Group::new("group", twice(), Policy::RoundRobin).unwrap();
    next.adopt(&world.group, world.now_ms());
    let ejected: Vec<_> = next.view(world.now_ms()).iter().map(|v| v.ejected).collect();
    assert_eq!(ejected, [true, false]);
}

#[test]
fn what_is_no_group() {
    let refused = |peers| Group::new("g", peers, Policy::RoundRobin).map(|_| ()).unwrap_err();
    assert_eq!(refused(vec![]), GroupError::NoPeers);
    assert_eq!(refused(vec![peer(1, |p| p.backup = true)]), GroupError::NoPeers);
    assert_eq!(refused(weighted(&[1, 0])), GroupError::ZeroWeight);
    assert_eq!(refused(weighted(&[MAX_TOTAL_WEIGHT, 1])), GroupError::TooHeavy);
    assert_eq!(refused(weighted(&[u32::MAX, u32::MAX])), GroupError::TooHeavy);
    assert_eq!(refused(vec![Peer::new("a:1"); MAX_PEERS + 1]), GroupError::TooManyPeers);
}
