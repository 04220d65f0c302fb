//! Each limit and how much of it is used.

use weir_http::exchange::conf::Conf;
use weir_http::hold::bounds::{BUFFERS, MEMORY, STREAMS, TEMPORARY};
use weir_meter::live::cells::Why;
use weir_meter::live::{Limit, Snapshot};

use super::machine::{Machine, STEAL_MIN};
use super::{Live, Scene};

/// The limits of this edge at this moment; the caller fills in `max`.
pub(super) fn limits(live: &Live, scene: &Scene, machine: &Machine, snapshot: &Snapshot) -> Vec<Limit> {
    let mut all = Vec::new();
    let mut push = |kind: &str, of: String, unit: &str, used: f64, limit: f64, hits: u64, set_by: &str| {
        // weir leaves out a limit of zero: every use would exceed it.
        if limit > 0.0 {
            let (kind, unit, set_by) = (kind.to_owned(), unit.to_owned(), set_by.to_owned());
            all.push(Limit { kind, of, unit, used, limit, max: used, hits, set_by });
        }
    };
    let Some(conf) = &scene.conf else { return all };
    for (id, seat) in scene.seats.iter().enumerate() {
        let board = live.boards.of_seat(*seat);
        // The worker's own limit; the number in the file also counts places that no connection can have.
        let (kind, fixed, limit, set_by) = match (conf.places(), conf.main.process.connections) {
            ((_, true), Some(written)) => ("connections", conf.places_fixed, written, "worker_connections"),
            _ => ("fds", 0, conf.places_of_clients(), "RLIMIT_NOFILE"),
        };
        // Connections to upstreams may have places beyond those of clients.
        let used = (board.places.get() as f64 + fixed as f64).min(limit as f64);
        let refused = board.places_refused.get();
        push(kind, format!("worker {id}"), "count", used, limit as f64, refused, set_by);
    }
    let accepts: u64 = live.boards.taken().map(|(_, board)| board.accept_failed.get()).sum();
    let failed = accepts + fails(snapshot, Why::NoFile, |_| true);
    if let Some(files) = machine.files.filter(|files| files.soft < u64::MAX) {
        push("fds", String::new(), "count", machine.open_files as f64, files.soft as f64, failed, "RLIMIT_NOFILE");
    }
    for socket in &scene.sockets {
        if let Some((used, limit)) = socket.queue() {
            let of = socket.address().to_string();
            push(
                "accept_queue",
                of,
                "count",
                used as f64,
                limit as f64,
                machine.overflows,
                "listen backlog, somaxconn",
            );
        }
    }
    upstreams(conf, scene, snapshot, &mut push);
    ports(machine, snapshot, &mut push);
    cpus(machine, snapshot, &mut push);
    for (name, (sent, most)) in &machine.links {
        push("tx_link", name.clone(), "bytes", *sent, *most as f64, 0, "the link's speed");
    }
    for (name, cache) in &snapshot.http.caches {
        if let Some(most) = cache.max_size {
            push("cache_size", name.clone(), "bytes", cache.size as f64, most as f64, 0, "max_size");
        }
    }
    together(&mut push);
    let (total, available) = (machine.host.memory_total, machine.host.memory_available);
    push("memory", String::new(), "bytes", total.saturating_sub(available) as f64, total as f64, 0, "the machine");
    all
}

/// Adds a limit: its kind, its object, its unit, the use, the limit, how often it was met, and its setting.
trait Push: FnMut(&str, String, &str, f64, f64, u64, &str) {}
impl<F: FnMut(&str, String, &str, f64, f64, u64, &str)> Push for F {}

/// The limits of groups and their servers.
fn upstreams(conf: &Conf, scene: &Scene, snapshot: &Snapshot, push: &mut impl Push) {
    for upstream in &weir_proxy::declared(conf).upstream.groups {
        let Some(shown) = snapshot.http.upstreams.get(&upstream.name) else { continue };
        let most = upstream.own.pooling.max_idle * scene.seats.len();
        push("pool", upstream.name.clone(), "count", shown.keepalive as f64, most as f64, 0, "keepalive");
        if let Some(queue) = &shown.queue {
            let (used, most) = (queue.size as f64, queue.max_size as f64);
            push("upstream_queue", upstream.name.clone(), "count", used, most, queue.overflows, "queue");
        }
        for peer in &shown.peers {
            if let Some(most) = peer.max_conns {
                let of = format!("{} {}", upstream.name, peer.server);
                push("upstream_conns", of, "count", peer.active as f64, most as f64, 0, "max_conns");
            }
        }
    }
}

/// The limits of CPU time: of each worker, of the machine, of the quota, and of what the hypervisor leaves.
fn cpus(machine: &Machine, snapshot: &Snapshot, push: &mut impl Push) {
    for worker in &snapshot.weir.workers {
        push("worker_cpu", format!("worker {}", worker.id), "cores", worker.cpu, 1.0, 0, "one CPU per worker");
    }
    if let Some(cpus) = machine.host.quota_cpus {
        push("cpu_quota", String::new(), "cores", machine.quota_used, cpus, machine.throttled_total, "cpu.max");
    }
    let (cpu, cpus) = (&machine.host.cpu, machine.cpus as f64);
    // What the hypervisor takes is not used by this machine.
    push("machine_cpu", String::new(), "cores", cpu.worked() * cpus, cpus, 0, "the machine's CPUs");
    if cpu.steal >= STEAL_MIN {
        // The hypervisor takes the steal share. The rest of the CPUs is the limit that CPU credits, or the
        // neighbours, allow at this moment.
        let left = (1.0 - cpu.steal) * cpus;
        push(
            "cpu_credits",
            String::new(),
            "cores",
            cpu.worked() * cpus,
            left,
            machine.starved,
            "the hypervisor (steal)",
        );
    }
}

/// The limits of what all clients together may hold.
fn together(push: &mut impl Push) {
    for (bound, kind, unit) in [
        (&MEMORY, "own_memory", "bytes"),
        (&BUFFERS, "buffers", "bytes"),
        (&TEMPORARY, "temp_files", "bytes"),
        (&STREAMS, "streams", "count"),
    ] {
        if bound.most() < u64::MAX {
            let (used, most) = (bound.used() as f64, bound.most() as f64);
            push(kind, String::new(), unit, used, most, bound.refused(), bound.name());
        }
    }
}

/// Local ports in use towards each peer: by open connections, and by connections in TIME_WAIT whose port the kernel does
/// not give away yet.
fn ports(machine: &Machine, snapshot: &Snapshot, push: &mut impl Push) {
    let Some(range) = machine.port_range else { return };
    let mut taken: Vec<_> = machine.ports.iter().collect();
    taken.sort();
    for (address, used) in taken {
        let of = address.to_string();
        let hits = fails(snapshot, Why::NoPort, |server| server == of);
        push("ports", of, "count", *used as f64, range as f64, hits, "net.ipv4.ip_local_port_range");
    }
}

/// Tries at these peers, of all groups, that failed for this reason.
fn fails(snapshot: &Snapshot, why: Why, is_meant: impl Fn(&str) -> bool) -> u64 {
    let peers = snapshot.weir.upstreams.values().flatten().filter(|peer| is_meant(&peer.server));
    peers.filter_map(|peer| peer.fails.get(why.as_str())).sum()
}
