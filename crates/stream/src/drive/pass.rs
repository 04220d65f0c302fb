//! `pass`: hands a connection to another listening socket of this worker, of `stream` or of `http`.
//!
//! The connection leaves the list of the worker and enters it again, with its place in the table. A plain connection
//! is handed over unread: weir has only looked at its first bytes. Everything that is known about the client goes with
//! it: its number, its address, its TLS, its place under `limit_conn`.

use std::rc::Rc;

use weir_http::exchange::conf::Conf;
use weir_http::exchange::route::Socket;
use weir_http::hold::worker::{Entry, Generation};
use weir_meter::Step;
use weir_net::log::Level;
use weir_net::{Address, SocketAddress, TlsStream, Transport};

use super::status::{INTERNAL, OK};
use crate::conf::{self, Onward};
use crate::family::pass::{Fault, address};
use crate::session::{Known, Session};

/// The most passes of one connection (nginx has the same): a socket may pass to itself.
const PASSES_MAX: u8 = 10;

/// A connection for a socket of `http`.
pub struct Passed {
    /// The connection.
    pub entry: Entry,
    /// The configuration that found the socket.
    pub generation: Rc<Generation>,
    /// The socket.
    pub socket: Rc<Address>,
    /// The address that `pass` names: our end's address.
    pub local: SocketAddress,
    /// The number of the listen.
    pub listen: usize,
    /// The facts about the client.
    pub known: Known,
}

/// Serves a connection that leaves `stream`.
pub type Elsewhere = fn(Passed);

/// A connection at the beginning of a session.
pub struct Arrival {
    /// The number of the listen.
    pub listen: usize,
    /// The address that `pass` named.
    pub local: Option<SocketAddress>,
    /// The facts about the client that an earlier session learnt.
    pub known: Known,
}

/// The socket that gets a connection.
pub struct Goal {
    generation: Rc<Generation>,
    local: Address,
    listen: usize,
    is_secure: bool,
    /// The socket, if it is one of `http`.
    http: Option<Rc<Address>>,
}

/// Finds the socket, or the status that ends the session.
pub fn find(session: &mut Session<'_>, onward: &Onward) -> Result<Goal, u16> {
    session.step = Some(Step::Pass);
    if session.is_datagram {
        return Err(refuse(session, format_args!("cannot pass udp connection")));
    }
    if !session.early.is_empty() {
        return Err(refuse(session, format_args!("cannot pass connection with preread data")));
    }
    let local = match onward {
        Onward::To(address) => address.clone(),
        Onward::Named(text) => {
            let text = String::from_utf8_lossy(&text.text(session)).into_owned();
            address(&text).map_err(|fault| match fault {
                Fault::Malformed(words) => refuse(session, format_args!("{words} in pass \"{text}\"")),
                Fault::NoAddresses => refuse(session, format_args!("no addresses in pass \"{text}\"")),
                Fault::NoPort => refuse(session, format_args!("no port in pass \"{text}\"")),
            })?
        }
    };
    session.passes += 1;
    if session.passes > PASSES_MAX {
        return Err(refuse(session, format_args!("stream pass cycle")));
    }
    let client = || {
        let proxied = session.proxied.as_ref().map(|proxied| proxied.source);
        proxied.or_else(|| session.remote().tcp()).map(|address| address.ip())
    };
    let Some(goal) = goal(session.worker.lane(client), &local) else {
        refuse(session, format_args!("port not found for \"{local}\""));
        return Err(OK);
    };
    if goal.http.is_some() && goal.is_secure && session.facts.get().is_some() {
        return Err(refuse(session, format_args!("cannot pass decrypted connection to the SSL port \"{local}\"")));
    }
    Ok(goal)
}

fn refuse(session: &Session<'_>, why: std::fmt::Arguments<'_>) -> u16 {
    session.log(Level::Error, why);
    INTERNAL
}

/// The socket of an address in a configuration.
fn goal(generation: Rc<Generation>, local: &Address) -> Option<Goal> {
    let tcp = local.tcp();
    let found = |sockets: &[Socket]| {
        let socket = sockets.iter().find(|socket| is_at(&socket.address, local))?;
        Some((socket.address.clone(), socket.listen_for(tcp.as_ref())))
    };
    let conf: &Conf = &generation.conf;
    let streams = &conf::of(conf).streams;
    let (listen, is_secure, http) = match found(&streams.sockets) {
        Some((_, listen)) => (listen, streams.listens.get(listen)?.ssl, None),
        None => {
            let (socket, listen) = found(&conf.sockets)?;
            (listen, conf.listens.get(listen)?.ssl, Some(Rc::new(socket)))
        }
    };
    Some(Goal { generation, local: local.clone(), listen, is_secure, http })
}

/// nginx: a socket for all addresses of its family has the port, any other socket has the address.
fn is_at(socket: &Address, local: &Address) -> bool {
    match (socket.tcp(), local.tcp()) {
        (Some(socket), Some(local)) if socket.ip().is_unspecified() => {
            socket.is_ipv4() == local.is_ipv4() && socket.port() == local.port()
        }
        _ => socket == local,
    }
}

/// A connection for a socket of `stream`.
pub struct Further {
    /// The connection.
    pub entry: Entry,
    /// The configuration that found the socket.
    pub generation: Rc<Generation>,
    /// The beginning of its session.
    pub arrival: Arrival,
}

/// Hands a connection to `http`, or returns it for another session. Its session must be gone.
pub fn hand(goal: Goal, entry: Entry, known: Known, elsewhere: Elsewhere) -> Option<Further> {
    let worker = entry.worker.clone();
    // weir may have ended the connection meanwhile.
    let (transport, place) = entry.dissolve()?;
    let transport = match transport {
        Transport::Plain(stream) if goal.is_secure => TlsStream::accepted(stream).into(),
        other => other,
    };
    let Goal { generation, local, listen, http, .. } = goal;
    let entry = worker.enlist_again(transport, place, &generation);
    let Some(socket) = http else {
        return Some(Further { entry, generation, arrival: Arrival { listen, local: Some(local), known } });
    };
    elsewhere(Passed { entry, generation, socket, local, listen, known });
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_http::read::authority::literal_address;

    #[test]
    fn sockets_are_found_as_nginx_finds_them() {
        for (socket, local, is_same) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("0.0.0.0:80", "127.0.0.2:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("[::]:80", "[::1]:80", true),
            ("unix:/a", "unix:/a", true),
            ("unix:/a", "unix:/b", false),
            ("0.0.0.0:80", "unix:/a", false),
        ] {
            let [socket, local] = [socket, local].map(|text| literal_address(text).unwrap());
            assert_eq!(is_at(&socket, &local), is_same, "{socket} {local}");
        }
    }
}
