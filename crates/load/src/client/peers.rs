//! The addresses that this process loads. The self-check asks for them, because local ports run out towards one address
//! and not for all of them together.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use weir_host as host;
use weir_net::diag;

/// Addresses kept at most. The first ones are enough: more addresses share the load, and each has all ports to itself.
const PEERS_MAX: usize = 8;

static PEERS: Mutex<Vec<SocketAddr>> = Mutex::new(Vec::new());

/// Remembers an address to which a connection begins.
pub(crate) fn remember(address: SocketAddr) {
    let mut peers = PEERS.lock().unwrap_or_else(PoisonError::into_inner);
    if peers.len() < PEERS_MAX && !peers.contains(&address) {
        peers.push(address);
    }
}

/// Local ports held towards the address with the most of them; `None` if the kernel does not say, or without a connection
/// so far. A port whose connection rests in TIME_WAIT is held until the kernel gives it away.
pub(crate) fn ports_held() -> Option<u64> {
    let rest = host::port_rest_under(&host::Files::under(Path::new("/")));
    let peers = PEERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    peers.into_iter().filter_map(|peer| diag::connections_to(peer, rest.towards(peer.ip()))).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn only_ports_towards_a_peer_count() {
        let (ours, theirs) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let connect = |to: &TcpListener| TcpStream::connect(to.local_addr().unwrap()).unwrap();
        let _others: Vec<_> = (0..50).map(|_| connect(&theirs)).collect();
        let _held: Vec<_> = (0..3).map(|_| connect(&ours)).collect();
        remember(ours.local_addr().unwrap());
        // Other tests of this process have few connections to their servers.
        let held = ports_held().expect("the kernel has sock_diag(7)");
        assert!((3..50).contains(&held), "{held}");
    }
}
