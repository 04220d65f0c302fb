//! The keys.

use super::digest::DigestKeys;
use super::sip::{Sip, SipKey};

/// A key for each use.
#[derive(Clone)]
pub(super) struct HashKeys {
    pub(super) value: SipKey,
    pub(super) address: SipKey,
    pub(super) client: SipKey,
    pub(super) body: DigestKeys,
    pub(super) seed: u64,
}

impl HashKeys {
    /// The keys, and the number that names them.
    pub(super) fn new(key: [u8; 16]) -> (HashKeys, u64) {
        let master = SipKey::new(key);
        let number = |of: &str| {
            let mut sip = Sip::new(master);
            sip.update(of.as_bytes());
            sip.finish()
        };
        let key = |of: &str| SipKey::new(number(of).to_le_bytes());
        let keys = HashKeys {
            value: key("value"),
            address: key("address"),
            client: key("client"),
            body: DigestKeys {
                words: std::array::from_fn(|at| number(&format!("word {at}")) as u64),
                // Below the prime: see `digest`.
                points: std::array::from_fn(|at| (number(&format!("point {at}")) >> 68) as u64),
                last: key("body"),
            },
            seed: number("table") as u64,
        };
        (keys, number("id") as u64)
    }
}
