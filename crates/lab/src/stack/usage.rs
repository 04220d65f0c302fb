//! The resources that a block used while it was measured: CPU of processes, control groups and the machine, and the
//! kernel's counters of each host's network.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use weir_host::{self as host, CpuTime};
use weir_net::{Instant, clock};

use super::group::Used;
use super::host::HUB;
use super::spec::Spec;
use super::started::Started;

/// Counters of a host's network that a block keeps: prefix and name of each.
const COUNTERS: &[(&str, &str)] = &[
    ("TcpExt:", "ListenOverflows"),
    ("TcpExt:", "ListenDrops"),
    ("TcpExt:", "TCPTimeouts"),
    ("TcpExt:", "TCPReqQFullDoCookies"),
    ("TcpExt:", "TCPReqQFullDrop"),
    ("TcpExt:", "TCPAbortOnData"),
    ("Tcp:", "ActiveOpens"),
    ("Tcp:", "PassiveOpens"),
    ("Tcp:", "AttemptFails"),
    ("Tcp:", "RetransSegs"),
];

/// The resources used up to one moment.
pub(super) struct Usage {
    at: Instant,
    processes: Vec<(String, Duration)>,
    /// CPU time of the keeper and of every process that it started.
    own: Duration,
    /// CPU time of all other programs of the machine, if they are visible.
    others: Option<Duration>,
    machine: Vec<CpuTime>,
    groups: Vec<(String, Used)>,
    hosts: BTreeMap<String, BTreeMap<String, i64>>,
}

impl Usage {
    pub fn now(spec: &Spec, started: &[Started]) -> Usage {
        let cpus: Vec<usize> =
            spec.processes.iter().chain([&spec.client]).flat_map(|role| role.cpus.iter().copied()).collect();
        let family = host::family_cpu(std::process::id()).unwrap_or_default();
        let of =
            |process: &Started| (process.name.clone(), host::family_cpu(process.child.id()).unwrap_or_default().cpu);
        Usage {
            at: clock::precise(),
            processes: started.iter().map(of).collect(),
            own: family.cpu,
            others: host::others_cpu(&spec.machine_proc()),
            machine: host::cpu_times().into_iter().filter(|time| cpus.is_empty() || cpus.contains(&time.cpu)).collect(),
            groups: spec.groups.iter().map(|group| (group.host.clone(), group.used())).collect(),
            hosts: counters(started),
        }
    }

    /// The use since `before`, as shares of the available time.
    pub fn since(&self, before: &Usage, spec: &Spec) -> Value {
        let spent = self.at - before.at;
        let elapsed = spent.as_secs_f64().max(1e-9);
        let deltas: Vec<CpuTime> =
            self.machine.iter().zip(&before.machine).map(|(now, then)| now.since(*then)).collect();
        let room = elapsed * deltas.len().max(1) as f64;
        let busy: f64 =
            deltas.iter().map(|time| time.worked(spent).as_secs_f64() - time.interrupts.as_secs_f64()).sum();
        let own = self.own.saturating_sub(before.own).as_secs_f64();
        let share =
            |wanted: fn(&CpuTime) -> Duration| deltas.iter().map(|time| wanted(time).as_secs_f64()).sum::<f64>() / room;
        let client_busy = deltas
            .iter()
            .filter(|time| spec.client.cpus.contains(&time.cpu))
            .map(|time| time.worked(spent).as_secs_f64() / elapsed)
            .fold(0.0, f64::max);
        let processes = self.processes(before);
        // Both figures are upper bounds, so take the smaller one. The rest of the busy time includes kernel work
        // between programs, such as write-back and wake-ups. The CPU time of other programs may have been on other
        // CPUs.
        let others = self.others.zip(before.others).map(|(now, then)| now.saturating_sub(then).as_secs_f64());
        let foreign = (busy - own).max(0.0).min(others.unwrap_or(f64::INFINITY));
        json!({
            "seconds": elapsed,
            "edge_cpu_s": processes.get(&spec.edge).and_then(Value::as_f64).unwrap_or(0.0),
            "own_cpu_s": own,
            "others_cpu_s": others,
            "foreign": foreign / room,
            "steal": share(|time| time.steal),
            "client_core": client_busy,
            "processes": processes,
            "hosts": self.hosts(before),
        })
    }

    /// CPU seconds by process.
    fn processes(&self, before: &Usage) -> Map<String, Value> {
        let used = self.processes.iter().map(|(name, now)| {
            let then = before.processes.iter().find(|(known, _)| known == name).map_or(Duration::ZERO, |(_, cpu)| *cpu);
            // A restarted process counts from zero.
            (name.clone(), json!(now.checked_sub(then).unwrap_or(*now).as_secs_f64()))
        });
        used.collect()
    }

    /// Counters and groups by host.
    fn hosts(&self, before: &Usage) -> Value {
        let mut hosts: Map<String, Value> = Map::new();
        for (host, counters) in &self.hosts {
            let then = before.hosts.get(host);
            let since = |(name, now): (&String, &i64)| {
                let is_state = name == "time_wait" || name == "sockets";
                let then = then.and_then(|then| then.get(name)).filter(|_| !is_state).copied().unwrap_or(0);
                (name.clone(), json!(now - then))
            };
            hosts.insert(host.clone(), Value::Object(counters.iter().map(since).collect()));
        }
        for (host, now) in &self.groups {
            let then = before.groups.iter().find(|(known, _)| known == host).map_or(Used::default(), |(_, used)| *used);
            let entry = hosts.entry(host.clone()).or_insert_with(|| json!({}));
            entry["cpu_s"] = json!(now.cpu.saturating_sub(then.cpu).as_secs_f64());
            entry["periods"] = json!(now.periods - then.periods.min(now.periods));
            entry["throttled"] = json!(now.throttled - then.throttled.min(now.throttled));
            entry["memory_full"] = json!(now.memory_full - then.memory_full.min(now.memory_full));
            // Count over the whole block: a process killed during the warm-up is missing in the measurement.
            entry["memory_killed"] = json!(now.memory_killed);
        }
        Value::Object(hosts)
    }
}

/// The counters of each host's network. A process's `/proc` shows those of its namespace.
fn counters(started: &[Started]) -> BTreeMap<String, BTreeMap<String, i64>> {
    let mut roots: BTreeMap<String, PathBuf> = BTreeMap::new();
    roots.insert(HUB.to_owned(), "/proc/self/net".into());
    for process in started.iter().filter(|process| process.host != HUB) {
        roots.insert(process.host.clone(), format!("/proc/{}/net", process.child.id()).into());
    }
    roots.into_iter().map(|(host, root)| (host, counters_in(&root))).collect()
}

fn counters_in(root: &Path) -> BTreeMap<String, i64> {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    let pairs = read("netstat") + &read("snmp");
    let found = COUNTERS.iter().filter_map(|(prefix, name)| Some(((*name).to_owned(), column(&pairs, prefix, name)?)));
    let mut counters: BTreeMap<String, i64> = found.collect();
    let sockets = read("sockstat");
    let tcp = sockets.lines().find_map(|line| line.strip_prefix("TCP: ")).unwrap_or_default();
    let words: Vec<&str> = tcp.split_ascii_whitespace().collect();
    let number = |name: &str| words.windows(2).find(|pair| pair[0] == name).and_then(|pair| pair[1].parse().ok());
    for (ours, kernels) in [("time_wait", "tw"), ("sockets", "inuse")] {
        counters.extend(number(kernels).map(|value: i64| (ours.to_owned(), value)));
    }
    let links = read("dev");
    for line in links.lines() {
        let Some((name, numbers)) = line.trim().split_once(':') else { continue };
        let numbers: Vec<i64> = numbers.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        if let (Some(received), Some(sent)) = (numbers.first(), numbers.get(8)) {
            counters.insert(format!("{name}_received"), *received);
            counters.insert(format!("{name}_sent"), *sent);
        }
    }
    counters
}

/// A number in a file in which one line has the names and the next line has the values.
fn column(text: &str, prefix: &str, name: &str) -> Option<i64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let at = lines.next()?.split_ascii_whitespace().position(|word| word == name)?;
    lines.next()?.split_ascii_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_hosts_counters_are_read() {
        let root = std::env::temp_dir().join(format!("weir-test-usage-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("netstat"), "TcpExt: A ListenOverflows B\nTcpExt: 1 171 3\n").unwrap();
        fs::write(root.join("snmp"), "Tcp: ActiveOpens\nTcp: 9\n").unwrap();
        fs::write(root.join("sockstat"), "sockets: used 9\nTCP: inuse 5 orphan 0 tw 99 alloc 7\n").unwrap();
        fs::write(root.join("dev"), "Inter-| x\n  eth0: 10 0 0 0 0 0 0 0 20 0\n").unwrap();
        let found = counters_in(&root);
        let of = |name: &str| found[name];
        assert_eq!((of("ListenOverflows"), of("ActiveOpens"), of("time_wait"), of("sockets")), (171, 9, 99, 5));
        assert_eq!((of("eth0_received"), of("eth0_sent")), (10, 20));
        fs::remove_dir_all(root).unwrap();
    }
}
