//! The hosts that a certificate is for: names (RFC 8555 §7.1.4) and addresses (RFC 8738).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// A host. The order of the variants is part of the names of files, see [`CertificateOrder::id`](crate::CertificateOrder::id).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
pub enum Identifier {
    /// A name in lower case; it may begin with `*.`.
    Dns(String),
    /// An address in its canonical form.
    Ip(String),
}

/// Why a text is no identifier, in nginx's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// A byte that no host name has.
    Invalid(u8, usize),
    /// A character at the wrong place.
    Unexpected(char, usize),
    /// The last label is empty or a wildcard.
    NotALabel,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Invalid(byte, at) => {
                write!(f, "invalid server name: invalid character {byte:x} at position {at}")
            }
            NameError::Unexpected(character, at) => {
                write!(f, "invalid server name: unexpected character '{character}' at position {at}")
            }
            NameError::NotALabel => f.write_str("invalid server name: does not end with a label"),
        }
    }
}

impl Identifier {
    /// Reads a host as written. A leading dot stands for two names: with `www.` in front, and without.
    ///
    /// # Errors
    /// nginx's words.
    pub fn read(text: &str) -> Result<Vec<Identifier>, NameError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(vec![Identifier::Ip(address.to_string())]);
        }
        check(text)?;
        let text = text.to_ascii_lowercase();
        Ok(match text.strip_prefix('.') {
            Some(host) => vec![Identifier::Dns(format!("www.{host}")), Identifier::Dns(host.to_owned())],
            None => vec![Identifier::Dns(text)],
        })
    }

    /// The name or the address.
    pub fn value(&self) -> &str {
        let (Identifier::Dns(value) | Identifier::Ip(value)) = self;
        value
    }

    /// Whether it stands for all names of a domain.
    pub fn is_wildcard(&self) -> bool {
        self.value().starts_with("*.")
    }

    /// The name that an authority sends in a TLS handshake for the challenge `tls-alpn-01`: of an address, the name of
    /// its reverse mapping (RFC 8738 §6).
    pub fn server_name(&self) -> String {
        match self {
            Identifier::Dns(name) => name.clone(),
            Identifier::Ip(address) => match address.parse() {
                Ok(IpAddr::V4(address)) => reverse_v4(address),
                Ok(IpAddr::V6(address)) => reverse_v6(address),
                Err(_) => address.clone(),
            },
        }
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identifier::Dns(value) => write!(f, "DNS:{value}"),
            Identifier::Ip(value) => write!(f, "IP:{value}"),
        }
    }
}

fn reverse_v4(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("{d}.{c}.{b}.{a}.in-addr.arpa")
}

fn reverse_v6(address: Ipv6Addr) -> String {
    let digits: Vec<String> = address
        .octets()
        .iter()
        .rev()
        .flat_map(|byte| [byte & 15, byte >> 4])
        .map(|digit| format!("{digit:x}"))
        .collect();
    format!("{}.ip6.arpa", digits.join("."))
}

/// The rule of nginx: a host as `Host` may have it, ASCII, with a leading dot or one leading wildcard label, and a last
/// label that is not empty.
fn check(text: &str) -> Result<(), NameError> {
    #[derive(PartialEq)]
    enum State {
        Start,
        Label,
        Dot,
        Wildcard,
    }
    let mut state = State::Start;
    for (at, byte) in text.bytes().enumerate() {
        state = match byte {
            0..=0x20 | 0x7f.. => return Err(NameError::Invalid(byte, at)),
            b'*' if state == State::Start => State::Wildcard,
            b'.' if state != State::Dot => State::Dot,
            _ if state == State::Wildcard => return Err(NameError::Unexpected(char::from(byte), at)),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'%' => State::Label,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'+' | b',' | b';' | b'=' => State::Label,
            _ => return Err(NameError::Unexpected(char::from(byte), at)),
        };
    }
    if state == State::Label { Ok(()) } else { Err(NameError::NotALabel) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hosts_are_read_in_nginx_words() {
        let read = |text: &str| match Identifier::read(text) {
            Ok(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string().replace("invalid server name: ", ""),
        };
        for (text, wanted) in [
            ("Example.test", "DNS:example.test"),
            (".Example.test", "DNS:www.example.test DNS:example.test"),
            ("*.example.test", "DNS:*.example.test"),
            ("xn--e1afmkfd", "DNS:xn--e1afmkfd"),
            ("192.0.2.1", "IP:192.0.2.1"),
            ("2001:DB8:0:0::1", "IP:2001:db8::1"),
            ("example.test.", "does not end with a label"),
            ("", "does not end with a label"),
            ("*", "does not end with a label"),
            ("a..test", "unexpected character '.' at position 2"),
            ("*a.test", "unexpected character 'a' at position 1"),
            ("www.a.*", "unexpected character '*' at position 6"),
            ("a/b", "unexpected character '/' at position 1"),
            ("a\u{e4}", "invalid character c3 at position 1"),
            ("a b", "invalid character 20 at position 1"),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    #[test]
    fn addresses_have_names_for_handshakes() {
        let name = |text: &str| Identifier::read(text).unwrap()[0].server_name();
        assert_eq!(name("127.0.0.1"), "1.0.0.127.in-addr.arpa");
        assert_eq!(name("2001:db8::1"), "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa");
        assert_eq!(name("a.test"), "a.test");
    }

    #[test]
    fn json_is_that_of_rfc_8555() {
        let text = r#"{"type":"dns","value":"a.test"}"#;
        let read: Identifier = serde_json::from_str(text).unwrap();
        assert_eq!((&read, serde_json::to_string(&read).unwrap().as_str()), (&Identifier::Dns("a.test".into()), text));
    }
}
