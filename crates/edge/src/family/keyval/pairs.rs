//! The pairs of one zone, and the look-up of a text. Pure: the caller passes the time.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::ops::Bound;

use weir_http::text::cidr::{Cidr, Peer, mask4, mask6};

/// The assumed cost of a pair, in bytes, besides its key and its value.
const PAIR_BYTES: usize = 128;

/// How a text matches a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// The text is the key.
    Text,
    /// The text is an address in the network of the key; the smallest network wins.
    Network,
    /// The text begins with the key; the longest key wins.
    Prefix,
}

/// A value and its expiry time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The value.
    pub value: Box<[u8]>,
    /// Unix milliseconds of its expiry; `None` for never.
    pub until_ms: Option<u64>,
}

impl Pair {
    fn is_in_force(&self, now_ms: u64) -> bool {
        self.until_ms.is_none_or(|until| now_ms < until)
    }
}

/// Why a pair is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The key is empty, or is not a network although the zone keeps networks.
    Key,
    /// The zone has no room for it.
    Full,
}

/// Keys and values; with their cost they never take more than the zone's size.
#[derive(Clone)]
pub struct Pairs {
    kind: KeyKind,
    map: BTreeMap<Box<[u8]>, Pair>,
    /// The networks of the keys, with the key texts.
    networks: HashMap<Cidr, Box<[u8]>>,
    /// How many networks have a prefix of that length, for IPv4 and IPv6.
    lengths: ([u32; 33], [u32; 129]),
    bytes: usize,
    bytes_max: usize,
}

impl Pairs {
    /// No pairs yet, with room for `bytes_max`.
    pub fn new(kind: KeyKind, bytes_max: usize) -> Pairs {
        let (map, networks) = (BTreeMap::new(), HashMap::new());
        Pairs { kind, map, networks, lengths: ([0; 33], [0; 129]), bytes: 0, bytes_max }
    }

    /// The value that a text finds.
    pub fn find(&self, text: &[u8], now_ms: u64) -> Option<&[u8]> {
        let pair = match self.kind {
            KeyKind::Text => self.map.get(text).filter(|pair| pair.is_in_force(now_ms)),
            KeyKind::Network => self.find_network(text, now_ms),
            KeyKind::Prefix => self.find_prefix(text, now_ms),
        };
        pair.map(|pair| &*pair.value)
    }

    fn find_network(&self, text: &[u8], now_ms: u64) -> Option<&Pair> {
        let ip: IpAddr = std::str::from_utf8(text).ok()?.parse().ok()?;
        let lengths: &[u32] = match Peer::of_ip(ip) {
            Peer::V4(_) => &self.lengths.0,
            Peer::V6(_) => &self.lengths.1,
            Peer::Unix => return None,
        };
        let present = lengths.iter().enumerate().rev().filter(|(_, count)| **count > 0);
        let mut found = present.filter_map(|(bits, _)| {
            let network = match Peer::of_ip(ip) {
                Peer::V4(address) => Cidr::V4(address & mask4(bits as u8), bits as u8),
                Peer::V6(address) => Cidr::V6(address & mask6(bits as u8), bits as u8),
                Peer::Unix => return None,
            };
            self.map.get(self.networks.get(&network)?)
        });
        found.find(|pair| pair.is_in_force(now_ms))
    }

    /// Finds the longest key that the text begins with. The greatest key not above the text is such a key, or limits
    /// how long one can be.
    fn find_prefix(&self, text: &[u8], now_ms: u64) -> Option<&Pair> {
        let mut rest = text;
        loop {
            let (key, pair) = self.map.range::<[u8], _>((Bound::Unbounded, Bound::Included(rest))).next_back()?;
            if !rest.starts_with(key) {
                let common = rest.iter().zip(key.iter()).take_while(|(a, b)| a == b).count();
                rest = rest.get(..common)?;
            } else if pair.is_in_force(now_ms) {
                return Some(pair);
            } else {
                rest = rest.get(..key.len().checked_sub(1)?)?;
            }
        }
    }

    /// The pair of exactly this key or network.
    pub fn get(&self, key: &str, now_ms: u64) -> Option<&Pair> {
        self.map.get(self.known(key)?).filter(|pair| pair.is_in_force(now_ms))
    }

    /// The key as it was written when it was added.
    fn known<'k>(&'k self, key: &'k str) -> Option<&'k [u8]> {
        match self.kind {
            KeyKind::Network => self.networks.get(&network(key)?).map(|key| &**key),
            KeyKind::Text | KeyKind::Prefix => Some(key.as_bytes()),
        }
    }

    /// Keeps a pair; replaces the old pair of the key.
    ///
    /// # Errors
    /// The key is invalid, or there is no room; then everything stays as it was.
    pub fn set(&mut self, key: &str, pair: Pair) -> Result<(), Misfit> {
        let network = match self.kind {
            KeyKind::Network => Some(network(key).ok_or(Misfit::Key)?),
            KeyKind::Text | KeyKind::Prefix if key.is_empty() => return Err(Misfit::Key),
            KeyKind::Text | KeyKind::Prefix => None,
        };
        let key: Box<[u8]> = self.known(key).unwrap_or(key.as_bytes()).into();
        let freed = self.map.get(&key).map_or(0, |old| cost(&key, old));
        let bytes = self.bytes - freed + cost(&key, &pair);
        if bytes > self.bytes_max {
            return Err(Misfit::Full);
        }
        self.bytes = bytes;
        if let Some(network) = network
            && self.networks.insert(network, key.clone()).is_none()
            && let Some(count) = self.length(network)
        {
            *count += 1;
        }
        self.map.insert(key, pair);
        Ok(())
    }

    /// Removes a pair; `false` if there is none.
    pub fn remove(&mut self, key: &str) -> bool {
        let Some(known) = self.known(key).map(Box::<[u8]>::from) else { return false };
        let Some(old) = self.map.remove(&known) else { return false };
        self.bytes -= cost(&known, &old);
        self.forget_network(&known);
        true
    }

    fn forget_network(&mut self, key: &[u8]) {
        if self.kind == KeyKind::Network
            && let Some(network) = std::str::from_utf8(key).ok().and_then(network)
            && self.networks.remove(&network).is_some()
            && let Some(count) = self.length(network)
        {
            *count = count.saturating_sub(1);
        }
    }

    fn length(&mut self, network: Cidr) -> Option<&mut u32> {
        match network {
            Cidr::V4(_, bits) => self.lengths.0.get_mut(usize::from(bits)),
            Cidr::V6(_, bits) => self.lengths.1.get_mut(usize::from(bits)),
            Cidr::Unix => None,
        }
    }

    /// Removes expired pairs.
    pub fn expire(&mut self, now_ms: u64) {
        let gone: Vec<Box<[u8]>> =
            self.map.iter().filter(|(_, pair)| !pair.is_in_force(now_ms)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            if let Some(old) = self.map.remove(&key) {
                self.bytes -= cost(&key, &old);
                self.forget_network(&key);
            }
        }
    }

    /// Removes all pairs.
    pub fn clear(&mut self) {
        *self = Pairs::new(self.kind, self.bytes_max);
    }

    /// All pairs that have not expired.
    pub fn iter(&self, now_ms: u64) -> impl Iterator<Item = (&[u8], &Pair)> {
        self.map.iter().filter(move |(_, pair)| pair.is_in_force(now_ms)).map(|(key, pair)| (&**key, pair))
    }

    /// Bytes of the pairs.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The network of a key; IPv4 mapped into IPv6 counts as IPv4, as in the look-up of addresses.
fn network(key: &str) -> Option<Cidr> {
    Some(match Cidr::parse(key)?.0 {
        Cidr::V6(address, bits @ 96..=128) if address >> 32 == 0xffff => Cidr::V4(address as u32, bits - 96),
        other => other,
    })
}

fn cost(key: &[u8], pair: &Pair) -> usize {
    // The key of a network is stored twice.
    2 * key.len() + pair.value.len() + PAIR_BYTES
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pair(value: &str) -> Pair {
        Pair { value: value.as_bytes().into(), until_ms: None }
    }

    fn of(kind: KeyKind, keys: &[&str]) -> Pairs {
        let mut pairs = Pairs::new(kind, 64 << 10);
        keys.iter().for_each(|key| pairs.set(key, pair(key)).unwrap());
        pairs
    }

    fn found(pairs: &Pairs, text: &str) -> String {
        pairs.find(text.as_bytes(), 0).map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
    }

    #[test]
    fn the_longest_prefix_counts() {
        let pairs = of(KeyKind::Prefix, &["/a", "/a/b", "/a/bc/d", "/b", "z"]);
        for (text, key) in [
            ("/a", "/a"),
            ("/a/b/c", "/a/b"),
            ("/a/bc/x", "/a/b"),
            ("/aa", "/a"),
            ("/", ""),
            ("/c", ""),
            ("", ""),
            ("zz", "z"),
        ] {
            assert_eq!(found(&pairs, text), key, "{text}");
        }
    }

    #[test]
    fn the_smallest_network_counts() {
        let pairs = of(KeyKind::Network, &["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "2001:db8::/32", "0.0.0.0/0"]);
        for (text, key) in [
            ("10.1.2.3", "10.1.2.3"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("10.1.2.4", "10.1.0.0/16"),
            ("10.2.0.1", "10.0.0.0/8"),
            ("192.0.2.1", "0.0.0.0/0"),
            ("2001:db8::1", "2001:db8::/32"),
            ("2001:db9::1", ""),
            ("unix:", ""),
        ] {
            assert_eq!(found(&pairs, text), key, "{text}");
        }
        assert_eq!(Pairs::new(KeyKind::Network, 4096).set("10.0.0.0/33", pair("")), Err(Misfit::Key));
    }

    #[test]
    fn a_network_written_otherwise_is_the_same_key() {
        let mut pairs = of(KeyKind::Network, &["10.0.0.0/8"]);
        pairs.set("10.1.1.1/8", pair("x")).unwrap();
        assert_eq!((pairs.iter(0).count(), found(&pairs, "10.3.3.3")), (1, "x".to_owned()));
        assert!(pairs.remove("10.0.0.1/8") && !pairs.remove("10.0.0.0/8"));
        assert_eq!((pairs.bytes(), found(&pairs, "10.3.3.3")), (0, String::new()));
    }

    #[test]
    fn what_ended_is_not_found_and_what_stands_behind_it_is() {
        for (kind, long, short, text) in
            [(KeyKind::Prefix, "/a/b", "/a", "/a/b/c"), (KeyKind::Network, "10.1.0.0/16", "10.0.0.0/8", "10.1.0.1")]
        {
            let mut pairs = of(kind, &[short]);
            pairs.set(long, Pair { until_ms: Some(50), ..pair("long") }).unwrap();
            assert_eq!(pairs.find(text.as_bytes(), 49), Some(&b"long"[..]));
            assert_eq!(pairs.find(text.as_bytes(), 50), Some(short.as_bytes()));
            assert_eq!((pairs.iter(50).count(), pairs.get(long, 50).is_some()), (1, false));
            let before = pairs.bytes();
            pairs.expire(50);
            assert!(pairs.bytes() < before && !pairs.remove(long));
        }
    }

    #[test]
    fn a_zone_never_outgrows_its_size() {
        let mut pairs = Pairs::new(KeyKind::Text, 1000);
        let mut kept = 0;
        while pairs.set(&format!("key{kept}"), pair("value")).is_ok() {
            kept += 1;
        }
        assert!(kept > 3 && pairs.bytes() <= 1000);
        assert_eq!(pairs.set("key0", pair(&"v".repeat(900))), Err(Misfit::Full));
        assert_eq!((found(&pairs, "key0"), pairs.set("key0", pair("other"))), ("value".to_owned(), Ok(())));
        pairs.clear();
        assert_eq!((pairs.bytes(), pairs.iter(0).count()), (0, 0));
        assert_eq!(pairs.set("", pair("v")), Err(Misfit::Key));
    }
}
