//! Facts beside the configuration: the machine, the running processes, the load.
//!
//! Every fact is optional. A rule that needs a missing fact stays silent. The crate `host` reads them from a
//! machine, and [`Facts::of_host`] collects them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use weir_host as host;

use crate::version::Version;

/// Facts beside the configuration.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// nginx's version, if a binary reported it or the user gave it. `None` if the newest is assumed.
    pub version_is_told: Option<Version>,
    /// CPUs that may be used, by affinity and control group.
    pub cpus: Option<usize>,
    /// CPUs by affinity alone, if a quota allows fewer.
    pub cpus_present: Option<usize>,
    /// Periods of the control group's CPU quota, and the number of throttled periods.
    pub throttling: Option<(u64, u64)>,
    /// The share of the CPUs' time since the machine started that the hypervisor took.
    pub stolen: Option<f64>,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.core.rmem_default`: bytes.
    pub rmem_default: Option<u64>,
    /// `net.core.rmem_max`: bytes.
    pub rmem_max: Option<u64>,
    /// Local ports of `net.ipv4.ip_local_port_range`.
    pub local_ports: Option<u64>,
    /// How long the port of a closed connection rests.
    pub port_rest: host::PortRest,
    /// `localhost` in the host's table has an IPv4 and an IPv6 address.
    pub localhost_is_dual: Option<bool>,
    /// The examined processes, the master first.
    pub processes: Vec<host::Process>,
    /// The systemd unit of the first process, with its files.
    pub unit: Option<host::Unit>,
    /// `nofile` and `nproc` lines of limits.conf and its directory.
    pub pam_limits: Vec<host::PamLimit>,
    /// Other servers on this machine, such as Node under PM2.
    pub neighbours: Vec<host::Process>,
    /// The TCP addresses at which a program of this machine listens.
    pub listens: Option<BTreeSet<SocketAddr>>,
    /// Pools of workers of application servers on this machine.
    pub pools: Vec<host::Pool>,
    /// The time; seconds since 1970.
    pub now_s: Option<i64>,
    /// The certificates that the configuration names, and those that an authority issued.
    pub certificates: Vec<Certificate>,
    /// The server's `stub_status` figures.
    pub live: Option<StubStatus>,
    /// The expected load.
    pub load: Load,
}

/// A certificate that a server shows to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The argument of `ssl_certificate` as written, or the name of the `acme_issuer`.
    pub source: String,
    /// Its file.
    pub file: String,
    /// The beginning of its validity; seconds since 1970.
    pub begins: i64,
    /// The end of its validity; seconds since 1970.
    pub ends: i64,
}

impl Certificate {
    /// A certificate of a file.
    pub fn of(file: &str, begins: i64, ends: i64) -> Certificate {
        Certificate { source: file.to_owned(), file: file.to_owned(), begins, ends }
    }
}

/// A measured or expected load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Peak number of simultaneous clients.
    pub clients: Option<f64>,
    /// Requests a second.
    pub rate: Option<f64>,
    /// Seconds that a client stays (a session), or that a request takes.
    pub seconds: Option<f64>,
    /// New connections a second to upstreams. Equal to the rate if no connection is kept.
    pub upstream_connects: Option<f64>,
}

impl Load {
    /// Simultaneous clients: as given, or by Little's law, rate times seconds.
    pub fn clients(&self) -> Option<f64> {
        self.clients.or_else(|| Some(self.rate? * self.seconds?))
    }
}

/// The figures of `stub_status`, with the rate if it was read twice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StubStatus {
    /// Open connections.
    pub active: u64,
    /// Connections accepted since the start.
    pub accepts: u64,
    /// Connections served since the start. Fewer than accepted if the connection table was full.
    pub handled: u64,
    /// Requests since the start.
    pub requests: u64,
    /// Idle connections.
    pub waiting: u64,
    /// Requests a second between two readings.
    pub rate: Option<f64>,
}

impl StubStatus {
    /// Parses the page of `stub_status`. `None` if it is another page.
    pub fn read(page: &str) -> Option<StubStatus> {
        let mut lines = page.lines().map(str::trim);
        let active = lines.next()?.strip_prefix("Active connections:")?.trim().parse().ok()?;
        lines.next()?.starts_with("server accepts handled requests").then_some(())?;
        let mut counts = lines.next()?.split_whitespace().map(str::parse::<u64>);
        let (accepts, handled) = (counts.next()?.ok()?, counts.next()?.ok()?);
        let requests = counts.next()?.ok()?;
        let waiting = lines.next()?.rsplit_once("Waiting:")?.1.trim().parse().ok()?;
        Some(StubStatus { active, accepts, handled, requests, waiting, rate: None })
    }

    /// These figures, with the rate since an earlier reading.
    pub fn since(self, earlier: StubStatus, seconds: f64) -> StubStatus {
        let requests = self.requests.saturating_sub(earlier.requests);
        StubStatus { rate: (seconds > 0.0).then(|| requests as f64 / seconds), ..self }
    }
}

impl Facts {
    /// The facts of the machine whose files are below `root`, and of the process with this id, if given.
    pub fn of_host(root: &Path, pid: Option<u32>) -> Facts {
        let files = &host::Files::under(root);
        let effective = host::effective_cpus_under(files);
        let present = host::allowed_cpus(root).len();
        let processes = pid.map(|pid| host::processes_under(root, pid)).unwrap_or_default();
        let unit = processes.first().and_then(|process| host::unit_under(root, process));
        Facts {
            version_is_told: None,
            cpus: Some(
                processes.first().and_then(|process| host::effective_cpus_of(root, process.id)).unwrap_or(effective),
            ),
            cpus_present: (present > 0).then_some(present),
            throttling: host::throttling_under(root, pid),
            stolen: host::cpu_kinds_under(files, &[]).map(|(kinds, _)| kinds.stolen()),
            somaxconn: host::sysctl_under(root, "net/core/somaxconn"),
            rmem_default: host::sysctl_under(root, "net/core/rmem_default"),
            rmem_max: host::sysctl_under(root, "net/core/rmem_max"),
            local_ports: host::local_ports_under(files),
            port_rest: host::port_rest_under(files),
            localhost_is_dual: host::localhost_is_dual_under(root),
            processes,
            unit,
            pam_limits: host::pam_limits_under(root),
            neighbours: host::node_processes_under(root),
            listens: host::listening_under(root, pid),
            pools: host::pools_under(root),
            now_s: None,
            certificates: Vec::new(),
            live: None,
            load: Load::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_page_of_stub_status_is_read() {
        let page = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630940 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n";
        let live = StubStatus::read(page).unwrap();
        assert_eq!((live.active, live.accepts - live.handled, live.waiting), (291, 8, 106));
        let later = StubStatus { requests: live.requests + 50, ..live }.since(live, 0.5);
        assert_eq!(later.rate, Some(100.0));
        for other in ["", "<html>", "Active connections: x", "Active connections: 1\n"] {
            assert_eq!(StubStatus::read(other), None);
        }
    }

    #[test]
    fn clients_follow_from_littles_law() {
        let load = Load { rate: Some(4.9), seconds: Some(18.0), ..Load::default() };
        assert_eq!(load.clients().map(f64::round), Some(88.0));
        assert_eq!(Load { clients: Some(5.0), ..load }.clients(), Some(5.0));
        assert_eq!(Load::default().clients(), None);
    }
}
