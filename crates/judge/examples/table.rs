//! The table of `docs/why/015-judge.md`: `cargo run --release -p weir-judge --example table`. It takes half a minute.

use simulation::{NOTHING, Planted, canary, rolled_back};
use weir_judge::judge::Judgement;
use weir_judge::{judge, outcome};

#[path = "../src/simulation.rs"]
mod simulation;

fn main() {
    for share in [0.1, 0.5] {
        let alarms = rolled_back(0..1_000, share, NOTHING, 6_000).len();
        println!("share {share}: {alarms} of 1000 canaries of nothing are rolled back");
        for (name, planted) in [
            ("10 % slower", Planted { slower: 1.1, ..NOTHING }),
            ("30 % slower", Planted { slower: 1.3, ..NOTHING }),
            ("10 times the failures", Planted { failing: 10.0, ..NOTHING }),
        ] {
            let mut found = rolled_back(0..200, share, planted, 6_000);
            found.sort_unstable();
            let (after, harmed) = found.get(found.len() / 2).copied().unwrap_or_default();
            println!("  {name}: {} of 200, median after {after} clients, {harmed} failed", found.len());
        }
        let runs = (0..200).map(|seed| canary(seed, share, NOTHING, 20_000));
        let mut promoted: Vec<u64> =
            runs.filter(|(judgement, ..)| *judgement == Judgement::NoHarm).map(|(_, after, _)| after).collect();
        promoted.sort_unstable();
        println!("  nothing: {} of 200 promoted, median after {:?}", promoted.len(), promoted.get(promoted.len() / 2));
        let harmful = Planted { slower: 1.5, ..NOTHING };
        let wrong = (0..200).filter(|seed| canary(*seed, share, harmful, 20_000).0 == Judgement::NoHarm).count();
        println!("  50 % slower: {wrong} of 200 promoted");
    }
}
