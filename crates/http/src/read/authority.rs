//! Reads the host and the port of an address in a file, and finds its socket addresses.

use std::net::SocketAddr;

use weir_net::Address;

use crate::read::build::Build;
use crate::text::refusal::Refusal;

/// Host and port of an authority; brackets stay on an IPv6 address.
pub fn split_host_port(text: &str) -> (&str, Option<&str>) {
    if text.starts_with('[') {
        return match text.find("]:") {
            Some(at) => (&text[..=at], Some(&text[at + 2..])),
            None => (text, None),
        };
    }
    match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

/// The addresses of `HOST[:PORT]` or `unix:PATH` of an upstream; `default_port` if the text has no port.
pub fn resolve(b: &Build<'_>, text: &str, default_port: u16) -> Result<Vec<Address>, Refusal> {
    resolve_in(b, text, default_port, "upstream")
}

/// The host and the port as written, checked; errors name `directive`.
pub fn authority<'t>(text: &'t str, default_port: u16, directive: &str) -> Result<(&'t str, u16), Refusal> {
    let (host, port) = split_host_port(text);
    let port = match port {
        None => default_port,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => port,
            Ok(_) | Err(_) => return Err(Refusal::whole(format!("invalid port in {directive} \"{text}\""))),
        },
    };
    if host.is_empty() {
        return Err(Refusal::whole(format!("no host in {directive} \"{text}\"")));
    }
    Ok((host, port))
}

/// Like `resolve`, for another directive.
pub fn resolve_in(b: &Build<'_>, text: &str, default_port: u16, directive: &str) -> Result<Vec<Address>, Refusal> {
    if let Some(path) = text.strip_prefix("unix:") {
        let address =
            Address::unix(path).map_err(|what| Refusal::whole(format!("{what} in {directive} \"{text}\"")))?;
        return Ok(vec![address]);
    }
    let (host, port) = authority(text, default_port, directive)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse() {
        return Ok(vec![Address::Tcp(SocketAddr::new(ip, port))]);
    }
    let found = (b.resolve)(host).map_err(|_| {
        Refusal::whole(format!("host not found in {directive} \"{text}\""))
            .todo("the name must be known when the configuration is read: /etc/hosts or DNS")
    })?;
    let mut addresses: Vec<Address> = Vec::new();
    for address in found {
        let address = Address::Tcp(SocketAddr::new(address.ip(), port));
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// The address in `HOST[:PORT]` or `unix:PATH`; `None` for a name.
pub fn literal_address(authority: &str) -> Option<Address> {
    if let Some(path) = authority.strip_prefix("unix:") {
        return Some(Address::Unix(path.into()));
    }
    let (host, port) = split_host_port(authority);
    let port: u16 = port.unwrap_or("80").parse().ok()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(Address::Tcp(std::net::SocketAddr::new(bare.parse().ok()?, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_what_follows_the_last_colon_outside_brackets() {
        for (text, expected) in [
            ("a", ("a", None)),
            ("a:1", ("a", Some("1"))),
            ("a:", ("a", Some(""))),
            (":1", ("", Some("1"))),
            ("[::1]", ("[::1]", None)),
            ("[::1]:1", ("[::1]", Some("1"))),
            ("[::1", ("[::1", None)),
        ] {
            assert_eq!(split_host_port(text), expected, "{text}");
        }
    }

    #[test]
    fn an_authority_has_a_host_and_a_port_above_zero() {
        for (text, expected) in [
            ("a", Ok(("a", 80))),
            ("a:8080", Ok(("a", 8080))),
            ("[::1]:65535", Ok(("[::1]", 65535))),
            ("a:0", Err("invalid port in d \"a:0\"")),
            ("a:65536", Err("invalid port in d \"a:65536\"")),
            ("a:", Err("invalid port in d \"a:\"")),
            ("a:-1", Err("invalid port in d \"a:-1\"")),
            (":1", Err("no host in d \":1\"")),
            ("", Err("no host in d \"\"")),
        ] {
            let found = authority(text, 80, "d").map_err(|refusal| refusal.what);
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn only_addresses_are_literal() {
        for (text, expected) in [
            ("127.0.0.1:1", Some("127.0.0.1:1")),
            ("127.0.0.1", Some("127.0.0.1:80")),
            ("[::1]:1", Some("[::1]:1")),
            ("[::1]", Some("[::1]:80")),
            ("unix:/a b", Some("unix:/a b")),
            ("a:1", None),
            ("127.0.0.1:x", None),
            ("127.0.0.1:", None),
            ("127.0.0:1", None),
            ("", None),
        ] {
            let found = literal_address(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
