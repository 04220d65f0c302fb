//! The settings of a lab: the edge, the load, the design. They are checked before anything starts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_conf::Tree;
use weir_host as host;

use crate::block::BlockSettings;
use crate::command::CommandLine;
use crate::metric::Metric;
use crate::said::{Said, say};
use crate::schedule::Looks;
use crate::stack::{self, Again, HUB, Host, Layout, Process, ReadyCondition, Spec, layout};
use crate::survey::{Survey, survey};
use crate::wan::BadLink;

/// The shortest and the longest measurement of one block.
pub const BLOCK: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(1800));
/// Most connections of a load.
pub const CONNECTIONS_MAX: usize = 50_000;
/// The length of a window.
const WINDOW: &str = "250ms";
/// Least number of requests of a warm-up that is raised. After so many, a program that compiles while it runs (Node, Java)
/// has compiled the code that they run through.
const WARM_REQUESTS: f64 = 1000.0;
/// The highest rate that a warm-up is raised to, requests a second: a small application can carry it.
const WARM_RATE_MAX: f64 = 200.0;
/// The time of a block beyond warming up and measuring.
const BESIDE: Duration = Duration::from_secs(40);

/// The program that serves the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeProgram {
    /// This binary.
    Weir,
    /// An nginx, or another weir under nginx's name, by its path.
    Nginx(PathBuf),
}

impl EdgeProgram {
    /// Its name in a report.
    pub fn name(&self) -> String {
        match self {
            EdgeProgram::Weir => "weir".to_owned(),
            EdgeProgram::Nginx(path) => path.display().to_string(),
        }
    }
}

/// The load.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// One URL's path over a number of connections: at a rate, or as fast as the edge answers.
    Path {
        /// `/…`.
        path: String,
        /// Connections.
        connections: usize,
        /// Requests a second.
        rate: Option<f64>,
    },
    /// An Artillery script. It sets its own length.
    Script {
        /// The file of the script.
        file: PathBuf,
        /// A file that is merged over its `config`.
        over: Option<PathBuf>,
        /// The length of its phases.
        length: Duration,
        /// The number of requests in one run of it, if the script's plan shows it.
        requests: Option<f64>,
    },
}

/// The protocol of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

impl LoadProtocol {
    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            LoadProtocol::Http1 => "HTTP/1.1",
            LoadProtocol::Http2 => "HTTP/2",
            LoadProtocol::Http3 => "HTTP/3",
        }
    }

    /// The flag of `weir load`.
    fn flag(self) -> Option<&'static str> {
        match self {
            LoadProtocol::Http1 => None,
            LoadProtocol::Http2 => Some("--http2"),
            LoadProtocol::Http3 => Some("--http3"),
        }
    }
}

/// An application that one arm alone starts: two revisions have two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmApplication {
    /// The shell command.
    pub command: String,
    /// Its working directory, absolute.
    pub directory: PathBuf,
}

/// The configuration of one arm.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its file, absolute.
    pub file: PathBuf,
    /// Its content.
    pub tree: Tree,
    /// The program that serves it.
    pub edge: EdgeProgram,
    /// The protocol in which it is asked.
    pub protocol: LoadProtocol,
    /// The application behind it. `None`: the one of [`Ask::origin`], which both arms have.
    pub application: Option<ArmApplication>,
}

/// The CPUs of each role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// The edge's.
    pub edge: Vec<usize>,
    /// The client's.
    pub client: Vec<usize>,
    /// The origins'.
    pub origin: Vec<usize>,
}

impl Cpus {
    /// Splits these CPUs: half for the edge, and other CPUs for the client. With two CPUs, the client and the origin
    /// share one.
    pub fn of(allowed: &[usize]) -> Cpus {
        let count = allowed.len();
        let part = |from: usize, to: usize| allowed.get(from..to).unwrap_or(allowed).to_vec();
        match count {
            0 | 1 => Cpus { edge: allowed.to_vec(), client: allowed.to_vec(), origin: allowed.to_vec() },
            2 => Cpus { edge: part(0, 1), client: part(1, 2), origin: part(1, 2) },
            3 => Cpus { edge: part(0, 1), client: part(1, 2), origin: part(2, 3) },
            _ => {
                let client = count / 2 + (count / 4).max(1);
                Cpus { edge: part(0, count / 2), client: part(count / 2, client), origin: part(client, count) }
            }
        }
    }
}

/// The settings that all blocks of a lab share.
#[derive(Clone, Debug)]
pub struct Ask {
    /// This program.
    pub weir: PathBuf,
    /// The load.
    pub load: Load,
    /// How long a block measures. A script sets its own length.
    pub block: Duration,
    /// How long a block warms up first. Zero: no warm-up.
    pub warm_up: Duration,
    /// The warm-up of a load at a small rate has a higher rate. Otherwise the application would become faster while it is
    /// measured.
    pub raises_warm_up: bool,
    /// A script for the warm-up. `None`: the load on the URL warms up.
    pub warm_script: Option<(PathBuf, Duration)>,
    /// A command that runs the application. `None`: the dummy origin.
    pub origin: Option<String>,
    /// Other work on this machine causes only a warning.
    pub is_noisy: bool,
    /// Blocks have namespaces of their own.
    pub is_isolated: bool,
    /// The port to load, if the configuration listens on several.
    pub port: Option<u16>,
    /// The CPUs of each role.
    pub cpus: Cpus,
    /// CPUs that the edge may use, if fewer than it may run on.
    pub quota: Option<f64>,
    /// Header fields of each request of a load on a path, as `Name: value`.
    pub headers: Vec<String>,
    /// The faults of the client's link. `None`: it passes all packets on.
    pub link: Option<BadLink>,
}

/// How the two sides are compared.
#[derive(Clone, Debug)]
pub struct Design {
    /// The primary metric.
    pub primary: &'static Metric,
    /// The user named the metric. Otherwise a small load may change it.
    pub is_chosen: bool,
    /// The command line, to be printed again with other flags.
    pub command: CommandLine,
    /// Changes below this are negligible.
    pub threshold: f64,
    /// When the lab looks.
    pub looks: Looks,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// A planned stack: all that a block of a side needs, except its number.
#[derive(Clone, Debug)]
pub struct Stack {
    layout: Layout,
    target: SocketAddr,
    fresh: Vec<String>,
    globals: Vec<String>,
    protocol: LoadProtocol,
}

impl Stack {
    /// Whether all parts are on one host.
    pub fn is_near(&self) -> bool {
        self.layout.hosts.is_empty() && self.layout.far.is_empty()
    }

    /// The URL of the target.
    fn url(&self) -> String {
        let scheme = if self.layout.is_secure { "https" } else { "http" };
        format!("{scheme}://{}", self.target)
    }
}

impl Ask {
    /// Finds a place for every address and name in a side's configuration. The error says what to do.
    pub fn stack(&self, side: &Side) -> Result<Stack, Said> {
        let survey = survey(&side.tree);
        let found = layout(&survey, self.port, self.is_isolated)?;
        let target = found.target.ok_or("nothing to load")?;
        if self.link.is_some() && !found.is_client_apart() {
            return Err(say!(ERR_LINK_NEAR, target.to_string()));
        }
        if side.protocol == LoadProtocol::Http3 && !found.is_secure {
            return Err(say!(ERR_HTTP3_PLAIN, target.to_string()));
        }
        Ok(Stack {
            target,
            layout: found,
            fresh: fresh(&survey),
            globals: globals(&survey, self.is_isolated)?,
            protocol: side.protocol,
        })
    }

    /// The spec of one block.
    pub fn spec(&self, side: &Side, stack: &Stack, dir: &Path, seed: u64) -> Spec {
        let edge = Process {
            name: EDGE.to_owned(),
            host: HUB.to_owned(),
            argv: edge_argv(&self.weir, side, stack, dir),
            cpus: self.cpus.edge.clone(),
            ready: ReadyCondition::Answers(vec![stack.target]),
            ..Process::default()
        };
        let mut processes = self.origins(side, stack);
        processes.push(edge);
        Spec {
            dir: dir.to_owned(),
            is_isolated: self.is_isolated,
            hosts: self.hosts(&stack.layout, seed),
            names: stack.layout.names.clone(),
            processes,
            edge: EDGE.to_owned(),
            client: self.client(self.client_argv(&self.load, self.block, stack, &dir.join("load.json"), seed), stack),
            warm: self.warm(stack, dir, seed),
            is_warm_judged: matches!(self.load, Load::Path { .. }) && self.warm_script.is_none(),
            fresh: stack.fresh.clone(),
            limit_ms: u64::try_from(self.limit().as_millis()).unwrap_or(u64::MAX),
            ..Spec::default()
        }
    }

    /// The spec of several blocks of one stack. `served` is the file that the edge reads. Each turn writes one of the
    /// files over it.
    pub fn spec_of_turns(&self, served: &Side, stack: &Stack, dir: &Path, turns: &[(PathBuf, u64)]) -> Spec {
        let first = turns.first().map_or(0, |(_, seed)| *seed);
        let spec = self.spec(served, stack, dir, first);
        let turn = |(conf, seed): &(PathBuf, u64)| {
            let one = self.spec(served, stack, dir, *seed);
            Again { conf: conf.clone(), client: one.client, warm: one.warm }
        };
        let limit = self.limit() * u32::try_from(turns.len().max(1)).unwrap_or(1);
        Spec {
            turns: turns.iter().map(turn).collect(),
            served: served.file.clone(),
            limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            ..spec
        }
    }

    /// The hosts, including the hub with its CPU limit. The limit applies only to the edge. Both blocks of a pair have the
    /// same seed, so the link treats both alike.
    fn hosts(&self, layout: &Layout, seed: u64) -> Vec<Host> {
        let mut hosts = layout.hosts.clone();
        let link = self.link.map(|link| BadLink { seed: Some(seed), ..link });
        hosts.iter_mut().filter(|host| host.name == stack::CLIENT).for_each(|host| host.link = link);
        if self.quota.is_some() && !hosts.iter().any(|host| host.name == HUB) {
            hosts.push(Host::named(HUB));
        }
        hosts.iter_mut().filter(|host| host.name == HUB).for_each(|host| host.cpus = self.quota);
        hosts
    }

    /// The longest time of a block: three rounds of warming up, and twice the length of the load for the load and its
    /// last answers.
    fn limit(&self) -> Duration {
        let warm = self.warm_script.as_ref().map_or(self.warm_up, |(_, length)| *length);
        BESIDE + 3 * (warm + Duration::from_secs(12)) + 2 * self.length()
    }

    /// The settings that the judgement of a block depends on.
    pub fn asked(&self) -> BlockSettings {
        BlockSettings {
            is_steady: matches!(self.load, Load::Path { .. }),
            is_noisy: self.is_noisy,
            opening_s: self.opening_s(),
            has_application: self.origin.is_some(),
            ..BlockSettings::default()
        }
    }

    /// How long a load at a rate opens connections, s: each of its first requests opens one.
    fn opening_s(&self) -> f64 {
        match self.load {
            Load::Path { connections, rate: Some(rate), .. } => connections as f64 / rate,
            _ => 0.0,
        }
    }

    /// The rate of the load and the higher rate of its warm-up, if the warm-up has one.
    pub fn raised_warm_up(&self) -> Option<(f64, f64)> {
        let Load::Path { rate: Some(rate), .. } = self.load else { return None };
        let may = self.raises_warm_up && self.warm_script.is_none() && !self.warm_up.is_zero();
        let wanted = (WARM_REQUESTS / self.warm_up.as_secs_f64().max(1e-3)).min(WARM_RATE_MAX).round();
        (may && wanted > rate).then_some((rate, wanted))
    }

    /// The length of a block's load.
    pub fn length(&self) -> Duration {
        match &self.load {
            Load::Path { .. } => self.block,
            Load::Script { length, .. } => *length,
        }
    }

    fn warm(&self, stack: &Stack, dir: &Path, seed: u64) -> Option<Process> {
        let out = dir.join("warm.json");
        let argv = match (&self.warm_script, &self.load) {
            (Some((file, length)), _) => {
                let load = Load::Script { file: file.clone(), over: None, length: *length, requests: None };
                self.client_argv(&load, *length, stack, &out, seed)
            }
            (None, Load::Path { path, connections, rate }) if !self.warm_up.is_zero() => {
                let rate = self.raised_warm_up().map(|(_, raised)| raised).or(*rate);
                let load = Load::Path { path: path.clone(), connections: *connections, rate };
                self.client_argv(&load, self.warm_up, stack, &out, seed)
            }
            _ => return None,
        };
        Some(self.client(argv, stack))
    }

    fn client(&self, argv: Vec<String>, stack: &Stack) -> Process {
        let host = if stack.layout.is_client_apart() { stack::CLIENT } else { HUB };
        Process { argv, cpus: self.cpus.client.clone(), ..beside("client", host) }
    }

    fn client_argv(&self, load: &Load, time: Duration, stack: &Stack, out: &Path, seed: u64) -> Vec<String> {
        let weir = self.weir.display().to_string();
        let mut argv = vec![weir, "load".to_owned()];
        match load {
            Load::Path { path, connections, rate } => {
                argv.push(format!("{}{path}", stack.url()));
                argv.extend([
                    "-c".to_owned(),
                    connections.to_string(),
                    "-d".to_owned(),
                    format!("{}ms", time.as_millis()),
                ]);
                argv.extend(rate.iter().flat_map(|rate| ["-R".to_owned(), rate.to_string()]));
                argv.extend(stack.protocol.flag().map(str::to_owned));
                argv.extend(self.headers.iter().flat_map(|field| ["-H".to_owned(), field.clone()]));
            }
            Load::Script { file, over, .. } => {
                argv.extend([file.display().to_string(), "-t".to_owned(), stack.url()]);
                argv.extend(over.iter().flat_map(|over| ["-c".to_owned(), over.display().to_string()]));
                // Both arms of a pair get the same arrivals and the same data.
                argv.extend(["--seed".to_owned(), (seed >> 1).to_string()]);
            }
        }
        // No certificate contains a lab's address.
        argv.extend(stack.layout.is_secure.then(|| "--insecure".to_owned()));
        argv.extend(["--workers".to_owned(), self.cpus.client.len().max(1).to_string()]);
        argv.extend(["--interval", WINDOW, "-q", "-o"].map(str::to_owned));
        argv.push(out.display().to_string());
        argv
    }

    fn origins(&self, side: &Side, stack: &Stack) -> Vec<Process> {
        let Layout { near, far, .. } = &stack.layout;
        let role = |argv: Vec<String>, host: &str, at: &[SocketAddr], number: usize| Process {
            argv,
            cpus: self.cpus.origin.clone(),
            ready: ReadyCondition::Answers(at.to_vec()),
            is_together: number > 0,
            ..beside(&format!("origin{number}"), host)
        };
        let own = side.application.as_ref();
        if let Some(command) = own.map(|own| &own.command).or(self.origin.as_ref()) {
            let host = if near.is_empty() && !far.is_empty() { stack::ORIGIN } else { HUB };
            let all: Vec<SocketAddr> = near.iter().chain(far).copied().collect();
            let started = role(vec!["sh".to_owned(), "-c".to_owned(), command.clone()], host, &all, 0);
            return vec![Process { cwd: own.map(|own| own.directory.clone()), ..started }];
        }
        let dummy = |addresses: &[SocketAddr]| {
            let weir = self.weir.display().to_string();
            let listens = addresses.iter().flat_map(|address| ["--listen".to_owned(), address.to_string()]);
            [weir, "origin".to_owned()].into_iter().chain(listens).collect::<Vec<_>>()
        };
        let places = [(near, HUB), (far, stack::ORIGIN)].into_iter().filter(|(list, _)| !list.is_empty());
        places.enumerate().map(|(number, (list, host))| role(dummy(list), host, list, number)).collect()
    }

    /// The settings, as a run stores them.
    pub fn to_json(&self) -> Value {
        let load = match &self.load {
            Load::Path { path, connections, rate } => json!({"path": path, "connections": connections, "rate": rate}),
            Load::Script { file, length, .. } => {
                json!({"script": file.display().to_string(), "length_s": length.as_secs_f64()})
            }
        };
        json!({
            "load": load,
            "block_s": self.length().as_secs_f64(),
            "warm_up_s": self.warm_up.as_secs_f64(),
            "warm_script": self.warm_script.as_ref().map(|(file, _)| file.display().to_string()),
            "origin": self.origin,
            "is_noisy": self.is_noisy,
            "is_isolated": self.is_isolated,
            "cpus": {"edge": self.cpus.edge, "client": self.cpus.client, "origin": self.cpus.origin},
            "edge_quota": self.quota,
            "headers": self.headers,
            "link": self.link.map(|link| link.words()),
        })
    }

    /// The load in a few words.
    pub fn load_in_words(&self) -> String {
        self.load_said().en().to_owned()
    }

    /// As [`Ask::load_in_words`], in every language.
    pub fn load_said(&self) -> Said {
        match &self.load {
            Load::Path { path, connections, rate: Some(rate) } => say!(LOAD_AT_RATE, path, *rate, *connections),
            Load::Path { path, connections, rate: None } => say!(LOAD_CLOSED, path, *connections),
            Load::Script { file, .. } => Said::from(file.display().to_string()),
        }
    }
}

/// Whether a warm-up may send more requests than the load. If a configuration has `limit_req`, it would leave a queue to
/// the block. The blocks of all configurations warm up alike.
pub fn may_raise_warm_up(sides: &[&Side]) -> bool {
    !sides.iter().any(|side| survey(&side.tree).limits_rate)
}

/// The name of the edge in a simple stack.
const EDGE: &str = "edge";

/// A process that is exempt from its host's limits, which are for the edge.
fn beside(name: &str, host: &str) -> Process {
    Process { name: name.to_owned(), host: host.to_owned(), is_unlimited: true, ..Process::default() }
}

/// All CPUs that this process may use.
pub fn allowed_cpus() -> Vec<usize> {
    host::allowed_cpus(Path::new("/"))
}

/// Directories that are empty at the start of each block: caches, and the machine's log directory, which no lab may
/// change.
fn fresh(survey: &Survey) -> Vec<String> {
    let logs = Path::new(LOGS).is_dir().then(|| LOGS.to_owned());
    survey.caches.iter().filter(|path| path.starts_with('/') && path.len() > 1).cloned().chain(logs).collect()
}

/// The default log directory of Debian's nginx, and of weir.
pub(crate) const LOGS: &str = "/var/log/nginx";

/// Directives for `-g`: the process stays in the foreground, and writes no file that the machine uses.
pub(crate) fn globals(survey: &Survey, is_isolated: bool) -> Result<Vec<String>, Said> {
    let said = |name: &str| survey.process.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut globals = Vec::new();
    match said("daemon") {
        None => globals.push("daemon off;".to_owned()),
        Some("off") => {}
        Some(_) => {
            return Err(say!(ERR_DAEMON));
        }
    }
    match said("pid") {
        None => globals.push("pid @DIR@/edge.pid;".to_owned()),
        // In namespaces, /run belongs to the block.
        Some(path) if is_isolated && ["/run/", "/var/run/"].iter().any(|run| path.starts_with(run)) => {}
        Some(path) => {
            return Err(say!(ERR_PID, path));
        }
    }
    Ok(globals)
}

fn edge_argv(weir: &Path, side: &Side, stack: &Stack, dir: &Path) -> Vec<String> {
    let mut argv = match &side.edge {
        EdgeProgram::Weir => vec![weir.display().to_string(), "edge".to_owned()],
        EdgeProgram::Nginx(path) => vec![path.display().to_string()],
    };
    argv.extend(["-c".to_owned(), side.file.display().to_string()]);
    let globals = stack.globals.join(" ").replace("@DIR@", &dir.display().to_string());
    if !globals.is_empty() {
        argv.extend(["-g".to_owned(), globals]);
    }
    argv
}

#[cfg(test)]
pub(crate) mod tests;
