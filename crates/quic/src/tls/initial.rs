//! Keys that everybody can derive: of Initial packets, and of Retry packets. And rustls's keys for quinn-proto.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use quinn_proto::crypto::{KeyPair, Keys, PacketKey};
use quinn_proto::{ConnectionId, Side};
use rustls::quic::{self, Suite, Version};
use std::sync::Arc;

use crate::proved::{AddressProof, WatchedKey};

/// QUIC version 1 (RFC 9000), the only one that weir speaks.
pub const VERSION: u32 = 1;

/// The key and the nonce of Retry packets of version 1 (RFC 9001 §5.8).
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// The tag of a Retry packet, which also covers the id that the client chose first (RFC 9001 §5.8).
pub(super) fn retry_tag(id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
    let length = [u8::try_from(id.len()).unwrap_or(0)];
    let whole = [&length[..], id, packet].concat();
    let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
    let key = UnboundKey::new(&AES_128_GCM, &RETRY_KEY).map(LessSafeKey::new);
    let tag = key.and_then(|key| key.seal_in_place_separate_tag(nonce, Aad::from(whole), &mut []));
    // A key of the right length always seals; a client drops a Retry packet with a wrong tag.
    tag.ok().and_then(|tag| tag.as_ref().try_into().ok()).unwrap_or_default()
}

/// The keys of Initial packets, which everybody can derive (RFC 9001 §5.2).
pub(super) fn keys(suite: Suite, id: &ConnectionId, side: Side) -> Keys {
    converted(suite.keys(id, side.into(), Version::V1))
}

/// rustls's keys for quinn-proto.
pub(super) fn converted(keys: quic::Keys) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(keys.local.header), remote: Box::new(keys.remote.header) },
        packet: KeyPair { local: Box::new(keys.local.packet), remote: Box::new(keys.remote.packet) },
    }
}

/// rustls's keys of 1-RTT packets for quinn-proto.
pub(super) fn watched(keys: quic::Keys, proof: &Arc<AddressProof>) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(keys.local.header), remote: Box::new(keys.remote.header) },
        packet: watched_pair(keys.local.packet, keys.remote.packet, proof),
    }
}

/// A pair of keys of 1-RTT packets.
pub(super) fn watched_pair(
    local: impl PacketKey + 'static,
    remote: impl PacketKey + 'static,
    proof: &Arc<AddressProof>,
) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(WatchedKey::new(local, proof)), remote: Box::new(WatchedKey::new(remote, proof)) }
}
