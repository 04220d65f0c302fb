//! The address that the peer of a connection has proved.
//!
//! quinn-proto follows a peer to another address before the peer has proved it (RFC 9000 §9.3), and does not tell when it has.
//! So the keys of 1-RTT packets look for the frames of the proof, while one is wanted: a PATH_CHALLENGE that weir sent to an
//! address, and its bytes in a PATH_RESPONSE from there. Invariant: without the bytes that went to an address alone, no
//! packet proves it; whoever sends with a foreign address does not see them.

use std::cell::Cell;
use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, PacketKey};

use crate::path_frames::{PathFrame, path_frames};

/// Challenges that are remembered; quinn-proto repeats the one of the address that it uses in each packet.
const CHALLENGES_MAX: usize = 8;

/// The address of a peer.
pub struct ProvedAddress {
    address: Cell<SocketAddr>,
    proof: Arc<AddressProof>,
}

impl ProvedAddress {
    /// The address from which the peer began: the handshake proves it.
    pub fn new(address: SocketAddr, proof: Arc<AddressProof>) -> ProvedAddress {
        ProvedAddress { address: Cell::new(address), proof }
    }

    /// The address.
    pub fn get(&self) -> SocketAddr {
        self.address.get()
    }

    /// A datagram from this address was handled, and the connection now sends to the address `used`; `true` if the peer has
    /// proved another address.
    pub fn heard(&self, from: SocketAddr, used: SocketAddr) -> bool {
        let is_proved = self.proof.is_wanted() && self.proof.take_answer(from) && from == used;
        let is_other = is_proved && self.address.replace(from) != from;
        self.proof.want(used != self.address.get());
        is_other
    }

    /// The packets that were sealed since the last call go to this address.
    pub fn sent(&self, to: SocketAddr) {
        if self.proof.is_wanted() {
            self.proof.lock().send_to(to);
        }
    }
}

/// The proof of an address, between the connection and its keys.
#[derive(Default)]
pub struct AddressProof {
    is_wanted: AtomicBool,
    seen: Mutex<Seen>,
}

/// The frames that the keys have seen.
#[derive(Default)]
struct Seen {
    /// Challenges in packets whose address is not known yet.
    sealed: Vec<[u8; 8]>,
    /// Challenges, and the addresses they went to.
    sent: Vec<([u8; 8], SocketAddr)>,
    /// Responses in the datagram that is handled.
    responses: Vec<[u8; 8]>,
}

impl AddressProof {
    fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    fn want(&self, is_wanted: bool) {
        if self.is_wanted() != is_wanted {
            self.is_wanted.store(is_wanted, Ordering::Relaxed);
            *self.lock() = Seen::default();
        }
    }

    /// Whether a response has come to a challenge that went to this address.
    fn take_answer(&self, from: SocketAddr) -> bool {
        let mut seen = self.lock();
        let responses = mem::take(&mut seen.responses);
        seen.sent.iter().any(|(data, to)| *to == from && responses.contains(data))
    }

    fn note_sealed(&self, payload: &[u8]) {
        let mut seen = self.lock();
        for frame in path_frames(payload) {
            if let PathFrame::Challenge(data) = frame
                && !seen.sealed.contains(&data)
                && seen.sealed.len() < CHALLENGES_MAX
            {
                seen.sealed.push(data);
            }
        }
    }

    fn note_opened(&self, payload: &[u8]) {
        let mut seen = self.lock();
        for frame in path_frames(payload) {
            // Only a response to a challenge is kept, so a packet of many others takes no memory.
            if let PathFrame::Response(data) = frame
                && seen.sent.iter().any(|(sent, _)| *sent == data)
                && !seen.responses.contains(&data)
            {
                seen.responses.push(data);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn send_to(&mut self, to: SocketAddr) {
        for data in mem::take(&mut self.sealed) {
            if self.sent.contains(&(data, to)) {
                continue;
            }
            if self.sent.len() >= CHALLENGES_MAX {
                self.sent.remove(0);
            }
            self.sent.push((data, to));
        }
    }
}

/// A key of 1-RTT packets that shows the proof of an address what it seals and opens.
pub struct WatchedKey<K> {
    key: K,
    proof: Arc<AddressProof>,
}

impl<K: PacketKey> WatchedKey<K> {
    /// A key of a connection.
    pub fn new(key: K, proof: &Arc<AddressProof>) -> WatchedKey<K> {
        WatchedKey { key, proof: proof.clone() }
    }
}

impl<K: PacketKey> PacketKey for WatchedKey<K> {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        if self.proof.is_wanted() {
            let end = buf.len().saturating_sub(self.key.tag_len());
            self.proof.note_sealed(buf.get(header_len..end).unwrap_or_default());
        }
        self.key.encrypt(packet, buf, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.key.decrypt(packet, header, payload)?;
        if self.proof.is_wanted() {
            self.proof.note_opened(payload);
        }
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "192.0.2.1:1";
    const AWAY: &str = "192.0.2.2:2";

    fn at(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }

    fn begun() -> (ProvedAddress, Arc<AddressProof>) {
        let proof = Arc::new(AddressProof::default());
        (ProvedAddress::new(at(HOME), proof.clone()), proof)
    }

    fn challenges(proved: &ProvedAddress, proof: &AddressProof, data: u8, to: &str) {
        proof.note_sealed(&[0x1a, data, 0, 0, 0, 0, 0, 0, 0]);
        proved.sent(at(to));
    }

    /// A response comes from an address while the connection uses one.
    fn answers(proved: &ProvedAddress, proof: &AddressProof, data: u8, from: &str, used: &str) -> SocketAddr {
        proof.note_opened(&[0x1b, data, 0, 0, 0, 0, 0, 0, 0]);
        proved.heard(at(from), at(used));
        proved.get()
    }

    #[test]
    fn an_address_is_proved_by_the_answer_from_there_to_a_challenge_that_went_there() {
        let (proved, proof) = begun();
        proved.heard(at(AWAY), at(AWAY));
        challenges(&proved, &proof, 1, HOME);
        challenges(&proved, &proof, 2, AWAY);
        for (data, from, used) in [(3, AWAY, AWAY), (1, AWAY, AWAY), (2, HOME, AWAY), (1, HOME, AWAY)] {
            assert_eq!(answers(&proved, &proof, data, from, used), at(HOME));
        }
        assert_eq!(answers(&proved, &proof, 2, AWAY, AWAY), at(AWAY));
        assert!(!proof.is_wanted());
    }

    #[test]
    fn an_old_answer_proves_nothing_after_the_peer_has_moved_on_or_back() {
        let (proved, proof) = begun();
        proved.heard(at(AWAY), at(AWAY));
        challenges(&proved, &proof, 1, AWAY);
        assert_eq!(answers(&proved, &proof, 1, AWAY, "192.0.2.3:3"), at(HOME));
        proved.heard(at(HOME), at(HOME));
        proved.heard(at(AWAY), at(AWAY));
        assert_eq!(answers(&proved, &proof, 1, AWAY, AWAY), at(HOME));
    }

    #[test]
    fn memory_is_bounded_and_the_last_challenge_counts() {
        let (proved, proof) = begun();
        proved.heard(at(AWAY), at(AWAY));
        for data in 0..100 {
            challenges(&proved, &proof, data, AWAY);
        }
        for _ in 0..100 {
            proof.note_opened(&[0x1b, 99, 0, 0, 0, 0, 0, 0, 0]);
        }
        let seen = proof.lock();
        assert!(seen.sent.len() == CHALLENGES_MAX && seen.responses.len() == 1);
        drop(seen);
        assert_eq!(answers(&proved, &proof, 99, AWAY, AWAY), at(AWAY));
    }
}
