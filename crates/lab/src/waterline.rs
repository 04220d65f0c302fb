//! The limits of a block and their highest use: of hosts, processes, queues, ports, links.
//!
//! Only facts for a reader. `why` draws the conclusions.

use serde_json::{Value, json};

use crate::said::{Said, say};
use crate::stack::Host;
use crate::watch::{Tick, Watched};

/// Rows of a block that are kept: those closest to their limits.
const KEPT_MAX: usize = 8;
/// The window for a rate. A shorter one would show the bursts within a quota's period.
const WINDOW_MS: u64 = 900;

/// A limit and its highest use.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    what: Said,
    most: f64,
    limit: f64,
    unit: &'static str,
}

/// The rows of a watched block, from its observations and the limits of its hosts: `what`, `most`, `limit`, `unit`,
/// the fullest first.
pub fn of(watched: &Watched, usage: &Value, hosts: &[Host]) -> Vec<Value> {
    let mut rows = quotas(usage, hosts);
    rows.extend(queues(watched));
    rows.extend(ports(watched));
    rows.extend(processes(watched));
    rows.extend(links(watched, hosts));
    json(rows)
}

/// The rows of a comparison: the CPU of the edge and of the load generator, and the CPU that others took. Each is the
/// highest value of the used blocks.
pub fn of_blocks(run: &Value) -> Vec<Value> {
    let blocks = run["blocks"].as_array().into_iter().flatten();
    let used: Vec<&Value> = blocks.filter(|block| block["spoiled"].as_array().is_none_or(Vec::is_empty)).collect();
    let cpus = run["asked"]["cpus"]["edge"].as_array().map_or(0, Vec::len) as f64;
    let most =
        |of: &dyn Fn(&Value) -> Option<f64>| used.iter().filter_map(|block| of(&block["usage"])).reduce(f64::max);
    let share = |name: &'static str| most(&|usage| usage[name].as_f64());
    let edge = most(&|usage| Some(usage["edge_cpu_s"].as_f64()? / usage["seconds"].as_f64()?));
    let row = |what: Said, most: Option<f64>, limit: f64, unit| {
        Some(Row { what, most: most?, limit, unit }).filter(|row| row.limit > 0.0)
    };
    let rows = [
        row(say!(EDGE_CPUS), edge, cpus, "CPU"),
        row(say!(GENERATOR_CPU), share("client_core"), 1.0, "CPU"),
        row(say!(OTHER_WORK), share("foreign"), crate::block::FOREIGN_MAX, "of them"),
        row(say!(HOST_MAY_TAKE), share("steal"), crate::block::STEAL_MAX, "of them"),
    ];
    json(rows.into_iter().flatten().collect())
}

fn json(mut rows: Vec<Row>) -> Vec<Value> {
    let share = |row: &Row| row.most / row.limit;
    rows.retain(|row| row.limit > 0.0 && row.most.is_finite());
    rows.sort_by(|one, other| share(other).total_cmp(&share(one)));
    let kept = rows.into_iter().take(KEPT_MAX);
    kept.map(|row| json!({"what": row.what.en(), "what_said": row.what, "most": row.most, "limit": row.limit, "unit": row.unit})).collect()
}

/// CPU and memory under a control group's limits.
fn quotas(usage: &Value, hosts: &[Host]) -> Vec<Row> {
    let seconds = usage["seconds"].as_f64().unwrap_or(f64::NAN);
    let one = |host: &Host| {
        let limit = host.cpus.or(host.credits.as_ref().map(|credits| credits.cpus))?;
        let most = usage["hosts"][&host.name]["cpu_s"].as_f64()? / seconds;
        Some(Row { what: format!("CPU of host {}", host.name).into(), most, limit, unit: "CPU" })
    };
    hosts.iter().filter_map(one).collect()
}

/// Connections in accept queues.
fn queues(watched: &Watched) -> Vec<Row> {
    let waited = |address: &str| {
        let all = watched.ticks.iter().flat_map(|tick| &tick.hosts).filter_map(|host| host.waiting.get(address));
        all.max().copied().unwrap_or(0)
    };
    let one = |(address, limit): (&String, &u64)| Row {
        what: format!("accept queue of {address}").into(),
        most: waited(address) as f64,
        limit: *limit as f64,
        unit: "",
    };
    watched.backlogs.iter().map(one).collect()
}

/// Local ports towards one address, including ports in TIME_WAIT.
fn ports(watched: &Watched) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for host in watched.ticks.iter().flat_map(|tick| &tick.hosts) {
        let Some(limit) = watched.ports.get(&host.name) else { continue };
        // `held` includes the ports in TIME_WAIT.
        for (address, (held, _)) in &host.held {
            let (what, most) = (Said::from(format!("ports of {} to {address}", host.name)), *held as f64);
            match rows.iter_mut().find(|row| row.what == what) {
                Some(row) => row.most = row.most.max(most),
                None => rows.push(Row { what, most, limit: *limit as f64, unit: "" }),
            }
        }
    }
    rows
}

/// Descriptors of a process, and its busiest thread, which can use at most one CPU.
fn processes(watched: &Watched) -> Vec<Row> {
    let mut names: Vec<&str> =
        watched.ticks.iter().flat_map(|tick| &tick.processes).map(|it| it.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut rows = Vec::new();
    for name in names {
        let of = || watched.ticks.iter().flat_map(|tick| &tick.processes).filter(|it| it.name == name);
        if let Some(most) = of().filter(|it| it.fds_max > 0).max_by_key(|it| it.fds) {
            let what = format!("descriptors of {name}").into();
            rows.push(Row { what, most: most.fds as f64, limit: most.fds_max as f64, unit: "" });
        }
        let busiest = rate(&watched.ticks, &|tick, total| {
            let process = tick.processes.iter().find(|it| it.name == name);
            for thread in process.into_iter().flat_map(|it| &it.threads) {
                total(u64::from(thread.id), thread.ran_ns as f64 / 1e6);
            }
        });
        rows.push(Row { what: format!("busiest thread of {name}").into(), most: busiest, limit: 1.0, unit: "CPU" });
    }
    rows
}

/// The rate of a host's link, in the busier direction.
fn links(watched: &Watched, hosts: &[Host]) -> Vec<Row> {
    let one = |host: &Host| {
        let limit = host.rate_kbit? as f64;
        // Bytes a millisecond are kilobytes a second.
        let most = 8.0
            * rate(&watched.ticks, &|tick, total| {
                let there = tick.hosts.iter().find(|it| it.name == host.name);
                for (received, sent) in there.into_iter().filter_map(|it| it.devices.get("eth0")) {
                    total(0, *received as f64);
                    total(1, *sent as f64);
                }
            });
        Some(Row { what: format!("link of {}", host.name).into(), most, limit, unit: "kbit/s" })
    };
    hosts.iter().filter_map(one).collect()
}

/// Passes each total of a tick to the callback, with an id.
type Totals<'a> = &'a dyn Fn(&Tick, &mut dyn FnMut(u64, f64));

/// The largest increase of any of these totals per millisecond, over windows of [`WINDOW_MS`], or over all there is.
fn rate(ticks: &[Tick], totals: Totals<'_>) -> f64 {
    let list = |tick: &Tick| {
        let mut list: Vec<(u64, f64)> = Vec::new();
        totals(tick, &mut |of, value| list.push((of, value)));
        (tick.at_ms, list)
    };
    let all: Vec<(u64, Vec<(u64, f64)>)> = ticks.iter().map(list).collect();
    let (mut most, mut first) = (0.0f64, 0);
    for (at, now) in &all {
        while all.get(first + 1).is_some_and(|(next, _)| at.saturating_sub(*next) >= WINDOW_MS) {
            first += 1;
        }
        let Some((began, then)) = all.get(first).filter(|(began, _)| began < at) else { continue };
        // Shorter windows count only if there are no longer ones.
        if at - began < WINDOW_MS && all.last().is_some_and(|(last, _)| *last >= WINDOW_MS) {
            continue;
        }
        for (of, value) in now {
            let before = then.iter().find(|(known, _)| known == of).map_or(*value, |(_, value)| *value);
            most = most.max((value - before) / (at - began) as f64);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Value {
        let tick = |at: u64, ran: u64, sent: u64, waiting: u64| {
            json!({
                "at_ms": at,
                "processes": [{"name": "edge", "fds": 30 + at / 100, "fds_max": 100, "threads": [{"id": 7, "ran_ns": ran * 1_000_000}]}],
                "hosts": [
                    {"name": "edge", "waiting": {"0.0.0.0:80": waiting}, "held": {"10.0.0.1:3000": [90 + waiting, 90]}},
                    {"name": "client", "devices": {"eth0": [0, sent], "lo": [0, 9_000_000]}},
                ],
            })
        };
        json!({
            "usage": {"seconds": 2.0, "hosts": {"edge": {"cpu_s": 0.704}}},
            "watched": {
                "ticks": [tick(0, 0, 0, 1), tick(1000, 500, 100_000, 7), tick(2000, 1400, 150_000, 2)],
                "backlogs": {"0.0.0.0:80": 8}, "ports": {"edge": 100},
            },
        })
    }

    #[test]
    fn limits_stand_beside_their_use_the_fullest_first() {
        let hosts =
            [Host { cpus: Some(0.4), ..Host::named("edge") }, Host { rate_kbit: Some(1000), ..Host::named("client") }];
        let watched = serde_json::from_value(answer()["watched"].clone()).unwrap_or_default();
        let rows = of(&watched, &answer()["usage"], &hosts);
        let text = |row: &Value| {
            format!("{} {:.2} of {} {}", row["what"], row["most"].as_f64().unwrap_or(0.0), row["limit"], row["unit"])
        };
        let text: Vec<String> = rows.iter().map(text).collect();
        let expect = [
            "\"ports of edge to 10.0.0.1:3000\" 97.00 of 100.0 \"\"",
            "\"busiest thread of edge\" 0.90 of 1.0 \"CPU\"",
            "\"CPU of host edge\" 0.35 of 0.4 \"CPU\"",
            "\"accept queue of 0.0.0.0:80\" 7.00 of 8.0 \"\"",
            "\"link of client\" 800.00 of 1000.0 \"kbit/s\"",
            "\"descriptors of edge\" 50.00 of 100.0 \"\"",
        ];
        assert_eq!(text, expect);
        assert_eq!(of(&Watched::default(), &json!({}), &[]), Vec::<Value>::new());
    }

    #[test]
    fn compared_blocks_have_the_most_of_those_that_count() {
        let block = |cpu: f64, spoiled: &[&str]| json!({"spoiled": spoiled, "usage": {"edge_cpu_s": cpu, "seconds": 10.0, "client_core": 0.5, "foreign": 0.01, "steal": 0.0}});
        let run = json!({"asked": {"cpus": {"edge": [0, 1]}}, "blocks": [block(12.0, &[]), block(15.0, &[]), block(19.0, &["late"])]});
        let rows = of_blocks(&run);
        assert_eq!(
            (&rows[0]["what"], &rows[0]["most"], &rows[0]["limit"]),
            (&json!("the edge's CPUs"), &json!(1.5), &json!(2.0))
        );
        assert_eq!(rows.len(), 4);
        assert!(of_blocks(&Value::Null).is_empty());
    }
}
