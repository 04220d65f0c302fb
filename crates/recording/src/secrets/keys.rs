//! The keys.

use super::digest::DigestKey;
use super::sip::{Sip, SipKey};

/// A key for each use.
#[derive(Clone)]
pub(super) struct HashKeys {
    pub(super) value: SipKey,
    pub(super) address: SipKey,
    pub(super) client: SipKey,
    pub(super) body: DigestKey,
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
            body: std::array::from_fn(|at| number(&format!("body {at}")) as u64),
            seed: number("table") as u64,
        };
        (keys, number("id") as u64)
    }
}
