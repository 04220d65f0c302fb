//! The kernel's facts about connections that this process has not opened: `sock_diag(7)` over netlink, and the holder
//! of the other end of a connection from this machine.

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use rustix::process::geteuid;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::stream::Stream;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `NLM_F_REQUEST`.
const ONE: u16 = 1;
const HEADER_BYTES: usize = 16;
const TCP: u8 = 6;
/// Established, SYN sent, FIN wait 1 and 2, TIME_WAIT, CLOSE_WAIT, LAST_ACK, CLOSING: they hold a port towards a peer.
const STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 11;
/// The state of a closed connection whose port rests, and for how long it does (Linux, include/net/tcp.h).
const TIME_WAIT: u8 = 6;
const TIME_WAIT_MS: u32 = 60_000;
/// `idiag_expires` of an `inet_diag_msg`.
const EXPIRES_AT: usize = 52;
const REQ_BYTECODE: u16 = 1;
const BC_D_COND: u8 = 8;

/// The kernel answers in pieces of at most 32 kB.
const PIECE_BYTES: usize = 32 << 10;

/// Pieces read of one answer, at most: a count above 64 thousand connections need not be exact.
const PIECES_MAX: usize = 512;

/// Connections of this network namespace to `address` that hold a local port, of all users; `None` if the kernel does not
/// say. A connection in TIME_WAIT holds its port for `rest_ms` milliseconds, then the kernel may give the port to the
/// next connection. It walks the kernel's table of connections, which takes a millisecond.
pub fn connections_to(address: SocketAddr, rest_ms: u32) -> Option<u64> {
    let socket = ask(&question(address))?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut count = 0;
    for _ in 0..PIECES_MAX {
        let (length, _) = net::recv(&socket, &mut piece[..], RecvFlags::empty()).ok()?;
        match read(piece.get(..length)?, rest_ms, &mut count) {
            Answer::More => {}
            Answer::Whole => return Some(count),
            Answer::No => return None,
        }
    }
    Some(count)
}

/// The holder of the other end of a connection from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The user who made the socket.
    pub uid: u32,
    /// It is this process itself: weir relays to weir.
    pub is_us: bool,
}

/// The holder of the other end of a connection that comes from this machine over a unix socket or TCP; `None` if the
/// kernel does not say, or if the other end is already closed.
///
/// For TCP it asks netlink; if the user is this thread's user, it also looks through this process' open files. That
/// takes milliseconds, and is rarely needed.
pub fn holder(stream: &Stream) -> Option<Holder> {
    let (ours, theirs) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    let (Some(ours), Some(theirs)) = (ours.tcp(), theirs.tcp()) else {
        let theirs = sockopt::socket_peercred(stream.as_fd()).ok()?;
        let is_us = u32::try_from(theirs.pid.as_raw_nonzero().get()).is_ok_and(|pid| pid == std::process::id());
        return Some(Holder { uid: theirs.uid.as_raw(), is_us });
    };
    let end = end_of(canonical(theirs), canonical(ours))?;
    // All workers have the same user, so a connection of weir's own comes from this user.
    let is_us = end.uid == geteuid().as_raw() && has_open(end.inode)?;
    Some(Holder { uid: end.uid, is_us })
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether this process has the socket open; `None` if `/proc` cannot be read.
fn has_open(inode: u32) -> Option<bool> {
    let wanted = format!("socket:[{inode}]");
    let files = std::fs::read_dir("/proc/self/fd").ok()?;
    let mut links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    Some(links.any(|link| link.as_os_str() == wanted.as_str()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    uid: u32,
    inode: u32,
}

/// The open socket at the address `at` of this network namespace whose other end is at `peer`.
fn end_of(at: SocketAddr, peer: SocketAddr) -> Option<End> {
    let socket = ask(&question_for_one(at, peer))?;
    let mut piece = vec![0; PIECE_BYTES];
    let (length, _) = net::recv(&socket, &mut piece[..], RecvFlags::empty()).ok()?;
    read_end(piece.get(..length)?)
}

/// `inet_diag_req_v2` with the socket's id (linux/inet_diag.h).
fn question_for_one(at: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => [ip.octets().to_vec(), vec![0; 12]].concat(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut out = vec![0; HEADER_BYTES];
    out.extend([family.as_raw() as u8, TCP, 0, 0]);
    out.extend(STATES.to_ne_bytes());
    out.extend(at.port().to_be_bytes());
    out.extend(peer.port().to_be_bytes());
    out.extend(octets(at.ip()));
    out.extend(octets(peer.ip()));
    // Any interface; INET_DIAG_NOCOOKIE.
    out.extend([0; 4]);
    out.extend([0xff; 8]);
    with_header(out, ONE)
}

/// The user and inode of an `inet_diag_msg`. A socket that its holder has closed belongs to nobody, and the kernel then
/// reports root. If there is no connection, the kernel may report a listener. Neither is the end of a connection.
fn read_end(piece: &[u8]) -> Option<End> {
    /// Established, FIN wait 1 and 2.
    const OPEN: [u8; 3] = [1, 4, 5];
    let word = |at: usize| Some(u32::from_ne_bytes(*piece.get(at..)?.first_chunk()?));
    let kind = u16::from_ne_bytes(*piece.get(4..)?.first_chunk()?);
    let state = *piece.get(HEADER_BYTES + 1)?;
    let end = End { uid: word(HEADER_BYTES + 64)?, inode: word(HEADER_BYTES + 68)? };
    (kind == SOCK_DIAG_BY_FAMILY && OPEN.contains(&state) && end.inode != 0).then_some(end)
}

/// A netlink socket on which the question was sent.
fn ask(question: &[u8]) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG)).ok()?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(1))).ok()?;
    net::sendto(&socket, question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).ok()?;
    Some(socket)
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
    // The socket's id: empty, because this question is not about one id.
    out.extend([0; 48]);
    out.extend(((condition_bytes + 4) as u16).to_ne_bytes());
    out.extend(REQ_BYTECODE.to_ne_bytes());
    // The program is one condition. If it is met, it jumps to the end of the program, which means yes. If not, it
    // jumps four bytes beyond the end, which means no.
    out.extend([BC_D_COND, condition_bytes as u8]);
    out.extend(((condition_bytes + 4) as u16).to_ne_bytes());
    out.extend([family, (octets.len() * 8) as u8, 0, 0]);
    out.extend(u32::from(address.port()).to_ne_bytes());
    out.extend(octets);
    with_header(out, DUMP)
}

/// Whether a connection holds its port: `inet_diag_msg` of one in TIME_WAIT has the milliseconds that are left of 60 s.
fn holds_port(message: &[u8], rest_ms: u32) -> bool {
    let left = message
        .get(HEADER_BYTES + EXPIRES_AT..)
        .and_then(|left| left.first_chunk())
        .map(|left| u32::from_ne_bytes(*left));
    let is_resting = message.get(HEADER_BYTES + 1) == Some(&TIME_WAIT);
    !is_resting || left.is_none_or(|left| TIME_WAIT_MS.saturating_sub(left) < rest_ms)
}

/// Fills in the netlink header that a question leaves room for.
fn with_header(mut out: Vec<u8>, flags: u16) -> Vec<u8> {
    let length = (out.len() as u32).to_ne_bytes();
    let head = length.into_iter().chain(SOCK_DIAG_BY_FAMILY.to_ne_bytes()).chain(flags.to_ne_bytes());
    for (byte, value) in out.iter_mut().zip(head) {
        *byte = value;
    }
    out
}

/// Counts the connections in a piece of an answer that hold their ports.
fn read(mut piece: &[u8], rest_ms: u32, count: &mut u64) -> Answer {
    while let Some((head, _)) = piece.split_at_checked(HEADER_BYTES) {
        let [a, b, c, d, kind, kind_high, ..] = head else { return Answer::No };
        let length = u32::from_ne_bytes([*a, *b, *c, *d]) as usize;
        match u16::from_ne_bytes([*kind, *kind_high]) {
            SOCK_DIAG_BY_FAMILY => *count += u64::from(holds_port(piece, rest_ms)),
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
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    /// A listener at a loopback address that no other program uses. At 127.0.0.1 a connection of another program may
    /// still rest that had the listener's port as its other end.
    fn listener() -> TcpListener {
        let [.., high, low] = std::process::id().to_be_bytes();
        TcpListener::bind((Ipv4Addr::new(127, 77, high, low), 0)).unwrap()
    }

    #[test]
    fn connections_to_a_peer_are_counted_and_no_others() {
        let here = listener();
        let elsewhere = listener();
        let address = here.local_addr().unwrap();
        let before = connections_to(address, TIME_WAIT_MS).expect("the kernel has sock_diag(7)");
        let _other = TcpStream::connect(elsewhere.local_addr().unwrap()).unwrap();
        let open: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert_eq!((before, connections_to(address, TIME_WAIT_MS)), (0, Some(3)));
        let six: SocketAddr = "[::1]:9".parse().unwrap();
        assert_eq!(connections_to(six, TIME_WAIT_MS), Some(0));
        drop(open);
    }

    /// The side that closes first holds its port in TIME_WAIT.
    #[test]
    fn a_resting_port_counts_as_long_as_it_rests() {
        let here = listener();
        let address = here.local_addr().unwrap();
        for _ in 0..3 {
            let client = TcpStream::connect(address).unwrap();
            let (server, _) = here.accept().unwrap();
            drop(client);
            drop(server);
        }
        let soon = std::time::Instant::now() + Duration::from_secs(20);
        while connections_to(address, 0) != Some(0) {
            assert!(std::time::Instant::now() < soon, "the connections do not end");
        }
        assert_eq!(connections_to(address, TIME_WAIT_MS), Some(3));
    }

    #[test]
    fn the_other_end_has_a_holder_while_it_is_open() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(here) = TcpListener::bind(any) else { continue };
            let address = here.local_addr().unwrap();
            let client = TcpStream::connect(address).unwrap();
            let (_server, from) = here.accept().unwrap();
            let end = end_of(from, address).expect("the kernel has sock_diag(7)");
            assert_eq!((end.uid, has_open(end.inode)), (rustix::process::getuid().as_raw(), Some(true)));
            assert_eq!(has_open(end.inode.wrapping_add(1_000_000)), Some(false));
            drop(client);
            assert_eq!(end_of(from, address), None, "nobody holds it any more");
            assert_eq!(end_of(address, address), None, "a listener is nobody's end");
        }
    }

    #[test]
    fn a_strange_answer_is_no_answer() {
        assert_eq!(read_end(&[0; 40]), None);
        assert_eq!(read_end(&[0; 88]), None);
        let mut count = 0;
        assert_eq!(read(&[0; 15], 0, &mut count), Answer::More);
        assert_eq!(read(&[0; 64], 0, &mut count), Answer::More, "lengths of nothing end, too");
        let mut error = [0; 20];
        (error[0], error[4]) = (20, NLMSG_ERROR as u8);
        assert_eq!((read(&error, 0, &mut count), count), (Answer::No, 0));
    }
}
