//! The choice of peers while all of them are healthy.

use super::*;

const HASH: Policy = Policy::Hash { consistent: false };
const RING: Policy = Policy::Hash { consistent: true };

#[test]
fn smooth_weighted_round_robin() {
    let cases: [(&[u32], &[usize]); 4] = [
        (&[5, 1, 1], &[0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]),
        (&[1, 1, 1], &[0, 1, 2, 0, 1, 2]),
        (&[4, 2, 1], &[0, 1, 0, 2, 0, 1, 0, 0, 1]),
        // Observed.
        (&[5, 2, 1], &[0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 0, 0, 2, 0, 1, 0]),
    ];
    for (weights, expected) in cases {
        for policy in [Policy::RoundRobin, Policy::LeastConn] {
            let mut world = World::new(policy, weighted(weights));
            let picks = world.answers(expected.len());
            assert_eq!(picks, expected, "{policy:?} {weights:?}");
        }
    }
}

#[test]
fn hash_observed() {
    let even = weighted(&[1, 1, 1]);
    let cases: [(Policy, Vec<Peer>, [usize; 30]); 6] = [
        (
            HASH,
            even.clone(),
            [1, 2, 1, 0, 1, 0, 0, 2, 2, 0, 2, 0, 2, 2, 1, 2, 0, 1, 1, 2, 1, 1, 2, 0, 1, 1, 1, 1, 2, 0],
        ),
        (
            HASH,
            weighted(&[2, 3, 1]),
            [1, 2, 1, 0, 0, 0, 1, 1, 2, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 2, 1, 1, 0, 1, 0, 1, 1],
        ),
        (
            HASH,
            down(even.clone(), 1),
            [0, 2, 0, 0, 2, 0, 0, 2, 2, 0, 2, 0, 2, 2, 0, 2, 0, 2, 0, 2, 2, 0, 2, 0, 0, 2, 2, 0, 2, 0],
        ),
        (
            RING,
            even.clone(),
            [2, 0, 0, 1, 0, 2, 0, 1, 1, 0, 0, 0, 2, 1, 0, 0, 2, 1, 2, 1, 1, 0, 1, 1, 1, 2, 1, 0, 1, 0],
        ),
        (
            RING,
            weighted(&[1, 1, 10]),
            [2, 2, 2, 1, 2, 2, 0, 2, 2, 2, 2, 2, 2, 2, 0, 2, 2, 1, 2, 1, 2, 0, 1, 2, 2, 2, 2, 2, 2, 0],
        ),
        (
            RING,
            down(even, 1),
            [2, 0, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 2, 2, 0, 0, 2, 0, 2, 2, 2, 0, 0, 0, 2, 2, 0, 0, 0, 0],
        ),
    ];
    for (policy, peers, expected) in cases {
        let mut world = World::new(policy, peers.clone());
        let picks: Vec<_> = (1..=30)
            .map(|key: u32| {
                world.answer(&Affinity { key: key.to_string().as_bytes(), client: None, ..Affinity::default() })
            })
            .collect();
        assert_eq!(picks, expected, "{policy:?} {peers:?}");
    }
}

#[test]
fn ip_hash_observed() {
    let peers = weighted(&[1, 2, 1]);
    let v4 = |last: u8| IpAddr::from([127, 0, last, 2]);
    let v6 = |last: u8| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)]);

    // One world per configuration: misses use its round robin.
    let mut world = World::new(Policy::IpHash, peers.clone());
    let picks: Vec<_> = (1..=30).map(|n| world.answer(&client(v4(n)))).collect();
    let four = [1, 1, 2, 0];
    let expected: Vec<_> = four.into_iter().cycle().take(30).collect();
    assert_eq!(picks, expected);
    let picks: Vec<_> = (1..=20).map(|n| world.answer(&client(v6(n)))).collect();
    let four = [0, 1, 1, 2];
    let expected: Vec<_> = four.into_iter().cycle().take(20).collect();
    assert_eq!(picks, expected);

    let mut world = World::new(Policy::IpHash, down(peers, 1));
    let picks: Vec<_> = (1..=30).map(|n| world.answer(&client(v4(n)))).collect();
    let expected = [2, 2, 2, 0, 2, 2, 2, 0, 2, 2, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 2, 2, 0, 0, 0];
    assert_eq!(picks, expected);
    let picks: Vec<_> = (1..=20).map(|n| world.answer(&client(v6(n)))).collect();
    let expected = [0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 2, 2, 0, 2, 0, 2, 0, 0, 0, 2];
    assert_eq!(picks, expected);
}

#[test]
fn ip_hash_shares_thirty_networks_evenly() {
    for peers in [1, 2, 3] {
        let mut world = World::new(Policy::IpHash, weighted(&vec![1; peers]));
        let picks: Vec<_> = (1..=30).map(|n| world.answer(&client(IpAddr::from([127, 0, n, 2])))).collect();
        assert_eq!(counts(&picks, peers), vec![30 / peers; peers]);
        let picks: Vec<_> = (1..=30).map(|n| world.answer(&client(IpAddr::from([0, 0, 0, 0, 0, 0, 0, n])))).collect();
        assert_eq!(counts(&picks, peers), vec![30 / peers; peers], "IPv6");
    }
}

#[test]
fn an_empty_key_takes_turns() {
    for policy in [HASH, RING] {
        let mut world = World::new(policy, weighted(&[1, 1, 1]));
        assert_eq!(world.answers(6), [0, 1, 2, 0, 1, 2], "{policy:?}");
    }
}

#[test]
fn a_leaving_server_moves_only_its_own_keys() {
    let all = weighted(&[1, 1, 10]);
    let mut fewer = all.clone();
    fewer.remove(1);
    let mut before = World::new(RING, all);
    let mut after = World::new(RING, fewer);
    let mut moved = 0;
    for key in 0..500u32 {
        let text = key.to_string();
        let affinity = Affinity { key: text.as_bytes(), client: None, ..Affinity::default() };
        let old = before.answer(&affinity);
        let new = [0, 2][after.answer(&affinity)];
        if old == 1 {
            moved += 1;
        } else {
            assert_eq!(old, new, "key {key}");
        }
    }
    assert!((1..100).contains(&moved), "{moved} keys of 500 moved");
}

#[test]
fn addresses_of_one_ring_server_take_turns() {
    let mut peers = weighted(&[1, 1]);
    for peer in &mut peers {
        peer.server = "app:80".into();
    }
    let mut world = World::new(RING, peers);
    let affinity = Affinity { key: b"one key", client: None, ..Affinity::default() };
    let picks: Vec<_> = (0..4).map(|_| world.answer(&affinity)).collect();
    assert_eq!(picks, [0, 1, 0, 1]);
}

#[test]
fn least_conn_avoids_the_busy_peer() {
    let mut world = World::new(Policy::LeastConn, weighted(&[1, 1]));
    assert_eq!(counts(&world.answers(10), 2), [5, 5]);
    assert_eq!(world.hold(1, &Affinity::default()), [Some(0)]);
    assert_eq!(world.answers(10), [1; 10]);
}

#[test]
fn least_conn_divides_by_weight() {
    let mut world = World::new(Policy::LeastConn, weighted(&[1, 3]));
    let held = world.hold(8, &Affinity::default());
    let held: Vec<_> = held.into_iter().flatten().collect();
    assert_eq!(counts(&held, 2), [2, 6]);
}

#[test]
fn random_follows_the_weights() {
    const DRAWS: usize = 12_000;
    for seed in 1..=5 {
        let mut world = World::new(Policy::Random { two: None }, weighted(&[1, 2, 3]));
        world.prng = Prng::new(seed);
        let shares = counts(&world.answers(DRAWS), 3);
        for (share, weight) in shares.iter().zip(1..) {
            let fair = DRAWS * weight / 6;
            // Five standard deviations of a fair draw are within 280.
            assert!(share.abs_diff(fair) < 280, "seed {seed}: {shares:?}");
        }
    }
}

#[test]
fn random_two_takes_the_less_loaded() {
    for seed in 0..50 {
        let mut world = World::new(Policy::Random { two: Some(Better::LeastConn) }, weighted(&[1, 2]));
        world.prng = Prng::new(seed);
        let first = world.hold(1, &Affinity::default());
        let picks = world.answers(1);
        if first == [Some(0)] {
            assert_eq!(picks, [1], "seed {seed}");
        }
        let mut world = World::new(Policy::Random { two: Some(Better::LeastConn) }, weighted(&[1, 1]));
        world.prng = Prng::new(seed);
        let held = world.hold(6, &Affinity::default());
        let held: Vec<_> = held.into_iter().flatten().collect();
        assert_eq!(counts(&held, 2), [3, 3], "seed {seed}");
    }
}

#[test]
fn random_sources_out_of_bound_are_brought_back() {
    let group = Group::new("g", weighted(&[1, 2]), Policy::Random { two: None }).unwrap();
    let mut selection = group.begin(0);
    let picked = group.pick(&group.part(), &mut selection, &Affinity::default(), &mut |_| u32::MAX, START_S);
    assert!(picked.is_ok());
}
