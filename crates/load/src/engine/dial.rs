//! Long-lived connections: connects to a URL and reads the head of the first answer.
//!
//! Failures have Node's message and code, because reports show both.

use std::io;
use std::net::{IpAddr, SocketAddr};

use weir_meter::Step;
use weir_net::{Address, ConnectOptions, Deadline, Lease, Local, Stream, Transport};
use weir_wire::{Parser, Progress, ResponseHead};

use crate::client::{Resolver, peers};
use crate::tls::{Offer, Tls};

/// The longest URL, in bytes.
const URL_BYTES_MAX: usize = 64 << 10;
/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Most bytes of one read.
pub(crate) const READ_BYTES: usize = 16 << 10;

/// The address and path of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlAddress {
    /// `https` or `wss`.
    pub(crate) is_tls: bool,
    /// The host, without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The Host field: the port only if it is not the scheme's default.
    pub(crate) authority: String,
    /// `user:password`, still percent-encoded.
    pub(crate) user: Option<String>,
    /// Path and query; at least `/`.
    pub(crate) target: String,
}

impl UrlAddress {
    /// Parses URLs of `http`, `https`, `ws` and `wss`; the error is Node's `Invalid URL: …`.
    pub(crate) fn parse(text: &str) -> Result<UrlAddress, String> {
        let invalid = || format!("Invalid URL: {}", text.chars().take(200).collect::<String>());
        if text.len() > URL_BYTES_MAX || text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(invalid());
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(invalid)?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(invalid()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user.to_owned()), authority),
            None => (None, authority),
        };
        let own_port = if is_tls { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, "")) => (host, own_port),
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().ok().filter(|&port| port > 0).ok_or_else(invalid)?)
            }
            _ => (authority, own_port),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if bare.is_empty() || bare.contains(' ') {
            return Err(invalid());
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(UrlAddress {
            is_tls,
            host: bare.to_owned(),
            port,
            authority: if port == own_port { host.to_owned() } else { format!("{host}:{port}") },
            user,
            target: format!("{slash}{}", encoded(target)),
        })
    }
}

/// The target, with forbidden characters percent-encoded.
fn encoded(target: &str) -> String {
    let mut out = String::with_capacity(target.len());
    for byte in target.bytes() {
        match byte {
            b' ' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | 0x80.. => out.push_str(&format!("%{byte:02X}")),
            byte => out.push(char::from(byte)),
        }
    }
    out
}

/// Why connecting failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectRefused {
    /// The step that failed.
    pub(crate) step: Step,
    /// `err.code`, if it has one.
    pub(crate) code: Option<&'static str>,
    /// `err.message`.
    pub(crate) message: String,
}

impl ConnectRefused {
    pub(crate) fn new(step: Step, code: Option<&'static str>, message: impl Into<String>) -> ConnectRefused {
        ConnectRefused { step, code, message: message.into() }
    }

    /// A peer that closed without an answer.
    pub(crate) fn hang_up(step: Step) -> ConnectRefused {
        ConnectRefused::new(step, Some("ECONNRESET"), "socket hang up")
    }

    fn of_io(step: Step, call: &str, error: &io::Error) -> ConnectRefused {
        if let Some(failed) = weir_net::tls::failure(error) {
            return ConnectRefused::new(step, Some(failed.code), failed.detail.clone());
        }
        let code = code(error);
        ConnectRefused::new(step, Some(code), format!("{call} {code}"))
    }
}

/// Node's name for an error of the system.
fn code(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(1) => "EPERM",
        Some(13) => "EACCES",
        Some(23) => "ENFILE",
        Some(24) => "EMFILE",
        Some(32) => "EPIPE",
        Some(98) => "EADDRINUSE",
        Some(99) => "EADDRNOTAVAIL",
        Some(101) => "ENETUNREACH",
        Some(104) => "ECONNRESET",
        Some(105) => "ENOBUFS",
        Some(110) => "ETIMEDOUT",
        Some(111) => "ECONNREFUSED",
        Some(113) => "EHOSTUNREACH",
        _ if error.kind() == io::ErrorKind::TimedOut => "ETIMEDOUT",
        _ => "EIO",
    }
}

/// Connects, from the local address `bind` if there is one. Tries each of several addresses.
pub(crate) async fn dial(
    host: &str,
    port: u16,
    bind: Option<IpAddr>,
    resolver: &Resolver,
    deadline: &Deadline,
) -> Result<Stream, ConnectRefused> {
    let bind = bind.map(|ip| Local { address: SocketAddr::new(ip, 0), transparent: false });
    let options = ConnectOptions { bind, ..ConnectOptions::default() };
    if let Ok(ip) = host.parse() {
        return connect(SocketAddr::new(ip, port), &options, deadline).await;
    }
    let found = resolver.resolve(host, port, deadline).await.map_err(|error| {
        let code = if error.name == "EAI_AGAIN" { "EAI_AGAIN" } else { "ENOTFOUND" };
        let code = if error.name == "ETIMEDOUT" { "ETIMEDOUT" } else { code };
        ConnectRefused::new(Step::Resolve, Some(code), format!("getaddrinfo {code} {host}"))
    })?;
    let mut refused = ConnectRefused::new(Step::Resolve, Some("ENOTFOUND"), format!("getaddrinfo ENOTFOUND {host}"));
    for address in found.iter() {
        match connect(*address, &options, deadline).await {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error,
        }
        if deadline.poll_expired().is_ready() {
            break;
        }
    }
    Err(refused)
}

async fn connect(address: SocketAddr, options: &ConnectOptions, deadline: &Deadline) -> Result<Stream, ConnectRefused> {
    let failed = |error: io::Error| {
        let code = code(&error);
        ConnectRefused::new(Step::Connect, Some(code), format!("connect {code} {address}"))
    };
    peers::remember(address);
    Stream::connect_by(&Address::Tcp(address), options, deadline).await.map_err(failed)
}

/// Does the TLS handshake if the place needs TLS.
pub(crate) async fn secure(
    stream: Stream,
    place: &UrlAddress,
    tls: &Tls,
    deadline: &Deadline,
) -> Result<Transport, ConnectRefused> {
    if !place.is_tls {
        return Ok(stream.into());
    }
    // This future is large, and only TLS needs it. It is boxed so that other waiting virtual users do not need its
    // memory.
    let opened = Box::pin(tls.open(stream, &place.host, Offer::Nothing, None, deadline)).await;
    opened.map_err(|error| ConnectRefused::of_io(Step::TlsOrigin, "read", &error))
}

/// Writes all bytes.
pub(crate) async fn write_all(stream: &Transport, bytes: &[u8], deadline: &Deadline) -> Result<(), ConnectRefused> {
    let written = stream.write_all(bytes, deadline).await;
    written.map_err(|error| ConnectRefused::of_io(Step::SendRequest, "write", &error))
}

/// Reads the head of an answer, and the bytes read with it, into `buf`. Skips interim answers (1xx except 101).
pub(crate) async fn read_head(
    stream: &Transport,
    deadline: &Deadline,
    buf: &mut Lease,
    head: &mut ResponseHead,
) -> Result<(), ConnectRefused> {
    let mut parser = Parser::new();
    loop {
        if !buf.is_empty() {
            match parser.response(buf, head) {
                Ok(Progress::Done) if head.is_interim() => {
                    buf.drain(..head.len);
                    parser = Parser::new();
                    continue;
                }
                Ok(Progress::Done) => return Ok(()),
                Ok(Progress::Partial { .. }) if buf.len() < HEAD_BYTES_MAX => {}
                Ok(Progress::Partial { .. }) => {
                    let message = "Parse Error: Header overflow";
                    return Err(ConnectRefused::new(Step::AwaitHead, Some("HPE_HEADER_OVERFLOW"), message));
                }
                Err(_) => {
                    let message = "Parse Error: Expected HTTP/";
                    return Err(ConnectRefused::new(Step::AwaitHead, Some("HPE_INVALID_CONSTANT"), message));
                }
            }
        }
        if read_more(stream, deadline, buf).await? == 0 {
            return Err(ConnectRefused::hang_up(Step::AwaitHead));
        }
    }
}

/// Waits for bytes and appends them; 0 is the end of the stream.
pub(crate) async fn read_more(
    stream: &Transport,
    deadline: &Deadline,
    buf: &mut Lease,
) -> Result<usize, ConnectRefused> {
    let read = stream.read_more(buf, READ_BYTES, deadline).await;
    read.map_err(|error| ConnectRefused::of_io(Step::AwaitHead, "read", &error))
}

/// True if the caller must wait and try again.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn places() {
        for (text, is_tls, host, port, authority, target) in [
            ("ws://a", false, "a", 80, "a", "/"),
            ("WSS://a/x?y", true, "a", 443, "a", "/x?y"),
            ("http://a:8080?q=1#f", false, "a", 8080, "a:8080", "/?q=1"),
            ("https://[::1]:444/ü b", true, "::1", 444, "[::1]:444", "/%C3%BC%20b"),
            ("ws://u:p@a:80/", false, "a", 80, "a", "/"),
        ] {
            let place = UrlAddress::parse(text).unwrap();
            let seen = (place.is_tls, &*place.host, place.port, &*place.authority, &*place.target);
            assert_eq!(seen, (is_tls, host, port, authority, target), "{text}");
        }
        assert_eq!(UrlAddress::parse("ws://u:p@a").unwrap().user.as_deref(), Some("u:p"));
    }

    #[test]
    fn what_is_no_url() {
        for text in ["", "a", "ftp://a", "ws://", "ws://:80", "ws://a:0", "ws://a:99999", "ws://a b/", "ws://a/\r\n"] {
            assert_eq!(UrlAddress::parse(text), Err(format!("Invalid URL: {text}")));
        }
    }

    #[test]
    fn a_refused_connection_is_named_as_node_names_it() {
        let refused = weir_net::worker::block_on(async {
            let deadline = Deadline::new();
            let resolver = Resolver::default();
            let unknown = dial("no-such-name.invalid", 1, None, &resolver, &deadline).await.unwrap_err();
            (dial("127.0.0.1", 1, None, &resolver, &deadline).await.unwrap_err(), unknown)
        });
        let (refused, unknown) = refused.unwrap();
        assert!(["ENOTFOUND", "EAI_AGAIN"].contains(&unknown.code.unwrap()), "{unknown:?}");
        assert_eq!(unknown.message, format!("getaddrinfo {} no-such-name.invalid", unknown.code.unwrap()));
        assert_eq!(refused.code, Some("ECONNREFUSED"));
        assert_eq!(refused.message, "connect ECONNREFUSED 127.0.0.1:1");
        assert_eq!(refused.step, Step::Connect);
    }
}
