//! The hosts of a stack as network namespaces, so that addresses and names of a configuration stay as they are written.
//!
//! The network is a star. The hub is the edge's host; every other host has a link to the hub and reaches the others
//! through it. Servers that a configuration has on loopback run on the hub. Other peers, by address or by name, run
//! on a host of origins. The client has a host of its own if the edge listens beyond loopback. All of this exists
//! inside the namespaces of one block.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use super::host::{HUB, HUB_ADDRESS, Host, link, spokes};
use super::spec::Spec;
use crate::survey::Survey;
use crate::wan::ENDS;

/// Most names that get an address.
const NAMES_MAX: usize = 200;
/// The host of the client.
pub const CLIENT: &str = "client";
/// The host of the origins.
pub const ORIGIN: &str = "origin";
/// A limited link sends this many seconds' worth of data at once. With less, the kernel's timer would be the limit.
const BURST_SECONDS: f64 = 0.01;
/// The least burst, bytes.
const BURST_MIN: u64 = 16_384;

/// The places of all hosts, names and origins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The hosts. The hub is left out if it has no settings.
    pub hosts: Vec<Host>,
    /// Names and their addresses.
    pub names: Vec<(String, IpAddr)>,
    /// The target of the load.
    pub target: Option<SocketAddr>,
    /// The target speaks TLS.
    pub is_secure: bool,
    /// Origins on the hub.
    pub near: Vec<SocketAddr>,
    /// Origins on a host of their own.
    pub far: Vec<SocketAddr>,
}

/// Finds a place for every address and name in a configuration. Without namespaces only loopback has a place. The
/// error says what to do.
pub fn layout(survey: &Survey, port: Option<u16>, is_isolated: bool) -> Result<Layout, String> {
    let mut found = Layout::default();
    let listens = survey.listens.iter().filter(|listen| port.is_none_or(|port| listen.port() == port));
    let listen = listens.min_by_key(|listen| !listen.ip().is_loopback()).copied().ok_or_else(|| match port {
        Some(port) => format!("the configuration does not listen on port {port}"),
        None => "the configuration listens on no TCP port: the lab has no target for the load".to_owned(),
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
                "{ip}:{}: the lab cannot create this address {}; listen on 127.0.0.1, or without an address",
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
                    "{host}:{port}: the lab cannot create this peer {}; use 127.0.0.1 in the upstream",
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
    /// Whether the client has a host of its own.
    pub fn is_client_apart(&self) -> bool {
        self.hosts.iter().any(|host| host.name == CLIENT)
    }

    /// Gives an address to the origins' host.
    fn at_origin(&mut self, ip: IpAddr) {
        if !self.hosts.iter().any(|host| host.name == ORIGIN) {
            self.hosts.push(Host::named(ORIGIN));
        }
        let origin = self.hosts.iter_mut().filter(|host| host.name == ORIGIN);
        for host in origin.filter(|host| !host.addresses.contains(&ip)).collect::<Vec<_>>() {
            host.addresses.push(ip);
        }
    }

    /// The address of a name. A name without one gets a new one.
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

/// Makes the hosts, in this process's own namespaces. Makes each directory that should be empty if it is missing, and
/// reports it to `made`: below the mount, it is on the machine's file system.
pub(super) fn make(spec: &Spec, made: &mut dyn FnMut(&str)) -> Result<(), String> {
    ip("link set lo up")?;
    ip(&format!("addr add {HUB_ADDRESS}/32 dev lo"))?;
    // The entries in /run name processes of the machine outside. Here /run is empty, and the files of `ip netns` stay
    // inside.
    tmpfs("/run")?;
    for directory in &spec.fresh {
        let path = Path::new(directory);
        // The parent has to exist, as for nginx itself.
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
        // The same algorithm on every machine makes results repeatable. Some kernels do not have it.
        let _ = sysctl(&host.name, "net.ipv4.tcp_congestion_control", "cubic");
        for (name, value) in &host.sysctls {
            sysctl(&host.name, name, value)?;
        }
    }
    names(spec)
}

/// Mounts overlays on directories, so that changes are visible only to this block.
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

/// Writes /etc/hosts for every host. The configuration's names come first, then the hosts' names.
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

/// Mounts a file over another in this mount namespace. The file below stays unchanged.
pub(super) fn lay_over(file: &Path, over: &Path) -> Result<(), String> {
    done(Command::new("mount").arg("--bind").arg(file).arg(over))
}

/// Unmounts and removes a directory that [`make`] made.
pub(super) fn unmake(directory: &str) {
    let unmounted = done(Command::new("umount").args(["-l", directory]));
    // If it is not empty, another process uses it.
    let _ = unmounted.map(|()| std::fs::remove_dir(directory));
}

/// The name of the namespace in the middle of a host's link. A host's name has no dot.
pub(super) fn middle(host: &str) -> String {
    format!("wan.{host}")
}

/// Makes two links instead of one, with a namespace without addresses between them. Only [`crate::wan`] forwards
/// frames there.
fn part(name: &str) -> Result<(), String> {
    let (middle, [hub, far]) = (middle(name), ENDS);
    ip(&format!("netns add {middle}"))?;
    ip(&format!("link add to{name} type veth peer name {hub} netns {middle}"))?;
    ip(&format!("-n {middle} link add {far} type veth peer name eth0 netns {name}"))?;
    for (host, interface) in
        [(HUB, format!("to{name}")), (&middle, hub.into()), (&middle, far.into()), (name, "eth0".into())]
    {
        // IPv6 is off so that the interfaces send nothing on their own: the link would count it as a packet. A kernel
        // without IPv6 has no such parameter.
        let _ = sysctl(host, &format!("net.ipv6.conf.{interface}.disable_ipv6"), "1");
    }
    ip(&format!("-n {middle} link set {hub} up"))?;
    ip(&format!("-n {middle} link set {far} up"))
}

/// Makes both ends know each other's hardware address: the first packet needs no ARP query.
fn introduce(name: &str, number: usize) -> Result<(), String> {
    let (near, far) = link(number);
    let [hub, host] = [1, 2].map(|end| format!("02:00:63:{:02x}:{:02x}:0{end}", number / 256, number % 256));
    ip(&format!("link set to{name} address {hub}"))?;
    ip(&format!("-n {name} link set eth0 address {host}"))?;
    ip(&format!("neigh replace {far} lladdr {host} nud permanent dev to{name}"))?;
    ip(&format!("-n {name} neigh replace {near} lladdr {hub} nud permanent dev eth0"))
}

/// Makes a host's namespace and joins it to the hub by a pair of links.
fn join(host: &Host, number: usize) -> Result<(), String> {
    let (name, (near, far)) = (&host.name, link(number));
    ip(&format!("netns add {name}"))?;
    if host.link.is_some() {
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
    if host.link.is_some() {
        introduce(name, number)?;
        // Otherwise the kernel would pass on 64 KiB of TCP or of UDP as one frame, and the link would lose all of it.
        ip(&format!("link set dev to{name} gso_max_segs 1"))?;
        ip(&format!("-n {name} link set dev eth0 gso_max_segs 1"))?;
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
    use super::super::host::address_of;
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
            layout(&asked, None, false)
                .unwrap_err()
                .contains("express:3000: the lab cannot create this peer without root")
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
        assert!(layout(&survey(&[], &[]), None, false).unwrap_err().contains("no target for the load"));
    }
}
