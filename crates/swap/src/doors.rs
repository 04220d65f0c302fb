//! The addresses of a configuration, and for each the places where the arms answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};

use weir_conf::{Statement, Tree};
use weir_net::{Address, process};
use weir_words::{Said, said};

use crate::request::{ARMS, Arm};

/// Most addresses of a configuration that are stood in for.
pub const DOORS_MAX: usize = 1000;

/// One address of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// As the file says it: `0.0.0.0:80`.
    pub address: Address,
    /// The clients speak TLS.
    pub tls: bool,
    /// Connections begin with a header of the PROXY protocol: there is a load balancer in front, also in front of B.
    pub proxy_protocol: bool,
    /// Where each arm answers. `None`: it cannot be asked over TCP.
    pub at: [Option<SocketAddr>; ARMS],
}

impl Door {
    /// The port that a client sees; 0 without TCP.
    pub fn port(&self) -> u16 {
        self.address.tcp().map_or(0, |address| address.port())
    }

    /// True if a URL of this door needs no port.
    pub fn is_default(&self) -> bool {
        self.port() == if self.tls { 443 } else { 80 }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Where an arm answers.
    pub fn of(&self, arm: Arm) -> Option<SocketAddr> {
        self.at.get(arm as usize).copied().flatten()
    }

    /// True if each arm can be asked.
    pub fn is_open(&self) -> bool {
        self.at.iter().all(Option::is_some)
    }
}

/// A door for each address that the servers of `http` listen on by TCP or by a socket of the file system. No arm answers
/// there yet.
///
/// # Errors
/// There are too many addresses.
pub fn of(tree: &Tree) -> Result<Vec<Door>, Said> {
    let mut doors: Vec<Door> = Vec::new();
    let mut add = |address: Address, tls: bool, proxy_protocol: bool| {
        match doors.iter_mut().find(|door| door.address == address) {
            Some(door) => {
                door.tls |= tls;
                door.proxy_protocol |= proxy_protocol;
            }
            None => doors.push(Door { address, tls, proxy_protocol, at: [None; ARMS] }),
        }
        doors.len() <= DOORS_MAX
    };
    for server in servers(tree) {
        // nginx removed `ssl on` in 1.25.1.
        let is_tls = server.named("ssl").any(|statement| statement.text(0) == "on");
        let mut fits = true;
        for listen in server.named("listen") {
            let has = |word: &str| listen.args.iter().skip(1).any(|other| other.text == word);
            if has("quic") {
                continue;
            }
            for address in addresses(listen.text(0)) {
                fits &= add(address, is_tls || has("ssl"), has("proxy_protocol"));
            }
        }
        if server.named("listen").next().is_none() {
            fits &= add(implied(), is_tls, false);
        }
        if !fits {
            return Err(said!(
                "the configuration listens on more than {DOORS_MAX} addresses",
                "설정이 리슨하는 주소가 {DOORS_MAX}개보다 많습니다"
            ));
        }
    }
    Ok(doors)
}

/// The address of a server without `listen`.
pub fn implied() -> Address {
    let port = if process::is_root() { 80 } else { 8000 };
    Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))
}

/// Free loopback addresses, one for each door, of the door's version of IP.
///
/// Between this choice and the start of the server, other programs and the connections of clients take ports of 127.0.0.1 and
/// ::1, and another program would answer. So a server has an IPv4 address of its own, and ports of ::1 that the kernel gives to
/// nobody by itself.
///
/// # Errors
/// No port is free.
pub fn ports(doors: &[Door]) -> Result<Vec<SocketAddr>, Said> {
    // All are bound at the same time, so that each gets a port of its own.
    let mut held = Vec::new();
    let mut ports = Vec::new();
    let own = Ipv4Addr::new(127, fastrand::u8(1..=254), fastrand::u8(..), fastrand::u8(1..=254));
    for door in doors {
        let bound = match door.address.tcp() {
            Some(SocketAddr::V6(_)) => bind_ungiven(Ipv6Addr::LOCALHOST.into()),
            Some(SocketAddr::V4(_)) | None => bind((own, 0).into()),
        };
        let (port, socket) = bound
            .map_err(|error| said!("no loopback port is free: {error}", "루프백에 빈 포트가 없습니다: {error}"))?;
        held.push(socket);
        ports.push(port);
    }
    Ok(ports)
}

/// Ports below those that the kernel gives to connections by itself (`ip_local_port_range`).
const UNGIVEN_PORTS: std::ops::Range<u16> = 10_000..32_768;
/// Ports that are tried, at most.
const PORT_DRAWS: usize = 100;

fn bind_ungiven(ip: IpAddr) -> io::Result<(SocketAddr, TcpListener)> {
    let mut draws = (0..PORT_DRAWS).map(|_| bind((ip, fastrand::u16(UNGIVEN_PORTS)).into()));
    draws.find_map(Result::ok).map_or_else(|| bind((ip, 0).into()), Ok)
}

fn bind(address: SocketAddr) -> io::Result<(SocketAddr, TcpListener)> {
    let socket = TcpListener::bind(address)?;
    Ok((socket.local_addr()?, socket))
}

/// A wildcard address is asked on loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The addresses of the first argument of a `listen`.
pub fn addresses(word: &str) -> Vec<Address> {
    if let Some(path) = word.strip_prefix("unix:") {
        return vec![Address::Unix(path.into())];
    }
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let (host, port) = match word.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((host, port)) => (host, port),
        None if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => ("*", word),
        None => (word, "80"),
    };
    let (first, last) = port.split_once('-').unwrap_or((port, port));
    let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) else { return Vec::new() };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let ips: Vec<IpAddr> = match (host, bare.parse::<IpAddr>()) {
        ("*", _) => vec![any],
        (_, Ok(ip)) => vec![ip],
        (_, Err(_)) => (bare, 0).to_socket_addrs().into_iter().flatten().map(|address| address.ip()).collect(),
    };
    let all = ips.into_iter().flat_map(|ip| (first..=last).map(move |port| Address::Tcp(SocketAddr::new(ip, port))));
    all.take(DOORS_MAX).collect()
}

/// The servers of `http`, in the order of the file, as `Conf::servers` has them.
pub fn servers(tree: &Tree) -> impl Iterator<Item = &Statement> {
    tree.named("http").flat_map(|http| http.named("server"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;

    fn shown(address: &Address) -> String {
        address.tcp().map_or("unix".to_owned(), |tcp| tcp.to_string())
    }

    #[test]
    fn a_listen_s_addresses_are_nginx_s() {
        let shown = |word: &str| -> Vec<String> { addresses(word).iter().map(shown).collect() };
        assert_eq!(shown("80"), ["0.0.0.0:80"]);
        assert_eq!(shown("*:81"), ["0.0.0.0:81"]);
        assert_eq!(shown("10.1.2.3"), ["10.1.2.3:80"]);
        assert_eq!(shown("[::]:443"), ["[::]:443"]);
        assert_eq!(shown("[::1]"), ["[::1]:80"]);
        assert_eq!(shown("8000-8002"), ["0.0.0.0:8000", "0.0.0.0:8001", "0.0.0.0:8002"]);
        assert_eq!(shown("unix:/run/x"), ["unix"]);
        assert_eq!(shown("80x"), [""; 0]);
    }

    #[test]
    fn each_address_has_one_door() {
        let text = "http { server { listen 81; listen 444 ssl; } server { listen 81 proxy_protocol; listen 444 quic; }
            server { listen 82; ssl on; } server { } }";
        let tree = weir_conf::load(&MemoryFiles::new().with("/f", text), "/f", "/", &|_| false).0;
        let doors = of(&tree).unwrap();
        let seen: Vec<_> = doors.iter().map(|door| (shown(&door.address), door.tls, door.proxy_protocol)).collect();
        let own = |text: &str, tls, proxy| (text.to_owned(), tls, proxy);
        let all = [
            own("0.0.0.0:81", false, true),
            own("0.0.0.0:444", true, false),
            own("0.0.0.0:82", true, false),
            own(&shown(&implied()), false, false),
        ];
        assert_eq!(seen, all);
        assert!(ports(&doors).unwrap().iter().all(|port| port.ip().is_loopback()));
    }

    #[test]
    fn a_wildcard_is_asked_on_loopback() {
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(reachable("10.0.0.1:80".parse().unwrap()).to_string(), "10.0.0.1:80");
    }
}
