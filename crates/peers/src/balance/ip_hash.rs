//! The client's network selects the peer: three octets of an IPv4 address, sixteen of an IPv6 one. So a client keeps
//! its peer while the peer serves.

use std::net::IpAddr;

use super::field::Field;
use crate::selection::Walk;

/// The hash before the first octet; this number and the two below are nginx's.
const SEED: u32 = 89;
const FACTOR: u32 = 113;
const MODULUS: u32 = 6271;
/// The address that stands for a client without one (a unix socket).
const NO_ADDRESS: [u8; 3] = [0; 3];

pub(super) fn choose(field: &Field<'_>, walk: &mut Walk, client: Option<IpAddr>) -> Option<usize> {
    if walk.is_over() || field.slots.len() < 2 {
        return None;
    }
    let mut hash = walk.hash.unwrap_or(SEED);
    loop {
        hash = extend(hash, client);
        let owner = field.owner_of(hash % field.total_weight.max(1));
        if let Some(peer) = owner.filter(|&peer| field.usable(peer)) {
            // Kept only after a hit: the next attempt continues from here.
            walk.hash = Some(hash);
            return Some(peer);
        }
        if walk.gives_up() {
            return None;
        }
    }
}

fn extend(hash: u32, client: Option<IpAddr>) -> u32 {
    match client {
        None => extend_by(hash, &NO_ADDRESS),
        Some(IpAddr::V4(v4)) => {
            let [a, b, c, _] = v4.octets();
            extend_by(hash, &[a, b, c])
        }
        Some(IpAddr::V6(v6)) => extend_by(hash, &v6.octets()),
    }
}

fn extend_by(hash: u32, octets: &[u8]) -> u32 {
    octets.iter().fold(hash, |hash, &octet| (hash * FACTOR + u32::from(octet)) % MODULUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calculated by hand: 89*113+127 = 10184 = 1*6271+3913, 3913*113+0 = 442169 = 70*6271+3199, 3199*113+1 = 361488 =
    /// 57*6271+4041.
    #[test]
    fn one_address_by_hand() {
        assert_eq!(extend_by(SEED, &[127]), 3913);
        assert_eq!(extend_by(SEED, &[127, 0]), 3199);
        assert_eq!(extend_by(SEED, &[127, 0, 1]), 4041);
    }

    #[test]
    fn last_octet_of_ipv4_does_not_count() {
        let near = extend(SEED, Some(IpAddr::from([10, 1, 2, 3])));
        assert_eq!(near, extend(SEED, Some(IpAddr::from([10, 1, 2, 250]))));
        assert_ne!(near, extend(SEED, Some(IpAddr::from([10, 1, 3, 3]))));
    }

    #[test]
    fn no_address_hashes_as_zeros() {
        assert_eq!(extend(SEED, None), extend(SEED, Some(IpAddr::from([0u8; 4]))));
    }
}
