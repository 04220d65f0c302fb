//! The figures of the machine: CPUs, threads, memory, files, ports.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use weir_host::{self as host, CpuKinds, Files};
use weir_http::exchange::conf::Conf;
use weir_meter::live::{CpuShares, Host, VmRow};
use weir_net::{clock, diag};

use super::busiest::Watch;
use super::sums::groups;

/// The activity of the machine in the last second.
#[derive(Default)]
pub(super) struct Machine {
    before: Readings,
    pub(super) host: Host,
    /// Number of the CPUs of `host.cpu`.
    pub(super) cpus: u64,
    busiest: Watch,
    /// By thread: share of a CPU, and seconds waited per second.
    pub(super) shares: HashMap<u32, Share>,
    /// CPUs used of a quota, and periods throttled since the start.
    pub(super) quota_used: f64,
    pub(super) throttled_total: u64,
    /// When the settings were read: `numbers`, `usable`, `has_quota`, `files`, `port_range`, `port_rest` and `speeds`.
    settings_at_ms: u64,
    /// The CPUs on which weir may run.
    numbers: Vec<usize>,
    /// How many of them its quota allows.
    usable: u64,
    has_quota: bool,
    /// `RLIMIT_NOFILE`, as last read.
    pub(super) files: Option<host::FileLimit>,
    pub(super) open_files: u64,
    pub(super) overflows: u64,
    /// The number of local ports that the kernel can give to connections towards one peer.
    pub(super) port_range: Option<u64>,
    /// How long the port of a closed connection rests.
    port_rest: host::PortRest,
    /// Bytes a second that a network device can send.
    speeds: BTreeMap<String, u64>,
    /// By network device that reports its speed: bytes sent in a second, and how many it can send.
    pub(super) links: BTreeMap<String, (f64, u64)>,
    /// Readings in which the machine used all the CPU time that the hypervisor left.
    pub(super) starved: u64,
    /// Local ports in use towards peers.
    pub(super) ports: HashMap<SocketAddr, u64>,
    /// The place of the peer whose ports are counted next.
    port_turn: usize,
    /// All TCP sockets: no peer has more ports than that.
    sockets: Option<u64>,
}

/// Figures that have a meaning only as a difference to the second before.
#[derive(Default)]
struct Readings {
    at_ms: u64,
    times: Option<CpuKinds>,
    threads: Vec<host::ThreadTimes>,
    quota: Option<host::Quota>,
    resent: Option<u64>,
    links: BTreeMap<String, (u64, u64)>,
    vm: Option<host::Vm>,
}

impl Machine {
    /// Reads the machine's files below `root`; once a second. If the process has no free descriptor, weir cannot open
    /// these files either. Then all descriptors count as used, and every other figure keeps its last value.
    ///
    /// Each second it reads what counts or measures, and each file once. It opens the files anew, because a file that
    /// stays open takes a descriptor from the clients. What somebody sets by hand, it reads only every
    /// [`SETTINGS_EVERY_MS`]: the CPUs of the process, whether they have a quota, the limit of open files, the range of
    /// ports, the speeds of links.
    pub(super) fn look(&mut self, root: &Path, now_ms: u64) {
        let files = &Files::under(root);
        self.look_at_settings(files, now_ms);
        // Read first and last: if both reads succeed, the reads in between could succeed too.
        let times = host::cpu_kinds_under(files, &self.numbers);
        let (memory_total, memory_available) = host::memory_under(files);
        let now = Readings {
            at_ms: now_ms,
            times: times.map(|(times, _)| times),
            threads: host::thread_times_under(files),
            quota: self.has_quota.then(|| host::quota_under(files)).flatten(),
            resent: host::retransmitted_under(files),
            links: host::links_under(files, &self.speeds),
            vm: host::vm_under(files),
        };
        let mut host = Host {
            cpus: self.usable,
            runnable: times.map(|(_, running)| running),
            load: host::load_under(files),
            psi_cpu: host::pressure_under(files, "cpu"),
            psi_memory: host::pressure_under(files, "memory"),
            psi_io: host::pressure_under(files, "io"),
            quota_cpus: now.quota.map(|quota| quota.cpus),
            memory_total,
            memory_available,
            rss: host::resident_under(files),
            time_wait: host::waiting_sockets_under(files),
            ..Host::default()
        };
        let (overflows, sockets) = (host::listen_overflows_under(files), host::tcp_sockets_under(files));
        let open_files = host::open_files();
        if let Some(known) = self.files
            && ((times.is_none() && self.before.times.is_some()) || open_files.is_none())
        {
            self.open_files = known.soft;
            return;
        }
        self.measure(&now, &mut host);
        let of_quota = host.quota_cpus.map_or(0.0, |cpus| self.quota_used / cpus);
        self.busiest.look(root, clock::precise(), host.cpu.worked().max(of_quota));
        host.busiest.clone_from(&self.busiest.found);
        host.busiest_of_group.clone_from(&self.busiest.found_in_group);
        (self.host, self.before) = (host, now);
        (self.open_files, self.overflows) = (open_files.unwrap_or(0), overflows.unwrap_or(0));
        self.sockets = sockets;
    }

    /// Reads the settings, if that is due. If the process has no free descriptor, they keep their last values.
    fn look_at_settings(&mut self, files: &Files, now_ms: u64) {
        if self.settings_at_ms != 0 && now_ms.saturating_sub(self.settings_at_ms) < SETTINGS_EVERY_MS {
            return;
        }
        let limit = host::file_limit_under(files);
        if limit.is_some() || self.files.is_none() {
            (self.settings_at_ms, self.files) = (now_ms, limit);
            self.numbers = host::allowed_cpus_under(files);
            self.usable = host::effective_cpus_under(files) as u64;
            self.has_quota = host::quota_under(files).is_some();
            self.port_range = host::local_ports_under(files);
            self.port_rest = host::port_rest_under(files);
            self.speeds = host::link_speeds_under(files);
        }
    }

    /// The change since the last readings.
    fn measure(&mut self, now: &Readings, host: &mut Host) {
        let before = &self.before;
        let seconds = now.at_ms.saturating_sub(before.at_ms) as f64 / 1000.0;
        if before.at_ms == 0 || seconds <= 0.0 {
            return;
        }
        if let (Some(then), Some(now)) = (before.times, now.times) {
            host.cpu = shares(&now, &then, Duration::from_secs_f64(seconds));
            self.cpus = now.cpus;
            let left = 1.0 - host.cpu.steal;
            self.starved += u64::from(host.cpu.steal >= STEAL_MIN && host.cpu.worked() >= ALL_LEFT * left);
        }
        let sent = now.links.iter().filter_map(|(name, (sent, most))| {
            let (then, _) = before.links.get(name)?;
            Some((name.clone(), (sent.saturating_sub(*then) as f64 / seconds, *most)))
        });
        self.links = sent.collect();
        let known = |id| before.threads.iter().find(|thread| thread.id == id);
        let shares = now.threads.iter().filter_map(|now| Some((now.id, share(known(now.id)?, now, seconds))));
        self.shares = shares.collect();
        let waits: Vec<f64> = self.shares.values().filter_map(|share| share.wait).collect();
        host.run_queue_wait = (!waits.is_empty()).then(|| waits.iter().sum());
        if let (Some(then), Some(now)) = (before.quota, now.quota) {
            let periods = now.periods.saturating_sub(then.periods);
            let throttled = now.throttled.saturating_sub(then.throttled);
            host.throttled = Some(if periods > 0 { throttled as f64 / periods as f64 } else { 0.0 });
            self.quota_used = now.used_us.saturating_sub(then.used_us) as f64 / (seconds * 1e6);
            self.throttled_total += throttled;
        }
        host.vm = before.vm.zip(now.vm).map(|(then, now)| vm_row(&then, &now, seconds));
        if let (Some(then), Some(now)) = (before.resent, now.resent) {
            host.retransmits = Some(now.saturating_sub(then) as f64 / seconds);
        }
    }

    /// Asks the kernel about the ports towards the next few peers: the kernel walks through its whole table of
    /// connections for each answer.
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
        let round = self.round(&peers);
        for _ in 0..PEERS_AT_ONCE.min(round) {
            let next = peers.get(self.port_turn);
            self.port_turn = (self.port_turn + 1) % round;
            let Some(peer) = next else { continue };
            if let Some(taken) = diag::connections_to(*peer, self.port_rest.towards(peer.ip())) {
                self.ports.insert(*peer, taken);
            }
        }
    }

    /// The places in a round of counting ports. While no peer is near the limit, a few peers share the round with
    /// places that have no peer, so each peer is counted every [`FAR_SECONDS`] and not every second: a server with many
    /// connections that rest (TIME_WAIT) would else walk through all of them each second.
    fn round(&self, peers: &[SocketAddr]) -> usize {
        let are_few = |count: &u64| self.port_range.is_some_and(|range| *count < range / FAR_PARTS);
        let is_far = self.sockets.as_ref().is_some_and(are_few)
            || peers.iter().all(|peer| self.ports.get(peer).is_some_and(are_few));
        peers.len().max(if is_far { PEERS_AT_ONCE * FAR_SECONDS } else { 0 })
    }
}

/// The use of a CPU by a thread in the last second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Its share of the CPU.
    pub(super) cpu: f64,
    /// Seconds waited for a CPU, per second.
    pub(super) wait: Option<f64>,
    /// How often it began to run, per second.
    pub(super) wakeups: Option<f64>,
}

fn share(then: &host::ThreadTimes, now: &host::ThreadTimes, seconds: f64) -> Share {
    let per_second = |(now, then): (u64, u64)| now.saturating_sub(then) as f64 / seconds;
    Share {
        cpu: per_second((now.ran_ns, then.ran_ns)) / 1e9,
        wait: now.waited_ns.zip(then.waited_ns).map(|both| per_second(both) / 1e9),
        wakeups: now.runs.zip(then.runs).map(per_second),
    }
}

/// The row of vmstat(8) for the seconds between two readings.
fn vm_row(then: &host::Vm, now: &host::Vm, seconds: f64) -> VmRow {
    let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
    VmRow {
        r: now.running,
        b: now.blocked,
        swpd: now.swapped,
        free: now.free,
        buff: now.buffers,
        cache: now.cached,
        si: rate(now.swap_in, then.swap_in),
        so: rate(now.swap_out, then.swap_out),
        bi: rate(now.blocks_in, then.blocks_in),
        bo: rate(now.blocks_out, then.blocks_out),
        interrupts: rate(now.interrupts, then.interrupts),
        cs: rate(now.switches, then.switches),
    }
}

/// A smaller share is noise from other virtual machines. If a machine has used up its CPU credits, the hypervisor takes
/// at least this share.
pub(super) const STEAL_MIN: f64 = 0.05;
/// A machine that uses this share of the CPU time that the hypervisor leaves uses all of it: the kernel counts in ticks.
const ALL_LEFT: f64 = 0.95;

/// Peers whose ports are counted, at most.
const PORT_PEERS_MAX: usize = 64;

/// Peers whose ports are counted in one second.
const PEERS_AT_ONCE: usize = 2;

/// With fewer TCP sockets, or fewer ports taken, than this part of the range of ports, no peer is near the limit.
const FAR_PARTS: u64 = 10;
/// Seconds between two counts of a peer that is not near the limit; with many peers a round takes longer anyway.
const FAR_SECONDS: usize = 5;

/// How often settings of the machine and of the process are read.
const SETTINGS_EVERY_MS: u64 = 10_000;

/// CPU time by kind since `before`, which was `elapsed` ago, as shares of all CPUs' time. The amount of work
/// comes from [`host::worked`], its kinds from the ticks that saw it. Work that no tick saw counts as a program's.
fn shares(now: &CpuKinds, before: &CpuKinds, elapsed: Duration) -> CpuShares {
    let since = |of: fn(&CpuKinds) -> u64| of(now).saturating_sub(of(before)) as f64;
    let room = elapsed.as_secs_f64() * now.cpus.max(1) as f64;
    if room <= 0.0 {
        return CpuShares::default();
    }
    let time = |ticks: f64| host::TICK.mul_f64(ticks);
    let (idle, wait, steal) = (since(|k| k.idle), since(|k| k.wait), since(|k| k.steal));
    let worked = host::worked(Duration::from_secs_f64(room), time(idle + wait), time(steal)).as_secs_f64() / room;
    let seen = [since(|k| k.user), since(|k| k.system), since(|k| k.interrupts)];
    let all: f64 = seen.iter().sum();
    let [user, system, interrupts] =
        if all > 0.0 { seen.map(|ticks| worked * ticks / all) } else { [worked, 0.0, 0.0] };
    let share = |ticks: f64| (time(ticks).as_secs_f64() / room).min(1.0);
    CpuShares { user, system, interrupts, steal: share(steal), idle: share(idle), wait: share(wait) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_stolen_time_are_measured_over_a_second() {
        let reading = |at_ms, sent, user, steal, idle| Readings {
            at_ms,
            times: Some(CpuKinds { user, system: 0, interrupts: 0, steal, idle, wait: 0, cpus: 1 }),
            links: [("eth0".to_owned(), (sent, 1000))].into(),
            ..Readings::default()
        };
        let mut machine = Machine { before: reading(1000, 500, 0, 0, 0), ..Machine::default() };
        let mut host = Host::default();
        machine.measure(&reading(3000, 2500, 150, 50, 0), &mut host);
        assert_eq!((machine.links.get("eth0"), machine.starved), (Some(&(1000.0, 1000)), 1));
        // The machine leaves half of the rest idle, and then the hypervisor takes next to nothing.
        for (user, steal, idle) in [(75, 50, 75), (192, 8, 0)] {
            machine.measure(&reading(3000, 2500, user, steal, idle), &mut host);
            assert_eq!(machine.starved, 1, "{user} {steal} {idle}");
        }
    }

    #[test]
    fn few_peers_far_from_the_limit_are_counted_less_often() {
        let all: Vec<SocketAddr> = (1..=64).map(|port| SocketAddr::from(([10, 0, 0, 1], port))).collect();
        let rare = PEERS_AT_ONCE * FAR_SECONDS;
        for (sockets, taken, peers, round) in [
            (Some(2822), &[][..], 1, rare),
            (Some(2823), &[], 1, 1),
            (Some(0), &[], 64, 64),
            (None, &[], 1, 1),
            (Some(20_000), &[2822], 1, rare),
            (Some(20_000), &[2823], 1, 1),
            (Some(20_000), &[5], 2, 2),
            (Some(20_000), &[5, 5], 2, rare),
        ] {
            let ports = all.iter().copied().zip(taken.iter().copied()).collect();
            let machine = Machine { sockets, ports, port_range: Some(28_232), ..Machine::default() };
            assert_eq!(machine.round(&all[..peers]), round, "{sockets:?} {taken:?} {peers}");
        }
    }

    #[test]
    fn without_a_file_to_be_opened_all_are_in_use_and_the_rest_stays() {
        let mut machine = Machine::default();
        machine.look(Path::new("/"), 1000);
        let files = machine.files.expect("/proc is mounted");
        assert!(machine.open_files > 0 && machine.open_files < files.soft);
        let memory = machine.host.memory_total;
        // This gives the same result as a full table of descriptors: no file can be opened.
        machine.look(Path::new("/nowhere"), 2000);
        assert_eq!((machine.open_files, machine.host.memory_total), (files.soft, memory));
        machine.look(Path::new("/"), 3000);
        assert!(machine.open_files < files.soft && machine.before.at_ms == 3000);
    }

    #[test]
    fn shares_go_by_idle_time_and_kinds_by_ticks() {
        let before = CpuKinds { cpus: 2, ..CpuKinds::default() };
        let after = |kinds: CpuKinds| shares(&CpuKinds { cpus: 2, ..kinds }, &before, Duration::from_secs(1));
        let are = |shares: CpuShares, wanted: [f64; 6]| {
            let found = [shares.user, shares.system, shares.interrupts, shares.steal, shares.idle, shares.wait];
            assert!(
                found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-9),
                "{found:?} {wanted:?}"
            );
        };
        // 100 of 200 ticks were idle; the ticks of 4 ms saw work at each of them, at half of them, and at none.
        are(
            after(CpuKinds { user: 150, system: 50, idle: 90, wait: 10, ..before }),
            [0.375, 0.125, 0.0, 0.0, 0.45, 0.05],
        );
        are(
            after(CpuKinds { user: 50, system: 25, interrupts: 25, idle: 100, ..before }),
            [0.25, 0.125, 0.125, 0.0, 0.5, 0.0],
        );
        are(after(CpuKinds { idle: 80, steal: 20, ..before }), [0.5, 0.0, 0.0, 0.1, 0.4, 0.0]);
        assert_eq!(shares(&before, &before, Duration::ZERO), CpuShares::default());
    }
}
