//! The values of a block that could not be read. Their counts are zero, which would look as if nothing had happened.

use serde_json::Value;

use super::known::KnownBlock;
use super::processes;
use super::signals::{ProcessSignals, Role};
use crate::said::{Said, Text, say};
use crate::texts;
use crate::watch::{Account, Tick, Watched};

/// Largest share of readings of the edge's account that may fail: a loaded edge is busy.
const LOOKS_MISSED: f64 = 0.5;
/// Largest share of lines of the private log that may still be on their way.
const LINES_LOST: f64 = 0.005;
/// Most sentences that are kept.
const UNREAD_MAX: usize = 24;

/// One sentence for each value that could not be read.
pub fn unread(watched: &Watched, known: &KnownBlock<'_>, answer: &Value, processes: &[ProcessSignals]) -> Vec<Said> {
    let mut found = watched.unread.clone();
    if watched.ticks.is_empty() {
        found.push(say!(BLOCK_LAB_DID_WATCH));
        return found;
    }
    found.extend(account(&watched.ticks, known, &watched.unread));
    found.extend(log(&watched.ticks, known));
    found.extend(networks(watched, known));
    found.extend(people(watched, known, processes));
    let (usage, generator) = (&answer["usage"], &answer["load"]["weir"]["generator"]);
    let is_own = known.running.is_some() || generator["worker_cpu"].as_array().is_some_and(|list| !list.is_empty());
    let figures: [(bool, Text); 4] = [
        (is_own, texts::LOAD_GENERATORS_CPU),
        (known.running.is_some() || usage["foreign"].is_number(), texts::OTHER_WORK_MACHINE),
        (watched.ticks.iter().any(|tick| !tick.stalled.is_empty()), texts::PRESSURE_KERNEL_DOES_REPORT),
        (watched.ticks.iter().any(|tick| !tick.cpus.is_empty()), texts::MACHINES_CPUS),
    ];
    found.extend(figures.iter().filter(|(is_there, _)| !is_there).map(|(_, what)| Said::from(*what)));
    found.truncate(UNREAD_MAX);
    found
}

/// Whether the lab reads the edge's account.
fn is_asked(known: &KnownBlock<'_>) -> bool {
    known.spec.watch.as_ref().is_some_and(|plan| !plan.at.as_os_str().is_empty())
}

fn account(ticks: &[Tick], known: &KnownBlock<'_>, said: &[Said]) -> Option<Said> {
    if let Some(why) = ticks.iter().find_map(|tick| tick.account.unread.as_ref()) {
        return Some(say!(LAB_CANNOT_READ_EDGES, why));
    }
    let there = ticks.iter().filter(|tick| tick.account.is_there).count();
    if there == 0 && said.iter().any(|why| why.is(texts::ACCOUNT_FELL) || why.is(texts::ACCOUNT_OF_ANOTHER)) {
        return None;
    }
    let is_missed = is_asked(known) && (there < 2 || (there as f64) < LOOKS_MISSED * ticks.len() as f64);
    is_missed.then(|| say!(EDGES_ACCOUNT_EDGE_ANSWERED, there, ticks.len()))
}

/// Lines that nginx logged and the lab did not get, because the log socket was full.
fn log(ticks: &[Tick], known: &KnownBlock<'_>) -> Option<Said> {
    if known.is_weir || !is_asked(known) {
        return None;
    }
    let last: &Account = ticks.iter().rev().map(|tick| &tick.account).find(|account| account.is_there)?;
    let logged = last.requests.saturating_sub(last.asked);
    let lines = last.lines.unwrap_or(0);
    // A request in progress is counted but not logged yet.
    let lost = logged.saturating_sub(lines).saturating_sub(last.active);
    (lost as f64 > LINES_LOST * logged as f64).then(|| say!(NGINXS_PRIVATE_LOG_SOCKET, lost, logged))
}

fn networks(watched: &Watched, known: &KnownBlock<'_>) -> Vec<Said> {
    let mut found = Vec::new();
    let mut hosts: Vec<&str> = known.spec.processes.iter().map(|process| process.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for host in hosts {
        let looks: Vec<_> =
            watched.ticks.iter().filter_map(|tick| tick.hosts.iter().find(|seen| seen.name == host)).collect();
        if !looks.iter().any(|look| look.counters.contains_key("ListenOverflows")) {
            found.push(say!(KERNELS_COUNTERS, host));
        }
        if looks.iter().any(|look| look.is_cut) {
            found.push(say!(SOCKETS_MORE_THAN_LAB, host));
        }
        let mut unknown: Vec<&String> = looks
            .iter()
            .flat_map(|look| look.waiting.iter().filter(|(_, waiting)| **waiting > 0).map(|(address, _)| address))
            .filter(|address| watched.backlog(address).is_none())
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        found.extend(unknown.into_iter().map(|address| say!(LIMIT_WAITING_CONNECTIONS, address)));
    }
    found
}

fn people(watched: &Watched, known: &KnownBlock<'_>, processes: &[ProcessSignals]) -> Vec<Said> {
    let mut found = Vec::new();
    for role in processes::people(known.spec) {
        // A neighbour may come and go.
        let is_beside =
            known.running.and_then(|all| all.get(&role.name)).is_some_and(|running| running.role == Role::Beside);
        let Some(process) = processes.iter().find(|process| process.name == role.name) else {
            if is_beside {
                continue;
            }
            found.push(say!(USE_DID_EXIST_READING, &role.name));
            continue;
        };
        let looks: Vec<_> =
            watched.ticks.iter().filter_map(|tick| tick.processes.iter().find(|seen| seen.name == role.name)).collect();
        if looks.iter().any(|look| look.are_waits_unknown) {
            found.push(say!(TIME_WAITED_CPU_KERNEL, &role.name));
        }
        if process.quota.is_some() && !looks.iter().any(|look| look.periods.is_some()) {
            found.push(say!(NUMBER_PERIODS_WHICH_QUOTA, &role.name));
        }
        if process.role == Role::Edge && process.fds.1 == 0 {
            found.push(say!(EDGES_LIMIT_OPEN_FILES));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::{HUB, Spec};
    use crate::watch::{HostTick, ProcessTick, WatchPlan};
    use crate::why::good::GoodStatuses;
    use serde_json::json;
    use weir_conf::Tree;

    fn spec() -> Spec {
        let process = |name: &str| crate::stack::Process { name: name.into(), host: HUB.into(), ..Default::default() };
        Spec {
            processes: vec![process("edge")],
            edge: "edge".into(),
            client: process("client"),
            watch: Some(WatchPlan { at: "/run/x".into(), ..WatchPlan::default() }),
            ..Spec::default()
        }
    }

    /// A sample in which every value was read.
    fn whole(requests: u64) -> Tick {
        Tick {
            cpus: vec![(0, 0, 0, 0, 0)],
            stalled: [("io".to_owned(), 0.0)].into(),
            processes: ["edge", "client"]
                .map(|name| ProcessTick { name: name.into(), ..ProcessTick::default() })
                .into(),
            hosts: vec![HostTick {
                name: HUB.into(),
                counters: [("ListenOverflows".to_owned(), 0)].into(),
                waiting: [("[::]:3000".to_owned(), 3)].into(),
                ..HostTick::default()
            }],
            account: Account { is_there: true, requests, asked: 2, lines: Some(requests - 2), ..Account::default() },
            ..Tick::default()
        }
    }

    fn said(change: impl Fn(&mut Watched, &mut Value)) -> Vec<Said> {
        let mut watched = Watched {
            ticks: vec![whole(10), whole(1002)],
            backlogs: [("0.0.0.0:3000".to_owned(), 128)].into(),
            ..Watched::default()
        };
        let mut answer = json!({"usage": {"foreign": 0.0}, "load": {"weir": {"generator": {"worker_cpu": [0.1]}}}});
        change(&mut watched, &mut answer);
        let (spec, tree, good) = (spec(), Tree::default(), GoodStatuses::default());
        let known = KnownBlock {
            spec: &spec,
            tree: &tree,
            offered: None,
            planned: None,
            length_s: 1.0,
            connections: 1,
            is_closed: false,
            is_noisy: true,
            is_direct: true,
            is_weir: false,
            pools: &[],
            good: &good,
            running: None,
        };
        let process =
            |name: &str, role| ProcessSignals { name: name.into(), role, fds: (3, 9), ..ProcessSignals::default() };
        let all = [process("edge", Role::Edge), process("client", Role::Client)];
        let seen = |known: &&ProcessSignals| {
            watched.ticks.iter().any(|tick| tick.processes.iter().any(|seen| seen.name == known.name))
        };
        unread(&watched, &known, &answer, &all.iter().filter(seen).cloned().collect::<Vec<_>>())
    }

    #[test]
    fn what_was_read_is_not_named_and_what_was_not_is() {
        assert_eq!(said(|_, _| {}), Vec::<String>::new());
        type Change = fn(&mut Watched, &mut Value);
        let cases: [(&str, Change); 10] = [
            ("the edge's account: the edge answered 0 of 2 readings", |w, _| {
                w.ticks.iter_mut().for_each(|tick| tick.account.is_there = false);
            }),
            ("nginx's private log: its socket was full, and 400 of 1000 lines were lost", |w, _| {
                w.ticks[1].account.lines = Some(600)
            }),
            ("nginx's private log: its socket was full, and 1000 of 1000 lines were lost", |w, _| {
                w.ticks[1].account.lines = None
            }),
            ("the kernel's counters of edge", |w, _| w.ticks.iter_mut().for_each(|t| t.hosts[0].counters.clear())),
            ("sockets of edge: there were more", |w, _| w.ticks[0].hosts[0].is_cut = true),
            ("the limit of waiting connections at [::]:3000", |w, _| w.backlogs.clear()),
            ("the use of edge: it did not exist at the reading", |w, _| {
                w.ticks.iter_mut().for_each(|t| t.processes.retain(|p| p.name != "edge"))
            }),
            ("the time that client waited for a CPU", |w, _| w.ticks[0].processes[1].are_waits_unknown = true),
            ("the load generator's CPU", |_, answer| answer["load"] = json!({})),
            ("the edge's log: x", |w, _| w.unread.push("the edge's log: x".into())),
        ];
        for (wanted, change) in cases {
            let said = said(change);
            assert!(said.len() == 1 && said[0].starts_with(wanted), "{wanted}: {said:?}");
        }
    }
}
