//! The addresses of a configuration, and for each the loopback address at which weir stands in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};

use weir_conf::{Statement, Tree};
use weir_http::exchange::conf::Conf;
use weir_net::Address;
use weir_words::{Said, said};

/// Most addresses of a configuration that weir stands in for.
pub const DOORS_MAX: usize = 1000;

/// One address of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// As the file says it: `0.0.0.0:80`.
    pub address: Address,
    /// Where nginx is asked. `None`: it cannot be asked over TCP.
    pub nginx: Option<SocketAddr>,
    /// Where weir listens in the meantime.
    pub weir: SocketAddr,
    /// The clients speak TLS.
    pub tls: bool,
    /// Connections begin with a PROXY protocol header, which this crate does not send.
    pub proxy_protocol: bool,
    /// The index in `Conf::listens`.
    pub listen: usize,
}

impl Door {
    /// The port that a client of nginx sees.
    pub fn port(&self) -> u16 {
        self.nginx.map_or(0, |address| address.port())
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

/// A door for each address that the servers of `http` listen on by TCP.
///
/// # Errors
/// No port is free, or there are too many addresses.
pub fn of(conf: &Conf) -> Result<Vec<Door>, Said> {
    if conf.listens.len() > DOORS_MAX {
        return Err(said!(
            "the configuration listens on more than {DOORS_MAX} addresses",
            "설정이 리슨하는 주소가 {DOORS_MAX}개보다 많습니다"
        ));
    }
    // All are bound at the same time, so that each gets a port of its own.
    let mut held = Vec::new();
    let mut doors = Vec::new();
    for (listen, one) in conf.listens.iter().enumerate().filter(|(_, one)| !one.quic) {
        let nginx = one.address.tcp().map(reachable);
        let loopback = match nginx {
            Some(SocketAddr::V6(_)) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            Some(SocketAddr::V4(_)) | None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let bound = TcpListener::bind((loopback, 0)).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (weir, socket) = bound.map_err(|error| {
            said!("no port of {loopback} is free: {error}", "{loopback}에 빈 포트가 없습니다: {error}")
        })?;
        held.push(socket);
        doors.push(Door {
            address: one.address.clone(),
            nginx,
            weir,
            tls: one.ssl,
            proxy_protocol: one.proxy_protocol,
            listen,
        });
    }
    Ok(doors)
}

/// A wildcard address is asked on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
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

    #[test]
    fn a_listen_s_addresses_are_nginx_s() {
        let shown = |word: &str| -> Vec<String> {
            addresses(word)
                .iter()
                .map(|address| address.tcp().map_or("unix".to_owned(), |tcp| tcp.to_string()))
                .collect()
        };
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
    fn a_wildcard_is_asked_on_loopback() {
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(reachable("10.0.0.1:80".parse().unwrap()).to_string(), "10.0.0.1:80");
    }
}
