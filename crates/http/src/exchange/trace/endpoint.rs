//! The address of a collector, and its protocol: `HOST:PORT` and `http://…` are OTLP over gRPC; with a path, it is
//! OTLP over HTTP.

use std::fmt;
use std::path::PathBuf;

use weir_net::Address;

/// A collector's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Over TLS.
    pub is_tls: bool,
    /// The address it listens on.
    pub at: At,
    /// `Host` and port as written.
    pub authority: String,
    /// The path of the POST over HTTP/1.1; `None` for gRPC.
    pub path: Option<String>,
}

/// The address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// A name or an address, and a port.
    Host(String, u16),
    /// A unix socket.
    Unix(PathBuf),
}

/// The service that gRPC calls.
pub const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The registered ports of OTLP.
const GRPC_PORT: u16 = 4317;
const HTTP_PORT: u16 = 4318;

impl Endpoint {
    /// Reads an endpoint; the error names the problem.
    pub fn parse(text: &str) -> Result<Endpoint, &'static str> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            Address::unix(path)?;
            let at = At::Unix(PathBuf::from(path));
            return Ok(Endpoint { is_tls: false, at, authority: "localhost".to_owned(), path: None });
        }
        let is_scheme = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        let (is_tls, rest) = match () {
            () if is_scheme("https://") => (true, text.get(8..)),
            () if is_scheme("http://") => (false, text.get(7..)),
            () => (false, Some(text)),
        };
        let rest = rest.unwrap_or_default();
        let (authority, path) = match rest.find('/') {
            Some(slash) => (rest.get(..slash).unwrap_or_default(), rest.get(slash..).map(str::to_owned)),
            None => (rest, None),
        };
        if path.as_deref() == Some("/") {
            return Err("the path / (write /v1/traces for OTLP over HTTP, and no path for OTLP over gRPC)");
        }
        if rest.bytes().any(|byte| !byte.is_ascii_graphic()) || authority.contains('@') {
            return Err("a byte that is not allowed");
        }
        let is_bare = authority.ends_with(']') || !authority.contains(':');
        let (host, port) = match authority.rsplit_once(':').filter(|_| !is_bare) {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0).ok_or("an invalid port")?),
            None => (authority, if path.is_some() { HTTP_PORT } else { GRPC_PORT }),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err("no host");
        }
        Ok(Endpoint { is_tls, at: At::Host(host.to_owned(), port), authority: authority.to_owned(), path })
    }

    /// The name that its certificate must contain.
    pub fn host(&self) -> &str {
        match &self.at {
            At::Host(host, _) => host,
            At::Unix(_) => "localhost",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            At::Unix(path) => write!(f, "unix:{}", path.display()),
            At::Host(..) => {
                let scheme = if self.is_tls { "https" } else { "http" };
                write!(f, "{scheme}://{}{}", self.authority, self.path.as_deref().unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn endpoints_are_read() {
        for (text, shown, host, port, path) in [
            ("localhost:4317", "http://localhost:4317", "localhost", 4317, None),
            ("http://127.0.0.1:14317", "http://127.0.0.1:14317", "127.0.0.1", 14317, None),
            ("HTTPS://c.example", "https://c.example", "c.example", 4317, None),
            ("http://c/v1/traces", "http://c/v1/traces", "c", 4318, Some("/v1/traces")),
            ("https://[::1]:9/x", "https://[::1]:9/x", "::1", 9, Some("/x")),
            ("[::1]", "http://[::1]", "::1", 4317, None),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!((endpoint.to_string().as_str(), endpoint.path.as_deref()), (shown, path), "{text}");
            assert_eq!(endpoint.at, At::Host(host.to_owned(), port), "{text}");
        }
        assert_eq!(Endpoint::parse("unix:/run/c.sock").unwrap().to_string(), "unix:/run/c.sock");
        for text in ["", "http://", "http://a/", "a:b", "a:0", "a:99999", "a b:1", "u@a:1", "unix:", ":4317"] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }
}
