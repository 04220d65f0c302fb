//! The hosts of a stack as network namespaces, so that addresses and names of a configuration stay as they are written.
//!
//! What a configuration has on loopback runs on the edge's host; other peers, by address or by name, run on a host of origins;
//! the client has a host of its own wherever the edge listens for others. All of it exists within the namespaces of one block.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::spec::texts;
use crate::survey::Survey;

/// The edge as its clients see it, and a client.
const EDGE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);
/// The edge as its origins see it, and their host; names get the addresses after it.
const EDGE_INSIDE: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 1);
const ORIGIN: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 2);
/// Names that get an address.
const NAMES_MAX: usize = 200;

/// Which hosts there are, and their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// The client is on a host of its own.
    pub is_client_apart: bool,
    /// Further addresses of the edge.
    pub edge_addresses: Vec<IpAddr>,
    /// Addresses of the origins' host.
    pub origin_addresses: Vec<IpAddr>,
    /// Names and where they are.
    pub names: Vec<(String, IpAddr)>,
}

/// Where everything is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The hosts.
    pub hosts: Hosts,
    /// Where the load goes.
    pub target: Option<SocketAddr>,
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
    found.target = Some(match listen.ip() {
        ip if ip.is_unspecified() && is_isolated => {
            found.hosts.is_client_apart = true;
            SocketAddr::new(EDGE.into(), listen.port())
        }
        ip if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listen.port()),
        ip if ip.is_loopback() => listen,
        ip if is_isolated && ip.is_ipv4() => {
            found.hosts.is_client_apart = true;
            found.hosts.edge_addresses.push(ip);
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
                if !found.hosts.origin_addresses.contains(&ip) {
                    found.hosts.origin_addresses.push(ip);
                }
                found.far.push(SocketAddr::new(ip, *port));
            }
            Err(_) if is_isolated && found.hosts.names.len() < NAMES_MAX => {
                let ip = found.hosts.name(bare);
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

impl Hosts {
    /// The address of a name, a new one if it has none.
    fn name(&mut self, name: &str) -> IpAddr {
        if let Some((_, ip)) = self.names.iter().find(|(known, _)| known == name) {
            return *ip;
        }
        let last = 10 + u8::try_from(self.names.len()).unwrap_or(0);
        let ip = IpAddr::V4(Ipv4Addr::new(10, 99, 1, last));
        self.names.push((name.to_owned(), ip));
        ip
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let addresses = |list: &[IpAddr]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        json!({
            "is_client_apart": self.is_client_apart,
            "edge": addresses(&self.edge_addresses),
            "origin": addresses(&self.origin_addresses),
            "names": self.names.iter().map(|(name, ip)| json!([name, ip.to_string()])).collect::<Vec<_>>(),
        })
    }

    /// Read back.
    pub fn of_json(json: &Value) -> Option<Hosts> {
        let addresses = |key: &str| texts(&json[key]).iter().map(|text| text.parse().ok()).collect::<Option<Vec<_>>>();
        let name = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.parse().ok()?));
        Some(Hosts {
            is_client_apart: json["is_client_apart"].as_bool()?,
            edge_addresses: addresses("edge")?,
            origin_addresses: addresses("origin")?,
            names: json["names"].as_array()?.iter().map(name).collect::<Option<_>>()?,
        })
    }

    fn has_origin(&self) -> bool {
        !self.origin_addresses.is_empty() || !self.names.is_empty()
    }

    /// Makes the hosts, in namespaces that are this process's own. A directory that is to be empty and is not there is made,
    /// and told to `made`: what is under a mount is the machine's.
    pub(super) fn make(&self, dir: &Path, fresh: &[String], made: &mut dyn FnMut(&str)) -> Result<(), String> {
        ip("link set lo up")?;
        // What is under /run names processes of the machine outside: here it is empty, and what `ip netns` writes stays here.
        tmpfs("/run")?;
        for directory in fresh {
            let path = Path::new(directory);
            // Its parent has to be there, as for nginx itself.
            if std::fs::create_dir(path).is_ok() {
                made(directory);
            }
            if path.is_dir() {
                tmpfs(directory)?;
            }
        }
        if self.is_client_apart {
            host("client", "toclient", EDGE, CLIENT)?;
            for address in &self.edge_addresses {
                ip(&format!("addr add {address}/32 dev toclient"))?;
            }
            // Everything there is is behind the edge's host.
            ip(&format!("-n client route add default via {EDGE}"))?;
        }
        if self.has_origin() {
            host("origin", "toorigin", EDGE_INSIDE, ORIGIN)?;
            for address in self.origin_addresses.iter().chain(self.names.iter().map(|(_, address)| address)) {
                ip(&format!("-n origin addr add {address}/32 dev eth0"))?;
                ip(&format!("route replace {address}/32 via {ORIGIN}"))?;
            }
        }
        if !self.names.is_empty() {
            let known = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
            let lines = self.names.iter().map(|(name, address)| format!("{address} {name}\n"));
            let file = dir.join("hosts");
            std::fs::write(&file, lines.collect::<String>() + &known)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            done(Command::new("mount").arg("--bind").arg(&file).arg("/etc/hosts"))?;
        }
        Ok(())
    }
}

/// Takes away what [`Hosts::make`] told of.
pub(super) fn unmake(directory: &str) {
    let unmounted = done(Command::new("umount").args(["-l", directory]));
    // Not empty means that it is not ours any more.
    let _ = unmounted.map(|()| std::fs::remove_dir(directory));
}

/// A host by the name of its namespace, joined to the edge's by a pair of links.
fn host(name: &str, link: &str, near: Ipv4Addr, far: Ipv4Addr) -> Result<(), String> {
    ip(&format!("netns add {name}"))?;
    ip(&format!("link add {link} type veth peer name eth0 netns {name}"))?;
    ip(&format!("addr add {near}/24 dev {link}"))?;
    ip(&format!("link set {link} up"))?;
    ip(&format!("-n {name} link set lo up"))?;
    ip(&format!("-n {name} addr add {far}/24 dev eth0"))?;
    ip(&format!("-n {name} link set eth0 up"))
}

fn ip(arguments: &str) -> Result<(), String> {
    done(Command::new("ip").args(arguments.split(' ')))
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
            assert_eq!((found.near.len(), found.far.len(), found.hosts), (2, 0, Hosts::default()));
        }
    }

    #[test]
    fn others_get_hosts_of_their_own_or_a_refusal() {
        let asked = survey(&["0.0.0.0:80"], &[("express", 3000), ("10.0.0.9", 1), ("express", 3001)]);
        let found = layout(&asked, None, true).unwrap();
        assert_eq!(found.target.unwrap().to_string(), "10.99.0.1:80");
        assert!(found.hosts.is_client_apart);
        assert_eq!(found.hosts.names, [("express".to_owned(), "10.99.1.10".parse().unwrap())]);
        assert_eq!(
            found.far.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.99.1.10:3000", "10.0.0.9:1", "10.99.1.10:3001"]
        );
        assert!(
            layout(&asked, None, false).unwrap_err().contains("express:3000: not a peer a lab can make without root")
        );
        assert!(layout(&survey(&["192.0.2.1:80"], &[]), None, false).unwrap_err().contains("listen on 127.0.0.1"));
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
