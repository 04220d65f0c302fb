//! Which socket of a group gets a datagram of QUIC: the one that its connection ID names, and not the one that a hash of the
//! addresses gives. The choice holds when a client's address changes and when the group grows.
//!
//! A connection ID of weir begins with eight bytes that look random, the head. The next byte, the mark, is the number of the
//! socket, hidden by a key and the head: other people cannot tell which IDs belong to one worker. A program in the kernel
//! (classic BPF) reads the mark. An ID that a client has chosen has a random mark, and so spreads clients over the workers.
//! The mark is a hint: joined datagrams, clients that lie, and changes of the number of workers bring a datagram to another
//! worker, which passes it on by what the head says.

use crate::datagrams::Receiving;
use crate::sys;
use libc::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_IMM, BPF_IND, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD,
    BPF_LDX, BPF_LEN, BPF_LSH, BPF_MEM, BPF_MISC, BPF_MOD, BPF_RET, BPF_RSH, BPF_ST, BPF_TAX, BPF_W, BPF_X, BPF_XOR,
    sock_filter,
};
use std::fmt;
use std::io;
use std::os::fd::AsFd;

/// Sockets of a group, at most: a mark is a byte.
pub const SOCKETS_MAX: usize = 256;
/// Bytes of a connection ID that the mark is made of.
pub const HEAD_BYTES: usize = 8;
/// The place of a connection ID in a packet with a short header, and in one with a long header (RFC 8999, section 5).
const SHORT_ID_AT: u32 = 1;
const LONG_ID_AT: u32 = 6;
/// The first bit of a packet with a long header.
const LONG: u32 = 0x80;

/// Half rounds of XTEA.
const HALF_ROUNDS: usize = 64;
/// What XTEA adds to its sum in each round.
const DELTA: u32 = 0x9E37_79B9;

/// Places in the memory of the program: the two halves of the head, and the mark.
const LEFT: u32 = 0;
const RIGHT: u32 = 1;
const MARK: u32 = 2;

/// A key, by which sockets and connection IDs belong together.
///
/// The cipher is XTEA, because a program in the kernel can only add, shift and compare numbers of 32 bits.
#[derive(Clone)]
pub struct Steering {
    /// The key of each half round.
    keys: [u32; HALF_ROUNDS],
}

impl Steering {
    /// With this key, which all processes that share the sockets need.
    pub fn new(key: &[u8; 16]) -> Steering {
        let (words, _) = key.as_chunks::<4>();
        let word = |at: u32| words.get(at as usize & 3).map_or(0, |word| u32::from_be_bytes(*word));
        let (mut keys, mut sum) = ([0; HALF_ROUNDS], 0u32);
        let (rounds, _) = keys.as_chunks_mut::<2>();
        for [first, second] in rounds {
            *first = sum.wrapping_add(word(sum));
            sum = sum.wrapping_add(DELTA);
            *second = sum.wrapping_add(word(sum >> 11));
        }
        Steering { keys }
    }

    /// The mark that follows this head in a connection ID, so that its datagrams reach the socket with this number.
    ///
    /// The head must look random, and no two connection IDs may have the same one.
    pub fn mark(&self, head: [u8; HEAD_BYTES], socket: u8) -> u8 {
        self.mask(head) ^ socket
    }

    /// The number of the socket that a connection ID names; `None` if it is too short to have a mark.
    pub fn socket(&self, id: &[u8]) -> Option<u8> {
        let (head, rest) = id.split_first_chunk()?;
        rest.first().map(|mark| self.mask(*head) ^ mark)
    }

    fn mask(&self, head: [u8; HEAD_BYTES]) -> u8 {
        self.encrypt(u64::from_be_bytes(head)).to_be_bytes()[3]
    }

    /// XTEA.
    fn encrypt(&self, block: u64) -> u64 {
        let (mut one, mut other) = ((block >> 32) as u32, block as u32);
        for key in self.keys {
            let mixed = ((other << 4) ^ (other >> 5)).wrapping_add(other) ^ key;
            (one, other) = (other, one.wrapping_add(mixed));
        }
        // The halves have changed places an even number of times.
        (u64::from(one) << 32) | u64::from(other)
    }

    /// Makes the kernel choose by connection IDs among `sockets`, which are all sockets of one address in the order in which
    /// they were bound. IDs of strangers go to the first `workers` of them. It replaces the choice before, in one step; a
    /// socket that joins later gets nothing until the next call.
    ///
    /// # Errors
    /// There is no socket, or there are more than [`SOCKETS_MAX`]; the kernel has no memory for the program.
    pub fn attach(&self, sockets: &[Receiving], workers: usize) -> io::Result<()> {
        let first = sockets.first().filter(|_| sockets.len() <= SOCKETS_MAX).ok_or(io::ErrorKind::InvalidInput)?;
        sys::attach_choice(first.as_fd(), &self.program(sockets.len(), workers.clamp(1, sockets.len())))
    }

    /// The program: its result is the number of a socket. A number that no socket has leaves the choice to the hash of the
    /// addresses.
    fn program(&self, sockets: usize, workers: usize) -> Vec<sock_filter> {
        let shortest = LONG_ID_AT + HEAD_BYTES as u32 + 1;
        let mut steps = vec![
            step(BPF_LD | BPF_W | BPF_LEN, 0),
            jump(BPF_JGE, shortest, 1, 0),
            step(BPF_RET | BPF_K, u32::MAX),
            // The register X is the place of the ID.
            step(BPF_LD | BPF_B | BPF_ABS, 0),
            step(BPF_LDX | BPF_IMM, LONG_ID_AT),
            jump(BPF_JSET, LONG, 1, 0),
            step(BPF_LDX | BPF_IMM, SHORT_ID_AT),
            step(BPF_LD | BPF_W | BPF_IND, 0),
            step(BPF_ST, LEFT),
            step(BPF_LD | BPF_W | BPF_IND, 4),
            step(BPF_ST, RIGHT),
            step(BPF_LD | BPF_B | BPF_IND, HEAD_BYTES as u32),
            step(BPF_ST, MARK),
        ];
        let (mut one, mut other) = (LEFT, RIGHT);
        for key in self.keys {
            steps.extend(half_round(one, other, key));
            (one, other) = (other, one);
        }
        steps.extend([
            step(BPF_LD | BPF_MEM, LEFT),
            step(BPF_LDX | BPF_MEM, MARK),
            step(BPF_ALU | BPF_XOR | BPF_X, 0),
            step(BPF_ALU | BPF_AND | BPF_K, 0xff),
            jump(BPF_JGE, sockets as u32, 0, 1),
            step(BPF_ALU | BPF_MOD | BPF_K, workers as u32),
            step(BPF_RET | BPF_A, 0),
        ]);
        steps
    }
}

impl fmt::Debug for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steering")
    }
}

/// Adds the mixed half at `other` to the half at `one`.
fn half_round(one: u32, other: u32, key: u32) -> [sock_filter; 12] {
    [
        step(BPF_LD | BPF_MEM, other),
        step(BPF_ALU | BPF_LSH | BPF_K, 4),
        step(BPF_MISC | BPF_TAX, 0),
        step(BPF_LD | BPF_MEM, other),
        step(BPF_ALU | BPF_RSH | BPF_K, 5),
        step(BPF_ALU | BPF_XOR | BPF_X, 0),
        step(BPF_LDX | BPF_MEM, other),
        step(BPF_ALU | BPF_ADD | BPF_X, 0),
        step(BPF_ALU | BPF_XOR | BPF_K, key),
        step(BPF_LDX | BPF_MEM, one),
        step(BPF_ALU | BPF_ADD | BPF_X, 0),
        step(BPF_ST, one),
    ]
}

fn step(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Skips so many steps if the comparison with `k` holds, and so many if it does not.
fn jump(comparison: u32, k: u32, holds: u8, fails: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | comparison | BPF_K) as u16, jt: holds, jf: fails, k }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::batch::{ReceiveBatch, ReceivedDatagram};
    use crate::datagrams::{DatagramOptions, Receiver, bind, bind_more};
    use crate::worker::block_on;
    use std::net::UdpSocket;

    const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    #[test]
    fn the_cipher_is_xtea() {
        // The vector that implementations of XTEA share.
        let encrypted = Steering::new(&KEY).encrypt(u64::from_be_bytes(*b"ABCDEFGH"));
        assert_eq!(encrypted, 0x497d_f3d0_7261_2cb5);
    }

    #[test]
    fn a_mark_names_its_socket_and_looks_random() {
        let steering = Steering::new(&KEY);
        let mut seen = [0u32; 256];
        for number in 0..25_600u64 {
            let head = number.to_be_bytes();
            let mark = steering.mark(head, 7);
            seen[usize::from(mark)] += 1;
            assert_eq!(steering.socket(&[&head[..], &[mark, 0]].concat()), Some(7));
        }
        assert!(seen.iter().all(|count| (50..200).contains(count)), "about 100 of each");
        assert_eq!(steering.socket(&[0; HEAD_BYTES]), None);
    }

    /// Sockets of one address, each with its registration.
    struct Group {
        sockets: Vec<Receiving>,
        receivers: Vec<Receiver>,
        batch: ReceiveBatch,
    }

    impl Group {
        fn new(address: &str, count: usize) -> Group {
            let mut group = Group { sockets: Vec::new(), receivers: Vec::new(), batch: ReceiveBatch::new() };
            group.grow(address, count);
            group
        }

        fn grow(&mut self, address: &str, count: usize) {
            let options = DatagramOptions { is_quic: true, ..DatagramOptions::default() };
            bind_more(&mut self.sockets, address.parse().unwrap(), &options, count).unwrap();
            let fresh = self.sockets.iter().skip(self.receivers.len());
            let fresh: Vec<Receiver> = fresh.map(|socket| Receiver::new(socket).unwrap()).collect();
            self.receivers.extend(fresh);
        }

        /// What each socket has received: the last byte of each datagram.
        fn received(&mut self) -> Vec<Vec<u8>> {
            let last = |one: ReceivedDatagram<'_>| one.bytes.last().copied();
            let mut all = Vec::new();
            for receiver in &self.receivers {
                let mut some = Vec::new();
                while receiver.try_receive_batch(&mut self.batch).is_ok() {
                    some.extend(self.batch.datagrams().filter_map(last));
                }
                all.push(some);
            }
            all
        }

        fn client(&self) -> UdpSocket {
            let address = self.sockets[0].local_addr();
            let client = UdpSocket::bind(if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }).unwrap();
            client.connect(address).unwrap();
            client
        }
    }

    fn id(steering: &Steering, number: u64, socket: u8) -> Vec<u8> {
        let head = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_be_bytes();
        [&head[..], &[steering.mark(head, socket)]].concat()
    }

    fn short(id: &[u8], last: u8) -> Vec<u8> {
        [&[0x40], id, &[0; 6], &[last]].concat()
    }

    fn long(id: &[u8], last: u8) -> Vec<u8> {
        [&[0xc0, 0, 0, 0, 1, id.len() as u8], id, &[0, last]].concat()
    }

    #[test]
    fn the_kernel_chooses_by_connection_id() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            block_on(async move {
                let steering = Steering::new(&KEY);
                let mut group = Group::new(address, 3);
                steering.attach(&group.sockets, 3).unwrap();
                // A client that changes its address with each datagram, and many clients behind one address.
                let one = group.client();
                for number in 0..60u8 {
                    let id = id(&steering, number.into(), number % 3);
                    let client = group.client();
                    client.send(&short(&id, number % 3)).unwrap();
                    one.send(&long(&id, number % 3)).unwrap();
                }
                assert_eq!(group.received(), [[0; 40], [1; 40], [2; 40]]);
                // IDs of strangers, the shortest one of eight bytes, reach every socket.
                for number in 0..200 {
                    one.send(&long(&id(&steering, number, 99)[..HEAD_BYTES], 0)).unwrap();
                }
                let counts: Vec<usize> = group.received().iter().map(Vec::len).collect();
                assert!(counts.iter().all(|count| *count > 30) && counts.iter().sum::<usize>() == 200, "{counts:?}");
                // Garbage reaches some socket.
                for length in 1..16 {
                    one.send(&vec![0xc0; length]).unwrap();
                }
                assert_eq!(group.received().iter().map(Vec::len).sum::<usize>(), 15);
            })
            .unwrap();
        }
    }

    #[test]
    fn a_group_that_grows_or_has_fewer_workers_keeps_its_connections() {
        block_on(async {
            let steering = Steering::new(&KEY);
            let mut group = Group::new("127.0.0.1:0", 2);
            steering.attach(&group.sockets, 2).unwrap();
            let client = group.client();
            let send = |sockets: u8| {
                for number in 0..60u8 {
                    let socket = number % sockets;
                    client.send(&short(&id(&steering, number.into(), socket), socket)).unwrap();
                    client.send(&long(&id(&steering, number.into(), 200 + number % 8), 200)).unwrap();
                }
            };
            let check = |received: Vec<Vec<u8>>, sockets: usize, workers: usize| {
                for (socket, received) in received.iter().enumerate() {
                    let own = received.iter().filter(|byte| usize::from(**byte) == socket).count();
                    let strangers = received.iter().filter(|byte| **byte == 200).count();
                    assert_eq!(own, if socket < sockets { 60 / sockets } else { 0 }, "{socket}");
                    assert_eq!((strangers > 0, own + strangers), (socket < workers, received.len()), "{socket}");
                }
            };
            send(2);
            check(group.received(), 2, 2);
            group.grow("127.0.0.1:0", 4);
            send(2);
            check(group.received(), 2, 2);
            steering.attach(&group.sockets, 4).unwrap();
            send(4);
            check(group.received(), 4, 4);
            steering.attach(&group.sockets, 1).unwrap();
            send(4);
            check(group.received(), 4, 1);
        })
        .unwrap();
    }

    #[test]
    fn a_group_without_sockets_or_with_too_many_is_refused() {
        let steering = Steering::new(&KEY);
        assert!(steering.attach(&[], 1).is_err());
        let socket = bind("127.0.0.1:0".parse().unwrap(), &DatagramOptions::default()).unwrap();
        assert!(steering.attach(&vec![socket.clone(); SOCKETS_MAX + 1], 1).is_err());
        steering.attach(&[socket], 9).unwrap();
    }
}
