//! Where a server is, how to log in, and whom to trust.

use std::sync::Arc;

use url::Url;
use weir_net::tls::Client;

/// A server, as its URL names it.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// `rediss://`.
    pub is_secure: bool,
    pub trust: Option<RedisTrust>,
}

/// Speaks TLS with a server.
#[derive(Clone)]
pub struct RedisTrust {
    pub client: Client,
    /// The text with the trusted authorities: two servers with the same ones share a connection.
    pub authorities: Arc<[u8]>,
}

impl PartialEq for RedisTrust {
    fn eq(&self, other: &RedisTrust) -> bool {
        self.authorities == other.authorities
    }
}

impl Eq for RedisTrust {}

impl Place {
    /// Reads `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, or `rediss://` for TLS; the error is for the user, and does not
    /// contain the password.
    pub fn parse(text: &str) -> Result<Place, &'static str> {
        const FORM: &str = "write the server as redis://[user:password@]HOST:PORT[/DB], or rediss:// for TLS";
        const PORT: u16 = 6379;
        let url = Url::parse(text).map_err(|_| FORM)?;
        let is_secure = match url.scheme() {
            "redis" => false,
            "rediss" => true,
            _ => return Err(FORM),
        };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port().unwrap_or(PORT);
        let database = match url.path().trim_matches('/') {
            "" => Some(0),
            number => number.parse().ok(),
        };
        let (Some(database), false) = (database, host.is_empty() || port == 0) else { return Err(FORM) };
        let text = |text: &str| String::from_utf8(unescaped(text)).map(Some).map_err(|_| FORM);
        let password = url.password().map_or(Ok(None), text)?;
        let user = text(url.username())?.filter(|user| !user.is_empty());
        Ok(Place { host, port, user, password, database, is_secure, trust: None })
    }
}

/// The bytes of a text whose escapes are `%` and two hexadecimal digits.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn servers_are_read() {
        let place = Place::parse("redis://user:s3%20%cret%@10.0.0.1:7000/2").unwrap();
        assert_eq!((place.host.as_str(), place.port, place.database), ("10.0.0.1", 7000, 2));
        assert_eq!((place.user.as_deref(), place.password.as_deref()), (Some("user"), Some("s3 %cret%")));
        let place = Place::parse("redis://:p@[::1]").unwrap();
        assert_eq!((place.host.as_str(), place.port, place.user, place.is_secure), ("::1", 6379, None, false));
        assert!(Place::parse("rediss://h").unwrap().is_secure);
        for (url, words) in [
            ("http://h", "redis://["),
            ("h:6379", "redis://["),
            ("redis://", "redis://["),
            ("redis://h:0", "redis://["),
            ("redis://h:99999", "redis://["),
            ("redis://h/x", "redis://["),
            ("redis://u:%ff@h", "redis://["),
        ] {
            let said = Place::parse(url).err().unwrap();
            assert!(said.contains(words), "{url}: {said}");
        }
    }
}
