//! The table of `docs/why/015-judge.md`: `cargo run --release -p weir-judge --example table`. It takes half a minute.

use forecast::{CLIENTS_MAX, ShareStep};
use horizon::LOOKS;
use simulation::{NOTHING, Planted, Population, canary, rolled_back};
use weir_judge::judge::Judgement;
use weir_judge::{forecast, horizon, judge, latencies, outcome};

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
        planned(share);
        announced(share);
    }
}

/// Canaries with five planned looks, and bets that have as many clients.
fn planned(share: f64) {
    for most in [2_000, 5_000, 10_000] {
        let planned: Vec<u64> = (1..=u64::from(LOOKS)).map(|look| most / u64::from(LOOKS) * look).collect();
        let bounds = horizon::planned(&planned);
        for (name, planted, count) in [
            ("nothing", NOTHING, 1_000),
            ("10 times the failures", Planted { failing: 10.0, ..NOTHING }, 200),
            ("10 % slower", Planted { slower: 1.1, ..NOTHING }, 200),
            ("30 % slower", Planted { slower: 1.3, ..NOTHING }, 200),
            ("50 % slower", Planted { slower: 1.5, ..NOTHING }, 200),
        ] {
            let told = |runs: Vec<(Judgement, u64, u64)>| {
                let count = |is: fn(&Judgement) -> bool| {
                    let mut after: Vec<u64> = runs.iter().filter(|run| is(&run.0)).map(|run| run.1).collect();
                    after.sort_unstable();
                    format!(
                        "{} (median after {:?})",
                        after.len(),
                        after.get(after.len() / 2).copied().unwrap_or_default()
                    )
                };
                let (harm, no_harm) =
                    (count(|one| matches!(one, Judgement::Harm(_))), count(|one| *one == Judgement::NoHarm));
                format!("{harm} rolled back, {no_harm} promoted")
            };
            let looks =
                told((0..count).map(|seed| Population::new(seed).canary_with_looks(share, planted, &bounds)).collect());
            let bets = told((0..count).map(|seed| canary(seed, share, planted, most)).collect());
            println!("  {most} planned, {name}, of {count}: looks: {looks}; bets: {bets}");
        }
    }
}

/// Looks at 300 and 2,000 clients, each with a canary of the same clients after it: whether it is decided within the announced
/// number.
fn announced(share: f64) {
    let steps = [ShareStep { share, clients: u64::MAX }];
    let questions = [
        ("no harm", forecast::PlantedHarm::Nothing, NOTHING),
        ("10 times the failures", forecast::PlantedHarm::Failing(0.0), Planted { failing: 10.0, ..NOTHING }),
        ("10 % slower", forecast::PlantedHarm::Slower(1.1), Planted { slower: 1.1, ..NOTHING }),
        ("30 % slower", forecast::PlantedHarm::Slower(1.3), Planted { slower: 1.3, ..NOTHING }),
    ];
    for clients in [300, 2_000] {
        for (name, asked, planted) in questions {
            let (mut numbers, mut within) = (Vec::new(), 0);
            for seed in 0..ALL_LOOKS {
                let mut population = Population::new(seed);
                let (sample, known) = population.look(clients);
                let asked = match asked {
                    forecast::PlantedHarm::Failing(_) => forecast::PlantedHarm::Failing(sample.ten_times()),
                    asked => asked,
                };
                let Some(number) = sample.clients_until(asked, &known, &steps, seed) else { continue };
                numbers.push(number);
                let (judgement, after, _) = population.canary(known, share, planted, CLIENTS_MAX);
                let is_decided = (judgement == Judgement::NoHarm) == (planted.slower * planted.failing == 1.0);
                within += u64::from(is_decided && judgement != Judgement::Undecided && after <= number);
            }
            numbers.sort_unstable();
            println!(
                "  a look at {clients}: {name}: announced in {} of {ALL_LOOKS}, median {:?}; within it in {within}",
                numbers.len(),
                numbers.get(numbers.len() / 2)
            );
        }
    }
}

/// Looks at the traffic of each kind.
const ALL_LOOKS: u64 = 100;
