//! The processes around an edge that runs: applications, servers behind them, and neighbours on the same CPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_conf::{Statement, Tree};
use weir_host as host;

use crate::said::{Said, say};
use crate::stack::{HUB, Host, Process, Spec};
use crate::survey::survey;
use crate::watch::WatchedProcess;
use crate::why::known::RunningProcess;
use crate::why::served;
use crate::why::signals::Role;

/// How often the edge's connections are read, and the time between: an edge that keeps no connection has one for as long
/// as an answer takes.
const LOOKS: (u32, Duration) = (4, Duration::from_millis(250));
/// Most applications, and most servers behind them, that are watched.
const PEOPLE_MAX: usize = 32;
/// Most neighbours that are watched: those that compute most.
const NEIGHBOURS_MAX: usize = 8;
/// The part of a CPU from which on another process counts as a neighbour, as in the rule about neighbours.
const NEIGHBOUR_CPU: f64 = 0.05;
/// Most words of a command line, and most bytes of it.
const COMMAND_MAX: (usize, u64) = (64, 16 << 10);

/// The processes to watch.
#[derive(Clone, Debug, Default)]
pub struct People {
    /// The edge first.
    pub targets: Vec<WatchedProcess>,
    /// The same as a stack of the lab's.
    pub spec: Spec,
    /// Their parts in it.
    pub known: BTreeMap<String, RunningProcess>,
    /// The parts of the system that could not be seen, a sentence each.
    pub unread: Vec<Said>,
}

impl People {
    /// The applications.
    pub fn apps(&self) -> Vec<App> {
        let is_app = |name: &String| self.known.get(name).is_some_and(|known| known.role == Role::App);
        let all = self.spec.processes.iter().filter(|process| is_app(&process.name));
        let app = |process: &Process| App {
            name: process.name.clone(),
            argv: process.argv.clone(),
            cwd: process.cwd.clone(),
        };
        all.map(app).collect()
    }
}

/// An application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct App {
    /// Its name.
    pub name: String,
    /// Its command line.
    pub argv: Vec<String>,
    /// Its working directory, if it can be read.
    pub cwd: Option<PathBuf>,
}

/// All processes of the machine, at two moments.
struct Machine {
    seen: Vec<host::Seen>,
    /// The part of a CPU that each process used.
    cpu: BTreeMap<u32, f64>,
    listeners: host::Listeners,
}

/// Finds the processes around the edge. Takes a second, in which it sees who computes and to whom the edge speaks.
pub fn find(edge: u32, tree: &Tree) -> People {
    let root = Path::new("/");
    let family = host::family_under(root, edge);
    let before = host::seen_under(root);
    let mut remotes = BTreeSet::new();
    for _ in 0..LOOKS.0 {
        remotes.extend(host::peers_of(root, &family));
        std::thread::sleep(LOOKS.1);
    }
    let seen = host::seen_under(root);
    let elapsed = (LOOKS.1 * LOOKS.0).as_secs_f64();
    let then: BTreeMap<u32, Duration> = before.iter().map(|one| (one.pid, one.cpu)).collect();
    let used = |one: &host::Seen| {
        let before = then.get(&one.pid).copied().unwrap_or(one.cpu);
        (one.pid, one.cpu.saturating_sub(before).as_secs_f64() / elapsed)
    };
    let machine = Machine { cpu: seen.iter().map(used).collect(), seen, listeners: host::listeners_under(root) };
    let mut chosen = Chosen { machine: &machine, taken: family.iter().copied().collect(), people: People::default() };
    chosen.taken.insert(std::process::id());
    chosen.take(edge, Role::Edge);
    let mut addresses = addresses(tree);
    addresses.extend(remotes.iter().filter(|remote| remote.port() != 53).map(ToString::to_string));
    let mut elsewhere = Vec::new();
    let mut apps = BTreeSet::new();
    for address in &addresses {
        let listening = family.iter().copied().find(|pid| machine.listeners.at(*pid).next().is_some()).unwrap_or(edge);
        let found = machine.listeners.of_client(listening, address);
        if found.is_empty() {
            elsewhere.push(address.clone());
        }
        apps.extend(machine.roots(&found));
    }
    let apps: Vec<u32> = apps.into_iter().filter(|pid| !chosen.taken.contains(pid)).take(PEOPLE_MAX).collect();
    apps.iter().for_each(|app| chosen.take(*app, Role::App));
    let mut behind = BTreeSet::new();
    for app in &apps {
        let own = host::family_under(root, *app);
        for remote in host::peers_of(root, &own) {
            let listening = own.iter().copied().find(|pid| machine.listeners.at(*pid).next().is_some()).unwrap_or(*app);
            behind.extend(machine.roots(&machine.listeners.of_client(listening, &remote.to_string())));
        }
    }
    let behind: Vec<u32> = behind.into_iter().filter(|pid| !chosen.taken.contains(pid)).take(PEOPLE_MAX).collect();
    behind.iter().for_each(|server| chosen.take(*server, Role::Beside));
    chosen.neighbours();
    chosen.people.unread.extend(unseen(&machine, &elsewhere));
    chosen.people.targets.sort_by_key(|target| !target.is_edge);
    chosen.people
}

/// The servers on another machine, and those of another user.
fn unseen(machine: &Machine, elsewhere: &[String]) -> Vec<Said> {
    let is_hidden = |one: &host::Seen| {
        let read = std::fs::read_dir(format!("/proc/{}/fd", one.pid));
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    let hidden = machine.seen.iter().filter(|one| is_hidden(one)).count();
    // The superuser sees all of them: one that cannot be read has just ended.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().nth(1));
    let hidden = if user == Some("0") { 0 } else { hidden };
    let mut found = Vec::new();
    if hidden > 0 {
        found.push(say!(NOW_HIDDEN, hidden));
    }
    if !elsewhere.is_empty() {
        let list = elsewhere.join(", ");
        found.push(if hidden > 0 { say!(NOW_ELSEWHERE_OR_HIDDEN, list) } else { say!(NOW_ELSEWHERE, list) });
    }
    found
}

impl Machine {
    /// Of processes that share a socket, those whose parents do not have it. A process that only passes sockets on to
    /// services (the first of the machine) is none.
    fn roots(&self, pids: &BTreeSet<u32>) -> BTreeSet<u32> {
        let parent = |pid: u32| self.seen.iter().find(|one| one.pid == pid).map(|one| one.parent);
        let root = |mut pid: u32| {
            while let Some(up) = parent(pid).filter(|up| *up > 1 && pids.contains(up)) {
                pid = up;
            }
            pid
        };
        pids.iter().copied().filter(|pid| *pid > 1).map(root).collect()
    }

    fn program(&self, pid: u32) -> String {
        let name = self.seen.iter().find(|one| one.pid == pid).map(|one| one.program.clone());
        name.unwrap_or_else(|| pid.to_string()).replace(char::is_control, " ")
    }
}

/// The processes chosen so far.
struct Chosen<'a> {
    machine: &'a Machine,
    /// Members of chosen families.
    taken: BTreeSet<u32>,
    people: People,
}

impl Chosen<'_> {
    fn take(&mut self, pid: u32, role: Role) {
        self.add(pid, role, false);
    }

    fn add(&mut self, pid: u32, role: Role, is_neighbour: bool) {
        // The network of a neighbour is its own affair.
        let network = network_of(pid).filter(|_| !is_neighbour);
        let root = Path::new("/");
        let name = if role == Role::Edge { HUB.to_owned() } else { self.name(pid) };
        let known = self.people.targets.iter().find(|target| network.is_some() && network_of(target.pid) == network);
        let host = match known {
            Some(known) => known.host.clone(),
            None if role == Role::Edge => HUB.to_owned(),
            // A network that is not read counts as the edge's.
            None if network.is_none() => HUB.to_owned(),
            None => name.clone(),
        };
        if !self.people.spec.hosts.iter().any(|known| known.name == host) {
            let rate_kbit = (role == Role::Edge).then(link_kbit).flatten();
            self.people.spec.hosts.push(Host { rate_kbit, ..Host::named(&host) });
        }
        self.people.spec.processes.push(Process {
            name: name.clone(),
            host: host.clone(),
            argv: command(pid),
            cwd: std::fs::read_link(format!("/proc/{pid}/cwd")).ok(),
            cpus: host::allowed_cpus_of_process(root, pid),
            ..Process::default()
        });
        let quota = host::quota_of_process(root, pid).map(|quota| quota.cpus);
        self.people.known.insert(name.clone(), RunningProcess { role, quota, is_neighbour });
        let is_edge = role == Role::Edge;
        if is_edge {
            self.people.spec.edge.clone_from(&name);
        }
        self.people.targets.push(WatchedProcess { name, host, pid, is_edge, is_neighbour, address: None });
        self.taken.extend(host::family_under(root, pid));
    }

    /// The program's name; of several processes with the same name, with the port or the process id.
    fn name(&self, pid: u32) -> String {
        let program = self.machine.program(pid);
        let port = self.machine.listeners.at(pid).find_map(|at| Some(at.parse::<SocketAddr>().ok()?.port()));
        let others = [port.map(|port| format!("{program} :{port}")), Some(format!("{program} ({pid})"))];
        let names = [Some(program.clone())].into_iter().chain(others).flatten();
        let is_free = |name: &String| name != HUB && !self.people.known.contains_key(name);
        names.into_iter().find(is_free).unwrap_or_else(|| pid.to_string())
    }

    /// The processes that compute beside the others. A parent of a chosen process would count that process again.
    fn neighbours(&mut self) {
        let mut busy: Vec<(u32, f64)> =
            self.machine.cpu.iter().map(|(pid, cpu)| (*pid, *cpu)).filter(|(_, cpu)| *cpu >= NEIGHBOUR_CPU).collect();
        busy.sort_by(|one, other| other.1.total_cmp(&one.1));
        let mut count = 0;
        for (pid, _) in busy {
            let is_parent = || host::family_under(Path::new("/"), pid).iter().any(|member| self.taken.contains(member));
            if count < NEIGHBOURS_MAX && !self.taken.contains(&pid) && !is_parent() {
                self.add(pid, Role::Beside, true);
                count += 1;
            }
        }
    }
}

fn network_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// The speed of this machine's fastest link that has one, kilobits a second.
fn link_kbit() -> Option<u64> {
    let speeds = host::link_speeds_under(&host::Files::under(Path::new("/")));
    speeds.values().max().map(|bytes| bytes / 125)
}

/// The words of a command line.
fn command(pid: u32) -> Vec<String> {
    let mut text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.truncate(COMMAND_MAX.1 as usize);
    let words = text.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.take(COMMAND_MAX.0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The addresses of a configuration's upstreams, of every protocol. A name is looked up in `/etc/hosts` alone: weir sends
/// no query.
fn addresses(tree: &Tree) -> BTreeSet<String> {
    let names = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let mut found: BTreeSet<String> = served::paths(tree).into_iter().map(|path| format!("unix:{path}")).collect();
    let mut peers = survey(tree).peers;
    let mut open: Vec<&Statement> = tree.root.iter().collect();
    while let Some(statement) = open.pop() {
        open.extend(statement.children());
        let is_pass = statement.name.text.ends_with("_pass") && statement.name.text != "proxy_pass";
        let Some(text) = Some(statement.text(0)).filter(|_| is_pass) else { continue };
        match text.split_once("unix:") {
            Some((_, path)) => _ = found.insert(format!("unix:{}", path.split(':').next().unwrap_or_default())),
            None => {
                peers.extend(text.rsplit_once(':').and_then(|(name, port)| Some((name.to_owned(), port.parse().ok()?))))
            }
        }
    }
    for (name, port) in peers {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let ips: Vec<IpAddr> = match bare.parse() {
            Ok(ip) => vec![ip],
            Err(_) if bare == "localhost" => vec![Ipv4Addr::LOCALHOST.into()],
            Err(_) => named(&names, bare),
        };
        found.extend(ips.into_iter().map(|ip| SocketAddr::new(ip, port).to_string()));
    }
    found
}

/// The addresses of a name in the text of `/etc/hosts` (hosts(5)).
fn named(hosts: &str, name: &str) -> Vec<IpAddr> {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let one = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let ip = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(ip)
    };
    lines.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use weir_conf::MemoryFiles;

    use super::*;

    fn tree(text: &str) -> Tree {
        weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false).0
    }

    #[test]
    fn upstreams_of_every_protocol_have_their_addresses() {
        let text = "http { upstream a { server 10.0.0.9:81; server unix:/run/a.sock; }
            server { location / { proxy_pass http://a; } location /p { fastcgi_pass unix:/run/p.sock; } location /u { uwsgi_pass 127.0.0.1:9090; }
            location /l { proxy_pass http://localhost:3000; } location /x { proxy_pass http://weir-no-such-name:1; } } }";
        let found = addresses(&tree(text));
        let wanted = ["10.0.0.9:81", "127.0.0.1:3000", "127.0.0.1:9090", "unix:/run/a.sock", "unix:/run/p.sock"];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
        assert_eq!(
            named("127.0.0.1 localhost\n10.0.0.7 app App2 # x y\n", "app2"),
            ["10.0.0.7".parse::<IpAddr>().unwrap()]
        );
    }

    #[test]
    fn the_edge_comes_first_and_this_process_is_none_of_them() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let mut edge = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let people =
            find(edge.id(), &tree(&format!("http {{ server {{ location / {{ proxy_pass http://{at}; }} }} }}")));
        edge.kill().unwrap();
        edge.wait().unwrap();
        assert_eq!((people.targets[0].pid, people.known[HUB].role), (edge.id(), Role::Edge));
        assert!(people.targets.iter().all(|target| target.pid != std::process::id()), "{:?}", people.targets);
        // The upstream is seen: it is this process.
        assert!(!people.unread.iter().any(|why| why.contains(&at.to_string())), "{:?}", people.unread);
    }
}
