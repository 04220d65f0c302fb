//! Groups in virtual time with simulated origins: pick, release and retry together, as exchanges use them one after
//! the other.
//!
//! Lists of picks marked as observed are nginx 1.22.1's answers on loopback with the same configuration and keys.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod failure;
mod spread;
mod storm;
mod times;

use std::net::IpAddr;

use crate::balance::{Affinity, Better, Policy, Prng, Until};
use crate::group::{Group, NoLivePeers, Outcome, Picked, WorkerPart};
use crate::peer::Peer;
use crate::selection::Selection;

/// Any second will do, if every window of a fresh peer is over by then.
const START_S: u64 = 1_000_000;

/// A group as one worker sees it, its clock and its random source.
struct World {
    group: Group,
    part: WorkerPart,
    now_s: u64,
    /// Milliseconds of the current second.
    ms: u64,
    prng: Prng,
}

impl World {
    fn new(policy: Policy, peers: Vec<Peer>) -> Self {
        World::of(Group::new("group", peers, policy).unwrap())
    }

    /// The same with a `zone`.
    fn with_zone(policy: Policy, peers: Vec<Peer>) -> Self {
        let mut group = Group::new("group", peers, policy).unwrap();
        group.share();
        World::of(group)
    }

    fn of(group: Group) -> Self {
        Self { part: group.part(), group, now_s: START_S, ms: 0, prng: Prng::new(1) }
    }

    fn now_ms(&self) -> u64 {
        self.now_s * 1000 + self.ms
    }

    /// Lets time pass.
    fn wait(&mut self, ms: u64) {
        self.ms += ms;
        self.now_s += self.ms / 1000;
        self.ms %= 1000;
    }

    fn pick(&mut self, selection: &mut Selection, affinity: &Affinity<'_>) -> Result<Picked, NoLivePeers> {
        let (now_ms, prng) = (self.now_ms(), &mut self.prng);
        self.group.pick(&self.part, selection, affinity, &mut |n| prng.below(n), now_ms)
    }

    fn release(&self, selection: &mut Selection, outcome: Outcome) -> bool {
        self.group.release(&self.part, selection, outcome, self.now_ms())
    }

    /// Runs one exchange until a peer answers or none is left; returns the peers asked in order, and `true` if the
    /// last one answered.
    fn exchange(&mut self, affinity: &Affinity<'_>, mut origin: impl FnMut(usize) -> Outcome) -> (Vec<usize>, bool) {
        let mut selection = self.group.begin(0);
        let mut asked = Vec::new();
        while let Ok(picked) = self.pick(&mut selection, affinity) {
            asked.push(picked.peer);
            let outcome = origin(picked.peer);
            self.release(&mut selection, outcome);
            if outcome == Outcome::Ok {
                return (asked, true);
            }
            if selection.tries() == 0 {
                break;
            }
        }
        (asked, false)
    }

    /// The peers that answer `count` exchanges if all peers are healthy.
    fn answers(&mut self, count: usize) -> Vec<usize> {
        (0..count).map(|_| self.answer(&Affinity::default())).collect()
    }

    fn answer(&mut self, affinity: &Affinity<'_>) -> usize {
        let (asked, answered) = self.exchange(affinity, |_| Outcome::Ok);
        assert!(answered, "nobody answered; asked {asked:?}");
        asked[asked.len() - 1]
    }

    /// Begins `count` exchanges that never end; returns the peer of each, if any.
    fn hold(&mut self, count: usize, affinity: &Affinity<'_>) -> Vec<Option<usize>> {
        (0..count)
            .map(|_| {
                let mut selection = self.group.begin(0);
                self.pick(&mut selection, affinity).ok().map(|p| p.peer)
            })
            .collect()
    }
}

/// A peer on `127.0.0.1`, changed by `change`.
fn peer(port: u16, change: impl FnOnce(&mut Peer)) -> Peer {
    let mut peer = Peer::new(format!("127.0.0.1:{port}"));
    change(&mut peer);
    peer
}

/// Peers on ports from 18081 on, with these weights.
fn weighted(weights: &[u32]) -> Vec<Peer> {
    weights.iter().zip(18081..).map(|(&weight, port)| peer(port, |p| p.weight = weight)).collect()
}

fn down(mut peers: Vec<Peer>, index: usize) -> Vec<Peer> {
    peers[index].down = true;
    peers
}

fn client(address: IpAddr) -> Affinity<'static> {
    Affinity { client: Some(address), ..Affinity::default() }
}

fn counts(picks: &[usize], peers: usize) -> Vec<usize> {
    (0..peers).map(|peer| picks.iter().filter(|&&pick| pick == peer).count()).collect()
}
