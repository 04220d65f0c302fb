//! Connection ids that name the process and the worker that a datagram is for.
//!
//! An id is one block of AES-128: check bytes, generation, worker, and a number that no other id of the worker has. Nobody
//! without the key can read an id, or see that two ids belong together (RFC 9000 §5.1). Within the block stands a mark, by
//! which the kernel chooses the worker's socket ([`weir_net::steer`]).

use aws_lc_rs::cipher::{AES_128, DecryptingKey, DecryptionContext, EncryptingKey, UnboundCipherKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use weir_net::random;
use weir_net::steer::{HEAD_BYTES, Steering};

/// The length of an id; bytes.
pub const ID_BYTES: usize = BLOCK_BYTES + 1;
const BLOCK_BYTES: usize = 16;

/// The beginning of an opened id: a foreign id has it by chance once in 2^32.
const CHECK: [u8; 4] = *b"weir";

/// The length of the longest id of QUIC version 1 (RFC 9000 §17.2).
const FOREIGN_ID_BYTES_MAX: usize = 20;

/// The first bit of a packet with a long header.
pub(crate) const LONG: u8 = 0x80;
/// Where the length of the destination id is in a long header, after the first byte and the version.
const LENGTH_AT: usize = 5;

/// The process and the worker that made an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPlace {
    /// The number of the process among those with the same host key.
    pub generation: u16,
    /// The number of the worker in its process.
    pub worker: u16,
    /// The number of the socket that the worker reads: a hint for the kernel.
    pub socket: u8,
}

impl WorkerPlace {
    /// Whether both are one worker; it may read several sockets.
    pub fn is_same_worker(self, other: WorkerPlace) -> bool {
        (self.generation, self.worker) == (other.generation, other.worker)
    }
}

/// The key that seals ids.
pub struct IdKey {
    seals: EncryptingKey,
    opens: DecryptingKey,
    steering: Steering,
}

impl IdKey {
    /// `None` if the library refuses the key.
    pub(crate) fn new(key: &[u8; 16], steering: &[u8; 16]) -> Option<IdKey> {
        let unbound = || UnboundCipherKey::new(&AES_128, key);
        Some(IdKey {
            seals: EncryptingKey::ecb(unbound().ok()?).ok()?,
            opens: DecryptingKey::ecb(unbound().ok()?).ok()?,
            steering: Steering::new(steering),
        })
    }

    /// The key by which the kernel reads the marks.
    pub fn steering(&self) -> &Steering {
        &self.steering
    }

    fn seal(&self, place: WorkerPlace, number: u64) -> [u8; ID_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        let parts = [&CHECK[..], &place.generation.to_be_bytes(), &place.worker.to_be_bytes(), &number.to_be_bytes()];
        for (to, from) in block.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        // A whole block without padding: there is nothing to fail.
        let _ = self.seals.encrypt(&mut block);
        let [a, b, c, d, e, f, g, h, rest @ ..] = block;
        let head = [a, b, c, d, e, f, g, h];
        let mut id = [self.steering.mark(head, place.socket); ID_BYTES];
        let others = id.iter_mut().enumerate().filter(|(at, _)| *at != HEAD_BYTES).map(|(_, byte)| byte);
        others.zip(head.into_iter().chain(rest)).for_each(|(to, from)| *to = from);
        id
    }

    /// The place that an id names; `None` if it was not made with this key.
    pub fn open(&self, id: &[u8]) -> Option<WorkerPlace> {
        let (head, rest) = id.split_at_checked(HEAD_BYTES)?;
        let (mark, rest) = rest.split_first()?;
        let mut block = [0; BLOCK_BYTES];
        block.get_mut(..HEAD_BYTES)?.copy_from_slice(head);
        let room = block.get_mut(HEAD_BYTES..).filter(|room| room.len() == rest.len())?;
        room.copy_from_slice(rest);
        self.opens.decrypt(&mut block, DecryptionContext::None).ok()?;
        let [a, b, c, d, generation @ .., _, _, _, _, _, _, _, _, _, _] = block;
        let [_, _, _, _, _, _, worker @ .., _, _, _, _, _, _, _, _] = block;
        let socket = self.steering.mark(*head.first_chunk()?, *mark);
        let (generation, worker) = (u16::from_be_bytes(generation), u16::from_be_bytes(worker));
        ([a, b, c, d] == CHECK).then_some(WorkerPlace { generation, worker, socket })
    }
}

impl fmt::Debug for IdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKey")
    }
}

/// The destination id of a datagram, from the header of its first packet; `None` if the datagram is too short.
///
/// A packet with a short header has an id of [`ID_BYTES`], because all ids of weir have this length. A client chooses
/// the id of its first packets, so only [`IdKey::open`] tells whether the id is weir's.
pub fn destination(datagram: &[u8]) -> Option<&[u8]> {
    let first = datagram.first()?;
    if first & LONG == 0 {
        return datagram.get(1..=ID_BYTES);
    }
    let len = usize::from(*datagram.get(LENGTH_AT)?);
    let id = datagram.get(LENGTH_AT + 1..)?.get(..len)?;
    (len <= FOREIGN_ID_BYTES_MAX).then_some(id)
}

/// Makes the ids of one worker.
#[derive(Debug)]
pub struct Ids {
    key: Arc<IdKey>,
    place: WorkerPlace,
    next: u64,
}

impl Ids {
    /// Ids for a place. They begin at a random number, so that a process that has the number of an earlier one does
    /// not repeat its ids.
    pub fn new(key: Arc<IdKey>, place: WorkerPlace) -> Ids {
        // Without random bytes there is no handshake either.
        let first = random::bytes().unwrap_or_default();
        Ids { key, place, next: u64::from_be_bytes(first) }
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.next = self.next.wrapping_add(1);
        ConnectionId::new(&self.key.seal(self.place, self.next))
    }

    /// The endpoint asks before it sends a stateless reset. It may reset the connections of all places, because an
    /// earlier process may have lost them: so it must not see datagrams for a place that lives.
    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        self.key.open(id).map(|_| ()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use std::collections::HashSet;

    const PLACE: WorkerPlace = WorkerPlace { generation: 0x0102, worker: 0x0304, socket: 5 };

    fn ids(host_key: u8, place: WorkerPlace) -> Ids {
        Ids::new(Keys::of(&[host_key; 32]).unwrap().id, place)
    }

    #[test]
    fn an_id_opens_to_its_place_with_its_key_alone() {
        let (mut ids, same, other) =
            (ids(1, PLACE), ids(1, WorkerPlace { generation: 9, worker: 9, socket: 9 }), ids(2, PLACE));
        for _ in 0..100 {
            let id = ids.generate_cid();
            assert_eq!(same.key.open(&id), Some(PLACE));
            assert!(same.validate(&id).is_ok());
            assert_eq!(other.key.open(&id), None);
            assert!(other.validate(&id).is_err());
        }
    }

    #[test]
    fn a_changed_bit_and_another_length_do_not_open() {
        let mut ids = ids(1, PLACE);
        let id = ids.generate_cid();
        for bit in 0..8 * ID_BYTES {
            let mut changed = id.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            // The mark is a hint alone.
            let place = ids.key.open(&changed).map(|place| WorkerPlace { socket: PLACE.socket, ..place });
            assert_eq!(place, (bit / 8 == HEAD_BYTES).then_some(PLACE), "bit {bit}");
        }
        assert_eq!(ids.key.open(&id[1..]), None);
        assert_eq!(ids.key.open(&[&id[..], &[0]].concat()), None);
    }

    #[test]
    fn no_two_ids_are_equal_or_alike() {
        let (mut first, mut second) = (ids(1, PLACE), ids(1, PLACE));
        let all: Vec<ConnectionId> = (0..1000).flat_map(|_| [first.generate_cid(), second.generate_cid()]).collect();
        assert_eq!(all.iter().map(|id| id.to_vec()).collect::<HashSet<_>>().len(), all.len());
        for at in 0..ID_BYTES {
            assert!(all.iter().map(|id| id[at]).collect::<HashSet<_>>().len() > 200, "byte {at}");
        }
    }

    #[test]
    fn the_destination_is_read_from_both_headers() {
        let id: Vec<u8> = (1..=17).collect();
        let short = [&[0x40][..], &id, &[0xff; 30]].concat();
        assert_eq!(destination(&short), Some(&id[..]));
        let long = |len: u8| [&[0xc0, 0, 0, 0, 1, len][..], &id, &[0xff; 30]].concat();
        assert_eq!(destination(&long(17)), Some(&id[..]));
        assert_eq!(destination(&long(8)), Some(&id[..8]));
        assert_eq!(destination(&long(0)), Some(&[][..]));
        assert_eq!(destination(&long(21)), None);
        for (datagram, needs) in [(short, 18), (long(17), 23)] {
            for cut in 0..needs {
                assert_eq!(destination(&datagram[..cut]), None, "{cut}");
            }
            assert!(destination(&datagram[..needs]).is_some());
        }
    }
}
