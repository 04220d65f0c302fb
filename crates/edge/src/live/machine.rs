//! What the machine says: CPUs, threads, memory, files, ports.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

use weir_meter::host::{self, CpuKinds};
use weir_meter::live::{CpuShares, Host};

use super::sums::groups;
use crate::conf::Conf;

/// What the machine did in the last second.
#[derive(Default)]
pub(super) struct Machine {
    at_ms: u64,
    times: Option<CpuKinds>,
    threads: HashMap<u32, host::ThreadTimes>,
    quota: Option<host::Quota>,
    resent: Option<u64>,
    pub(super) host: Host,
    /// By thread: share of a CPU, and seconds waited a second.
    pub(super) shares: HashMap<u32, (f64, Option<f64>)>,
    /// CPUs used of a quota, and periods throttled since the start.
    pub(super) quota_used: f64,
    pub(super) throttled_total: u64,
    pub(super) open_files: u64,
    pub(super) overflows: u64,
    /// Local ports taken towards peers.
    pub(super) ports: HashMap<SocketAddr, u64>,
    /// Whose ports are looked at next.
    port_turn: usize,
}
impl Machine {
    /// Reads the machine's files below `root`; once a second.
    pub(super) fn look(&mut self, root: &Path, now_ms: u64) {
        let seconds = now_ms.saturating_sub(self.at_ms) as f64 / 1000.0;
        let is_first = std::mem::replace(&mut self.at_ms, now_ms) == 0 || seconds <= 0.0;
        let (memory_total, memory_available) = host::memory_under(root);
        let quota = host::quota_under(root);
        let resent = host::retransmitted_under(root);
        let times = host::cpu_kinds_under(root);
        let mut new = Host {
            cpus: host::effective_cpus_under(root) as u64,
            runnable: times.map(|(_, running)| running),
            load: host::load_under(root),
            psi_cpu: host::pressure_under(root, "cpu"),
            psi_memory: host::pressure_under(root, "memory"),
            psi_io: host::pressure_under(root, "io"),
            quota_cpus: quota.map(|quota| quota.cpus),
            memory_total,
            memory_available,
            rss: host::resident_under(root),
            time_wait: host::waiting_sockets_under(root),
            ..Host::default()
        };
        let threads = host::thread_times_under(root);
        if !is_first {
            if let (Some(then), Some((now, _))) = (self.times, times) {
                new.cpu = shares(&then, &now);
            }
            self.shares = threads.iter().filter_map(|now| Some((now.id, self.share(now, seconds)?))).collect();
            let waits: Vec<f64> = self.shares.values().filter_map(|(_, wait)| *wait).collect();
            new.run_queue_wait = (!waits.is_empty()).then(|| waits.iter().sum());
            if let (Some(then), Some(now)) = (self.quota, quota) {
                let periods = now.periods.saturating_sub(then.periods);
                let throttled = now.throttled.saturating_sub(then.throttled);
                new.throttled = Some(if periods > 0 { throttled as f64 / periods as f64 } else { 0.0 });
                self.quota_used = now.used_us.saturating_sub(then.used_us) as f64 / (seconds * 1e6);
                self.throttled_total += throttled;
            }
            if let (Some(then), Some(now)) = (self.resent, resent) {
                new.retransmits = Some(now.saturating_sub(then) as f64 / seconds);
            }
        }
        self.times = times.map(|(times, _)| times);
        self.threads = threads.into_iter().map(|thread| (thread.id, thread)).collect();
        (self.quota, self.resent, self.host) = (quota, resent, new);
        self.open_files = host::open_files().unwrap_or(0);
        self.overflows = host::listen_overflows_under(root).unwrap_or(0);
    }

    /// Asks the kernel about the ports towards the next few peers: each answer is a walk through all connections.
    pub(super) fn look_at_ports(&mut self, conf: &Conf) {
        let mut peers: Vec<SocketAddr> = Vec::new();
        let groups = groups(conf);
        let addresses = groups.iter().flat_map(|upstream| &upstream.addresses);
        for address in addresses.filter_map(|address| address.tcp()) {
            if peers.len() < PORT_PEERS_MAX && !peers.contains(&address) {
                peers.push(address);
            }
        }
        self.ports.retain(|address, _| peers.contains(address));
        for _ in 0..PEERS_AT_ONCE.min(peers.len()) {
            self.port_turn = (self.port_turn + 1) % peers.len();
            let next = peers.get(self.port_turn);
            if let Some((address, taken)) = next.and_then(|peer| Some((*peer, weir_net::diag::connections_to(*peer)?)))
            {
                self.ports.insert(address, taken);
            }
        }
    }

    /// Share of a CPU and seconds waited a second, if the thread was there before.
    fn share(&self, now: &host::ThreadTimes, seconds: f64) -> Option<(f64, Option<f64>)> {
        let then = self.threads.get(&now.id)?;
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / (seconds * 1e9);
        let wait = now.waited_ns.zip(then.waited_ns).map(|(now, then)| per_second(now, then));
        Some((per_second(now.ran_ns, then.ran_ns), wait))
    }
}

/// Peers whose ports are counted, at most.
const PORT_PEERS_MAX: usize = 64;

/// Of those, looked at in one second.
const PEERS_AT_ONCE: usize = 2;

fn shares(then: &CpuKinds, now: &CpuKinds) -> CpuShares {
    let all = now.total().saturating_sub(then.total());
    let share = |now: u64, then: u64| if all == 0 { 0.0 } else { now.saturating_sub(then) as f64 / all as f64 };
    CpuShares {
        user: share(now.user, then.user),
        system: share(now.system, then.system),
        interrupts: share(now.interrupts, then.interrupts),
        steal: share(now.steal, then.steal),
        idle: share(now.idle, then.idle),
        wait: share(now.wait, then.wait),
    }
}
