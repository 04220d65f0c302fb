//! The keys of an endpoint, all derived from one host key: tokens, stateless resets and connection ids.
//!
//! The same host key gives the same keys in each worker, each process and after a restart. So a token of one worker is
//! valid at another one, and a process that was restarted can reset the connections of the one before it.

use crate::id::IdKey;
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use aws_lc_rs::hmac;
use quinn_proto::crypto::{HandshakeTokenKey, HmacKey};
use std::fmt;
use std::sync::Arc;
use weir_net::random;

/// The length of a host key that weir makes itself; bytes.
pub const HOST_KEY_BYTES: usize = 32;

/// The keys of an endpoint; clones share them.
#[derive(Clone)]
pub struct Keys {
    /// Seals tokens of Retry packets and of NEW_TOKEN frames ([`quinn_proto::ServerConfig::token_key`]).
    pub token: Arc<dyn HandshakeTokenKey>,
    /// Makes the tokens of stateless resets ([`quinn_proto::EndpointConfig::reset_key`]).
    pub reset: Arc<dyn HmacKey>,
    /// Seals connection ids.
    pub id: Arc<IdKey>,
}

impl Keys {
    /// The keys of a host key: the bytes of the file of `quic_host_key`, of any length (as in nginx), or
    /// [`random_host_key`]. `None` if it is empty.
    pub fn of(host_key: &[u8]) -> Option<Keys> {
        if host_key.is_empty() {
            return None;
        }
        let root = Salt::new(HKDF_SHA256, b"weir quic_host_key").extract(host_key);
        let [token, reset, id] = [derived(&root, b"token")?, derived(&root, b"reset")?, derived(&root, b"id")?];
        Some(Keys {
            token: Arc::new(Prk::new_less_safe(HKDF_SHA256, &token)),
            reset: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &reset)),
            id: Arc::new(IdKey::new(id.first_chunk()?, id.last_chunk()?)?),
        })
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// A random host key, for a configuration without a file. `None` if the machine has no random bytes.
pub fn random_host_key() -> Option<[u8; HOST_KEY_BYTES]> {
    random::bytes().ok()
}

fn derived(root: &Prk, label: &[u8]) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    root.expand(&[label], HKDF_SHA256).ok()?.fill(&mut key).ok()?;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_host_key_gives_the_same_keys_and_another_gives_others() {
        let resets = |host_key: &[u8]| {
            let mut reset = [0; 32];
            Keys::of(host_key).unwrap().reset.sign(b"an id", &mut reset);
            reset
        };
        assert_eq!(resets(&[7; 32]), resets(&[7; 32]));
        assert_ne!(resets(&[7; 32]), resets(&[8; 32]));
        assert_ne!(resets(&[7; 32]), resets(&[7; 31]));
        assert!(Keys::of(b"").is_none());
        assert_ne!(random_host_key(), random_host_key());
    }
}
