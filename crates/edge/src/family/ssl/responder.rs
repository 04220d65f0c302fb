//! Asks an OCSP responder over plain HTTP (RFC 6960 appendix A): by GET, as in nginx, so that caches may answer.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use weir_fetch::{FetchedAnswer, NoAnswer};
use weir_http::hold::dns::{self, Resolver, Servers};
use weir_http::hold::worker::Generation;
use weir_http::read::authority::{self, split_host_port};
use weir_http::read::build::Build;
use weir_http::text::base64;
use weir_http::text::refusal::Refusal;
use weir_net::Address;
use weir_proxy::family::resolver;

/// The largest answer in bytes with its head: a response with a chain of certificates has some ten thousand.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// The longest duration of a query (nginx: 60 s between two reads).
const TIMEOUT: Duration = Duration::from_secs(60);

/// The address of a responder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host and port as written.
    pub authority: String,
    /// The path; it begins and ends with a slash.
    pub path: String,
}

impl Url {
    /// Reads `http://HOST[:PORT][/PATH]`; `None` for anything else, including `https`: the answer itself is signed.
    pub fn read(text: &str) -> Option<Url> {
        let (scheme, rest) = text.split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case("http://") {
            return None;
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || !is_clean(rest) {
            return None;
        }
        Some(Url { authority: authority.to_owned(), path: format!("{}/", path.trim_end_matches('/')) })
    }
}

/// A responder and its addresses.
pub struct OcspResponder {
    /// The URL of the query.
    pub url: Url,
    /// Resolves the addresses, with `resolver_timeout`; `None` if they are known.
    pub resolver: Option<(Arc<Servers>, Duration)>,
    /// The addresses, unless the resolver finds them.
    pub addresses: Vec<Address>,
}

impl OcspResponder {
    /// A responder from the configuration: its name is resolved now, or by the resolver at each query.
    pub fn new(b: &Build<'_>, url: Url, resolver: &resolver::Settings) -> Result<OcspResponder, Refusal> {
        match (resolver.servers.clone().flatten(), authority::literal_address(&url.authority)) {
            (Some(servers), None) => {
                let timeout = resolver.timeout.unwrap_or(dns::TIMEOUT_DEFAULT);
                Ok(OcspResponder { url, resolver: Some((servers, timeout)), addresses: Vec::new() })
            }
            _ => {
                let addresses = authority::resolve_in(b, &url.authority, 80, "OCSP responder")?;
                Ok(OcspResponder { url, resolver: None, addresses })
            }
        }
    }

    /// A worker's way to the servers that resolve its name; `None` if its addresses are known.
    pub fn resolver(&self, generation: &Generation) -> Option<Rc<Resolver>> {
        self.resolver.as_ref().map(|(servers, _)| dns::client(generation, servers))
    }

    /// The first answer from one of its addresses; the error is for the log. `resolver` is its own.
    pub async fn ask(&self, resolver: Option<&Rc<Resolver>>, request: &[u8]) -> Result<Vec<u8>, String> {
        let mut outcome = Err("the OCSP responder has no address".to_owned());
        for address in &self.addresses(resolver).await? {
            outcome = ask(&self.url, address, request).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    async fn addresses(&self, resolver: Option<&Rc<Resolver>>) -> Result<Vec<Address>, String> {
        let (Some(resolver), Some((_, timeout))) = (resolver, &self.resolver) else {
            return Ok(self.addresses.clone());
        };
        let (host, port) = split_host_port(&self.url.authority);
        let port: u16 = port.unwrap_or("80").parse().map_err(|_| "invalid port in OCSP responder".to_owned())?;
        let found = resolver.addresses(host, *timeout).await;
        let places = found.map_err(|trouble| format!("{host} could not be resolved {trouble}"))?.places;
        Ok(places.into_iter().map(|place| Address::Tcp(SocketAddr::new(place.address.ip(), port))).collect())
    }
}

/// Asks one address; the error is for the log.
async fn ask(url: &Url, address: &Address, request: &[u8]) -> Result<Vec<u8>, String> {
    match weir_fetch::ask(address, &compose(url, request), ANSWER_BYTES_MAX, TIMEOUT).await {
        Ok(FetchedAnswer { status: 200, body, .. }) => Ok(body),
        Ok(FetchedAnswer { status, .. }) => Err(format!("OCSP responder answered with status {status}")),
        Err(NoAnswer::Closed | NoAnswer::Invalid(_)) => Err("OCSP responder sent an invalid response".to_owned()),
        Err(failed) => Err(failed.to_string()),
    }
}

fn compose(url: &Url, request: &[u8]) -> Vec<u8> {
    let Url { authority, path } = url;
    let mut out = format!("GET {path}").into_bytes();
    for byte in base64::encode(request).bytes() {
        match byte {
            b'+' => out.extend_from_slice(b"%2B"),
            b'/' => out.extend_from_slice(b"%2F"),
            b'=' => out.extend_from_slice(b"%3D"),
            other => out.push(other),
        }
    }
    out.extend_from_slice(format!(" HTTP/1.0\r\nHost: {authority}\r\n\r\n").as_bytes());
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn urls_are_plain_http() {
        let url = |text: &str| Url::read(text).map(|url| (url.authority, url.path));
        let of = |authority: &str, path: &str| Some((authority.to_owned(), path.to_owned()));
        assert_eq!(url("http://ocsp.example"), of("ocsp.example", "/"));
        assert_eq!(url("HTTP://ocsp.example:81/a/b/"), of("ocsp.example:81", "/a/b/"));
        assert_eq!(url("http://[::1]:81/a"), of("[::1]:81", "/a/"));
        for bad in ["https://ocsp.example/", "ocsp.example", "http:///x", "http://a b/", "http://a/\r\nX: y"] {
            assert_eq!(url(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_question_is_one_segment_of_the_path() {
        let url = Url::read("http://ocsp.example/x").unwrap();
        let request = compose(&url, &[0xfb, 0xef, 0xff, 0x01]);
        assert_eq!(
            String::from_utf8(request).unwrap(),
            "GET /x/%2B%2B%2F%2FAQ%3D%3D HTTP/1.0\r\nHost: ocsp.example\r\n\r\n"
        );
    }
}
