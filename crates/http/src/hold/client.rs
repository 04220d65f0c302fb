//! The client of a connection: its addresses, its TLS, and the PROXY protocol header before it.

use std::cell::{Cell, OnceCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use weir_net::tls::{ClientHello, Complaint, Context, Noted};
use weir_net::{Instant, SocketAddress};

use crate::hold::bounds::Share;
use crate::hold::conn::shared::Shared;
use crate::hold::own::Own;

/// The name of HTTP/0.9 over QUIC in a handshake (RFC 7301).
pub const HQ: &[u8] = b"hq-interop";

/// The facts about a client connection, the same for all its exchanges.
pub struct Client {
    /// `$connection`.
    pub number: u64,
    /// When it was accepted.
    pub accepted: Instant,
    /// The peer's address.
    pub remote: SocketAddress,
    /// Our end's address, read from the kernel when it is first needed.
    pub local: OnceCell<SocketAddress>,
    /// Its place in `Conf::listens` of the configuration of its next request.
    pub listen: Cell<usize>,
    /// The content of a PROXY protocol header, if the listen asks for one.
    pub proxied: OnceCell<Box<Proxied>>,
    /// The facts about its TLS session, if the listen speaks TLS.
    pub secured: OnceCell<Rc<Secured>>,
    /// The values of a session of `stream` that passed the connection on: they last as long as the connection.
    pub before: OnceCell<Box<Own>>,
    /// The connection itself.
    pub shared: Rc<Shared>,
}

impl Client {
    /// Our end's address.
    pub fn local(&self) -> &SocketAddress {
        let read = || self.shared.stream.socket().and_then(|socket| socket.local_addr().ok());
        self.local.get_or_init(|| read().unwrap_or_else(|| self.remote.clone()))
    }

    /// The address by which it gets its configuration: that of a PROXY protocol header, else that of the peer. `None` for a
    /// UNIX socket.
    pub fn ip(&self) -> Option<IpAddr> {
        let proxied = self.proxied.get().map(|proxied| proxied.source);
        proxied.or_else(|| self.remote.tcp()).map(|address| address.ip())
    }

    /// The same client, over another transport.
    pub fn over(&self, shared: Rc<Shared>) -> Rc<Client> {
        Rc::new(self.copy(self.remote.clone(), shared))
    }

    /// The same client at another address.
    pub fn moved(&self, remote: SocketAddress) -> Rc<Client> {
        Rc::new(self.copy(remote, self.shared.clone()))
    }

    fn copy(&self, remote: SocketAddress, shared: Rc<Shared>) -> Client {
        Client {
            number: self.number,
            accepted: self.accepted,
            remote,
            local: self.local.clone(),
            listen: self.listen.clone(),
            proxied: self.proxied.clone(),
            secured: self.secured.clone(),
            before: OnceCell::new(),
            shared,
        }
    }

    /// The facts about its TLS; `None` if it speaks no TLS.
    pub fn facts(&self) -> Option<&TlsFacts> {
        match self.secured.get().map(Rc::as_ref) {
            Some(Secured::Tls(facts)) => Some(facts),
            Some(Secured::Plain) | None => None,
        }
    }

    /// `https` over TLS, else `http`.
    pub fn scheme(&self) -> &'static [u8] {
        if self.facts().is_some() { b"https" } else { b"http" }
    }

    /// Whether the handshake chose HTTP/2.
    pub fn speaks_http2(&self) -> bool {
        self.speaks(b"h2")
    }

    /// Whether the handshake chose HTTP/0.9 over QUIC.
    pub fn speaks_hq(&self) -> bool {
        self.speaks(HQ)
    }

    fn speaks(&self, alpn: &[u8]) -> bool {
        self.facts().and_then(|facts| facts.agreed.get()).is_some_and(|agreed| agreed.alpn == alpn)
    }

    /// Whether it speaks plain HTTP on a TLS socket.
    pub fn is_plain_by_mistake(&self) -> bool {
        matches!(self.secured.get().map(Rc::as_ref), Some(Secured::Plain))
    }
}

/// The values of a PROXY protocol header.
#[derive(Clone, Debug)]
pub struct Proxied {
    /// The client behind the proxy.
    pub source: SocketAddr,
    /// The address that the client connected to.
    pub destination: SocketAddr,
    /// The typed values of version 2, for [`weir_wire::proxy_protocol::tlv`].
    pub tlvs: Box<[u8]>,
}

/// The facts about a connection to a socket that speaks TLS.
#[allow(clippy::large_enum_variant)] // in memory of its own, and nearly every one speaks TLS
pub enum Secured {
    /// The client speaks plain HTTP.
    Plain,
    /// The client speaks TLS.
    Tls(TlsFacts),
}

/// The client's requests in its hello, and the result of the handshake.
pub struct TlsFacts {
    /// The memory of the session, as long as the connection.
    pub held: Share,
    /// The server name in its hello.
    pub server_name: Option<String>,
    /// Its full hello, if a variable needs it.
    pub offered: Option<Box<ClientHello>>,
    /// The context that the sessions of the answering server are bound to.
    pub context: Context,
    /// The configuration that judged the client's certificate.
    pub generation: u32,
    /// Random bytes of the client: no two connections have the same.
    pub random: [u8; 32],
    /// The result of the handshake.
    pub agreed: OnceCell<Agreed>,
}

/// The result of a handshake.
pub struct Agreed {
    /// The TLS version, as OpenSSL writes it.
    pub protocol: &'static str,
    /// The suite's number.
    pub cipher: u16,
    /// The group's number; 0 without one.
    pub group: u16,
    /// The protocol above TLS; empty without one.
    pub alpn: Vec<u8>,
    /// An earlier session was resumed.
    pub is_resumed: bool,
    /// The signature schemes that were used.
    pub noted: Noted,
    /// The client's certificate in DER, if it sent one.
    pub certificate: Option<Box<[u8]>>,
    /// The verdict on it.
    pub verdict: Result<(), Complaint>,
}

impl TlsFacts {
    /// The client's certificate and the verdict on it, if the client sent one.
    pub fn shown(&self) -> Option<(&[u8], Result<(), Complaint>)> {
        let agreed = self.agreed.get()?;
        Some((agreed.certificate.as_deref()?, agreed.verdict))
    }
}
