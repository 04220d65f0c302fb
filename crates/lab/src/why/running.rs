//! `weir why`: finds the limit of a system that runs, from outside.
//!
//! ```text
//!   people: edge, applications, servers behind them, neighbours ─┐
//!   account: weir's snapshots, or nginx's logs and stub_status ──┼─► Watcher ─► signals ─► the same rules ─► verdict
//!   past: the minutes before ────────────────────────────────────┘
//! ```
//!
//! Invariants: it starts nothing and changes nothing. It sends requests to the edge's own account alone. Without a
//! counter-experiment nothing is proved: the strongest word is SUSPECTED.

mod access;
pub mod account;
mod followed;
mod outside;
mod past;
mod people;
pub mod settings;
mod verdict;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use weir_conf::Statement;
use weir_host as host;
use weir_net::clock;

use self::access::AccessLog;
use self::account::SharedReport;
use self::followed::FollowedFile;
use self::past::Past;
use self::people::People;
use self::settings::{Facts, RunningEdge, WatchSettings};
use super::gather;
use super::known::KnownBlock;
use super::say::now_ms;
use super::signals::{HostSignals, LoadSignals, Signals};
use crate::said::{Said, say};
use crate::survey::survey;
use crate::watch::edge::AccountReader;
use crate::watch::{WatchPlan, Watched, Watcher};

/// How often weir looks whether it shall stop, and whether the edge still runs.
const STEP: Duration = Duration::from_millis(100);
/// Most error logs that are read.
const ERROR_LOGS_MAX: usize = 8;

/// Watches, and gives the run as `weir lab why` stores one. The error is for the user.
///
/// # Errors
/// The edge ended before the watch began, or this machine gives weir no thread.
pub fn run(wish: &WatchSettings, stop: &AtomicBool) -> Result<Value, Said> {
    let facts = watch(wish, stop)?;
    Ok(verdict::of(wish, facts))
}

/// The error logs of the edge, open at their ends.
fn error_logs(edge: &RunningEdge, unread: &mut Vec<Said>) -> Vec<FollowedFile> {
    let mut names: Vec<PathBuf> = Vec::new();
    let mut open: Vec<&Statement> = edge.tree.root.iter().collect();
    let is_at_top = edge.tree.named("error_log").next().is_some();
    names.extend(edge.default_logs.1.iter().filter(|_| !is_at_top).cloned());
    while let Some(statement) = open.pop() {
        open.extend(statement.children());
        let name = statement.text(0);
        if statement.name.text != "error_log" {
            continue;
        }
        if name == "stderr" || name.starts_with("syslog:") || name.starts_with("memory:") {
            unread.push(say!(NOW_LOG_NO_FILE, name));
        } else {
            names.push(edge.prefix.join(name));
        }
    }
    names.sort();
    names.dedup();
    names.retain(|name| name != Path::new("/dev/null"));
    let mut found = Vec::new();
    for name in names.into_iter().take(ERROR_LOGS_MAX) {
        match FollowedFile::open(&name) {
            Ok((file, _)) => found.push(file),
            Err(error) => unread.push(say!(LOG, name.display().to_string(), error.to_string())),
        }
    }
    found
}

/// The access logs of the edge, open at their ends, and the minutes in their last lines.
fn access_logs(wish: &WatchSettings, unread: &mut Vec<Said>) -> (Vec<AccessLog>, Past) {
    let (edge, mut past) = (&wish.edge, Past::default());
    let named = access::logs(&edge.tree, &edge.prefix, edge.default_logs.0.as_deref());
    let mut logs = Vec::new();
    for one in named {
        match AccessLog::open(one) {
            Ok((mut log, lines)) => {
                log.each(&lines, &mut |entry| past.add(entry, &wish.good));
                log.forget_unfit();
                logs.push(log);
            }
            Err(why) => unread.push(why),
        }
    }
    (logs, past)
}

/// The workers of the edge: they are replaced when it is reloaded.
fn workers(edge: &RunningEdge) -> BTreeSet<u32> {
    host::family(edge.pid).into_iter().filter(|pid| *pid != edge.pid).collect()
}

/// The account of the edge, and the minutes that its history has.
fn reader(wish: &WatchSettings, told: &SharedReport, past: &mut Past, unread: &mut Vec<Said>) -> AccountReader {
    let edge = &wish.edge;
    if let Some(ask) = &edge.ask {
        if edge.points.is_array() {
            *past = Past::default();
            past.add_points(&edge.points);
        }
        return account::of_weir(told.clone(), ask.clone());
    }
    if edge.is_weir {
        unread.push(say!(NOW_NO_API));
    }
    let page = account::status_page(&edge.tree).filter(|_| !edge.is_weir);
    let ports = survey(&edge.tree).listens.iter().map(std::net::SocketAddr::port).collect();
    account::of_nginx(told.clone(), edge.pid, page, ports)
}

/// Waits until the time is over, the user ends it, or the edge ends. After how many seconds the edge ended.
fn wait(wish: &WatchSettings, started: u64, stop: &AtomicBool) -> Option<f64> {
    let (pid, began) = (wish.edge.pid, clock::precise());
    while clock::precise() - began < wish.length && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STEP);
        // Another process may have the number by now. One that has ended and is not collected yet has no command line.
        let has_command = std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
        if !has_command || host::started_ticks(pid) != Some(started) {
            return Some((clock::precise() - began).as_secs_f64());
        }
    }
    None
}

fn watch(wish: &WatchSettings, stop: &AtomicBool) -> Result<Facts, Said> {
    let edge = &wish.edge;
    let started = host::started_ticks(edge.pid).ok_or_else(|| say!(NOW_EDGE_GONE, edge.pid))?;
    let people = people::find(edge.pid, &edge.tree);
    let mut unread = people.unread.clone();
    let mut errors = error_logs(edge, &mut unread);
    let (logs, mut past) = access_logs(wish, &mut unread);
    let told = SharedReport::default();
    told.lock().unwrap_or_else(PoisonError::into_inner).logs = logs;
    let reader = reader(wish, &told, &mut past, &mut unread);
    let plan = WatchPlan { is_weir: edge.is_weir, inside: wish.inside, is_running: true, ..WatchPlan::default() };
    let before = workers(edge);
    let (began, began_ms) = (clock::precise(), now_ms());
    let watcher =
        Watcher::start(&plan, people.targets.clone(), reader).map_err(|error| Said::from(error.to_string()))?;
    let gone = wait(wish, started, stop);
    let mut watched = watcher.end();
    let seconds = (clock::precise() - began).as_secs_f64();
    for log in &mut errors {
        account::counted(&log.take(), &mut watched.said);
        if log.was_rotated {
            unread.push(say!(NOW_LOG_ROTATED, log.path().display().to_string()));
        }
    }
    let mut told = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
    told.requests = told.requests();
    let (first, last) =
        told.snapshots.as_ref().map_or((0, 0), |(first, last)| (first.nginx.generation, last.nginx.generation));
    // A reload replaces all workers of nginx.
    let is_reloaded = !edge.is_weir && !before.is_empty() && before.is_disjoint(&workers(edge)) || first != last;
    unread.extend(told.failed.clone().map(|why| say!(LAB_CANNOT_READ_EDGES, why)));
    unread.extend(told.logs.iter().filter(|_| edge.ask.is_none()).flat_map(AccessLog::lacks));
    let load = load_of(wish, &told, seconds);
    let is_asked = load.sent > 0 || !watched.said.is_empty();
    let poor_log = told.logs.iter().find(|log| edge.ask.is_none() && log.is_poor()).map(AccessLog::path);
    watched.unread.splice(0..0, unread);
    Ok(Facts {
        signals: signals(wish, &people, watched, load),
        spoiled: spoiled(&told, gone, is_asked, edge),
        cautions: (gone.is_none() && is_reloaded).then(|| say!(NOW_RELOADED)).into_iter().collect(),
        before: told.snapshots.as_ref().map(|(first, _)| crate::watch::edge::of_weir(first)),
        requests: told.requests,
        past,
        began_ms,
        apps: people.apps(),
        others: people.targets.iter().filter(|target| !target.is_edge).map(|target| target.name.clone()).collect(),
        poor_log,
        is_interrupted: stop.load(Ordering::Relaxed),
    })
}

/// The load, with weir's own quantiles, which are of its last seconds.
fn load_of(wish: &WatchSettings, told: &account::EdgeReport, seconds: f64) -> LoadSignals {
    let mut load = told.requests.signals(&wish.good, seconds);
    let Some((first, last)) = &told.snapshots else { return load };
    let point = weir_dash::point::Point::between(Some(first), last);
    let sum = |of: fn(&weir_meter::live::Times) -> u64| {
        let total = |snapshot: &weir_meter::live::Snapshot| -> u64 {
            snapshot.weir.server_zones.values().map(|zone| of(&zone.times.total)).sum()
        };
        total(last).saturating_sub(total(first)) as f64
    };
    let mean = sum(|times| times.sum_us) / 1000.0 / sum(|times| times.count).max(1.0);
    let most = last.weir.server_zones.values().map(|zone| zone.times.recent.max_us).max().unwrap_or(0);
    let of = |figure: Option<f32>| f64::from(figure.unwrap_or(0.0));
    load.ms = [mean, of(point.p50), of(point.p95), of(point.p99), most as f64 / 1000.0];
    load
}

/// Why there is no verdict.
fn spoiled(told: &account::EdgeReport, gone: Option<f64>, is_asked: bool, edge: &RunningEdge) -> Option<Said> {
    if let Some(seconds) = gone {
        return Some(say!(NOW_EDGE_ENDED, edge.pid, format!("{seconds:.0}")));
    }
    if is_asked {
        return None;
    }
    let is_buffered = told.logs.iter().any(AccessLog::is_buffered);
    Some(match (told.is_there, is_buffered) {
        (false, _) if edge.is_weir => say!(NOW_NOTHING_TOLD_WEIR),
        (false, _) => say!(NOW_NOTHING_TOLD),
        (true, true) => say!(NOW_NO_LINES_BUFFERED),
        (true, false) => say!(NOW_NO_REQUESTS),
    })
}

fn signals(wish: &WatchSettings, people: &People, watched: Watched, load: LoadSignals) -> Signals {
    let known = KnownBlock {
        spec: &people.spec,
        tree: &wish.edge.tree,
        offered: None,
        planned: None,
        length_s: load.length_s,
        connections: 0,
        is_closed: false,
        is_noisy: true,
        is_direct: false,
        is_weir: wish.edge.is_weir,
        pools: &[],
        good: &wish.good,
        running: Some(&people.known),
    };
    let mut signals = gather::running(watched, &known, load);
    // A neighbour that listens at a port which servers have elsewhere is no server.
    let is_neighbour = |name: &str| people.known.get(name).is_some_and(|known| known.is_neighbour);
    signals.processes.iter_mut().filter(|one| is_neighbour(&one.name)).for_each(|one| one.listens.clear());
    let ports: BTreeSet<String> = signals.servers().flat_map(|one| one.listens.iter()).map(|at| port(at)).collect();
    let own = signals.edge_process().map_or(&[][..], |edge| edge.listens.as_slice());
    let ports: BTreeSet<String> = ports.into_iter().chain(own.iter().map(|at| port(at))).collect();
    let own: BTreeSet<String> = own.iter().map(|at| port(at)).collect();
    for host in &mut signals.hosts {
        narrow(host, &ports);
        // A client on this machine has its connections to the edge, not the edge.
        host.held.retain(|address, _| !host.is_hub || !own.contains(&port(address)));
    }
    signals
}

fn port(address: &str) -> String {
    address.rsplit_once(':').map_or(address, |(_, port)| port).to_owned()
}

/// Leaves out what the other programs of this machine do: the kernel's counters are those of all of them.
fn narrow(host: &mut HostSignals, ports: &BTreeSet<String>) {
    let is_ours = |address: &String| ports.contains(&port(address));
    host.queues.retain(|address, _| is_ours(address));
    host.lasting.retain(|address, _| is_ours(address));
    host.turned_away.retain(|address, _| is_ours(address));
    let turned_away = host.turned_away.values().sum();
    host.counters.entry("ListenOverflows".to_owned()).and_modify(|count| *count = turned_away);
    // Datagrams of any kind: only sockets towards a name server tell of questions.
    host.questions.0 = 0.0;
}
