//! The URL load is sent to: `http://host[:port]/path?query`, nothing else.

use std::net::{SocketAddr, ToSocketAddrs};

/// A URL taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The Host field: host, and the port unless it is 80.
    pub authority: String,
    /// Host without the brackets of an IPv6 address.
    pub host: String,
    /// 80 when none is written.
    pub port: u16,
    /// Path and query; at least `/`.
    pub target: String,
}

/// The longest URL, in bytes.
const URL_BYTES_MAX: usize = 8192;

impl Url {
    /// Reads a URL; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Url, String> {
        let bad = |why: &str| format!("\"{text}\" cannot be loaded: {why}");
        if text.len() > URL_BYTES_MAX {
            return Err(format!("a URL is at most {URL_BYTES_MAX} bytes"));
        }
        if text.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(bad("a space or a byte outside ASCII must be written %XX"));
        }
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some((scheme, _)) => return Err(bad(&format!("no {scheme} here, only http://"))),
            None => return Err(bad("it must begin with http://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(bad("a user name is not sent"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port: Option<u16> = port.parse().ok().filter(|&port| port > 0);
                (host, port.ok_or_else(|| bad("the port must be between 1 and 65535"))?)
            }
            _ => (authority, 80),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if bare.is_empty() {
            return Err(bad("it names no host"));
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Url {
            authority: if port == 80 { host.to_owned() } else { format!("{host}:{port}") },
            host: bare.to_owned(),
            port,
            target: format!("{slash}{target}"),
        })
    }

    /// The first address the system's resolver knows for the host.
    pub fn resolve(&self) -> Result<SocketAddr, String> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found = found.map_err(|error| format!("{} has no address: {error}", self.host))?;
        // `localhost` may name ::1 first while the server listens on 127.0.0.1 only.
        let mut all: Vec<SocketAddr> = found.collect();
        all.sort_by_key(SocketAddr::is_ipv6);
        all.first().copied().ok_or_else(|| format!("{} has no address", self.host))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn check(text: &str, authority: &str, host: &str, port: u16, target: &str) {
        let url = Url::parse(text).unwrap();
        let seen = (url.authority.as_str(), url.host.as_str(), url.port, url.target.as_str());
        assert_eq!(seen, (authority, host, port, target), "{text}");
    }

    #[test]
    fn parts() {
        check("http://a", "a", "a", 80, "/");
        check("http://a:80/x", "a", "a", 80, "/x");
        check("http://a.b:8080?q=/1#top", "a.b:8080", "a.b", 8080, "/?q=/1");
        check("http://[::1]:81/x", "[::1]:81", "::1", 81, "/x");
        check("http://[::1]/x?y", "[::1]", "::1", 80, "/x?y");
    }

    #[test]
    fn refusals_say_why() {
        for (text, why) in [
            ("https://a/", "only http://"),
            ("a:80/", "begin with http://"),
            ("http://", "no host"),
            ("http://:80/", "no host"),
            ("http://a:0/", "between 1 and 65535"),
            ("http://a:99999/", "between 1 and 65535"),
            ("http://u@a/", "user name"),
            ("http://a/x y", "%XX"),
            ("http://a/\r\nX: y", "%XX"),
        ] {
            let refusal = Url::parse(text).expect_err(text);
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }

    #[test]
    fn numbers_resolve_to_themselves() {
        let address = Url::parse("http://127.0.0.1:81/").unwrap().resolve().unwrap();
        assert_eq!(address, "127.0.0.1:81".parse().unwrap());
    }
}
