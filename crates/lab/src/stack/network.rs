//! The hosts of a stack as network namespaces, so that addresses and names of a configuration stay as they are written.
//!
//! A star: the hub is the edge's host, and every other host hangs on a link of its own to it, reaching the others through it. What
//! a configuration has on loopback runs on the hub; other peers, by address or by name, run on a host of origins; the client has
//! a host of its own wherever the edge listens for others. All of it exists within the namespaces of one block.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use super::spec::{HUB, Host, Spec};
use crate::survey::Survey;
use crate::wan::ENDS;

/// The hub as everybody reaches it.
const HUB_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 99, 254, 1);
/// Names that get an address.
const NAMES_MAX: usize = 200;
/// The host of the load, and of what a configuration asks.
pub const CLIENT: &str = "client";
/// See [`CLIENT`].
pub const ORIGIN: &str = "origin";
/// A link with a rate holds so much at once, s: less, and the kernel's own clock would be the limit.
const BURST_SECONDS: f64 = 0.01;
/// And never less than this, bytes.
const BURST_MIN: u64 = 16_384;

/// Where everything is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The hosts, but for a hub that nothing is said of.
    pub hosts: Vec<Host>,
    /// Names, and where they are.
    pub names: Vec<(String, IpAddr)>,
    /// Where the load goes.
    pub target: Option<SocketAddr>,
    /// TLS is spoken there.
    pub is_secure: bool,
    /// Origins on the edge's host.
    pub near: Vec<SocketAddr>,
    /// Origins on their own.
    pub far: Vec<SocketAddr>,
}

/// Finds a place for everything a configuration names. Without namespaces, only what is on loopback has one: the refusal says
/// what to do.
pub fn layout(survey: &Survey, port: Option<u16>, is_isolated: bool) -> Result<Layout, String> {
    let mut found = Layout::default();
    let listens = survey.listens.iter().filter(|listen| port.is_none_or(|port| listen.port() == port));
    let listen = listens.min_by_key(|listen| !listen.ip().is_loopback()).copied().ok_or_else(|| match port {
        Some(port) => format!("the configuration does not listen on port {port}"),
        None => "the configuration listens on no TCP port: nothing to load".to_owned(),
    })?;
    found.is_secure = survey.secure.contains(&listen);
    found.target = Some(match listen.ip() {
        ip if ip.is_unspecified() && is_isolated => {
            found.hosts.push(Host::named(CLIENT));
            SocketAddr::new(HUB_ADDRESS.into(), listen.port())
        }
        ip if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listen.port()),
        ip if ip.is_loopback() => listen,
        ip if is_isolated && ip.is_ipv4() => {
            found.hosts.push(Host { addresses: vec![ip], ..Host::named(HUB) });
            found.hosts.push(Host::named(CLIENT));
            listen
        }
        ip => {
            return Err(format!(
                "{ip}:{}: not an address a lab can make {}; listen on 127.0.0.1, or without an address",
                listen.port(),
                whose(is_isolated)
            ));
        }
    });
    for (host, port) in &survey.peers {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() => found.near.push(SocketAddr::new(ip, *port)),
            Err(_) if bare == "localhost" => found.near.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), *port)),
            Ok(ip) if is_isolated && ip.is_ipv4() => {
                found.at_origin(ip);
                found.far.push(SocketAddr::new(ip, *port));
            }
            Err(_) if is_isolated && found.names.len() < NAMES_MAX => {
                let ip = found.name(bare);
                found.far.push(SocketAddr::new(ip, *port));
            }
            _ => {
                return Err(format!(
                    "{host}:{port}: not a peer a lab can make {}; let the upstream be on 127.0.0.1",
                    whose(is_isolated)
                ));
            }
        }
    }
    Ok(found)
}

fn whose(is_isolated: bool) -> &'static str {
    if is_isolated { "in a namespace" } else { "without root" }
}

impl Layout {
    /// Whether the load has a host of its own.
    pub fn is_client_apart(&self) -> bool {
        self.hosts.iter().any(|host| host.name == CLIENT)
    }

    /// Gives the origins' host an address.
    fn at_origin(&mut self, ip: IpAddr) {
        if !self.hosts.iter().any(|host| host.name == ORIGIN) {
            self.hosts.push(Host::named(ORIGIN));
        }
        let origin = self.hosts.iter_mut().filter(|host| host.name == ORIGIN);
        for host in origin.filter(|host| !host.addresses.contains(&ip)).collect::<Vec<_>>() {
            host.addresses.push(ip);
        }
    }

    /// The address of a name, a new one if it has none.
    fn name(&mut self, name: &str) -> IpAddr {
        if let Some((_, ip)) = self.names.iter().find(|(known, _)| known == name) {
            return *ip;
        }
        let last = 10 + u8::try_from(self.names.len()).unwrap_or(0);
        let ip = IpAddr::V4(Ipv4Addr::new(10, 99, 255, last));
        self.names.push((name.to_owned(), ip));
        self.at_origin(ip);
        ip
    }
}

/// The two ends of a host's link: the hub's and its own.
fn link(number: usize) -> (Ipv4Addr, Ipv4Addr) {
    let third = u8::try_from(number).unwrap_or(u8::MAX);
    (Ipv4Addr::new(10, 99, third, 1), Ipv4Addr::new(10, 99, third, 2))
}

/// Hosts that are not the hub, numbered.
fn spokes(hosts: &[Host]) -> impl Iterator<Item = (usize, &Host)> {
    hosts.iter().filter(|host| host.name != HUB).enumerate()
}

/// A host's address.
pub fn address_of(hosts: &[Host], name: &str) -> Option<IpAddr> {
    if name == HUB {
        return Some(HUB_ADDRESS.into());
    }
    spokes(hosts).find(|(_, host)| host.name == name).map(|(number, _)| link(number).1.into())
}

/// Makes the hosts, in namespaces that are this process's own. A directory that is to be empty and is not there is made, and told
/// to `made`: what is under a mount is the machine's.
pub(super) fn make(spec: &Spec, made: &mut dyn FnMut(&str)) -> Result<(), String> {
    ip("link set lo up")?;
    ip(&format!("addr add {HUB_ADDRESS}/32 dev lo"))?;
    // What is under /run names processes of the machine outside: here it is empty, and what `ip netns` writes stays here.
    tmpfs("/run")?;
    for directory in &spec.fresh {
        let path = Path::new(directory);
        // Its parent has to be there, as for nginx itself.
        if std::fs::create_dir(path).is_ok() {
            made(directory);
        }
        if path.is_dir() {
            tmpfs(directory)?;
        }
    }
    overlay(spec)?;
    if spokes(&spec.hosts).count() > 1 {
        // A host reaches the others through the hub.
        sysctl(HUB, "net.ipv4.ip_forward", "1")?;
    }
    for (number, host) in spokes(&spec.hosts) {
        join(host, number)?;
    }
    for host in &spec.hosts {
        if host.name == HUB {
            for address in &host.addresses {
                ip(&format!("addr add {address}/32 dev lo"))?;
            }
        }
        // Repeatable wherever the machine prefers another; not all kernels have it.
        let _ = sysctl(&host.name, "net.ipv4.tcp_congestion_control", "cubic");
        for (name, value) in &host.sysctls {
            sysctl(&host.name, name, value)?;
        }
    }
    names(spec)
}

/// Directories whose changes are this block's alone.
fn overlay(spec: &Spec) -> Result<(), String> {
    for (number, directory) in spec.overlaid.iter().enumerate() {
        let room = format!("/run/weir-over-{number}");
        std::fs::create_dir_all(&room).map_err(|error| format!("{room}: {error}"))?;
        tmpfs(&room)?;
        for part in ["upper", "work"] {
            let part = format!("{room}/{part}");
            std::fs::create_dir(&part).map_err(|error| format!("{part}: {error}"))?;
        }
        let options = format!("lowerdir={directory},upperdir={room}/upper,workdir={room}/work");
        done(Command::new("mount").args(["-t", "overlay", "overlay", "-o", &options, directory]))?;
    }
    Ok(())
}

/// Everybody's name in everybody's /etc/hosts; names of the configuration come first.
fn names(spec: &Spec) -> Result<(), String> {
    let hosts = spokes(&spec.hosts).map(|(number, host)| (host.name.clone(), IpAddr::from(link(number).1)));
    let mut all: Vec<(String, IpAddr)> = spec.names.clone();
    for (name, address) in hosts.chain([(HUB.to_owned(), IpAddr::from(HUB_ADDRESS))]) {
        if !all.iter().any(|(known, _)| *known == name) {
            all.push((name, address));
        }
    }
    if all.len() == 1 {
        return Ok(());
    }
    let known = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let lines = all.iter().map(|(name, address)| format!("{address} {name}\n"));
    let file = spec.dir.join("hosts");
    std::fs::write(&file, lines.collect::<String>() + &known)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    done(Command::new("mount").arg("--bind").arg(&file).arg("/etc/hosts"))
}

/// Sets a kernel parameter of a host's network.
pub(super) fn sysctl(host: &str, name: &str, value: &str) -> Result<(), String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let say = |why: String| format!("host {host}: {name} = {value}: {why}");
    if host == HUB {
        return std::fs::write(&path, value).map_err(|error| say(error.to_string()));
    }
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host, "sh", "-c", "echo \"$2\" > \"$1\"", "sh", &path, value]);
    done(&mut command).map_err(say)
}

/// Lays a file over another within this mount namespace: what is underneath stays as it is.
pub(super) fn lay_over(file: &Path, over: &Path) -> Result<(), String> {
    done(Command::new("mount").arg("--bind").arg(file).arg(over))
}

/// Takes away what [`make`] told of.
pub(super) fn unmake(directory: &str) {
    let unmounted = done(Command::new("umount").args(["-l", directory]));
    // Not empty means that it is not ours any more.
    let _ = unmounted.map(|()| std::fs::remove_dir(directory));
}

/// The namespace in the middle of a host's link, which delays; a host's name has no dot.
pub(super) fn middle(host: &str) -> String {
    format!("wan.{host}")
}

/// Two links instead of one, and between them a namespace in which nothing has an address: what passes there is what
/// [`crate::wan`] passes.
fn part(name: &str) -> Result<(), String> {
    let (middle, [hub, far]) = (middle(name), ENDS);
    ip(&format!("netns add {middle}"))?;
    for parameter in ["all", "default"] {
        // Of its own accord it says nothing. A kernel without IPv6 has no such parameter.
        let _ = sysctl(&middle, &format!("net.ipv6.conf.{parameter}.disable_ipv6"), "1");
    }
    ip(&format!("link add to{name} type veth peer name {hub} netns {middle}"))?;
    ip(&format!("-n {middle} link add {far} type veth peer name eth0 netns {name}"))?;
    ip(&format!("-n {middle} link set {hub} up"))?;
    ip(&format!("-n {middle} link set {far} up"))
}

/// Both ends know each other: the first packet waits for no answer to "who has".
fn introduce(name: &str, number: usize) -> Result<(), String> {
    let (near, far) = link(number);
    let [hub, host] = [1, 2].map(|end| format!("02:00:63:{:02x}:{:02x}:0{end}", number / 256, number % 256));
    ip(&format!("link set to{name} address {hub}"))?;
    ip(&format!("-n {name} link set eth0 address {host}"))?;
    ip(&format!("neigh replace {far} lladdr {host} nud permanent dev to{name}"))?;
    ip(&format!("-n {name} neigh replace {near} lladdr {hub} nud permanent dev eth0"))
}

/// A host by the name of its namespace, joined to the hub's by a pair of links.
fn join(host: &Host, number: usize) -> Result<(), String> {
    let (name, (near, far)) = (&host.name, link(number));
    ip(&format!("netns add {name}"))?;
    if host.delay_us.is_some() {
        part(name)?;
    } else {
        ip(&format!("link add to{name} type veth peer name eth0 netns {name}"))?;
    }
    ip(&format!("addr add {near}/24 dev to{name}"))?;
    ip(&format!("link set to{name} up"))?;
    ip(&format!("-n {name} link set lo up"))?;
    ip(&format!("-n {name} addr add {far}/24 dev eth0"))?;
    ip(&format!("-n {name} link set eth0 up"))?;
    ip(&format!("-n {name} route add default via {near}"))?;
    if host.delay_us.is_some() {
        introduce(name, number)?;
    }
    for address in &host.addresses {
        ip(&format!("-n {name} addr add {address}/32 dev eth0"))?;
        ip(&format!("route replace {address}/32 via {far}"))?;
    }
    if let Some(rate_kbit) = host.rate_kbit {
        let burst = BURST_MIN.max((rate_kbit as f64 * 125.0 * BURST_SECONDS) as u64);
        let shape = format!("root tbf rate {rate_kbit}kbit burst {burst}b latency 50ms");
        tc(&format!("qdisc add dev to{name} {shape}"))?;
        tc(&format!("-n {name} qdisc add dev eth0 {shape}"))?;
    }
    Ok(())
}

fn ip(arguments: &str) -> Result<(), String> {
    done(Command::new("ip").args(arguments.split(' ')))
}

fn tc(arguments: &str) -> Result<(), String> {
    done(Command::new("tc").args(arguments.split(' ')))
}

fn tmpfs(directory: &str) -> Result<(), String> {
    done(Command::new("mount").args(["-t", "tmpfs", "-o", "size=1g,mode=0755", "weir-lab", directory]))
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn survey(listens: &[&str], peers: &[(&str, u16)]) -> Survey {
        Survey {
            listens: listens.iter().map(|text| text.parse().unwrap()).collect(),
            peers: peers.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect(),
            ..Survey::default()
        }
    }

    #[test]
    fn loopback_stays_where_it_is() {
        for isolated in [true, false] {
            let found =
                layout(&survey(&["127.0.0.1:8080"], &[("localhost", 81), ("[::1]", 82)]), None, isolated).unwrap();
            assert_eq!(found.target.unwrap().to_string(), "127.0.0.1:8080");
            assert_eq!((found.near.len(), found.far.len(), found.hosts), (2, 0, vec![]));
        }
    }

    #[test]
    fn others_get_hosts_of_their_own_or_a_refusal() {
        let asked = survey(&["0.0.0.0:80"], &[("express", 3000), ("10.0.0.9", 1), ("express", 3001)]);
        let found = layout(&asked, None, true).unwrap();
        assert_eq!(found.target.unwrap().to_string(), "10.99.254.1:80");
        assert!(found.is_client_apart());
        assert_eq!(found.names, [("express".to_owned(), "10.99.255.10".parse().unwrap())]);
        assert_eq!(
            found.far.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.99.255.10:3000", "10.0.0.9:1", "10.99.255.10:3001"]
        );
        assert!(
            layout(&asked, None, false).unwrap_err().contains("express:3000: not a peer a lab can make without root")
        );
        assert!(layout(&survey(&["192.0.2.1:80"], &[]), None, false).unwrap_err().contains("listen on 127.0.0.1"));
    }

    #[test]
    fn hosts_have_addresses() {
        let hosts = [Host::named("app1"), Host::named(HUB), Host::named("db")];
        let at = |name| address_of(&hosts, name).map(|ip| ip.to_string());
        assert_eq!((at("app1"), at("db")), (Some("10.99.0.2".to_owned()), Some("10.99.1.2".to_owned())));
        assert_eq!((at(HUB), at("x")), (Some("10.99.254.1".to_owned()), None));
    }

    #[test]
    fn a_port_may_be_asked_for() {
        let asked = survey(&["0.0.0.0:80", "127.0.0.1:81"], &[]);
        assert_eq!(layout(&asked, None, false).unwrap().target.unwrap().port(), 81);
        assert_eq!(layout(&asked, Some(80), false).unwrap().target.unwrap().to_string(), "127.0.0.1:80");
        assert!(layout(&asked, Some(82), false).unwrap_err().contains("port 82"));
        assert!(layout(&survey(&[], &[]), None, false).unwrap_err().contains("nothing to load"));
    }
}
