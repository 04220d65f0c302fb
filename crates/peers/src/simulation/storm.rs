//! Random groups with random exchanges: checks the invariants.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

const SEEDS: u64 = 300;
const STEPS: usize = 400;
/// The number of exchanges that a run keeps in progress.
const OPEN: usize = 12;

const OUTCOMES: [Outcome; 4] = [Outcome::Ok, Outcome::Failed, Outcome::Next, Outcome::Abandoned];

struct Exchange {
    selection: Selection,
    key: Vec<u8>,
    asked: HashSet<usize>,
    held: Option<usize>,
}

#[test]
fn invariants_hold_for_every_seed() {
    for seed in 0..SEEDS {
        if let Err(broken) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(broken);
        }
    }
}

fn run(seed: u64) {
    let mut dice = Prng::new(seed);
    let mut world = World::new(any_policy(&mut dice), any_peers(&mut dice));
    world.prng = Prng::new(seed ^ 0xa5a5);
    let mut open: Vec<Exchange> = Vec::new();
    for _ in 0..STEPS {
        world.now_s += u64::from(dice.below(8) / 4);
        if open.len() < OPEN && dice.below(2) == 0 {
            open.push(Exchange {
                selection: world.group.begin(0),
                key: dice.below(50).to_string().into_bytes(),
                asked: HashSet::new(),
                held: None,
            });
        }
        if open.is_empty() {
            continue;
        }
        let at = dice.below(open.len() as u32) as usize;
        let outcome = OUTCOMES[dice.below(4) as usize];
        if step(&mut world, &mut open[at], outcome) {
            open.swap_remove(at);
        }
        check(&world, &open);
    }
    for exchange in &mut open {
        world.release(&mut exchange.selection, Outcome::Ok);
    }
    assert!(world.group.view(world.now_ms()).iter().all(|v| v.conns == 0));
}

/// Advances one exchange by a pick or a release; true if it is over.
fn step(world: &mut World, exchange: &mut Exchange, outcome: Outcome) -> bool {
    if let Some(held) = exchange.held.take() {
        let ejects = world.release(&mut exchange.selection, outcome);
        assert!(!ejects || outcome == Outcome::Failed);
        assert!(!ejects || world.group.view(world.now_ms())[held].ejected);
        return outcome == Outcome::Ok || exchange.selection.tries() == 0;
    }
    let first = exchange.asked.is_empty();
    let before = world.group.view(world.now_ms());
    let affinity = Affinity { key: &exchange.key, client: None, ..Affinity::default() };
    let picked = world.pick(&mut exchange.selection, &affinity);
    let alone = before.len() == 1;
    let usable = |index: usize| {
        let peer = world.group.peer(index).unwrap();
        let full = peer.max_conns != 0 && before[index].conns >= peer.max_conns;
        !peer.down && !full && !before[index].ejected
    };
    match picked {
        Err(NoLivePeers) => {
            let idle: Vec<_> =
                (0..before.len()).filter(|&index| usable(index) && !exchange.asked.contains(&index)).collect();
            // An exchange that moved to the backups does not return to the primaries.
            let over = exchange.selection.on_backup && !first;
            assert!(idle.is_empty() || over, "{idle:?} could serve");
            true
        }
        Ok(picked) => {
            assert!(exchange.asked.insert(picked.peer), "asked twice");
            assert_eq!(usable(picked.peer), !picked.last_resort);
            assert!(!picked.last_resort || (first && !alone));
            exchange.held = Some(picked.peer);
            false
        }
    }
}

fn check(world: &World, open: &[Exchange]) {
    for (index, (view, peer)) in world.group.view(world.now_ms()).iter().zip(world.group.peers()).enumerate() {
        let holders = open.iter().filter(|e| e.held == Some(index)).count();
        assert_eq!(view.conns as usize, holders);
        assert!(peer.max_conns == 0 || view.conns <= peer.max_conns);
        let weights = world.group.effective_weights(&world.part);
        assert!(weights.get(index).is_none_or(|weight| (0..=i64::from(peer.weight)).contains(weight)));
    }
}

fn any_policy(dice: &mut Prng) -> Policy {
    [
        Policy::RoundRobin,
        Policy::LeastConn,
        Policy::IpHash,
        Policy::Hash { consistent: false },
        Policy::Hash { consistent: true },
        Policy::Random { two: None },
        Policy::Random { two: Some(Better::LeastConn) },
    ][dice.below(7) as usize]
}

fn any_peers(dice: &mut Prng) -> Vec<Peer> {
    // Sometimes more than one word of tried bits.
    let most = if dice.below(10) == 0 { 90 } else { 6 };
    let count = 1 + dice.below(most);
    (0..count)
        .map(|number| {
            peer(18000 + number as u16, |peer| {
                peer.weight = 1 + dice.below(5);
                peer.max_conns = dice.below(4);
                peer.max_fails = dice.below(4);
                peer.fail_timeout_s = u64::from(dice.below(12));
                peer.down = dice.below(6) == 0;
                peer.backup = number > 0 && dice.below(4) == 0;
            })
        })
        .collect()
}

/// Four threads pick and release at the same time; the limit holds at every moment, and every count is zero at the
/// end.
#[test]
fn threads_share_one_group() {
    const LIMIT: u32 = 3;
    for peers in [1, 3] {
        let mut list = weighted(&vec![1; peers]);
        for peer in &mut list {
            peer.max_conns = LIMIT;
            peer.max_fails = 0;
        }
        let group = Group::new("g", list, Policy::LeastConn).unwrap();
        let inside: Vec<_> = (0..peers).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (group, inside) = (&group, &inside);
                scope.spawn(move || {
                    let (mut prng, part) = (Prng::new(seed), group.part());
                    for _ in 0..2000 {
                        let mut selection = group.begin(0);
                        let picked =
                            group.pick(&part, &mut selection, &Affinity::default(), &mut |n| prng.below(n), START_S);
                        if let Ok(picked) = picked {
                            let now = inside[picked.peer].fetch_add(1, Ordering::SeqCst) + 1;
                            assert!(now <= LIMIT);
                            std::thread::yield_now();
                            inside[picked.peer].fetch_sub(1, Ordering::SeqCst);
                            group.release(&part, &mut selection, Outcome::Ok, START_S);
                        }
                    }
                });
            }
        });
        assert!(group.view(START_S).iter().all(|v| v.conns == 0));
    }
}
