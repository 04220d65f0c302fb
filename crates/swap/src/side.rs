//! A or B: a server that swap starts on loopback ports of its own, or one that runs already.

pub mod child;
mod conf;
mod edits;
mod program;
mod room;
mod server;

use std::net::SocketAddr;

use weir_net::Address;
use weir_words::{Said, said};

pub use conf::SideConf;
pub use edits::obstacle;
pub use program::{OtherProgram, SideProgram, ask, build};
pub use room::{ServerChanges, ServerWish};
pub use server::{CHILD_WORDS, StartedServer};

use crate::doors::{self, Door};
use crate::request::{ARMS, Arm};
use crate::watch::ServerWatch;

/// A or B.
pub enum Side {
    /// A configuration, which swap starts.
    Conf(Box<SideConf>),
    /// A server that runs already.
    Running(Vec<RunningDoor>),
}

/// An address of a server that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningDoor {
    /// As its configuration says it, if that is known: `0.0.0.0:80`.
    pub address: Address,
    /// Where it is asked.
    pub at: SocketAddr,
    /// Its clients speak TLS.
    pub tls: bool,
    /// Its connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
}

impl Side {
    /// Its configuration. `None`: it is an address.
    pub fn conf(&self) -> Option<&SideConf> {
        match self {
            Side::Conf(conf) => Some(conf),
            Side::Running(_) => None,
        }
    }

    /// True if weir runs it; an address is not known.
    pub fn is_weir(&self) -> bool {
        self.conf().is_some_and(|conf| conf.program.is_weir())
    }

    /// Its doors, at which no arm answers yet.
    pub(crate) fn doors(&self) -> Result<Vec<Door>, Said> {
        match self {
            Side::Conf(conf) => doors::of(&conf.tree),
            Side::Running(running) => {
                let door = |one: &RunningDoor| Door {
                    address: one.address.clone(),
                    tls: one.tls,
                    proxy_protocol: one.proxy_protocol,
                    at: [None; ARMS],
                };
                Ok(running.iter().map(door).collect())
            }
        }
    }
}

/// A, A again and B, ready to be asked. The servers that swap has started end when this is dropped.
pub struct Bench {
    /// The doors of A, with the places where each arm answers.
    pub doors: Vec<Door>,
    servers: [Option<StartedServer>; ARMS],
}

impl Bench {
    /// Starts the sides that are configurations: A twice, B once.
    ///
    /// # Errors
    /// A sentence for the user: a server does not start, or no door of A has one of B.
    pub fn start(a: &Side, b: &Side, wishes: [&ServerWish<'_>; ARMS]) -> Result<Bench, Said> {
        let mut servers = [None, None, None];
        for ((server, side), wish) in servers.iter_mut().zip([a, a, b]).zip(wishes) {
            *server = side.conf().map(|conf| StartedServer::begin(conf, wish)).transpose()?;
        }
        for server in servers.iter_mut().flatten() {
            server.wait()?;
        }
        let mut doors = a.doors()?;
        let of_b = b.doors()?;
        let place = |side: &Side, arm: Arm, index: usize| match side {
            Side::Running(running) => running.get(index).map(|door| door.at),
            Side::Conf(_) => servers.get(arm as usize)?.as_ref()?.ports().get(index).copied(),
        };
        for index in 0..doors.len() {
            let Some(door) = doors.get(index) else { continue };
            let other = partner(door, &of_b, matches!(a, Side::Running(_)) || matches!(b, Side::Running(_)));
            let at = [
                place(a, Arm::First, index),
                place(a, Arm::Again, index),
                other.and_then(|other| place(b, Arm::B, other)),
            ];
            if let Some(door) = doors.get_mut(index) {
                door.at = at;
            }
        }
        if !doors.iter().any(Door::is_open) {
            return Err(said!(
                "A and B have no address in common that can be asked over TCP",
                "A와 B에 TCP로 요청할 수 있는 공통 주소가 없습니다"
            ));
        }
        Ok(Bench { doors, servers })
    }

    /// Shows what the arms do beside answering, from now on. An arm that runs already shows nothing.
    pub fn watches(&self) -> [Option<ServerWatch>; ARMS] {
        self.servers.each_ref().map(|server| server.as_ref().map(StartedServer::watch))
    }

    /// The server of an arm. `None`: it runs already.
    pub fn server(&self, arm: Arm) -> Option<&StartedServer> {
        self.servers.get(arm as usize)?.as_ref()
    }
}

/// The door of B for a door of A: the same address. If a side is an address, that of the same port, and then the only one
/// with the same scheme.
pub(crate) fn partner(door: &Door, others: &[Door], is_loose: bool) -> Option<usize> {
    let find = |is_it: &dyn Fn(&Door) -> bool| others.iter().position(is_it);
    let same = find(&|other| other.address == door.address && other.tls == door.tls);
    if same.is_some() || !is_loose {
        return same;
    }
    let of_port = find(&|other| other.tls == door.tls && other.port() == door.port());
    of_port.or_else(|| find(&|other| other.tls == door.tls))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn door(address: &str, tls: bool) -> Door {
        Door { address: Address::Tcp(address.parse().unwrap()), tls, proxy_protocol: false, at: [None; ARMS] }
    }

    #[test]
    fn doors_of_configurations_have_the_same_address() {
        let others = [door("0.0.0.0:81", false), door("0.0.0.0:80", true), door("0.0.0.0:80", false)];
        assert_eq!(partner(&door("0.0.0.0:80", false), &others, false), Some(2));
        assert_eq!(partner(&door("127.0.0.1:80", false), &others, false), None);
        assert_eq!(partner(&door("127.0.0.1:80", false), &others, true), Some(2));
        assert_eq!(partner(&door("127.0.0.1:9", false), &others, true), Some(0));
        assert_eq!(partner(&door("127.0.0.1:9", true), &others, true), Some(1));
        assert_eq!(partner(&door("127.0.0.1:9", true), &others[..1], true), None);
    }
}
