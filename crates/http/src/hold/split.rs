//! The split of clients between two configurations: the one in force, and one beside it.
//!
//! A coin decides for each client: a keyed hash of its key is a number, and numbers below a limit get the configuration beside.
//! All workers have the same coin, so that a client has the same configuration on each of them.

use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip::SipHasher24;

/// The key of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitKey {
    /// Its address; of an IPv6 address the first 64 bits, because clients change the others. Behind the PROXY protocol, the
    /// address that the header names.
    Address,
    /// A cookie of the request.
    Cookie(String),
    /// A header field of the request.
    Field(String),
    /// An argument of the request.
    Argument(String),
}

impl SplitKey {
    /// Reads `address`, `cookie:NAME`, or one of the variables `$remote_addr`, `$cookie_NAME`, `$http_NAME`, `$arg_NAME`.
    ///
    /// # Errors
    /// It is none of them: the reason and the remedy.
    pub fn read(text: &str) -> Result<SplitKey, String> {
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        let key = match text {
            "address" | "$remote_addr" => Some(SplitKey::Address),
            _ => {
                [("cookie:", 0), ("$cookie_", 0), ("$http_", 1), ("$arg_", 2)].into_iter().find_map(|(prefix, kind)| {
                    let name = named(text.strip_prefix(prefix)?)?;
                    Some(match kind {
                        0 => SplitKey::Cookie(name),
                        1 => SplitKey::Field(name.replace('_', "-").to_ascii_lowercase()),
                        _ => SplitKey::Argument(name),
                    })
                })
            }
        };
        key.ok_or_else(|| {
            format!(
                "no client has a key \"{text}\" before its request is read: write address, cookie:NAME, $http_NAME or $arg_NAME"
            )
        })
    }

    /// The text that [`SplitKey::read`] reads.
    pub fn text(&self) -> String {
        match self {
            SplitKey::Address => "address".to_owned(),
            SplitKey::Cookie(name) => format!("cookie:{name}"),
            SplitKey::Field(name) => format!("$http_{}", name.replace('-', "_")),
            SplitKey::Argument(name) => format!("$arg_{name}"),
        }
    }

    /// Whether the key is known before a request.
    pub fn is_early(&self) -> bool {
        *self == SplitKey::Address
    }
}

/// The coin of one split.
#[derive(Debug)]
pub struct Coin {
    secret: [u8; 16],
    id: u64,
    key: SplitKey,
    /// Numbers below it get the configuration beside.
    limit: AtomicU64,
}

/// All numbers of a coin, as a floating-point number.
const NUMBERS: f64 = 18_446_744_073_709_551_616.0;

impl Coin {
    /// A coin. `share` is the part of the clients that get the configuration beside, from 0 to 1.
    pub fn new(secret: [u8; 16], key: SplitKey, share: f64) -> Coin {
        static COINS: AtomicU64 = AtomicU64::new(0);
        let id = COINS.fetch_add(1, Ordering::Relaxed);
        Coin { secret, id, key, limit: AtomicU64::new(limit(share)) }
    }

    /// Changes the share, on all workers at once. A client that has the configuration beside keeps it if the share grows.
    pub fn set_share(&self, share: f64) {
        self.limit.store(limit(share), Ordering::Relaxed);
    }

    /// Numbers below it get the configuration beside.
    #[inline]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// A number of its own.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The key that it asks clients for.
    pub fn key(&self) -> &SplitKey {
        &self.key
    }

    /// The number of the client with this address; `None` if the coin asks for another key, and for a UNIX socket.
    pub fn of_address(&self, ip: Option<IpAddr>) -> Option<u64> {
        if self.key != SplitKey::Address {
            return None;
        }
        match ip?.to_canonical() {
            IpAddr::V4(ip) => Some(self.number(&ip.octets())),
            IpAddr::V6(ip) => ip.octets().first_chunk::<8>().map(|network| self.number(network)),
        }
    }

    /// The number of the client with this key; `None` if it is empty.
    pub fn of_text(&self, key: &[u8]) -> Option<u64> {
        (!key.is_empty()).then(|| self.number(key))
    }

    fn number(&self, key: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        hasher.write(key);
        hasher.finish()
    }
}

/// The part of all numbers, rounded to a number.
fn limit(share: f64) -> u64 {
    // A cast ends at the largest number, and gives 0 for NaN.
    (share * NUMBERS) as u64
}

/// The share that a limit means.
pub fn share_of(limit: u64) -> f64 {
    if limit == u64::MAX { 1.0 } else { limit as f64 / NUMBERS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coin(share: f64) -> Coin {
        Coin::new([7; 16], SplitKey::Address, share)
    }

    #[test]
    fn keys_are_read_and_refused_by_name() {
        for text in ["address", "cookie:sid", "$http_x_user", "$arg_id"] {
            assert_eq!(SplitKey::read(text).map(|key| key.text()), Ok(text.to_owned()));
        }
        assert_eq!(SplitKey::read("$remote_addr"), Ok(SplitKey::Address));
        assert_eq!(SplitKey::read("$cookie_sid"), Ok(SplitKey::Cookie("sid".to_owned())));
        for text in ["", "cookie:", "$http_", "$upstream_addr", "sid"] {
            assert!(SplitKey::read(text).is_err_and(|why| why.contains("write address, cookie:NAME")), "{text}");
        }
    }

    #[test]
    fn a_share_of_the_clients_gets_it_and_a_larger_share_takes_none_away() {
        let coin = coin(0.1);
        let chosen = |coin: &Coin| {
            let all = (0..40_000u32).map(|number| IpAddr::from(number.to_be_bytes()));
            all.map(|ip| coin.of_address(Some(ip)).is_some_and(|number| number < coin.limit())).collect::<Vec<_>>()
        };
        let first = chosen(&coin);
        let count = |all: &[bool]| all.iter().filter(|one| **one).count();
        assert!((3_800..4_200).contains(&count(&first)), "{}", count(&first));
        coin.set_share(0.5);
        let second = chosen(&coin);
        assert!((19_500..20_500).contains(&count(&second)));
        assert!(first.iter().zip(&second).all(|(before, after)| !before || *after));
        coin.set_share(1.0);
        assert_eq!((count(&chosen(&coin)), share_of(coin.limit())), (40_000, 1.0));
        coin.set_share(0.0);
        assert_eq!((count(&chosen(&coin)), share_of(coin.limit())), (0, 0.0));
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let (coin, of) = (coin(0.5), |text: &str| text.parse::<IpAddr>().ok());
        assert_eq!(coin.of_address(of("2001:db8::1")), coin.of_address(of("2001:db8::ffff:2")));
        assert_ne!(coin.of_address(of("2001:db8::1")), coin.of_address(of("2001:db8:0:1::1")));
        assert_eq!(coin.of_address(of("::ffff:192.0.2.1")), coin.of_address(of("192.0.2.1")));
        assert_eq!(coin.of_address(None), None);
    }
}
