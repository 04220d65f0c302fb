//! The target of requests: scheme, host and port, with the parts that all its requests share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::proxy::Proxies;
use crate::tls::Tls;
use crate::url::{Scheme, Url};

/// Origins that one worker remembers; more are made again each time.
pub const ORIGINS_MAX: usize = 10_000;

/// An origin; one per worker and origin, shared by its connections.
#[derive(Debug)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Host without the brackets of an IPv6 address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The end of every head: Host, Connection, and the empty line.
    pub tail: Vec<u8>,
    /// The Host field's value.
    pub authority: String,
    /// The bytes with which each connection begins, before TLS: a header of the PROXY protocol.
    pub(super) preface: Vec<u8>,
    /// The proxy in between, if there is one.
    pub(super) proxy: Option<Rc<Proxy>>,
    /// The TLS settings for this origin.
    pub(super) tls: Rc<Tls>,
    /// The origin was offered HTTP/2 and did not agree.
    pub(crate) lacks_http2: Cell<bool>,
    /// The resolved addresses, in the order of attempts.
    pub(super) addresses: RefCell<Rc<[SocketAddr]>>,
    /// Index of the address that worked last.
    pub(super) preferred: Cell<usize>,
}

impl Origin {
    /// The origin of a URL; `tls` is for `https`.
    pub fn of(url: &Url, tls: &Rc<Tls>) -> Origin {
        let address: Option<IpAddr> = url.host.parse().ok();
        let addresses: Vec<SocketAddr> = address.map(|ip| SocketAddr::new(ip, url.port)).into_iter().collect();
        Origin {
            scheme: url.scheme,
            host: url.host.clone(),
            port: url.port,
            tail: format!("Host: {}\r\nConnection: keep-alive\r\n\r\n", url.authority).into_bytes(),
            authority: url.authority.clone(),
            preface: Vec::new(),
            proxy: None,
            tls: tls.clone(),
            lacks_http2: Cell::new(false),
            addresses: RefCell::new(addresses.into()),
            preferred: Cell::new(0),
        }
    }

    /// The origin of a URL, reached at this address instead of those of its name.
    pub fn at(url: &Url, tls: &Rc<Tls>, address: SocketAddr) -> Origin {
        Origin { addresses: RefCell::new(Rc::from([address])), ..Origin::of(url, tls) }
    }

    /// Begins each connection with these bytes, before TLS: a header of the PROXY protocol.
    #[must_use]
    pub fn beginning_with(self, preface: Vec<u8>) -> Origin {
        Origin { preface, ..self }
    }

    /// The URL of a target of this origin.
    pub(crate) fn url(&self, target: &str) -> String {
        format!("{}://{}{target}", self.scheme.name(), self.authority)
    }

    /// The address that worked last: the origin's, or its proxy's.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        let reached = self.proxy.as_deref().map_or(self, |proxy| &proxy.origin);
        reached.addresses.borrow().get(reached.preferred.get()).map(SocketAddr::ip)
    }

    /// True if the URL belongs to this origin.
    pub fn is(&self, url: &Url) -> bool {
        (self.scheme, self.port) == (url.scheme, url.port) && self.host == url.host
    }
}

/// A proxy as one worker uses it.
#[derive(Debug)]
pub(super) struct Proxy {
    /// The proxy's address.
    pub(super) origin: Rc<Origin>,
    /// `Proxy-Authorization`, from the user in the proxy's URL.
    authorization: Option<String>,
}

impl Proxy {
    pub(super) fn new(url: &Url) -> Proxy {
        let authorization = url.user.as_ref().map(|user| format!("Basic {}", STANDARD.encode(user)));
        Proxy { origin: Rc::new(Origin::of(url, &Rc::new(Tls::default()))), authorization }
    }

    /// The request for a tunnel to an origin (RFC 9110 §9.3.6).
    pub(super) fn request(&self, to: &Origin) -> Vec<u8> {
        // IPv6 addresses stand in brackets, and the port is always there.
        let host = if to.host.contains(':') { format!("[{}]", to.host) } else { to.host.clone() };
        let port = to.port;
        let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: keep-alive\r\n");
        if let Some(authorization) = &self.authorization {
            head.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// The origins of one worker.
#[derive(Debug, Default)]
pub struct Origins {
    all: RefCell<HashMap<(Scheme, String), Rc<Origin>>>,
    tls: Rc<Tls>,
    proxies: Proxies,
}

impl Origins {
    /// An empty set. Origins for which a proxy is set are reached through it.
    pub fn new(tls: Rc<Tls>, proxies: Proxies) -> Origins {
        Origins { all: RefCell::default(), tls, proxies }
    }

    /// The origin of a URL; the same one each time.
    pub fn of(&self, url: &Url) -> Rc<Origin> {
        let mut all = self.all.borrow_mut();
        let key = (url.scheme, url.authority.clone());
        if let Some(origin) = all.get(&key) {
            return origin.clone();
        }
        let proxy = self.proxies.of(url).map(|proxy| Rc::new(Proxy::new(proxy)));
        let origin = Rc::new(Origin { proxy, ..Origin::of(url, &self.tls) });
        if all.len() < ORIGINS_MAX {
            all.insert(key, origin.clone());
        }
        origin
    }
}
