//! What the kernel knows of TCP connections that are not ours to ask: `sock_diag(7)` over netlink.

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const HEADER_BYTES: usize = 16;
const TCP: u8 = 6;
/// Established, SYN sent, FIN wait 1 and 2, TIME_WAIT, CLOSE_WAIT, LAST_ACK, CLOSING: what holds a port towards a peer.
const STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 11;
const REQ_BYTECODE: u16 = 1;
const BC_D_COND: u8 = 8;

/// The kernel answers in pieces of at most 32 kB.
const PIECE_BYTES: usize = 32 << 10;

/// Pieces read of one answer, at most: beyond 64 thousand connections nobody asks how many more there are.
const PIECES_MAX: usize = 512;

/// Connections of this network namespace to `address` that hold a local port, those in TIME_WAIT among them, whoever's
/// they are; `None` where the kernel does not say. It walks the kernel's table of connections: a millisecond.
pub fn connections_to(address: SocketAddr) -> Option<u64> {
    let flags = SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG)).ok()?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(1))).ok()?;
    net::sendto(&socket, &question(address), SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).ok()?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut count = 0;
    for _ in 0..PIECES_MAX {
        let (length, _) = net::recv(&socket, &mut piece[..], RecvFlags::empty()).ok()?;
        match read(piece.get(..length)?, &mut count) {
            Answer::More => {}
            Answer::Whole => return Some(count),
            Answer::No => return None,
        }
    }
    Some(count)
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    More,
    Whole,
    No,
}

/// `inet_diag_req_v2` with a filter on the other end (linux/inet_diag.h).
fn question(address: SocketAddr) -> Vec<u8> {
    let (family, octets): (u8, Vec<u8>) = match address.ip() {
        IpAddr::V4(ip) => (AddressFamily::INET.as_raw() as u8, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AddressFamily::INET6.as_raw() as u8, ip.octets().to_vec()),
    };
    let condition_bytes = 4 + 8 + octets.len();
    let mut out = vec![0; HEADER_BYTES];
    out.extend([family, TCP, 0, 0]);
    out.extend(STATES.to_ne_bytes());
    // The socket's id: not asked for by id.
    out.extend([0; 48]);
    out.extend(((condition_bytes + 4) as u16).to_ne_bytes());
    out.extend(REQ_BYTECODE.to_ne_bytes());
    // The program is one condition: met, it ends where the program does; not met, four bytes behind that, which says no.
    out.extend([BC_D_COND, condition_bytes as u8]);
    out.extend(((condition_bytes + 4) as u16).to_ne_bytes());
    out.extend([family, (octets.len() * 8) as u8, 0, 0]);
    out.extend(u32::from(address.port()).to_ne_bytes());
    out.extend(octets);
    let length = (out.len() as u32).to_ne_bytes();
    let head = length.into_iter().chain(SOCK_DIAG_BY_FAMILY.to_ne_bytes()).chain(DUMP.to_ne_bytes());
    for (byte, value) in out.iter_mut().zip(head) {
        *byte = value;
    }
    out
}

/// Counts the connections in a piece of an answer.
fn read(mut piece: &[u8], count: &mut u64) -> Answer {
    while let Some((head, _)) = piece.split_at_checked(HEADER_BYTES) {
        let [a, b, c, d, kind, kind_high, ..] = head else { return Answer::No };
        let length = u32::from_ne_bytes([*a, *b, *c, *d]) as usize;
        match u16::from_ne_bytes([*kind, *kind_high]) {
            SOCK_DIAG_BY_FAMILY => *count += 1,
            NLMSG_DONE => return Answer::Whole,
            NLMSG_ERROR => return Answer::No,
            _ => {}
        }
        let step = length.max(HEADER_BYTES).next_multiple_of(4);
        piece = piece.get(step..).unwrap_or_default();
    }
    Answer::More
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn connections_to_a_peer_are_counted_and_no_others() {
        let here = TcpListener::bind("127.0.0.1:0").unwrap();
        let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = here.local_addr().unwrap();
        let Some(before) = connections_to(address) else { return }; // a sandbox without sock_diag
        let _other = TcpStream::connect(elsewhere.local_addr().unwrap()).unwrap();
        let open: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert_eq!((before, connections_to(address)), (0, Some(3)));
        let six: SocketAddr = "[::1]:9".parse().unwrap();
        assert_eq!(connections_to(six), Some(0));
        drop(open);
    }

    #[test]
    fn a_strange_answer_is_no_answer() {
        let mut count = 0;
        assert_eq!(read(&[0; 15], &mut count), Answer::More);
        assert_eq!(read(&[0; 64], &mut count), Answer::More, "lengths of nothing end, too");
        let mut error = [0; 20];
        (error[0], error[4]) = (20, NLMSG_ERROR as u8);
        assert_eq!((read(&error, &mut count), count), (Answer::No, 0));
    }
}
