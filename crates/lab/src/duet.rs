//! Both configurations at once: two edges in one block, each on a host of its own with the same share of CPU, under
//! the same load (Bulej et al., ICPE 2020). A disturbance of the machine affects both at the same moment. So small
//! differences of CPU for a request become visible, which noise between blocks would hide. Times are not compared:
//! each edge waits for the other.

use std::path::Path;

use serde_json::Value;

use crate::ask::{Ask, Side, Stack};
use crate::block::Block;
use crate::said::{Said, say};
use crate::schedule::ComparedSide;
use crate::stack::{Action, Deed, HUB, Host, Process, Spec};

/// The second edge's host.
const TWIN: &str = "twin";
/// The largest part of its share that an edge may use. Beyond it, the two disturb each other.
const USED_MAX: f64 = 0.60;
/// The process that prints the second client's report.
const REPORT: &str = "twin-report";

/// The spec for both at once: the first on the hub, the second on its own host. `dir/twin` has to exist.
pub fn spec(ask: &Ask, first: (&Side, &Stack), second: (&Side, &Stack), dir: &Path, seed: u64) -> Result<Spec, Said> {
    if !first.1.is_near() || !second.1.is_near() {
        return Err(say!(ERR_DUET_ADDRESSES));
    }
    let beside = dir.join(TWIN);
    let (one, other) = (ask.spec(first.0, first.1, dir, seed), ask.spec(second.0, second.1, &beside, seed));
    let moved = |process: &Process| Process { name: twin(&process.name), host: TWIN.to_owned(), ..process.clone() };
    let mut hosts = one.hosts.clone();
    if !hosts.iter().any(|host| host.name == HUB) {
        hosts.push(Host::named(HUB));
    }
    let limit = hosts.iter().find(|host| host.name == HUB).and_then(|host| host.cpus);
    hosts.push(Host { cpus: limit, ..Host::named(TWIN) });
    let client = at_once(&one.client, &other.client);
    let warm = one.warm.as_ref().zip(other.warm.as_ref()).map(|(one, other)| at_once(one, other));
    // A report has many lines, but the keeper reads only the last line that the process prints.
    let script = "tr -d '\\n' < \"$1\"";
    let argv = ["sh", "-c", script, "sh", &beside.join("load.json").display().to_string()].map(str::to_owned).to_vec();
    let errand =
        Process { name: REPORT.to_owned(), host: HUB.to_owned(), argv, is_unlimited: true, ..Process::default() };
    let processes = one.processes.iter().cloned().chain(other.processes.iter().map(moved)).collect();
    let fresh = one.fresh.iter().chain(other.fresh.iter().filter(|dir| !one.fresh.contains(dir))).cloned().collect();
    Ok(Spec {
        hosts,
        processes,
        client,
        warm,
        fresh,
        is_warm_judged: false,
        actions: vec![Action { at_ms: None, deed: Deed::Run(errand) }],
        ..one
    })
}

fn twin(name: &str) -> String {
    format!("{TWIN}-{name}")
}

/// Starts both clients together; ends when both have ended.
fn at_once(one: &Process, other: &Process) -> Process {
    let quoted = |argv: &[String]| {
        argv.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
    };
    let script = format!("ip netns exec {TWIN} {} & {}; wait $!", quoted(&other.argv), quoted(&one.argv));
    Process { argv: vec!["sh".to_owned(), "-c".to_owned(), script], ..one.clone() }
}

/// The two blocks in a keeper's answer: of the first side, which was on the hub, and of the second.
pub fn blocks(answer: &Value, ask: &Ask, pair: usize, arms: (ComparedSide, ComparedSide), attempt: u32) -> Vec<Block> {
    let of = |arm: ComparedSide, name: &str, load: &Value| {
        let mut own = answer.clone();
        own["load"] = load.clone();
        own["usage"]["edge_cpu_s"] = answer["usage"]["processes"][name].clone();
        let mut block = Block::of(&own, pair, arm, attempt, ask.asked());
        block.values.retain(|key, _| key == "cpu" || key == "errors");
        let seconds = answer["usage"]["seconds"].as_f64().unwrap_or(f64::NAN);
        let used = own["usage"]["edge_cpu_s"].as_f64().unwrap_or(f64::NAN) / seconds;
        // Without a quota, the two share the edge's CPUs.
        let share = ask.quota.unwrap_or(ask.cpus.edge.len().max(1) as f64 / 2.0);
        if used.is_nan() || used > share * USED_MAX {
            let (used, most) = (used / share * 100.0, USED_MAX * 100.0);
            block.spoil(say!(DUET_FULL, format!("{used:.0}"), format!("{most:.0}")));
        }
        block
    };
    let (one, other) = arms;
    vec![of(one, "edge", &answer["load"]), of(other, &twin("edge"), &answer["told"][REPORT])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_of_the_two_has_its_own_figures_and_its_share() {
        let load = |answers: u64| {
            json!({
                "aggregate": {"counters": {"http.requests": answers, "http.codes.200": answers}},
                "weir": {"started_ms": 0, "ended_ms": 10_000, "incomplete": [],
                    "response": {"count": answers, "p50": 1.0, "p95": 2.0}, "generator": {"worker_cpu": [0.1], "limits": []}},
            })
        };
        let answer = json!({
            "load": load(4_000), "told": {REPORT: load(4_000)},
            "usage": {
                "seconds": 10.0, "processes": {"edge": 1.0, "twin-edge": 2.0}, "foreign": 0.0, "steal": 0.0, "client_core": 0.1,
            },
        });
        let ask = Ask { quota: Some(0.4), ..crate::ask::tests::ask() };
        let found = blocks(&answer, &ask, 3, (ComparedSide::After, ComparedSide::Before), 0);
        let cpu: Vec<f64> = found.iter().filter_map(|block| block.values.get("cpu").copied()).collect();
        assert_eq!(cpu, [250.0, 500.0]);
        assert!(found.iter().all(|block| block.values.keys().eq(["cpu", "errors"])), "times are nobody's: {found:?}");
        assert_eq!(
            found.iter().map(|block| block.arm).collect::<Vec<_>>(),
            [ComparedSide::After, ComparedSide::Before]
        );
        assert_eq!(found.iter().map(|block| block.spoiled.len()).collect::<Vec<_>>(), [0, 0], "{found:?}");
        let tight = Ask { quota: Some(0.3), ..ask };
        let spoiled = blocks(&answer, &tight, 3, (ComparedSide::After, ComparedSide::Before), 0);
        assert!(spoiled.iter().map(|block| block.spoiled.len()).eq([0, 1]), "{spoiled:?}");
    }
}
